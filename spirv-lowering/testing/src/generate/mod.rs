//! Generates random kernels with one defined result.
//!
//! A kernel computes on scalars, private variables and its own slots of local and global memory. It
//! synchronises with other work-items by barriers, collective operations and atomics whose result
//! does not depend on order. In the end it writes all its values to its own part of the buffer
//! `out`. Some kernels go on with addresses or images. All accesses are within bounds and free of
//! races; loops end. The interpreter tracks what is unspecified (NaN bits, a few operations on
//! purpose).
//!
//! Values are *uniform* where all work-items of a group have the same: conditions around barriers
//! are made of those.

mod addresses;
mod arrays;
mod body;
mod expr;
mod flow;
mod images;
mod memory;
mod pointers;
mod sub_groups;
mod sync;
mod wide;

use super::rng::Rng;
use body::Body;
use spirv_lowering::interface::{AccessQualifier, AddressQualifier, ImageDim, KernelAttributes};
use spirv_lowering::interp::{Arg, Memory, NdRange, Picture};
use spirv_lowering::ir::entity::{FuncId, GlobalId};
use spirv_lowering::ir::function::{Function, Linkage};
use spirv_lowering::ir::module::{
    EntryPoint, Global, KernelParam, Module, ParamKind, PrintfArg, PrintfSite,
};
use spirv_lowering::ir::types::{Space, Type};

/// The bytes of `out` for each work-item.
pub const OUT_BYTES: u32 = 512;
/// The bytes of `in`.
pub const IN_BYTES: u32 = 256;
/// The bytes of a work-item's slot in each of the local variables, and in `share`.
pub const SLOT_BYTES: u32 = 32;
/// The most work-items of a work-group.
pub const MOST_ITEMS: u32 = 20;

/// The operations that a kernel may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing that depends on how work-items are grouped.
    Plain,
    /// Also local memory and barriers.
    Local,
    /// Also collective operations.
    Collective,
}

/// The value of an argument of a generated kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseArg {
    /// The bytes of a scalar, vector or structure.
    Value(Vec<u8>),
    /// A buffer of the case, by index.
    Buffer(usize),
    /// A null pointer.
    Null,
    /// A pointer to local memory, by the number of bytes.
    Local(u64),
    /// An image, whose texels are in a buffer of the case.
    #[allow(missing_docs)]
    Image {
        buffer: usize,
        dim: ImageDim,
        size: [u32; 3],
    },
}

/// A kernel with its ND-range and arguments.
#[derive(Debug, Clone)]
pub struct Case {
    /// The module; its one kernel is called `k`.
    pub module: Module,
    /// The ND-range.
    pub range: NdRange,
    /// The arguments.
    pub args: Vec<CaseArg>,
    /// Initial contents of the buffers.
    pub buffers: Vec<Vec<u8>>,
    /// The operations that the kernel may have.
    pub kind: Kind,
}

impl Case {
    /// Returns memory with the buffers and the program-scope variables, the arguments, and the
    /// addresses of the buffers.
    pub fn memory(&self) -> Result<(Memory, Vec<Arg>, Vec<u64>), spirv_lowering::interp::Error> {
        let mut memory = Memory::new();
        let buffers = self.buffers.iter();
        let addresses: Vec<u64> = buffers.map(|b| memory.add(b.clone(), 128)).collect();
        memory.add_globals(&self.module)?;
        let args = self
            .args
            .iter()
            .map(|arg| match arg {
                CaseArg::Value(bytes) => Arg::Value(bytes.clone()),
                CaseArg::Buffer(i) => Arg::Pointer(addresses.get(*i).copied().unwrap_or(0)),
                CaseArg::Null => Arg::Pointer(0),
                CaseArg::Local(size) => Arg::Local(*size),
                &CaseArg::Image { buffer, dim, size } => Arg::Image(Picture {
                    at: addresses.get(buffer).copied().unwrap_or(0),
                    dim,
                    size,
                }),
            })
            .collect();
        Ok((memory, args, addresses))
    }
}

/// A function that kernels call.
#[derive(Debug, Clone)]
struct Callee {
    id: FuncId,
    params: Vec<Type>,
    results: Vec<Type>,
    /// Set if it may only be called where all work-items of a group are.
    collective: bool,
    /// Set if it does not return, so that it may only be called in code that is never executed.
    endless: bool,
}

