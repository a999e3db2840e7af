//! printf: any format with any arguments, and any buffer. What one record prints is bounded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spirv_lowering::ir::module::{PrintfArg, PrintfSite};
use spirv_lowering::ir::types::Type;
use spirv_lowering::printf::{records, render, render_all};

/// One argument, as a byte says.
fn arg(byte: u8, text: &[u8]) -> PrintfArg {
    let types = [
        Type::I8,
        Type::I16,
        Type::I32,
        Type::I64,
        Type::F16,
        Type::F32,
        Type::F64,
    ];
    let lanes = [1, 2, 3, 4, 8, 16];
    match byte {
        0..=199 => PrintfArg::Value {
            ty: types[usize::from(byte) % types.len()],
            lanes: lanes[usize::from(byte / 8) % lanes.len()],
        },
        200..=229 => PrintfArg::String,
        _ => PrintfArg::Text(text.iter().copied().take(usize::from(byte)).collect()),
    }
}

fuzz_target!(|input: (Vec<u8>, Vec<u8>, Vec<u8>)| {
    let (format, args, mut buffer) = input;
    let args = args.iter().take(32).map(|&b| arg(b, &format)).collect();
    let site = PrintfSite { format, args };
    let text = render(&site, &buffer);
    assert!(text.len() <= 64 << 20, "{} bytes of one record", text.len());
    if buffer.len() >= 8 {
        let used = buffer.len() as u32;
        buffer[..4].copy_from_slice(&used.to_le_bytes());
    }
    let _ = records(&buffer);
    render_all(&[site], &buffer, |_, _| {});
});
