//! Maps, unmaps and migrations.

use super::{check_map_access, check_map_flags, migration, Command, QueueTarget, Work};
use crate::cl::{self, cl_map_flags, cl_mem_migration_flags};
use crate::error::{err, ClResult};
use crate::handle::Ref;
use crate::object::mem::coherence::Touch;
use crate::object::mem::Mem;
use std::ffi::c_void;

/// Implements clEnqueueMapBuffer: the command and the pointer that the application gets. A queue that
/// refuses the command undoes the map.
pub fn map_buffer(
    target: &QueueTarget,
    mem: &Ref<Mem>,
    flags: cl_map_flags,
    offset: usize,
    size: usize,
) -> ClResult<(Command, *mut c_void)> {
    target.check_buffer(mem)?;
    if size == 0 || offset.checked_add(size).is_none_or(|end| end > mem.size) {
        return err(cl::CL_INVALID_VALUE, "the region is empty or out of bounds");
    }
    check_map_flags(flags)?;
    target.check(mem)?;
    check_map_access(mem, flags)?;
    let mapping = mem.map(target.memory, flags, offset, size)?;
    let pointer = mapping.pointer as *mut c_void;
    Ok((
        Command {
            kind: cl::CL_COMMAND_MAP_BUFFER,
            work: Work::Map {
                mem: mem.clone(),
                mapping,
            },
        },
        pointer,
    ))
}

/// Implements clEnqueueUnmapMemObject.
pub fn unmap(target: &QueueTarget, mem: &Ref<Mem>, pointer: *mut c_void) -> ClResult<Command> {
    if !std::sync::Arc::ptr_eq(&mem.context, &target.context) {
        return err(
            cl::CL_INVALID_CONTEXT,
            "the memory object is of another context than the queue",
        );
    }
    let mapping = mem.unmap(pointer as usize)?;
    Ok(Command {
        kind: cl::CL_COMMAND_UNMAP_MEM_OBJECT,
        work: Work::Unmap {
            mem: mem.clone(),
            mapping,
        },
    })
}

/// Implements clEnqueueMigrateMemObjects.
pub fn migrate(
    target: &QueueTarget,
    mems: Vec<Ref<Mem>>,
    flags: cl_mem_migration_flags,
) -> ClResult<Command> {
    if mems.is_empty() {
        return err(cl::CL_INVALID_VALUE, "no memory objects");
    }
    for mem in &mems {
        target.check(mem)?;
    }
    let mut touch = migration(flags)?;
    if touch == Some(Touch::Overwrite) && mems.iter().any(|mem| mem.is_immutable()) {
        // Contents that never change are not undefined afterwards either.
        touch = Some(Touch::Read);
    }
    let whole = |mem: Ref<Mem>| {
        let range = 0..mem.size as u64;
        (mem, range)
    };
    Ok(Command {
        kind: cl::CL_COMMAND_MIGRATE_MEM_OBJECTS,
        work: Work::Migrate {
            parts: mems.into_iter().map(whole).collect(),
            touch,
        },
    })
}
