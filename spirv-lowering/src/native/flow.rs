//! Control flow with masks: walks the tree of a region and writes its blocks.
//!
//! The mask says which lanes run; None: all. Code runs only while some lane does, but for arms so small that skipping them
//! costs more than running them without lanes. Block parameters that lanes reach on different ways, values that leave
//! leaking loops, and those whose place in the text does not come before all their uses lie in slots on the stack, which
//! LLVM makes registers of.

use super::classes::{Class, Classes};
use super::text::{constant, scalar, Text};
use super::tree::{Chain, Edge, Item, Loop, Place, PlaceKind, Select, Tree};
use super::{Locals, Packing, Region, Shape};
use crate::error::{LowerError, Result};
use crate::ir::entity::{Block, SecondaryMap, Value};
use crate::ir::function::{Function, Terminator};
use crate::ir::op::{Effect, Op};
use crate::ir::types::Type;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Write as _;

/// The lanes that run. None: all.
pub type Mask = Option<String>;

/// A value as far as it was written: the scalar of uniform and (lane 0 of) affine ones, the vector of others and affine ones.
#[derive(Debug, Clone, Default)]
pub struct Written {
    pub scalar: Option<String>,
    pub vector: Option<String>,
    /// The chain in which that happened.
    chain: usize,
}

/// Where a chain is.
#[derive(Clone)]
pub struct Context {
    /// The lanes that run.
    pub mask: Mask,
    /// The chain's number.
    pub chain: usize,
    /// The label to go to when no lane is left.
    pub end: String,
    /// The block.
    pub block: Block,
}

/// The labels and slots of a construct that is open.
#[derive(Clone, Default)]
struct Open {
    labels: [Option<String>; 3],
    /// Slots that gather the lanes which come to the merge block and to the continue target.
    arrivals: [Option<String>; 3],
    /// The slot with the lanes that run the next iteration.
    running: Option<String>,
}

fn at(kind: PlaceKind) -> usize {
    match kind {
        PlaceKind::Merge => 0,
        PlaceKind::Continue => 1,
        PlaceKind::Header => 2,
    }
}

/// Writes one region.
pub struct Emitter<'a> {
    pub func: &'a Function,
    pub region: &'a Region,
    pub tree: &'a Tree,
    pub classes: &'a Classes,
    pub locals: &'a Locals,
    pub lanes: u32,
    pub packing: Packing,
    /// See [`Shape`].
    pub merges_apart: bool,
    /// Where variables lie in the frame; None: on the stack.
    pub frame: Option<SecondaryMap<crate::ir::entity::Var, u32>>,
    /// Instructions.
    pub text: Text,
    /// Stack slots, at the beginning of the function.
    pub allocas: Text,
    /// Loads of what is the same for all packs.
    pub prologue: Text,
    /// What the prologue has loaded.
    pub loaded: FxHashMap<String, String>,
    /// Intrinsics that are used, with their declarations.
    pub declared: &'a mut std::collections::BTreeSet<String>,
    /// Values that need a slot, as found out the first time.
    pub wanted: FxHashSet<Value>,
    /// Those that were missing one.
    pub missing: FxHashSet<Value>,
    slots: FxHashMap<Value, String>,
    written: SecondaryMap<Value, Written>,
    chains: Vec<usize>,
    open: Vec<Open>,
    /// The name of the slot for the next region.
    pub next: Option<String>,
    /// The label at the end of a pack.
    pub done: String,
    /// The classes of one lane alone, and those of all lanes while that is written.
    of_one_lane: &'a Classes,
    of_all: Option<&'a Classes>,
    /// Variables on the stack.
    pub arrays: SecondaryMap<crate::ir::entity::Var, Option<String>>,
    /// Names of the group's and pack's numbers.
    pub ids: super::ids::Ids,
}

/// Instructions that an arm may have to be run without asking whether there are lanes for it.
const SMALL: usize = 6;

