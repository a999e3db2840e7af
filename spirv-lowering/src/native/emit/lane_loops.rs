//! Gathers and scatters as functions that loop over the active lanes.
//!
//! Where the processor has no instruction for them LLVM emits a branch and an access for each lane. Of packs of 64 lanes these
//! are most of the time to compile some kernels, and a loop is faster, too.

use super::Emitter;
use crate::ir::op::IntCond;
use crate::native::llvm::{Builder, Cast, Label, LlvmType, Operand};

/// From so many lanes on a loop takes less time than a branch for each. With 16 a radix sort takes twice the time.
const MANY: u32 = 32;

const ADDRESSES: &str = "addresses";
const VALUES: &str = "values";
const ACTIVE: &str = "active";

/// An access at the address of each active lane.
#[derive(Clone, Copy)]
enum Access {
    Load,
    Store,
}

/// Emits the body of a function that accesses memory at the address of each active lane.
fn body(llvm: &mut Builder<'_>, access: Access, [ty, ptrs, mask]: [LlvmType; 3], align: u32) {
    let [start, lane, end] = ["start", "lane", "end"].map(Label::Word);
    let addresses = llvm.slot(ptrs);
    llvm.put(&Operand::named(ptrs, ADDRESSES), &addresses);
    let values = llvm.slot(ty);
    let first = match access {
        Access::Load => Operand::constant(ty, 0),
        Access::Store => Operand::named(ty, VALUES),
    };
    llvm.put(&first, &values);
    let bits = LlvmType::int(ty.lanes());
    let active = llvm.cast(Cast::Bitcast, &Operand::named(mask, ACTIVE), bits);
    let zero = Operand::constant(bits, 0);
    let some = llvm.icmp(IntCond::Ne, &active, &zero);
    llvm.branch(&some, lane, end);
    llvm.begin(lane);
    let next = llvm.forward(bits);
    let left = llvm.phi(bits, &[(&active, start), (&next, lane)]);
    let number = llvm.zeros("cttz", &left, true);
    let at = llvm.get_element(&addresses, &number);
    match access {
        Access::Load => {
            let value = llvm.load(ty.element(), &at, align);
            llvm.put_element(&value, &values, &number);
        }
        Access::Store => {
            let value = llvm.get_element(&values, &number);
            llvm.store(&value, &at, align);
        }
    }
    let below = llvm.sub(&left, &Operand::constant(bits, 1));
    llvm.named(&next).and(&left, &below);
    let more = llvm.icmp(IntCond::Ne, &next, &zero);
    llvm.branch(&more, lane, end);
    llvm.begin(end);
    let result = match access {
        Access::Load => Some(llvm.get(&values)),
        Access::Store => None,
    };
    llvm.ret(result.as_ref());
}

impl Emitter<'_> {
    /// Returns true if LLVM would emit a branch for each lane for a gather or scatter of elements of that size in bytes,
    /// or, if `in_row`, for a masked access to consecutive ones, and a loop is better.
    pub(super) fn loops_over_lanes(&self, size: u32, in_row: bool) -> bool {
        let width = match (size < 4, in_row) {
            (false, true) => 8,
            (true, false) => u32::MAX,
            _ => 16,
        };
        self.shape.lanes >= MANY && self.shape.width < width
    }

    /// Loads an element for each active lane from its address in a loop; others get 0.
    pub(super) fn gather_in_loop(
        &mut self,
        ty: LlvmType,
        at: &Operand,
        mask: &Operand,
        align: u32,
    ) -> Operand {
        let types = [ty, at.ty(), mask.ty()];
        let name = format!("gather_{}_{align}", ty.suffix());
        self.llvm.define(&name, |llvm| {
            body(llvm, Access::Load, types, align);
            let [ty, ptrs, mask] = types;
            format!("define internal {ty} @{name}({ptrs} %{ADDRESSES}, {mask} %{ACTIVE}) #1")
        });
        let args = [at.clone(), mask.clone()];
        self.llvm.call_own(format_args!("{name}"), ty, &args)
    }

    /// Stores the value of each active lane to its address in a loop, in the order of the lanes.
    pub(super) fn scatter_in_loop(
        &mut self,
        at: &Operand,
        value: &Operand,
        mask: &Operand,
        align: u32,
    ) {
        let types = [value.ty(), at.ty(), mask.ty()];
        let name = format!("scatter_{}_{align}", value.ty().suffix());
        self.llvm.define(&name, |llvm| {
            body(llvm, Access::Store, types, align);
            let [ty, ptrs, mask] = types;
            format!("define internal void @{name}({ty} %{VALUES}, {ptrs} %{ADDRESSES}, {mask} %{ACTIVE}) #1")
        });
        let args = [value.clone(), at.clone(), mask.clone()];
        self.llvm.call_own_void(format_args!("{name}"), &args);
    }
}

#[cfg(test)]
mod tests {
    use crate::native::{text_for, text_of};

    /// Returns a kernel that doubles elements of a type at addresses without order.
    fn indexed(ty: &str, size: u32) -> String {
        format!(
            "func fn0 \"f\" () -> () {{
block0:
  v0 = hw.local_invocation_id.0 : i32
  v1 = imul v0, v0 : i32
  v2 = zext v1 : i64
  v3 = arg_load.0 : i64
  v4 = int_to_ptr v3 : ptr.global
  v5 = ptr_add v4, v2 : ptr.global
  v6 = load.align{size} v5 : {ty}
  v7 = iadd v6, v6 : {ty}
  store.align{size} v5, v7
  return
}}
"
        )
    }

    #[test]
    fn many_lanes_without_instructions_loop() {
        for (ty, size, lanes, loops) in [
            ("i32", 4, 32, false),
            ("i8", 1, 16, false),
            ("i8", 1, 32, true),
            ("i16", 2, 64, true),
        ] {
            let text = text_of(&indexed(ty, size), lanes);
            let of = |name: &str| text.contains(name);
            let each = ["@llvm.masked.gather", "@llvm.masked.scatter"].map(of);
            let in_loops = ["@gather_", "@scatter_"].map(of);
            assert_eq!((each, in_loops), ([!loops; 2], [loops; 2]), "{ty} {lanes}");
        }
    }

    /// Checks that lanes without a work-item access the stack where LLVM would otherwise emit a
    /// branch for each lane.
    #[test]
    fn accesses_without_instructions_have_no_mask() {
        let all = format!("<8 x i1> <{}>", ["i1 true"; 8].join(", "));
        for (ty, size, width, gathers, masked) in [
            ("i32", 4, 16, true, [true, true]),
            ("i32", 4, 8, true, [true, false]),
            ("i32", 4, 8, false, [false, false]),
            ("i8", 1, 16, true, [false, false]),
        ] {
            let here = indexed(ty, size).replace("  return", "  jump block2\nblock2:\n  return");
            let some = "  v8 = icmp.ult v1, v0 : bool\n  br v8, block1, block2\nblock1:\n  v6 =";
            let text = text_for(&here.replace("  v6 =", some), 8, width, gathers);
            let is_masked = |name: &str| {
                let mut calls = text
                    .lines()
                    .filter(|line| line.contains("  call ") || line.contains("= call "));
                calls
                    .find(|line| line.contains(name))
                    .map(|line| !line.contains(&all))
            };
            let found = ["masked.gather", "masked.scatter"].map(is_masked);
            assert_eq!(found, masked.map(Some), "{text}");
            assert_eq!(text.contains("store i64 0, ptr"), !masked[0], "{text}");
        }
    }
}
