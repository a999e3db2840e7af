//! Build, compile and link options (OpenCL API specification, section 5.8.6 "Compiler Options").

use super::language::{ClStd, Language};
use spirv_lowering::options::ZeroedMemory;

/// The call that the options were passed to, on which the allowed set depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildCall {
    /// clBuildProgram
    Build,
    /// clCompileProgram
    Compile,
    /// clLinkProgram
    Link,
}

/// Parsed options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BuildOptions {
    /// `-D`: `NAME` or `NAME=VALUE`.
    pub defines: Vec<String>,
    /// `-I`
    pub include_dirs: Vec<String>,
    /// `-cl-std`
    pub std: Option<ClStd>,
    /// `-w`
    pub no_warnings: bool,
    /// `-Werror`
    pub werror: bool,
    /// `-W...` of clang that applications pass along.
    pub clang_warnings: Vec<String>,
    /// `-g`
    pub debug: bool,
    /// `-cl-opt-disable`
    pub opt_disable: bool,
    /// `-cl-mad-enable`
    pub mad_enable: bool,
    /// `-cl-no-signed-zeros`
    pub no_signed_zeros: bool,
    /// `-cl-unsafe-math-optimizations`
    pub unsafe_math: bool,
    /// `-cl-finite-math-only`
    pub finite_math: bool,
    /// `-cl-fast-relaxed-math`
    pub fast_relaxed_math: bool,
    /// `-cl-single-precision-constant`
    pub single_precision_constant: bool,
    /// `-cl-denorms-are-zero`
    pub denorms_are_zero: bool,
    /// `-cl-fp32-correctly-rounded-divide-sqrt`
    pub correctly_rounded_divide_sqrt: bool,
    /// `-cl-uniform-work-group-size`
    pub uniform_work_group_size: bool,
    /// `-cl-arm-non-uniform-work-group-size`
    pub non_uniform_work_group_size: bool,
    /// `-cl-kernel-arg-info`
    pub kernel_arg_info: bool,
    /// `-create-library`
    pub create_library: bool,
    /// `-enable-link-options`
    pub enable_link_options: bool,
    /// Set by no option: the source is a whole program (clBuildProgram), so that none of its
    /// functions is called from another.
    pub whole_program: bool,
    /// Set by no option: the memory that kernels of the context find zeroed.
    pub zeroed: ZeroedMemory,
}

/// Splits an option string into words. Double and single quotes group, a backslash makes the next
/// quote, backslash or blank literal. Returns `None` if a quote is left open.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', _)
                if chars
                    .peek()
                    .is_some_and(|n| matches!(n, '"' | '\'' | '\\' | ' ')) =>
            {
                word.get_or_insert_default().extend(chars.next());
            }
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

