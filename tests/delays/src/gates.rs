//! The gates that added batches of a device wait for: a timeline semaphore for each queue, and a
//! thread that signals them.
//!
//! Values are given out in the order of submission and signalled in that order, each when it is
//! due; a value that no batch waits for is skipped. The lock is never held while Vulkan signals:
//! drivers submit in that call what was waiting.

use ash::vk;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The gates of a device.
pub struct Gates {
    shared: Arc<Shared>,
    /// The thread that signals, from the first submission on.
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    next: ash::Device,
    state: Mutex<State>,
    /// Something became due, or the end has come.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    gates: Vec<Gate>,
    closed: bool,
}

/// The gate of one queue.
#[derive(Debug, Default)]
struct Gate {
    queue: vk::Queue,
    semaphore: vk::Semaphore,
    /// The last value given out.
    given: u64,
    /// The values to be signalled, each with its time, in order of both.
    pending: VecDeque<(Instant, u64)>,
}

impl Gate {
    /// Schedules a value to be signalled at a time, or when those before it are.
    fn add(&mut self, due: Instant, value: u64) {
        let due = self.pending.back().map_or(due, |(last, _)| due.max(*last));
        self.pending.push_back((due, value));
    }

    /// Takes out what is due by now: the highest value of it.
    fn take_due(&mut self, now: Instant) -> Option<u64> {
        let mut value = None;
        while let Some((due, next)) = self.pending.front().copied() {
            if due > now {
                break;
            }
            self.pending.pop_front();
            value = Some(next);
        }
        value
    }
}

impl Gates {
    /// Gates for a device whose functions are `next`.
    pub fn new(next: &ash::Device) -> Self {
        Self {
            shared: Arc::new(Shared {
                next: next.clone(),
                state: Mutex::default(),
                changed: Condvar::new(),
            }),
            thread: Mutex::default(),
        }
    }

    /// The semaphore of a queue and the first of two values for its next submission, which it may wait for if they are
    /// [`armed`](Self::arm) after it. None: there is no memory for a semaphore or thread.
    pub fn reserve(&self, queue: vk::Queue) -> Option<(vk::Semaphore, u64)> {
        {
            let mut thread = self.thread.lock();
            if thread.is_none() {
                let shared = Arc::clone(&self.shared);
                let builder = std::thread::Builder::new().name("pumice-delays".to_owned());
                *thread = Some(builder.spawn(move || shared.run()).ok()?);
            }
        }
        let mut state = self.shared.state.lock();
        if !state.gates.iter().any(|gate| gate.queue == queue) {
            let mut kind = vk::SemaphoreTypeCreateInfo::default()
                .semaphore_type(vk::SemaphoreType::TIMELINE)
                .initial_value(0);
            let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
            // SAFETY: the device lives and was made with timeline semaphores.
            let semaphore = unsafe { self.shared.next.create_semaphore(&info, None) }.ok()?;
            state.gates.push(Gate {
                queue,
                semaphore,
                ..Gate::default()
            });
        }
        let gate = state.gates.iter_mut().find(|gate| gate.queue == queue)?;
        let value = gate.given + 1;
        gate.given += 2;
        Some((gate.semaphore, value))
    }

    /// Schedules a submission's two values: the first after `hold`, the second `late` after that.
    pub fn arm(&self, queue: vk::Queue, value: u64, hold: Duration, late: Duration) {
        let mut state = self.shared.state.lock();
        let due = Instant::now() + hold;
        if let Some(gate) = state.gates.iter_mut().find(|gate| gate.queue == queue) {
            gate.add(due, value);
            gate.add(due + late, value + 1);
        }
        drop(state);
        self.shared.changed.notify_one();
    }

    /// Signals what is pending of one queue, or of all, as soon as can be.
    pub fn release(&self, queue: Option<vk::Queue>) {
        let now = Instant::now();
        for gate in &mut self.shared.state.lock().gates {
            if queue.is_none_or(|queue| queue == gate.queue) {
                for (due, _) in &mut gate.pending {
                    *due = now.min(*due);
                }
            }
        }
        self.shared.changed.notify_one();
    }

    /// Lets go of everything and takes the gates away, when all work is done. Nothing may be submitted any more.
    pub fn close(&self) {
        self.shared.state.lock().closed = true;
        self.release(None);
        if let Some(thread) = self.thread.lock().take() {
            // It does not panic; if it did, what has become of the device shows soon enough.
            let _ = thread.join();
        }
        let gates = std::mem::take(&mut self.shared.state.lock().gates);
        if gates.is_empty() {
            return;
        }
        // SAFETY: the device lives; who destroys it uses none of its queues. A lost one is idle, too.
        let _ = unsafe { self.shared.next.device_wait_idle() };
        for gate in gates {
            // SAFETY: the semaphore is this layer's own, and no work is pending.
            unsafe { self.shared.next.destroy_semaphore(gate.semaphore, None) };
        }
    }
}

impl Shared {
    /// Signals what is due, until the gates are closed and nothing is left.
    fn run(&self) {
        let mut state = self.state.lock();
        loop {
            let now = Instant::now();
            let due = state.gates.iter_mut().find_map(|gate| {
                let value = gate.take_due(now)?;
                Some((gate.semaphore, value))
            });
            if let Some((semaphore, value)) = due {
                MutexGuard::unlocked(&mut state, || self.signal(semaphore, value));
                continue;
            }
            let next = state
                .gates
                .iter()
                .filter_map(|gate| gate.pending.front())
                .map(|(due, _)| *due)
                .min();
            match next {
                Some(due) => {
                    self.changed.wait_until(&mut state, due);
                }
                None if state.closed => return,
                None => self.changed.wait(&mut state),
            }
        }
    }

    fn signal(&self, semaphore: vk::Semaphore, value: u64) {
        let info = vk::SemaphoreSignalInfo::default()
            .semaphore(semaphore)
            .value(value);
        // SAFETY: the semaphore lives until this thread has ended. Its values rise, since only this thread signals it.
        let signalled = unsafe { self.next.signal_semaphore(&info) };
        if let Err(error) = signalled {
            eprintln!("delays: vkSignalSemaphore: {error:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_due_in_order() {
        let (mut gate, now) = (Gate::default(), Instant::now());
        let after = |ms| now + Duration::from_millis(ms);
        gate.add(after(5), 1);
        // Earlier than the one before: comes with it.
        gate.add(after(2), 2);
        gate.add(after(9), 3);
        assert_eq!(gate.take_due(after(2)), None);
        assert_eq!(gate.take_due(after(5)), Some(2));
        assert_eq!(gate.take_due(after(8)), None);
        assert_eq!(gate.take_due(after(20)), Some(3));
        assert_eq!(gate.take_due(after(20)), None);
    }
}
