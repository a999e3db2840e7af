//! The memories of a program that runs.

use crate::contents::initial;
use crate::program::{BufferKind, Kind, Memory, Program, Side, Usm};
use crate::world::World;
use pumice_tests::sys::*;
use pumice_tests::{call, create, ext, ok};
use std::alloc::Layout;
use std::ffi::c_void;
use std::ptr::{null, null_mut};

const PAGE: usize = 4096;

/// Memory of the application.
struct Block {
    first: *mut u8,
    layout: Layout,
}

impl Block {
    fn new(size: usize) -> Self {
        let layout = Layout::from_size_align(size, PAGE).expect("a layout");
        // SAFETY: the size is not zero.
        let first = unsafe { std::alloc::alloc_zeroed(layout) };
        assert!(!first.is_null());
        Self { first, layout }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated so, freed once.
        unsafe { std::alloc::dealloc(self.first, self.layout) };
    }
}

extern "C" fn let_go(_: cl_mem, block: *mut c_void) {
    // SAFETY: the box that was given to this callback, which is called once.
    drop(unsafe { Box::from_raw(block.cast::<Block>()) });
}

/// A memory.
pub struct Object {
    /// Its memory objects: the whole, then sub-buffers.
    pub mems: Vec<cl_mem>,
    /// Where its first byte is, of those that have an address.
    pub address: usize,
    kind: Kind,
    /// What clSVMAlloc and the like gave.
    allocation: *mut c_void,
    block: Option<Block>,
}

/// Bytes at an address.
///
/// # Safety
/// They must be readable, and nothing may write them meanwhile.
pub unsafe fn bytes<'a>(address: usize, size: usize) -> &'a [u8] {
    // SAFETY: the caller vouches for it.
    unsafe { std::slice::from_raw_parts(address as *const u8, size) }
}

impl Object {
    /// Memory number `index` of a program, with its initial contents.
    pub fn new(world: &World, program: &Program, index: usize) -> Self {
        let memory = &program.memories[index];
        let contents = initial(program, index);
        let mut object = Self {
            mems: Vec::new(),
            address: 0,
            kind: memory.kind,
            allocation: null_mut(),
            block: None,
        };
        object.allocate(world, memory, &contents);
        object.make_views(world, memory, &contents);
        object.fill(world, memory, &contents);
        object
    }

    fn allocate(&mut self, world: &World, memory: &Memory, contents: &[u8]) {
        let (context, size) = (world.context, memory.size);
        match memory.kind {
            Kind::Plain | Kind::UseHost(_) => {
                let lead = match memory.kind {
                    Kind::UseHost(lead) => lead,
                    _ => 0,
                };
                let block = Block::new(size + lead);
                self.address = block.first as usize + lead;
                // SAFETY: the block has these bytes, and nobody else knows of it.
                unsafe { std::slice::from_raw_parts_mut(self.address as *mut u8, size) }
                    .copy_from_slice(contents);
                self.block = Some(block);
            }
            Kind::Svm { fine } | Kind::SvmBuffer { fine, .. } => {
                let lead = match memory.kind {
                    Kind::SvmBuffer { lead, .. } => lead,
                    _ => 0,
                };
                let flags = match fine {
                    true => CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER,
                    false => CL_MEM_READ_WRITE,
                };
                self.allocation = call!(clSVMAlloc(context, flags, size + lead, 0));
                assert!(!self.allocation.is_null(), "clSVMAlloc");
                self.address = self.allocation as usize + lead;
            }
            Kind::Usm(usm) => {
                let (device, mut code) = (world.devices[0], 1);
                self.allocation = match usm {
                    Usm::Host => ext!(
                        world,
                        clHostMemAllocINTEL: clHostMemAllocINTEL_t(context, null(), size, 0, &mut code)
                    ),
                    Usm::Device => ext!(
                        world,
                        clDeviceMemAllocINTEL: clDeviceMemAllocINTEL_t(
                            context, device, null(), size, 0, &mut code
                        )
                    ),
                    Usm::Shared => ext!(
                        world,
                        clSharedMemAllocINTEL: clSharedMemAllocINTEL_t(
                            context, device, null(), size, 0, &mut code
                        )
                    ),
                };
                assert_eq!(code, 0, "an allocation of unified shared memory");
                self.address = self.allocation as usize;
            }
            Kind::Buffer(_) | Kind::Image(_) => {}
        }
    }

    fn make_views(&mut self, world: &World, memory: &Memory, contents: &[u8]) {
        let (context, size) = (world.context, memory.size);
        let given = contents.as_ptr().cast_mut().cast();
        let (flags, pointer): (_, *mut c_void) = match memory.kind {
            Kind::Buffer(BufferKind::Written) => (CL_MEM_READ_WRITE, null_mut()),
            Kind::Buffer(BufferKind::Copied) => (CL_MEM_COPY_HOST_PTR, given),
            Kind::Buffer(BufferKind::CopiedAlloc) => {
                (CL_MEM_COPY_HOST_PTR | CL_MEM_ALLOC_HOST_PTR, given)
            }
            Kind::UseHost(_) | Kind::SvmBuffer { .. } => {
                (CL_MEM_USE_HOST_PTR, self.address as *mut c_void)
            }
            Kind::Image(row) => {
                let format = cl_image_format {
                    image_channel_order: CL_RGBA,
                    image_channel_data_type: CL_UNSIGNED_INT8,
                };
                let desc = cl_image_desc {
                    image_type: CL_MEM_OBJECT_IMAGE2D,
                    image_width: row / 4,
                    image_height: size / row,
                    image_depth: 0,
                    image_array_size: 0,
                    image_row_pitch: 0,
                    image_slice_pitch: 0,
                    num_mip_levels: 0,
                    num_samples: 0,
                    buffer: null_mut(),
                };
                self.mems.push(create!(clCreateImage(
                    context,
                    CL_MEM_READ_WRITE,
                    &format,
                    &desc,
                    null_mut()
                )));
                return;
            }
            _ => return,
        };
        let whole = create!(clCreateBuffer(context, flags, size, pointer));
        self.mems.push(whole);
        if matches!(memory.kind, Kind::UseHost(_)) {
            let block = self.block.take().map(Box::new).map(Box::into_raw);
            let block = block.unwrap_or(null_mut()).cast();
            ok!(clSetMemObjectDestructorCallback(whole, Some(let_go), block));
        }
        for view in &memory.views[1..] {
            let region = cl_buffer_region {
                origin: view.start,
                size: view.len(),
            };
            self.mems.push(create!(clCreateSubBuffer(
                whole,
                0,
                CL_BUFFER_CREATE_TYPE_REGION,
                (&raw const region).cast()
            )));
        }
    }

