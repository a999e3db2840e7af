//! Translates instructions on pipes. The library (`builtins/pipe.cl`) implements their counters;
//! this module copies packets, and lets one work-item act for its group.

use super::body::{bad, Body};
use super::words::Instruction;
use crate::error::Result;
use crate::ir::entity::{GlobalId, Value};
use crate::ir::function::{Edge, Linkage, Terminator, Values};
use crate::ir::module::Global;
use crate::ir::op::{Builtin, Fences, GroupOp, IntCond, Op, Order, Scope};
use crate::ir::types::{Space, Type};
use spirv::Op as S;

/// The end of a pipe, for reading or writing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Read,
    Write,
}

impl End {
    fn reserve(self) -> &'static str {
        match self {
            Self::Read => "__pumice_pipe_reserve_read",
            Self::Write => "__pumice_pipe_reserve_write",
        }
    }

    fn commit(self) -> &'static str {
        match self {
            Self::Read => "__pumice_pipe_commit_read",
            Self::Write => "__pumice_pipe_commit_write",
        }
    }
}

/// A packet: its size in bytes, and the alignment that its type has.
#[derive(Clone, Copy)]
struct Packet {
    size: Value,
    align: u32,
}

/// The name of the local variable that passes a reservation to the work-items of a group.
const HANDED_ON: &str = "__pumice_pipe_reservation";
/// The result of a read or write that fails: any negative number.
const FAILED: u64 = 0xffff_ffff;

fn one(value: Value) -> Values {
    [value].into_iter().collect()
}

