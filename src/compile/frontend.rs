//! OpenCL C to OpenCL SPIR-V, by clang.

use super::options::{BuildOptions, ClStd};
use super::prelude::Conversions;
use super::toolchain::Toolchain;
use super::{arg_info, child, internal, left_out, own_target};
use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Counts changes of what this file makes of the same source and options: part of the cache key.
pub const REVISION: u32 = 13;

/// The language that a device offers: what clang is told of extensions and features.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Language {
    /// Names of the extensions with OpenCL C meaning (`cl_khr_fp64`, ...).
    pub extensions: Vec<&'static str>,
    /// Names of the optional features (`__opencl_c_fp64`, ...).
    pub features: Vec<&'static str>,
    /// The highest OpenCL version the device reports, times 100: `__OPENCL_VERSION__`.
    pub opencl_version: u32,
    /// The device has images: `__IMAGE_SUPPORT__`.
    pub images: bool,
}

impl Language {
    /// `-cl-ext=`: exactly the extensions and features of the device.
    pub fn cl_ext(&self, std: ClStd) -> String {
        let mut text = String::from("-cl-ext=-all");
        let features = if std >= ClStd::C30 {
            self.features.as_slice()
        } else {
            &[]
        };
        for name in self.extensions.iter().chain(features) {
            text += ",+";
            text += name;
        }
        text
    }

    /// Macro options (`-D`, `-U`) for what clang does not define by itself, or wrongly.
    pub fn macros(&self, std: ClStd) -> Vec<String> {
        let mut macros = vec![format!("-D__OPENCL_VERSION__={}", self.opencl_version)];
        if !self.images {
            macros.push("-U__IMAGE_SUPPORT__".into());
        }
        // clang knows some of the names and takes them by -cl-ext; for it the same definition again is no redefinition.
        // Those of an extension come with it in every version.
        let features = self
            .features
            .iter()
            .filter(|name| std >= ClStd::C30 || name.starts_with("__opencl_c_integer_dot_product"));
        macros.extend(
            self.extensions
                .iter()
                .chain(features)
                .map(|name| format!("-D{name}=1")),
        );
        if std == ClStd::C31 {
            macros.push("-DCL_VERSION_3_1=310".into());
            macros.push("-U__OPENCL_C_VERSION__".into());
            macros.push("-D__OPENCL_C_VERSION__=310".into());
        }
        macros
    }
}

/// A source file of a program, or a header given to clCompileProgram.
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    /// Name as `#include` gives it; may contain directories.
    pub name: &'a str,
    /// Text.
    pub text: &'a str,
}

/// What a compilation left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// SPIR-V words; None when there were errors.
    pub words: Option<Vec<u32>>,
    /// Everything the compiler said.
    pub log: String,
    /// Files read through `#include`, for the cache. None: unknown, do not cache.
    pub dependencies: Option<Vec<PathBuf>>,
}

fn failed(log: impl Into<String>) -> Compiled {
    Compiled {
        words: None,
        log: log.into(),
        dependencies: None,
    }
}

/// A source that clang has read and not optimised yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unoptimised {
    /// LLVM's textual IR.
    pub ir: String,
    /// The same with what the source says of the kernels' arguments, where that is wanted.
    pub described: Option<String>,
}

/// What the front end left of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontEnd {
    /// None when there were errors.
    pub unoptimised: Option<Unoptimised>,
    /// Everything the compiler said.
    pub log: String,
    /// As in [`Compiled`].
    pub dependencies: Option<Vec<PathBuf>>,
}

