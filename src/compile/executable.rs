//! A linked program for one device: its kernels lowered, loaded on first use.

use super::builtin_library;
use super::dump;
use super::instance::{End, Instance, Lifecycle};
use super::lower;
use super::native::{ForAnyGroup, Native};
use super::options::BuildOptions;
use super::printf::{Output, Printed};
use super::store::binary::Binary;
use super::store::entries::{self, CacheKey};
use super::store::{pipelines, sections};
use super::words::{BuildFailure, SpirvModule};
use crate::backend::{
    staging, Code, Device, DeviceError, MachineCode, Memory, NativeCode, Placement,
};
use crate::util::lock::{rank, Mutex};
use spirv_lowering::device_queue::block_number;
use spirv_lowering::error::LowerError;
use spirv_lowering::interface::{KernelAttributes, KernelRole, ProgramGlobals};
use spirv_lowering::native::Packing;
use spirv_lowering::target::Target;
use spirv_lowering::{LinkOptions, Lowered, Program, ReadOptions};
use std::any::Any;
use std::sync::{Arc, OnceLock};

const KIND: &str = "vk";

/// A kernel of an executable.
pub struct LoweredKernel {
    /// Vulkan SPIR-V and interface.
    pub lowered: Lowered,
    /// The number of its block in records of device queues, if kernels enqueue it.
    pub number: u64,
    code: OnceLock<Arc<dyn Code>>,
    loading: Mutex<(), { rank::KERNEL_LOADING }>,
    /// The object file for work-groups of any size, for the CPU device.
    for_any_group: Arc<ForAnyGroup>,
}

impl LoweredKernel {
    fn new(lowered: Lowered) -> Self {
        Self {
            number: block_number(&lowered.interface.name),
            lowered,
            code: OnceLock::new(),
            loading: Mutex::default(),
            for_any_group: Arc::default(),
        }
    }
}

/// The input of an executable, to build another one from it.
struct Sources {
    modules: Vec<SpirvModule>,
    spec_constants: Vec<(u32, Vec<u8>)>,
    options: BuildOptions,
}

/// The highest alignment of a program-scope variable.
const MOST_ALIGN: u32 = 4096;

/// A linked program for one device.
pub struct Executable {
    device: Arc<dyn Device>,
    kernels: Vec<LoweredKernel>,
    initializers: Vec<LoweredKernel>,
    finalizers: Vec<LoweredKernel>,
    blocks: Vec<LoweredKernel>,
    globals: ProgramGlobals,
    instance: Mutex<Option<Arc<Instance>>, { rank::PROGRAM_VARIABLES }>,
    companion: OnceLock<Arc<dyn Any + Send + Sync>>,
    sources: Option<Sources>,
    wide: OnceLock<Box<Executable>>,
    widening: Mutex<(), { rank::WIDE_KERNELS }>,
    objects: OnceLock<Vec<u8>>,
}

/// Returns the work-items of the device's sub-groups for which a kernel has to be lowered. Kernels
/// may require smaller ones, or, of a processor, any.
///
/// # Errors
///
/// Returns the size that the kernel requires, and those that the device has, if it is none of them.
pub fn subgroup_size(device: &dyn Device, attributes: &KernelAttributes) -> Result<u32, String> {
    let caps = device.caps();
    let Some(required) = attributes.required_sub_group_size else {
        return Ok(device.target().subgroup_size);
    };
    let sizes = &caps.subgroup_sizes;
    match sizes.contains(&required) {
        true if device.target().native => Ok(device.target().subgroup_size),
        true => Ok(caps.hardware_subgroup(required)),
        false => Err(format!(
            "sub-groups of {required} work-items; the device has {sizes:?}"
        )),
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        // Where launches still use it, the last of them ends it.
        if let Some(instance) = self.instance.get_mut().take().and_then(Arc::into_inner) {
            instance.end();
        }
    }
}

impl Executable {
    /// Links modules and lowers every kernel, or reads the result from the cache.
    pub fn build(
        device: &Arc<dyn Device>,
        modules: &[SpirvModule],
        spec_constants: &[(u32, Vec<u8>)],
        options: &BuildOptions,
    ) -> Result<Self, BuildFailure> {
        let sources = Sources {
            modules: modules.to_vec(),
            spec_constants: spec_constants.to_vec(),
            options: options.clone(),
        };
        let mut executable = sources.build(device, false)?;
        executable.sources = Some(sources);
        Ok(executable)
    }

