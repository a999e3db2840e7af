//! Prepares private memory for promotion: makes every access to an alloca cover exactly one of its pieces.
//!
//! Candidates are allocas used at constant offsets by loads, stores and copies (volatile or not: nobody else can see
//! them). Each is cut into pieces at the
//! ends of all accesses; copies between two candidates carry the cuts of one to the other. Then copies become loads
//! and stores of the pieces, and an access that spans several pieces (other width, partial overlap) becomes accesses
//! of the pieces joined by shifts. `mem2reg` promotes the pieces afterwards.

use crate::analysis::alloca::Addresses;
use crate::analysis::cfg::Cfg;
use crate::analysis::control_flow::Analyses;
use crate::ir::entity::{Inst, Value};
use crate::ir::function::Function;
use crate::ir::op::Op;
use crate::ir::reinterpret::reinterpret;
use crate::ir::types::Type;

/// The size of the largest alloca that is split.
const MAX_SIZE: u32 = 4096;
/// The most pieces of an alloca that is copied.
const MAX_PIECES: usize = 512;

/// The cuts of an alloca: for each byte offset whether a piece starts there, and the type that an
/// access of exactly the piece at that offset has.
struct Cuts {
    size: u32,
    cut: Vec<bool>,
    ty: Vec<Option<Type>>,
}

impl Cuts {
    /// Returns the size of the piece that starts at an offset.
    fn piece(&self, offset: u64) -> u64 {
        let start = offset as usize;
        let mut end = start + 1;
        while end < self.cut.len() && !self.cut[end] {
            end += 1;
        }
        (end - start) as u64
    }
    /// Returns the type of the accesses to exactly that piece.
    fn piece_type(&self, offset: u64) -> Option<Type> {
        let ty = self.ty.get(offset as usize).copied().flatten()?;
        (u64::from(ty.size()) == self.piece(offset)).then_some(ty)
    }
}

/// A copy with at least one side in a candidate.
struct Copy {
    to: Option<(usize, u64)>,
    from: Option<(usize, u64)>,
    size: u64,
}

/// Runs the pass. Returns true if the function changed.
pub fn run(func: &mut Function, analyses: &mut Analyses) -> bool {
    let Some(entry) = func.entry() else {
        return false;
    };
    let has_alloca = func.blocks[entry]
        .insts
        .iter()
        .any(|&i| matches!(func.insts[i].op, Op::Alloca { .. }));
    // Pieces of a structure that is copied would show the bytes between its members as never written.
    if !has_alloca || func.structure.is_some() || func.keeps_unwritten {
        return false;
    }
    let flow = analyses.control_flow(func);
    let cfg = &flow.cfg;
    let mut addresses = Addresses::new(func, cfg, true);
    let Some((cuts, work)) = plan(func, cfg, &mut addresses) else {
        return false;
    };
    if !work {
        return false;
    }
    let mut changed = false;
    for &block in cfg.rpo() {
        let insts = std::mem::take(&mut func.blocks[block].insts);
        let mut editor = Editor {
            func,
            out: Vec::with_capacity(insts.len()),
            addresses: &addresses,
            cuts: &cuts,
        };
        for inst in insts {
            if editor.inst(inst) {
                changed = true;
            } else {
                editor.out.push(inst);
            }
        }
        func.blocks[block].insts = editor.out;
    }
    changed
}

