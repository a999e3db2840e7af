//! Commands that wait for a flag, and launches that fail.

use super::{command, Call};
use crate::run::Run;
use crate::watch::Key;
use pumice_tests::ok;
use pumice_tests::sys::*;
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Waits for the flag whose address is the argument.
unsafe extern "C" fn wait(args: *mut c_void) {
    // SAFETY: a copy of the address of a flag, which is never freed.
    let flag = unsafe { &*args.cast::<*const AtomicU32>().read_unaligned() };
    while flag.load(Ordering::SeqCst) == 0 {
        std::thread::sleep(Duration::from_micros(50));
    }
}

impl Run<'_> {
    /// Closes the gate of an action.
    fn close(&self, index: usize, flag: &AtomicU32) {
        flag.store(0, Ordering::SeqCst);
        if let Some(watch) = &self.watch {
            let flag: *const AtomicU32 = flag;
            watch.close(index, Key::Flag(flag as usize));
        }
    }

    pub(super) fn gate_kernel(&self, call: Call, index: usize) -> cl_int {
        let waiting = self.world.waiting();
        let place = waiting.flags + 64 * index;
        // SAFETY: within the memory for flags, which is freed with the context.
        self.close(index, unsafe { &*(place as *const AtomicU32) });
        ok!(clSetKernelArgSVMPointer(
            waiting.kernel,
            0,
            place as *const c_void
        ));
        self.launch(call, waiting.kernel, &1, null())
    }

    pub(super) fn gate_native(&self, call: Call, index: usize) -> cl_int {
        let flag = &self.flags[index];
        self.close(index, flag);
        let mut place: *const AtomicU32 = flag;
        let (args, size) = ((&raw mut place).cast(), size_of::<*const AtomicU32>());
        command!(
            self,
            call,
            clEnqueueNativeKernel(Some(wait), args, size, 0, null(), null_mut())
        )
    }

    /// The launch that fails; where its call does, as it is enqueued, a user event that has failed stands for it.
    pub(super) fn doomed(&self, call: Call) -> cl_int {
        let failing = self.world.failing();
        let code = self.launch(call, failing.kernel, &failing.group, &failing.group);
        match call.record {
            Some(_) => code,
            None => self.failed(call, code),
        }
    }
}
