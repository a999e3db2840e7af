//! Declares conversions to integers and some image functions under other names, for LLVM's own
//! SPIR-V target.
//!
//! That target takes `convert_int(char)` for an unsigned operand, `convert_uint(uchar)` for a
//! signed one, and makes the same instruction of `convert_char_sat` for `int` and `uint`;
//! `vloada_half3` loses its padding. It makes one instruction of `read_imagei` and `read_imageui`,
//! and returns channel data types counted from zero. Functions that it does not know stay calls,
//! and their mangled names contain the types: the reader of `spirv-lowering` reads
//! `pumice_convert_int` and its like from there. So a prelude declares those and defines the
//! built-in names as macros. Only what a source uses is declared, as far as a scan can find it.
//!
//! No compiler makes valid SPIR-V of CLK_NULL_RESERVE_ID, which is a cast of a pointer in their
//! headers: a function returns it. Nor is NAN a constant there, which OpenCL C says it is. As a
//! built-in of OpenCL C 2.0 clang does not know `is_valid_reserve_id`.

use super::{group_functions, intel_subgroups};
use crate::quirks::{Quirk, Quirks};
use std::collections::BTreeSet;
use std::fmt::Write;

const INTEGERS: [&str; 8] = [
    "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong",
];
const SIZES: [&str; 6] = ["", "2", "3", "4", "8", "16"];
const ROUNDINGS: [&str; 5] = ["", "_rte", "_rtz", "_rtp", "_rtn"];

/// A conversion function: type, vector size, rest of the name.
type Conversion = (&'static str, &'static str, String);

/// The functions of a source that need a declaration.
#[derive(Default)]
pub struct Conversions {
    used: BTreeSet<Conversion>,
    /// `async_work_group_copy_2D2D`, `_3D3D` and `async_work_group_copy_fence`.
    copies: bool,
    /// `vloada_half3`.
    loads: bool,
    /// Signed integer texels, channel data types.
    images: bool,
    /// Work-group functions of cl_khr_work_group_uniform_arithmetic.
    groups: bool,
    /// Functions of cl_intel_subgroups.
    intel_subgroups: bool,
    /// Clocks, which compilers without a SPIR-V target of their own do not know.
    clocks: bool,
    /// Functions of cl_intel_bfloat16_conversions.
    bfloat16: bool,
    /// Set for the null reservation, and the test for one.
    reservations: bool,
    /// NAN.
    nan: bool,
    /// Set if names are put together by macros, or text is included that is not at hand.
    any: bool,
}

impl Conversions {
    /// Records the use of a text that is not available.
    pub fn unknown(&mut self) {
        self.any = true;
    }

    /// Keeps only the parts that a compiler with these quirks needs.
    pub fn keep(&mut self, quirks: Quirks) {
        self.spell_out();
        if !quirks.has(Quirk::ConfusedConversions) {
            self.used.clear();
        }
        self.loads &= quirks.has(Quirk::PaddedHalves);
        self.images &= quirks.has(Quirk::ConfusedImages);
        self.reservations &= quirks.has(Quirk::NullReservations);
        self.nan &= quirks.has(Quirk::VariableNan);
        let functions = quirks.has(Quirk::UnknownFunctions);
        self.groups &= functions;
        self.copies &= functions;
        self.intel_subgroups &= functions;
        self.clocks &= functions;
        self.bfloat16 &= functions;
    }

    /// Declares everything if the used functions are unknown.
    fn spell_out(&mut self) {
        if !std::mem::take(&mut self.any) {
            return;
        }
        self.used = all().collect();
        self.copies = true;
        self.loads = true;
        self.images = true;
        self.groups = true;
        self.intel_subgroups = true;
        self.clocks = true;
        self.nan = true;
        self.bfloat16 = true;
        self.reservations = true;
    }

