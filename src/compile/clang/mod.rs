//! Running clang: OpenCL C to OpenCL SPIR-V.
//!
//! ```text
//! compile --command--> attempts --process--> { server, a process of its own }
//!            (fixups)  (retries)  (limit)
//! ```

mod attempts;
mod command;
mod dependencies;
mod limit;
pub mod native;
mod printed;
mod process;
mod scratch;
#[cfg(unix)]
mod server;
#[cfg(not(unix))]
#[path = "server/absent.rs"]
mod server;
pub mod toolchain;

use self::attempts::{spirv, Input};
use self::command::{run_tool, FROM_SOURCE};
use self::scratch::Scratch;
use self::toolchain::Toolchain;
use super::fixups::prelude::Conversions;
use super::fixups::{
    argument_info, device_queues, divisions, lifecycle, long_arrays, missing_inlines, whole_program,
};
use super::language::{ClStd, Language};
use super::options::BuildOptions;
use crate::quirks::Quirk;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::SystemTime;

pub use server::unload;

/// The revision of the output of `clang` and `fixups` for the same source and options, which is part
/// of the cache key.
pub const REVISION: u32 = 22;

/// A source file of a program, or a header given to clCompileProgram.
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    /// The name as `#include` gives it; may contain directories.
    pub name: &'a str,
    /// Text.
    pub text: &'a str,
}

/// A source, with all that decides its output except the files that it includes.
#[derive(Debug, Clone, Copy)]
pub struct ClSource<'a> {
    /// The compiler.
    pub toolchain: &'a Toolchain,
    /// The application's text.
    pub text: &'a str,
    /// The headers that the application passed, which precede any directory.
    pub headers: &'a [Header<'a>],
    /// The build options.
    pub options: &'a BuildOptions,
    /// The language that the device offers.
    pub language: &'a Language,
}

/// The files that a compilation read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesRead {
    /// Their names as the compiler opened them.
    pub files: Vec<PathBuf>,
    /// The time at which the compilation began.
    pub begun: SystemTime,
}

/// The result of a compilation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// The SPIR-V words, or `None` if there were errors.
    pub words: Option<Vec<u32>>,
    /// The messages of the compiler.
    pub log: String,
    /// The files read, for the cache. `None` forbids caching: they are unknown, or a compiler was
    /// killed.
    pub read: Option<FilesRead>,
}

fn failed(log: impl Into<String>) -> Compiled {
    Compiled {
        words: None,
        log: log.into(),
        read: None,
    }
}

/// A source that clang has read and not optimised yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unoptimised {
    /// LLVM's textual IR.
    pub ir: String,
    /// The IR with metadata on the kernels' arguments, where that is requested.
    pub described: Option<String>,
}

/// The result of reading a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadSource {
    /// The IR, or `None` if there were errors.
    pub unoptimised: Option<Unoptimised>,
    /// The messages of the compiler.
    pub log: String,
    /// As in [`Compiled`].
    pub read: Option<FilesRead>,
}

/// Compiles a source.
pub fn compile(source: &ClSource<'_>) -> Compiled {
    let killed = process::killed();
    let (text, whole) = (source.text, source.options.whole_program);
    let prepared = match Prepared::new(source) {
        Ok(prepared) => prepared,
        Err(log) => return failed(log),
    };
    let read_first = whole && likely_has_a_library(text);
    let (mut words, mut log) = prepared.compiled(read_first);
    let quirks = source.toolchain.quirks;
    let lacks =
        |words: &Vec<u32>| quirks.has(Quirk::MissingInlines) && missing_inlines::any(words, text);
    if whole && !read_first && words.as_ref().is_ok_and(lacks) {
        (words, log) = prepared.compiled(true);
    }
    let Ok(mut words) = words else {
        return failed(readable(&log));
    };
    // Only a run of its own can tell, 10 to 25 ms.
    if prepared.may_have_long_arrays() && long_arrays::has_arrays(&words) {
        let mut diagnostics = String::new();
        if prepared.unoptimised_ir(&["-w"], &mut diagnostics).is_err() {
            return failed(readable(&(log + &diagnostics)));
        }
    }
    if let Some(described) = prepared.described() {
        argument_info::add(&mut words, &described);
    }
    Compiled {
        words: Some(words),
        log: readable(&log),
        read: prepared
            .read
            .into_inner()
            .filter(|_| process::killed() == killed),
    }
}

/// Returns true if a source that is compiled for linking should only be read before its other
/// modules are known. A source that is not to be optimised is marked so by the front end already,
/// which would leave no other attempt.
pub fn better_read_first(source: &str, options: &BuildOptions) -> bool {
    !options.opt_disable && likely_has_a_library(source)
}

