//! Every environment variable that Pumice reads, in one table.
//!
//! | variable | meaning |
//! |---|---|
//! | `PUMICE_DEVICES` | which devices to offer: comma-separated indices or parts of device names; empty: all |
//! | `PUMICE_LOG` | `error` (default), `warn`, `info`, `debug`, `trace`; or `off` |
//! | `PUMICE_DUMP` | directory for the source, IR after each pass and output of every build |
//! | `PUMICE_CACHE_DIR` | directory of the compile cache; empty string: no cache; default `$XDG_CACHE_HOME/pumice` |
//! | `PUMICE_CLANG` | the clang to use |
//! | `PUMICE_LLVM_SPIRV` | the llvm-spirv to use with a clang that has no SPIR-V target |
//! | `PUMICE_CLANG_SERVER` | `0`: every compilation loads clang anew; default: from the second on one is loaded and forked |
//! | `PUMICE_FILTER` | `device`: linear filters of images are those of the device; default: computed in kernels |
//! | `PUMICE_COMPLETION` | how the host sees that work is done: `semaphore`, `word` or `event`; default: by device |
//! | `PUMICE_DIRECT_READ` | bytes up to which idle memory of a GPU is read through its mapping; default: 4096 |
//! | `PUMICE_QUEUES` | Vulkan queues used of a device at most; default: 8 |
//! | `PUMICE_VALIDATION` | `1`: enable VK_LAYER_KHRONOS_validation, its messages go to the log and count as errors |

use std::path::PathBuf;
use std::sync::OnceLock;

/// The options, read once.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// PUMICE_DEVICES
    pub devices: Vec<String>,
    /// PUMICE_DUMP
    pub dump: Option<PathBuf>,
    /// PUMICE_CACHE_DIR; None: no cache.
    pub cache_dir: Option<PathBuf>,
    /// PUMICE_CLANG
    pub clang: Option<PathBuf>,
    /// PUMICE_LLVM_SPIRV
    pub llvm_spirv: Option<PathBuf>,
    /// PUMICE_CLANG_SERVER is not `0`.
    pub clang_server: bool,
    /// PUMICE_FILTER is `device`.
    pub device_filters: bool,
    /// PUMICE_COMPLETION
    pub completion: Option<String>,
    /// PUMICE_DIRECT_READ
    pub direct_read: u64,
    /// PUMICE_QUEUES
    pub queues: Option<u32>,
    /// PUMICE_VALIDATION
    pub validation: bool,
}

fn var(name: &str) -> Option<String> {
    std::env::var_os(name).map(|v| v.to_string_lossy().into_owned())
}

fn path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|v| !v.is_empty())
        .map(PathBuf::from)
}

fn default_cache_dir() -> Option<PathBuf> {
    path("XDG_CACHE_HOME")
        .or_else(|| path("HOME").map(|home| home.join(".cache")))
        .map(|base| base.join("pumice"))
}

/// The options of this process.
pub fn get() -> &'static Config {
    static CONFIG: OnceLock<Config> = OnceLock::new();
    CONFIG.get_or_init(|| Config {
        devices: var("PUMICE_DEVICES")
            .unwrap_or_default()
            .split(',')
            .map(|s| s.trim().to_owned())
            .filter(|s| !s.is_empty())
            .collect(),
        dump: path("PUMICE_DUMP"),
        cache_dir: match std::env::var_os("PUMICE_CACHE_DIR") {
            Some(dir) if dir.is_empty() => None,
            Some(dir) => Some(PathBuf::from(dir)),
            None => default_cache_dir(),
        },
        clang: path("PUMICE_CLANG"),
        llvm_spirv: path("PUMICE_LLVM_SPIRV"),
        clang_server: var("PUMICE_CLANG_SERVER").is_none_or(|v| v != "0"),
        device_filters: var("PUMICE_FILTER").is_some_and(|v| v == "device"),
        completion: var("PUMICE_COMPLETION"),
        direct_read: var("PUMICE_DIRECT_READ")
            .and_then(|v| v.parse().ok())
            .unwrap_or(4096),
        queues: var("PUMICE_QUEUES").and_then(|v| v.parse().ok()),
        validation: var("PUMICE_VALIDATION").is_some_and(|v| v != "0" && !v.is_empty()),
    })
}
