//! Tests of the surroundings of a build: headers that appear, change and disappear, the directory
//! for temporary files, long options, many builds at once. In processes of their own: this test
//! executable again.

use pumice_tests::process::children;
use pumice_tests::{good_child, job, Program, Scratch, Setup};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const PLACE: &str = "PUMICE_TESTS_PLACE";

fn child(mode: &str, variables: &[(&str, &str)]) {
    let place = Scratch::new(&format!("around-{mode}")).expect("a directory");
    let cache = place.join("cache");
    let mut all: Vec<(&str, &Path)> = vec![(PLACE, &place), ("PUMICE_CACHE_DIR", &cache)];
    all.extend(
        variables
            .iter()
            .map(|(name, value)| (*name, Path::new(*value))),
    );
    good_child("surroundings::inner", mode, &all);
}

/// Not a test of its own: the child of the others.
#[test]
fn inner() {
    let Some(mode) = job() else {
        return;
    };
    let place = PathBuf::from(std::env::var_os(PLACE).expect("a directory"));
    let setup = Setup::new();
    match mode.as_str() {
        "headers" => headers_come_and_go(&setup, &place),
        "devices" => {
            let source = "#include \"/dev/zero\"\nkernel void f(global int *p) { *p = 5; }";
            for _ in 0..2 {
                assert_eq!(value(&setup, &setup.build(source)), 5);
            }
        }
        "fifo" | "script" => {
            let fifo = place.join("value.h");
            let made = std::process::Command::new("mkfifo").arg(&fifo).status();
            assert!(made.is_ok_and(|status| status.success()));
            let options = format!("-I {}", place.display());
            let source = |number: i32| {
                format!("#include \"value.h\"\nkernel void f(global int *p) {{ *p = {number}; }}")
            };
            // By a process of its own, then by a server.
            for number in 0..3 {
                let begun = Instant::now();
                let log = match setup.try_build(&source(number), &options) {
                    Ok(_) => panic!("a FIFO was read"),
                    Err(log) => log,
                };
                assert!(log.contains("value.h"), "{log}");
                assert!(
                    begun.elapsed() < Duration::from_secs(60),
                    "it was waited for"
                );
            }
            // The same name, as a file that is in the cache, and again as a FIFO.
            std::fs::remove_file(&fifo).expect("the FIFO");
            std::fs::write(&fifo, "// nothing\n").expect("a header");
            let program = setup.try_build(&source(7), &options).expect("a program");
            assert_eq!(value(&setup, &program), 7);
            std::fs::remove_file(&fifo).expect("the header");
            let made = std::process::Command::new("mkfifo").arg(&fifo).status();
            assert!(made.is_ok_and(|status| status.success()));
            assert!(setup.try_build(&source(7), &options).is_err());
        }
        "options" => {
            let long = "x".repeat(400 << 10);
            let source = "#define QUOTED(x) #x\n#define TEXT(x) QUOTED(x)\n\
                 kernel void f(global int *p) { *p = sizeof(TEXT(LONG)) + sizeof(SHORT) + NUMBER; }";
            // Three times: by a process of its own, by a server, out of the cache.
            for number in [1, 2, 2] {
                let options = format!("-DLONG={long} -DNUMBER={number} -DSHORT=\\\"@a\\\"");
                let program = setup.try_build(source, &options).expect("a program");
                assert_eq!(value(&setup, &program), (400 << 10) + 1 + 3 + number);
            }
        }
        "temporary" => {
            std::env::set_var("TMPDIR", "/nonexistent/place");
            let source =
                "// include\n#include \"value.h\"\nkernel void f(global int *p) { *p = VALUE; }";
            std::fs::write(place.join("value.h"), "#define VALUE 6\n").expect("a header");
            let options = format!("-I {}", place.display());
            let program = setup.try_build(source, &options).expect("a program");
            assert_eq!(value(&setup, &program), 6);
        }
        "many" => many_builds(&setup),
        "time" => the_time_is_that_of_the_build(&setup, &place),
        other => panic!("mode {other}"),
    }
}

fn value(setup: &Setup, program: &Program) -> i32 {
    let kernel = setup.kernel(program, "f");
    let buffer = setup.buffer_of(&[-1i32]);
    kernel.set_buffer(0, &buffer);
    setup.run(&kernel, &[1], None);
    setup.read::<i32>(&buffer, 1)[0]
}

