//! Makes kernels of every numeric operation on chosen operands, to compare devices with
//! [`fold`](spirv_lowering::ir::fold).
//!
//! The list of operations is not written down: it consists of all operations with all types that
//! the verifier accepts and `fold` has a result for. One kernel computes all operations on operands
//! of one type, each work-item on operands of its own: special values with one another first, then
//! random values. Each result has a place of its own in the first buffer.

use super::generate::{Case, CaseArg, Kind};
use super::rng::Rng;
use spirv_lowering::interface::{AccessQualifier, AddressQualifier, KernelAttributes};
use spirv_lowering::interp::NdRange;
use spirv_lowering::ir::entity::{Block, Value};
use spirv_lowering::ir::fold::{convert, fold};
use spirv_lowering::ir::function::{FpFlags, Function, Linkage, Terminator};
use spirv_lowering::ir::module::{EntryPoint, KernelParam, Module, ParamKind};
use spirv_lowering::ir::names::{op_text, Name};
use spirv_lowering::ir::op::{Builtin, FloatCond, IntCond, Op, Rounding};
use spirv_lowering::ir::types::{Space, Type};
use spirv_lowering::ir::verify;
use std::fmt;

/// The types of operands and results.
pub const NUMBERS: [Type; 8] = [
    Type::Bool,
    Type::I8,
    Type::I16,
    Type::I32,
    Type::I64,
    Type::F16,
    Type::F32,
    Type::F64,
];

/// An operation with the types of its operands and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The operation.
    pub op: Op,
    /// The types of the operands.
    pub operands: Vec<Type>,
    /// The type of the result.
    pub result: Type,
}

impl Signature {
    /// Returns the result for some operands, if it is specified.
    pub fn fold(&self, operands: &[u64]) -> Option<u64> {
        let flags = FpFlags::default();
        fold(self.op, flags, &self.operands, operands, self.result)
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", op_text(self.op))?;
        for ty in &self.operands {
            write!(f, " {}", ty.name())?;
        }
        write!(f, " : {}", self.result.name())
    }
}

/// Returns all operations that might apply to numbers.
fn candidates() -> Vec<Op> {
    let mut list: Vec<Op> = Op::NAMES.iter().map(|(op, _)| *op).collect();
    list.extend(IntCond::NAMES.iter().map(|(cond, _)| Op::ICmp(*cond)));
    list.extend(FloatCond::NAMES.iter().map(|(cond, _)| Op::FCmp(*cond)));
    for &(rounding, _) in Rounding::NAMES {
        list.extend([Op::FConv(rounding), Op::SToF(rounding), Op::UToF(rounding)]);
        for sat in [false, true] {
            list.extend([Op::FToS { rounding, sat }, Op::FToU { rounding, sat }]);
        }
    }
    list
}

/// Returns the operations whose operands, except the condition of a selection, have type `ty`.
pub fn signatures(ty: Type) -> Vec<Signature> {
    let shapes = [vec![ty], vec![ty; 2], vec![ty; 3], vec![Type::Bool, ty, ty]];
    let mut list: Vec<Signature> = Vec::new();
    for op in candidates() {
        for operands in &shapes {
            for result in NUMBERS {
                let signature = Signature {
                    op,
                    operands: operands.clone(),
                    result,
                };
                // For bools two of the shapes are one.
                if verify::accepts(op, operands, &[result])
                    && signature.fold(&[1, 1, 1]).is_some()
                    && !list.contains(&signature)
                {
                    list.push(signature);
                }
            }
        }
    }
    list
}

/// A kernel that computes operations.
#[derive(Debug, Clone)]
pub struct Operations {
    /// The kernel. Its first buffer takes the results.
    pub case: Case,
    /// The operations, each with the index of its results.
    pub list: Vec<(Signature, usize)>,
    /// The number of work-items.
    pub items: u32,
}

/// The work-items of a group.
const GROUP: u32 = 64;
/// The number of the buffer of conditions, after those of the operands.
const CONDITIONS: usize = 4;