impl BuildOptions {
    /// Parses an option string. An error says which option is not understood.
    pub fn parse(text: &str, stage: BuildCall) -> Result<Self, String> {
        let words = words(text).ok_or_else(|| format!("unbalanced quotes in \"{text}\""))?;
        let mut options = Self {
            whole_program: stage == BuildCall::Build,
            ..Self::default()
        };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            options.take(&word, &mut words, stage)?;
        }
        // What clang takes out of memory no check sees.
        options.opt_disable |= crate::util::config::get().check.memory;
        if stage == BuildCall::Link && options.enable_link_options && !options.create_library {
            return Err("-enable-link-options needs -create-library".into());
        }
        Ok(options)
    }

    /// Returns the options for kernels that find memory zeroed. LLVM's passes take what is not
    /// written for whatever suits them, so that none runs.
    pub fn with_zeroed(self, zeroed: ZeroedMemory) -> Self {
        let opt_disable = self.opt_disable || zeroed != ZeroedMemory::default();
        Self {
            zeroed,
            opt_disable,
            ..self
        }
    }

    fn take(
        &mut self,
        word: &str,
        rest: &mut impl Iterator<Item = String>,
        stage: BuildCall,
    ) -> Result<(), String> {
        let mut operand = |attached: &str| -> Result<String, String> {
            if attached.is_empty() {
                rest.next()
                    .ok_or_else(|| format!("option {word} needs a value"))
            } else {
                Ok(attached.to_owned())
            }
        };
        // Options that linking takes too (section 5.8.7 "Linker Options").
        match word {
            "-cl-denorms-are-zero" => self.denorms_are_zero = true,
            "-cl-no-signed-zeros" => self.no_signed_zeros = true,
            "-cl-unsafe-math-optimizations" => self.unsafe_math = true,
            "-cl-finite-math-only" => self.finite_math = true,
            "-cl-fast-relaxed-math" => self.fast_relaxed_math = true,
            "-cl-no-subgroup-ifp" => {}
            "-create-library" if stage == BuildCall::Link => self.create_library = true,
            "-enable-link-options" if stage == BuildCall::Link => self.enable_link_options = true,
            _ if stage == BuildCall::Link => return Err(format!("unknown linker option {word}")),
            "-w" => self.no_warnings = true,
            "-Werror" => self.werror = true,
            "-g" => self.debug = true,
            "-cl-opt-disable" | "-O0" => self.opt_disable = true,
            "-O" | "-O1" | "-O2" | "-O3" | "-Os" => {}
            "-cl-mad-enable" => self.mad_enable = true,
            "-cl-single-precision-constant" => self.single_precision_constant = true,
            "-cl-strict-aliasing" => {}
            "-cl-fp32-correctly-rounded-divide-sqrt" => self.correctly_rounded_divide_sqrt = true,
            "-cl-uniform-work-group-size" => self.uniform_work_group_size = true,
            "-cl-arm-non-uniform-work-group-size" => self.non_uniform_work_group_size = true,
            "-cl-kernel-arg-info" => self.kernel_arg_info = true,
            "-x" => {
                // `-x spir` and `-x clc` say what the program is; we know that already.
                operand("")?;
            }
            _ => {
                if let Some(define) = word.strip_prefix("-D") {
                    let define = operand(define)?;
                    self.defines.push(define);
                } else if let Some(dir) = word.strip_prefix("-I") {
                    let dir = operand(dir)?;
                    self.include_dirs.push(dir);
                } else if let Some(std) = word.strip_prefix("-cl-std=") {
                    let std = ClStd::parse(std)
                        .ok_or_else(|| format!("unknown OpenCL C version {word}"))?;
                    self.std = Some(std);
                } else if word.starts_with("-spir-std=") {
                } else if word.starts_with("-W") && word.len() > 2 {
                    self.clang_warnings.push(word.to_owned());
                } else {
                    return Err(format!("unknown option {word}"));
                }
            }
        }
        Ok(())
    }

    /// Returns the arguments of `clang -cc1` for these options and the language of the device. The
    /// cache key of a source has what they are made of.
    pub fn clang_args(&self, language: &Language) -> Vec<String> {
        let std = self.language_version();
        let mut args = vec![format!("-cl-std={}", std.clang_name())];
        args.push(language.cl_ext(std));
        args.extend(language.macros(std));
        args.extend(self.device_independent_args());
        args
    }

    /// Returns the version of the language that a source is compiled as.
    pub fn language_version(&self) -> ClStd {
        self.std.unwrap_or(ClStd::C12)
    }

    /// Returns the arguments that are the same for every device.
    pub fn device_independent_args(&self) -> Vec<String> {
        let optimisation = self.optimisation().iter();
        let mut args: Vec<String> = optimisation.map(|&arg| arg.to_owned()).collect();
        if self.language_version().is_cxx() {
            // Each program-scope object gets a function that destructs it (`fixups/lifecycle.rs`). Work-items that wait for
            // another to make a static object would wait for ever where they run in lockstep with it: the macro
            // __cpp_threadsafe_static_init says that they do not.
            args.extend(["-fno-use-cxa-atexit", "-fno-threadsafe-statics"].map(str::to_owned));
        }
        let flags = [
            (self.no_warnings, "-w"),
            (self.werror, "-Werror"),
            (self.mad_enable, "-cl-mad-enable"),
            (self.no_signed_zeros, "-cl-no-signed-zeros"),
            (self.unsafe_math, "-cl-unsafe-math-optimizations"),
            (self.finite_math, "-cl-finite-math-only"),
            (self.fast_relaxed_math, "-cl-fast-relaxed-math"),
            (
                self.single_precision_constant,
                "-cl-single-precision-constant",
            ),
            (
                self.correctly_rounded_divide_sqrt,
                "-cl-fp32-correctly-rounded-divide-sqrt",
            ),
            (self.uniform_work_group_size, "-cl-uniform-work-group-size"),
            (self.debug, "-debug-info-kind=line-tables-only"),
        ];
        args.extend(
            flags
                .iter()
                .filter(|(on, _)| *on)
                .map(|(_, flag)| (*flag).to_owned()),
        );
        args.extend(self.clang_warnings.iter().cloned());
        // In one word: a word that begins with an at-sign would be taken for a file with arguments.
        for (option, values) in [("-D", &self.defines), ("-I", &self.include_dirs)] {
            for value in values {
                if value.is_empty() {
                    args.push(option.into());
                }
                let joined = if value.is_empty() { "" } else { option };
                args.push(format!("{joined}{value}"));
            }
        }
        args
    }

    /// Returns clang's arguments for the level of optimisation.
    pub fn optimisation(&self) -> &'static [&'static str] {
        // `inline` is that of C99: clang emits no definition of such a function, and would leave calls of those it finds
        // too large. So all of them are inlined or, where nothing is, are emitted after all. In C++ they are emitted.
        if self.opt_disable && self.std.is_some_and(ClStd::is_cxx) {
            &["-O0"]
        } else if self.opt_disable {
            &["-O0", "-fgnu89-inline"]
        } else {
            &["-O2", "-mllvm", "-inlinehint-threshold=1000000"]
        }
    }

    /// Adds the options that clLinkProgram may add to those that the objects were compiled with.
    pub fn merge_link_options(&mut self, link: &Self) {
        self.denorms_are_zero |= link.denorms_are_zero;
        self.no_signed_zeros |= link.no_signed_zeros;
        self.unsafe_math |= link.unsafe_math;
        self.finite_math |= link.finite_math;
        self.fast_relaxed_math |= link.fast_relaxed_math;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(text: &str) -> Result<BuildOptions, String> {
        BuildOptions::parse(text, BuildCall::Build)
    }

    #[test]
    fn quotes_and_separate_operands() {
        let options = build(r#"-D A="x y" -DB=\"q\" -I "/a b" -I/c  -cl-std=CL2.0 -w"#).unwrap();
        assert_eq!(options.defines, ["A=x y", "B=\"q\""]);
        assert_eq!(options.include_dirs, ["/a b", "/c"]);
        assert_eq!(options.std, Some(ClStd::C20));
        assert!(options.no_warnings);
        let whole_program = BuildOptions {
            whole_program: true,
            ..Default::default()
        };
        assert_eq!(build("").unwrap(), whole_program);
        assert_eq!(
            BuildOptions::parse("", BuildCall::Compile).unwrap(),
            BuildOptions::default()
        );
    }

    #[test]
    fn unknown_options_are_errors() {
        assert!(build("-foo").is_err());
        assert!(build("-D").is_err());
        assert!(build("-cl-std=CL4.0").is_err());
        assert!(build("\"-w").is_err());
        assert!(build("-create-library").is_err());
        assert!(BuildOptions::parse("-w", BuildCall::Link).is_err());
        assert!(BuildOptions::parse("-enable-link-options", BuildCall::Link).is_err());
        let link =
            BuildOptions::parse("-create-library -enable-link-options", BuildCall::Link).unwrap();
        assert!(link.create_library && link.enable_link_options);
    }
}