/// Returns the cuts of each candidate, and whether some access has to be changed. Candidates that
/// do not fit are rejected.
fn plan(func: &Function, cfg: &Cfg, addresses: &mut Addresses) -> Option<(Vec<Cuts>, bool)> {
    let mut cuts: Vec<Cuts> = addresses
        .allocas
        .iter()
        .map(|&inst| {
            let size = match func.insts[inst].op {
                Op::Alloca { size, .. } => size,
                _ => 0,
            };
            let n = if size <= MAX_SIZE { size as usize } else { 0 };
            Cuts {
                size,
                cut: vec![false; n + 1],
                ty: vec![None; n + 1],
            }
        })
        .collect();
    for (i, cuts) in cuts.iter().enumerate() {
        if cuts.size > MAX_SIZE {
            addresses.rejected[i] = true;
        }
    }
    let mut copies: Vec<Copy> = Vec::new();
    let mut lanes: Vec<(usize, u64, Type)> = Vec::new();
    for &block in cfg.rpo() {
        for &inst in &func.blocks[block].insts {
            let data = &func.insts[inst];
            let values = match data.op {
                Op::Load { .. } => &data.results[..],
                Op::Store { .. } => &data.args[1..],
                Op::MemCopy { size, .. } => {
                    let to = addresses.alloca(data.args[0]);
                    let from = addresses.alloca(data.args[1]);
                    for &(root, offset) in [to, from].iter().flatten() {
                        let end = offset.checked_add(size);
                        if end.is_none_or(|end| end > cuts[root].size.into()) {
                            addresses.rejected[root] = true;
                        }
                    }
                    if to.is_some() || from.is_some() {
                        copies.push(Copy { to, from, size });
                    }
                    continue;
                }
                _ => continue,
            };
            let Some((root, mut offset)) = addresses.alloca(data.args[0]) else {
                continue;
            };
            for &value in values {
                let ty = func.ty(value);
                let end = offset.checked_add(ty.size().into());
                if end.is_none_or(|end| end > cuts[root].size.into()) || ty == Type::Bool {
                    addresses.rejected[root] = true;
                    break;
                }
                lanes.push((root, offset, ty));
                offset += u64::from(ty.size());
            }
        }
    }
    if addresses.rejected.iter().all(|&r| r) {
        return None;
    }
    for &(root, offset, ty) in &lanes {
        if addresses.rejected[root] {
            continue;
        }
        let (start, end) = (offset as usize, offset as usize + ty.size() as usize);
        let cuts = &mut cuts[root];
        cuts.cut[start] = true;
        cuts.cut[end] = true;
        // The narrowest access is the one that may be a piece.
        if cuts.ty[start].is_none_or(|t| t.size() > ty.size()) {
            cuts.ty[start] = Some(ty);
        }
    }
    let live = |addresses: &Addresses, side: Option<(usize, u64)>| {
        side.filter(|&(root, _)| !addresses.rejected[root])
    };
    for copy in &copies {
        for (root, offset) in [copy.to, copy.from]
            .into_iter()
            .filter_map(|s| live(addresses, s))
        {
            cuts[root].cut[offset as usize] = true;
            cuts[root].cut[(offset + copy.size) as usize] = true;
        }
    }
    // Pieces of natural size, then copies carry the cuts over, until nothing changes.
    loop {
        for (root, cuts) in cuts.iter_mut().enumerate() {
            if !addresses.rejected[root] {
                split_naturally(cuts);
            }
        }
        let mut again = false;
        for copy in &copies {
            let (Some(to), Some(from)) = (live(addresses, copy.to), live(addresses, copy.from))
            else {
                continue;
            };
            for i in 0..=copy.size as usize {
                let (a, b) = (to.1 as usize + i, from.1 as usize + i);
                let either = cuts[to.0].cut[a] | cuts[from.0].cut[b];
                again |= cuts[to.0].cut[a] != cuts[from.0].cut[b];
                cuts[to.0].cut[a] = either;
                cuts[from.0].cut[b] = either;
            }
        }
        if !again {
            break;
        }
    }
    let mut work = false;
    for (root, cuts) in cuts.iter().enumerate() {
        if cuts.cut.iter().filter(|&&c| c).count() > MAX_PIECES {
            addresses.rejected[root] = true;
        }
    }
    for copy in &copies {
        work |= [copy.to, copy.from]
            .into_iter()
            .any(|s| live(addresses, s).is_some());
    }
    for &(root, offset, ty) in &lanes {
        work |= !addresses.rejected[root] && cuts[root].piece(offset) != u64::from(ty.size());
    }
    Some((cuts, work))
}

