//! Command buffers: cl_khr_command_buffer, cl_khr_command_buffer_mutable_dispatch.

mod contract;
mod errors;
mod queues;
mod updates;

use pumice_tests::sys::*;
use pumice_tests::{
    call, code_name, create, info_value, ok, platform, Buffer, Event, Kernel, Queue, Setup,
};
use std::ffi::{c_void, CStr};
use std::ptr::{null, null_mut};

/// A function of the platform.
fn function<F: Copy>(name: &CStr) -> F {
    let address = call!(clGetExtensionFunctionAddressForPlatform(
        platform(),
        name.as_ptr()
    ));
    assert!(!address.is_null(), "{name:?}");
    assert_eq!(size_of::<F>(), size_of::<*mut c_void>());
    // SAFETY: the types of the headers are optional function pointers.
    unsafe { (&raw const address).cast::<F>().read() }
}

macro_rules! functions {
    ($($field:ident: $type:ident = $name:literal;)*) => {
        /// The functions of the extensions.
        pub struct Functions { $(pub $field: $type,)* }

        impl Functions {
            fn new() -> Self {
                Self { $($field: function::<$type>($name),)* }
            }
        }
    };
}

functions! {
    create: clCreateCommandBufferKHR_fn = c"clCreateCommandBufferKHR";
    retain: clRetainCommandBufferKHR_fn = c"clRetainCommandBufferKHR";
    release: clReleaseCommandBufferKHR_fn = c"clReleaseCommandBufferKHR";
    finalize: clFinalizeCommandBufferKHR_fn = c"clFinalizeCommandBufferKHR";
    enqueue: clEnqueueCommandBufferKHR_fn = c"clEnqueueCommandBufferKHR";
    barrier: clCommandBarrierWithWaitListKHR_fn = c"clCommandBarrierWithWaitListKHR";
    copy: clCommandCopyBufferKHR_fn = c"clCommandCopyBufferKHR";
    copy_rect: clCommandCopyBufferRectKHR_fn = c"clCommandCopyBufferRectKHR";
    to_image: clCommandCopyBufferToImageKHR_fn = c"clCommandCopyBufferToImageKHR";
    copy_image: clCommandCopyImageKHR_fn = c"clCommandCopyImageKHR";
    from_image: clCommandCopyImageToBufferKHR_fn = c"clCommandCopyImageToBufferKHR";
    fill: clCommandFillBufferKHR_fn = c"clCommandFillBufferKHR";
    fill_image: clCommandFillImageKHR_fn = c"clCommandFillImageKHR";
    launch: clCommandNDRangeKernelKHR_fn = c"clCommandNDRangeKernelKHR";
    memcpy: clCommandSVMMemcpyKHR_fn = c"clCommandSVMMemcpyKHR";
    svm_fill: clCommandSVMMemFillKHR_fn = c"clCommandSVMMemFillKHR";
    info: clGetCommandBufferInfoKHR_fn = c"clGetCommandBufferInfoKHR";
    remap: clRemapCommandBufferKHR_fn = c"clRemapCommandBufferKHR";
    update: clUpdateMutableCommandsKHR_fn = c"clUpdateMutableCommandsKHR";
    command_info: clGetMutableCommandInfoKHR_fn = c"clGetMutableCommandInfoKHR";
}

/// Calls a function of [`Functions`].
macro_rules! cb {
    ($all:expr, $name:ident($($arg:expr),* $(,)?)) => {{
        let function = $all.functions.$name.expect("a function");
        #[allow(clippy::macro_metavars_in_unsafe, unused_unsafe)]
        // SAFETY: a test passes pointers that live as long as the call asks, and whatever else it passes wrongly is
        // what the driver has to refuse.
        unsafe { function($($arg),*) }
    }};
}
use cb;

/// A command buffer that releases itself.
pub struct Recording {
    pub functions: Functions,
    pub id: cl_command_buffer_khr,
}

impl Drop for Recording {
    fn drop(&mut self) {
        if !self.id.is_null() {
            cb!(self, release(self.id));
        }
    }
}

#[track_caller]
pub fn good(code: cl_int) {
    assert_eq!(code, 0, "{}", code_name(code));
}

