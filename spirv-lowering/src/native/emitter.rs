//! What is known while a region is written: the text so far, where values lie, and the small things of which all else is made.

use super::classes::Classes;
use super::slots::Places;
use super::text::{constant, scalar, Text};
use super::tree::{ConstructId, Tree};
use super::{Locals, Packing, Region, Shape};
use crate::ir::entity::{Block, SecondaryMap, Value};
use crate::ir::function::Function;
use crate::ir::types::Type;
use rustc_hash::{FxHashMap, FxHashSet};

/// The lanes that run. None: all.
pub type Mask = Option<String>;

/// Where a chain is.
#[derive(Clone)]
pub struct Context {
    /// The lanes that run.
    pub mask: Mask,
    /// Some lane surely does.
    pub some: bool,
    /// The chain's number.
    pub chain: usize,
    /// The label to go to when no lane is left.
    pub end: String,
    /// The block.
    pub block: Block,
}

/// The labels and slots of a construct that is open.
#[derive(Clone, Default)]
pub struct Open {
    pub labels: [Option<String>; 3],
    /// Slots that gather the lanes which come to the merge block and to the continue target.
    pub arrivals: [Option<String>; 3],
    /// Of a loop: the slot that says whether some lane has come to the continue target.
    pub some_continue: Option<String>,
    /// The slot with the lanes that run the next iteration.
    pub running: Option<String>,
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
    /// See [`Shape`].
    pub halves_apart: bool,
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
    /// Where values lie.
    pub places: Places<'a>,
    pub open: Vec<Open>,
    /// The name of the slot for the next region.
    pub next: Option<String>,
    /// The label at the end of a pack.
    pub done: String,
    /// The classes of one lane alone.
    pub of_one_lane: &'a Classes,
    /// What LLVM is told of a loop at its edge back, see `serial`.
    pub hint: Option<(ConstructId, String)>,
    /// Variables on the stack.
    pub arrays: SecondaryMap<crate::ir::entity::Var, Option<String>>,
    /// Names of the group's and pack's numbers.
    pub ids: super::ids::Ids,
}

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
            halves_apart: shape.halves_apart,
            frame: None,
            text: Text::default(),
            allocas: Text::default(),
            prologue: Text::default(),
            loaded: FxHashMap::default(),
            declared,
            places: Places::new(wanted),
            open: vec![Open::default(); tree.constructs.len()],
            next: None,
            done: String::new(),
            of_one_lane,
            hint: None,
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

    pub fn any(&mut self, mask: &str) -> String {
        let bits = self.mask_bits(&Some(mask.to_owned()));
        self.text.def(&format!("icmp ne i{} {bits}, 0", self.lanes))
    }

    pub fn and(&mut self, mask: &Mask, other: &str) -> String {
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
}
