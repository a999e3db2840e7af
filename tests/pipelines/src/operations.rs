//! `fold` beside a device: every operation on numbers, on special operands and on ones by chance.
//!
//! What KIR leaves unspecified counts for nothing (the interpreter says which bits that are: the payload and the sign of a NaN,
//! the sign of a zero that is the lesser of two). What SPIR-V leaves to a device beyond that stands in [`left_out`] and
//! [`flushed`], and nowhere else.

use crate::launch::{self, Trace};
use pumice_runtime::backend::Device;
use spirv_lowering::ir::op::Op;
use spirv_lowering::ir::types::Type;
use spirv_lowering::target::{FloatCaps, Target};
use spirv_lowering_testing::operations::{signatures, Operations, Signature, NUMBERS};
use spirv_lowering_testing::prove::wanted;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Groups of work-items, each of which has operands of its own.
const GROUPS: u32 = 32;

/// The outcome of the comparisons.
#[derive(Default)]
pub struct Count {
    operations: BTreeSet<String>,
    results: u64,
    wrong: u64,
    /// Operations that were not compared, and results that differ as they may.
    left: BTreeMap<&'static str, u64>,
}

impl Count {
    /// Returns the outcome in words, or an error if something differs.
    pub fn finish(&self) -> Result<(), String> {
        println!(
            "{} operations, {} results the same, {} wrong; left out: {:?}",
            self.operations.len(),
            self.results,
            self.wrong,
            self.left
        );
        match self.wrong {
            0 => Ok(()),
            n => Err(format!("{n} results differ")),
        }
    }
}

fn caps(target: &Target, ty: Type) -> Option<&FloatCaps> {
    match ty {
        Type::F16 => Some(&target.fp16),
        Type::F32 => Some(&target.fp32),
        Type::F64 => Some(&target.fp64),
        _ => None,
    }
}

const HALVES: &str = "conversions of halves in words where they are not exact";

fn types(signature: &Signature) -> impl Iterator<Item = Type> + '_ {
    signature.operands.iter().copied().chain([signature.result])
}

/// Why an operation is not compared.
fn left_out(target: &Target, signature: &Signature) -> Option<&'static str> {
    let lacks = |ty| caps(target, ty).is_some_and(|caps| !caps.supported);
    if types(signature).any(lacks) {
        return Some("types that the device does not have");
    }
    let caps = caps(target, signature.result);
    match signature.op {
        // A call of the library is in kernels instead.
        Op::Fma if caps.is_some_and(|caps| !caps.fused_fma) => Some("fma where it is not fused"),
        Op::UnpackHalf if target.native || !target.unpacks_halves => Some(HALVES),
        Op::PackHalf if target.native || !target.packs_halves => Some(HALVES),
        Op::FSqrt if caps.is_some_and(|caps| !caps.exact_sqrt) => Some("roots that are not exact"),
        // The same: the instruction of Vulkan is as exact as a division, a product and a difference.
        Op::FRem if !target.native => Some("remainders of floats"),
        _ => None,
    }
}

fn is_subnormal(ty: Type, bits: u64) -> bool {
    let fraction = match ty {
        Type::F16 => 10,
        Type::F32 => 23,
        Type::F64 => 52,
        _ => return false,
    };
    let magnitude = bits & ty.mask() >> 1;
    magnitude != 0 && magnitude >> fraction == 0
}

/// Is it the result where subnormal operands or results, or some of them, are taken for zero? Devices may that do not keep them.
fn flushed(target: &Target, signature: &Signature, operands: &[u64], got: u64) -> bool {
    let flushes = |ty, bits| {
        is_subnormal(ty, bits) && caps(target, ty).is_some_and(|caps| !caps.keeps_denormals())
    };
    let is_nan = |bits: u64| {
        let (ty, sign) = (signature.result, 1u64 << (signature.result.bits() - 1));
        ty.is_float() && bits & !sign > signature_infinity(ty)
    };
    (0..1u32 << operands.len()).any(|subset| {
        let zeroed: Vec<u64> = operands
            .iter()
            .zip(&signature.operands)
            .enumerate()
            .map(
                |(i, (&bits, &ty))| match subset >> i & 1 != 0 && flushes(ty, bits) {
                    true => bits & (1 << (ty.bits() - 1)),
                    false => bits,
                },
            )
            .collect();
        match signature.fold(&zeroed) {
            None => zeroed != operands,
            Some(want) if flushes(signature.result, want) => {
                got == want || got & signature.result.mask() >> 1 == 0
            }
            Some(want) => got == want || is_nan(got) && is_nan(want),
        }
    })
}

/// The bits of infinity.
fn signature_infinity(ty: Type) -> u64 {
    match ty {
        Type::F16 => 0x7c00,
        Type::F32 => 0x7f80_0000,
        _ => 0x7ff0_0000_0000_0000,
    }
}

/// Computes every operation with the operands of a seed on the device.
pub fn compare(device: &Arc<dyn Device>, seed: u64, count: &mut Count) -> Result<(), String> {
    for ty in NUMBERS {
        let (mut list, target) = (signatures(ty), device.target());
        list.retain(|signature| match left_out(target, signature) {
            Some(why) => {
                *count.left.entry(why).or_default() += 1;
                false
            }
            None => true,
        });
        if list.is_empty() {
            continue;
        }
        let operations = Operations::new(ty, list, GROUPS, seed);
        let wanted = wanted(&operations.case, target.subgroup_size)?;
        let got = launch::run(device, &operations.case, false, &Trace(None))?;
        let (Some((want, unknown)), Some(got)) = (wanted.buffers.first(), got.first()) else {
            return Err("no buffer of results".to_owned());
        };
        for (signature, at) in &operations.list {
            count.operations.insert(signature.to_string());
            let size = signature.result.size() as usize;
            let number = |bytes: &[u8], item: usize| {
                let mut number = [0; 8];
                number[..size].copy_from_slice(&bytes[at + item * size..][..size]);
                u64::from_le_bytes(number)
            };
            let mut wrong = 0;
            for item in 0..operations.items as usize {
                let (want, got) = (number(want, item), number(got, item));
                if (want ^ got) & !number(unknown, item) == 0 {
                    count.results += 1;
                    continue;
                }
                let operands = operations.operands(signature, item);
                if flushed(target, signature, &operands, got) {
                    *count
                        .left
                        .entry("subnormal numbers taken for zero")
                        .or_default() += 1;
                    continue;
                }
                wrong += 1;
                if wrong <= 3 {
                    println!("{signature}: of {operands:x?} {got:x} in place of {want:x}");
                }
            }
            if wrong > 3 {
                println!("{signature}: {wrong} in all");
            }
            count.wrong += wrong;
        }
    }
    Ok(())
}