/// Returns the flags of a command buffer as its properties.
pub fn flags(flags: cl_command_buffer_flags_khr) -> [cl_command_buffer_properties_khr; 3] {
    [CL_COMMAND_BUFFER_FLAGS_KHR, flags, 0]
}

impl Recording {
    pub fn new(setup: &Setup) -> Self {
        Self::with(setup, &setup.queue, 0)
    }

    pub fn with(_: &Setup, queue: &Queue, bits: cl_command_buffer_flags_khr) -> Self {
        Self::of(&[queue], bits)
    }

    /// A command buffer of several queues.
    pub fn of(queues: &[&Queue], bits: cl_command_buffer_flags_khr) -> Self {
        let mut made = Self {
            functions: Functions::new(),
            id: null_mut(),
        };
        let mut code = 1;
        let properties = flags(bits);
        let queues: Vec<cl_command_queue> = queues.iter().map(|queue| queue.0).collect();
        let (count, list) = (queues.len() as u32, queues.as_ptr());
        made.id = cb!(made, create(count, list, properties.as_ptr(), &mut code));
        good(code);
        made
    }

    /// Records a launch for a queue, and returns its sync point.
    pub fn launch_in(&self, queue: &Queue, kernel: &Kernel, size: usize, waits: &[u32]) -> u32 {
        let mut point = 0;
        let list = if waits.is_empty() {
            null()
        } else {
            waits.as_ptr()
        };
        let (none, waits) = (null(), waits.len() as u32);
        good(cb!(
            self,
            launch(
                self.id,
                queue.0,
                none,
                kernel.0,
                1,
                null(),
                &size,
                null(),
                waits,
                list,
                &mut point,
                null_mut()
            )
        ));
        point
    }

    /// Records a fill with a word for a queue, and returns its sync point.
    pub fn fill_in(&self, queue: &Queue, buffer: &Buffer, word: u32, size: usize) -> u32 {
        let mut point = 0;
        good(cb!(
            self,
            fill(
                self.id,
                queue.0,
                null(),
                buffer.0,
                (&raw const word).cast(),
                4,
                0,
                size,
                0,
                null(),
                &mut point,
                null_mut()
            )
        ));
        point
    }

    /// Records a launch, and returns its sync point.
    pub fn launch(&self, kernel: &Kernel, global: &[usize], waits: &[u32]) -> u32 {
        let mut point = 0;
        good(self.try_launch(kernel, global, waits, null(), &mut point, null_mut()));
        point
    }

    pub fn try_launch(
        &self,
        kernel: &Kernel,
        global: &[usize],
        waits: &[u32],
        properties: *const cl_command_properties_khr,
        point: *mut u32,
        handle: *mut cl_mutable_command_khr,
    ) -> cl_int {
        let list = if waits.is_empty() {
            null()
        } else {
            waits.as_ptr()
        };
        cb!(
            self,
            launch(
                self.id,
                null_mut(),
                properties,
                kernel.0,
                global.len() as u32,
                null(),
                global.as_ptr(),
                null(),
                waits.len() as u32,
                list,
                point,
                handle
            )
        )
    }

    /// Records a copy of so many bytes from the start.
    pub fn copy(&self, from: &Buffer, to: &Buffer, size: usize) -> u32 {
        let mut point = 0;
        let (queue, properties) = (null_mut(), null());
        good(cb!(
            self,
            copy(
                self.id,
                queue,
                properties,
                from.0,
                to.0,
                0,
                0,
                size,
                0,
                null(),
                &mut point,
                null_mut()
            )
        ));
        point
    }

    /// Records a fill with a word.
    pub fn fill(&self, buffer: &Buffer, word: u32, size: usize) -> u32 {
        self.fill_in(&Queue(null_mut()), buffer, word, size)
    }

    /// Records a barrier for the only queue.
    #[track_caller]
    pub fn barrier(&self) {
        let (nobody, none) = (null_mut(), null_mut());
        good(cb!(
            self,
            barrier(self.id, nobody, null(), 0, null(), none, nobody.cast())
        ));
    }

