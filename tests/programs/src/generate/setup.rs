//! The frame of a program: options, structs, tables, functions, the kernel, its arguments, the ND-range.

use super::{Gen, Style, THREE};
use crate::ast::*;
use crate::types::{has_threes, scalars, size, Scalar, Space, Struct, Type};
use pumice_tests::rng::Rng;
use std::rc::Rc;

/// Chooses the features of a program.
pub fn style(rng: &mut Rng) -> Style {
    let standard = *rng.pick(&[11, 12, 12, 20, 20, 30, 30, 30, 30, 30]);
    let sync = rng.percent(60);
    Style {
        standard,
        half: rng.percent(15),
        double: rng.percent(15),
        floats: rng.percent(50),
        relaxed: rng.percent(10),
        sync,
        sub_groups: sync && standard == 30 && rng.percent(45),
        printf: rng.percent(10) && standard >= 12,
        depth: 2 + rng.below(3),
    }
}

/// A program with nothing in it but options.
pub fn empty(style: &Style) -> Program {
    let mut pragmas = Vec::new();
    if style.double && style.standard < 12 {
        pragmas.push("#pragma OPENCL EXTENSION cl_khr_fp64 : enable".to_owned());
    }
    if style.half {
        pragmas.push("#pragma OPENCL EXTENSION cl_khr_fp16 : enable".to_owned());
    }
    if style.standard < 20 {
        pragmas.push("#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable".to_owned());
    }
    Program {
        structs: Vec::new(),
        globals: Vec::new(),
        functions: Vec::new(),
        options: String::new(),
        pragmas,
        attributes: String::new(),
        args: Vec::new(),
        range: Range {
            dims: 1,
            global: [1; 3],
            local: [1; 3],
            offset: [0; 3],
        },
        sub_groups: style.sub_groups,
        sub_group_size: 0,
    }
}

impl Gen {
    pub(super) fn program(&mut self) {
        self.options();
        self.range();
        for _ in 0..self.below(3) {
            self.structure();
        }
        for _ in 0..self.below(3) {
            self.table();
        }
        for _ in 0..self.below(4) {
            self.helper();
        }
        if self.style.standard >= 20 && self.percent(12) {
            self.child();
        }
        self.attributes();
        self.kernel();
    }

    fn options(&mut self) {
        let Style {
            standard, relaxed, ..
        } = self.style;
        let mut options = format!("-cl-std=CL{}.{}", standard / 10, standard % 10);
        if self.percent(25) {
            options += " -cl-opt-disable";
        }
        if self.percent(10) {
            options += " -g";
        }
        if relaxed {
            options += self.pick(&[
                " -cl-fast-relaxed-math",
                " -cl-unsafe-math-optimizations",
                " -cl-no-signed-zeros",
            ]);
        } else if self.percent(10) {
            options += " -cl-mad-enable";
        }
        self.program.options = options;
    }

    fn range(&mut self) {
        let dims = self.pick(&[1, 1, 1, 2, 3]);
        let mut range = Range {
            dims,
            global: [1; 3],
            local: [1; 3],
            offset: [0; 3],
        };
        let most = if self.percent(8) { 3000 } else { 300 };
        let uneven = self.style.standard >= 20 && self.percent(40);
        let mut left = most;
        for dim in 0..dims {
            let sizes: &[usize] = match dims {
                1 => &[1, 7, 8, 16, 20, 32, 33, 64, 100, 128],
                2 => &[1, 3, 5, 8, 16],
                _ => &[1, 2, 3, 4, 5],
            };
            let local = self.pick(sizes).min(left) as u64;
            let groups = 1 + self.below((left / local as usize).clamp(1, 4)) as u64;
            let mut global = local * groups;
            if uneven && local > 1 {
                global -= self.below(local as usize) as u64;
            }
            if dim == 0 && most > 1000 && dims == 1 {
                global = local * (1 + self.below(most / local as usize)) as u64;
            }
            let local = local.min(global);
            range.global[dim] = global;
            range.local[dim] = local;
            left = (left / global as usize).max(1);
            if self.percent(30) {
                let near = self.pick(&[0u64, 1 << 31, 1 << 32, 1 << 8, 1 << 16, 1 << 33]);
                range.offset[dim] = near.saturating_sub(self.below(global as usize + 3) as u64);
                if near == 0 {
                    range.offset[dim] = self.below(40) as u64;
                }
            }
        }
        self.program.range = range;
    }