/// Reads a source, which finds all errors that it can have.
pub fn read(source: &ClSource<'_>) -> ReadSource {
    let mut log = String::new();
    let mut left = ReadSource {
        unoptimised: None,
        log: String::new(),
        read: None,
    };
    match Prepared::new(source) {
        Ok(prepared) => {
            if let Ok(ir) = prepared.unoptimised_ir(&[], &mut log) {
                let described = prepared.described();
                left.unoptimised = Some(Unoptimised { ir, described });
                left.read = prepared.read.into_inner();
            }
        }
        Err(why) => log += &why,
    }
    left.log = readable(&log);
    left
}

/// Finishes a compilation. With `keep`, functions of other names become internal, and unused ones
/// are removed. Returns the SPIR-V, the messages, and whether the result may be cached: no compiler
/// was killed.
pub fn optimise(
    toolchain: &Toolchain,
    unoptimised: &Unoptimised,
    options: &BuildOptions,
    keep: Option<&HashSet<String>>,
) -> (Option<Vec<u32>>, String, bool) {
    let killed = process::killed();
    let ir = match keep {
        Some(keep) => Cow::Owned(whole_program::with_internal_functions(
            &unoptimised.ir,
            keep,
        )),
        None => Cow::Borrowed(unoptimised.ir.as_str()),
    };
    let mut log = String::new();
    let input = Input::Ir(&ir);
    let mut words = spirv(toolchain, &input, &input, options, &mut log).ok();
    if let (Some(words), Some(described)) = (&mut words, &unoptimised.described) {
        argument_info::add(words, described);
    }
    (words, readable(&log), process::killed() == killed)
}

/// A source with everything that a run of clang needs.
pub struct Prepared<'a> {
    source: ClSource<'a>,
    /// The text that clang reads.
    with_prelude: Cow<'a, str>,
    headers: Option<Scratch>,
    /// The files that the last run read.
    read: RefCell<Option<FilesRead>>,
}

impl<'a> Prepared<'a> {
    fn new(source: &ClSource<'a>) -> Result<Self, String> {
        // A byte order mark is one only where the text begins, and ours stands before it.
        let text = source.text.strip_prefix('\u{feff}').unwrap_or(source.text);
        let source = ClSource { text, ..*source };
        let headers = if source.headers.is_empty() {
            None
        } else {
            let scratch = Scratch::with_headers(source.headers);
            Some(scratch.map_err(|error| {
                format!("cannot write headers to a temporary directory: {error}\n")
            })?)
        };
        let with_prelude = match prelude(&source) {
            Some(prelude) => Cow::Owned(prelude + text),
            None => Cow::Borrowed(text),
        };
        Ok(Self {
            source,
            with_prelude,
            headers,
            read: RefCell::new(None),
        })
    }

    fn clang(&self, options: &BuildOptions) -> Command {
        let args = options.clang_args(self.source.language);
        let headers = self.headers.as_ref().map(Scratch::dir);
        command::clang_for_source(self.source.toolchain, &args, headers)
    }

    /// Runs clang on the source, and records the files that it reads.
    fn run(&self, options: &BuildOptions, args: &[&str], log: &mut String) -> Result<Vec<u8>, ()> {
        let begun = SystemTime::now();
        let mut clang = self.clang(options);
        clang.args(dependencies::ARGUMENTS).args(args);
        let mut output = run_tool(clang, self.with_prelude.as_bytes(), log)?;
        let files = dependencies::taken_from(&mut output).map(|mut files| {
            // What the application gave is known without asking.
            if let Some(headers) = &self.headers {
                files.retain(|file| !file.starts_with(headers.dir()));
            }
            FilesRead { files, begun }
        });
        self.read.replace(files);
        Ok(output)
    }

    /// Compiles to SPIR-V, in one run of clang, or in two, the first of which reduces the source to
    /// the functions in use. Returns the messages, too.
    fn compiled(&self, read_first: bool) -> (Result<Vec<u32>, ()>, String) {
        let (toolchain, options) = (self.source.toolchain, self.source.options);
        let mut log = String::new();
        let source = Input::Source(self);
        let on_device =
            toolchain.quirks.has(Quirk::DeviceQueues) && device_queues::used_in(self.source.text);
        let words = if options.std.is_some_and(ClStd::is_cxx) || on_device {
            // Where the passes are left out, objects and blocks still want what is made of them here.
            self.unoptimised_ir(&[], &mut log).and_then(|ir| {
                let kept = whole_program::with_internal_functions(&ir, &HashSet::new());
                let first = if read_first { &kept } else { &ir };
                let (first, whole) = (Input::Ir(first), Input::Ir(&ir));
                spirv(toolchain, &first, &whole, options, &mut log)
            })
        } else if read_first || has_attribute_used(self.source.text) || self.may_divide() {
            // Emitted, `inline` functions cost nothing: those that are not used are taken out.
            let inline: &[&str] = if read_first { &["-fgnu89-inline"] } else { &[] };
            let ir = self.unoptimised_ir(inline, &mut log);
            ir.and_then(|mut ir| {
                if read_first {
                    ir = whole_program::with_internal_functions(&ir, &HashSet::new());
                }
                spirv(toolchain, &Input::Ir(&ir), &source, options, &mut log)
            })
        } else {
            spirv(toolchain, &source, &source, options, &mut log)
        };
        (words, log)
    }

