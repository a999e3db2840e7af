//! Tests of what must not end the process: damaged input, damaged caches, exits at any time.

#[cfg(unix)]
use crate::forks::{fork, found_by};
use crate::programs::separate::binary_of;
use pumice_tests::sys::*;
use pumice_tests::{
    call, code_name, create, good_child, job, ok, Buffer, Kernel, Program, Queue, Scratch, Setup,
};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const ADD: &str = "kernel void add(global int *p, int n) { p[get_global_id(0)] += n; }";

/// A generator of numbers (xorshift) that each run repeats.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit
    }
}

/// Runs [`inner`] in a process of its own.
fn good(mode: &str, variables: &[(&str, &Path)]) {
    good_child("robustness::inner", mode, variables);
}

fn scratch(name: &str) -> Scratch {
    Scratch::new(name).expect("a directory")
}

fn check_add(setup: &Setup, program: &Program) {
    let kernel = setup.kernel(program, "add");
    let buffer = setup.buffer_of(&[1i32; 16]);
    kernel.set_buffer(0, &buffer).set(1, 5i32);
    setup.run(&kernel, &[16], None);
    assert_eq!(setup.read::<i32>(&buffer, 16), [6; 16]);
}

fn load(setup: &Setup, binary: &[u8]) -> Result<Program, cl_int> {
    let (length, mut place) = (binary.len(), binary.as_ptr());
    let (mut status, mut code) = (77, 77);
    let program = call!(clCreateProgramWithBinary(
        setup.context.0,
        1,
        &setup.device,
        &length,
        &mut place,
        &mut status,
        &mut code
    ));
    if code == CL_SUCCESS {
        Ok(Program(program))
    } else {
        assert!(program.is_null());
        Err(code)
    }
}

/// Not a test of its own: the child of the others.
#[test]
fn inner() {
    let Some(mode) = job() else {
        return;
    };
    let file = std::env::var_os("PUMICE_TESTS_FILE").map(PathBuf::from);
    if mode == "exit with releases" {
        // SAFETY: a plain function. Registered before the drivers are loaded, it runs after they have been taken apart.
        unsafe { libc::atexit(release_the_late) };
    }
    let setup = Setup::new();
    match mode.as_str() {
        "build" => check_add(&setup, &setup.build(ADD)),
        "write binary" => {
            let file = file.expect("a file");
            std::fs::write(file, binary_of(&setup.build(ADD))).expect("the file");
        }
        "read binary" => {
            let bytes = std::fs::read(file.expect("a file")).expect("the file");
            let program = load(&setup, &bytes).map_err(code_name).expect("it loads");
            program.build();
            check_add(&setup, &program);
            // Work-groups of one work-item, and such as fill no vector.
            for local in [1, 5] {
                let kernel = setup.kernel(&program, "add");
                let buffer = setup.buffer_of(&[1i32; 15]);
                kernel.set_buffer(0, &buffer).set(1, 5i32);
                setup.run(&kernel, &[15], Some(&[local]));
                assert_eq!(setup.read::<i32>(&buffer, 15), [6; 15], "{local}");
            }
        }
        "run module" => {
            let module = std::fs::read(file.expect("a file")).expect("the file");
            let program = Program(create!(clCreateProgramWithIL(
                setup.context.0,
                module.as_ptr().cast(),
                module.len()
            )));
            program.build();
            check_add(&setup, &program);
        }
        _ => leave(&mode, &setup),
    }
}