    /// Returns the same kernels for launches beyond 2^32 work-items in a dimension, with ids of 64
    /// bits, built when first requested. Program-scope variables, initializers and finalizers are
    /// those of this one, which alone has an instance.
    pub fn wide(&self) -> Result<&Self, DeviceError> {
        if let Some(wide) = self.wide.get() {
            return Ok(wide);
        }
        let _one = self.widening.lock();
        if let Some(wide) = self.wide.get() {
            return Ok(wide);
        }
        let unsupported = |what| Err(DeviceError::Unsupported(what));
        let Some(sources) = &self.sources else {
            return unsupported("launches beyond 32 bits of this program".to_owned());
        };
        match sources.build(&self.device, true) {
            Ok(made) if made.kernels.len() == self.kernels.len() => {
                Ok(self.wide.get_or_init(|| Box::new(made)))
            }
            Ok(_) => unsupported("a program with other kernels for large launches".to_owned()),
            Err(BuildFailure(what)) => unsupported(what),
        }
    }

    fn lower(
        device: &Arc<dyn Device>,
        modules: &[SpirvModule],
        spec_constants: &[(u32, Vec<u8>)],
        options: &BuildOptions,
        wide: bool,
    ) -> Result<Self, BuildFailure> {
        let failure = |error: &dyn std::fmt::Display| BuildFailure(format!("error: {error}\n"));
        let library = builtin_library::get().map_err(|e| failure(&e))?;
        let programs = read_all(modules, spec_constants)?;
        let programs: Vec<&Program> = programs.iter().collect();
        let link = LinkOptions {
            allow_undefined: false,
            library: Some(library),
        };
        let program = Program::link(&programs, &link).map_err(|e| failure(&e))?;
        let globals = program.globals().map_err(|e| failure(&e))?;
        let infos = program.kernels();
        let mut names = Vec::with_capacity(infos.len());
        for info in infos {
            let size = subgroup_size(device.as_ref(), &info.attributes);
            let name = info.name;
            let refused = |what| BuildFailure(format!("error: kernel {name} requires {what}\n"));
            let size = size.map_err(refused)?;
            names.push((name, size));
        }
        let lower_one = |name: &str, size: u32| {
            let target = Target {
                subgroup_size: size,
                wide_range: wide,
                ..device.target().clone()
            };
            lower::lower(&program, name, &target, options, library)
        };
        let mut kernels = Vec::with_capacity(names.len());
        for lowered in lower_all(&names, lower_one)? {
            kernels.push(LoweredKernel::new(lowered));
        }
        Ok(Self::new(device, kernels, globals))
    }

    fn new(device: &Arc<dyn Device>, all: Vec<LoweredKernel>, globals: ProgramGlobals) -> Self {
        let mut made = Self {
            device: device.clone(),
            kernels: Vec::with_capacity(all.len()),
            initializers: Vec::new(),
            finalizers: Vec::new(),
            blocks: Vec::new(),
            globals,
            instance: Mutex::default(),
            companion: OnceLock::new(),
            sources: None,
            wide: OnceLock::new(),
            widening: Mutex::default(),
            objects: OnceLock::new(),
        };
        for kernel in all {
            match kernel.lowered.interface.attributes.role {
                KernelRole::Ordinary => made.kernels.push(kernel),
                KernelRole::Initializer => made.initializers.push(kernel),
                KernelRole::Finalizer => made.finalizers.push(kernel),
                KernelRole::Block => made.blocks.push(kernel),
            }
        }
        made
    }

    /// Returns true if there are kernels that run before all others
    /// (CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT).
    pub fn has_initializers(&self) -> bool {
        !self.initializers.is_empty()
    }

    /// Returns true if there are kernels that run after all others
    /// (CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT).
    pub fn has_finalizers(&self) -> bool {
        !self.finalizers.is_empty()
    }

    /// Keeps `companion` until the finalizers have run. Must be called before the first kernel is
    /// launched, once.
    pub fn keep_until_finalized(&self, companion: Arc<dyn Any + Send + Sync>) {
        // Said a second time it is the same program's.
        let _ = self.companion.set(companion);
    }

