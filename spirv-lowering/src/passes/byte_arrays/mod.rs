//! Turns byte-addressed memory of a work-group or work-item into arrays, for `lower_local` and
//! `lower_private`.
//!
//! Variables that one pointer may point into belong to one *class* (union-find over additions,
//! selections, block parameters). Pointers that are stored to memory or turned into integers, and
//! integers that are turned into pointers, all belong to the class of the escaped variables. Each
//! class becomes one array; within it a pointer is the 32-bit byte offset from its start.
//!
//! Seen as an integer (`PtrToInt`, in memory, in comparisons) a pointer is its class's base plus
//! that offset. The bases follow one another and leave out the lowest bytes, so that null differs
//! from every pointer.
//!
//! The array's elements have the width that all accesses agree on. Otherwise they have, in private
//! memory, the width that costs least (see `width`), and in shared memory the narrowest. Wider
//! accesses are put together from several elements, narrower ones read or replace a part of one. If
//! there are atomics, the elements have their width, and narrower accesses take part of an element
//! (narrower stores by atomic and/or where others may write to the rest of it). With an explicit
//! layout for shared memory there is one class with an array for each width, one on top of the
//! other.
//!
//! A pointer in memory may be other data of 64 bits (the other member of a union). Where such a
//! pointer is only moved, all of its bits are (see `data`).
//!
//! In shared memory, where every access is to a whole vector of 2 or 4 elements at a multiple of
//! its size, the vector is the array's element: one access where the components would be as many.
//!
//! Arrays in private memory have some unused bytes after them, for programs that write past their
//! ends.

mod access;
mod classes;
mod data;
mod width;

use access::is_access;
use width::Costs;

use crate::claims::alias_set;
use crate::error::{LowerError, Result};
use crate::ir::entity::{GlobalId, Inst, SecondaryMap, Value, Var};
use crate::ir::function::{Function, Storage, ValueDef, VarData, VarLen};
use crate::ir::op::{IntCond, Op};
use crate::ir::types::{Space, Type};
use rustc_hash::FxHashMap;

/// The base of the first class: aligned, and not null.
const FIRST: u32 = CLASS_ALIGN;
/// The alignment of classes and of local arguments: that of the largest type of OpenCL C, double16.
const CLASS_ALIGN: u32 = crate::interface::LOCAL_ARG_ALIGN;

/// The highest alignment of a variable.
const MOST_ALIGN: u32 = 4096;

/// The most unused bytes after an array in private memory.
const MOST_ROOM: u32 = 256;

/// Returns the number of unused bytes after an array of `size` bytes in private memory.
///
/// Programs write past the end of such arrays, and nobody notices where a compiler lays out a stack
/// with other arrays after them. Function storage is followed by memory of the driver, and the
/// kernel does not end.
fn room(size: u32) -> u32 {
    size.min(MOST_ROOM)
}

/// The way that a function refers to a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Name {
    /// By `GlobalAddr`.
    Global(GlobalId),
    /// The value itself: an `Alloca`, or a parameter of the entry block.
    Value(Value),
}

/// A variable.
#[derive(Debug, Clone, Copy)]
pub struct Variable {
    /// Its name.
    pub name: Name,
    /// Size in bytes, or the specialisation constant that has it.
    pub size: Size,
    /// Alignment in bytes.
    pub align: u32,
}

impl Variable {
    /// Returns the alignment at which the variable is placed.
    fn alignment(&self) -> u32 {
        self.align.clamp(1, MOST_ALIGN).next_power_of_two()
    }
}

/// The size of a variable.
#[derive(Debug, Clone, Copy)]
pub enum Size {
    /// Bytes.
    Fixed(u32),
    /// Specialisation constant with the bytes, a multiple of [`LOCAL_ARG_ALIGN`](crate::interface::LOCAL_ARG_ALIGN).
    Spec(u32),
}

/// The memory to lower.
pub struct ByteArrayPlan {
    /// Address space.
    pub space: Space,
    /// Storage of the arrays.
    pub storage: Storage,
    /// The variables.
    pub variables: Vec<Variable>,
    /// Set if arrays may overlay one another.
    pub explicit_layout: bool,
}

