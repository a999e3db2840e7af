//! Build options one by one, and what kernels tell of their declaration.

use pumice_tests::sys::*;
use pumice_tests::{info_text, Setup};

/// Every option of the specification (OpenCL API, 5.8.6) builds alone, and the result works.
#[test]
fn every_option_builds() {
    let setup = Setup::new();
    let source = "kernel void f(global float *p) { p[0] = p[0] * 2.0f + 1.0f; }";
    for option in [
        "-D X",
        "-DX=1",
        "-I /tmp",
        "-I/tmp",
        "-cl-single-precision-constant",
        "-cl-denorms-are-zero",
        "-cl-fp32-correctly-rounded-divide-sqrt",
        "-cl-opt-disable",
        "-cl-strict-aliasing",
        "-cl-mad-enable",
        "-cl-no-signed-zeros",
        "-cl-unsafe-math-optimizations",
        "-cl-finite-math-only",
        "-cl-fast-relaxed-math",
        "-cl-uniform-work-group-size",
        "-cl-arm-non-uniform-work-group-size",
        "-cl-no-subgroup-ifp",
        "-w",
        "-Werror",
        "-cl-std=CL1.1",
        "-cl-std=CL1.2",
        "-cl-std=CL2.0",
        "-cl-std=CL3.0",
        "-cl-kernel-arg-info",
        "-g",
    ] {
        for options in [option.to_owned(), format!("-cl-std=CL3.0 {option}")] {
            if options.matches("-cl-std").count() > 1 {
                continue;
            }
            let program = match setup.try_build(source, &options) {
                Ok(program) => program,
                // A version that the device does not list.
                Err(_) if option == "-cl-std=CL2.0" => continue,
                Err(log) => panic!("{options}: {log}"),
            };
            let kernel = setup.kernel(&program, "f");
            let buffer = setup.buffer_of(&[3f32]);
            kernel.set_buffer(0, &buffer);
            setup.run(&kernel, &[1], None);
            assert_eq!(setup.read::<f32>(&buffer, 1), [7.0], "{options}");
        }
    }
}

/// cl_arm_non_uniform_work_group_size: kernels in OpenCL C 1.x whose last work-groups are smaller.
#[test]
fn non_uniform_work_groups_by_an_option() {
    let setup = Setup::new();
    assert!(setup.has_extension("cl_arm_non_uniform_work_group_size"));
    let source = "
        #ifndef cl_arm_non_uniform_work_group_size
        #error no macro
        #endif
        kernel void f(global uint *sizes) {
            local uint count;
            if (get_local_id(0) == 0) count = 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            atomic_inc(&count);
            barrier(CLK_LOCAL_MEM_FENCE);
            sizes[get_global_id(0)] = get_local_size(0) * 100 + count;
        }";
    let option = "-cl-arm-non-uniform-work-group-size";
    let sizes = setup.buffer_of(&[0u32; 24]);
    for std in ["", "-cl-std=CL1.1", "-cl-std=CL1.2"] {
        let launch = |options: &str| {
            let program = setup.try_build(source, options).expect("a program");
            let kernel = setup.kernel(&program, "f");
            kernel.set_buffer(0, &sizes);
            setup.queue.try_enqueue(&kernel, &[22], Some(&[8]))
        };
        assert_eq!(launch(std), CL_INVALID_WORK_GROUP_SIZE);
        let both = format!("{std} {option} -cl-uniform-work-group-size");
        assert_eq!(launch(&both), CL_INVALID_WORK_GROUP_SIZE);
        setup.write(&sizes, &[0u32; 24]);
        assert_eq!(launch(&format!("{std} {option}")), CL_SUCCESS);
        let found = setup.read::<u32>(&sizes, 24);
        let expected: Vec<u32> = (0..24)
            .map(|id| match id {
                0..16 => 808,
                16..22 => 606,
                _ => 0,
            })
            .collect();
        assert_eq!(found, expected, "{std}");
    }
    assert!(setup.try_build(source, &format!("{option}s")).is_err());
}

