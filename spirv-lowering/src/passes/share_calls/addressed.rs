//! Gives private memory that functions reach through parameters an address: it becomes memory of the
//! work-item's own ([`Op::Own`]), and pointers to it global ones.
//!
//! This is for what cannot be passed by value: arrays that are indexed. A function runs once at a
//! time, so that the variables of each have their place in this memory. The rest of private memory
//! stays as it is.

use super::by_value::has_escapes;
use crate::edit::rewrite::at_start;
use crate::ir::entity::{Entity, FuncId, SecondaryMap, Value};
use crate::ir::function::Function;
use crate::ir::op::Op;
use crate::ir::types::{Space, Type};
use crate::passes::expand_memcopy;
use rustc_hash::FxHashMap;

const PRIVATE: Type = Type::Ptr(Space::Private);
const GLOBAL: Type = Type::Ptr(Space::Global);

/// The alignment of the memory of a work-item.
const ALIGN: u32 = 64;

/// The values that may point to the same memory, as sets with a value that stands for each.
struct Sets {
    up: SecondaryMap<Value, Option<Value>>,
}

impl Sets {
    fn find(&mut self, value: Value) -> Value {
        let mut at = value;
        while let Some(next) = self.up[at].filter(|&next| next != at) {
            // Halves the path.
            let after = self.up[next].unwrap_or(next);
            self.up[at] = Some(after);
            at = after;
        }
        at
    }

    fn join(&mut self, a: Value, b: Value) {
        let (a, b) = (self.find(a), self.find(b));
        if a != b {
            self.up[a] = Some(b);
        }
    }

    fn of(func: &Function) -> Self {
        let mut sets = Self {
            up: SecondaryMap::new(),
        };
        let is_private = |value: Value| func.ty(value) == PRIVATE;
        for &block in &func.layout {
            for &inst in &func.blocks[block].insts {
                let data = &func.insts[inst];
                let results = data.results.iter().copied();
                let mut all = results
                    .chain(data.args.iter().copied())
                    .filter(|&v| is_private(v));
                if !matches!(data.op, Op::PtrAdd | Op::Select | Op::ICmp(_)) {
                    continue;
                }
                if let Some(first) = all.next() {
                    all.for_each(|other| sets.join(first, other));
                }
            }
            for target in func.blocks[block].term.targets() {
                let params = func.blocks[target.block].params.iter();
                for (&param, &arg) in params.zip(&target.args).filter(|(&p, _)| is_private(p)) {
                    sets.join(param, arg);
                }
            }
        }
        sets
    }
}

/// Runs the pass on a kernel and the functions that it calls. Returns `None` where it is unknown
/// what a pointer points to.
pub(super) fn run(bodies: &mut FxHashMap<FuncId, Function>, kernel: FuncId) -> Option<()> {
    let mut ids: Vec<FuncId> = bodies.keys().copied().collect();
    ids.sort_by_key(|id| id.index());
    let mut size = 0u32;
    for id in &ids {
        size = one(bodies.get_mut(id)?, *id == kernel, size)?;
    }
    let size = size.checked_next_multiple_of(ALIGN)?;
    for func in bodies.values_mut() {
        for (_, data) in func.insts.iter_mut() {
            if let Op::Own { size: all, .. } = &mut data.op {
                *all = size;
            }
        }
    }
    Some(())
}

/// Runs the pass on a function, whose variables begin at `start`. Returns their end.
fn one(func: &mut Function, is_kernel: bool, start: u32) -> Option<u32> {
    let entry = func.entry()?;
    let params = func.blocks[entry].params.clone();
    let mut sets = Sets::of(func);
    // The sets by the values that stand for them.
    let mut reached: SecondaryMap<Value, bool> = SecondaryMap::new();
    let mut any = false;
    let mut reach = |sets: &mut Sets, value: Value| {
        reached[sets.find(value)] = true;
        any = true;
    };
    for &param in params
        .iter()
        .filter(|&&param| func.ty(param) == PRIVATE && !is_kernel)
    {
        reach(&mut sets, param);
    }
    for &inst in func.layout_insts() {
        let data = &func.insts[inst];
        if matches!(data.op, Op::Call(_)) {
            let args = data.args.iter().filter(|&&arg| func.ty(arg) == PRIVATE);
            args.for_each(|&arg| reach(&mut sets, arg));
        }
    }
    if !any {
        return Some(start);
    }
    let asks = |inst| matches!(func.insts[inst].op, Op::PtrIsIn(_));
    if has_escapes(func) || func.layout_insts().any(|&inst| asks(inst)) {
        return None;
    }
    let pointers = func.values.iter().filter(|(_, data)| data.ty == PRIVATE);
    let pointers: Vec<Value> = pointers.map(|(value, _)| value).collect();
    let mut end = start;
    let mut variables = Vec::new();
    for value in pointers {
        if !reached[sets.find(value)] {
            continue;
        }
        match func.def_inst(value) {
            // A structure that the kernel gets by value.
            None if is_kernel && params.contains(&value) => return None,
            None => {}
            Some(inst) => match func.insts[inst].op {
                Op::Alloca { size, align } => {
                    let align = align.clamp(1, ALIGN).next_power_of_two();
                    let offset = end.checked_next_multiple_of(align)?;
                    end = offset.checked_add(size)?;
                    func.insts[inst].op = Op::Own { offset, size: 0 };
                    variables.push((value, size, align));
                }
                Op::PtrAdd | Op::Select | Op::Const(0) | Op::Undef => {}
                _ => return None,
            },
        }
        func.values[value].ty = GLOBAL;
    }
    if func.zeroed {
        at_start(func, |r| {
            for (to, size, align) in variables {
                expand_memcopy::copy(r, to, None, size.into(), align);
            }
        });
    }
    for (ty, param) in func.params.iter_mut().zip(&params) {
        *ty = func.values[*param].ty;
    }
    Some(end)
}
