//! Checks what must have happened while gates are closed ([`crate::gates`]).

use super::Run;
use pumice_tests::process::resident;
use pumice_tests::sys::*;
use pumice_tests::{call, info_value, ok};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// So much more memory than the program handed over may be in flight.
const SLACK: i64 = 64 << 20;

impl Run<'_> {
    fn status(&self, index: usize) -> cl_int {
        let (event, param) = (self.events[index], CL_EVENT_COMMAND_EXECUTION_STATUS);
        self.watched(index, || info_value!(cl_int, clGetEventInfo(event), param))
    }

    /// Makes a call that has to return.
    fn watched<R>(&self, action: usize, run: impl FnOnce() -> R) -> R {
        if let Some(watch) = &self.watch {
            watch.begin(action);
        }
        let result = run();
        if let Some(watch) = &self.watch {
            watch.end();
        }
        result
    }

    /// How often the callback of an action has come, if it has one.
    fn calls(&self, index: usize) -> Option<u32> {
        let own = self.callbacks.iter().find(|(of, _)| *of == index);
        own.map(|(_, counter)| counter.load(Ordering::SeqCst))
    }

    /// Waits until something holds, for as long as it may take.
    fn soon(&self, holds: impl Fn() -> bool) -> bool {
        let end = Instant::now() + self.conduct.grace;
        while !holds() {
            if Instant::now() > end {
                return holds();
            }
            std::thread::sleep(Duration::from_micros(20));
        }
        true
    }

    /// Checks events, callbacks and memory, for the action `by` that opens a gate.
    pub(super) fn check_closed(&self, by: usize) -> Result<(), String> {
        for &queue in self.stage.queues.iter().filter(|queue| !queue.is_null()) {
            self.watched(by, || ok!(clFlush(queue)));
        }
        let promises = self.planner.promises();
        let gates = format!("while gates are closed, by action {by}");
        // The planner may have more: what has been opened at the end.
        let actions = self.planner.program().actions.len();
        for index in 0..actions.min(self.events.len()) {
            let event = self.events[index];
            if event.is_null() || !self.program.actions[index].is_command() {
                continue;
            }
            let fails = self.program.fails(index);
            if promises.promised(index) {
                // One is asked, the next one is waited for, which the watch sees.
                if index % 2 == 0 && !self.soon(|| self.status(index) <= CL_COMPLETE) {
                    let status = self.status(index);
                    return Err(format!("action {index}: not complete {gates}: {status}"));
                }
                let wait = || call!(clWaitForEvents(1, &event));
                if index % 2 == 1 && self.watched(index, wait) != self.code(fails) {
                    return Err(format!("action {index}: wrong end {gates}"));
                }
                let status = self.status(index);
                if (status < 0) != fails || status > CL_COMPLETE {
                    return Err(format!("action {index}: status {status} {gates}"));
                }
                if !self.soon(|| self.calls(index).is_none_or(|calls| calls == 1)) {
                    return Err(format!("action {index}: no callback {gates}"));
                }
            } else if promises.stuck(index) {
                // In this order: the gate may have been opened for a call that did not return.
                let (status, calls) = (self.status(index), self.calls(index));
                let late = self.watch.as_ref().and_then(|watch| watch.late());
                if late.is_none() && (status <= CL_COMPLETE || calls.is_some_and(|calls| calls > 0))
                {
                    return Err(format!(
                        "action {index}: complete before its gate, by action {by}"
                    ));
                }
            }
        }
        self.check_payloads(by)?;
        let bytes = self
            .program
            .memories
            .iter()
            .map(|memory| memory.size)
            .sum::<usize>();
        let handed = (bytes * (1 + actions)) as i64;
        let more = resident() - self.resident;
        match more > handed + SLACK {
            true => Err(format!("{more} bytes of memory more {gates}")),
            false => Ok(()),
        }
    }

    /// A semaphore is signalled once its signal is over, unless a wait is there to take it.
    fn check_payloads(&self, by: usize) -> Result<(), String> {
        let promises = self.planner.promises();
        let actions = self.planner.program().actions.len();
        for of in 0..self.program.semaphores.len() {
            let signal = self.program.signal(of, actions);
            let Some(signal) = signal.filter(|_| !self.stage.semaphores[of].is_null()) else {
                continue;
            };
            let payload = || self.watched(by, || self.payload(of));
            let over = promises.promised(signal) && !self.program.fails(signal);
            if over && !self.soon(|| payload() == 1) {
                return Err(format!("semaphore {of} is not signalled, by action {by}"));
            }
            let late = || self.watch.as_ref().and_then(|watch| watch.late());
            if promises.stuck(signal) && payload() != 0 && late().is_none() {
                return Err(format!("semaphore {of} is signalled early, by action {by}"));
            }
        }
        Ok(())
    }
}
