//! The VkInstance: loading libvulkan at run time, the validation layer and its messages.

use super::conv::During;
use super::features::has;
use crate::backend::{DeviceError, Result};
use ash::{ext, khr, vk};
use std::ffi::{c_void, CStr};
use std::sync::atomic::{AtomicU64, Ordering};

const VALIDATION_LAYER: &CStr = c"VK_LAYER_KHRONOS_validation";

static VALIDATION_MESSAGES: AtomicU64 = AtomicU64::new(0);

/// Returns the number of warnings and errors that the validation layer has reported in this
/// process.
pub fn validation_messages() -> u64 {
    VALIDATION_MESSAGES.load(Ordering::Relaxed)
}

/// A VkInstance with the loader that made it.
pub struct Instance {
    /// The instance.
    pub raw: ash::Instance,
    messenger: Option<(ext::debug_utils::Instance, vk::DebugUtilsMessengerEXT)>,
    /// The version of Vulkan that the validation layer knows, where it is on. It refuses what is newer.
    pub layer: Option<u32>,
    /// The loader; also keeps libvulkan loaded.
    pub entry: ash::Entry,
}

/// The Vulkan version that the code is written for; devices may be older (down to 1.2).
pub const API_VERSION: u32 = vk::API_VERSION_1_3;

/// Logs a message of the validation layer.
///
/// # Safety
/// Called by Vulkan only, with valid `data`.
unsafe extern "system" fn on_message(
    severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    kind: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    _user: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: the specification says that `data` points to valid callback data for the time of the call.
    let text = unsafe {
        data.as_ref()
            .and_then(|data| data.message_as_c_str())
            .map(|text| text.to_string_lossy())
            .unwrap_or_default()
    };
    // Not about the program: the layer's own thread was late, or missed a signal of a larger value than was waited for
    // (KhronosGroup/Vulkan-ValidationLayers: issues 4968 and 8461; fixed in 1.3.296 by pull request 8519).
    let about_layer = text.contains("This is most likely a validation bug");
    let serious = severity.intersects(
        vk::DebugUtilsMessageSeverityFlagsEXT::ERROR
            | vk::DebugUtilsMessageSeverityFlagsEXT::WARNING,
    );
    // Messages of type GENERAL come from the loader and tell of drivers it could not load.
    let validation = kind.contains(vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION);
    if serious && validation && !about_layer {
        VALIDATION_MESSAGES.fetch_add(1, Ordering::Relaxed);
        crate::log!(Error, "vulkan validation: {text}");
    } else if serious {
        crate::log!(Info, "vulkan: {text}");
    } else {
        crate::log!(Trace, "vulkan: {text}");
    }
    vk::FALSE
}

/// Returns the version of Vulkan that the validation layer knows. Returns `None` if it is not installed.
fn layer_version(entry: &ash::Entry) -> Option<u32> {
    // SAFETY: the entry points were loaded from libvulkan.
    unsafe { entry.enumerate_instance_layer_properties() }
        .unwrap_or_default()
        .iter()
        .find(|layer| layer.layer_name_as_c_str() == Ok(VALIDATION_LAYER))
        .map(|layer| layer.spec_version)
}

/// Returns the extensions of instances without a layer.
fn instance_extensions(entry: &ash::Entry) -> Vec<vk::ExtensionProperties> {
    // SAFETY: the entry points were loaded from libvulkan.
    unsafe { entry.enumerate_instance_extension_properties(None) }.unwrap_or_default()
}

fn layer_extension(entry: &ash::Entry, name: &CStr) -> bool {
    // SAFETY: the entry points were loaded from libvulkan; the layer is present.
    unsafe { entry.enumerate_instance_extension_properties(Some(VALIDATION_LAYER)) }
        .unwrap_or_default()
        .iter()
        .any(|extension| extension.extension_name_as_c_str() == Ok(name))
}