    /// Returns the kernels that an application can create, in the order of the program.
    pub fn kernels(&self) -> &[LoweredKernel] {
        &self.kernels
    }

    /// Returns the index of the kernel with a name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.kernels
            .iter()
            .position(|k| k.lowered.interface.name == name)
    }

    /// Returns the kernels that kernels enqueue.
    pub fn blocks(&self) -> &[LoweredKernel] {
        &self.blocks
    }

    /// Returns the code of a block's kernel.
    pub fn block_code(&self, block: &LoweredKernel) -> Result<Arc<dyn Code>, DeviceError> {
        self.load(block).cloned()
    }

    /// Returns the program-scope variables.
    pub fn globals(&self) -> &ProgramGlobals {
        &self.globals
    }

    /// Returns the code of a kernel. A failure is not cached: memory may be free the next time.
    pub fn code(&self, index: usize) -> Result<&Arc<dyn Code>, DeviceError> {
        let kernel = self
            .kernels
            .get(index)
            .ok_or_else(|| DeviceError::Unsupported("no such kernel".into()))?;
        self.load(kernel)
    }

    fn load<'a>(&self, kernel: &'a LoweredKernel) -> Result<&'a Arc<dyn Code>, DeviceError> {
        if let Some(code) = kernel.code.get() {
            return Ok(code);
        }
        let _one = kernel.loading.lock();
        if let Some(code) = kernel.code.get() {
            return Ok(code);
        }
        let lowered = &kernel.lowered;
        check_private(lowered, self.device.target().native)?;
        pipelines::restore(self.device.as_ref());
        let code = if self.device.target().native {
            MachineCode::Native(Arc::new(self.native(kernel)))
        } else {
            MachineCode::Spirv(&lowered.words)
        };
        let code = self.device.load(code, &lowered.interface)?;
        Ok(kernel.code.get_or_init(|| code))
    }

    /// Returns the program-scope variables, initialised on first use, or `None` if there is nothing
    /// to initialise.
    ///
    /// # Errors
    ///
    /// No kernel of the program may run after an error; the next call tries again.
    #[inline]
    pub fn instance(&self, output: &Arc<Output>) -> Result<Option<Arc<Instance>>, DeviceError> {
        let nothing = self.globals.data.is_empty() && !self.has_initializers();
        if nothing && !self.has_finalizers() {
            return Ok(None);
        }
        let mut printed = Vec::new();
        let found = self.find_instance(output, &mut printed);
        // The lock is released: the output may be a function of the application's.
        for printed in printed {
            output.print(&printed.sites, &printed.bytes);
        }
        found
    }

    fn find_instance(
        &self,
        output: &Arc<Output>,
        printed: &mut Vec<Printed>,
    ) -> Result<Option<Arc<Instance>>, DeviceError> {
        // Held while the initializers run: other threads that launch kernels of the program wait for them.
        let mut slot = self.instance.lock();
        if slot.is_none() {
            let globals = match self.globals.data.is_empty() {
                true => None,
                false => Some(self.upload_globals()?),
            };
            let initializers = self.load_all(self.initializers.iter())?;
            // Loaded now, so that it is known that they can run; what was made last goes first.
            let finalizers = self.load_all(self.finalizers.iter().rev())?;
            let companion = self.companion.get().cloned();
            let end = End {
                device: self.device.clone(),
                globals,
                finalizers,
                companion,
                output: output.clone(),
            };
            let made = Instance::begin(end, &initializers, printed)?;
            *slot = Some(Arc::new(made));
        }
        Ok(slot.clone())
    }

    fn load_all<'a>(
        &self,
        kernels: impl Iterator<Item = &'a LoweredKernel>,
    ) -> Result<Vec<Lifecycle>, DeviceError> {
        kernels
            .map(|kernel| {
                Ok(Lifecycle {
                    code: self.load(kernel)?.clone(),
                    printfs: kernel.lowered.printfs.clone(),
                })
            })
            .collect()
    }

    fn upload_globals(&self) -> Result<Arc<dyn Memory>, DeviceError> {
        let size = self.globals.data.len() as u64;
        // No variable asks for more than the size of all: the first bytes are left free.
        let align = (1 << size.ilog2()).min(MOST_ALIGN);
        let given = self.device.caps().mem_base_align.max(1);
        let room = u64::from(align.saturating_sub(given));
        let whole = self.device.allocate(size + room, Placement::Device)?;
        let start = whole.address().wrapping_neg() % u64::from(align);
        let memory = match room {
            0 => whole,
            _ => self.device.part(&whole, start, size)?,
        };
        let mut data = self.globals.data.clone();
        for relocation in &self.globals.relocations {
            let at = relocation.offset as usize;
            let address = memory.address().wrapping_add(relocation.target);
            if let Some(place) = data.get_mut(at..at + 8) {
                place.copy_from_slice(&address.to_le_bytes());
            }
        }
        staging::upload(self.device.as_ref(), &memory, 0, &data)?;
        Ok(memory)
    }

    /// Encodes everything but the modules, for the cache and for program binaries.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        sections::put(&mut out, &self.globals.to_bytes());
        for kernel in self.all() {
            sections::put(&mut out, &kernel.lowered.to_bytes());
        }
        out
    }

    fn all(&self) -> impl Iterator<Item = &LoweredKernel> {
        let all = [
            &self.kernels,
            &self.initializers,
            &self.finalizers,
            &self.blocks,
        ];
        all.into_iter().flatten()
    }

    fn native(&self, kernel: &LoweredKernel) -> Native {
        let device = &self.device;
        let (target, processor) = (device.target(), device.caps().driver_uuid);
        Native::new(
            &kernel.lowered,
            target,
            processor,
            kernel.for_any_group.clone(),
        )
    }

    /// Encodes object files of the kernels for work-groups of any size, for program binaries, so
    /// that the program runs where there is no compiler. The bytes are the same in each call, and
    /// empty for other devices than the processor.
    pub fn objects(&self) -> &[u8] {
        self.objects.get_or_init(|| {
            let mut out = Vec::new();
            if !self.device.target().native {
                return out;
            }
            let object = |kernel: &&LoweredKernel| {
                // A kernel that does not compile says so when it is launched, too.
                let make = || self.native(kernel).object(Packing::ANY_GROUP);
                let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(make));
                made.map(Result::unwrap_or_default).unwrap_or_default()
            };
            let all: Vec<_> = self.all().collect();
            for object in map_parallel(&all, object) {
                sections::put(&mut out, &object);
            }
            out
        })
    }

    /// Reads the object files that [`Self::objects`] wrote. Returns `None` if they are damaged.
    fn read_objects(&self, mut bytes: &[u8]) -> Option<()> {
        for kernel in self.all() {
            let object = sections::take(&mut bytes)?;
            if !object.is_empty() {
                kernel.for_any_group.get_or_init(|| object.to_vec());
            }
        }
        bytes.is_empty().then_some(())
    }

    /// Decodes the result of [`Self::to_bytes`]. Returns `None` if it is damaged.
    pub fn from_bytes(device: &Arc<dyn Device>, mut bytes: &[u8]) -> Option<Self> {
        let globals = ProgramGlobals::from_bytes(sections::take(&mut bytes)?).ok()?;
        let mut kernels = Vec::new();
        while let Some(part) = sections::take(&mut bytes) {
            kernels.push(LoweredKernel::new(Lowered::from_bytes(part).ok()?));
        }
        bytes
            .is_empty()
            .then(|| Self::new(device, kernels, globals))
    }
}

