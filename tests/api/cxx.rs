//! C++ for OpenCL (cl_ext_cxx_for_opencl): the language, beside OpenCL C and linked with it.

use pumice_tests::sys::*;
use pumice_tests::{create, fails, info_text, info_value, ok, Program, Setup};
use std::ffi::CString;
use std::ptr::{null, null_mut};

const VERSIONS: [&str; 3] = ["-cl-std=CLC++", "-cl-std=CLC++1.0", "-cl-std=CLC++2021"];

/// Returns what `k(global int *in, global int *out)` leaves in `out` for 16 work-items, whose
/// inputs are 1, 2, 3, ...
#[track_caller]
fn results(setup: &Setup, source: &str, options: &str) -> Vec<i32> {
    let program = setup
        .try_build(source, options)
        .unwrap_or_else(|log| panic!("{log}\n{source}"));
    let input: Vec<i32> = (1..=16).collect();
    let (from, to) = (setup.buffer_of(&input), setup.buffer_of(&[-1; 16]));
    let kernel = setup.kernel(&program, "k");
    kernel.set_buffer(0, &from).set_buffer(1, &to);
    setup.run(&kernel, &[16], Some(&[8]));
    setup.read(&to, 16)
}

#[track_caller]
fn check(source: &str, expected: impl Fn(i32) -> i32) {
    let setup = Setup::new();
    let expected: Vec<i32> = (1..=16).map(expected).collect();
    for version in VERSIONS {
        assert_eq!(results(&setup, source, version), expected, "{version}");
    }
    let unoptimised = format!("{} -cl-opt-disable", VERSIONS[0]);
    assert_eq!(results(&setup, source, &unoptimised), expected);
}

#[test]
fn versions() {
    let setup = Setup::new();
    assert!(setup.has_extension("cl_ext_cxx_for_opencl"));
    let version = info_value!(
        u32,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_CXX_FOR_OPENCL_NUMERIC_VERSION_EXT
    );
    assert_eq!(version, 1 << 22);
    let source = "
        #if defined(__OPENCL_C_VERSION__) || defined(__cpp_threadsafe_static_init)
        #error
        #endif
        #if !defined(__opencl_cpp_global_destructor) || !defined(__opencl_cpp_destructor_with_address_spaces)
        #error
        #endif
        kernel void k(global int *in, global int *out) { out[get_global_id(0)] = __OPENCL_CPP_VERSION__; }";
    for (version, number) in VERSIONS.iter().zip([100, 100, 202100]) {
        assert_eq!(results(&setup, source, version), [number; 16], "{version}");
    }
    // It is a language of its own, not an extension of OpenCL C.
    let source = "
        #if defined(cl_ext_cxx_for_opencl) || defined(__OPENCL_CPP_VERSION__)
        #error
        #endif
        kernel void k() {}";
    for version in ["", "-cl-std=CL3.0"] {
        setup.try_build(source, version).unwrap();
    }
    let program = setup.program(source);
    for unknown in [c"-cl-std=CLC++2.0", c"-cl-std=CLC++17", c"-cl-std=C++"] {
        fails!(
            CL_INVALID_BUILD_OPTIONS,
            clBuildProgram(
                program.0,
                1,
                &setup.device,
                unknown.as_ptr(),
                None,
                null_mut()
            )
        );
    }
}

#[test]
fn classes() {
    check(
        "namespace shapes {
            struct Base {
                int width;
                explicit Base(int n) : width(n) {}
                int area() const { return width * width; }
                Base &operator+=(const Base &other) { width += other.width; return *this; }
            };
            class Box : public Base {
                int height = 3;
            public:
                using Base::Base;
                Box(int w, int h) : Base(w), height(h) {}
                int area() const { return width * height; }
                int both() const { return Base::area() + area(); }
                friend bool operator<(const Box &a, const Box &b) { return a.area() < b.area(); }
            };
        }
        enum class Kind : int { Small = 1, Large = 10 };
        kernel void k(global int *in, global int *out) {
            int n = in[get_global_id(0)];
            shapes::Box one(n), two(2, n);
            one += shapes::Base(1);
            Kind kind = one < two ? Kind::Small : Kind::Large;
            out[get_global_id(0)] = one.both() * 100 + static_cast<int>(kind);
        }",
        |n| {
            let w = n + 1;
            (w * w + w * 3) * 100 + if w * 3 < 2 * n { 1 } else { 10 }
        },
    );
}