/// Compiles a source. `headers` are found before any directory.
pub fn compile(
    toolchain: &Toolchain,
    source: &str,
    headers: &[Header<'_>],
    options: &BuildOptions,
    language: &Language,
) -> Compiled {
    let job = match Job::new(toolchain, source, headers, options, language) {
        Ok(job) => job,
        Err(log) => return failed(log),
    };
    let whole = options.whole_program;
    let two_runs = whole && likely_has_a_library(source);
    let compiled = compile_in(&job, two_runs);
    match &compiled.words {
        Some(words) if whole && !two_runs && left_out::functions(words, source) => {
            compile_in(&job, true)
        }
        _ => compiled,
    }
}

/// The same in two runs of clang, the first of which leaves a whole program for the second, or in one.
fn compile_in(job: &Job<'_>, two_runs: bool) -> Compiled {
    let (toolchain, options) = (job.toolchain, job.options);
    let mut log = String::new();
    let from_source = Input::Source(job);
    let words = if two_runs || has_attribute_used(job.source) {
        // Emitted, `inline` functions cost nothing: those that are not used are taken out.
        let inline: &[&str] = if two_runs { &["-fgnu89-inline"] } else { &[] };
        job.read(inline, &mut log).and_then(|mut ir| {
            if two_runs {
                ir = internal::functions(&ir, &HashSet::new());
            }
            spirv(toolchain, &Input::Ir(&ir), &from_source, options, &mut log)
        })
    } else {
        spirv(toolchain, &from_source, &from_source, options, &mut log)
    };
    let Ok(mut words) = words else {
        return failed(readable(&log));
    };
    if let Some(described) = job.described() {
        arg_info::add(&mut words, &described);
    }
    Compiled {
        words: Some(words),
        log: readable(&log),
        dependencies: job.dependencies(),
    }
}

/// Whether a source that is compiled for linking is better only read before it is known what it is linked with. What
/// is not to be optimised is marked so by the front end already, which would leave nothing to fall back to.
pub fn better_read_first(source: &str, options: &BuildOptions) -> bool {
    !options.opt_disable && likely_has_a_library(source)
}

/// Reads a source: all errors that it can have are found.
pub fn read(
    toolchain: &Toolchain,
    source: &str,
    headers: &[Header<'_>],
    options: &BuildOptions,
    language: &Language,
) -> FrontEnd {
    let mut log = String::new();
    let unoptimised = match Job::new(toolchain, source, headers, options, language) {
        Ok(job) => job.read(&[], &mut log).ok().map(|ir| {
            let unoptimised = Unoptimised {
                ir,
                described: job.described(),
            };
            (unoptimised, job.dependencies())
        }),
        Err(why) => {
            log += &why;
            None
        }
    };
    let (unoptimised, dependencies) = unoptimised.unzip();
    FrontEnd {
        unoptimised,
        log: readable(&log),
        dependencies: dependencies.flatten(),
    }
}

/// The rest of a compilation. With `keep`, functions of other names become internal, and those that are not used go.
/// Gives the SPIR-V, and what was said.
pub fn optimise(
    toolchain: &Toolchain,
    unoptimised: &Unoptimised,
    options: &BuildOptions,
    keep: Option<&HashSet<String>>,
) -> (Option<Vec<u32>>, String) {
    let ir = match keep {
        Some(keep) => Cow::Owned(internal::functions(&unoptimised.ir, keep)),
        None => Cow::Borrowed(unoptimised.ir.as_str()),
    };
    let mut log = String::new();
    let input = Input::Ir(&ir);
    let mut words = spirv(toolchain, &input, &input, options, &mut log).ok();
    if let (Some(words), Some(described)) = (&mut words, &unoptimised.described) {
        arg_info::add(words, described);
    }
    (words, readable(&log))
}

/// One source with all that clang has to know of it.
struct Job<'a> {
    toolchain: &'a Toolchain,
    source: &'a str,
    /// What clang reads.
    text: Cow<'a, str>,
    options: &'a BuildOptions,
    language: &'a Language,
    scratch: Option<Scratch>,
}

impl<'a> Job<'a> {
    fn new(
        toolchain: &'a Toolchain,
        source: &'a str,
        headers: &[Header<'_>],
        options: &'a BuildOptions,
        language: &'a Language,
    ) -> Result<Self, String> {
        // A byte order mark is one only where the text begins, and ours stands before it.
        let source = source.strip_prefix('\u{feff}').unwrap_or(source);
        let scratch = if headers.is_empty() && !source.contains("include") {
            None
        } else {
            let scratch = Scratch::new(headers).map_err(|error| {
                format!("cannot write headers to a temporary directory: {error}\n")
            })?;
            Some(scratch)
        };
        let text = match prelude(toolchain, source, headers, options) {
            Some(prelude) => Cow::Owned(prelude + source),
            None => Cow::Borrowed(source),
        };
        Ok(Self {
            toolchain,
            source,
            text,
            options,
            language,
            scratch,
        })
    }

    fn clang(&self, options: &BuildOptions) -> Command {
        let args = options.clang_args(self.language);
        clang_command(self.toolchain, &args, self.scratch.as_ref())
    }

    /// LLVM's IR without any pass, and without what its SPIR-V target has trouble with.
    fn read(&self, args: &[&str], log: &mut String) -> Result<String, ()> {
        let mut clang = self.clang(self.options);
        self.ask_for_dependencies(&mut clang);
        clang.args(["-emit-llvm", "-disable-llvm-passes"]);
        clang.args(args).args(FROM_SOURCE);
        let ir = run_stage(clang, self.text.as_bytes(), log)?;
        Ok(internal::without_lists(&String::from_utf8_lossy(&ir)))
    }

    fn ask_for_dependencies(&self, clang: &mut Command) {
        if let Some(scratch) = &self.scratch {
            clang
                .arg("-dependency-file")
                .arg(scratch.dependency_file())
                .args(["-MT", "x"]);
        }
    }

    fn dependencies(&self) -> Option<Vec<PathBuf>> {
        match &self.scratch {
            None => Some(Vec::new()),
            Some(scratch) => scratch.dependencies(),
        }
    }

    /// IR with what the source says of the kernels' arguments, where that is wanted and not in the SPIR-V.
    fn described(&self) -> Option<String> {
        let wanted = self.options.kernel_arg_info && self.toolchain.llvm_spirv.is_none();
        if !wanted && !self.source.contains("vec_type_hint") {
            return None;
        }
        let mut clang = self.clang(self.options);
        clang.args([
            "-w",
            "-emit-llvm",
            "-disable-llvm-passes",
            "-cl-kernel-arg-info",
            "-o",
            "-",
            "-x",
            "cl",
            "-",
        ]);
        let text = run_stage(clang, self.source.as_bytes(), &mut String::new()).ok()?;
        Some(String::from_utf8_lossy(&text).into_owned())
    }
}

/// What the passes of LLVM begin with.
enum Input<'a> {
    Source(&'a Job<'a>),
    /// Textual IR that no pass has seen.
    Ir(&'a str),
}

impl Input<'_> {
    /// Runs clang on it.
    fn run(
        &self,
        toolchain: &Toolchain,
        options: &BuildOptions,
        args: &[&str],
        log: &mut String,
    ) -> Result<Vec<u8>, ()> {
        match self {
            Self::Source(job) => {
                let mut clang = job.clang(options);
                job.ask_for_dependencies(&mut clang);
                clang.args(args).args(FROM_SOURCE);
                run_stage(clang, job.text.as_bytes(), log)
            }
            Self::Ir(ir) => {
                let mut clang = plain_clang_command(toolchain);
                clang.args(options.optimisation()).arg("-w");
                clang.args(args).args(FROM_IR);
                run_stage(clang, ir.as_bytes(), log)
            }
        }
    }
}

/// SPIR-V words of an input. `retry` is what to begin with again where the translator fails.
fn spirv(
    toolchain: &Toolchain,
    input: &Input<'_>,
    retry: &Input<'_>,
    options: &BuildOptions,
    log: &mut String,
) -> Result<Vec<u32>, ()> {
    let Some(tool) = &toolchain.llvm_spirv else {
        return spirv_of_own_target(toolchain, input, retry, options, log);
    };
    let args = [&PASSES[..], &["-emit-llvm-bc"]].concat();
    let bitcode = input.run(toolchain, options, &args, log)?;
    let translated = run_stage(translator(tool), &bitcode, &mut String::new());
    let translated = translated.or_else(|()| {
        // What is kept in private memory crashes it at times (samplers): those are gone once optimised.
        if !options.opt_disable {
            return Err(());
        }
        let optimised = BuildOptions {
            opt_disable: false,
            ..options.clone()
        };
        let args = ["-w", "-emit-llvm-bc"];
        let bitcode = retry.run(toolchain, &optimised, &args, &mut String::new())?;
        run_stage(translator(tool), &bitcode, &mut String::new())
    });
    let object = translated.or_else(|()| {
        // Optimised code has instructions that the translator does not know (freeze), or that it crashes on.
        // Ours optimises what comes without.
        let args = [&NO_PASSES[..], &["-w", "-emit-llvm-bc"]].concat();
        let plain = retry.run(toolchain, options, &args, log)?;
        run_stage(translator(tool), &plain, log)
    })?;
    words_of(&object, log)
}

/// The same by LLVM's own target. Where that gives up on what LLVM's passes made, or they made integers that are too wide, the
/// passes are told to do less, or nothing: ours optimise what comes without.
fn spirv_of_own_target(
    toolchain: &Toolchain,
    input: &Input<'_>,
    retry: &Input<'_>,
    options: &BuildOptions,
    log: &mut String,
) -> Result<Vec<u32>, ()> {
    let mut said = String::new();
    let words = run_own_target(toolchain, input, options, &PASSES, &mut said);
    let (errors, gave_up) = own_target::reports(&said);
    let fewer = match words {
        Ok(words) if !own_target::too_wide(&words) => {
            *log += &said;
            return Ok(words);
        }
        Ok(_) => {
            *log += &said;
            "-replexitval=never"
        }
        Err(()) if gave_up => {
            *log += errors;
            *log += "note: the compiler gave up on the optimised program; compiled again with fewer passes\n";
            // It makes vectors of unions, of any length.
            "-opt-disable=sroa"
        }
        Err(()) => {
            *log += &said;
            return Err(());
        }
    };
    let args = [&PASSES[..], &["-mllvm", fewer, "-w"]].concat();
    let words = run_own_target(toolchain, input, options, &args, &mut String::new());
    match words {
        Ok(words) if !own_target::too_wide(&words) => Ok(words),
        _ => {
            let args = [&NO_PASSES[..], &["-w"]].concat();
            run_own_target(toolchain, retry, options, &args, log)
        }
    }
}

fn run_own_target(
    toolchain: &Toolchain,
    input: &Input<'_>,
    options: &BuildOptions,
    passes: &[&str],
    log: &mut String,
) -> Result<Vec<u32>, ()> {
    let args = [passes, &["-emit-obj", "-mllvm", "-spirv-ext=all"]].concat();
    let object = input.run(toolchain, options, &args, log)?;
    let words = words_of(&object, log)?;
    if !own_target::doubtful(&words) {
        return Ok(words);
    }
    let args = [passes, &["-w", "-emit-llvm"]].concat();
    let optimised = input.run(toolchain, options, &args, log)?;
    generate(toolchain, &optimised, options, log)
}

fn words_of(object: &[u8], log: &mut String) -> Result<Vec<u32>, ()> {
    super::to_words(object).ok_or_else(|| *log += "the compiler's output is not SPIR-V\n")
}

/// Input and output of a run of clang on OpenCL C.
const FROM_SOURCE: [&str; 7] = ["-o", "-", "-x", "cl", "-main-file-name", "program.cl", "-"];

/// The same for LLVM's IR.
const FROM_IR: [&str; 5] = ["-o", "-", "-x", "ir", "-"];

/// Options of LLVM's passes. Moving alike stores of several branches into one leaves pointers that are not known until run
/// time, which keeps private arrays in memory. Loops of known length that are too long to be unrolled whole are repeated
/// in part, up to 150 instructions: LLVM's SPIR-V target does not ask for it, and drivers have not been seen to do it.
const PASSES: [&str; 4] = [
    "-mllvm",
    "-sink-common-insts=false",
    "-mllvm",
    "-unroll-allow-partial",
];

/// Instead of them: none, and the definitions of `inline` functions that inlining would have made superfluous.
const NO_PASSES: [&str; 2] = ["-disable-llvm-passes", "-fgnu89-inline"];

/// Whether a source may well define functions that its kernels do not use, or that are better not kept beside their
/// inlined copies. Making them internal takes a second run of clang, 15 to 25 ms.
fn likely_has_a_library(source: &str) -> bool {
    source.len() > 64 << 10 || source.contains("#include") || source.contains("# include")
}

/// Whether a source may well say `__attribute__((used))`, which has no meaning for kernels and gives LLVM's SPIR-V target
/// trouble.
fn has_attribute_used(source: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut words = source.split(|c| !word(c));
    source.contains("__attribute") && words.any(|w| matches!(w, "used" | "__used__"))
}

/// SPIR-V of optimised IR, by LLVM's own target, without what that loses otherwise.
fn generate(
    toolchain: &Toolchain,
    ir: &[u8],
    options: &BuildOptions,
    log: &mut String,
) -> Result<Vec<u32>, ()> {
    let ir = own_target::initialised(&String::from_utf8_lossy(ir));
    let mut clang = plain_clang_command(toolchain);
    clang.args(options.optimisation());
    clang.args(["-w", "-disable-llvm-passes", "-emit-obj", "-mllvm"]);
    clang.arg("-spirv-ext=all").args(FROM_IR);
    let object = run_stage(clang, ir.as_bytes(), log)?;
    words_of(&object, log)
}

/// llvm-spirv, bitcode to SPIR-V.
fn translator(tool: &Path) -> Command {
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

/// What must stand before the source so that the compiler understands it.
fn prelude(
    toolchain: &Toolchain,
    source: &str,
    headers: &[Header<'_>],
    options: &BuildOptions,
) -> Option<String> {
    let mut conversions = Conversions::default();
    conversions.scan(source);
    headers.iter().for_each(|h| conversions.scan(h.text));
    options.defines.iter().for_each(|d| conversions.scan(d));
    if !options.include_dirs.is_empty() && source.contains("include") {
        conversions.unknown();
    }
    if toolchain.llvm_spirv.is_some() {
        conversions.only_unknown_functions();
    }
    conversions.prelude()
}

/// clang for OpenCL C.
fn clang_command(toolchain: &Toolchain, args: &[String], scratch: Option<&Scratch>) -> Command {
    let mut clang = plain_clang_command(toolchain);
    clang.args(["-fdeclare-opencl-builtins", "-finclude-default-header"]);
    if toolchain.llvm_spirv.is_none() {
        // Real programs rely on what older compilers only warned about.
        clang.arg("-Wno-error=incompatible-pointer-types");
    }
    if let Some(scratch) = scratch {
        clang.arg("-I").arg(&scratch.dir);
    }
    clang.args(args);
    clang
}

/// clang, with what holds for OpenCL C and for LLVM's IR alike.
fn plain_clang_command(toolchain: &Toolchain) -> Command {
    let mut clang = Command::new(&toolchain.clang);
    // As clang's own driver has it: memory goes with the process, and LLVM's code is not checked for errors of clang.
    clang.args(["-cc1", "-disable-free", "-disable-llvm-verifier"]);
    // Programs in use write words as pairs of shorts and read them as words; most drivers let them.
    clang.arg("-relaxed-aliasing");
    // Contraction is on in OpenCL C. The other way to say so turns a * b + c into a call of fma, which then cannot be
    // told from one that the program asked for and must be exact; this one marks both operations as contractible.
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

/// Runs one tool; its diagnostics go to the log. `Err`: it failed, the log says why.
fn run_stage(command: Command, input: &[u8], log: &mut String) -> Result<Vec<u8>, ()> {
    let program = command.get_program().to_string_lossy().into_owned();
    match child::run(command, input) {
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

/// The compiler reads a pipe; the application knows it as its program.
fn readable(log: &str) -> String {
    log.replace("<stdin>", "program.cl")
}

/// A temporary directory with the headers of one compilation; removed when dropped.
struct Scratch {
    dir: PathBuf,
}

impl Scratch {
    fn new(headers: &[Header<'_>]) -> std::io::Result<Self> {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let scratch = loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let dir = std::env::temp_dir().join(format!("pumice-{}-{number}", std::process::id()));
            match std::fs::create_dir(&dir) {
                Ok(()) => break Self { dir },
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            }
        };
        for header in headers {
            let relative = Path::new(header.name);
            if !relative.components().all(|c| {
                matches!(
                    c,
                    std::path::Component::Normal(_) | std::path::Component::CurDir
                )
            }) {
                let what = format!(
                    "header name \"{}\" leaves the include directory",
                    header.name
                );
                return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, what));
            }
            let path = scratch.dir.join(relative);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(path, header.text)?;
        }
        Ok(scratch)
    }

    fn dependency_file(&self) -> PathBuf {
        self.dir.join(".dependencies")
    }

    /// The files in clang's make rule `x: a \ b`, less our own headers (those are in the cache key) and the input.
    fn dependencies(&self) -> Option<Vec<PathBuf>> {
        let text = std::fs::read_to_string(self.dependency_file()).ok()?;
        let rule = text.strip_prefix("x:")?.replace("\\\n", " ");
        // Names with blanks are escaped with a backslash: too rare to unpick, such a result is not cached.
        if rule.contains('\\') {
            return None;
        }
        let files = rule.split_whitespace().map(PathBuf::from);
        Some(
            files
                .filter(|f| f.as_os_str() != "-" && !f.starts_with(&self.dir))
                .collect(),
        )
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
