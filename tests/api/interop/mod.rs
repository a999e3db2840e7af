//! Memory and semaphores that OpenCL shares with Vulkan, in one process and in two: cl_khr_external_memory,
//! cl_khr_external_semaphore.

mod errors;
mod import;
mod vulkan;

use pumice_tests::sys::*;
use pumice_tests::{
    call, code_name, create, ext, good_child, is_alone, job, left_out, ok, Buffer, Event, Setup,
};
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use vulkan::{Signal, Vulkan};

const OPAQUE: cl_mem_properties = CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR as cl_mem_properties;
const DMA_BUF: cl_mem_properties = CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR as cl_mem_properties;
const OPAQUE_SEMAPHORE: cl_semaphore_properties_khr =
    CL_SEMAPHORE_HANDLE_OPAQUE_FD_KHR as cl_semaphore_properties_khr;
const TYPE: cl_semaphore_properties_khr = CL_SEMAPHORE_TYPE_KHR as cl_semaphore_properties_khr;
const BINARY: cl_semaphore_properties_khr =
    CL_SEMAPHORE_TYPE_BINARY_KHR as cl_semaphore_properties_khr;
/// Bytes of the buffer that is shared: a first half, which is copied to the second.
const SIZE: usize = 256 << 10;
/// Extents of the image that is shared.
const WIDTH: u32 = 67;
const HEIGHT: u32 = 45;
const TEXELS: usize = (WIDTH * HEIGHT * 4) as usize;

/// Bytes that differ from round to round.
fn pattern(round: u8, size: usize) -> Vec<u8> {
    let byte = |at: usize| (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ round.wrapping_mul(17);
    (0..size).map(byte).collect()
}

/// A semaphore of OpenCL that releases itself.
struct Semaphore<'a>(&'a Setup, cl_semaphore_khr);

impl Drop for Semaphore<'_> {
    fn drop(&mut self) {
        let code = ext!(self.0, clReleaseSemaphoreKHR: clReleaseSemaphoreKHR_t(self.1));
        if !std::thread::panicking() {
            assert_eq!(code, 0);
        }
    }
}

impl<'a> Semaphore<'a> {
    fn try_new(setup: &'a Setup, list: &[cl_semaphore_properties_khr]) -> Result<Self, cl_int> {
        let mut code = 1;
        let made = ext!(
            setup,
            clCreateSemaphoreWithPropertiesKHR: clCreateSemaphoreWithPropertiesKHR_t(
                setup.context.0, list.as_ptr(), &mut code
            )
        );
        assert_eq!(made.is_null(), code != 0);
        match code {
            0 => Ok(Self(setup, made)),
            code => Err(code),
        }
    }

    /// The semaphore of a file descriptor.
    fn of(setup: &'a Setup, fd: i32) -> Self {
        let list = [TYPE, BINARY, OPAQUE_SEMAPHORE, fd as u64, 0];
        Self::try_new(setup, &list).unwrap_or_else(|code| panic!("{}", code_name(code)))
    }

    /// One that can be exported.
    fn exported(setup: &'a Setup, kind: cl_semaphore_properties_khr) -> Self {
        let name = CL_SEMAPHORE_EXPORT_HANDLE_TYPES_KHR;
        let list = [TYPE, BINARY, name, kind, 0, 0];
        Self::try_new(setup, &list).unwrap_or_else(|code| panic!("{}", code_name(code)))
    }

    /// A new file descriptor, or an error.
    fn fd(&self, kind: cl_semaphore_properties_khr) -> Result<i32, cl_int> {
        let (mut fd, mut size) = (-2i32, 0);
        let place = (&raw mut fd).cast::<c_void>();
        let code = ext!(
            self.0,
            clGetSemaphoreHandleForTypeKHR: clGetSemaphoreHandleForTypeKHR_t(
                self.1, self.0.device, kind as u32, 4, place, &mut size
            )
        );
        match code {
            0 => {
                assert_eq!(size, 4);
                Ok(fd)
            }
            code => Err(code),
        }
    }