    #[track_caller]
    pub fn finalize(&self) {
        good(cb!(self, finalize(self.id)));
    }

    /// Enqueues it to its own queue.
    #[track_caller]
    pub fn replay(&self) {
        good(self.enqueue(None, &[], null_mut()));
    }

    /// Enqueues it, and returns the event.
    pub fn replay_event(&self, queue: Option<&Queue>, waits: &[cl_event]) -> Event {
        let mut event = null_mut();
        good(self.enqueue(queue, waits, &mut event));
        Event(event)
    }

    pub fn enqueue(
        &self,
        queue: Option<&Queue>,
        waits: &[cl_event],
        event: *mut cl_event,
    ) -> cl_int {
        let mut queues = [queue.map_or(null_mut(), |queue| queue.0)];
        let (count, list) = match queue {
            Some(_) => (1, queues.as_mut_ptr()),
            None => (0, null_mut()),
        };
        let events = if waits.is_empty() {
            null()
        } else {
            waits.as_ptr()
        };
        let waits = waits.len() as u32;
        cb!(self, enqueue(count, list, self.id, waits, events, event))
    }

    pub fn info(&self, param: u32) -> Vec<u8> {
        let mut size = 0;
        good(cb!(self, info(self.id, param, 0, null_mut(), &mut size)));
        let mut bytes = vec![0u8; size];
        let place = bytes.as_mut_ptr().cast();
        good(cb!(self, info(self.id, param, size, place, null_mut())));
        bytes
    }

    pub fn state(&self) -> u32 {
        let bytes = self.info(CL_COMMAND_BUFFER_STATE_KHR);
        u32::from_ne_bytes(bytes.try_into().expect("a word"))
    }
}