    /// Returns LLVM's IR before any pass, without what its SPIR-V target fails at.
    fn unoptimised_ir(&self, args: &[&str], log: &mut String) -> Result<String, ()> {
        let args = [&["-emit-llvm", "-disable-llvm-passes"], args, &FROM_SOURCE].concat();
        let ir = self.run(self.source.options, &args, log)?;
        let mut ir = String::from_utf8_lossy(&ir).into_owned();
        let has = |quirk| self.source.toolchain.quirks.has(quirk);
        if has(Quirk::UsedLists) {
            ir = whole_program::without_used_lists(&ir);
        }
        if let Some(length) = long_arrays::in_ir(&ir).filter(|_| has(Quirk::LongArrays)) {
            *log += &format!(
                "error: an array of {length} elements: no more than 4294967295 are supported\n"
            );
            return Err(());
        }
        if has(Quirk::DeviceQueues) {
            ir = device_queues::with_calls(&ir);
        }
        if has(Quirk::ZeroDivisors) {
            ir = divisions::guarded(&ir);
        }
        let cxx = self.source.options.std.is_some_and(ClStd::is_cxx);
        if cxx && has(Quirk::Constructors) {
            ir = lifecycle::with_kernels(&ir);
        }
        Ok(ir)
    }

    /// Returns true if the source, an option or a header may divide integers, and LLVM's passes see it.
    fn may_divide(&self) -> bool {
        let ClSource {
            text,
            headers,
            options,
            ..
        } = self.source;
        let texts = [text]
            .into_iter()
            .chain(headers.iter().map(|header| header.text));
        let defines = options.defines.iter().map(String::as_str);
        !options.opt_disable && texts.chain(defines).any(divisions::likely)
    }

    /// Returns true if the source, an option or a header may have arrays of 2^32 elements.
    fn may_have_long_arrays(&self) -> bool {
        let ClSource {
            toolchain,
            text,
            headers,
            options,
            ..
        } = self.source;
        if !toolchain.quirks.has(Quirk::LongArrays) {
            return false;
        }
        let defines: Vec<String> = options
            .defines
            .iter()
            .map(|define| format!("#define {}", define.replacen('=', " ", 1)))
            .collect();
        let texts = defines.iter().map(String::as_str);
        long_arrays::likely(texts.chain(headers.iter().map(|h| h.text)).chain([text]))
    }

    /// Returns IR with metadata on the kernels' arguments, where that is requested and not in the
    /// SPIR-V.
    fn described(&self) -> Option<String> {
        let ClSource {
            toolchain,
            text,
            options,
            ..
        } = self.source;
        let has = |quirk| toolchain.quirks.has(quirk);
        let wanted = options.kernel_arg_info && has(Quirk::ArgumentNames);
        let hinted = has(Quirk::UnsignedHints) && text.contains("vec_type_hint");
        if !wanted && !hinted {
            return None;
        }
        let mut clang = self.clang(options);
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
        let text = run_tool(clang, text.as_bytes(), &mut String::new()).ok()?;
        Some(String::from_utf8_lossy(&text).into_owned())
    }
}

/// Returns true if a source probably defines functions that its kernels do not use, or that are
/// better not kept beside their inlined copies. Making them internal takes a second run of clang,
/// 15 to 25 ms.
fn likely_has_a_library(source: &str) -> bool {
    source.len() > 64 << 10 || source.contains("#include") || source.contains("# include")
}

/// Returns true if a source probably says `__attribute__((used))`, which has no meaning for kernels
/// and breaks LLVM's SPIR-V target.
fn has_attribute_used(source: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut words = source.split(|c| !word(c));
    source.contains("__attribute") && words.any(|w| matches!(w, "used" | "__used__"))
}

/// Returns the text that must precede the source so that the compiler understands it.
fn prelude(source: &ClSource<'_>) -> Option<String> {
    let ClSource { text, options, .. } = source;
    let mut conversions = Conversions::default();
    conversions.scan(text);
    source.headers.iter().for_each(|h| conversions.scan(h.text));
    options.defines.iter().for_each(|d| conversions.scan(d));
    if !options.include_dirs.is_empty() && may_include(text) {
        conversions.unknown();
    }
    conversions.keep(source.toolchain.quirks);
    conversions.prelude()
}

