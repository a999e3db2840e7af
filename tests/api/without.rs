//! The tests that only exist on Unix, by name, so that they are reported on other systems.

use pumice_tests::left_out;

macro_rules! left_out {
    ($($test:ident: $why:literal,)*) => {
        $(#[test]
        fn $test() {
            left_out($why);
        })*
    };
}

left_out! {
    children_are_refused_or_work: "Windows has no forks",
    children_of_a_driver_are_refused: "Windows has no forks",
    compilers_and_children: "Windows has no forks",
    headers_that_are_devices: "devices are no files of Windows",
    headers_that_are_pipes: "pipes are no files of Windows",
    headers_that_are_pipes_of_a_script: "pipes are no files of Windows",
    no_threads: "the test's own thread would not be made either, which ends it",
    small_files_only: "Windows does not limit the size of files",
    threads_that_are_cancelled: "threads of Windows are not cancelled",
}
