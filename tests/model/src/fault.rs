//! Classifies findings by a guess at the smallest program, for counting.

use crate::program::{Kind, Place, Program, ProgramAction, Side, What};
use crate::worker::Outcome;

/// Memory that devices reach too.
fn is_shared(program: &Program, place: &Place) -> bool {
    place.map.is_some() || program.memories[place.memory].kind != Kind::Plain
}

fn has_part(program: &Program) -> bool {
    let part = |side: &Side| {
        side.view > 0 && matches!(program.memories[side.memory].kind, Kind::SvmBuffer { .. })
    };
    program.actions.iter().any(|action| match &action.what {
        What::Read(side, ..) | What::Write(side, ..) | What::Fill(side, ..) => part(side),
        What::Map(side, ..) => part(side),
        What::Copy(a, b, _) => part(a) || part(b),
        What::Kernel { dst, src, .. } => [dst, src]
            .into_iter()
            .any(|of| matches!(of, crate::program::Operand::Object(side) if part(side))),
        _ => false,
    })
}

/// The action that showed it.
fn shower(text: &str) -> Option<usize> {
    text.strip_prefix("action ")?
        .split(':')
        .next()?
        .parse()
        .ok()
}

/// Returns the class of a fault.
pub fn fault(program: &Program, shown: &Outcome) -> &'static str {
    let text = match shown {
        Outcome::Same => return "nothing",
        Outcome::Crash(_) => return "crash",
        Outcome::Hang => return "hang",
        Outcome::Differs(text) => text,
    };
    for (part, name) in [
        ("does not return", "call waits for gate"),
        ("not complete while", "event waits for gate"),
        ("before its gate", "gate overtaken"),
        ("while gates are closed", "gate"),
        ("it gave", "refused"),
        ("printed", "printed"),
        ("callback", "callback"),
        ("its event", "event"),
        ("command buffer", "command buffer"),
        ("semaphore", "semaphore"),
        ("validation", "validation"),
    ] {
        if text.contains(part) {
            return name;
        }
    }
    let late_queue = |action: &ProgramAction| matches!(action.what, What::NewQueue(_));
    let at = shower(text).unwrap_or(program.actions.len());
    // Looked at behind a call that blocks.
    let before = program.actions[..at].iter().rev();
    let mut before = before.filter(|action| action.is_command());
    let blocked = before.next().is_some_and(|action| action.blocking);
    let write = |action: &ProgramAction| match &action.what {
        What::Write(_, place, _) => is_shared(program, place),
        _ => false,
    };
    let lands = |action: &ProgramAction| match &action.what {
        What::Read(_, place, _) | What::Memcpy(place, ..) => is_shared(program, place),
        What::MemFill(..) | What::Unmap(_) => true,
        _ => false,
    };
    if has_part(program) {
        "sub-buffer"
    } else if at < program.actions.len() && blocked {
        "blocking returns early"
    } else if program.actions.iter().any(late_queue) {
        "later queue"
    } else if program.actions.iter().any(write) {
        "source read early"
    } else if program.actions.iter().any(lands) {
        "host task overtaken"
    } else {
        "other"
    }
}
