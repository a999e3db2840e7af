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
use rustc_hash::FxHasher;
use std::any::Any;
use std::collections::HashMap;
use std::ffi::c_void;
use std::hash::{BuildHasherDefault, Hasher};
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
enum HandleEntry {
    /// The application holds references.
    Referenced(Kind, Arc<dyn Any + Send + Sync>),
    /// Only the runtime does.
    Unreferenced(Kind, Weak<dyn Any + Send + Sync>),
}

impl HandleEntry {
    fn kind(&self) -> Kind {
        match self {
            Self::Referenced(kind, _) | Self::Unreferenced(kind, _) => *kind,
        }
    }
}

/// Hashes addresses so that those of objects that were allocated one after the other are near each other in the table: many
/// are made, and released, in that order, and of a million a table in any other order is in no cache.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        let mut hasher = FxHasher::default();
        hasher.write(bytes);
        self.0 = hasher.finish();
    }

    fn write_usize(&mut self, address: usize) {
        // The table chooses the place by the low bits, and compares the seven high ones first.
        let mixed = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = (address as u64 >> 10) ^ (mixed & 0xfe << 56);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

const SHARDS: usize = if cfg!(feature = "loom") { 1 } else { 64 };
type Entries = HashMap<usize, HandleEntry, BuildHasherDefault<AddressHasher>>;
type Shard = RwLock<Option<Entries>, { rank::HANDLES }>;
#[cfg(not(feature = "loom"))]
static REGISTRY: [Shard; SHARDS] = [const { RwLock::new(None) }; SHARDS];
#[cfg(feature = "loom")]
loom::lazy_static! {
    static ref REGISTRY: [Shard; SHARDS] = [RwLock::new(None)];
}

#[inline]
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

    /// Gives the application one more reference and returns the handle.
    pub fn publish(self: &Arc<Self>) -> *mut c_void {
        let address = Arc::as_ptr(self) as usize;
        let mut shard = shard(address).write();
        if self.api_refs.fetch_add(1, Ordering::AcqRel) == 0 {
            self.registered.store(true, Ordering::Relaxed);
            let entry = HandleEntry::Referenced(T::KIND, self.clone());
            shard.get_or_insert_default().insert(address, entry);
        }
        address as *mut c_void
    }

    /// Returns the handle, without a reference: for queries that return objects.
    pub fn handle(self: &Arc<Self>) -> *mut c_void {
        let address = Arc::as_ptr(self) as usize;
        if !self.registered.load(Ordering::Relaxed) {
            let mut shard = shard(address).write();
            let entries = shard.get_or_insert_default();
            entries.entry(address).or_insert_with(|| {
                self.registered.store(true, Ordering::Relaxed);
                let object: Weak<Self> = Arc::downgrade(self);
                HandleEntry::Unreferenced(T::KIND, object)
            });
        }
        address as *mut c_void
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
            .filter(|entry| entry.kind() == T::KIND)
            .and_then(|entry| match entry {
                HandleEntry::Referenced(_, object) => Some(object.clone()),
                HandleEntry::Unreferenced(_, object) => object.upgrade(),
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
        .map(HandleEntry::kind)
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
            .ok_or_else(|| invalid(T::KIND))?;
        let HandleEntry::Referenced(kind, object) = entry else {
            return Err(invalid(T::KIND));
        };
        let typed = object.downcast_ref::<Object<T>>();
        let typed = typed.ok_or_else(|| invalid(T::KIND))?;
        if typed.api_refs.fetch_sub(1, Ordering::AcqRel) > 1 {
            return Ok(None);
        }
        let unreferenced = HandleEntry::Unreferenced(*kind, Arc::downgrade(object));
        std::mem::replace(entry, unreferenced)
    };
    Ok(match last {
        HandleEntry::Referenced(_, object) => object.downcast::<Object<T>>().ok(),
        HandleEntry::Unreferenced(..) => None,
    })
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
        // The application gets it from a query again, without and with a reference.
        assert_eq!((held.handle(), held.api_refs()), (handle, 0));
        assert_eq!((held.publish(), held.api_refs()), (handle, 1));
        release::<Thing>(handle).unwrap();
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
