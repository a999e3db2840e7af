//! `PUMICE_TRACE`: what a small program leaves in the file, in child processes, of which one is killed.

use pumice_tests::json::Json;
use pumice_tests::sys::*;
use pumice_tests::{call, create, good_child, job, ok, Setup};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::time::Duration;

const SOURCE: &str = "kernel void doubled(global int *p) { p[get_global_id(0)] *= 2; }";
/// The clock of a GPU is known so well, in microseconds.
const SLACK: f64 = 500.0;

/// Not a test of its own: the child of the others.
#[test]
fn inner() {
    let Some(job) = job() else { return };
    let setup = Setup::new();
    let kernel = setup.kernel_of(SOURCE, "doubled");
    let buffer = setup.buffer_of(&[1i32; 64]);
    kernel.set_buffer(0, &buffer);
    setup.enqueue(&kernel, &[64], Some(&[8]));
    let mut event = null_mut();
    ok!(clEnqueueMarkerWithWaitList(
        setup.queue.0,
        0,
        null(),
        &mut event
    ));
    ok!(clFinish(setup.queue.0));
    // The application has not asked for times.
    let mut time = 0u64;
    assert_eq!(
        call!(clGetEventProfilingInfo(
            event,
            CL_PROFILING_COMMAND_END,
            8,
            (&raw mut time).cast(),
            null_mut()
        )),
        CL_PROFILING_INFO_NOT_AVAILABLE
    );
    ok!(clReleaseEvent(event));
    assert_eq!(setup.read::<i32>(&buffer, 64), [2; 64]);
    // A command that fails notifies, too.
    let failed = create!(clCreateUserEvent(setup.context.0));
    ok!(clEnqueueMarkerWithWaitList(
        setup.queue.0,
        1,
        &failed,
        &mut event
    ));
    ok!(clSetUserEventStatus(failed, -7));
    assert_ne!(call!(clWaitForEvents(1, &event)), CL_SUCCESS);
    ok!(clReleaseEvent(event));
    ok!(clReleaseEvent(failed));
    if job == "is killed" {
        std::thread::sleep(Duration::from_millis(300));
        println!("written");
        // SAFETY: it ends this process.
        #[cfg(unix)]
        unsafe {
            libc::kill(libc::getpid(), libc::SIGKILL)
        };
        // Nothing that was registered for the end is called here either.
        #[cfg(not(unix))]
        std::process::abort();
    }
}

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("pumice-timeline-{name}-{}", std::process::id()))
}

fn events(path: &Path) -> Vec<Json> {
    let text = std::fs::read_to_string(path).expect("a file");
    let whole = Json::parse(&text).unwrap_or_else(|why| panic!("{why} in {text}"));
    let events = whole.get("traceEvents").expect("events").list().to_vec();
    for event in &events {
        let phase = event.text("ph");
        assert!(["X", "M", "s", "f"].contains(&phase), "{event:?}");
        assert!(phase == "M" || event.number("ts") > 0.0, "{event:?}");
        assert!(phase != "X" || event.number("dur") >= 0.0, "{event:?}");
    }
    std::fs::remove_file(path).expect("the file");
    events
}

fn slices<'a>(events: &'a [Json], category: &str, name: &str) -> Vec<&'a Json> {
    let wanted = |event: &&Json| {
        event.text("ph") == "X"
            && event.text("cat") == category
            && event.text("name").starts_with(name)
    };
    events.iter().filter(wanted).collect()
}

fn span(event: &Json) -> (f64, f64) {
    (event.number("ts"), event.number("ts") + event.number("dur"))
}

