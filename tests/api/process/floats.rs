//! The floating-point mode of the application reaches no result and no cache.

use super::*;

extern "C" {
    fn fesetround(round: c_int) -> c_int;
    fn feenableexcept(traps: c_int) -> c_int;
    fn fedisableexcept(traps: c_int) -> c_int;
    fn feclearexcept(raised: c_int) -> c_int;
    fn fetestexcept(raised: c_int) -> c_int;
}

const UPWARD: c_int = 0x800;
const TOWARD_ZERO: c_int = 0xc00;
const ALL: c_int = 0x3f;

const SINGLE: &str = r#"
        kernel void single(global float *o, float x, float y, float t) {
            o[0] = 1.0f / 3.0f; o[1] = x / y; o[2] = x * 1e-38f * 0.01f; o[3] = 1e-20f * 1e-20f; o[4] = sqrt(2.0f);
            o[5] = convert_float(16777217); o[6] = (float)0.1; o[7] = x + 1e-40f; o[8] = 1e-40f; o[9] = sin(t);
            o[10] = exp(t); o[11] = (1.0f + x * 0.0f) / 3.0f; o[12] = x * 1.1f * 1.3f; o[13] = convert_float_rtp(16777217);
            printf("%.1f %.3e\n", x * 0.25f, x / 3.0f);
        }
        kernel void wide(global float *o) { o[get_global_id(0) % 1024] = 1.0f / (1.0f + get_local_id(0)); }
    "#;
const DOUBLE: &str = "kernel void twice(global double *o, double x) {
    o[0] = x / 3.0; o[1] = 1.0 / 3.0; o[2] = 1e-308 * 1e-10; o[3] = x * 1e-310;
}";

fn control() -> u32 {
    let mut word = 0u32;
    // SAFETY: writes the given word alone.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &mut word, options(nostack)) };
    word
}

fn set(mode: &str) {
    // SAFETY: the mode of this thread, in which nothing but the library computes.
    unsafe {
        match mode {
            "as usual" => {}
            "upward" => assert_eq!(fesetround(UPWARD), 0),
            "toward zero" => assert_eq!(fesetround(TOWARD_ZERO), 0),
            "without subnormal numbers" => {
                let word = control() | 0x8040;
                std::arch::asm!("ldmxcsr [{}]", in(reg) &word, options(nostack, readonly));
            }
            "with traps" => assert_ne!(feenableexcept(ALL), -1),
            _ => panic!("{mode}"),
        }
    }
}

/// Fills an image with a color. Its first texel.
fn filled(setup: &Setup, channels: cl_channel_type, color: [f32; 4]) -> Vec<u8> {
    let format = cl_image_format {
        image_channel_order: CL_RGBA,
        image_channel_data_type: channels,
    };
    // SAFETY: zeros are a description.
    let mut description: cl_image_desc = unsafe { std::mem::zeroed() };
    description.image_type = CL_MEM_OBJECT_IMAGE2D;
    (description.image_width, description.image_height) = (16, 16);
    let image = Buffer(pumice_tests::create!(clCreateImage(
        setup.context.0,
        CL_MEM_READ_WRITE,
        &format,
        &description,
        null_mut()
    )));
    let (origin, region) = ([0usize; 3], [16usize, 16, 1]);
    let (queue, color) = (setup.queue.0, color.as_ptr().cast());
    let (at, size) = (origin.as_ptr(), region.as_ptr());
    ok!(clEnqueueFillImage(
        queue,
        image.0,
        color,
        at,
        size,
        0,
        null(),
        null_mut()
    ));
    let mut texels = vec![0u8; 16 * 16 * 16];
    let place = texels.as_mut_ptr().cast();
    ok!(clEnqueueReadImage(
        queue,
        image.0,
        CL_TRUE,
        at,
        size,
        0,
        0,
        place,
        0,
        null(),
        null_mut()
    ));
    texels.truncate(8);
    texels
}

