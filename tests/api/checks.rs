//! PUMICE_CHECK, in child processes on the CPU device: what is found, where, and that nothing is found where nothing is wrong.

use pumice_tests::sys::*;
use pumice_tests::{create, ok, Buffer, Setup};
use std::process::Command;

const CHILD: &str = "PUMICE_TESTS_CHECKS";
const SOURCE: &str = include_str!("checks.cl");
/// Work-items of each launch, in groups of 64.
const ITEMS: usize = 128;

/// Runs a kernel in a process that checks; what that says.
fn check(kernel: &str, checks: &str) -> String {
    child("checks::inner", kernel, checks)
}

fn child(test: &str, kernel: &str, checks: &str) -> String {
    let executable = std::env::current_exe().expect("this executable");
    let output = Command::new(executable)
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, kernel)
        .env("PUMICE_DEVICES", "cpu")
        .env("PUMICE_CHECK", checks)
        .output()
        .expect("the child runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{kernel}: {text}");
    text
}

/// Not a test of its own: the child of the others.
#[test]
fn inner() {
    let Some(name) = std::env::var_os(CHILD) else {
        return;
    };
    let name = name.to_string_lossy();
    let setup = Setup::new();
    let options = if name == "without_lines" {
        "-cl-std=CL3.0"
    } else {
        "-cl-std=CL3.0 -g"
    };
    let program = setup.try_build(SOURCE, options).expect("a program");
    let kernel = setup.kernel(
        &program,
        if name == "without_lines" {
            "outside"
        } else {
            &name
        },
    );
    let data = setup.buffer_of(&[0i32; ITEMS + 1]);
    let large = setup.buffer(ITEMS * 8 + 8);
    let exact = setup.buffer_of(&[5i32; ITEMS]);
    match &*name {
        "outside" | "without_lines" => kernel.set_buffer(0, &exact).set(1, 1000i32),
        "behind" => kernel.set_buffer(0, &exact).set_buffer(1, &data),
        "before" | "constants" => kernel.set_buffer(0, &exact),
        "null_pointer" => kernel.set_buffer(0, &exact).set(1, 0u64),
        "misaligned" => kernel.set_buffer(0, &large),
        "local_outside" => kernel.set_buffer(0, &data).set_local(1, 64 * 4),
        "private_unwritten" => kernel.set_buffer(0, &exact).set(1, 3i32),
        "right" => {
            let pairs = setup.buffer(ITEMS * 8);
            let flag = setup.buffer_of(&[0i32]);
            kernel
                .set_buffer(0, &data)
                .set_buffer(1, &pairs)
                .set_buffer(2, &flag)
                .set_local(3, 64 * 4);
            setup.run(&kernel, &[ITEMS], Some(&[64]));
            assert_eq!(setup.read::<i32>(&flag, 1), [7]);
            let pairs: Vec<i32> = setup.read(&pairs, ITEMS * 2);
            assert!((0..ITEMS).all(|g| pairs[2 * g + 1] == g as i32));
            let data: Vec<i32> = setup.read(&data, ITEMS + 1);
            assert_eq!(data[0], 2 * (0..64).sum::<i32>());
            assert_eq!((data[1], data[2], data[64]), (3, 3, 1));
            return;
        }
        _ => kernel.set_buffer(0, &data),
    };
    setup.run(&kernel, &[ITEMS], Some(&[64]));
    // What is wrong has had no effect elsewhere.
    if name == "behind" {
        let out: Vec<i32> = setup.read(&data, ITEMS);
        assert!(out[..ITEMS - 1].iter().all(|&v| v == 5));
    }
}

/// The line of a kernel's mark, from 1.
fn line(kernel: &str) -> usize {
    let mark = format!("// {kernel}");
    let at = SOURCE.lines().position(|line| line.ends_with(&mark));
    at.expect("a mark") + 1
}

