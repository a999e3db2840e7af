//! Memory objects of every kind with their model: the bytes, what is mapped, and who may still be using them.

use crate::graph::Node;
use crate::picture::Picture;
use crate::svm::Allocation;
use crate::world::{lock, World};
use pumice_tests::rng::Rng;
use pumice_tests::sys::*;
use pumice_tests::{create, ok};
use std::alloc::Layout;
use std::ffi::c_void;
use std::ops::Range;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A part of a buffer that is mapped.
pub struct Mapped {
    /// Which map.
    pub id: u64,
    /// The bytes.
    pub range: Range<usize>,
    /// For writing.
    pub write: bool,
    /// Its command, if that will fail: until it has, nobody can know that the map never comes to be, and another that
    /// overlaps it may be refused.
    pub fails: Option<Arc<Node>>,
}

/// A command that may still be using bytes.
pub struct Access {
    /// The bytes.
    pub range: Range<usize>,
    /// Set if it changes them.
    pub write: bool,
    /// The command.
    pub node: Arc<Node>,
}

/// The state that a buffer's lock protects.
pub struct Contents {
    /// The bytes after all that was enqueued.
    pub bytes: Vec<u8>,
    /// The mapped ranges.
    pub mapped: Vec<Mapped>,
    /// The accesses that may still be pending.
    pub log: Vec<Access>,
}

/// A view of a buffer: the buffer itself or a sub-buffer; of an allocation without a buffer: itself, with no handle.
#[derive(Clone, Copy)]
pub struct View {
    /// The handle.
    pub mem: cl_mem,
    /// Where it begins in the buffer.
    pub origin: usize,
    /// Its size.
    pub size: usize,
    /// The address of its first byte, if the memory is shared virtual memory.
    pub address: Option<usize>,
}

/// A buffer with some sub-buffers, and images over it; or an image alone, or an allocation of shared virtual memory.
pub struct Buf {
    size: usize,
    svm: Option<Allocation>,
    views: Vec<View>,
    /// The images.
    pub pictures: Vec<Picture>,
    /// The application's memory (CL_MEM_USE_HOST_PTR), 0: none.
    pub host: usize,
    /// The model.
    pub contents: Mutex<Contents>,
}

// SAFETY: OpenCL handles may be used from every thread.
unsafe impl Send for Buf {}
// SAFETY: as above.
unsafe impl Sync for Buf {}

/// Blocks of host memory that buffers still use, and allocations that a callback has yet to free.
pub static BLOCKS: AtomicUsize = AtomicUsize::new(0);

struct HostBlock(*mut u8, Layout);

extern "C" fn free_host(_: cl_mem, data: *mut c_void) {
    // SAFETY: the box that `Buf::new` has given to this callback, which is called once.
    let block = unsafe { Box::from_raw(data.cast::<HostBlock>()) };
    // SAFETY: allocated there with this layout, and the buffer is gone.
    unsafe { std::alloc::dealloc(block.0, block.1) };
    BLOCKS.fetch_sub(1, Ordering::SeqCst);
}

