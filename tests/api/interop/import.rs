//! cl_arm_import_memory: memory of the host in place, DMA buffers whose descriptors stay the application's.

use super::*;

const TYPE: cl_import_properties_arm = CL_IMPORT_TYPE_ARM;

fn import(
    setup: &Setup,
    flags: cl_mem_flags,
    properties: &[cl_import_properties_arm],
    memory: *mut c_void,
    size: usize,
) -> Result<Buffer, cl_int> {
    let list = match properties {
        [] => null(),
        some => some.as_ptr(),
    };
    let mut code = 1;
    let made = ext!(
        setup,
        clImportMemoryARM: clImportMemoryARM_t(
            setup.context.0, flags, list, memory, size, &mut code
        )
    );
    memory_object(made, code)
}

/// Pages of the host.
struct Pages(*mut u8, usize);

impl Pages {
    fn new(size: usize) -> Self {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: new pages.
        let place = unsafe { libc::mmap(null_mut(), size, access, flags, -1, 0) };
        assert_ne!(place, libc::MAP_FAILED);
        Self(place.cast(), size)
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: mapped as long as this lives; the device does nothing meanwhile.
        unsafe { std::slice::from_raw_parts_mut(self.0, self.1) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: nothing uses them any more.
        unsafe { libc::munmap(self.0.cast(), self.1) };
    }
}

/// The device works on the memory itself.
#[test]
fn memory_of_the_host() {
    let setup = Setup::new();
    if !setup.has_extension("cl_arm_import_memory_host") {
        return left_out("the device imports no memory of the host");
    }
    for properties in [&[][..], &[TYPE, CL_IMPORT_TYPE_HOST_ARM, 0]] {
        let mut pages = Pages::new(SIZE);
        pages.bytes().copy_from_slice(&pattern(2, SIZE));
        let mem = import(&setup, CL_MEM_READ_WRITE, properties, pages.0.cast(), SIZE);
        let mem = mem.unwrap_or_else(|code| panic!("{}", code_name(code)));
        copy_half(&setup, &mem);
        ok!(clFinish(setup.queue.0));
        assert!(pages.bytes() == buffer_after(2));
        // A kernel, too.
        let kernel = setup.kernel_of(
            "kernel void f(global int *p) { p[get_global_id(0)] = 7; }",
            "f",
        );
        kernel.set_buffer(0, &mem);
        setup.run(&kernel, &[SIZE / 4], None);
        ok!(clFinish(setup.queue.0));
        assert!(pages.bytes().chunks(4).all(|word| word == [7, 0, 0, 0]));
        drop(mem);
    }
}

/// A DMA buffer, whose descriptor is copied.
#[test]
fn dma_buffers() {
    let setup = Setup::new();
    if !setup.has_extension("cl_arm_import_memory_dma_buf") {
        return left_out("the device imports no DMA buffers");
    }
    let list = [TYPE, CL_IMPORT_TYPE_DMA_BUF_ARM, 0];
    let mut closed = memory_file(&[0; 64]);
    let mut small = memory_file(&[0; 64]);
    // SAFETY: ours.
    unsafe { libc::close(closed) };
    let refused = import(&setup, 0, &list, (&raw mut closed).cast(), SIZE).err();
    assert_eq!(refused, Some(CL_INVALID_VALUE));
    let refused = import(&setup, 0, &list, (&raw mut small).cast(), SIZE).err();
    assert_eq!(refused, Some(CL_INVALID_VALUE));
    // SAFETY: ours still.
    assert_eq!(unsafe { libc::close(small) }, 0);
    let kind = pumice_tests::info_value!(u64, clGetDeviceInfo(setup.device), CL_DEVICE_TYPE);
    if kind != CL_DEVICE_TYPE_CPU {
        return left_out("a DMA buffer is more than a file in memory there");
    }
    let mut fd = memory_file(&pattern(4, SIZE));
    let mem = import(&setup, 0, &list, (&raw mut fd).cast(), SIZE).expect("a buffer");
    work_on_buffer(&setup, &mem);
    ok!(clFinish(setup.queue.0));
    assert!(bytes_of(fd, SIZE) == buffer_after(4));
    drop(mem);
    // SAFETY: ours still.
    assert_eq!(unsafe { libc::close(fd) }, 0);
}

/// The errors.
#[test]
fn errors() {
    let setup = Setup::new();
    if !setup.has_extension("cl_arm_import_memory_host") {
        return left_out("the device imports no memory of the host");
    }
    let pages = Pages::new(8192);
    let place = pages.0.cast();
    let host = [TYPE, CL_IMPORT_TYPE_HOST_ARM, 0];
    for (flags, properties, memory, size, code) in [
        (0, &host[..], null_mut(), 4096, CL_INVALID_VALUE),
        (0, &host, place, 0, CL_INVALID_BUFFER_SIZE),
        (1 << 40, &host, place, 4096, CL_INVALID_VALUE),
        (CL_MEM_USE_HOST_PTR, &host, place, 4096, CL_INVALID_VALUE),
        (CL_MEM_COPY_HOST_PTR, &host, place, 4096, CL_INVALID_VALUE),
        (0, &[TYPE, 7, 0], place, 4096, CL_INVALID_PROPERTY),
        (0, &[7, 7, 0], place, 4096, CL_INVALID_PROPERTY),
        (
            0,
            &[TYPE, CL_IMPORT_TYPE_PROTECTED_ARM, 0],
            place,
            4096,
            CL_INVALID_PROPERTY,
        ),
    ] {
        let found = import(&setup, flags, properties, memory, size).err();
        assert_eq!(found, Some(code), "{flags:x} {properties:x?} {size}");
    }
    let mut code = 0;
    let made = ext!(
        setup,
        clImportMemoryARM: clImportMemoryARM_t(null_mut(), 0, null(), place, 4096, &mut code)
    );
    assert!(made.is_null());
    assert_eq!(code, CL_INVALID_CONTEXT);
}
