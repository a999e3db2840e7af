//! Which call is to fail, and how often each was made.

use super::calls::{Situation, CALLS, SITUATIONS};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::OnceLock;

/// The calls that are to fail, from a text of three words: `write:3:28` has the third `write` fail with that error; `write:3+:28` all
/// from that on; `disk-full:3+` all calls of a situation from the third of them on.
pub struct Fault {
    /// Rows of [`CALLS`].
    rows: Vec<usize>,
    at: u64,
    lasts: bool,
    error: i32,
}

static FAULT: OnceLock<Option<Fault>> = OnceLock::new();
/// Calls fail.
static ON: AtomicBool = AtomicBool::new(false);
/// One has failed.
static FAILED: AtomicBool = AtomicBool::new(false);
static COUNTS: [AtomicU64; CALLS.len()] = [const { AtomicU64::new(0) }; CALLS.len()];
/// The number of calls so far that match the fault.
static MATCHING: AtomicU64 = AtomicU64::new(0);

/// Reads the text of a case.
fn parse(text: &str) -> Option<Fault> {
    let mut parts = text.split(':');
    let (name, number) = (parts.next()?, parts.next()?);
    let (number, lasts) = match number.strip_suffix('+') {
        Some(number) => (number, true),
        None => (number, false),
    };
    let situation = SITUATIONS.iter().find(|situation| situation.name == name);
    let named = |row: &usize| match situation {
        Some(Situation { calls, .. }) => calls.contains(&CALLS[*row].0),
        None => CALLS[*row].0 == name,
    };
    let fault = Fault {
        rows: (0..CALLS.len()).filter(named).collect(),
        at: number.parse().ok()?,
        lasts,
        error: match situation {
            Some(situation) => situation.error,
            None => parts.next()?.parse().ok()?,
        },
    };
    (parts.next().is_none() && !fault.rows.is_empty()).then_some(fault)
}

/// Calls fail from now on as the text says.
pub fn begin(text: &str) {
    let fault = parse(text);
    assert!(fault.is_some() || text.is_empty(), "{text}: no case");
    let _ = FAULT.set(fault);
    ON.store(true, SeqCst);
}

/// No call fails any longer, nor is counted.
pub fn end() {
    ON.store(false, SeqCst);
}

/// Counts a call. The error with which it has to fail; none where it is made. `on_disk`: it may be for want of a disk.
pub fn call(row: usize, on_disk: impl Fn() -> bool) -> Option<i32> {
    if !ON.load(SeqCst) {
        return None;
    }
    COUNTS[row].fetch_add(1, SeqCst);
    let fault = FAULT.get()?.as_ref()?;
    let disk = matches!(fault.error, libc::ENOSPC | libc::EROFS);
    if !fault.rows.contains(&row) || (disk && !on_disk()) {
        return None;
    }
    let number = MATCHING.fetch_add(1, SeqCst) + 1;
    if number != fault.at && !(fault.lasts && number > fault.at) {
        return None;
    }
    FAILED.store(true, SeqCst);
    Some(fault.error)
}

/// The calls and their numbers, as lines `call NAME CALLS ERROR,ERROR...`, with situations, and `failed` if one has.
pub fn report() -> Vec<String> {
    let counts: Vec<u64> = COUNTS.iter().map(|count| count.load(SeqCst)).collect();
    let of = |name: &str| {
        let row = CALLS.iter().position(|(known, ..)| *known == name);
        row.map_or(0, |row| counts[row])
    };
    let mut lines: Vec<String> = CALLS
        .iter()
        .zip(&counts)
        .filter(|(_, count)| **count > 0)
        .map(|((name, _, errors), count)| {
            let errors: Vec<String> = errors.iter().map(i32::to_string).collect();
            format!("call {name} {count} {}", errors.join(","))
        })
        .collect();
    for Situation { name, calls, .. } in SITUATIONS {
        let sum: u64 = calls.iter().map(|call| of(call)).sum();
        if sum > 0 {
            lines.push(format!("situation {name} {sum}"));
        }
    }
    if FAILED.load(SeqCst) {
        lines.push("failed".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_read() {
        let row = |name: &str| CALLS.iter().position(|(known, ..)| *known == name);
        let fault = parse("write:3:28").expect("a case");
        assert_eq!(fault.rows, [row("write").expect("a row")]);
        assert_eq!((fault.at, fault.lasts, fault.error), (3, false, 28));
        let fault = parse("disk-full:7+").expect("a case");
        assert!(fault.rows.len() > 2 && fault.lasts);
        assert_eq!((fault.at, fault.error), (7, libc::ENOSPC));
        for wrong in [
            "",
            "write",
            "write:3",
            "write:x:1",
            "nothing:1:1",
            "write:1:1:1",
        ] {
            assert!(parse(wrong).is_none(), "{wrong}");
        }
    }

    /// Every call of a situation is in the table, so none is passed over by a slip.
    #[test]
    fn situations_are_of_known_calls() {
        for situation in SITUATIONS {
            for call in situation.calls {
                assert!(CALLS.iter().any(|(name, ..)| name == call), "{call}");
            }
        }
    }
}
