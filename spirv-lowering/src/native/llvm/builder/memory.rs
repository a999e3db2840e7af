//! Memory: areas of the stack, loads and stores, atomic operations and fences.

use super::super::{LlvmType, Operand, Rmw, StackSlot};
use super::Builder;
use std::fmt::{self, Write as _};

/// Alignment of what lies on the stack.
const STACK_ALIGN: u32 = 64;

/// The order of an atomic access or a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Order {
    Monotonic,
    Acquire,
    Release,
    AcqRel,
    SeqCst,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Monotonic => "monotonic",
            Self::Acquire => "acquire",
            Self::Release => "release",
            Self::AcqRel => "acq_rel",
            Self::SeqCst => "seq_cst",
        })
    }
}

impl Builder<'_> {
    /// Returns the address of an array on the stack.
    pub fn array(&mut self, count: u64, ty: LlvmType) -> Operand {
        let address = self.forward(LlvmType::PTR);
        let _ = writeln!(
            self.slots,
            "  {address} = alloca [{count} x {ty}], align {STACK_ALIGN}"
        );
        address
    }

    fn alloca(&mut self, ty: LlvmType, align: u32) -> StackSlot {
        let address = self.forward(LlvmType::PTR);
        let _ = writeln!(self.slots, "  {address} = alloca {ty}, align {align}");
        StackSlot { address, ty, align }
    }

    /// Returns a place on the stack.
    pub fn slot(&mut self, ty: LlvmType) -> StackSlot {
        self.alloca(ty, STACK_ALIGN)
    }

    /// Creates a stack slot with an initial number.
    pub fn counter(&mut self, number: u32) -> StackSlot {
        let slot = self.alloca(LlvmType::I32, 4);
        let _ = writeln!(
            self.slots,
            "  store i32 {number}, ptr {}, align 4",
            slot.address
        );
        slot
    }

    /// Returns the address of eight bytes on the stack that are zero.
    pub fn zero_bytes(&mut self) -> Operand {
        if let Some(address) = &self.zero_bytes {
            return address.clone();
        }
        let slot = self.alloca(LlvmType::I64, 8);
        let address = slot.address;
        let _ = writeln!(self.slots, "  store i64 0, ptr {address}, align 8");
        self.zero_bytes = Some(address.clone());
        address
    }

    /// Returns the address of eight bytes on the stack for what nothing reads.
    pub fn ignored_bytes(&mut self) -> Operand {
        if let Some(address) = &self.ignored_bytes {
            return address.clone();
        }
        let address = self.alloca(LlvmType::I64, 8).address;
        self.ignored_bytes = Some(address.clone());
        address
    }

    /// Loads the contents of a stack slot.
    pub fn get(&mut self, slot: &StackSlot) -> Operand {
        self.load(slot.ty, &slot.address, slot.align)
    }

    /// Stores to a stack slot.
    pub fn put(&mut self, value: &Operand, slot: &StackSlot) {
        let fits = value.ty() == slot.ty;
        self.check(
            fits,
            format_args!("{} in a slot of {}", value.typed(), slot.ty),
        );
        self.store(value, &slot.address, slot.align);
    }

    /// Loads an element of the vector in a place on the stack.
    pub fn get_element(&mut self, slot: &StackSlot, lane: &Operand) -> Operand {
        let ty = slot.ty.element();
        let at = self.element(ty, &slot.address, lane);
        self.load(ty, &at, ty.bytes())
    }

    /// Stores an element of the vector in a place on the stack.
    pub fn put_element(&mut self, value: &Operand, slot: &StackSlot, lane: &Operand) {
        let ty = slot.ty.element();
        let fits = value.ty() == ty && slot.ty.is_vector();
        self.check(fits, format_args!("{} in {}", value.typed(), slot.ty));
        let at = self.element(ty, &slot.address, lane);
        self.store(value, &at, ty.bytes());
    }

    /// Emits a load with an alignment in bytes.
    pub fn load(&mut self, ty: LlvmType, at: &Operand, align: u32) -> Operand {
        let fits = at.ty() == LlvmType::PTR;
        self.def(ty, fits, format_args!("load {ty}, ptr {at}, align {align}"))
    }

    /// Emits a volatile load with an alignment in bytes.
    pub fn load_volatile(&mut self, ty: LlvmType, at: &Operand, align: u32) -> Operand {
        let fits = at.ty() == LlvmType::PTR;
        self.def(
            ty,
            fits,
            format_args!("load volatile {ty}, ptr {at}, align {align}"),
        )
    }

    /// Loads from memory that is not written while the function runs.
    pub fn load_invariant(&mut self, ty: LlvmType, at: &Operand, align: u32) -> Operand {
        let fits = at.ty() == LlvmType::PTR;
        self.def(
            ty,
            fits,
            format_args!("load {ty}, ptr {at}, align {align}, !invariant.load !0"),
        )
    }

    /// Emits a store with an alignment in bytes.
    pub fn store(&mut self, value: &Operand, at: &Operand, align: u32) {
        let fits = at.ty() == LlvmType::PTR;
        self.line(
            fits,
            format_args!("store {}, ptr {at}, align {align}", value.typed()),
        );
    }

    /// Emits a volatile store with an alignment in bytes.
    pub fn store_volatile(&mut self, value: &Operand, at: &Operand, align: u32) {
        let fits = at.ty() == LlvmType::PTR;
        let value = value.typed();
        self.line(
            fits,
            format_args!("store volatile {value}, ptr {at}, align {align}"),
        );
    }

    /// Returns the address of an element, counted in elements of a type; a vector of addresses if
    /// the base or the index is one.
    pub fn element(&mut self, ty: LlvmType, base: &Operand, index: &Operand) -> Operand {
        let (from, by) = (base.ty(), index.ty());
        let lanes = from.lanes().max(by.lanes());
        let same = [from, by].iter().all(|ty| [0, lanes].contains(&ty.lanes()));
        let fits = from.element() == LlvmType::PTR && by.is_int() && same;
        let (base, index) = (base.typed(), index.typed());
        let result = LlvmType::PTR.vector(lanes);
        self.def(
            result,
            fits,
            format_args!("getelementptr {ty}, {base}, {index}"),
        )
    }

    /// Adds an offset in bytes to an address.
    pub fn offset(&mut self, base: &Operand, bytes: &Operand) -> Operand {
        self.element(LlvmType::int(8), base, bytes)
    }

    /// Emits an atomic load.
    pub fn atomic_load(&mut self, ty: LlvmType, at: &Operand, order: Order, align: u32) -> Operand {
        let fits = at.ty() == LlvmType::PTR && !ty.is_vector();
        self.def(
            ty,
            fits,
            format_args!("load atomic {ty}, ptr {at} {order}, align {align}"),
        )
    }

    /// Emits an atomic store.
    pub fn atomic_store(&mut self, value: &Operand, at: &Operand, order: Order, align: u32) {
        let fits = at.ty() == LlvmType::PTR && !value.ty().is_vector();
        let value = value.typed();
        self.line(
            fits,
            format_args!("store atomic {value}, ptr {at} {order}, align {align}"),
        );
    }

    /// Emits an atomic operation. Returns the value before it.
    pub fn atomic_rmw(
        &mut self,
        op: Rmw,
        at: &Operand,
        value: &Operand,
        order: Order,
        align: u32,
    ) -> Operand {
        let ty = value.ty();
        let fits = at.ty() == LlvmType::PTR && !ty.is_vector();
        let (op, value) = (op.word(), value.typed());
        self.def(
            ty,
            fits,
            format_args!("atomicrmw {op} ptr {at}, {value} {order}, align {align}"),
        )
    }

    /// Stores `new` at an address if `expected` is there. Returns the old contents.
    pub fn compare_exchange(
        &mut self,
        at: &Operand,
        (expected, new): (&Operand, &Operand),
        (order, failed): (Order, Order),
        align: u32,
    ) -> Operand {
        let ty = new.ty();
        let fits = at.ty() == LlvmType::PTR && expected.ty() == ty && !ty.is_vector();
        let (expected, new) = (expected.typed(), new.typed());
        // Its type is a structure, which is taken apart at once.
        let pair = self.def(
            ty,
            fits,
            format_args!("cmpxchg ptr {at}, {expected}, {new} {order} {failed}, align {align}"),
        );
        self.def(
            ty,
            true,
            format_args!("extractvalue {{ {ty}, i1 }} {pair}, 0"),
        )
    }

    /// Emits a fence; `alone`: for this thread alone.
    pub fn fence(&mut self, order: Order, alone: bool) {
        let scope = if alone {
            "syncscope(\"singlethread\") "
        } else {
            ""
        };
        self.line(true, format_args!("fence {scope}{order}"));
    }

    /// Creates an area on the stack, of which the size is known later ([`Self::set_area`]).
    pub fn area(&mut self) -> Operand {
        self.forward(LlvmType::PTR)
    }

    /// Sets the size of an area in bytes.
    pub fn set_area(&mut self, address: &Operand, bytes: u32) {
        let _ = writeln!(
            self.slots,
            "  {address} = alloca [{bytes} x i8], align {STACK_ALIGN}"
        );
    }
}
