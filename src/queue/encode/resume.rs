//! Launches whose long loops may go on in further dispatches, for drivers that abandon loops after some number of
//! iterations. What a kernel asks for stands in `spirv_lowering::interface::KernelInterface::resume_bytes`.
//!
//! The dispatches are recorded with the launch, since nothing that follows it may begin before its loops have ended.
//! Their numbers of work-groups lie in memory; they are zero, and cost next to nothing, unless a work-item asked.

use crate::backend::{Op, Slice, Use};
use crate::command::Launch;
use crate::object::grid::Dispatch;
use crate::queue::transfer::staging::Piece;
use spirv_lowering::interface::RESUME_HEADER;

/// Returns the work-items beyond the end of the ND-range have records, too.
fn items(launch: &Launch) -> u64 {
    let sizes = launch.grid.groups.iter().chain(&launch.grid.local);
    sizes.map(|&n| u64::from(n)).product()
}

/// Returns the bytes of that memory.
pub(in crate::queue) fn resume_size(launch: &Launch) -> u64 {
    let record = u64::from(launch.kernel.code.interface().resume_bytes);
    u64::from(RESUME_HEADER) + items(launch) * record
}

/// Sets it up for the first dispatch.
pub(in crate::queue) fn set_up(piece: &Piece, launch: &Launch) {
    let record = u64::from(launch.kernel.code.interface().resume_bytes);
    let [_, y, z] = launch.grid.groups;
    for round in 1..=u64::from(launch.grid.resumes) + 1 {
        let words = [0, y, z, 0];
        // SAFETY: within the piece, which is mapped, 256-byte aligned and used by nothing else.
        unsafe {
            (piece.pointer as *mut [u32; 4])
                .add(round as usize)
                .write(words)
        };
    }
    for item in 0..items(launch) {
        let at = u64::from(RESUME_HEADER) + item * record;
        // SAFETY: the same; records are a multiple of 8 bytes long.
        unsafe { ((piece.pointer + at as usize) as *mut [u32; 2]).write([1, 0]) };
    }
}

/// Gives the operation with the dispatches that follow the first one of a launch, for loops that ask for them.
pub(in crate::queue) fn with_resumes<T>(
    launch: &Launch,
    dispatch: &Dispatch,
    piece: &Piece,
    push: &[u8],
    uses: &[Use],
    record: impl FnOnce(Op<'_>) -> T,
) -> T {
    let groups = Slice {
        offset: piece.offset + 16,
        size: 16 * u64::from(launch.grid.resumes),
        memory: piece.memory.clone(),
    };
    record(Op::DispatchIndirect {
        pipeline: &dispatch.pipeline,
        groups: &groups,
        push,
        uses,
        bindings: &launch.kernel.bindings,
        touches_anything: launch.kernel.touches_anything,
    })
}
