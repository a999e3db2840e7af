//! The frame of the code: the loops over work-groups and packs around the regions of a kernel.

use super::classes::Classes;
use super::emitter::{Emitter, Mask};
use super::ids::Ids;
use super::layout;
use super::slots::Lanes;
use super::text::Text;
use super::tree::Tree;
use super::{Locals, Packing, Region, Shape, VERSION};
use crate::error::{LowerError, Result};
use crate::interface::Implicit;
use crate::ir::entity::{SecondaryMap, Var};
use crate::ir::types::Type;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Bytes of a frame and where each variable lies in it. Elements of arrays are counted in 32 bits, all lanes' together, and
/// so are the bytes that the runtime is told: a frame of more is refused.
fn lay_out(region: &Region, lanes: u32) -> Result<(SecondaryMap<Var, u32>, u32)> {
    let mut offsets = SecondaryMap::new();
    let mut end = 0u64;
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

/// The most bytes of variables that may lie on the stack of a thread.
const MOST_STACK: u32 = 32 << 10;

/// The whole module of a kernel.
pub fn module(
    regions: &[Region],
    implicit: &[(Implicit, u32)],
    locals: &Locals,
    shape: Shape,
) -> Result<String> {
    let lanes = shape.lanes;
    let mut declared = BTreeSet::new();
    let mut bodies = String::new();
    let mut frame_bytes = 0;
    if let Some(first) = regions.first() {
        // All regions have the same variables.
        let (offsets, bytes) = lay_out(first, lanes)?;
        let framed = regions.len() > 1 || bytes > MOST_STACK;
        if framed {
            frame_bytes = bytes;
        }
        for (number, region) in regions.iter().enumerate() {
            let frame = framed.then(|| offsets.clone());
            let several = regions.len() > 1;
            bodies += &function(
                region,
                number,
                several,
                frame,
                implicit,
                locals,
                shape,
                &mut declared,
            )?;
        }
    }
    let mut out = String::new();
    let _ = writeln!(
        out,
        "@pumice_info = constant [8 x i32] [i32 {VERSION}, i32 {lanes}, i32 {frame_bytes}, i32 {}, i32 {}, i32 0, i32 0, i32 0], align 4",
        locals.bytes,
        // Nothing lives from one pack's run to its next.
        u32::from(regions.len() == 1)
    );
    for line in declared {
        let _ = writeln!(out, "{line}");
    }
    out += &bodies;
    out += &driver(regions.len(), shape);
    let _ = writeln!(
        out,
        "attributes #0 = {{ nounwind \"prefer-vector-width\"=\"512\" \"min-legal-vector-width\"=\"512\" \"reciprocal-estimates\"=\"none\"{} }}\n!0 = !{{}}",
        shape.stack.attributes()
    );
    Ok(out)
}

/// One region for all packs of a work-group.
#[allow(clippy::too_many_arguments)]
fn function(
    region: &Region,
    number: usize,
    several: bool,
    frame: Option<SecondaryMap<Var, u32>>,
    implicit: &[(Implicit, u32)],
    locals: &Locals,
    shape: Shape,
    declared: &mut BTreeSet<String>,
) -> Result<String> {
    let tree = Tree::new(&region.func)?;
    let of_one_lane = Classes::of_one_lane(tree.constructs.len());
    let classes = match shape.packing {
        Packing::Alone => Classes::of_one_lane(tree.constructs.len()),
        packing => Classes::new(&region.func, &tree, packing, &region.uniform),
    };
    let mut wanted = FxHashSet::default();
    // What must lie in slots is known once it was tried without.
    for _ in 0..2 {
        let ids = Ids {
            group: ["%gx".into(), "%gy".into(), "%gz".into()],
            local: ["%x".into(), "%y".into(), "%z".into()],
            index: "%index".into(),
            pack: "%pack".into(),
            frame: "%own".into(),
            implicit: implicit.to_vec(),
        };
        let mut e = Emitter::new(
            region,
            &tree,
            (&classes, &of_one_lane),
            locals,
            shape,
            declared,
            wanted.clone(),
            ids,
        );
        e.frame = frame.clone();
        let text = body(&mut e, number, several)?;
        let missing = e.places.missing();
        if missing.is_empty() {
            return Ok(text);
        }
        wanted.extend(missing);
    }
    Err(LowerError::internal(
        "values are read where they are not written",
    ))
}

fn body(e: &mut Emitter, number: usize, several: bool) -> Result<String> {
    let lanes = e.lanes;
    if several {
        let next = e.text.name();
        e.allocas.line(&format!("{next} = alloca i32, align 4"));
        e.allocas.line(&format!("store i32 0, ptr {next}, align 4"));
        e.next = Some(next);
    }
    let size: Vec<String> = (0..3)
        .map(|d| e.launch_field(layout::LOCAL_SIZE + 4 * d, "i32"))
        .collect();
    let frame_bytes = e.launch_field(layout::FRAME_BYTES, "i64");
    // Parameters are addresses of local memory.
    let entry = e.func.entry();
    let params = entry.map_or(Vec::new(), |b| {
        let params = &e.func.blocks[b].params;
        params.iter().map(|&param| (b, param)).collect()
    });
    for (i, &(block, param)) in params.iter().enumerate() {
        let table = e.launch_field(layout::LOCAL_ARGS, "ptr");
        let at = e.invariant(&format!("getelementptr i8, ptr {table}, i64 {}", 8 * i));
        let offset = e.invariant(&format!("load i32, ptr {at}, align 4, !invariant.load !0"));
        let offset = e.invariant(&format!("zext i32 {offset} to i64"));
        let address = e.invariant(&format!("getelementptr i8, ptr %local, i64 {offset}"));
        let cx = super::emitter::Context {
            mask: None,
            some: true,
            chain: 0,
            end: String::new(),
            block,
        };
        e.define(param, Lanes::Same(address), &cx);
    }
    e.text.jump("next_pack");
    let mut mask: Mask = None;
    match e.packing {
        Packing::Rows | Packing::Tails => {
            e.text.begin("next_pack");
            e.text
                .line("%x = phi i32 [ 0, %start ], [ %x1, %done ], [ 0, %done_y ], [ 0, %done_z ]");
            e.text.line(
                "%y = phi i32 [ 0, %start ], [ %y, %done ], [ %y1, %done_y ], [ 0, %done_z ]",
            );
            e.text.line(
                "%z = phi i32 [ 0, %start ], [ %z, %done ], [ %z, %done_y ], [ %z1, %done_z ]",
            );
            e.text.line("%pack = phi i32 [ 0, %start ], [ %pack1, %done ], [ %pack1, %done_y ], [ %pack1, %done_z ]");
            let row = e.text.def(&format!("mul i32 %z, {}", size[1]));
            let row = e.text.def(&format!("add i32 {row}, %y"));
            let row = e.text.def(&format!("mul i32 {row}, {}", size[0]));
            e.text.line(&format!("%index = add i32 {row}, %x"));
            if e.packing == Packing::Tails {
                let left = e.text.def(&format!("sub i32 {}, %x", size[0]));
                let left = e.splat(Type::I32, &left);
                let own = e.lanes_const(Type::I32, |lane| lane);
                mask = Some(
                    e.text
                        .def(&format!("icmp ult <{lanes} x i32> {own}, {left}")),
                );
            }
        }
        Packing::Groups | Packing::Alone => {
            e.text.begin("next_pack");
            for name in ["%x", "%y", "%z", "%index", "%pack"] {
                e.text.line(&format!("{name} = add i32 0, 0"));
            }
            if e.packing == Packing::Groups {
                let many = e.splat(Type::I32, "%many");
                let own = e.lanes_const(Type::I32, |lane| lane);
                mask = Some(
                    e.text
                        .def(&format!("icmp ult <{lanes} x i32> {own}, {many}")),
                );
            }
        }
        Packing::Linear => {
            e.text.begin("next_pack");
            e.text
                .line("%index = phi i32 [ 0, %start ], [ %index1, %done ]");
            e.text
                .line("%pack = phi i32 [ 0, %start ], [ %pack1, %done ]");
            let table = e.launch_field(layout::LOCAL_IDS, "ptr");
            let stride = e.launch_field(layout::LOCAL_IDS_STRIDE, "i32");
            for (d, name) in ["%x", "%y", "%z"].into_iter().enumerate() {
                let start = e.text.def(&format!("mul i32 {stride}, {d}"));
                let at = e.text.def(&format!("add i32 {start}, %index"));
                let at = e.text.def(&format!("zext i32 {at} to i64"));
                let at = e
                    .text
                    .def(&format!("getelementptr i32, ptr {table}, i64 {at}"));
                e.text
                    .line(&format!("{name} = load <{lanes} x i32>, ptr {at}, align 4"));
            }
            let items = e.text.def(&format!("mul i32 {}, {}", size[0], size[1]));
            let items = e.text.def(&format!("mul i32 {items}, {}", size[2]));
            let left = e.text.def(&format!("sub i32 {items}, %index"));
            let left = e.splat(Type::I32, &left);
            let own = e.lanes_const(Type::I32, |lane| lane);
            mask = Some(
                e.text
                    .def(&format!("icmp ult <{lanes} x i32> {own}, {left}")),
            );
        }
    }
    let number64 = e.text.def("zext i32 %pack to i64");
    let offset = e.text.def(&format!("mul i64 {number64}, {frame_bytes}"));
    e.text.line(&format!(
        "%own = getelementptr i8, ptr %frame, i64 {offset}"
    ));
    e.region(mask, "done")?;
    e.text.begin("done");
    e.text.line("%pack1 = add i32 %pack, 1");
    match e.packing {
        Packing::Rows | Packing::Tails => {
            e.text.line(&format!("%x1 = add i32 %x, {lanes}"));
            let more = e.text.def(&format!("icmp ult i32 %x1, {}", size[0]));
            e.text.branch(&more, "next_pack", "done_row");
            e.text.begin("done_row");
            e.text.line("%y1 = add i32 %y, 1");
            let more = e.text.def(&format!("icmp ult i32 %y1, {}", size[1]));
            e.text.branch(&more, "done_y", "done_rows");
            e.text.begin("done_y");
            e.text.jump("next_pack");
            e.text.begin("done_rows");
            e.text.line("%z1 = add i32 %z, 1");
            let more = e.text.def(&format!("icmp ult i32 %z1, {}", size[2]));
            e.text.branch(&more, "done_z", "end");
            e.text.begin("done_z");
            e.text.jump("next_pack");
        }
        Packing::Groups | Packing::Alone => e.text.jump("end"),
        Packing::Linear => {
            e.text.line(&format!("%index1 = add i32 %index, {lanes}"));
            let items = e.text.def(&format!("mul i32 {}, {}", size[0], size[1]));
            let items = e.text.def(&format!("mul i32 {items}, {}", size[2]));
            let more = e.text.def(&format!("icmp ult i32 %index1, {items}"));
            e.text.branch(&more, "next_pack", "end");
        }
    }
    e.text.begin("end");
    match e.next.clone() {
        Some(next) => {
            let value = e.text.def(&format!("load i32, ptr {next}, align 4"));
            e.text.line(&format!("ret i32 {value}"));
        }
        None => e.text.line("ret i32 0"),
    }
    let mut out = format!(
        "define internal i32 @region_{number}(ptr noalias readonly %launch, ptr %local, ptr %frame, i32 %gx, i32 %gy, i32 %gz, i32 %many) #0 {{\nstart:\n"
    );
    out += &e.allocas.out;
    out += &e.prologue.out;
    out += &e.text.out;
    out += "}\n";
    Ok(out)
}

/// The function that the runtime calls.
fn driver(regions: usize, Shape { lanes, packing, .. }: Shape) -> String {
    let mut t = Text::default();
    t.line("%p0 = getelementptr i8, ptr %launch, i64 0");
    t.line("%nx = load i32, ptr %p0, align 4");
    t.line("%p1 = getelementptr i8, ptr %launch, i64 4");
    t.line("%ny = load i32, ptr %p1, align 4");
    t.line("%nx64 = zext i32 %nx to i64");
    t.line("%ny64 = zext i32 %ny to i64");
    t.line("%x0 = urem i64 %first, %nx64");
    t.line("%rows = udiv i64 %first, %nx64");
    t.line("%y0 = urem i64 %rows, %ny64");
    t.line("%z0 = udiv i64 %rows, %ny64");
    for d in ["x", "y", "z"] {
        t.line(&format!("%f{d} = trunc i64 %{d}0 to i32"));
    }
    t.line("%some = icmp ne i64 %count, 0");
    t.branch("%some", "group", "end");
    t.begin("group");
    t.line("%gx = phi i32 [ %fx, %start ], [ %hx, %next_group ]");
    t.line("%gy = phi i32 [ %fy, %start ], [ %hy, %next_group ]");
    t.line("%gz = phi i32 [ %fz, %start ], [ %hz, %next_group ]");
    t.line("%left = phi i64 [ %count, %start ], [ %left1, %next_group ]");
    if packing == Packing::Groups {
        t.line("%row = sub i32 %nx, %gx");
        t.line("%row64 = zext i32 %row to i64");
        for (name, a, b) in [
            ("some", "%row64".to_owned(), "%left".to_owned()),
            ("most", "%some64".to_owned(), lanes.to_string()),
        ] {
            t.line(&format!("%{name}_less = icmp ult i64 {a}, {b}"));
            t.line(&format!(
                "%{name}64 = select i1 %{name}_less, i64 {a}, i64 {b}"
            ));
        }
    } else {
        t.line("%most64 = add i64 1, 0");
    }
    // Groups that are run by one call.
    t.line("%many = trunc i64 %most64 to i32");
    let call = "(ptr %launch, ptr %local, ptr %frame, i32 %gx, i32 %gy, i32 %gz, i32 %many)";
    if regions == 1 {
        t.line(&format!("%r0 = call i32 @region_0{call}"));
        t.jump("next_group");
    } else {
        t.jump("go");
        t.begin("go");
        // The first time region 0 is meant; as an answer, 0 is the end.
        let mut state = "%state = phi i32 [ 0, %group ]".to_owned();
        let mut begins = "%begins = phi i1 [ true, %group ]".to_owned();
        for k in 0..regions {
            let _ = write!(state, ", [ %r{k}, %region{k} ]");
            let _ = write!(begins, ", [ false, %region{k} ]");
        }
        t.line(&state);
        t.line(&begins);
        let first = t.label();
        t.branch("%begins", "region0", &first);
        t.begin(&first);
        let mut line = "switch i32 %state, label %next_group [".to_owned();
        for k in 1..regions {
            let _ = write!(line, " i32 {k}, label %region{k}");
        }
        line.push_str(" ]");
        t.line(&line);
        for k in 0..regions {
            t.begin(&format!("region{k}"));
            t.line(&format!("%r{k} = call i32 @region_{k}{call}"));
            t.jump("go");
        }
    }
    t.begin("next_group");
    t.line("%left1 = sub i64 %left, %most64");
    t.line("%gx1 = add i32 %gx, %many");
    t.line("%wx = icmp eq i32 %gx1, %nx");
    t.line("%hx = select i1 %wx, i32 0, i32 %gx1");
    t.line("%gy1 = add i32 %gy, 1");
    t.line("%gy2 = select i1 %wx, i32 %gy1, i32 %gy");
    t.line("%wy = icmp eq i32 %gy2, %ny");
    t.line("%hy = select i1 %wy, i32 0, i32 %gy2");
    t.line("%gz1 = add i32 %gz, 1");
    t.line("%hz = select i1 %wy, i32 %gz1, i32 %gz");
    t.line("%more = icmp ne i64 %left1, 0");
    t.branch("%more", "group", "end");
    t.begin("end");
    t.line("ret void");
    format!(
        "define void @{}(ptr noalias readonly %launch, ptr %local, ptr %frame, i64 %first, i64 %count) #0 {{\nstart:\n{}}}\n",
        packing.symbol(),
        t.out
    )
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
            let uniform = SecondaryMap::new();
            lay_out(&Region { func, uniform }, lanes).map(|(_, bytes)| bytes)
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
