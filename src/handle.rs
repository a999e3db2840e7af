//! Handles: pointers to objects whose first word points to a dispatch table, and whose second the loader keeps.
//!
//! Every handle that an application passes is looked up in a registry of live objects before
//! anything is read through it, so a null, foreign, wrong-typed or dead handle is an error code and
//! never a crash. An object lives as long as anything in the runtime holds an `Arc` to it. The
//! application's references are counted separately (CL_*_REFERENCE_COUNT must not include internal
//! ones) and hold one `Arc`, kept in the registry.

use crate::cl::{self, cl_int, cl_uint};
use crate::error::{ClError, ClResult};
use crate::util::lock::rank;
use crate::util::sync::{AtomicBool, AtomicU32, RwLock};
use rustc_hash::FxHashMap;
use std::any::Any;
use std::ffi::c_void;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// The kinds of OpenCL objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Kind {
    Platform,
    Device,
    Context,
    Queue,
    Mem,
    Sampler,
    Program,
    Kernel,
    Event,
    CommandBuffer,
    MutableCommand,
    Semaphore,
}

impl Kind {
    /// Returns the error for a handle that is not a live object of this kind.
    pub fn invalid(self) -> cl_int {
        match self {
            Self::Platform => cl::CL_INVALID_PLATFORM,
            Self::Device => cl::CL_INVALID_DEVICE,
            Self::Context => cl::CL_INVALID_CONTEXT,
            Self::Queue => cl::CL_INVALID_COMMAND_QUEUE,
            Self::Mem => cl::CL_INVALID_MEM_OBJECT,
            Self::Sampler => cl::CL_INVALID_SAMPLER,
            Self::Program => cl::CL_INVALID_PROGRAM,
            Self::Kernel => cl::CL_INVALID_KERNEL,
            Self::Event => cl::CL_INVALID_EVENT,
            Self::CommandBuffer => cl::CL_INVALID_COMMAND_BUFFER_KHR,
            Self::MutableCommand => cl::CL_INVALID_MUTABLE_COMMAND_KHR,
            Self::Semaphore => cl::CL_INVALID_SEMAPHORE_KHR,
        }
    }
}

/// The body of an OpenCL object.
pub trait Body: Any + Send + Sync + Sized {
    /// Its kind.
    const KIND: Kind;
}

/// An OpenCL object: the header that the loader reads, then the body.
#[repr(C)]
pub struct Object<T> {
    dispatch: usize,
    /// A pointer to data of the loader (cl_khr_icd 2.0).
    dispatch_data: AtomicUsize,
    api_refs: AtomicU32,
    /// Set once the application has or may have its handle: the registry has an entry then.
    registered: AtomicBool,
    body: T,
}

/// A counted reference to an object, from within the runtime.
pub type Ref<T> = Arc<Object<T>>;

static DISPATCH: AtomicUsize = AtomicUsize::new(0);
static DISPATCH_DATA: AtomicUsize = AtomicUsize::new(0);

/// Sets the address of the dispatch table that all objects made from now on carry. Called once by the C edge.
pub fn set_dispatch(table: *const c_void) {
    DISPATCH.store(table as usize, Ordering::Release);
}

/// Sets the loader's data that all objects made from now on carry (clIcdSetPlatformDispatchDataKHR).
pub fn set_dispatch_data(data: *const c_void) {
    DISPATCH_DATA.store(data as usize, Ordering::Release);
}

/// The object of a handle.
struct HandleEntry {
    kind: Kind,
    object: Weak<dyn Any + Send + Sync>,
    /// Present while the application holds references.
    api: Option<Arc<dyn Any + Send + Sync>>,
}

const SHARDS: usize = if cfg!(feature = "loom") { 1 } else { 64 };
type Shard = RwLock<Option<FxHashMap<usize, HandleEntry>>, { rank::HANDLES }>;
#[cfg(not(feature = "loom"))]
static REGISTRY: [Shard; SHARDS] = [const { RwLock::new(None) }; SHARDS];
#[cfg(feature = "loom")]
loom::lazy_static! {
    static ref REGISTRY: [Shard; SHARDS] = [RwLock::new(None)];
}

fn shard(address: usize) -> &'static Shard {
    &REGISTRY[(address >> 5 ^ address >> 11) % SHARDS]
}

impl<T: Body> Object<T> {
    fn with(body: T) -> Self {
        Self {
            dispatch: DISPATCH.load(Ordering::Acquire),
            dispatch_data: AtomicUsize::new(DISPATCH_DATA.load(Ordering::Acquire)),
            api_refs: AtomicU32::new(0),
            registered: AtomicBool::new(false),
            body,
        }
    }

