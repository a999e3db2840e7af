//! Every environment variable that Pumice reads, in one table: [`VARIABLES`].

use std::path::PathBuf;
use std::sync::OnceLock;

/// The variables and what they mean, in Markdown: the table of docs/use.md and that of the manual page.
pub const VARIABLES: &[(&str, &str)] = &[
    (
        "PUMICE_DEVICES",
        "which devices to offer: comma-separated indices among all, parts of device names, or `cpu` for the processor itself; default: all but Vulkan devices that are software (lavapipe)",
    ),
    (
        "PUMICE_CPU_WIDTH",
        "bits of the vectors that the CPU device uses: 128, 256 or 512; default: those of the processor",
    ),
    (
        "PUMICE_CHECK",
        "of the CPU device, with commas between: `memory`, `race`, `barrier`, `claims`; kernels are interpreted, and what they do wrong, or what the compiler claims wrongly, is said on standard error",
    ),
    (
        "PUMICE_LOG",
        "`error` (default), `warn`, `info`, `debug`, `trace`; or `off`",
    ),
    (
        "PUMICE_DUMP",
        "directory for the source, SPIR-V, IR after each pass and result of every build",
    ),
    (
        "PUMICE_TRACE",
        "file for a timeline of calls, compilations and what devices do, which trace viewers open (`chrome://tracing`, Perfetto); `%p` in it is the process's number",
    ),
    (
        "PUMICE_PASSES",
        "of the compiler, with commas between: `verify` (check the IR after each pass), `time` (log what each takes), `one-copy` (functions stay functions, or are shared, in kernels of any size), `-NAME` (leave a pass out), a number (run only so many of those that can be left out, to find by bisection the one that does harm)",
    ),
    (
        "PUMICE_QUIRKS",
        "what is made up for of a driver's faults: `-NAME` not, `+NAME` where it would not be; with commas between (docs/quirks.md)",
    ),
    (
        "PUMICE_WITHHOLD",
        "of Vulkan devices, for tests, with commas between: `int64`, `int16`, `int8`, `storage16`, `storage8`, `fp16`, `fp64`, `int64-atomics`, `float-atomics`, `addresses`, `memory-model`, `explicit-layout`, `subgroups`, `subgroup-types`; the device is taken not to have that feature",
    ),
    (
        "PUMICE_CACHE_DIR",
        "directory of the compile cache; empty string: no cache; default `$XDG_CACHE_HOME/pumice`, on Windows `%LOCALAPPDATA%\\pumice\\cache`",
    ),
    (
        "PUMICE_CLANG",
        "the clang to use",
    ),
    (
        "PUMICE_LLVM_SPIRV",
        "the llvm-spirv to use with a clang that has no SPIR-V target",
    ),
    (
        "PUMICE_CLANG_SERVER",
        "`0`: every compilation loads clang anew; default: from the second on one is loaded and forked",
    ),
    (
        "PUMICE_CLANG_SECONDS",
        "after how long a compilation is stopped, and fails; default: 300",
    ),
    (
        "PUMICE_FILTER",
        "`device`: linear filters of images are those of the device; default: computed in kernels",
    ),
    (
        "PUMICE_DIRECT_READ",
        "bytes up to which idle memory of a GPU is read through its mapping; default: 4096",
    ),
    (
        "PUMICE_QUEUES",
        "Vulkan queues used of a device at most; default: 8",
    ),
    (
        "PUMICE_VALIDATION",
        "`1`: enable VK_LAYER_KHRONOS_validation, its messages go to the log and count as errors",
    ),
];

/// A day: what is longer is no limit, and times that a clock cannot count to are errors.
const MOST_SECONDS: u64 = 24 * 3600;

/// The options, read once.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// PUMICE_DEVICES
    pub devices: Vec<String>,
    /// PUMICE_CPU_WIDTH
    pub cpu_width: Option<u32>,
    /// PUMICE_CHECK
    pub check: Check,
    /// PUMICE_DUMP
    pub dump: Option<PathBuf>,
    /// PUMICE_TRACE
    pub trace: Option<PathBuf>,
    /// PUMICE_PASSES
    pub passes: Passes,
    /// PUMICE_QUIRKS
    pub quirks: Option<String>,
    /// PUMICE_WITHHOLD
    pub withhold: Option<String>,
    /// PUMICE_CACHE_DIR; None: no cache.
    pub cache_dir: Option<PathBuf>,
    /// PUMICE_CLANG
    pub clang: Option<PathBuf>,
    /// PUMICE_LLVM_SPIRV
    pub llvm_spirv: Option<PathBuf>,
    /// PUMICE_CLANG_SERVER is not `0`.
    pub clang_server: bool,
    /// PUMICE_CLANG_SECONDS
    pub clang_seconds: u64,
    /// PUMICE_FILTER is `device`.
    pub device_filters: bool,
    /// PUMICE_DIRECT_READ
    pub direct_read: u64,
    /// PUMICE_QUEUES
    pub queues: Option<u32>,
    /// PUMICE_VALIDATION
    pub validation: bool,
}

/// PUMICE_PASSES: how the compiler's passes are run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Passes {
    /// The IR is checked after each.
    pub verify: bool,
    /// Set if the time of each pass is logged.
    pub time: bool,
    /// Functions stay functions, or are shared, in kernels of any size.
    pub one_copy: bool,
    /// The passes to skip, by name.
    pub skip: Vec<String>,
    /// The number of optional passes to run; the others are skipped.
    pub limit: Option<usize>,
}

