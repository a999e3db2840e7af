//! The end of the process: whether `exit` has got as far as taking the device drivers apart, and who is still inside.
//!
//! Set once, by the back end's handler (`backend/vulkan/exit.rs`), and never taken back. What runs later (destructors of
//! the application's global objects, handlers that it registered early, its other threads) must not reach a driver: calls
//! hold a [`Call`], and none begins any more. A call costs two stores to a cell of its thread, which the thread that ends
//! the process makes visible ([`remote`]). Neither does one begin in a forked child that could not do without the threads of
//! its parent (`forked.rs`).

use super::forked;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::time::{Duration, Instant};

static BEGUN: AtomicBool = AtomicBool::new(false);

/// Fences that cost the thread which ends the process, and not every call: `membarrier` of Linux. It takes some
/// milliseconds, where other threads have had calls.
mod remote {
    use std::ffi::{c_int, c_long};
    use std::sync::atomic::{compiler_fence, fence, AtomicBool, Ordering};

    /// Commands of `membarrier`: which there are, and a fence in all threads of the system.
    const QUERY: c_int = 0;
    const GLOBAL: c_int = 1;

    /// The system has them.
    static THERE: AtomicBool = AtomicBool::new(false);

    #[cfg(target_os = "linux")]
    fn membarrier(command: c_int) -> c_long {
        // SAFETY: no memory is passed.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
    }

    #[cfg(not(target_os = "linux"))]
    fn membarrier(_: c_int) -> c_long {
        -1
    }

    /// Finds out whether the system has them. Called before a thread's first call.
    pub fn find() {
        let commands = membarrier(QUERY);
        let global = commands > 0 && commands & c_long::from(GLOBAL) != 0;
        THERE.store(global, Ordering::Relaxed);
    }

    /// A fence against the [`heavy_fence`] of another thread.
    #[inline]
    pub fn light_fence() {
        match THERE.load(Ordering::Relaxed) {
            true => compiler_fence(Ordering::SeqCst),
            false => fence(Ordering::SeqCst),
        }
    }

    /// A fence in all threads.
    pub fn heavy_fence() {
        fence(Ordering::SeqCst);
        if THERE.load(Ordering::Relaxed) {
            membarrier(GLOBAL);
        }
    }
}

/// The cell of a thread. Cells are used again, never freed, and in a list without a lock: a forked child has the memory of
/// threads that it lacks, and would wait for ever for what one of them held.
#[derive(Default)]
#[repr(align(64))]
struct Depth {
    /// How many calls the thread is in. Only the thread writes to it.
    calls: AtomicU32,
    /// A thread has it.
    taken: AtomicBool,
    /// Its thread is ending and will not give it back any more: the outermost call does.
    ending: AtomicBool,
    /// The cell made before it.
    next: AtomicPtr<Depth>,
}

/// The cell made last.
static DEPTHS: AtomicPtr<Depth> = AtomicPtr::new(null_mut());

fn depths() -> impl Iterator<Item = &'static Depth> {
    // SAFETY: every pointer of the list was a reference to a leaked cell.
    let at = |pointer: &AtomicPtr<Depth>| unsafe { pointer.load(Ordering::Acquire).as_ref() };
    std::iter::successors(at(&DEPTHS), move |depth| at(&depth.next))
}

/// Takes a cell that no thread uses, or creates one.
fn free_depth() -> &'static Depth {
    forked::watch();
    if let Some(free) = depths().find(|depth| !depth.taken.swap(true, Ordering::AcqRel)) {
        return free;
    }
    let made: &'static mut Depth = Box::leak(Box::default());
    made.taken = true.into();
    let mut last = DEPTHS.load(Ordering::Acquire);
    loop {
        *made.next.get_mut() = last;
        match DEPTHS.compare_exchange(last, made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return made,
            Err(now) => last = now,
        }
    }
}

thread_local! {
    /// The cell of this thread. Without a destructor, so that it can be reached to the end of the thread.
    static MINE: Cell<Option<&'static Depth>> = const { Cell::new(None) };
    /// Gives the cell back.
    static END: End = const { End };
}

struct End;

impl Drop for End {
    fn drop(&mut self) {
        let Some(depth) = mine() else { return };
        depth.ending.store(true, Ordering::Relaxed);
        // A thread may end within a call: `exit` in a callback.
        if depth.calls.load(Ordering::Relaxed) == 0 {
            give_back(depth);
        }
    }
}

