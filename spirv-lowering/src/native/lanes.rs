//! One lane out of many: its part of a vector, and what is done lane by lane.

use super::emitter::{Context, Emitter, Mask};
use super::text::scalar;
use crate::error::Result;
use crate::ir::entity::Value;
use crate::ir::types::Type;

impl Emitter<'_> {
    /// The number of the first lane that runs.
    pub fn first_lane(&mut self, mask: &Mask) -> String {
        if let Some(lane) = self.lane_alone() {
            return lane;
        }
        if mask.is_none() {
            return "0".to_owned();
        }
        let n = self.lanes;
        let bits = self.mask_bits(mask);
        self.declare(format!("declare i{n} @llvm.cttz.i{n}(i{n}, i1)"));
        let lane = self
            .text
            .def(&format!("call i{n} @llvm.cttz.i{n}(i{n} {bits}, i1 true)"));
        if n == 64 {
            return lane;
        }
        self.text.def(&format!("zext i{n} {lane} to i64"))
    }

    /// What the last lane that runs has: lanes write to one place in their order.
    pub fn last(&mut self, value: Value, cx: &Context) -> Result<String> {
        if self.is_uniform(value, cx) {
            return self.scalar(value, cx);
        }
        let vector = self.vector(value, cx)?;
        let lane = match &cx.mask {
            None => (self.lanes - 1).to_string(),
            Some(_) => {
                let n = self.lanes;
                let bits = self.mask_bits(&cx.mask);
                self.declare(format!("declare i{n} @llvm.ctlz.i{n}(i{n}, i1)"));
                let zeros = self
                    .text
                    .def(&format!("call i{n} @llvm.ctlz.i{n}(i{n} {bits}, i1 true)"));
                let lane = self.text.def(&format!("sub i{n} {}, {zeros}", n - 1));
                if n == 64 {
                    lane
                } else {
                    self.text.def(&format!("zext i{n} {lane} to i64"))
                }
            }
        };
        let ty = self.vec(self.func.ty(value));
        Ok(self
            .text
            .def(&format!("extractelement {ty} {vector}, i64 {lane}")))
    }

    /// Does something lane by lane, with the operands of each; once, if they are the same and nothing comes back.
    pub fn each_lane(
        &mut self,
        args: &[Value],
        result: Option<Value>,
        cx: &mut Context,
        body: impl FnOnce(&mut Self, &[String]) -> Result<String>,
    ) -> Result<()> {
        let found = self.loop_of_lanes(args, result, cx, None, body)?;
        self.define_if(result, found, cx);
        Ok(())
    }

    /// The same for an operation that locks memory other threads use; returns what comes back. Not more than some of the
    /// lanes' are written out one after the other: 16 that were took 1.4 times as long on a Xeon where two threads met in
    /// 256 counters, as the processor learns by an instruction's address how an operation fares.
    pub fn each_lane_locked(
        &mut self,
        args: &[Value],
        result: Option<Value>,
        cx: &Context,
        body: impl FnOnce(&mut Self, &[String]) -> Result<String>,
    ) -> Result<Option<String>> {
        let hint = self.loop_hint();
        self.loop_of_lanes(args, result, cx, Some(hint), body)
    }

    fn loop_of_lanes(
        &mut self,
        args: &[Value],
        result: Option<Value>,
        cx: &Context,
        hint: Option<String>,
        body: impl FnOnce(&mut Self, &[String]) -> Result<String>,
    ) -> Result<Option<String>> {
        let w = self.lanes;
        let mut operands = Vec::new();
        for &arg in args {
            let ty = self.func.ty(arg);
            operands.push(if self.is_uniform(arg, cx) {
                (ty, self.scalar(arg, cx)?, true)
            } else {
                let vector = self.vector(arg, cx)?;
                (ty, self.in_memory(ty, &vector), false)
            });
        }
        let bits = self.mask_bits(&cx.mask);
        let slot = result.map(|r| {
            let ty = self.vec(self.func.ty(r));
            self.alloca(&ty)
        });
        let (before, again, after) = (self.text.label(), self.text.label(), self.text.label());
        self.text.jump(&before);
        self.text.begin(&before);
        self.text.jump(&again);
        self.text.begin(&again);
        let left = self.text.name();
        let rest = self.text.name();
        // The loop's body is one block but for what `body` adds: the edge back comes from `latch`.
        let latch = self.text.label();
        self.text.line(&format!(
            "{left} = phi i{w} [ {bits}, %{before} ], [ {rest}, %{latch} ]"
        ));
        self.declare(format!("declare i{w} @llvm.cttz.i{w}(i{w}, i1)"));
        let lane = self
            .text
            .def(&format!("call i{w} @llvm.cttz.i{w}(i{w} {left}, i1 true)"));
        let lane = if w == 64 {
            lane
        } else {
            self.text.def(&format!("zext i{w} {lane} to i64"))
        };
        let mut one = Vec::new();
        for (ty, value, uniform) in &operands {
            one.push(if *uniform {
                value.clone()
            } else {
                self.of_lane(*ty, value, &lane)
            });
        }
        let made = body(self, &one)?;
        if let (Some(slot), Some(result)) = (&slot, result) {
            let ty = scalar(self.func.ty(result));
            let at = self
                .text
                .def(&format!("getelementptr {ty}, ptr {slot}, i64 {lane}"));
            self.text
                .line(&format!("store {ty} {made}, ptr {at}, align 1"));
        }
        self.text.jump(&latch);
        self.text.begin(&latch);
        let less = self.text.def(&format!("sub i{w} {left}, 1"));
        self.text.line(&format!("{rest} = and i{w} {left}, {less}"));
        let more = self.text.def(&format!("icmp ne i{w} {rest}, 0"));
        let hint = hint.map_or(String::new(), |hint| format!(", !llvm.loop {hint}"));
        self.text.line(&format!(
            "br i1 {more}, label %{again}, label %{after}{hint}"
        ));
        self.text.begin(&after);
        let (Some(slot), Some(result)) = (slot, result) else {
            return Ok(None);
        };
        let ty = self.vec(self.func.ty(result));
        let found = self.text.def(&format!("load {ty}, ptr {slot}, align 64"));
        Ok(Some(found))
    }

    /// Where a vector lies whose lanes are asked for one by one: LLVM would store all of it for each lane.
    pub fn in_memory(&mut self, ty: Type, vector: &str) -> String {
        let vec = self.vec(ty);
        if ty == Type::Bool {
            return vector.to_owned();
        }
        let slot = self.alloca(&vec);
        self.text
            .line(&format!("store {vec} {vector}, ptr {slot}, align 64"));
        slot
    }

    /// What a lane has of a value that lies there. Masks have no elements in memory: they are where they were.
    pub fn of_lane(&mut self, ty: Type, slot: &str, lane: &str) -> String {
        if ty == Type::Bool {
            let vec = self.vec(Type::Bool);
            return self
                .text
                .def(&format!("extractelement {vec} {slot}, i64 {lane}"));
        }
        let ty = scalar(ty);
        let at = self
            .text
            .def(&format!("getelementptr {ty}, ptr {slot}, i64 {lane}"));
        self.text.def(&format!("load {ty}, ptr {at}"))
    }
}
