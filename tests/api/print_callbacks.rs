//! Output of kernels that goes to a function of the application's (cl_arm_printf).

use pumice_tests::sys::*;
use pumice_tests::{
    create, create_fails, first_device, info_value, ok, user_data, Context, Program, Setup,
};
use std::ffi::{c_char, c_void};
use std::ptr::null_mut;
use std::sync::Mutex;

const CALLBACK: cl_context_properties = CL_PRINTF_CALLBACK_ARM as cl_context_properties;
const SIZE: cl_context_properties = CL_PRINTF_BUFFERSIZE_ARM as cl_context_properties;

/// The calls of a function: text, and whether it was the last of a launch.
type Calls = Mutex<Vec<(String, bool)>>;

unsafe extern "C" fn printed(
    text: *const c_char,
    len: usize,
    complete: usize,
    user_data: *mut c_void,
) {
    // SAFETY: so many bytes, as the extension says.
    let text = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), len) };
    // SAFETY: the tests give the address of calls that outlive the context.
    let calls = unsafe { &*user_data.cast::<Calls>() };
    let text = String::from_utf8_lossy(text).into_owned();
    calls.lock().unwrap().push((text, complete != 0));
}

type PrintFn = unsafe extern "C" fn(*const c_char, usize, usize, *mut c_void);

fn address(function: PrintFn) -> cl_context_properties {
    function as usize as cl_context_properties
}

fn data(calls: &Calls) -> *mut c_void {
    (&raw const *calls).cast_mut().cast()
}

/// Makes a context of these properties.
fn made(properties: &[cl_context_properties], user_data: *mut c_void) -> Setup {
    let device = first_device();
    let context = create!(clCreateContext(
        properties.as_ptr(),
        1,
        &device,
        None,
        user_data
    ));
    Setup::of(Context(context), 0)
}

fn setup(calls: &Calls, size: Option<usize>) -> Setup {
    let mut properties = vec![CALLBACK, address(printed)];
    properties.extend(size.into_iter().flat_map(|size| [SIZE, size as isize]));
    properties.push(0);
    made(&properties, data(calls))
}

/// Takes the calls: their text, and how many said that they were the last.
fn take(calls: &Calls) -> (String, usize) {
    let all = std::mem::take(&mut *calls.lock().unwrap());
    let last = all.iter().filter(|(_, last)| *last).count();
    assert!(all.iter().all(|(text, _)| !text.is_empty()));
    (all.into_iter().map(|(text, _)| text).collect(), last)
}

const SOURCE: &str = r#"
#ifndef cl_arm_printf
#error no macro
#endif
kernel void hello(int n) { printf("%d of %s, %v2d\n", n, "many", (int2)(n, -n)); }
kernel void nothing(int n) { if (n > 1000) printf("many\n"); }
kernel void lines(int n) { for (int i = 0; i < n; i++) printf("%63d\n", i); }
kernel void each(void) { printf("<%u>", (uint)get_global_id(0)); }
"#;

#[test]
fn output_goes_to_the_function() {
    let calls = Calls::default();
    let setup = setup(&calls, None);
    let program = setup.build(SOURCE);
    let hello = setup.kernel(&program, "hello");
    for n in [3, 4] {
        hello.set(0, n);
        setup.run(&hello, &[1], None);
        let expected = format!("{n} of many, {n},-{n}\n");
        // The command is complete when it has been called.
        assert_eq!(take(&calls), (expected, 1));
    }
    let nothing = setup.kernel(&program, "nothing");
    nothing.set(0, 1);
    setup.run(&nothing, &[100], None);
    assert_eq!(take(&calls), (String::new(), 0));
    // Several launches before it is called: each has a last call, in the order of the queue.
    for n in 0..100 {
        hello.set(0, n);
        setup.enqueue(&hello, &[1], None);
    }
    ok!(clFinish(setup.queue.0));
    let all = (0..100).map(|n| format!("{n} of many, {n},{}\n", -n));
    assert_eq!(take(&calls), (all.collect(), 100));
    let each = setup.kernel(&program, "each");
    setup.run(&each, &[1000], None);
    let (text, last) = take(&calls);
    assert_eq!((text.matches('<').count(), last), (1000, 1));
    assert!((0..1000).all(|id| text.contains(&format!("<{id}>"))));
}

#[test]
fn pieces_before_the_last_say_so() {
    let calls = Calls::default();
    let setup = setup(&calls, None);
    let lines = setup.kernel(&setup.build(SOURCE), "lines");
    lines.set(0, 10_000);
    setup.run(&lines, &[1], None);
    let all = std::mem::take(&mut *calls.lock().unwrap());
    let (last, others) = all.split_last().expect("a call");
    assert!(last.1 && !others.is_empty() && others.iter().all(|(_, last)| !last));
    let text: String = all.iter().map(|(text, _)| text.as_str()).collect();
    let expected: String = (0..10_000).map(|i| format!("{i:63}\n")).collect();
    assert!(text == expected, "{} bytes", text.len());
}

