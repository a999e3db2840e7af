//! A program in use on a device: its program-scope variables, and the kernels that construct and
//! destruct them (SPIR-V execution modes Initializer and Finalizer; constructors and destructors of
//! C++ for OpenCL).
//!
//! The initializers run when the first kernel of the program is about to be launched, one work-item
//! each, and complete before that launch, so that they precede all uses of the program in any
//! queue. The finalizers run when the program's last reference is released: in the thread that
//! releases it or, where launches are still pending that use the instance
//! ([`Instance::has_finalizers`]), in a thread of their own once the last of them completes. A
//! program of which no kernel was ever launched runs neither.

use super::implicit::ImplicitValues;
use super::printf::{self, Output, Printed};
use crate::backend::spare_stream::SpareStream;
use crate::backend::{staging, Code, Device, DeviceError, Memory, Op, OrderRule, Placement};
use crate::backend::{Slice, Use};
use crate::util::shutdown::Call;
use crate::util::thread;
use spirv_lowering::ir::module::PrintfSite;
use std::any::Any;
use std::sync::Arc;

/// An initializer or finalizer, loaded.
pub struct Lifecycle {
    /// The loaded kernel; it has no arguments.
    pub code: Arc<dyn Code>,
    /// Its printf sites.
    pub printfs: Vec<PrintfSite>,
}

/// The finalizers, with what they run on.
pub struct End {
    /// The device.
    pub device: Arc<dyn Device>,
    /// The program-scope variables.
    pub globals: Option<Arc<dyn Memory>>,
    /// The finalizers, in order.
    pub finalizers: Vec<Lifecycle>,
    /// Dropped after the finalizers have run.
    pub companion: Option<Arc<dyn Any + Send + Sync>>,
    /// The destination of what they print.
    pub output: Arc<Output>,
}

/// A program in use on a device.
pub struct Instance {
    end: End,
}

impl Instance {
    /// Runs the initializers on the variables' memory, and waits for them; `printed` receives what
    /// they print. If one fails, no finalizer runs.
    pub fn begin(
        end: End,
        initializers: &[Lifecycle],
        printed: &mut Vec<Printed>,
    ) -> Result<Self, DeviceError> {
        for initializer in initializers {
            printed.extend(run(&end, initializer)?);
        }
        let companion = end.companion.filter(|_| !end.finalizers.is_empty());
        Ok(Self {
            end: End { companion, ..end },
        })
    }

    /// Returns the memory of the program-scope variables, if there are any.
    pub fn globals(&self) -> Option<&Arc<dyn Memory>> {
        self.end.globals.as_ref()
    }

    /// Returns true if there are finalizers: a user of the instance must keep it until that use
    /// completes.
    pub fn has_finalizers(&self) -> bool {
        !self.end.finalizers.is_empty()
    }

    /// Runs the finalizers in the calling thread and waits for them. No lock should be held.
    pub fn end(mut self) {
        self.take_end().run();
    }

    fn take_end(&mut self) -> End {
        End {
            device: self.end.device.clone(),
            globals: self.end.globals.take(),
            finalizers: std::mem::take(&mut self.end.finalizers),
            companion: self.end.companion.take(),
            output: self.end.output.clone(),
        }
    }
}

impl Drop for Instance {
    /// Runs the finalizers in a thread of their own: the last user may be a queue with its locks,
    /// which must not wait for a device.
    fn drop(&mut self) {
        if !self.has_finalizers() {
            return;
        }
        let end = self.take_end();
        let spawned = thread::spawn("pumice-final", move || {
            let _call = Call::enter_or_stay();
            end.run();
        });
        if let Err(error) = spawned {
            crate::log!(Warn, "finalizers of a program were not run: {error}");
        }
    }
}

impl End {
    fn run(self) {
        // The release of a program is no reason to reach a driver while the process ends, or in a forked child.
        let Some(_call) = Call::enter() else { return };
        for finalizer in &self.finalizers {
            match run(&self, finalizer) {
                Ok(Some(printed)) => self.output.print(&printed.sites, &printed.bytes),
                Ok(None) => {}
                Err(error) => crate::log!(Warn, "a finalizer of a program was not run: {error}"),
            }
        }
    }
}

/// Runs a kernel without arguments, in one work-group of one work-item or as large as it requires,
/// and waits. Returns what it has printed.
fn run(on: &End, kernel: &Lifecycle) -> Result<Option<Printed>, DeviceError> {
    let (device, globals) = (on.device.as_ref(), on.globals.as_ref());
    let interface = kernel.code.interface();
    let local = interface
        .attributes
        .required_work_group_size
        .unwrap_or([1; 3]);
    let items = local.iter().map(|&n| u64::from(n)).product::<u64>();
    if items > kernel.code.max_work_group_size().into() {
        return Err(DeviceError::Driver {
            call: "an initializer or finalizer",
            code: format!(
                "`{}` requires a work-group of {items} work-items",
                interface.name
            ),
        });
    }
    let whole = |memory: &Arc<dyn Memory>| Use {
        slice: Slice {
            memory: memory.clone(),
            offset: 0,
            size: memory.size(),
        },
        write: true,
    };
    let mut uses: Vec<Use> = globals.map(whole).into_iter().collect();
    let printf = match interface.uses_printf {
        true => {
            let size = on.output.buffer_size();
            let memory = device.allocate(size.into(), Placement::Device)?;
            let mut empty = vec![0; size as usize];
            let header = printf::header(size);
            empty[..header.len()].copy_from_slice(&header);
            staging::upload(device, &memory, 0, &empty)?;
            uses.push(whole(&memory));
            Some(memory)
        }
        false => None,
    };
    let address = |memory: Option<&Arc<dyn Memory>>| memory.map_or(0, |m| m.address());
    let mut push = vec![0; interface.push_size as usize];
    let values = ImplicitValues {
        globals: address(globals),
        printf: address(printf.as_ref()),
        dims: 1,
        global: local.map(u64::from),
        local,
        groups: [1; 3],
        ..ImplicitValues::default()
    };
    values.write(interface, &mut push);
    let mut stream = SpareStream::new(device)?;
    let pipeline = kernel.code.specialise(local, &[], 1)?;
    let op = Op::Dispatch {
        pipeline: &pipeline,
        groups: [1; 3],
        push: &push,
        uses: &uses,
        bindings: &[],
        touches_anything: true,
    };
    stream.record(op, OrderRule::InOrder, false)?;
    let value = stream.submit(false)?;
    stream.timeline().clone().wait(value, None)?;
    stream.give_back();
    let Some(memory) = printf else {
        return Ok(None);
    };
    Ok(Some(Printed {
        sites: kernel.printfs.clone(),
        bytes: staging::download(device, &memory, memory.size())?,
    }))
}
