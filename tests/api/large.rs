//! Memory beyond one Vulkan allocation, and its end. Ignored: they want a graphics card with memory to themselves.

use pumice_tests::sys::*;
use pumice_tests::{call, code_name, info_value, ok, Buffer, Setup};
use std::ptr::{null, null_mut};

const GIB: u64 = 1 << 30;

fn graphics_card(setup: &Setup) -> bool {
    info_value!(u64, clGetDeviceInfo(setup.device), CL_DEVICE_TYPE) == CL_DEVICE_TYPE_GPU
}

fn create(setup: &Setup, size: u64) -> Result<Buffer, i32> {
    let mut code = 1;
    let flags = CL_MEM_READ_WRITE;
    let size = usize::try_from(size).expect("64 bits");
    let made = call!(clCreateBuffer(
        setup.context.0,
        flags,
        size,
        null_mut(),
        &mut code
    ));
    if code == 0 {
        Ok(Buffer(made))
    } else {
        assert!(made.is_null());
        Err(code)
    }
}

/// Returns what the kernel writes to word `n`.
fn word(n: u64) -> u64 {
    (n ^ n >> 17).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Every word of one buffer of 64 GiB, or of three quarters of the device's memory where there is less.
#[test]
#[ignore]
fn one_large_buffer() {
    let setup = Setup::new();
    if !graphics_card(&setup) {
        return pumice_tests::left_out("not a graphics card");
    }
    let most = info_value!(
        u64,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_MAX_MEM_ALLOC_SIZE
    );
    let size = (64 * GIB).min(most / 4 * 3) / GIB * GIB;
    println!(
        "largest buffer {} GiB, this one {} GiB",
        most / GIB,
        size / GIB
    );
    assert!(size >= GIB);
    let buffer = create(&setup, size).unwrap_or_else(|code| panic!("{}", code_name(code)));
    let kernel = setup.kernel_of(
        "kernel void fill(global ulong *p)
         {
             size_t first = get_global_id(0) * (size_t)16;
             for (size_t n = first; n < first + 16; ++n)
                 p[n] = (n ^ n >> 17) * 0x9e3779b97f4a7c15UL;
         }",
        "fill",
    );
    kernel.set_buffer(0, &buffer);
    let began = std::time::Instant::now();
    setup.run(&kernel, &[(size / 128) as usize], Some(&[256]));
    println!("written in {:.3} s", began.elapsed().as_secs_f64());
    let began = std::time::Instant::now();
    let chunk = GIB as usize / 8;
    let mut words = vec![0u64; chunk];
    for first in (0..size / 8).step_by(chunk) {
        let place = words.as_mut_ptr().cast();
        let offset = first as usize * 8;
        ok!(clEnqueueReadBuffer(
            setup.queue.0,
            buffer.0,
            CL_TRUE,
            offset,
            chunk * 8,
            place,
            0,
            null(),
            null_mut()
        ));
        let part = chunk / 16;
        std::thread::scope(|threads| {
            for (index, words) in words.chunks(part).enumerate() {
                threads.spawn(move || {
                    let first = first + (index * part) as u64;
                    let wrong = (first..).zip(words).find(|(n, found)| word(*n) != **found);
                    assert_eq!(wrong, None);
                });
            }
        });
    }
    println!(
        "read and compared in {:.3} s",
        began.elapsed().as_secs_f64()
    );
}

/// More than there is: the last allocation fails with the right code, everything before stays usable, and what is
/// freed can be had again.
#[test]
#[ignore]
fn memory_runs_out() {
    let setup = Setup::new();
    if !graphics_card(&setup) {
        return pumice_tests::left_out("not a graphics card");
    }
    let all = info_value!(
        u64,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_GLOBAL_MEM_SIZE
    );
    let most = info_value!(
        u64,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_MAX_MEM_ALLOC_SIZE
    );
    let each = (6 * GIB).min(most);
    for _ in 0..2 {
        let mut buffers = Vec::new();
        let code = loop {
            match create(&setup, each) {
                Ok(buffer) => buffers.push(buffer),
                Err(code) => break code,
            }
            assert!(buffers.len() as u64 * each <= all, "more than there is");
        };
        println!(
            "{} buffers of {} MiB, then {}",
            buffers.len(),
            each >> 20,
            code_name(code)
        );
        assert_eq!(code, CL_MEM_OBJECT_ALLOCATION_FAILURE);
        assert!(buffers.len() as u64 * each > all / 2);
        for (value, buffer) in (1u32..).zip(&buffers) {
            let pattern = (&raw const value).cast();
            let queue = setup.queue.0;
            let size = each as usize;
            ok!(clEnqueueFillBuffer(
                queue,
                buffer.0,
                pattern,
                4,
                0,
                size,
                0,
                null(),
                null_mut()
            ));
        }
        ok!(clFinish(setup.queue.0));
        for (value, buffer) in (1u32..).zip(&buffers) {
            assert_eq!(setup.read::<u32>(buffer, 1000), [value; 1000]);
        }
    }
}

/// Coarse-grained shared virtual memory above one allocation of Vulkan, mapped in part.
#[test]
#[ignore]
fn large_shared_virtual_memory() {
    let setup = Setup::new();
    if !graphics_card(&setup)
        || info_value!(
            u64,
            clGetDeviceInfo(setup.device),
            CL_DEVICE_SVM_CAPABILITIES
        ) == 0
    {
        return pumice_tests::left_out("no shared virtual memory");
    }
    let size = (6 * GIB) as usize;
    let pointer = call!(clSVMAlloc(setup.context.0, 0, size, 0));
    assert!(!pointer.is_null());
    let kernel = setup.kernel_of(
        "kernel void fill(global uint *p) { p[get_global_id(0)] = get_global_id(0) * 3; }",
        "fill",
    );
    ok!(clSetKernelArgSVMPointer(kernel.0, 0, pointer));
    setup.run(&kernel, &[size / 4], None);
    let queue = setup.queue.0;
    for offset in [0, size / 2 - 4096, size - (1 << 20)] {
        let place = pointer.wrapping_byte_add(offset);
        ok!(clEnqueueSVMMap(
            queue,
            CL_TRUE,
            CL_MAP_READ,
            place,
            1 << 20,
            0,
            null(),
            null_mut()
        ));
        // SAFETY: mapped.
        let words = unsafe { std::slice::from_raw_parts(place.cast::<u32>(), 1 << 18) };
        let first = (offset / 4) as u32;
        assert!((first..)
            .zip(words)
            .all(|(n, word)| *word == n.wrapping_mul(3)));
        ok!(clEnqueueSVMUnmap(queue, place, 0, null(), null_mut()));
    }
    ok!(clFinish(queue));
    call!(clSVMFree(setup.context.0, pointer));
}