    /// A struct or union.
    fn structure(&mut self) {
        if self.percent(25) {
            // Of members of one size, all of whose bytes are numbers.
            let bytes = self.pick(&[4usize, 8, 16]);
            let mut fields = Vec::new();
            for _ in 0..2 + self.below(2) {
                let scalar = self.int_type();
                let lanes = bytes / scalar.bytes();
                fields.push(match lanes {
                    0 => Type::Num(Scalar::Uint, (bytes / 4) as u8),
                    1 => Type::scalar(scalar),
                    _ if self.percent(50) => Type::Num(scalar, lanes as u8),
                    _ => Type::Array(Rc::new(Type::scalar(scalar)), lanes),
                });
            }
            self.program.structs.push(Struct {
                fields,
                union: true,
            });
            return;
        }
        let mut fields = Vec::new();
        for _ in 0..1 + self.below(5) {
            let made = self.program.structs.len();
            fields.push(match self.below(6) {
                0 if made > 0 => Type::Struct(self.below(made)),
                1 => {
                    let element = Type::scalar(self.scalar_type());
                    Type::Array(Rc::new(element), self.pick(&[2, 4]))
                }
                2 => self.num_type(),
                _ => Type::scalar(self.scalar_type()),
            });
        }
        self.program.structs.push(Struct {
            fields,
            union: false,
        });
    }

    /// The bits of a scalar in memory.
    fn bits(&mut self, scalar: Scalar) -> u64 {
        if scalar.is_float() {
            let value = self.below(33) as f64 - 16.0;
            return crate::floats::exact(scalar, value).unwrap_or(0);
        }
        let Kind::Const(bits) = self.constant(scalar).kind else {
            return 0;
        };
        bits
    }

    /// A table of constants, or a variable of the program that nobody writes.
    fn table(&mut self) {
        let element = match self.below(4) {
            0 if !self.program.structs.is_empty() => self.struct_type(),
            1 => self.num_type(),
            _ => Type::scalar(self.scalar_type()),
        };
        let count = self.pick(&[4usize, 8, 16]);
        let ty = Type::Array(Rc::new(element), count);
        let space = if self.style.standard >= 20 && self.percent(25) {
            Space::Global
        } else {
            Space::Constant
        };
        let mut list = Vec::new();
        scalars(&ty, &self.program.structs, 0, &mut list);
        let init = list
            .into_iter()
            .map(|(_, scalar)| self.bits(scalar))
            .collect();
        let align = if self.percent(6) {
            1 << (5 + self.below(8))
        } else {
            0
        };
        self.program.globals.push(Global {
            ty,
            space,
            init,
            align,
        });
    }

    /// Brings the tables into scope.
    fn know_tables(&mut self) {
        for index in 0..self.program.globals.len() {
            let ty = self.program.globals[index].ty.clone();
            let place = Place {
                ty,
                kind: PlaceKind::Global(index),
            };
            self.know(place, false, false);
        }
    }

    /// The variable that results are mixed into.
    fn begin(&mut self, body: &mut Block) {
        self.hash = self.var(Type::scalar(Scalar::Ulong), Space::Private);
        body.push(Stmt::Declare(
            self.hash,
            vec![Expr::number(Scalar::Ulong, 7)],
        ));
        let place = self.place_of(self.hash);
        self.know(place, true, false);
    }

