//! What drivers get wrong, and what sets them apart where Vulkan does not tell: the one place that asks who a driver is.
//!
//! A row of [`TABLE`] is a fault or a peculiarity of some versions of a driver. It feeds the [`Target`] of the compiler, the
//! [`Caps`](crate::backend::Caps) and the back end, each through [`Quirks::has`]. `PUMICE_QUIRKS` switches single rows on and off:
//! `-NAME` for a driver that has it, `+NAME` for one that has not. docs/quirks.md is printed from the table, and
//! `ci/quirks` shows for the rows of the driver at hand that their tests fail without them.
//!
//! Where a fault can be measured it is not here but in [`probe`](super::probe).

use ash::vk;
use std::fmt::Write as _;

/// The rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Quirk {
    LoopLimit,
    IdleLanes,
    Doubles,
    FencesWait,
    LongWords,
    HostAddresses,
    RowsAreVectors,
    NegatedBounds,
    RoundingMode,
    PipelinesApart,
    LateWakeUps,
    SlowCopies,
    LongGroups,
    ShortChannels,
    IndependentSubgroups,
    LongLines,
}

/// Which driver.
#[derive(Debug, Clone, Copy)]
pub struct Driver {
    /// VkDriverId.
    pub id: vk::DriverId,
    /// The first version that has it, `[0, 0, 0]`: all known.
    pub from: [u32; 3],
    /// The first version that has it no more; none: the newest that was looked at has it.
    pub mended: Option<[u32; 3]>,
}

/// One of them.
pub struct Row {
    /// Which.
    pub quirk: Quirk,
    /// In `PUMICE_QUIRKS`.
    pub name: &'static str,
    /// Who has it.
    pub drivers: &'static [Driver],
    /// It needs the processor to lack something too.
    pub only: Option<fn() -> bool>,
    /// What is wrong, and what is done about it.
    pub what: &'static str,
    /// The tests that fail without it: part of their names in tests/api, or a place.
    pub test: &'static str,
    /// Where they were seen to fail.
    pub fails_on: &'static str,
    /// When to look again.
    pub again: &'static str,
}

const fn all(id: vk::DriverId) -> Driver {
    Driver {
        id,
        from: [0; 3],
        mended: None,
    }
}

const LLVMPIPE: &[Driver] = &[all(vk::DriverId::MESA_LLVMPIPE)];
const NVIDIA: &[Driver] = &[all(vk::DriverId::NVIDIA_PROPRIETARY)];
const SOFTWARE: &[Driver] = &[
    all(vk::DriverId::MESA_LLVMPIPE),
    all(vk::DriverId::GOOGLE_SWIFTSHADER),
];

const MESA: &str = "llvmpipe, Mesa 22.3.6";
const NVIDIA_580: &str = "H200, NVIDIA 580.159";