/// Prints what the device computes for a process in that mode.
pub fn compute(mode: &str) {
    set(mode);
    let before = control();
    let setup = Setup::new();
    let program = setup.build(SINGLE);
    let single = setup.kernel(&program, "single");
    let buffer = setup.buffer_of(&[0u8; 4096]);
    single.set_buffer(0, &buffer);
    // As bits: nothing here may compute.
    let [one, three, some] = [0x3f80_0000u32, 0x4040_0000, 0x3f33_3333];
    single.set(1, one).set(2, three).set(3, some);
    setup.run(&single, &[1], None);
    let floats: Vec<u32> = setup.read(&buffer, 14);
    let mut doubles: Vec<u64> = Vec::new();
    if setup.has_doubles() {
        let twice = setup.kernel_of(DOUBLE, "twice");
        twice
            .set_buffer(0, &buffer)
            .set(1, 0x3ff0_0000_0000_0000u64);
        setup.run(&twice, &[1], None);
        doubles = setup.read(&buffer, 4);
    }
    let wide = setup.kernel(&program, "wide");
    wide.set_buffer(0, &buffer);
    // Enough for several threads; the interpreter has one.
    let checked = std::env::var_os("PUMICE_CHECK").is_some_and(|checks| !checks.is_empty());
    for _ in 0..5 {
        setup.enqueue(&wide, &[if checked { 1 << 11 } else { 1 << 18 }], None);
    }
    ok!(clFinish(setup.queue.0));
    let many: Vec<u32> = setup.read(&buffer, 1024);
    let bytes = filled(&setup, CL_UNORM_INT8, [0.3001, 0.5, 0.7019, 1.0]);
    let halves = filled(&setup, CL_HALF_FLOAT, [1.0 / 3.0, 1e-7, 65519.0, 0.1]);
    let after = control();
    // SAFETY: the mode of this thread.
    unsafe {
        fedisableexcept(ALL);
        fesetround(0);
    }
    // But for the exceptions that were raised, which another test looks at.
    assert_eq!(before & !ALL as u32, after & !ALL as u32);
    let many = many.iter().fold(0u32, |all, &one| all.rotate_left(5) ^ one);
    println!("computed {floats:x?} {doubles:x?} {many:x} {bytes:?} {halves:?}");
}

/// Returns the lines that a child prints of its results.
fn computed(mode: &str, cache: &Path, checks: &str) -> Vec<String> {
    let job = format!("computes {mode}");
    let variables = [
        ("PUMICE_CACHE_DIR", cache.to_path_buf()),
        ("PUMICE_CHECK", checks.into()),
    ];
    let output = good_child("process::inner", &job, &variables);
    let text = String::from_utf8(output.stdout).expect("text");
    // What kernels print, and the line of their results.
    let wanted = |line: &&str| line.starts_with("computed ") || line.contains("e-01");
    let lines: Vec<_> = text.lines().filter(wanted).map(str::to_owned).collect();
    assert_eq!(lines.len(), 2, "{text}");
    lines
}

/// Whatever mode the application computes in: what its kernels compute is the same, and so is what other processes find in
/// the cache.
#[test]
fn modes_reach_no_result() {
    let is_processor = is_processor(&Setup::new());
    for checks in ["", "memory"] {
        if !checks.is_empty() && !is_processor {
            continue;
        }
        let cache = |name: &str| Scratch::new(&format!("float-{name}")).expect("a directory");
        let usual = computed("as usual", &cache("usual"), checks);
        for mode in [
            "upward",
            "toward zero",
            "without subnormal numbers",
            "with traps",
        ] {
            let cache = cache("hostile");
            assert_eq!(computed(mode, &cache, checks), usual, "{mode}, {checks}");
            let cached = computed("as usual", &cache, checks);
            assert_eq!(cached, usual, "after {mode}, {checks}");
            // With what the cache has, other parts of the library compute.
            if mode == "with traps" {
                assert_eq!(computed(mode, &cache, checks), usual, "{mode} again");
            }
        }
    }
}

/// The library leaves the flags of floating-point exceptions as they were.
#[test]
fn exceptions_are_the_applications() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(
        "kernel void a(global float *o, float x) { o[0] = x / 3.0f; o[1] = x / (o[2] - o[2]); }",
        "a",
    );
    let buffer = setup.buffer_of(&[0f32; 4]);
    kernel.set_buffer(0, &buffer).set(1, 1f32);
    // SAFETY: the mode of this thread.
    unsafe { feclearexcept(ALL) };
    setup.run(&kernel, &[1], None);
    // SAFETY: as above.
    assert_eq!(unsafe { fetestexcept(ALL) }, 0);
}
