//! What compilers write against the rules of SPIR-V and every consumer takes all the same, put right for the validator.
//! Left out: debug information, which may not follow its own specification; decorations that stand twice; merge
//! instructions, which mean nothing to kernels and may contradict each other; a surplus word of OpConstantNull;
//! conversions of a type to itself; OpAny and OpAll, which clang applies to integers; `ldexp` of a vector by a scalar.
//! Moved: blocks that stand before a block that dominates them, variables that are not at the start of a function. Added: the variables that an entry point
//! has to name since SPIR-V 1.4, the extension of contracted arithmetic. Constant aggregates count as null: where they hold
//! pointers, what those point to often is not what the type says. Pointers to functions point to what those
//! return; constant ones are null.
//!
//! llvm-spirv and clang write all of these; our reader minds none.

use rustc_hash::{FxHashMap, FxHashSet};
use spirv::Op;
use spirv_lowering::insts::{insts, string_words, HEADER_WORDS};

/// Capability FPFastMathModeINTEL.
const FAST_MATH: u32 = 5837;

/// The number of `ldexp` in OpenCL.std. The other sets that a kernel may import give no vectors.
const LDEXP: u32 = spirv::OpenclStd100Op::ldexp as u32;

fn put_extension(name: &[u8], out: &mut Vec<u32>) {
    let name = string_words(name);
    out.push((name.len() as u32 + 1) << 16 | Op::Extension as u32);
    out.extend(name);
}

/// The module put right, for the validator alone. None: cut short.
pub fn corrected(words: &[u32]) -> Option<Vec<u32>> {
    let words = &with_copies(words)?;
    // Before 1.4 only built-in variables are named, and may be left out.
    let variables = match words.get(1) {
        Some(&version) if version >= 0x1_0400 => Some(global_variables(words)?),
        _ => None,
    };
    let mut out = words.get(..HEADER_WORDS)?.to_vec();
    let mut fast_math = false;
    let mut debug_sets: FxHashSet<u32> = FxHashSet::default();
    let mut aggregates: FxHashSet<u32> = FxHashSet::default();
    let mut decorations: FxHashSet<&[u32]> = FxHashSet::default();
    let mut function: Vec<&[u32]> = Vec::new();
    // Function types, by what they return.
    let mut functions: FxHashMap<u32, u32> = FxHashMap::default();
    for inst in insts(words) {
        let (op, inst) = (inst?.op(), inst?.words);
        match (op, inst) {
            (Some(Op::Capability), &[_, FAST_MATH]) => fast_math = true,
            (Some(Op::Capability), _) => {}
            _ if fast_math => {
                // llvm-spirv 15 forgets it.
                fast_math = false;
                put_extension(b"SPV_INTEL_fp_fast_math_mode", &mut out);
            }
            _ => {}
        }
        match (op, inst) {
            (Some(Op::Name | Op::MemberName | Op::Line | Op::NoLine), _) => continue,
            (Some(Op::LoopMerge | Op::SelectionMerge), _) => continue,
            (Some(Op::TypeArray | Op::TypeStruct), &[_, id, ..]) => {
                aggregates.insert(id);
            }
            (Some(Op::TypeFunction), &[_, id, result, ..]) => {
                functions.insert(id, result);
            }
            (Some(Op::TypePointer), &[first, id, class, pointee]) => {
                if let Some(&result) = functions.get(&pointee) {
                    out.extend([first, id, class, result]);
                    continue;
                }
            }
            (Some(Op::ConstantComposite), &[_, ty, id, ..]) if aggregates.contains(&ty) => {
                out.extend([3 << 16 | Op::ConstantNull as u32, ty, id]);
                continue;
            }
            // The function comes later, which the validator does not expect.
            (Some(Op::ConstantFunctionPointerINTEL), &[_, ty, id, _])
            | (Some(Op::ConstantNull), &[_, ty, id, _, ..]) => {
                out.extend([3 << 16 | Op::ConstantNull as u32, ty, id]);
                continue;
            }
            (Some(Op::EntryPoint), inst) => {
                if let Some(variables) = &variables {
                    // The name ends with the first word that has a zero byte at its end.
                    let name = inst.get(3..)?;
                    let end = name.iter().position(|word| word >> 24 == 0)? + 4;
                    let length = (end + variables.len()) as u32;
                    out.push(length << 16 | Op::EntryPoint as u32);
                    out.extend_from_slice(inst.get(1..end)?);
                    out.extend_from_slice(variables);
                    continue;
                }
            }
            (Some(Op::Decorate | Op::MemberDecorate), inst) if !decorations.insert(inst) => {
                continue
            }
            (Some(Op::ExtInstImport), &[_, id, ref name @ ..]) if is_debug(name) => {
                debug_sets.insert(id);
                continue;
            }
            (Some(Op::ExtInst), &[_, _, _, set, ..]) if debug_sets.contains(&set) => continue,
            _ => {}
        }
        if op == Some(Op::Function) || !function.is_empty() {
            function.push(inst);
            if op == Some(Op::FunctionEnd) {
                put_function(&function, &mut out);
                function.clear();
            }
        } else {
            out.extend_from_slice(inst);
        }
    }
    function.is_empty().then_some(out)
}

