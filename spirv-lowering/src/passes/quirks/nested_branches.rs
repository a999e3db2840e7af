//! Refuses kernels whose branches are nested more deeply than llvmpipe's stack of masks has entries, beyond which it writes.

use crate::analysis::cfg::Cfg;
use crate::analysis::dom::DomTree;
use crate::error::{LowerError, Result};
use crate::ir::entity::{Block, SecondaryMap};
use crate::ir::function::{Function, Merge};

/// The entries of the stack, for branches and for loops each (`LP_MAX_TGSI_NESTING`).
const MOST: u32 = 80;

/// The branches and the loops around a block.
#[derive(Clone, Copy, Default)]
struct Depth {
    branches: u32,
    loops: u32,
}

/// Returns an error if the function, after `structurize`, has branches or loops nested too deeply.
pub fn check(func: &Function) -> Result<()> {
    let Some(structure) = &func.structure else {
        return Ok(());
    };
    let dom = DomTree::new(&Cfg::new(func));
    let mut merges: SecondaryMap<Block, Option<Block>> = SecondaryMap::new();
    let mut depths: SecondaryMap<Block, Depth> = SecondaryMap::new();
    for &block in dom.preorder() {
        let header = merges[block];
        let mut depth = depths[header.or(dom.idom(block)).unwrap_or(block)];
        let around = dom.idom(block).filter(|_| header.is_none());
        match around.and_then(|around| structure.merges[around]) {
            Some(Merge::Selection { .. }) => depth.branches += 1,
            Some(Merge::Loop { .. }) => depth.loops += 1,
            None => {}
        }
        depths[block] = depth;
        if let Some(Merge::Selection { merge } | Merge::Loop { merge, .. }) =
            structure.merges[block]
        {
            merges[merge] = Some(block);
        }
        if depth.branches > MOST || depth.loops > MOST {
            return Err(LowerError::unsupported(format!(
                "branches or loops nested more than {MOST} deep, for which the driver has no room"
            )));
        }
    }
    Ok(())
}
