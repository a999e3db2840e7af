//! The machine: work-items of one work-group at a time, each run until it waits for the others.

use super::code::{compile, Code, Op};
use super::memory::{Access, Object, Pointer, Region};
use super::numbers;
use super::Undefined;
use crate::ast::{packet, Arg, Collect, ImageData, Program, Pure, Query, Scope};
use crate::floats;
use crate::types::{sign_extend, size, Space, Type};

type Value = Vec<u64>;

/// Steps of all work-items after which a program is too long.
const MOST_STEPS: u64 = 12_000_000;

/// The results of a program.
#[derive(Debug, Clone)]
pub struct Results {
    /// The bytes of each buffer; None where they are not defined.
    pub buffers: Vec<Vec<Option<u8>>>,
    /// The printed lines, sorted, as work-items print in any order.
    pub lines: Vec<String>,
    /// Instructions carried out.
    pub steps: u64,
}

struct Frame {
    back: usize,
    base: usize,
}

/// A work-item.
struct Item {
    pc: usize,
    stack: Vec<Value>,
    frames: Vec<Frame>,
    vars: Vec<Object>,
    ended: bool,
    waits: bool,
    local: [u64; 3],
}

/// Where a work-group is.
struct Group {
    id: [u64; 3],
    size: [u64; 3],
}

struct Machine<'p> {
    program: &'p Program,
    code: Code,
    sub_group: usize,
    globals: Vec<Object>,
    /// How many of them are variables of the program.
    first_buffer: usize,
    locals: Vec<Object>,
    lines: Vec<String>,
    steps: u64,
    time: u32,
    begin: u32,
    /// Functions that run when all is done, with their operands, for so many work-items.
    children: Vec<(usize, Vec<Value>, usize)>,
    /// How many packets were read.
    packets: usize,
    group: Group,
    groups: [u64; 3],
}

/// Runs a program in sub-groups of so many work-items.
pub fn run(program: &Program, sub_group: usize) -> Result<Results, Undefined> {
    let mut globals = Vec::new();
    for global in &program.globals {
        let mut object = Object::empty(size(&global.ty, &program.structs), true);
        let mut list = Vec::new();
        crate::types::scalars(&global.ty, &program.structs, 0, &mut list);
        let nobody = Access {
            item: 0,
            time: 0,
            begin: 0,
            atomic: false,
        };
        for ((at, scalar), &bits) in list.into_iter().zip(&global.init) {
            object.write(at, scalar.bytes(), bits, nobody)?;
        }
        globals.push(object);
    }
    let first_buffer = globals.len();
    for arg in &program.args {
        if let Arg::Buffer(bytes) | Arg::Image(ImageData { bytes, .. }) = arg {
            globals.push(Object::of(bytes.clone(), true));
        }
    }
    let range = &program.range;
    let mut machine = Machine {
        program,
        code: compile(program),
        sub_group,
        globals,
        first_buffer,
        locals: Vec::new(),
        lines: Vec::new(),
        steps: 0,
        time: 1,
        begin: 1,
        children: Vec::new(),
        packets: 0,
        group: Group {
            id: [0; 3],
            size: [1; 3],
        },
        groups: std::array::from_fn(|d| range.global[d].div_ceil(range.local[d])),
    };
    let [nx, ny, nz] = machine.groups;
    for z in 0..nz {
        for y in 0..ny {
            for x in 0..nx {
                machine.run_group([x, y, z])?;
            }
        }
    }
    let all = |arg: &Arg| !matches!(arg, Arg::Pipe(count) if *count != machine.packets);
    if !program.args.iter().all(all) {
        return Err(Undefined("a pipe of which some packets are read"));
    }
    machine.run_children()?;
    machine.lines.sort();
    let buffers = machine.globals.iter().skip(machine.first_buffer);
    Ok(Results {
        buffers: buffers.map(|object| object.contents().collect()).collect(),
        lines: machine.lines,
        steps: machine.steps,
    })
}

