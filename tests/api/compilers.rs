//! Compilers that are missing, die, hang, or print what they should not: an error of the build, and the next one works.

use pumice_tests::sys::*;
use pumice_tests::{call, code_name, good_child, job, left_out, Kernel, Program, Scratch, Setup};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

/// After so long a compiler is stopped here.
const SECONDS: &str = "2";
/// A build that may start several compilers must be over after that, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(40);

/// A compiler that does what the file `mode` beside it says: for OpenCL C, or (`object ...`) for code of the processor.
const SCRIPT: &str = r#"#!/bin/sh
case "$*" in
    *-###*) exec @CLANG@ "$@" ;;
    *x86_64*|*aarch64*) stage=object ;;
    *) stage=source ;;
esac
read -r wanted mode <@PLACE@/mode
[ $stage = $wanted ] || exec @CLANG@ "$@"
case $mode in
    silent) ;;
    nonsense) seq 20000 ;;
    spirv) printf '\003\002\043\007\000\004\001\000\000\000\000\000\377\000\000\000\000\000\000\000'; seq 20000 ;;
    elf) printf '\177ELF\002\001\001\000\000\000\000\000\000\000\000\000\001\000\076\000'; seq 20000 ;;
    program) cat /bin/true ;;
    killed) kill -9 $$ ;;
    killed-*) echo >>@PLACE@/kills; [ $(wc -l <@PLACE@/kills) -gt ${mode#killed-} ] || kill -9 $$; exec @CLANG@ "$@" ;;
    refuses) exit 1 ;;
    half) @CLANG@ "$@" >@PLACE@/whole && head -c $(($(wc -c <@PLACE@/whole) / 2)) @PLACE@/whole ;;
    half-killed) @CLANG@ "$@" >@PLACE@/whole; head -c $(($(wc -c <@PLACE@/whole) / 2)) @PLACE@/whole; kill -9 $$ ;;
    refuses-loudly) head -c 40000000 /dev/zero | tr '\0' x >&2; exit 1 ;;
    loud) head -c 40000000 /dev/zero | tr '\0' '\n' >&2; exec @CLANG@ "$@" ;;
    endless) exec tr '\0' x </dev/zero ;;
    endless-messages) while head -c 4000000 /dev/zero | tr '\0' x >&2; do sleep 0.05; done ;;
    hangs) exec sleep 100 ;;
    hangs-silently) exec sleep 100 >&- 2>&- ;;
    *) exec @CLANG@ "$@" ;;
esac
"#;

/// Modes in which a build, or what comes of it, fails.
const FAILING: [&str; 14] = [
    "silent",
    "nonsense",
    "spirv",
    "elf",
    "program",
    "killed",
    "refuses",
    "half",
    "half-killed",
    "refuses-loudly",
    "endless",
    "endless-messages",
    "hangs",
    "hangs-silently",
];

/// Not a test of its own: the child of the others.
#[test]
fn inner() {
    let Some(job) = job() else {
        return;
    };
    let setup = Setup::new();
    if job == "build" {
        assert_eq!(outcome(&setup, &source(1)), Ok(()));
        return;
    }
    match job.strip_prefix("broken ") {
        Some(name) => {
            let error = outcome(&setup, &source(1)).expect_err("no build without a compiler");
            assert!(error.contains(name), "{name} is not named: {error}");
        }
        None => modes(&setup, Path::new(&job)),
    }
}

/// A source that no other build has seen.
fn source(number: usize) -> String {
    format!("kernel void add(global int *p) {{ p[get_global_id(0)] += {number}; }}")
}

/// Builds a source and runs what comes of it. `Err`: which call failed, with which code, and what the log says.
fn outcome(setup: &Setup, source: &str) -> Result<(), String> {
    let program = setup.program(source);
    let code = call!(clBuildProgram(
        program.0,
        1,
        &setup.device,
        null(),
        None,
        null_mut()
    ));
    if code != CL_SUCCESS {
        let log = setup.build_log(&program);
        assert_eq!(code, CL_BUILD_PROGRAM_FAILURE, "{log}");
        assert!(!log.trim().is_empty(), "a failure without a word");
        return Err(format!("clBuildProgram: {log}"));
    }
    let number: i32 = source.split("+= ").nth(1).map_or(0, |rest| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().expect("a number")
    });
    run(setup, &program, number)
}

