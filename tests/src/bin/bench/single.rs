//! One kernel that is launched again and again, with what it needs.

use super::work::{Figure, Ready, Rig};
use pumice_tests::client::{Buffer, Context, Kernel, Plain, Queue, Result};

/// See the module.
pub struct Bench {
    pub context: Context,
    pub queue: Queue,
    pub kernel: Kernel,
    pub buffers: Vec<Buffer>,
}

impl Bench {
    /// A kernel of a source.
    pub fn new(rig: &Rig, source: &str, kernel: &str) -> Result<Self> {
        let (context, queue) = rig.open()?;
        let kernel = context.program(source, rig.options())?.kernel(kernel)?;
        let buffers = Vec::new();
        Ok(Self {
            context,
            queue,
            kernel,
            buffers,
        })
    }

    /// Adds an argument: a buffer with these contents.
    pub fn with<T: Plain>(mut self, data: &[T]) -> Result<Self> {
        let buffer = self.context.buffer(size_of_val(data))?;
        self.queue.write(&buffer, data)?;
        self.kernel.arg_buffer(self.buffers.len() as u32, &buffer)?;
        self.buffers.push(buffer);
        Ok(self)
    }

    /// Returns the contents of an argument after the first launch.
    pub fn first<T: Plain + Default + Clone>(
        &self,
        (global, local): (&[usize], &[usize]),
        argument: usize,
        count: usize,
    ) -> Result<Vec<T>> {
        self.queue.launch(&self.kernel, global, local)?;
        self.queue.read_vec(&self.buffers[argument], count)
    }

    /// As a workload.
    pub fn ready<const N: usize>(
        self,
        global: [usize; N],
        local: Option<[usize; N]>,
        figure: Figure,
    ) -> Ready {
        Ready {
            run: Box::new(move |n| {
                // All of it is kept, the buffers too.
                let bench = &self;
                let local = local.as_ref().map_or(&[][..], |local| &local[..]);
                for _ in 0..n {
                    bench.queue.launch(&bench.kernel, &global, local)?;
                }
                bench.queue.finish()
            }),
            figure,
        }
    }
}
