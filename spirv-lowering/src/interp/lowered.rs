//! Runs kernels in any stage of lowering, with the data that the runtime supplies at dispatch
//! computed from the kernel's interface.

use super::args::{self, Arg};
use super::claims::Checker;
use super::error::Error;
use super::group;
use super::launch::{GroupRange, Machine, NdRange, Options, Outcome};
use super::memory::{Memory, Region};
use super::printf::read_records;
use super::scalar::Scalar;
use crate::claims::{Claims, FalseClaim, Order};
use crate::interface::{
    ArgKind, Implicit, KernelInterface, LOCAL_ARG_ALIGN, SPEC_GUARD, SPEC_LOCAL_SIZE,
};
use crate::ir::function::Function;
use crate::ir::module::{EntryPoint, Module};
use crate::ir::op::{ImageProperty, Op};
use rustc_hash::FxHashMap;

/// The bytes of the printf buffer, enough for the records of any generated kernel.
const PRINTF_BYTES: usize = 512 << 10;

/// A kernel of a module with the function that some passes made of it, and how to dispatch that.
#[derive(Debug, Clone, Copy)]
pub struct Lowered<'a> {
    /// The module of the kernel.
    pub module: &'a Module,
    /// The kernel as the module declares it.
    pub kernel: &'a EntryPoint,
    /// Its function after some of the passes.
    pub func: &'a Function,
    /// Its interface after all passes.
    pub interface: &'a KernelInterface,
    /// Rounds the number of work-groups up, so that work-items beyond the ND-range must end at once
    /// ([`KernelInterface::guarded`]).
    pub guard: bool,
}

/// Runs a kernel's function after any number of passes.
pub fn run_lowered(
    lowered: &Lowered,
    range: &NdRange,
    args: &[Arg],
    memory: &mut Memory,
    options: &Options,
) -> Result<Outcome, Error> {
    run_with(lowered, None, range, args, memory, options)
}

/// Runs a kernel piece by piece between barriers, in packs of [`Options::subgroup_size`]
/// work-items, and checks the claims about values in every lane. Returns the claims that do not
/// hold.
pub fn run_claimed(
    lowered: &Lowered,
    (pieces, order): (&[Claims], Order),
    range: &NdRange,
    args: &[Arg],
    memory: &mut Memory,
    options: &Options,
) -> Result<Vec<FalseClaim>, Error> {
    let mut found = Vec::new();
    let claims = Some((pieces, order, &mut found));
    run_with(lowered, claims, range, args, memory, options)?;
    Ok(found)
}

fn run_with(
    lowered: &Lowered,
    mut claims: Option<(&[Claims], Order, &mut Vec<FalseClaim>)>,
    range: &NdRange,
    args: &[Arg],
    memory: &mut Memory,
    options: &Options,
) -> Result<Outcome, Error> {
    let interface = lowered.interface;
    let block = argument_block(interface, args)?;
    let bindings = bindings(interface);
    let uses = Uses::of(lowered.func);
    let buffer = (uses.arg_buffer).then(|| memory.add(block.bytes.clone(), 128));
    let printf = uses.printf.then(|| {
        let mut bytes = vec![0; PRINTF_BYTES];
        bytes[0] = 8;
        bytes[4..8].copy_from_slice(&(PRINTF_BYTES as u32).to_le_bytes());
        memory.add(bytes, 128)
    });
    if options.words {
        memory.fill_words();
    }
    let dispatches = match lowered.guard {
        true => vec![GroupRange {
            first: [0; 3],
            groups: [0, 1, 2].map(|dim| range.groups(dim)),
            local: range.local,
        }],
        false => range.dispatches(),
    };
    let mut outcome = Outcome::default();
    for dispatch in dispatches {
        let mut machine = Machine::new(lowered.module, lowered.func, range, &mut *memory, options)?;
        machine.steps = outcome.steps;
        machine.bind_kernel(lowered.kernel, args)?;
        machine.arg_block = block.clone();
        machine.bindings = bindings.clone();
        for (arg, kind) in args.iter().zip(interface.args.iter().map(|a| a.kind)) {
            if let (&Arg::Local(size), ArgKind::Local { spec_id }) = (arg, kind) {
                let size = args::rounded(size) as u32;
                machine.specs.insert(spec_id, size.max(LOCAL_ARG_ALIGN));
            }
        }
        for (id, size) in SPEC_LOCAL_SIZE.into_iter().zip(dispatch.local) {
            machine.specs.insert(id, size);
        }
        machine.specs.insert(SPEC_GUARD, lowered.guard.into());
        let addresses = [
            (Implicit::ArgBuffer, buffer),
            (Implicit::PrintfBuffer, printf),
        ];
        for (which, address) in addresses {
            if let Some(address) = address {
                machine.addresses.insert(which, address);
            }
        }
        if let Some((pieces, order, _)) = &claims {
            let mut checker = Checker::new(pieces, *order, options.subgroup_size);
            checker.take_arguments(&machine.bound, machine.memory);
            machine.claims = Some(checker);
        }
        group::run_dispatch(&mut machine, dispatch)?;
        if let (Some((.., found)), Some(checker)) = (&mut claims, machine.claims.take()) {
            found.extend(checker.found);
        }
        let done = machine.finish();
        outcome.steps = done.steps;
        outcome.printf.extend(done.printf);
    }
    if let Some(printf) = printf {
        outcome.printf.extend(read_records(memory, printf));
    }
    Ok(outcome)
}