    /// Creates an object without an API reference, unknown to the application until
    /// [`Object::publish`] or [`Object::handle`].
    pub fn new(body: T) -> Ref<T> {
        Arc::new(Self::with(body))
    }

    /// Takes over the loader's data that new objects get.
    pub fn renew_dispatch_data(&self) {
        let data = DISPATCH_DATA.load(Ordering::Acquire);
        self.dispatch_data.store(data, Ordering::Release);
    }

    /// Creates an object whose body needs a weak reference to itself.
    pub fn new_cyclic(body: impl FnOnce(&Weak<Self>) -> T) -> Ref<T> {
        Arc::new_cyclic(|weak| Self::with(body(weak)))
    }

    /// Calls `with` with the object's entry of the registry, which is made if there is none.
    fn with_entry(self: &Arc<Self>, with: impl FnOnce(&mut HandleEntry)) -> *mut c_void {
        let address = Arc::as_ptr(self) as usize;
        let mut shard = shard(address).write();
        let entry = shard
            .get_or_insert_with(FxHashMap::default)
            .entry(address)
            .or_insert_with(|| {
                self.registered.store(true, Ordering::Relaxed);
                let object: Weak<Self> = Arc::downgrade(self);
                HandleEntry {
                    kind: T::KIND,
                    object,
                    api: None,
                }
            });
        with(entry);
        address as *mut c_void
    }

    /// Gives the application one more reference and returns the handle.
    pub fn publish(self: &Arc<Self>) -> *mut c_void {
        self.with_entry(|entry| {
            self.api_refs.fetch_add(1, Ordering::AcqRel);
            if entry.api.is_none() {
                entry.api = Some(self.clone());
            }
        })
    }

    /// Returns the handle, without a reference: for queries that return objects.
    pub fn handle(self: &Arc<Self>) -> *mut c_void {
        if self.registered.load(Ordering::Relaxed) {
            return Arc::as_ptr(self) as *mut c_void;
        }
        self.with_entry(|_| ())
    }

    /// Returns the number of references that the application holds.
    pub fn api_refs(&self) -> cl_uint {
        self.api_refs.load(Ordering::Acquire)
    }
}

impl<T> Deref for Object<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.body
    }
}

impl<T> Drop for Object<T> {
    fn drop(&mut self) {
        if !self.registered.load(Ordering::Relaxed) {
            return;
        }
        let address = self as *const Self as usize;
        let removed = shard(address)
            .write()
            .as_mut()
            .and_then(|map| map.remove(&address));
        drop(removed);
    }
}

fn invalid(kind: Kind) -> ClError {
    ClError::new(kind.invalid(), "not a live object of this type")
}

/// Returns the live object of a handle, or the error that the specification gives for an invalid
/// one.
pub fn lookup<T: Body>(handle: *const c_void) -> ClResult<Ref<T>> {
    let address = handle as usize;
    let found = {
        let guard = shard(address).read();
        guard
            .as_ref()
            .and_then(|map| map.get(&address))
            .filter(|e| e.kind == T::KIND)
            .and_then(|e| match &e.api {
                Some(object) => Some(object.clone()),
                None => e.object.upgrade(),
            })
    };
    found
        .and_then(|object| object.downcast::<Object<T>>().ok())
        .ok_or_else(|| invalid(T::KIND))
}

/// Returns the kind of a live object.
pub fn kind_of(handle: *const c_void) -> Option<Kind> {
    let address = handle as usize;
    shard(address)
        .read()
        .as_ref()
        .and_then(|map| map.get(&address))
        .map(|entry| entry.kind)
}

/// Implements clRetain*: one more reference of the application.
pub fn retain<T: Body>(handle: *const c_void) -> ClResult {
    lookup::<T>(handle)?.publish();
    Ok(())
}

/// Implements clRelease*: one reference of the application less; the object goes when nothing else
/// holds it. Releasing more often than retained is an error.
pub fn release<T: Body>(handle: *const c_void) -> ClResult {
    // Dropped outside the lock: destructors take locks and call back.
    release_one::<T>(handle).map(drop)
}