#[derive(Default)]
struct Class {
    variables: Vec<Variable>,
    /// The widths of accesses at natural alignment: bits for 1, 2, 4, 8 bytes.
    widths: u32,
    /// The same for atomics.
    atomics: u32,
    /// The costs of the accesses, by the width of an element.
    costs: Costs,
    /// Bytes accessed as floats minus those accessed as integers, for the choice of the element type.
    float_weight: i64,
    float_atomics: bool,
    /// Width of an element.
    width: u32,
    elem: Option<Type>,
    /// The number of components that every access has, at a multiple of their size; 0 before the
    /// first access.
    lanes: u32,
    /// Set if an access is through a volatile pointer.
    volatile: bool,
    var: Option<Var>,
    /// The fixed part of the base and of the length.
    base: u32,
    size: u32,
    base_specs: Vec<u32>,
    specs: Vec<u32>,
    /// The base if it is not constant.
    base_value: Option<Value>,
}

struct Lower<'f> {
    func: &'f mut Function,
    plan: ByteArrayPlan,
    parent: Vec<u32>,
    classes: Vec<Class>,
    class_of_root: FxHashMap<u32, usize>,
    /// Set if all variables are in one class.
    single: bool,
    /// The pointers into the space, and their classes, as they were before types changed.
    ours: SecondaryMap<Value, bool>,
    class: SecondaryMap<Value, u32>,
    /// The offset in its class of each variable.
    offsets: FxHashMap<Name, Offset>,
    out: Vec<Inst>,
    line: u32,
    /// The first instruction that this pass made.
    first_own: usize,
    /// The pointers that may be data, with the 64 bits that they came from (see `data`).
    whole: FxHashMap<Value, Value>,
    /// Arrays by element type, for the explicit layout.
    overlays: FxHashMap<Type, Var>,
}

#[derive(Clone, Copy)]
enum Offset {
    Fixed(u32),
    Value(Value),
}

/// Returns the alias sets of the memory at each pointer into a space, as a bit each: the classes.
pub fn alias_sets(func: &Function, space: Space) -> SecondaryMap<Value, u64> {
    let mut func = func.clone();
    let plan = ByteArrayPlan {
        space,
        storage: Storage::Function,
        variables: Vec::new(),
        explicit_layout: false,
    };
    let mut lower = Lower::new(&mut func, plan);
    lower.unite();
    let mut sets = SecondaryMap::new();
    for value in lower.func.values.keys().collect::<Vec<_>>() {
        if lower.func.ty(value) == Type::Ptr(space) {
            sets[value] = alias_set(lower.class(value) as u32);
        }
    }
    sets
}

/// Runs the lowering. Returns the bytes of fixed size.
pub fn run(func: &mut Function, plan: ByteArrayPlan) -> Result<u32> {
    let mut lower = Lower::new(func, plan);
    let explicit = lower.plan.explicit_layout;
    lower.unite();
    lower.collect(false)?;
    if lower.doubt_alignments() {
        lower.collect(false)?;
    }
    if explicit && lower.classes.iter().any(|c| !c.agrees()) {
        lower.collect(true)?;
    } else {
        lower.plan.explicit_layout = false;
    }
    lower.lay_out();
    lower.rewrite()
}

impl Class {
    /// Returns true if all accesses have one width, so that one array of elements of that width serves them.
    fn agrees(&self) -> bool {
        !self.float_atomics && (self.widths | self.atomics).count_ones() <= 1
    }
}

impl<'f> Lower<'f> {
    fn new(func: &'f mut Function, plan: ByteArrayPlan) -> Self {
        Self {
            parent: (0..=func.values.len() as u32).collect(),
            first_own: func.insts.len(),
            func,
            plan,
            classes: Vec::new(),
            class_of_root: FxHashMap::default(),
            single: false,
            ours: SecondaryMap::new(),
            class: SecondaryMap::new(),
            offsets: FxHashMap::default(),
            out: Vec::new(),
            line: 0,
            whole: FxHashMap::default(),
            overlays: FxHashMap::default(),
        }
    }