/// The implicit data that a function uses.
#[derive(Default)]
struct Uses {
    arg_buffer: bool,
    printf: bool,
}

impl Uses {
    fn of(func: &Function) -> Self {
        let mut uses = Self::default();
        for &block in &func.layout {
            for &inst in &func.blocks[block].insts {
                match func.insts[inst].op {
                    Op::Implicit(Implicit::ArgBuffer, _) => uses.arg_buffer = true,
                    Op::Implicit(Implicit::PrintfBuffer, _) => uses.printf = true,
                    _ => {}
                }
            }
        }
        uses
    }
}

/// Maps bindings to arguments.
fn bindings(interface: &KernelInterface) -> FxHashMap<u32, usize> {
    let mut bindings = FxHashMap::default();
    for (argument, place) in interface.args.iter().enumerate() {
        if let ArgKind::Image(image) = &place.kind {
            let all = image.bindings.all();
            bindings.extend(all.map(|binding| (binding, argument)));
        }
    }
    bindings
}

/// Returns the argument block with the explicit arguments at their offsets. The bytes between them
/// are unknown.
fn argument_block(interface: &KernelInterface, args: &[Arg]) -> Result<Region, Error> {
    if args.len() != interface.args.len() {
        return Err(Error::invalid("another number of arguments"));
    }
    let size = match interface.args_in_buffer {
        true => interface.arg_buffer_size,
        false => interface.push_size,
    };
    let mut block = Region::fresh(0, size.into(), 0x5eed);
    let outside = || Error::invalid("an argument beyond the block");
    for (arg, place) in args.iter().zip(&interface.args) {
        let info = match place.kind {
            ArgKind::Image(image) => image.info,
            _ => None,
        };
        if let (Some(info), Arg::Image(picture)) = (info, arg) {
            for property in ImageProperty::ALL {
                let at = info + property.offset();
                let word = Scalar::known(picture.property(property).into());
                block.write(at as usize, 4, word).ok_or_else(outside)?;
            }
        }
        let offset = match place.kind {
            ArgKind::Value { offset, .. }
            | ArgKind::Buffer { offset, .. }
            | ArgKind::Pipe { offset }
            | ArgKind::Queue { offset } => offset,
            ArgKind::Local { .. }
            | ArgKind::Image(_)
            | ArgKind::Captured { .. }
            | ArgKind::Sampler { .. } => continue,
        };
        for (i, byte) in arg.bytes().into_iter().enumerate() {
            block
                .write(offset as usize + i, 1, Scalar::known(byte.into()))
                .ok_or_else(outside)?;
        }
    }
    Ok(block)
}
