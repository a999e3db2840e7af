//! Repairs errors against the rules of SPIR-V that compilers make and every consumer accepts. The
//! module keeps its meaning, and its repaired form is what is validated and read.
//!
//! Each repair is a row of the table of quirks, which names the compilers, and has a module that one
//! of them wrote in `samples`.

use crate::compile::edit::{instruction, opcode, Change, InstWords, ModuleEdit};
use crate::quirks::{Quirk, Quirks};
use rustc_hash::{FxHashMap, FxHashSet};
use spirv::Op;

/// The capability FPFastMathModeINTEL.
const FAST_MATH: u32 = 5837;

/// The number of `ldexp` in OpenCL.std. No other set that a kernel may import returns vectors.
const LDEXP: u32 = spirv::OpenclStd100Op::ldexp as u32;

/// Returns the module without what is wrong by some quirks, or `None` if it is truncated.
pub fn repaired(words: &[u32], quirks: Quirks) -> Option<Vec<u32>> {
    let mut edit = ModuleEdit::of(words)?;
    let known = Inventory::of(&mut edit);
    let mut decorations: FxHashSet<Vec<u32>> = FxHashSet::default();
    edit.rewrite(|edit, inst| {
        let Some(op) = opcode(inst) else {
            return Some(Change::Keep);
        };
        if matches!(op, Op::Decorate | Op::MemberDecorate)
            && quirks.has(Quirk::RepeatedDecorations)
            && !decorations.insert(inst.to_vec())
        {
            return Some(Change::Drop);
        }
        let fault = known.fault(op, inst);
        Some(match fault.filter(|&fault| quirks.has(fault)) {
            Some(fault) => known.change(edit, fault, op, inst),
            None => Change::Keep,
        })
    })?;
    let fast_math = instruction(Op::Capability, &[FAST_MATH]);
    if quirks.has(Quirk::UndeclaredContraction)
        && edit.insts.iter().any(|inst| **inst == *fast_math)
    {
        edit.declare(None, "SPV_INTEL_fp_fast_math_mode");
    }
    if quirks.has(Quirk::BlockOrder) {
        in_order(&mut edit)?;
    }
    Some(edit.words())
}

/// The types and values of a module that the repairs depend on.
#[derive(Default)]
struct Inventory {
    /// The variables of module scope, which entry points name since SPIR-V 1.4.
    variables: Option<Vec<u32>>,
    /// The sets of debug information and the like, and the results of their instructions.
    debug: FxHashSet<u32>,
    /// The types of numbers and their vectors, of truth values and pointers.
    types: FxHashSet<u32>,
    /// The vector types, with the type and number of their components.
    vectors: FxHashMap<u32, (u32, u32)>,
    integers: FxHashSet<u32>,
    pointers: FxHashSet<u32>,
    /// The types of a structure's members.
    members: FxHashMap<u32, Vec<u32>>,
    /// The type of an array's elements.
    elements: FxHashMap<u32, u32>,
    type_of: FxHashMap<u32, u32>,
}

