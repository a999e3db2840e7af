//! The kernel that can stop and go on: checks before the loops, records of where work-items are, and the first block that looks
//! at them.

use super::emit::{stored, variable, Emit};
use super::needs::Needs;
use super::plan::Plan;
use super::route::Route;
use crate::interface::{Implicit, RESUME_HEADER, SPEC_RESUME};
use crate::ir::entity::{Block, Value};
use crate::ir::function::{Edge, Function, Terminator, Values};
use crate::ir::op::{HwVar, IntCond, Op};
use crate::ir::types::{Space, Type};

/// Does it. Returns the bytes of a work-item's record, or nothing where the loops need too much.
pub(super) fn transform(func: &mut Function, plan: &Plan) -> Option<u32> {
    let start = func.entry()?;
    let first = func.add_block();
    func.layout.pop();
    func.layout.insert(0, first);
    let checks: Vec<Block> = plan
        .headers
        .iter()
        .map(|&h| check_before(func, h))
        .collect();
    // The loop may be the first block.
    let at = plan.headers.iter().position(|&header| header == start);
    let start = at.map_or(start, |i| checks[i]);
    func.blocks[first].term = Terminator::Jump(Edge::new(start));

    let needs = Needs::new(func, &checks, first)?;
    let record_bytes = 8 + 8 * needs.most as u64;
    let counter = variable(func, first);
    let types_of = |&check: &Block| {
        let params = func.blocks[check].params.iter();
        params.map(|&v| func.ty(v)).collect()
    };
    let types: Vec<Vec<Type>> = checks.iter().map(types_of).collect();
    let route = Route::new(func, plan, first, &types);
    let loops = Loops {
        plan,
        checks,
        types,
        needs,
        route,
    };

    let again = func.add_block();
    let over = func.add_block();
    func.blocks[over].term = Terminator::Return(Values::new());
    let mut e = Emit::new(func);
    let zero = e.konst(Type::I32, 0);
    e.store(counter, zero);
    if let Some(route) = &loops.route {
        e.store(route.to, zero);
    }
    let here = here(&mut e, plan, record_bytes);
    e.finish(first);
    func.blocks[first].term = Terminator::Branch(here.on, Edge::new(again), Edge::new(start));

    let mut e = Emit::new(func);
    let status = e.load(here.record, Type::I32);
    let none = e.konst(Type::I32, 0);
    e.store(here.record, none);
    e.finish(again);
    let mut cases = vec![(1, Edge::new(start))];
    for number in 0..loops.checks.len() {
        let restore = loops.restore(func, number, &here);
        cases.push((code(number), Edge::new(restore)));
        let save = loops.save(func, number, &here);
        loops.check(func, number, counter, &here, save)?;
    }
    func.blocks[again].term = Terminator::Switch(status, cases, Edge::new(over));
    if let Some(route) = &loops.route {
        route.lead(func, plan, &loops.checks, &loops.types);
    }
    count_inner(func, plan, counter);
    u32::try_from(record_bytes).ok()
}

/// Returns a block before a loop's header, which all edges to the header pass.
fn check_before(func: &mut Function, header: Block) -> Block {
    let check = func.add_block();
    let params = func.blocks[header].params.iter();
    let types: Vec<Type> = params.map(|&v| func.ty(v)).collect();
    for block in func.layout.clone() {
        for target in func.blocks[block].term.targets_mut() {
            if target.block == header {
                target.block = check;
            }
        }
    }
    let args = types.into_iter().map(|ty| func.add_param(check, ty));
    let args: Values = args.collect();
    let block = header;
    func.blocks[check].term = Terminator::Jump(Edge { block, args });
    check
}

/// Returns the first word of a record for resuming in a loop.
fn code(number: usize) -> u64 {
    number as u64 + 2
}

