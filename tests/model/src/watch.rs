//! Watches calls while gates are closed: opens the gates when one does not return, so that the program goes on and says which.

use crate::program::MOST;
use pumice_tests::call;
use pumice_tests::sys::*;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The condition that opens a gate.
#[derive(Clone, Copy)]
pub enum Key {
    /// A flag at this address, which outlives the program.
    Flag(usize),
    /// A user event.
    Event(usize),
}

impl Key {
    fn open(self) {
        match self {
            // SAFETY: flags are never freed.
            Self::Flag(at) => unsafe { &*(at as *const AtomicU32) }.store(1, Ordering::SeqCst),
            Self::Event(event) => {
                call!(clSetUserEventStatus(event as cl_event, CL_COMPLETE));
            }
        }
    }
}

#[derive(Default)]
struct State {
    /// The action whose call is under way, and since when.
    call: Option<(usize, Instant)>,
    /// The gates that are closed, by their actions.
    closed: Vec<(usize, Key)>,
    /// The call that did not return.
    late: Option<String>,
    over: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread that watches the calls of a program.
pub struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

fn watch(shared: &Shared, grace: Duration) {
    let mut state = shared.lock();
    while !state.over {
        let turn = shared
            .changed
            .wait_timeout(state, Duration::from_millis(20));
        state = turn.unwrap_or_else(PoisonError::into_inner).0;
        let Some((action, since)) = state.call else {
            continue;
        };
        if state.closed.is_empty() || since.elapsed() < grace {
            continue;
        }
        let mut closed = std::mem::take(&mut state.closed);
        let list: Vec<String> = closed.iter().map(|(gate, _)| gate.to_string()).collect();
        state.late = Some(format!(
            "action {action}: a call does not return while these gates are closed: {}",
            list.join(", ")
        ));
        drop(state);
        // Flags first: setting an event may wait, too.
        closed.sort_by_key(|(_, key)| matches!(key, Key::Event(_)));
        closed.iter().for_each(|(_, key)| key.open());
        state = shared.lock();
    }
}

impl Watch {
    /// Begins.
    pub fn new(grace: Duration) -> Self {
        let shared = Arc::new(Shared::default());
        let own = shared.clone();
        Self {
            shared,
            thread: Some(std::thread::spawn(move || watch(&own, grace))),
        }
    }

    /// The calls of an action begin.
    pub fn begin(&self, action: usize) {
        self.shared.lock().call = Some((action, Instant::now()));
    }

    /// Records that the calls have returned.
    pub fn end(&self) {
        self.shared.lock().call = None;
    }

    /// A gate is closed.
    pub fn close(&self, gate: usize, key: Key) {
        self.shared.lock().closed.push((gate, key));
    }

    /// Opens a gate, if it is still closed.
    pub fn open(&self, gate: usize) {
        let mut state = self.shared.lock();
        let at = state.closed.iter().position(|(of, _)| *of == gate);
        let key = at.map(|at| state.closed.swap_remove(at).1);
        drop(state);
        if let Some(key) = key {
            key.open();
        }
    }

    /// The call that did not return.
    pub fn late(&self) -> Option<String> {
        self.shared.lock().late.clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Flags that native kernels wait for: never freed, as a kernel may be late.
pub fn new_flags() -> &'static [AtomicU32] {
    let flags: Vec<AtomicU32> = (0..MOST).map(|_| AtomicU32::new(0)).collect();
    flags.leak()
}