/// The module with copies for conversions of a type to itself and for `ldexp` of a vector by a scalar, and any value for
/// OpAny and OpAll. None: cut short.
fn with_copies(words: &[u32]) -> Option<Vec<u32>> {
    let mut out = words.to_vec();
    let mut types: FxHashSet<u32> = FxHashSet::default();
    let mut vectors: FxHashSet<u32> = FxHashSet::default();
    let mut type_of: FxHashMap<u32, u32> = FxHashMap::default();
    let mut conversions = Vec::new();
    let mut scaled = Vec::new();
    for inst in insts(words) {
        let (at, inst) = (inst?.at, inst?.words);
        match (opcode(inst), inst) {
            (Some(Op::TypeInt | Op::TypeFloat | Op::TypeVector), &[_, id, ..]) => {
                types.insert(id);
                if opcode(inst) == Some(Op::TypeVector) {
                    vectors.insert(id);
                }
            }
            (Some(Op::Any | Op::All), &[_, ty, id, _]) => {
                let undef = [3 << 16 | Op::Undef as u32, ty, id, 1 << 16 | Op::Nop as u32];
                out.get_mut(at..at + 4)?.copy_from_slice(&undef);
            }
            // Nothing but a result type is a type and the first operand.
            (_, &[_, ty, id, ..]) if types.contains(&ty) => {
                type_of.insert(id, ty);
                if let (Some(Op::ExtInst), &[_, _, _, _, LDEXP, _, exponent]) = (opcode(inst), inst)
                {
                    scaled.push((at, ty, id, exponent));
                }
                if let (Some(Op::FConvert | Op::UConvert | Op::SConvert), &[_, _, _, from]) =
                    (opcode(inst), inst)
                {
                    conversions.push((at, ty, from));
                }
            }
            _ => {}
        }
    }
    for (at, ty, from) in conversions {
        if type_of.get(&from) == Some(&ty) {
            *out.get_mut(at)? = 4 << 16 | Op::CopyObject as u32;
        }
    }
    for (at, ty, id, exponent) in scaled {
        let scalar = type_of
            .get(&exponent)
            .is_some_and(|ty| !vectors.contains(ty));
        if scalar && vectors.contains(&ty) {
            let value = *words.get(at + 5)?;
            let nop = 1 << 16 | Op::Nop as u32;
            let copy = [
                4 << 16 | Op::CopyObject as u32,
                ty,
                id,
                value,
                nop,
                nop,
                nop,
            ];
            out.get_mut(at..at + copy.len())?.copy_from_slice(&copy);
        }
    }
    Some(out)
}

/// The variables of module scope. None: cut short.
fn global_variables(words: &[u32]) -> Option<Vec<u32>> {
    let mut found = Vec::new();
    for inst in insts(words) {
        let inst = inst?;
        match (inst.op(), inst.words) {
            (Some(Op::Function), _) => break,
            (Some(Op::Variable | Op::UntypedVariableKHR), &[_, _, id, ..]) => found.push(id),
            _ => {}
        }
    }
    Some(found)
}

