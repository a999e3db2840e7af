//! KIR as text: what parses and verifies is printed, and parsed to the same text again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spirv_lowering::ir::parse::parse_module;
use spirv_lowering::ir::verify::verify_module;

fuzz_target!(|text: &str| {
    let Ok(module) = parse_module(text) else {
        return;
    };
    if verify_module(&module).is_err() {
        return;
    }
    let printed = module.to_string();
    let again = parse_module(&printed).expect("what is printed parses");
    assert_eq!(again.to_string(), printed);
});
