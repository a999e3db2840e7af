//! What compilers write against the rules of SPIR-V and every consumer takes all the same, put right for the validator:
//! debug information that does not follow its own specification (left out), decorations that stand twice (left out once),
//! and blocks that stand before a block that dominates them (moved). llvm-spirv writes all of these. Our reader minds none.

use rustc_hash::{FxHashMap, FxHashSet};
use spirv::Op;

const HEADER_WORDS: usize = 5;

/// The module without debug information, its blocks in an order that the validator accepts. None: cut short.
pub fn corrected(words: &[u32]) -> Option<Vec<u32>> {
    let mut out = words.get(..HEADER_WORDS)?.to_vec();
    let mut debug_sets: FxHashSet<u32> = FxHashSet::default();
    let mut decorations: FxHashSet<&[u32]> = FxHashSet::default();
    let mut function: Vec<&[u32]> = Vec::new();
    let mut rest = words.get(HEADER_WORDS..)?;
    while let Some(&first) = rest.first() {
        let length = (first >> 16) as usize;
        let inst = rest.get(..length).filter(|i| !i.is_empty())?;
        rest = rest.get(length..)?;
        let op = Op::from_u32(first & 0xffff);
        match (op, inst) {
            (Some(Op::Name | Op::MemberName | Op::Line | Op::NoLine), _) => continue,
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
    put(insts.get(..first.begin).unwrap_or_default());
    for number in order(&blocks, insts) {
        if let Some(block) = blocks.get(number) {
            put(insts.get(block.begin..block.end).unwrap_or_default());
        }
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
mod tests {
    use super::*;

    const HEADER: [u32; 5] = [0x0723_0203, 0x1_0400, 0, 90, 0];

    fn inst(op: Op, operands: &[u32]) -> Vec<u32> {
        let mut words = vec![(operands.len() as u32 + 1) << 16 | op as u32];
        words.extend(operands);
        words
    }

    fn module(insts: &[Vec<u32>]) -> Vec<u32> {
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