/// Returns the type that values of `ty` have in memory.
fn stored(ty: Type) -> Type {
    match ty {
        Type::Bool => Type::I8,
        ty => ty,
    }
}

impl Operations {
    /// Creates a kernel of these operations, all of operands of one type, for `groups` work-groups.
    /// `seed` chooses the operands.
    pub fn new(ty: Type, signatures: Vec<Signature>, groups: u32, seed: u64) -> Self {
        let items = groups * GROUP;
        let mut list = Vec::new();
        let mut size = 0;
        for signature in signatures {
            let at = size;
            size += stored(signature.result).size() as usize * items as usize;
            size = size.next_multiple_of(8);
            list.push((signature, at));
        }
        let mut buffers = vec![vec![0xa5; size.max(8)]];
        let mut rng = Rng::new(seed);
        buffers.extend(operands(ty, items as usize, &mut rng));
        buffers.push((0..items).map(|_| rng.below(2) as u8).collect());
        let mut module = Module::default();
        let func = module.functions.push(kernel(ty, &list));
        let params: Vec<KernelParam> = buffers.iter().map(|_| pointer()).collect();
        module.kernels.push(EntryPoint {
            name: "k".to_owned(),
            func,
            params,
            attributes: KernelAttributes::default(),
            contraction_off: false,
        });
        let case = Case {
            module,
            range: NdRange::linear(items, GROUP),
            args: (0..buffers.len()).map(CaseArg::Buffer).collect(),
            buffers,
            kind: Kind::Plain,
        };
        Self { case, list, items }
    }

    /// Returns the operands of an operation in a work-item.
    pub fn operands(&self, signature: &Signature, item: usize) -> Vec<u64> {
        let operand = |(i, &ty): (usize, &Type)| {
            let buffer = &self.case.buffers[buffer_of(signature, i)];
            let size = stored(ty).size() as usize;
            let mut bytes = [0; 8];
            bytes[..size].copy_from_slice(&buffer[item * size..][..size]);
            u64::from_le_bytes(bytes)
        };
        signature.operands.iter().enumerate().map(operand).collect()
    }
}

/// Returns the buffer that operand `i` is in.
fn buffer_of(signature: &Signature, i: usize) -> usize {
    match (signature.op, i) {
        (Op::Select, 0) => CONDITIONS,
        (Op::Select, _) => i,
        _ => i + 1,
    }
}

fn pointer() -> KernelParam {
    KernelParam {
        kind: ParamKind::Pointer(Space::Global),
        name: String::new(),
        type_name: String::new(),
        address: AddressQualifier::Global,
        access: AccessQualifier::None,
        is_const: false,
        is_restrict: false,
        is_volatile: false,
        max_size: None,
    }
}

/// Creates the function of the kernel: it loads the operands and stores the result of each operation.
fn kernel(ty: Type, list: &[(Signature, usize)]) -> Function {
    const POINTER: Type = Type::Ptr(Space::Global);
    let mut func = Function {
        name: "k".to_owned(),
        linkage: Linkage::Export,
        params: vec![POINTER; CONDITIONS + 1],
        ..Default::default()
    };
    let entry = func.add_block();
    let buffers: Vec<Value> = (0..=CONDITIONS)
        .map(|_| func.add_param(entry, POINTER))
        .collect();
    let id = func.append1(entry, Op::Builtin(Builtin::GlobalId(0)), [], Type::I64);
    let place = |func: &mut Function, buffer: Value, at: usize, ty: Type| {
        let size = func.append_const(entry, Type::I64, ty.size().into());
        let by = func.append1(entry, Op::IMul, [id, size], Type::I64);
        let at = func.append_const(entry, Type::I64, at as u64);
        let by = func.append1(entry, Op::IAdd, [by, at], Type::I64);
        func.append1(entry, Op::PtrAdd, [buffer, by], POINTER)
    };
    let mut values = vec![id];
    for (i, &buffer) in buffers.iter().enumerate().skip(1) {
        let ty = if i == CONDITIONS { Type::Bool } else { ty };
        let address = place(&mut func, buffer, 0, stored(ty));
        values.push(load(&mut func, entry, address, ty));
    }
    for (signature, at) in list {
        let args: Vec<Value> = (0..signature.operands.len())
            .map(|i| values[buffer_of(signature, i)])
            .collect();
        let mut value = func.append1(entry, signature.op, args, signature.result);
        let ty = stored(signature.result);
        if signature.result == Type::Bool {
            value = func.append1(entry, Op::ZExt, [value], ty);
        }
        let address = place(&mut func, buffers[0], *at, ty);
        let store = Op::Store {
            align: ty.size(),
            volatile: false,
        };
        func.append(entry, store, [address, value], &[]);
    }
    func.blocks[entry].term = Terminator::Return(Default::default());
    func
}

