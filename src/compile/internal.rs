//! Makes the functions of a whole program internal, in LLVM's textual IR.
//!
//! OpenCL C functions are external unless they say `static`, so that a compiler has to keep all of them, optimised and
//! translated, although nobody but the kernels of the same source can call them once it is built and not compiled for
//! linking. A program that includes a library of functions consists mostly of such.
//!
//! Only lines whose whole beginning is known are changed: `define`, what an external or `inline` function may have before
//! its calling convention, and that convention.

/// Words that may stand between `define` and the calling convention of a function that becomes internal. Others say
/// visibility or linkage that this does not understand, and such a function is left as it is.
const BEFORE: [&str; 2] = ["dso_local", "available_externally"];

/// The same module with its functions internal. Kernels, declarations and variables stay what they are.
pub fn functions(ir: &str) -> String {
    let mut out = String::with_capacity(ir.len() + (ir.len() >> 8));
    for line in ir.split_inclusive('\n') {
        match after_linkage(line) {
            Some(rest) => {
                out.push_str("define internal ");
                out.push_str(rest);
            }
            None => out.push_str(line),
        }
    }
    out
}

/// Of the definition of a function that is to become internal, what follows its linkage.
fn after_linkage(line: &str) -> Option<&str> {
    let mut rest = line.strip_prefix("define ")?;
    loop {
        if rest.starts_with("spir_func ") {
            return Some(rest);
        }
        rest = BEFORE
            .iter()
            .find_map(|word| rest.strip_prefix(word)?.strip_prefix(' '))?;
    }
}

#[cfg(test)]
mod tests {
    use super::functions;

    #[test]
    fn only_functions_become_internal() {
        let ir = "define spir_func i32 @a() {\n\
                  define dso_local spir_func void @b() #0 {\n\
                  define available_externally spir_func void @c() {\n\
                  define internal spir_func void @d() {\n\
                  define hidden spir_func void @e() {\n\
                  define dso_local spir_kernel void @f() {\n\
                  declare spir_func void @g()\n\
                  \x20 call spir_func void @h()\n\
                  @s = constant [9 x i8] c\"\\0Adefine spir_func \"\n\
                  }";
        let expected = "define internal spir_func i32 @a() {\n\
                  define internal spir_func void @b() #0 {\n\
                  define internal spir_func void @c() {\n\
                  define internal spir_func void @d() {\n\
                  define hidden spir_func void @e() {\n\
                  define dso_local spir_kernel void @f() {\n\
                  declare spir_func void @g()\n\
                  \x20 call spir_func void @h()\n\
                  @s = constant [9 x i8] c\"\\0Adefine spir_func \"\n\
                  }";
        assert_eq!(functions(ir), expected);
        assert_eq!(functions(""), "");
    }
}
