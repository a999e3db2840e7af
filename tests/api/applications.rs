//! What programs in use were seen to need, each thing as small as it gets: a failure here is a program that breaks.

use pumice_tests::Setup;

/// OpenCL C lets a scalar be the exponent of a vector, which the compilers hand on as it stands.
#[test]
fn vectors_scaled_by_a_scalar() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(
        "kernel void f(global float4 *v, int exponent) { v[0] = ldexp(v[0], exponent); }",
        "f",
    );
    let buffer = setup.buffer_of(&[1.0f32, -2.0, 0.5, 3.0]);
    kernel.set_buffer(0, &buffer).set(1, 3i32);
    setup.run(&kernel, &[1], None);
    assert_eq!(setup.read::<f32>(&buffer, 4), [8.0, -16.0, 4.0, 24.0]);
}

/// Functions that are `inline` as C99 has it have a definition for the calls that the compiler leaves.
#[test]
fn inline_functions_that_are_called() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(
        "__attribute__((noinline)) inline int twice(int x) { return x * 2; }
         kernel void f(global int *v) { v[0] = twice(v[0]) + twice(v[1]); }",
        "f",
    );
    let buffer = setup.buffer_of(&[5, 7]);
    kernel.set_buffer(0, &buffer);
    setup.run(&kernel, &[1], None);
    assert_eq!(setup.read::<i32>(&buffer, 2), [24, 7]);
}

/// Files that were written on Windows begin with a byte order mark.
#[test]
fn sources_with_a_byte_order_mark() {
    let setup = Setup::new();
    let kernel = setup.kernel_of("\u{feff}kernel void f(global int *v) { v[0] += 1; }", "f");
    let buffer = setup.buffer_of(&[41]);
    kernel.set_buffer(0, &buffer);
    setup.run(&kernel, &[1], None);
    assert_eq!(setup.read::<i32>(&buffer, 1), [42]);
}
