//! The module of a kernel: a function for each region, and one that runs work-groups by them.

use super::calls::Callees;
use super::emit::{self, Frame, Launch, Role};
use super::llvm::{Binary, Builder, Cast, Declarations, Label, LlvmType, Operand};
use super::{layout, Locals, Packing, Piece, Region, Shape, VERSION};
use crate::error::{LowerError, Result};
use crate::interface::Implicit;
use crate::ir::entity::{SecondaryMap, Var};
use crate::ir::op::{IntCond, Op};
use std::ops::Range;

/// Returns the offset of each variable in a frame from `start` on, and the end. Elements of arrays
/// are counted in 32 bits, all lanes' together, and so are the bytes that the runtime receives: a
/// larger frame is refused.
fn lay_out(region: &Region, start: u32, lanes: u32) -> Result<(SecondaryMap<Var, u32>, u32)> {
    let mut offsets = SecondaryMap::new();
    let mut end = u64::from(start);
    let too_large = || {
        LowerError::unsupported(format!(
            "variables of a work-item which take 4 GiB for {lanes} work-items"
        ))
    };
    for (var, data) in region.func.vars.iter() {
        let bytes = if region.uniform[var] {
            8
        } else {
            u64::from(lanes) * u64::from(data.elem.size()) * u64::from(data.len.fixed.max(1))
        };
        end = end.next_multiple_of(if region.uniform[var] { 8 } else { 64 });
        offsets[var] = u32::try_from(end).map_err(|_| too_large())?;
        end += bytes;
    }
    let bytes = u32::try_from(end.next_multiple_of(64)).map_err(|_| too_large())?;
    Ok((offsets, bytes))
}

/// Returns where in a frame the memory lies that work-items have of their own.
fn own_memory(pieces: &[Piece], callees: &Callees, start: u32, lanes: u32) -> Result<Range<u32>> {
    let callees = callees.list.iter().map(|callee| &callee.piece);
    let mut size = 0;
    for piece in pieces.iter().chain(callees) {
        let func = &piece.region.func;
        for &inst in func.layout_insts() {
            if let Op::Own { size: bytes, .. } = func.insts[inst].op {
                size = bytes.max(size);
            }
        }
    }
    let end = size
        .checked_mul(lanes)
        .and_then(|bytes| bytes.checked_add(start));
    let end = end.and_then(|end| end.checked_next_multiple_of(64));
    let end = end
        .ok_or_else(|| LowerError::unsupported(format!("memory of work-items of {size} bytes")))?;
    Ok(start..end)
}

/// The most bytes of variables that may lie on the stack of a thread.
const MOST_STACK: u32 = 32 << 10;

/// The attributes of all functions.
const ATTRIBUTES: &str = "nounwind \"prefer-vector-width\"=\"512\" \"min-legal-vector-width\"=\"512\" \"reciprocal-estimates\"=\"none\"";

