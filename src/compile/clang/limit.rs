//! How many compilers run at the same time: as many as there are cores, whoever starts them; the rest wait.

use parking_lot::{Condvar, Mutex};
use std::time::Duration;

/// A number of places for compilers.
pub struct CompilerLimit {
    most: usize,
    state: Mutex<Taken>,
    freed: Condvar,
}

struct Taken {
    taken: usize,
    /// The process that they were taken in: in a forked child nobody gives back what other threads had.
    owner: u32,
}

/// How often is looked whether waiting still makes sense: a lock may have been held when this process was forked.
const LOOK: Duration = Duration::from_secs(1);

/// A place; given back when dropped.
pub struct Turn<'a>(Option<&'a CompilerLimit>);

impl CompilerLimit {
    /// So many places.
    pub const fn new(most: usize) -> Self {
        Self {
            most,
            state: Mutex::new(Taken { taken: 0, owner: 0 }),
            freed: Condvar::new(),
        }
    }

    /// Takes a place, waiting for one if need be.
    pub fn take(&self) -> Turn<'_> {
        let Some(mut state) = self.state.try_lock_for(LOOK) else {
            // Nobody holds the lock that long, except in a parent that is not here.
            return Turn(None);
        };
        let here = std::process::id();
        if state.owner != here {
            *state = Taken {
                taken: 0,
                owner: here,
            };
        }
        while state.taken >= self.most {
            self.freed.wait_for(&mut state, LOOK);
        }
        state.taken += 1;
        Turn(Some(self))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let Some(limit) = self.0 else { return };
        let mut state = limit.state.lock();
        if state.owner == std::process::id() {
            state.taken = state.taken.saturating_sub(1);
        }
        drop(state);
        limit.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn the_rest_wait() {
        let (limit, now, most) = (
            CompilerLimit::new(3),
            AtomicUsize::new(0),
            AtomicUsize::new(0),
        );
        std::thread::scope(|scope| {
            for _ in 0..30 {
                scope.spawn(|| {
                    let _turn = limit.take();
                    let running = now.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(running, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(2));
                    now.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert_eq!(most.load(Ordering::SeqCst), 3);
        assert_eq!(limit.state.lock().taken, 0);
    }

    /// A place that was taken before a fork is not waited for after it.
    #[test]
    fn a_child_begins_anew() {
        let limit = CompilerLimit::new(1);
        let turn = limit.take();
        limit.state.lock().owner = 1;
        drop(limit.take());
        assert_eq!(limit.state.lock().taken, 0);
        drop(turn);
    }
}