impl Buf {
    /// A buffer of a random size and kind.
    pub fn new(world: &World, rng: &mut Rng) -> Arc<Self> {
        let size = match rng.below(10) {
            0..=4 => 4096 * (1 + rng.below(8)),
            5..=7 => 1024 * (1 + rng.below(256)),
            8 => 4 * (256 + rng.below(16384)),
            _ => 300_000 + 4 * rng.below(100_000),
        };
        let bytes = rng.bytes(size);
        let mut host = 0;
        let svm =
            (!world.svm.is_empty() && rng.percent(25)).then(|| Allocation::new(world, rng, &bytes));
        let address = svm.as_ref().map(|svm| svm.address);
        let kind = rng.below(4);
        let flags = [
            CL_MEM_COPY_HOST_PTR,
            CL_MEM_COPY_HOST_PTR | CL_MEM_ALLOC_HOST_PTR,
            CL_MEM_USE_HOST_PTR,
            0,
        ][kind];
        let align = if rng.percent(50) { 4096 } else { 64 };
        let layout = Layout::from_size_align(size, align).expect("a layout");
        let pointer = match kind {
            _ if svm.is_some() => null_mut(),
            2 => {
                // SAFETY: the size is not zero; the block is filled before it is used.
                let block = unsafe {
                    let block = std::alloc::alloc(layout);
                    std::ptr::copy_nonoverlapping(bytes.as_ptr(), block, size);
                    block
                };
                host = block as usize;
                block.cast()
            }
            3 => null_mut(),
            _ => bytes.as_ptr().cast_mut().cast(),
        };
        let access = *rng.pick(&[CL_MEM_READ_WRITE, 0]);
        let mem = match &svm {
            Some(svm) => svm.buffer(size),
            None => create!(clCreateBuffer(world.context, access | flags, size, pointer)),
        };
        if host != 0 {
            BLOCKS.fetch_add(1, Ordering::SeqCst);
            let block = Box::into_raw(Box::new(HostBlock(host as *mut u8, layout)));
            ok!(clSetMemObjectDestructorCallback(
                mem,
                Some(free_host),
                block.cast()
            ));
        }
        let mut views = vec![View {
            mem,
            origin: 0,
            size,
            address,
        }];
        for _ in 0..rng.below(4) {
            let origin = rng.below(size.div_ceil(world.align)) * world.align;
            let sub = 4 * (1 + rng.below((size - origin) / 4));
            let region = cl_buffer_region { origin, size: sub };
            let mem = create!(clCreateSubBuffer(
                mem,
                0,
                CL_BUFFER_CREATE_TYPE_REGION,
                (&raw const region).cast()
            ));
            views.push(View {
                mem,
                origin,
                size: sub,
                address: address.map(|address| address + origin),
            });
        }
        let mut pictures = Vec::new();
        if world.images {
            for _ in 0..rng.below(4) {
                let view = *rng.pick(&views);
                pictures.extend(Picture::over(world, view, rng));
            }
        }
        let write = kind == 3 && svm.is_none();
        let buffer = Arc::new(Self {
            size,
            svm,
            views,
            pictures,
            host: address.unwrap_or(host),
            contents: Mutex::new(Contents {
                bytes,
                mapped: Vec::new(),
                log: Vec::new(),
            }),
        });
        if write {
            let contents = lock(&buffer.contents);
            ok!(clEnqueueWriteBuffer(
                world.filler,
                mem,
                CL_TRUE,
                0,
                size,
                contents.bytes.as_ptr().cast(),
                0,
                null(),
                null_mut()
            ));
        }
        buffer
    }

    /// An image with texels of its own.
    pub fn image(world: &World, rng: &mut Rng) -> Arc<Self> {
        let (picture, bytes) = Picture::own(world, rng);
        Arc::new(Self {
            size: bytes.len(),
            svm: None,
            views: Vec::new(),
            pictures: vec![picture],
            host: 0,
            contents: Mutex::new(Contents {
                bytes,
                mapped: Vec::new(),
                log: Vec::new(),
            }),
        })
    }

    /// An allocation of shared virtual memory without a buffer.
    pub fn svm(world: &World, rng: &mut Rng) -> Arc<Self> {
        let size = 4 * (64 + rng.below(16384));
        let bytes = rng.bytes(size);
        let svm = Allocation::new(world, rng, &bytes);
        let view = View {
            mem: null_mut(),
            origin: 0,
            size,
            address: Some(svm.address),
        };
        Arc::new(Self {
            size,
            host: svm.address,
            svm: Some(svm),
            views: vec![view],
            pictures: Vec::new(),
            contents: Mutex::new(Contents {
                bytes,
                mapped: Vec::new(),
                log: Vec::new(),
            }),
        })
    }

    /// Bytes of the model.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The address of its first byte, if that is shared virtual memory.
    pub fn address(&self) -> Option<usize> {
        self.svm.as_ref().map(|svm| svm.address)
    }

    /// The buffer or one of its sub-buffers.
    pub fn view(&self, rng: &mut Rng) -> View {
        *rng.pick(&self.views)
    }
}

impl Drop for Buf {
    fn drop(&mut self) {
        // The buffer itself goes first: its sub-buffers and images keep it alive.
        for view in self.views.iter().filter(|view| !view.mem.is_null()) {
            ok!(clReleaseMemObject(view.mem));
        }
        for picture in &self.pictures {
            ok!(clReleaseMemObject(picture.mem));
        }
        if let Some(svm) = self.svm.take() {
            let log = &self.contents.get_mut().expect("no thread has failed").log;
            let uses: Vec<_> = log.iter().map(|access| access.node.clone()).collect();
            svm.end(&uses);
        }
    }
}
