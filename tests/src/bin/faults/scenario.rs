//! The work of a child: a program of some hundred Vulkan calls in parts, each of which ends at its
//! first error.

use opencl_sys as sys;
use pumice_tests::{call, code_name};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

const SOURCE: &str = r#"
kernel void add(global int *data, int value) { data[get_global_id(0)] += value; }
kernel void say(int value) { printf("said %d\n", value); }
kernel void look(read_only image2d_t image, sampler_t sampler, global float4 *out) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    out[at.y * 8 + at.x] = read_imagef(image, sampler, at);
}
"#;

/// Elements of the buffers.
const COUNT: usize = 1024;
const BYTES: usize = COUNT * 4;

/// The errors of lacking host memory and resources, which every entry point here lists.
const ANY: &[i32] = &[sys::CL_OUT_OF_RESOURCES, sys::CL_OUT_OF_HOST_MEMORY];
/// The errors of entry points that may also allocate memory of the device.
const MEMORY: &[i32] = &[sys::CL_MEM_OBJECT_ALLOCATION_FAILURE];

/// The outcome of one run.
#[derive(Default)]
pub struct Outcome {
    /// Calls that failed as they may.
    pub errors: Vec<String>,
    /// The problems found.
    pub problems: Vec<String>,
}

/// A part has ended early.
pub struct Stop;

type Ended = Result<(), Stop>;

/// A part of the scenario.
pub type Part = fn(&mut Outcome, &mut Objects, &World) -> Ended;

/// Parts about programs, for those who look at what compiles and what reads files.
pub const PROGRAMS: [Part; 3] = [programs::again, programs::separately, programs::from_binary];

impl Outcome {
    /// Whether a call succeeded, with [`ANY`] and some other errors that its entry point lists.
    fn check(&mut self, name: &str, code: i32, also: &[i32]) -> Ended {
        if code == sys::CL_SUCCESS {
            return Ok(());
        }
        let text = format!("{name} {}", code_name(code));
        if ANY.contains(&code) || also.contains(&code) {
            self.errors.push(text);
        } else {
            self.problems
                .push(format!("{text}, which it does not list"));
        }
        Err(Stop)
    }

    fn expect(&mut self, holds: bool, what: &str) {
        if !holds {
            self.problems.push(what.to_owned());
        }
    }
}

/// Objects, released in the order opposite to that of their making.
#[derive(Default)]
pub struct Objects(Vec<Box<dyn FnOnce()>>);

impl Objects {
    fn push(&mut self, release: impl FnOnce() + 'static) {
        self.0.push(Box::new(release));
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        while let Some(release) = self.0.pop() {
            release();
        }
    }
}

/// An object of a call with `errcode_ret`: recorded, released at the end of the part.
macro_rules! made {
    ($outcome:expr, $objects:expr, $also:expr, $release:ident, $name:ident($($arg:expr),*)) => {{
        let mut code = 1;
        let made = call!($name($($arg,)* &mut code));
        $outcome.check(stringify!($name), code, $also)?;
        $objects.push(move || {
            call!($release(made));
        });
        made
    }};
}

macro_rules! done {
    ($outcome:expr, $also:expr, $name:ident($($arg:expr),*)) => {
        $outcome.check(stringify!($name), call!($name($($arg),*)), $also)?
    };
}

/// The objects that all parts share.
pub struct World {
    device: sys::cl_device_id,
    context: sys::cl_context,
    queue: sys::cl_command_queue,
    program: sys::cl_program,
}

/// The whole scenario once, with some parts more.
pub fn run(more: &[Part]) -> Outcome {
    let mut outcome = Outcome::default();
    let mut objects = Objects::default();
    let _ = all(&mut outcome, &mut objects, more);
    outcome
}

/// The first device; null where there is none.
pub fn device(outcome: &mut Outcome) -> sys::cl_device_id {
    let (mut platform, mut device) = (null_mut(), null_mut());
    let code = call!(clGetPlatformIDs(1, &mut platform, null_mut()));
    if outcome.check("clGetPlatformIDs", code, &[]).is_err() {
        return null_mut();
    }
    let all = sys::CL_DEVICE_TYPE_ALL;
    let code = call!(clGetDeviceIDs(platform, all, 1, &mut device, null_mut()));
    match outcome.check("clGetDeviceIDs", code, &[sys::CL_DEVICE_NOT_FOUND]) {
        Ok(()) => device,
        Err(Stop) => null_mut(),
    }
}