fn load(func: &mut Function, block: Block, address: Value, ty: Type) -> Value {
    let load = Op::Load {
        align: stored(ty).size(),
        volatile: false,
    };
    let value = func.append1(block, load, [address], stored(ty));
    if ty != Type::Bool {
        return value;
    }
    let zero = func.append_const(block, Type::I8, 0);
    func.append1(block, Op::ICmp(IntCond::Ne), [value, zero], Type::Bool)
}

/// The distance from one pair of special values to the next: a prime number.
const STRIDE: usize = 7919;

/// Creates three buffers of operands of a type: the special values with one another in the first two,
/// then random values.
fn operands(ty: Type, items: usize, rng: &mut Rng) -> [Vec<u8>; 3] {
    let special = special(ty);
    let mut buffers: [Vec<u8>; 3] = Default::default();
    // All pairs of them, or some that are spread and others with each seed.
    let (count, first) = (special.len() * special.len(), rng.below(1 << 20));
    let mut pairs = (0..count.min(items / 2)).map(|i| {
        let pair = (first + i * STRIDE) % count;
        (special[pair / special.len()], special[pair % special.len()])
    });
    let mut put = |values: [u64; 3]| {
        for (buffer, value) in buffers.iter_mut().zip(values) {
            buffer.extend(&value.to_le_bytes()[..stored(ty).size() as usize]);
        }
    };
    for _ in 0..items {
        let (a, b) = match pairs.next() {
            Some(pair) => pair,
            None => {
                let a = by_chance(ty, &special, rng);
                // Close to one another, as far as differences and quotients go.
                let b = match rng.below(4) {
                    0 => a.wrapping_add(rng.bits() % 9).wrapping_sub(4) & ty.mask(),
                    _ => by_chance(ty, &special, rng),
                };
                (a, b)
            }
        };
        put([a, b, by_chance(ty, &special, rng)]);
    }
    buffers
}

fn by_chance(ty: Type, special: &[u64], rng: &mut Rng) -> u64 {
    let bits = match rng.below(6) {
        0 => rng.pick(special),
        // Small numbers, whole ones and halves.
        1 if ty.is_float() => float(ty, rng.below(2000) as f64 * 0.5 - 500.0),
        1 => (rng.below(200) as u64).wrapping_sub(100),
        // Up to the bounds of some integer.
        2 if ty.is_float() => {
            let bound = (1u64 << rng.below(63)) as f64;
            let sign = if rng.one_in(2) { -1.0 } else { 1.0 };
            float(
                ty,
                sign * bound * (1.0 + (rng.bits() >> 12) as f64 * 2f64.powi(-52)),
            )
        }
        2 => rng.bits() >> rng.below(64),
        _ => rng.bits(),
    };
    bits & ty.mask()
}

fn float(ty: Type, value: f64) -> u64 {
    match ty {
        Type::F64 => value.to_bits(),
        _ => convert(Type::F64, value.to_bits(), ty, Rounding::Rte).unwrap_or(0),
    }
}