impl Inventory {
    fn of(edit: &mut ModuleEdit<'_>) -> Self {
        let mut known = Self::default();
        let mut variables = Vec::new();
        let mut inside = false;
        let insts = std::mem::take(&mut edit.insts);
        for inst in &insts {
            edit.know(inst);
            match (opcode(inst), &**inst) {
                (Some(Op::ExtInstImport), &[_, id, ref name @ ..]) if is_debug(name) => {
                    known.debug.insert(id);
                }
                (Some(Op::ExtInst), &[_, _, id, set, ..]) if known.debug.contains(&set) => {
                    known.debug.insert(id);
                }
                (Some(op @ (Op::TypeInt | Op::TypeFloat | Op::TypeBool)), &[_, id, ..]) => {
                    known.types.insert(id);
                    if op == Op::TypeInt {
                        known.integers.insert(id);
                    }
                }
                (Some(Op::TypeVector), &[_, id, scalar, count]) => {
                    known.types.insert(id);
                    known.vectors.insert(id, (scalar, count));
                }
                (Some(Op::TypePointer | Op::TypeUntypedPointerKHR), &[_, id, ..]) => {
                    known.types.insert(id);
                    known.pointers.insert(id);
                }
                (Some(Op::TypeStruct), &[_, id, ref members @ ..]) => {
                    known.members.insert(id, members.to_vec());
                }
                (Some(Op::TypeArray), &[_, id, element, _]) => {
                    known.elements.insert(id, element);
                }
                (Some(Op::Function), _) => inside = true,
                // Nothing but a result type is a type and the first operand.
                (op, &[_, ty, id, ..]) if known.types.contains(&ty) => {
                    known.type_of.insert(id, ty);
                    let variable = matches!(op, Some(Op::Variable | Op::UntypedVariableKHR));
                    if variable && !inside {
                        variables.push(id);
                    }
                }
                _ => {}
            }
        }
        edit.insts = insts;
        known.variables = (edit.version() >= 0x1_0400).then_some(variables);
        known
    }

    /// Returns what may be wrong with an instruction by itself.
    fn fault(&self, op: Op, inst: &[u32]) -> Option<Quirk> {
        Some(match (op, inst) {
            (Op::Line | Op::NoLine, _) => Quirk::DebugInformation,
            (Op::Name | Op::ExtInstImport, [_, id, ..]) if self.debug.contains(id) => {
                Quirk::DebugInformation
            }
            (Op::ExtInst, [_, _, _, set, ..]) if self.debug.contains(set) => {
                Quirk::DebugInformation
            }
            (Op::LoopMerge | Op::SelectionMerge, _) => Quirk::MergeInstructions,
            (Op::ConstantComposite | Op::SpecConstantComposite, _) => Quirk::UncastMembers,
            (Op::EntryPoint, _) => Quirk::UnnamedVariables,
            (Op::FConvert | Op::UConvert | Op::SConvert, [_, ty, _, from])
                if self.type_of.get(from) == Some(ty) =>
            {
                Quirk::SelfConversions
            }
            (Op::Any | Op::All, _) => Quirk::IntegerTruths,
            (Op::ExtInst, [_, _, _, _, LDEXP, ..]) => Quirk::ScalarExponents,
            _ => return None,
        })
    }

    /// Returns the change to an instruction that needs no others.
    fn change(&self, edit: &mut ModuleEdit<'_>, fault: Quirk, op: Op, inst: &[u32]) -> Change {
        let instead = match (fault, inst) {
            (Quirk::DebugInformation | Quirk::MergeInstructions, _) => return Change::Drop,
            (Quirk::UncastMembers, _) => self.cast_members(edit, op, inst),
            (Quirk::UnnamedVariables, _) => self.naming_variables(inst).map(|entry| vec![entry]),
            (Quirk::SelfConversions, &[_, ty, id, from]) => {
                Some(vec![instruction(Op::CopyObject, &[ty, id, from])])
            }
            (Quirk::IntegerTruths, &[_, ty, id, of]) => self.signs(edit, op, [ty, id, of]),
            (Quirk::ScalarExponents, &[_, ty, id, set, number, value, exponent]) => {
                let vector = self.splat(edit, ty, exponent);
                vector.map(|(vector, made)| {
                    let operands = [ty, id, set, number, value, vector];
                    vec![made, instruction(op, &operands)]
                })
            }
            _ => None,
        };
        instead.map_or(Change::Keep, Change::Become)
    }

