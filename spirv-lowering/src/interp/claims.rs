//! Checks the vectoriser's claims against the values that work-items compute.
//!
//! Lanes of a pack are compared where they have gone round the loops about a block equally often,
//! because each block is emitted once. The value of a lane is compared with that of the first lane
//! of its pack. Values with unknown bits are not compared.
//!
//! The alias sets of a byte in private or local memory are those that all accesses to it have in
//! common, while a function runs; accesses that only read may have others. Address spaces do not
//! overlap here, because each has memory of its own.

use super::args::Bound as Bind;
use super::memory::{Memory, Region, OWN};
use super::position::LocalPosition;
use super::scalar::Scalar;
use super::spaces;
use crate::analysis::arg_access;
use crate::claims::{AccessClaims, Bound, Claim, Claims, FalseClaim, Order};
use crate::ir::entity::{Block, FuncId, Inst, Value};
use crate::ir::function::{Function, InstData};
use crate::ir::op::Op;
use crate::ir::print::raw_inst;
use crate::ir::types::{Space, Type};
use rustc_hash::{FxHashMap, FxHashSet};

/// The analysis that claims arguments.
const ARGUMENTS: &str = "analysis::arg_access";

/// The iterations of the loops around a block, outer ones first.
type Path = Vec<(Block, u32)>;

/// A function that a work-item is in.
#[derive(Debug, Clone, Default)]
struct Activation {
    /// Its piece.
    piece: usize,
    /// A number that no other has in this piece of the kernel.
    number: u32,
    path: Path,
    /// The path of its callers with the places of the calls.
    outside: Path,
}

/// The execution of a place by a pack, which is the unit of comparison.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    pack: [u32; 3],
    site: Site,
    path: Path,
    outside: Path,
}

/// A place where a claim is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Site {
    Value(Value),
    Use(Block, usize, Value),
    Reach(Inst),
    Slot(Inst),
    Bound(Value, Bound),
    Loop(Block),
    Access(Inst, usize, &'static str),
}

/// The memory that accesses may have in common.
#[derive(PartialEq, Eq, Hash)]
enum Owner {
    /// Local memory, by the piece of the kernel.
    Group(usize),
    /// Private memory, by the number of the activation.
    Item(u32),
}

/// The accesses to a byte: the alias sets that all have in common, and the work-item of the last.
#[derive(Clone, Copy)]
struct Common {
    sets: u64,
    item: u32,
}

/// The accesses to a byte.
#[derive(Clone, Copy, Default)]
struct Touched {
    reads: Option<Common>,
    writes: Option<Common>,
}

/// The claims of a kernel while it runs.
pub(super) struct Checker<'a> {
    pub pieces: &'a [Claims],
    order: Order,
    lanes: u32,
    /// The functions that each work-item of the group is in.
    stacks: Vec<Vec<Activation>>,
    activations: u32,
    /// The memory that each parameter's bit stands for, as begin and end, and the program-scope
    /// variables for all.
    arguments: Vec<(u64, u64, u64)>,
    seen: FxHashMap<Key, (u32, u64)>,
    /// The bytes accessed, by address and the analysis that names alias sets.
    touched: FxHashMap<(Owner, &'static str, u64), Touched>,
    /// The claims found to be false, once each.
    known: FxHashSet<(usize, Site)>,
    pub found: Vec<FalseClaim>,
}

impl<'a> Checker<'a> {
    pub fn new(pieces: &'a [Claims], order: Order, lanes: u32) -> Self {
        Self {
            pieces,
            order,
            lanes,
            stacks: Vec::new(),
            activations: 0,
            arguments: Vec::new(),
            seen: FxHashMap::default(),
            touched: FxHashMap::default(),
            known: FxHashSet::default(),
            found: Vec::new(),
        }
    }

    /// Takes the memory that the parameters of the kernel point into.
    pub fn take_arguments(&mut self, bound: &[Bind], memory: &Memory) {
        let region = |address: u64| {
            let inside = |r: &&Region| address.wrapping_sub(r.base) < r.bytes.len() as u64;
            let region = memory.regions().iter().find(inside)?;
            Some((region.base, region.base + region.bytes.len() as u64))
        };
        let params = bound.iter().enumerate().filter_map(|(i, bound)| {
            let Bind::Value(value) = bound else {
                return None;
            };
            let (begin, end) = region(value.bits)?;
            Some((1 << i.min(arg_access::LAST), begin, end))
        });
        let variables = memory.globals().and_then(region);
        let variables = variables.map(|(begin, end)| (u64::MAX, begin, end));
        self.arguments = params.chain(variables).collect();
    }