/// Is the instruction set, by its name in words, one of debug information or without semantics?
fn is_debug(name: &[u32]) -> bool {
    let bytes: Vec<u8> = name.iter().flat_map(|w| w.to_le_bytes()).collect();
    let name = bytes.split(|&b| b == 0).next().unwrap_or_default();
    name.starts_with(b"NonSemantic.") || name.windows(5).any(|part| part == b"Debug")
}

/// A block: its label, where its instructions begin and end in the function.
struct Block {
    label: u32,
    begin: usize,
    end: usize,
}

/// Writes a function with its blocks in reverse postorder, those that nothing reaches at the end.
fn put_function(insts: &[&[u32]], out: &mut Vec<u32>) {
    let mut put = |insts: &[&[u32]]| insts.iter().for_each(|i| out.extend_from_slice(i));
    let mut blocks: Vec<Block> = Vec::new();
    for (at, inst) in insts.iter().enumerate() {
        if let (Some(Op::Label), &&[_, label]) = (opcode(inst), inst) {
            if let Some(last) = blocks.last_mut() {
                last.end = at;
            }
            let end = insts.len() - 1;
            blocks.push(Block {
                label,
                begin: at,
                end,
            });
        }
    }
    let Some(first) = blocks.first() else {
        return put(insts);
    };
    let is_variable =
        |inst: &&&[u32]| matches!(opcode(inst), Some(Op::Variable | Op::UntypedVariableKHR));
    put(insts.get(..=first.begin).unwrap_or_default());
    let variables: Vec<&[u32]> = insts.iter().filter(is_variable).copied().collect();
    put(&variables);
    for (place, number) in order(&blocks, insts).into_iter().enumerate() {
        let Some(block) = blocks.get(number) else {
            continue;
        };
        // The label of the entry is written.
        let begin = block.begin + usize::from(place == 0);
        let insts = insts.get(begin..block.end).unwrap_or_default();
        let rest: Vec<&[u32]> = insts.iter().filter(|i| !is_variable(i)).copied().collect();
        put(&rest);
    }
    put(insts.get(insts.len() - 1..).unwrap_or_default());
}

fn opcode(inst: &[u32]) -> Option<Op> {
    Op::from_u32(inst.first()? & 0xffff)
}

/// The numbers of the blocks in their new order.
fn order(blocks: &[Block], insts: &[&[u32]]) -> Vec<usize> {
    let numbers: FxHashMap<u32, usize> = blocks
        .iter()
        .enumerate()
        .map(|(number, block)| (block.label, number))
        .collect();
    let next: Vec<Vec<usize>> = blocks
        .iter()
        .map(|block| {
            let last = block.end.checked_sub(1).and_then(|at| insts.get(at));
            let mut next = last.map(|i| targets(i, &numbers)).unwrap_or_default();
            // Kept in the order of the text as far as it goes.
            next.sort_unstable_by(|a, b| b.cmp(a));
            next
        })
        .collect();
    let mut seen = vec![false; blocks.len()];
    let mut found = Vec::with_capacity(blocks.len());
    let mut stack = vec![(0, 0)];
    if let Some(entry) = seen.first_mut() {
        *entry = true;
    }
    while let Some((block, taken)) = stack.pop() {
        match next.get(block).and_then(|next| next.get(taken)) {
            Some(&to) => {
                stack.push((block, taken + 1));
                if let Some(seen) = seen.get_mut(to).filter(|seen| !**seen) {
                    *seen = true;
                    stack.push((to, 0));
                }
            }
            None => found.push(block),
        }
    }
    found.reverse();
    let unreached = seen.iter().enumerate().filter(|(_, &seen)| !seen);
    found.extend(unreached.map(|(number, _)| number));
    found
}