#[test]
fn templates_and_lambdas() {
    check(
        "template <typename T, int N> struct Array {
            T values[N];
            constexpr int size() const { return N; }
            T &operator[](int i) { return values[i]; }
            T *begin() { return values; }
            T *end() { return values + N; }
        };
        template <typename F, typename T> T fold(Array<T, 4> &a, T start, F f) {
            for (auto &value : a) start = f(start, value);
            return start;
        }
        template <typename T> auto sum(T only) { return only; }
        template <typename T, typename... R> auto sum(T first, R... rest) { return first + sum(rest...); }
        template <typename T> struct is_float { static constexpr bool value = false; };
        template <> struct is_float<float> { static constexpr bool value = true; };
        template <typename T> int kind(T) {
            if constexpr (is_float<T>::value) return 2;
            else return 1;
        }
        constexpr int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }
        kernel void k(global int *in, global int *out) {
            int n = in[get_global_id(0)];
            Array<int, 4> a = {{n, 2 * n, 3 * n, 4 * n}};
            int calls = 0;
            auto add = [&calls](auto x, auto y) { calls++; return x + y; };
            int total = fold(a, 0, add);
            auto scaled = [=](int by) { return total * by; };
            constexpr int ways = factorial(4);
            out[get_global_id(0)] = scaled(2) + calls * 1000 + sum(1, 2, n) + kind(1.0f) * kind(1) + a.size() * ways;
        }",
        |n| 20 * n + 4000 + 3 + n + 2 + 96,
    );
}

#[test]
fn address_spaces() {
    check(
        "struct Cell {
            int value;
            int where() const { return 0; }
            int where() const __global { return 1; }
            int where() const __local { return 2; }
            int where() const __constant { return 3; }
            Cell &operator=(const Cell &) = default;
            __local Cell &operator=(const Cell &other) __local { value = other.value; return *this; }
        };
        constant Cell fixed = {5};
        global Cell shared;
        template <typename T> void swap(T &a, T &b) { T t = a; a = b; b = t; }
        kernel void k(global int *in, global int *out) {
            local Cell cells[8];
            int at = get_local_id(0), n = in[get_global_id(0)];
            Cell mine = {n};
            cells[at] = mine;
            barrier(CLK_LOCAL_MEM_FENCE);
            const auto &next = cells[(at + 1) % 8];
            int a = next.value, b = n;
            swap(a, b);
            int *any = &out[get_global_id(0)];
            global int *exact = addrspace_cast<global int *>(any);
            int &result = *exact;
            result = a * 100 + b + 1000 * (mine.where() + shared.where() + cells[0].where() + fixed.where()) + fixed.value;
        }",
        |n| {
            let next = (n - 1) / 8 * 8 + n % 8 + 1;
            n * 100 + next + 6000 + 5
        },
    );
}

#[test]
fn built_in_functions() {
    check(
        "template <typename T> T clamped(T x) { return min(x, T(9)); }
        global atomic_int count;
        kernel void k(global int *in, global int *out) {
            int n = in[get_global_id(0)];
            int4 v = (int4)(n, -n, 300 * n, 1);
            char4 c = convert_char4_sat(v);
            auto half_float = convert_float(n) * 0.5f;
            int rounded = convert_int_rtp(half_float);
            atomic_fetch_add_explicit(&count, 2, memory_order_relaxed, memory_scope_device);
            out[get_global_id(0)] = clamped(n) + c.z + rounded + (int)sqrt(16.0f) + v.xy.y + all(v != 0);
        }",
        |n| n.min(9) + 127 + (n + 1) / 2 + 4 - n + 1,
    );
}

#[test]
fn groups() {
    let setup = Setup::new();
    let supported = info_value!(
        u32,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_WORK_GROUP_COLLECTIVE_FUNCTIONS_SUPPORT
    );
    if supported == 0 {
        return pumice_tests::left_out("no work-group functions");
    }
    check(
        "template <typename T> T total(T x) { return work_group_reduce_add(x); }
        kernel void k(global int *in, global int *out) {
            int n = in[get_global_id(0)];
            out[get_global_id(0)] = total(n) + work_group_scan_exclusive_max(n) * (get_local_id(0) > 0);
        }",
        |n| {
            let first = (n - 1) / 8 * 8 + 1;
            let before = if n == first { 0 } else { n - 1 };
            (first..first + 8).sum::<i32>() + before
        },
    );
}

