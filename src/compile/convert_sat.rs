//! Saturating conversions under other names, for LLVM's own SPIR-V target.
//!
//! That target turns `convert_char_sat(x)` into the same instruction for `int` and for `uint` operands, so that the
//! meaning is lost. Functions that it does not know stay calls, and their mangled names tell the types: the reader
//! of `spirv-lowering` takes `pumice_convert_char_sat` and its like from there.

use std::fmt::Write;
use std::sync::OnceLock;

const INTEGERS: [&str; 8] = [
    "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong",
];
const SIZES: [&str; 6] = ["", "2", "3", "4", "8", "16"];
const ROUNDINGS: [&str; 5] = ["", "_rte", "_rtz", "_rtp", "_rtn"];

/// Does the source need the prelude?
pub fn is_needed(source: &str) -> bool {
    source.contains("_sat")
}

/// Text to stand before a source. Line numbers start anew after it.
pub fn prelude() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = write_prelude(&mut text);
        text
    })
}

fn write_prelude(out: &mut String) -> std::fmt::Result {
    writeln!(
        out,
        "#define PUMICE_F(D,R,S) D __attribute__((overloadable,const)) pumice_convert_##D##R(S);"
    )?;
    write!(out, "#define PUMICE_V(d,R,s)")?;
    for n in SIZES {
        let paste = if n.is_empty() { "" } else { "##" };
        write!(out, " PUMICE_F(d{paste}{n},R,s{paste}{n})")?;
    }
    writeln!(out)?;
    for (extension, name, ty) in [("cl_khr_fp64", "D", "double"), ("cl_khr_fp16", "H", "half")] {
        writeln!(
            out,
            "#ifdef {extension}\n#define PUMICE_{name}(d,R) PUMICE_V(d,R,{ty})"
        )?;
        writeln!(out, "#else\n#define PUMICE_{name}(d,R)\n#endif")?;
    }
    write!(out, "#define PUMICE_S(d,R)")?;
    for from in INTEGERS.iter().chain(&["float"]) {
        write!(out, " PUMICE_V(d,R,{from})")?;
    }
    writeln!(out, " PUMICE_D(d,R) PUMICE_H(d,R)")?;
    write!(out, "#define PUMICE_R(d)")?;
    for rounding in ROUNDINGS {
        write!(out, " PUMICE_S(d,_sat{rounding})")?;
    }
    writeln!(out)?;
    let half = |state| {
        format!("#ifdef cl_khr_fp16\n#pragma OPENCL EXTENSION cl_khr_fp16 : {state}\n#endif\n")
    };
    *out += &half("enable");
    for to in INTEGERS {
        write!(out, "PUMICE_R({to}) ")?;
    }
    writeln!(out)?;
    *out += &half("disable");
    for to in INTEGERS {
        for n in SIZES {
            for rounding in ROUNDINGS {
                let name = format!("convert_{to}{n}_sat{rounding}");
                writeln!(out, "#define {name} pumice_{name}")?;
            }
        }
    }
    writeln!(out, "#line 1 \"<stdin>\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prelude_names_every_conversion() {
        let text = prelude();
        for name in ["convert_char_sat", "convert_ulong16_sat_rtn"] {
            assert!(text.contains(&format!("#define {name} pumice_{name}\n")));
        }
        assert!(text.ends_with("#line 1 \"<stdin>\"\n"));
        assert!(is_needed("convert_int4_sat(x)"));
        assert!(!is_needed("convert_int4(x)"));
    }
}