/// All rows.
pub static TABLE: &[Row] = &[
    Row {
        quirk: Quirk::LoopLimit,
        name: "loop-limit",
        drivers: LLVMPIPE,
        only: None,
        what: "All loops of a work-item together end after 65535 iterations, silently; so in Mesa's sources of 2026 too. Bodies are \
               repeated (`unroll_loops`), and loops go on in further dispatches (`resume_loops`).",
        test: "long_loops::",
        fails_on: MESA,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::IdleLanes,
        name: "idle-lanes",
        drivers: LLVMPIPE,
        only: None,
        what: "Lanes of a vector without a work-item take part in control flow, with zeros for what they load, and may loop for ever. \
               They end at once (`idle_lanes`).",
        test: "long_loops::loops_of_small_groups",
        fails_on: MESA,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::Doubles,
        name: "doubles",
        drivers: LLVMPIPE,
        only: Some(lacks_avx512),
        what: "Trunc and RoundEven of doubles go by way of single precision where the processor has no AVX-512. They are made of Floor \
               (`round_doubles`).",
        test: "numerics::",
        fails_on: "llvmpipe, Mesa 22.3.6, on a processor without AVX-512",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::FencesWait,
        name: "fences-wait",
        drivers: LLVMPIPE,
        only: Some(orders_by_itself),
        what: "A memory fence makes the work-items of a group wait for one another, and hangs in divergent flow. Fences are left out and \
               atomics have no order: the driver's optimiser moves no atomic access, and a processor of this architecture orders them by \
               itself.",
        test: "collectives::float_atomics",
        fails_on: MESA,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::LongWords,
        name: "long-words",
        drivers: LLVMPIPE,
        only: None,
        what: "Memory is accessed a component at a time, each a loop over the lanes, so that one access of 64 bits is better than two of \
               32.",
        test: "ci/bench: triad, float",
        fails_on: "slower on llvmpipe, Mesa 22.3.6",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::LongLines,
        name: "long-lines",
        drivers: LLVMPIPE,
        only: None,
        what: "Each stored component is a loop, and LLVM takes a time for them that grows with the square of their number. Kernels with \
               very many are compiled and dispatched in parts (`split_parts`).",
        test: "none: compile times of very long kernels",
        fails_on: "nothing: to be judged beside the CPU device",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::HostAddresses,
        name: "host-addresses",
        drivers: SOFTWARE,
        only: None,
        what: "No fault: device addresses are those of the host, so that all memory of the host is shared.",
        test: "svm::the_largest_allocation",
        fails_on: MESA,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::RowsAreVectors,
        name: "rows-are-vectors",
        drivers: SOFTWARE,
        only: None,
        what: "No fault: vectors are filled from rows of a work-group, so that short rows leave lanes empty, and tests for the end of the \
               ND-range make code slower and longer.",
        test: "ci/bench: triad, float",
        fails_on: "slower on llvmpipe, Mesa 22.3.6",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::NegatedBounds,
        name: "negated-bounds",
        drivers: NVIDIA,
        only: None,
        what: "`for (i = n; i > -n; i -= 2)` ends after five or six iterations. Comparisons with negations are made unsigned \
               (`flip_compares`).",
        test: "loop_bounds::",
        fails_on: NVIDIA_580,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::RoundingMode,
        name: "rounding-mode",
        drivers: NVIDIA,
        only: None,
        what: "Subnormals are flushed unless RoundingModeRTE of 32 bits is declared: then they still are in Fma and Sqrt, and what a \
               function built on both makes of a subnormal number is nonsense. It is not declared; to nearest is what the driver does.",
        test: "CTS math_brute_force",
        fails_on: NVIDIA_580,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::PipelinesApart,
        name: "pipelines-apart",
        drivers: NVIDIA,
        only: None,
        what: "With several threads that make pipelines, a kernel now and then begins in code that is not there; the work hangs, and \
               four seconds later the device is lost (Xid 109): 23 of 50 runs of the integration tests on one queue (13 of 26 with the \
               pipeline cache, 3 of 11 without, 7 of 13 with a cache for each pipeline). With pipelines made one by one 2 of 21, with no \
               submission meanwhile none of 17: so they are made.",
        test: "all of tests/api, many times",
        fails_on: NVIDIA_580,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::LateWakeUps,
        name: "late-wake-ups",
        drivers: NVIDIA,
        only: None,
        what: "With several threads that wait for one semaphore a wake-up may come 10 ms late. Waits are slices of 1 ms.",
        test: "ci/bench: event chain",
        fails_on: "slower on an H200, NVIDIA 580.159",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::SlowCopies,
        name: "slow-copies",
        drivers: NVIDIA,
        only: None,
        what: "vkCmdCopyBuffer reaches 840 GB/s on an H200 where a shader reaches 4100. From 1 MiB on a shader copies and fills.",
        test: "ci/bench: copy buffer",
        fails_on: "slower on an H200, NVIDIA 580.159",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::LongGroups,
        name: "long-groups",
        drivers: NVIDIA,
        only: None,
        what: "A work-group that runs for more than 4.5 s (7.5 s on a queue with graphics) loses the device. Nothing can be done; the log \
               says what happened.",
        test: "by hand",
        fails_on: NVIDIA_580,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::ShortChannels,
        name: "short-channels",
        drivers: NVIDIA,
        only: None,
        what: "Channels of 5 and 6 bits are widened to 8 bits first: 1/31 reads as 8/255, which Vulkan allows. The formats are not \
               reported.",
        test: "CTS images",
        fails_on: NVIDIA_580,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::IndependentSubgroups,
        name: "independent-subgroups",
        drivers: NVIDIA,
        only: None,
        what: "No fault: sub-groups make progress independently of one another. Vulkan has no promise of it, and a measurement could hang \
               the device.",
        test: "CTS subgroups",
        fails_on: NVIDIA_580,
        again: "2027-05",
    },
];

/// Mesa 22.3 rounds with an instruction of the processor where that takes as many doubles as single floats fit into a
/// vector, which only AVX-512 does.
fn lacks_avx512() -> bool {
    #[cfg(target_arch = "x86_64")]
    return !std::arch::is_x86_feature_detected!("avx512f");
    #[cfg(not(target_arch = "x86_64"))]
    true
}

/// The processor makes stores visible in their order, and loads are made in theirs.
fn orders_by_itself() -> bool {
    cfg!(any(target_arch = "x86_64", target_arch = "x86"))
}

/// Those of a driver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quirks(u32);

impl Quirks {
    /// Those of a driver of this version, as `PUMICE_QUIRKS` has it.
    pub fn of(id: vk::DriverId, version: u32) -> Self {
        let changes = crate::util::config::get().quirks.as_deref();
        Self::changed(id, version, changes.unwrap_or_default(), |word| {
            crate::log!(Error, "PUMICE_QUIRKS: unknown word `{word}`");
        })
    }

