//! Launches of a command buffer, and their updates (cl_khr_command_buffer_mutable_dispatch).

use super::{foreign_command, CommandBuffer, Source};
use crate::cl::{
    self, cl_bitfield, cl_command_properties_khr, cl_kernel_exec_info,
    cl_mutable_dispatch_fields_khr, cl_uint,
};
use crate::command::kernel::{launch, NdRange};
use crate::command::{Command, QueueTarget};
use crate::error::{ensure, ClResult};
use crate::features::UPDATABLE_FIELDS;
use crate::handle::{Body, Kind, Object, Ref};
use crate::object::kernel::Kernel;
use crate::object::properties::pairs;
use std::sync::{Arc, Weak};

/// Returns true if the assertions are that launches get no more work-groups.
pub(super) fn asserts_groups(value: cl_bitfield) -> ClResult<bool> {
    const GROUPS: cl_bitfield = cl::CL_MUTABLE_DISPATCH_ASSERT_NO_ADDITIONAL_WORK_GROUPS_KHR;
    ensure!(
        value & !GROUPS == 0,
        cl::CL_INVALID_VALUE,
        "unknown assertions {value:#x}"
    );
    Ok(value & GROUPS != 0)
}

/// Returns the bits that a property of a launch may have, if it is known.
pub fn property_bits(name: cl_command_properties_khr) -> Option<cl_bitfield> {
    match name {
        cl::CL_MUTABLE_DISPATCH_UPDATABLE_FIELDS_KHR => Some(UPDATABLE_FIELDS),
        cl::CL_MUTABLE_DISPATCH_ASSERTS_KHR => {
            Some(cl::CL_MUTABLE_DISPATCH_ASSERT_NO_ADDITIONAL_WORK_GROUPS_KHR)
        }
        _ => None,
    }
}

/// A launch as recorded, or as updated since.
#[derive(Clone)]
pub struct Dispatch {
    /// The kernel that was recorded, for queries.
    pub recorded: Ref<Kernel>,
    /// The same with the arguments of this launch.
    kernel: Ref<Kernel>,
    /// work_dim
    pub dims: cl_uint,
    /// global_work_offset
    pub offset: Option<[usize; 3]>,
    /// global_work_size
    pub global: Option<[usize; 3]>,
    /// local_work_size
    pub local: Option<[usize; 3]>,
    fields: cl_mutable_dispatch_fields_khr,
    /// Arguments may be set after it is recorded.
    late: bool,
}

impl Dispatch {
    /// Creates the launch of a kernel with the arguments that it has now.
    pub fn new(
        kernel: &Ref<Kernel>,
        dims: cl_uint,
        [offset, global, local]: [Option<[usize; 3]>; 3],
    ) -> Self {
        Self {
            recorded: kernel.clone(),
            kernel: kernel.clone_kernel(),
            dims,
            offset,
            global,
            local,
            fields: UPDATABLE_FIELDS,
            late: false,
        }
    }

    /// Returns the command for a queue; none while arguments are yet to be set that an update may set.
    pub(super) fn command(&self, target: &QueueTarget) -> ClResult<Option<Command>> {
        fn slice(sizes: &Option<[usize; 3]>) -> Option<&[usize]> {
            sizes.as_ref().map(<[usize; 3]>::as_slice)
        }
        let range = NdRange {
            dims: self.dims,
            offset: slice(&self.offset),
            global: slice(&self.global),
            local: slice(&self.local),
        };
        let kind = cl::CL_COMMAND_NDRANGE_KERNEL;
        match launch(target, &self.kernel, &range, kind) {
            Err(error) if self.late && error.code == cl::CL_INVALID_KERNEL_ARGS => Ok(None),
            made => made.map(Some),
        }
    }

    /// Returns true if all work-groups are of one size, as far as the application says.
    fn is_uniform(&self) -> bool {
        let dims = self.dims as usize;
        match (&self.global, &self.local) {
            (Some(global), Some(local)) => (global.iter().zip(local).take(dims))
                .all(|(size, group)| *group != 0 && size.is_multiple_of(*group)),
            _ => true,
        }
    }