    /// Finds the conversions in a text.
    pub fn scan(&mut self, text: &str) {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        self.copies |= text.contains("async_work_group_copy_");
        self.loads |= text.contains("vloada_half");
        self.images |= IMAGE_NAMES.iter().any(|name| text.contains(name))
            || [
                "read_image##",
                "write_image##",
                "read_image ##",
                "write_image ##",
            ]
            .iter()
            .any(|name| text.contains(name));
        self.intel_subgroups |= text.contains("intel_sub_group_");
        self.clocks |= text.contains("clock_read_");
        self.nan |= text.contains("NAN");
        self.bfloat16 |= text.contains("bfloat16");
        self.reservations |=
            text.contains(NULL_RESERVATION) || text.contains("is_valid_reserve_id");
        self.groups |= text.contains("work_group_reduce_") || text.contains("work_group_scan_");
        for (at, prefix) in text.match_indices("convert_") {
            if text[..at].ends_with(word) {
                continue;
            }
            let rest = &text[at + prefix.len()..];
            let (name, after) = rest.split_at(rest.find(|c| !word(c)).unwrap_or(rest.len()));
            if after.trim_start().starts_with("##") {
                self.any = true;
            } else if let Some(conversion) = parse(name) {
                self.used.insert(conversion);
            }
        }
    }

    /// Returns the text to precede the source, if any is needed. Line numbers start again at 1
    /// after it.
    pub fn prelude(mut self) -> Option<String> {
        self.spell_out();
        let named = [
            self.copies,
            self.loads,
            self.images,
            self.groups,
            self.intel_subgroups,
            self.clocks,
            self.bfloat16,
            self.nan,
            self.reservations,
        ];
        if self.used.is_empty() && !named.contains(&true) {
            return None;
        }
        let mut text = String::new();
        // Writing to a string cannot fail.
        write_prelude(&mut text, &self).ok()?;
        Some(text)
    }
}

/// Parses a name without `convert_`, if its result is of an integer type.
fn parse(name: &str) -> Option<Conversion> {
    let (ty, rest) = INTEGERS
        .iter()
        .find_map(|ty| Some((*ty, name.strip_prefix(ty)?)))?;
    let digits = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let size = SIZES.iter().find(|size| **size == &rest[..digits])?;
    let suffix = &rest[digits..];
    let rounding = suffix.strip_prefix("_sat").unwrap_or(suffix);
    ROUNDINGS
        .contains(&rounding)
        .then(|| (ty, *size, suffix.to_owned()))
}

fn all() -> impl Iterator<Item = Conversion> {
    let suffixes = || {
        ROUNDINGS
            .iter()
            .flat_map(|r| [(*r).to_owned(), format!("_sat{r}")])
    };
    INTEGERS.into_iter().flat_map(move |ty| {
        SIZES
            .into_iter()
            .flat_map(move |size| suffixes().map(move |suffix| (ty, size, suffix)))
    })
}

fn write_prelude(out: &mut String, uses: &Conversions) -> std::fmt::Result {
    let used = &uses.used;
    writeln!(
        out,
        "#define PUMICE_F(D,F,S) D __attribute__((overloadable,const)) pumice_##F(S);"
    )?;
    let extensions = [("cl_khr_fp64", "D", "double"), ("cl_khr_fp16", "H", "half")];
    for (extension, name, ty) in extensions {
        writeln!(
            out,
            "#ifdef {extension}\n#define PUMICE_{name}(D,F,n) PUMICE_F(D,F,{ty}##n)"
        )?;
        writeln!(out, "#pragma OPENCL EXTENSION {extension} : enable")?;
        writeln!(out, "#else\n#define PUMICE_{name}(D,F,n)\n#endif")?;
    }
    write!(out, "#define PUMICE_S(D,F,n)")?;
    for from in INTEGERS.iter().chain(&["float"]) {
        write!(out, " PUMICE_F(D,F,{from}##n)")?;
    }
    writeln!(out, " PUMICE_D(D,F,n) PUMICE_H(D,F,n)")?;
    for (ty, size, suffix) in used {
        writeln!(
            out,
            "PUMICE_S({ty}{size},convert_{ty}{size}{suffix},{size})"
        )?;
    }
    if uses.loads {
        write_loads(out)?;
    }
    if uses.images {
        write_images(out)?;
    }
    if uses.copies {
        group_functions::write_copies(out)?;
    }
    if uses.groups {
        group_functions::write(out)?;
    }
    if uses.intel_subgroups {
        intel_subgroups::write(out)?;
    }
    if uses.clocks {
        write_clocks(out)?;
    }
    if uses.bfloat16 {
        write_bfloat16(out)?;
    }
    if uses.nan {
        writeln!(out, "#undef NAN\n#define NAN __builtin_nanf(\"\")")?;
    }
    if uses.reservations {
        write_reservations(out)?;
    }
    writeln!(
        out,
        "#ifdef cl_khr_fp16\n#pragma OPENCL EXTENSION cl_khr_fp16 : disable\n#endif"
    )?;
    for (ty, size, suffix) in used {
        let name = format!("convert_{ty}{size}{suffix}");
        writeln!(out, "#define {name} pumice_{name}")?;
    }
    writeln!(out, "#line 1 \"<stdin>\"")
}

