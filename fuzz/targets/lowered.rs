//! Decodes cached results of the compiler: they are read or refused, and what is read encodes to
//! the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spirv_lowering::Lowered;

fuzz_target!(|data: &[u8]| {
    if let Ok(lowered) = Lowered::from_bytes(data) {
        let again = Lowered::from_bytes(&lowered.to_bytes()).expect("what was written is read");
        assert!(again == lowered);
    }
});
