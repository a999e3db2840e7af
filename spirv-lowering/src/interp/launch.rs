//! A launch: the ND-range, the state outside of work-groups, and the values that depend on the
//! position of a work-item.

use super::args::{self, Arg, Bound};
use super::claims::Checker;
use super::error::Error;
use super::images::Images;
use super::memory::{Memory, Region, Source};
use super::pictures::Picture;
pub(super) use super::position::LocalPosition;
use super::printf::Record;
use super::scalar::Scalar;
use super::watch::Watch;
use crate::analysis::cfg::Cfg;
use crate::interface::Implicit;
use crate::ir::entity::{Block, GlobalId};
use crate::ir::function::Function;
use crate::ir::module::{EntryPoint, Module};
use crate::ir::op::{Builtin, HwVar};
use crate::passes::lower_globals;
use rustc_hash::FxHashMap;

/// An ND-range. Sizes may leave a smaller work-group at the end of a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NdRange {
    /// Dimensions, 1 to 3.
    pub dims: u32,
    /// Work-items in each dimension; 1 in unused dimensions.
    pub global: [u32; 3],
    /// Work-items of a work-group.
    pub local: [u32; 3],
    /// Id of the first work-item.
    pub offset: [u32; 3],
}

impl NdRange {
    /// Creates a one-dimensional range.
    pub fn linear(global: u32, local: u32) -> Self {
        Self {
            dims: 1,
            global: [global, 1, 1],
            local: [local, 1, 1],
            offset: [0; 3],
        }
    }

    fn check(&self) -> Result<(), Error> {
        let items: u64 = self.local.iter().map(|&n| u64::from(n)).product();
        if self.local.contains(&0) || items > 4096 || !(1..=3).contains(&self.dims) {
            return Err(Error::invalid("work-groups of that size"));
        }
        Ok(())
    }

    /// Returns the work-groups of a dimension, a smaller last one included.
    pub(super) fn groups(&self, dim: usize) -> u32 {
        self.global[dim].div_ceil(self.local[dim].max(1))
    }

    /// Divides the range into boxes of work-groups of one size.
    pub(super) fn dispatches(&self) -> Vec<GroupRange> {
        let parts = |dim: usize| {
            let (global, local) = (self.global[dim], self.local[dim].max(1));
            let (whole, rest) = (global / local, global % local);
            let mut parts = Vec::new();
            if whole > 0 {
                parts.push((0, whole, local));
            }
            if rest > 0 {
                parts.push((whole, 1, rest));
            }
            parts
        };
        let mut list = Vec::new();
        for &(z, depth, lz) in &parts(2) {
            for &(y, height, ly) in &parts(1) {
                for &(x, width, lx) in &parts(0) {
                    list.push(GroupRange {
                        first: [x, y, z],
                        groups: [width, height, depth],
                        local: [lx, ly, lz],
                    });
                }
            }
        }
        list
    }
}

/// A box of work-groups of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupRange {
    /// Number of the first work-group.
    pub first: [u32; 3],
    /// The number of work-groups in each dimension.
    pub groups: [u32; 3],
    /// Their size in work-items.
    pub local: [u32; 3],
}

/// The options of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The most instructions that all work-items execute together.
    pub steps: u64,
    /// Makes it an error if control flow or an address depends on an unknown value.
    pub strict: bool,
    /// The seed of the arbitrary values of unknown bits.
    pub noise: u64,
    /// Work-items of a sub-group. [`run`](super::run) gives kernels the size that they require.
    pub subgroup_size: u32,
    /// Bytes of local variables that passes added and the module does not declare.
    pub scratch: u64,
    /// Memory is there in whole words, as it is on devices, for code that accesses nothing smaller.
    pub words: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            steps: 50_000_000,
            strict: true,
            noise: 0x9e37_79b9_7f4a_7c15,
            subgroup_size: 8,
            scratch: 16 << 10,
            words: false,
        }
    }
}

/// The results of a run beside the contents of memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// The instructions executed.
    pub steps: u64,
    /// The records of printf calls that are not lowered.
    pub printf: Vec<Record>,
    /// The values that the last work-item returned.
    pub results: Vec<Scalar>,
}

