//! Writes zeros to arrays at the start of a kernel, for contexts whose local or private memory is
//! initialised (cl_khr_initialize_memory).
//!
//! Arrays are what is left of memory at the end of lowering. Private memory that became values
//! before is zero by [`Function::zeroed`].

use crate::edit::rewrite::{at_start, Rewriter};
use crate::ir::entity::{Value, Var};
use crate::ir::function::{Edge, Function, Storage, Terminator, VarData};
use crate::ir::op::{Fences, HwVar, IntCond, Op, Order, Scope};
use crate::ir::types::Type;

/// The elements of a private array that an iteration writes. Some drivers bound the number of
/// iterations.
const UNROLL: u32 = 8;

/// Runs the pass for the arrays for which `which` returns true. Returns false if there are none.
pub fn run(func: &mut Function, which: impl Fn(Var, &VarData) -> bool) -> bool {
    let arrays = func.vars.iter().filter(|&(var, data)| which(var, data));
    let mut arrays: Vec<(Var, VarData)> = arrays.map(|(var, data)| (var, data.clone())).collect();
    // Of arrays that overlay one another the one with the largest elements covers all.
    arrays.sort_by_key(|(_, data)| std::cmp::Reverse(data.elem_size()));
    let mut seen = Vec::new();
    arrays.retain(|(_, data)| {
        let place = data.alias.map(|alias| (data.storage, alias));
        let again = place.is_some_and(|place| seen.contains(&place));
        seen.extend(place);
        !again
    });
    if arrays.is_empty() {
        return false;
    }
    at_start(func, |r| write_all(r, &arrays));
    true
}

fn write_all(r: &mut Rewriter, arrays: &[(Var, VarData)]) {
    let mut shared = false;
    for (var, data) in arrays {
        match data.storage {
            Storage::Function => write_private(r, *var, data),
            Storage::Workgroup => {
                shared = true;
                write_shared(r, *var, data);
            }
        }
    }
    if shared {
        let barrier = Op::Barrier {
            exec: Scope::WorkGroup,
            mem: Scope::WorkGroup,
            order: Order::AcqRel,
            fences: Fences {
                global: false,
                local: true,
                image: false,
            },
        };
        r.inst(barrier, [], &[]);
    }
}

/// Writes an element.
fn write(r: &mut Rewriter, var: Var, data: &VarData, index: Value) {
    let zero = r.konst(data.elem, 0);
    let values = std::iter::repeat_n(zero, data.lanes as usize);
    r.inst(Op::VarStore(var), [index].into_iter().chain(values), &[]);
}

fn write_private(r: &mut Rewriter, var: Var, data: &VarData) {
    let len = data.len.fixed;
    let whole = if len > 2 * UNROLL {
        len / UNROLL * UNROLL
    } else {
        0
    };
    if whole > 0 {
        let (zero, end) = (r.konst(Type::I32, 0), r.konst(Type::I32, whole.into()));
        let step = r.konst(Type::I32, UNROLL.into());
        count(r, zero, end, step, |r, first| {
            for at in 0..UNROLL {
                let index = r.with_const(Op::IAdd, first, at.into());
                write(r, var, data, index);
            }
        });
    }
    for at in whole..len {
        let index = r.konst(Type::I32, at.into());
        write(r, var, data, index);
    }
}

/// Writes the elements of an array that the work-items of a group share among themselves.
fn write_shared(r: &mut Rewriter, var: Var, data: &VarData) {
    let mut end = r.konst(Type::I32, data.len.fixed.into());
    for &id in &data.len.spec {
        let bytes = r.op(Op::SpecSize(id), [], Type::I32);
        let by = data.elem_size().trailing_zeros();
        let elements = r.with_const(Op::LShr, bytes, by.into());
        end = r.same(Op::IAdd, [end, elements]);
    }
    let first = r.op(Op::Hw(HwVar::LocalInvocationIndex), [], Type::I32);
    let [x, y, z] = [0, 1, 2].map(|dim| r.op(Op::Hw(HwVar::WorkgroupSize(dim)), [], Type::I32));
    let row = r.same(Op::IMul, [x, y]);
    let step = r.same(Op::IMul, [row, z]);
    count(r, first, end, step, |r, index| write(r, var, data, index));
}

/// Emits a loop over `first`, `first + step`, ... below `end`.
fn count(
    r: &mut Rewriter,
    first: Value,
    end: Value,
    step: Value,
    body: impl FnOnce(&mut Rewriter, Value),
) {
    let (head, inner, done) = (
        r.new_block(&[Type::I32]),
        r.new_block(&[]),
        r.new_block(&[]),
    );
    r.jump(head, &[first], head);
    let index = r.params(head)[0];
    let more = r.icmp(IntCond::Ult, index, end);
    r.end_block(
        Terminator::Branch(more, Edge::new(inner), Edge::new(done)),
        inner,
    );
    body(r, index);
    let next = r.same(Op::IAdd, [index, step]);
    r.jump(head, &[next], done);
}
