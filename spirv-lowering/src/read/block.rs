//! Blocks as kernels. A block is a function that takes the address of its captures, and pointers to
//! local memory. Compilers make entry points of blocks too, which no application can launch. For
//! each function that is enqueued, or queried, the module gets a kernel for the block. Its first
//! parameter is the address of a copy of the captures in global memory. Its name contains that of
//! the function and a hash of the module, so that those of linked modules differ.

use super::body::{bad, unsupported};
use super::output::{signature, Output};
use super::parsed::{Def, Parsed};
use crate::device_queue::block_number;
use crate::error::Result;
use crate::interface::{AccessQualifier, AddressQualifier, KernelAttributes, KernelRole};
use crate::ir::entity::Value;
use crate::ir::function::{Function, Linkage, Terminator, Values};
use crate::ir::module::{EntryPoint, KernelParam, ParamKind};
use crate::ir::op::Op;
use crate::ir::types::{Space, Type};
use spirv::ExecutionMode;

/// Returns true if an entry point is one that compilers make of a block, not a kernel of the
/// application: its first parameter is a generic pointer, and either its name says so or the module
/// enqueues kernels.
pub(super) fn is_block_entry(p: &Parsed, name: &str, function: u32) -> bool {
    let Some(Def::Func(index)) = p.defs.get(function as usize) else {
        return false;
    };
    if !name.contains("_block_invoke") && !p.types.has_queues() {
        return false;
    }
    let def = p.funcs.get(*index as usize);
    def.and_then(|def| signature(p, def).ok())
        .is_some_and(|(params, _)| params.first() == Some(&Type::Ptr(Space::Generic)))
}

impl Output<'_> {
    /// Returns the number of the block kernel of a function, which it makes if there is none yet.
    pub(super) fn block(&mut self, p: &Parsed, id: u32) -> Result<u64> {
        let func = self.function(p, id)?;
        let function = &self.module.functions[func];
        let label = match p.entry_of.get(&id).and_then(|&e| p.entries.get(e as usize)) {
            Some(entry) => entry.name.clone(),
            None if function.name.is_empty() => format!("{id}"),
            None => function.name.clone(),
        };
        let name = format!("{label}.block.{:016x}", p.hash());
        let number = block_number(&name);
        if self.module.kernels.iter().any(|k| k.name == name) {
            return Ok(number);
        }
        let params = function.params.clone();
        if !function.results.is_empty() {
            return bad(format!("the block `{label}` has a result"));
        }
        let Some((&Type::Ptr(first), locals)) = params.split_first() else {
            return bad(format!(
                "the block `{label}` does not take what it captured"
            ));
        };
        if !matches!(first, Space::Generic | Space::Global | Space::Constant) {
            return unsupported("a block that takes what it captured in memory of its own");
        }
        if locals.iter().any(|&ty| ty != Type::Ptr(Space::Local)) {
            return bad(format!(
                "the block `{label}` takes something else than local memory"
            ));
        }
        let mut shell = Function {
            name: name.clone(),
            linkage: Linkage::Internal,
            params: std::iter::once(Type::Ptr(Space::Global))
                .chain(locals.iter().copied())
                .collect(),
            ..Function::default()
        };
        let entry = shell.add_block();
        let mut args: Vec<Value> = shell
            .params
            .clone()
            .into_iter()
            .map(|ty| shell.add_param(entry, ty))
            .collect();
        if first != Space::Global {
            let cast = shell.append(entry, Op::SpaceCast, [args[0]], &[Type::Ptr(first)]);
            args[0] = shell.insts[cast].results[0];
        }
        shell.append(entry, Op::Call(func), args, &[]);
        shell.blocks[entry].term = Terminator::Return(Values::new());
        let count = shell.params.len();
        let func = self.module.functions.push(shell);
        let off = ExecutionMode::ContractionOff as u32;
        let contraction_off = p
            .modes
            .iter()
            .any(|&(_, at)| p.inst(at).is_ok_and(|inst| inst.word(1).ok() == Some(off)));
        let param = |space, address| KernelParam {
            kind: ParamKind::Pointer(space),
            name: String::new(),
            type_name: String::new(),
            address,
            access: AccessQualifier::None,
            is_const: false,
            is_restrict: false,
            is_volatile: false,
            max_size: None,
        };
        let captured = param(Space::Global, AddressQualifier::Global);
        let local = param(Space::Local, AddressQualifier::Local);
        self.module.kernels.push(EntryPoint {
            name,
            func,
            params: std::iter::once(captured)
                .chain(std::iter::repeat_n(local, count - 1))
                .collect(),
            attributes: KernelAttributes {
                role: KernelRole::Block,
                ..KernelAttributes::default()
            },
            contraction_off,
        });
        Ok(number)
    }
}
