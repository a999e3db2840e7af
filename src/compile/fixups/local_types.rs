//! Restores the types of variables in local memory, which LLVM's own SPIR-V target loses.
//!
//! A variable in local memory gets the type that its uses suggest, not its own: if a loop steps
//! through an array of integers by bytes, the variable is one byte large. With an initial value it
//! keeps its type, so the workaround is to write one into LLVM's textual form (the reader of
//! `spirv-lowering` ignores it). The uses of a variable in the module show whether it may be
//! affected, which few are.

use rustc_hash::FxHashMap;
use spirv::{Op, StorageClass};
use spirv_lowering::insts::insts;

/// Returns true if the module must be compiled again, from text that went through [`initialised`].
pub fn doubtful(words: &[u32]) -> bool {
    // Pointer types with their pointees, variables with whether they are arrays; ids of constants that are 0.
    let mut pointees: FxHashMap<u32, u32> = FxHashMap::default();
    let mut kinds: FxHashMap<u32, Op> = FxHashMap::default();
    let mut locals: FxHashMap<u32, Option<Op>> = FxHashMap::default();
    let mut zeros: Vec<u32> = Vec::new();
    let mut inside = false;
    for inst in insts(words) {
        let Some(inst) = inst else {
            return false;
        };
        let (Some(op), operands) = (inst.op(), inst.operands()) else {
            continue;
        };
        match (op, operands) {
            (Op::TypePointer, &[id, class, pointee]) if class == StorageClass::Workgroup as u32 => {
                pointees.insert(id, pointee);
            }
            (Op::TypeArray | Op::TypeStruct, &[id, ..]) => {
                kinds.insert(id, op);
            }
            (Op::Constant, &[_, id, ref value @ ..]) if value.iter().all(|&word| word == 0) => {
                zeros.push(id);
            }
            (Op::ConstantNull, &[_, id]) => zeros.push(id),
            (Op::Variable, &[ty, id, class]) if class == StorageClass::Workgroup as u32 => {
                let kind = pointees.get(&ty).and_then(|pointee| kinds.get(pointee));
                locals.insert(id, kind.copied());
            }
            (Op::Function, _) => {
                if locals.is_empty() {
                    return false;
                }
                inside = true;
            }
            _ if !inside => {}
            (Op::Load, _) => {}
            // The pointer may be a variable, the value not.
            (Op::Store | Op::AtomicStore | Op::AtomicFlagClear, &[_, ref others @ ..]) => {
                if others.iter().any(|id| locals.contains_key(id)) {
                    return true;
                }
            }
            _ => {
                for (number, id) in operands.iter().enumerate() {
                    let Some(kind) = locals.get(id) else {
                        continue;
                    };
                    let harmless = match op {
                        Op::AccessChain | Op::InBoundsAccessChain => number == 2 && kind.is_some(),
                        Op::PtrAccessChain | Op::InBoundsPtrAccessChain => {
                            let index = operands.get(3);
                            *kind == Some(Op::TypeArray)
                                && number == 2
                                && index.is_some_and(|index| zeros.contains(index))
                        }
                        Op::Bitcast => *kind == Some(Op::TypeArray),
                        _ => is_atomic(op) && number == 2,
                    };
                    if !harmless {
                        return true;
                    }
                }
            }
        }
    }
    false
}

fn is_atomic(op: Op) -> bool {
    let known = Op::AtomicLoad as u32..=Op::AtomicXor as u32;
    let floats = [Op::AtomicFAddEXT, Op::AtomicFMinEXT, Op::AtomicFMaxEXT];
    known.contains(&(op as u32)) || floats.contains(&op) || op == Op::AtomicFlagTestAndSet
}

/// Returns LLVM's textual form with an initial value for every variable in local memory.
pub fn initialised(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1024);
    for line in text.split_inclusive('\n') {
        let local = line.starts_with('@') && line.contains(" addrspace(3) global ");
        match line.rsplit_once(" undef, align ").filter(|_| local) {
            Some((before, after)) => {
                out += before;
                out += " zeroinitializer, align ";
                out += after;
            }
            None => out += line,
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_variables_get_values() {
        let text = "@a = internal unnamed_addr addrspace(3) global [4 x i32] undef, align 4\n\
                    @b = addrspace(1) global i32 undef, align 4\nstore i32 undef, align 4\n";
        assert_eq!(
            initialised(text),
            "@a = internal unnamed_addr addrspace(3) global [4 x i32] zeroinitializer, align 4\n\
             @b = addrspace(1) global i32 undef, align 4\nstore i32 undef, align 4\n"
        );
    }

    /// Creates a module with one variable in local memory, and an instruction of a function.
    fn module(array: bool, inst: &[u32]) -> Vec<u32> {
        let op = |op: Op, operands: &[u32]| {
            let mut words = vec![(operands.len() as u32 + 1) << 16 | op as u32];
            words.extend(operands);
            words
        };
        let workgroup = StorageClass::Workgroup as u32;
        let pointee = if array { 3 } else { 1 };
        let mut words = vec![0x0723_0203, 0x10400, 0, 100, 0];
        words.extend(op(Op::TypeInt, &[1, 32, 0]));
        words.extend(op(Op::Constant, &[1, 2, 0]));
        words.extend(op(Op::Constant, &[1, 9, 64]));
        words.extend(op(Op::TypeArray, &[3, 1, 9]));
        words.extend(op(Op::TypePointer, &[4, workgroup, pointee]));
        words.extend(op(Op::Variable, &[4, 50, workgroup]));
        words.extend(op(Op::Function, &[5, 6, 0, 7]));
        let (name, operands) = inst.split_first().expect("an instruction");
        words.extend(op(Op::from_u32(*name).expect("its name"), operands));
        words
    }

    #[test]
    fn uses_tell_whether_the_type_is_right() {
        let all = |array, insts: &[&[u32]], want: bool| {
            for inst in insts {
                assert_eq!(doubtful(&module(array, inst)), want, "{inst:?}");
            }
        };
        let load: &[u32] = &[Op::Load as u32, 1, 60, 50];
        let store: &[u32] = &[Op::Store as u32, 50, 61];
        let element: &[u32] = &[Op::InBoundsPtrAccessChain as u32, 4, 60, 50, 2, 61];
        let second: &[u32] = &[Op::InBoundsPtrAccessChain as u32, 4, 60, 50, 9];
        let phi: &[u32] = &[Op::Phi as u32, 4, 60, 50, 70, 61, 71];
        let cast: &[u32] = &[Op::Bitcast as u32, 4, 60, 50];
        let add: &[u32] = &[Op::AtomicIAdd as u32, 1, 60, 50, 2, 2, 2];
        let pointer: &[u32] = &[Op::Store as u32, 61, 50];
        all(true, &[load, store, element, cast, add], false);
        all(true, &[second, phi, pointer], true);
        all(false, &[load, store, add], false);
        all(false, &[second, element, phi, cast, pointer], true);
    }
}
