//! Lowers one kernel, with the options of `PUMICE_PASSES` and `PUMICE_DUMP`.

use super::dump;
use super::options::BuildOptions;
use crate::util::config::{self, Passes};
use crate::util::{files, trace};
use spirv_lowering::ir::function::Function;
use spirv_lowering::ir::print;
use spirv_lowering::target::Target;
use spirv_lowering::{BuiltinLibrary, Lowered, Options, Program};
use std::fmt::Write as _;
use std::path::Path;

/// The most bytes of text that are dumped for each pass: in all a hundred times the size of a
/// kernel, so not for all of a large one.
const MOST_TEXT: usize = 64 << 20;

/// Lowers a kernel for a target, and writes the dumps that `PUMICE_DUMP` requests.
pub fn lower(
    program: &Program,
    kernel: &str,
    target: &Target,
    build: &BuildOptions,
    library: &BuiltinLibrary,
) -> spirv_lowering::error::Result<Lowered> {
    let config = config::get();
    let Passes {
        verify,
        time,
        skip,
        limit,
        one_copy,
    } = &config.passes;
    let skip: Vec<&str> = skip.iter().map(String::as_str).collect();
    let mut steps = Steps::default();
    let mut note = |pass: &str, func: &Function| steps.add(pass, func);
    let mut timings = Vec::new();
    let mut options = Options {
        verify: *verify,
        skip: &skip,
        limit: *limit,
        one_copy_from: one_copy.then_some(1),
        correctly_rounded_divide_sqrt: build.correctly_rounded_divide_sqrt,
        denorms_are_zero: build.denorms_are_zero,
        unsafe_math: build.unsafe_math || build.fast_relaxed_math,
        zeroed: build.zeroed,
        library: Some(library),
        ..Options::default()
    };
    if config.dump.is_some() {
        options.dump = Some(&mut note);
    }
    if *time {
        options.timings = Some(&mut timings);
    }
    let _span = trace::span("compile", || format!("lower {kernel}"));
    let lowered = program.lower(kernel, target, &mut options);
    if let Some(dir) = &config.dump {
        steps.write(dir, kernel);
    }
    if let Ok(lowered) = &lowered {
        dump::kernel(lowered);
    }
    if *time {
        timings.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
        let mut text = format!("passes of kernel {kernel}:");
        for (name, took) in timings {
            let _ = write!(text, "\n{:>10} us {name}", took.as_micros());
        }
        crate::log!(Error, "{text}");
    }
    lowered
}

/// The kernel after each pass that changed it, as text.
#[derive(Default)]
struct Steps {
    list: Vec<(String, String)>,
    size: usize,
}

impl Steps {
    fn add(&mut self, pass: &str, func: &Function) {
        if self.size > MOST_TEXT {
            return;
        }
        let text = print::raw(func).to_string();
        if self.list.last().is_none_or(|(_, last)| *last != text) {
            self.size += text.len();
            self.list.push((pass.to_owned(), text));
        }
    }

    /// Writes the steps into a folder named by the kernel as it was inlined, one file a pass.
    fn write(&self, dir: &Path, kernel: &str) {
        let Some((_, first)) = self.list.first() else {
            return;
        };
        let hash = blake3::hash(first.as_bytes()).to_hex();
        let name = kernel.replace('/', "_");
        let dir = dir.join(format!("{}.{name}.passes", &hash.as_str()[..16]));
        let write = || {
            std::fs::create_dir_all(&dir)?;
            for (number, (pass, text)) in self.list.iter().enumerate() {
                std::fs::write(dir.join(format!("{number:03}-{pass}.kir")), text)?;
            }
            Ok::<(), std::io::Error>(())
        };
        if let Err(error) = files::limited(write) {
            let dir = dir.display();
            crate::log!(Warn, "PUMICE_DUMP: cannot write to {dir}: {error}");
        }
    }
}
