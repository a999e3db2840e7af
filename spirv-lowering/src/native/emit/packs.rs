//! The frame of a region's function: the loop over the packs of a work-group.

use super::launch::{INDEX, LOCAL, PACK};
use super::slots::Lanes;
use super::{Context, Emitter, Mask};
use crate::error::Result;
use crate::ir::op::IntCond;
use crate::native::llvm::{Cast, Label, LlvmType, Operand};
use crate::native::{layout, Packing};

const START: Label = Label::Word("start");
const NEXT_PACK: Label = Label::Word("next_pack");
/// The end of a pack, of a row of them with the next, of a plane of rows with the next, and of all.
const DONE: Label = Label::Word("done");
const DONE_Y: Label = Label::Word("done_y");
const DONE_Z: Label = Label::Word("done_z");
const END: Label = Label::Word("end");

/// The number of a kind of work-items, and what it is in the next pack.
struct Counter {
    now: Operand,
    next: Operand,
}

impl Counter {
    const fn new(now: &'static str, next: &'static str) -> Self {
        Self {
            now: Operand::named(LlvmType::I32, now),
            next: Operand::named(LlvmType::I32, next),
        }
    }
}

/// Work-groups that are run, where they are lanes.
const MANY: Operand = Operand::named(LlvmType::I32, "many");
const FRAME: Operand = Operand::named(LlvmType::PTR, "frame");
/// The frame of the pack.
pub(super) const OWN: Operand = Operand::named(LlvmType::PTR, "own");

