//! From a kernel and its arguments to what a launch of it needs (OpenCL API specification, "Executing Kernels").

use super::args::Value;
use super::Kernel;
use crate::backend::image::Resource;
use crate::backend::Binding;
use crate::cl;
use crate::error::{err, ClResult};
use crate::handle::Ref;
use crate::object::device::Device;
use crate::object::launch::{Enqueues, KernelLaunch, Retained};
use crate::object::mem::image::Backing;
use crate::object::mem::queue_images::Identity;
use crate::object::mem::Mem;
use crate::object::svm;
use spirv_lowering::interface::{Access, ArgKind, ImageArg, SamplerSource, LOCAL_ARG_ALIGN};
use std::sync::{Arc, OnceLock, Weak};

impl Kernel {
    /// Returns everything that a launch on `device`, by that queue, needs, or
    /// CL_INVALID_KERNEL_ARGS when an argument is not set. `wide`: with the form of the kernel for launches beyond 2^32
    /// work-items in a dimension, made when first asked for.
    pub fn snapshot(
        &self,
        device: &Ref<Device>,
        queue: &Identity,
        wide: bool,
    ) -> ClResult<Box<KernelLaunch>> {
        let on = self.on(device)?;
        let code = match wide {
            false => on.executable.code(on.index)?,
            true => on.executable.wide()?.code(on.index)?,
        };
        // Both forms take the same arguments, though not in the same places.
        let interface = code.interface();
        let instance = on.executable.instance(&self.program.context.output)?;
        let system = device.caps().svm.system;
        let mut launch = KernelLaunch::new(code.clone(), on.rules, wide);
        launch.globals = instance.as_ref().and_then(|i| i.globals().cloned());
        let finalized = instance.filter(|i| i.has_finalizers());
        launch.kept = finalized.map(|i| i as Retained);
        launch.printf = on.printfs.clone();
        launch.touches_anything = interface.uses_indirect_pointers || interface.enqueues();
        launch.host_memory = interface.uses_indirect_pointers && system;
        let context = &self.program.context;
        let memory = context.memory_of(device)?;
        // Images that blocks may capture.
        let mut shared = Vec::new();
        self.exec.lock().apply(context, memory, &mut launch);
        let args = self.args.lock();
        for (index, (arg, value)) in interface.args.iter().zip(args.iter()).enumerate() {
            let Some(value) = value else {
                return self.bad_arg(index, "is not set");
            };
            let access = interface.access(index);
            match (arg.kind, value) {
                (ArgKind::Value { offset, .. }, Value::Bytes(bytes)) => {
                    put(&mut launch.args, offset, bytes)
                }
                (ArgKind::Local { spec_id }, Value::Local(size)) => {
                    launch.local_args.push((
                        spec_id,
                        size.next_multiple_of(LOCAL_ARG_ALIGN).max(LOCAL_ARG_ALIGN),
                    ));
                }
                (
                    ArgKind::Buffer { offset, .. } | ArgKind::Pipe { offset },
                    Value::Buffer(Some(mem)),
                ) => {
                    let mem = self.alive(index, mem)?;
                    // Kept first: the last reference must not go under the lock, since destructor callbacks may set
                    // arguments.
                    launch.buffers.push((mem.clone(), access));
                    let address = mem.device_address(device)?;
                    put(&mut launch.args, offset, &address.to_ne_bytes());
                }
                (ArgKind::Buffer { .. }, Value::Buffer(None)) => {}
                (ArgKind::Buffer { offset, .. }, Value::Pointer { address, mem }) => {
                    put(&mut launch.args, offset, &address.to_ne_bytes());
                    match mem {
                        Some(_) if !svm::supported(device) => {
                            return err(
                                cl::CL_INVALID_OPERATION,
                                "an argument is shared virtual memory, which the device does not support",
                            )
                        }
                        Some(mem) => {
                            let mem = self.alive(index, mem)?;
                            launch.buffers.push((mem, access));
                        }
                        None if *address == 0 => {}
                        None => {
                            // A device address: the buffer may be known by it.
                            if let Some(mem) = context.addressed.find(memory, *address) {
                                launch.buffers.push((mem, access));
                                continue;
                            }
                            launch.touches_anything = true;
                            launch.host_memory |= system;
                        }
                    }
                }
                (ArgKind::Image(arg), Value::Image(mem)) => {
                    let mem = self.alive(index, mem)?;
                    launch.images.push((mem.clone(), access));
                    if interface.enqueues() {
                        shared.resize(index + 1, None);
                        shared[index] = Some(mem.clone());
                    }
                    launch.show_image(device, queue, &arg, &mem, access)?;
                }
                (ArgKind::Queue { offset }, Value::Queue(queue)) => {
                    let queue = self.alive(index, queue)?;
                    if !Arc::ptr_eq(&queue.device, device) {
                        return self.bad_arg(index, "is a device queue of another device");
                    }
                    let address = queue.memory.address();
                    put(&mut launch.args, offset, &address.to_ne_bytes());
                }
                (ArgKind::Sampler { offset }, Value::Sampler(word)) => {
                    if let Some(offset) = offset {
                        put(&mut launch.args, offset, &word.to_ne_bytes());
                    }
                }
                _ => return self.bad_arg(index, "has the wrong type"),
            }
        }
        if interface.enqueues() {
            let buffers = launch.buffers.iter();
            launch.enqueues = Some(Arc::new(Enqueues {
                on_device: context.on_device(context.device_index(device)?)?.clone(),
                executable: on.executable.clone(),
                globals: launch.globals.clone(),
                kept: launch.kept.clone(),
                rules: on.rules,
                buffers: buffers.map(|(mem, _)| mem.clone()).collect(),
                images: shared,
                table: OnceLock::new(),
            }));
        }
        launch.bind_samplers(&interface.samplers, |source| match source {
            SamplerSource::Literal(word) => Ok(word),
            SamplerSource::Arg(index) => match args.get(index as usize) {
                Some(Some(Value::Sampler(word))) => Ok(*word),
                _ => self.bad_arg(index as usize, "is no sampler"),
            },
            SamplerSource::Captured(_) => {
                err(cl::CL_INVALID_KERNEL, format!("{} is a block", self.name))
            }
        })?;
        Ok(launch)
    }