/// Writes the functions of cl_khr_kernel_clock, for compilers too old for it.
fn write_clocks(out: &mut String) -> std::fmt::Result {
    writeln!(out, "#if __clang_major__ < 20")?;
    for scope in ["device", "work_group", "sub_group"] {
        writeln!(out, "#ifdef __opencl_c_kernel_clock_scope_{scope}")?;
        writeln!(out, "ulong clock_read_{scope}(void);")?;
        writeln!(out, "uint2 clock_read_hilo_{scope}(void);\n#endif")?;
    }
    writeln!(out, "#endif")
}

/// Writes the functions of cl_intel_bfloat16_conversions.
fn write_bfloat16(out: &mut String) -> std::fmt::Result {
    const FUNCTION: &str = "__attribute__((overloadable,const))";
    for n in SIZES {
        writeln!(
            out,
            "ushort{n} {FUNCTION} intel_convert_bfloat16{n}_as_ushort{n}(float{n});"
        )?;
        writeln!(
            out,
            "float{n} {FUNCTION} intel_convert_as_bfloat16{n}_float{n}(ushort{n});"
        )?;
    }
    Ok(())
}

const NULL_RESERVATION: &str = "CLK_NULL_RESERVE_ID";

fn write_reservations(out: &mut String) -> std::fmt::Result {
    writeln!(
        out,
        "#if defined(__opencl_c_pipes) || __OPENCL_C_VERSION__ == 200"
    )?;
    writeln!(out, "reserve_id_t pumice_null_reserve_id(void);")?;
    writeln!(out, "#undef {NULL_RESERVATION}")?;
    writeln!(
        out,
        "#define {NULL_RESERVATION} pumice_null_reserve_id()\n#endif"
    )?;
    writeln!(
        out,
        "#if __OPENCL_C_VERSION__ == 200\nbool __attribute__((overloadable,const)) is_valid_reserve_id(reserve_id_t);\n#endif"
    )
}

fn write_loads(out: &mut String) -> std::fmt::Result {
    let declare = |out: &mut String, space: &str| {
        writeln!(
            out,
            "float3 __attribute__((overloadable)) pumice_vloada_half3(size_t, const {space} half*);"
        )
    };
    for space in ["__global", "__local", "__private", "__constant"] {
        declare(out, space)?;
    }
    writeln!(
        out,
        "#if defined(__opencl_c_generic_address_space) || __OPENCL_C_VERSION__ == 200"
    )?;
    declare(out, "__generic")?;
    writeln!(out, "#endif\n#define vloada_half3 pumice_vloada_half3")
}

const IMAGE_NAMES: [&str; 3] = ["read_imagei", "write_imagei", "get_image_channel_data_type"];

/// The image types with the sizes of their coordinates: of integers, and of floats where a sampler
/// can read them.
const IMAGES: [(&str, &str, bool); 6] = [
    ("image1d", "", true),
    ("image1d_buffer", "", false),
    ("image1d_array", "2", true),
    ("image2d", "2", true),
    ("image2d_array", "4", true),
    ("image3d", "4", true),
];