fn headers_come_and_go(setup: &Setup, place: &Path) {
    for (number, (before, after)) in [
        ("#include \"value.h\"", "#define DEFINED VALUE"),
        ("#import <value.h>", "#define DEFINED VALUE"),
        ("#inc\\\nlude \"value.h\"", "#define DEFINED VALUE"),
        (
            "constant char text[] = {",
            "#embed \"DIRECTORY/value.h\"\n};\n#define DEFINED text[14] - '0'",
        ),
        (
            "#if __has_include(\"first.h\")\n#define DEFINED 3\n#else",
            "#include \"value.h\"\n#define DEFINED VALUE\n#endif",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let place = place.join(number.to_string());
        let (first, second) = (place.join("first"), place.join("second"));
        std::fs::create_dir_all(&first).expect("a directory");
        std::fs::create_dir_all(&second).expect("a directory");
        let source = format!("{before}\n{after}\nkernel void f(global int *p) {{ *p = DEFINED; }}");
        let source = source.replace("DIRECTORY", &second.to_string_lossy());
        let options = format!("-I {} -I {}", first.display(), second.display());
        let built = || {
            // Files that were changed a moment ago keep nothing out of the cache.
            std::thread::sleep(Duration::from_millis(40));
            setup.try_build(&source, &options)
        };
        let write = |dir: &Path, name: &str, value: i32| {
            std::fs::write(dir.join(name), format!("#define VALUE {value}\n")).expect("a header");
        };
        write(&second, "value.h", 1);
        match built() {
            Ok(program) => assert_eq!(value(setup, &program), 1, "{source}"),
            // Older compilers do not know it.
            Err(_) if source.contains("#embed") => continue,
            Err(log) => panic!("{source}: {log}"),
        }
        let is = |wanted: i32| {
            let program = built().unwrap_or_else(|log| panic!("{source}: {log}"));
            assert_eq!(value(setup, &program), wanted, "{source}");
        };
        is(1);
        write(&second, "value.h", 2);
        is(2);
        is(2);
        if source.contains("#embed") {
            continue;
        }
        // What comes is found earlier.
        let earlier = if source.contains("__has_include") {
            "first.h"
        } else {
            "value.h"
        };
        write(&first, earlier, 3);
        is(3);
        std::fs::remove_file(first.join(earlier)).expect("it is there");
        is(2);
    }
}

fn the_time_is_that_of_the_build(setup: &Setup, place: &Path) {
    let header = "constant char text[] = __TIME__;\n";
    std::fs::write(place.join("time.h"), header).expect("a header");
    std::thread::sleep(Duration::from_millis(40));
    let options = format!("-I {}", place.display());
    let define = "-DNOW=__TIME__";
    for (before, options) in [
        (header, ""),
        ("#include \"time.h\"\n", options.as_str()),
        ("constant char text[] = NOW;\n", define),
        ("constant char text[] = __TI\\\nME__;\n", ""),
    ] {
        // The seconds since the minute began.
        let source = format!(
            "{before}kernel void f(global int *p) {{ *p = (text[6] - '0') * 10 + text[7] - '0'; }}"
        );
        let build = || {
            value(
                setup,
                &setup.try_build(&source, options).expect("a program"),
            )
        };
        let first = build();
        let end = Instant::now() + Duration::from_secs(20);
        while build() == first {
            assert!(Instant::now() < end, "{source} with {options}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn many_builds(setup: &Setup) {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let left = AtomicUsize::new(40);
    let (mut most, begun) = (0, Instant::now());
    std::thread::scope(|scope| {
        for number in 0..40 {
            let left = &left;
            scope.spawn(move || {
                let source = format!("kernel void f(global int *p) {{ *p = {number}; }}");
                let program = setup.try_build(&source, "").expect("a program");
                assert_eq!(value(setup, &program), number);
                left.fetch_sub(1, Ordering::SeqCst);
            });
        }
        while left.load(Ordering::SeqCst) > 0 && begun.elapsed() < Duration::from_secs(100) {
            // Zig's is one too.
            most = most.max(children("clang") + children("zig"));
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let cores = std::thread::available_parallelism()
        .expect("a number")
        .get();
    assert!(
        (1..=cores).contains(&most),
        "{most} compilers at once on {cores} cores"
    );
}

/// Whatever way a source names a header, and wherever one comes to be, what is built is made of what is there.
#[test]
fn headers() {
    child("headers", &[]);
}

/// Checks that files which are not regular are neither read to their end nor cached.
#[cfg(unix)]
#[test]
fn headers_that_are_devices() {
    child("devices", &[]);
}

/// A pipe that nobody writes to is not waited for.
#[cfg(unix)]
#[test]
fn headers_that_are_pipes() {
    child("fifo", &[]);
}

/// Nor is it where the compiler is started by a script.
#[cfg(unix)]
#[test]
fn headers_that_are_pipes_of_a_script() {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = |name: &String| std::env::split_paths(&path).any(|dir| dir.join(name).exists());
    let named = std::env::var("PUMICE_CLANG").ok();
    let newest = || (20..40).rev().map(|n| format!("clang-{n}")).find(there);
    let Some(clang) = named.or_else(newest) else {
        return pumice_tests::left_out("no clang of PATH to write a script around");
    };
    let script = std::env::temp_dir().join(format!("pumice-script-{}", std::process::id()));
    std::fs::write(&script, format!("#!/bin/sh\nexec {clang} \"$@\"\n")).expect("a script");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("permissions");
    child("script", &[("PUMICE_CLANG", &script.to_string_lossy())]);
    let _ = std::fs::remove_file(&script);
}

#[test]
fn long_options() {
    child("options", &[]);
}

/// `__TIME__` is when the program is built, not when one like it was.
#[test]
fn the_time() {
    child("time", &[]);
}

#[test]
fn no_temporary_directory() {
    child("temporary", &[]);
}

/// As many compilers as there are cores; the rest of the builds wait.
#[test]
fn many_builds_at_once() {
    child(
        "many",
        &[("PUMICE_CLANG_SERVER", "0"), ("PUMICE_CACHE_DIR", "")],
    );
}
