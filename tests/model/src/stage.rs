//! The objects of a program while it runs: its memories with their first contents, its queues.

use crate::expect::initial;
use crate::program::{Kind, Memory, Origin, Program, Queue, Usm};
use crate::world::World;
use pumice_tests::sys::*;
use pumice_tests::{call, create, ext, ok};
use std::alloc::{alloc_zeroed, dealloc, Layout};
use std::ffi::c_void;
use std::ops::Range;
use std::ptr::{null, null_mut};

const PAGE: usize = 4096;

/// Memory of the application.
struct Block {
    pointer: *mut u8,
    layout: Layout,
}

impl Block {
    fn new(size: usize) -> Self {
        let size = size.next_multiple_of(PAGE);
        let layout = Layout::from_size_align(size, PAGE).expect("a size");
        // SAFETY: the size is not 0.
        let pointer = unsafe { alloc_zeroed(layout) };
        assert!(!pointer.is_null(), "out of memory");
        Self { pointer, layout }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: it was allocated so, and nothing uses it any more: the queues are empty.
        unsafe { dealloc(self.pointer, self.layout) };
    }
}

/// A memory as it was made.
pub struct Made {
    /// Where it begins for pointers; 0: nowhere.
    pub base: usize,
    /// Its memory objects; empty if they are yet to be made, or released.
    pub views: Vec<cl_mem>,
    /// The pointer from clSVMAlloc, unless it is freed.
    pub svm: Option<*mut c_void>,
    usm: Option<*mut c_void>,
    _block: Option<Block>,
}

/// The objects of a program.
pub struct Stage<'a> {
    world: &'a World,
    program: &'a Program,
    /// The memories.
    pub memories: Vec<Made>,
    /// The queues; null: not made yet, or released.
    pub queues: Vec<cl_command_queue>,
    /// The command buffers; null: not made yet, or released.
    pub recordings: Vec<cl_command_buffer_khr>,
    /// The semaphores; null: released.
    pub semaphores: Vec<cl_semaphore_khr>,
}

/// The bytes at an address.
///
/// # Safety
/// They must be readable, and nothing may write them meanwhile.
pub unsafe fn bytes_at<'a>(address: usize, size: usize) -> &'a [u8] {
    // SAFETY: as the caller has it.
    unsafe { std::slice::from_raw_parts(address as *const u8, size) }
}

/// Writes bytes to an address.
///
/// # Safety
/// They must be writable, and nothing else may use them meanwhile.
pub unsafe fn put_at(address: usize, bytes: &[u8]) {
    // SAFETY: as the caller has it.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
}

fn alloc_usm(world: &World, memory: &Memory, kind: Usm) -> *mut c_void {
    let (context, device) = (world.context, world.devices[memory.device]);
    let (size, mut code) = (memory.size, 1);
    let made = match kind {
        Usm::Host => ext!(
            world,
            clHostMemAllocINTEL: clHostMemAllocINTEL_t(context, null(), size, 0, &mut code)
        ),
        Usm::Device => ext!(
            world,
            clDeviceMemAllocINTEL: clDeviceMemAllocINTEL_t(context, device, null(), size, 0, &mut code)
        ),
        Usm::Shared => ext!(
            world,
            clSharedMemAllocINTEL: clSharedMemAllocINTEL_t(context, device, null(), size, 0, &mut code)
        ),
    };
    assert_eq!(code, 0, "no unified shared memory");
    made
}

fn alloc_svm(world: &World, size: usize, fine: bool) -> *mut c_void {
    let fine = if fine {
        CL_MEM_SVM_FINE_GRAIN_BUFFER
    } else {
        0
    };
    let flags = CL_MEM_READ_WRITE | fine;
    let made = call!(clSVMAlloc(world.context, flags, size, 0));
    assert!(!made.is_null(), "no shared virtual memory");
    made
}

fn new_image(world: &World, pitch: usize, bytes: &[u8]) -> cl_mem {
    let format = cl_image_format {
        image_channel_order: CL_R,
        image_channel_data_type: CL_UNSIGNED_INT32,
    };
    // SAFETY: zeros are a value of the structure: no sizes, no parent.
    let mut desc: cl_image_desc = unsafe { std::mem::zeroed() };
    desc.image_type = CL_MEM_OBJECT_IMAGE2D;
    desc.image_width = pitch / 4;
    desc.image_height = bytes.len() / pitch;
    create!(clCreateImage(
        world.context,
        CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
        &format,
        &desc,
        bytes.as_ptr().cast_mut().cast()
    ))
}

