//! Buffers: creation, queries, sub-buffers, migration.

mod maps;
mod transfers;

use pumice_tests::sys::*;
use pumice_tests::{create, create_fails, fails, info, info_value, ok, user_data, Buffer, Setup};
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

/// A small generator of numbers that look random.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % below
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next(256) as u8).collect()
    }
}

fn bytes_ptr(data: &[u8]) -> *const c_void {
    data.as_ptr().cast()
}

#[test]
fn queries() {
    let setup = Setup::new();
    let mut host = vec![0u8; 8192];
    let flags = CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR | CL_MEM_HOST_READ_ONLY;
    let place = host.as_mut_ptr().cast();
    let buffer = Buffer(create!(clCreateBuffer(setup.context.0, flags, 8192, place)));
    let mem = buffer.0;
    assert_eq!(
        info_value!(u32, clGetMemObjectInfo(mem), CL_MEM_TYPE),
        CL_MEM_OBJECT_BUFFER
    );
    assert_eq!(
        info_value!(u64, clGetMemObjectInfo(mem), CL_MEM_FLAGS),
        flags
    );
    assert_eq!(
        info_value!(usize, clGetMemObjectInfo(mem), CL_MEM_SIZE),
        8192
    );
    assert_eq!(
        info_value!(usize, clGetMemObjectInfo(mem), CL_MEM_HOST_PTR),
        place as usize
    );
    assert_eq!(
        info_value!(u32, clGetMemObjectInfo(mem), CL_MEM_MAP_COUNT),
        0
    );
    assert_eq!(
        info_value!(u32, clGetMemObjectInfo(mem), CL_MEM_REFERENCE_COUNT),
        1
    );
    let context = setup.context.0 as usize;
    assert_eq!(
        info_value!(usize, clGetMemObjectInfo(mem), CL_MEM_CONTEXT),
        context
    );
    assert_eq!(
        info_value!(usize, clGetMemObjectInfo(mem), CL_MEM_ASSOCIATED_MEMOBJECT),
        0
    );
    assert_eq!(
        info_value!(usize, clGetMemObjectInfo(mem), CL_MEM_OFFSET),
        0
    );
    assert_eq!(
        info_value!(u32, clGetMemObjectInfo(mem), CL_MEM_USES_SVM_POINTER),
        0
    );
    assert!(info!(clGetMemObjectInfo(mem), CL_MEM_PROPERTIES).is_empty());
    fails!(
        CL_INVALID_VALUE,
        clGetMemObjectInfo(mem, 0x1234, 0, null_mut(), null_mut())
    );
    let properties = [0u64];
    let with = Buffer(create!(clCreateBufferWithProperties(
        setup.context.0,
        properties.as_ptr(),
        0,
        64,
        null_mut()
    )));
    // No access flag means read-write.
    assert_eq!(
        info_value!(u64, clGetMemObjectInfo(with.0), CL_MEM_FLAGS),
        CL_MEM_READ_WRITE
    );
    assert_eq!(
        info_value!([u64; 1], clGetMemObjectInfo(with.0), CL_MEM_PROPERTIES),
        [0]
    );
    assert_eq!(
        info_value!(usize, clGetMemObjectInfo(with.0), CL_MEM_HOST_PTR),
        0
    );
}

