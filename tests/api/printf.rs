//! printf of kernels, as a process that captures the output of another sees it.

use pumice_tests::{good_child, job, Setup};

/// At the start of sources in OpenCL C 3.1.
const NEWEST: &str = "// OpenCL C 3.1";

/// At the start of sources in C++ for OpenCL.
const CXX: &str = "// C++ for OpenCL";
/// At the start of sources with generic pointers.
const GENERIC: &str = "// OpenCL C 3.0";

/// Runs a kernel in a child process, this test executable again, and returns what it printed.
fn printed_by(source: &str, items: usize) -> String {
    let none: [(&str, &str); 0] = [];
    let output = good_child("printf::child", &format!("{items}\n{source}"), &none);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
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
    let Some(job) = job() else {
        return;
    };
    let (items, source) = job.split_once('\n').expect("items and source");
    let setup = Setup::new();
    let options = if source.starts_with(CXX) {
        "-cl-std=CLC++"
    } else if source.starts_with(NEWEST) {
        "-cl-std=CL3.1 -Werror"
    } else if source.starts_with(GENERIC) {
        "-cl-std=CL3.0"
    } else if source.starts_with("// -cl-opt-disable") {
        "-cl-opt-disable"
    } else {
        ""
    };
    let program = setup
        .try_build(source, options)
        .unwrap_or_else(|log| panic!("{log}"));
    let kernel = setup.kernel(&program, "f");
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
fn strings_that_are_null() {
    let text = printed_by(
        r#"kernel void f(void) {
            constant char *none = 0;
            printf("[%s] [%8s] [%-8s]\n", none, none, none);
            printf("[%s]\n", get_global_id(0) ? "some" : none);
            printf("[%s]\n", get_global_id(0) ? none : "some");
            printf("[%s]\n", 0);
        }"#,
        1,
    );
    let expected = "[(null)] [  (null)] [(null)  ]\n[(null)]\n[some]\n[(null)]\n";
    assert_eq!(text, expected);
}

/// Known once functions are inlined, or only at run time.
#[test]
fn strings_that_are_no_literals() {
    let source = r#"__attribute__((noinline)) void say(constant char *name, int x) { printf("%s: %d\n", name, x); }
        constant char *constant names[] = { "zero", "one", 0, "three" };
        kernel void f(void) {
            say("left", 1);
            say("right", 2);
            for (int i = 0; i < 4; i++)
                printf("[%6s] [%.2s]\n", names[get_global_id(0) + i], names[3 - i]);
            char text[8];
            for (int i = 0; i < 5; i++)
                text[i] = 'a' + i + get_global_id(0);
            text[5] = 0;
            printf("%d %s %d\n", 7, text, 8);
            local char shared[300];
            for (int i = 0; i < 300; i++)
                shared[i] = 'x';
            printf("%s\n", shared);
        }"#;
    let expected =
        "left: 1\nright: 2\n[  zero] [th]\n[   one] [(n]\n[(null)] [on]\n[ three] [ze]\n7 abcde 8\n"
            .to_owned()
            + &"x".repeat(252) + "\n";
    assert_eq!(printed_by(source, 1), expected);
    assert_eq!(
        printed_by(&format!("// -cl-opt-disable\n{source}"), 1),
        expected
    );
}

#[test]
fn sizes_and_differences() {
    let setup = Setup::new();
    if !pumice_tests::at_least(&setup, 3, 1) {
        return pumice_tests::left_out("the device is not of OpenCL 3.1");
    }
    let source = format!(
        "{NEWEST}
        #if __OPENCL_C_VERSION__ != 310 || CL_VERSION_3_1 != 310 || __OPENCL_VERSION__ < 310
        #error wrong versions
        #endif
        kernel void f(void) {{
            size_t size = 5000000000;
            ptrdiff_t difference = -5000000000;
            printf(\"%zu %zx %td %v2ld\\n\", size, size, difference, (long2)(-1, 1L << 40));
            printf(\"%u %d\\n\", bit_reverse(1u), dot_4x8packed_ss_int(0x01020304u, 0x01010101u));
            printf(\"%d\\n\", sub_group_shuffle(7, 0) + sub_group_rotate(0, 0) + sub_group_shuffle_up(0, 0u));
        }}"
    );
    let expected = "5000000000 12a05f200 -5000000000 -1,1099511627776\n2147483648 10\n7\n";
    assert_eq!(printed_by(&source, 1), expected);
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

/// Constructors print before the kernel does.
#[test]
fn constructors_print() {
    let source = format!(
        "{CXX}
        struct Printer {{ int value; Printer(int n) : value(n) {{ printf(\"made %d\\n\", n); }} }};
        global Printer printer(7);
        kernel void f() {{ printf(\"found %d\\n\", printer.value); }}"
    );
    assert_eq!(printed_by(&source, 1), "made 7\nfound 7\n");
}

/// Checks that any pointer, generic ones too, prints as its cast to an integer.
#[test]
fn pointers() {
    let text = printed_by(
        r#"// OpenCL C 3.0
        __attribute__((noinline)) void say(void *p) { printf("%d%d ", p != 0, (ulong)p != 0); printf("%p\n", p); }
        kernel void f(void) {
            int x = 0;
            local int l;
            if (get_global_id(0) == 0)
                say(&x);
            else
                say(&l);
            say((void *)0);
            void *p = get_global_id(0) == 0 ? (void *)&x : (void *)&l;
            printf("%p\n%lx\n", p, (ulong)p);
        }"#,
        1,
    );
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("11 0x"), "{text}");
    assert_eq!(lines[1], "00 (nil)", "{text}");
    assert_eq!(lines[2], format!("0x{}", lines[3]), "{text}");
}

/// Fields as large as anybody asks for, and launches after them.
#[test]
fn large_fields() {
    let text = printed_by(
        r#"kernel void f(void) {
            printf("%.65536f\n%.65535f\n%65536d\n%.70000g\n%.99999e\nend\n", 1.5f, 2.5f, 3, 1e-4f, 1.0f);
        }"#,
        1,
    );
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("1.5000") && lines[0].len() == 65_536,
        "{}",
        lines[0].len()
    );
    assert!(lines[1].starts_with("2.5000"));
    assert!(lines[2].ends_with("  3") && lines[2].len() == 65_534);
    assert_eq!(lines[5], "end");
}
