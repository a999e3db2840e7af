//! Which memory a kernel touches: for each pointer or image argument whether it is read or written through, and whether
//! pointers are followed that did not come from an argument.
//!
//! A forward dataflow over pointers: each value carries the set of arguments that it may be derived from, and a bit
//! for "came from memory or from an integer". An argument that is stored, or turned into an integer, may be used in
//! any way. Runs on an inlined function whose parameters are still the kernel's.

use crate::interface::Access;
use crate::ir::entity::{SecondaryMap, Value};
use crate::ir::function::Function;
use crate::ir::op::Op;
use crate::ir::types::{Space, Type};

/// The bits of [`ArgAccess::params`].
pub const READ: u8 = Access::READ;
/// As [`READ`].
pub const WRITE: u8 = Access::WRITE;
/// As [`READ`].
pub const PASS_ON: u8 = Access::PASS_ON;

/// The memory that a kernel may access.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArgAccess {
    /// For each parameter of the function, [`READ`], [`WRITE`] and [`PASS_ON`].
    pub params: Vec<u8>,
    /// Set if memory is reached through pointers that come neither from arguments nor from
    /// program-scope variables.
    pub indirect: bool,
}

/// Set for pointers that come from memory or an integer.
pub const UNKNOWN: u64 = 1 << 63;
/// The first parameter of those that share one bit.
pub const LAST: usize = 62;

/// Returns the parameters that each pointer may be derived from, a bit each, or [`UNKNOWN`].
pub fn sources(func: &Function) -> SecondaryMap<Value, u64> {
    let mut sources: SecondaryMap<Value, u64> = SecondaryMap::new();
    let Some(entry) = func.entry() else {
        return sources;
    };
    for (i, &param) in func.blocks[entry].params.iter().enumerate() {
        // A structure by value arrives in private memory; pointers in it are loaded from there.
        if matches!(
            func.ty(param),
            Type::Ptr(Space::Global | Space::Constant | Space::Generic) | Type::Handle
        ) {
            sources[param] = 1 << i.min(LAST);
        }
    }
    // Propagate to a fixed point.
    let mut changed = true;
    while changed {
        changed = false;
        let mut join = |sources: &mut SecondaryMap<Value, u64>, to: Value, set: u64| {
            if sources[to] | set != sources[to] {
                sources[to] |= set;
                changed = true;
            }
        };
        for &block in &func.layout {
            for &inst in &func.blocks[block].insts {
                let data = &func.insts[inst];
                let from_memory = match data.op {
                    Op::PtrAdd | Op::Select | Op::SpaceCast | Op::Group(..) => 0,
                    Op::Load { .. }
                    | Op::AtomicLoad { .. }
                    | Op::AtomicRmw { .. }
                    | Op::AtomicCmpXchg { .. } => UNKNOWN,
                    Op::IntToPtr | Op::Call(_) => UNKNOWN,
                    _ => continue,
                };
                let operands = match data.op {
                    Op::PtrAdd | Op::SpaceCast => &data.args[..data.args.len().min(1)],
                    Op::Select => data.args.get(1..).unwrap_or_default(),
                    Op::Group(..) => &data.args[..],
                    _ => &[],
                };
                let set = operands
                    .iter()
                    .fold(from_memory, |set, &v| set | sources[v]);
                for &result in &data.results {
                    if func.ty(result).is_ptr() && set != 0 {
                        join(&mut sources, result, set);
                    }
                }
            }
            for target in func.blocks[block].term.targets() {
                for (&param, &arg) in func.blocks[target.block].params.iter().zip(&target.args) {
                    let set = sources[arg];
                    if set != 0 {
                        join(&mut sources, param, set);
                    }
                }
            }
        }
    }
    sources
}

/// Computes which arguments a kernel reads and writes through.
pub fn analyse(func: &Function) -> ArgAccess {
    let mut access = ArgAccess {
        params: vec![0; func.params.len()],
        indirect: false,
    };
    let sources = sources(func);
    let mut bits = [0u8; 64];
    let mut touch = |pointer: Value, how: u8| {
        let set = match func.ty(pointer) {
            Type::Ptr(Space::Global | Space::Constant | Space::Generic) | Type::Handle => {
                sources[pointer]
            }
            _ => 0,
        };
        for (i, bit) in bits.iter_mut().enumerate() {
            if set >> i & 1 != 0 {
                *bit |= how;
            }
        }
    };
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            let data = &func.insts[inst];
            let Some(&first) = data.args.first() else {
                continue;
            };
            match data.op {
                Op::Load { .. } | Op::AtomicLoad { .. } | Op::ImageRead(_) | Op::ImageFilter => {
                    touch(first, READ)
                }
                Op::ImageWrite(_) => touch(first, WRITE),
                Op::Store { .. } | Op::AtomicStore { .. } => {
                    touch(first, WRITE);
                    data.args[1..].iter().for_each(|&v| touch(v, READ | WRITE));
                }
                Op::AtomicRmw { .. } | Op::AtomicCmpXchg { .. } => touch(first, READ | WRITE),
                Op::MemCopy { .. } => {
                    touch(first, WRITE);
                    if let Some(&source) = data.args.get(1) {
                        touch(source, READ);
                    }
                }
                Op::PtrToInt => touch(first, READ | WRITE),
                Op::ImageNumber => touch(first, PASS_ON),
                Op::Call(_) => data.args.iter().for_each(|&v| touch(v, READ | WRITE)),
                _ => {}
            }
        }
        if let crate::ir::function::Terminator::Return(values) = &func.blocks[block].term {
            values.iter().for_each(|&v| touch(v, READ | WRITE));
        }
    }
    for (i, param) in access.params.iter_mut().enumerate() {
        *param = bits[i.min(LAST)];
    }
    access.indirect = bits[63] != 0;
    access
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::function::{Edge, Terminator};

    #[test]
    fn through_block_parameters() {
        let global = Type::Ptr(Space::Global);
        let mut f = Function {
            params: vec![global, global, global],
            ..Default::default()
        };
        let entry = f.add_block();
        let [a, b, c] = [0; 3].map(|_| f.add_param(entry, global));
        let next = f.add_block();
        let p = f.add_param(next, global);
        let load = Op::Load {
            align: 4,
            volatile: false,
        };
        let x = f.append1(entry, load, [c], Type::I32);
        let zero = f.append_const(entry, Type::I32, 0);
        let cond = f.append1(
            entry,
            Op::ICmp(crate::ir::op::IntCond::Eq),
            [x, zero],
            Type::Bool,
        );
        let to = |v| Edge::with(next, [v]);
        f.blocks[entry].term = Terminator::Branch(cond, to(a), to(b));
        f.append(
            next,
            Op::Store {
                align: 4,
                volatile: false,
            },
            [p, x],
            &[],
        );
        f.blocks[next].term = Terminator::Return(Default::default());
        assert_eq!(
            analyse(&f),
            ArgAccess {
                params: vec![WRITE, WRITE, READ],
                indirect: false
            }
        );
    }

    #[test]
    fn pointers_in_memory() {
        let global = Type::Ptr(Space::Global);
        let mut f = Function {
            params: vec![global],
            ..Default::default()
        };
        let entry = f.add_block();
        let a = f.add_param(entry, global);
        let load = Op::Load {
            align: 8,
            volatile: false,
        };
        let p = f.append1(entry, load, [a], global);
        f.append1(entry, load, [p], Type::I32);
        f.blocks[entry].term = Terminator::Return(Default::default());
        assert_eq!(
            analyse(&f),
            ArgAccess {
                params: vec![READ],
                indirect: true
            }
        );
    }
}
