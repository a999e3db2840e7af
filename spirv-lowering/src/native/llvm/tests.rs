use super::*;
use crate::ir::function::FpFlags;
use crate::ir::op::{FloatCond, IntCond};

const I8: LlvmType = LlvmType::int(8);
const PTR: LlvmType = LlvmType::PTR;
const VALUE: Operand = Operand::named(LlvmType::I32, "value");
const WIDE: Operand = Operand::named(LlvmType::I64, "wide");
const AT: Operand = Operand::named(PTR, "at");

/// Returns the text of the function that is built, or the error.
fn built(build: impl FnOnce(&mut Builder<'_>)) -> Result<String, String> {
    let mut declarations = Declarations::default();
    let mut llvm = Builder::new(&mut declarations);
    build(&mut llvm);
    let text = llvm.finish("define void @f()");
    text.map_err(|error| error.to_string())
}

#[test]
fn instructions_are_printed() {
    let text = built(|llvm| {
        let slot = llvm.slot(LlvmType::I32.vector(2));
        let once = |llvm: &mut Builder<'_>| llvm.once(|llvm| llvm.offset(&AT, &Operand::i64(4)));
        let at = once(llvm);
        let value = llvm.load(LlvmType::I32, &at, 4);
        let all = llvm.splat(&value, 2);
        llvm.put(&all, &slot);
        let again = once(llvm);
        llvm.store(&VALUE, &again, 4);
        let least = llvm.intrinsic("smin", &[&all, &Operand::of_lanes(all.ty(), |lane| lane)]);
        llvm.put(&least, &slot);
        llvm.ret(None);
    });
    let lines = "define void @f() {
start:
  %t1 = alloca <2 x i32>, align 64
  %t2 = getelementptr i8, ptr %at, i64 4
  %t3 = load i32, ptr %t2, align 4
  %t4 = insertelement <2 x i32> poison, i32 %t3, i64 0
  %t5 = shufflevector <2 x i32> %t4, <2 x i32> poison, <2 x i32> zeroinitializer
  store <2 x i32> %t5, ptr %t1, align 64
  store i32 %value, ptr %t2, align 4
  %t6 = call <2 x i32> @llvm.smin.v2i32(<2 x i32> %t5, <2 x i32> <i32 0, i32 1>)
  store <2 x i32> %t6, ptr %t1, align 64
  ret void
}
";
    assert_eq!(text.as_deref(), Ok(lines));
}

#[test]
fn constants_are_printed() {
    for (ty, bits, text) in [
        (LlvmType::BIT, 1, "true"),
        (LlvmType::int(2), 3, "-1"),
        (I8, 0xff, "-1"),
        (LlvmType::int(128), 64, "64"),
        (LlvmType::HALF, 0x3c00, "0xH3C00"),
        (LlvmType::FLOAT, 0x3f80_0000, "0x3FF0000000000000"),
        (LlvmType::FLOAT, 0x7fc0_0001, "0x7FF8000020000000"),
        (PTR, 0, "null"),
        (PTR.vector(2), 0, "zeroinitializer"),
        (I8.vector(2), 0x80, "<i8 -128, i8 -128>"),
    ] {
        assert_eq!(Operand::constant(ty, bits).to_string(), text);
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    type Build = fn(&mut Builder<'_>);
    let wrong: [(&str, Build); 17] = [
        ("a sum of two types", |llvm| {
            llvm.add(&VALUE, &WIDE);
        }),
        ("a division by what may be zero", |llvm| {
            llvm.binary(Binary::UDiv, &VALUE, &VALUE);
        }),
        ("a sum of addresses", |llvm| {
            llvm.add(&AT, &AT);
        }),
        ("a vector of addresses as one", |llvm| {
            let slot = llvm.slot(PTR);
            llvm.put(&Operand::poison(PTR.vector(16)), &slot);
        }),
        ("an element of another type", |llvm| {
            let slot = llvm.slot(LlvmType::I32.vector(4));
            llvm.put_element(&WIDE, &slot, &WIDE);
        }),
        ("a load at a number", |llvm| {
            llvm.load(PTR, &WIDE, 8);
        }),
        ("a store at many addresses", |llvm| {
            llvm.store(&VALUE, &Operand::poison(PTR.vector(4)), 4);
        }),
        ("a branch on a number", |llvm| {
            let label = llvm.label();
            llvm.branch(&VALUE, label, label);
        }),
        ("a phi of two types", |llvm| {
            let label = llvm.label();
            llvm.phi(LlvmType::I32, &[(&VALUE, label), (&WIDE, label)]);
        }),
        ("a comparison of floats as integers", |llvm| {
            let one = Operand::constant(LlvmType::FLOAT, 0);
            llvm.icmp(IntCond::Eq, &one, &one);
        }),
        ("a comparison of integers as floats", |llvm| {
            llvm.fcmp(FloatCond::Oeq, FpFlags::default(), &VALUE, &VALUE);
        }),
        ("an extension to fewer bits", |llvm| {
            llvm.cast(Cast::ZExt, &WIDE, LlvmType::I32);
        }),
        ("a conversion to fewer lanes", |llvm| {
            let pair = Operand::poison(LlvmType::I32.vector(2));
            llvm.cast(Cast::Trunc, &pair, I8);
        }),
        ("a choice by more lanes", |llvm| {
            let mask = Operand::poison(LlvmType::BIT.vector(4));
            llvm.select(&mask, &VALUE, &VALUE);
        }),
        ("an element that is not there", |llvm| {
            let pair = Operand::poison(LlvmType::I32.vector(2));
            llvm.shuffle(&pair, &pair, 3..5);
        }),
        ("an intrinsic of two types", |llvm| {
            llvm.intrinsic("smin", &[&VALUE, &WIDE]);
        }),
        ("a result of another type", |llvm| {
            llvm.named(&WIDE).add(&VALUE, &VALUE);
        }),
    ];
    for (what, build) in wrong {
        assert!(built(build).is_err(), "{what}");
    }
}
