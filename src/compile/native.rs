//! Kernels for processors: from lowered KIR through LLVM's IR to object files, which are cached.

use super::clang::native::Generator;
use super::dump;
use super::store::entries::{self, CacheKey};
use super::words::BuildFailure;
use crate::backend::{DeviceError, NativeCode, Result};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use spirv_lowering::interface::Implicit;
use spirv_lowering::ir::parse::parse_module;
use spirv_lowering::native::{self, Packing, Shape, Stack};
use spirv_lowering::target::Target;
use spirv_lowering::Lowered;
use std::sync::{Arc, OnceLock};

const KIND: &str = "native";

/// A lowered kernel of which object files can be made.
pub struct Native {
    name: String,
    kir: String,
    implicit: Vec<(Implicit, u32)>,
    /// The work-items of a pack.
    lanes: u32,
    /// The 32-bit elements of the processor's vectors.
    width: u32,
    /// A hash of the processor's abilities and this version of the library.
    processor: [u8; 16],
    for_any_group: Arc<ForAnyGroup>,
}

/// The object file of a kernel for work-groups of any size (`Packing::ANY_GROUP`), which was
/// compiled here, or came with the program's binary and runs where there is no compiler.
pub type ForAnyGroup = OnceLock<Vec<u8>>;

impl Native {
    /// Creates a kernel for a target on a processor. `processor` identifies everything that code
    /// may rely on.
    pub fn new(
        lowered: &Lowered,
        target: &Target,
        processor: [u8; 16],
        for_any_group: Arc<ForAnyGroup>,
    ) -> Self {
        Self {
            name: lowered.interface.name.clone(),
            kir: lowered.kir.clone(),
            implicit: lowered.interface.implicit.clone(),
            lanes: lowered.interface.lanes,
            width: target.subgroup_size,
            processor,
            for_any_group,
        }
    }

    /// Returns the object file from the cache, or else from the compiler, or else, where that
    /// fails, one that another compiler made before.
    fn find(&self, packing: Packing) -> Result<Vec<u8>, String> {
        let own = (packing == Packing::ANY_GROUP).then_some(&self.for_any_group);
        if let Some(object) = own.and_then(|own| own.get()) {
            return Ok(object.clone());
        }
        let key = self.key(packing);
        let kept = entries::load(KIND, &key).and_then(CacheEntry::read);
        let object = self.compile(packing, &key, kept.as_ref());
        let object = object.or_else(|log| kept.map(|kept| kept.object).ok_or(log))?;
        Ok(match own {
            Some(own) => own.get_or_init(|| object).clone(),
            None => object,
        })
    }

    /// Returns the cache key of an object file, which does not depend on the compiler.
    fn key(&self, packing: Packing) -> CacheKey {
        let mut key = CacheKey::new(KIND);
        key.part(&self.processor);
        key.part(self.kir.as_bytes());
        let (lanes, width) = (self.lanes, self.width);
        key.part(format!("{:?} {packing:?} {lanes} {width}", self.implicit).as_bytes());
        key
    }

    fn compile(
        &self,
        packing: Packing,
        key: &CacheKey,
        kept: Option<&CacheEntry>,
    ) -> Result<Vec<u8>, String> {
        let generator = generator(self.processor).map_err(|failure| failure.0)?;
        let shape = Shape {
            lanes: match packing {
                Packing::Alone => 1,
                _ => self.lanes,
            },
            width: self.width,
            packing,
            quirks: generator.code_quirks(),
            gathers: generator.gathers(self.width),
            stack: Stack::HERE,
        };
        let producer = format!("{} {shape:?}", generator.identity(self.width));
        let kept = kept.filter(|kept| kept.producer == producer);
        if let (Some(kept), None) = (kept, dump::dir()) {
            return Ok(kept.object.clone());
        }
        let text = parse_module(&self.kir)
            .map_err(|error| error.to_string())
            .and_then(|module| {
                native::emit(&module, &self.implicit, shape).map_err(|error| error.to_string())
            })?;
        if dump::dir().is_some() {
            let (stem, name) = (dump::stem(text.as_bytes()), self.name.replace('/', "_"));
            dump::write(&format!("{stem}.{name}.ll"), text.as_bytes());
        }
        if let Some(kept) = kept {
            return Ok(kept.object.clone());
        }
        let object = generator
            .object(&text, self.width)
            .map_err(|failure| failure.0)?;
        check(&object, packing)?;
        let made = CacheEntry { producer, object };
        entries::store(KIND, key, &made.written());
        Ok(made.object)
    }
}

