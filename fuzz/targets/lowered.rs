//! What the caches hold of the compiler: read, or refused; what is read is written as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spirv_lowering::Lowered;

fuzz_target!(|data: &[u8]| {
    if let Ok(lowered) = Lowered::from_bytes(data) {
        let again = Lowered::from_bytes(&lowered.to_bytes()).expect("what was written is read");
        assert!(again == lowered);
    }
});
