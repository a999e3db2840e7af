//! Group functions that clang does not know, for the prelude of a source that uses them:
//! declarations of those that stay calls of functions with mangled names, which the reader of
//! `spirv-lowering` translates, and definitions.

use std::fmt::Write;

/// The template that [`write_copies`] writes once for each direction.
const COPIES: &str = include_str!("extended_copies.cl");

/// The definition of the fence between asynchronous copies.
const FENCE: &str = "static inline __attribute__((convergent)) void \
    async_work_group_copy_fence(cl_mem_fence_flags flags) { barrier(flags); }";

/// Writes the functions of cl_khr_work_group_uniform_arithmetic, which clang does not declare.
pub fn write(out: &mut String) -> std::fmt::Result {
    const INTEGERS: &[&str] = &["int", "uint", "long", "ulong"];
    let operations: [(&str, &[&str]); 7] = [
        ("mul", &["int", "uint", "long", "ulong", "float"]),
        ("and", INTEGERS),
        ("or", INTEGERS),
        ("xor", INTEGERS),
        ("logical_and", &["int"]),
        ("logical_or", &["int"]),
        ("logical_xor", &["int"]),
    ];
    let mut declare = |guard: Option<&str>, name: &str, types: &[&str]| -> std::fmt::Result {
        if let Some(guard) = guard {
            writeln!(out, "#ifdef {guard}")?;
        }
        for kind in ["reduce", "scan_inclusive", "scan_exclusive"] {
            for ty in types {
                write!(
                    out,
                    "{ty} __attribute__((overloadable,convergent)) pumice_work_group_{kind}_{name}({ty}); "
                )?;
            }
            writeln!(out)?;
            if guard.is_none() {
                let name = format!("work_group_{kind}_{name}");
                writeln!(out, "#define {name} pumice_{name}")?;
            }
        }
        if guard.is_some() {
            writeln!(out, "#endif")?;
        }
        Ok(())
    };
    for (name, types) in operations {
        declare(None, name, types)?;
    }
    declare(Some("cl_khr_fp64"), "mul", &["double"])?;
    declare(Some("cl_khr_fp16"), "mul", &["half"])
}

/// Writes the functions of cl_khr_extended_async_copies and cl_khr_async_work_group_copy_fence. Every
/// work-item copies some of the elements; waiting for the event is a barrier, as for the other
/// asynchronous copies, and so is the fence.
pub fn write_copies(out: &mut String) -> std::fmt::Result {
    writeln!(out, "{FENCE}")?;
    for (to, from) in [("__local", "__global"), ("__global", "__local")] {
        writeln!(
            out,
            "#define PUMICE_TO {to}\n#define PUMICE_FROM {from}\n{COPIES}\n#undef PUMICE_TO\n#undef PUMICE_FROM"
        )?;
    }
    Ok(())
}