impl Body<'_, '_> {
    /// Translates an instruction on pipes. Returns false if it is not one.
    pub(super) fn pipe_inst(&mut self, inst: &Instruction, op: S) -> Result<bool> {
        let end = match op {
            S::WritePipe
            | S::ReservedWritePipe
            | S::ReserveWritePipePackets
            | S::GroupReserveWritePipePackets
            | S::CommitWritePipe
            | S::GroupCommitWritePipe => End::Write,
            _ => End::Read,
        };
        match op {
            S::ReadPipe | S::WritePipe => {
                let (ty, id) = self.result(inst)?;
                let pipe = self.pipe(inst.word(2)?)?;
                let (data, _) = self.pointer(inst.word(3)?)?;
                let packet = self.packet(inst.word(4)?, inst.word(5)?)?;
                let packets = self.constant(Type::I32, 1);
                let reservation = self.reserve(end, pipe, packets, packet)?;
                let place = self.constant(Type::I32, 0);
                let commits = true;
                let result = self.transfer(end, pipe, reservation, place, data, packet, commits)?;
                self.set(id, ty, one(result))?;
            }
            S::ReservedReadPipe | S::ReservedWritePipe => {
                let (ty, id) = self.result(inst)?;
                let pipe = self.pipe(inst.word(2)?)?;
                let reservation = self.scalar_of(inst.word(3)?, Type::I64)?;
                let place = self.scalar_of(inst.word(4)?, Type::I32)?;
                let (data, _) = self.pointer(inst.word(5)?)?;
                let packet = self.packet(inst.word(6)?, inst.word(7)?)?;
                let result = self.transfer(end, pipe, reservation, place, data, packet, false)?;
                self.set(id, ty, one(result))?;
            }
            S::ReserveReadPipePackets | S::ReserveWritePipePackets => {
                let (ty, id) = self.result(inst)?;
                let pipe = self.pipe(inst.word(2)?)?;
                let packets = self.scalar_of(inst.word(3)?, Type::I32)?;
                let packet = self.packet(inst.word(4)?, inst.word(5)?)?;
                let reservation = self.reserve(end, pipe, packets, packet)?;
                self.set(id, ty, one(reservation))?;
            }
            S::GroupReserveReadPipePackets | S::GroupReserveWritePipePackets => {
                let (ty, id) = self.result(inst)?;
                let scope = self.group_scope(inst.word(2)?)?;
                let pipe = self.pipe(inst.word(3)?)?;
                let packets = self.scalar_of(inst.word(4)?, Type::I32)?;
                let packet = self.packet(inst.word(5)?, inst.word(6)?)?;
                let reservation = self.reserve_as_group(end, scope, pipe, packets, packet)?;
                self.set(id, ty, one(reservation))?;
            }
            S::CommitReadPipe | S::CommitWritePipe => {
                let pipe = self.pipe(inst.word(0)?)?;
                let reservation = self.scalar_of(inst.word(1)?, Type::I64)?;
                self.call_name(end.commit(), &[pipe, reservation], &[])?;
            }
            S::GroupCommitReadPipe | S::GroupCommitWritePipe => {
                let scope = self.group_scope(inst.word(0)?)?;
                let pipe = self.pipe(inst.word(1)?)?;
                let reservation = self.scalar_of(inst.word(2)?, Type::I64)?;
                // What the others of the group read or wrote is done by then.
                self.group_barrier(scope);
                let first = self.is_first(scope);
                let (inner, after) = (self.new_block(), self.new_block());
                let branch = Terminator::Branch(first, Edge::new(inner), Edge::new(after));
                self.end_block(branch, inner);
                self.call_name(end.commit(), &[pipe, reservation], &[])?;
                self.end_block(Terminator::Jump(Edge::new(after)), after);
            }
            S::CreatePipeFromPipeStorage => {
                let (ty, id) = self.result(inst)?;
                let pipe = self.pipe(inst.word(2)?)?;
                self.set(id, ty, one(pipe))?;
            }
            S::IsValidReserveId => {
                let (ty, id) = self.result(inst)?;
                let reservation = self.scalar_of(inst.word(2)?, Type::I64)?;
                let packets = self.packets_of(reservation);
                let zero = self.constant(Type::I32, 0);
                let valid = self.ins(Op::ICmp(IntCond::Sgt), &[packets, zero], Type::Bool);
                self.set(id, ty, one(valid))?;
            }
            S::GetNumPipePackets | S::GetMaxPipePackets => {
                let (ty, id) = self.result(inst)?;
                let pipe = self.pipe(inst.word(2)?)?;
                let name = match op {
                    S::GetNumPipePackets => "__pumice_pipe_num_packets",
                    _ => "__pumice_pipe_max_packets",
                };
                let packets = self.call_name(name, &[pipe], &[Type::I32])?;
                self.set(id, ty, packets)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn pipe(&mut self, id: u32) -> Result<Value> {
        self.scalar_of(id, Type::Ptr(Space::Global))
    }

    /// Returns the packet that two operands describe by its size and alignment.
    fn packet(&mut self, size: u32, align: u32) -> Result<Packet> {
        let size = self.scalar_of(size, Type::I32)?;
        let align = self
            .const_bits(align)
            .filter(|align| align.is_power_of_two());
        let align = u32::try_from(align.unwrap_or(1)).unwrap_or(1);
        // Packets lie without gaps.
        let align = match self.f.as_const(size) {
            Some(size) if size.is_multiple_of(u64::from(align)) => align,
            _ => 1,
        };
        Ok(Packet { size, align })
    }

    pub(super) fn call_one(&mut self, name: &str, args: &[Value], result: Type) -> Result<Value> {
        match *self.call_name(name, args, &[result])?.as_slice() {
            [value] => Ok(value),
            _ => bad("a call without a result"),
        }
    }

    fn reserve(&mut self, end: End, pipe: Value, packets: Value, packet: Packet) -> Result<Value> {
        self.call_one(end.reserve(), &[pipe, packets, packet.size], Type::I64)
    }

    /// Returns the number of packets of a reservation, which is 0 if it is not positive.
    fn packets_of(&mut self, reservation: Value) -> Value {
        let half = self.constant(Type::I64, 32);
        let high = self.ins(Op::LShr, &[reservation, half], Type::I64);
        self.resize(high, Type::I32, false)
    }

    /// Copies a packet between memory and its place in a reservation. The result is 0, or negative
    /// if the reservation has no such place.
    #[allow(clippy::too_many_arguments)]
    fn transfer(
        &mut self,
        end: End,
        pipe: Value,
        reservation: Value,
        place: Value,
        data: Value,
        packet: Packet,
        commits: bool,
    ) -> Result<Value> {
        let packets = self.packets_of(reservation);
        let zero = self.constant(Type::I32, 0);
        let valid = self.ins(Op::ICmp(IntCond::Sgt), &[packets, zero], Type::Bool);
        let within = self.ins(Op::ICmp(IntCond::Ult), &[place, packets], Type::Bool);
        let has = self.ins(Op::And, &[valid, within], Type::Bool);
        let (inner, after) = (self.new_block(), self.new_block());
        let branch = Terminator::Branch(has, Edge::new(inner), Edge::new(after));
        self.end_block(branch, inner);
        let at = self.call_one(
            "__pumice_pipe_packet",
            &[pipe, reservation, place, packet.size],
            Type::Ptr(Space::Global),
        )?;
        let (to, from) = match end {
            End::Read => (data, at),
            End::Write => (at, data),
        };
        match self.f.as_const(packet.size) {
            Some(0) => {}
            Some(size) => {
                let align = packet.align;
                self.effect(Op::MemCopy { size, align }, &[to, from]);
            }
            None => {
                let size = self.to_i64(packet.size, false)?;
                self.copy_loop(to, from, size)?;
            }
        }
        if commits {
            self.call_name(end.commit(), &[pipe, reservation], &[])?;
        }
        self.end_block(Terminator::Jump(Edge::new(after)), after);
        let failed = self.constant(Type::I32, FAILED);
        Ok(self.select(has, zero, failed))
    }

    /// Reserves packets by the first work-item of a group, and broadcasts the reservation to all of
    /// them.
    fn reserve_as_group(
        &mut self,
        end: End,
        scope: Scope,
        pipe: Value,
        packets: Value,
        packet: Packet,
    ) -> Result<Value> {
        let first = self.is_first(scope);
        let (inner, after) = (self.new_block(), self.new_block());
        if scope == Scope::SubGroup {
            let got = self.f.add_param(after, Type::I64);
            let with = |value: Value| Edge::with(after, one(value));
            let none = self.constant(Type::I64, 0);
            let branch = Terminator::Branch(first, Edge::new(inner), with(none));
            self.end_block(branch, inner);
            let reservation = self.reserve(end, pipe, packets, packet)?;
            self.end_block(Terminator::Jump(with(reservation)), after);
            let lane = self.constant(Type::I32, 0);
            let broadcast = Op::Group(GroupOp::Broadcast, scope);
            let reservation = self.ins(broadcast, &[got, lane], Type::I64);
            self.group_barrier(scope);
            return Ok(reservation);
        }
        // Devices without collective operations have pipes too.
        let handed_on = self.handed_on();
        let address = self.ins(Op::GlobalAddr(handed_on), &[], Type::Ptr(Space::Local));
        let branch = Terminator::Branch(first, Edge::new(inner), Edge::new(after));
        self.end_block(branch, inner);
        let reservation = self.reserve(end, pipe, packets, packet)?;
        let (align, volatile) = (8, false);
        self.effect(Op::Store { align, volatile }, &[address, reservation]);
        self.end_block(Terminator::Jump(Edge::new(after)), after);
        self.group_barrier(scope);
        let reservation = self.ins(Op::Load { align, volatile }, &[address], Type::I64);
        // Nobody writes there again before all have read.
        self.group_barrier(scope);
        Ok(reservation)
    }

    /// Computes whether this work-item is the one that acts for its group.
    fn is_first(&mut self, scope: Scope) -> Value {
        let (number, ty) = match scope {
            Scope::SubGroup => (self.lane_id(), Type::I32),
            _ => {
                let number = Op::Builtin(Builtin::LocalLinearId);
                (self.ins(number, &[], Type::I64), Type::I64)
            }
        };
        let zero = self.constant(ty, 0);
        self.ins(Op::ICmp(IntCond::Eq), &[number, zero], Type::Bool)
    }

    fn group_barrier(&mut self, scope: Scope) {
        let fences = Fences {
            global: true,
            local: true,
            image: false,
        };
        let order = Order::AcqRel;
        self.effect(
            Op::Barrier {
                exec: scope,
                mem: scope,
                order,
                fences,
            },
            &[],
        );
    }

    /// Returns the variable in local memory that passes the reservations of work-groups, one a
    /// module.
    fn handed_on(&mut self) -> GlobalId {
        let globals = &mut self.out.module.globals;
        let found = globals.iter().find(|(_, g)| g.name == HANDED_ON);
        if let Some((id, _)) = found {
            return id;
        }
        globals.push(Global {
            name: HANDED_ON.to_owned(),
            linkage: Linkage::Internal,
            space: Some(Space::Local),
            size: 8,
            align: 8,
            init: None,
            relocs: Vec::new(),
        })
    }
}