fn all(o: &mut Outcome, objects: &mut Objects, more: &[Part]) -> Ended {
    let device = device(o);
    if device.is_null() {
        return Err(Stop);
    }
    let gone = &[sys::CL_DEVICE_NOT_AVAILABLE];
    let context = made!(
        o,
        objects,
        gone,
        clReleaseContext,
        clCreateContext(null(), 1, &device, None, null_mut())
    );
    let timed = [
        sys::CL_QUEUE_PROPERTIES as u64,
        sys::CL_QUEUE_PROFILING_ENABLE,
        0,
    ];
    let queue = made!(
        o,
        objects,
        &[],
        clReleaseCommandQueue,
        clCreateCommandQueueWithProperties(context, device, timed.as_ptr())
    );
    let (mut source, length) = (SOURCE.as_ptr().cast(), SOURCE.len());
    let program = made!(
        o,
        objects,
        &[],
        clReleaseProgram,
        clCreateProgramWithSource(context, 1, &mut source, &length)
    );
    done!(
        o,
        &[sys::CL_BUILD_PROGRAM_FAILURE],
        clBuildProgram(program, 1, &device, c"-w".as_ptr(), None, null_mut())
    );
    let world = World {
        device,
        context,
        queue,
        program,
    };
    let parts: [Part; 8] = [
        buffers,
        maps,
        images,
        pointers,
        events,
        texts,
        recorded::recorded,
        shared::shared,
    ];
    for part in parts.iter().chain(more) {
        let mut objects = Objects::default();
        let _ = part(o, &mut objects, &world);
        // Nothing hangs, whatever has failed.
        let code = call!(clFinish(queue));
        let _ = o.check("clFinish", code, &[]);
    }
    Ok(())
}

/// A buffer of [`COUNT`] numbers.
fn buffer(o: &mut Outcome, objects: &mut Objects, world: &World) -> Result<sys::cl_mem, Stop> {
    Ok(made!(
        o,
        objects,
        MEMORY,
        clReleaseMemObject,
        clCreateBuffer(world.context, sys::CL_MEM_READ_WRITE, BYTES, null_mut())
    ))
}

/// A kernel of the program.
fn kernel(
    o: &mut Outcome,
    objects: &mut Objects,
    world: &World,
    name: &std::ffi::CStr,
) -> Result<sys::cl_kernel, Stop> {
    Ok(made!(
        o,
        objects,
        &[],
        clReleaseKernel,
        clCreateKernel(world.program, name.as_ptr())
    ))
}

/// Launches a kernel and waits for it: its event says whether it failed.
fn launch(o: &mut Outcome, world: &World, kernel: sys::cl_kernel, size: &[usize]) -> Ended {
    let mut objects = Objects::default();
    let mut event = null_mut();
    done!(
        o,
        MEMORY,
        clEnqueueNDRangeKernel(
            world.queue,
            kernel,
            size.len() as u32,
            null(),
            size.as_ptr(),
            null(),
            0,
            null(),
            &mut event
        )
    );
    objects.push(move || {
        call!(clReleaseEvent(event));
    });
    let failed = &[sys::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST];
    done!(o, failed, clWaitForEvents(1, &event));
    let mut ended = 0u64;
    let nothing = &[sys::CL_PROFILING_INFO_NOT_AVAILABLE];
    done!(
        o,
        nothing,
        clGetEventProfilingInfo(
            event,
            sys::CL_PROFILING_COMMAND_END,
            8,
            (&raw mut ended).cast(),
            null_mut()
        )
    );
    Ok(())
}

fn set<T>(o: &mut Outcome, kernel: sys::cl_kernel, at: u32, value: &T) -> Ended {
    let value = (&raw const *value).cast::<c_void>();
    done!(o, &[], clSetKernelArg(kernel, at, size_of::<T>(), value));
    Ok(())
}

/// Writes, launches, copies, fills and reads, with the numbers compared.
fn buffers(o: &mut Outcome, objects: &mut Objects, world: &World) -> Ended {
    let queue = world.queue;
    let (first, second) = (buffer(o, objects, world)?, buffer(o, objects, world)?);
    let add = kernel(o, objects, world, c"add")?;
    let data: Vec<i32> = (0..COUNT as i32).collect();
    done!(
        o,
        MEMORY,
        clEnqueueWriteBuffer(
            queue,
            first,
            1,
            0,
            BYTES,
            data.as_ptr().cast(),
            0,
            null(),
            null_mut()
        )
    );
    set(o, add, 0, &first)?;
    set(o, add, 1, &5i32)?;
    launch(o, world, add, &[COUNT])?;
    // Its event is held when the next command comes.
    let mut copied = null_mut();
    done!(
        o,
        MEMORY,
        clEnqueueCopyBuffer(queue, first, second, 0, 0, BYTES, 0, null(), &mut copied)
    );
    objects.push(move || {
        call!(clReleaseEvent(copied));
    });
    let pattern = 7i32;
    done!(
        o,
        MEMORY,
        clEnqueueFillBuffer(
            queue,
            second,
            (&raw const pattern).cast(),
            4,
            0,
            64,
            0,
            null(),
            null_mut()
        )
    );
    let failed = &[sys::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST];
    done!(o, failed, clWaitForEvents(1, &copied));
    let mut back = vec![0i32; COUNT];
    let before = o.errors.len();
    done!(
        o,
        MEMORY,
        clEnqueueReadBuffer(
            queue,
            second,
            1,
            0,
            BYTES,
            back.as_mut_ptr().cast(),
            0,
            null(),
            null_mut()
        )
    );
    done!(o, &[], clFinish(queue));
    let mut right = back.iter().zip(0i32..);
    let right = right.all(|(&got, at)| got == if at < 16 { 7 } else { at + 5 });
    o.expect(
        right || o.errors.len() > before,
        "wrong numbers without an error",
    );
    Ok(())
}

