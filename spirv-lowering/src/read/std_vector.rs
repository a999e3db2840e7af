//! Translates instructions of OpenCL.std that are not elementwise: results through pointers,
//! geometry, vector loads and stores, shuffles.

use super::arith::rounding_mode;
use super::body::{bad, Body};
use super::opencl_std::mangle;
use super::words::Instruction;
use crate::error::Result;
use crate::ir::entity::Value;
use crate::ir::function::Values;
use crate::ir::op::{FloatCond, Op, Rounding};
use crate::ir::types::Type;
use spirv::OpenclStd100Op as E;

impl Body<'_, '_> {
    /// Translates a built-in with a second result through a pointer: a call with private memory,
    /// then a store.
    pub(super) fn with_pointer(&mut self, inst: &Instruction, op: E) -> Result<()> {
        let (ty, id) = self.result(inst)?;
        let (scalar, n) = self.vector_of(ty)?;
        if !scalar.is_float() {
            return bad("its result type does not fit");
        }
        let x = self.lanes(inst.word(4)?, scalar, n)?;
        let y = if op == E::remquo {
            Some(self.lanes(inst.word(5)?, scalar, n)?)
        } else {
            None
        };
        let pointer_id = inst.word(if y.is_some() { 6 } else { 5 })?;
        let (pointer, _) = self.pointer(pointer_id)?;
        let second = if matches!(op, E::frexp | E::lgamma_r | E::remquo) {
            Type::I32
        } else {
            scalar
        };
        let align = second.size() * n.next_power_of_two() as u32;
        let name = format!("{op:?}");
        let code = mangle(scalar, false)?;
        let mut mangled = format!("_Z{}{name}{code}", name.len());
        if y.is_some() {
            mangled.push_str(code);
        }
        mangled.push('P');
        mangled.push_str(mangle(second, false)?);
        let temp = self.alloca(second.size().into(), second.size())?;
        let (mut out, mut seconds) = (Values::new(), vec![pointer]);
        for (i, &x) in x.iter().enumerate() {
            let mut args = vec![x];
            args.extend(y.as_ref().and_then(|y| y.get(i)));
            args.push(temp);
            let value = self.call_name(&mangled, &args, &[scalar])?;
            let load = Op::Load {
                align: second.size(),
                volatile: false,
            };
            let mut other = self.ins(load, &[temp], second);
            if let (E::lgamma_r, &[value]) = (op, value.as_slice()) {
                out.push(self.lgamma_of(x, value)?);
                other = self.gamma_sign(x, other);
            } else {
                out.extend(value);
            }
            seconds.push(other);
        }
        self.effect(
            Op::Store {
                align,
                volatile: false,
            },
            &seconds,
        );
        self.set(id, ty, out)
    }

    /// Corrects the sign of the gamma function from libclc, which has one at the poles: 0 and the
    /// negative integers.
    fn gamma_sign(&mut self, x: Value, sign: Value) -> Value {
        let ty = self.f.ty(x);
        let whole = self.ins(Op::FFloor, &[x], ty);
        let whole = self.ins(Op::FCmp(FloatCond::Oeq), &[x, whole], Type::Bool);
        let zero = self.float(ty, 0.0);
        let low = self.ins(Op::FCmp(FloatCond::Ole), &[x, zero], Type::Bool);
        let pole = self.ins(Op::And, &[whole, low], Type::Bool);
        let none = self.constant(Type::I32, 0);
        self.select(pole, none, sign)
    }

    /// Reads a geometric function.
    pub(super) fn geometric(&mut self, inst: &Instruction, op: E) -> Result<()> {
        let (ty, id) = self.result(inst)?;
        self.fp = self.fp_of(id);
        let (mut a, scalar) = self.uniform(inst.word(4)?)?;
        if !scalar.is_float() {
            return bad("its operands do not fit");
        }
        let n = a.len();
        let op = match op {
            E::distance | E::fast_distance => {
                let b = self.lanes(inst.word(5)?, scalar, n)?;
                a = a
                    .iter()
                    .zip(&b)
                    .map(|(&x, &y)| self.ins(Op::FSub, &[x, y], scalar))
                    .collect();
                if op == E::distance {
                    E::length
                } else {
                    E::fast_length
                }
            }
            E::cross => {
                let b = self.lanes(inst.word(5)?, scalar, n)?;
                let (&[a0, a1, a2, ..], &[b0, b1, b2, ..]) = (a.as_slice(), b.as_slice()) else {
                    return bad("it takes vectors of 3 or 4 components");
                };
                let mut out = Values::new();
                for (p, q, r, s) in [(a1, b2, a2, b1), (a2, b0, a0, b2), (a0, b1, a1, b0)] {
                    let x = self.ins(Op::FMul, &[p, q], scalar);
                    let y = self.ins(Op::FMul, &[r, s], scalar);
                    out.push(self.ins(Op::FSub, &[x, y], scalar));
                }
                if n == 4 {
                    out.push(self.float(scalar, 0.0));
                }
                return self.set(id, ty, out);
            }
            _ => op,
        };
        let name = format!("{op:?}");
        let code = mangle(scalar, false)?;
        let vector = if n > 1 {
            format!("Dv{n}_")
        } else {
            String::new()
        };
        let results = vec![
            scalar;
            if matches!(op, E::normalize | E::fast_normalize) {
                n
            } else {
                1
            }
        ];
        let out = self.call_name(
            &format!("_Z{}{name}{vector}{code}", name.len()),
            &a,
            &results,
        )?;
        self.set(id, ty, out)
    }