/// The state of a run outside of its work-groups.
pub(super) struct Machine<'a> {
    pub module: &'a Module,
    pub func: &'a Function,
    pub range: NdRange,
    pub memory: &'a mut Memory,
    pub options: Options,
    /// The values of the entry block's parameters.
    pub bound: Vec<Bound>,
    pub arg_block: Region,
    pub specs: FxHashMap<u32, u32>,
    /// The addresses of implicit arguments that are pointers.
    pub addresses: FxHashMap<Implicit, u64>,
    pub steps: u64,
    pub noise: u64,
    pub printf: Vec<Record>,
    pub results: Vec<Scalar>,
    pub dispatch: GroupRange,
    /// The work-group within the dispatch.
    pub group: [u32; 3],
    /// The source of memory that is not yet part of the run.
    pub source: Option<&'a mut dyn Source>,
    /// The images of the launch.
    pub images: Option<&'a mut dyn Images>,
    /// The images among the arguments, used where `images` is `None`.
    pub pictures: Vec<Option<Picture>>,
    /// Maps bindings to arguments.
    pub bindings: FxHashMap<u32, usize>,
    /// The checks to make, if any.
    pub watch: Option<Watch>,
    /// The claims about the pieces of the kernel, if they are checked.
    pub claims: Option<Checker<'a>>,
    /// Where implicit arguments lie in the argument block.
    pub pushed: Vec<(Implicit, u32)>,
    /// The position of each block in reverse postorder, for functions that needed it, by the
    /// address of the function.
    orders: FxHashMap<*const Function, FxHashMap<Block, usize>>,
    layout: Option<lower_globals::Layout>,
}

impl<'a> Machine<'a> {
    pub fn new(
        module: &'a Module,
        func: &'a Function,
        range: &NdRange,
        memory: &'a mut Memory,
        options: &Options,
    ) -> Result<Self, Error> {
        range.check()?;
        if options.subgroup_size == 0 || options.subgroup_size > 128 {
            return Err(Error::invalid("sub-groups of that size"));
        }
        Ok(Self {
            module,
            func,
            range: *range,
            memory,
            options: options.clone(),
            bound: Vec::new(),
            arg_block: Region::known(0, Vec::new()),
            specs: FxHashMap::default(),
            addresses: FxHashMap::default(),
            steps: 0,
            noise: options.noise,
            printf: Vec::new(),
            results: Vec::new(),
            dispatch: GroupRange {
                first: [0; 3],
                groups: [1; 3],
                local: range.local,
            },
            group: [0; 3],
            source: None,
            images: None,
            pictures: Vec::new(),
            bindings: FxHashMap::default(),
            watch: None,
            claims: None,
            pushed: Vec::new(),
            orders: FxHashMap::default(),
            layout: None,
        })
    }

    /// Sets the arguments of a kernel.
    pub fn bind_kernel(&mut self, kernel: &EntryPoint, args: &[Arg]) -> Result<(), Error> {
        self.bound = args::bind(self.func, kernel, args)?;
        let picture = |arg: &Arg| match arg {
            Arg::Image(picture) => Some(*picture),
            _ => None,
        };
        self.pictures = args.iter().map(picture).collect();
        Ok(())
    }

    /// Sets the parameters of a function to values.
    pub fn bind_values(&mut self, args: &[Scalar]) {
        self.bound = args.iter().map(|&v| Bound::Value(v)).collect();
    }

    /// Returns the offset of a program-scope variable in the buffer that holds them.
    pub fn global_offset(&mut self, id: GlobalId) -> Result<u64, Error> {
        if self.layout.is_none() {
            let layout = lower_globals::layout(self.module);
            self.layout = Some(layout.map_err(|e| Error::invalid(e.to_string()))?);
        }
        let offset = self.layout.as_ref().and_then(|layout| layout.offset(id));
        offset.ok_or_else(|| Error::invalid(format!("no variable {id}")))
    }

    /// Returns the next number of a fixed sequence, for bits that are undefined.
    pub fn noise(&mut self) -> u64 {
        self.noise = self
            .noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.noise ^ self.noise >> 29
    }

    /// Ends the launch. Returns what it found.
    pub fn finish(self) -> Outcome {
        Outcome {
            steps: self.steps,
            printf: self.printf,
            results: self.results,
        }
    }

    /// Returns the position of a block in reverse postorder.
    pub fn order(&mut self, func: &'a Function, block: Block) -> usize {
        let order = self.orders.entry(func).or_insert_with(|| {
            let cfg = Cfg::new(func);
            cfg.rpo().iter().enumerate().map(|(i, &b)| (b, i)).collect()
        });
        order.get(&block).copied().unwrap_or(usize::MAX)
    }

