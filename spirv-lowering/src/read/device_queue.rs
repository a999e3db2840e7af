//! Translates instructions on device queues and events. The library (`builtins/enqueue.cl`)
//! implements what they do; this module decodes their operands, [`super::enqueue`] makes records,
//! and [`super::block`] makes kernels of blocks.
//!
//! The same functions come in two forms: as instructions of SPIR-V, and as calls of functions
//! `__pumice_device_*`, which the runtime writes into the IR of compilers whose own SPIR-V target
//! fails at the instructions. Such a name ends with `$` and the name of the block's entry point.

use super::body::{bad, unsupported, Body};
use super::enqueue::{Enqueue, Locals, Size};
use super::types::TyId;
use super::words::Instruction;
use crate::error::Result;
use crate::interface::Implicit;
use crate::ir::entity::Value;
use crate::ir::function::Values;
use crate::ir::op::{IntCond, Op};
use crate::ir::types::{Space, Type};
use spirv::Op as S;

/// The prefix of the names of such calls.
const CALL: &str = "__pumice_device_";

fn one(value: Value) -> Values {
    [value].into_iter().collect()
}

impl Body<'_, '_> {
    /// Translates an instruction on device queues. Returns false if it is not one.
    pub(super) fn device_queue_inst(&mut self, inst: &Instruction, op: S) -> Result<bool> {
        match op {
            S::BuildNDRange => {
                let (ty, id) = self.result(inst)?;
                let [global, local, offset] = [inst.word(2)?, inst.word(3)?, inst.word(4)?];
                let values = self.build_range(global, Some(local), Some(offset))?;
                self.set(id, ty, values)?;
            }
            S::EnqueueKernel => {
                let (ty, id) = self.result(inst)?;
                let enqueue = Enqueue {
                    queue: inst.word(2)?,
                    flags: inst.word(3)?,
                    range: inst.word(4)?,
                    events: Some((inst.word(5)?, inst.word(6)?, inst.word(7)?)),
                    block: self.block_of(inst.word(8)?)?,
                    captured: inst.word(9)?,
                    size: Size::Id(inst.word(10)?),
                    locals: Locals::Each(inst.rest(12)),
                };
                let result = self.enqueue(&enqueue)?;
                self.set(id, ty, one(result))?;
            }
            S::EnqueueMarker => {
                let (ty, id) = self.result(inst)?;
                let (queue, count) = (inst.word(2)?, inst.word(3)?);
                let result = self.enqueue_marker(queue, count, inst.word(4)?, inst.word(5)?)?;
                self.set(id, ty, one(result))?;
            }
            S::GetKernelNDrangeSubGroupCount | S::GetKernelNDrangeMaxSubGroupSize => {
                let (ty, id) = self.result(inst)?;
                let name = match op {
                    S::GetKernelNDrangeSubGroupCount => "__pumice_sub_group_count",
                    _ => "__pumice_sub_group_size",
                };
                let block = self.block_of(inst.word(3)?)?;
                let value = self.range_query(name, inst.word(2)?, block)?;
                self.set(id, ty, one(value))?;
            }
            S::GetKernelWorkGroupSize | S::GetKernelPreferredWorkGroupSizeMultiple => {
                let (ty, id) = self.result(inst)?;
                let block = self.block_of(inst.word(2)?)?;
                let which = u64::from(op == S::GetKernelPreferredWorkGroupSizeMultiple);
                let value = self.block_info(block, which)?;
                self.set(id, ty, one(value))?;
            }
            S::GetKernelLocalSizeForSubgroupCount => {
                let (ty, id) = self.result(inst)?;
                let count = self.scalar_of(inst.word(2)?, Type::I32)?;
                let block = self.block_of(inst.word(3)?)?;
                let (state, block) = (self.enqueue_state(), self.constant(Type::I64, block));
                let args = [state, block, count];
                let value = self.call_one("__pumice_local_size_for", &args, Type::I32)?;
                self.set(id, ty, one(value))?;
            }
            S::GetKernelMaxNumSubgroups => {
                let (ty, id) = self.result(inst)?;
                let block = self.block_of(inst.word(2)?)?;
                let (state, block) = (self.enqueue_state(), self.constant(Type::I64, block));
                let value = self.call_one("__pumice_max_sub_groups", &[state, block], Type::I32)?;
                self.set(id, ty, one(value))?;
            }
            S::GetDefaultQueue => {
                let (ty, id) = self.result(inst)?;
                let queue = self.default_queue()?;
                self.set(id, ty, one(queue))?;
            }
            S::CreateUserEvent => {
                let (ty, id) = self.result(inst)?;
                let event = self.create_event()?;
                self.set(id, ty, one(event))?;
            }
            S::IsValidEvent => {
                let (ty, id) = self.result(inst)?;
                let valid = self.is_valid_event(inst.word(2)?)?;
                self.set(id, ty, one(valid))?;
            }
            S::RetainEvent | S::ReleaseEvent => {
                self.count_event(inst.word(0)?, op == S::RetainEvent)?;
            }
            S::SetUserEventStatus => self.set_event_status(inst.word(0)?, inst.word(1)?)?,
            S::CaptureEventProfilingInfo => {
                self.capture_event(inst.word(0)?, inst.word(1)?, inst.word(2)?)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Translates a call of the form `__pumice_device_*`. Returns false if it is not one.
    pub(super) fn device_queue_call(
        &mut self,
        name: &str,
        inst: &Instruction,
        ty: TyId,
        id: u32,
    ) -> Result<bool> {
        let Some(name) = name.strip_prefix(CALL) else {
            return Ok(false);
        };
        let (name, block) = match name.split_once('$') {
            Some((name, entry)) => (name, self.block_named(entry)?),
            None => (name, 0),
        };
        // Overloads have different names.
        let name = name.split('.').next().unwrap_or(name);
        let value = match (name, inst.rest(3)) {
            ("ndrange_1D" | "ndrange_2D" | "ndrange_3D", &[to, ref sizes @ ..]) => {
                let dims = match name {
                    "ndrange_1D" => 1,
                    "ndrange_2D" => 2,
                    _ => 3,
                };
                match *sizes {
                    [global] => self.range_at(to, dims, global, None, None)?,
                    [global, local] => self.range_at(to, dims, global, Some(local), None)?,
                    [offset, global, local] => {
                        self.range_at(to, dims, global, Some(local), Some(offset))?;
                    }
                    _ => return bad("an ND-range of other operands"),
                }
                return Ok(true);
            }
            ("enqueue_kernel_basic", &[queue, flags, range, captured]) => {
                let (events, locals) = (None, Locals::Each(&[]));
                self.enqueue(&Enqueue {
                    queue,
                    flags,
                    range,
                    events,
                    block,
                    captured,
                    size: Size::InBlock,
                    locals,
                })?
            }
            (
                "enqueue_kernel_basic_events",
                &[queue, flags, range, count, list, event, captured],
            ) => self.enqueue(&Enqueue {
                queue,
                flags,
                range,
                events: Some((count, list, event)),
                block,
                captured,
                size: Size::InBlock,
                locals: Locals::Each(&[]),
            })?,
            ("enqueue_kernel_varargs", &[queue, flags, range, captured, number, sizes]) => self
                .enqueue(&Enqueue {
                    queue,
                    flags,
                    range,
                    events: None,
                    block,
                    captured,
                    size: Size::InBlock,
                    locals: Locals::List(number, sizes),
                })?,
            (
                "enqueue_kernel_events_varargs",
                &[queue, flags, range, count, list, event, captured, number, sizes],
            ) => self.enqueue(&Enqueue {
                queue,
                flags,
                range,
                events: Some((count, list, event)),
                block,
                captured,
                size: Size::InBlock,
                locals: Locals::List(number, sizes),
            })?,
            ("enqueue_marker", &[queue, count, list, event]) => {
                self.enqueue_marker(queue, count, list, event)?
            }
            ("get_kernel_work_group_size", _) => self.block_info(block, 0)?,
            ("get_kernel_preferred_work_group_size_multiple", _) => self.block_info(block, 1)?,
            ("get_kernel_sub_group_count_for_ndrange", &[range, ..]) => {
                self.range_query("__pumice_sub_group_count", range, block)?
            }
            ("get_kernel_max_sub_group_size_for_ndrange", &[range, ..]) => {
                self.range_query("__pumice_sub_group_size", range, block)?
            }
            ("get_default_queue", &[]) => self.default_queue()?,
            ("create_user_event", &[]) => self.create_event()?,
            ("is_valid_event", &[event]) => self.is_valid_event(event)?,
            ("retain_event", &[event]) => {
                self.count_event(event, true)?;
                return Ok(true);
            }
            ("release_event", &[event]) => {
                self.count_event(event, false)?;
                return Ok(true);
            }
            ("set_user_event_status", &[event, status]) => {
                self.set_event_status(event, status)?;
                return Ok(true);
            }
            ("capture_event_profiling_info", &[event, name, to]) => {
                self.capture_event(event, name, to)?;
                return Ok(true);
            }
            _ => return unsupported(format!("a call of {CALL}{name}")),
        };
        self.set(id, ty, one(value))?;
        Ok(true)
    }

    pub(super) fn enqueue_state(&mut self) -> Value {
        self.ins(Op::Implicit(Implicit::EnqueueState, 0), &[], Type::I64)
    }

    pub(super) fn device_queue(&mut self, id: u32) -> Result<Value> {
        self.scalar_of(id, Type::Ptr(Space::Global))
    }

    fn default_queue(&mut self) -> Result<Value> {
        let state = self.enqueue_state();
        self.call_one("__pumice_default_queue", &[state], Type::Ptr(Space::Global))
    }

    fn create_event(&mut self) -> Result<Value> {
        let state = self.enqueue_state();
        self.call_one("__pumice_event_create", &[state], Type::I64)
    }

    fn is_valid_event(&mut self, event: u32) -> Result<Value> {
        let (state, event) = (self.enqueue_state(), self.scalar_of(event, Type::I64)?);
        let valid = self.call_one("__pumice_event_is_valid", &[state, event], Type::I32)?;
        let zero = self.constant(Type::I32, 0);
        Ok(self.ins(Op::ICmp(IntCond::Ne), &[valid, zero], Type::Bool))
    }

    fn count_event(&mut self, event: u32, more: bool) -> Result<()> {
        let (state, event) = (self.enqueue_state(), self.scalar_of(event, Type::I64)?);
        let name = match more {
            true => "__pumice_event_retain",
            false => "__pumice_event_release",
        };
        self.call_name(name, &[state, event], &[]).map(drop)
    }

    fn set_event_status(&mut self, event: u32, status: u32) -> Result<()> {
        let (state, event) = (self.enqueue_state(), self.scalar_of(event, Type::I64)?);
        let status = self.scalar_of(status, Type::I32)?;
        self.call_name("__pumice_event_set_status", &[state, event, status], &[])
            .map(drop)
    }

    fn capture_event(&mut self, event: u32, name: u32, to: u32) -> Result<()> {
        let (state, event) = (self.enqueue_state(), self.scalar_of(event, Type::I64)?);
        let name = self.scalar_of(name, Type::I32)?;
        let (to, _) = self.pointer(to)?;
        let to = self.space_cast(to, Type::Ptr(Space::Global))?;
        self.call_name("__pumice_event_capture", &[state, event, name, to], &[])
            .map(drop)
    }

    fn block_info(&mut self, block: u64, which: u64) -> Result<Value> {
        let (state, block) = (self.enqueue_state(), self.constant(Type::I64, block));
        let which = self.constant(Type::I32, which);
        self.call_one("__pumice_block_info", &[state, block, which], Type::I32)
    }

    fn range_query(&mut self, name: &str, range: u32, block: u64) -> Result<Value> {
        let range = self.range(range)?;
        let mut args = vec![self.enqueue_state(), self.constant(Type::I64, block)];
        args.extend(&range.sizes[3..]);
        self.call_one(name, &args, Type::I32)
    }

    /// Returns the number of the block that an operand is the function of.
    fn block_of(&mut self, function: u32) -> Result<u64> {
        self.out.block(self.p, function)
    }

    /// Returns the number of the block whose entry point has that name.
    fn block_named(&mut self, entry: &str) -> Result<u64> {
        let found = self.p.entries.iter().find(|e| e.name == entry);
        match found {
            Some(found) => self.out.block(self.p, found.func),
            None => bad(format!("there is no block `{entry}`")),
        }
    }
}