/// The blocks that a terminator leads to.
fn targets(inst: &[u32], numbers: &FxHashMap<u32, usize>) -> Vec<usize> {
    let labels: Vec<u32> = match (opcode(inst), inst) {
        (Some(Op::Branch), &[_, to]) => vec![to],
        (Some(Op::BranchConditional), &[_, _, yes, no, ..]) => vec![yes, no],
        (Some(Op::Switch), &[_, _, default, ref cases @ ..]) => {
            // Literals have one word or two, by the type of the selector.
            let of = |words: usize| -> Option<Vec<u32>> {
                let whole = cases.len() % (words + 1) == 0;
                let labels = cases.chunks(words + 1).map(|case| case.last().copied());
                let labels: Vec<u32> = labels.collect::<Option<_>>()?;
                let known = labels.iter().all(|label| numbers.contains_key(label));
                Some(labels).filter(|_| whole && known)
            };
            let mut labels = of(1).or_else(|| of(2)).unwrap_or_default();
            labels.push(default);
            labels
        }
        _ => Vec::new(),
    };
    let found = labels.iter().filter_map(|label| numbers.get(label));
    found.copied().collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const HEADER: [u32; 5] = [0x0723_0203, 0x1_0400, 0, 90, 0];

    pub fn inst(op: Op, operands: &[u32]) -> Vec<u32> {
        let mut words = vec![(operands.len() as u32 + 1) << 16 | op as u32];
        words.extend(operands);
        words
    }

    pub fn module(insts: &[Vec<u32>]) -> Vec<u32> {
        [HEADER.to_vec(), insts.concat()].concat()
    }

    #[test]
    fn blocks_follow_what_dominates_them() {
        let (start, end) = (
            inst(Op::Function, &[1, 2, 0, 3]),
            inst(Op::FunctionEnd, &[]),
        );
        let block = |label: u32, last: Vec<u32>| [inst(Op::Label, &[label]), last].concat();
        let entry = block(10, inst(Op::Branch, &[12]));
        let done = block(11, inst(Op::Return, &[]));
        let select = block(12, inst(Op::Switch, &[5, 11, 0, 13, 7, 11]));
        let wide = block(13, inst(Op::Switch, &[6, 12, 1, 2, 11]));
        let dead = block(14, inst(Op::BranchConditional, &[7, 11, 14]));
        let written = [&start, &entry, &done, &dead, &wide, &select, &end].map(Clone::clone);
        let expected = [&start, &entry, &select, &wide, &done, &dead, &end].map(Clone::clone);
        assert_eq!(corrected(&module(&written)), Some(module(&expected)));
        // A declaration has no blocks.
        let declared = module(&[start, end]);
        assert_eq!(corrected(&declared), Some(declared));
    }

    #[test]
    fn contracted_arithmetic_has_its_extension() {
        let capabilities = [4, 5837, 6]
            .map(|number| inst(Op::Capability, &[number]))
            .concat();
        let model = inst(Op::MemoryModel, &[2, 2]);
        let name: Vec<u32> = b"SPV_INTEL_fp_fast_math_mode\0"
            .chunks(4)
            .map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]))
            .collect();
        let extension = inst(Op::Extension, &name);
        let written = module(&[capabilities.clone(), model.clone()]);
        let expected = module(&[capabilities, extension, model]);
        assert_eq!(corrected(&written), Some(expected));
    }

    #[test]
    fn variables_come_first_and_are_named() {
        let name = u32::from_le_bytes(*b"k\0\0\0");
        let global = inst(Op::Variable, &[1, 4, 5]);
        let (start, end) = (
            inst(Op::Function, &[1, 2, 0, 3]),
            inst(Op::FunctionEnd, &[]),
        );
        let (label, done) = (inst(Op::Label, &[7]), inst(Op::Return, &[]));
        let (sum, merge) = (
            inst(Op::IAdd, &[1, 8, 4, 4]),
            inst(Op::SelectionMerge, &[7, 0]),
        );
        let local = inst(Op::Variable, &[1, 9, 7]);
        let all = module(&[
            inst(Op::EntryPoint, &[6, 2, name]),
            inst(Op::TypeFloat, &[30, 32]),
            inst(Op::Constant, &[30, 31, 0]),
            inst(Op::FConvert, &[30, 32, 31]),
            inst(Op::FConvert, &[30, 33, 21]),
            inst(Op::TypeArray, &[20, 21, 22]),
            inst(Op::ConstantComposite, &[20, 23, 24, 25]),
            inst(Op::ConstantComposite, &[26, 27, 28, 29]),
            inst(Op::ConstantNull, &[1, 10, 0]),
            global.clone(),
            start.clone(),
            label.clone(),
            sum.clone(),
            merge,
            inst(Op::Any, &[1, 14, 8]),
            local.clone(),
            done.clone(),
            end.clone(),
        ]);
        let expected = module(&[
            inst(Op::EntryPoint, &[6, 2, name, 4]),
            inst(Op::TypeFloat, &[30, 32]),
            inst(Op::Constant, &[30, 31, 0]),
            inst(Op::CopyObject, &[30, 32, 31]),
            inst(Op::FConvert, &[30, 33, 21]),
            inst(Op::TypeArray, &[20, 21, 22]),
            inst(Op::ConstantNull, &[20, 23]),
            inst(Op::ConstantComposite, &[26, 27, 28, 29]),
            inst(Op::ConstantNull, &[1, 10]),
            global,
            start,
            label,
            local,
            sum,
            inst(Op::Undef, &[1, 14]),
            inst(Op::Nop, &[]),
            done,
            end,
        ]);
        assert_eq!(corrected(&all), Some(expected));
    }

    #[test]
    fn vectors_are_scaled_by_scalars() {
        let types = [
            inst(Op::TypeFloat, &[2, 32]),
            inst(Op::TypeInt, &[3, 32, 0]),
            inst(Op::TypeVector, &[4, 2, 2]),
            inst(Op::TypeVector, &[5, 3, 2]),
            inst(Op::Constant, &[3, 6, 1]),
            inst(Op::ConstantNull, &[5, 7]),
        ]
        .concat();
        let ldexp =
            |ty: u32, id: u32, exponent: u32| inst(Op::ExtInst, &[ty, id, 1, LDEXP, 20, exponent]);
        let kept = [ldexp(4, 8, 7), ldexp(2, 9, 6)].concat();
        let nops = [1 << 16 | Op::Nop as u32; 3].to_vec();
        let copied = [inst(Op::CopyObject, &[4, 10, 20]), nops].concat();
        let written = module(&[types.clone(), kept.clone(), ldexp(4, 10, 6)]);
        assert_eq!(corrected(&written), Some(module(&[types, kept, copied])));
    }

    #[test]
    fn debug_information_is_left_out() {
        let text = |name: &[u8]| -> Vec<u32> {
            let mut bytes = name.to_vec();
            bytes.resize(name.len() / 4 * 4 + 4, 0);
            let words = bytes.chunks(4);
            words
                .map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]))
                .collect()
        };
        let import =
            |id: u32, name: &[u8]| inst(Op::ExtInstImport, &[&[id], &text(name)[..]].concat());
        let kept = import(1, b"OpenCL.std");
        let all = module(&[
            kept.clone(),
            import(2, b"OpenCL.DebugInfo.100"),
            import(3, b"NonSemantic.Other"),
            inst(Op::Name, &[5, 0]),
            inst(Op::Decorate, &[9, 4469]),
            inst(Op::Decorate, &[9, 4469]),
            inst(Op::ExtInst, &[6, 7, 2, 0]),
            inst(Op::ExtInst, &[6, 8, 3, 0]),
            inst(Op::ExtInst, &[6, 9, 1, 0]),
            inst(Op::Line, &[6, 1, 1]),
        ]);
        let expected = module(&[
            kept,
            inst(Op::Decorate, &[9, 4469]),
            inst(Op::ExtInst, &[6, 9, 1, 0]),
        ]);
        assert_eq!(corrected(&all), Some(expected));
        assert_eq!(corrected(&all[..all.len() - 1]), None);
    }
}
