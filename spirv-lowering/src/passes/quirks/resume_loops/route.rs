//! The way to an inner loop, through the headers of those around it.

use super::emit::{stored, variable, Emit};
use super::plan::Plan;
use crate::ir::entity::{Block, Value};
use crate::ir::function::{Edge, Function, Terminator, Values};
use crate::ir::types::Type;

/// How a work-item that goes on with an inner loop finds there, through the headers of the loops around it.
pub(super) struct Route {
    /// The variable that says which loop to go to, as a record's first word does; 0 if there is none to go to.
    pub(super) to: Value,
    /// For each loop inside others, the variables with what its parameters shall be.
    pub(super) params: Vec<Vec<Value>>,
}

impl Route {
    /// Makes the variables, if there are inner loops to go on with.
    pub(super) fn new(
        func: &mut Function,
        plan: &Plan,
        first: Block,
        types: &[Vec<Type>],
    ) -> Option<Self> {
        plan.parents.iter().any(Option::is_some).then(|| Self {
            to: variable(func, first),
            params: plan
                .parents
                .iter()
                .zip(types)
                .map(|(parent, types)| {
                    let inner = if parent.is_some() { types.len() } else { 0 };
                    (0..inner).map(|_| variable(func, first)).collect()
                })
                .collect(),
        })
    }

    /// Puts the looks at the way before the checks of loops that have others inside.
    pub(super) fn lead(
        &self,
        func: &mut Function,
        plan: &Plan,
        checks: &[Block],
        types: &[Vec<Type>],
    ) {
        for (outer, &check) in checks.iter().enumerate() {
            let inside: Vec<(usize, usize)> = (0..checks.len())
                .filter_map(|inner| Some((inner, plan.towards(outer, inner)?)))
                .collect();
            if inside.is_empty() {
                continue;
            }
            let look = func.add_block();
            let params: Values = types[outer]
                .iter()
                .map(|&ty| func.add_param(look, ty))
                .collect();
            for block in func.layout.clone() {
                for target in func.blocks[block].term.targets_mut() {
                    if target.block == check {
                        target.block = look;
                    }
                }
            }
            let mut cases = Vec::new();
            for (inner, next) in inside {
                let step = func.add_block();
                let mut e = Emit::new(func);
                let args = if inner == next {
                    let none = e.konst(Type::I32, 0);
                    e.store(self.to, none);
                    let params = self.params[inner].iter().zip(&types[inner]);
                    params
                        .map(|(&variable, &ty)| {
                            let loaded = e.load(variable, stored(ty).unwrap_or(ty));
                            e.unpack(loaded, ty)
                        })
                        .collect()
                } else {
                    e.any(&types[next])
                };
                e.finish(step);
                func.blocks[step].term = Terminator::Jump(Edge {
                    block: checks[next],
                    args,
                });
                cases.push((inner as u64 + 2, Edge::new(step)));
            }
            let mut e = Emit::new(func);
            let to = e.load(self.to, Type::I32);
            e.finish(look);
            let on = Edge {
                block: check,
                args: params,
            };
            func.blocks[look].term = Terminator::Switch(to, cases, on);
        }
    }
}
