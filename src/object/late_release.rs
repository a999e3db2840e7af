//! The remains of objects that commands may still be using when the application releases them: memory of the application
//! that devices read in place, destructor callbacks.
//!
//! One thread for all of them, started with the first and ended when nothing is left. What is over first goes first; what
//! waits for one queue does not wait for another.

use super::context::Context;
use super::progress::ContextQueue;
use crate::util::guard::guarded;
use crate::util::shutdown::Call;
use crate::util::thread;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// How long the thread waits for one queue before it looks at the others.
const TURN: Duration = Duration::from_millis(5);

/// Commands that have to be over: queues, and the values that their timelines have then.
pub struct After(Vec<(Arc<dyn ContextQueue>, u64)>);

impl After {
    /// Returns the queues of a context with their present positions, or `None` if all recorded work
    /// is complete.
    pub fn queues(context: &Context) -> Option<Self> {
        let mut busy: Vec<(Arc<dyn ContextQueue>, u64)> = Vec::new();
        for queue in context.queues() {
            let value = queue.progress().recorded();
            let timeline = &queue.progress().timeline;
            let now = timeline.completed();
            if now.is_ok_and(|now| now < value) || timeline.runs_on() {
                busy.push((queue, value));
            }
        }
        (!busy.is_empty()).then_some(Self(busy))
    }

    /// Returns true if all commands are complete. Waits for one of the queues, for `patience` at
    /// most.
    fn is_over(&mut self, patience: Duration) -> bool {
        while let Some((queue, value)) = self.0.last() {
            let progress = queue.progress();
            if progress.submitted() < *value {
                queue.flush();
            }
            // A lost device finishes nothing: the object is gone all the same.
            match progress.timeline.wait(*value, Some(patience)) {
                Ok(false) => return false,
                // Its memory is in use still.
                Ok(true) if progress.timeline.runs_on() => {
                    std::thread::sleep(patience);
                    return false;
                }
                Ok(true) | Err(_) => self.0.pop(),
            };
        }
        true
    }
}

struct LateWork {
    after: After,
    work: Box<dyn FnOnce() + Send>,
}

#[derive(Default)]
struct Waiting {
    all: Vec<LateWork>,
    /// There is a thread, which sees what is added.
    thread: bool,
}

static WAITING: Mutex<Waiting> = Mutex::new(Waiting {
    all: Vec::new(),
    thread: false,
});

/// Runs `work` in another thread once `after` is complete.
pub fn later(after: After, work: impl FnOnce() + Send + 'static) {
    let mut waiting = WAITING.lock();
    waiting.all.push(LateWork {
        after,
        work: Box::new(work),
    });
    if waiting.thread {
        return;
    }
    match thread::spawn("pumice-free", work_off) {
        Ok(()) => waiting.thread = true,
        // The next object tries again.
        Err(error) => crate::log!(Warn, "no thread for a destructor callback: {error}"),
    }
}

fn work_off() {
    let mut mine: Vec<LateWork> = Vec::new();
    loop {
        {
            let mut waiting = WAITING.lock();
            mine.append(&mut waiting.all);
            if mine.is_empty() {
                waiting.thread = false;
                return;
            }
        }
        let _call = Call::enter_or_stay();
        let mut patience = TURN;
        let mut left = Vec::new();
        for mut one in mine.drain(..) {
            if one.after.is_over(patience) {
                guarded("a callback", one.work);
            } else {
                // The others are only looked at, in this turn.
                patience = Duration::ZERO;
                left.push(one);
            }
        }
        mine = left;
    }
}
