//! Runs one work-item, which stops at barriers and collective operations.

use super::args::Bound;
use super::arrays::Arrays;
use super::error::Error;
use super::launch::{LocalPosition, Machine};
use super::memory::{Memory, Region};
use super::scalar::Scalar;
use crate::ir::entity::{Block, Entity, FuncId, Value};
use crate::ir::function::{Edge, Function, InstData, Storage, Terminator};
use crate::ir::print::raw_inst;
use crate::ir::types::Type;
use smallvec::SmallVec;

/// The most nested calls.
const MOST_FRAMES: usize = 256;

pub(super) type Scalars = SmallVec<[Scalar; 8]>;

/// The state of a work-item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemState {
    Ready,
    Waiting,
    Done,
}

/// The activation of a function.
pub(super) struct Frame<'a> {
    pub func: &'a Function,
    pub block: Block,
    /// Instruction of the block.
    pub pc: usize,
    values: Vec<Scalar>,
    /// The number of private variables before the call.
    variables: usize,
    /// The arrays of a function that is called, if it has any.
    pub(super) arrays: Option<(Arrays, Vec<Region>)>,
}

impl<'a> Frame<'a> {
    fn new(func: &'a Function, args: &[Scalar], variables: usize) -> Option<Self> {
        let block = func.entry()?;
        let mut values = vec![Scalar::default(); func.values.len()];
        for (&param, &arg) in func.blocks[block].params.iter().zip(args) {
            values[param.index()] = arg;
        }
        Some(Self {
            func,
            block,
            pc: 0,
            values,
            variables,
            arrays: None,
        })
    }
    /// Returns a value that the work-item has computed.
    pub fn value(&self, value: Value) -> Scalar {
        self.values.get(value.index()).copied().unwrap_or_default()
    }
    pub(super) fn set(&mut self, value: Value, to: Scalar) {
        if let Some(slot) = self.values.get_mut(value.index()) {
            *slot = to;
        }
    }
    /// Returns the instruction that is next, or `None` at the end of a block.
    pub(super) fn inst(&self) -> Option<&'a InstData> {
        let inst = self.func.blocks[self.block].insts.get(self.pc)?;
        Some(&self.func.insts[*inst])
    }
    fn go(&mut self, target: &Edge) {
        let args: Scalars = target.args.iter().map(|&v| self.value(v)).collect();
        let func = self.func;
        for (&param, &arg) in func.blocks[target.block].params.iter().zip(&args) {
            self.set(param, arg);
        }
        self.block = target.block;
        self.pc = 0;
    }
    fn place(&self) -> String {
        let func = self.func;
        match func.blocks[self.block].insts.get(self.pc) {
            Some(&inst) => format!("{} {}: {}", func.name, self.block, raw_inst(func, inst)),
            None => format!("{} {}: its end", func.name, self.block),
        }
    }
}

/// A work-item.
pub(super) struct Item<'a> {
    pub place: LocalPosition,
    pub state: ItemState,
    pub frames: Vec<Frame<'a>>,
    pub results: Vec<Scalar>,
    pub(super) private: Memory,
    pub(super) private_bytes: u64,
    /// Arrays in Function storage.
    pub(super) arrays: Vec<Region>,
}

impl<'a> Item<'a> {
    /// Creates a work-item at the beginning of the kernel. `shared` holds the parameters that all
    /// work-items have in common, which structures by value are not.
    pub fn new(
        machine: &mut Machine<'a>,
        place: LocalPosition,
        shared: &[Option<Scalar>],
        arrays: Vec<Region>,
    ) -> Result<Self, Error> {
        let mut private = Memory::new();
        let args: Vec<Scalar> = shared
            .iter()
            .zip(&machine.bound)
            .map(|(value, bound)| match (value, bound) {
                (Some(value), _) => *value,
                (None, Bound::Copy(bytes, align)) => {
                    Scalar::known(private.add(bytes.clone(), *align))
                }
                _ => Scalar::default(),
            })
            .collect();
        let variables = private.regions().len();
        let frame = Frame::new(machine.func, &args, variables)
            .ok_or_else(|| Error::NotInterpreted(format!("`{}`", machine.func.name)))?;
        Ok(Self {
            place,
            state: ItemState::Ready,
            frames: vec![frame],
            results: Vec::new(),
            private,
            private_bytes: 0,
            arrays,
        })
    }

    /// Begins another piece of the kernel.
    pub fn begin_piece(&mut self, machine: &mut Machine<'a>, shared: &[Option<Scalar>]) {
        let args: Vec<Scalar> = shared.iter().map(|&arg| arg.unwrap_or_default()).collect();
        let variables = self.private.regions().len();
        self.frames.clear();
        self.frames
            .extend(Frame::new(machine.func, &args, variables));
        self.state = ItemState::Ready;
        self.enters(machine);
    }

    /// Passes the values of a block's parameters to the checker of claims, if there is one.
    pub fn enters(&self, machine: &mut Machine<'a>) {
        let (Some(claims), Some(frame)) = (&mut machine.claims, self.frames.last()) else {
            return;
        };
        let params = &frame.func.blocks[frame.block].params;
        let params: Vec<_> = params.iter().map(|&v| (v, frame.value(v))).collect();
        claims.enters(&self.place, frame.block, &params);
    }