    /// Returns a constant aggregate whose pointers have the types of its members, and the casts for
    /// it.
    fn cast_members(
        &self,
        edit: &mut ModuleEdit<'_>,
        op: Op,
        inst: &[u32],
    ) -> Option<Vec<Vec<u32>>> {
        let &[_, ty, id, ref parts @ ..] = inst else {
            return None;
        };
        let wanted = |number: usize| match (self.members.get(&ty), self.elements.get(&ty)) {
            (Some(members), _) => members.get(number).copied(),
            (None, element) => element.copied(),
        };
        let (mut insts, mut operands) = (Vec::new(), vec![ty, id]);
        for (number, &part) in parts.iter().enumerate() {
            let types = (wanted(number), self.type_of.get(&part).copied());
            let (Some(wanted), Some(is)) = types else {
                operands.push(part);
                continue;
            };
            let pointers = self.pointers.contains(&wanted) && self.pointers.contains(&is);
            if !pointers || wanted == is {
                operands.push(part);
                continue;
            }
            let cast = edit.new_id();
            let operation = [wanted, cast, Op::Bitcast as u32, part];
            insts.push(instruction(Op::SpecConstantOp, &operation));
            operands.push(cast);
        }
        if insts.is_empty() {
            return None;
        }
        insts.push(instruction(op, &operands));
        Some(insts)
    }

    fn naming_variables(&self, entry: &[u32]) -> Option<Vec<u32>> {
        let variables = self.variables.as_ref()?;
        // The name ends with the first word that has a zero byte at its end.
        let name = entry.get(3..)?;
        let end = name.iter().position(|word| word >> 24 == 0)? + 4;
        let operands = [entry.get(1..end)?, variables].concat();
        Some(instruction(Op::EntryPoint, &operands))
    }

    /// Computes whether an integer, or all or any of a vector, are negative.
    fn signs(
        &self,
        edit: &mut ModuleEdit<'_>,
        op: Op,
        [bool_type, id, of]: [u32; 3],
    ) -> Option<Vec<Vec<u32>>> {
        let &ty = self.type_of.get(&of)?;
        let (scalar, count) = self.vectors.get(&ty).copied().unwrap_or((ty, 1));
        if !self.integers.contains(&scalar) {
            return None;
        }
        let zero = edit.value(Op::ConstantNull, &[ty]);
        if !self.vectors.contains_key(&ty) {
            return Some(vec![instruction(Op::SLessThan, &[bool_type, id, of, zero])]);
        }
        let bools = edit.value(Op::TypeVector, &[bool_type, count]);
        let signs = edit.new_id();
        Some(vec![
            instruction(Op::SLessThan, &[bools, signs, of, zero]),
            instruction(op, &[bool_type, id, signs]),
        ])
    }

    /// Creates a vector with an integer in each component. Returns the id, and the instruction that
    /// makes it.
    fn splat(
        &self,
        edit: &mut ModuleEdit<'_>,
        vector: u32,
        scalar: u32,
    ) -> Option<(u32, Vec<u32>)> {
        let &(_, count) = self.vectors.get(&vector)?;
        let ty = self
            .type_of
            .get(&scalar)
            .filter(|ty| self.integers.contains(ty))?;
        let integers = edit.value(Op::TypeVector, &[*ty, count]);
        let made = edit.new_id();
        let mut operands = vec![integers, made];
        operands.extend((0..count.min(16)).map(|_| scalar));
        Some((made, instruction(Op::CompositeConstruct, &operands)))
    }
}

/// Returns true if the instruction set, by its name in words, is one of debug information or
/// without semantics.
fn is_debug(name: &[u32]) -> bool {
    let bytes: Vec<u8> = name.iter().flat_map(|w| w.to_le_bytes()).collect();
    let name = bytes.split(|&b| b == 0).next().unwrap_or_default();
    name.starts_with(b"NonSemantic.") || name.windows(5).any(|part| part == b"Debug")
}