    fn enqueue(&self, signal: bool) -> Event {
        let (queue, mut event) = (self.0.queue.0, null_mut());
        let code = match signal {
            true => ext!(
                self.0,
                clEnqueueSignalSemaphoresKHR: clEnqueueSignalSemaphoresKHR_t(
                    queue, 1, &self.1, null(), 0, null(), &mut event
                )
            ),
            false => ext!(
                self.0,
                clEnqueueWaitSemaphoresKHR: clEnqueueWaitSemaphoresKHR_t(
                    queue, 1, &self.1, null(), 0, null(), &mut event
                )
            ),
        };
        assert_eq!(code, 0, "{}", code_name(code));
        Event(event)
    }
}

/// The memory object that a call has made, or its error.
fn memory_object(made: cl_mem, code: cl_int) -> Result<Buffer, cl_int> {
    assert_eq!(made.is_null(), code != 0);
    match code {
        0 => Ok(Buffer(made)),
        code => Err(code),
    }
}

/// A memory object with these properties, or the error.
fn try_buffer(setup: &Setup, list: &[cl_mem_properties], size: usize) -> Result<Buffer, cl_int> {
    let mut code = 1;
    let made = call!(clCreateBufferWithProperties(
        setup.context.0,
        list.as_ptr(),
        CL_MEM_READ_WRITE,
        size,
        null_mut(),
        &mut code
    ));
    memory_object(made, code)
}

fn rgba() -> cl_image_format {
    cl_image_format {
        image_channel_order: CL_RGBA,
        image_channel_data_type: CL_UNORM_INT8,
    }
}

/// An image of [`WIDTH`] and [`HEIGHT`] with these properties, or the error.
fn try_image(setup: &Setup, list: &[cl_mem_properties], pitch: usize) -> Result<Buffer, cl_int> {
    // SAFETY: zeros are a description.
    let mut desc: cl_image_desc = unsafe { std::mem::zeroed() };
    desc.image_type = CL_MEM_OBJECT_IMAGE2D;
    desc.image_width = WIDTH as usize;
    desc.image_height = HEIGHT as usize;
    desc.image_row_pitch = pitch;
    let mut code = 1;
    let made = call!(clCreateImageWithProperties(
        setup.context.0,
        list.as_ptr(),
        CL_MEM_READ_WRITE,
        &rgba(),
        &desc,
        null_mut(),
        &mut code
    ));
    memory_object(made, code)
}

/// Takes a memory object over from others, or hands it over.
fn hand_over(setup: &Setup, mem: &Buffer, acquire: bool) {
    let queue = setup.queue.0;
    type Function = clEnqueueAcquireExternalMemObjectsKHR_t;
    let code = match acquire {
        true => ext!(
            setup,
            clEnqueueAcquireExternalMemObjectsKHR: Function(queue, 1, &mem.0, 0, null(), null_mut())
        ),
        false => ext!(
            setup,
            clEnqueueReleaseExternalMemObjectsKHR: Function(queue, 1, &mem.0, 0, null(), null_mut())
        ),
    };
    assert_eq!(code, 0, "{}", code_name(code));
}

/// Copies the first half of a buffer to the second.
fn copy_half(setup: &Setup, mem: &Buffer) {
    ok!(clEnqueueCopyBuffer(
        setup.queue.0,
        mem.0,
        mem.0,
        0,
        SIZE / 2,
        SIZE / 2,
        0,
        null(),
        null_mut()
    ));
}

/// Copies the first half of the buffer to the second, which is ours for that time.
fn work_on_buffer(setup: &Setup, mem: &Buffer) {
    hand_over(setup, mem, true);
    copy_half(setup, mem);
    hand_over(setup, mem, false);
}

fn buffer_after(round: u8) -> Vec<u8> {
    let mut bytes = pattern(round, SIZE);
    bytes.copy_within(..SIZE / 2, SIZE / 2);
    bytes
}

