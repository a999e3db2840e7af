//! Kernels: the code for each way to pack work-items, made when it is first needed, and what a work-group size needs.

use super::abi::{Info, KernelEntry};
use super::check::{self, CheckedKernel};
use super::loader::Loaded;
use crate::backend::{Code, DeviceError, NativeCode, Pipeline, Result};
use crate::util::lock::{rank, Mutex, RwLock};
use rustc_hash::FxHashMap;
use spirv_lowering::interface::{KernelInterface, LOCAL_ARG_ALIGN, SPEC_FIRST_LOCAL_ARG};
use spirv_lowering::native::{self, Packing};
use std::any::Any;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};

/// Work-groups that are remembered.
const MOST_PIPELINES: usize = 256;

/// The code of a kernel for one packing.
pub struct Variant {
    entry: KernelEntry,
    info: Info,
    /// Nanoseconds that a work-item took lately, as the bits of a float; 0: not known.
    pub cost: AtomicU32,
    _loaded: Loaded,
}

impl Variant {
    fn load(object: &[u8], packing: Packing) -> Result<Self> {
        let loaded = Loaded::new(object)?;
        let missing = || DeviceError::Driver {
            call: "loading the code of a kernel",
            code: format!("{} is missing", packing.symbol()),
        };
        let info = loaded
            .export("pumice_info", std::mem::size_of::<Info>())
            .ok_or_else(missing)?;
        // SAFETY: that many bytes are there; the words have no invalid values.
        let info = unsafe { info.cast::<Info>().read_unaligned() };
        if info.version != native::VERSION {
            return Err(missing());
        }
        let entry = loaded.export(packing.symbol(), 1).ok_or_else(missing)?;
        // SAFETY: the code was made with this interface, as its version says; `loaded` lives as long.
        let entry = unsafe { std::mem::transmute::<*mut u8, KernelEntry>(entry.as_ptr()) };
        Ok(Self {
            entry,
            info,
            cost: AtomicU32::new(0),
            _loaded: loaded,
        })
    }

    /// Returns the entry point.
    pub fn entry(&self) -> KernelEntry {
        self.entry
    }
}

/// A kernel with a work-group size and sizes of local-memory arguments.
pub struct CpuPipeline {
    pub variant: Arc<Variant>,
    pub local_size: [u32; 3],
    /// Offset and size of each argument in local memory.
    pub local_args: Vec<[u32; 2]>,
    /// See `Launch::local_ids`.
    pub local_ids: Vec<u32>,
    pub local_ids_stride: u32,
    /// Packs of a work-group.
    pub packs: u32,
    /// Groups that run together where there are as many.
    pub at_once: u64,
    /// Bytes from a pack's frame to the next one's.
    pub frame_bytes: u64,
    /// Bytes of all frames of a work-group.
    pub frames_bytes: usize,
    /// Bytes of local memory.
    pub local_bytes: usize,
    /// Each work-group finds zeros there.
    pub zero_local: bool,
    /// The checked kernel that replaces the code, where kernels are checked.
    pub checked: Option<Checked>,
}

/// See [`CpuPipeline::checked`].
pub struct Checked {
    pub kernel: Arc<CheckedKernel>,
    /// Specialisation constant and size of each argument in local memory.
    pub local_args: Vec<(u32, u32)>,
}

/// Bytes of private memory of a work-group at most, for each thread that runs some.
const MOST_PRIVATE: u32 = 256 << 20;

impl CpuPipeline {
    fn new(
        variant: &Arc<Variant>,
        packing: Packing,
        local_size: [u32; 3],
        sizes: &[(u32, u32)],
        zero_local: bool,
        checked: Option<&Arc<CheckedKernel>>,
    ) -> Self {
        let info = &variant.info;
        let mut end = info.local_bytes;
        let mut sizes: Vec<_> = sizes
            .iter()
            .filter(|(id, _)| *id >= SPEC_FIRST_LOCAL_ARG)
            .collect();
        sizes.sort_unstable();
        let checked = checked.map(|kernel| Checked {
            kernel: kernel.clone(),
            local_args: sizes.iter().map(|&&size| size).collect(),
        });
        // Whatever the type is that one points to: its size is a multiple of its alignment. With the largest first nothing is
        // left free between them.
        let align = |size: u32| (1 << size.trailing_zeros().min(12)).max(LOCAL_ARG_ALIGN);
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.sort_by_key(|&arg| std::cmp::Reverse(align(sizes[arg].1)));
        let mut local_args: Vec<[u32; 2]> = sizes.iter().map(|&&(_, size)| [0, size]).collect();
        for arg in order {
            let [offset, size] = &mut local_args[arg];
            *offset = end.next_multiple_of(align(*size));
            end = *offset + *size;
        }
        let [x, y, z] = local_size;
        let items = x * y * z;
        let lanes = info.lanes.max(1);
        let (packs, stride) = match packing {
            Packing::Linear => (items.div_ceil(lanes), items.next_multiple_of(64)),
            _ => (x.div_ceil(lanes) * y * z, 0),
        };
        let mut local_ids = vec![0; 3 * stride as usize];
        if stride > 0 {
            for item in 0..items {
                let ids = [item % x, item / x % y, item / x / y];
                for (d, id) in ids.into_iter().enumerate() {
                    local_ids[d * stride as usize + item as usize] = id;
                }
            }
        }
        let frame = u64::from(info.frame_bytes);
        let frames = if info.shared_frame != 0 {
            1
        } else {
            u64::from(packs)
        };
        Self {
            variant: variant.clone(),
            local_size,
            local_args,
            local_ids,
            local_ids_stride: stride,
            packs,
            at_once: match packing {
                Packing::Groups => lanes.into(),
                _ => 1,
            },
            frame_bytes: if info.shared_frame != 0 { 0 } else { frame },
            frames_bytes: (frame * frames) as usize,
            local_bytes: end.next_multiple_of(64) as usize,
            // Work-groups that share a pack have none that is not private.
            zero_local: zero_local && end > 0,
            checked,
        }
    }
}