    /// A function for others to call.
    fn helper(&mut self) {
        self.vars = Vec::new();
        self.names = Default::default();
        self.in_kernel = false;
        self.uniform = false;
        self.depth = 1;
        self.budget = 3 + self.below(6);
        let params = 1 + self.below(4);
        let block = self.style.standard >= 20 && self.percent(15);
        let mut pointers = Vec::new();
        for _ in 0..params {
            let ty = match self.below(6) {
                0 if !self.program.structs.is_empty() => self.struct_type(),
                1 | 2 => {
                    let mut spaces = vec![Space::Private, Space::Global];
                    if self.style.standard >= 20 {
                        spaces.extend([Space::Generic; 2]);
                    }
                    let space = self.pick(&spaces);
                    let target = Type::scalar(self.pick(&[
                        Scalar::Uint,
                        Scalar::Uint,
                        Scalar::Ulong,
                        Scalar::Int,
                    ]));
                    Type::Pointer(space, Rc::new(target))
                }
                _ => self.num_type(),
            };
            let pointer = matches!(ty, Type::Pointer(..));
            let var = self.var(ty, Space::Private);
            if pointer {
                pointers.push(var);
            } else {
                let place = self.place_of(var);
                self.know(place, true, false);
            }
        }
        for var in pointers {
            let pointer = self.get(var);
            self.know_pointer(pointer, 2, true);
        }
        let mut params: Vec<usize> = (0..params).collect();
        if self.style.sync && self.percent(35) {
            let ty = Type::scalar(Scalar::Uint);
            let var = self.var(ty, Space::Private);
            let place = self.place_of(var);
            self.know(place, false, true);
            self.for_all
                .push((self.program.functions.len(), params.len()));
            params.push(var);
            self.uniform = true;
        }
        self.know_tables();
        self.result = Type::scalar(self.int_type());
        if !self.program.structs.is_empty() && self.percent(15) {
            self.result = self.struct_type();
        }
        let mut body = Block::new();
        self.begin(&mut body);
        body.extend(self.block(6));
        self.uniform = false;
        let hash = self.get(self.hash);
        let result = self.result.clone();
        if matches!(result, Type::Struct(_)) {
            // With it in all its scalars.
            let mut list = Vec::new();
            scalars(&result, &self.program.structs, 0, &mut list);
            let mut values = Vec::new();
            for (_, scalar) in list {
                values.push(self.convert(hash.clone(), &Type::scalar(scalar)));
            }
            let var = self.var(result.clone(), Space::Private);
            body.push(Stmt::Declare(var, values));
            body.push(Stmt::Return(Some(self.get(var))));
        } else {
            let value = self.convert(hash, &result);
            body.push(Stmt::Return(Some(value)));
        }
        self.program.functions.push(Function {
            result,
            params,
            vars: std::mem::take(&mut self.vars),
            body,
            noinline: self.rng.percent(25),
            block,
        });
    }

    /// A function that runs as a kernel of its own: a pointer, an element of which is its own, numbers, and which it is.
    fn child(&mut self) {
        self.vars = Vec::new();
        self.names = Default::default();
        self.in_kernel = false;
        self.uniform = false;
        self.depth = 1;
        self.budget = 6;
        let uint = Type::scalar(Scalar::Uint);
        let pointer = self.var(
            Type::Pointer(Space::Global, Rc::new(uint.clone())),
            Space::Private,
        );
        let number = self.num_type();
        let number = self.var(number, Space::Private);
        let id = self.var(uint.clone(), Space::Private);
        for var in [number, id] {
            let place = self.place_of(var);
            self.know(place, false, false);
        }
        self.know_tables();
        self.result = Type::Void;
        let at = self.get(pointer).moved(self.get(id));
        self.know_pointer(at.clone(), 1, true);
        let mut body = Block::new();
        self.begin(&mut body);
        body.extend(self.block(5));
        let hash = self.get(self.hash).to(Scalar::Uint);
        let old = at.clone().deref().load();
        let sum = Expr::binary(Binary::Add, old, hash);
        body.push(Stmt::Assign(at.deref(), None, sum));
        self.enqueued = Some(self.program.functions.len());
        self.program.functions.push(Function {
            result: Type::Void,
            params: vec![pointer, number, id],
            vars: std::mem::take(&mut self.vars),
            body,
            noinline: false,
            block: false,
        });
    }

    /// Chooses the attributes of the kernel.
    fn attributes(&mut self) {
        let Range { global, local, .. } = self.program.range;
        let even = (0..3).all(|dim| global[dim] % local[dim] == 0);
        if even && self.percent(12) {
            let [x, y, z] = local;
            self.program.attributes =
                format!("__attribute__((reqd_work_group_size({x}, {y}, {z}))) ");
        }
        if self.style.sub_groups && self.percent(40) {
            let size = self.pick(&[8, 8, 16, 32, 4, 64]);
            self.program.sub_group_size = size;
            self.program.attributes +=
                &format!("__attribute__((intel_reqd_sub_group_size({size}))) ");
        }
    }

    /// Images to read and to write.
    fn images(&mut self, items: usize) {
        if self.style.standard < 12 || !self.percent(12) {
            return;
        }
        let sampler = "constant sampler_t sampler = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;";
        self.program.pragmas.push(sampler.to_owned());
        for write in [false, true] {
            let channel = self.pick(&crate::case::CHANNELS);
            let channels = self.pick(&[1, 4]);
            let (width, height) = match write {
                true => (16, items.div_ceil(16)),
                false => (self.pick(&[4, 8, 16]), self.pick(&[1, 4, 8])),
            };
            let mut bytes = Vec::new();
            for _ in 0..width * height * channels {
                let bits = self.bits(channel);
                bytes.extend_from_slice(&bits.to_le_bytes()[..channel.bytes()]);
            }
            let number = match channel {
                Scalar::Float => Scalar::Float,
                other if other.is_signed() => Scalar::Int,
                _ => Scalar::Uint,
            };
            let image = ImageData {
                channel,
                channels,
                width,
                height,
                bytes,
            };
            let var = self.param(Type::Image(number, write), Arg::Image(image.clone()));
            if write {
                self.target = Some((var, image));
            } else {
                self.texture = Some((var, image));
            }
        }
    }