    /// Places variables in classes and classes one after the other, and declares the arrays.
    fn lay_out(&mut self) {
        let mut at = FIRST;
        let mut specs: Vec<u32> = Vec::new();
        // What comes after a local argument is aligned as those are, and no more.
        let has_spec = |v: &Variable| matches!(v.size, Size::Spec(_));
        let mut order: Vec<usize> = (0..self.classes.len()).collect();
        order.sort_by_key(|&c| self.classes[c].variables.iter().any(has_spec));
        for c in order {
            let class = &mut self.classes[c];
            let aligns = class.variables.iter().map(Variable::alignment);
            at = at.next_multiple_of(aligns.fold(CLASS_ALIGN, u32::max));
            class.base = at;
            class.base_specs.clone_from(&specs);
            // Those of fixed size first.
            class.variables.sort_by_key(has_spec);
            let variables = class.variables.clone();
            let shared = self.plan.storage == Storage::Workgroup && !self.plan.explicit_layout;
            // Accesses of one number of lanes may still be of several sizes.
            if !shared || class.atomics != 0 || class.widths.count_ones() != 1 {
                class.lanes = 1;
            }
            class.lanes = class.lanes.max(1);
            // All accesses say that they are to whole vectors, whatever the variables are aligned to.
            let vector = class.widths.max(1) * class.lanes;
            let mut size = 0u32;
            let mut placed = Vec::new();
            for v in &variables {
                size = size.next_multiple_of(v.alignment());
                if class.lanes > 1 {
                    size = size.next_multiple_of(vector);
                }
                match v.size {
                    Size::Fixed(bytes) => {
                        placed.push((v.name, size, class.specs.clone()));
                        size = size.saturating_add(bytes.max(1));
                    }
                    Size::Spec(id) => {
                        size = size.next_multiple_of(CLASS_ALIGN);
                        placed.push((v.name, size, class.specs.clone()));
                        class.specs.push(id);
                    }
                }
            }
            class.size = size.next_multiple_of(if class.specs.is_empty() {
                16
            } else {
                CLASS_ALIGN
            });
            let private = self.plan.storage == Storage::Function;
            if private {
                class.size = class.size.saturating_add(room(class.size));
            }
            at = at.saturating_add(class.size);
            specs.extend(&class.specs);
            class.width = if class.atomics != 0 {
                1 << class.atomics.ilog2()
            } else if private && class.widths.count_ones() > 1 {
                class.costs.cheapest()
            } else if class.widths != 0 {
                1 << class.widths.trailing_zeros()
            } else {
                4
            };
            let uniform = class.widths == class.width && class.atomics == 0;
            let bits = class.width * 8;
            let float = if uniform && class.float_weight > 0 {
                Type::float(bits)
            } else {
                None
            };
            class.elem = float.or(Type::int(bits));
            for (name, fixed, before) in placed {
                let offset = if before.is_empty() {
                    Offset::Fixed(fixed)
                } else {
                    Offset::Value(self.sum(fixed, &before))
                };
                self.offsets.insert(name, offset);
            }
            let (base, before) = (self.classes[c].base, self.classes[c].base_specs.clone());
            if !before.is_empty() {
                let value = self.sum(base, &before);
                self.classes[c].base_value = Some(value);
            }
        }
    }

    /// Computes a constant plus sizes of local arguments.
    fn sum(&mut self, fixed: u32, specs: &[u32]) -> Value {
        let mut value = self.konst(Type::I32, fixed.into());
        for &spec in specs {
            let size = self.op(Op::SpecSize(spec), &[], Type::I32);
            value = self.op(Op::IAdd, &[value, size], Type::I32);
        }
        value
    }

    /// Returns the array of a class with elements of a type (the type matters with an explicit
    /// layout only).
    fn array(&mut self, class: usize, elem: Type) -> Var {
        if self.plan.explicit_layout {
            if let Some(&var) = self.overlays.get(&elem) {
                return var;
            }
        } else if let Some(var) = self.classes[class].var {
            return var;
        }
        let c = &self.classes[class];
        let lanes = c.lanes.max(1);
        // Sizes of local arguments are not zero.
        let least = u32::from(c.specs.is_empty());
        let fixed = (c.size / (elem.size() * lanes)).max(least);
        let len = VarLen {
            fixed,
            spec: c.specs.clone(),
        };
        let alias = self.plan.explicit_layout.then_some(0);
        let var = self.func.vars.push(VarData {
            storage: self.plan.storage,
            elem,
            lanes,
            volatile: c.volatile,
            len,
            alias,
        });
        if self.plan.explicit_layout {
            self.overlays.insert(elem, var);
        } else {
            self.classes[class].var = Some(var);
        }
        var
    }