/// Returns the values of a type at which operations go wrong.
fn special(ty: Type) -> Vec<u64> {
    let mask = ty.mask();
    let bits = u64::from(ty.bits());
    let mut list = vec![0, 1];
    if ty.is_int() {
        let least = 1 << (bits - 1);
        list.extend([2, 3, 7, 10, mask, mask - 1, mask - 9]);
        list.extend([
            least,
            least + 1,
            least - 1,
            least - 2,
            mask / 3,
            mask / 3 * 2,
        ]);
        // Amounts of shifts, up to the width and beyond it.
        list.extend([bits / 2, bits - 1, bits, bits + 1]);
        list.extend([
            (1 << (bits / 2)) - 1,
            1 << (bits / 2),
            mask << (bits / 2) & mask,
        ]);
    } else if ty.is_float() {
        let sign = 1u64 << (bits - 1);
        let infinity = float(ty, f64::INFINITY);
        let normal = infinity & infinity.wrapping_neg();
        let mut numbers = vec![
            0,
            1,
            // The largest subnormal, the smallest normal, the largest finite number.
            normal - 1,
            normal,
            normal + 1,
            infinity - 1,
            infinity,
            // NaN: quiet, with other bits, signalling.
            infinity | normal >> 1,
            infinity | normal >> 1 | 5,
            infinity | 1,
        ];
        // Ties of roundings, and the bounds of integers with their neighbours.
        let ties = [0.5, 1.0, 1.5, 2.5, 3.0, 1e-3, 65504.0, 65519.9, 65520.0];
        numbers.extend(ties.map(|value| float(ty, value)));
        for width in [7, 8, 15, 16, 31, 32, 63, 64] {
            let bound = float(ty, 2f64.powi(width));
            if bound < infinity {
                let below = float(ty, 2f64.powi(width) - 0.5);
                numbers.extend([bound, bound - 1, bound + 1, below]);
            }
        }
        // Subnormal and underflowing halves and floats.
        for exponent in [-14, -24, -25, -126, -149, -150] {
            numbers.push(float(ty, 1.25 * 2f64.powi(exponent)));
        }
        list.clear();
        list.extend(numbers.iter().flat_map(|&bits| [bits, bits | sign]));
    }
    list.sort_unstable();
    list.dedup();
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use spirv_lowering::ir::verify::verify_module;

    #[test]
    fn every_operation_on_numbers_is_there() {
        let all: Vec<Signature> = NUMBERS.iter().flat_map(|&ty| signatures(ty)).collect();
        assert!(all.len() > 590, "{}", all.len());
        let has = |text: &str| all.iter().any(|s| s.to_string() == text);
        for text in [
            "iadd i8 i8 : i8",
            "smul_hi i64 i64 : i64",
            "xor bool bool : bool",
            "fma f16 f16 f16 : f16",
            "select bool f64 f64 : f64",
            "select bool bool bool : bool",
            "icmp.ult i16 i16 : bool",
            "fcmp.uno f32 f32 : bool",
            "ftou.rtp.sat f64 : i64",
            "fconv.rtz f64 : f16",
            "bitcast f32 : i32",
            "sext bool : i64",
            "sudot4 i32 i32 : i32",
        ] {
            assert!(has(text), "{text}");
        }
        // What they may do is up to the target.
        assert!(!all.iter().any(|s| matches!(s.op, Op::FNative(_))));
    }

    #[test]
    fn kernels_are_sound_and_know_their_operands() {
        for ty in NUMBERS {
            let operations = Operations::new(ty, signatures(ty), 2, 7);
            verify_module(&operations.case.module).unwrap();
            let (last, at) = operations.list.last().unwrap();
            let size = stored(last.result).size() as usize * operations.items as usize;
            assert!(at + size <= operations.case.buffers[0].len());
            let operands = operations.operands(last, 127);
            assert_eq!(operands.len(), last.operands.len());
        }
    }
}