impl Passes {
    /// Parses the value of the variable. Unknown words are reported in the log.
    fn parse(text: &str) -> Self {
        let mut passes = Self::default();
        for word in text.split(',').map(str::trim).filter(|w| !w.is_empty()) {
            match (word, word.strip_prefix('-'), word.parse()) {
                ("verify", ..) => passes.verify = true,
                ("time", ..) => passes.time = true,
                ("one-copy", ..) => passes.one_copy = true,
                (_, Some(name), _) => passes.skip.push(name.to_owned()),
                (_, _, Ok(limit)) => passes.limit = Some(limit),
                _ => eprintln!("pumice: PUMICE_PASSES: unknown word `{word}`"),
            }
        }
        passes
    }

    /// Returns true if the options change the generated code.
    pub fn change_code(&self) -> bool {
        !self.skip.is_empty() || self.limit.is_some() || self.one_copy
    }
}

/// PUMICE_CHECK: what is looked for in kernels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Check {
    /// Accesses outside of memory or misaligned, use of what was never written.
    pub memory: bool,
    /// Data races.
    pub race: bool,
    /// Barriers that not all work-items reach.
    pub barrier: bool,
    /// Claims of the vectoriser about values.
    pub claims: bool,
}

impl Check {
    /// Parses the value of the variable. Unknown words are reported in the log.
    fn parse(text: &str) -> Self {
        let mut check = Self::default();
        for word in text.split(',').map(str::trim).filter(|w| !w.is_empty()) {
            match word {
                "memory" => check.memory = true,
                "race" => check.race = true,
                "barrier" => check.barrier = true,
                "claims" => check.claims = true,
                _ => eprintln!("pumice: PUMICE_CHECK: unknown word `{word}`"),
            }
        }
        check
    }

    /// Returns true if anything is set.
    pub fn any(self) -> bool {
        self != Self::default()
    }
}

fn var(name: &str) -> Option<String> {
    std::env::var_os(name).map(|v| v.to_string_lossy().into_owned())
}

fn path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|v| !v.is_empty())
        .map(PathBuf::from)
}

/// Returns where the data of the user's programs is kept that belongs to this machine.
#[cfg(windows)]
fn default_cache_dir() -> Option<PathBuf> {
    path("LOCALAPPDATA").map(|base| base.join("pumice").join("cache"))
}

#[cfg(not(windows))]
fn default_cache_dir() -> Option<PathBuf> {
    path("XDG_CACHE_HOME")
        .or_else(|| path("HOME").map(|home| home.join(".cache")))
        .map(|base| base.join("pumice"))
}

/// Returns the options of this process.
pub fn get() -> &'static Config {
    static CONFIG: OnceLock<Config> = OnceLock::new();
    CONFIG.get_or_init(|| Config {
        devices: var("PUMICE_DEVICES")
            .unwrap_or_default()
            .split(',')
            .map(|s| s.trim().to_owned())
            .filter(|s| !s.is_empty())
            .collect(),
        cpu_width: var("PUMICE_CPU_WIDTH").and_then(|v| v.parse().ok()),
        check: Check::parse(&var("PUMICE_CHECK").unwrap_or_default()),
        dump: path("PUMICE_DUMP"),
        trace: path("PUMICE_TRACE"),
        quirks: var("PUMICE_QUIRKS"),
        withhold: var("PUMICE_WITHHOLD"),
        passes: Passes::parse(&var("PUMICE_PASSES").unwrap_or_default()),
        cache_dir: match std::env::var_os("PUMICE_CACHE_DIR") {
            Some(dir) if dir.is_empty() => None,
            Some(dir) => Some(PathBuf::from(dir)),
            None => default_cache_dir(),
        },
        clang: path("PUMICE_CLANG"),
        llvm_spirv: path("PUMICE_LLVM_SPIRV"),
        clang_server: var("PUMICE_CLANG_SERVER").is_none_or(|v| v != "0"),
        clang_seconds: var("PUMICE_CLANG_SECONDS")
            .and_then(|v| v.parse().ok())
            .filter(|seconds| (1..=MOST_SECONDS).contains(seconds))
            .unwrap_or(300),
        device_filters: var("PUMICE_FILTER").is_some_and(|v| v == "device"),
        direct_read: var("PUMICE_DIRECT_READ")
            .and_then(|v| v.parse().ok())
            .unwrap_or(4096),
        queues: var("PUMICE_QUEUES").and_then(|v| v.parse().ok()),
        validation: var("PUMICE_VALIDATION").is_some_and(|v| v != "0" && !v.is_empty()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_the_same_table() {
        let document = include_str!("../../docs/use.md");
        let documented: Vec<_> = document
            .lines()
            .filter_map(|line| line.strip_prefix("| `PUMICE_")?.strip_suffix(" |"))
            .collect();
        let known: Vec<_> = VARIABLES
            .iter()
            .map(|(name, meaning)| format!("{}` | {meaning}", &name["PUMICE_".len()..]))
            .collect();
        assert_eq!(documented, known);
    }

    #[test]
    fn passes_by_words() {
        let passes = Passes::parse("verify, -cse,-dce,12,nonsense");
        assert!(passes.verify && !passes.time && passes.change_code());
        assert_eq!(passes.skip, ["cse", "dce"]);
        assert_eq!(passes.limit, Some(12));
        assert!(!Passes::parse("time").change_code());
        assert!(Passes::parse("one-copy").change_code());
    }

    #[test]
    fn checks_by_words() {
        let check = Check::parse("memory, barrier,nonsense");
        assert!(check.any() && check.memory && check.barrier && !check.race);
        assert!(!Check::parse("").any());
    }
}
