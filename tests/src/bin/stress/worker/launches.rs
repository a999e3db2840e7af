//! Steps that run kernels, and those that replace them.

use super::*;

/// Words of a view of a buffer that a kernel uses.
pub(super) struct Words {
    pub(super) buffer: Arc<Buf>,
    view: View,
    /// The first, in the view.
    first: usize,
    /// Bytes of the buffer.
    pub(super) used: Range<usize>,
    /// Bytes of the buffer that other commands must leave alone meanwhile.
    touched: Range<usize>,
}

impl Words {
    /// `several`: contents may have to be brought from another device, and nobody but the kernel knows which.
    pub(super) fn new(buffer: Arc<Buf>, view: View, words: Range<usize>, several: bool) -> Self {
        let used = view.origin + words.start * 4..view.origin + words.end * 4;
        let touched = match (several, view.address) {
            (true, None) => view.origin..view.origin + view.size,
            // Pointers lead everywhere in an allocation.
            (true, Some(_)) => 0..buffer.size(),
            (false, _) => used.clone(),
        };
        Self {
            buffer,
            view,
            first: words.start,
            used,
            touched,
        }
    }

    pub(super) fn read(&self) -> Use {
        Use::read(&self.buffer, self.touched.clone())
    }

    pub(super) fn write(&self) -> Use {
        Use::write(&self.buffer, self.touched.clone())
    }

    /// Sets the argument for the memory, and the next, the number of the first word there.
    pub(super) fn give(&self, kernel: &Kernel, index: cl_uint, rng: &mut Rng) {
        let first = match self.view.address {
            Some(address) if self.view.mem.is_null() || rng.percent(50) => {
                let before = rng.below(self.first + 1);
                kernel.set_pointer(index, address + before * 4);
                self.first - before
            }
            _ => {
                kernel.set(index, self.view.mem);
                self.first
            }
        };
        kernel.set(index + 1, first as u32);
    }

    fn count(&self) -> usize {
        self.used.len() / 4
    }
}

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

    /// Two ranges of words in views of buffers that do not stand in each other's way; `same`: as many words.
    pub(super) fn two(&mut self, same: bool) -> Option<(Words, Words)> {
        let (dst, src) = (self.memory(), self.memory());
        let (to, from) = (dst.view(&mut self.rng), src.view(&mut self.rng));
        let a = self.rng.range(to.size, 4);
        let b = self.rng.range(from.size, 4);
        let (mut a, mut b) = (a.start / 4..a.end / 4, b.start / 4..b.end / 4);
        if same {
            let words = a.len().min(b.len());
            a.end = a.start + words;
            b.end = b.start + words;
        }
        let several = self.shared.world.several();
        let (to, from) = (
            Words::new(dst, to, a, several),
            Words::new(src, from, b, several),
        );
        disjoint(&to.write(), &from.read()).then_some((to, from))
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
        effect: impl FnOnce(&mut Locked<'_>),
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
        let pair = [self.rng.bits() as u32, self.rng.bits() as u32];
        to.give(&kernel, 0, &mut self.rng);
        from.give(&kernel, 2, &mut self.rng);
        kernel.set(4, pair);
        let uses = [to.write(), from.read()];
        let items = to.count();
        let shape = self.shape(items);
        let variant = kernel.variant;
        self.launch("mix", &lane, &kernel, &uses, items, shape, |locked| {
            let src = locked.of(&from.buffer).bytes[from.used].to_vec();
            let dst = &mut locked.of(&to.buffer).bytes[to.used];
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
        to.give(&kernel, 0, &mut self.rng);
        from.give(&kernel, 2, &mut self.rng);
        kernel.set_local(4, local * 4);
        let uses = [to.write(), from.read()];
        let items = to.count();
        let variant = kernel.variant;
        self.launch("sums", &lane, &kernel, &uses, items, (0, local), |locked| {
            let src = locked.of(&from.buffer).bytes[from.used].to_vec();
            kernels::sums(
                &mut locked.of(&to.buffer).bytes[to.used],
                &src,
                local,
                variant,
            );
        });
    }

    pub(super) fn count(&mut self) {
        let lane = self.lane();
        let Some((to, from)) = self.two(false) else {
            return;
        };
        let kernel = self.kernel("count");
        let slots = to.count();
        to.give(&kernel, 0, &mut self.rng);
        kernel.set(2, slots as u32);
        from.give(&kernel, 3, &mut self.rng);
        let uses = [to.write(), from.read()];
        let items = from.count();
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
                let src = locked.of(&from.buffer).bytes[from.used].to_vec();
                kernels::count(&mut locked.of(&to.buffer).bytes[to.used], &src, variant);
            },
        );
    }

    /// A launch that prints, where somebody counts the lines.
    pub(super) fn say(&mut self) {
        if self.shared.world.number.is_none() {
            return;
        }
        let lane = self.lane();
        let kernel = self.kernel("say");
        kernel.set(0, self.rng.bits() as u32);
        let items = 1 + self.rng.below(40);
        self.launch("say", &lane, &kernel, &[], items, (0, 0), |_| {
            print::expect(items);
        });
    }

    pub(super) fn new_kernels(&mut self) {
        let slot = self.rng.pick(&self.shared.programs);
        let program = lock(slot).clone();
        let images: &[&'static str] = match self.shared.world.images {
            true => &crate::picture::KERNELS,
            false => &[],
        };
        let pointers: &[&'static str] = match self.shared.world.svm.is_empty() {
            true => &[],
            false => &["reach"],
        };
        let prints: &[&'static str] = match self.shared.world.number {
            Some(_) => &["say"],
            None => &[],
        };
        let names = NAMES.iter().chain(images).chain(pointers).chain(prints);
        self.kernels = names.map(|name| (*name, program.kernel(name))).collect();
    }
}
