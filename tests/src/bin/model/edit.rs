//! Edited programs by name: a seed and what was taken from its program, as in `17/d3/b5`. Numbers are those of the actions
//! of the unedited program.

use crate::build::rebuild;
use crate::program::{Action, Program, What};

/// One edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    /// Without the action.
    Drop(usize),
    /// Without events that it need not wait for, its own event and callback.
    Bare(usize),
    /// The call blocks.
    Block(usize),
    /// The kernel, or the gate, or the sleep, takes no time.
    Fast(usize),
    /// All of the first queue.
    Queue(usize),
}

impl Edit {
    fn write(self) -> String {
        match self {
            Self::Drop(at) => format!("/d{at}"),
            Self::Bare(at) => format!("/b{at}"),
            Self::Block(at) => format!("/k{at}"),
            Self::Fast(at) => format!("/f{at}"),
            Self::Queue(at) => format!("/q{at}"),
        }
    }

    fn read(text: &str) -> Option<Self> {
        let at = text.get(1..)?.parse().ok()?;
        Some(match text.get(..1)? {
            "d" => Self::Drop(at),
            "b" => Self::Bare(at),
            "k" => Self::Block(at),
            "f" => Self::Fast(at),
            "q" => Self::Queue(at),
            _ => return None,
        })
    }
}

/// A program by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The seed.
    pub seed: u64,
    /// What is different.
    pub edits: Vec<Edit>,
}

impl Name {
    /// As a word.
    pub fn write(&self) -> String {
        let edits = self.edits.iter().map(|edit| edit.write());
        self.seed.to_string() + &edits.collect::<String>()
    }

    /// The reverse.
    pub fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let seed = parts.next()?.parse().ok()?;
        let edits = parts.map(Edit::read).collect::<Option<_>>()?;
        Some(Self { seed, edits })
    }

    /// With one more edit.
    pub fn with(&self, edit: Edit) -> Self {
        let mut edits = self.edits.clone();
        edits.push(edit);
        Self {
            seed: self.seed,
            edits,
        }
    }

    /// The program, from that of the seed.
    pub fn apply(&self, program: Program) -> Program {
        if self.edits.is_empty() {
            return program;
        }
        let mut actions: Vec<Option<Action>> = program.actions.iter().cloned().map(Some).collect();
        for edit in &self.edits {
            let at = match *edit {
                Edit::Drop(at) => {
                    if let Some(action) = actions.get_mut(at) {
                        *action = None;
                    }
                    continue;
                }
                Edit::Bare(at) | Edit::Block(at) | Edit::Fast(at) | Edit::Queue(at) => at,
            };
            let Some(Some(action)) = actions.get_mut(at) else {
                continue;
            };
            match edit {
                Edit::Drop(_) => {}
                Edit::Bare(_) => {
                    action.waits.clear();
                    (action.event, action.callback) = (false, false);
                }
                Edit::Block(_) => action.blocking = action.can_block(),
                Edit::Queue(_) => action.queue = 0,
                Edit::Fast(_) => match &mut action.what {
                    What::Kernel { spins, .. } => *spins = 0,
                    What::Gate(time) | What::Sleep(time) => *time = 0,
                    _ => {}
                },
            }
        }
        rebuild(&program, actions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_written() {
        let name = Name {
            seed: 17,
            edits: vec![Edit::Drop(3), Edit::Bare(5), Edit::Queue(0), Edit::Fast(12)],
        };
        assert_eq!(name.write(), "17/d3/b5/q0/f12");
        assert_eq!(Name::read(&name.write()), Some(name));
        assert_eq!(Name::read("17/x3"), None);
    }
}
