//! The `pumice` command as others see it: what it writes, where, and with which exit status.

#[path = "../../../../tests/src/left_out.rs"]
mod left_out;

use left_out::left_out;
use std::process::{Command, Output, Stdio};

fn pumice(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pumice"));
    command.args(words).env("PUMICE_DEVICES", "cpu");
    // The IR is checked after each pass.
    command.env("PUMICE_PASSES", "verify");
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(Stdio::piped());
    command
}

fn output(words: &[&str]) -> Output {
    pumice(words).output().expect("pumice runs")
}

/// A reader that stops before the end (`pumice info | head -1`) is no failure, and nothing is said of it.
#[test]
fn readers_may_stop() {
    let kernel = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api/checks.cl");
    for words in [
        &["info"][..],
        &["cache"],
        &["manual"],
        &["completions", "zsh"],
        &["--help"],
        &[
            "compile",
            kernel,
            "--emit",
            "reflection",
            "--",
            "-w",
            "-cl-std=CL3.0",
        ],
        &[
            "compile",
            kernel,
            "--emit",
            "check",
            "--",
            "-w",
            "-cl-std=CL3.0",
        ],
        &[
            "compile",
            kernel,
            "--emit",
            "kir",
            "--",
            "-w",
            "-cl-std=CL3.0",
        ],
    ] {
        let mut child = pumice(words).spawn().expect("pumice runs");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("pumice ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{words:?}: {}: {stderr}",
            output.status
        );
        assert!(!stderr.contains("panic"), "{words:?}: {stderr}");
    }
}

/// Nor does a closed standard error make more of a failure than there was.
#[test]
fn complaints_may_be_unread() {
    let mut child = pumice(&["compile", "no such file"])
        .spawn()
        .expect("pumice runs");
    drop(child.stderr.take());
    let output = child.wait_with_output().expect("pumice ends");
    assert_eq!(output.status.code(), Some(1));
}

/// Kernels are compiled to Vulkan SPIR-V where the processor is the only device, but not for the processor.
#[test]
fn the_processor_takes_no_vulkan_spirv() {
    let kernel = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api/checks.cl");
    let words = ["compile", kernel, "--emit", "vulkan"];
    let options = ["--", "-w", "-cl-std=CL3.0"];
    let module = output(&[&words[..], &options].concat());
    assert!(module.status.success(), "{module:?}");
    assert_eq!(module.stdout[..4], 0x0723_0203_u32.to_le_bytes());
    let refused = output(&[&words[..], &["--device", "0"], &options].concat());
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stdout.is_empty());
}

/// Types are those of the source: the compiler's modules have bytes behind every pointer.
#[test]
fn reflection_has_the_types_of_the_source() {
    let file = concat!(env!("CARGO_TARGET_TMPDIR"), "/reflection.cl");
    let source = "typedef struct { int x; } pair;
        kernel void k(global int *out, constant uchar *bytes, local float4 *row, const global pair *pairs, uint n) {}";
    std::fs::write(file, source).expect("a source");
    let output = output(&["compile", file, "--emit", "reflection"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    let types: Vec<&str> = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("type_name: "))
        .collect();
    let expected = ["int*", "uchar*", "float4*", "pair*", "uint"];
    assert_eq!(types, expected.map(|ty| format!("\"{ty}\",")), "{text}");
}

/// Checks that a failed write is a failure, unless the reader has gone.
#[test]
fn a_full_disk_is_a_failure() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else {
        return left_out("no /dev/full");
    };
    for words in [&["info"][..], &["manual"], &["cache"]] {
        let stdout = full.try_clone().expect("a second descriptor");
        let output = pumice(words).stdout(stdout).output().expect("pumice runs");
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains("cannot write"), "{words:?}: {stderr}");
    }
}

/// Says what works, and with its exit status whether anything does.
#[test]
fn the_doctor_finds_what_is_missing() {
    let doctor = |variables: &[(&str, &str)]| {
        let mut command = pumice(&["doctor"]);
        command.envs(variables.iter().copied());
        let output = command.output().expect("pumice runs");
        let report = String::from_utf8(output.stdout).expect("text");
        (output.status.code(), report)
    };
    let (status, report) = doctor(&[]);
    assert_eq!(status, Some(0), "{report}");
    assert!(report.contains("compiled and ran a kernel"), "{report}");

    let (status, report) = doctor(&[("PUMICE_CLANG", "/no/such/clang")]);
    assert_eq!(status, Some(1), "{report}");
    assert!(report.contains("BAD     /no/such/clang"), "{report}");
    assert!(report.contains("-> install clang"), "{report}");

    // Not even root makes a directory there.
    let (status, report) = doctor(&[("PUMICE_CACHE_DIR", "/dev/null/cache")]);
    assert_eq!(status, Some(0), "{report}");
    assert!(report.contains("lacking /dev/null/cache"), "{report}");
    let (_, report) = doctor(&[("PUMICE_CACHE_DIR", "")]);
    assert!(report.contains("lacking none: every run"), "{report}");

    let (_, report) = doctor(&[("OCL_ICD_VENDORS", "/no/such/place")]);
    assert!(report.contains("BAD     /no/such/place"), "{report}");
    assert!(report.contains("-> write a file"), "{report}");

    let (status, report) = doctor(&[("PUMICE_DEVICES", "no such device")]);
    assert_eq!(status, Some(1), "{report}");
    assert!(report.contains("none is offered"), "{report}");

    let (_, report) = doctor(&[("PUMICE_QUIRKS", "+loop-results")]);
    let there = report.contains("llvmpipe");
    assert_eq!(
        there,
        report.contains("it gives loops wrong results"),
        "{report}"
    );
    assert_eq!(
        there,
        report.contains("-> install Mesa 25.0 or newer"),
        "{report}"
    );

    let mut withheld = pumice(&["doctor"]);
    withheld.env("PUMICE_WITHHOLD", "addresses,int128");
    let output = withheld.output().expect("pumice runs");
    let report = String::from_utf8_lossy(&output.stdout);
    let said = report.contains("it lacks bufferDeviceAddress");
    assert_eq!(there, said, "{report}");
    let log = String::from_utf8_lossy(&output.stderr);
    let said = log.contains("PUMICE_WITHHOLD: unknown word `int128`");
    assert_eq!(there, said, "{log}");
}

