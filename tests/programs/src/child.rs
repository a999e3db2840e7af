//! The process that runs cases: one line of numbers for each, then its text; an answer of one line. A process of its own,
//! because a driver that crashes or hangs is a finding.

use crate::ast::ImageData;
use crate::case::{hex, Case, CaseArg};
use crate::types::Scalar;
use pumice_tests::sys::*;
use pumice_tests::{call, code_name, create, info, ok, Buffer, Queue, Setup};
use std::fs::File;
use std::io::{BufRead, Read, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::{null, null_mut};
use std::time::Instant;

/// The argument that makes the process one.
pub const ARGUMENT: &str = "--child";

/// A file that receives the output of printf.
struct Printed(File);

impl Printed {
    /// From now on. Gives what was the standard output.
    fn new() -> std::io::Result<(Self, File)> {
        // SAFETY: plain system calls; each descriptor has one owner.
        unsafe {
            let answers = libc::dup(1);
            let file = libc::memfd_create(c"printed".as_ptr(), 0);
            if answers < 0 || file < 0 || libc::dup2(file, 1) < 0 {
                return Err(std::io::Error::last_os_error());
            }
            Ok((Self(File::from_raw_fd(file)), File::from_raw_fd(answers)))
        }
    }

    /// Returns the lines printed since the last call, sorted.
    fn take(&mut self) -> std::io::Result<Vec<String>> {
        // SAFETY: null stands for all streams.
        unsafe { libc::fflush(null_mut()) };
        let mut text = String::new();
        self.0.rewind()?;
        self.0.read_to_string(&mut text)?;
        // SAFETY: a plain system call on a file that is open.
        unsafe { libc::ftruncate(self.0.as_raw_fd(), 0) };
        self.0.rewind()?;
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        Ok(lines)
    }
}

/// An image with its contents.
fn new_image(setup: &Setup, image: &ImageData) -> Buffer {
    let format = cl_image_format {
        image_channel_order: if image.channels == 4 { CL_RGBA } else { CL_R },
        image_channel_data_type: match image.channel {
            Scalar::Char => CL_SIGNED_INT8,
            Scalar::Uchar => CL_UNSIGNED_INT8,
            Scalar::Short => CL_SIGNED_INT16,
            Scalar::Ushort => CL_UNSIGNED_INT16,
            Scalar::Int => CL_SIGNED_INT32,
            Scalar::Uint => CL_UNSIGNED_INT32,
            _ => CL_FLOAT,
        },
    };
    // SAFETY: a plain structure, for which zeros are values.
    let mut desc: cl_image_desc = unsafe { std::mem::zeroed() };
    desc.image_type = CL_MEM_OBJECT_IMAGE2D;
    desc.image_width = image.width;
    desc.image_height = image.height;
    Buffer(create!(clCreateImage(
        setup.context.0,
        CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
        &format,
        &desc,
        image.bytes.as_ptr().cast_mut().cast()
    )))
}

fn read_image(setup: &Setup, image: &Buffer, size: usize, region: &[usize; 3]) -> Vec<u8> {
    let mut bytes = vec![0u8; size];
    ok!(clEnqueueReadImage(
        setup.queue.0,
        image.0,
        CL_TRUE,
        [0usize; 3].as_ptr(),
        region.as_ptr(),
        0,
        0,
        bytes.as_mut_ptr().cast(),
        0,
        null(),
        null_mut()
    ));
    bytes
}

/// The sizes of sub-groups that the device has.
fn sub_group_sizes(setup: &Setup) -> Vec<usize> {
    /// CL_DEVICE_SUB_GROUP_SIZES_INTEL
    const SIZES: cl_device_info = 0x4108;
    let bytes = info!(clGetDeviceInfo(setup.device), SIZES);
    let word = |word: &[u8]| usize::from_le_bytes(word.try_into().unwrap_or_default());
    bytes.chunks(size_of::<usize>()).map(word).collect()
}

/// Returns true if the device lacks what the program uses: images, doubles, extensions that it enables, its size of
/// sub-groups.
fn lacks(setup: &Setup, case: &Case) -> bool {
    let enabled = |line: &str| {
        let name = line.strip_prefix("#pragma OPENCL EXTENSION ")?;
        name.split(' ').next().map(str::to_owned)
    };
    let mut args = case.args.iter();
    case.source
        .lines()
        .filter_map(enabled)
        .any(|name| !setup.has_extension(&name))
        || case.source.contains("double") && !setup.has_doubles()
        || args.any(|arg| matches!(arg, CaseArg::Image(_))) && !setup.has_images()
        || case.sub_group_size > 0 && !sub_group_sizes(setup).contains(&case.sub_group_size)
}

/// Runs a case: the answer, but for what was printed.
fn run(setup: &Setup, case: &Case) -> Result<String, String> {
    let begin = Instant::now();
    if lacks(setup, case) {
        return Ok("skipped".to_owned());
    }
    let program = setup.try_build(&case.source, &case.options)?;
    let kernel = setup.kernel(&program, "k");
    let dims = case.range.dims;
    let [global, local, offset] = [case.range.global, case.range.local, case.range.offset]
        .map(|list| list.map(|number| number as usize));
    let mut sub_group = 0usize;
    if case.sub_groups {
        ok!(clGetKernelSubGroupInfo(
            kernel.0,
            setup.device,
            CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE,
            dims * size_of::<usize>(),
            local.as_ptr().cast(),
            size_of::<usize>(),
            (&raw mut sub_group).cast(),
            null_mut()
        ));
    }
    let mut buffers: Vec<(Buffer, usize, Option<[usize; 3]>)> = Vec::new();
    let mut pipes = Vec::new();
    for (index, arg) in case.args.iter().enumerate() {
        let index = index as cl_uint;
        match arg {
            CaseArg::Buffer(bytes) => {
                let buffer = setup.buffer_of(bytes);
                kernel.set_buffer(index, &buffer);
                buffers.push((buffer, bytes.len(), None));
            }
            CaseArg::Image(image) => {
                let object = new_image(setup, image);
                kernel.set_buffer(index, &object);
                buffers.push((
                    object,
                    image.bytes.len(),
                    Some([image.width, image.height, 1]),
                ));
            }
            CaseArg::Pipe(count) => {
                let pipe = Buffer(create!(clCreatePipe(
                    setup.context.0,
                    CL_MEM_HOST_NO_ACCESS,
                    4,
                    *count as cl_uint,
                    null()
                )));
                let fill = setup.kernel(&program, "fill");
                fill.set_buffer(0, &pipe);
                setup.run(&fill, &[*count], None);
                kernel.set_buffer(index, &pipe);
                pipes.push(pipe);
            }
            CaseArg::Local(size) => _ = kernel.set_local(index, *size),
            CaseArg::Value(bytes) => {
                ok!(clSetKernelArg(
                    kernel.0,
                    index,
                    bytes.len(),
                    bytes.as_ptr().cast()
                ));
            }
        }
    }
    let code = call!(clEnqueueNDRangeKernel(
        setup.queue.0,
        kernel.0,
        dims as cl_uint,
        offset.as_ptr(),
        global.as_ptr(),
        local.as_ptr(),
        0,
        null(),
        null_mut()
    ));
    if code != CL_SUCCESS {
        return Err(format!("clEnqueueNDRangeKernel: {}", code_name(code)));
    }
    let code = call!(clFinish(setup.queue.0));
    if code != CL_SUCCESS {
        return Err(format!("clFinish: {}", code_name(code)));
    }
    let mut answer = format!("done {} {sub_group}", begin.elapsed().as_millis());
    for (buffer, size, region) in &buffers {
        let contents: Vec<u8> = match region {
            None => setup.read(buffer, *size),
            Some(region) => read_image(setup, buffer, *size, region),
        };
        answer.push(' ');
        answer += &hex(contents.into_iter().map(Some));
    }
    Ok(answer)
}

/// Runs what comes until nothing more comes.
pub fn main() -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    let (mut printed, mut answers) = Printed::new().map_err(text)?;
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        default(info);
        // SAFETY: ends the process; objects of OpenCL are left as they are.
        unsafe { libc::_exit(101) };
    }));
    // SAFETY: a plain system call: the process does not outlive the one that reads its answers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let setup = Setup::new();
    let properties: [cl_queue_properties; 5] = [
        cl_queue_properties::from(CL_QUEUE_PROPERTIES),
        CL_QUEUE_ON_DEVICE | CL_QUEUE_ON_DEVICE_DEFAULT | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
        cl_queue_properties::from(CL_QUEUE_SIZE),
        1 << 16,
        0,
    ];
    let _queue = Queue(create!(clCreateCommandQueueWithProperties(
        setup.context.0,
        setup.device,
        properties.as_ptr()
    )));
    let mut input = std::io::stdin().lock();
    let mut line = String::new();
    while input.read_line(&mut line).map_err(text)? > 0 {
        let length = line
            .trim()
            .parse::<usize>()
            .map_err(|error| error.to_string())?;
        let mut bytes = vec![0; length];
        input.read_exact(&mut bytes).map_err(text)?;
        let case = Case::parse(&String::from_utf8_lossy(&bytes)).ok_or("no case")?;
        let answer = match run(&setup, &case) {
            Ok(mut answer) => {
                for line in printed.take().map_err(text)? {
                    answer.push('\t');
                    answer += &line;
                }
                answer
            }
            Err(why) => {
                printed.take().map_err(text)?;
                format!("failed {}", why.replace('\n', " | "))
            }
        };
        writeln!(answers, "{answer}").map_err(text)?;
        line.clear();
    }
    Ok(())
}
