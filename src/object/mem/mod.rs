//! Memory objects: what the application knows of them. Where the bytes lie is the [`Store`]'s business; a sub-buffer
//! shares the store of its buffer.

pub mod address;
pub mod buffer;
pub mod coherence;
pub mod description;
pub mod external;
pub mod gl;
pub mod host_work;
pub mod image;
pub mod map;
pub mod map_image;
pub mod pipe;
pub mod pixel;
pub mod queue_images;
pub mod reach;
pub mod requirements;
pub mod store;
mod svm;
mod texels;
pub(crate) mod transfer;

use super::callback::{run_destructors, Callback, Destructors, ObjectFn};
use super::context::Context;
use super::device::Device;
use super::late_release::{self, After};
use super::memories::MemoryIndex;
use crate::backend::image::ImageRegion;
use crate::backend::{Memory, Slice};
use crate::cl::{self, cl_mem_flags, cl_mem_object_type, cl_mem_properties, cl_uint};
use crate::error::{ensure, ClResult};
use crate::handle::{Body, Kind, Object, Ref};
use crate::util::lock::{rank, Mutex};
use coherence::{Part, Rows, Touch};
use map::Mapping;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use store::Store;
pub(crate) use svm::same_bytes;
use texels::Texels;

/// Where a part of a memory object is.
enum Place<'a> {
    /// Rows of its store.
    Rows(Rows),
    /// A box of its images.
    Box(&'a Texels, ImageRegion),
}

/// A memory object.
pub struct Mem {
    /// CL_MEM_CONTEXT.
    pub context: Ref<Context>,
    /// CL_MEM_TYPE.
    pub object_type: cl_mem_object_type,
    /// CL_MEM_FLAGS.
    pub flags: cl_mem_flags,
    /// CL_MEM_SIZE.
    pub size: usize,
    host_ptr: usize,
    /// CL_MEM_PROPERTIES: the application's list, or an empty one.
    pub properties: Vec<cl_mem_properties>,
    parent: Option<Ref<Mem>>,
    /// First byte within the store.
    pub origin: usize,
    /// The store of the bytes.
    pub store: Arc<Store>,
    /// The image, of images.
    image: Option<Box<image::MemImage>>,
    /// The devices that may use it, if it is memory of others.
    external: Option<Box<external::External>>,
    /// The object of OpenGL or image of EGL that it was made from.
    shared: Option<Box<gl::Shared>>,
    /// The packets, of pipes.
    packets: Option<pipe::Packets>,
    mappings: Mutex<Vec<Mapping>, { rank::MAPPINGS }>,
    /// A command other than a kernel was enqueued that may write it or what is made from it.
    written: AtomicBool,
    destructors: Destructors,
    handle: usize,
}

impl Body for Mem {
    const KIND: Kind = Kind::Mem;
}

impl Mem {
    /// Creates an object with these bytes: a buffer, but for what `fill` changes.
    fn make(
        context: &Ref<Context>,
        flags: cl_mem_flags,
        store: Arc<Store>,
        fill: impl FnOnce(&mut Self),
    ) -> Ref<Self> {
        Object::new_cyclic(|me| {
            let mut mem = Self {
                context: context.clone(),
                object_type: cl::CL_MEM_OBJECT_BUFFER,
                flags,
                size: store.size as usize,
                host_ptr: 0,
                properties: Vec::new(),
                parent: None,
                origin: 0,
                store,
                image: None,
                external: None,
                shared: None,
                packets: None,
                mappings: Mutex::default(),
                written: AtomicBool::new(false),
                destructors: Destructors::default(),
                handle: me.as_ptr() as usize,
            };
            fill(&mut mem);
            if mem.store.host_ptr != 0 {
                mem.host_ptr = mem.store.host_ptr + mem.origin;
            }
            mem
        })
    }

    /// Returns where the host has its bytes without a map, if devices reach them there: shared
    /// virtual memory, and memory of the application that the device uses in place.
    pub fn host_range(&self) -> Option<Range<usize>> {
        (self.host_ptr != 0).then(|| self.host_ptr..self.host_ptr + self.size)
    }

    /// Returns true if no command and no kernel may write it (cl_ext_immutable_memory_objects).
    pub fn is_immutable(&self) -> bool {
        self.flags & cl::CL_MEM_IMMUTABLE_EXT != 0
    }

    /// Returns the object that this one is made from, or itself.
    fn root(&self) -> &Self {
        self.parent.as_ref().map_or(self, |parent| parent.root())
    }

    /// Does the same as [`Mem::note_written`]. Fails with CL_INVALID_OPERATION if no command may
    /// write to the object.
    pub fn check_written(&self) -> ClResult {
        ensure!(
            !self.is_immutable(),
            cl::CL_INVALID_OPERATION,
            "the memory object is immutable"
        );
        self.note_written();
        Ok(())
    }

    /// Records that a command writes to the object.
    pub fn note_written(&self) {
        self.root().written.store(true, Ordering::Relaxed);
    }

    /// Returns true if the memory object has its initial contents: kernels may not write to it, and
    /// no command has. OpenGL may write to what it shares.
    fn is_as_made(&self) -> bool {
        let root = self.root();
        let read_only = cl::CL_MEM_READ_ONLY | cl::CL_MEM_IMMUTABLE_EXT;
        root.flags & read_only != 0
            && root.shared.is_none()
            && !root.written.load(Ordering::Relaxed)
    }

    /// Returns CL_MEM_HOST_PTR: the application's memory with CL_MEM_USE_HOST_PTR, otherwise null.
    pub fn host_ptr(&self) -> *mut c_void {
        self.host_ptr as *mut c_void
    }