#[inline]
fn mine() -> Option<&'static Depth> {
    MINE.try_with(Cell::get).ok().flatten()
}

/// Takes a cell for this thread.
#[cold]
fn take() -> &'static Depth {
    remote::find();
    let depth = free_depth();
    let _ = MINE.try_with(|mine| mine.set(Some(depth)));
    // Destructors of other values, and handlers of `exit`, may call from a thread that has passed its end.
    let ending = END.try_with(|_| ()).is_err();
    depth.ending.store(ending, Ordering::Relaxed);
    depth
}

/// Returns the cell of this thread.
#[cold]
fn give_back(depth: &'static Depth) {
    let _ = MINE.try_with(|mine| mine.set(None));
    depth.taken.store(false, Ordering::Release);
}

/// A call that may reach a driver is under way. It stays on its thread.
pub struct Call(&'static Depth, PhantomData<*const ()>);

impl Call {
    /// Begins a call, unless the process is ending or cannot have any.
    #[inline]
    pub fn enter() -> Option<Self> {
        let depth = mine().unwrap_or_else(take);
        let calls = depth.calls.load(Ordering::Relaxed);
        // Seen by `settle`, or sees `begin`.
        depth.calls.store(calls + 1, Ordering::Relaxed);
        remote::light_fence();
        let call = Self(depth, PhantomData);
        (!has_begun() && !forked::is_forked()).then_some(call)
    }

    /// Does the same as [`Call::enter`] for the runtime's own threads: if the process is ending,
    /// they end with it.
    pub fn enter_or_stay() -> Self {
        loop {
            match Self::enter() {
                Some(call) => return call,
                None => std::thread::park(),
            }
        }
    }
}

impl Drop for Call {
    #[inline]
    fn drop(&mut self) {
        let calls = self.0.calls.load(Ordering::Relaxed).wrapping_sub(1);
        self.0.calls.store(calls, Ordering::Release);
        if calls == 0 && self.0.ending.load(Ordering::Relaxed) {
            give_back(self.0);
        }
    }
}

/// Returns the cells of other threads, and those that no thread has.
fn others() -> impl Iterator<Item = &'static Depth> {
    let mine = mine();
    depths().filter(move |depth| !mine.is_some_and(|mine| std::ptr::eq(mine, *depth)))
}

/// Returns true if threads other than this one are in calls.
pub(super) fn others_are_in_calls() -> bool {
    others().any(|depth| depth.calls.load(Ordering::SeqCst) > 0)
}

/// Returns true if the drivers are being taken apart, or are gone.
#[inline]
pub fn has_begun() -> bool {
    BEGUN.load(Ordering::SeqCst) || system_shuts_down()
}

/// Returns true if the system has ended the other threads of this process, which may have held
/// locks.
#[cfg(windows)]
fn system_shuts_down() -> bool {
    // SAFETY: a question without operands.
    unsafe { super::win32::RtlDllShutdownInProgress() != 0 }
}

/// Returns false, as there is no such query on this system.
#[cfg(not(windows))]
#[inline]
fn system_shuts_down() -> bool {
    false
}

/// Makes [`has_begun`] true. Returns whether it was so already.
pub fn begin() -> bool {
    BEGUN.swap(true, Ordering::SeqCst)
}

/// Waits until no other thread is in a call, at most for a while: some wait for what will not happen any more.
pub fn settle(patience: Duration) {
    let end = Instant::now() + patience;
    if others().next().is_some() {
        remote::heavy_fence();
    }
    loop {
        if !others_are_in_calls() || Instant::now() >= end {
            return;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted() {
        let (entered, wait) = std::sync::mpsc::channel();
        let (leave, left) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let outer = Call::enter();
            drop(Call::enter());
            entered.send(()).unwrap();
            left.recv().unwrap();
            drop(outer);
        });
        wait.recv().unwrap();
        // One's own calls are not waited for, those of others are.
        let _own = Call::enter();
        let start = Instant::now();
        settle(Duration::from_millis(20));
        assert!(start.elapsed() >= Duration::from_millis(20));
        leave.send(()).unwrap();
        thread.join().unwrap();
        settle(Duration::from_secs(60));
        assert!(start.elapsed() < Duration::from_secs(50));
    }
}