/// Writes white to the second row of the image, and copies its first row to its last.
fn work_on_image(setup: &Setup, mem: &Buffer) {
    hand_over(setup, mem, true);
    let white = [1f32; 4];
    let (origin, row) = ([0, 1, 0], [WIDTH as usize, 1, 1]);
    ok!(clEnqueueFillImage(
        setup.queue.0,
        mem.0,
        white.as_ptr().cast(),
        origin.as_ptr(),
        row.as_ptr(),
        0,
        null(),
        null_mut()
    ));
    let (first, last) = ([0; 3], [0, HEIGHT as usize - 1, 0]);
    ok!(clEnqueueCopyImage(
        setup.queue.0,
        mem.0,
        mem.0,
        first.as_ptr(),
        last.as_ptr(),
        row.as_ptr(),
        0,
        null(),
        null_mut()
    ));
    hand_over(setup, mem, false);
}

fn image_after(round: u8) -> Vec<u8> {
    let mut bytes = pattern(round, TEXELS);
    let row = WIDTH as usize * 4;
    bytes[row..2 * row].fill(255);
    bytes.copy_within(..row, TEXELS - row);
    bytes
}

/// Vulkan's side, or why the test is not run.
fn vulkan(setup: &Setup) -> Option<std::sync::Arc<Vulkan>> {
    if !setup.has_extension("cl_khr_external_memory_opaque_fd") {
        left_out("the device imports no memory of Vulkan's");
        return None;
    }
    Some(Vulkan::of(setup).expect("the device in Vulkan"))
}

/// A buffer and an image go there and back, rounds that wait for one another by semaphores alone where the device shares those,
/// else on the host.
#[test]
fn one_process() {
    let setup = Setup::new();
    let Some(vulkan) = vulkan(&setup) else {
        return;
    };
    let shares = setup.has_extension("cl_khr_external_semaphore_opaque_fd");
    for image in [false, true] {
        let size = image.then_some((WIDTH, HEIGHT));
        let bytes = if image { TEXELS } else { SIZE };
        let theirs = match image {
            false => vulkan.buffer(SIZE as u64),
            true => vulkan.image(WIDTH, HEIGHT),
        };
        let list = [OPAQUE, theirs.fd() as u64, 0];
        let ours = match image {
            false => try_buffer(&setup, &list, SIZE),
            true => try_image(&setup, &list, 0),
        };
        let ours = ours.unwrap_or_else(|code| panic!("{}", code_name(code)));
        let work = if image { work_on_image } else { work_on_buffer };
        let signals: Option<[Signal; 3]> =
            shares.then(|| [vulkan.signal(), vulkan.signal(), vulkan.signal()]);
        let (to_us, to_them) = match &signals {
            None => (None, None),
            Some([there, ..]) => {
                let to_them = Semaphore::exported(&setup, OPAQUE_SEMAPHORE);
                let fd = to_them.fd(OPAQUE_SEMAPHORE).expect("a file descriptor");
                (
                    Some(Semaphore::of(&setup, there.fd())),
                    Some((to_them, vulkan.signal_of(fd))),
                )
            }
        };
        let rounds = 6u8;
        let mut hosts: Vec<_> = (0..rounds)
            .map(|_| (vulkan.host(bytes), vulkan.host(bytes)))
            .collect();
        let mut fences = Vec::new();
        for (round, (from, to)) in (0..rounds).zip(&mut hosts) {
            from.write(&pattern(round, bytes));
            let filled = (&*from, round == 0);
            match (&signals, &to_us, &to_them) {
                (Some([there, ..]), Some(to_us), Some((to_them, back))) => {
                    fences.push(vulkan.fill(&theirs, filled, size, [None, Some(there)]));
                    to_us.enqueue(false);
                    work(&setup, &ours);
                    to_them.enqueue(true);
                    fences.push(vulkan.read(&theirs, to, size, [Some(back), None]));
                }
                _ => {
                    vulkan.wait(vulkan.fill(&theirs, filled, size, [None; 2]));
                    work(&setup, &ours);
                    ok!(clFinish(setup.queue.0));
                    vulkan.wait(vulkan.read(&theirs, to, size, [None; 2]));
                }
            }
        }
        for fence in fences {
            vulkan.wait(fence);
        }
        for (round, (_, to)) in (0..rounds).zip(&hosts) {
            let expected = match image {
                false => buffer_after(round),
                true => image_after(round),
            };
            assert!(to.bytes() == expected, "image: {image}, round {round}");
        }
        ok!(clFinish(setup.queue.0));
    }
}