#[test]
fn wrong_creation() {
    let setup = Setup::new();
    let context = setup.context.0;
    let mut host = [0u8; 64];
    let place: *mut c_void = host.as_mut_ptr().cast();
    let nowhere = null_mut();
    create_fails!(
        CL_INVALID_BUFFER_SIZE,
        clCreateBuffer(context, CL_MEM_READ_WRITE, 0, nowhere)
    );
    let most = info_value!(
        u64,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_MAX_MEM_ALLOC_SIZE
    );
    let more = most as usize + 1;
    create_fails!(
        CL_INVALID_BUFFER_SIZE,
        clCreateBuffer(context, CL_MEM_READ_WRITE, more, nowhere)
    );
    create_fails!(
        CL_INVALID_BUFFER_SIZE,
        clCreateBuffer(context, 0, usize::MAX, nowhere)
    );
    for flags in [
        1 << 40,
        CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY,
        CL_MEM_READ_WRITE | CL_MEM_READ_ONLY,
        CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY,
        CL_MEM_HOST_NO_ACCESS | CL_MEM_HOST_WRITE_ONLY,
    ] {
        create_fails!(
            CL_INVALID_VALUE,
            clCreateBuffer(context, flags, 64, nowhere)
        );
    }
    let both = CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR;
    create_fails!(CL_INVALID_VALUE, clCreateBuffer(context, both, 64, place));
    let both = CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR;
    create_fails!(CL_INVALID_VALUE, clCreateBuffer(context, both, 64, place));
    create_fails!(
        CL_INVALID_HOST_PTR,
        clCreateBuffer(context, CL_MEM_READ_WRITE, 64, place)
    );
    create_fails!(
        CL_INVALID_HOST_PTR,
        clCreateBuffer(context, CL_MEM_USE_HOST_PTR, 64, nowhere)
    );
    create_fails!(
        CL_INVALID_HOST_PTR,
        clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, 64, nowhere)
    );
    let unknown = [0x7777u64, 1, 0];
    create_fails!(
        CL_INVALID_PROPERTY,
        clCreateBufferWithProperties(context, unknown.as_ptr(), 0, 64, nowhere)
    );
}

#[test]
fn host_access_flags() {
    let setup = Setup::new();
    let queue = setup.queue.0;
    let mut word = 0u32;
    let place: *mut c_void = (&raw mut word).cast();
    let none = null_mut();
    let make = |flags| {
        Buffer(create!(clCreateBuffer(
            setup.context.0,
            flags,
            64,
            null_mut()
        )))
    };
    for (flags, may_read, may_write) in [
        (CL_MEM_HOST_READ_ONLY, true, false),
        (CL_MEM_HOST_WRITE_ONLY, false, true),
        (CL_MEM_HOST_NO_ACCESS, false, false),
    ] {
        let buffer = make(flags);
        let expect = |may| {
            if may {
                CL_SUCCESS
            } else {
                CL_INVALID_OPERATION
            }
        };
        let read = pumice_tests::call!(clEnqueueReadBuffer(
            queue,
            buffer.0,
            1,
            0,
            4,
            place,
            0,
            null(),
            none
        ));
        assert_eq!(read, expect(may_read));
        let write = pumice_tests::call!(clEnqueueWriteBuffer(
            queue,
            buffer.0,
            1,
            0,
            4,
            place,
            0,
            null(),
            none
        ));
        assert_eq!(write, expect(may_write));
        for (map, may) in [(CL_MAP_READ, may_read), (CL_MAP_WRITE, may_write)] {
            let mut code = 1;
            let pointer = pumice_tests::call!(clEnqueueMapBuffer(
                queue,
                buffer.0,
                1,
                map,
                0,
                4,
                0,
                null(),
                none,
                &mut code
            ));
            assert_eq!(code, expect(may));
            if may {
                ok!(clEnqueueUnmapMemObject(
                    queue,
                    buffer.0,
                    pointer,
                    0,
                    null(),
                    none
                ));
            }
        }
    }
}