impl Pipeline for CpuPipeline {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Downcasts a pipeline to one of this back end.
pub fn of(pipeline: &dyn Pipeline) -> Result<&CpuPipeline> {
    let ours = pipeline.as_any().downcast_ref();
    ours.ok_or_else(|| DeviceError::Unsupported("a kernel of another device".to_owned()))
}

type Key = (Packing, [u32; 3], Vec<(u32, u32)>);

/// Groups of one work-item for each thread, at most, that run one after the other rather than side by side, which takes fewer
/// threads.
const FEW_GROUPS: u64 = 2;

/// A loaded kernel.
pub struct CpuCode {
    interface: KernelInterface,
    native: Arc<dyn NativeCode>,
    max_group: u32,
    variants: [OnceLock<Arc<Variant>>; 5],
    /// Groups of one work-item go by packs.
    packs_groups: OnceLock<bool>,
    making: Mutex<(), { rank::CPU_VARIANTS }>,
    pipelines: RwLock<FxHashMap<Key, Arc<dyn Pipeline>>, { rank::CPU_PIPELINES }>,
    /// The pipeline that was asked for last: most programs have one.
    last: RwLock<Option<(Key, Arc<dyn Pipeline>)>, { rank::CPU_LAST_PIPELINE }>,
    checked: Option<Arc<CheckedKernel>>,
}

impl CpuCode {
    /// Creates a kernel for work-groups of at most `max_group` work-items.
    pub fn new(native: Arc<dyn NativeCode>, interface: &KernelInterface, max_group: u32) -> Self {
        let checked = check::on().then(|| Arc::new(CheckedKernel::new(native.as_ref(), interface)));
        Self {
            interface: interface.clone(),
            checked,
            native,
            max_group,
            variants: Default::default(),
            packs_groups: OnceLock::new(),
            making: Mutex::default(),
            pipelines: RwLock::default(),
            last: RwLock::default(),
        }
    }

    /// Returns the packing of work-items for `groups` work-groups of a size.
    fn packing(&self, [x, y, z]: [u32; 3], groups: u64) -> Packing {
        if x * y * z == 1 && !self.interface.uses_subgroups {
            let few = || groups <= FEW_GROUPS * crate::util::cores() as u64;
            let packs_groups = || *self.packs_groups.get_or_init(|| self.native.packs_groups());
            return match !few() && packs_groups() {
                true => Packing::Groups,
                false => Packing::Alone,
            };
        }
        let interface = &self.interface;
        Packing::of([x, y, z], interface.lanes, interface.uses_subgroups)
    }

    /// Returns the code for a packing, or where there is none that which came with the program's
    /// binary and runs work-groups of any size.
    fn found(&self, packing: Packing) -> Result<(Packing, &Arc<Variant>)> {
        match self.variant(packing) {
            Err(_) if self.native.runs_any_group() => {
                Ok((Packing::ANY_GROUP, self.variant(Packing::ANY_GROUP)?))
            }
            variant => Ok((packing, variant?)),
        }
    }

    fn variant(&self, packing: Packing) -> Result<&Arc<Variant>> {
        let slot = &self.variants[packing as usize];
        if let Some(variant) = slot.get() {
            return Ok(variant);
        }
        let _one = self.making.lock();
        if let Some(variant) = slot.get() {
            return Ok(variant);
        }
        let object = self.native.object(packing)?;
        let variant = Arc::new(Variant::load(&object, packing)?);
        Ok(slot.get_or_init(|| variant))
    }
}

impl Code for CpuCode {
    fn interface(&self) -> &KernelInterface {
        &self.interface
    }

    fn specialise(
        &self,
        local_size: [u32; 3],
        local_args: &[(u32, u32)],
        groups: u64,
    ) -> Result<Arc<dyn Pipeline>> {
        let packing = self.packing(local_size, groups);
        if let Some(((how, size, args), pipeline)) = &*self.last.read() {
            if *how == packing && *size == local_size && args == local_args {
                return Ok(pipeline.clone());
            }
        }
        let key = (packing, local_size, local_args.to_vec());
        let known = self.pipelines.read().get(&key).cloned();
        let pipeline = match known {
            Some(pipeline) => pipeline,
            None => {
                let (found, variant) = self.found(packing)?;
                let made: Arc<dyn Pipeline> = Arc::new(CpuPipeline::new(
                    variant,
                    found,
                    local_size,
                    local_args,
                    self.interface.attributes.zero_local,
                    self.checked.as_ref(),
                ));
                let mut pipelines = self.pipelines.write();
                if pipelines.len() >= MOST_PIPELINES {
                    pipelines.clear();
                }
                pipelines.entry(key.clone()).or_insert(made).clone()
            }
        };
        *self.last.write() = Some((key, pipeline.clone()));
        Ok(pipeline)
    }

    fn specialised(&self) -> usize {
        0
    }

    fn costly(&self) -> bool {
        false
    }

    /// Returns the largest work-group. Its work-items keep their private memory over barriers, and
    /// [`MOST_PRIVATE`] has room for all of it, so that a group of the reported size can be
    /// launched.
    fn max_work_group_size(&self) -> u32 {
        let room = MOST_PRIVATE / self.interface.private_size.max(1);
        self.max_group.min(room.max(1))
    }
}