/// Ends the process in the middle of things.
fn leave(mode: &str, setup: &Setup) {
    let source = "kernel void busy(global uint *p) {
        uint sum = p[0];
        for (int i = 0; i < 2000; i++) sum = sum * 3 + p[i & 1023];
        p[get_global_id(0)] = sum;
    }";
    let program = setup.build(source);
    let kernel = setup.kernel(&program, "busy");
    let buffer = setup.buffer(1 << 20);
    let mut data = vec![0u8; 1 << 20];
    kernel.set_buffer(0, &buffer);
    // Once to its end: see `exits_at_any_time`.
    setup.run(&kernel, &[64], None);
    setup.enqueue(&kernel, &[1 << 14], None);
    ok!(clEnqueueReadBuffer(
        setup.queue.0,
        buffer.0,
        CL_FALSE,
        0,
        data.len(),
        data.as_mut_ptr().cast(),
        0,
        null(),
        null_mut()
    ));
    ok!(clFlush(setup.queue.0));
    match mode {
        "exit while kernels run" => {
            std::thread::spawn(|| {
                std::thread::sleep(Duration::from_millis(10));
                std::process::exit(0);
            });
            keep_launching(setup, &kernel)
        }
        "exit before new kernels have run" => {
            // The driver compiles them when they run.
            for number in 0..6 {
                let source = format!(
                    "kernel void fresh(global uint *p) {{
                        for (uint i = 0; i < 100; i++) p[get_global_id(0)] += p[i * {number}] * i;
                    }}"
                );
                let fresh = setup.kernel(&setup.build(&source), "fresh");
                fresh.set_buffer(0, &buffer);
                setup.enqueue(&fresh, &[64], None);
                std::mem::forget(fresh);
            }
            ok!(clFlush(setup.queue.0));
            std::process::exit(0);
        }
        "exit from a callback" => {
            extern "C" fn leave(_: cl_event, _: cl_int, _: *mut std::ffi::c_void) {
                std::process::exit(0);
            }
            let mut event = null_mut();
            ok!(clEnqueueNDRangeKernel(
                setup.queue.0,
                kernel.0,
                1,
                null(),
                &64,
                null(),
                0,
                null(),
                &mut event
            ));
            ok!(clSetEventCallback(
                event,
                CL_COMPLETE as cl_int,
                Some(leave),
                null_mut()
            ));
            keep_launching(setup, &kernel)
        }
        "exit with releases" => {
            setup.enqueue(&kernel, &[1 << 14], None);
            ok!(clFlush(setup.queue.0));
            let mut late = LATE.lock().expect("the only user");
            ok!(clRetainCommandQueue(setup.queue.0));
            *late = Some((Queue(setup.queue.0), buffer, kernel, program));
            drop(late);
            std::process::exit(0);
        }
        "exit during a wait" => {
            ok!(clFinish(setup.queue.0));
            let user = create!(clCreateUserEvent(setup.context.0));
            std::thread::spawn(|| {
                std::thread::sleep(Duration::from_millis(10));
                std::process::exit(0);
            });
            call!(clWaitForEvents(1, &user));
            unreachable!("nobody sets the event");
        }
        "exit during builds" => {
            ok!(clFinish(setup.queue.0));
            std::thread::spawn(|| {
                std::thread::sleep(Duration::from_millis(60));
                std::process::exit(0);
            });
            for number in 0u64.. {
                let unique = std::process::id();
                let source =
                    format!("kernel void f(global ulong *p) {{ p[0] = {number}{unique}ul; }}");
                drop(setup.try_build(&source, ""));
            }
        }
        #[cfg(unix)]
        "fork" => {
            // SAFETY: the child only exits, running what was registered for that.
            let pid = unsafe { libc::fork() };
            if pid == 0 {
                std::process::exit(0);
            }
            let mut status = 0;
            // SAFETY: the child's id and a place for its status.
            unsafe { libc::waitpid(pid, &mut status, 0) };
            assert_eq!(status, 0, "the forked child");
            ok!(clFinish(setup.queue.0));
        }
        #[cfg(unix)]
        "builds around a fork" => {
            ok!(clFinish(setup.queue.0));
            let build = |first: u32| {
                for number in first..first + 4 {
                    let unique = std::process::id();
                    let source =
                        format!("kernel void f(global ulong *p) {{ p[{number}] = {unique}ul; }}");
                    drop(setup.build(&source));
                }
            };
            build(0);
            // An application that waits for its children must find none of ours.
            let end = Instant::now() + Duration::from_secs(10);
            // SAFETY: a status is not asked for.
            while unsafe { libc::waitpid(-1, null_mut(), libc::WNOHANG) } != -1 {
                assert!(Instant::now() < end, "children are left");
                std::thread::sleep(Duration::from_millis(1));
            }
            // The child keeps what it inherited of the compiler while the parent goes on.
            let pid = fork(|| {
                std::thread::sleep(Duration::from_millis(300));
                0
            });
            build(10);
            assert_eq!(found_by(pid), 0, "the forked child");
            build(20);
        }
        "builds in several directories" => {
            let place = std::env::var_os("PUMICE_TESTS_FILE").map(PathBuf::from);
            let place = place.expect("a directory");
            let buffer = setup.buffer_of(&[0i32]);
            for number in 0..9 {
                let here = place.join(format!("{}", number / 3));
                std::fs::create_dir_all(&here).expect("a directory");
                let text = format!("constant int value = {number};\n");
                std::fs::write(here.join("value.h"), text).expect("a header");
                std::env::set_current_dir(&here).expect("to be there");
                let source = "#include \"value.h\"\nkernel void f(global int *p) { *p = value; }";
                let program = setup.try_build(source, "-I .").expect("a program");
                let kernel = setup.kernel(&program, "f");
                kernel.set_buffer(0, &buffer);
                setup.run(&kernel, &[1], None);
                assert_eq!(setup.read::<i32>(&buffer, 1), [number]);
            }
        }
        other => panic!("mode {other}"),
    }
}

type Late = (Queue, Buffer, Kernel, Program);
static LATE: Mutex<Option<Late>> = Mutex::new(None);

