//! Makes programs. What is made has a defined result by its form for the most part; the interpreter refuses the rest.

mod expr;
mod float;
mod flow;
mod scope;
mod setup;
mod stmt;
mod sync;

use crate::ast::*;
use crate::types::{Scalar, Space, Type};
use pumice_tests::rng::Rng;
use scope::Scope as Names;

/// Features that a program may use, by its standard and at random.
#[derive(Debug, Clone, Default)]
pub struct Style {
    /// 12, 20, 30.
    pub standard: u32,
    pub half: bool,
    pub double: bool,
    pub floats: bool,
    pub relaxed: bool,
    /// Barriers, local memory, collective functions.
    pub sync: bool,
    pub sub_groups: bool,
    pub printf: bool,
    /// How deep statements are nested at most.
    pub depth: usize,
}

/// Where an element of an array of each work-item is that is 0, 3 or 7.
const THREE: [u64; 3] = [0, 3, 7];

struct Gen {
    rng: Rng,
    style: Style,
    program: Program,
    /// The function being made.
    vars: Vec<Var>,
    names: Names,
    /// All work-items of a group are here.
    uniform: bool,
    /// In the kernel, not in a function that it calls.
    in_kernel: bool,
    /// Statements that may still be made.
    budget: usize,
    depth: usize,
    /// Loops around, where `break` and `continue` may stand.
    loops: usize,
    labels: usize,
    /// Places in whose indices one is being chosen.
    nest: usize,
    /// The variable that results are mixed into.
    hash: usize,
    /// The result type of the function.
    result: Type,
    /// The index of the work-item in its group.
    local_index: usize,
    /// The index of the work-item, and the array of which each element is one of [`THREE`].
    item: Option<usize>,
    three: Option<usize>,
    /// Memory that is changed by atomic functions: pointers.
    counters: Vec<Expr>,
    /// Parameters of local memory, and their sizes.
    locals: Vec<(usize, usize)>,
    /// Programs may have locks, and the pointer to this one's and what it guards.
    locks: bool,
    /// Shapes that are left out.
    without: Vec<String>,
    lock: Option<Expr>,
    /// Functions that all work-items of a group call, with the number of the uniform parameter.
    for_all: Vec<(usize, usize)>,
    /// The pipe, and the pointer to what its packets are added to.
    pipe: Option<(usize, Expr)>,
    /// The buffer that all read.
    input: Option<Expr>,
    /// The image to read, the one to write.
    texture: Option<(usize, ImageData)>,
    target: Option<(usize, ImageData)>,
    /// The function that is enqueued, and what each of its work-items has an element of.
    enqueued: Option<usize>,
    children: Option<(Expr, usize)>,
}

/// The program of a seed.
pub fn generate(seed: u64, locks: bool, without: &[String]) -> Program {
    let mut rng = Rng::new(seed, 0x636c);
    let style = setup::style(&mut rng);
    let mut gen = Gen {
        rng,
        program: setup::empty(&style),
        style,
        vars: Vec::new(),
        names: Names::default(),
        uniform: false,
        in_kernel: false,
        budget: 0,
        depth: 0,
        loops: 0,
        labels: 0,
        nest: 0,
        local_index: 0,
        hash: 0,
        result: Type::Void,
        item: None,
        three: None,
        counters: Vec::new(),
        locks,
        without: without.to_vec(),
        lock: None,
        for_all: Vec::new(),
        pipe: None,
        locals: Vec::new(),
        input: None,
        texture: None,
        target: None,
        enqueued: None,
        children: None,
    };
    gen.style.sub_groups &= gen.may("sub-groups");
    gen.program.sub_groups = gen.style.sub_groups;
    gen.program();
    gen.program
}

impl Gen {
    fn percent(&mut self, chance: usize) -> bool {
        self.rng.percent(chance)
    }

    fn may(&self, shape: &str) -> bool {
        !self.without.iter().any(|name| name == shape)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.rng.below(limit)
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        self.rng.pick(from).clone()
    }

    /// A new variable of the function, which is not in scope yet.
    fn var(&mut self, ty: Type, space: Space) -> usize {
        self.vars.push(Var {
            ty,
            space,
            volatile: false,
            align: 0,
        });
        self.vars.len() - 1
    }

    /// The value of a variable.
    fn get(&self, var: usize) -> Expr {
        Place::var(var, &self.vars[var].ty).load()
    }

    fn place_of(&self, var: usize) -> Place {
        Place::var(var, &self.vars[var].ty)
    }

    /// An integer type.
    fn int_type(&mut self) -> Scalar {
        if self.percent(50) {
            return self.pick(&[Scalar::Int, Scalar::Uint]);
        }
        self.pick(&crate::types::INTS)
    }

    /// A type of floats that the program may use.
    fn float_type(&mut self) -> Scalar {
        let mut list = vec![Scalar::Float, Scalar::Float];
        if self.style.half {
            list.push(Scalar::Half);
        }
        if self.style.double {
            list.push(Scalar::Double);
        }
        self.pick(&list)
    }

    /// A scalar type.
    fn scalar_type(&mut self) -> Scalar {
        if self.style.floats && self.percent(20) {
            self.float_type()
        } else {
            self.int_type()
        }
    }

    /// A type of numbers.
    fn num_type(&mut self) -> Type {
        let scalar = self.scalar_type();
        if self.percent(22) {
            Type::Num(scalar, self.pick(&[2, 2, 3, 4, 4, 8, 16]))
        } else {
            Type::scalar(scalar)
        }
    }
}