/// The most bytes of arrays in private memory that a Vulkan driver's compiler gets: lavapipe's
/// takes 0.6 ms and 29 KB for each element, so that those of 16 MB would never end; NVIDIA's has
/// 512 KiB for a work-item.
const MOST_PRIVATE: u32 = 256 << 10;

/// Returns an error if a kernel's private arrays exceed what drivers support.
fn check_private(lowered: &Lowered, native: bool) -> Result<(), DeviceError> {
    let size = lowered.interface.private_size;
    if native || size <= MOST_PRIVATE {
        return Ok(());
    }
    Err(DeviceError::Driver {
        call: "loading a kernel",
        code: format!(
            "the arrays in its private memory have {size} bytes, the device takes {MOST_PRIVATE}"
        ),
    })
}

/// Returns the lowered kernels of a binary, if this build of the library made them for this very
/// device.
pub fn of_binary(
    binary: &Binary,
    device: &Arc<dyn Device>,
    options: &BuildOptions,
) -> Option<Executable> {
    let lowered = binary.executable.as_ref()?;
    let wanted = key(
        device.as_ref(),
        &binary.modules,
        &binary.spec_constants,
        options,
    );
    if wanted.name().as_bytes() != lowered.key {
        return None;
    }
    let mut executable = Executable::from_bytes(device, &lowered.kernels)?;
    if device.target().native {
        executable.read_objects(&lowered.objects)?;
    }
    executable.sources = Some(Sources {
        modules: binary.modules.clone(),
        spec_constants: binary.spec_constants.clone(),
        options: options.clone(),
    });
    Some(executable)
}

