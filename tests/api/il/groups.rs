//! Group operations, on scalars and vectors, of work-groups and sub-groups.

use super::{Data, Il};
use opencl_sys::*;
use pumice_tests::*;

/// Values of one slot a work-item: `body` has `%x` of 32 bits and gives `%r`.
fn each(body: &str) -> Il {
    Il::new(&format!(
        "%ids = OpLoad %u64x3 %lid
         %id = OpCompositeExtract %u64 %ids 0
         %gin = OpBitcast %g_u32 %in
         %at = OpInBoundsPtrAccessChain %g_u32 %gin %id
         %x = OpLoad %u32 %at
         {body}
         %gout = OpBitcast %g_u32 %out
         %to = OpInBoundsPtrAccessChain %g_u32 %gout %id
         OpStore %to %r"
    ))
    .needs("Groups")
    .decorated("OpDecorate %lid BuiltIn LocalInvocationId")
    .with("%lid = OpVariable %i_u64x3 Input")
}

#[test]
fn work_groups() {
    let setup = Setup::new();
    let device = setup.device;
    if info!(
        clGetDeviceInfo(device),
        CL_DEVICE_WORK_GROUP_COLLECTIVE_FUNCTIONS_SUPPORT
    )
    .iter()
    .all(|&b| b == 0)
    {
        return pumice_tests::left_out("no collective functions");
    }
    let x: [u32; 16] = std::array::from_fn(|i| (i as u32 * 7 + 3) % 11);
    let run = |body: &str, needs: &str| {
        let il = each(body).needs(needs);
        il.run_size(&setup, &Data::new().put(0, &x), 16)
            .get::<u32, 16>(0)
    };
    let scan = |f: fn(u32, u32) -> u32, first: u32, inclusive: bool| {
        let mut sum = first;
        x.map(|v| {
            let before = sum;
            sum = f(sum, v);
            if inclusive {
                sum
            } else {
                before
            }
        })
    };
    assert_eq!(
        run("%r = OpGroupIAdd %u32 %u32_2 Reduce %x", ""),
        [x.iter().sum(); 16]
    );
    assert_eq!(
        run("%r = OpGroupIAdd %u32 %u32_2 InclusiveScan %x", ""),
        scan(|a, b| a + b, 0, true)
    );
    assert_eq!(
        run("%r = OpGroupUMax %u32 %u32_2 ExclusiveScan %x", ""),
        scan(u32::max, 0, false)
    );
    assert_eq!(
        run("%r = OpGroupBroadcast %u32 %u32_2 %x %u64_5", ""),
        [x[5]; 16]
    );
    assert_eq!(
        run(
            "%where = OpCompositeConstruct %u64x3 %u64_6 %u64_0 %u64_0
             %r = OpGroupBroadcast %u32 %u32_2 %x %where",
            ""
        ),
        [x[6]; 16]
    );
    let count = |body: &str| run(&format!("{body}\n%r = OpSelect %u32 %b %u32_1 %u32_0"), "");
    assert_eq!(
        count("%c = OpULessThan %bool %x %u32_11\n%b = OpGroupAll %bool %u32_2 %c"),
        [1; 16]
    );
    assert_eq!(
        count("%c = OpULessThan %bool %x %u32_0\n%b = OpGroupAny %bool %u32_2 %c"),
        [0; 16]
    );
    assert_eq!(
        run(
            "%v = OpCompositeConstruct %u32x2 %x %u32_1
             %s = OpGroupIAdd %u32x2 %u32_2 Reduce %v
             %r = OpCompositeExtract %u32 %s 1",
            ""
        ),
        [16; 16]
    );
    if setup.has_extension("cl_khr_work_group_uniform_arithmetic") {
        let needs = "GroupUniformArithmeticKHR SPV_KHR_uniform_group_instructions";
        let xor = x.iter().fold(0, |a, b| a ^ b);
        assert_eq!(
            run("%r = OpGroupBitwiseXorKHR %u32 %u32_2 Reduce %x", needs),
            [xor; 16]
        );
    }
}

