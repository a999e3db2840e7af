//! Calls of Vulkan that fail, by the layer of `tests/faults`.
//!
//! A case is `CALL:NUMBER:CODE`. The second run must be without errors, but for lost devices, which must say so, and instances
//! and devices that were never made; no more Vulkan objects may live after it than in a process without a fault.

use crate::process::{self, Output, Watch};
use crate::{Case, Faults};
use std::path::{Path, PathBuf};

const DEVICE_LOST: &str = "-4";
/// The last call of a function that is had to fail: threads look at semaphores as often as they find the time.
const MOST: u64 = 30;
/// Without these there is no device. The Vulkan loader unloads layers then, and what they counted is gone.
const NEVER_MADE: [&str; 3] = [
    "vkCreateInstance",
    "vkEnumeratePhysicalDevices",
    "vkCreateDevice",
];

/// The layer, beside this program.
fn layer() -> PathBuf {
    let program = std::env::current_exe().expect("this program");
    program.with_file_name("libpumice_faults.so")
}

/// The child's side.
pub struct Layer;

impl Watch for Layer {
    fn report(&self) -> Vec<String> {
        type Report = unsafe extern "C" fn(*mut u8, usize) -> usize;
        // SAFETY: the layer, which the Vulkan loader has loaded already, and its function as it declares it.
        let text = unsafe {
            let library = libloading::Library::new(layer()).expect("the layer");
            let function = library.get::<Report>(b"pumice_faults_report\0");
            let function = function.expect("its function");
            let mut bytes = vec![0u8; 65536];
            let length = function(bytes.as_mut_ptr(), bytes.len()).min(bytes.len());
            bytes.truncate(length);
            String::from_utf8_lossy(&bytes).into_owned()
        };
        text.lines().map(str::to_owned).collect()
    }
}

/// The parent's side: where the manifest of the layer lies.
pub struct Vulkan {
    place: PathBuf,
}

impl Vulkan {
    /// Writes the manifest.
    pub fn new(place: &Path) -> Self {
        let manifest = include_str!("../../../faults/manifest.json");
        let manifest = manifest.replace("@LIBRARY@", &layer().display().to_string());
        std::fs::write(place.join("pumice_faults.json"), manifest).expect("a manifest");
        Self {
            place: place.to_owned(),
        }
    }
}

impl Faults for Vulkan {
    fn run(&self, case: &str, usual: &str, patience: u64) -> Output {
        let layers = [
            "/usr/local/share/vulkan",
            "/etc/vulkan",
            "/usr/share/vulkan",
        ];
        let layers = layers
            .map(|place| format!("{place}/explicit_layer.d"))
            .join(":");
        let mut command = process::command(usual);
        command
            .env("PUMICE_FAULTS", case)
            .env(
                "VK_LAYER_PATH",
                format!("{layers}:{}", self.place.display()),
            )
            .env("VK_INSTANCE_LAYERS", "VK_LAYER_PUMICE_faults");
        process::run(command, patience)
    }

    fn most(&self) -> u64 {
        MOST
    }

    fn came(&self, case: &Case, output: &Output) -> bool {
        NEVER_MADE.contains(&case.name.as_str()) || output.after("first failed").next().is_some()
    }

    fn judge(&self, case: &Case, output: &Output, without: &Output) -> Vec<String> {
        let mut wrong = output.problems();
        if output.end.is_some() {
            return wrong;
        }
        let lost = case.error == DEVICE_LOST;
        if lost && !NEVER_MADE.contains(&case.name.as_str()) {
            if output.late_errors().next().is_none() {
                wrong.push("a lost device works".to_owned());
            }
            if output.after("available ").any(|value| value != "0") {
                wrong.push("a lost device says that it is available".to_owned());
            }
        } else if !NEVER_MADE.contains(&case.name.as_str()) {
            wrong.extend(output.late_errors());
        }
        if !lost {
            wrong.extend(output.leaked(without));
        }
        wrong
    }
}