    /// Passes the results of the operation that the work-item waited at to the checker of claims.
    pub fn has_waited(&self, machine: &mut Machine<'a>) {
        let (Some(claims), Some(frame)) = (&mut machine.claims, self.frames.last()) else {
            return;
        };
        let insts = &frame.func.blocks[frame.block].insts;
        if let Some(&inst) = frame.pc.checked_sub(1).and_then(|at| insts.get(at)) {
            let data = &frame.func.insts[inst];
            let results: Scalars = data.results.iter().map(|&v| frame.value(v)).collect();
            claims.has_done(&self.place, data, &results);
        }
    }

    /// Returns the instruction at which the work-item waits.
    pub fn waiting_for(&self) -> Option<&'a InstData> {
        self.frames.last()?.inst()
    }

    /// Returns the operands of the instruction at which the work-item waits.
    pub fn waiting_args(&self) -> Vec<Scalar> {
        match (self.frames.last(), self.waiting_for()) {
            (Some(frame), Some(data)) => data.args.iter().map(|&v| frame.value(v)).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the type of that instruction's first operand, or else of its first result.
    pub fn waiting_type(&self) -> Option<Type> {
        let data = self.waiting_for()?;
        let value = data.args.first().or(data.results.first())?;
        Some(self.frames.last()?.func.ty(*value))
    }

    /// Ends the wait of the work-item, with the results of the instruction.
    pub fn go_on(&mut self, results: &[Scalar]) {
        if let Some(data) = self.waiting_for() {
            if let Some(frame) = self.frames.last_mut() {
                for (&value, &result) in data.results.iter().zip(results) {
                    frame.set(value, result);
                }
                frame.pc += 1;
            }
        }
        self.state = ItemState::Ready;
    }

    /// Describes the place of the work-item in the code, for messages.
    pub fn location(&self) -> String {
        self.frames
            .last()
            .map_or(String::new(), |frame| frame.place())
    }

    /// Enters a function.
    pub(super) fn call(
        &mut self,
        machine: &mut Machine<'a>,
        id: FuncId,
        args: &[Scalar],
    ) -> Result<(), Error> {
        let module = machine.module;
        let mut callee = module.functions.get(id);
        if let (Some(claims), Some(frame)) = (&mut machine.claims, self.frames.last()) {
            let at = (frame.block, frame.pc);
            callee = claims.calls(&self.place, at, id).or(callee);
        }
        let callee = callee.ok_or_else(|| Error::invalid("a call of an unknown function"))?;
        if self.frames.len() >= MOST_FRAMES {
            return Err(Error::Steps);
        }
        let variables = self.private.regions().len();
        let mut frame = Frame::new(callee, args, variables)
            .ok_or_else(|| Error::NotInterpreted(format!("`{}`", callee.name)))?;
        if !callee.vars.is_empty() {
            let arrays = Arrays::new(callee, &machine.specs)?;
            let regions = arrays.make(Storage::Function, machine.noise());
            frame.arrays = Some((arrays, regions));
        }
        self.frames.push(frame);
        self.enters(machine);
        Ok(())
    }

    /// Executes the terminator of the block.
    pub(super) fn end_block(&mut self, machine: &mut Machine<'a>) -> Result<(), Error> {
        if machine.watch.is_some() {
            self.watch_end(machine);
        }
        let strict = machine.options.strict;
        let Some(frame) = self.frames.last_mut() else {
            return Ok(());
        };
        let func = frame.func;
        let decide = |frame: &Frame, value: Value, what: &'static str| {
            let value = frame.value(value);
            if strict && !value.is_known() {
                let place = frame.place();
                return Err(Error::Unknown { what, place });
            }
            Ok(value.bits)
        };
        match &func.blocks[frame.block].term {
            Terminator::Jump(target) => frame.go(target),
            Terminator::Branch(condition, yes, no) => {
                let holds = decide(frame, *condition, "the condition of a branch")?;
                frame.go(if holds & 1 != 0 { yes } else { no });
            }
            Terminator::Switch(value, cases, default) => {
                let bits = decide(frame, *value, "the value of a switch")?;
                let case = cases.iter().find(|(case, _)| *case == bits);
                frame.go(case.map_or(default, |(_, target)| target));
            }
            Terminator::Return(values) => {
                let results: Scalars = values.iter().map(|&v| frame.value(v)).collect();
                self.private.truncate(frame.variables);
                self.frames.pop();
                if let Some(claims) = &mut machine.claims {
                    claims.returns(&self.place);
                }
                match self.frames.last_mut() {
                    Some(caller) => {
                        if let Some(data) = caller.inst() {
                            for (&value, &result) in data.results.iter().zip(&results) {
                                caller.set(value, result);
                            }
                        }
                        caller.pc += 1;
                    }
                    None => self.results = results.to_vec(),
                }
            }
            Terminator::Unreachable => return Err(Error::Unreachable(frame.place())),
        }
        Ok(())
    }
}