    // --- emission

    fn inst(&mut self, op: Op, args: &[Value], results: &[Type]) -> Inst {
        let inst = self.func.make_inst(op, args.iter().copied(), results);
        self.func.insts[inst].line = self.line;
        self.out.push(inst);
        inst
    }

    fn op(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        let inst = self.inst(op, args, &[ty]);
        self.func.insts[inst].results[0]
    }

    /// Inserts an instruction that defines a value that exists already.
    fn define(&mut self, value: Value, op: Op, args: &[Value], ty: Type) {
        let inst = self.inst(op, args, &[]);
        self.func.insts[inst].results.push(value);
        self.func.values[value].def = ValueDef::Result(inst, 0);
        self.func.values[value].ty = ty;
    }

    fn konst(&mut self, ty: Type, bits: u64) -> Value {
        self.op(Op::Const(bits & ty.mask()), &[], ty)
    }

    fn add(&mut self, a: Value, by: u32) -> Value {
        if by == 0 {
            return a;
        }
        let by = self.konst(Type::I32, by.into());
        self.op(Op::IAdd, &[a, by], Type::I32)
    }

    fn shift(&mut self, op: Op, a: Value, by: u32) -> Value {
        if by == 0 {
            return a;
        }
        let ty = self.func.ty(a);
        let by = self.konst(ty, by.into());
        self.op(op, &[a, by], ty)
    }

    fn cast(&mut self, value: Value, to: Type) -> Value {
        let from = self.func.ty(value);
        if from == to {
            return value;
        }
        let (from_int, to_int) = (from.as_int().unwrap_or(from), to.as_int().unwrap_or(to));
        let mut v = value;
        if from.is_float() {
            v = self.op(Op::Bitcast, &[v], from_int);
        }
        match from_int.bits().cmp(&to_int.bits()) {
            std::cmp::Ordering::Less => v = self.op(Op::ZExt, &[v], to_int),
            std::cmp::Ordering::Greater => v = self.op(Op::Trunc, &[v], to_int),
            std::cmp::Ordering::Equal => {}
        }
        if to.is_float() {
            v = self.op(Op::Bitcast, &[v], to);
        }
        v
    }

    fn base(&mut self, class: usize) -> Value {
        match self.classes[class].base_value {
            Some(v) => v,
            None => self.konst(Type::I32, self.classes[class].base.into()),
        }
    }

    /// Converts a pointer to a 64-bit integer.
    fn to_int(&mut self, pointer: Value, class: usize) -> Value {
        let base = self.base(class);
        let whole = self.op(Op::IAdd, &[pointer, base], Type::I32);
        self.op(Op::ZExt, &[whole], Type::I64)
    }

    /// Converts a 64-bit integer to a pointer value.
    fn from_int(&mut self, result: Value, bits: Value, class: usize) {
        let base = self.base(class);
        let low = self.op(Op::Trunc, &[bits], Type::I32);
        self.define(result, Op::ISub, &[low, base], Type::I32);
    }

    /// Returns the low half of a 64-bit value, computed in 32 bits where that is cheap.
    fn low(&mut self, value: Value, depth: u32) -> Value {
        let Some(inst) = self.func.def_inst(value) else {
            return self.cast(value, Type::I32);
        };
        let data = self.func.insts[inst].clone();
        match data.op {
            Op::Const(bits) => self.konst(Type::I32, bits),
            Op::ZExt | Op::SExt if self.func.ty(data.args[0]) == Type::I32 => data.args[0],
            Op::ZExt | Op::SExt => {
                let op = data.op;
                self.op(op, &[data.args[0]], Type::I32)
            }
            Op::IAdd | Op::ISub | Op::IMul | Op::And | Op::Or | Op::Xor if depth < 6 => {
                let a = self.low(data.args[0], depth + 1);
                let b = self.low(data.args[1], depth + 1);
                self.op(data.op, &[a, b], Type::I32)
            }
            Op::INeg if depth < 6 => {
                let a = self.low(data.args[0], depth + 1);
                self.op(Op::INeg, &[a], Type::I32)
            }
            Op::Shl if depth < 6 && self.func.as_const(data.args[1]).is_some_and(|by| by < 32) => {
                let a = self.low(data.args[0], depth + 1);
                let by = self.low(data.args[1], depth + 1);
                self.op(Op::Shl, &[a, by], Type::I32)
            }
            _ => self.cast(value, Type::I32),
        }
    }