impl Emitter<'_> {
    /// Writes the region for all packs of a group.
    pub(super) fn packs(&mut self, several: bool) -> Result<()> {
        let zero = Operand::i32(0);
        let next = several.then(|| self.llvm.counter(0));
        let size: [Operand; 3] = [0, 1, 2].map(|dim| self.launch_size(layout::LOCAL_SIZE, dim));
        let frame_bytes = self.launch_field(layout::FRAME_BYTES, LlvmType::I64);
        self.local_arguments();
        self.llvm.jump(NEXT_PACK);
        self.llvm.begin(NEXT_PACK);
        let counters = [
            Counter::new("x", "x1"),
            Counter::new("y", "y1"),
            Counter::new("z", "z1"),
        ];
        let (pack, index) = (
            Counter::new("pack", "pack1"),
            Counter::new("index", "index1"),
        );
        let mask = match self.shape.packing {
            Packing::Rows | Packing::Tails => self.rows(&counters, &pack, &size),
            Packing::Groups | Packing::Alone => self.groups(&counters),
            Packing::Linear => self.linear(&index, &pack, &size),
        };
        let number = self.llvm.cast(Cast::ZExt, &PACK, LlvmType::I64);
        let offset = self.llvm.mul(&number, &frame_bytes);
        self.llvm.named(&OWN).offset(&FRAME, &offset);
        self.region(mask, DONE, next.clone())?;
        self.llvm.begin(DONE);
        self.llvm.named(&pack.next).add(&PACK, &Operand::i32(1));
        match self.shape.packing {
            Packing::Rows | Packing::Tails => self.end_of_row(&counters, &size),
            Packing::Groups | Packing::Alone => self.llvm.jump(END),
            Packing::Linear => {
                let lanes = Operand::i32(self.shape.lanes);
                let llvm = &mut self.llvm;
                llvm.named(&index.next).add(&INDEX, &lanes);
                let items = llvm.mul(&size[0], &size[1]);
                let items = llvm.mul(&items, &size[2]);
                let more = llvm.icmp(IntCond::Ult, &index.next, &items);
                llvm.branch(&more, NEXT_PACK, END);
            }
        }
        self.llvm.begin(END);
        let next = match next {
            Some(next) => self.llvm.get(&next),
            None => zero,
        };
        self.llvm.ret(Some(&next));
        Ok(())
    }

    /// Defines the kernel's parameters, which are addresses of local memory.
    fn local_arguments(&mut self) {
        let func = self.func;
        let Some(block) = func.entry() else { return };
        for (i, &param) in func.blocks[block].params.iter().enumerate() {
            let table = self.launch_field(layout::LOCAL_ARGS, LlvmType::PTR);
            let address = self.llvm.once(|llvm| {
                let at = llvm.offset(&table, &Operand::i64(8 * i as u64));
                let offset = llvm.load_invariant(LlvmType::I32, &at, 4);
                let offset = llvm.cast(Cast::ZExt, &offset, LlvmType::I64);
                llvm.offset(&LOCAL, &offset)
            });
            let cx = Context {
                mask: None,
                some: true,
                chain: 0,
                end: DONE,
                block,
            };
            self.define(param, Lanes::Same(address), &cx);
        }
    }

    /// Returns the lanes whose number is less.
    fn lanes_below(&mut self, count: &Operand) -> Mask {
        let count = self.splat(count);
        let own = self.lane_numbers();
        Some(self.llvm.icmp(IntCond::Ult, &own, &count))
    }

    /// Begins a pack of a row.
    fn rows(&mut self, [x, y, z]: &[Counter; 3], pack: &Counter, size: &[Operand; 3]) -> Mask {
        let (llvm, zero) = (&mut self.llvm, &Operand::i32(0));
        let mut phi = |counter: &Counter, incoming: [&Operand; 3]| {
            let [done, done_y, done_z] = incoming;
            let all = [
                (zero, START),
                (done, DONE),
                (done_y, DONE_Y),
                (done_z, DONE_Z),
            ];
            llvm.named(&counter.now).phi(LlvmType::I32, &all);
        };
        phi(x, [&x.next, zero, zero]);
        phi(y, [&y.now, &y.next, zero]);
        phi(z, [&z.now, &z.now, &z.next]);
        phi(pack, [&pack.next; 3]);
        let row = llvm.mul(&z.now, &size[1]);
        let row = llvm.add(&row, &y.now);
        let row = llvm.mul(&row, &size[0]);
        llvm.named(&INDEX).add(&row, &x.now);
        if self.shape.packing == Packing::Rows {
            return None;
        }
        let left = llvm.sub(&size[0], &x.now);
        self.lanes_below(&left)
    }

    /// Continues with the next pack of the row, the next row or the next plane.
    fn end_of_row(&mut self, [x, y, z]: &[Counter; 3], size: &[Operand; 3]) {
        let (llvm, lanes) = (&mut self.llvm, Operand::i32(self.shape.lanes));
        let one = Operand::i32(1);
        let rows = [
            (x, &lanes, NEXT_PACK, Label::Word("done_row")),
            (y, &one, DONE_Y, Label::Word("done_rows")),
            (z, &one, DONE_Z, END),
        ];
        for ((counter, by, again, end), size) in rows.into_iter().zip(size) {
            llvm.named(&counter.next).add(&counter.now, by);
            let more = llvm.icmp(IntCond::Ult, &counter.next, size);
            llvm.branch(&more, again, end);
            if again != NEXT_PACK {
                llvm.begin(again);
                llvm.jump(NEXT_PACK);
            }
            if end != END {
                llvm.begin(end);
            }
        }
    }

    /// Begins a pack of groups of one work-item.
    fn groups(&mut self, [x, y, z]: &[Counter; 3]) -> Mask {
        let zero = Operand::i32(0);
        for name in [&x.now, &y.now, &z.now, &INDEX, &PACK] {
            self.llvm.named(name).add(&zero, &zero);
        }
        match self.shape.packing {
            Packing::Groups => self.lanes_below(&MANY),
            _ => None,
        }
    }

    /// Begins a pack of work-items by their linear ids.
    fn linear(&mut self, index: &Counter, pack: &Counter, size: &[Operand; 3]) -> Mask {
        let zero = Operand::i32(0);
        for counter in [index, pack] {
            let incoming = [(&zero, START), (&counter.next, DONE)];
            self.llvm.named(&counter.now).phi(LlvmType::I32, &incoming);
        }
        let table = self.launch_field(layout::LOCAL_IDS, LlvmType::PTR);
        let stride = self.launch_field(layout::LOCAL_IDS_STRIDE, LlvmType::I32);
        for dim in 0..3 {
            let item = self.item(dim);
            let llvm = &mut self.llvm;
            let start = llvm.mul(&stride, &Operand::i32(dim as u32));
            let at = llvm.add(&start, &INDEX);
            let at = llvm.cast(Cast::ZExt, &at, LlvmType::I64);
            let at = llvm.element(LlvmType::I32, &table, &at);
            llvm.named(&item).load(item.ty(), &at, 4);
        }
        let llvm = &mut self.llvm;
        let items = llvm.mul(&size[0], &size[1]);
        let items = llvm.mul(&items, &size[2]);
        let left = llvm.sub(&items, &INDEX);
        self.lanes_below(&left)
    }
}