/// Returns the LLVM module of a kernel.
pub fn module(
    pieces: &[Piece],
    callees: &Callees,
    implicit: &[(Implicit, u32)],
    locals: &Locals,
    shape: Shape,
) -> Result<String> {
    let lanes = shape.lanes;
    let launch = Launch { implicit, locals };
    let several = pieces.len() > 1;
    let mut declarations = Declarations::default();
    let mut functions = String::new();
    let mut frame_bytes = 0;
    if let Some(first) = pieces.first() {
        // All regions have the same variables.
        let (offsets, mut bytes) = lay_out(&first.region, 0, lanes)?;
        // A function runs once at a time, so that it has a place in the frame.
        let mut offsets_of_callees = Vec::new();
        for callee in &callees.list {
            let (offsets, end) = lay_out(&callee.piece.region, bytes, lanes)?;
            offsets_of_callees.push(offsets);
            bytes = end;
        }
        let own = own_memory(pieces, callees, bytes, lanes)?;
        let framed = several || bytes > MOST_STACK || own.end > bytes;
        bytes = own.end;
        if framed {
            frame_bytes = bytes;
        }
        let mut write = |piece: &Piece, role: &Role, offsets: &SecondaryMap<Var, u32>| {
            let frame = Frame {
                offsets: framed.then_some(offsets),
                own: own.start,
            };
            let text = emit::function(
                piece,
                role,
                callees,
                frame,
                &launch,
                shape,
                &mut declarations,
            )?;
            functions += &text;
            Ok::<(), LowerError>(())
        };
        for (number, piece) in pieces.iter().enumerate() {
            let head = format!(
                "define internal i32 @region_{number}(ptr %launch, ptr %local, ptr %frame, i32 %gx, i32 %gy, i32 %gz, i32 %many) #0"
            );
            write(piece, &Role::Region { head, several }, &offsets)?;
        }
        for (callee, offsets) in callees.list.iter().zip(&offsets_of_callees) {
            write(&callee.piece, &Role::Callee(callee), offsets)?;
        }
    }
    functions += &driver(pieces.len(), shape, &mut declarations)?;
    let (local_bytes, stack) = (locals.bytes, shape.stack.attributes());
    // Nothing lives from one pack's run to its next.
    let one_frame = u32::from(!several);
    Ok(format!(
        "@pumice_info = constant [8 x i32] [i32 {VERSION}, i32 {lanes}, i32 {frame_bytes}, i32 {local_bytes}, i32 {one_frame}, i32 0, i32 0, i32 0], align 4
{declarations}{functions}attributes #0 = {{ {ATTRIBUTES}{stack} }}
attributes #1 = {{ noinline {ATTRIBUTES}{stack} }}
!0 = !{{}}
"
    ))
}

