//! Fuses multiplications with additions where the instructions allow contraction and the target has
//! a true fused multiply-add. Drivers contract too, but not all of them and not always.
//!
//! All uses of the multiplication must be fused: otherwise it would be computed as well. A
//! multiplication with several uses is fused into each, as long as none could fuse a product of its
//! own.

use crate::analysis::uses::use_counts;
use crate::ir::entity::{Inst, Value};
use crate::ir::function::{FpFlags, Function};
use crate::ir::op::Op;
use crate::ir::types::Type;
use crate::target::Target;
use rustc_hash::{FxHashMap, FxHashSet};

/// The most uses of a multiplication that is fused, because its factors stay live up to the last
/// use.
const MOST_USES: u32 = 3;

/// Runs the pass. Returns true if the function changed.
pub fn run(func: &mut Function, target: &Target) -> bool {
    let uses = use_counts(func);
    let shared = shared(func, target, &|v| uses[v]);
    let mut changed = false;
    for block in func.layout.clone() {
        let old = std::mem::take(&mut func.blocks[block].insts);
        let mut new = Vec::with_capacity(old.len());
        for inst in old {
            if let Some(fused) = plan(func, inst, target, &|v| uses[v] == 1 || shared.contains(&v))
            {
                apply(func, inst, fused, &mut new);
                changed = true;
            }
            new.push(inst);
        }
        func.blocks[block].insts = new;
    }
    changed
}

/// `a * b + c`, with the product or the addend negated.
struct Fused {
    factors: [Value; 2],
    addend: Value,
    negate_product: bool,
    negate_addend: bool,
}

/// Returns the multiplications with several uses, all of which can be fused.
fn shared(func: &Function, target: &Target, uses: &dyn Fn(Value) -> u32) -> FxHashSet<Value> {
    // The sums that each could go into.
    let mut candidates = Vec::new();
    let mut sums: FxHashMap<Value, Vec<Inst>> = FxHashMap::default();
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            // One that takes a product of its own has no room for another.
            if plan(func, inst, target, &|v| uses(v) == 1).is_some() {
                continue;
            }
            let several = |v: Value| (2..=MOST_USES).contains(&uses(v));
            let [left, right] = func.insts[inst].args.as_slice() else {
                continue;
            };
            for value in [*left, *right] {
                if left != right
                    && plan(func, inst, target, &|v| v == value && several(v)).is_some()
                {
                    let sums = sums.entry(value).or_default();
                    if sums.is_empty() {
                        candidates.push(value);
                    }
                    sums.push(inst);
                }
            }
        }
    }
    let mut found = FxHashSet::default();
    let mut taken: FxHashSet<Inst> = FxHashSet::default();
    for value in candidates {
        let sums = &sums[&value];
        if sums.len() as u32 == uses(value) && !sums.iter().any(|sum| taken.contains(sum)) {
            taken.extend(sums);
            found.insert(value);
        }
    }
    found
}

/// Returns how to fuse an addition with a product that `may` be removed.
fn plan(
    func: &Function,
    inst: Inst,
    target: &Target,
    may: &dyn Fn(Value) -> bool,
) -> Option<Fused> {
    let data = &func.insts[inst];
    if !matches!(data.op, Op::FAdd | Op::FSub) || !data.fp.has(FpFlags::CONTRACT) {
        return None;
    }
    let &[left, right] = data.args.as_slice() else {
        return None;
    };
    let has_fma = match func.ty(left) {
        Type::F16 => target.fp16.fused_fma,
        Type::F32 => target.fp32.fused_fma,
        Type::F64 => target.fp64.fused_fma,
        _ => false,
    };
    if !has_fma {
        return None;
    }
    let product = |value: Value| -> Option<[Value; 2]> {
        let mul = &func.insts[func.def_inst(value)?];
        let good = mul.op == Op::FMul && mul.fp.has(FpFlags::CONTRACT) && may(value);
        let &[a, b] = mul.args.as_slice() else {
            return None;
        };
        good.then_some([a, b])
    };
    let minus = data.op == Op::FSub;
    if let Some(factors) = product(left) {
        return Some(Fused {
            factors,
            addend: right,
            negate_product: false,
            negate_addend: minus,
        });
    }
    let factors = product(right)?;
    Some(Fused {
        factors,
        addend: left,
        negate_product: minus,
        negate_addend: false,
    })
}

/// Replaces the addition by the fused operation; negations go before it.
fn apply(func: &mut Function, inst: Inst, fused: Fused, before: &mut Vec<Inst>) {
    let ty = func.ty(fused.addend);
    let mut negated = |value: Value| {
        let neg = func.make_inst(Op::FNeg, [value], &[ty]);
        before.push(neg);
        func.insts[neg].results[0]
    };
    let [mut a, b] = fused.factors;
    let mut c = fused.addend;
    if fused.negate_product {
        a = negated(a);
    }
    if fused.negate_addend {
        c = negated(c);
    }
    func.insts[inst].op = Op::Fma;
    func.insts[inst].args = [a, b, c].into_iter().collect();
}