/// A copy of a file descriptor that children have.
fn inherited(fd: i32) -> i32 {
    // SAFETY: a file descriptor of this process, which is closed here.
    unsafe {
        let copy = libc::dup(fd);
        libc::close(fd);
        copy
    }
}

/// The OpenCL side of [`two_processes`]: a job of file descriptors, of which the last two are semaphores, or none.
#[test]
fn other_process() {
    let Some(job) = job() else {
        return;
    };
    let fds: Vec<i32> = job
        .split(' ')
        .map(|fd| fd.parse().expect("a number"))
        .collect();
    let setup = Setup::new();
    let [buffer, image, there, back] = fds[..] else {
        panic!("{job}");
    };
    let buffer = try_buffer(&setup, &[OPAQUE, buffer as u64, 0], SIZE).expect("a buffer");
    let image = try_image(&setup, &[OPAQUE, image as u64, 0], 0).expect("an image");
    let signals = (there >= 0).then(|| (Semaphore::of(&setup, there), Semaphore::of(&setup, back)));
    if let Some((there, _)) = &signals {
        there.enqueue(false);
    }
    work_on_buffer(&setup, &buffer);
    work_on_image(&setup, &image);
    if let Some((_, back)) = &signals {
        back.enqueue(true);
    }
    ok!(clFinish(setup.queue.0));
}

/// The same in two processes: Vulkan in this one, OpenCL in a child. Where the device shares no semaphores, the child runs when
/// Vulkan is done.
#[test]
fn two_processes() {
    let setup = Setup::new();
    let Some(vulkan) = vulkan(&setup) else {
        return;
    };
    let shares = setup.has_extension("cl_khr_external_semaphore_opaque_fd");
    let (buffer, image) = (vulkan.buffer(SIZE as u64), vulkan.image(WIDTH, HEIGHT));
    let mut hosts = [SIZE, SIZE, TEXELS, TEXELS].map(|size| vulkan.host(size));
    hosts[0].write(&pattern(3, SIZE));
    hosts[2].write(&pattern(5, TEXELS));
    let signals = shares.then(|| [vulkan.signal(), vulkan.signal()]);
    let [there, back] = match &signals {
        Some([there, back]) => [Some(there), Some(back)],
        None => [None; 2],
    };
    let size = Some((WIDTH, HEIGHT));
    let first = vulkan.fill(&buffer, (&hosts[0], true), None, [None; 2]);
    let second = vulkan.fill(&image, (&hosts[2], true), size, [None, there]);
    if !shares {
        vulkan.wait(first);
        vulkan.wait(second);
    }
    let fd = |signal: Option<&Signal>| signal.map_or(-1, |signal| inherited(signal.fd()));
    let fds = [
        inherited(buffer.fd()),
        inherited(image.fd()),
        fd(there),
        fd(back),
    ];
    let job = fds.map(|fd| fd.to_string()).join(" ");
    good_child::<&str>("interop::other_process", &job, &[]);
    let third = vulkan.read(&buffer, &hosts[1], None, [back, None]);
    let fourth = vulkan.read(&image, &hosts[3], size, [None; 2]);
    if shares {
        vulkan.wait(first);
        vulkan.wait(second);
    }
    vulkan.wait(third);
    vulkan.wait(fourth);
    assert!(hosts[1].bytes() == buffer_after(3));
    assert!(hosts[3].bytes() == image_after(5));
    for fd in fds.into_iter().filter(|fd| *fd >= 0) {
        // SAFETY: ours, which the child had copies of.
        unsafe { libc::close(fd) };
    }
}