#[test]
fn sub_buffers() {
    let setup = Setup::new();
    let align = info_value!(
        u32,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_MEM_BASE_ADDR_ALIGN
    ) as usize
        / 8;
    let size = align * 4;
    let buffer = setup.buffer_of(&vec![1u8; size]);
    let kind = CL_BUFFER_CREATE_TYPE_REGION;
    let region = cl_buffer_region {
        origin: align,
        size: align,
    };
    let region: *const c_void = (&raw const region).cast();
    let sub = Buffer(create!(clCreateSubBuffer(buffer.0, 0, kind, region)));
    assert_eq!(
        info_value!(usize, clGetMemObjectInfo(sub.0), CL_MEM_OFFSET),
        align
    );
    assert_eq!(
        info_value!(usize, clGetMemObjectInfo(sub.0), CL_MEM_SIZE),
        align
    );
    assert_eq!(
        info_value!(
            usize,
            clGetMemObjectInfo(sub.0),
            CL_MEM_ASSOCIATED_MEMOBJECT
        ),
        buffer.0 as usize
    );
    // It is a window on the same memory.
    setup.write(&sub, &vec![2u8; align]);
    let kernel = setup.kernel_of(
        "kernel void up(global uchar *p) { p[get_global_id(0)] += 5; }",
        "up",
    );
    kernel.set_buffer(0, &sub);
    setup.run(&kernel, &[align], None);
    let mut expected = vec![1u8; size];
    expected[align..2 * align].fill(7);
    assert!(setup.read::<u8>(&buffer, size) == expected);
    // Wrong ones.
    let wrong = |flags, origin, size| {
        let region = cl_buffer_region { origin, size };
        let mut code = 0;
        pumice_tests::call!(clCreateSubBuffer(
            buffer.0,
            flags,
            kind,
            (&raw const region).cast(),
            &mut code
        ));
        code
    };
    assert_eq!(wrong(0, 0, 0), CL_INVALID_BUFFER_SIZE);
    assert_eq!(wrong(0, size, 1), CL_INVALID_VALUE);
    assert_eq!(wrong(0, usize::MAX, 2), CL_INVALID_VALUE);
    assert_eq!(wrong(0, 1, 8), CL_MISALIGNED_SUB_BUFFER_OFFSET);
    assert_eq!(wrong(CL_MEM_USE_HOST_PTR, 0, 8), CL_INVALID_VALUE);
    create_fails!(
        CL_INVALID_VALUE,
        clCreateSubBuffer(buffer.0, 0, kind, null())
    );
    create_fails!(
        CL_INVALID_VALUE,
        clCreateSubBuffer(buffer.0, 0, 0x7777, region)
    );
    create_fails!(
        CL_INVALID_MEM_OBJECT,
        clCreateSubBuffer(sub.0, 0, kind, region)
    );
    let read_only = Buffer(create!(clCreateBuffer(
        setup.context.0,
        CL_MEM_READ_ONLY,
        size,
        null_mut()
    )));
    create_fails!(
        CL_INVALID_VALUE,
        clCreateSubBuffer(read_only.0, CL_MEM_READ_WRITE, kind, region)
    );
    // Flags are inherited.
    let inherited = Buffer(create!(clCreateSubBuffer(read_only.0, 0, kind, region)));
    assert_eq!(
        info_value!(u64, clGetMemObjectInfo(inherited.0), CL_MEM_FLAGS),
        CL_MEM_READ_ONLY
    );
}

static DESTROYED: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn destroyed(_mem: cl_mem, user_data: *mut c_void) {
    let place = user_data as u32;
    let _ = DESTROYED.compare_exchange(2 - place, 3 - place, Ordering::SeqCst, Ordering::SeqCst);
}

#[test]
fn destructor_callbacks_run_last_registered_first() {
    let setup = Setup::new();
    let buffer = setup.buffer(1 << 20);
    ok!(clSetMemObjectDestructorCallback(
        buffer.0,
        Some(destroyed),
        user_data(1)
    ));
    ok!(clSetMemObjectDestructorCallback(
        buffer.0,
        Some(destroyed),
        user_data(2)
    ));
    fails!(
        CL_INVALID_VALUE,
        clSetMemObjectDestructorCallback(buffer.0, None, null_mut())
    );
    let value = 0u32;
    ok!(clEnqueueFillBuffer(
        setup.queue.0,
        buffer.0,
        (&raw const value).cast(),
        4,
        0,
        1 << 20,
        0,
        null(),
        null_mut()
    ));
    drop(buffer);
    ok!(clFinish(setup.queue.0));
    for _ in 0..1000 {
        if DESTROYED.load(Ordering::SeqCst) == 2 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    panic!("the callbacks did not run");
}

#[test]
fn migration() {
    let setup = Setup::new();
    let queue = setup.queue.0;
    let buffer = setup.buffer_of(&[3u32; 64]);
    for flags in [0, CL_MIGRATE_MEM_OBJECT_HOST] {
        ok!(clEnqueueMigrateMemObjects(
            queue,
            1,
            &buffer.0,
            flags,
            0,
            null(),
            null_mut()
        ));
    }
    assert_eq!(setup.read::<u32>(&buffer, 64), vec![3; 64]);
    fails!(
        CL_INVALID_VALUE,
        clEnqueueMigrateMemObjects(queue, 0, null(), 0, 0, null(), null_mut())
    );
    fails!(
        CL_INVALID_VALUE,
        clEnqueueMigrateMemObjects(queue, 1, &buffer.0, 1 << 30, 0, null(), null_mut())
    );
}