    /// Local memory that each work-item has a part of.
    fn own_local(&mut self, body: &mut Block) {
        if !self.percent(25) {
            return;
        }
        let scalar = self.int_type();
        let count = self.pick(&[2usize, 4]);
        let group = self.program.range.local.iter().product::<u64>() as usize;
        let elements = group * count;
        let array = if self.percent(50) {
            let element = Type::scalar(scalar);
            let ty = Type::Pointer(Space::Local, Rc::new(element));
            // Parameters come first.
            let var = self.var(ty, Space::Private);
            self.locals.push((var, elements * scalar.bytes()));
            self.get(var)
        } else {
            let ty = Type::Array(Rc::new(Type::scalar(scalar)), elements);
            let var = self.var(ty, Space::Local);
            self.place_of(var).index(Expr::int(0)).address(Space::Local)
        };
        let index = self.get(self.local_index);
        let first = Expr::binary(Binary::Mul, index, Expr::number(Scalar::Uint, count as u64));
        let at = array.moved(first);
        for i in 0..count {
            let value = self.int(scalar, 1);
            let element = at.clone().moved(Expr::int(i as i64)).deref();
            body.push(Stmt::Assign(element, None, value));
        }
        self.know_pointer(at, count, true);
    }

    /// A parameter of the kernel.
    fn param(&mut self, ty: Type, arg: Arg) -> usize {
        self.program.args.push(arg);
        self.var(ty, Space::Private)
    }

    fn buffer(&mut self, element: &Type, count: usize) -> Vec<u8> {
        let ty = Type::Array(Rc::new(element.clone()), count);
        let mut bytes = vec![0; size(&ty, &self.program.structs)];
        let mut list = Vec::new();
        scalars(&ty, &self.program.structs, 0, &mut list);
        for (at, scalar) in list {
            let bits = self.bits(scalar);
            bytes[at..at + scalar.bytes()].copy_from_slice(&bits.to_le_bytes()[..scalar.bytes()]);
        }
        bytes
    }

