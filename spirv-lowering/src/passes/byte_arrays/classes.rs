//! Finds which variables share a class by a union-find over pointers, and gathers the accesses of
//! each class.

use super::access::{accessed, align_of, is_access};
use super::{Class, Lower, Name};
use crate::analysis::alignment::Alignments;
use crate::analysis::control_flow::ControlFlow;
use crate::error::Result;
use crate::ir::entity::{Entity, GlobalId, Value};
use crate::ir::function::{InstData, Storage};
use crate::ir::op::{Op, RmwOp};
use crate::ir::types::Type;
use rustc_hash::FxHashMap;

/// The most bytes of a vector that is an element.
const MOST_VECTOR: u32 = 16;

impl Lower<'_> {
    pub(super) fn escaped(&self) -> u32 {
        self.parent.len() as u32 - 1
    }

    fn find(&mut self, mut i: u32) -> u32 {
        while self.parent[i as usize] != i {
            let up = self.parent[self.parent[i as usize] as usize];
            self.parent[i as usize] = up;
            i = up;
        }
        i
    }

    fn union(&mut self, a: u32, b: u32) {
        let (a, b) = (self.find(a), self.find(b));
        self.parent[a as usize] = b;
    }

    fn is_ours(&self, value: Value) -> bool {
        self.func.ty(value) == Type::Ptr(self.plan.space)
    }

    pub(super) fn unite(&mut self) {
        let escaped = self.escaped();
        let mut globals: FxHashMap<GlobalId, u32> = FxHashMap::default();
        for block in self.func.layout.clone() {
            for k in 0..self.func.blocks[block].insts.len() {
                let inst = self.func.blocks[block].insts[k];
                let data = self.func.insts[inst].clone();
                let node = |v: Value| v.index() as u32;
                match data.op {
                    Op::PtrAdd | Op::Bitcast | Op::SpaceCast => {
                        let (from, to) = (data.args[0], data.results[0]);
                        match (self.is_ours(from), self.is_ours(to)) {
                            (true, true) => self.union(node(from), node(to)),
                            (true, false) => self.union(node(from), escaped),
                            (false, true) => self.union(node(to), escaped),
                            _ => {}
                        }
                    }
                    Op::Select => {
                        if self.is_ours(data.results[0]) {
                            self.union(node(data.args[1]), node(data.results[0]));
                            self.union(node(data.args[2]), node(data.results[0]));
                        }
                    }
                    Op::GlobalAddr(id) if self.is_ours(data.results[0]) => {
                        let me = node(data.results[0]);
                        let other = *globals.entry(id).or_insert(me);
                        self.union(other, me);
                    }
                    Op::Alloca { .. }
                    | Op::Const(_)
                    | Op::Undef
                    | Op::ICmp(_)
                    | Op::GlobalAddr(_) => {}
                    op => {
                        // The address of an access stays in its class; everything else escapes.
                        let address = is_access(op);
                        for (i, &v) in data.args.iter().enumerate() {
                            if self.is_ours(v) && !(address && i == 0) {
                                self.union(node(v), escaped);
                            }
                        }
                        for &v in &data.results {
                            if self.is_ours(v) {
                                self.union(node(v), escaped);
                            }
                        }
                    }
                }
            }
            for target in self.func.blocks[block]
                .term
                .targets()
                .into_iter()
                .cloned()
                .collect::<Vec<_>>()
            {
                let params = self.func.blocks[target.block].params.clone();
                for (&arg, &param) in target.args.iter().zip(&params) {
                    if self.is_ours(param) {
                        self.union(arg.index() as u32, param.index() as u32);
                    }
                }
            }
        }
    }

    /// Returns the class of a node, which it makes if there is none yet.
    pub(super) fn class_at(&mut self, node: u32) -> usize {
        if self.single {
            return 0;
        }
        let root = self.find(node);
        if let Some(&c) = self.class_of_root.get(&root) {
            return c;
        }
        self.classes.push(Class::default());
        self.class_of_root.insert(root, self.classes.len() - 1);
        self.classes.len() - 1
    }

    pub(super) fn class(&mut self, value: Value) -> usize {
        self.class_at(value.index() as u32)
    }

    /// Gathers the variables and the accesses of every class, or of a single one if `one`.
    pub(super) fn collect(&mut self, one: bool) -> Result<()> {
        self.classes.clear();
        self.class_of_root.clear();
        self.single = one;
        if one {
            self.classes.push(Class::default());
        }
        let mut named: FxHashMap<GlobalId, Value> = FxHashMap::default();
        let flow = ControlFlow::new(self.func);
        let loops = flow.loops();
        for block in self.func.layout.clone() {
            let depth = loops.depth(block);
            for k in 0..self.func.blocks[block].insts.len() {
                let inst = self.func.blocks[block].insts[k];
                let data = self.func.insts[inst].clone();
                match data.op {
                    Op::GlobalAddr(id) if self.is_ours(data.results[0]) => {
                        named.entry(id).or_insert(data.results[0]);
                    }
                    op if is_access(op) && data.args.first().is_some_and(|&v| self.is_ours(v)) => {
                        self.note_access(&data, depth)?;
                    }
                    _ => {}
                }
            }
        }
        for variable in self.plan.variables.clone() {
            let value = match variable.name {
                Name::Value(v) => Some(v),
                Name::Global(id) => named.get(&id).copied(),
            };
            if let Some(value) = value {
                let class = self.class(value);
                self.classes[class].variables.push(variable);
            }
        }
        Ok(())
    }

    /// Lowers the alignment that accesses of private memory claim and their addresses do not prove,
    /// where there are narrower accesses to the same memory. Returns true if anything changed.
    ///
    /// Programs for processors fill a buffer of bytes by words, at any place in it (a pointer to
    /// bytes made one to words). The specification leaves that undefined (6.3.2 of OpenCL C,
    /// alignment of types), and all compilers for processors support it. Where all accesses have
    /// one width, no other access could observe a misaligned element.
    pub(super) fn doubt_alignments(&mut self) -> bool {
        if self.plan.storage != Storage::Function
            || self.classes.iter().all(|c| c.widths.count_ones() <= 1)
        {
            return false;
        }
        let known = Alignments::of_offsets(self.func);
        let mut any = false;
        for block in self.func.layout.clone() {
            for k in 0..self.func.blocks[block].insts.len() {
                let inst = self.func.blocks[block].insts[k];
                let Some(&address) = self.func.insts[inst].args.first() else {
                    continue;
                };
                let plain = matches!(self.func.insts[inst].op, Op::Load { .. } | Op::Store { .. });
                if !plain || !self.is_ours(address) {
                    continue;
                }
                let class = self.class(address);
                let Ok((ty, _)) = accessed(self.func, &self.func.insts[inst]) else {
                    continue;
                };
                let known = known.of(address);
                let (Op::Load { align, .. } | Op::Store { align, .. }) =
                    &mut self.func.insts[inst].op
                else {
                    continue;
                };
                let claimed = align_of(*align, ty).min(ty.size());
                if known < claimed && self.classes[class].widths & (claimed - 1) != 0 {
                    *align = known;
                    any = true;
                }
            }
        }
        any
    }

    fn note_access(&mut self, data: &InstData, depth: u32) -> Result<()> {
        let class = self.class(data.args[0]);
        let atomic = !matches!(data.op, Op::Load { .. } | Op::Store { .. });
        let (ty, lanes) = accessed(self.func, data)?;
        let align = match data.op {
            Op::Load { align, .. } | Op::Store { align, .. } => align_of(align, ty),
            _ => ty.size(),
        };
        let width = ty.size().min(align);
        let vector = !atomic
            && matches!(lanes, 2 | 4)
            && !ty.is_ptr()
            && (4..=MOST_VECTOR / lanes).contains(&ty.size())
            && align >= lanes * ty.size();
        let class = &mut self.classes[class];
        class.volatile |= matches!(
            data.op,
            Op::Load { volatile: true, .. } | Op::Store { volatile: true, .. }
        );
        class.lanes = match (class.lanes, if vector { lanes } else { 1 }) {
            (0, lanes) => lanes,
            (before, lanes) if before == lanes => lanes,
            _ => 1,
        };
        if atomic && self.plan.storage == Storage::Workgroup {
            class.atomics |= width;
            class.float_atomics |= matches!(
                data.op,
                Op::AtomicRmw {
                    op: RmwOp::FAdd,
                    ..
                }
            );
        }
        class.widths |= width;
        let store = matches!(data.op, Op::Store { .. });
        class.costs.add(store, lanes, ty.size(), width, depth);
        let weight = i64::from(lanes * ty.size());
        class.float_weight += if ty.is_float() && width == ty.size() {
            weight
        } else {
            -weight
        };
        Ok(())
    }
}