/// The state of generating a module.
struct Gen {
    rng: Rng,
    module: Module,
    kind: Kind,
    /// A table of 64 bytes in constant memory, and a program-scope variable of 64 bytes that is
    /// never written.
    tables: Vec<(GlobalId, Space)>,
    local: Option<GlobalId>,
    callees: Vec<Callee>,
    items: u32,
    /// Set if pointers are never data, which sharing functions requires.
    sharable: bool,
    /// Set if there are statements of `wide`.
    wide: bool,
    /// Set if there are statements of `arrays`.
    arrays: bool,
}

fn param(kind: ParamKind, address: AddressQualifier) -> KernelParam {
    KernelParam {
        kind,
        name: String::new(),
        type_name: String::new(),
        address,
        access: AccessQualifier::None,
        is_const: false,
        is_restrict: false,
        is_volatile: false,
        max_size: None,
    }
}

impl Gen {
    fn bytes(&mut self, count: u32) -> Vec<u8> {
        let rng = &mut self.rng;
        let mut bytes = Vec::with_capacity(count as usize);
        while bytes.len() < count as usize {
            let word = match rng.below(12) {
                0 => 0,
                1 => u32::MAX,
                2 => 0x7fc0_0001,
                3 => 0x8000_0000,
                4 => 0x7f80_0000,
                5 => 1,
                6 => 0x3f80_0000,
                7 => (rng.below(64) as f32 * 0.25 - 4.0).to_bits(),
                8 => 0x0001_8000,
                _ => rng.bits() as u32,
            };
            bytes.extend(word.to_le_bytes());
        }
        bytes.truncate(count as usize);
        bytes
    }

    fn tables(&mut self) {
        for (space, zero) in [
            (Space::Constant, false),
            (Space::Global, false),
            (Space::Constant, true),
        ] {
            if self.rng.one_in(3) {
                continue;
            }
            let init = if zero { vec![0; 64] } else { self.bytes(64) };
            let id = self.module.globals.push(Global {
                space: Some(space),
                size: 64,
                align: 16,
                init: Some(init),
                ..Default::default()
            });
            self.tables.push((id, space));
        }
        if self.kind != Kind::Plain {
            let id = self.module.globals.push(Global {
                space: Some(Space::Local),
                size: u64::from(MOST_ITEMS * SLOT_BYTES + 32),
                align: 16,
                ..Default::default()
            });
            self.local = Some(id);
        }
    }

    fn printf_site(&mut self) -> u32 {
        let mut args = Vec::new();
        for _ in 0..self.rng.below(3) + 1 {
            args.push(match self.rng.below(4) {
                0 => PrintfArg::Text(b"text".to_vec()),
                1 => PrintfArg::Value {
                    ty: Type::F64,
                    lanes: 1,
                },
                2 => PrintfArg::Value {
                    ty: Type::I64,
                    lanes: 1,
                },
                _ => PrintfArg::Value {
                    ty: Type::I32,
                    lanes: [1, 2, 3, 4][self.rng.below(4)],
                },
            });
        }
        self.module.printfs.push(PrintfSite {
            format: b"%".to_vec(),
            args,
        });
        self.module.printfs.len() as u32 - 1
    }

    fn range(&mut self) -> NdRange {
        let dims = self.rng.below(3) as u32 + 1;
        let mut range = NdRange::linear(1, 1);
        range.dims = dims;
        let shapes: &[[u32; 3]] = match dims {
            1 => &[[1, 1, 1], [4, 1, 1], [3, 1, 1], [8, 1, 1], [20, 1, 1]],
            2 => &[[2, 2, 1], [3, 2, 1], [1, 4, 1], [5, 4, 1]],
            _ => &[[2, 1, 2], [2, 2, 2], [1, 1, 3]],
        };
        range.local = self.rng.pick(shapes);
        for dim in 0..dims as usize {
            let local = range.local[dim];
            let groups = match dim {
                // Some executors run those of one work-item side by side.
                0 if range.local == [1, 1, 1] => 1 + self.rng.below(MOST_ITEMS as usize) as u32,
                0 => 1 + self.rng.below(2) as u32,
                _ => 1,
            };
            range.global[dim] = local * groups;
            if local > 1 && self.rng.one_in(4) {
                // A smaller group at the end.
                range.global[dim] += 1 + self.rng.below(local as usize - 1) as u32;
            }
            if self.rng.one_in(4) {
                range.offset[dim] = self.rng.below(100) as u32;
            }
        }
        range
    }
}