    fn kernel(&mut self) {
        self.vars = Vec::new();
        self.names = Default::default();
        self.in_kernel = true;
        self.uniform = true;
        self.depth = 0;
        self.result = Type::Void;
        self.budget = 8 + self.below(22);
        let items = self.program.range.items() as usize;
        let pointer = |space, element: &Type| Type::Pointer(space, Rc::new(element.clone()));
        let ulong = Type::scalar(Scalar::Ulong);
        let uint = Type::scalar(Scalar::Uint);
        let int = Type::scalar(Scalar::Int);

        let out = self.param(
            pointer(Space::Global, &ulong),
            Arg::Buffer(vec![0; items * 8]),
        );
        let words = self.buffer(&uint, 256);
        let space = self.pick(&[Space::Global, Space::Global, Space::Constant]);
        let input = self.param(pointer(space, &uint), Arg::Buffer(words));
        let n = self.pick(&[3u64, 3, 5, 1, 0, 64]);
        let n = self.param(uint.clone(), Arg::Value(Scalar::Uint, n));
        let threes = (0..items)
            .flat_map(|_| (*self.rng.pick(&THREE) as u32).to_le_bytes())
            .collect();
        self.three = Some(self.param(pointer(Space::Global, &int), Arg::Buffer(threes)));

        // Memory that each work-item has a part of.
        let mut own = Vec::new();
        for _ in 0..self.below(3) {
            let element = match self.below(5) {
                0 if !self.program.structs.is_empty() => self.struct_type(),
                1 => self.num_type(),
                _ => Type::scalar(self.pick(&[
                    Scalar::Uint,
                    Scalar::Uint,
                    Scalar::Ulong,
                    Scalar::Int,
                    Scalar::Uchar,
                    Scalar::Ushort,
                ])),
            };
            let floats = {
                let mut list = Vec::new();
                scalars(&element, &self.program.structs, 0, &mut list);
                list.iter().any(|(_, scalar)| scalar.is_float())
            };
            if floats && self.style.relaxed || has_threes(&element, &self.program.structs) {
                continue;
            }
            let count = self.pick(&[1usize, 2, 4, 8]);
            let bytes = self.buffer(&element, count * items);
            if bytes.len() > 60_000 {
                continue;
            }
            let var = self.param(pointer(Space::Global, &element), Arg::Buffer(bytes));
            own.push((var, count));
        }
        // Memory that all change.
        self.counters.clear();
        if self.percent(50) {
            let scalar = self.pick(&[Scalar::Uint, Scalar::Int, Scalar::Uint, Scalar::Ulong]);
            let wide = scalar.bits() == 64;
            let scalar = if wide { Scalar::Uint } else { scalar };
            let element = Type::scalar(scalar);
            let bytes = self.buffer(&element, 8);
            let var = self.param(pointer(Space::Global, &element), Arg::Buffer(bytes));
            self.vars[var].volatile = true;
            let pointer = self.get(var);
            self.counters.push(pointer);
        }
        self.images(items);
        if self.locks && self.percent(30) {
            let bytes = self.buffer(&uint, 2);
            let bytes = [[0; 4].as_slice(), &bytes[4..]].concat();
            let var = self.param(pointer(Space::Global, &uint), Arg::Buffer(bytes));
            self.vars[var].volatile = true;
            self.lock = Some(self.get(var));
        }
        if self.style.standard >= 20 && items <= 500 && self.percent(6) {
            self.pipe = self
                .counters
                .first()
                .cloned()
                .map(|counter| (self.param(Type::Pipe, Arg::Pipe(items)), counter));
        }
        let params = self.vars.len();

        let mut body = Block::new();
        let item = self.var(ulong, Space::Private);
        let id = |dim| {
            let (id, offset) = (
                Expr::query(Query::GlobalId, dim),
                Expr::query(Query::GlobalOffset, dim),
            );
            Expr::binary(Binary::Sub, id, offset)
        };
        let size = |dim| Expr::query(Query::GlobalSize, dim);
        let plane = Expr::binary(Binary::Mul, size(1), id(2));
        let row = Expr::binary(
            Binary::Mul,
            size(0),
            Expr::binary(Binary::Add, id(1), plane),
        );
        let index = Expr::binary(Binary::Add, id(0), row);
        body.push(Stmt::Declare(item, vec![index]));
        self.item = Some(item);
        self.local_index = self.var(uint, Space::Private);
        body.push(Stmt::Declare(self.local_index, vec![self.local_index()]));
        self.know_tables();
        let pointer = self.get(input);
        self.input = (space == Space::Global).then(|| pointer.clone());
        self.know_pointer(pointer, 256, false);
        if let Some(source) = self.names.sources.last_mut() {
            source.uniform = true;
        }
        let place = self.place_of(n);
        self.know(place, false, true);
        self.own_local(&mut body);
        for (var, count) in own {
            let first = Expr::binary(
                Binary::Mul,
                self.get(item),
                Expr::number(Scalar::Ulong, count as u64),
            );
            let at = self.get(var).moved(first);
            self.know_pointer(at.clone(), count, true);
            let whole = matches!(&self.vars[var].ty, Type::Pointer(_, t) if **t == Type::scalar(Scalar::Uint));
            if whole && count > 1 {
                self.children = Some((at, count));
            }
        }
        let place = self.place_of(item);
        self.know(place, false, false);
        self.begin(&mut body);
        if let Some((pipe, counter)) = self.pipe.clone() {
            // The counter that is only added to.
            body.push(Stmt::ReadPipe(pipe, counter));
            let fill = format!("kernel void fill(write_only pipe uint p) {{ uint packet = (uint)get_global_id(0) * {PACKET_FACTOR}u; write_pipe(p, &packet); }}");
            self.program.pragmas.push(fill);
        }
        body.extend(self.block(14));
        if self.budget > 10 {
            body.extend(self.block(14));
        }
        let last = self.get(out).moved(self.get(item)).deref();
        let hash = self.get(self.hash);
        body.push(Stmt::Assign(last, None, hash));
        let mut params: Vec<usize> = (0..params).collect();
        for (var, bytes) in std::mem::take(&mut self.locals) {
            params.push(var);
            self.program.args.push(Arg::Local(bytes));
        }
        self.program.functions.push(Function {
            result: Type::Void,
            params,
            vars: std::mem::take(&mut self.vars),
            body,
            noinline: false,
            block: false,
        });
    }
}
