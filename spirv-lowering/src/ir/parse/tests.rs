//! Checks that `parse` reads what `print` writes.

use super::*;
use crate::interface::ImageDim;
use crate::ir::entity::Var;

fn example() -> String {
    let source = include_str!("../mod.rs");
    let start = source.find("//! ```text\n").unwrap() + 12;
    let end = source[start..].find("//! ```\n").unwrap() + start;
    source[start..end]
        .lines()
        .map(|l| format!("{}\n", l.strip_prefix("//! ").unwrap_or("")))
        .collect()
}

#[test]
fn the_documented_example_round_trips() {
    let module = parse_module(&example()).unwrap();
    let text = module.to_string();
    let again = parse_module(&text).unwrap();
    assert_eq!(again.to_string(), text);
    assert_eq!(module.functions.len(), 2);
    assert_eq!(module.globals.values().next().unwrap().relocs.len(), 1);
    crate::ir::verify::verify_module(&module).unwrap();
}

#[test]
fn roles_of_kernels_round_trip() {
    let text = "kernel \"a\" fn0 contraction_off initializer {}\nkernel \"b\" fn0 finalizer reqd 2 1 1 {}\n\
                kernel \"c\" fn0 {}\n\nfunc fn0 \"f\" () -> () {\nblock0:\n  return\n}\n";
    let printed = parse_module(text).unwrap().to_string();
    for line in text.lines().take(3) {
        assert!(printed.contains(line), "{printed}");
    }
    assert_eq!(parse_module(&printed).unwrap().to_string(), printed);
}

#[test]
fn every_operation_round_trips() {
    use crate::interface::Implicit;
    use crate::ir::names::op_text;
    use crate::ir::op::*;
    let fences = Fences {
        global: true,
        local: false,
        image: true,
    };
    let none = Fences {
        global: false,
        local: false,
        image: false,
    };
    let (scope, order) = (Scope::WorkGroup, Order::AcqRel);
    let var = Var::new(7);
    let slot = ImageSlot {
        binding: 3,
        dim: ImageDim::D2Array,
        texel: Texel::Signed,
    };
    let mut ops = vec![
        Op::FNative(NativeFn::Exp2),
        Op::ICmp(IntCond::Sle),
        Op::FCmp(FloatCond::Uno),
        Op::FConv(Rounding::Rtn),
        Op::SToF(Rounding::Rte),
        Op::UToF(Rounding::Rtp),
        Op::PtrIsIn(Space::Local),
        Op::Alloca { size: 3, align: 8 },
        Op::MemCopy {
            size: u64::MAX,
            align: 4,
        },
        Op::AtomicLoad { scope, order },
        Op::AtomicStore { scope, order },
        Op::AtomicCmpXchg { scope, order },
        Op::VarLoad(var),
        Op::VarStore(var),
        Op::VarCmpXchg { var, scope, order },
        Op::VarAtomicLoad { var, scope, order },
        Op::VarAtomicStore { var, scope, order },
        Op::VarRmw {
            var,
            op: RmwOp::Xchg,
            scope,
            order,
        },
        Op::AtomicRmw {
            op: RmwOp::FMax,
            scope,
            order,
        },
        Op::Barrier {
            exec: scope,
            mem: Scope::Device,
            order,
            fences,
        },
        Op::Fence {
            mem: scope,
            order,
            fences: none,
        },
        Op::Group(GroupOp::Ballot, Scope::SubGroup),
        Op::Group(GroupOp::ExclusiveScan(GroupArith::LogicalXor), scope),
        Op::Implicit(Implicit::GroupOffset, 2),
        Op::ArgLoad(64),
        Op::Own {
            offset: 8,
            size: 64,
        },
        Op::SpecSize(17),
        Op::ImageRead(Texel::Float),
        Op::ImageWrite(Texel::Unsigned),
        Op::ImageQuery(ImageProperty::ArraySize),
        Op::ImageNumber,
        Op::SamplerAt,
        Op::TexelFetch(slot),
        Op::TexelFilter {
            image: slot,
            sampler: 9,
        },
        Op::TexelLoad(slot),
        Op::TexelStore(slot),
        Op::Call(FuncId::new(12)),
        Op::Printf(5),
        Op::Const(0),
        Op::GlobalAddr(GlobalId::new(0)),
    ];
    for flag in [false, true] {
        ops.extend([
            Op::ImageAt(ImageType {
                dim: ImageDim::D2Array,
                depth: flag,
                access: AccessQualifier::ReadWrite,
            }),
            Op::Load {
                align: 16,
                volatile: flag,
            },
            Op::Store {
                align: 1,
                volatile: flag,
            },
            Op::FToS {
                rounding: Rounding::Rtz,
                sat: flag,
            },
            Op::FToU {
                rounding: Rounding::Rte,
                sat: flag,
            },
        ]);
    }
    ops.extend(Op::NAMES.iter().map(|n| n.0));
    ops.extend(Builtin::NAMES.iter().map(|n| Op::Builtin(n.0)));
    ops.extend(HwVar::NAMES.iter().map(|n| Op::Hw(n.0)));
    for op in ops {
        assert_eq!(parse_op(&op_text(op)), Some(op), "{}", op_text(op));
    }
}

#[test]
fn malformed_text_is_an_error_with_a_line() {
    for (text, what) in [
        ("func", "expected `fn`"),
        (
            "func fn0 \"a\" () -> () {\nblock0:\n  jump block1\n}",
            "line 3: block1",
        ),
        (
            "func fn0 \"a\" () -> () {\nblock0:\n  v0 = zonk : i32\n}",
            "line 3: `zonk`",
        ),
        (
            "func fn0 \"a\" () -> () {\nblock0:\n  return v7\n}",
            "line 3: v7",
        ),
        (
            "func fn0 \"a\" () -> () {\nblock0:\n  v1 = undef\n  return\n}",
            "expected `:`",
        ),
        (
            "func fn0 \"a\" () -> () {\nblock0:\n",
            "expected an instruction",
        ),
        ("func fn0 \"a", "without end"),
        (
            "func fn0 \"a\" () -> () {\nblock0:\n  call.fn3\n  return\n}",
            "fn3 is not",
        ),
        ("global @1 \"\" global size 1 align 1", "expected @0"),
        ("kernel \"k\" fn0 {}", "fn0 is not"),
        ("func fn0 \"a\" (i33) -> ()", "`i33` is not a type"),
        ("\u{1}", "unexpected byte"),
    ] {
        let message = parse_module(text).unwrap_err().to_string();
        assert!(message.contains(what), "{text:?}: {message}");
    }
    // Every prefix of a module either parses or is refused.
    let text = example();
    for end in 0..text.len() {
        let _ = parse_module(&text[..end]);
    }
}
