//! The executable meaning of KIR: an interpreter of kernels, in all stages of the IR.
//!
//! [`run`] executes a kernel of a module over an ND-range; [`run_lowered`] does the same with its lowered form, whatever
//! passes it has been through, and supplies what the runtime supplies at dispatch. Both leave the same bytes in memory
//! for the same kernel, which is how passes are proved. [`call`] runs one function in one work-item.
//!
//! # Execution
//! Work-groups run one after the other. Within a group work-items are machines that can be halted (`item`): each runs
//! until it meets a barrier or a collective operation, and goes on when all whom that concerns are there (`group`).
//! Work-items that cannot come together are an error. So are accesses outside of a variable or buffer, or less aligned
//! than they claim, and more steps than [`Options::steps`].
//!
//! # Unknown bits
//! Where KIR leaves a value open (undefined values, memory that was never written, division by zero, the bits of a NaN that
//! arithmetic made), each open bit is *unknown* ([`Scalar`], [`eval()`]). Unknown bits spread through operations as far as
//! they matter. They have some arbitrary value, which [`Options::noise`] chooses. In a [`Options::strict`] run it is an
//! error if control flow or an address depends on one; otherwise their arbitrary value is taken. A pass may put anything in
//! the place of unknown bits, so results are compared where those of the original are known.
//!
//! # Spaces
//! Global and constant memory, local memory and private memory are three [`Memory`] objects with addresses of their
//! own. Generic pointers have the form that `lower_generic_ptr` gives them: the address with a tag in the top bits.
//! Variables lie at addresses that are no better aligned than they ask for.
//!
//! # Not interpreted
//! Calls of functions without a body, samplers, and images that come from memory: [`Error::NotInterpreted`]. Images are
//! arguments whose texels are memory of the run ([`Picture`]), or by descriptor what [`Images`] reads and writes. Native functions of the target give unknown values.
//! Everything is sequentially consistent; races are not found.

mod args;
mod arrays;
mod atomic;
mod checked;
mod claims;
mod collective;
mod concrete;
mod error;
mod eval;
mod group;
mod happens;
mod images;
mod inst;
mod item;
mod launch;
mod lowered;
mod memory;
mod pictures;
mod position;
mod printf;
mod scalar;
mod spaces;
mod texels;
mod watch;
mod watched;

pub use args::Arg;
pub use checked::{run_checked, Dispatched, Findings};
pub use error::{Error, Fault};
pub use eval::eval;
pub use images::{Images, View};
pub use launch::{NdRange, Options, Outcome};
pub use lowered::{run_claimed, run_lowered, Lowered};
pub use memory::{Memory, Region, Source};
pub use pictures::{Picture, TEXEL_BYTES};
pub use printf::{read_records, Record};
pub use scalar::Scalar;
pub use watch::{Checks, Finding, Pixel, WorkItem, Wrong};

use crate::ir::entity::FuncId;
use crate::ir::module::Module;
use launch::Machine;

/// Runs a kernel of a module. `memory` holds the buffers that pointers refer to, and is changed.
/// Program-scope variables, if there are any, must have been added with [`Memory::add_globals`].
pub fn run(
    module: &Module,
    kernel: &str,
    range: &NdRange,
    args: &[Arg],
    memory: &mut Memory,
    options: &Options,
) -> Result<Outcome, Error> {
    let found = module.kernels.iter().find(|k| k.name == kernel);
    let kernel = found.ok_or_else(|| Error::invalid(format!("no kernel `{kernel}`")))?;
    let func = module
        .functions
        .get(kernel.func)
        .ok_or_else(|| Error::invalid("a kernel without a function"))?;
    let options = &Options {
        subgroup_size: kernel.attributes.sub_group_size(options.subgroup_size),
        ..options.clone()
    };
    let mut machine = Machine::new(module, func, range, memory, options)?;
    machine.bind_kernel(kernel, args)?;
    group::dispatch_all(&mut machine)?;
    Ok(machine.finish())
}

/// Calls a function in a single work-item and returns its results.
pub fn call(
    module: &Module,
    func: FuncId,
    args: &[Scalar],
    memory: &mut Memory,
    options: &Options,
) -> Result<Vec<Scalar>, Error> {
    let func = module
        .functions
        .get(func)
        .ok_or_else(|| Error::invalid("no such function"))?;
    let range = NdRange::linear(1, 1);
    let mut machine = Machine::new(module, func, &range, memory, options)?;
    machine.bind_values(args);
    group::dispatch_all(&mut machine)?;
    Ok(machine.finish().results)
}
