//! Soak: round after round, and what the process has when each is over.
//!
//! A round gives everything back, its context too, so that what is left is what the runtime and the driver keep. Measured
//! after each: the heap's bytes in use, resident memory (with the heap's free pages returned), file descriptors, threads,
//! and, with the layer of `tests/faults`, Vulkan objects of each kind. The first quarter of the rounds is warm-up. Then
//! the least of the last quarter must not be above the most of the second, for memory by more than an allowance: devices keep
//! some things for the next context, now more and now less, but a leak goes on and on.

use crate::print;
use crate::round::Round;
use pumice_tests::process::resident;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The resources of the process.
#[derive(Clone, Default)]
struct Sample {
    /// The size of the C library's heap, in KiB.
    heap: i64,
    /// Resident, in KiB.
    resident: i64,
    /// The targets of file descriptors, and how many lead to each.
    files: Counts,
    threads: i64,
    /// Vulkan objects by kind.
    objects: Counts,
}

/// Counts by name. Samples are part of the heap that they measure: names are kept once.
type Counts = Box<[(&'static str, i64)]>;

fn counts(named: BTreeMap<String, i64>) -> Counts {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let known = named.into_iter().map(|(name, count)| {
        let known = names.get(name.as_str()).copied();
        let known = known.unwrap_or_else(|| {
            let name: &'static str = name.leak();
            names.insert(name);
            name
        });
        (known, count)
    });
    known.collect()
}

/// The growth of the heap from the second quarter to the last that is allowed, in KiB for each round between them: every round has
/// programs that no other has, of which drivers and the loader of objects keep something.
const HEAP: f64 = 48.0;
/// The same of resident memory, in KiB altogether: with the rounds more and more of the pages that are used in turn have been
/// touched.
const RESIDENT: f64 = 32_768.0;

/// Bytes of the C library's heap in use, once its free pages are returned. Asked on Linux alone.
#[cfg(target_os = "linux")]
fn heap() -> usize {
    // SAFETY: functions without preconditions.
    let info = unsafe {
        libc::malloc_trim(0);
        libc::mallinfo2()
    };
    info.uordblks + info.hblkhd
}

/// Not asked.
#[cfg(not(target_os = "linux"))]
fn heap() -> usize {
    0
}

/// Returns nothing: the layer of `tests/faults` is for Unix.
#[cfg(not(unix))]
fn report() -> Option<String> {
    None
}

/// Returns the report of the layer of `tests/faults`, where the Vulkan loader has loaded the one beside this program.
#[cfg(unix)]
fn report() -> Option<String> {
    type Report = unsafe extern "C" fn(*mut u8, usize) -> usize;
    let layer = std::env::current_exe()
        .ok()?
        .with_file_name("libpumice_faults.so");
    // SAFETY: the name of a library that is loaded already, or of none, and its function as it declares it.
    unsafe {
        let library =
            libloading::os::unix::Library::open(Some(layer), libc::RTLD_NOLOAD | libc::RTLD_NOW);
        let library = library.ok()?;
        let function = library.get::<Report>(b"pumice_faults_report\0").ok()?;
        let mut bytes = vec![0u8; 65536];
        let length = function(bytes.as_mut_ptr(), bytes.len()).min(bytes.len());
        bytes.truncate(length);
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Sample {
    fn take() -> Self {
        let heap = heap();
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = |name: &str| {
            let found = status.lines().find_map(|line| line.strip_prefix(name));
            let digits = found.and_then(|rest| rest.split_whitespace().next());
            digits.and_then(|text| text.parse().ok()).unwrap_or(0)
        };
        let mut files = BTreeMap::new();
        for entry in std::fs::read_dir("/proc/self/fd").into_iter().flatten() {
            let to = entry.and_then(|entry| std::fs::read_link(entry.path()));
            if let Ok(to) = to {
                // Numbers tell pipes and files apart that are of one kind.
                let kind: String = to
                    .to_string_lossy()
                    .replace(|c: char| c.is_ascii_digit(), "");
                if !kind.starts_with("/proc/") {
                    *files.entry(kind).or_default() += 1;
                }
            }
        }
        let mut objects = BTreeMap::new();
        for line in report().unwrap_or_default().lines() {
            let living = line
                .strip_prefix("living ")
                .and_then(|line| line.rsplit_once(' '));
            if let Some((kind, count)) = living {
                objects.insert(kind.to_owned(), count.parse().unwrap_or(0));
            }
        }
        Self {
            heap: heap as i64 / 1024,
            resident: resident() / 1024,
            files: counts(files),
            threads: line("Threads:"),
            objects: counts(objects),
        }
    }

    /// The counts that must not grow at all, by name.
    fn counts(&self) -> BTreeMap<String, i64> {
        let files = self
            .files
            .iter()
            .map(|(kind, count)| (format!("file {kind}"), *count));
        let objects = self
            .objects
            .iter()
            .map(|(kind, count)| (format!("Vulkan {kind}"), *count));
        let threads = [("threads".to_owned(), self.threads)];
        files.chain(objects).chain(threads).collect()
    }
}

/// The least of a number over some samples.
fn least(samples: &[Sample], of: impl Fn(&Sample) -> i64) -> i64 {
    samples.iter().map(of).min().unwrap_or(0)
}

/// The most.
fn most(samples: &[Sample], of: impl Fn(&Sample) -> i64) -> i64 {
    samples.iter().map(of).max().unwrap_or(0)
}

/// Returns what has grown between two quarters of the samples.
fn grown(samples: &[Sample]) -> Vec<String> {
    let quarter = samples.len() / 4;
    let (second, last) = (
        &samples[quarter..2 * quarter],
        &samples[samples.len() - quarter..],
    );
    let rounds = (samples.len() - 2 * quarter) as f64;
    let mut wrong = Vec::new();
    let measures: [(&str, f64, fn(&Sample) -> i64); 2] = [
        ("heap", HEAP * rounds, |sample| sample.heap),
        ("resident memory", RESIDENT, |sample| sample.resident),
    ];
    for (name, more, of) in measures {
        let (before, after) = (most(second, of), least(last, of));
        if (after - before) as f64 > more {
            wrong.push(format!(
                "{name}: {before} KiB at most, later {after} KiB at least"
            ));
        }
    }
    let names = samples
        .iter()
        .flat_map(|sample| sample.counts().into_keys());
    let names: BTreeSet<String> = names.collect();
    for name in names {
        let of = |sample: &Sample| sample.counts().get(&name).copied().unwrap_or(0);
        let (before, after) = (most(second, of), least(last, of));
        if after > before {
            wrong.push(format!("{name}: {before} at most, later {after} at least"));
        }
    }
    wrong
}

/// Runs rounds for so many seconds. Whether all was well.
pub fn run(mut round: Round<'_>, seconds: f64) -> bool {
    let mut out = print::capture();
    let started = Instant::now();
    let (mut samples, mut steps, mut good) = (Vec::new(), 0, true);
    let mut number = 0;
    while samples.len() < 8 || started.elapsed().as_secs_f64() < seconds {
        number += 1;
        round.number = Some(number);
        let outcome = round.run();
        steps += outcome.steps;
        good &= outcome.good & print::settled();
        // Threads of the runtime let go of some things a little later.
        std::thread::sleep(Duration::from_secs(1));
        let sample = Sample::take();
        let _ = writeln!(
            out,
            "round {number}, {:.0} s: {steps} steps, heap {} KiB, resident {} KiB, {} files, {} threads, {} Vulkan objects",
            started.elapsed().as_secs_f64(),
            sample.heap,
            sample.resident,
            sample.files.iter().map(|(_, count)| count).sum::<i64>(),
            sample.threads,
            sample.objects.iter().map(|(_, count)| count).sum::<i64>(),
        );
        samples.push(sample);
        round.seed = round.seed.wrapping_add(1);
    }
    let wrong = grown(&samples);
    for line in &wrong {
        let _ = writeln!(out, "grows: {line}");
    }
    let quarter = samples.len() / 4;
    let (second, last) = (
        &samples[quarter..2 * quarter],
        &samples[samples.len() - quarter..],
    );
    let rounds = (samples.len() - 2 * quarter) as f64;
    let per_round = |of: fn(&Sample) -> i64| (least(last, of) - least(second, of)) as f64 / rounds;
    let _ = writeln!(
        out,
        "soak: {} rounds, {steps} steps, {} lines printed, {} messages of the validation layer; a round leaves {:.1} KiB on the heap, {:.1} KiB resident",
        samples.len(),
        print::lines(),
        pumice_tests::validation_messages(),
        per_round(|sample| sample.heap),
        per_round(|sample| sample.resident),
    );
    good && wrong.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(of: impl Fn(i64) -> Sample) -> Vec<Sample> {
        (0..16).map(of).collect()
    }

    #[test]
    fn growth_is_seen_and_noise_is_not() {
        let flat = samples(|at| Sample {
            heap: 1000 + at % 3 * 5000,
            resident: 9000 + at % 2 * 50_000,
            threads: 5 + at % 4,
            ..Sample::default()
        });
        assert_eq!(grown(&flat), Vec::<String>::new());
        let heap = samples(|at| Sample {
            heap: 1000 + at * 200 + at % 2 * 300,
            ..Sample::default()
        });
        assert_eq!(grown(&heap).len(), 1);
        let files = samples(|at| Sample {
            files: [("pipe:[]", 4 + at / 5)].into(),
            objects: [("buffer", at)].into(),
            threads: 3 + at / 8,
            ..Sample::default()
        });
        assert_eq!(grown(&files).len(), 3);
    }
}