    // --- rewriting

    fn rewrite(mut self) -> Result<u32> {
        let Some(entry) = self.func.entry() else {
            return Ok(0);
        };
        let ours = Type::Ptr(self.plan.space);
        // Classes are asked for by value below, while types change: note them first.
        let values: Vec<Value> = self
            .func
            .values
            .keys()
            .filter(|&v| self.func.ty(v) == ours)
            .collect();
        for &v in &values {
            let class = self.class(v) as u32;
            self.class[v] = class;
            self.ours[v] = true;
        }
        let escaped = self.class_at(self.escaped());
        self.find_data();

        // `out` has the sums that lay_out made; local arguments stop being parameters.
        let old_params = std::mem::take(&mut self.func.blocks[entry].params);
        let mut params = Vec::new();
        let mut types = Vec::new();
        for (i, &param) in old_params.iter().enumerate() {
            if self.func.ty(param) == ours {
                self.define_offset(param, Name::Value(param));
            } else {
                self.func.values[param].def = ValueDef::Param(entry, params.len() as u32);
                params.push(param);
                types.extend(self.func.params.get(i));
            }
        }
        self.func.blocks[entry].params = params;
        self.func.params = types;
        for &v in &values {
            self.func.values[v].ty = Type::I32;
        }

        for block in self.func.layout.clone() {
            let insts = std::mem::take(&mut self.func.blocks[block].insts);
            for inst in insts {
                self.line = self.func.insts[inst].line;
                self.one(inst, escaped)?;
            }
            self.pass_data(block);
            self.func.blocks[block].insts = std::mem::take(&mut self.out);
        }
        // Classes that are asked for after the lay-out are empty and have no place.
        let sizes = self.classes.iter().map(|c| c.size);
        Ok(sizes.fold(0, u32::saturating_add))
    }

    fn define_offset(&mut self, value: Value, name: Name) {
        match self.offsets.get(&name).copied() {
            Some(Offset::Fixed(at)) => self.define(value, Op::Const(at.into()), &[], Type::I32),
            Some(Offset::Value(sum)) => {
                let zero = self.konst(Type::I32, 0);
                self.define(value, Op::IAdd, &[sum, zero], Type::I32);
            }
            None => self.define(value, Op::Undef, &[], Type::I32),
        }
    }