    /// Begins a piece in all work-items.
    pub fn begin(&mut self, piece: usize, items: usize) {
        self.seen.clear();
        self.touched.clear();
        self.activations = items as u32;
        let start = |number| Activation {
            piece,
            number,
            ..Activation::default()
        };
        self.stacks = (0..self.activations).map(|n| vec![start(n)]).collect();
    }

    /// Returns true if the kernel has several pieces.
    pub fn is_cut(&self) -> bool {
        let pieces = self.pieces.iter().filter(|piece| piece.callee.is_none());
        pieces.count() > 1
    }

    fn activation(&self, item: &LocalPosition) -> Option<&Activation> {
        self.stacks.get(item.index as usize)?.last()
    }

    /// Returns the piece that a work-item is in, with its number.
    fn piece(&self, item: &LocalPosition) -> Option<(usize, &'a Claims)> {
        let number = self.activation(item)?.piece;
        Some((number, self.pieces.get(number)?))
    }

    /// Records that a work-item calls a function. Returns the function that the claims are about.
    pub fn calls(
        &mut self,
        item: &LocalPosition,
        (block, at): (Block, usize),
        callee: FuncId,
    ) -> Option<&'a Function> {
        let number = self
            .pieces
            .iter()
            .position(|piece| piece.callee == Some(callee));
        let stack = self.stacks.get_mut(item.index as usize)?;
        let caller = stack.last()?;
        let mut outside = caller.outside.clone();
        outside.extend(&caller.path);
        outside.push((block, at as u32));
        self.activations += 1;
        stack.push(Activation {
            piece: number.unwrap_or(usize::MAX),
            number: self.activations,
            path: Path::new(),
            outside,
        });
        self.pieces.get(number?).map(|piece| &piece.func)
    }

    /// Records that a work-item returns from a function.
    pub fn returns(&mut self, item: &LocalPosition) {
        if let Some(stack) = self.stacks.get_mut(item.index as usize) {
            stack.pop();
        }
    }

    /// Returns the lane of a work-item.
    pub fn lane(&self, item: &LocalPosition) -> u32 {
        match self.order {
            Order::Rows => item.id[0] % self.lanes,
            Order::Linear => item.index % self.lanes,
        }
    }

    fn pack(&self, item: &LocalPosition) -> [u32; 3] {
        match self.order {
            Order::Rows => [item.id[0] / self.lanes, item.id[1], item.id[2]],
            Order::Linear => [item.index / self.lanes, 0, 0],
        }
    }

    fn check(
        &mut self,
        item: &LocalPosition,
        site: Site,
        (claim, analysis): (Claim, &'static str),
        (ty, value): (Type, Scalar),
        inst: Option<&InstData>,
    ) {
        let Some((number, piece)) = self.piece(item) else {
            return;
        };
        if (value.unknown & ty.mask()) != 0 || self.known.contains(&(number, site)) {
            return;
        }
        let (lane, pack) = (self.lane(item), self.pack(item));
        let here = self.activation(item).cloned().unwrap_or_default();
        let key = Key {
            pack,
            site,
            path: here.path,
            outside: here.outside,
        };
        let bits = value.bits & ty.mask();
        let (mut other, mut before) = (lane, bits);
        if let Some(stride) = claim.stride() {
            let from = |lane: u32, bits: u64| {
                let more = (stride as u64).wrapping_mul(lane.into());
                bits.wrapping_sub(more) & ty.mask()
            };
            (other, before) = *self.seen.entry(key).or_insert((lane, bits));
            if from(lane, bits) == from(other, before) {
                return;
            }
        } else if !claim.excludes(bits) {
            return;
        }
        let lanes = [(other, before), (lane, bits)];
        self.refute((number, piece), site, (claim, analysis), lanes, inst);
    }

    /// Records that a claim does not hold.
    fn refute(
        &mut self,
        (number, piece): (usize, &Claims),
        site: Site,
        (claim, analysis): (Claim, &'static str),
        lanes: [(u32, u64); 2],
        inst: Option<&InstData>,
    ) {
        self.known.insert((number, site));
        let func = &piece.func;
        let text = |inst: Inst| raw_inst(func, inst).to_string();
        self.found.push(FalseClaim {
            function: func.name.clone(),
            piece: number,
            analysis,
            value: match site {
                Site::Value(value) | Site::Bound(value, _) => match func.def_inst(value) {
                    Some(inst) => text(inst),
                    None => format!("{value}, a parameter"),
                },
                Site::Use(block, at, value) => {
                    let place = func.blocks[block].insts.get(at);
                    let place = place.map_or("the end".to_owned(), |&inst| text(inst));
                    format!("{value} where {block} has it: {place}")
                }
                Site::Reach(inst) | Site::Slot(inst) | Site::Access(inst, ..) => text(inst),
                Site::Loop(header) => format!("the loop at {header}"),
            },
            claim,
            lanes,
            line: inst.map_or(0, |data| data.line),
        });
    }

    fn value(&mut self, item: &LocalPosition, value: Value, bits: Scalar, inst: Option<&InstData>) {
        let Some((_, piece)) = self.piece(item) else {
            return;
        };
        if let Some(claim) = piece.data[value] {
            let ty = piece.func.ty(value);
            let claim = (claim, "native::classes");
            self.check(item, Site::Value(value), claim, (ty, bits), inst);
        }
        for &(bound, analysis) in piece.bounds.get(&value).into_iter().flatten() {
            let (ty, claim) = (piece.func.ty(value), (Claim::Each(bound), analysis));
            self.check(item, Site::Bound(value, bound), claim, (ty, bits), inst);
        }
    }

    fn operand(
        &mut self,
        item: &LocalPosition,
        (block, at): (Block, usize),
        value: Value,
        bits: Scalar,
        inst: Option<&InstData>,
    ) {
        let Some((_, piece)) = self.piece(item) else {
            return;
        };
        if piece.escapes.contains(&(block, value)) || piece.func.as_const(value).is_some() {
            return;
        }
        if let Some(claim) = piece.data[value] {
            let ty = piece.func.ty(value);
            let site = Site::Use(block, at, value);
            let claim = (claim, "native::classes (escapes)");
            self.check(item, site, claim, (ty, bits), inst);
        }
    }

    /// Records that a work-item enters a block, whose parameters have the values `params`.
    pub fn enters(&mut self, item: &LocalPosition, block: Block, params: &[(Value, Scalar)]) {
        let Some((_, piece)) = self.piece(item) else {
            return;
        };
        let around = &piece.loops[block];
        let stack = self.stacks.get_mut(item.index as usize);
        if let Some(path) = stack.and_then(|stack| Some(&mut stack.last_mut()?.path)) {
            let same = path.iter().zip(around).take_while(|(at, &l)| at.0 == l);
            let (same, before) = (same.count(), path.len());
            path.truncate(same);
            if around.last() == Some(&block) && same == around.len() && before >= same {
                if let Some((_, count)) = path.last_mut() {
                    *count += 1;
                }
            }
            path.extend(around.iter().skip(same).map(|&l| (l, 0)));
            if let (Some(&most), Some(&(header, count))) = (piece.repeats.get(&block), path.last())
            {
                let claim = (Claim::Each(Bound::Repeats(most)), "analysis::iterations");
                let count = (Type::I64, Scalar::known(count.into()));
                self.check(item, Site::Loop(header), claim, count, None);
            }
        }
        for &(param, bits) in params {
            self.value(item, param, bits, None);
        }
    }

    /// Records that a work-item is about to execute instruction number `at` of `block`.
    pub fn does(
        &mut self,
        item: &LocalPosition,
        (block, at): (Block, usize),
        data: &InstData,
        args: &[Scalar],
    ) {
        for (&value, &bits) in data.args.iter().zip(args) {
            self.operand(item, (block, at), value, bits, Some(data));
        }
        let Some((_, piece)) = self.piece(item) else {
            return;
        };
        let Some(&inst) = piece.func.blocks[block].insts.get(at) else {
            return;
        };
        if let (Some(&claim), Some(&address)) = (piece.reach.get(&inst), args.first()) {
            let claim = (claim, "native::classes (reach)");
            self.check(
                item,
                Site::Reach(inst),
                claim,
                (Type::I64, address),
                Some(data),
            );
        }
        for access in piece.accesses.get(&inst).into_iter().flatten() {
            if let Some(&address) = args.get(access.operand) {
                self.touches(item, (inst, data), access, address);
            }
        }
    }

    /// Records an access to memory of which aliases are claimed.
    fn touches(
        &mut self,
        item: &LocalPosition,
        (inst, data): (Inst, &InstData),
        access: &AccessClaims,
        address: Scalar,
    ) {
        let (Some((number, piece)), Some(activation)) = (self.piece(item), self.activation(item))
        else {
            return;
        };
        let pointer = data.args.get(access.operand).map(|&v| piece.func.ty(v));
        let Some(space) = pointer.and_then(Type::space).filter(|_| address.is_known()) else {
            return;
        };
        let (space, start) = spaces::place(space, address.bits);
        let own = activation.number;
        let site = Site::Access(inst, access.operand, ARGUMENTS);
        if let (Some(args), Space::Global | Space::Constant) = (access.args, space) {
            let inside = |&(bits, begin, end): &(u64, u64, u64)| {
                (bits & args != 0 || bits == u64::MAX) && (begin..end).contains(&start)
            };
            let own = start >= OWN;
            if !own && !self.arguments.iter().any(inside) && !self.known.contains(&(number, site)) {
                let claim = (Claim::Arguments(args), ARGUMENTS);
                let lane = (self.lane(item), start);
                self.refute((number, piece), site, claim, [lane; 2], Some(data));
            }
        }
        for &(sets, analysis) in &access.sets {
            for byte in (0..access.size).map(|i| start.wrapping_add(i)) {
                let owner = match space {
                    Space::Private => Owner::Item(own),
                    Space::Local => Owner::Group(number),
                    _ => return,
                };
                let touched = self.touched.entry((owner, analysis, byte)).or_default();
                let others = [touched.writes, touched.reads.filter(|_| access.writes)];
                let other = others.into_iter().flatten().find(|c| c.sets & sets == 0);
                let common = match access.writes {
                    true => &mut touched.writes,
                    false => &mut touched.reads,
                };
                let before = common.map_or(u64::MAX, |common| common.sets);
                *common = Some(Common {
                    sets: before & sets,
                    item: item.index,
                });
                let site = Site::Access(inst, access.operand, analysis);
                let Some(other) = other.filter(|_| !self.known.contains(&(number, site))) else {
                    continue;
                };
                let lanes = [(other.item, byte), (item.index, byte)];
                let claim = (Claim::Aliases(sets), analysis);
                self.refute((number, piece), site, claim, lanes, Some(data));
            }
        }
    }

    /// Replaces the operands of a store by lane 0's, where the variable has one element for all
    /// lanes.
    pub fn stores(
        &mut self,
        item: &LocalPosition,
        (block, at): (Block, usize),
        data: &InstData,
        args: &mut [Scalar],
    ) {
        let Some((_, piece)) = self.piece(item) else {
            return;
        };
        let Some(&inst) = piece.func.blocks[block].insts.get(at) else {
            return;
        };
        let (Some(&claim), Op::VarStore(_)) = (piece.slots.get(&inst), data.op) else {
            return;
        };
        let (Some(&stored), Some(value)) = (data.args.get(1), args.get_mut(1)) else {
            return;
        };
        let ty = piece.func.ty(stored);
        let kind = (claim, "native::regions");
        self.check(item, Site::Slot(inst), kind, (ty, *value), Some(data));
        if let (0, Some(stride)) = (value.unknown & ty.mask(), claim.stride()) {
            let more = (stride as u64).wrapping_mul(self.lane(item).into());
            value.bits = value.bits.wrapping_sub(more) & ty.mask();
        }
    }

    /// Records the results of an instruction.
    pub fn has_done(&mut self, item: &LocalPosition, data: &InstData, results: &[Scalar]) {
        for (&value, &bits) in data.results.iter().zip(results) {
            self.value(item, value, bits, Some(data));
        }
    }

    /// Records that a work-item is at the end of a block, whose terminator uses these values.
    pub fn ends(&mut self, item: &LocalPosition, block: Block, used: &[(Value, Scalar)]) {
        for &(value, bits) in used {
            self.operand(item, (block, usize::MAX), value, bits, None);
        }
    }
}