/// Does what [`release`] does. Returns the object if that was the last reference of the application.
pub fn release_one<T: Body>(handle: *const c_void) -> ClResult<Option<Ref<T>>> {
    let address = handle as usize;
    let last = {
        let mut guard = shard(address).write();
        let entry = guard
            .as_mut()
            .and_then(|map| map.get_mut(&address))
            .filter(|entry| entry.kind == T::KIND)
            .ok_or_else(|| invalid(T::KIND))?;
        // Without a reference of the application there is nothing in `api`.
        let object = entry
            .api
            .as_ref()
            .and_then(|object| object.downcast_ref::<Object<T>>())
            .ok_or_else(|| invalid(T::KIND))?;
        if object.api_refs.fetch_sub(1, Ordering::AcqRel) == 1 {
            entry.api.take()
        } else {
            None
        }
    };
    Ok(last.and_then(|object| object.downcast::<Object<T>>().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Thing(#[allow(dead_code)] u32);
    impl Body for Thing {
        const KIND: Kind = Kind::Sampler;
    }
    struct Other;
    impl Body for Other {
        const KIND: Kind = Kind::Context;
    }

    #[test]
    fn handles_are_checked() {
        let thing = Object::new(Thing(7));
        let handle = thing.publish();
        drop(thing);
        assert_eq!(lookup::<Thing>(handle).map(|t| t.0).ok(), Some(7));
        assert_eq!(
            lookup::<Other>(handle).err().map(|e| e.code),
            Some(cl::CL_INVALID_CONTEXT)
        );
        retain::<Thing>(handle).unwrap();
        assert_eq!(lookup::<Thing>(handle).map(|t| t.api_refs()).ok(), Some(2));
        release::<Thing>(handle).unwrap();
        release::<Thing>(handle).unwrap();
        assert_eq!(
            release::<Thing>(handle).err().map(|e| e.code),
            Some(cl::CL_INVALID_SAMPLER)
        );
        assert!(lookup::<Thing>(std::ptr::null()).is_err());
        assert!(lookup::<Thing>(0x1234 as *const c_void).is_err());
    }

    #[test]
    fn internal_references_do_not_show() {
        let thing = Object::new(Thing(1));
        let handle = thing.publish();
        let held = thing.clone();
        assert_eq!(held.api_refs(), 1);
        drop(thing);
        release::<Thing>(handle).unwrap();
        assert_eq!(held.api_refs(), 0);
        assert!(release::<Thing>(handle).is_err());
        assert!(lookup::<Thing>(handle).is_ok());
        drop(held);
        assert!(lookup::<Thing>(handle).is_err());
    }
}

/// The real code under loom, which tries every order of its steps (`ci/test loom`).
#[cfg(all(test, feature = "loom"))]
mod models {
    use super::*;
    use crate::util::sync::AtomicUsize as Count;

    struct Thing(Arc<Count>);

    impl Body for Thing {
        const KIND: Kind = Kind::Sampler;
    }

    impl Drop for Thing {
        fn drop(&mut self) {
            assert_eq!(self.0.fetch_add(1, Ordering::Relaxed), 0, "gone twice");
        }
    }

    /// Returns a handle and the number of times that its object has gone.
    fn published() -> (usize, Arc<Count>) {
        let gone = Arc::new(Count::new(0));
        let thing = Object::new(Thing(gone.clone()));
        (thing.publish() as usize, gone)
    }

    /// Checks that when two threads release the last reference, one of them gets the error that the
    /// handle is not valid, and the object is destroyed once.
    #[test]
    fn the_last_reference_is_released_once() {
        loom::model(|| {
            let (handle, gone) = published();
            let release = move || super::release::<Thing>(handle as *const c_void).is_ok();
            let thread = loom::thread::spawn(release);
            let mine = release();
            let other = thread.join().expect("no panic");
            assert!(mine != other);
            assert_eq!(gone.load(Ordering::Relaxed), 1);
            assert!(lookup::<Thing>(handle as *const c_void).is_err());
        });
    }

    /// One looks the object up and uses it while another releases it: it is alive as long as it is used, then goes.
    #[test]
    fn what_was_looked_up_lives() {
        loom::model(|| {
            let (handle, gone) = published();
            let thread = loom::thread::spawn(move || {
                let found = lookup::<Thing>(handle as *const c_void).ok();
                if let Some(found) = &found {
                    assert_eq!(found.0.load(Ordering::Relaxed), 0);
                }
            });
            assert!(super::release::<Thing>(handle as *const c_void).is_ok());
            thread.join().expect("no panic");
            assert_eq!(gone.load(Ordering::Relaxed), 1);
        });
    }

    /// One retains while another releases: the count and what keeps the object agree, whoever is first.
    #[test]
    fn retained_and_released_at_once() {
        loom::model(|| {
            let (handle, gone) = published();
            let thread = loom::thread::spawn(move || {
                super::retain::<Thing>(handle as *const c_void).is_ok()
            });
            assert!(super::release::<Thing>(handle as *const c_void).is_ok());
            let retained = thread.join().expect("no panic");
            assert_eq!(gone.load(Ordering::Relaxed), usize::from(!retained));
            if retained {
                let thing = lookup::<Thing>(handle as *const c_void).expect("it lives");
                assert_eq!(thing.api_refs(), 1);
                drop(thing);
                assert!(super::release::<Thing>(handle as *const c_void).is_ok());
                assert_eq!(gone.load(Ordering::Relaxed), 1);
            }
        });
    }
}
