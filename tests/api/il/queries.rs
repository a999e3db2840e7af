//! cl_khr_spirv_queries: what the device names is what it takes.

use super::{build, Il};
use opencl_sys::*;
use pumice_tests::*;

/// CL_DEVICE_SPIRV_*
const EXTENDED_INSTRUCTION_SETS: u32 = 0x12B9;
const EXTENSIONS: u32 = 0x12BA;
const CAPABILITIES: u32 = 0x12BB;

fn strings(setup: &Setup, query: u32) -> Vec<String> {
    let device = setup.device;
    let bytes = info!(clGetDeviceInfo(device), query);
    bytes
        .chunks_exact(size_of::<usize>())
        .map(|c| {
            let address = usize::from_ne_bytes(c.try_into().expect("a pointer"));
            // SAFETY: the driver gives strings that live as long as it does.
            let text =
                unsafe { std::ffi::CStr::from_ptr(std::ptr::with_exposed_provenance(address)) };
            text.to_str().expect("text").to_owned()
        })
        .collect()
}

fn capabilities(setup: &Setup) -> Vec<u32> {
    let device = setup.device;
    let bytes = info!(clGetDeviceInfo(device), CAPABILITIES);
    bytes
        .chunks_exact(4)
        .map(|c| u32::from_ne_bytes(c.try_into().expect("four bytes")))
        .collect()
}

/// A module that declares one capability more, and the extensions that it may need.
fn declaring(capability: u32, extensions: &[String]) -> Vec<u32> {
    let words = Il::new("OpNop").words();
    let mut out = words[..5].to_vec();
    out.extend([2 << 16 | 17, capability]);
    let at = (5..words.len())
        .step_by(2)
        .find(|&at| words[at] & 0xffff != 17)
        .expect("an end");
    out.extend(&words[5..at]);
    for name in extensions {
        let mut bytes = name.clone().into_bytes();
        bytes.resize(name.len() / 4 * 4 + 4, 0);
        out.push(((bytes.len() / 4 + 1) as u32) << 16 | 10);
        out.extend(
            bytes
                .chunks(4)
                .map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])),
        );
    }
    out.extend(&words[at..]);
    out
}

/// Every capability that is reported may be declared; every other one is refused when the module is made or built, with
/// its name in the log.
#[test]
fn capabilities_that_may_be_declared() {
    let setup = Setup::new();
    let reported = capabilities(&setup);
    let extensions = strings(&setup, EXTENSIONS);
    for &capability in &reported {
        let words = declaring(capability, &extensions);
        if let Err(log) = build(&setup, &words) {
            panic!("capability {capability}: {log}");
        }
    }
    // Those of OpenCL environments, and of extensions to them, by numbers that the grammar has.
    let others = [
        0u32, 1, 9, 10, 15, 17, 19, 21, 59, 60, 4427, 4464, 5297, 5379, 5603, 5606, 5619, 5812,
        6016, 6024, 6029,
    ];
    for capability in others {
        if reported.contains(&capability) {
            continue;
        }
        let tolerated = [5603, 6016, 6029].contains(&capability);
        match build(&setup, &declaring(capability, &extensions)) {
            Ok(_) => assert!(
                tolerated,
                "capability {capability} is accepted, and not reported"
            ),
            Err(log) => assert!(
                log.contains("OpCapability") || log.starts_with("CL_INVALID_VALUE"),
                "capability {capability}: {log}"
            ),
        }
    }
}

/// Extensions may be declared, and instruction sets imported.
#[test]
fn extensions_and_instruction_sets() {
    let setup = Setup::new();
    for name in strings(&setup, EXTENSIONS) {
        let il = Il::new("OpNop").needs(&name);
        if let Err(log) = build(&setup, &il.words()) {
            panic!("{name}: {log}");
        }
    }
    for name in strings(&setup, EXTENDED_INSTRUCTION_SETS) {
        let text = Il::new("OpNop").text().replace(
            "%cl = OpExtInstImport",
            &format!("%also = OpExtInstImport \"{name}\"\n%cl = OpExtInstImport"),
        );
        if let Err(log) = build(&setup, &super::assemble(&text)) {
            panic!("{name}: {log}");
        }
    }
}

/// Capabilities agree with the other answers of the device.
#[test]
fn capabilities_follow_features() {
    let setup = Setup::new();
    let device = setup.device;
    let reported = capabilities(&setup);
    let has = |name: &str| setup.has_extension(name);
    let flag = |query| {
        info!(clGetDeviceInfo(device), query)
            .iter()
            .any(|&b| b != 0)
    };
    let (images, generic) = (
        flag(CL_DEVICE_IMAGE_SUPPORT),
        flag(CL_DEVICE_GENERIC_ADDRESS_SPACE_SUPPORT),
    );
    let (groups, pipes) = (
        flag(CL_DEVICE_WORK_GROUP_COLLECTIVE_FUNCTIONS_SUPPORT)
            || flag(CL_DEVICE_MAX_NUM_SUB_GROUPS),
        flag(CL_DEVICE_PIPE_SUPPORT),
    );
    let queues = flag(CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES);
    let table: &[(bool, &[u32])] = &[
        // Addresses, Linkage, Kernel, Vector16, Float16Buffer, Int64, Int16, Int8
        (true, &[4, 5, 6, 7, 8, 11, 22, 39]),
        (has("cl_khr_fp16"), &[9]),
        (has("cl_khr_fp64"), &[10]),
        (
            has("cl_khr_int64_base_atomics") && has("cl_khr_int64_extended_atomics"),
            &[12],
        ),
        // ImageBasic, LiteralSampler, Sampled1D, Image1D, SampledBuffer, ImageBuffer
        (images, &[13, 20, 43, 44, 46, 47]),
        (pipes, &[17]),
        (groups, &[18]),
        (queues, &[19]),
        (generic, &[38]),
        (flag(CL_DEVICE_MAX_NUM_SUB_GROUPS), &[58]),
        (has("cl_khr_subgroup_non_uniform_vote"), &[61, 62]),
        (has("cl_khr_subgroup_non_uniform_arithmetic"), &[63]),
        (has("cl_khr_subgroup_ballot"), &[64]),
        (has("cl_khr_subgroup_shuffle"), &[65]),
        (has("cl_khr_subgroup_shuffle_relative"), &[66]),
        (has("cl_khr_subgroup_clustered_reduce"), &[67]),
        (has("cl_khr_subgroup_rotate"), &[6026]),
        (has("cl_khr_integer_dot_product"), &[6018, 6019]),
        (has("cl_khr_extended_bit_ops"), &[6025]),
        (has("cl_khr_expect_assume"), &[5629]),
        (has("cl_khr_kernel_clock"), &[5055]),
        (has("cl_khr_work_group_uniform_arithmetic"), &[6400]),
    ];
    for (expected, list) in table {
        for capability in *list {
            assert_eq!(
                reported.contains(capability),
                *expected,
                "capability {capability}"
            );
        }
    }
    let mut once = reported.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), reported.len(), "a capability stands twice");
}