/// Maps for writing and reading.
fn maps(o: &mut Outcome, objects: &mut Objects, world: &World) -> Ended {
    let queue = world.queue;
    let object = buffer(o, objects, world)?;
    let failures = &[sys::CL_MEM_OBJECT_ALLOCATION_FAILURE, sys::CL_MAP_FAILURE];
    for (flags, value) in [(sys::CL_MAP_WRITE, 3i32), (sys::CL_MAP_READ, 0)] {
        let mut code = 1;
        let place = call!(clEnqueueMapBuffer(
            queue,
            object,
            1,
            flags,
            0,
            BYTES,
            0,
            null(),
            null_mut(),
            &mut code
        ));
        o.check("clEnqueueMapBuffer", code, failures)?;
        // SAFETY: the map is that long, and until it ends this program's.
        let mapped = unsafe { std::slice::from_raw_parts_mut(place.cast::<i32>(), COUNT) };
        if value != 0 {
            mapped.fill(value);
        } else {
            o.expect(mapped.iter().all(|one| *one == 3), "wrong numbers in a map");
        }
        done!(
            o,
            MEMORY,
            clEnqueueUnmapMemObject(queue, object, place, 0, null(), null_mut())
        );
    }
    Ok(())
}

/// An image that is written, sampled and read.
fn images(o: &mut Outcome, objects: &mut Objects, world: &World) -> Ended {
    let format = sys::cl_image_format {
        image_channel_order: sys::CL_RGBA,
        image_channel_data_type: sys::CL_UNORM_INT8,
    };
    // SAFETY: a structure of numbers and pointers, for which zeros are valid.
    let mut desc: sys::cl_image_desc = unsafe { std::mem::zeroed() };
    desc.image_type = sys::CL_MEM_OBJECT_IMAGE2D;
    (desc.image_width, desc.image_height) = (8, 8);
    let image = made!(
        o,
        objects,
        MEMORY,
        clReleaseMemObject,
        clCreateImage(
            world.context,
            sys::CL_MEM_READ_WRITE,
            &format,
            &desc,
            null_mut()
        )
    );
    let sampler = made!(
        o,
        objects,
        &[],
        clReleaseSampler,
        clCreateSampler(
            world.context,
            0,
            sys::CL_ADDRESS_CLAMP_TO_EDGE,
            sys::CL_FILTER_NEAREST
        )
    );
    let out = buffer(o, objects, world)?;
    let look = kernel(o, objects, world, c"look")?;
    let (origin, region, texels) = ([0usize; 3], [8usize, 8, 1], [255u8; 256]);
    done!(
        o,
        MEMORY,
        clEnqueueWriteImage(
            world.queue,
            image,
            1,
            origin.as_ptr(),
            region.as_ptr(),
            0,
            0,
            texels.as_ptr().cast(),
            0,
            null(),
            null_mut()
        )
    );
    set(o, look, 0, &image)?;
    set(o, look, 1, &sampler)?;
    set(o, look, 2, &out)?;
    launch(o, world, look, &[8, 8])?;
    let mut seen = [0f32; 256];
    done!(
        o,
        MEMORY,
        clEnqueueReadBuffer(
            world.queue,
            out,
            1,
            0,
            1024,
            seen.as_mut_ptr().cast(),
            0,
            null(),
            null_mut()
        )
    );
    o.expect(
        seen.iter().all(|one| *one == 1.0),
        "wrong texels in a kernel",
    );
    let mut back = [0u8; 256];
    done!(
        o,
        MEMORY,
        clEnqueueReadImage(
            world.queue,
            image,
            1,
            origin.as_ptr(),
            region.as_ptr(),
            0,
            0,
            back.as_mut_ptr().cast(),
            0,
            null(),
            null_mut()
        )
    );
    o.expect(back == texels, "wrong texels");
    Ok(())
}