    /// Computes the address of element `offset * count` of a pointer to scalars.
    fn vector_address(&mut self, pointer: u32, offset: u32, bytes: u64) -> Result<Value> {
        let (pointer, _) = self.pointer(pointer)?;
        let offset = self.scalar(offset)?;
        let offset = self.to_i64(offset, false)?;
        self.element(pointer, offset, bytes)
    }

    /// Reads a vloadn, of halfs as well.
    pub(super) fn vload(&mut self, inst: &Instruction, op: E) -> Result<()> {
        let (ty, id) = self.result(inst)?;
        let (scalar, n) = self.vector_of(ty)?;
        let half = op != E::vloadn;
        let memory = if half { Type::F16 } else { scalar };
        if half && !scalar.is_float() || !memory.is_int() && !memory.is_float() {
            return bad("its result type does not fit");
        }
        // LLVM's target loses the `a` of the aligned forms; sizes differ for three components only.
        let padded = if op == E::vloada_halfn {
            n.next_power_of_two()
        } else {
            n
        };
        let bytes = u64::from(memory.size()) * padded as u64;
        let address = self.vector_address(inst.word(5)?, inst.word(4)?, bytes)?;
        let align = if op == E::vloada_halfn {
            bytes as u32
        } else {
            memory.size()
        };
        let values = self.ins_many(
            Op::Load {
                align,
                volatile: false,
            },
            &[address],
            &vec![memory; n],
        );
        let mut out = Values::new();
        for v in values {
            out.push(if memory == scalar {
                v
            } else {
                self.ins(Op::FConv(Rounding::Rte), &[v], scalar)
            });
        }
        self.set(id, ty, out)
    }

    /// Reads a vstoren, of halfs as well.
    pub(super) fn vstore(&mut self, inst: &Instruction, op: E) -> Result<()> {
        let (values, scalar) = self.uniform(inst.word(4)?)?;
        let half = op != E::vstoren;
        let memory = if half { Type::F16 } else { scalar };
        if half && !scalar.is_float() || !memory.is_int() && !memory.is_float() {
            return bad("its operand does not fit");
        }
        let rounding = match op {
            E::vstore_half_r | E::vstore_halfn_r | E::vstorea_halfn_r => {
                rounding_mode(inst.word(7)?)?
            }
            _ => Rounding::Rte,
        };
        let aligned = matches!(op, E::vstorea_halfn | E::vstorea_halfn_r);
        let padded = if aligned {
            values.len().next_power_of_two()
        } else {
            values.len()
        };
        let bytes = u64::from(memory.size()) * padded as u64;
        let address = self.vector_address(inst.word(6)?, inst.word(5)?, bytes)?;
        let mut args = vec![address];
        for v in values {
            args.push(if memory == scalar {
                v
            } else {
                self.ins(Op::FConv(rounding), &[v], memory)
            });
        }
        let align = if aligned { bytes as u32 } else { memory.size() };
        self.effect(
            Op::Store {
                align,
                volatile: false,
            },
            &args,
        );
        Ok(())
    }

    /// Reads shuffle and shuffle2.
    pub(super) fn shuffle(&mut self, inst: &Instruction, op: E) -> Result<()> {
        let (ty, id) = self.result(inst)?;
        let (scalar, n) = self.vector_of(ty)?;
        let (mut source, have) = self.uniform(inst.word(4)?)?;
        let mask_at = if op == E::shuffle2 {
            let second = self.lanes(inst.word(5)?, have, source.len())?;
            source.extend(second);
            6
        } else {
            5
        };
        let (mask, mask_ty) = self.uniform(inst.word(mask_at)?)?;
        if have != scalar
            || mask.len() != n
            || !mask_ty.is_int()
            || !(scalar.is_int() || scalar.is_float())
        {
            return bad("its operands do not fit");
        }
        let limit = self.constant(mask_ty, source.len().next_power_of_two() as u64 - 1);
        let dynamic = mask.iter().any(|&m| self.f.as_const(m).is_none());
        // Many components with a mask known at run time only: through memory.
        let memory = if dynamic && source.len() > 4 {
            let bytes = u64::from(scalar.size()) * source.len() as u64;
            let memory = self.alloca(bytes, scalar.size())?;
            let mut args = vec![memory];
            args.extend(&source);
            self.effect(
                Op::Store {
                    align: scalar.size(),
                    volatile: false,
                },
                &args,
            );
            Some(memory)
        } else {
            None
        };
        let mut out = Values::new();
        for m in mask {
            let index = match self.f.as_const(m) {
                Some(bits) => self.constant(
                    mask_ty,
                    bits & (source.len().next_power_of_two() as u64 - 1),
                ),
                None => self.ins(Op::And, &[m, limit], mask_ty),
            };
            out.push(match memory {
                Some(memory) => {
                    let index = self.to_i64(index, false)?;
                    let address = self.element(memory, index, scalar.size().into())?;
                    self.ins(
                        Op::Load {
                            align: scalar.size(),
                            volatile: false,
                        },
                        &[address],
                        scalar,
                    )
                }
                None => self.pick(&source, index, None)?,
            });
        }
        self.set(id, ty, out)
    }
}