/// CL_KERNEL_ATTRIBUTES as the source has them: unsigned types too, for which SPIR-V has no word.
#[test]
fn attributes_of_kernels() {
    let setup = Setup::new();
    let halves = setup.has_extension("cl_khr_fp16").then_some("half8");
    let hints = ["uint4", "int4", "float2", "uchar16", "ulong", "short3"];
    for hint in hints.into_iter().chain(halves) {
        let source = format!(
            "kernel __attribute__((vec_type_hint({hint}))) __attribute__((work_group_size_hint(8, 4, 2))) void f() {{}}
             kernel __attribute__((reqd_work_group_size(4, 1, 1))) void g() {{}}"
        );
        let program = setup.build(&source);
        let attributes = |name: &str| {
            info_text!(
                clGetKernelInfo(setup.kernel(&program, name).0),
                CL_KERNEL_ATTRIBUTES
            )
        };
        let f = attributes("f");
        assert!(f.contains(&format!("vec_type_hint({hint})")), "{f}");
        assert!(f.contains("work_group_size_hint(8,4,2)"), "{f}");
        assert_eq!(attributes("g"), "reqd_work_group_size(4,1,1)");
    }
}

/// Sources that are long, or include others, become whole programs inside the compiler: kernels that call kernels,
/// functions of every linkage that are used before they are defined, not inlined, or not used at all.
#[test]
fn programs_with_many_functions() {
    let setup = Setup::new();
    let mut source = String::from(
        "#if 0
         #include \"library.cl\"
         #endif
         #define TIMES(a) a a a a a a a a
         float later(float x);
         __attribute__((noinline)) float not_inlined(float x) { return x + 1.0f; }
         inline float plain(float x) { TIMES(TIMES(x = x * 1.0f + 0.0f;)) return x + 10.0f; }
         static float hidden(float x) { return x + 100.0f; }
         constant float table[4] = { 1000.0f, 2000.0f, 3000.0f, 4000.0f };
         __attribute__((overloadable)) float many(float x) { return x + table[(int)x & 3]; }
         __attribute__((overloadable)) int many(int x) { return x + 1; }
         kernel void inner(global float *p) { p[1] = not_inlined(p[1]); p[2] = hidden(plain(p[2])); }
         __attribute__((reqd_work_group_size(1, 1, 1))) kernel void f(global float *p)
         { p[0] = later(p[0]); inner(p); p[3] = many(p[3]) + many(3); }
         float later(float x) { return not_inlined(x) * 2.0f; }\n",
    );
    for unused in 0..100 {
        source += &format!(
            "float unused_{unused}(float x) {{ return sin(x) + cos(x * {unused}.0f); }}\n"
        );
    }
    for options in [
        "",
        "-cl-opt-disable",
        "-cl-std=CL3.0 -g",
        "-cl-fast-relaxed-math -w",
    ] {
        let program = setup
            .try_build(&source, options)
            .unwrap_or_else(|log| panic!("{options}: {log}"));
        let kernel = setup.kernel(&program, "f");
        let buffer = setup.buffer_of(&[1f32, 2.0, 3.0, 5.0]);
        kernel.set_buffer(0, &buffer);
        setup.run(&kernel, &[1], None);
        assert_eq!(
            setup.read::<f32>(&buffer, 4),
            [4.0, 3.0, 113.0, 2009.0],
            "{options}"
        );
    }
}

/// `__attribute__((used))` on kernels, functions and variables, for programs that are built and that are linked.
#[test]
fn attribute_used() {
    let setup = Setup::new();
    let source = "__attribute__((used)) static int triple(int x) { return x * 3; }
        constant int table[3] __attribute__((__used__)) = {1, 2, 3};
        __attribute__((used)) kernel void f(global int *p) { p[0] = triple(p[1]) + table[p[2]]; }
        kernel void g(global int *p) { p[0] = 5; }";
    for options in [
        "",
        "-cl-std=CL3.0",
        "-cl-opt-disable",
        "-cl-kernel-arg-info",
    ] {
        let program = match setup.try_build(source, options) {
            Ok(program) => program,
            Err(log) => panic!("{options}: {log}"),
        };
        let kernel = setup.kernel(&program, "f");
        let buffer = setup.buffer_of(&[0, 7, 2]);
        kernel.set_buffer(0, &buffer);
        setup.run(&kernel, &[1], None);
        assert_eq!(setup.read::<i32>(&buffer, 1), [24], "{options}");
    }
}