fn write_images(out: &mut String) -> std::fmt::Result {
    const READ: &str = "__attribute__((overloadable,pure)) pumice_read_imagei";
    const WRITE: &str = "void __attribute__((overloadable)) pumice_write_imagei";
    const QUERY: &str =
        "int __attribute__((overloadable,const)) pumice_get_image_channel_data_type";
    writeln!(out, "#ifdef __IMAGE_SUPPORT__")?;
    writeln!(
        out,
        "#ifdef cl_khr_3d_image_writes\n#pragma OPENCL EXTENSION cl_khr_3d_image_writes : enable\n#endif"
    )?;
    let depth = [
        ("image2d_depth", "", false),
        ("image2d_array_depth", "", false),
    ];
    for (access, guard) in [
        ("__read_only", "1"),
        ("__write_only", "1"),
        (
            "__read_write",
            "defined(__opencl_c_read_write_images) || __OPENCL_C_VERSION__ == 200",
        ),
    ] {
        writeln!(out, "#if {guard}")?;
        for (image, size, sampled) in IMAGES {
            let ty = format!("{access} {image}_t");
            let writes_3d = image == "image3d" && access != "__read_only";
            if writes_3d {
                writeln!(
                    out,
                    "#if defined(cl_khr_3d_image_writes) || defined(__opencl_c_3d_image_writes)"
                )?;
            }
            if access != "__write_only" {
                writeln!(out, "int4 {READ}({ty}, int{size});")?;
            }
            if access == "__read_only" && sampled {
                writeln!(out, "int4 {READ}({ty}, sampler_t, int{size});")?;
                writeln!(out, "int4 {READ}({ty}, sampler_t, float{size});")?;
            }
            if access != "__read_only" {
                writeln!(out, "{WRITE}({ty}, int{size}, int4);")?;
            }
            writeln!(out, "{QUERY}({ty});")?;
            if writes_3d {
                writeln!(out, "#endif")?;
            }
        }
        writeln!(out, "#ifdef cl_khr_depth_images")?;
        writeln!(out, "#pragma OPENCL EXTENSION cl_khr_depth_images : enable")?;
        for (image, ..) in depth {
            writeln!(out, "{QUERY}({access} {image}_t);")?;
        }
        writeln!(out, "#endif\n#endif")?;
    }
    for name in IMAGE_NAMES {
        writeln!(out, "#define {name} pumice_{name}")?;
    }
    writeln!(out, "#endif")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quirks::Vendor;

    fn prelude(source: &str) -> Option<String> {
        let mut conversions = Conversions::default();
        conversions.scan(source);
        conversions.prelude()
    }

    #[test]
    fn only_what_is_used() {
        assert_eq!(
            prelude("my_convert_int(x); convert_float4(y); convert_mine(z);"),
            None
        );
        let text = prelude("convert_uchar16_sat_rte (x)").unwrap_or_default();
        assert!(text.contains("PUMICE_S(uchar16,convert_uchar16_sat_rte,16)\n"));
        assert_eq!(text.matches("#define convert_").count(), 1);
        assert!(text.ends_with("#line 1 \"<stdin>\"\n"));
    }

    #[test]
    fn pasted_names_may_be_any() {
        let text = prelude("#define C(t) convert_ ## t ## _sat").unwrap_or_default();
        assert_eq!(text.matches("#define convert_").count(), 8 * 6 * 10);
    }

    #[test]
    fn unknown_functions_alone() {
        let mut conversions = Conversions::default();
        conversions.scan(
            "convert_int(x); clock_read_device(); async_work_group_copy_2D2D(a); read_imagei(a)",
        );
        conversions.keep(Quirks::of(Vendor::Translator, [15, 0, 0]));
        let text = conversions.prelude().unwrap_or_default();
        assert!(!text.contains("define convert_int") && !text.contains("read_imagei"));
        assert!(text.contains("ulong clock_read_device(void);"));
        assert!(text.contains("event_t async_work_group_copy_2D2D("));
    }

    #[test]
    fn null_reservations() {
        let text = prelude("r = CLK_NULL_RESERVE_ID;").unwrap_or_default();
        assert!(text.contains("#define CLK_NULL_RESERVE_ID pumice_null_reserve_id()\n"));
        assert!(text.contains("#undef CLK_NULL_RESERVE_ID\n"));
        // That one does not bring everything else with it.
        assert!(!text.contains("pumice_read_imagei") && !text.contains("pumice_vloada_half3"));
        let text = prelude("if (is_valid_reserve_id(r)) {}").unwrap_or_default();
        assert!(text.contains(" is_valid_reserve_id(reserve_id_t);\n"));
    }

    #[test]
    fn image_functions() {
        assert_eq!(prelude("read_imagef(a, b); read_imageui(a, b);"), None);
        let text = prelude("read_imagei(a, b)").unwrap_or_default();
        assert!(text.contains("#define read_imagei pumice_read_imagei\n"));
        assert!(text.contains("(__read_only image1d_buffer_t, int);"));
        assert!(prelude("read_image##t(a, b)").is_some());
        if let Some(path) = std::env::var_os("PUMICE_PRELUDE_OUT") {
            let _ = std::fs::write(path, &text);
        }
    }
}