impl Instance {
    /// Loads libvulkan and creates an instance, with the validation layer if `validation` is set
    /// and the layer is installed.
    pub fn new(validation: bool) -> Result<Self> {
        // SAFETY: libvulkan is trusted to be the Vulkan loader; its initialisers run here.
        let entry = unsafe { ash::Entry::load() }.map_err(|error| {
            DeviceError::Unsupported(format!("the Vulkan loader cannot be loaded ({error})"))
        })?;
        // SAFETY: the entry points were loaded from libvulkan.
        let version = unsafe { entry.try_enumerate_instance_version() }
            .during("vkEnumerateInstanceVersion")?;
        if version.unwrap_or(vk::API_VERSION_1_0) < vk::API_VERSION_1_1 {
            return Err(DeviceError::Unsupported(
                "the Vulkan loader is older than 1.1".to_owned(),
            ));
        }
        let layer = validation.then(|| layer_version(&entry)).flatten();
        if validation && layer.is_none() {
            crate::log!(
                Warn,
                "PUMICE_VALIDATION is set but VK_LAYER_KHRONOS_validation is not installed"
            );
        }
        let validation = layer.is_some();
        let application = vk::ApplicationInfo::default()
            .application_name(c"pumice")
            .engine_name(c"pumice")
            .api_version(API_VERSION);
        let mut info = vk::InstanceCreateInfo::default().application_info(&application);
        let layers = [VALIDATION_LAYER.as_ptr()];
        let mut extensions = Vec::new();
        // Else the loader hides drivers on other APIs: MoltenVK, KosmicKrisp.
        if has(
            &instance_extensions(&entry),
            khr::portability_enumeration::NAME,
        ) {
            extensions.push(khr::portability_enumeration::NAME.as_ptr());
            info = info.flags(vk::InstanceCreateFlags::ENUMERATE_PORTABILITY_KHR);
        }
        let wanted = [vk::ValidationFeatureEnableEXT::SYNCHRONIZATION_VALIDATION];
        let mut features =
            vk::ValidationFeaturesEXT::default().enabled_validation_features(&wanted);
        let mut messenger_info = vk::DebugUtilsMessengerCreateInfoEXT::default()
            .message_severity(
                vk::DebugUtilsMessageSeverityFlagsEXT::ERROR
                    | vk::DebugUtilsMessageSeverityFlagsEXT::WARNING,
            )
            .message_type(
                vk::DebugUtilsMessageTypeFlagsEXT::GENERAL
                    | vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION
                    | vk::DebugUtilsMessageTypeFlagsEXT::PERFORMANCE,
            )
            .pfn_user_callback(Some(on_message));
        if validation {
            extensions.push(ext::debug_utils::NAME.as_ptr());
            if layer_extension(&entry, ext::validation_features::NAME) {
                extensions.push(ext::validation_features::NAME.as_ptr());
                info = info.push_next(&mut features);
            }
            info = info
                .enabled_layer_names(&layers)
                .push_next(&mut messenger_info);
        }
        info = info.enabled_extension_names(&extensions);
        // SAFETY: the structures above are valid and outlive the call.
        let raw = unsafe { entry.create_instance(&info, None) }.during("vkCreateInstance")?;
        let messenger = if validation {
            let table = ext::debug_utils::Instance::new(&entry, &raw);
            messenger_info.p_next = std::ptr::null();
            // SAFETY: the instance was made with VK_EXT_debug_utils; the callback is a static function.
            match unsafe { table.create_debug_utils_messenger(&messenger_info, None) } {
                Ok(messenger) => Some((table, messenger)),
                Err(error) => {
                    crate::log!(Warn, "no validation messages: {error:?}");
                    None
                }
            }
        } else {
            None
        };
        Ok(Self {
            raw,
            messenger,
            layer,
            entry,
        })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: everything made from the instance holds an Arc of it, so nothing is left; handles die once.
        unsafe {
            if let Some((table, messenger)) = self.messenger.take() {
                table.destroy_debug_utils_messenger(messenger, None);
            }
            self.raw.destroy_instance(None);
        }
    }
}
