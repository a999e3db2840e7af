//! Which call is to fail, how often each was made, and how many objects live.

use ash::vk;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::OnceLock;

/// The call that is to fail.
struct Fault {
    name: String,
    at: u64,
    code: vk::Result,
}

static CALLS: Mutex<BTreeMap<&'static str, u64>> = Mutex::new(BTreeMap::new());
static LIVING: Mutex<BTreeMap<&'static str, i64>> = Mutex::new(BTreeMap::new());
static FAILED: AtomicBool = AtomicBool::new(false);
static LOST: AtomicBool = AtomicBool::new(false);

/// Reads `NAME:NUMBER:CODE`.
fn parse(text: &str) -> Option<Fault> {
    let mut parts = text.split(':');
    let fault = Fault {
        name: parts.next()?.to_owned(),
        at: parts.next()?.parse().ok()?,
        code: vk::Result::from_raw(parts.next()?.parse().ok()?),
    };
    parts.next().is_none().then_some(fault)
}

fn fault() -> Option<&'static Fault> {
    static FAULT: OnceLock<Option<Fault>> = OnceLock::new();
    FAULT
        .get_or_init(|| {
            let text = std::env::var("PUMICE_FAULTS").ok()?;
            let fault = parse(&text);
            if fault.is_none() && !text.is_empty() {
                eprintln!("PUMICE_FAULTS={text}: NAME:NUMBER:CODE?");
            }
            fault
        })
        .as_ref()
}

/// Counts a call that can fail with some codes. The code with which it has to; none where it goes on to the driver.
pub fn call(name: &'static str, codes: &[i32]) -> Option<vk::Result> {
    let number = {
        let mut calls = CALLS.lock();
        let count = calls.entry(name).or_default();
        *count += 1;
        *count
    };
    let lost = vk::Result::ERROR_DEVICE_LOST;
    if LOST.load(SeqCst) && codes.contains(&lost.as_raw()) {
        return Some(lost);
    }
    let fault = fault()?;
    if fault.name != name || fault.at != number {
        return None;
    }
    FAILED.store(true, SeqCst);
    if fault.code == lost {
        LOST.store(true, SeqCst);
    }
    Some(fault.code)
}

/// Counts objects of a kind that were made, or destroyed.
pub fn add_live(kind: &'static str, change: i64) {
    *LIVING.lock().entry(kind).or_default() += change;
}

/// The report, as `pumice_faults_report` has it.
pub fn report() -> String {
    let mut lines = String::new();
    for (name, count) in CALLS.lock().iter() {
        let codes: Vec<String> = crate::calls::codes(name)
            .iter()
            .map(i32::to_string)
            .collect();
        lines += &format!("call {name} {count} {}\n", codes.join(","));
    }
    for (kind, count) in LIVING.lock().iter() {
        lines += &format!("living {kind} {count}\n");
    }
    if let Some(fault) = fault().filter(|_| FAILED.load(SeqCst)) {
        lines += &format!("failed {}\n", fault.name);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_names_a_call_its_number_and_a_code() {
        let fault = parse("vkCreateBuffer:3:-1").expect("a fault");
        assert_eq!((fault.name.as_str(), fault.at), ("vkCreateBuffer", 3));
        assert_eq!(fault.code, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
        for wrong in [
            "",
            "vkCreateBuffer",
            "vkCreateBuffer:3",
            "a:b:-1",
            "a:1:-1:2",
        ] {
            assert!(parse(wrong).is_none(), "{wrong}");
        }
    }
}
