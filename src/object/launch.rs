//! A snapshot of a kernel with its arguments, taken at enqueue: what a launch needs and nothing that may change later.

use super::device_side::DeviceSide;
use super::mem::Mem;
use crate::backend::image::Resource;
use crate::backend::{Binding, Code, Memory};
use crate::compile::Executable;
use crate::error::ClResult;
use crate::handle::Ref;
use smallvec::SmallVec;
use spirv_lowering::interface::{Access, SamplerBinding, SamplerSource};
use spirv_lowering::ir::module::PrintfSite;
use std::sync::{Arc, OnceLock};

/// An object that is retained until a launch is complete.
pub type Retained = Arc<dyn std::any::Any + Send + Sync>;

/// A kernel ready to be launched on one device.
pub struct KernelLaunch {
    /// The loaded kernel.
    pub code: Arc<dyn Code>,
    /// Explicit argument bytes. When the interface has `args_in_buffer`, the image of that buffer; otherwise the image
    /// of the push constants, where the bytes of implicit arguments are overwritten at dispatch.
    pub args: SmallVec<[u8; 128]>,
    /// Local-memory arguments: specialisation constant id and size in bytes, rounded up to `LOCAL_ARG_ALIGN`.
    pub local_args: SmallVec<[(u32, u32); 4]>,
    /// Memory objects among the arguments.
    pub buffers: SmallVec<[(Ref<Mem>, Access); 8]>,
    /// Images among them, likewise.
    pub images: SmallVec<[(Ref<Mem>, Access); 2]>,
    /// Set if it is shown images beside buffers, which are those of a queue.
    pub shows_rows: bool,
    /// The resources at the bindings of the kernel's descriptor set.
    pub bindings: Vec<Binding>,
    /// The program-scope variables.
    pub globals: Option<Arc<dyn Memory>>,
    /// An object that must not end before the launch has: the instance of a program with finalizers.
    pub kept: Option<Retained>,
    /// The printf sites of a kernel that calls printf.
    pub printf: Option<Arc<Vec<PrintfSite>>>,
    /// Set if it may touch memory that is behind none of its arguments.
    pub touches_anything: bool,
    /// Set if it may touch memory of the host that is no memory object (fine-grained system sharing).
    pub host_memory: bool,
    /// How the program was built.
    pub rules: Rules,
    /// The code is that for launches beyond 2^32 work-items in a dimension.
    pub wide: bool,
    /// For a kernel that enqueues others.
    pub enqueues: Option<Arc<Enqueues>>,
}

impl KernelLaunch {
    /// Creates a launch that is yet to get its arguments.
    pub(crate) fn new(code: Arc<dyn Code>, rules: Rules, wide: bool) -> Box<Self> {
        let interface = code.interface();
        let size = match interface.args_in_buffer {
            true => interface.arg_buffer_size,
            false => interface.push_size,
        };
        // Written where it stays: it is large.
        Box::write(
            Box::new_uninit(),
            Self {
                args: SmallVec::from_elem(0, size as usize),
                local_args: SmallVec::new(),
                buffers: SmallVec::new(),
                images: SmallVec::new(),
                shows_rows: false,
                bindings: Vec::new(),
                globals: None,
                kept: None,
                printf: None,
                touches_anything: false,
                host_memory: false,
                rules,
                wide,
                enqueues: None,
                code,
            },
        )
    }

    /// Binds samplers, whose property words are given by their sources.
    pub(super) fn bind_samplers(
        &mut self,
        samplers: &[SamplerBinding],
        word: impl Fn(SamplerSource) -> ClResult<u32>,
    ) -> ClResult {
        for sampler in samplers {
            self.bindings.push(Binding {
                binding: sampler.binding,
                resource: Resource::Sampler(word(sampler.source)?),
                write: false,
            });
        }
        Ok(())
    }
}

/// The rules of a program's build for launches of its kernels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rules {
    /// All work-groups must be of one size: programs before OpenCL C 2.0, or built with -cl-uniform-work-group-size.
    pub uniform: bool,
    /// Kernels get precise errors of what they enqueue: -g.
    pub precise: bool,
}

/// The state that kernels which enqueue others need, the same for all that a launch leads to.
pub struct Enqueues {
    /// Queues and events of the device.
    pub on_device: Arc<DeviceSide>,
    /// The program.
    pub executable: Arc<Executable>,
    /// Its program-scope variables.
    pub globals: Option<Arc<dyn Memory>>,
    /// An object that must not end before the launches have.
    pub kept: Option<Retained>,
    /// How the program was built.
    pub rules: Rules,
    /// The buffers among the arguments of the kernel that the application launched, retained: blocks capture their addresses.
    pub buffers: Vec<Ref<Mem>>,
    /// The images among them, by the arguments' numbers: blocks capture them.
    pub images: Vec<Option<Ref<Mem>>>,
    /// The table by which all its launches know device queues, once made.
    pub table: OnceLock<Vec<u8>>,
}