fn sub_buffer(parent: cl_mem, range: &Range<usize>) -> cl_mem {
    let region = cl_buffer_region {
        origin: range.start,
        size: range.len(),
    };
    create!(clCreateSubBuffer(
        parent,
        0,
        CL_BUFFER_CREATE_TYPE_REGION,
        (&raw const region).cast()
    ))
}

impl<'a> Stage<'a> {
    /// The objects that are there from the start, with their contents.
    pub fn new(world: &'a World, program: &'a Program) -> Self {
        let mut stage = Self {
            world,
            program,
            memories: Vec::new(),
            queues: vec![null_mut(); program.queues.len()],
            recordings: vec![null_mut(); program.recordings.len()],
            semaphores: Vec::new(),
        };
        for &device in &program.semaphores {
            let made = stage.new_semaphore(device);
            stage.semaphores.push(made);
        }
        for (index, _) in from_start(&program.queues) {
            stage.new_queue(index);
        }
        for index in 0..program.memories.len() {
            let made = stage.make(index);
            stage.memories.push(made);
            if !program.memories[index].late {
                stage.create(index);
            }
        }
        ok!(clFinish(stage.queues[0]));
        stage
    }

    /// Makes a queue.
    pub fn new_queue(&mut self, index: usize) {
        let queue = &self.program.queues[index];
        let mut flags = 0;
        if !queue.in_order {
            flags |= CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
        }
        if queue.profiling {
            flags |= CL_QUEUE_PROFILING_ENABLE;
        }
        let list = [cl_queue_properties::from(CL_QUEUE_PROPERTIES), flags, 0];
        self.queues[index] = create!(clCreateCommandQueueWithProperties(
            self.world.context,
            self.world.devices[queue.device],
            list.as_ptr()
        ));
    }

    /// Creates a semaphore for a device.
    fn new_semaphore(&self, device: usize) -> cl_semaphore_khr {
        let value = |number: u32| cl_semaphore_properties_khr::from(number);
        let list = [
            value(CL_SEMAPHORE_TYPE_KHR),
            value(CL_SEMAPHORE_TYPE_BINARY_KHR),
            value(CL_SEMAPHORE_DEVICE_HANDLE_LIST_KHR),
            self.world.devices[device] as usize as cl_semaphore_properties_khr,
            value(CL_SEMAPHORE_DEVICE_HANDLE_LIST_END_KHR),
            0,
        ];
        let (context, mut code) = (self.world.context, 1);
        let made = ext!(
            self.world,
            clCreateSemaphoreWithPropertiesKHR: clCreateSemaphoreWithPropertiesKHR_fn(
                context, list.as_ptr(), &mut code
            )
        );
        assert_eq!(code, 0, "clCreateSemaphoreWithPropertiesKHR");
        made
    }

    /// Releases a semaphore, if it is there.
    pub fn release_semaphore(&mut self, of: usize) {
        let id = std::mem::replace(&mut self.semaphores[of], null_mut());
        if !id.is_null() {
            let code = ext!(self.world, clReleaseSemaphoreKHR: clReleaseSemaphoreKHR_fn(id));
            assert_eq!(code, 0, "clReleaseSemaphoreKHR");
        }
    }

    /// Creates a command buffer.
    pub fn begin(&mut self, of: usize) {
        let recording = &self.program.recordings[of];
        let mut flags = 0;
        if recording.simultaneous {
            flags |= CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR;
        }
        if recording.mutable {
            flags |= CL_COMMAND_BUFFER_MUTABLE_KHR;
        }
        let properties = [CL_COMMAND_BUFFER_FLAGS_KHR, flags, 0];
        let queues: Vec<_> = recording.queues.iter().map(|&at| self.queues[at]).collect();
        let (count, list, mut code) = (queues.len() as cl_uint, queues.as_ptr(), 1);
        self.recordings[of] = ext!(
            self.world,
            clCreateCommandBufferKHR: clCreateCommandBufferKHR_fn(
                count, list, properties.as_ptr(), &mut code
            )
        );
        assert_eq!(code, 0, "clCreateCommandBufferKHR");
    }