/// A semaphore that OpenCL exports and imports again is one payload; a sync file has a copy of it.
#[test]
fn semaphores_of_opencl() {
    let setup = Setup::new();
    if setup.has_extension("cl_khr_external_semaphore_opaque_fd") {
        let one = Semaphore::exported(&setup, OPAQUE_SEMAPHORE);
        let fd = one.fd(OPAQUE_SEMAPHORE).expect("a file descriptor");
        let other = Semaphore::of(&setup, fd);
        for _ in 0..4 {
            for [signal, wait] in [[&one, &other], [&other, &one]] {
                signal.enqueue(true);
                let waited = wait.enqueue(false);
                ok!(clWaitForEvents(1, &waited.0));
            }
        }
    } else {
        left_out("the device shares no semaphores by opaque descriptors");
    }
    if setup.has_extension("cl_khr_external_semaphore_sync_fd") {
        let kind = CL_SEMAPHORE_HANDLE_SYNC_FD_KHR as cl_semaphore_properties_khr;
        let one = Semaphore::exported(&setup, kind);
        assert_eq!(one.fd(kind).err(), Some(CL_INVALID_OPERATION));
        let mut other: Option<Semaphore<'_>> = None;
        for _ in 0..4 {
            one.enqueue(true);
            let fd = one.fd(kind).expect("a file descriptor");
            match &other {
                None => {
                    let list = [TYPE, BINARY, kind, fd as u64, 0];
                    other = Some(Semaphore::try_new(&setup, &list).expect("a semaphore"));
                }
                Some(other) => {
                    let code = ext!(
                        setup,
                        clReImportSemaphoreSyncFdKHR: clReImportSemaphoreSyncFdKHR_t(
                            other.1, null_mut(), fd
                        )
                    );
                    assert_eq!(code, 0, "{}", code_name(code));
                }
            }
            let waited = other.as_ref().map(|other| other.enqueue(false));
            ok!(clWaitForEvents(1, &waited.expect("a wait").0));
        }
    } else {
        left_out("the device shares no semaphores by sync files");
    }
}

/// A file in memory of so many bytes, which can be mapped as a DMA buffer can.
fn memory_file(bytes: &[u8]) -> i32 {
    // SAFETY: the name is a string; the file is written in whole.
    unsafe {
        let fd = libc::memfd_create(c"shared".as_ptr(), libc::MFD_CLOEXEC);
        assert!(fd >= 0);
        let written = libc::write(fd, bytes.as_ptr().cast(), bytes.len());
        assert_eq!(written, bytes.len() as isize);
        fd
    }
}

/// The bytes of a file in memory.
fn bytes_of(fd: i32, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    // SAFETY: room for so many bytes.
    let read = unsafe { libc::pread(fd, bytes.as_mut_ptr().cast(), size, 0) };
    assert_eq!(read, size as isize);
    bytes
}

/// Memory that can be mapped is used in place by the CPU device, and by lavapipe, buffers and images with rows of any pitch. In a
/// process of its own, whose files nobody else opens.
#[test]
fn mapped_descriptors() {
    if !is_alone("interop::mapped_descriptors") {
        return;
    }
    let setup = Setup::new();
    let kind = pumice_tests::info_value!(u64, clGetDeviceInfo(setup.device), CL_DEVICE_TYPE);
    if kind != CL_DEVICE_TYPE_CPU || !setup.has_extension("cl_khr_external_memory_dma_buf") {
        return left_out("a DMA buffer is more than a file in memory there");
    }
    for image in [false, true] {
        let pitch = 320;
        let size = if image { pitch * HEIGHT as usize } else { SIZE };
        let before = pattern(1, size);
        let fd = memory_file(&before);
        // SAFETY: ours; the copy is OpenCL's.
        let copy = unsafe { libc::dup(fd) };
        let list = [DMA_BUF, copy as u64, 0];
        let mem = match image {
            false => try_buffer(&setup, &list, size),
            true => try_image(&setup, &list, pitch),
        };
        let mem = mem.unwrap_or_else(|code| panic!("{}", code_name(code)));
        match image {
            false => work_on_buffer(&setup, &mem),
            true => work_on_image(&setup, &mem),
        }
        ok!(clFinish(setup.queue.0));
        let mut expected = before;
        if image {
            let row = WIDTH as usize * 4;
            expected[pitch..pitch + row].fill(255);
            expected.copy_within(..row, pitch * (HEIGHT as usize - 1));
        } else {
            expected.copy_within(..SIZE / 2, SIZE / 2);
        }
        assert!(bytes_of(fd, size) == expected, "image: {image}");
        drop(mem);
        // SAFETY: ours. That of OpenCL went with the object.
        unsafe {
            libc::close(fd);
            assert_eq!(libc::fcntl(copy, libc::F_GETFD), -1);
        }
    }
}