/// An object file in the cache.
struct CacheEntry {
    /// The name of the compiler and its quirks, which also decide it.
    producer: String,
    object: Vec<u8>,
}

impl CacheEntry {
    /// Encodes the length of the producer's name in four bytes, the name, and the object file.
    fn written(&self) -> Vec<u8> {
        let length = self.producer.len() as u32;
        let parts = [
            &length.to_le_bytes(),
            self.producer.as_bytes(),
            &self.object,
        ];
        parts.concat()
    }

    fn read(mut bytes: Vec<u8>) -> Option<Self> {
        let length = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
        let start = length
            .checked_add(4)
            .filter(|&start| start <= bytes.len())?;
        let object = bytes.split_off(start);
        let producer = String::from_utf8(bytes.split_off(4)).ok()?;
        Some(Self { producer, object })
    }
}

/// Checks that a compiler's output is an object file with the kernel in it: one that ended too
/// early, or does something else altogether, must not fill the cache.
fn check(object: &[u8], packing: Packing) -> Result<(), String> {
    let wrong = |what: String| format!("the compiler's output is no object file: {what}\n");
    let file = object::File::parse(object).map_err(|error| wrong(error.to_string()))?;
    file.sections()
        .try_for_each(|section| section.data().map(drop))
        .map_err(|error| wrong(error.to_string()))?;
    let mut functions = file
        .symbols()
        .filter(|symbol| symbol.is_global() && symbol.is_definition());
    let found = functions.any(|symbol| symbol.name() == Ok(packing.symbol()));
    if file.kind() != object::ObjectKind::Relocatable || !found {
        return Err(wrong("the kernel is not in it".to_owned()));
    }
    Ok(())
}

/// Returns the compiler for the machine that `processor` identifies; its report is cached.
fn generator(processor: [u8; 16]) -> Result<Arc<Generator>, BuildFailure> {
    const KIND: &str = "clang";
    let key = |identity: &str| {
        let mut key = CacheKey::new(KIND);
        key.part(identity.as_bytes()).part(&processor);
        key
    };
    Generator::find(
        |identity| entries::load(KIND, &key(identity)),
        |identity, report| entries::store(KIND, &key(identity), report),
    )
}

/// Returns the names of the quirks of this process's compiler.
pub fn quirks(processor: [u8; 16]) -> Vec<String> {
    generator(processor).map_or(Vec::new(), |generator| generator.quirks().names())
}

impl NativeCode for Native {
    fn kir(&self) -> &str {
        &self.kir
    }

    fn packs_groups(&self) -> bool {
        parse_module(&self.kir).is_ok_and(|module| native::packs_groups(&module))
    }

    fn runs_any_group(&self) -> bool {
        self.for_any_group.get().is_some()
    }

    fn object(&self, packing: Packing) -> Result<Vec<u8>> {
        self.find(packing).map_err(|log| {
            let name = &self.name;
            if self.runs_any_group() {
                crate::log!(Info, "kernel {name} runs as its binary has it: {log}");
            } else {
                crate::log!(Error, "kernel {name}: no code for the processor: {log}");
            }
            DeviceError::Driver {
                call: "compiling a kernel for the processor",
                code: log,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_back() {
        let kept = CacheEntry {
            producer: "clang 22".to_owned(),
            object: b"\x7fELF".to_vec(),
        };
        let bytes = kept.written();
        let again = CacheEntry::read(bytes.clone()).unwrap();
        assert_eq!((again.producer, again.object), (kept.producer, kept.object));
        for length in 0..12 {
            assert!(CacheEntry::read(bytes[..length].to_vec()).is_none());
        }
        assert!(CacheEntry::read(vec![0xff; 8]).is_none());
    }
}