impl Sources {
    /// Lowers every kernel, or reads the result from the cache. `wide`: for launches beyond 2^32
    /// work-items in a dimension.
    fn build(&self, device: &Arc<dyn Device>, wide: bool) -> Result<Executable, BuildFailure> {
        let Self {
            modules,
            spec_constants,
            options,
        } = self;
        let key = key_of(device.as_ref(), modules, spec_constants, options, wide);
        if let Some(executable) =
            entries::load(KIND, &key).and_then(|bytes| Executable::from_bytes(device, &bytes))
        {
            if executable.all().all(|kernel| dump::has(&kernel.lowered)) {
                return Ok(executable);
            }
        }
        let executable = Executable::lower(device, modules, spec_constants, options, wide)?;
        entries::store(KIND, &key, &executable.to_bytes());
        Ok(executable)
    }
}

/// Returns the key for all inputs of an executable, which program binaries also store.
pub fn key(
    device: &dyn Device,
    modules: &[SpirvModule],
    spec_constants: &[(u32, Vec<u8>)],
    options: &BuildOptions,
) -> CacheKey {
    key_of(device, modules, spec_constants, options, false)
}

fn key_of(
    device: &dyn Device,
    modules: &[SpirvModule],
    spec_constants: &[(u32, Vec<u8>)],
    options: &BuildOptions,
    wide: bool,
) -> CacheKey {
    let target = Target {
        wide_range: wide,
        ..device.target().clone()
    };
    let mut key = CacheKey::new(KIND);
    key.part(format!("{target:?}").as_bytes());
    key.part(&device.caps().driver_uuid);
    key.part(&[
        u8::from(options.correctly_rounded_divide_sqrt),
        u8::from(options.denorms_are_zero),
        u8::from(options.unsafe_math || options.fast_relaxed_math),
        u8::from(crate::util::config::get().check.memory),
        u8::from(options.zeroed.local),
        u8::from(options.zeroed.private),
    ]);
    let passes = &crate::util::config::get().passes;
    if passes.change_code() {
        key.part(format!("{passes:?}").as_bytes());
    }
    for module in modules {
        key.words(module);
    }
    for (id, value) in spec_constants {
        key.part(&id.to_le_bytes()).part(value);
    }
    key
}

/// Reads modules, as objects.
pub fn read_all(
    modules: &[SpirvModule],
    spec_constants: &[(u32, Vec<u8>)],
) -> Result<Vec<Program>, BuildFailure> {
    let options = ReadOptions {
        spec_constants: spec_constants.to_vec(),
        keep_unwritten: crate::util::config::get().check.memory,
        ..Default::default()
    };
    modules
        .iter()
        .map(|words| {
            Program::read(words, &options).map_err(|e| BuildFailure(format!("error: {e}\n")))
        })
        .collect()
}

/// Links objects into a library, only to find errors: the modules are kept as they are.
pub fn check_library(modules: &[SpirvModule]) -> Result<(), BuildFailure> {
    let programs = read_all(modules, &[])?;
    let programs: Vec<&Program> = programs.iter().collect();
    let link = LinkOptions {
        allow_undefined: true,
        library: None,
    };
    Program::link(&programs, &link)
        .map(drop)
        .map_err(|e| BuildFailure(format!("error: {e}\n")))
}

/// Lowers kernels, by name. A kernel that cannot be lowered, or makes the compiler panic, is an
/// error of the whole program.
fn lower_all(
    names: &[(String, u32)],
    lower: impl Fn(&str, u32) -> Result<Lowered, LowerError> + Sync,
) -> Result<Vec<Lowered>, BuildFailure> {
    let guarded = |(name, size): &(String, u32)| {
        // What a lowering leaves half done is its own.
        let lowered = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| lower(name, *size)));
        match lowered {
            Ok(Ok(lowered)) => Ok(lowered),
            Ok(Err(error)) => Err(BuildFailure(format!("error: kernel {name}: {error}\n"))),
            Err(_) => Err(BuildFailure(format!(
                "error: kernel {name}: the compiler ended by a defect of the driver\n"
            ))),
        }
    };
    map_parallel(names, guarded).into_iter().collect()
}

