//! Limits how many compilers run at the same time to the number of cores; others wait.

use parking_lot::{Condvar, Mutex};
use std::time::Duration;

/// A counting semaphore for compilers.
pub struct CompilerLimit {
    most: usize,
    state: Mutex<Taken>,
    freed: Condvar,
}

struct Taken {
    taken: usize,
    /// The process that took the permits: a forked child does not release those of other threads.
    owner: u32,
}

/// The interval at which a waiting thread checks for a fork, which may have left the lock held.
const LOOK: Duration = Duration::from_secs(1);

/// A permit, which is released when dropped.
pub struct Permit<'a>(Option<&'a CompilerLimit>);

impl CompilerLimit {
    /// Creates a limit of `most` compilers.
    pub const fn new(most: usize) -> Self {
        Self {
            most,
            state: Mutex::new(Taken { taken: 0, owner: 0 }),
            freed: Condvar::new(),
        }
    }

    /// Takes a permit, and waits for one if there is none.
    pub fn take(&self) -> Permit<'_> {
        let Some(mut state) = self.state.try_lock_for(LOOK) else {
            // Nobody holds the lock that long, except in a parent that is not here.
            return Permit(None);
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
        Permit(Some(self))
    }
}

impl Drop for Permit<'_> {
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

    /// Checks that a forked child does not wait for permits that were taken before the fork.
    #[test]
    fn a_child_begins_anew() {
        let limit = CompilerLimit::new(1);
        let permit = limit.take();
        limit.state.lock().owner = 1;
        drop(limit.take());
        assert_eq!(limit.state.lock().taken, 0);
        drop(permit);
    }
}
