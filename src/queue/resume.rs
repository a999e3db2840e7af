//! Launches whose long loops may go on in further dispatches, for drivers that abandon loops after some number of
//! iterations. What a kernel asks for stands in `spirv_lowering::interface::KernelInterface::resume_bytes`.
//!
//! The dispatches are recorded with the launch, since nothing that follows it may begin before its loops have ended.
//! Their numbers of work-groups lie in memory; they are zero, and cost next to nothing, unless a work-item asked.

use super::encode::How;
use super::staging::Piece;
use super::state::State;
use super::Queue;
use crate::backend::{Op, ProfileSlot, Slice, Use};
use crate::command::{Dispatch, Launch};
use crate::error::ClResult;
use spirv_lowering::interface::RESUME_HEADER;

impl Queue {
    /// Memory for the loops of a launch that may go on in further dispatches, set up for the first one.
    pub(super) fn resume_memory(
        &self,
        state: &mut State,
        launch: &Launch,
    ) -> ClResult<Option<Piece>> {
        if launch.resumes == 0 {
            return Ok(None);
        }
        let record = u64::from(launch.kernel.code.interface().resume_bytes);
        // Work-items beyond the end of the ND-range have records, too.
        let sizes = launch.groups.iter().chain(&launch.local);
        let items = sizes.map(|&n| u64::from(n)).product::<u64>();
        let size = u64::from(RESUME_HEADER) + items * record;
        let piece = self.argument_piece(state, size)?;
        let [_, y, z] = launch.groups;
        for round in 1..=u64::from(launch.resumes) + 1 {
            let words = [0, y, z, 0];
            // SAFETY: within the piece, which is mapped, 256-byte aligned and used by nothing else.
            unsafe {
                (piece.pointer as *mut [u32; 4])
                    .add(round as usize)
                    .write(words)
            };
        }
        for item in 0..items {
            let at = u64::from(RESUME_HEADER) + item * record;
            // SAFETY: the same; records are a multiple of 8 bytes long.
            unsafe { ((piece.pointer + at as usize) as *mut [u32; 2]).write([1, 0]) };
        }
        Ok(Some(piece))
    }
}

/// Records the dispatches that follow the first one of a launch, for loops that ask for them.
pub(super) fn encode_resumes(
    state: &mut State,
    launch: &Launch,
    dispatch: &Dispatch,
    piece: &Piece,
    push: &[u8],
    uses: &[Use],
    how: How,
) -> ClResult<Option<ProfileSlot>> {
    let groups = Slice {
        offset: piece.offset + 16,
        size: 16 * u64::from(launch.resumes),
        memory: piece.memory.clone(),
    };
    let op = Op::DispatchIndirect {
        pipeline: &dispatch.pipeline,
        groups: &groups,
        push,
        uses,
        bindings: &launch.kernel.bindings,
        touches_anything: launch.kernel.touches_anything,
    };
    state.record(op, how.profile)
}