/// Counts the lines that there is room for.
fn room(size: Option<usize>) -> usize {
    let calls = Calls::default();
    let setup = setup(&calls, size);
    let lines = setup.kernel(&setup.build(SOURCE), "lines");
    lines.set(0, 400_000);
    setup.run(&lines, &[1], None);
    take(&calls).0.lines().count()
}

#[test]
fn buffers_have_at_least_the_size_that_is_asked_for() {
    let usual = room(None);
    assert!((50_000..400_000).contains(&usual), "{usual}");
    assert_eq!(room(Some(4096)), usual);
    let more = room(Some(3_000_000));
    assert!(more > usual * 4 / 3 && more < usual * 2, "{more}");
    assert_eq!(room(Some(16 << 20)), 400_000);
    // More than there is, which is rounded down.
    assert_eq!(room(Some(usize::MAX >> 1)), 400_000);
}

#[test]
fn the_size_alone_leaves_output_where_it_is() {
    let setup = made(&[SIZE, 1 << 20, 0], null_mut());
    let nothing = setup.kernel(&setup.build(SOURCE), "nothing");
    nothing.set(0, 5);
    setup.run(&nothing, &[1], None);
}

/// Output of kernels that kernels enqueue, and of those that construct and destruct variables.
#[test]
fn all_launches_print_there() {
    let calls = Calls::default();
    let setup = setup(&calls, None);
    let on_device = [
        u64::from(CL_QUEUE_PROPERTIES),
        CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_ON_DEVICE | CL_QUEUE_ON_DEVICE_DEFAULT,
        0,
    ];
    let queue = create!(clCreateCommandQueueWithProperties(
        setup.context.0,
        setup.device,
        on_device.as_ptr()
    ));
    let source = r#"kernel void parent(queue_t queue) {
        enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_WAIT_KERNEL, ndrange_1D(1), ^{ printf("child\n"); });
        printf("parent\n");
    }"#;
    let program = setup.try_build(source, "-cl-std=CL3.0").unwrap();
    let parent = setup.kernel(&program, "parent");
    parent.set(0, queue);
    setup.run(&parent, &[1], None);
    assert_eq!(take(&calls), ("parent\nchild\n".to_owned(), 2));
    ok!(clReleaseCommandQueue(queue));
    let source = r#"struct Noisy {
            int n;
            Noisy() { n = 5; printf("begun\n"); }
            ~Noisy() { printf("ended\n"); }
        };
        Noisy noisy;
        kernel void show() { printf("%d\n", noisy.n); }"#;
    let program = setup.try_build(source, "-cl-std=CLC++").unwrap();
    let show = setup.kernel(&program, "show");
    setup.run(&show, &[1], None);
    assert_eq!(take(&calls), ("begun\n5\n".to_owned(), 2));
    drop((show, program));
    assert_eq!(take(&calls), ("ended\n".to_owned(), 1));
}

/// Calls the API from within the function.
unsafe extern "C" fn asks(_: *const c_char, _: usize, _: usize, user_data: *mut c_void) {
    // SAFETY: the test gives the address of what outlives the context.
    let program = unsafe { &*user_data.cast::<Mutex<Option<(Setup, Program)>>>() };
    let held = program.lock().unwrap();
    let (other, program) = held.as_ref().expect("the other context");
    let hello = other.kernel(program, "nothing");
    hello.set(0, 1);
    other.run(&hello, &[1], None);
}

#[test]
fn the_function_may_use_other_queues() {
    let other = Setup::new();
    let program = other.build(SOURCE);
    let held = Mutex::new(Some((other, program)));
    let user_data = (&raw const held).cast_mut().cast();
    let setup = made(&[CALLBACK, address(asks), 0], user_data);
    let each = setup.kernel(&setup.build(SOURCE), "each");
    setup.run(&each, &[10], None);
}

#[test]
fn properties_are_checked_and_reported() {
    let plain = Setup::new();
    assert!(plain.has_extension("cl_arm_printf"));
    let calls = Calls::default();
    let properties = [CALLBACK, address(printed), SIZE, 1 << 20, 0];
    let setup = made(&properties, data(&calls));
    let kept = info_value!(
        [isize; 5],
        clGetContextInfo(setup.context.0),
        CL_CONTEXT_PROPERTIES
    );
    assert_eq!(kept, properties);
    let no_function = [CALLBACK, 0, 0];
    let twice = [CALLBACK, address(printed), CALLBACK, address(printed), 0];
    for properties in [&no_function[..], &twice] {
        create_fails!(
            CL_INVALID_PROPERTY,
            clCreateContext(properties.as_ptr(), 1, &plain.device, None, null_mut())
        );
    }
    // Without the function user data is nobody's.
    let size = [SIZE, 4096, 0];
    create_fails!(
        CL_INVALID_VALUE,
        clCreateContext(size.as_ptr(), 1, &plain.device, None, user_data(1))
    );
}