    fn bad_arg<T>(&self, index: usize, what: &str) -> ClResult<T> {
        let what = format!("argument {index} of kernel {} {what}", self.name);
        err(cl::CL_INVALID_KERNEL_ARGS, what)
    }

    fn alive<T>(&self, index: usize, arg: &Weak<T>) -> ClResult<Arc<T>> {
        arg.upgrade()
            .map_or_else(|| self.bad_arg(index, "was released"), Ok)
    }
}

impl KernelLaunch {
    /// Sets the descriptors that the kernel uses for an image.
    pub(super) fn show_image(
        &mut self,
        device: &Ref<Device>,
        queue: &Identity,
        arg: &ImageArg,
        mem: &Ref<Mem>,
        access: Access,
    ) -> ClResult {
        let memory = mem.context.memory_of(device)?;
        mem.check_image(device)?;
        let write = access.writes();
        let of = &arg.bindings;
        let mut show = |binding: Option<u32>, resource| {
            if let Some(binding) = binding {
                self.bindings.push(Binding {
                    binding,
                    resource,
                    write,
                });
            }
        };
        if of.all().next().is_some() {
            let texels = mem.shown(memory, queue)?;
            self.shows_rows |= mem.image()?.backing == Backing::Rows;
            if of.raw_sampled.is_some() || of.raw_storage.is_some() {
                let raw = mem.raw_texels(memory, &texels)?;
                show(of.raw_sampled, Resource::Sampled(raw.clone()));
                show(of.raw_storage, Resource::Storage(raw));
            }
            show(of.sampled, Resource::Sampled(texels.clone()));
            show(of.storage, Resource::Storage(texels));
        }
        if let Some(offset) = arg.info {
            let desc = &mem.image()?.desc;
            let format = mem.format()?;
            // As `ImageInfo` has them.
            let words = [
                desc.pixels(),
                desc.height,
                desc.depth,
                desc.layers,
                format.data,
                format.order,
                1,
                u32::from(desc.format.has_alpha()) | (desc.format.bytes() as u32) << 8,
            ];
            for (word, at) in words.iter().zip((offset..).step_by(4)) {
                put(&mut self.args, at, &word.to_ne_bytes());
            }
        }
        Ok(())
    }
}

/// Copies bytes to an offset of the argument block.
pub(super) fn put(block: &mut [u8], offset: u32, bytes: &[u8]) {
    let at = offset as usize;
    if let Some(place) = block.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}