#[test]
fn sub_groups() {
    let setup = Setup::new();
    let device = setup.device;
    if info_value!(u32, clGetDeviceInfo(device), CL_DEVICE_MAX_NUM_SUB_GROUPS) == 0 {
        return pumice_tests::left_out("the device has no sub-groups");
    }
    // As many work-items as a sub-group has on the devices that this is run on at least.
    const N: usize = 4;
    let x: [u32; N] = [5, 1, 7, 2];
    let run = |body: &str, needs: &str| {
        let il = each(body).needs(needs);
        il.run_size(&setup, &Data::new().put(0, &x), N)
            .get::<u32, N>(0)
    };
    let arithmetic = "GroupNonUniform GroupNonUniformArithmetic";
    assert_eq!(
        run(
            "%r = OpGroupNonUniformIMul %u32 %u32_3 Reduce %x",
            arithmetic
        ),
        [70; N]
    );
    assert_eq!(
        run(
            "%r = OpGroupNonUniformUMin %u32 %u32_3 InclusiveScan %x",
            arithmetic
        ),
        [5, 1, 1, 1]
    );
    assert_eq!(
        run(
            "%r = OpGroupNonUniformIAdd %u32 %u32_3 ClusteredReduce %x %u32_2",
            "GroupNonUniform GroupNonUniformArithmetic GroupNonUniformClustered"
        ),
        [6, 6, 9, 9]
    );
    assert_eq!(
        run(
            "%r = OpGroupNonUniformShuffleXor %u32 %u32_3 %x %u32_3",
            "GroupNonUniform GroupNonUniformShuffle"
        ),
        [2, 7, 1, 5]
    );
    assert_eq!(
        run(
            "%r = OpGroupNonUniformRotateKHR %u32 %u32_3 %x %u32_1 %u32_4",
            "GroupNonUniform GroupNonUniformRotateKHR SPV_KHR_subgroup_rotate"
        ),
        [1, 7, 2, 5]
    );
    assert_eq!(
        run(
            "%odd = OpBitwiseAnd %u32 %x %u32_4
             %c = OpINotEqual %bool %odd %u32_0
             %b = OpGroupNonUniformBallot %u32x4 %u32_3 %c
             %r = OpCompositeExtract %u32 %b 0",
            "GroupNonUniform GroupNonUniformBallot"
        ),
        [5; N]
    );
    assert_eq!(
        run(
            "%r = OpGroupNonUniformBroadcast %u32 %u32_3 %x %u32_2",
            "GroupNonUniform GroupNonUniformBallot"
        ),
        [7; N]
    );
    assert_eq!(
        run(
            "%e = OpGroupNonUniformElect %bool %u32_3\n%r = OpSelect %u32 %e %u32_1 %u32_0",
            "GroupNonUniform"
        ),
        [1, 0, 0, 0]
    );
}

/// SPV_INTEL_subgroups: shuffles in the values of two sub-groups side by side.
#[test]
fn shuffles_of_two() {
    let setup = Setup::new();
    let device = setup.device;
    if info_value!(u32, clGetDeviceInfo(device), CL_DEVICE_MAX_NUM_SUB_GROUPS) == 0 {
        return pumice_tests::left_out("the device has no sub-groups");
    }
    let kernel = setup.kernel_of("kernel void f(global int *p) { p[0] = 1; }", "f");
    let (mut size, group) = (0usize, 1usize);
    ok!(clGetKernelSubGroupInfo(
        kernel.0,
        device,
        CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE,
        size_of::<usize>(),
        (&raw const group).cast(),
        size_of::<usize>(),
        (&raw mut size).cast(),
        std::ptr::null_mut()
    ));
    if size > 32 {
        return pumice_tests::left_out("sub-groups of more than a slot of the buffer holds");
    }
    let x: Vec<u32> = (0..size as u32).map(|i| i * 5 + 2).collect();
    let mut both = x.clone();
    both.extend(x.iter().map(|x| x + 1000));
    for delta in [0, 1, 3, size] {
        let run = |body: &str| {
            let il = each(&format!(
                "%y = OpIAdd %u32 %x %u32_1000
                 {body} %u32_{delta}
                 %r = OpCompositeExtract %u32 %s 0"
            ))
            .needs("SubgroupShuffleINTEL SPV_INTEL_subgroups");
            let out = il.run_size(&setup, &Data::new().put(0, &x), size);
            out.get::<u32, 32>(0)[..size].to_vec()
        };
        let pairs = "%vx = OpCompositeConstruct %u32x2 %x %x
                     %vy = OpCompositeConstruct %u32x2 %y %y";
        assert_eq!(
            run(&format!(
                "{pairs}\n%s = OpSubgroupShuffleDownINTEL %u32x2 %vx %vy"
            )),
            both[delta..delta + size]
        );
        assert_eq!(
            run(&format!(
                "{pairs}\n%s = OpSubgroupShuffleUpINTEL %u32x2 %vx %vy"
            )),
            both[size - delta..2 * size - delta]
        );
    }
}