    /// Changes what an update changes, but for the checks of a launch.
    fn apply(&mut self, update: &DispatchUpdate<'_>) -> ClResult {
        let may = |field, wants: bool| {
            ensure!(
                !wants || self.fields & field != 0,
                cl::CL_INVALID_OPERATION,
                "the command was not recorded with updates of this field ({field:#x})"
            );
            Ok(())
        };
        let arguments = !update.args.is_empty() || !update.pointers.is_empty();
        may(
            cl::CL_MUTABLE_DISPATCH_GLOBAL_OFFSET_KHR,
            update.offset.is_some(),
        )?;
        may(
            cl::CL_MUTABLE_DISPATCH_GLOBAL_SIZE_KHR,
            update.global.is_some(),
        )?;
        may(
            cl::CL_MUTABLE_DISPATCH_LOCAL_SIZE_KHR,
            update.local.is_some(),
        )?;
        may(cl::CL_MUTABLE_DISPATCH_ARGUMENTS_KHR, arguments)?;
        may(
            cl::CL_MUTABLE_DISPATCH_EXEC_INFO_KHR,
            !update.exec.is_empty(),
        )?;
        ensure!(
            update.dims == 0 || update.dims == self.dims,
            cl::CL_INVALID_OPERATION,
            "the command has {} dimensions, not {}",
            self.dims,
            update.dims
        );
        if arguments || !update.exec.is_empty() {
            // The launch before the update has its own.
            self.kernel = self.kernel.clone_kernel();
        }
        for (index, size, value) in &update.args {
            self.kernel.set_arg(*index, *size, *value)?;
        }
        for (index, address) in &update.pointers {
            self.kernel.set_arg_svm(*index, *address)?;
        }
        for (param, size, value) in &update.exec {
            self.kernel.set_exec_info(*param, *size, *value)?;
        }
        let uniform = self.is_uniform();
        self.offset = update.offset.or(self.offset);
        self.global = update.global.or(self.global);
        self.local = update.local.or(self.local);
        ensure!(
            self.is_uniform() == uniform,
            cl::CL_INVALID_OPERATION,
            "the update changes whether work-groups are uniform"
        );
        Ok(())
    }
}

/// A handle of a launch in a command buffer.
pub struct MutableCommand {
    pub(super) buffer: Weak<Object<CommandBuffer>>,
    /// Its place in the command buffer.
    pub(super) at: usize,
    /// The list as given, with its closing zero; empty: none given.
    pub(super) properties: Vec<cl_command_properties_khr>,
}

impl Body for MutableCommand {
    const KIND: Kind = Kind::MutableCommand;
}