impl<'a> Emitter<'a> {
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        region: &'a Region,
        tree: &'a Tree,
        (classes, of_one_lane): (&'a Classes, &'a Classes),
        locals: &'a Locals,
        shape: Shape,
        declared: &'a mut std::collections::BTreeSet<String>,
        wanted: FxHashSet<Value>,
        ids: super::ids::Ids,
    ) -> Self {
        Self {
            func: &region.func,
            region,
            tree,
            classes,
            locals,
            lanes: shape.lanes,
            packing: shape.packing,
            merges_apart: shape.merges_apart,
            frame: None,
            text: Text::default(),
            allocas: Text::default(),
            prologue: Text::default(),
            loaded: FxHashMap::default(),
            declared,
            wanted,
            missing: FxHashSet::default(),
            slots: FxHashMap::default(),
            written: SecondaryMap::new(),
            chains: vec![0],
            open: vec![Open::default(); tree.constructs.len()],
            next: None,
            done: String::new(),
            of_one_lane,
            of_all: None,
            arrays: SecondaryMap::new(),
            ids,
        }
    }

    // --- types and small things

    /// The vector type for a type.
    pub fn vec(&self, ty: Type) -> String {
        format!("<{} x {}>", self.lanes, scalar(ty))
    }

    /// The type of masks.
    pub fn mask_type(&self) -> String {
        self.vec(Type::Bool)
    }

    /// A vector with all lanes alike, as a constant.
    pub fn splat_const(&self, ty: Type, bits: u64) -> String {
        if bits == 0 {
            return "zeroinitializer".to_owned();
        }
        let one = format!("{} {}", scalar(ty), constant(ty, bits));
        let all = vec![one; self.lanes as usize].join(", ");
        format!("<{all}>")
    }

    /// A constant with a number for each lane.
    pub fn lanes_const(&self, ty: Type, f: impl Fn(u64) -> u64) -> String {
        let all: Vec<String> = (0..u64::from(self.lanes))
            .map(|lane| format!("{} {}", scalar(ty), constant(ty, f(lane) & ty.mask())))
            .collect();
        format!("<{}>", all.join(", "))
    }

    /// A scalar in all lanes.
    pub fn splat(&mut self, ty: Type, value: &str) -> String {
        let vec = self.vec(ty);
        let one = self.text.def(&format!(
            "insertelement {vec} poison, {} {value}, i64 0",
            scalar(ty)
        ));
        self.text.def(&format!(
            "shufflevector {vec} {one}, {vec} poison, <{} x i32> zeroinitializer",
            self.lanes
        ))
    }

    /// The mask as a vector.
    pub fn mask_vector(&self, mask: &Mask) -> String {
        match mask {
            Some(mask) => mask.clone(),
            None => self.splat_const(Type::Bool, 1),
        }
    }

    /// The mask as an integer with a bit for each lane.
    pub fn mask_bits(&mut self, mask: &Mask) -> String {
        match mask {
            Some(mask) => {
                let ty = self.mask_type();
                self.text
                    .def(&format!("bitcast {ty} {mask} to i{}", self.lanes))
            }
            None => "-1".to_owned(),
        }
    }

    fn any(&mut self, mask: &str) -> String {
        let bits = self.mask_bits(&Some(mask.to_owned()));
        self.text.def(&format!("icmp ne i{} {bits}, 0", self.lanes))
    }

    fn and(&mut self, mask: &Mask, other: &str) -> String {
        let ty = self.mask_type();
        match mask {
            None => other.to_owned(),
            Some(mask) => self.text.def(&format!("and {ty} {mask}, {other}")),
        }
    }

    /// A stack slot.
    pub fn alloca(&mut self, ty: &str) -> String {
        let name = self.text.name();
        self.allocas
            .line(&format!("{name} = alloca {ty}, align 64"));
        name
    }

    /// Declares an intrinsic or function.
    pub fn declare(&mut self, text: String) {
        self.declared.insert(text);
    }

    /// What is the same for all packs, written once.
    pub fn invariant(&mut self, text: &str) -> String {
        if let Some(name) = self.loaded.get(text) {
            return name.clone();
        }
        let name = self.text.name();
        self.prologue.line(&format!("{name} = {text}"));
        self.loaded.insert(text.to_owned(), name.clone());
        name
    }

    // --- values

    /// The class of a value for who uses it here.
    pub fn class(&self, value: Value, cx: &Context) -> Class {
        if self.classes.escapes_to(self.tree, value, cx.block) {
            return Class::Varying;
        }
        self.classes.of(value)
    }

    /// Is it a scalar here?
    pub fn is_uniform(&self, value: Value, cx: &Context) -> bool {
        self.class(value, cx) == Class::Uniform
    }

    fn is_ancestor(&self, chain: usize, mut of: usize) -> bool {
        while of > chain {
            of = self.chains[of];
        }
        of == chain
    }

    fn slot_type(&self, value: Value, vector: bool) -> String {
        let ty = self.func.ty(value);
        if vector {
            self.vec(ty)
        } else {
            scalar(ty).to_owned()
        }
    }

    /// The value as it was written, from its slot where the text does not reach.
    fn get(&mut self, value: Value, cx: &Context) -> Result<Written> {
        if let Some(bits) = self.func.as_const(value) {
            let ty = self.func.ty(value);
            return Ok(Written {
                scalar: Some(constant(ty, bits)),
                vector: Some(self.splat_const(ty, bits)),
                chain: 0,
            });
        }
        let written = self.written[value].clone();
        let escapes = self.classes.escapes_to(self.tree, value, cx.block);
        let known = written.scalar.is_some() || written.vector.is_some();
        if known && !escapes && self.is_ancestor(written.chain, cx.chain) {
            return Ok(written);
        }
        if !known {
            return Err(LowerError::internal(format!("{value} is not written yet")));
        }
        if !self.wanted.contains(&value) {
            self.missing.insert(value);
            return Ok(written);
        }
        let Some(slot) = self.slots.get(&value).cloned() else {
            return Err(LowerError::internal(format!("{value} has no slot")));
        };
        let vector = escapes || self.slot_is_vector(value);
        let ty = self.slot_type(value, vector);
        let loaded = self.text.def(&format!("load {ty}, ptr {slot}, align 64"));
        let mut out = Written {
            chain: cx.chain,
            ..Written::default()
        };
        if vector {
            out.vector = Some(loaded);
        } else {
            out.scalar = Some(loaded.clone());
            if let Class::Affine { stride, .. } = self.classes.of(value) {
                out.vector = Some(self.spread(self.func.ty(value), &loaded, stride));
            }
        }
        Ok(out)
    }

    /// Values that escape have one of each lane; loose ones cannot be told from lane 0.
    fn slot_is_vector(&self, value: Value) -> bool {
        self.classes.escaping.contains(&value)
            || matches!(
                self.classes.of(value),
                Class::Varying | Class::Affine { loose: true, .. }
            )
    }

    /// The vector of an affine value.
    pub fn spread(&mut self, ty: Type, base: &str, stride: i64) -> String {
        if ty.is_ptr() {
            let steps = self.lanes_const(Type::I64, |lane| (stride as u64).wrapping_mul(lane));
            return self.text.def(&format!(
                "getelementptr i8, ptr {base}, <{} x i64> {steps}",
                self.lanes
            ));
        }
        let vec = self.vec(ty);
        let all = self.splat(ty, base);
        let steps = self.lanes_const(ty, |lane| (stride as u64).wrapping_mul(lane));
        self.text.def(&format!("add {vec} {all}, {steps}"))
    }

    /// The scalar of a uniform value.
    pub fn scalar(&mut self, value: Value, cx: &Context) -> Result<String> {
        let written = self.get(value, cx)?;
        if let Some(scalar) = written.scalar {
            return Ok(scalar);
        }
        // From a lane that runs.
        let vector = written.vector.unwrap_or_default();
        let lane = self.first_lane(&cx.mask);
        let ty = self.vec(self.func.ty(value));
        Ok(self
            .text
            .def(&format!("extractelement {ty} {vector}, i64 {lane}")))
    }

    /// The vector of any value.
    pub fn vector(&mut self, value: Value, cx: &Context) -> Result<String> {
        let written = self.get(value, cx)?;
        if let Some(vector) = written.vector {
            return Ok(vector);
        }
        let ty = self.func.ty(value);
        let scalar = written.scalar.unwrap_or_default();
        Ok(self.splat(ty, &scalar))
    }

    /// The number of the first lane that runs.
    pub fn first_lane(&mut self, mask: &Mask) -> String {
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

    /// What lane 0 of an affine value would have to have, so that it is right for the first lane that runs.
    pub fn anchored(&mut self, value: Value, cx: &Context) -> Result<String> {
        let Class::Affine { stride, loose } = self.class(value, cx) else {
            return self.scalar(value, cx);
        };
        let written = self.get(value, cx)?;
        if !loose || cx.mask.is_none() {
            if let Some(scalar) = written.scalar {
                return Ok(scalar);
            }
        }
        let vector = self.vector(value, cx)?;
        let lane = self.first_lane(&cx.mask);
        let ty = self.func.ty(value);
        let vec = self.vec(ty);
        let first = self
            .text
            .def(&format!("extractelement {vec} {vector}, i64 {lane}"));
        let back = self.text.def(&format!("mul i64 {lane}, {}", -stride));
        if ty.is_ptr() {
            return Ok(self
                .text
                .def(&format!("getelementptr i8, ptr {first}, i64 {back}")));
        }
        let back = if ty == Type::I64 {
            back
        } else {
            self.text
                .def(&format!("trunc i64 {back} to {}", scalar(ty)))
        };
        Ok(self
            .text
            .def(&format!("add {} {first}, {back}", scalar(ty))))
    }

    /// Notes that a value was written.
    pub fn define(
        &mut self,
        value: Value,
        scalar: Option<String>,
        vector: Option<String>,
        cx: &Context,
    ) {
        self.written[value] = Written {
            scalar,
            vector,
            chain: cx.chain,
        };
        if !self.wanted.contains(&value) {
            return;
        }
        let is_vector = self.slot_is_vector(value);
        let ty = self.slot_type(value, is_vector);
        let slot = match self.slots.get(&value) {
            Some(slot) => slot.clone(),
            None => {
                let slot = self.alloca(&ty);
                self.slots.insert(value, slot.clone());
                slot
            }
        };
        if is_vector {
            let vector = match self.vector(value, cx) {
                Ok(vector) => vector,
                Err(_) => return,
            };
            let blend = self.classes.escaping.contains(&value);
            let mask = if blend { &cx.mask } else { &None };
            let vector = match mask {
                Some(_) => self.apart(value, vector),
                None => vector,
            };
            self.store_slot(&slot, &ty, &vector, mask);
        } else if let Some(scalar) = self.written[value].scalar.clone() {
            self.store_slot(&slot, &ty, &scalar, &None);
        }
    }

    fn store_slot(&mut self, slot: &str, ty: &str, value: &str, mask: &Mask) {
        let value = match mask {
            None => value.to_owned(),
            Some(mask) => {
                let old = self.text.def(&format!("load {ty}, ptr {slot}, align 64"));
                let mask_type = self.mask_type();
                self.text.def(&format!(
                    "select {mask_type} {mask}, {ty} {value}, {ty} {old}"
                ))
            }
        };
        self.text
            .line(&format!("store {ty} {value}, ptr {slot}, align 64"));
    }

    // --- block parameters

    fn param_slot(&mut self, param: Value) -> (String, String, bool) {
        let vector = self.classes.of(param) == Class::Varying;
        let ty = self.slot_type(param, vector);
        // Parameters have slots of their own beside those of values that are read from elsewhere.
        let key = format!("param {param}");
        if let Some(slot) = self.loaded.get(&key) {
            return (slot.clone(), ty, vector);
        }
        let slot = self.alloca(&ty);
        self.loaded.insert(key, slot.clone());
        (slot, ty, vector)
    }

    /// Gives the parameters of the block that an edge goes to their values.
    fn assign(&mut self, edge: &Edge, cx: &Context) -> Result<()> {
        let func = self.func;
        let targets = func.blocks[edge.from].term.targets();
        let Some(target) = targets.get(edge.index) else {
            return Err(LowerError::internal("an edge that is not there"));
        };
        let params = &func.blocks[edge.to].params;
        if params.is_empty() {
            return Ok(());
        }
        let blend = self.classes.is_join(edge.to);
        let mut values = Vec::new();
        for (&param, &arg) in params.iter().zip(&target.args) {
            values.push(match self.classes.of(param) {
                Class::Varying => self.vector(arg, cx)?,
                Class::Affine { .. } => self.anchored(arg, cx)?,
                _ => self.scalar(arg, cx)?,
            });
        }
        for ((&param, &arg), mut value) in params.iter().zip(&target.args).zip(values) {
            let (slot, ty, vector) = self.param_slot(param);
            let mask = if blend && vector {
                cx.mask.clone()
            } else {
                None
            };
            if mask.is_some() {
                value = self.apart(arg, value);
            }
            self.store_slot(&slot, &ty, &value, &mask);
        }
        Ok(())
    }

    /// Reads the parameters of a block that begins.
    fn read_params(&mut self, block: Block, cx: &Context) {
        if self.tree.edges_in[block] == 0 {
            return;
        }
        for &param in &self.func.blocks[block].params {
            let (slot, ty, vector) = self.param_slot(param);
            let loaded = self.text.def(&format!("load {ty}, ptr {slot}, align 64"));
            if vector {
                self.define(param, None, Some(loaded), cx);
                continue;
            }
            let vector = match self.classes.of(param) {
                Class::Affine { stride, .. } => {
                    Some(self.spread(self.func.ty(param), &loaded, stride))
                }
                _ => None,
            };
            self.define(param, Some(loaded), vector, cx);
        }
    }

    // --- one lane alone, see `serial`

    /// Is what is written for one lane?
    pub fn is_alone(&self) -> bool {
        self.of_all.is_some()
    }

    /// Begins to write for one lane.
    pub fn alone(&mut self, cx: &Context) -> Context {
        self.of_all = Some(self.classes);
        self.classes = self.of_one_lane;
        Context {
            mask: None,
            chain: self.new_chain(cx.chain),
            ..cx.clone()
        }
    }

    /// Ends that.
    pub fn together_again(&mut self) {
        if let Some(classes) = self.of_all.take() {
            self.classes = classes;
        }
    }

    /// Has a value be that scalar, and tells what it was.
    pub fn replace(&mut self, value: Value, scalar: String, cx: &Context) -> Written {
        let new = Written {
            scalar: Some(scalar),
            vector: None,
            chain: cx.chain,
        };
        std::mem::replace(&mut self.written[value], new)
    }

    /// Has it be that again.
    pub fn restore(&mut self, value: Value, written: Written) {
        self.written[value] = written;
    }

    /// The slot of a block's parameter, which gets another when it is next asked for.
    pub fn take_param_slot(&mut self, param: Value) -> String {
        let (slot, ..) = self.param_slot(param);
        self.loaded.remove(&format!("param {param}"));
        slot
    }

    /// What a block's parameter has in its slot, which it loses.
    pub fn take_param(&mut self, param: Value) -> Written {
        let (_, ty, is_vector) = self.param_slot(param);
        let slot = self.take_param_slot(param);
        let loaded = self.text.def(&format!("load {ty}, ptr {slot}, align 64"));
        let vector = match self.classes.of(param) {
            _ if is_vector => Some(loaded.clone()),
            Class::Affine { stride, .. } => Some(self.spread(self.func.ty(param), &loaded, stride)),
            _ => None,
        };
        Written {
            scalar: (!is_vector).then_some(loaded),
            vector,
            chain: 0,
        }
    }

    /// Has a block's parameter begin with that scalar.
    pub fn begin_param(&mut self, param: Value, value: &str) {
        let (slot, ty, _) = self.param_slot(param);
        self.store_slot(&slot, &ty, value, &None);
    }

    /// Gives a block's parameter its slot.
    pub fn set_param_slot(&mut self, param: Value, slot: String) {
        self.loaded.insert(format!("param {param}"), slot);
    }

    /// Has a value lie in a slot of all lanes.
    pub fn set_slot(&mut self, value: Value, slot: String) {
        self.slots.insert(value, slot);
        self.wanted.insert(value);
    }

    // --- control flow

    fn new_chain(&mut self, parent: usize) -> usize {
        self.chains.push(parent);
        self.chains.len() - 1
    }

    /// Writes the whole region; control is at `mask` when it begins and at `done` when it ends.
    pub fn region(&mut self, mask: Mask, done: &str) -> Result<()> {
        let Some(entry) = self.func.entry() else {
            return Err(LowerError::internal("a region without blocks"));
        };
        self.done = done.to_owned();
        let cx = Context {
            mask,
            chain: 0,
            end: done.to_owned(),
            block: entry,
        };
        let tree = self.tree;
        self.chain(&tree.root, cx)
    }

    fn chain(&mut self, chain: &Chain, mut cx: Context) -> Result<()> {
        for item in &chain.items {
            match item {
                Item::Code(block) => {
                    cx.block = *block;
                    self.read_params(*block, &cx);
                    self.code(*block, &mut cx)?;
                }
                Item::Edge(edge) => {
                    cx.block = edge.from;
                    self.edge(edge, &cx)?;
                    if edge.place.is_some() {
                        return Ok(());
                    }
                }
                Item::Return(block) => {
                    cx.block = *block;
                    self.leave(*block, &cx)?;
                    return Ok(());
                }
                Item::Unreachable => {
                    let end = cx.end.clone();
                    self.text.jump(&end);
                    return Ok(());
                }
                Item::Select(select) => match self.select(select, cx)? {
                    Some(next) => cx = next,
                    None => return Ok(()),
                },
                Item::Loop(l) => {
                    let next = match self.plan(l) {
                        Some(plan) => self.one_by_one(l, &plan, cx)?,
                        None => self.repeat(l, cx)?,
                    };
                    match next {
                        Some(next) => cx = next,
                        None => return Ok(()),
                    }
                }
            }
        }
        // The last arm of a block without a way on.
        let end = cx.end.clone();
        self.text.jump(&end);
        Ok(())
    }

    fn code(&mut self, block: Block, cx: &mut Context) -> Result<()> {
        let func = self.func;
        for &inst in &func.blocks[block].insts {
            self.instruction(inst, cx)?;
        }
        Ok(())
    }

    fn edge(&mut self, edge: &Edge, cx: &Context) -> Result<()> {
        self.assign(edge, cx)?;
        let Some(Place { construct, kind }) = edge.place else {
            return Ok(());
        };
        let open = self.open[construct].clone();
        if kind == PlaceKind::Header {
            if let Some(running) = &open.running {
                let mask = self.mask_vector(&cx.mask);
                let ty = self.mask_type();
                self.store_slot(running, &ty, &mask, &None);
            }
        } else if let Some(slot) = &open.arrivals[at(kind)] {
            let ty = self.mask_type();
            let old = self.text.def(&format!("load {ty}, ptr {slot}, align 64"));
            let mask = self.mask_vector(&cx.mask);
            let sum = self.text.def(&format!("or {ty} {old}, {mask}"));
            self.store_slot(slot, &ty, &sum, &None);
        }
        if self.classes.is_soft(edge) {
            self.text.jump(&cx.end);
        } else {
            let label = open.labels[at(kind)]
                .clone()
                .ok_or_else(|| LowerError::internal("an edge to a place that is closed"))?;
            self.text.jump(&label);
        }
        Ok(())
    }

    fn leave(&mut self, block: Block, cx: &Context) -> Result<()> {
        if let (Terminator::Return(values), Some(next)) =
            (&self.func.blocks[block].term, self.next.clone())
        {
            if let Some(&value) = values.first() {
                let scalar = self.scalar(value, cx)?;
                self.text
                    .line(&format!("store i32 {scalar}, ptr {next}, align 4"));
            }
        }
        if self.classes.is_soft_return(block) {
            self.text.jump(&cx.end);
        } else {
            let done = self.done.clone();
            self.text.jump(&done);
        }
        Ok(())
    }

    /// A slot for lanes, empty.
    fn lanes_slot(&mut self) -> String {
        let ty = self.mask_type();
        let slot = self.alloca(&ty);
        self.store_slot(&slot, &ty, "zeroinitializer", &None);
        slot
    }

    /// Begins the block at a label with the lanes that have come there. `gathered`: the slot that counts them, or all of
    /// `mask` are there.
    fn meet(&mut self, label: &str, gathered: Option<&str>, cx: &Context) -> Context {
        self.text.begin(label);
        let mut next = cx.clone();
        if let Some(slot) = gathered {
            let ty = self.mask_type();
            let mask = self.text.def(&format!("load {ty}, ptr {slot}, align 64"));
            let any = self.any(&mask);
            let on = self.text.label();
            self.text.branch(&any, &on, &cx.end);
            self.text.begin(&on);
            next.mask = Some(mask);
        }
        next
    }

    fn select(&mut self, select: &Select, mut cx: Context) -> Result<Option<Context>> {
        cx.block = select.block;
        let id = select.construct;
        let merge = self.text.label();
        let gathers = self.classes.is_lossy(id) && select.merge.is_some();
        let arrival = gathers.then(|| self.lanes_slot());
        self.open[id] = Open {
            labels: [Some(merge.clone()), None, None],
            arrivals: [arrival.clone(), None, None],
            running: None,
        };
        // Lanes that leave go on with what comes after, or with nothing.
        let end = if select.merge.is_some() {
            merge.clone()
        } else {
            cx.end.clone()
        };
        if self.classes.is_divergent(id) {
            self.parted(select, &cx, &end)?;
        } else {
            self.together(select, &cx, &end)?;
        }
        if select.merge.is_none() {
            return Ok(None);
        }
        Ok(Some(self.meet(&merge, arrival.as_deref(), &cx)))
    }

    /// All lanes take the same arm.
    fn together(&mut self, select: &Select, cx: &Context, end: &str) -> Result<()> {
        let func = self.func;
        let labels: Vec<String> = select.arms.iter().map(|_| self.text.label()).collect();
        match &func.blocks[select.block].term {
            Terminator::Branch(cond, ..) => {
                let cond = self.scalar(*cond, cx)?;
                self.text.branch(&cond, &labels[0], &labels[1]);
            }
            Terminator::Switch(value, cases, _) => {
                let ty = func.ty(*value);
                let scalar_type = scalar(ty);
                let on = self.scalar(*value, cx)?;
                let default = labels.last().cloned().unwrap_or_default();
                let mut line = format!("switch {scalar_type} {on}, label %{default} [");
                for ((bits, _), label) in cases.iter().zip(&labels) {
                    let _ = write!(
                        line,
                        " {scalar_type} {}, label %{label}",
                        constant(ty, *bits)
                    );
                }
                line.push_str(" ]");
                self.text.line(&line);
            }
            _ => return Err(LowerError::internal("a selection without a branch")),
        }
        for (arm, label) in select.arms.iter().zip(&labels) {
            self.text.begin(label);
            let chain = self.new_chain(cx.chain);
            let inner = Context {
                chain,
                end: end.to_owned(),
                ..cx.clone()
            };
            self.chain(arm, inner)?;
        }
        Ok(())
    }

    /// Each lane takes its own arm, one arm after the other.
    fn parted(&mut self, select: &Select, cx: &Context, end: &str) -> Result<()> {
        let func = self.func;
        let ty = self.mask_type();
        let mut masks = Vec::new();
        match &func.blocks[select.block].term {
            Terminator::Branch(cond, ..) => {
                let cond = self.vector(*cond, cx)?;
                let all = self.splat_const(Type::Bool, 1);
                let not = self.text.def(&format!("xor {ty} {cond}, {all}"));
                masks.push(self.and(&cx.mask, &cond));
                masks.push(self.and(&cx.mask, &not));
            }
            Terminator::Switch(value, cases, _) => {
                let value_type = func.ty(*value);
                let vec = self.vec(value_type);
                let on = self.vector(*value, cx)?;
                let mut rest = self.mask_vector(&cx.mask);
                for (bits, _) in cases {
                    let case = self.splat_const(value_type, *bits);
                    let is = self.text.def(&format!("icmp eq {vec} {on}, {case}"));
                    masks.push(self.and(&cx.mask, &is));
                    let all = self.splat_const(Type::Bool, 1);
                    let not = self.text.def(&format!("xor {ty} {is}, {all}"));
                    rest = self.text.def(&format!("and {ty} {rest}, {not}"));
                }
                masks.push(rest);
            }
            _ => return Err(LowerError::internal("a selection without a branch")),
        }
        let count = select.arms.len();
        for (i, (arm, mask)) in select.arms.iter().zip(masks).enumerate() {
            let after = if i + 1 == count {
                end.to_owned()
            } else {
                self.text.label()
            };
            let chain = self.new_chain(cx.chain);
            let inner = Context {
                mask: Some(mask.clone()),
                chain,
                end: after.clone(),
                ..cx.clone()
            };
            if !self.is_small(arm) {
                let any = self.any(&mask);
                let label = self.text.label();
                self.text.branch(&any, &label, &after);
                self.text.begin(&label);
            }
            self.chain(arm, inner)?;
            if i + 1 < count {
                self.text.begin(&after);
            }
        }
        Ok(())
    }

    /// Nothing in it needs a lane to run, and it is quicker run than skipped.
    fn is_small(&self, chain: &Chain) -> bool {
        let mut count = 0;
        for item in &chain.items {
            match item {
                Item::Code(block) => {
                    for &inst in &self.func.blocks[*block].insts {
                        let op = self.func.insts[inst].op;
                        if op.effect() != Effect::Pure || is_slow(op) {
                            return false;
                        }
                        count += usize::from(!matches!(op, Op::Const(_)));
                    }
                }
                // Lanes that leave a loop do not come back: worth asking.
                Item::Edge(edge) => {
                    if edge.place.is_some_and(|p| p.kind == PlaceKind::Header) {
                        return false;
                    }
                }
                _ => return false,
            }
        }
        count <= SMALL
    }

    /// Writes a loop.
    pub fn repeat(&mut self, l: &Loop, cx: Context) -> Result<Option<Context>> {
        let id = l.construct;
        // Lanes that go on wait for those that leave at the same branch.
        let gather = self.classes.goes_back_softly(id);
        let leaks = self.classes.is_leaking(id) || gather;
        let header = self.text.label();
        let cont = self.text.label();
        let merge = self.text.label();
        let ty = self.mask_type();
        let reached = self.tree.edges_in[l.merge] > 0;
        let gathered = (self.classes.is_lossy(id) && reached).then(|| self.lanes_slot());
        let running = leaks.then(|| {
            let slot = self.alloca(&ty);
            let mask = self.mask_vector(&cx.mask);
            self.store_slot(&slot, &ty, &mask, &None);
            slot
        });
        let continuing = leaks.then(|| self.alloca(&ty));
        self.open[id] = Open {
            labels: [
                Some(merge.clone()),
                Some(cont.clone()),
                Some(header.clone()),
            ],
            arrivals: [gathered.clone(), continuing.clone(), None],
            running: running.clone(),
        };
        self.text.jump(&header);
        self.text.begin(&header);
        // What is within does not dominate what comes after: the text may leave from anywhere.
        let chain = self.new_chain(cx.chain);
        let mut inner = cx.clone();
        inner.chain = chain;
        inner.end = cont.clone();
        if let Some(running) = &running {
            let mask = self
                .text
                .def(&format!("load {ty}, ptr {running}, align 64"));
            inner.mask = Some(mask);
        }
        if let Some(continuing) = &continuing {
            self.store_slot(continuing, &ty, "zeroinitializer", &None);
        }
        self.chain(&l.body, inner.clone())?;
        self.text.begin(&cont);
        let gone = if reached {
            merge.clone()
        } else {
            cx.end.clone()
        };
        let mut latch = inner;
        latch.end = gone.clone();
        // The text may come here from anywhere in the body.
        latch.chain = self.new_chain(cx.chain);
        if let Some(continuing) = &continuing {
            let mask = self
                .text
                .def(&format!("load {ty}, ptr {continuing}, align 64"));
            let any = self.any(&mask);
            let on = self.text.label();
            self.text.branch(&any, &on, &gone);
            self.text.begin(&on);
            latch.mask = Some(mask);
        }
        if l.latch.items.is_empty() {
            self.text.jump(&gone);
        } else if let Some(running) = running.filter(|_| gather) {
            let again = self.text.label();
            latch.end = again.clone();
            self.store_slot(&running, &ty, "zeroinitializer", &None);
            self.chain(&l.latch, latch)?;
            self.text.begin(&again);
            let mask = self
                .text
                .def(&format!("load {ty}, ptr {running}, align 64"));
            let any = self.any(&mask);
            self.text.branch(&any, &header, &gone);
        } else {
            self.chain(&l.latch, latch)?;
        }
        if !reached {
            return Ok(None);
        }
        Ok(Some(self.meet(&merge, gathered.as_deref(), &cx)))
    }
}

/// Takes so long that it is worth a branch to leave it out.
pub fn is_slow(op: Op) -> bool {
    matches!(
        op,
        Op::SDiv | Op::UDiv | Op::SRem | Op::URem | Op::FRem | Op::FDiv | Op::FSqrt
    )
}