/// Moves the blocks of each function to reverse postorder, and its variables first. Returns `None`
/// if a function has no end.
fn in_order(edit: &mut ModuleEdit<'_>) -> Option<()> {
    let mut out = Vec::with_capacity(edit.insts.len());
    let mut function: Vec<InstWords<'_>> = Vec::new();
    for inst in std::mem::take(&mut edit.insts) {
        let op = opcode(&inst);
        if op != Some(Op::Function) && function.is_empty() {
            out.push(inst);
            continue;
        }
        function.push(inst);
        if op == Some(Op::FunctionEnd) {
            put_function(std::mem::take(&mut function), &mut out);
        }
    }
    edit.insts = out;
    function.is_empty().then_some(())
}

/// A block: its label, and where its instructions begin and end in the function.
struct BlockSpan {
    label: u32,
    begin: usize,
    end: usize,
}

/// Writes a function with its blocks in reverse postorder, unreachable ones at the end.
fn put_function<'a>(insts: Vec<InstWords<'a>>, out: &mut Vec<InstWords<'a>>) {
    let mut blocks: Vec<BlockSpan> = Vec::new();
    let end = insts.len() - 1;
    for (at, inst) in insts.iter().enumerate() {
        if let (Some(Op::Label), &[_, label]) = (opcode(inst), &**inst) {
            if let Some(last) = blocks.last_mut() {
                last.end = at;
            }
            blocks.push(BlockSpan {
                label,
                begin: at,
                end,
            });
        }
    }
    let Some(first) = blocks.first() else {
        return out.extend(insts);
    };
    let is_variable =
        |inst: &&InstWords<'a>| matches!(opcode(inst), Some(Op::Variable | Op::UntypedVariableKHR));
    out.extend(insts.iter().take(first.begin + 1).cloned());
    out.extend(insts.iter().filter(is_variable).cloned());
    for (place, number) in order(&blocks, &insts).into_iter().enumerate() {
        let Some(block) = blocks.get(number) else {
            continue;
        };
        // The label of the entry is written.
        let begin = block.begin + usize::from(place == 0);
        let insts = insts.get(begin..block.end).unwrap_or_default();
        out.extend(insts.iter().filter(|i| !is_variable(i)).cloned());
    }
    out.extend(insts.last().cloned());
}

