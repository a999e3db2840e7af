//! Build options of every call, and the options of clang that they become.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pumice_runtime::compile::language::Language;
use pumice_runtime::compile::options::{BuildCall, BuildOptions};

fuzz_target!(|text: &str| {
    // They come as strings of C.
    if text.contains('\0') {
        return;
    }
    let mut whole = BuildOptions::default();
    for call in [BuildCall::Build, BuildCall::Compile, BuildCall::Link] {
        if let Ok(options) = BuildOptions::parse(text, call) {
            let args = options.clang_args(&Language::default());
            assert!(args.iter().all(|arg| !arg.contains('\0')), "{args:?}");
            let _ = options.optimisation();
            whole.merge_link_options(&options);
        }
    }
});