/// Templates of one name, static members, static objects of functions, inline variables.
#[test]
fn static_objects() {
    check(
        "template <typename T> struct Table { static constexpr constant int size = sizeof(T); static global T last; };
        template <typename T> global T Table<T>::last = T(7);
        inline constant int fixed = 11;
        int kept(int n) {
            static global int first = 40;
            static constant int second[2] = {1, 2};
            return first + second[n & 1];
        }
        kernel void k(global int *in, global int *out) {
            int n = in[get_global_id(0)];
            out[get_global_id(0)] = Table<short>::size * 1000 + Table<long>::size + Table<int>::last + fixed + kept(n);
        }",
        |n| 2008 + 7 + 11 + 41 + (n & 1),
    );
}

fn compiled(setup: &Setup, source: &str, options: &str) -> Program {
    let program = setup.program(source);
    let options = CString::new(options).unwrap();
    ok!(clCompileProgram(
        program.0,
        1,
        &setup.device,
        options.as_ptr(),
        0,
        null(),
        null_mut(),
        None,
        null_mut()
    ));
    program
}

#[test]
fn linked_with_opencl_c() {
    let setup = Setup::new();
    let cxx = "
        extern \"C\" int twice(int n);
        template <typename T> T thrice(T n) { return n + n + n; }
        struct Offset { int value; Offset(int n) : value(twice(n)) {} };
        global Offset offset(50);
        extern \"C\" int changed(int n) { return thrice(twice(n)) + offset.value; }";
    let c = "
        int changed(int n);
        int twice(int n) { return 2 * n; }
        kernel void k(global int *in, global int *out) {
            size_t i = get_global_id(0);
            out[i] = changed(in[i]);
        }";
    // Read first, or made into SPIR-V at once.
    for start in ["", "#if 0\n#include \"nothing.h\"\n#endif\n"] {
        let first = compiled(&setup, &format!("{start}{cxx}"), "-cl-std=CLC++");
        let second = compiled(&setup, &format!("{start}{c}"), "-cl-std=CL3.0");
        let inputs = [second.0, first.0];
        let linked = Program(create!(clLinkProgram(
            setup.context.0,
            1,
            &setup.device,
            null(),
            2,
            inputs.as_ptr(),
            None,
            null_mut()
        )));
        let names = info_text!(clGetProgramInfo(linked.0), CL_PROGRAM_KERNEL_NAMES);
        assert_eq!(names, "k");
        let (from, to) = (setup.buffer_of(&[1, 2, 3]), setup.buffer_of(&[0; 3]));
        let kernel = setup.kernel(&linked, "k");
        kernel.set_buffer(0, &from).set_buffer(1, &to);
        setup.run(&kernel, &[3], None);
        assert_eq!(setup.read::<i32>(&to, 3), [106, 112, 118]);
    }
}

/// Checks that what the language leaves out is an error.
#[test]
fn refused() {
    let setup = Setup::new();
    let clang_15 = std::env::var("PUMICE_CLANG").is_ok_and(|name| name.ends_with("clang-15"));
    for (source, complaint) in [
        (
            "struct A { virtual int f() { return 1; } }; kernel void k(global int *p) { A a; *p = a.f(); }",
            "virtual functions",
        ),
        ("kernel void k(global int *p) { *p = *new int(3); }", "new"),
        ("template <typename T> kernel void k(T n) {}", "template"),
        (
            "struct A { int n; A(int m) : n(m) {} ~A() { n = 0; } };
             kernel void k(global int *p) { static global A a(*p); *p = a.n; }",
            // clang 15 has the object's guard in private memory.
            if clang_15 { "storage class" } else { "atexit" },
        ),
    ] {
        let log = setup.try_build(source, "-cl-std=CLC++").map(drop);
        let log = log.expect_err(source);
        assert!(log.contains(complaint), "{log}");
    }
}

/// Information on arguments, and lines for debuggers, go through the same second run of clang.
#[test]
fn argument_information() {
    let setup = Setup::new();
    let source = "struct Pair { int a, b; Pair(int n) : a(n), b(n) {} };
        global Pair pair(get_work_dim());
        kernel void k(global float *values, const int count) { values[0] = count + pair.b; }";
    let program = setup
        .try_build(source, "-cl-std=CLC++ -cl-kernel-arg-info -g")
        .unwrap();
    let kernel = setup.kernel(&program, "k");
    let name = info_text!(clGetKernelArgInfo(kernel.0, 0), CL_KERNEL_ARG_NAME);
    let ty = info_text!(clGetKernelArgInfo(kernel.0, 1), CL_KERNEL_ARG_TYPE_NAME);
    assert_eq!((name.as_str(), ty.as_str()), ("values", "int"));
    let to = setup.buffer(4);
    kernel.set_buffer(0, &to).set(1, 4i32);
    setup.run(&kernel, &[1], None);
    assert_eq!(setup.read::<f32>(&to, 1), [5.0]);
}
