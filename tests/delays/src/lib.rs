//! VK_LAYER_PUMICE_delays: a Vulkan layer, for tests, that puts host and device out of step.
//!
//! On a software driver a submission is often done before the call that made it returns, so that whoever forgets to wait
//! for the device is not found out. Between the runtime and the driver this layer makes what is allowed to be late late:
//!
//! - the device begins late: a batch that waits for a semaphore of the layer's comes before the work ([`rewrite`]), and a
//!   thread signals it after a while ([`gates`]);
//! - the device is late in saying so: the signals of a batch move to one of their own that waits likewise;
//! - the host is late: calls sleep before they submit, and after they have looked or waited ([`entry`]).
//!
//! Nothing is reordered and nothing is lost, so a correct program notices nothing but the time.
//!
//! | variable | what it does |
//! |---|---|
//! | `PUMICE_DELAYS` | `SEED[:MAX_US]`: the seed of all delays and the longest of them in microseconds (default `1:300`) |
//! | `PUMICE_DELAYS_LOG` | `1`: what was delayed is printed when the process ends; anything else is a file that the line is added to |
//!
//! The layer is enabled as any other: a manifest made of `manifest.json` in a directory of `VK_LAYER_PATH`, its name in
//! `VK_INSTANCE_LAYERS`; `delayed` in `ci/test` does both. The validation layer belongs above it. Below it sees the signals
//! of this layer's thread, and its version 1.3.239 reports errors that are none (VUID-VkSemaphoreSignalInfo-value-03259, and
//! time-outs of its own). Look again with a newer one. 2026-11.
//!
//! Only what Pumice calls is looked after: vkQueueSubmit2 and the aliases of extensions pass through.

mod device;
mod entry;
mod gates;
mod rewrite;
mod schedule;
mod tally;

use ash::vk;
use pumice_layer::abi::NegotiateLayerInterface;

/// The layer.
struct Delays;

/// Tells the loader, which calls this first, the functions that it looks up all others with.
///
/// # Safety
/// Called by the Vulkan loader only, with a structure of its own.
#[no_mangle]
pub unsafe extern "system" fn vkNegotiateLoaderLayerInterfaceVersion(
    negotiation: *mut NegotiateLayerInterface,
) -> vk::Result {
    // SAFETY: the loader's promise.
    unsafe { pumice_layer::negotiate::<Delays>(negotiation) }
}
