//! Steps that run kernels, and those that replace them.

use super::*;

impl Worker<'_> {
    /// A random launch: global size, offset, local size (0: none given).
    pub(super) fn shape(&mut self, items: usize) -> (usize, usize) {
        let offset = if self.rng.percent(30) {
            self.rng.below(1000)
        } else {
            0
        };
        let local = match self.rng.below(4) {
            0 => 0,
            1 => 1 + self.rng.below(64),
            2 => 64,
            _ => (1..=64).rev().find(|n| items % n == 0).unwrap_or(1),
        };
        (offset, local)
    }

    pub(super) fn kernel(&mut self, name: &str) -> Kernel {
        // A kernel of its own, whose release right after the launch is legal, or the thread's.
        let found = self.kernels.iter().position(|(known, _)| *known == name);
        let index = found.expect("one of the kernels");
        self.kernels[index].1.copy()
    }

    /// Two ranges of `words` words each, in views of buffers, that do not overlap.
    #[allow(clippy::type_complexity)]
    pub(super) fn two(
        &mut self,
        same: bool,
    ) -> Option<(
        (Arc<Buf>, cl_mem, usize, Range<usize>),
        (Arc<Buf>, cl_mem, usize, Range<usize>),
    )> {
        let (dst, src) = (self.buffer(), self.buffer());
        let (to, from) = (dst.view(&mut self.rng), src.view(&mut self.rng));
        let a = self.rng.range(to.size, 4);
        let b = self.rng.range(from.size, 4);
        let (mut a, mut b) = (a.start / 4..a.end / 4, b.start / 4..b.end / 4);
        if same {
            let words = a.len().min(b.len());
            a.end = a.start + words;
            b.end = b.start + words;
        }
        let used = to.origin + a.start * 4..to.origin + a.end * 4;
        let read = from.origin + b.start * 4..from.origin + b.end * 4;
        if Arc::ptr_eq(&dst, &src) && used.start < read.end && read.start < used.end {
            return None;
        }
        Some(((dst, to.mem, a.start, used), (src, from.mem, b.start, read)))
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn launch(
        &mut self,
        name: &'static str,
        lane: &Arc<Lane>,
        kernel: &Kernel,
        uses: &[Use],
        items: usize,
        (offset, local): (usize, usize),
        effect: impl FnOnce(&mut crate::world::Locked<'_>),
    ) {
        self.enqueue(
            name,
            lane,
            uses,
            false,
            |count, list, event| {
                call!(clEnqueueNDRangeKernel(
                    lane.id,
                    kernel.id,
                    1,
                    if offset == 0 { null() } else { &offset },
                    &items,
                    if local == 0 { null() } else { &local },
                    count,
                    list,
                    event
                ))
            },
            effect,
        );
    }

    pub(super) fn mix(&mut self) {
        let lane = self.lane();
        let Some((to, from)) = self.two(true) else {
            return;
        };
        let kernel = self.kernel("mix");
        let pair = [self.rng.next() as u32, self.rng.next() as u32];
        kernel
            .set(0, to.1)
            .set(1, to.2 as u32)
            .set(2, from.1)
            .set(3, from.2 as u32)
            .set(4, pair);
        let uses = [
            Use::write(&to.0, to.3.clone()),
            Use::read(&from.0, from.3.clone()),
        ];
        let items = to.3.len() / 4;
        let shape = self.shape(items);
        let variant = kernel.variant;
        self.launch("mix", &lane, &kernel, &uses, items, shape, |locked| {
            let src = locked.of(&from.0).bytes[from.3].to_vec();
            let dst = &mut locked.of(&to.0).bytes[to.3];
            kernels::mix(dst, &src, pair[0], pair[1], variant);
        });
    }

    pub(super) fn sums(&mut self) {
        let lane = self.lane();
        let Some((to, from)) = self.two(true) else {
            return;
        };
        let kernel = self.kernel("sums");
        let local = 1 + self.rng.below(64);
        kernel
            .set(0, to.1)
            .set(1, to.2 as u32)
            .set(2, from.1)
            .set(3, from.2 as u32)
            .set_local(4, local * 4);
        let uses = [
            Use::write(&to.0, to.3.clone()),
            Use::read(&from.0, from.3.clone()),
        ];
        let items = to.3.len() / 4;
        let variant = kernel.variant;
        self.launch("sums", &lane, &kernel, &uses, items, (0, local), |locked| {
            let src = locked.of(&from.0).bytes[from.3].to_vec();
            kernels::sums(&mut locked.of(&to.0).bytes[to.3], &src, local, variant);
        });
    }

    pub(super) fn count(&mut self) {
        let lane = self.lane();
        let Some((to, from)) = self.two(false) else {
            return;
        };
        let kernel = self.kernel("count");
        let slots = to.3.len() / 4;
        kernel
            .set(0, to.1)
            .set(1, to.2 as u32)
            .set(2, slots as u32)
            .set(3, from.1)
            .set(4, from.2 as u32);
        let uses = [
            Use::write(&to.0, to.3.clone()),
            Use::read(&from.0, from.3.clone()),
        ];
        let items = from.3.len() / 4;
        let (_, local) = self.shape(items);
        let variant = kernel.variant;
        self.launch(
            "count",
            &lane,
            &kernel,
            &uses,
            items,
            (0, local),
            |locked| {
                let src = locked.of(&from.0).bytes[from.3].to_vec();
                kernels::count(&mut locked.of(&to.0).bytes[to.3], &src, variant);
            },
        );
    }

    pub(super) fn new_kernels(&mut self) {
        let slot = self.rng.pick(&self.shared.programs);
        let program = lock(slot).clone();
        let images: &[&'static str] = match self.shared.world.images {
            true => &crate::picture::KERNELS,
            false => &[],
        };
        let names = NAMES.iter().chain(images);
        self.kernels = names.map(|name| (*name, program.kernel(name))).collect();
    }
}
