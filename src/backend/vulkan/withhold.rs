//! `PUMICE_WITHHOLD`: features that a device is taken not to have, so that one with all of them
//! shows how another fares. They are withheld where the driver is asked, so that all that follows
//! (features to enable, capabilities, target) is as on a device without them.

use super::features::{Extensions, Features};
use super::properties::Properties;
use ash::vk;
use std::sync::OnceLock;

/// A feature that can be withheld.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withheld {
    /// shaderInt64, and atomics of that width.
    Int64,
    /// shaderInt16.
    Int16,
    /// shaderInt8.
    Int8,
    /// Storage of 16 bits, wherever.
    Storage16,
    /// Storage of 8 bits, wherever.
    Storage8,
    /// shaderFloat16.
    Fp16,
    /// shaderFloat64.
    Fp64,
    /// Atomics of 64 bits.
    Int64Atomics,
    /// Atomic addition and comparison of floats.
    FloatAtomics,
    /// bufferDeviceAddress.
    Addresses,
    /// vulkanMemoryModel.
    MemoryModel,
    /// VK_KHR_workgroup_memory_explicit_layout.
    ExplicitLayout,
    /// Operations of sub-groups.
    Subgroups,
    /// Operations of sub-groups on other types than those of 32 bits.
    SubgroupTypes,
}

const NAMES: [(&str, Withheld); 14] = [
    ("int64", Withheld::Int64),
    ("int16", Withheld::Int16),
    ("int8", Withheld::Int8),
    ("storage16", Withheld::Storage16),
    ("storage8", Withheld::Storage8),
    ("fp16", Withheld::Fp16),
    ("fp64", Withheld::Fp64),
    ("int64-atomics", Withheld::Int64Atomics),
    ("float-atomics", Withheld::FloatAtomics),
    ("addresses", Withheld::Addresses),
    ("memory-model", Withheld::MemoryModel),
    ("explicit-layout", Withheld::ExplicitLayout),
    ("subgroups", Withheld::Subgroups),
    ("subgroup-types", Withheld::SubgroupTypes),
];

/// Returns the features that a list names. Calls `unknown` with each word that is no name.
fn parse(list: &str, mut unknown: impl FnMut(&str)) -> Vec<Withheld> {
    let words = list.split(',').map(str::trim).filter(|w| !w.is_empty());
    let known = words.filter_map(|word| {
        let found = NAMES.iter().find(|(name, _)| *name == word);
        if found.is_none() {
            unknown(word);
        }
        found.map(|&(_, withheld)| withheld)
    });
    known.collect()
}

/// Returns the features that this process withholds.
fn withheld() -> &'static [Withheld] {
    static LIST: OnceLock<Vec<Withheld>> = OnceLock::new();
    LIST.get_or_init(|| {
        let list = crate::util::config::get().withhold.as_deref();
        parse(list.unwrap_or_default(), |word| {
            let names: Vec<&str> = NAMES.iter().map(|&(name, _)| name).collect();
            crate::log!(
                Error,
                "PUMICE_WITHHOLD: unknown word `{word}`; the features are {}",
                names.join(", ")
            );
        })
    })
}

/// Takes extensions away.
pub fn extensions(extensions: &mut Extensions) {
    for withheld in withheld() {
        match withheld {
            Withheld::FloatAtomics => {
                extensions.atomic_float = false;
                extensions.atomic_float2 = false;
            }
            Withheld::ExplicitLayout => extensions.workgroup_explicit_layout = false,
            _ => {}
        }
    }
}

/// Takes features away.
pub fn features(features: &mut Features) {
    for &withheld in withheld() {
        take(features, withheld);
    }
}

fn take(features: &mut Features, withheld: Withheld) {
    let (core, v11, v12) = (&mut features.core, &mut features.v11, &mut features.v12);
    match withheld {
        Withheld::Int64 => {
            core.shader_int64 = vk::FALSE;
            take(features, Withheld::Int64Atomics);
        }
        Withheld::Int16 => core.shader_int16 = vk::FALSE,
        Withheld::Int8 => v12.shader_int8 = vk::FALSE,
        Withheld::Storage16 => {
            v11.storage_buffer16_bit_access = vk::FALSE;
            v11.uniform_and_storage_buffer16_bit_access = vk::FALSE;
            v11.storage_push_constant16 = vk::FALSE;
            let workgroup = &mut features.workgroup;
            workgroup.workgroup_memory_explicit_layout16_bit_access = vk::FALSE;
        }
        Withheld::Storage8 => {
            v12.storage_buffer8_bit_access = vk::FALSE;
            v12.uniform_and_storage_buffer8_bit_access = vk::FALSE;
            v12.storage_push_constant8 = vk::FALSE;
            let workgroup = &mut features.workgroup;
            workgroup.workgroup_memory_explicit_layout8_bit_access = vk::FALSE;
        }
        Withheld::Fp16 => v12.shader_float16 = vk::FALSE,
        Withheld::Fp64 => core.shader_float64 = vk::FALSE,
        Withheld::Int64Atomics => {
            v12.shader_buffer_int64_atomics = vk::FALSE;
            v12.shader_shared_int64_atomics = vk::FALSE;
        }
        Withheld::Addresses => v12.buffer_device_address = vk::FALSE,
        Withheld::MemoryModel => v12.vulkan_memory_model = vk::FALSE,
        Withheld::SubgroupTypes => v12.shader_subgroup_extended_types = vk::FALSE,
        // These are no features of a device.
        Withheld::FloatAtomics | Withheld::ExplicitLayout | Withheld::Subgroups => {}
    }
}

/// Takes properties away.
pub fn properties(reported: &mut Properties) {
    if withheld().contains(&Withheld::Subgroups) {
        reported.v11.subgroup_supported_operations = vk::SubgroupFeatureFlags::BASIC;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_parsed() {
        let mut unknown = Vec::new();
        let list = parse("int64, storage8,,int128", |word| {
            unknown.push(word.to_owned())
        });
        assert_eq!(list, [Withheld::Int64, Withheld::Storage8]);
        assert_eq!(unknown, ["int128"]);
    }

    #[test]
    fn a_width_takes_its_atomics_along() {
        let mut features = Features::default();
        features.core.shader_int64 = vk::TRUE;
        features.core.shader_float64 = vk::TRUE;
        features.v12.shader_buffer_int64_atomics = vk::TRUE;
        take(&mut features, Withheld::Int64);
        assert_eq!(features.core.shader_int64, vk::FALSE);
        assert_eq!(features.v12.shader_buffer_int64_atomics, vk::FALSE);
        assert_eq!(features.core.shader_float64, vk::TRUE);
    }
}