/// Returns the numbers of the blocks in their new order.
fn order(blocks: &[BlockSpan], insts: &[InstWords<'_>]) -> Vec<usize> {
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

/// Returns the blocks that a terminator leads to.
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

    use crate::compile::edit::tests::{inst, module, module_bound};
    use crate::quirks::Vendor;

    fn by_all(words: &[u32]) -> Option<Vec<u32>> {
        repaired(words, Quirks::of(Vendor::Producer, [0; 3]))
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
        assert_eq!(by_all(&module(&written)), Some(module(&expected)));
        // A declaration has no blocks.
        let declared = module(&[start, end]);
        assert_eq!(by_all(&declared), Some(declared));
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
        assert_eq!(by_all(&written), Some(expected));
    }

    #[test]
    fn variables_come_first_and_are_named() {
        let name = u32::from_le_bytes(*b"k\0\0\0");
        let types = [
            inst(Op::TypeFloat, &[30, 32]),
            inst(Op::TypePointer, &[1, 5, 30]),
            inst(Op::Constant, &[30, 31, 0]),
        ]
        .concat();
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
        let other = inst(Op::FConvert, &[30, 33, 21]);
        let all = module(&[
            inst(Op::EntryPoint, &[6, 2, name]),
            types.clone(),
            global.clone(),
            start.clone(),
            label.clone(),
            inst(Op::FConvert, &[30, 32, 31]),
            other.clone(),
            sum.clone(),
            merge,
            local.clone(),
            done.clone(),
            end.clone(),
        ]);
        let expected = module(&[
            inst(Op::EntryPoint, &[6, 2, name, 4]),
            types,
            global,
            start,
            label,
            local,
            inst(Op::CopyObject, &[30, 32, 31]),
            other,
            sum,
            done,
            end,
        ]);
        assert_eq!(by_all(&all), Some(expected));
    }

    /// Checks that pointers in constants get the types of the members, and keep their meaning.
    #[test]
    fn pointers_in_constants_are_cast() {
        let types = [
            inst(Op::TypeInt, &[2, 32, 0]),
            inst(Op::TypeInt, &[3, 8, 0]),
            inst(Op::TypePointer, &[4, 5, 2]),
            inst(Op::TypePointer, &[5, 5, 3]),
            inst(Op::TypeArray, &[6, 5, 9]),
            inst(Op::TypeStruct, &[7, 4, 5]),
            inst(Op::ConstantNull, &[4, 20]),
            inst(Op::ConstantNull, &[5, 21]),
        ]
        .concat();
        let right = inst(Op::ConstantComposite, &[7, 22, 20, 21]);
        let array = inst(Op::ConstantComposite, &[6, 23, 20, 21]);
        let structure = inst(Op::ConstantComposite, &[7, 24, 21, 21]);
        let cast = |ty: u32, id: u32, from: u32| {
            inst(Op::SpecConstantOp, &[ty, id, Op::Bitcast as u32, from])
        };
        let expected = module_bound(
            92,
            &[
                types.clone(),
                right.clone(),
                cast(5, 90, 20),
                inst(Op::ConstantComposite, &[6, 23, 90, 21]),
                cast(4, 91, 21),
                inst(Op::ConstantComposite, &[7, 24, 91, 21]),
            ],
        );
        let written = module(&[types, right, array, structure]);
        assert_eq!(by_all(&written), Some(expected));
    }

    #[test]
    fn signs_of_integers_are_compared() {
        let types = [
            inst(Op::TypeBool, &[2]),
            inst(Op::TypeInt, &[3, 32, 0]),
            inst(Op::TypeVector, &[4, 3, 2]),
            inst(Op::TypeVector, &[5, 2, 2]),
            inst(Op::ConstantNull, &[4, 6]),
            inst(Op::ConstantNull, &[5, 7]),
        ]
        .concat();
        let types = [types, inst(Op::ConstantNull, &[3, 10])].concat();
        let of_bools = inst(Op::Any, &[2, 8, 7]);
        let all = inst(Op::All, &[2, 9, 6]);
        let of_one = inst(Op::Any, &[2, 11, 10]);
        let written = module(&[types.clone(), of_bools.clone(), all, of_one]);
        let signs = inst(Op::SLessThan, &[5, 90, 6, 6]);
        let all = inst(Op::All, &[2, 9, 90]);
        let of_one = inst(Op::SLessThan, &[2, 11, 10, 10]);
        let expected = module_bound(91, &[types, of_bools, signs, all, of_one]);
        assert_eq!(by_all(&written), Some(expected));
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
        let written = module(&[types.clone(), kept.clone(), ldexp(4, 10, 6)]);
        let vector = inst(Op::CompositeConstruct, &[5, 90, 6, 6]);
        let expected = module_bound(91, &[types, kept, vector, ldexp(4, 10, 90)]);
        assert_eq!(by_all(&written), Some(expected));
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
            inst(Op::Name, &[7, 0]),
            inst(Op::Name, &[9, 0]),
            inst(Op::Decorate, &[9, 4469]),
            inst(Op::Decorate, &[9, 4469]),
            inst(Op::ExtInst, &[6, 7, 2, 0]),
            inst(Op::ExtInst, &[6, 8, 3, 0]),
            inst(Op::ExtInst, &[6, 9, 1, 0]),
            inst(Op::Line, &[6, 1, 1]),
        ]);
        let expected = module(&[
            kept,
            inst(Op::Name, &[9, 0]),
            inst(Op::Decorate, &[9, 4469]),
            inst(Op::ExtInst, &[6, 9, 1, 0]),
        ]);
        assert_eq!(by_all(&all), Some(expected));
        assert_eq!(by_all(&all[..all.len() - 1]), None);
    }
}
