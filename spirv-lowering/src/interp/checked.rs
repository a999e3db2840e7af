//! Runs a launch as the CPU device dispatches it, at the addresses of real memory, and reports
//! errors instead of stopping at them.

use super::args::Bound;
use super::claims::Checker;
use super::error::Error;
use super::group;
use super::images::Images;
use super::launch::{GroupRange, Machine, NdRange, Options};
use super::memory::{Memory, Region, Source};
use super::watch::{Checks, Finding, Watch};
use crate::claims::{Claims, FalseClaim, Order};
use crate::interface::{Implicit, SPEC_LOCAL_SIZE};
use crate::ir::module::Module;

/// Work-groups of one kernel with their argument block.
#[derive(Debug, Clone, Copy)]
pub struct Dispatched<'a> {
    /// The module after all passes, with one kernel.
    pub module: &'a Module,
    /// Where implicit arguments lie in the argument block.
    pub implicit: &'a [(Implicit, u32)],
    /// The number of work-groups in each dimension.
    pub groups: [u32; 3],
    /// Work-items of a group.
    pub local_size: [u32; 3],
    /// The argument block.
    pub push: &'a [u8],
    /// The id of the specialisation constant and the bytes of each local argument, in order.
    pub local_args: &'a [(u32, u32)],
    /// Work-items of a sub-group.
    pub lanes: u32,
    /// The kernel's pieces with the claims about their values, which are checked too, and the order
    /// of work-items in packs.
    pub claims: Option<(&'a [Claims], Order)>,
}

/// Findings of a launch.
#[derive(Debug, Default)]
pub struct Findings {
    /// Errors of the kernel.
    pub wrong: Vec<Finding>,
    /// False claims of the compiler.
    pub claims: Vec<FalseClaim>,
}

/// Runs a launch. `memory` receives the pieces of `source` that are accessed, and is changed;
/// `images` are accessed directly.
///
/// # Errors
///
/// Returns [`Error::NotInterpreted`] for filters that the device implements.
pub fn run_checked(
    launch: &Dispatched,
    checks: Checks,
    source: &mut dyn Source,
    images: &mut dyn Images,
    memory: &mut Memory,
) -> Result<Findings, Error> {
    let none = || Error::invalid("no kernel");
    let kernel = launch.module.kernels.first().ok_or_else(none)?;
    // The pieces have variables that the kernel has not: what lives across barriers.
    let func = match launch.claims {
        Some(([first, ..], _)) => &first.func,
        _ => launch.module.functions.get(kernel.func).ok_or_else(none)?,
    };
    let (groups, local) = (launch.groups, launch.local_size);
    let range = NdRange {
        dims: 3,
        global: [0, 1, 2].map(|d| groups[d].saturating_mul(local[d])),
        local,
        offset: [0; 3],
    };
    let options = Options {
        steps: u64::MAX,
        strict: false,
        subgroup_size: launch.lanes,
        ..Options::default()
    };
    let mut machine = Machine::new(launch.module, func, &range, memory, &options)?;
    machine.arg_block = Region::known(0, launch.push.to_vec());
    machine.pushed = launch.implicit.to_vec();
    machine.bound = launch
        .local_args
        .iter()
        .map(|&(_, size)| Bound::Local(size.into()))
        .collect();
    if machine.bound.len() != func.params.len() {
        return Err(Error::invalid(
            "another number of arguments in local memory",
        ));
    }
    machine.specs.extend(launch.local_args.iter().copied());
    machine.specs.extend(SPEC_LOCAL_SIZE.into_iter().zip(local));
    let items = local.iter().product();
    machine.source = Some(source);
    machine.images = Some(images);
    machine.watch = Some(Watch::new(checks, items, launch.lanes));
    let dispatch = GroupRange {
        first: [0; 3],
        groups,
        local,
    };
    machine.claims = launch
        .claims
        .map(|(pieces, order)| Checker::new(pieces, order, launch.lanes));
    group::run_dispatch(&mut machine, dispatch)?;
    Ok(Findings {
        wrong: machine.watch.map_or(Vec::new(), |watch| watch.findings),
        claims: machine.claims.map_or(Vec::new(), |claims| claims.found),
    })
}