/// Applies `f` to every item, on as many threads as the machine has cores. `f` must not panic.
fn map_parallel<T: Sync, R: Send + Sync>(items: &[T], f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let threads = crate::util::cores().min(items.len());
    if threads <= 1 {
        return items.iter().map(f).collect();
    }
    let next = AtomicUsize::new(0);
    let results: Vec<OnceLock<R>> = items.iter().map(|_| OnceLock::new()).collect();
    let work = || loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let (Some(item), Some(result)) = (items.get(index), results.get(index)) else {
            break;
        };
        let _ = result.set(f(item));
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // Without it the others do its work.
            let _ = crate::util::thread::spawn_scoped(scope, "pumice-lower", work);
        }
        work();
    });
    let results: Vec<R> = results
        .into_iter()
        .filter_map(OnceLock::into_inner)
        .collect();
    assert_eq!(results.len(), items.len(), "each item has its result");
    results
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::fake::{FakeDevice, Reach};

    fn lowered(name: &str) -> Lowered {
        let mut lowered = Lowered {
            words: Vec::new(),
            kir: String::new(),
            interface: Default::default(),
            printfs: Vec::new(),
        };
        lowered.interface.name = name.to_owned();
        lowered
    }

    /// Checks that a kernel on which the compiler panics is reported, neither left out nor replaced
    /// by its neighbour.
    #[test]
    fn a_kernel_that_fails_is_named() {
        let names: Vec<_> = (0..40).map(|number| (format!("k{number}"), 8)).collect();
        let all = lower_all(&names, |name, _| Ok(lowered(name))).unwrap();
        let found = all.iter().map(|l| &l.interface.name);
        assert!(found.eq(names.iter().map(|(name, _)| name)));
        let built = lower_all(&names, |name, _| match name {
            "k7" => panic!("a defect"),
            name => Ok(lowered(name)),
        });
        let Err(BuildFailure(what)) = built else {
            panic!("built without k7")
        };
        assert!(what.contains("kernel k7:"), "{what}");
    }

    /// Checks that no kernel of a program runs if its initializer fails, and that the next attempt
    /// starts again.
    #[test]
    fn an_initializer_that_fails_is_tried_again() {
        let fake = FakeDevice::new(Reach::Cached);
        let device: Arc<dyn Device> = fake.clone();
        let mut first = lowered("first");
        first.interface.attributes.role = KernelRole::Initializer;
        let kernels = vec![LoweredKernel::new(lowered("k")), LoweredKernel::new(first)];
        let executable = Executable::new(&device, kernels, ProgramGlobals::default());
        assert_eq!(executable.kernels().len(), 1);
        assert!(executable.has_initializers() && !executable.has_finalizers());
        fake.fail_load(|| DeviceError::OutOfDeviceMemory { size: 1 });
        assert!(executable.instance(&Arc::default()).is_err());
        let instance = executable.instance(&Arc::default()).unwrap().unwrap();
        let again = executable.instance(&Arc::default()).unwrap().unwrap();
        assert!(Arc::ptr_eq(&instance, &again));
    }

    #[test]
    fn code_that_could_not_be_loaded_is_loaded_again() {
        let fake = FakeDevice::new(Reach::Cached);
        let lowered = Lowered {
            words: Vec::new(),
            kir: String::new(),
            interface: Default::default(),
            printfs: Vec::new(),
        };
        let device: Arc<dyn Device> = fake.clone();
        let kernels = vec![LoweredKernel::new(lowered)];
        let executable = Executable::new(&device, kernels, ProgramGlobals::default());
        fake.fail_load(|| DeviceError::OutOfDeviceMemory { size: 1 });
        assert!(executable.code(0).is_err());
        let code = executable.code(0).ok().map(Arc::as_ptr);
        assert!(code.is_some());
        assert_eq!(executable.code(0).ok().map(Arc::as_ptr), code);
    }
}