/// LLVM computes what sums are after loops, with a bit more than they have: 33 of 64 bits are few, 65 too many. Bits of
/// comparisons are an integer of as many bits.
#[test]
fn integers_of_odd_widths() {
    let setup = Setup::new();
    let source = "kernel void f(global ulong *p, uint n, ulong m, int4 v) {
            uint a = 0, b = 0;
            for (uint i = 0; i < n; i++) { a += i * i; for (uint j = 0; j < i; j++) b += j; }
            p[0] = a; p[1] = b;
            ulong c = 0;
            for (ulong i = 0; i < m; i++) c += i * 3;
            p[2] = c;
            int4 same = v == (int4)(1, 2, 3, 4);
            p[3] = popcount((uint)((same.x & 1) | (same.y & 2) | (same.z & 4) | (same.w & 8)));
            p[4] = same.x && same.y && same.z && same.w;
        }
        kernel void g(global long *p, long n) {
            long sum = 0;
            for (long i = n; i > -n; i -= 2) sum += i * i;
            p[0] = sum;
        }";
    for options in ["", "-cl-opt-disable"] {
        let program = match setup.try_build(source, options) {
            Ok(program) => program,
            Err(log) => panic!("{options}: {log}"),
        };
        let buffer = setup.buffer_of(&[0u64; 5]);
        let kernel = setup.kernel(&program, "f");
        kernel.set_buffer(0, &buffer).set(1, 300u32);
        kernel.set(2, 3000u64).set(3, [1i32, 2, 5, 4]);
        setup.run(&kernel, &[1], None);
        let squares: u64 = (0..300).map(|i| i * i).sum();
        let triangles: u64 = (1..300u64).map(|i| i * (i - 1) / 2).sum();
        assert_eq!(
            setup.read::<u64>(&buffer, 5),
            [squares, triangles, 3 * 3000 * 2999 / 2, 3, 0],
            "{options}"
        );
        let kernel = setup.kernel(&program, "g");
        kernel.set_buffer(0, &buffer).set(1, 501i64);
        setup.run(&kernel, &[1], None);
        let sum: i64 = (0..501).map(|i| 501 - 2 * i).map(|i| i * i).sum();
        assert_eq!(setup.read::<i64>(&buffer, 1), [sum], "{options}");
    }
}

/// A source that is too large for any memory is an error of the build: the limit of memory ends the
/// compiler, once, long before the limit of time.
#[test]
fn sources_that_take_all_memory() {
    let setup = Setup::new();
    let mut source = "#define X0 a+\n".to_owned();
    for level in 0..32 {
        source += &format!("#define X{} X{level} X{level}\n", level + 1);
    }
    source += "kernel void f(global int *p) { int a = p[0]; p[1] = X32 a; }";
    let Err(log) = setup.try_build(&source, "") else {
        panic!("2^32 additions were built");
    };
    assert_eq!(log.matches("out of memory").count(), 1, "{log}");
}

/// LLVM's SPIR-V target gives up on the vectors of 128 bytes that its passes make of this.
#[test]
fn code_that_the_compiler_gives_up_on() {
    let setup = Setup::new();
    let source = "
        __attribute__((noinline)) int differ(const uchar *a, const uchar *b) {
            int n = 0;
            for (int i = 0; i < 64; i++) n += a[i] != b[i];
            return n;
        }
        kernel void f(global int *p) {
            __attribute__((aligned(128))) char data[128] = {
                1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
                21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40 };
            union { long8 value; uchar raw[64]; } a, b;
            union { short16 value; uchar raw[32]; } c;
            a.value = *(private long8 *)data;
            b.value = as_long8(a.value);
            c.value = *(private short16 *)data;
            union { long16 value; uchar raw[128]; } d;
            d.value = *(private long16 *)data;
            union { uchar value; uchar raw[1]; } e;
            e.value = *(private uchar *)data;
            p[4] = differ(d.raw + 64, d.raw) + e.value;
            p[0] = differ(a.raw, b.raw);
            p[1] = c.value.s7;
            b.raw[p[2]] = 0;
            p[2] = differ(a.raw, b.raw);
            p[3] = b.value.s2;
        }
    ";
    let program = match setup.try_build(source, "") {
        Ok(program) => program,
        Err(log) => panic!("{log}"),
    };
    let kernel = setup.kernel(&program, "f");
    let buffer = setup.buffer_of(&[9, 9, 5, 9, 9]);
    kernel.set_buffer(0, &buffer);
    setup.run(&kernel, &[1], None);
    assert_eq!(
        setup.read::<i32>(&buffer, 5),
        [0, 0x100f, 1, 0x1413_1211, 41]
    );
}

