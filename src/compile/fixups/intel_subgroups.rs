//! Declares the functions of cl_intel_subgroups and its `_char`, `_short` and `_long`, for the
//! prelude of a source that uses them: clang has them only in the header that it does without here.

use std::fmt::{Result, Write};

/// The sizes of vectors that shuffles take.
const VECTORS: &[&str] = &["", "2", "3", "4", "8", "16"];
/// The sizes of vectors in block reads and writes of 32 and 64 bits, and of fewer.
const WIDE: &[&str] = &["", "2", "4", "8"];
const NARROW: &[&str] = &["", "2", "4", "8", "16"];

/// Types and sizes that shuffles take, and the extension that adds them.
const SHUFFLES: &[(&str, &[&str], &[&str])] = &[
    ("cl_intel_subgroups", &["int", "uint", "float"], VECTORS),
    ("cl_intel_subgroups", &["long", "ulong"], &[""]),
    ("cl_khr_fp16", &["half"], &[""]),
    ("cl_khr_fp64", &["double"], &[""]),
    ("cl_intel_subgroups_char", &["char", "uchar"], VECTORS),
    ("cl_intel_subgroups_short", &["short", "ushort"], VECTORS),
];

/// Families of block functions: the end of their names, the type of elements, the sizes of vectors, and the extension that
/// adds them.
const BLOCKS: &[(&str, &str, &[&str], &str)] = &[
    ("", "uint", WIDE, "cl_intel_subgroups"),
    ("_ui", "uint", WIDE, "cl_intel_subgroups"),
    ("_uc", "uchar", NARROW, "cl_intel_subgroups_char"),
    ("_us", "ushort", NARROW, "cl_intel_subgroups_short"),
    ("_ul", "ulong", WIDE, "cl_intel_subgroups_long"),
];

/// Writes the declarations.
pub fn write(out: &mut String) -> Result {
    const FUNCTION: &str = "__attribute__((overloadable,convergent))";
    writeln!(out, "#ifdef cl_intel_subgroups")?;
    for (extension, types, sizes) in SHUFFLES {
        writeln!(out, "#ifdef {extension}")?;
        if extension.starts_with("cl_khr") {
            writeln!(out, "#pragma OPENCL EXTENSION {extension} : enable")?;
        }
        for size in *sizes {
            for ty in *types {
                let (ty, name) = (format!("{ty}{size}"), "intel_sub_group_shuffle");
                for (suffix, parameters) in [("", 1), ("_xor", 1), ("_down", 2), ("_up", 2)] {
                    write!(out, "{ty} {FUNCTION} {name}{suffix}(")?;
                    (0..parameters).try_for_each(|_| write!(out, "{ty}, "))?;
                    writeln!(out, "uint);")?;
                }
            }
        }
        writeln!(out, "#endif")?;
    }
    for (suffix, element, sizes, extension) in BLOCKS {
        writeln!(out, "#ifdef {extension}")?;
        for size in *sizes {
            let ty = format!("{element}{size}");
            let read = format!("{ty} {FUNCTION} intel_sub_group_block_read{suffix}{size}");
            let write = format!("void {FUNCTION} intel_sub_group_block_write{suffix}{size}");
            writeln!(out, "{read}(const __global {element}*);")?;
            writeln!(out, "{write}(__global {element}*, {ty});")?;
            writeln!(out, "#ifdef cl_intel_subgroup_local_block_io")?;
            writeln!(out, "{read}(const __local {element}*);")?;
            writeln!(out, "{write}(__local {element}*, {ty});\n#endif")?;
            writeln!(out, "#ifdef __IMAGE_SUPPORT__")?;
            writeln!(out, "{read}(__read_only image2d_t, int2);")?;
            writeln!(out, "{write}(__write_only image2d_t, int2, {ty});")?;
            writeln!(out, "#ifdef __opencl_c_read_write_images")?;
            writeln!(out, "{read}(__read_write image2d_t, int2);")?;
            writeln!(out, "{write}(__read_write image2d_t, int2, {ty});")?;
            writeln!(out, "#endif\n#endif")?;
        }
        writeln!(out, "#endif")?;
    }
    // The ones without the prefix take the same types (cl_khr_subgroup_extended_types).
    let kinds = ["reduce", "scan_exclusive", "scan_inclusive"];
    let operations = ["add", "min", "max"];
    let both = kinds
        .into_iter()
        .flat_map(|kind| operations.map(|op| format!("{kind}_{op}")));
    for name in both.chain(["broadcast".to_owned()]) {
        writeln!(out, "#define intel_sub_group_{name} sub_group_{name}")?;
    }
    writeln!(out, "#endif")
}
