//! Modules with typed pointers turned into modules with untyped ones: the results are the same.

use super::{build, run_program, samples, Data};
use pumice_tests::Setup;
use spirv::Op;
use std::collections::HashMap;

/// The module with an untyped pointer for each typed one. None: it has instructions that need the pointee type of a pointer.
fn untyped(words: &[u32]) -> Option<Vec<u32>> {
    let mut insts: Vec<(Op, Vec<u32>)> = Vec::new();
    let mut at = 5;
    while let Some(&first) = words.get(at) {
        let length = (first >> 16) as usize;
        let op = Op::from_u32(first & 0xffff)?;
        insts.push((op, words[at + 1..at + length].to_vec()));
        at += length;
    }
    // Pointer types to pointees, values to types.
    let mut pointees: HashMap<u32, u32> = HashMap::new();
    let mut types: HashMap<u32, u32> = HashMap::new();
    for (op, operands) in &insts {
        match (op, &operands[..]) {
            (Op::TypePointer, &[id, _, to]) => {
                pointees.insert(id, to);
            }
            (Op::TypeForwardPointer, _) => return None,
            (op, &[ty, id, ..]) if has_result(*op) => {
                types.insert(id, ty);
            }
            _ => {}
        }
    }
    let pointee = |id: &u32| pointees.get(types.get(id)?).copied();
    let mut out = words[..5].to_vec();
    let mut emit = |op: Op, operands: &[u32]| {
        out.push((operands.len() as u32 + 1) << 16 | op as u32);
        out.extend(operands);
    };
    let prefetch = spirv::OpenclStd100Op::prefetch as u32;
    let mut declared = false;
    for (op, operands) in &insts {
        if *op != Op::Capability && !declared {
            declared = true;
            emit(Op::Capability, &[4473]);
            let name = b"SPV_KHR_untyped_pointers";
            let mut text: Vec<u32> = name
                .chunks(4)
                .map(|c| u32::from_le_bytes(c.try_into().expect("four letters")))
                .collect();
            text.push(0);
            emit(Op::Extension, &text);
        }
        let chain = |op: Op| match op {
            Op::AccessChain => Some(Op::UntypedAccessChainKHR),
            Op::InBoundsAccessChain => Some(Op::UntypedInBoundsAccessChainKHR),
            Op::PtrAccessChain => Some(Op::UntypedPtrAccessChainKHR),
            Op::InBoundsPtrAccessChain => Some(Op::UntypedInBoundsPtrAccessChainKHR),
            _ => None,
        };
        match (*op, &operands[..]) {
            (Op::TypePointer, &[id, class, _]) => emit(Op::TypeUntypedPointerKHR, &[id, class]),
            (Op::Variable, &[ty, id, class, ref init @ ..]) => {
                let to = pointees.get(&ty)?;
                emit(
                    Op::UntypedVariableKHR,
                    &[&[ty, id, class, *to][..], init].concat(),
                );
            }
            (Op::SpecConstantOp, &[ty, id, code, base, ref rest @ ..]) => {
                match Op::from_u32(code).and_then(chain) {
                    Some(new) => {
                        let head = [ty, id, new as u32, pointee(&base)?, base];
                        emit(Op::SpecConstantOp, &[&head[..], rest].concat());
                    }
                    None => emit(*op, operands),
                }
            }
            (op, &[ty, id, base, ref rest @ ..]) if chain(op).is_some() => {
                let head = [ty, id, pointee(&base)?, base];
                emit(chain(op)?, &[&head[..], rest].concat());
            }
            // There is an instruction of its own for untyped pointers.
            (Op::ExtInst, &[_, _, _, number, ..]) if number == prefetch => {}
            (Op::CopyMemory | Op::GroupAsyncCopy | Op::SizeOf | Op::PtrDiff, _) => return None,
            (op, operands) => emit(op, operands),
        }
    }
    Some(out)
}

/// Instructions that begin with a result type and a result and matter here.
fn has_result(op: Op) -> bool {
    !matches!(
        op,
        Op::Name
            | Op::MemberName
            | Op::Decorate
            | Op::EntryPoint
            | Op::ExecutionMode
            | Op::Store
            | Op::Branch
            | Op::BranchConditional
            | Op::Switch
            | Op::SelectionMerge
            | Op::LoopMerge
            | Op::CopyMemorySized
    ) && !(Op::TypeVoid as u32..=Op::TypeForwardPointer as u32).contains(&(op as u32))
}

#[test]
fn hand_written_modules() {
    let setup = Setup::new();
    let mut input = Data::new();
    for (i, byte) in input.0.iter_mut().enumerate() {
        // Small numbers of 32 bits.
        *byte = if i % 4 == 0 { (i / 4 % 3) as u8 } else { 0 };
    }
    let mut converted = 0;
    for (number, words) in samples().iter().enumerate() {
        let Some(new) = untyped(words) else { continue };
        let run = |words: &[u32]| match build(&setup, words) {
            Ok(program) => run_program(&setup, &program, &input, 1),
            Err(log) => panic!("sample {number}: {log}"),
        };
        let (before, after) = (run(words), run(&new));
        assert_eq!(before.0, after.0, "sample {number}");
        converted += 1;
    }
    assert!(converted >= 4, "{converted} modules");
}

/// Tests clang's code of kernels with structures, local and constant memory, atomics and calls.
#[test]
fn compiled_modules() {
    let setup = Setup::new();
    let mut converted = 0;
    for words in crate::robustness::modules(&setup) {
        let Some(new) = untyped(&words) else { continue };
        if let Err(log) = build(&setup, &new) {
            panic!("{log}");
        }
        converted += 1;
    }
    assert!(converted > 0);
}
