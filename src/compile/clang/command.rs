//! Command lines of clang and llvm-spirv, and how one of them is run.

use super::toolchain::Toolchain;
use super::{process, FILE_NAME};
use std::path::Path;
use std::process::Command;

/// The arguments for input and output of a run of clang on OpenCL C.
pub const FROM_SOURCE: [&str; 7] = ["-o", "-", "-x", "cl", "-main-file-name", FILE_NAME, "-"];

/// The arguments for input and output of a run of clang on LLVM's IR.
pub const FROM_IR: [&str; 5] = ["-o", "-", "-x", "ir", "-"];

/// The options of LLVM's passes. Sinking equal stores of several branches into one leaves pointers
/// that are not known until run time, which keeps private arrays in memory. Loops of known length
/// that are too long to be unrolled whole are unrolled in part, up to 150 instructions: LLVM's
/// SPIR-V target does not request it, and no driver is known to do it.
pub const PASSES: [&str; 4] = [
    "-mllvm",
    "-sink-common-insts=false",
    "-mllvm",
    "-unroll-allow-partial",
];

/// The options that replace [`PASSES`]: no passes, and the definitions of `inline` functions that
/// inlining would have made superfluous.
pub const NO_PASSES: [&str; 2] = ["-disable-llvm-passes", "-fgnu89-inline"];

/// Returns the command of llvm-spirv that translates bitcode to SPIR-V.
pub fn translator(tool: &Path) -> Command {
    let mut translate = Command::new(tool);
    translate.args([
        // Optimised code may have integers of any width, which the translator then refuses, and we take it without passes.
        "--spirv-ext=+all,-SPV_INTEL_arbitrary_precision_integers",
        "--preserve-ocl-kernel-arg-type-metadata-through-string",
        "-o",
        "-",
        "-",
    ]);
    translate
}

/// Returns the command of clang for OpenCL C. `headers` is the directory of the headers that the
/// application passed.
pub fn clang_for_source(toolchain: &Toolchain, args: &[String], headers: Option<&Path>) -> Command {
    let mut clang = clang(toolchain);
    clang.args(["-fdeclare-opencl-builtins", "-finclude-default-header"]);
    if toolchain.llvm_spirv.is_none() {
        // Real programs rely on what older compilers only warned about.
        clang.arg("-Wno-error=incompatible-pointer-types");
    }
    if let Some(headers) = headers {
        clang.arg("-I").arg(headers);
    }
    clang.args(args);
    clang
}

/// Returns the command of clang with the arguments that OpenCL C and LLVM's IR have in common.
pub fn clang(toolchain: &Toolchain) -> Command {
    let mut clang = Command::new(&toolchain.clang);
    // As clang's own driver has it: memory goes with the process, and LLVM's code is not checked for errors of clang.
    clang.args(["-cc1", "-disable-free", "-disable-llvm-verifier"]);
    // Programs in use write words as pairs of shorts and read them as words; most drivers let them.
    clang.arg("-relaxed-aliasing");
    // A function of the program that has a name of C's library is not that of the library.
    clang.arg("-fno-builtin");
    // Contraction is on in OpenCL C. The other way to say so turns a * b + c into a call of fma, which then cannot be
    // distinguished from one that the program asked for and must be exact; this one marks both operations as contractible.
    clang.arg("-ffp-contract=fast");
    if toolchain.llvm_spirv.is_some() {
        clang.args(["-triple", "spir64", "-no-opaque-pointers"]);
    } else {
        clang.args(["-triple", "spirv64"]);
        // Some devices flush subnormal numbers: LLVM must not compare with 0.0 what the program compares as bits.
        clang.arg("-fdenormal-fp-math=dynamic,dynamic");
        // Otherwise a * b + c becomes a call of fma, which must round once and is slow where the device lacks it. This
        // way the instructions stay apart and say that they may be fused.
        clang.arg("-ffp-contract=fast-honor-pragmas");
    }
    clang
}

/// Runs a tool. Its diagnostics go to `log`, also those of a failure.
pub fn run_tool(command: Command, input: &[u8], log: &mut String) -> Result<Vec<u8>, ()> {
    let program = command.get_program().to_string_lossy().into_owned();
    match process::run(command, input) {
        Ok(finished) => {
            *log += &finished.diagnostics;
            if finished.success {
                Ok(finished.stdout)
            } else {
                Err(())
            }
        }
        Err(error) => {
            *log += &format!("cannot run {program}: {error}\n");
            Err(())
        }
    }
}
