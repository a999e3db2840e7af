//! VK_LAYER_PUMICE_faults: a Vulkan layer, for tests, that has one call fail, and counts what lives.
//!
//! `PUMICE_FAULTS=vkCreateBuffer:3:-1` has the third vkCreateBuffer of the process fail with VK_ERROR_OUT_OF_HOST_MEMORY;
//! the call does not reach the driver. With VK_ERROR_DEVICE_LOST every later call that can say so does too, since a device
//! stays lost. Which call can fail with what is the table in [`calls`], after the specification of Vulkan 1.3.
//!
//! `pumice_faults_report` tells how often each call was made, and how many objects of each kind live. The program `faults`
//! of the tests enables the layer and judges what comes of it. Only what Pumice calls is looked after.

mod calls;
mod device;
mod state;

use ash::vk;
use pumice_layer::abi::NegotiateLayerInterface;

/// The layer.
struct Faults;

/// Tells the loader, which calls this first, the functions that it looks up all others with.
///
/// # Safety
/// Called by the Vulkan loader only, with a structure of its own.
#[no_mangle]
pub unsafe extern "system" fn vkNegotiateLoaderLayerInterfaceVersion(
    negotiation: *mut NegotiateLayerInterface,
) -> vk::Result {
    // SAFETY: the loader's promise.
    unsafe { pumice_layer::negotiate::<Faults>(negotiation) }
}

/// Writes the report, one line each: `call NAME CALLS CODE,CODE...`, `living KIND COUNT` and, if a call has failed,
/// `failed NAME`. Returns how many bytes it has; what does not fit is left out.
///
/// # Safety
/// `text` must have room for `size` bytes.
#[no_mangle]
pub unsafe extern "C" fn pumice_faults_report(text: *mut u8, size: usize) -> usize {
    let report = state::report();
    let length = report.len().min(size);
    // SAFETY: the caller's promise; the report is this function's.
    unsafe { std::ptr::copy_nonoverlapping(report.as_ptr(), text, length) };
    report.len()
}