/// Returns the function that the runtime calls.
fn driver(regions: usize, shape: Shape, declarations: &mut Declarations) -> Result<String> {
    const LAUNCH: Operand = Operand::named(LlvmType::PTR, "launch");
    const FIRST: Operand = Operand::named(LlvmType::I64, "first");
    const COUNT: Operand = Operand::named(LlvmType::I64, "count");
    let mut builder = Builder::new(declarations);
    let llvm = &mut builder;
    let [start, group, next_group, end] = ["start", "group", "next_group", "end"].map(Label::Word);
    let (zero, one) = (Operand::i32(0), Operand::i32(1));
    // The numbers of work-groups in a row and in a plane, and the first group.
    let [nx, ny] = [0, 4].map(|dim| {
        let at = llvm.offset(&LAUNCH, &Operand::i64(u64::from(layout::GROUPS) + dim));
        llvm.load(LlvmType::I32, &at, 4)
    });
    let [row, plane] = [&nx, &ny].map(|n| llvm.cast(Cast::ZExt, n, LlvmType::I64));
    let x = llvm.divide(Binary::URem, &FIRST, &row);
    let rows = llvm.divide(Binary::UDiv, &FIRST, &row);
    let y = llvm.divide(Binary::URem, &rows, &plane);
    let z = llvm.divide(Binary::UDiv, &rows, &plane);
    let first = [x, y, z].map(|id| llvm.cast(Cast::Trunc, &id, LlvmType::I32));
    let some = llvm.icmp(IntCond::Ne, &COUNT, &Operand::i64(0));
    llvm.branch(&some, group, end);

    llvm.begin(group);
    let next = [(); 3].map(|()| llvm.forward(LlvmType::I32));
    let [gx, gy, gz] = [0, 1, 2].map(|dim| {
        let incoming = [(&first[dim], start), (&next[dim], next_group)];
        llvm.phi(LlvmType::I32, &incoming)
    });
    let left_next = llvm.forward(LlvmType::I64);
    let left = llvm.phi(LlvmType::I64, &[(&COUNT, start), (&left_next, next_group)]);
    // Groups that are run by one call.
    let many64 = match shape.packing {
        Packing::Groups => {
            let row = llvm.sub(&nx, &gx);
            let row = llvm.cast(Cast::ZExt, &row, LlvmType::I64);
            let least = [left.clone(), Operand::i64(shape.lanes.into())];
            least.iter().fold(row, |many, other| {
                let less = llvm.icmp(IntCond::Ult, &many, other);
                llvm.select(&less, &many, other)
            })
        }
        _ => Operand::i64(1),
    };
    let many = match shape.packing {
        Packing::Groups => llvm.cast(Cast::Trunc, &many64, LlvmType::I32),
        _ => one.clone(),
    };
    let [local, frame] = ["local", "frame"].map(|name| Operand::named(LlvmType::PTR, name));
    let args = [LAUNCH, local, frame, gx, gy, gz, many];
    let call = |llvm: &mut Builder, region: usize| {
        llvm.call_own(format_args!("region_{region}"), LlvmType::I32, &args)
    };
    if regions == 1 {
        call(llvm, 0);
        llvm.jump(next_group);
    } else {
        let go = Label::Word("go");
        llvm.jump(go);
        llvm.begin(go);
        // The first time region 0 is meant; as an answer, 0 is the end.
        let labels: Vec<Label> = (0..regions).map(|_| llvm.label()).collect();
        let answers: Vec<Operand> = labels.iter().map(|_| llvm.forward(LlvmType::I32)).collect();
        let (yes, no) = (Operand::bit(true), Operand::bit(false));
        let (mut states, mut begins) = (vec![(&zero, group)], vec![(&yes, group)]);
        states.extend(answers.iter().zip(labels.iter().copied()));
        begins.extend(labels.iter().map(|&label| (&no, label)));
        let state = llvm.phi(LlvmType::I32, &states);
        let begins = llvm.phi(LlvmType::BIT, &begins);
        let on = llvm.label();
        llvm.branch(&begins, labels[0], on);
        llvm.begin(on);
        let others = (0u64..).zip(labels.iter().copied()).skip(1);
        llvm.switch(&state, &others.collect::<Vec<_>>(), next_group);
        for (region, &label) in labels.iter().enumerate() {
            llvm.begin(label);
            call(llvm.named(&answers[region]), region);
            llvm.jump(go);
        }
    }

    llvm.begin(next_group);
    let [_, _, _, gx, gy, gz, many] = &args;
    llvm.named(&left_next).sub(&left, &many64);
    let gx = llvm.add(gx, many);
    let at_end = llvm.icmp(IntCond::Eq, &gx, &nx);
    llvm.named(&next[0]).select(&at_end, &zero, &gx);
    let below = llvm.add(gy, &one);
    let gy = llvm.select(&at_end, &below, gy);
    let at_end = llvm.icmp(IntCond::Eq, &gy, &ny);
    llvm.named(&next[1]).select(&at_end, &zero, &gy);
    let after = llvm.add(gz, &one);
    llvm.named(&next[2]).select(&at_end, &after, gz);
    let more = llvm.icmp(IntCond::Ne, &left_next, &Operand::i64(0));
    llvm.branch(&more, group, end);
    llvm.begin(end);
    llvm.ret(None);
    builder.finish(&format!(
        "define void @{}(ptr %launch, ptr %local, ptr %frame, i64 %first, i64 %count) #0",
        shape.packing.symbol(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse::parse_function;

    #[test]
    fn frames_of_4_gib_are_refused() {
        let bytes = |vars: &str, lanes| {
            let text = format!("func fn0 \"f\" () -> () {{\n{vars}\nblock0():\n  return\n}}\n");
            let func = parse_function(&text).unwrap();
            lay_out(&Region::whole(func), 0, lanes).map(|(_, bytes)| bytes)
        };
        let one = "var0 = function i32 [67108863]";
        assert_eq!(bytes(one, 16).unwrap(), u32::MAX - 63);
        assert!(bytes(one, 32).is_err());
        assert!(bytes("var0 = function i32 [67108864]", 16).is_err());
        // Not the first, but where the second would begin.
        assert!(bytes(&format!("{one}\nvar1 = function i64 [8]"), 16).is_err());
        assert!(bytes("var0 = function i64 [4294967295]", 64).is_err());
    }
}