/// LLVM makes a vector of six bytes of three shorts where one byte is used, on which its SPIR-V target takes all memory (quirk
/// `odd-vectors`). With `-g` it never comes to that, without it in the first attempt alone.
#[test]
fn bytes_of_vectors_of_three() {
    let setup = Setup::new();
    let source = "kernel void f(global uchar *p, global const short *q, uint n) {
        short3 v[2];
        v[0] = (short3)(q[0], q[1], q[2]);
        v[1] = (short3)(q[3], q[4], q[5]);
        for (uint i = 0; i < n; i++) {
            p[i] = (uchar)(v[0].y | 4) + v[p[i] & 1].z;
            v[0] = (short3)(q[i], q[i + 1], q[i + 2]);
        }
    }";
    let shorts: [i16; 7] = [0x101, 0x1232, 0x303, 0x404, 0x505, 0x616, 0x707];
    for options in ["-g", ""] {
        let program = match setup.try_build(source, options) {
            Ok(program) => program,
            Err(log) => panic!("{log}"),
        };
        let log = setup.build_log(&program);
        assert!(options.is_empty() || !log.contains("gave up"), "{log}");
        let kernel = setup.kernel(&program, "f");
        let bytes = setup.buffer_of(&[0u8, 1, 0, 1]);
        kernel.set_buffer(0, &bytes);
        let values = setup.buffer_of(&shorts);
        kernel.set_buffer(1, &values);
        kernel.set(2, 4u32);
        setup.run(&kernel, &[1], None);
        let expected = [0x36 + 3, 0x36 + 0x16, 7 + 4, 4 + 0x16];
        assert_eq!(setup.read::<u8>(&bytes, 4), expected, "{options}");
    }
}

/// An array of 2^32 elements and more, of which LLVM's SPIR-V target writes the length in 32 bits: refused, not cut (quirk
/// `long-arrays`).
#[test]
fn arrays_that_are_too_long() {
    let setup = Setup::new();
    let source = "struct s { char x[(1UL << 32) + 16]; int y; };
        kernel void k(global int *p, int i, global struct s *q) { q[i].y = *p; p[0] = q[i].x[p[2]]; }";
    match setup.try_build(source, "") {
        Err(log) => assert!(log.contains("4294967312 elements"), "{log}"),
        Ok(_) => assert!(std::env::var_os("PUMICE_LLVM_SPIRV").is_some(), "it builds"),
    }
}

/// A hundred branches, one in the other, give what they must, or no program (quirk `nested-branches`): lavapipe has room for 80.
#[test]
fn branches_that_are_nested_deeply() {
    let setup = Setup::new();
    let steps: String = (0..100)
        .map(|i| {
            let (divisor, rest) = (i + 3, i % 3);
            format!("if (x % {divisor} == {rest}) return x + {i}; x = x * 5 + {i};\n")
        })
        .collect();
    let source = format!(
        "uint step(uint x) {{ {steps} return x; }}
         kernel void f(global uint *p) {{
             uint i = get_global_id(0), x = i * 37, sum = 0;
             for (uint t = 0; t < 5; t++) sum += step(x + t);
             p[i] = sum;
         }}"
    );
    let program = match setup.try_build(&source, "") {
        Ok(program) => program,
        Err(log) => return assert!(log.contains("nested"), "{log}"),
    };
    let step = |mut x: u32| -> u32 {
        for i in 0..100 {
            if x % (i + 3) == i % 3 {
                return x.wrapping_add(i);
            }
            x = x.wrapping_mul(5).wrapping_add(i);
        }
        x
    };
    let expected: Vec<u32> = (0..64u32)
        .map(|i| (0..5).fold(0u32, |sum, t| sum.wrapping_add(step(i * 37 + t))))
        .collect();
    let kernel = setup.kernel(&program, "f");
    let out = setup.buffer(256);
    kernel.set_buffer(0, &out);
    setup.run(&kernel, &[64], None);
    assert_eq!(setup.read::<u32>(&out, 64), expected);
}