    fn changed(id: vk::DriverId, version: u32, changes: &str, unknown: impl Fn(&str)) -> Self {
        let version = version_of(id, version);
        let mut quirks = Self::default();
        for row in TABLE {
            let has = |driver: &Driver| {
                driver.id == id
                    && version >= driver.from
                    && driver.mended.is_none_or(|mended| version < mended)
            };
            quirks.set(
                row.quirk,
                row.drivers.iter().any(has) && row.only.is_none_or(|only| only()),
            );
        }
        for word in changes.split(',').map(str::trim).filter(|w| !w.is_empty()) {
            let name = word.trim_start_matches(['+', '-']);
            match TABLE.iter().find(|row| row.name == name) {
                Some(row) => quirks.set(row.quirk, !word.starts_with('-')),
                None => unknown(word),
            }
        }
        quirks
    }

    fn set(&mut self, quirk: Quirk, on: bool) {
        let bit = 1 << quirk as u32;
        self.0 = if on { self.0 | bit } else { self.0 & !bit };
    }

    /// Their names.
    pub fn names(self) -> Vec<&'static str> {
        let mine = TABLE.iter().filter(|row| self.has(row.quirk));
        mine.map(|row| row.name).collect()
    }

    /// The driver has it.
    pub fn has(self, quirk: Quirk) -> bool {
        self.0 & 1 << quirk as u32 != 0
    }
}

/// A driver's version in three parts, as it packs them.
fn version_of(id: vk::DriverId, version: u32) -> [u32; 3] {
    if id == vk::DriverId::NVIDIA_PROPRIETARY {
        return [version >> 22, version >> 14 & 0xff, version >> 6 & 0xff];
    }
    [
        vk::api_version_major(version),
        vk::api_version_minor(version),
        vk::api_version_patch(version),
    ]
}

/// Bytes of a cache line of a device of that vendor. Vulkan does not tell.
pub fn cache_line(vendor_id: u32) -> u32 {
    const NVIDIA: u32 = 0x10de;
    if vendor_id == NVIDIA {
        128
    } else {
        64
    }
}

/// The table as docs/quirks.md has it.
pub fn document() -> String {
    let mut text = String::from(
        "# Quirks\n\nPrinted from `src/backend/vulkan/quirks.rs`. `PUMICE_QUIRKS=-NAME,+NAME` switches them; `ci/quirks` shows \
         that tests fail without\nthose of the driver at hand.\n\n\
         | name | driver, versions | what is wrong, what is done | test | fails without it on | look again |\n\
         |---|---|---|---|---|---|\n",
    );
    for row in TABLE {
        let drivers: Vec<String> = row.drivers.iter().map(Driver::text).collect();
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | `{}` | {} | {} |",
            row.name,
            drivers.join(", "),
            row.what,
            row.test,
            row.fails_on,
            row.again
        );
    }
    text
}

impl Driver {
    fn text(&self) -> String {
        let dotted = |version: [u32; 3]| version.map(|n| n.to_string()).join(".");
        let mut text = format!("{:?}", self.id);
        if self.from != [0; 3] {
            let _ = write!(text, " from {}", dotted(self.from));
        }
        if let Some(mended) = self.mended {
            let _ = write!(text, " before {}", dotted(mended));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_switch_them() {
        let of = |changes: &str| {
            Quirks::changed(
                vk::DriverId::MESA_LLVMPIPE,
                22 << 22 | 3 << 12,
                changes,
                |_| panic!("unknown"),
            )
        };
        assert!(of("").has(Quirk::LoopLimit) && !of("").has(Quirk::NegatedBounds));
        assert!(!of("-loop-limit").has(Quirk::LoopLimit));
        assert!(of("-loop-limit").has(Quirk::IdleLanes));
        assert!(of("+negated-bounds, -idle-lanes").has(Quirk::NegatedBounds));
        let none = Quirks::changed(vk::DriverId::MOLTENVK, 1, "", |_| ());
        assert_eq!(none, Quirks::default());
        let told = std::cell::Cell::new(0);
        Quirks::changed(vk::DriverId::MOLTENVK, 1, "-nonsense,doubles", |_| {
            told.set(told.get() + 1)
        });
        assert_eq!(told.get(), 1);
    }

    #[test]
    fn versions_are_unpacked() {
        let nvidia = 580 << 22 | 159 << 14 | 3 << 6;
        assert_eq!(
            version_of(vk::DriverId::NVIDIA_PROPRIETARY, nvidia),
            [580, 159, 3]
        );
        let mesa = 22 << 22 | 3 << 12 | 6;
        assert_eq!(version_of(vk::DriverId::MESA_RADV, mesa), [22, 3, 6]);
    }

    #[test]
    fn rows_are_complete() {
        for (index, row) in TABLE.iter().enumerate() {
            assert!(TABLE[..index]
                .iter()
                .all(|other| other.name != row.name && other.quirk != row.quirk));
            assert!(!row.drivers.is_empty() && !row.what.is_empty() && !row.test.is_empty());
            assert!(!row.fails_on.is_empty() && !row.again.is_empty() && !row.what.contains('|'));
        }
    }

    /// `BLESS=1` writes it.
    #[test]
    fn the_document_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/quirks.md");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, document()).expect("docs/quirks.md");
        }
        let text = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            text == document(),
            "docs/quirks.md is not what the table says: BLESS=1"
        );
    }
}
