//! printf of kernels, as a process that captures the output of another sees it.

use pumice_tests::Setup;
use std::process::Command;

const CHILD: &str = "PUMICE_TESTS_PRINTF";

/// Runs a kernel in a child process, this test executable again, and returns what it printed.
fn printed_by(source: &str, items: usize) -> String {
    let executable = std::env::current_exe().expect("this executable");
    let output = Command::new(executable)
        .args([
            "printf::child",
            "--exact",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(CHILD, format!("{items}\n{source}"))
        .output()
        .expect("the child runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // What is between the marks is the kernel's, the rest the test harness's.
    let inner = text
        .split("<<<\n")
        .nth(1)
        .and_then(|rest| rest.split(">>>").next());
    inner
        .unwrap_or_else(|| panic!("no marks in {text:?}"))
        .to_owned()
}

/// Not a test of its own: the child of the others.
#[test]
fn child() {
    let Ok(job) = std::env::var(CHILD) else {
        return;
    };
    let (items, source) = job.split_once('\n').expect("items and source");
    let setup = Setup::new();
    let kernel = setup.kernel_of(source, "f");
    println!("<<<");
    setup.run(&kernel, &[items.parse().expect("a number")], None);
    println!(">>>");
}

#[test]
fn formats() {
    let text = printed_by(
        r#"kernel void f(void) {
            printf("plain %% text\n");
            printf("%d %i %u %x %X %o %c\n", -5, 6, 7u, 255, 255, 8, 'z');
            printf("%5d|%-5d|%05d|%+d\n", 42, 42, 42, 42);
            printf("%ld %lu %hd %hhd\n", -5000000000L, 5000000000UL, (short)-3, (char)-2);
            printf("%.3f %8.2f %e %g\n", 3.14159f, 2.5f, 12345.678f, 0.0001f);
            printf("%s and %s\n", "one", "two");
            printf("%v4d\n", (int4)(1, 2, 3, 4));
            printf("%v2hlf\n", (float2)(1.5f, -2.5f));
        }"#,
        1,
    );
    let expected =
        "plain % text\n-5 6 7 ff FF 10 z\n   42|42   |00042|+42\n-5000000000 5000000000 -3 -2\n\
                    3.142     2.50 1.234568e+04 0.0001\none and two\n1,2,3,4\n1.500000,-2.500000\n";
    assert_eq!(text, expected);
}

#[test]
fn one_line_from_each_work_item() {
    let text = printed_by(
        r#"kernel void f(void) { printf("item %u of %u\n", (uint)get_global_id(0), (uint)get_global_size(0)); }"#,
        100,
    );
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    let mut expected: Vec<String> = (0..100).map(|i| format!("item {i} of 100")).collect();
    expected.sort_unstable();
    assert_eq!(lines, expected);
}