/// The types of scalar arguments and variables.
const SCALARS: [Type; 7] = [
    Type::I8,
    Type::I16,
    Type::I32,
    Type::I64,
    Type::F16,
    Type::F32,
    Type::F64,
];

/// Generates the kernel of a seed.
pub fn generate(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let kind = match rng.below(8) {
        0..=3 => Kind::Plain,
        4..=5 => Kind::Local,
        _ => Kind::Collective,
    };
    let mut g = Gen {
        rng,
        module: Module::default(),
        kind,
        tables: Vec::new(),
        local: None,
        callees: Vec::new(),
        items: 0,
        sharable: false,
        wide: wide::has_these(seed),
        arrays: arrays::has_these(seed),
    };
    g.sharable = g.rng.one_in(4);
    let range = g.range();
    g.items = range.global.iter().product();
    g.tables();
    // The kernel is function 0; its body comes last.
    let id = g.module.functions.push(Function::default());
    for i in 0..g.rng.below(4) {
        let callee = Body::function(&mut g, i);
        g.callees.push(callee);
    }

    let mut params = Vec::new();
    let mut args = Vec::new();
    let mut buffers = Vec::new();
    let global = ParamKind::Pointer(Space::Global);
    let out = g.bytes(g.items * OUT_BYTES);
    for (bytes, space) in [
        (out, Space::Global),
        (g.bytes(IN_BYTES), Space::Global),
        (g.bytes(64), Space::Constant),
        (vec![0; 64], Space::Global),
        (g.bytes(g.items * SLOT_BYTES), Space::Global),
    ] {
        args.push(CaseArg::Buffer(buffers.len()));
        buffers.push(bytes);
        let address = match space {
            Space::Constant => AddressQualifier::Constant,
            _ => AddressQualifier::Global,
        };
        params.push(param(ParamKind::Pointer(space), address));
    }
    // null
    params.push(param(global, AddressQualifier::Global));
    args.push(CaseArg::Null);
    // zero, for constants that are not seen through
    let zero = ParamKind::Value {
        ty: Type::I64,
        count: 1,
        size: 8,
    };
    params.push(param(zero, AddressQualifier::Private));
    args.push(CaseArg::Value(vec![0; 8]));
    for _ in 0..g.rng.below(4) {
        let ty = g.rng.pick(&SCALARS);
        let count = g.rng.pick(&[1, 1, 2, 3, 4]);
        let size = ty.size() * if count == 3 { 4 } else { count };
        params.push(param(
            ParamKind::Value { ty, count, size },
            AddressQualifier::Private,
        ));
        let bytes = g.bytes(size);
        args.push(CaseArg::Value(bytes));
    }
    for _ in 0..g.rng.below(3) {
        let (size, align) = g
            .rng
            .pick(&[(16, 4), (24, 8), (20, 4), (17, 1), (32, 16), (18, 2)]);
        params.push(param(
            ParamKind::ByVal { size, align },
            AddressQualifier::Private,
        ));
        let bytes = g.bytes(size);
        args.push(CaseArg::Value(bytes));
    }
    if kind != Kind::Plain {
        for _ in 0..g.rng.below(3) {
            params.push(param(
                ParamKind::Pointer(Space::Local),
                AddressQualifier::Local,
            ));
            args.push(CaseArg::Local(u64::from(MOST_ITEMS * SLOT_BYTES)));
        }
    }
    let mut rng = Rng::new(!seed);
    let mut list = Vec::new();
    if images::has_these(seed) {
        list = images::choose(&mut rng, g.items);
        let lists = (&mut params, &mut args, &mut buffers);
        images::add(&mut g, &mut rng, &list, lists);
    }
    let mut body = Body::kernel(&mut g, &params);
    body.fill_kernel();
    if addresses::has_these(seed) {
        body.addresses(Rng::new(seed.rotate_left(32)));
    }
    if !list.is_empty() {
        body.images(rng, &list);
    }
    let mut attributes = KernelAttributes::default();
    if let (Kind::Collective, Some(size)) = (kind, sub_groups::size(seed)) {
        attributes.required_sub_group_size = size;
        body.sub_groups(Rng::new(seed.rotate_left(16)));
    }
    body.end();
    let mut func = body.finish();
    func.name = "k".to_owned();
    func.linkage = Linkage::Export;
    g.module.functions[id] = func;
    g.module.kernels.push(EntryPoint {
        name: "k".to_owned(),
        func: id,
        params,
        attributes,
        contraction_off: false,
    });
    Case {
        module: g.module,
        range,
        args,
        buffers,
        kind,
    }
}
