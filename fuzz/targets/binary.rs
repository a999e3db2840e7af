//! Program binaries: their checksum is put right, so that what stands behind it is read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pumice_runtime::backend::{cpu, Device};
use pumice_runtime::compile::executable::Executable;
use pumice_runtime::compile::store::binary::Binary;
use std::sync::{Arc, OnceLock};

static DEVICE: OnceLock<Arc<dyn Device>> = OnceLock::new();

fuzz_target!(|data: &[u8]| {
    let device = DEVICE.get_or_init(cpu::device);
    let read = |body: &[u8]| {
        let mut bytes = b"PUMICEb1".to_vec();
        bytes.extend_from_slice(blake3::hash(body).as_bytes());
        bytes.extend_from_slice(body);
        Binary::from_bytes(&bytes, &**device)
    };
    // For this device, whatever the data says: a section, with its length in eight bytes.
    let mut mine = 16u64.to_le_bytes().to_vec();
    mine.extend_from_slice(&device.caps().device_uuid);
    mine.extend_from_slice(data);
    for body in [data, &mine] {
        let Some(binary) = read(body) else { continue };
        let _ = binary.parsed_options();
        let again = binary.to_bytes(&**device);
        let again = Binary::from_bytes(&again, &**device).expect("what was written is read");
        assert_eq!(again.options, binary.options);
        assert_eq!(again.modules, binary.modules);
        if let Some((_, executable)) = &binary.executable {
            let _ = Executable::from_bytes(device, executable);
        }
    }
});
