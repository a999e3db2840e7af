//! The result of clCompileProgram for clLinkProgram: SPIR-V, or a source that was read and is not
//! optimised yet.
//!
//! A source with a library of functions in it is better optimised when it is known that no other
//! module calls them (see `fixups/whole_program.rs`), which only clLinkProgram knows: hashcat
//! compiles each file by itself and links it alone, and 30 of 31 seconds went into functions that
//! no kernel used. Errors in the source are found when it is read. If the SPIR-V of all of it is
//! needed after all, for a library or a binary, it is made then, once.

use super::clang::{self, toolchain, ClSource, Header, Unoptimised};
use super::executable::read_all;
use super::fixups::whole_program;
use super::language::Language;
use super::options::BuildOptions;
use super::store::entries::{self, CacheKey};
use super::store::sections;
use super::store::source;
use super::words::{to_bytes, to_words, BuildFailure, SpirvModule};
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

/// The kind of cache entries with the SPIR-V of a source that was read first.
const KIND: &str = "unit";

/// A module that can be linked.
#[derive(Clone)]
pub enum Linkable {
    /// A SPIR-V module.
    Spirv(SpirvModule),
    /// A source that was read.
    Read(Arc<DeferredSource>),
}

/// A source that was read, with what the rest of its compilation needs.
pub struct DeferredSource {
    unoptimised: Unoptimised,
    options: BuildOptions,
    /// The hash of the source and everything that it depends on.
    key: [u8; 32],
    /// The SPIR-V of all of it.
    whole: OnceLock<Result<SpirvModule, BuildFailure>>,
}

impl From<SpirvModule> for Linkable {
    fn from(module: SpirvModule) -> Self {
        Self::Spirv(module)
    }
}

impl Linkable {
    /// Returns the SPIR-V with every function that others may call.
    pub fn module(&self) -> Result<SpirvModule, BuildFailure> {
        match self {
            Self::Spirv(module) => Ok(module.clone()),
            Self::Read(pending) => pending.whole.get_or_init(|| pending.optimise(None)).clone(),
        }
    }

    /// Returns the names of all functions that it defines or declares.
    fn function_names(&self) -> Result<Vec<String>, BuildFailure> {
        match self {
            Self::Read(pending) => {
                let names = whole_program::function_names(&pending.unoptimised.ir);
                Ok(names.map(str::to_owned).collect())
            }
            Self::Spirv(module) => {
                let programs = read_all(std::slice::from_ref(module), &[])?;
                let functions = programs.iter().flat_map(|p| p.module().functions.values());
                Ok(functions.map(|function| function.name.clone()).collect())
            }
        }
    }
}

impl DeferredSource {
    fn optimise(&self, keep: Option<&HashSet<String>>) -> Result<SpirvModule, BuildFailure> {
        let toolchain = toolchain::get()
            .ok_or_else(|| BuildFailure("error: the OpenCL C compiler is gone\n".into()))?;
        let mut key = CacheKey::new(KIND);
        key.part(&self.key);
        if let Some(keep) = keep {
            let mut names: Vec<&String> = keep.iter().collect();
            names.sort();
            key.part(&[1]);
            names.into_iter().for_each(|name| {
                key.part(name.as_bytes());
            });
        }
        if let Some(words) = entries::load(KIND, &key).and_then(|bytes| to_words(&bytes)) {
            return Ok(Arc::new(words));
        }
        let (words, log, is_whole) =
            clang::optimise(toolchain, &self.unoptimised, &self.options, keep);
        let words = words.ok_or(BuildFailure(log))?;
        if is_whole {
            entries::store(KIND, &key, &to_bytes(&words));
        }
        Ok(Arc::new(words))
    }
}

/// Compiles OpenCL C for linking. The log holds warnings also when it succeeds.
pub fn compile_source(
    source: &str,
    headers: &[Header<'_>],
    options: &BuildOptions,
    language: &Language,
) -> (Option<Linkable>, String) {
    let toolchain = toolchain::get();
    let (Some(toolchain), true) = (toolchain, clang::better_read_first(source, options)) else {
        let (module, log) = super::compile_source(source, headers, options, language);
        return (module.map(Linkable::Spirv), log);
    };
    let source = ClSource {
        toolchain,
        text: source,
        headers,
        options,
        language,
    };
    let key = source::key(&source);
    let (unoptimised, log) = match load(&key) {
        Some(known) => known,
        None => {
            let left = clang::read(&source);
            let Some(unoptimised) = left.unoptimised else {
                return (None, left.log);
            };
            if let Some(read) = &left.read {
                let payload = payload(&unoptimised);
                source::store(&source, source::READ, &key, &payload, &left.log, read);
            }
            (unoptimised, left.log)
        }
    };
    let mut hash = blake3::Hasher::new();
    hash.update(key.name().as_bytes());
    hash.update(unoptimised.ir.as_bytes());
    let pending = DeferredSource {
        unoptimised,
        options: options.clone(),
        key: *hash.finalize().as_bytes(),
        whole: OnceLock::new(),
    };
    (Some(Linkable::Read(Arc::new(pending))), log)
}

fn payload(unoptimised: &Unoptimised) -> Vec<u8> {
    let mut out = Vec::new();
    sections::put(&mut out, unoptimised.ir.as_bytes());
    if let Some(described) = &unoptimised.described {
        sections::put(&mut out, described.as_bytes());
    }
    out
}

fn load(key: &CacheKey) -> Option<(Unoptimised, String)> {
    let (payload, log) = source::load(source::READ, key)?;
    let mut rest = payload.as_slice();
    let mut text = || String::from_utf8(sections::take(&mut rest)?.to_vec()).ok();
    let unoptimised = Unoptimised {
        ir: text()?,
        described: text(),
    };
    Some((unoptimised, log))
}

/// Returns the modules of an executable: of each linkable what its kernels and the others use.
pub fn for_executable(linkables: &[Linkable]) -> Result<Vec<SpirvModule>, BuildFailure> {
    let waits = linkables
        .iter()
        .any(|linkable| matches!(linkable, Linkable::Read(_)));
    let names = if waits && linkables.len() > 1 {
        let names = linkables.iter().map(Linkable::function_names);
        names.collect::<Result<Vec<_>, _>>()?
    } else {
        Vec::new()
    };
    let module = |(index, linkable): (usize, &Linkable)| match linkable {
        Linkable::Spirv(module) => Ok(module.clone()),
        Linkable::Read(pending) => {
            // Whatever another linkable knows by name stays as it is, definitions of the same function too: those are errors.
            let others = names.iter().enumerate().filter(|(i, _)| *i != index);
            let keep = others.flat_map(|(_, names)| names).cloned().collect();
            pending.optimise(Some(&keep))
        }
    };
    linkables.iter().enumerate().map(module).collect()
}

/// Returns the modules of a library: all of each linkable.
pub fn for_library(linkables: &[Linkable]) -> Result<Vec<SpirvModule>, BuildFailure> {
    linkables.iter().map(Linkable::module).collect()
}