/// Shared virtual memory.
fn pointers(o: &mut Outcome, objects: &mut Objects, world: &World) -> Ended {
    let context = world.context;
    let memory = call!(clSVMAlloc(context, sys::CL_MEM_READ_WRITE, BYTES, 0));
    if memory.is_null() {
        o.errors.push("clSVMAlloc NULL".to_owned());
        return Err(Stop);
    }
    let (queue, address) = (world.queue as usize, memory as usize);
    let owner = context as usize;
    objects.push(move || {
        call!(clFinish(queue as sys::cl_command_queue));
        call!(clSVMFree(owner as sys::cl_context, address as *mut c_void));
    });
    let data = vec![2i32; COUNT];
    done!(
        o,
        MEMORY,
        clEnqueueSVMMemcpy(
            world.queue,
            1,
            memory,
            data.as_ptr().cast(),
            BYTES,
            0,
            null(),
            null_mut()
        )
    );
    let add = kernel(o, objects, world, c"add")?;
    done!(o, &[], clSetKernelArgSVMPointer(add, 0, memory));
    set(o, add, 1, &5i32)?;
    launch(o, world, add, &[COUNT])?;
    let flags = sys::CL_MAP_READ;
    done!(
        o,
        MEMORY,
        clEnqueueSVMMap(world.queue, 1, flags, memory, BYTES, 0, null(), null_mut())
    );
    // SAFETY: mapped, and that long.
    let mapped = unsafe { std::slice::from_raw_parts(memory.cast::<i32>(), COUNT) };
    o.expect(
        mapped.iter().all(|one| *one == 7),
        "wrong numbers in shared memory",
    );
    done!(
        o,
        MEMORY,
        clEnqueueSVMUnmap(world.queue, memory, 0, null(), null_mut())
    );
    Ok(())
}

/// A thread waits for a command that waits for the host.
fn events(o: &mut Outcome, objects: &mut Objects, world: &World) -> Ended {
    let gate = made!(
        o,
        objects,
        &[],
        clReleaseEvent,
        clCreateUserEvent(world.context)
    );
    let object = buffer(o, objects, world)?;
    let (pattern, mut event) = (1i32, null_mut());
    let filled = call!(clEnqueueFillBuffer(
        world.queue,
        object,
        (&raw const pattern).cast(),
        4,
        0,
        BYTES,
        1,
        &gate,
        &mut event
    ));
    if let Err(stop) = o.check("clEnqueueFillBuffer", filled, MEMORY) {
        call!(clSetUserEventStatus(gate, 0));
        return Err(stop);
    }
    objects.push(move || {
        call!(clReleaseEvent(event));
    });
    let address = event as usize;
    let waiter = std::thread::spawn(move || {
        let event = address as sys::cl_event;
        call!(clWaitForEvents(1, &event))
    });
    let flushed = call!(clFlush(world.queue));
    let opened = call!(clSetUserEventStatus(gate, 0));
    let woken = waiter.join().unwrap_or(i32::MIN);
    o.check("clFlush", flushed, &[])?;
    o.check("clSetUserEventStatus", opened, &[])?;
    let failed = &[sys::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST];
    o.check("clWaitForEvents", woken, failed)?;
    Ok(())
}

/// printf.
fn texts(o: &mut Outcome, objects: &mut Objects, world: &World) -> Ended {
    let say = kernel(o, objects, world, c"say")?;
    set(o, say, 0, &4i32)?;
    launch(o, world, say, &[2])
}

/// A function of an extension: its type in the headers is optional.
fn extension<F: Copy>(world: &World, name: &std::ffi::CStr) -> Result<F, Stop> {
    let mut platform = null_mut::<c_void>();
    let size = size_of::<*mut c_void>();
    let place = (&raw mut platform).cast();
    let param = sys::CL_DEVICE_PLATFORM;
    call!(clGetDeviceInfo(
        world.device,
        param,
        size,
        place,
        null_mut()
    ));
    let address = call!(clGetExtensionFunctionAddressForPlatform(
        platform,
        name.as_ptr()
    ));
    if address.is_null() || size_of::<F>() != size {
        return Err(Stop);
    }
    // SAFETY: the driver declares its functions as the headers do, and a pointer to a function that may be none is a pointer.
    Ok(unsafe { (&raw const address).cast::<F>().read() })
}

/// A call of such a function.
macro_rules! extended {
    ($function:expr, ($($arg:expr),*)) => {{
        let function = $function.ok_or(Stop)?;
        // SAFETY: all handles live, and pointers are to what the calls ask for.
        unsafe { function($($arg),*) }
    }};
}

mod programs;
mod recorded;
mod shared;