/// Cuts pieces that are no power of two, longer than 8 bytes, or not aligned to their size. Bytes
/// before the first and after the last cut are never accessed.
fn split_naturally(cuts: &mut Cuts) {
    let mut start = match cuts.cut.iter().position(|&c| c) {
        Some(first) => first,
        None => return,
    };
    let last = cuts.cut.iter().rposition(|&c| c).unwrap_or(start);
    while start < last {
        let size = cuts.piece(start as u64) as usize;
        let exact = cuts
            .ty
            .get(start)
            .copied()
            .flatten()
            .is_some_and(|t| t.size() as usize == size);
        let mut piece = if exact { size } else { size.min(8) };
        while !exact && (!piece.is_power_of_two() || start % piece != 0) {
            piece -= 1;
        }
        start += piece.max(1);
        if start < cuts.cut.len() {
            cuts.cut[start] = true;
        }
    }
}

struct Editor<'a> {
    func: &'a mut Function,
    out: Vec<Inst>,
    addresses: &'a Addresses,
    cuts: &'a [Cuts],
}

impl Editor<'_> {
    fn emit(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        let inst = self.func.make_inst(op, args.iter().copied(), &[ty]);
        self.out.push(inst);
        self.func.insts[inst].results[0]
    }

    fn offset(&mut self, pointer: Value, offset: u64) -> Value {
        if offset == 0 {
            return pointer;
        }
        let k = self.emit(Op::Const(offset), &[], Type::I64);
        let ty = self.func.ty(pointer);
        self.emit(Op::PtrAdd, &[pointer, k], ty)
    }

    fn load(&mut self, pointer: Value, offset: u64, ty: Type, align: u32) -> Value {
        let address = self.offset(pointer, offset);
        let align = align_at(align, offset);
        let op = Op::Load {
            align,
            volatile: false,
        };
        self.emit(op, &[address], ty)
    }

    fn store(&mut self, pointer: Value, offset: u64, value: Value, align: u32) {
        let address = self.offset(pointer, offset);
        let align = align_at(align, offset);
        let op = Op::Store {
            align,
            volatile: false,
        };
        let inst = self.func.make_inst(op, [address, value], &[]);
        self.out.push(inst);
    }

    /// Rewrites an instruction. Returns false if it stays.
    fn inst(&mut self, inst: Inst) -> bool {
        let data = &self.func.insts[inst];
        match data.op {
            Op::MemCopy { size, align } => {
                let (to, from) = (data.args[0], data.args[1]);
                self.copy(to, from, size, align)
            }
            Op::Load { align, .. } => {
                let (pointer, lanes) = (data.args[0], data.results.clone());
                let Some((cuts, start)) = self.spanning(pointer, &lanes) else {
                    return false;
                };
                let mut at = 0;
                for lane in lanes {
                    let ty = self.func.ty(lane);
                    let value = self.load_lane(pointer, cuts, start, at, ty, align);
                    // The result keeps its name: a bitcast to its own type, which folds away.
                    self.rename(lane, value);
                    at += u64::from(ty.size());
                }
                true
            }
            Op::Store { align, .. } => {
                let pointer = data.args[0];
                let lanes: Vec<Value> = data.args[1..].to_vec();
                let Some((cuts, start)) = self.spanning(pointer, &lanes) else {
                    return false;
                };
                let mut at = 0;
                for lane in lanes {
                    let ty = self.func.ty(lane);
                    self.store_lane(pointer, cuts, start, at, lane, align);
                    at += u64::from(ty.size());
                }
                true
            }
            _ => false,
        }
    }

    /// Returns the cuts and offset of an access with a lane that covers more than a piece.
    fn spanning(&self, pointer: Value, lanes: &[Value]) -> Option<(usize, u64)> {
        let (root, start) = self.addresses.alloca(pointer)?;
        let mut offset = start;
        for &lane in lanes {
            let size = u64::from(self.func.ty(lane).size());
            if self.cuts[root].piece(offset) != size {
                return Some((root, start));
            }
            offset += size;
        }
        None
    }

    /// Makes `name` the result of the instruction that makes `value`, or of a conversion where that
    /// is not possible.
    fn rename(&mut self, name: Value, value: Value) {
        use crate::ir::function::ValueDef;
        // `value` was made just now by the last instruction and is used nowhere else.
        if let Some(inst) = self.func.def_inst(value) {
            self.func.insts[inst].results[0] = name;
            self.func.values[name].def = ValueDef::Result(inst, 0);
        }
    }

    fn load_lane(
        &mut self,
        pointer: Value,
        root: usize,
        start: u64,
        at: u64,
        ty: Type,
        align: u32,
    ) -> Value {
        let cuts = &self.cuts[root];
        let size = u64::from(ty.size());
        if cuts.piece(start + at) == size {
            return self.load(pointer, at, ty, align);
        }
        let whole = Type::int(ty.bits()).unwrap_or(Type::I64);
        let mut sum: Option<Value> = None;
        let mut done = 0;
        while done < size {
            let offset = start + at + done;
            let piece = self.cuts[root].piece(offset);
            let part_int = Type::int(piece as u32 * 8).unwrap_or(Type::I8);
            let part_ty = self.cuts[root].piece_type(offset).unwrap_or(part_int);
            let part = self.load(pointer, at + done, part_ty, align);
            let part = reinterpret(self.func, &mut self.out, part, part_int);
            let mut part = self.emit(Op::ZExt, &[part], whole);
            if done > 0 {
                let amount = self.emit(Op::Const(done * 8), &[], whole);
                part = self.emit(Op::Shl, &[part, amount], whole);
            }
            sum = Some(match sum {
                None => part,
                Some(sum) => self.emit(Op::Or, &[sum, part], whole),
            });
            done += piece;
        }
        let sum = match sum {
            Some(sum) => sum,
            None => self.emit(Op::Undef, &[], whole),
        };
        reinterpret(self.func, &mut self.out, sum, ty)
    }

    fn store_lane(
        &mut self,
        pointer: Value,
        root: usize,
        start: u64,
        at: u64,
        value: Value,
        align: u32,
    ) {
        let ty = self.func.ty(value);
        let size = u64::from(ty.size());
        if self.cuts[root].piece(start + at) == size {
            self.store(pointer, at, value, align);
            return;
        }
        let whole = Type::int(ty.bits()).unwrap_or(Type::I64);
        let bits = reinterpret(self.func, &mut self.out, value, whole);
        let mut done = 0;
        while done < size {
            let offset = start + at + done;
            let piece = self.cuts[root].piece(offset);
            let part_int = Type::int(piece as u32 * 8).unwrap_or(Type::I8);
            let part_ty = self.cuts[root].piece_type(offset).unwrap_or(part_int);
            let mut part = bits;
            if done > 0 {
                let amount = self.emit(Op::Const(done * 8), &[], whole);
                part = self.emit(Op::LShr, &[part, amount], whole);
            }
            let part = self.emit(Op::Trunc, &[part], part_int);
            let part = reinterpret(self.func, &mut self.out, part, part_ty);
            self.store(pointer, at + done, part, align);
            done += piece;
        }
    }

    fn copy(&mut self, to: Value, from: Value, size: u64, align: u32) -> bool {
        let sides = (self.addresses.alloca(to), self.addresses.alloca(from));
        let lead = match sides {
            (Some(side), _) | (None, Some(side)) => side,
            (None, None) => return false,
        };
        // All loads before all stores: the sides do not overlap, but they may be the same memory.
        let mut done = 0;
        let mut parts = Vec::new();
        while done < size {
            let piece = self.cuts[lead.0].piece(lead.1 + done).min(size - done);
            let ty = [sides.1, sides.0]
                .into_iter()
                .flatten()
                .find_map(|(root, offset)| self.cuts[root].piece_type(offset + done))
                .filter(|t| u64::from(t.size()) == piece)
                .or_else(|| Type::int(piece as u32 * 8))
                .unwrap_or(Type::I8);
            let value = self.load(from, done, ty, align);
            parts.push((done, value));
            done += piece;
        }
        for (offset, value) in parts {
            self.store(to, offset, value, align);
        }
        true
    }
}

/// Returns the alignment at an offset from an aligned address.
fn align_at(align: u32, offset: u64) -> u32 {
    if offset == 0 {
        return align;
    }
    let low = 1u64 << offset.trailing_zeros().min(31);
    (u64::from(align).min(low)) as u32
}