pub const BUMP: &str = "
kernel void bump(global uint *p) { p[get_global_id(0)] += 1; }
kernel void scale(global const uint *from, global uint *to, uint factor) {
    to[get_global_id(0)] = from[get_global_id(0)] * factor + get_global_offset(0);
}
kernel void add(global uint *p, uint n) { atomic_add(p, n); }
kernel void say(global uint *p) { printf(\"%u\\n\", p[0]); }";

/// Every kind of state, and the answers to the other queries.
#[test]
fn life() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(BUMP, "bump");
    let buffer = setup.buffer_of(&[0u32; 64]);
    kernel.set_buffer(0, &buffer);
    let recording = Recording::new(&setup);
    assert_eq!(recording.state(), CL_COMMAND_BUFFER_STATE_RECORDING_KHR);
    assert_eq!(
        recording.enqueue(None, &[], null_mut()),
        CL_INVALID_OPERATION
    );
    recording.launch(&kernel, &[64], &[]);
    recording.finalize();
    assert_eq!(recording.state(), CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR);
    assert_eq!(cb!(recording, finalize(recording.id)), CL_INVALID_OPERATION);
    for round in 1..=3 {
        recording.replay();
        assert_eq!(setup.read::<u32>(&buffer, 64), [round; 64]);
    }
    let word = |param| u32::from_ne_bytes(recording.info(param).try_into().expect("a word"));
    let pointer = |param| usize::from_ne_bytes(recording.info(param).try_into().expect("one"));
    assert_eq!(word(CL_COMMAND_BUFFER_NUM_QUEUES_KHR), 1);
    assert_eq!(
        pointer(CL_COMMAND_BUFFER_QUEUES_KHR),
        setup.queue.0 as usize
    );
    assert_eq!(
        pointer(CL_COMMAND_BUFFER_CONTEXT_KHR),
        setup.context.0 as usize
    );
    assert_eq!(word(CL_COMMAND_BUFFER_REFERENCE_COUNT_KHR), 1);
    good(cb!(recording, retain(recording.id)));
    assert_eq!(word(CL_COMMAND_BUFFER_REFERENCE_COUNT_KHR), 2);
    good(cb!(recording, release(recording.id)));
    let properties: Vec<u8> = flags(0)
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    assert_eq!(
        recording.info(CL_COMMAND_BUFFER_PROPERTIES_ARRAY_KHR),
        properties
    );
}

/// The device says what it can do.
#[test]
fn capabilities() {
    let setup = Setup::new();
    let bits = |param| info_value!(u64, clGetDeviceInfo(setup.device), param);
    let all = bits(CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR);
    assert_ne!(all & CL_COMMAND_BUFFER_CAPABILITY_KERNEL_PRINTF_KHR, 0);
    assert_ne!(all & CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR, 0);
    assert_eq!(
        bits(CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR),
        0
    );
    let queues = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE;
    let supported = bits(CL_DEVICE_COMMAND_BUFFER_SUPPORTED_QUEUE_PROPERTIES_KHR);
    assert_eq!(supported, queues);
    assert_eq!(bits(CL_DEVICE_MUTABLE_DISPATCH_CAPABILITIES_KHR), 31);
}

/// Commands on buffers, each after the one before, in every kind of queue.
#[test]
fn commands_on_buffers() {
    for properties in [
        0,
        CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
        CL_QUEUE_PROFILING_ENABLE,
    ] {
        let setup = Setup::with_queue(properties);
        let kernel = setup.kernel_of(BUMP, "bump");
        let (a, b) = (setup.buffer_of(&[9u32; 64]), setup.buffer_of(&[9u32; 64]));
        kernel.set_buffer(0, &a);
        let recording = Recording::new(&setup);
        let filled = recording.fill(&a, 5, 256);
        let bumped = recording.launch(&kernel, &[64], &[filled]);
        let mut point = 0;
        let (id, queue) = (recording.id, null_mut());
        good(cb!(
            recording,
            barrier(id, queue, null(), 1, &bumped, &mut point, null_mut())
        ));
        recording.copy(&a, &b, 128);
        // A rectangle of 2 rows of 8 bytes, 16 apart, to the end of the other.
        let (from, to, size) = ([0usize; 3], [128usize, 0, 0], [8usize, 2, 1]);
        good(cb!(
            recording,
            copy_rect(
                id,
                queue,
                null(),
                a.0,
                b.0,
                from.as_ptr(),
                to.as_ptr(),
                size.as_ptr(),
                16,
                0,
                16,
                0,
                0,
                null(),
                null_mut(),
                null_mut()
            )
        ));
        recording.finalize();
        for _ in 0..3 {
            setup.write(&b, &[1u32; 64]);
            recording.replay();
            ok!(clFinish(setup.queue.0));
            let got = setup.read::<u32>(&b, 64);
            let mut want = [1u32; 64];
            want[..32].fill(6);
            want[32..34].fill(6);
            want[36..38].fill(6);
            assert_eq!(got, want);
        }
    }
}

/// Commands on images, where the device has them.
#[test]
fn commands_on_images() {
    let setup = Setup::new();
    if !setup.has_images() {
        return;
    }
    let format = cl_image_format {
        image_channel_order: CL_RGBA,
        image_channel_data_type: CL_UNSIGNED_INT8,
    };
    // SAFETY: all zeros are a description.
    let mut desc: cl_image_desc = unsafe { std::mem::zeroed() };
    desc.image_type = CL_MEM_OBJECT_IMAGE2D;
    (desc.image_width, desc.image_height) = (8, 4);
    let image = || {
        let flags = CL_MEM_READ_WRITE;
        Buffer(create!(clCreateImage(
            setup.context.0,
            flags,
            &format,
            &desc,
            null_mut()
        )))
    };
    let (a, b) = (image(), image());
    let buffer = setup.buffer_of(&(0..32u32).collect::<Vec<_>>());
    let out = setup.buffer_of(&[0u32; 64]);
    let recording = Recording::new(&setup);
    let (id, queue, none) = (recording.id, null_mut(), null());
    let (origin, all) = ([0usize; 3], [8usize, 4, 1]);
    let (second, one) = ([0usize, 1, 0], [8usize, 1, 1]);
    let colour = [1u32, 2, 3, 4];
    let (point, handle) = (null_mut(), null_mut());
    good(cb!(
        recording,
        fill_image(
            id,
            queue,
            none,
            a.0,
            colour.as_ptr().cast(),
            origin.as_ptr(),
            all.as_ptr(),
            0,
            null(),
            point,
            handle
        )
    ));
    good(cb!(
        recording,
        to_image(
            id,
            queue,
            none,
            buffer.0,
            b.0,
            0,
            origin.as_ptr(),
            all.as_ptr(),
            0,
            null(),
            point,
            handle
        )
    ));
    good(cb!(
        recording,
        copy_image(
            id,
            queue,
            none,
            a.0,
            b.0,
            origin.as_ptr(),
            second.as_ptr(),
            one.as_ptr(),
            0,
            null(),
            point,
            handle
        )
    ));
    // To a place that is no multiple of a texel.
    for offset in [0, 129] {
        good(cb!(
            recording,
            from_image(
                id,
                queue,
                none,
                b.0,
                out.0,
                origin.as_ptr(),
                one.as_ptr(),
                offset,
                0,
                null(),
                point,
                handle
            )
        ));
    }
    good(cb!(
        recording,
        from_image(
            id,
            queue,
            none,
            b.0,
            out.0,
            second.as_ptr(),
            one.as_ptr(),
            32,
            0,
            null(),
            point,
            handle
        )
    ));
    recording.finalize();
    for _ in 0..3 {
        setup.write(&out, &[0u32; 64]);
        recording.replay();
        let got = setup.read::<u8>(&out, 256);
        let row: Vec<u8> = (0..8u32).flat_map(u32::to_ne_bytes).collect();
        assert_eq!(got[..32], row);
        assert_eq!(got[129..161], row);
        assert!(got[32..64]
            .as_chunks::<4>()
            .0
            .iter()
            .all(|texel| *texel == [1, 2, 3, 4]));
    }
}

/// Shared virtual memory, and memory of the host where that is a source or a destination.
#[test]
fn commands_on_pointers() {
    for properties in [0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE] {
        let setup = Setup::with_queue(properties);
        if info_value!(
            u64,
            clGetDeviceInfo(setup.device),
            CL_DEVICE_SVM_CAPABILITIES
        ) == 0
        {
            return;
        }
        let alloc = || call!(clSVMAlloc(setup.context.0, CL_MEM_READ_WRITE, 256, 0));
        let (a, b) = (alloc(), alloc());
        let mut host = vec![0u32; 64];
        let recording = Recording::new(&setup);
        let (id, queue, none) = (recording.id, null_mut(), null());
        let pattern = 7u32;
        good(cb!(
            recording,
            svm_fill(
                id,
                queue,
                none,
                a,
                (&raw const pattern).cast(),
                4,
                256,
                0,
                null(),
                null_mut(),
                null_mut()
            )
        ));
        let copy = |to: *mut c_void, from: *const c_void, size: usize| {
            good(cb!(
                recording,
                memcpy(
                    id,
                    queue,
                    none,
                    to,
                    from,
                    size,
                    0,
                    null(),
                    null_mut(),
                    null_mut()
                )
            ));
        };
        copy(b, a, 128);
        // To the host and from there: what comes later sees what was copied before.
        let place = host.as_mut_ptr();
        copy(place.cast(), b, 128);
        copy(b.wrapping_byte_add(128), place.cast_const().cast(), 128);
        recording.finalize();
        for _ in 0..3 {
            let zero = 0u32;
            ok!(clEnqueueSVMMemFill(
                setup.queue.0,
                b,
                (&raw const zero).cast(),
                4,
                256,
                0,
                null(),
                null_mut()
            ));
            ok!(clEnqueueBarrierWithWaitList(
                setup.queue.0,
                0,
                null(),
                null_mut()
            ));
            recording.replay();
            ok!(clFinish(setup.queue.0));
            let mut back = [0u32; 64];
            ok!(clEnqueueSVMMemcpy(
                setup.queue.0,
                CL_TRUE,
                back.as_mut_ptr().cast(),
                b,
                256,
                0,
                null(),
                null_mut()
            ));
            assert_eq!(back, [7; 64]);
            assert_eq!(host[..32], [7; 32]);
            host.fill(0);
        }
        drop(recording);
        for pointer in [a, b] {
            call!(clSVMFree(setup.context.0, pointer));
        }
    }
}