/// A change of a launch: cl_mutable_dispatch_config_khr.
pub struct DispatchUpdate<'a> {
    /// The launch.
    pub command: Ref<MutableCommand>,
    /// work_dim; 0: it stays.
    pub dims: cl_uint,
    /// Calls of clSetKernelArg.
    pub args: Vec<(cl_uint, usize, Option<&'a [u8]>)>,
    /// Calls of clSetKernelArgSVMPointer.
    pub pointers: Vec<(cl_uint, usize)>,
    /// Calls of clSetKernelExecInfo.
    pub exec: Vec<(cl_kernel_exec_info, usize, Option<&'a [u8]>)>,
    /// global_work_offset, in as many dimensions as the launch has.
    pub offset: Option<[usize; 3]>,
    /// global_work_size
    pub global: Option<[usize; 3]>,
    /// local_work_size
    pub local: Option<[usize; 3]>,
}

impl MutableCommand {
    /// Returns true if it is a command of this command buffer.
    pub(super) fn is_of(&self, buffer: &Ref<CommandBuffer>) -> bool {
        self.buffer.as_ptr() == Arc::as_ptr(buffer)
    }

    /// Returns a handle of the same command in a copy of the command buffer.
    pub(super) fn copy_for(&self, buffer: &Ref<CommandBuffer>) -> Ref<Self> {
        Object::new(Self {
            buffer: Arc::downgrade(buffer),
            at: self.at,
            properties: self.properties.clone(),
        })
    }

    /// Returns the number of dimensions, which no update changes.
    pub fn dims(&self) -> ClResult<cl_uint> {
        Ok(self.buffer()?.dispatch(self)?.1.dims)
    }

    /// Returns the command buffer.
    pub(super) fn buffer(&self) -> ClResult<Ref<CommandBuffer>> {
        self.buffer.upgrade().ok_or_else(foreign_command)
    }
}

impl CommandBuffer {
    /// Returns the launch of a command as it is now, and the number of its queue.
    pub(super) fn dispatch(&self, command: &MutableCommand) -> ClResult<(usize, Dispatch)> {
        let state = self.state.lock();
        let entry = state.entries.get(command.at);
        match entry.map(|entry| (entry.queue, &entry.source)) {
            Some((queue, Source::Dispatch(dispatch))) => Ok((queue, dispatch.clone())),
            _ => Err(foreign_command()),
        }
    }
}

impl Object<CommandBuffer> {
    /// Records a launch for a queue, with properties that are known ([`property_bits`]). Returns its sync point, and with `want_handle` its
    /// handle.
    pub fn record_dispatch(
        self: &Arc<Self>,
        queue: usize,
        mut dispatch: Dispatch,
        properties: Vec<cl_command_properties_khr>,
        want_handle: bool,
    ) -> ClResult<(cl_uint, Option<Ref<MutableCommand>>)> {
        let mut asserts = self.asserts_groups;
        for (name, value) in pairs(&properties, cl::CL_INVALID_VALUE)? {
            match name {
                cl::CL_MUTABLE_DISPATCH_UPDATABLE_FIELDS_KHR => {
                    dispatch.fields = value;
                    dispatch.late = value & cl::CL_MUTABLE_DISPATCH_ARGUMENTS_KHR != 0;
                }
                cl::CL_MUTABLE_DISPATCH_ASSERTS_KHR => asserts |= asserts_groups(value)?,
                _ => {}
            }
        }
        ensure!(
            !asserts || dispatch.local.is_some(),
            cl::CL_INVALID_VALUE,
            "the number of work-groups is said to stay, and no local size is given"
        );
        let mut made = None;
        let point = self.add(queue, Source::Dispatch(dispatch), |at| {
            made = want_handle.then(|| {
                Object::new(MutableCommand {
                    buffer: Arc::downgrade(self),
                    at,
                    properties,
                })
            });
            made.clone()
        })?;
        Ok((point, made))
    }

    /// Fails unless the command buffer can be updated now.
    pub fn check_update(&self) -> ClResult {
        ensure!(
            self.state.lock().finalized,
            cl::CL_INVALID_OPERATION,
            "the command buffer is not finalized"
        );
        ensure!(
            self.flags & cl::CL_COMMAND_BUFFER_MUTABLE_KHR != 0,
            cl::CL_INVALID_OPERATION,
            "the command buffer was not created as a mutable one"
        );
        Ok(())
    }

    /// Implements clUpdateMutableCommandsKHR: all updates, or none.
    pub fn update(self: &Arc<Self>, updates: &[DispatchUpdate<'_>]) -> ClResult {
        let mut changed: Vec<(usize, usize, Dispatch)> = Vec::new();
        for update in updates {
            let command = &update.command;
            ensure!(
                command.is_of(self),
                cl::CL_INVALID_MUTABLE_COMMAND_KHR,
                "the command is not of this command buffer"
            );
            let known = changed.iter().position(|(at, ..)| *at == command.at);
            let known = match known {
                Some(known) => known,
                None => {
                    let (queue, dispatch) = self.dispatch(command)?;
                    changed.push((command.at, queue, dispatch));
                    changed.len() - 1
                }
            };
            changed[known].2.apply(update)?;
        }
        let mut commands = Vec::new();
        for (_, queue, dispatch) in &changed {
            commands.push(dispatch.command(&self.queues[*queue].target)?.map(Arc::new));
        }
        let mut state = self.state.lock();
        let gone = state.runs.take();
        // What it has recorded of commands that stay is used again.
        state.before = gone.or(state.before.take());
        let mut before = Vec::new();
        for ((at, _, dispatch), command) in changed.into_iter().zip(commands) {
            if let Some(entry) = state.entries.get_mut(at) {
                let source = std::mem::replace(&mut entry.source, Source::Dispatch(dispatch));
                before.push((source, std::mem::replace(&mut entry.command, command)));
            }
        }
        drop(state);
        // Memory objects may go with them.
        drop(before);
        Ok(())
    }
}