impl Machine<'_> {
    fn run_group(&mut self, id: [u64; 3]) -> Result<(), Undefined> {
        let program = self.program;
        let range = &program.range;
        let left = |d: usize| range.local[d].min(range.global[d] - id[d] * range.local[d]);
        let size_of_group: [u64; 3] = std::array::from_fn(left);
        self.group = Group {
            id,
            size: size_of_group,
        };
        self.time += 1;
        self.begin = self.time;
        let kernel = program.kernel();
        // Local variables, then local arguments.
        let bytes = |var: &crate::ast::Var| match var.space {
            Space::Local => size(&var.ty, &program.structs),
            _ => 0,
        };
        self.locals = kernel
            .vars
            .iter()
            .map(|var| Object::empty(bytes(var), true))
            .collect();
        let mut values: Vec<Value> = Vec::new();
        let mut buffer = self.first_buffer;
        for arg in &program.args {
            let pointer = |kind, object| {
                Pointer {
                    kind,
                    object,
                    offset: 0,
                }
                .bits()
            };
            values.push(vec![match arg {
                Arg::Buffer(_) | Arg::Image(_) => {
                    buffer += 1;
                    pointer(Region::Global, buffer - 1)
                }
                Arg::Local(bytes) => {
                    self.locals.push(Object::empty(*bytes, true));
                    pointer(Region::Local, self.locals.len() - 1)
                }
                Arg::Value(_, bits) => *bits,
                Arg::Pipe(_) => 0,
            }]);
        }
        let [sx, sy, sz] = size_of_group;
        let mut items = Vec::new();
        for n in 0..sx * sy * sz {
            let mut item = Item {
                pc: 0,
                stack: values.clone(),
                frames: Vec::new(),
                vars: Vec::new(),
                ended: false,
                waits: false,
                local: [n % sx, n / sx % sy, n / sx / sy],
            };
            self.enter(&mut item, program.functions.len() - 1, usize::MAX)?;
            items.push(item);
        }
        loop {
            for (n, item) in items.iter_mut().enumerate() {
                self.run_item(item, n as u32 + 1)?;
            }
            if items.iter().all(|item| item.ended) {
                return Ok(());
            }
            self.release(&mut items)?;
        }
    }

    /// Lets those go on that wait and have all come.
    fn release(&mut self, items: &mut [Item]) -> Result<(), Undefined> {
        let sub = self.sub_group;
        let all_here = |part: &[Item]| part.iter().all(|item| !item.ended && item.pc == part[0].pc);
        let first = items.iter().find(|item| !item.ended).map(|item| item.pc);
        let whole = match first.map(|pc| &self.code.ops[pc]) {
            Some(op) if op.is_for_all() => true,
            Some(_) => false,
            None => return Ok(()),
        };
        if whole && !all_here(items) {
            // Sub-groups before it may have to go on first.
            let waiting = |item: &Item| !item.ended && !self.code.ops[item.pc].is_for_all();
            if !items.iter().any(waiting) {
                return Err(Undefined("a barrier that not all work-items reach"));
            }
        } else if whole {
            self.meet(items)?;
            self.time += 1;
            return Ok(());
        }
        let mut any = false;
        for part in items.chunks_mut(sub) {
            let pending = part.iter().find(|item| !item.ended).map(|item| item.pc);
            let Some(pc) = pending else { continue };
            if matches!(self.code.ops[pc], Op::Collective(Scope::SubGroup, ..)) {
                if !all_here(part) {
                    return Err(Undefined(
                        "a sub-group function that not all work-items reach",
                    ));
                }
                self.meet(part)?;
                any = true;
            }
        }
        any.then_some(())
            .ok_or(Undefined("a barrier that not all work-items reach"))
    }

    /// Executes an instruction for which work-items wait for each other.
    fn meet(&mut self, items: &mut [Item]) -> Result<(), Undefined> {
        let op = self.code.ops[items[0].pc].clone();
        if let Op::AsyncCopy(bytes, count, stride) = op {
            self.copy(items, bytes, count, stride)?;
        }
        if let Op::Collective(scope, what, scalar, count) = op {
            let mut args: Vec<Vec<Value>> = Vec::new();
            for item in items.iter_mut() {
                let at = item.stack.len() - count;
                args.push(item.stack.split_off(at));
            }
            let shuffle = what == Collect::Shuffle;
            if !shuffle && args.iter().any(|list| list[1..] != args[0][1..]) {
                return Err(Undefined("operands of a broadcast that are not uniform"));
            }
            let place = |dim: usize| args[0].get(1 + dim).map_or(0, |value| value[0]);
            let [sx, sy, _] = self.group.size;
            let from = match (scope, what) {
                (Scope::WorkGroup, Collect::Broadcast) => {
                    place(0) + sx * (place(1) + sy * place(2))
                }
                _ => place(0),
            };
            let values: Vec<_> = args.iter().map(|list| list[0][0]).collect();
            let from_place = |list: &Vec<Value>| {
                let value = values.get(list[1][0] as usize).copied();
                value.ok_or(Undefined("a shuffle from nowhere"))
            };
            let results = match shuffle {
                true => args.iter().map(from_place).collect::<Result<_, _>>()?,
                false => numbers::collect(what, scalar, &values, from as usize)?,
            };
            for (item, result) in items.iter_mut().zip(results) {
                item.stack.push(vec![result]);
            }
        }
        for item in items {
            item.pc += 1;
            item.waits = false;
        }
        Ok(())
    }

    /// Copies elements to local memory.
    fn copy(
        &mut self,
        items: &mut [Item],
        bytes: usize,
        count: usize,
        stride: usize,
    ) -> Result<(), Undefined> {
        let mut pairs: Vec<(Value, Value)> = Vec::new();
        for item in items.iter_mut() {
            let from = pop(item);
            pairs.push((pop(item), from));
        }
        if pairs.iter().any(|pair| *pair != pairs[0]) {
            return Err(Undefined("operands of a copy that are not uniform"));
        }
        let (to, from) = (
            Pointer::from_bits(pairs[0].0[0])?,
            Pointer::from_bits(pairs[0].1[0])?,
        );
        // By nobody that the items know: they have to wait before and after it.
        let by = Access {
            item: u32::MAX - 1,
            time: self.time,
            begin: self.begin,
            atomic: false,
        };
        for i in 0..count {
            let source = self.object(&mut items[0], from)?;
            let value = source.copy(from.offset + i * stride * bytes, bytes, by)?;
            self.object(&mut items[0], to)?
                .paste(to.offset + i * bytes, &value, by)?;
        }
        Ok(())
    }

    /// Runs what was enqueued.
    fn run_children(&mut self) -> Result<(), Undefined> {
        for object in &mut self.globals {
            object.forget();
        }
        let mut number = 0;
        for (function, args, count) in std::mem::take(&mut self.children) {
            self.time += 1;
            self.begin = self.time;
            for id in 0..count as u64 {
                number += 1;
                let mut item = Item {
                    pc: 0,
                    stack: args.clone(),
                    frames: Vec::new(),
                    vars: Vec::new(),
                    ended: false,
                    waits: false,
                    local: [id, 0, 0],
                };
                item.stack.push(vec![id]);
                self.enter(&mut item, function, usize::MAX)?;
                self.run_item(&mut item, number)?;
                if !item.ended {
                    return Err(Undefined("a function that waits where none may"));
                }
            }
        }
        Ok(())
    }

    /// Where a texel is: its first byte.
    fn texel(
        &self,
        arg: usize,
        x: u64,
        y: u64,
        clamp: bool,
    ) -> Result<(&ImageData, usize), Undefined> {
        let Some(Arg::Image(image)) = self.program.args.get(arg) else {
            return Err(Undefined("no image"));
        };
        let limit = |value: u64, size: usize| {
            let (value, last) = (sign_extend(value, 32), size as i64 - 1);
            let near = value.clamp(0, last);
            (clamp || near == value)
                .then_some(near as usize)
                .ok_or(Undefined("a texel outside"))
        };
        let (x, y) = (limit(x, image.width)?, limit(y, image.height)?);
        Ok((
            image,
            (y * image.width + x) * image.channels * image.channel.bytes(),
        ))
    }

    /// Enters a function, whose operands are on the stack.
    fn enter(&self, item: &mut Item, function: usize, back: usize) -> Result<(), Undefined> {
        let entry = &self.code.functions[function];
        let base = item.vars.len();
        item.frames.push(Frame { back, base });
        if item.frames.len() > 40 {
            return Err(Undefined("calls that are too deep"));
        }
        item.vars
            .extend(entry.vars.iter().map(|&bytes| Object::empty(bytes, false)));
        let nobody = Access {
            item: 0,
            time: 0,
            begin: 0,
            atomic: false,
        };
        for (var, ty) in entry.params.iter().rev() {
            let value = pop(item);
            store(&mut item.vars[base + var], 0, ty, &value, nobody)?;
        }
        item.pc = entry.start;
        Ok(())
    }

    fn object<'a>(
        &'a mut self,
        item: &'a mut Item,
        at: Pointer,
    ) -> Result<&'a mut Object, Undefined> {
        let list = match at.kind {
            Region::Global => &mut self.globals,
            Region::Local => &mut self.locals,
            Region::Private => &mut item.vars,
        };
        list.get_mut(at.object)
            .ok_or(Undefined("a pointer to what is gone"))
    }

    fn run_item(&mut self, item: &mut Item, number: u32) -> Result<(), Undefined> {
        while !item.ended && !item.waits {
            self.steps += 1;
            if self.steps > MOST_STEPS {
                return Err(Undefined("too many steps"));
            }
            self.step(item, number)?;
        }
        Ok(())
    }

    fn step(&mut self, item: &mut Item, number: u32) -> Result<(), Undefined> {
        let op = std::mem::replace(&mut self.code.ops[item.pc], Op::Copy);
        let pc = item.pc;
        item.pc += 1;
        let done = self.execute(&op, item, number);
        self.code.ops[pc] = op;
        done
    }

    fn execute(&mut self, op: &Op, item: &mut Item, number: u32) -> Result<(), Undefined> {
        let by = Access {
            item: number,
            time: self.time,
            begin: self.begin,
            atomic: false,
        };
        let base = item.frames.last().map_or(0, |frame| frame.base);
        match op {
            Op::Const(bits) => item.stack.push(vec![*bits]),
            Op::Var(var) => push_pointer(item, Region::Private, base + var),
            Op::Local(var) => push_pointer(item, Region::Local, *var),
            Op::Global(index) => push_pointer(item, Region::Global, *index),
            Op::Offset(bytes) => top(item)[0] += *bytes as u64,
            Op::Index(bytes, scalar) => {
                let index = pop(item)[0];
                let by = match scalar.is_signed() {
                    true => sign_extend(index, scalar.bits()),
                    false => index as i64,
                };
                let at = Pointer::from_bits(top(item)[0])?;
                let moved = (at.offset as i64).checked_add(by.saturating_mul(*bytes as i64));
                let offset = moved.filter(|offset| (0..1 << 32).contains(offset));
                let offset = offset.ok_or(Undefined("a pointer outside of an object"))? as usize;
                top(item)[0] = Pointer { offset, ..at }.bits();
            }
            Op::Load(ty) => {
                let at = Pointer::from_bits(pop(item)[0])?;
                let structs = &self.program.structs;
                let bytes = size(ty, structs);
                let object = self.object(item, at)?;
                let value = match ty {
                    Type::Num(scalar, lanes) => {
                        let lane =
                            |i| object.read(at.offset + i * scalar.bytes(), scalar.bytes(), by);
                        (0..usize::from(*lanes))
                            .map(lane)
                            .collect::<Result<_, _>>()?
                    }
                    Type::Pointer(..) => vec![object.read(at.offset, 8, by)?],
                    _ => object.copy(at.offset, bytes, by)?,
                };
                item.stack.push(value);
            }
            Op::Store(ty) => {
                let value = pop(item);
                let at = Pointer::from_bits(pop(item)[0])?;
                store(self.object(item, at)?, at.offset, ty, &value, by)?;
            }
            Op::StoreLanes(scalar, lanes) => {
                let value = pop(item);
                let at = Pointer::from_bits(pop(item)[0])?;
                let object = self.object(item, at)?;
                for (&lane, &bits) in lanes.iter().zip(&value) {
                    let offset = at.offset + usize::from(lane) * scalar.bytes();
                    object.write(offset, scalar.bytes(), bits, by)?;
                }
            }
            Op::Fresh(var) => {
                let bytes = item.vars[base + var].data.len();
                item.vars[base + var] = Object::empty(bytes, false);
            }
            Op::Copy => {
                let value = top(item).clone();
                item.stack.push(value);
            }
            Op::Pop => _ = pop(item),
            Op::Unary(op, scalar, vector) => {
                for lane in top(item) {
                    *lane = numbers::unary(*op, *scalar, *vector, *lane)?;
                }
            }
            Op::Binary(op, scalar, vector) => {
                let b = pop(item);
                for (lane, &b) in top(item).iter_mut().zip(&b) {
                    *lane = numbers::binary(*op, *scalar, *vector, *lane, b)?;
                }
            }
            Op::Convert(from, to, sat) => {
                for lane in top(item) {
                    *lane = numbers::convert(*from, *to, *lane, *sat)?;
                }
            }
            Op::As(from, to, lanes) => {
                let mut bytes = Vec::new();
                for lane in pop(item) {
                    bytes.extend_from_slice(&lane.to_le_bytes()[..from.bytes()]);
                }
                bytes.resize(lanes.next_power_of_two() * to.bytes(), 0);
                let lane = |i: usize| {
                    let mut word = [0; 8];
                    word[..to.bytes()].copy_from_slice(&bytes[i * to.bytes()..][..to.bytes()]);
                    u64::from_le_bytes(word)
                };
                item.stack.push((0..*lanes).map(lane).collect());
            }
            Op::Splat(lanes) => {
                let value = pop(item)[0];
                item.stack.push(vec![value; *lanes]);
            }
            Op::Build(count) => {
                let at = item.stack.len() - count;
                let parts = item.stack.split_off(at);
                item.stack.push(parts.concat());
            }
            Op::Lanes(lanes) => {
                let value = pop(item);
                item.stack
                    .push(lanes.iter().map(|&lane| value[usize::from(lane)]).collect());
            }
            Op::Pure(f, ty, count, last) => {
                let at = item.stack.len() - count;
                let args = item.stack.split_off(at);
                item.stack.push(pure(*f, ty, &args, last)?);
            }
            Op::Query(query, dim) => {
                let value = self.query(*query, usize::from(*dim), item, number);
                item.stack.push(vec![value]);
            }
            Op::Jump(to) => item.pc = *to,
            Op::Unless(to, scalar) => {
                if !numbers::is_true(*scalar, pop(item)[0]) {
                    item.pc = *to;
                }
            }
            Op::Switch(cases, default) => {
                let value = pop(item)[0];
                let case = cases.iter().find(|(bits, _)| *bits == value);
                item.pc = case.map_or(*default, |case| case.1);
            }
            Op::Call(function) => {
                let back = item.pc;
                self.enter(item, *function, back)?;
            }
            Op::Return => {
                if let Some(frame) = item.frames.pop() {
                    item.vars.truncate(frame.base);
                    item.pc = frame.back;
                }
                item.ended = item.frames.is_empty();
            }
            Op::Packet => {
                item.stack.push(vec![packet(self.packets)]);
                self.packets += 1;
            }
            Op::ReadImage(arg, scalar, clamp) => {
                let (y, x) = (pop(item)[0], pop(item)[0]);
                let at = Pointer::from_bits(load_pointer(item)?)?;
                let (image, offset) = self.texel(*arg, x, y, *clamp)?;
                let (channel, channels) = (image.channel, image.channels);
                let one = if scalar.is_float() {
                    floats::exact(*scalar, 1.0).unwrap_or(1)
                } else {
                    1
                };
                let mut texel = vec![0, 0, 0, one];
                let object = self.object(item, at)?;
                for (i, lane) in texel.iter_mut().enumerate().take(channels) {
                    let bits = object.read(offset + i * channel.bytes(), channel.bytes(), by)?;
                    *lane = numbers::convert(channel, *scalar, bits, false)?;
                }
                item.stack.push(texel);
            }
            Op::WriteImage(arg, scalar) => {
                let texel = pop(item);
                let (y, x) = (pop(item)[0], pop(item)[0]);
                let at = Pointer::from_bits(load_pointer(item)?)?;
                let (image, offset) = self.texel(*arg, x, y, false)?;
                let (channel, channels) = (image.channel, image.channels);
                let object = self.object(item, at)?;
                for (i, &lane) in texel.iter().enumerate().take(channels) {
                    let bits = numbers::convert(*scalar, channel, lane, true)?;
                    object.write(offset + i * channel.bytes(), channel.bytes(), bits, by)?;
                }
            }
            Op::Enqueue(function, count, items) => {
                let at = item.stack.len() - count;
                let args = item.stack.split_off(at);
                self.children.push((*function, args, *items));
            }
            Op::Barrier | Op::Collective(..) | Op::AsyncCopy(..) => {
                item.pc -= 1;
                item.waits = true;
            }
            Op::Atomic(op, scalar) => {
                let third = if *op == crate::ast::Atomic::Cmpxchg {
                    pop(item)[0]
                } else {
                    0
                };
                let second = pop(item)[0];
                let at = Pointer::from_bits(pop(item)[0])?;
                let object = self.object(item, at)?;
                let old = object.peek(at.offset, scalar.bytes())?;
                let new = numbers::atomic(*op, *scalar, old, second, third);
                object.write(
                    at.offset,
                    scalar.bytes(),
                    new,
                    Access { atomic: true, ..by },
                )?;
                item.stack.push(vec![old]);
            }
            Op::Vload(scalar, lanes) => {
                let at = Pointer::from_bits(pop(item)[0])?;
                let object = self.object(item, at)?;
                let lane = |i| object.read(at.offset + i * scalar.bytes(), scalar.bytes(), by);
                let value = (0..*lanes).map(lane).collect::<Result<_, _>>()?;
                item.stack.push(value);
            }
            Op::Vstore(scalar) => {
                let value = pop(item);
                let at = Pointer::from_bits(pop(item)[0])?;
                let object = self.object(item, at)?;
                for (i, &bits) in value.iter().enumerate() {
                    object.write(at.offset + i * scalar.bytes(), scalar.bytes(), bits, by)?;
                }
            }
            Op::Printf(texts, types) => {
                let at = item.stack.len() - types.len();
                let values = item.stack.split_off(at);
                let mut line = texts[0].clone();
                for ((value, scalar), text) in values.iter().zip(types).zip(&texts[1..]) {
                    let bits = scalar.bits();
                    match scalar.is_signed() {
                        true => line += &sign_extend(value[0], bits).to_string(),
                        false => line += &value[0].to_string(),
                    }
                    line += text;
                }
                self.lines.push(line);
            }
        }
        Ok(())
    }

    fn query(&self, query: Query, dim: usize, item: &Item, number: u32) -> u64 {
        let range = &self.program.range;
        let (id, local) = (self.group.id, item.local);
        let global = |d: usize| id[d] * range.local[d] + local[d];
        let linear = u64::from(number) - 1;
        let sub = self.sub_group as u64;
        let count: u64 = self.group.size.iter().product();
        match query {
            Query::GlobalId => global(dim) + range.offset[dim],
            Query::GlobalSize => range.global[dim],
            Query::GlobalOffset => range.offset[dim],
            Query::LocalId => local[dim],
            Query::LocalSize => self.group.size[dim],
            Query::EnqueuedLocalSize => range.local[dim],
            Query::GroupId => id[dim],
            Query::NumGroups => self.groups[dim],
            Query::WorkDim => range.dims as u64,
            Query::GlobalLinearId => {
                global(0) + range.global[0] * (global(1) + range.global[1] * global(2))
            }
            Query::LocalLinearId => linear,
            Query::SubGroupId => linear / sub,
            Query::SubGroupLocalId => linear % sub,
            Query::SubGroupSize => sub.min(count - linear / sub * sub),
            Query::NumSubGroups => count.div_ceil(sub),
            Query::MaxSubGroupSize => sub,
        }
    }
}