    fn base(&self, dim: usize) -> u32 {
        let first = self.dispatch.first[dim].wrapping_mul(self.range.local[dim]);
        self.range.offset[dim].wrapping_add(first)
    }

    /// Returns an OpenCL built-in variable of a work-item.
    pub fn builtin(&self, which: Builtin, item: &LocalPosition) -> u64 {
        let lanes = self.options.subgroup_size;
        let range = &self.range;
        let local = self.dispatch.local;
        let global_id = |d: usize| {
            let group = self.group[d].wrapping_mul(local[d]);
            u64::from(self.base(d).wrapping_add(group).wrapping_add(item.id[d]))
        };
        let at = |d: u8| usize::from(d.min(2));
        let items: u32 = local.iter().product();
        match which {
            Builtin::GlobalId(d) => global_id(at(d)),
            Builtin::GlobalSize(d) => range.global[at(d)].into(),
            Builtin::GlobalOffset(d) => range.offset[at(d)].into(),
            Builtin::LocalId(d) => item.id[at(d)].into(),
            Builtin::LocalSize(d) => local[at(d)].into(),
            Builtin::EnqueuedLocalSize(d) => range.local[at(d)].into(),
            Builtin::GroupId(d) => (self.dispatch.first[at(d)] + self.group[at(d)]).into(),
            Builtin::NumGroups(d) => range.groups(at(d)).into(),
            Builtin::WorkDim => range.dims.into(),
            Builtin::GlobalLinearId => {
                let index = |d: usize| global_id(d).wrapping_sub(range.offset[d].into());
                let rows = index(2)
                    .wrapping_mul(range.global[1].into())
                    .wrapping_add(index(1));
                rows.wrapping_mul(range.global[0].into())
                    .wrapping_add(index(0))
            }
            Builtin::LocalLinearId => item.index.into(),
            Builtin::SubGroupMaxSize => lanes.into(),
            Builtin::SubGroupSize => lanes.min(items - item.index / lanes * lanes).into(),
            Builtin::NumSubGroups => items.div_ceil(lanes).into(),
            Builtin::NumEnqueuedSubGroups => {
                range.local.iter().product::<u32>().div_ceil(lanes).into()
            }
            Builtin::SubGroupId => (item.index / lanes).into(),
            Builtin::SubGroupLocalId => (item.index % lanes).into(),
        }
    }

    /// Returns a Vulkan built-in variable of a work-item.
    pub fn hw(&self, which: HwVar, item: &LocalPosition) -> u64 {
        let lanes = self.options.subgroup_size;
        let at = |d: u8| usize::from(d.min(2));
        match which {
            HwVar::LocalInvocationId(d) => item.id[at(d)],
            HwVar::WorkgroupId(d) => self.group[at(d)],
            HwVar::NumWorkgroups(d) => self.dispatch.groups[at(d)],
            HwVar::WorkgroupSize(d) => self.dispatch.local[at(d)],
            HwVar::LocalInvocationIndex => item.index,
            HwVar::SubgroupSize => lanes,
            HwVar::SubgroupInvocationId => match &self.claims {
                Some(claims) => claims.lane(item),
                None => item.index % lanes,
            },
            HwVar::SubgroupId => item.index / lanes,
            HwVar::NumSubgroups => self.dispatch.local.iter().product::<u32>().div_ceil(lanes),
        }
        .into()
    }

    /// Returns a component of an implicit argument, or `None` if the launch does not supply it.
    pub fn implicit(&self, which: Implicit, component: u8) -> Option<u64> {
        let d = usize::from(component.min(2));
        let range = &self.range;
        Some(match which {
            Implicit::ProgramGlobals => self.memory.globals()?,
            Implicit::ArgBuffer | Implicit::PrintfBuffer | Implicit::EnqueueState => {
                *self.addresses.get(&which)?
            }
            Implicit::GlobalOffset => range.offset[d].into(),
            Implicit::GlobalSize => range.global[d].into(),
            Implicit::NumGroups => range.groups(d).into(),
            Implicit::EnqueuedLocalSize => range.local[d].into(),
            Implicit::GroupOffset => self.dispatch.first[d].into(),
            Implicit::GlobalBase => self.base(d).into(),
            Implicit::GlobalEnd => range.offset[d].wrapping_add(range.global[d]).into(),
            Implicit::WorkDim => range.dims.into(),
            // A range of 32 bits, whatever the kernel is ready for.
            Implicit::GlobalOffsetHigh | Implicit::GlobalSizeHigh | Implicit::GroupOffsetHigh => 0,
        })
    }
}