/// A few lines a device, and for each one that is not offered why, and what to do about it; everything on demand.
#[test]
fn info_is_short_and_whole() {
    let info = |words: &[&str], devices: &str| {
        let mut command = pumice(words);
        let output = command.env("PUMICE_DEVICES", devices).output();
        String::from_utf8(output.expect("pumice runs").stdout).expect("text")
    };
    let short = info(&["info"], "cpu");
    assert!(
        short.contains("processor, without Vulkan; OpenCL 3."),
        "{short}"
    );
    assert!(!short.contains("cl_khr_"), "{short}");
    let whole = info(&["info", "--all"], "cpu");
    assert!(
        whole.contains("cl_khr_") && whole.contains("  quirks "),
        "{whole}"
    );
    let none = info(&["info"], "no such device");
    assert!(none.starts_with("no device is offered"), "{none}");
    for text in [short, none] {
        let lines: Vec<&str> = text.lines().collect();
        for (at, _) in lines
            .iter()
            .enumerate()
            .filter(|(_, line)| line.starts_with("not offered: "))
        {
            assert!(lines[at + 1].starts_with("  because "), "{text}");
            assert!(lines[at + 2].starts_with("  -> "), "{text}");
        }
    }
}

/// Measures, and finds the results right.
#[test]
fn the_bench_measures() {
    let output = self::output(&["bench", "--milliseconds", "20"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{output:?}");
    for row in [
        "launch and finish",
        "triad, float4",
        "multiply-add, float",
        "build and run",
    ] {
        assert!(text.contains(row), "{text}");
    }
    let absent = self::output(&["bench", "--device", "99"]);
    assert_eq!(absent.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&absent.stderr).contains("there is no device 99"));
}

/// The page is one that `man` can read: a title, a name, no lines that roff does not know.
#[test]
fn the_manual_is_a_manual_page() {
    let page = String::from_utf8(output(&["manual"]).stdout).expect("text");
    assert!(page.contains(".TH pumice 1"), "{page}");
    for section in ["NAME", "SYNOPSIS", "COMMANDS", "ENVIRONMENT", "FILES"] {
        assert!(
            page.contains(&format!(".SH {section}")),
            "{section}: {page}"
        );
    }
}

/// Returns the names of the files of a folder, and of its folders, without the hashes that they
/// begin with.
fn kinds(dir: &std::path::Path) -> std::collections::BTreeSet<String> {
    let entries = std::fs::read_dir(dir).expect("a folder of dumps");
    entries
        .map(|entry| {
            let name = entry.expect("an entry").file_name();
            let name = name.to_string_lossy();
            name.split_once('.').map_or("", |(_, kind)| kind).to_owned()
        })
        .collect()
}

/// `PUMICE_DUMP` writes the same files whether or not the cache has the build, for `pumice compile` and for a program.
#[test]
fn dumps_are_whole_whatever_the_cache_has() {
    let dir = std::env::temp_dir().join(format!("pumice-dump-test-{}", std::process::id()));
    let file = dir.join("k.cl");
    std::fs::create_dir_all(&dir).expect("a folder");
    let source = "kernel void k(global int *p) { p[get_global_id(0)] += 7; }";
    std::fs::write(&file, source).expect("a source");
    let dumped = |name: &str, words: &[&str]| {
        let folder = dir.join(name);
        let mut command = pumice(words);
        command.env("PUMICE_CACHE_DIR", dir.join("cache"));
        let done = command.env("PUMICE_DUMP", &folder).output();
        let done = done.expect("pumice runs");
        assert!(done.status.success(), "{done:?}");
        kinds(&folder)
    };
    let path = file.to_string_lossy();
    let compile = &["compile", &*path, "--emit", "vulkan", "-o", "/dev/null"][..];
    let kinds = dumped("first", compile);
    for kind in ["cl", "spv", "k.passes", "k.vk.spv", "k.vk.interface"] {
        assert!(kinds.contains(kind), "{kind} in {kinds:?}");
    }
    assert_eq!(dumped("second", compile), kinds);
    let passes = std::fs::read_dir(dir.join("second")).expect("dumps");
    let passes = passes.map(|entry| entry.expect("an entry").path());
    let passes = passes.filter(|path| path.extension().is_some_and(|end| end == "passes"));
    let count = passes.map(|dir| std::fs::read_dir(dir).expect("passes").count());
    assert!(count.sum::<usize>() > 3);

    let kinds = dumped("doctor", &["doctor"]);
    assert!(kinds.iter().any(|kind| kind.ends_with(".ll")), "{kinds:?}");
    assert_eq!(dumped("again", &["doctor"]), kinds);
    let _ = std::fs::remove_dir_all(&dir);
}