#[test]
fn a_small_program() {
    let path = file("whole");
    let variables = [
        ("PUMICE_TRACE", path.as_path()),
        ("PUMICE_CACHE_DIR", Path::new("")),
    ];
    good_child("timelines::inner", "runs", &variables);
    let events = events(&path);

    let [build] = slices(&events, "call", "clBuildProgram")[..] else {
        panic!("one build: {events:?}");
    };
    let compilers = slices(&events, "compile", "clang, OpenCL C");
    assert!(!compilers.is_empty());
    for compiler in &compilers {
        assert_eq!(compiler.number("tid"), build.number("tid"));
        assert!(span(compiler).0 >= span(build).0 && span(compiler).1 <= span(build).1);
    }
    assert!(!slices(&events, "compile", "lower doubled").is_empty());

    let [call] = slices(&events, "call", "clEnqueueNDRangeKernel")[..] else {
        panic!("one launch: {events:?}");
    };
    assert!(call
        .get("args")
        .expect("arguments")
        .text("arguments")
        .contains("global_work_size="));
    let [launch] = slices(&events, "command", "doubled")[..] else {
        panic!("one launch on the device: {events:?}");
    };
    let finish = slices(&events, "call", "clFinish")[0];
    assert!(span(launch).1 > span(launch).0, "{launch:?}");
    assert!(span(launch).0 > span(call).0 - SLACK, "{launch:?} {call:?}");
    assert!(
        span(launch).1 < span(finish).1 + SLACK,
        "{launch:?} {finish:?}"
    );
    let arguments = launch.get("args").expect("arguments");
    // The local size is the device's choice.
    let details = arguments.text("details");
    assert!(
        details.starts_with("global size [64], local size [")
            && details.ends_with("], 1 dispatches"),
        "{details}"
    );
    assert_eq!(arguments.text("status"), "complete");
    assert_ne!(launch.number("pid"), call.number("pid"));
    // A viewer takes a thread 0 for the process's main thread.
    assert!(launch.number("tid") > 0.0, "{launch:?}");

    // The arrow from the call to the launch.
    let end = |event: &&Json| event.text("ph") == "f" && event.number("ts") == launch.number("ts");
    let end = events.iter().find(end).expect("an arrow's end");
    let start = |event: &&Json| event.text("ph") == "s" && event.number("id") == end.number("id");
    let start = events.iter().find(start).expect("its start").number("ts");
    assert!(start >= span(call).0 && start <= span(call).1);

    // The buffer was read, and the last marker failed.
    assert_eq!(slices(&events, "command", "read").len(), 1);
    let markers = slices(&events, "command", "marker");
    let status = |marker: &&Json| {
        marker
            .get("args")
            .expect("arguments")
            .text("status")
            .to_owned()
    };
    let status: Vec<String> = markers.iter().map(status).collect();
    assert!(
        status.len() == 2 && status[0] == "complete" && status[1].starts_with("failed (-"),
        "{status:?}"
    );

    // Rows have names.
    for (name, process) in [
        ("thread_name", call),
        ("process_name", call),
        ("thread_name", launch),
        ("process_name", launch),
    ] {
        let named = |event: &&Json| {
            event.text("name") == name && event.number("pid") == process.number("pid")
        };
        let event = events.iter().find(named).expect(name);
        assert!(!event
            .get("args")
            .expect("arguments")
            .text("name")
            .is_empty());
    }
}

/// The file is whole although its process was killed, and has what came before.
#[test]
fn of_a_process_that_is_killed() {
    let path = file("killed");
    let output = std::process::Command::new(std::env::current_exe().expect("this executable"))
        .args([
            "timelines::inner",
            "--exact",
            "--nocapture",
            "--test-threads=1",
        ])
        .env("PUMICE_TESTS_CHILD", "is killed")
        .env("PUMICE_TRACE", &path)
        .output()
        .expect("a child");
    assert!(!output.status.success());
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("written"),
        "{output:?}"
    );
    let events = events(&path);
    assert_eq!(slices(&events, "command", "doubled").len(), 1);
    assert_eq!(slices(&events, "call", "clSetUserEventStatus").len(), 1);
}

/// `%p` gives each process a file of its own; a place that cannot be written to does no harm.
#[test]
fn files_by_process() {
    let path = file("of-%p");
    let output = good_child("timelines::inner", "runs", &[("PUMICE_TRACE", &path)]);
    drop(output);
    let dir = path.parent().expect("a directory");
    let first = "pumice-timeline-of-";
    let last = format!("-{}", std::process::id());
    let made = std::fs::read_dir(dir).expect("a directory").flatten();
    let made = made.map(|entry| entry.path()).find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(first) && name.ends_with(&last) && !name.contains('%')
    });
    assert!(!events(&made.expect("a file")).is_empty());
    let nowhere = Path::new("/nonexistent/file.json");
    let output = good_child("timelines::inner", "runs", &[("PUMICE_TRACE", nowhere)]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("PUMICE_TRACE: cannot write to"));
}