    fn one(&mut self, inst: Inst, escaped: usize) -> Result<()> {
        let data = self.func.insts[inst].clone();
        let result = data.results.first().copied();
        match data.op {
            Op::GlobalAddr(id) if result.is_some_and(|v| self.was_ours(v)) => {
                self.define_offset(data.results[0], Name::Global(id));
                return Ok(());
            }
            Op::Alloca { .. } if result.is_some_and(|v| self.was_ours(v)) => {
                self.define_offset(data.results[0], Name::Value(data.results[0]));
                return Ok(());
            }
            Op::Const(bits) if result.is_some_and(|v| self.was_ours(v)) => {
                let base = self.base(self.class_of(data.results[0]));
                if let Some(&whole) = self.whole.get(&data.results[0]) {
                    self.define(whole, Op::Const(bits), &[], Type::I64);
                }
                let value = self.konst(Type::I32, bits);
                self.define(data.results[0], Op::ISub, &[value, base], Type::I32);
                return Ok(());
            }
            Op::PtrAdd if self.was_ours(data.args[0]) => {
                if let Some(&bits) = self.whole.get(&data.results[0]) {
                    let base = self.bits(data.args[0]);
                    self.define(bits, Op::IAdd, &[base, data.args[1]], Type::I64);
                }
                let by = self.low(data.args[1], 0);
                self.define(data.results[0], Op::IAdd, &[data.args[0], by], Type::I32);
                return Ok(());
            }
            Op::ICmp(cond) if self.was_ours(data.args[0]) || self.was_ours(data.args[1]) => {
                let (a, b) = (data.args[0], data.args[1]);
                let same = self.class_of(a) == self.class_of(b);
                let equality = matches!(cond, IntCond::Eq | IntCond::Ne);
                if same && equality {
                    self.out.push(inst);
                    return Ok(());
                }
                let a = self.to_int(a, self.class_of(a));
                let b = self.to_int(b, self.class_of(b));
                self.define(data.results[0], Op::ICmp(cond), &[a, b], Type::Bool);
                return Ok(());
            }
            Op::Bitcast | Op::SpaceCast | Op::PtrToInt | Op::IntToPtr => {
                let (from, to) = (data.args[0], data.results[0]);
                match (self.was_ours(from), self.was_ours(to)) {
                    (true, true) => {
                        if let Some(&bits) = self.whole.get(&to) {
                            let (same, zero) = (self.bits(from), self.konst(Type::I64, 0));
                            self.define(bits, Op::IAdd, &[same, zero], Type::I64);
                        }
                        let zero = self.konst(Type::I32, 0);
                        self.define(to, Op::IAdd, &[from, zero], Type::I32);
                    }
                    (true, false) => {
                        let ty = self.func.ty(to);
                        if ty.is_ptr() {
                            let bits = self.bits(from);
                            self.define(to, Op::IntToPtr, &[bits], ty);
                        } else if let Some(&bits) = self.whole.get(&from) {
                            let zero = self.konst(Type::I64, 0);
                            self.define(to, Op::IAdd, &[bits, zero], Type::I64);
                        } else {
                            let base = self.base(self.class_of(from));
                            let whole = self.op(Op::IAdd, &[from, base], Type::I32);
                            self.define(to, Op::ZExt, &[whole], Type::I64);
                        }
                    }
                    (false, true) => {
                        let bits = if self.func.ty(from).is_ptr() {
                            self.op(Op::PtrToInt, &[from], Type::I64)
                        } else {
                            from
                        };
                        if let Some(&whole) = self.whole.get(&to) {
                            let zero = self.konst(Type::I64, 0);
                            self.define(whole, Op::IAdd, &[bits, zero], Type::I64);
                        }
                        self.from_int(to, bits, self.class_of(to));
                    }
                    _ => self.out.push(inst),
                }
                return Ok(());
            }
            Op::Select => {
                if let Some(&bits) = result.and_then(|v| self.whole.get(&v)) {
                    let (a, b) = (self.bits(data.args[1]), self.bits(data.args[2]));
                    self.define(bits, Op::Select, &[data.args[0], a, b], Type::I64);
                }
                self.out.push(inst);
                return Ok(());
            }
            Op::MemCopy { .. } if data.args.iter().any(|&v| self.was_ours(v)) => {
                return Err(LowerError::internal("a memory copy was not expanded"));
            }
            _ => {}
        }
        // Pointers of ours that are stored or passed, loaded or returned, are integers there.
        let address = is_access(data.op) && data.args.first().is_some_and(|&v| self.was_ours(v));
        let mut data = data;
        for i in usize::from(address)..data.args.len() {
            let v = data.args[i];
            if self.was_ours(v) {
                data.args[i] = self.bits(v);
            }
        }
        let mut fixups: Vec<(Value, Value)> = Vec::new();
        for i in 0..data.results.len() {
            let v = data.results[i];
            if self.was_ours(v) && !matches!(data.op, Op::Undef) {
                let bits = match self.whole.get(&v) {
                    Some(&bits) => {
                        self.func.values[bits].def = self.func.values[v].def;
                        bits
                    }
                    None => self.func.values.push(self.func.values[v]),
                };
                self.func.values[bits].ty = Type::I64;
                data.results[i] = bits;
                fixups.push((v, bits));
            }
        }
        if address {
            self.access(&data, self.class_of(data.args[0]))?;
        } else {
            self.func.insts[inst] = data;
            self.out.push(inst);
        }
        for (v, bits) in fixups {
            self.from_int(v, bits, escaped);
        }
        Ok(())
    }

    fn was_ours(&self, value: Value) -> bool {
        self.ours[value]
    }

    fn class_of(&self, value: Value) -> usize {
        self.class[value] as usize
    }
}