/// As the destructors of an application's global objects.
extern "C" fn release_the_late() {
    let late = LATE.lock().ok().and_then(|mut late| late.take());
    if let Some((queue, ..)) = &late {
        call!(clFinish(queue.0));
    }
    drop(late);
}

/// Launches until the process has ended; calls fail once it is ending.
fn keep_launching(setup: &Setup, kernel: &Kernel) -> ! {
    loop {
        call!(clEnqueueNDRangeKernel(
            setup.queue.0,
            kernel.0,
            1,
            null(),
            &64,
            null(),
            0,
            null(),
            null_mut()
        ));
        call!(clFlush(setup.queue.0));
    }
}

/// The process may end while kernels run, threads wait or build, and in a forked child. A software driver's threads go on
/// while `exit` takes LLVM apart: the driver has to see to it that they have nothing to do.
#[test]
fn exits_at_any_time() {
    for mode in [
        "exit while kernels run",
        "exit before new kernels have run",
        "exit from a callback",
        "exit with releases",
        "exit during a wait",
        "exit during builds",
        #[cfg(unix)]
        "fork",
    ] {
        good(mode, &[]);
    }
}

/// Compilers that wait for work are not in the way of the application's own children.
#[cfg(unix)]
#[test]
fn compilers_and_children() {
    let place = scratch("children");
    for server in ["1", "0"] {
        good(
            "builds around a fork",
            &[
                ("PUMICE_CACHE_DIR", &place),
                ("PUMICE_CLANG_SERVER", Path::new(server)),
            ],
        );
    }
}

/// Relative names of headers are those of the directory that the application is in at the time.
#[test]
fn headers_of_the_current_directory() {
    let place = scratch("directories");
    good(
        "builds in several directories",
        &[("PUMICE_TESTS_FILE", &place), ("PUMICE_CACHE_DIR", &place)],
    );
}

/// A binary loads in another process, where nothing of it is in the cache.
#[test]
fn binaries_travel_between_processes() {
    let place = scratch("binary");
    let file = place.join("program");
    let (first, second) = (place.join("first"), place.join("second"));
    let name = "PUMICE_CACHE_DIR";
    good(
        "write binary",
        &[("PUMICE_TESTS_FILE", &file), (name, &first)],
    );
    good(
        "read binary",
        &[("PUMICE_TESTS_FILE", &file), (name, &second)],
    );
    // Nothing of it needs a compiler.
    let third = place.join("third");
    good(
        "read binary",
        &[
            ("PUMICE_TESTS_FILE", &file),
            (name, &third),
            ("PUMICE_CLANG", Path::new("/no/such/compiler")),
        ],
    );
}

/// Checks that cached modules run without the compiler.
#[test]
fn cached_code_needs_no_compiler() {
    let place = scratch("cached-code");
    let (file, cache) = (place.join("module"), place.join("cache"));
    let words = modules(&Setup::new()).swap_remove(0);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    std::fs::write(&file, bytes).expect("the file");
    let (file, cache) = (
        ("PUMICE_TESTS_FILE", file.as_path()),
        ("PUMICE_CACHE_DIR", cache.as_path()),
    );
    good("run module", &[file, cache]);
    let gone = ("PUMICE_CLANG", Path::new("/no/such/compiler"));
    good("run module", &[file, cache, gone]);
}