/// The values that the first block computes for every work-item.
struct Here {
    /// Loops may stop and go on.
    on: Value,
    /// Where the state of the launch is.
    state: Value,
    /// The work-item's record.
    record: Value,
    /// The number of work-groups that another dispatch needs.
    width: Value,
    /// How far a work-item may count.
    limit: Value,
}

fn here(e: &mut Emit, plan: &Plan, record_bytes: u64) -> Here {
    let spec = e.op(Op::SpecSize(SPEC_RESUME), &[], Type::I32);
    let is = |e: &mut Emit, value| {
        let value = e.konst(Type::I32, value);
        e.op(Op::ICmp(IntCond::Eq), &[spec, value], Type::Bool)
    };
    let (shared, alone) = (is(e, 1), is(e, 2));
    let on = e.op(Op::Or, &[shared, alone], Type::Bool);
    let state = e.op(Op::Implicit(Implicit::ResumeState, 0), &[], Type::I64);
    let [width, height] =
        [0, 1].map(|dim| e.op(Op::Implicit(Implicit::ResumeGroups, dim), &[], Type::I32));
    let mut number = e.op(Op::Hw(HwVar::WorkgroupId(2)), &[], Type::I32);
    for (dim, count) in [(1, height), (0, width)] {
        let id = e.op(Op::Hw(HwVar::WorkgroupId(dim)), &[], Type::I32);
        number = e.op(Op::IMul, &[number, count], Type::I32);
        number = e.op(Op::IAdd, &[number, id], Type::I32);
    }
    for dim in 0..3 {
        let size = e.op(Op::Hw(HwVar::WorkgroupSize(dim)), &[], Type::I32);
        number = e.op(Op::IMul, &[number, size], Type::I32);
    }
    let index = e.op(Op::Hw(HwVar::LocalInvocationIndex), &[], Type::I32);
    number = e.op(Op::IAdd, &[number, index], Type::I32);
    let number = e.op(Op::ZExt, &[number], Type::I64);
    let stride = e.konst(Type::I64, record_bytes);
    let offset = e.op(Op::IMul, &[number, stride], Type::I64);
    let head = e.konst(Type::I64, RESUME_HEADER.into());
    let offset = e.op(Op::IAdd, &[offset, head], Type::I64);
    let record = e.op(Op::IAdd, &[state, offset], Type::I64);
    let record = e.op(Op::IntToPtr, &[record], Type::Ptr(Space::Global));
    let never = e.konst(Type::I32, u64::from(u32::MAX));
    let limit = e.konst(Type::I32, plan.limit);
    let limit = e.op(Op::Select, &[shared, limit, never], Type::I32);
    let limit_alone = e.konst(Type::I32, plan.limit_alone);
    let limit = e.op(Op::Select, &[alone, limit_alone, limit], Type::I32);
    Here {
        on,
        state,
        record,
        width,
        limit,
    }
}

/// The loops that can be gone on with.
struct Loops<'p> {
    plan: &'p Plan,
    /// The block before each header.
    checks: Vec<Block>,
    /// The types of its parameters.
    types: Vec<Vec<Type>>,
    needs: Needs,
    /// How inner ones are reached.
    route: Option<Route>,
}