/// The one finding names kernel, line and all of the words.
fn finds(kernel: &str, words: &[&str]) {
    let text = check(kernel, "memory,race,barrier");
    let found: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("check:"))
        .collect();
    let place = format!("kernel {kernel}, line ");
    let mark = format!("line {}", line(kernel));
    let [one] = found[..] else {
        panic!("{kernel}: {text}");
    };
    for word in [place.as_str(), &mark].iter().chain(words) {
        assert!(one.contains(word), "{kernel}: no `{word}` in: {one}");
    }
}

#[test]
fn memory() {
    finds(
        "outside",
        &[
            "write outside",
            "4 bytes",
            "of 512 bytes",
            "; work-item (0, 0, 0)",
            "128 times",
        ],
    );
    finds(
        "behind",
        &[
            "read outside",
            "0 bytes behind the end of the buffer of 512",
            "work-item (127, 0, 0) (local (63, 0, 0) of group (1, 0, 0))",
        ],
    );
    finds(
        "before",
        &["write outside", "4 bytes before the buffer of 512"],
    );
    finds(
        "null_pointer",
        &["read outside", "null pointer", "work-item (5, 0, 0)"],
    );
    finds(
        "misaligned",
        &["not aligned to 4 bytes", "byte 1 of the buffer"],
    );
    finds(
        "local_outside",
        &["write outside", "local address", "work-item (63, 0, 0)"],
    );
    finds("local_unwritten", &["never written", "global address"]);
    finds("private_unwritten", &["never written"]);
    finds("constants", &["read outside", "work-item (0, 0, 0)"]);
}

#[test]
fn races() {
    finds("local_race", &["data race", "local address", "work-item"]);
    finds(
        "group_race",
        &["data race", "work-item (64, 0, 0)", "and (0, 0, 0)"],
    );
    finds("wrong_fence", &["data race", "global address"]);
}

#[test]
fn barriers() {
    finds("divergent", &["do not come to a barrier together"]);
}

#[test]
fn only_what_is_asked_for() {
    assert!(!check("local_race", "memory,barrier").contains("check:"));
    assert!(!check("local_unwritten", "race").contains("check:"));
    assert!(!check("divergent", "memory").contains("check:"));
    assert!(check("without_lines", "memory").contains("a build with -g tells the line"));
}

#[test]
fn nothing_where_nothing_is_wrong() {
    assert_eq!(check("right", "memory,race,barrier"), "");
}

/// Memory of the application that no object stands for (fine-grained system SVM) is no fault; what lies behind an imported
/// buffer is one, read and written.
#[test]
fn system_memory() {
    let text = child("checks::system_inner", "system", "memory,race,barrier");
    assert!(
        !text.contains("work-item (0,") && text.lines().count() == 2,
        "{text}"
    );
    assert!(
        text.contains("0 bytes behind the end of the buffer of 256 bytes"),
        "{text}"
    );
}

/// Not a test of its own: the child of the one above.
#[test]
fn system_inner() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let setup = Setup::new();
    let program = setup.build(
        "kernel void sum(global int *p, global const int *q) {
            p[get_global_id(0)] += q[get_global_id(0)];
        }",
    );
    let kernel = setup.kernel(&program, "sum");
    let mut own = vec![1i32; ITEMS];
    let other = vec![2i32; ITEMS];
    ok!(clSetKernelArgSVMPointer(
        kernel.0,
        0,
        own.as_mut_ptr().cast()
    ));
    ok!(clSetKernelArgSVMPointer(kernel.0, 1, other.as_ptr().cast()));
    setup.run(&kernel, &[ITEMS], None);
    assert!(own.iter().all(|&value| value == 3));
    // 64 of its words are a buffer's.
    let flags = CL_MEM_USE_HOST_PTR;
    let host = own.as_mut_ptr().cast();
    let buffer = Buffer(create!(clCreateBuffer(setup.context.0, flags, 256, host)));
    kernel.set_buffer(0, &buffer);
    setup.run(&kernel, &[65], Some(&[65]));
}