/// SPIR-V that the compiler makes of kernels with all kinds of things in them, out of their binaries.
pub fn modules(setup: &Setup) -> Vec<Vec<u32>> {
    let sources = [
        ADD,
        "struct s { int a; float4 b[3]; };
         kernel void f(global struct s *p, local float *tmp, constant int *c) {
            struct s mine = p[get_global_id(0)];
            for (int i = 0; i < c[0]; i++) {
                switch (c[i]) { case 1: mine.a += 3; break; case 7: mine.b[1].xy *= 2.0f; continue; default: mine.a--; }
                tmp[get_local_id(0)] = mine.b[i & 3].x;
                barrier(CLK_LOCAL_MEM_FENCE);
                mine.b[2] += tmp[0];
            }
            p[get_global_id(0)] = mine;
         }",
        "constant int table[5] = { 1, 2, 3, 5, 8 };
         int twice(int n) { return n > 0 ? table[n % 5] + twice(n - 5) * 0 : sin((float)n); }
         kernel void g(global int *p, global long *q, uchar16 v) {
            atomic_add(p, 3);
            q[get_global_id(1)] = convert_long_sat(exp2((float)p[1])) + v.s3;
            p[2] = table[p[3] & 3];
            if (p[4]) printf(\"%d %s\\n\", p[5], \"text\");
         }",
    ];
    let mut found = Vec::new();
    for source in sources {
        let Ok(program) = setup.try_build(source, "-cl-std=CL3.0") else {
            continue;
        };
        let binary = binary_of(&program);
        // The module stands in the binary after its length.
        let magic = 0x0723_0203u32.to_le_bytes();
        let Some(at) = binary.windows(4).position(|bytes| bytes == magic) else {
            continue;
        };
        let length = binary[at - 8..at].try_into().map(u64::from_le_bytes);
        let length = length.expect("eight bytes") as usize;
        let words = binary[at..at + length].chunks_exact(4);
        found.push(
            words
                .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
                .collect(),
        );
    }
    found
}

/// Modules with words changed, moved, left out and doubled are refused or built, and nothing worse; within a time.
/// `PUMICE_FUZZ=N`: N times as many.
#[test]
fn mutated_modules() {
    let setup = Setup::new();
    let mut modules = modules(&setup);
    assert!(modules.len() >= 2, "some kernels compile");
    modules.extend(super::il::samples());
    let rounds = std::env::var("PUMICE_FUZZ").map_or(1, |n| n.parse().expect("a number"));
    let seed = std::env::var("PUMICE_FUZZ_SEED").map_or(7, |n| n.parse().expect("a number"));
    let mut numbers = Numbers(0x1234_5678_9abc_def1 ^ seed);
    let (mut refused, mut failed, mut built) = (0, 0, 0);
    for round in 0..rounds * 600 {
        let mut words = modules[round % modules.len()].clone();
        for _ in 0..1 + numbers.below(3) {
            let at = 5 + numbers.below(words.len() - 5);
            match numbers.below(7) {
                0 => words[at] ^= 1 << numbers.below(32),
                1 => {
                    words[at] = words[at]
                        .wrapping_add(numbers.below(5) as u32)
                        .wrapping_sub(2)
                }
                2 => words[at] = words[5 + numbers.below(words.len() - 5)],
                3 => words[at] = [0, 1, u32::MAX, 0x8000_0000][numbers.below(4)],
                4 => {
                    // A whole instruction elsewhere, if one begins here.
                    let length = (words[at] >> 16) as usize;
                    if length > 0 && at + length <= words.len() {
                        let taken: Vec<u32> = words.drain(at..at + length).collect();
                        let to = 5 + numbers.below(words.len() - 5);
                        words.splice(to..to, taken);
                    }
                }
                5 => {
                    let length = (words[at] >> 16) as usize;
                    if length > 0 && length < 12 && at + length <= words.len() {
                        words.drain(at..at + length);
                    }
                }
                _ => {
                    let other = 5 + numbers.below(words.len() - 5);
                    words.swap(at, other);
                }
            }
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        if rounds > 1 {
            let file = std::env::temp_dir().join("pumice-fuzz-last.spv");
            std::fs::write(file, &bytes).expect("a file");
        }
        let mut code = 77;
        let program = call!(clCreateProgramWithIL(
            setup.context.0,
            bytes.as_ptr().cast(),
            bytes.len(),
            &mut code
        ));
        if program.is_null() {
            assert_eq!(code, CL_INVALID_VALUE, "round {round}");
            refused += 1;
            continue;
        }
        let program = Program(program);
        let began = Instant::now();
        let code = call!(clBuildProgram(
            program.0,
            1,
            &setup.device,
            null(),
            None,
            null_mut()
        ));
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "round {round} takes too long"
        );
        let log = setup.build_log(&program);
        assert!(!log.contains("defect"), "round {round}: {log}");
        if code == CL_SUCCESS {
            built += 1;
        } else {
            assert_eq!(code, CL_BUILD_PROGRAM_FAILURE, "round {round}");
            assert!(!log.is_empty(), "round {round} fails without a word");
            failed += 1;
        }
    }
    println!("{refused} refused, {failed} failed to build, {built} built");
    assert!(refused > 0 && built > 0);
}

/// Binaries with bytes changed, cut or doubled are refused.
#[test]
fn mutated_binaries() {
    let setup = Setup::new();
    let binary = binary_of(&setup.build(ADD));
    let mut numbers = Numbers(99);
    for round in 0..400 {
        let mut bytes = binary.clone();
        let at = numbers.below(bytes.len());
        match numbers.below(4) {
            0 => bytes[at] = bytes[at].wrapping_add(1 + numbers.below(255) as u8),
            1 => bytes.truncate(at),
            2 => bytes.extend_from_slice(&binary[at..]),
            _ => {
                bytes.remove(at);
            }
        }
        if bytes == binary {
            continue;
        }
        let expected = if bytes.is_empty() {
            CL_INVALID_VALUE
        } else {
            CL_INVALID_BINARY
        };
        assert_eq!(load(&setup, &bytes).err(), Some(expected), "round {round}");
    }
}