fn push_pointer(item: &mut Item, kind: Region, object: usize) {
    item.stack.push(vec![Pointer {
        kind,
        object,
        offset: 0,
    }
    .bits()]);
}

/// The pointer in the variable whose address is on top.
fn load_pointer(item: &mut Item) -> Result<u64, Undefined> {
    let at = Pointer::from_bits(pop(item)[0])?;
    let object = item.vars.get(at.object).ok_or(Undefined("no variable"))?;
    object.peek(at.offset, 8)
}

fn pop(item: &mut Item) -> Value {
    item.stack.pop().unwrap_or_else(|| vec![0])
}

fn top(item: &mut Item) -> &mut Value {
    if item.stack.is_empty() {
        item.stack.push(vec![0]);
    }
    let last = item.stack.len() - 1;
    &mut item.stack[last]
}

fn store(
    object: &mut Object,
    at: usize,
    ty: &Type,
    value: &[u64],
    by: Access,
) -> Result<(), Undefined> {
    match ty {
        Type::Num(scalar, _) => {
            for (i, &bits) in value.iter().enumerate() {
                object.write(at + i * scalar.bytes(), scalar.bytes(), bits, by)?;
            }
            Ok(())
        }
        Type::Pointer(..) | Type::Image(..) | Type::Pipe => object.write(at, 8, value[0], by),
        _ => object.paste(at, value, by),
    }
}

/// A built-in function of whole operands.
fn pure(f: Pure, ty: &Type, args: &[Value], last: &Type) -> Result<Value, Undefined> {
    let scalar = ty.element();
    let top_bit = |&lane: &u64| lane >> (scalar.bits() - 1) & 1 != 0;
    match f {
        Pure::Any => Ok(vec![u64::from(args[0].iter().any(top_bit))]),
        Pure::All => Ok(vec![u64::from(args[0].iter().all(top_bit))]),
        Pure::Shuffle => {
            let table = args[..args.len() - 1].concat();
            let lanes = args[args.len() - 1].iter();
            Ok(lanes
                .map(|&lane| table[lane as usize % table.len()])
                .collect())
        }
        _ => {
            let vector = ty.is_vector();
            let lane = |i: usize| {
                let mut operands = [0; 3];
                for (operand, arg) in operands.iter_mut().zip(args) {
                    *operand = arg[i % arg.len()];
                }
                numbers::pure(f, scalar, vector, operands, last.element())
            };
            (0..args[0].len()).map(lane).collect()
        }
    }
}