impl Loops<'_> {
    /// Returns the block that takes what a loop needs from the record and goes on with it.
    fn restore(&self, func: &mut Function, number: usize, here: &Here) -> Block {
        let restore = func.add_block();
        let mut e = Emit::new(func);
        let mut place = 8;
        for &value in &self.needs.kept[number] {
            let ty = e.func.ty(value);
            let ty = stored(ty).unwrap_or(ty);
            let at = e.at(here.record, place);
            let loaded = e.load(at, ty);
            e.store(self.needs.variables[&value], loaded);
            place += 8;
        }
        let mut loaded = Vec::new();
        for &ty in &self.types[number] {
            let at = e.at(here.record, place);
            loaded.push(e.load(at, stored(ty).unwrap_or(ty)));
            place += 8;
        }
        let edge = match (self.plan.outermost(number), &self.route) {
            (Some(outer), Some(route)) => {
                for (&value, &variable) in loaded.iter().zip(&route.params[number]) {
                    e.store(variable, value);
                }
                let to = e.konst(Type::I32, code(number));
                e.store(route.to, to);
                let args = e.any(&self.types[outer]);
                let block = self.checks[outer];
                Edge { block, args }
            }
            _ => {
                let loaded = loaded.into_iter().zip(&self.types[number]);
                let args = loaded.map(|(value, &ty)| e.unpack(value, ty)).collect();
                let block = self.checks[number];
                Edge { block, args }
            }
        };
        e.finish(restore);
        func.blocks[restore].term = Terminator::Jump(edge);
        restore
    }

    /// Returns the block that stores what a loop needs, asks for another dispatch, and ends.
    fn save(&self, func: &mut Function, number: usize, here: &Here) -> Block {
        let params = func.blocks[self.checks[number]].params.clone();
        let save = func.add_block();
        let mut e = Emit::new(func);
        let mut place = 8;
        let kept = self.needs.kept[number].iter();
        let kept = kept.map(|v| (*v, Some(self.needs.variables[v])));
        // Parameters of the check are at hand, and in a variable only if another loop needs them.
        for (value, variable) in kept.chain(params.iter().map(|&p| (p, None))) {
            let ty = e.func.ty(value);
            let packed = match variable {
                Some(variable) => e.load(variable, stored(ty).unwrap_or(ty)),
                None => e.pack(value),
            };
            let at = e.at(here.record, place);
            e.store(at, packed);
            place += 8;
        }
        let status = e.konst(Type::I32, code(number));
        e.store(here.record, status);
        let round_at = e.at(here.record, 4);
        let round = e.load_word(round_at);
        let one = e.konst(Type::I32, 1);
        let next = e.op(Op::IAdd, &[round, one], Type::I32);
        e.store_word(round_at, next);
        let next = e.op(Op::ZExt, &[next], Type::I64);
        let size = e.konst(Type::I64, 16);
        let next = e.op(Op::IMul, &[next, size], Type::I64);
        let next = e.op(Op::IAdd, &[here.state, next], Type::I64);
        let next = e.op(Op::IntToPtr, &[next], Type::Ptr(Space::Global));
        e.store(next, here.width);
        e.finish(save);
        func.blocks[save].term = Terminator::Return(Values::new());
        save
    }

    /// Counts an iteration, and stops beyond the limit.
    fn check(
        &self,
        func: &mut Function,
        number: usize,
        counter: Value,
        here: &Here,
        save: Block,
    ) -> Option<()> {
        let check = self.checks[number];
        let Terminator::Jump(on) = std::mem::take(&mut func.blocks[check].term) else {
            return None;
        };
        let mut e = Emit::new(func);
        let by = self.plan.counts.get(&self.plan.headers[number]);
        let count = tick(&mut e, counter, by);
        let far = e.op(Op::ICmp(IntCond::Ugt), &[count, here.limit], Type::Bool);
        e.finish(check);
        func.blocks[check].term = Terminator::Branch(far, Edge::new(save), on);
        Some(())
    }
}

/// Long loops inside count, too.
fn count_inner(func: &mut Function, plan: &Plan, counter: Value) {
    for (&header, count) in &plan.counts {
        if plan.headers.contains(&header) {
            continue;
        }
        let insts = std::mem::take(&mut func.blocks[header].insts);
        let mut e = Emit::new(func);
        tick(&mut e, counter, Some(count));
        e.out.extend(insts);
        e.finish(header);
    }
}

/// Adds to the counter.
fn tick(e: &mut Emit, counter: Value, by: Option<&u64>) -> Value {
    let count = e.load(counter, Type::I32);
    let by = e.konst(Type::I32, by.copied().unwrap_or(1));
    let count = e.op(Op::IAdd, &[count, by], Type::I32);
    e.store(counter, count);
    count
}