    /// Returns CL_MEM_ASSOCIATED_MEMOBJECT.
    pub fn parent(&self) -> Option<&Ref<Mem>> {
        self.parent.as_ref()
    }

    /// Returns CL_MEM_OFFSET: of a sub-buffer within its buffer, otherwise 0.
    pub fn offset(&self) -> usize {
        match &self.parent {
            Some(parent) if self.is_buffer() => self.origin - parent.origin,
            _ => 0,
        }
    }

    /// Returns CL_MEM_MAP_COUNT.
    pub fn map_count(&self) -> cl_uint {
        let mappings = self.mappings.lock();
        mappings.iter().filter(|m| m.is_open()).count() as cl_uint
    }

    /// Returns true if this is a buffer (or sub-buffer).
    pub fn is_buffer(&self) -> bool {
        self.object_type == cl::CL_MEM_OBJECT_BUFFER
    }

    /// Implements clSetMemObjectDestructorCallback.
    pub fn add_destructor(&self, callback: Callback<ObjectFn>) {
        self.destructors.lock().push(callback);
    }

    /// Returns the device address of its first byte. Allocates device memory if there is none yet.
    pub fn device_address(&self, device: &Ref<Device>) -> ClResult<u64> {
        let memory = self.memory(self.context.memory_of(device)?)?;
        Ok(memory.address() + self.origin as u64)
    }

    /// Returns the allocation of its bytes in a memory of the context, made if need be.
    fn memory(&self, memory: MemoryIndex) -> ClResult<&Arc<dyn Memory>> {
        self.store.memory(&self.context.memories, memory)
    }

    /// Returns a range of the object in a memory of the context.
    pub fn slice(&self, memory: MemoryIndex, offset: u64, size: u64) -> ClResult<Slice> {
        let memory = self.memory(memory)?.clone();
        Ok(Slice::new(memory, self.origin as u64 + offset, size))
    }

    /// Returns the address of a byte of it in a memory of the context, where that is mapped and, if
    /// `cached`, in the host's cache.
    pub fn mapped(
        &self,
        memory: MemoryIndex,
        offset: u64,
        cached: bool,
    ) -> ClResult<Option<usize>> {
        let memory = self.memory(memory)?;
        let place = memory.mapped().filter(|_| !cached || memory.host_cached());
        Ok(place.map(|begin| begin.as_ptr() as usize + self.origin + offset as usize))
    }

    /// Returns the place of a part: a box of an image of its own, or rows of the store.
    fn place_of(&self, part: &Part) -> ClResult<Place<'_>> {
        let own = (self.image.as_deref()).filter(|image| image.backing == image::Backing::Own);
        let rows = match (part, own) {
            (Part::Box(at), Some(image)) => return Ok(Place::Box(image.texels(), *at)),
            (_, Some(image)) => return Ok(Place::Box(image.texels(), image.whole())),
            (Part::Rows(rows), None) => *rows,
            (Part::All, None) => (0..self.size as u64).into(),
            (Part::Bytes(range), None) => range.clone().into(),
            (Part::Box(at), None) => self.image()?.rows(at),
        };
        let first = self.origin as u64 + rows.first;
        Ok(Place::Rows(Rows { first, ..rows }))
    }

    /// Makes a part up to date in a memory of the context, before a command with that use of it is
    /// encoded. Waits for devices if contents must be copied ([`Mem::is_prepared`]). Free in
    /// contexts with one memory.
    pub fn prepare(&self, memory: MemoryIndex, part: &Part, touch: Touch) -> ClResult {
        let all = &self.context.memories;
        match self.place_of(part)? {
            Place::Rows(rows) => self.store.prepare(all, memory, rows, touch),
            Place::Box(texels, at) => texels.prepare(all, memory, &at, touch),
        }
    }

    /// Returns true if [`Mem::prepare`] has nothing to copy and nothing to wait for.
    pub fn is_prepared(&self, memory: MemoryIndex, part: &Part, touch: Touch) -> bool {
        match self.place_of(part) {
            Ok(Place::Rows(rows)) => self.store.is_prepared(memory, rows, touch),
            Ok(Place::Box(texels, at)) => texels.is_prepared(memory, &at, touch),
            // Which is found when it is used.
            Err(_) => true,
        }
    }

    /// Fails with CL_MISALIGNED_SUB_BUFFER_OFFSET unless the device can address the first byte. A
    /// buffer and all of its sub-buffers begin well on a device, but the source of an image must
    /// suit the device's copies and views itself.
    pub fn check_alignment(&self, device: &Device) -> ClResult {
        let begin = match &self.image {
            Some(_) if self.parent.is_some() => self.origin,
            _ => self.offset(),
        };
        ensure!(
            begin == 0 || begin.is_multiple_of(device.base_align()),
            cl::CL_MISALIGNED_SUB_BUFFER_OFFSET,
            "the sub-buffer is misaligned for this device"
        );
        Ok(())
    }
}

impl Drop for Mem {
    /// Runs destructor callbacks, and releases memory of the application, which happens only when
    /// the commands that use the object have completed.
    fn drop(&mut self) {
        if self.is_buffer() && self.host_ptr != 0 && self.parent.is_none() && !self.store.svm {
            let range = self.host_ptr..self.host_ptr + self.size;
            self.context.reachable.remove(&range, false);
        }
        let callbacks = std::mem::take(self.destructors.get_mut());
        if callbacks.is_empty() && self.host_ptr == 0 {
            return;
        }
        let Some(after) = After::queues(&self.context) else {
            run_destructors(callbacks, self.handle);
            return;
        };
        let (handle, store, parent) = (self.handle, self.store.clone(), self.parent.take());
        late_release::later(after, move || {
            drop(store);
            run_destructors(callbacks, handle);
            drop(parent);
        });
    }
}
