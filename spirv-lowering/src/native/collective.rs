//! Operations of sub-groups: a pack is one, its lanes are in registers.

use super::emitter::{Context, Emitter};
use super::ops::Form;
use super::slots::Lanes;
use super::text::{scalar, suffix};
use crate::error::{LowerError, Result};
use crate::ir::entity::Inst;
use crate::ir::op::{GroupArith as G, GroupOp};
use crate::ir::types::Type;

impl Emitter<'_> {
    /// Writes one.
    pub fn collective(&mut self, op: GroupOp, inst: Inst, cx: &mut Context) -> Result<()> {
        let func = self.func;
        let data = &func.insts[inst];
        let (args, results) = (&data.args, &data.results);
        let (masks, w) = (self.mask_type(), self.lanes);
        let active = self.mask_vector(&cx.mask);
        match op {
            GroupOp::Any | GroupOp::All => {
                let value = self.vector(args[0], cx)?;
                let result = if op == GroupOp::Any {
                    let on = self.text.def(&format!("and {masks} {value}, {active}"));
                    let bits = self.mask_bits(&Some(on));
                    self.text.def(&format!("icmp ne i{w} {bits}, 0"))
                } else {
                    let ones = self.splat_const(Type::Bool, 1);
                    let off = self.text.def(&format!("xor {masks} {value}, {ones}"));
                    let off = self.text.def(&format!("and {masks} {off}, {active}"));
                    let bits = self.mask_bits(&Some(off));
                    self.text.def(&format!("icmp eq i{w} {bits}, 0"))
                };
                self.define(results[0], Lanes::Same(result), cx);
            }
            GroupOp::AllEqual => {
                let ty = func.ty(args[0]);
                let vec = self.vec(ty);
                let value = self.vector(args[0], cx)?;
                let lane = self.first_lane(&cx.mask);
                let first = self
                    .text
                    .def(&format!("extractelement {vec} {value}, i64 {lane}"));
                let all = self.splat(ty, &first);
                let differs = if ty.is_float() {
                    self.text.def(&format!("fcmp une {vec} {value}, {all}"))
                } else {
                    self.text.def(&format!("icmp ne {vec} {value}, {all}"))
                };
                let differs = self.text.def(&format!("and {masks} {differs}, {active}"));
                let bits = self.mask_bits(&Some(differs));
                let result = self.text.def(&format!("icmp eq i{w} {bits}, 0"));
                self.define(results[0], Lanes::Same(result), cx);
            }
            GroupOp::Elect => {
                let lane = self.first_lane(&cx.mask);
                let none = self.splat_const(Type::Bool, 0);
                let result = self.text.def(&format!(
                    "insertelement {masks} {none}, i1 true, i64 {lane}"
                ));
                self.define(results[0], Lanes::each(result), cx);
            }
            GroupOp::Ballot => {
                let value = self.vector(args[0], cx)?;
                let on = self.text.def(&format!("and {masks} {value}, {active}"));
                let bits = self.mask_bits(&Some(on));
                for (i, &result) in results.iter().enumerate() {
                    let word = match (i, w) {
                        (0, 64) | (1, 64) => {
                            let by = 32 * i;
                            let part = self.text.def(&format!("lshr i64 {bits}, {by}"));
                            self.text.def(&format!("trunc i64 {part} to i32"))
                        }
                        (0, 32) => bits.clone(),
                        (0, _) => self.text.def(&format!("zext i{w} {bits} to i32")),
                        _ => "0".to_owned(),
                    };
                    self.define(result, Lanes::Same(word), cx);
                }
            }
            GroupOp::Shuffle | GroupOp::Broadcast => {
                let ty = func.ty(args[0]);
                let value = self.vector(args[0], cx)?;
                let lane = self.vector(args[1], cx)?;
                let lane_type = func.ty(args[1]);
                let result = self.shuffle(ty, &value, lane_type, &lane);
                self.define(results[0], Lanes::each(result), cx);
            }
            GroupOp::Reduce(arith) => {
                let ty = func.ty(args[0]);
                let value = self.vector(args[0], cx)?;
                let value = self.or_identity(arith, ty, &value, cx);
                let result = self.reduce(arith, ty, &value)?;
                self.define(results[0], Lanes::Same(result), cx);
            }
            GroupOp::ClusteredReduce(arith) => {
                let ty = func.ty(args[0]);
                let size = args
                    .get(1)
                    .and_then(|&v| func.as_const(v))
                    .filter(|size| size.is_power_of_two())
                    .ok_or_else(|| LowerError::unsupported("clusters of unknown size"))?;
                let value = self.vector(args[0], cx)?;
                let mut value = self.or_identity(arith, ty, &value, cx);
                let vec = self.vec(ty);
                let mut by = 1;
                while by < w.min(size as u32) {
                    let order: Vec<String> =
                        (0..w).map(|lane| format!("i32 {}", lane ^ by)).collect();
                    let other = self.text.def(&format!(
                        "shufflevector {vec} {value}, {vec} poison, <{w} x i32> <{}>",
                        order.join(", ")
                    ));
                    value = self.combine(arith, ty, Form::Vector, &value, &other)?;
                    by *= 2;
                }
                self.define(results[0], Lanes::each(value), cx);
            }
            GroupOp::InclusiveScan(arith) | GroupOp::ExclusiveScan(arith) => {
                let ty = func.ty(args[0]);
                let value = self.vector(args[0], cx)?;
                let value = self.or_identity(arith, ty, &value, cx);
                let exclusive = matches!(op, GroupOp::ExclusiveScan(_));
                let value = self.scan(arith, ty, value, exclusive)?;
                self.define(results[0], Lanes::each(value), cx);
            }
            _ => return Err(LowerError::unsupported(format!("{op:?} on the processor"))),
        }
        Ok(())
    }

    /// The values of other lanes, by number.
    fn shuffle(&mut self, ty: Type, value: &str, lane_type: Type, lanes: &str) -> String {
        let vec = self.vec(ty);
        let place = self.alloca(&vec);
        // Truth values are bits in memory: by bytes.
        if ty == Type::Bool {
            let bytes = self.vec(Type::I8);
            let wide = self.text.def(&format!("zext {vec} {value} to {bytes}"));
            let moved = self.shuffle(Type::I8, &wide, lane_type, lanes);
            return self.text.def(&format!("trunc {bytes} {moved} to {vec}"));
        }
        self.text
            .line(&format!("store {vec} {value}, ptr {place}, align 64"));
        let index = self.vec(lane_type);
        let most = self.splat_const(lane_type, u64::from(self.lanes - 1));
        let lanes = self.text.def(&format!("and {index} {lanes}, {most}"));
        let wide = self.vec(Type::I64);
        let at = if lane_type == Type::I64 {
            lanes
        } else {
            self.text.def(&format!("zext {index} {lanes} to {wide}"))
        };
        let mut result = "poison".to_owned();
        for lane in 0..self.lanes {
            let from = self
                .text
                .def(&format!("extractelement {wide} {at}, i64 {lane}"));
            let from = self.text.def(&format!(
                "getelementptr {}, ptr {place}, i64 {from}",
                scalar(ty)
            ));
            let one = self.text.def(&format!(
                "load {}, ptr {from}, align {}",
                scalar(ty),
                ty.size()
            ));
            result = self.text.def(&format!(
                "insertelement {vec} {result}, {} {one}, i64 {lane}",
                scalar(ty)
            ));
        }
        result
    }

    /// The value where a lane runs, else what does not count.
    fn or_identity(&mut self, arith: G, ty: Type, value: &str, cx: &Context) -> String {
        let Some(mask) = cx.mask.clone() else {
            return value.to_owned();
        };
        let vec = self.vec(ty);
        let masks = self.mask_type();
        let start = self.splat_const(ty, identity(arith, ty));
        self.text.def(&format!(
            "select {masks} {mask}, {vec} {value}, {vec} {start}"
        ))
    }

    /// The operation of a reduction on two values.
    pub fn combine(&mut self, arith: G, ty: Type, form: Form, a: &str, b: &str) -> Result<String> {
        let t = self.ty(form, ty);
        let plain = match arith {
            G::IAdd => "add",
            G::IMul => "mul",
            G::FAdd => "fadd",
            G::FMul => "fmul",
            G::And | G::LogicalAnd => "and",
            G::Or | G::LogicalOr => "or",
            G::Xor | G::LogicalXor => "xor",
            _ => "",
        };
        if !plain.is_empty() {
            return Ok(self.text.def(&format!("{plain} {t} {a}, {b}")));
        }
        let name = match arith {
            G::SMin => "smin",
            G::SMax => "smax",
            G::UMin => "umin",
            G::UMax => "umax",
            _ => return Ok(self.float_extreme(form, ty, arith == G::FMin, a, b)),
        };
        Ok(self.intrinsic(form, name, ty, &[a, b]))
    }

    /// What the lanes that run have, combined.
    pub fn reduce_lanes(
        &mut self,
        arith: G,
        ty: Type,
        value: &str,
        cx: &Context,
    ) -> Result<String> {
        let value = self.or_identity(arith, ty, value, cx);
        self.reduce(arith, ty, &value)
    }

    /// What the lanes before each that run have, combined.
    pub fn scan_lanes(&mut self, arith: G, ty: Type, value: &str, cx: &Context) -> Result<String> {
        let value = self.or_identity(arith, ty, value, cx);
        self.scan(arith, ty, value, true)
    }

    fn scan(&mut self, arith: G, ty: Type, mut value: String, exclusive: bool) -> Result<String> {
        let (w, vec) = (self.lanes, self.vec(ty));
        let start = self.splat_const(ty, identity(arith, ty));
        let moved = |this: &mut Self, value: &str, by: u32| {
            let order: Vec<String> = (0..w)
                .map(|lane| {
                    let from = if lane >= by { lane - by } else { w + lane };
                    format!("i32 {from}")
                })
                .collect();
            this.text.def(&format!(
                "shufflevector {vec} {value}, {vec} {start}, <{w} x i32> <{}>",
                order.join(", ")
            ))
        };
        if exclusive {
            value = moved(self, &value, 1);
        }
        let mut by = 1;
        while by < w {
            let before = moved(self, &value, by);
            value = self.combine(arith, ty, Form::Vector, &before, &value)?;
            by *= 2;
        }
        Ok(value)
    }

    fn reduce(&mut self, arith: G, ty: Type, value: &str) -> Result<String> {
        let (w, s, vec) = (self.lanes, scalar(ty), self.vec(ty));
        let name = match arith {
            G::IAdd => "add",
            G::IMul => "mul",
            G::And | G::LogicalAnd => "and",
            G::Or | G::LogicalOr => "or",
            G::Xor | G::LogicalXor => "xor",
            G::SMin => "smin",
            G::SMax => "smax",
            G::UMin => "umin",
            G::UMax => "umax",
            G::FMin | G::FMax | G::FAdd | G::FMul => "",
        };
        if name.is_empty() {
            // By halves.
            let mut value = value.to_owned();
            let mut width = w;
            while width > 1 {
                let half = width / 2;
                let order: Vec<String> = (0..w)
                    .map(|lane| format!("i32 {}", if lane < half { lane + half } else { lane }))
                    .collect();
                let other = self.text.def(&format!(
                    "shufflevector {vec} {value}, {vec} poison, <{w} x i32> <{}>",
                    order.join(", ")
                ));
                value = self.combine(arith, ty, Form::Vector, &value, &other)?;
                width = half;
            }
            return Ok(self
                .text
                .def(&format!("extractelement {vec} {value}, i64 0")));
        }
        let full = format!("llvm.vector.reduce.{name}.v{w}{}", suffix(ty));
        self.declare(format!("declare {s} @{full}({vec})"));
        Ok(self.text.def(&format!("call {s} @{full}({vec} {value})")))
    }
}

/// What does not count in a reduction.
fn identity(arith: G, ty: Type) -> u64 {
    let sign = 1u64 << (ty.bits() - 1);
    let infinity = match ty {
        Type::F16 => 0x7c00,
        Type::F32 => 0x7f80_0000,
        _ => 0x7ff0_0000_0000_0000,
    };
    let one = match ty {
        Type::F16 => 0x3c00,
        Type::F32 => 0x3f80_0000,
        _ => 0x3ff0_0000_0000_0000,
    };
    match arith {
        G::IAdd | G::Or | G::Xor | G::LogicalOr | G::LogicalXor | G::UMax => 0,
        // -0 + x is x, whatever the sign of x.
        G::FAdd => sign,
        G::IMul | G::LogicalAnd => 1,
        G::FMul => one,
        G::And | G::UMin => ty.mask(),
        G::SMin => sign - 1,
        G::SMax => sign,
        G::FMin => infinity,
        G::FMax => infinity | sign,
    }
}
