//! Tests of environment variables, in child processes: this test executable again.

use pumice_tests::sys::*;
use pumice_tests::{call, good_child, info_text, job, ok, Setup};
use std::process::{Command, Output};
use std::ptr::null_mut;

fn child(variables: &[(&str, &str)]) -> Output {
    good_child("environment::inner", "list devices", variables)
}

fn devices(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .filter_map(|line| line.split_once("device: "))
        .map(|(_, name)| name.to_owned())
        .collect()
}

/// Not a test of its own: the child of the others. Lists the devices.
#[test]
fn inner() {
    if job().is_none() {
        return;
    }
    let mut platform = null_mut();
    ok!(clGetPlatformIDs(1, &mut platform, null_mut()));
    assert_eq!(
        info_text!(clGetPlatformInfo(platform), CL_PLATFORM_NAME),
        "Pumice"
    );
    assert!(info_text!(clGetPlatformInfo(platform), CL_PLATFORM_EXTENSIONS).contains("cl_khr_icd"));
    let mut count = 0;
    if call!(clGetDeviceIDs(
        platform,
        CL_DEVICE_TYPE_ALL,
        0,
        null_mut(),
        &mut count
    )) != CL_SUCCESS
    {
        return;
    }
    let mut devices = vec![null_mut(); count as usize];
    ok!(clGetDeviceIDs(
        platform,
        CL_DEVICE_TYPE_ALL,
        count,
        devices.as_mut_ptr(),
        null_mut()
    ));
    for device in devices {
        println!(
            "device: {}",
            info_text!(clGetDeviceInfo(device), CL_DEVICE_NAME)
        );
    }
}

#[test]
fn devices_are_selected() {
    let setup = Setup::new();
    let name = info_text!(clGetDeviceInfo(setup.device), CL_DEVICE_NAME);
    let offered = devices(&child(&[]));
    assert!(offered.contains(&name), "{name:?} in {offered:?}");
    let part: String = name.chars().take(4).collect();
    assert!(devices(&child(&[("PUMICE_DEVICES", &part.to_uppercase())])).contains(&name));
    // Numbers count all devices.
    let first = devices(&child(&[("PUMICE_DEVICES", "0")]));
    assert_eq!(first.len(), 1);
    assert_eq!(devices(&child(&[("PUMICE_DEVICES", " 0 , 0")])), first);
}

/// The processor is always a device, without Vulkan too; Vulkan in software is one only by name.
#[test]
fn the_processor() {
    let none = [
        ("VK_ICD_FILENAMES", "/nonexistent.json"),
        ("VK_DRIVER_FILES", "/nonexistent.json"),
    ];
    let with = |wanted: &'static str| {
        let mut variables = none.to_vec();
        variables.push(("PUMICE_DEVICES", wanted));
        devices(&child(&variables))
    };
    let own = with("");
    assert_eq!(own.len(), 1);
    assert_eq!(with("cpu"), own);
    assert_eq!(with("CPU, cpu"), own);
    let all = devices(&child(&[("PUMICE_DEVICES", "")]));
    assert_eq!(all.last(), own.last());
    assert!(!all.iter().any(|name| name.contains("llvmpipe")), "{all:?}");
}

/// Without a device the platform is there, and the log says why it is empty.
#[test]
fn no_device() {
    let output = child(&[("PUMICE_DEVICES", "no such thing"), ("PUMICE_LOG", "warn")]);
    assert!(devices(&output).is_empty());
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(log.contains("no such thing"), "{log}");
}

#[test]
fn calls_are_traced() {
    let output = child(&[("PUMICE_LOG", "trace")]);
    let log = String::from_utf8_lossy(&output.stderr);
    let line = log
        .lines()
        .find(|line| line.contains("clGetDeviceIDs("))
        .unwrap_or_else(|| panic!("{log}"));
    assert!(
        line.contains("num_entries=0") && line.contains(" = ok") && line.contains(" us]"),
        "{line}"
    );
    let quiet = child(&[("PUMICE_LOG", "off")]);
    assert!(
        quiet.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&quiet.stderr)
    );
}

#[test]
fn any_number_of_queues() {
    for count in ["16", "2", "1"] {
        let output = Command::new(std::env::current_exe().expect("this executable"))
            .args(["queues::", "ordering::", "events::"])
            .env("PUMICE_QUEUES", count)
            .output()
            .expect("the child runs");
        let [text, errors] =
            [&output.stdout, &output.stderr].map(|out| String::from_utf8_lossy(out));
        assert!(
            output.status.success(),
            "{count} queues: {}\n{text}\n{errors}",
            output.status
        );
    }
}
