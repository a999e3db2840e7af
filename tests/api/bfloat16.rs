//! cl_intel_bfloat16_conversions: bits of bfloat16 values to floats and back.

use crate::buffers::Random;
use pumice_tests::*;

/// Returns the bits of the bfloat16 nearest to a float, of two the even one; of a NaN a quiet one.
pub fn nearest(x: f32) -> u16 {
    if x.is_nan() {
        return (x.to_bits() >> 16) as u16 | 0x40;
    }
    let bits = u64::from(x.to_bits() & 0x7fff_ffff);
    let (below, rest) = (bits >> 16, bits & 0xffff);
    let up = rest > 0x8000 || rest == 0x8000 && below % 2 == 1;
    (below + u64::from(up)) as u16 | (x.to_bits() >> 16) as u16 & 0x8000
}

/// Floats between two bfloat16 values, at their middle and beside it, with signs and exponents of all kinds.
fn floats() -> Vec<f32> {
    let mut random = Random(16);
    let mut floats = Vec::new();
    for upper in [
        0, 1, 2, 0x7f, 0x80, 0x3f80, 0x4049, 0x7f7e, 0x7f7f, 0x7f80, 0x7f81, 0x7fc1,
    ] {
        for lower in [0u32, 1, 0x7fff, 0x8000, 0x8001, 0xffff] {
            let bits = upper << 16 | lower;
            floats.extend([bits, bits | 1 << 31].map(f32::from_bits));
        }
    }
    while floats.len() % 768 != 0 {
        let bits = random.next(1 << 16) << 16 | random.next(1 << 16);
        floats.push(f32::from_bits(bits as u32));
    }
    floats
}

#[test]
fn conversions() {
    let setup = Setup::new();
    let floats = floats();
    let mut source = String::from(
        "#ifndef cl_intel_bfloat16_conversions
         #error no macro
         #endif\n",
    );
    for n in ["", "2", "3", "4", "8", "16"] {
        let (load, store) = match n {
            "" => ("in[i]".to_owned(), "out[i] = v, back[i] = w".to_owned()),
            _ => (
                format!("vload{n}(i, in)"),
                format!("vstore{n}(v, i, out), vstore{n}(w, i, back)"),
            ),
        };
        source += &format!(
            "kernel void f{n}(global const float *in, global ushort *out, global float *back) {{
                 size_t i = get_global_id(0);
                 ushort{n} v = intel_convert_bfloat16{n}_as_ushort{n}({load});
                 float{n} w = intel_convert_as_bfloat16{n}_float{n}(v);
                 {store};
             }}\n"
        );
    }
    let program = setup.build(&source);
    for n in [1, 2, 3, 4, 8, 16] {
        let name = match n {
            1 => "f".to_owned(),
            n => format!("f{n}"),
        };
        let kernel = setup.kernel(&program, &name);
        let (from, out) = (setup.buffer_of(&floats), setup.buffer(floats.len() * 2));
        let back = setup.buffer(floats.len() * 4);
        kernel.set_buffer(0, &from).set_buffer(1, &out);
        kernel.set_buffer(2, &back);
        setup.run(&kernel, &[floats.len() / n], None);
        let got = setup.read::<u16>(&out, floats.len());
        let back = setup.read::<u32>(&back, floats.len());
        for ((&x, got), back) in floats.iter().zip(got).zip(back) {
            let expected = nearest(x);
            assert_eq!(got, expected, "{n}: {x:e}, {:#x}", x.to_bits());
            assert_eq!(back, u32::from(expected) << 16, "{n}: {x:e}");
        }
    }
}