/// Returns true if a source may read files: it says so, in one line or in lines that a backslash
/// joins.
fn may_include(source: &str) -> bool {
    let says = |text: &str| text.contains("include") || text.contains("import");
    // A trigraph may be the backslash; sources that have one do not exist.
    says(source)
        || source.contains("??/")
        || source.contains('\\') && says(&without_continuations(source))
}

/// Returns the source with continued lines joined: those that end in a backslash, which blanks may
/// follow.
fn without_continuations(source: &str) -> String {
    let mut joined = String::with_capacity(source.len());
    for line in source.split_inclusive('\n') {
        match line.trim_end().strip_suffix('\\') {
            Some(begun) => joined.push_str(begun),
            None => joined.push_str(line),
        }
    }
    joined
}

/// The name of the source in messages.
pub const FILE_NAME: &str = "program.cl";

/// Replaces the names that the compiler prints for its input by the name that the application
/// knows.
fn readable(log: &str) -> String {
    log.replace("<stdin>", FILE_NAME)
}

#[cfg(test)]
mod tests {
    use super::super::options::BuildCall;
    use super::*;
    use crate::left_out::left_out;

    #[test]
    fn what_may_include() {
        for source in [
            "#include \"a.h\"",
            "#inc\\\nlude \"a.h\"",
            "#inc\\ \t\r\nlude \"a.h\"",
            "#im\\\n\\\nport \"a.h\"",
            "#inc??/\nlude \"a.h\"",
        ] {
            assert!(may_include(source), "{source}");
        }
        assert!(!may_include("#define A(x) x + \\\n 1\nkernel void f() {}"));
    }

    fn compiled(source: &str, options: &str) -> Option<Compiled> {
        let options = BuildOptions::parse(options, BuildCall::Build).unwrap();
        let language = Language::default();
        Some(compile(&ClSource {
            toolchain: toolchain::get()?,
            text: source,
            headers: &[],
            options: &options,
            language: &language,
        }))
    }

    /// Checks that the files read are recorded however the source includes them.
    #[test]
    fn the_compiler_says_what_it_read() {
        let dir = std::env::temp_dir().join(format!("pumice-read-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let header = dir.join("some file.h");
        std::fs::write(&header, "#define VALUE 1\n").unwrap();
        let options = format!("-I \"{}\"", dir.display());
        let read = |line: &str, options: &str| {
            let source = format!("{line}\nkernel void k(global int *p) {{ *p = VALUE; }}\n");
            let compiled = compiled(&source, options)?;
            assert!(compiled.words.is_some(), "{line}: {}", compiled.log);
            Some(compiled.read.expect("a rule").files)
        };
        for line in [
            "#include \"some file.h\"",
            "#import \"some file.h\"",
            "#inc\\\nlude <some file.h>",
            "%:include <some file.h>",
        ] {
            let Some(files) = read(line, &options) else {
                return left_out("no clang");
            };
            assert!(files.contains(&header), "{line}: {files:?}");
        }
        let files = read("// #include <some file.h>", "-DVALUE=1").unwrap();
        assert!(!files.contains(&header), "{files:?}");
        assert_eq!(files.len(), 1, "the compiler's own: {files:?}");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    /// Checks that arrays that are too long are refused; the module would have arrays of 16
    /// elements.
    #[test]
    fn arrays_that_are_too_long_are_refused() {
        let kernel = |kind: &str, length: &str| {
            format!(
                "struct s {{ char x[{length}]; int y; }};
                kernel void k(global int *p, int i, global struct s *q) {{
                    {kind} char x[{length}];
                    x[i] = p[0]; x[p[1]] = 3; barrier(1); *p = x[p[2]]; q[i].y = 1;
                }}"
            )
        };
        for (source, options) in [
            (kernel("private", "(1UL << 32) + 16"), ""),
            (kernel("local", "4294967312"), ""),
            (kernel("private", "N"), "-DN=0x100000010"),
        ] {
            let Some(compiled) = compiled(&source, options) else {
                return left_out("no clang");
            };
            let refused = compiled.words.is_none() && compiled.log.contains("4294967312 elements");
            let exact = toolchain::get().is_some_and(|tools| tools.llvm_spirv.is_some());
            assert!(refused || exact, "{source}: {}", compiled.log);
        }
        let compiled = compiled(&kernel("private", "4UL * 4"), "").expect("a compiler");
        assert!(compiled.words.is_some(), "{}", compiled.log);
    }

    #[test]
    fn long_options_are_taken() {
        let options = format!("-DLONG={} -DVALUE=7", "1+".repeat(200 << 10) + "1");
        let source = "kernel void k(global int *p) { *p = VALUE; }\n";
        let Some(compiled) = compiled(source, &options) else {
            return left_out("no clang");
        };
        assert!(compiled.words.is_some(), "{}", compiled.log);
    }
}