    /// The initial contents, where they are not there yet.
    fn fill(&self, world: &World, memory: &Memory, contents: &[u8]) {
        let queue = world.queue;
        let (from, size) = (contents.as_ptr().cast(), contents.len());
        match memory.kind {
            Kind::Buffer(BufferKind::Written) => ok!(clEnqueueWriteBuffer(
                queue,
                self.mems[0],
                CL_TRUE,
                0,
                size,
                from,
                0,
                null(),
                null_mut()
            )),
            Kind::Svm { .. } | Kind::SvmBuffer { .. } => ok!(clEnqueueSVMMemcpy(
                queue,
                CL_TRUE,
                self.address as *mut c_void,
                from,
                size,
                0,
                null(),
                null_mut()
            )),
            Kind::Usm(_) => {
                let to = self.address as *mut c_void;
                let code = ext!(
                    world,
                    clEnqueueMemcpyINTEL: clEnqueueMemcpyINTEL_t(
                        queue, CL_TRUE, to, from, size, 0, null(), null_mut()
                    )
                );
                assert_eq!(code, 0, "clEnqueueMemcpyINTEL");
            }
            Kind::Image(row) => ok!(clEnqueueWriteImage(
                queue,
                self.mems[0],
                CL_TRUE,
                [0; 3].as_ptr(),
                [row / 4, size / row, 1].as_ptr(),
                0,
                0,
                from,
                0,
                null(),
                null_mut()
            )),
            _ => {}
        }
    }

    /// The memory object of a side and the offset of its first byte in that.
    pub fn at(&self, memory: &Memory, side: &Side) -> (cl_mem, usize) {
        let start = memory.views[side.view].start;
        (self.mems[side.view], side.at - start)
    }

    /// Everything it holds. No command is under way, nothing is mapped.
    pub fn read(&self, world: &World, size: usize) -> Vec<u8> {
        let queue = world.queue;
        let mut all = vec![0; size];
        let to = all.as_mut_ptr().cast();
        match self.kind {
            Kind::Buffer(_) | Kind::UseHost(_) => ok!(clEnqueueReadBuffer(
                queue,
                self.mems[0],
                CL_TRUE,
                0,
                size,
                to,
                0,
                null(),
                null_mut()
            )),
            Kind::Image(row) => ok!(clEnqueueReadImage(
                queue,
                self.mems[0],
                CL_TRUE,
                [0; 3].as_ptr(),
                [row / 4, size / row, 1].as_ptr(),
                0,
                0,
                to,
                0,
                null(),
                null_mut()
            )),
            Kind::Usm(Usm::Device) => {
                let from = self.address as *const c_void;
                let code = ext!(
                    world,
                    clEnqueueMemcpyINTEL: clEnqueueMemcpyINTEL_t(
                        queue, CL_TRUE, to, from, size, 0, null(), null_mut()
                    )
                );
                assert_eq!(code, 0, "clEnqueueMemcpyINTEL");
            }
            Kind::Svm { fine: false } | Kind::SvmBuffer { fine: false, .. } => {
                let from = self.address as *mut c_void;
                let (none, list) = (null_mut(), null());
                ok!(clEnqueueSVMMap(
                    queue,
                    CL_TRUE,
                    CL_MAP_READ,
                    from,
                    size,
                    0,
                    list,
                    none
                ));
                // SAFETY: mapped, and no command is under way.
                all.copy_from_slice(unsafe { bytes(self.address, size) });
                ok!(clEnqueueSVMUnmap(queue, from, 0, list, none));
            }
            // SAFETY: the host's, and no command is under way.
            _ => all.copy_from_slice(unsafe { bytes(self.address, size) }),
        }
        all
    }

    /// Releases the memory objects, sub-buffers last.
    pub fn release(&mut self) {
        for mem in self.mems.drain(..) {
            ok!(clReleaseMemObject(mem));
        }
    }

    /// The allocation is freed by a command: its pointer.
    pub fn give_up(&mut self) -> *mut c_void {
        std::mem::replace(&mut self.allocation, null_mut())
    }

    /// Ends it. No command uses it.
    pub fn end(mut self, world: &World) {
        self.release();
        match self.kind {
            _ if self.allocation.is_null() => {}
            Kind::Usm(_) => {
                let (context, pointer) = (world.context, self.allocation);
                let code = ext!(world, clMemFreeINTEL: clMemFreeINTEL_t(context, pointer));
                assert_eq!(code, 0, "clMemFreeINTEL");
            }
            _ => call!(clSVMFree(world.context, self.allocation)),
        }
    }
}