    /// Creates a copy of a command buffer. Returns the handles that it has in the place of those.
    pub fn remap(
        &mut self,
        of: usize,
        from: usize,
        handles: &[cl_mutable_command_khr],
    ) -> Vec<cl_mutable_command_khr> {
        let (own, other) = (&self.program.recordings[of], &self.program.recordings[from]);
        let queues: Vec<_> = own.queues.iter().map(|&at| self.queues[at]).collect();
        let automatic = queues.len() != other.queues.len()
            || queues.len() == 1 && self.program.seed >> of & 1 == 1;
        let mut made = vec![null_mut(); handles.len()];
        let (known, places) = match handles.is_empty() {
            true => (null(), null_mut()),
            false => (handles.as_ptr(), made.as_mut_ptr()),
        };
        let (count, list, mut code) = (queues.len() as cl_uint, queues.as_ptr(), 1);
        let (number, buffer) = (handles.len() as cl_uint, self.recordings[from]);
        self.recordings[of] = ext!(
            self.world,
            clRemapCommandBufferKHR: clRemapCommandBufferKHR_fn(
                buffer, automatic.into(), count, list, number, known, places, &mut code
            )
        );
        assert_eq!(code, 0, "clRemapCommandBufferKHR");
        made
    }

    /// The first queue of a command buffer, by itself.
    pub fn own_queue(&self, of: usize) -> cl_command_queue {
        let mut queues: Vec<cl_command_queue> =
            vec![null_mut(); self.program.recordings[of].queues.len()];
        let (id, size) = (self.recordings[of], size_of_val(queues.as_slice()));
        let (param, place) = (CL_COMMAND_BUFFER_QUEUES_KHR, queues.as_mut_ptr().cast());
        let code = ext!(
            self.world,
            clGetCommandBufferInfoKHR: clGetCommandBufferInfoKHR_fn(id, param, size, place, null_mut())
        );
        assert_eq!(code, 0, "clGetCommandBufferInfoKHR");
        queues[0]
    }

    /// Releases a command buffer, if it is there.
    pub fn discard(&mut self, of: usize) {
        let id = std::mem::replace(&mut self.recordings[of], null_mut());
        if !id.is_null() {
            let code =
                ext!(self.world, clReleaseCommandBufferKHR: clReleaseCommandBufferKHR_fn(id));
            assert_eq!(code, 0, "clReleaseCommandBufferKHR");
        }
    }

    /// Everything of a memory but its memory objects.
    fn make(&self, index: usize) -> Made {
        let memory = &self.program.memories[index];
        let first = initial(index, memory.size);
        let mut made = Made {
            base: 0,
            views: Vec::new(),
            svm: None,
            usm: None,
            _block: None,
        };
        match memory.kind {
            Kind::Plain | Kind::System => {
                let block = Block::new(memory.size);
                made.base = block.pointer as usize;
                made._block = Some(block);
            }
            Kind::UseHost(lead) => {
                let block = Block::new(lead + memory.size);
                made.base = block.pointer as usize + lead;
                made._block = Some(block);
            }
            Kind::Svm { fine } => {
                let pointer = alloc_svm(self.world, memory.size, fine);
                made.base = pointer as usize;
                made.svm = Some(pointer);
            }
            Kind::SvmBuffer { fine, lead } => {
                let pointer = alloc_svm(self.world, lead + memory.size, fine);
                made.base = pointer as usize + lead;
                made.svm = Some(pointer);
            }
            Kind::Usm(kind) => {
                let pointer = alloc_usm(self.world, memory, kind);
                made.base = pointer as usize;
                made.usm = Some(pointer);
            }
            Kind::Buffer(_) | Kind::Image(_) => {}
        }
        if memory.kind.is_open() || matches!(memory.kind, Kind::UseHost(_)) {
            // SAFETY: memory of that size that was just allocated.
            unsafe { put_at(made.base, &first) };
        } else if memory.kind.is_svm() {
            self.write_svm(&made, &first);
        } else if memory.kind.is_usm() {
            self.write_usm(index, &made, &first);
        }
        made
    }

    fn write_svm(&self, made: &Made, bytes: &[u8]) {
        ok!(clEnqueueSVMMemcpy(
            self.queues[0],
            CL_TRUE,
            made.base as *mut c_void,
            bytes.as_ptr().cast(),
            bytes.len(),
            0,
            null(),
            null_mut()
        ));
    }