fn run(setup: &Setup, program: &Program, number: i32) -> Result<(), String> {
    let mut code = 1;
    let kernel = Kernel(call!(clCreateKernel(program.0, c"add".as_ptr(), &mut code)));
    if code != CL_SUCCESS {
        return Err(format!("clCreateKernel: {}", code_name(code)));
    }
    let buffer = setup.buffer_of(&[1i32; 64]);
    kernel.set_buffer(0, &buffer);
    let code = call!(clEnqueueNDRangeKernel(
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
    if code != CL_SUCCESS {
        assert!(
            matches!(code, CL_OUT_OF_RESOURCES | CL_OUT_OF_HOST_MEMORY),
            "{}",
            code_name(code)
        );
        return Err(format!("clEnqueueNDRangeKernel: {}", code_name(code)));
    }
    assert_eq!(setup.read::<i32>(&buffer, 64), vec![1 + number; 64]);
    Ok(())
}

/// A compiler that something kills is run again. What it makes after a second time, with fewer passes, is not remembered.
fn kills(setup: &Setup, place: &Path) {
    for (number, times) in [(1001, 1), (1002, 2)] {
        let build = |mode: &str| {
            std::fs::write(place.join("mode"), format!("{mode}\n")).expect("a file");
            let _ = std::fs::remove_file(place.join("kills"));
            let program = setup.build(&source(number));
            run(setup, &program, number as i32).expect("its result");
            setup.build_log(&program).contains("gave up")
        };
        assert_eq!(build(&format!("source killed-{times}")), times > 1);
        assert!(!build("source good"), "{times}");
    }
}

/// All that a compiler can do wrong, each with a source of its own, which builds afterwards.
fn modes(setup: &Setup, place: &Path) {
    let set = |mode: &str| std::fs::write(place.join("mode"), format!("{mode}\n")).expect("a file");
    let mut number = 1;
    let mut good = |mode: &str| {
        number += 1;
        set(mode);
        outcome(setup, &source(number)).unwrap_or_else(|error| panic!("{mode}: {error}"));
    };
    good("source good");
    good("source loud");
    kills(setup, place);
    for stage in ["source", "object"] {
        if stage == "object" && !is_processor(setup) {
            continue;
        }
        for mode in FAILING {
            number += 1;
            set(&format!("{stage} {mode}"));
            let began = Instant::now();
            let error = outcome(setup, &source(number));
            assert!(error.is_err(), "{stage} {mode} goes unnoticed");
            assert!(
                began.elapsed() < PATIENCE,
                "{stage} {mode}: {:?}",
                began.elapsed()
            );
            // The same source, of which nothing false is remembered.
            set("source good");
            let again = outcome(setup, &source(number));
            again.unwrap_or_else(|error| panic!("after {stage} {mode}: {error}"));
        }
    }
}

/// The device is the processor itself, without Vulkan.
pub fn is_processor(setup: &Setup) -> bool {
    let kinds = pumice_tests::info_value!(
        cl_device_exec_capabilities,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_EXECUTION_CAPABILITIES
    );
    kinds & CL_EXEC_NATIVE_KERNEL != 0
}

fn scratch(name: &str) -> Scratch {
    Scratch::new(name).expect("a directory")
}

fn write(path: &Path, text: &str, mode: u32) {
    std::fs::write(path, text).expect("a file");
    let mode = PermissionsExt::from_mode(mode);
    std::fs::set_permissions(path, mode).expect("its mode");
}

/// The newest clang with a SPIR-V target of its own.
fn clang() -> Option<PathBuf> {
    let names = (20..=40)
        .rev()
        .map(|version| PathBuf::from(format!("/usr/bin/clang-{version}")));
    names.into_iter().find(|path| path.is_file())
}

#[test]
fn compilers_that_fail() {
    let Some(clang) = clang().filter(|_| std::env::var_os("PUMICE_CLANG").is_none()) else {
        return left_out("no clang with a SPIR-V target of its own, or another is asked for");
    };
    let place = scratch("compilers");
    let script = place.join("clang-for-tests");
    let text = SCRIPT
        .replace("@CLANG@", &clang.display().to_string())
        .replace("@PLACE@", &place.display().to_string());
    write(&script, &text, 0o755);
    let variables = [
        ("PUMICE_CLANG", script.as_path()),
        ("PUMICE_CLANG_SECONDS", Path::new(SECONDS)),
        ("PUMICE_CACHE_DIR", &place.join("cache")),
    ];
    let job = place.display().to_string();
    good_child("compilers::inner", &job, &variables);
}

#[test]
fn compilers_that_are_none() {
    let place = scratch("no-compilers");
    let path = |name: &str| place.join(name);
    write(&path("not-executable"), "#!/bin/sh\n", 0o644);
    write(&path("text"), "no program\n", 0o755);
    write(&path("no-interpreter"), "#!/no/such/program\n", 0o755);
    write(
        &path("elf"),
        "\x7fELF\x02\x01\x01 and nothing more\n",
        0o755,
    );
    std::fs::create_dir(path("directory")).expect("a directory");
    std::os::unix::fs::symlink(path("link"), path("link")).expect("a link");
    for name in [
        "missing",
        "not-executable",
        "text",
        "no-interpreter",
        "elf",
        "directory",
        "link",
    ] {
        let variables = [
            ("PUMICE_CLANG", path(name)),
            ("PUMICE_CACHE_DIR", path("cache")),
        ];
        good_child("compilers::inner", &format!("broken {name}"), &variables);
    }
}

/// Where all code is cached no compiler is started, not even to be asked what it makes of the machine.
#[test]
fn cached_code_starts_no_compiler() {
    let Some(clang) = clang().filter(|_| std::env::var_os("PUMICE_CLANG").is_none()) else {
        return left_out("no clang with a SPIR-V target of its own, or another is asked for");
    };
    let place = scratch("started-compilers");
    let (script, starts) = (place.join("clang-for-tests"), place.join("starts"));
    let text = format!(
        "#!/bin/sh\necho start >>{}\nexec {} \"$@\"\n",
        starts.display(),
        clang.display()
    );
    write(&script, &text, 0o755);
    let variables = [
        ("PUMICE_CLANG", script.as_path()),
        ("PUMICE_CACHE_DIR", &place.join("cache")),
    ];
    let started = || {
        good_child("compilers::inner", "build", &variables);
        std::fs::read_to_string(&starts).map_or(0, |text| text.lines().count())
    };
    let first = started();
    assert!(first > 0, "the compiler is started for what is new");
    assert_eq!(started(), first);
}