    fn write_usm(&self, index: usize, made: &Made, bytes: &[u8]) {
        let device = self.program.memories[index].device;
        let (queue, own) = self.queue_of(device);
        let (to, from, size) = (made.base as *mut c_void, bytes.as_ptr().cast(), bytes.len());
        let code = ext!(
            self.world,
            clEnqueueMemcpyINTEL: clEnqueueMemcpyINTEL_t(
                queue, CL_TRUE, to, from, size, 0, null(), null_mut()
            )
        );
        assert_eq!(code, 0, "clEnqueueMemcpyINTEL");
        if own {
            ok!(clReleaseCommandQueue(queue));
        }
    }

    /// A queue of this device; made for the caller (true) if there is none.
    pub fn queue_of(&self, device: usize) -> (cl_command_queue, bool) {
        let of = |(index, queue): (usize, &cl_command_queue)| {
            (!queue.is_null() && self.program.queues[index].device == device).then_some(*queue)
        };
        match self.queues.iter().enumerate().find_map(of) {
            Some(queue) => (queue, false),
            None => {
                let device = self.world.devices[device];
                let context = self.world.context;
                let made = create!(clCreateCommandQueueWithProperties(context, device, null()));
                (made, true)
            }
        }
    }

    /// Makes the memory objects of a memory.
    pub fn create(&mut self, index: usize) {
        let memory = &self.program.memories[index];
        let first = initial(index, memory.size);
        let context = self.world.context;
        let base = self.memories[index].base as *mut c_void;
        let copied = first.as_ptr().cast_mut().cast();
        let (flags, pointer) = match memory.kind {
            Kind::Buffer(Origin::Written) => (0, null_mut()),
            Kind::Buffer(Origin::Copied) => (CL_MEM_COPY_HOST_PTR, copied),
            Kind::Buffer(Origin::CopiedAlloc) => {
                (CL_MEM_COPY_HOST_PTR | CL_MEM_ALLOC_HOST_PTR, copied)
            }
            Kind::UseHost(_) | Kind::SvmBuffer { .. } => (CL_MEM_USE_HOST_PTR, base),
            Kind::Image(pitch) => {
                self.memories[index].views = vec![new_image(self.world, pitch, &first)];
                return;
            }
            _ => return,
        };
        let flags = CL_MEM_READ_WRITE | flags;
        let buffer = create!(clCreateBuffer(context, flags, memory.size, pointer));
        if memory.kind == Kind::Buffer(Origin::Written) {
            ok!(clEnqueueWriteBuffer(
                self.queues[0],
                buffer,
                CL_TRUE,
                0,
                memory.size,
                first.as_ptr().cast(),
                0,
                null(),
                null_mut()
            ));
        }
        let views = &mut self.memories[index].views;
        views.push(buffer);
        let parts = memory.views.iter().skip(1);
        views.extend(parts.map(|range| sub_buffer(buffer, range)));
    }

    /// Releases the memory objects of a memory.
    pub fn release(&mut self, index: usize) {
        for view in self.memories[index].views.drain(..) {
            ok!(clReleaseMemObject(view));
        }
    }
}

fn from_start(queues: &[Queue]) -> impl Iterator<Item = (usize, &Queue)> {
    queues.iter().enumerate().filter(|(_, queue)| !queue.late)
}

impl Drop for Stage<'_> {
    /// All commands are over.
    fn drop(&mut self) {
        (0..self.recordings.len()).for_each(|of| self.discard(of));
        (0..self.semaphores.len()).for_each(|of| self.release_semaphore(of));
        for index in 0..self.memories.len() {
            self.release(index);
            let made = &mut self.memories[index];
            if let Some(pointer) = made.svm.take() {
                call!(clSVMFree(self.world.context, pointer));
            }
            if let Some(pointer) = made.usm.take() {
                let context = self.world.context;
                let code = ext!(self.world, clMemFreeINTEL: clMemFreeINTEL_t(context, pointer));
                assert_eq!(code, 0, "clMemFreeINTEL");
            }
        }
        for queue in self.queues.iter().filter(|queue| !queue.is_null()) {
            ok!(clReleaseCommandQueue(*queue));
        }
    }
}
