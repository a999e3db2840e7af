//! Random control-flow graphs: after structurizing they do what they did before, and the emitted module is valid.

use spirv_lowering::emit::vulkan;
use spirv_lowering::interface::KernelInterface;
use spirv_lowering::ir::entity::{Block, Entity, Value};
use spirv_lowering::ir::function::{Edge, Function, Merge, Terminator, Values};
use spirv_lowering::ir::op::{IntCond, Op, Order, Scope};
use spirv_lowering::ir::types::{Space, Type};
use spirv_lowering::passes::structurize;
use spirv_lowering::target::Target;
use std::collections::{HashMap, HashSet};

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// The description of a random graph.
#[derive(Clone, Copy)]
struct Shape {
    blocks: usize,
    /// Percent of edges that go backwards.
    back: usize,
    /// How far forward edges go at most.
    reach: usize,
    params: bool,
}

/// Successors of each block; none: return (or unreachable).
fn random_graph(rng: &mut Rng, shape: Shape) -> Vec<Vec<usize>> {
    (0..shape.blocks)
        .map(|i| {
            let count = match rng.below(20) {
                0 => 0,
                1..=7 => 1,
                8..=17 => 2,
                _ => 3 + rng.below(3),
            };
            (0..count)
                .map(|_| {
                    if rng.below(100) < shape.back {
                        rng.below(i + 1)
                    } else {
                        i + 1 + rng.below(shape.reach)
                    }
                })
                .map(|s| s.min(shape.blocks - 1))
                .filter(|&s| shape.back > 0 || s > i)
                .collect()
        })
        .collect()
}

/// Graphs of programs: nested statements with break, continue, return, fall-through, and gotos now and then.
struct Program<'a> {
    rng: &'a mut Rng,
    graph: Vec<Vec<usize>>,
    gotos: bool,
}

impl Program<'_> {
    fn block(&mut self) -> usize {
        self.graph.push(Vec::new());
        self.graph.len() - 1
    }

    /// Statements from the end of `at`; the block at which they end, if they do.
    fn list(
        &mut self,
        mut at: usize,
        depth: usize,
        brk: Option<usize>,
        cont: Option<usize>,
    ) -> Option<usize> {
        for _ in 0..1 + self.rng.below(3) {
            if self.graph.len() > 40 {
                break;
            }
            at = self.statement(at, depth, brk, cont)?;
        }
        Some(at)
    }

    fn arm(&mut self, depth: usize, brk: Option<usize>, cont: Option<usize>, next: usize) -> usize {
        let start = self.block();
        if let Some(end) = self.list(start, depth + 1, brk, cont) {
            self.graph[end].push(next);
        }
        start
    }

    fn statement(
        &mut self,
        at: usize,
        depth: usize,
        brk: Option<usize>,
        cont: Option<usize>,
    ) -> Option<usize> {
        let kind = if depth > 4 {
            7 + self.rng.below(5)
        } else {
            self.rng.below(14)
        };
        match kind {
            0 | 1 => {
                let next = self.block();
                let arm = self.arm(depth, brk, cont, next);
                self.graph[at] = vec![arm, next];
                Some(next)
            }
            2 => {
                let next = self.block();
                let (a, b) = (
                    self.arm(depth, brk, cont, next),
                    self.arm(depth, brk, cont, next),
                );
                self.graph[at] = vec![a, b];
                Some(next)
            }
            3 | 4 => {
                // while, or for with an increment
                let (head, next) = (self.block(), self.block());
                let again = if kind == 3 { head } else { self.block() };
                if kind == 4 {
                    self.graph[again].push(head);
                }
                self.graph[at].push(head);
                let body = self.arm(depth, Some(next), Some(again), again);
                self.graph[head] = vec![body, next];
                Some(next)
            }
            5 => {
                let (test, next) = (self.block(), self.block());
                let body = self.arm(depth, Some(next), Some(test), test);
                self.graph[at].push(body);
                self.graph[test] = vec![body, next];
                Some(next)
            }
            6 => {
                let next = self.block();
                let mut cases = Vec::new();
                let mut below = next;
                for _ in 0..2 + self.rng.below(3) {
                    let to = if self.rng.below(4) == 0 { below } else { next };
                    below = self.arm(depth, Some(next), cont, to);
                    cases.push(below);
                }
                if self.rng.below(2) == 0 {
                    cases.push(next);
                }
                self.graph[at] = cases;
                Some(next)
            }
            7 | 8 => {
                let target = if kind == 7 { brk } else { cont };
                let Some(target) = target else {
                    return Some(at);
                };
                let next = self.block();
                self.graph[at] = vec![target, next];
                Some(next)
            }
            9 if self.rng.below(4) == 0 => None,
            10 if self.gotos && self.rng.below(2) == 0 => {
                let next = self.block();
                let target = self.rng.below(next);
                self.graph[at] = vec![target, next];
                Some(next)
            }
            _ => {
                let next = self.block();
                self.graph[at].push(next);
                Some(next)
            }
        }
    }
}

fn random_program(rng: &mut Rng, gotos: bool) -> Vec<Vec<usize>> {
    let mut program = Program {
        rng,
        graph: vec![Vec::new()],
        gotos,
    };
    program.list(0, 0, None, None);
    program.graph
}

/// Dominator sets by the textbook iteration.
fn dominators(graph: &[Vec<usize>]) -> Vec<HashSet<usize>> {
    let n = graph.len();
    let mut dom: Vec<HashSet<usize>> = vec![(0..n).collect(); n];
    dom[0] = HashSet::from([0]);
    loop {
        let mut changed = false;
        for b in 1..n {
            let mut new: Option<HashSet<usize>> = None;
            for (p, succs) in graph.iter().enumerate() {
                if succs.contains(&b) {
                    new = Some(match new {
                        None => dom[p].clone(),
                        Some(s) => s.intersection(&dom[p]).copied().collect(),
                    });
                }
            }
            let mut new = new.unwrap_or_else(|| (0..n).collect());
            new.insert(b);
            if new != dom[b] {
                dom[b] = new;
                changed = true;
            }
        }
        if !changed {
            return dom;
        }
    }
}

fn build(rng: &mut Rng, graph: &[Vec<usize>], params: bool) -> Function {
    let mut f = Function {
        name: "test".into(),
        ..Function::default()
    };
    let dom = dominators(graph);
    let entry = f.add_block();
    let address = f.append_const(entry, Type::I64, 4096);
    let pointer = f.append1(entry, Op::IntToPtr, [address], Type::Ptr(Space::Global));
    let blocks: Vec<Block> = graph.iter().map(|_| f.add_block()).collect();
    let start = f.append_const(entry, Type::I32, 77);
    let mut own: Vec<Vec<Value>> = Vec::new();
    for &b in &blocks {
        let count = if params { rng.below(3) } else { 0 };
        own.push((0..count).map(|_| f.add_param(b, Type::I32)).collect());
    }
    for (i, &b) in blocks.iter().enumerate() {
        let id = f.append_const(b, Type::I32, i as u64);
        f.append(
            b,
            Op::Store {
                align: 4,
                volatile: false,
            },
            [pointer, id],
            &[],
        );
        let order = Op::AtomicLoad {
            scope: Scope::Device,
            order: Order::Relaxed,
        };
        let decision = f.append1(b, order, [pointer], Type::I32);
        for &p in &own[i] {
            f.append(
                b,
                Op::Store {
                    align: 4,
                    volatile: false,
                },
                [pointer, p],
                &[],
            );
        }
        own[i].push(decision);
    }
    let entry_args: Values = own[0].iter().skip(1).map(|_| start).collect();
    f.blocks[entry].term = Terminator::Jump(Edge {
        block: blocks[0],
        args: entry_args,
    });
    let mut reachable = HashSet::from([0]);
    let mut work = vec![0];
    while let Some(b) = work.pop() {
        for &s in &graph[b] {
            if reachable.insert(s) {
                work.push(s);
            }
        }
    }
    for (i, succs) in graph.iter().enumerate() {
        if !reachable.contains(&i) {
            continue;
        }
        let mut pool: Vec<Value> = dom[i]
            .iter()
            .flat_map(|&d| own[d].iter().copied())
            .collect();
        pool.sort();
        if rng.below(2) == 0 {
            let v = pool[rng.below(pool.len())];
            f.append(
                blocks[i],
                Op::Store {
                    align: 4,
                    volatile: false,
                },
                [pointer, v],
                &[],
            );
        }
        let mut edges: Vec<Edge> = Vec::new();
        for &s in succs {
            let args = f.blocks[blocks[s]]
                .params
                .iter()
                .map(|_| pool[rng.below(pool.len())])
                .collect();
            edges.push(Edge {
                block: blocks[s],
                args,
            });
        }
        let decision = own[i].last().copied().unwrap();
        f.blocks[blocks[i]].term = match edges.len() {
            0 => Terminator::Return(Values::new()),
            1 => Terminator::Jump(edges.remove(0)),
            2 => {
                let half = f.append_const(blocks[i], Type::I32, 1 << 30);
                let cond = f.append1(
                    blocks[i],
                    Op::ICmp(IntCond::Ult),
                    [decision, half],
                    Type::Bool,
                );
                let b = edges.remove(1);
                Terminator::Branch(cond, edges.remove(0), b)
            }
            _ => {
                let mask = f.append_const(blocks[i], Type::I32, 7);
                let low = f.append1(blocks[i], Op::And, [decision, mask], Type::I32);
                let default = edges.pop().unwrap();
                Terminator::Switch(
                    low,
                    edges
                        .into_iter()
                        .enumerate()
                        .map(|(k, e)| (k as u64, e))
                        .collect(),
                    default,
                )
            }
        };
    }
    f
}

/// Runs a function: stores are events, atomic loads give decisions and are events too.
fn interpret(f: &Function, seed: u64, limit: usize) -> (Vec<u64>, bool) {
    let mut rng = Rng(seed);
    let mut poison = Rng(0x1234_5678_9abc_def1);
    let mut env: HashMap<Value, u64> = HashMap::new();
    let mut events = Vec::new();
    let mut block = f.layout[0];
    loop {
        let read = |env: &HashMap<Value, u64>, v: &Value| match env.get(v) {
            Some(&x) => x,
            None => panic!("{v} is used in {block} before its definition"),
        };
        for &i in &f.blocks[block].insts {
            let inst = &f.insts[i];
            let a: Vec<u64> = inst.args.iter().map(|v| read(&env, v)).collect();
            let r = match inst.op {
                Op::Const(bits) => bits,
                Op::Undef => poison.next() & 0xffff_ffff,
                Op::IntToPtr => a[0],
                Op::Store { .. } => {
                    events.push(a[1]);
                    if events.len() > limit {
                        return (events, false);
                    }
                    0
                }
                Op::AtomicLoad { .. } => {
                    let r = rng.next() & 0x7fff_ffff;
                    events.push(r | 1 << 40);
                    r
                }
                Op::ICmp(IntCond::Eq) => u64::from(a[0] == a[1]),
                Op::ICmp(IntCond::Ult) => u64::from(a[0] < a[1]),
                Op::And => a[0] & a[1],
                Op::Or => a[0] | a[1],
                Op::ISub => a[0].wrapping_sub(a[1]) & 0xffff_ffff,
                Op::Select if a[0] != 0 => a[1],
                Op::Select => a[2],
                ref op => panic!("{op:?}"),
            };
            if let Some(&v) = inst.results.first() {
                env.insert(v, r);
            }
        }
        let edge = match &f.blocks[block].term {
            Terminator::Jump(t) => t,
            Terminator::Branch(c, a, b) => {
                if read(&env, c) != 0 {
                    a
                } else {
                    b
                }
            }
            Terminator::Switch(v, cases, d) => {
                let v = read(&env, v);
                cases.iter().find(|(k, _)| *k == v).map_or(d, |(_, t)| t)
            }
            Terminator::Return(_) => return (events, true),
            Terminator::Unreachable => panic!("unreachable was reached"),
        };
        let values: Vec<u64> = edge.args.iter().map(|v| read(&env, v)).collect();
        let params = &f.blocks[edge.block].params;
        assert_eq!(params.len(), values.len());
        for (&p, v) in params.iter().zip(values) {
            env.insert(p, v);
        }
        block = edge.block;
    }
}

fn interface() -> KernelInterface {
    KernelInterface {
        name: "test".into(),
        ..Default::default()
    }
}

fn validate(words: &[u32]) -> Result<(), String> {
    pumice_spirv_tools::validate(pumice_spirv_tools::TargetEnv::Vulkan_1_2, words)
}

fn stores(f: &Function) -> usize {
    let insts = f.layout.iter().flat_map(|&b| &f.blocks[b].insts);
    insts
        .filter(|&&i| matches!(f.insts[i].op, Op::Store { .. }))
        .count()
}

fn check(graph: &[Vec<usize>], before: &Function, what: &str) -> Function {
    let mut after = before.clone();
    structurize::run(&mut after).unwrap_or_else(|e| panic!("{what}: {e}\n{graph:?}"));
    assert!(
        stores(&after) <= stores(before),
        "{what}: code was duplicated\n{graph:?}"
    );
    let words = vulkan::emit(&after, &interface(), &Target::full())
        .unwrap_or_else(|e| panic!("{what}: {e}\n{graph:?}"));
    if let Err(e) = validate(&words) {
        if let Ok(path) = std::env::var("DUMP_SPV") {
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            std::fs::write(path, bytes).unwrap();
        }
        panic!("{what}: {e}\n{graph:?}");
    }
    for seed in 1..12 {
        let (a, done_a) = interpret(before, seed * 7919, 300);
        let (b, done_b) = interpret(&after, seed * 7919, 300);
        assert!(
            done_a == done_b && a == b,
            "{what}, seed {seed}: differs\n{graph:?}\n{a:?}\n{b:?}"
        );
    }
    after
}

fn fuzz(name: &str, shape: Shape, rounds: u64) {
    let factor = std::env::var("FUZZ_FACTOR")
        .ok()
        .and_then(|f| f.parse().ok())
        .unwrap_or(1u64);
    for round in 1..=rounds * factor {
        let mut rng = Rng(round.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let shape = Shape {
            blocks: 2 + rng.below(shape.blocks),
            ..shape
        };
        let graph = random_graph(&mut rng, shape);
        let f = build(&mut rng, &graph, shape.params);
        check(&graph, &f, &format!("{name} {round}"));
    }
}

#[test]
fn acyclic() {
    fuzz(
        "small",
        Shape {
            blocks: 6,
            back: 0,
            reach: 4,
            params: false,
        },
        1000,
    );
    fuzz(
        "large",
        Shape {
            blocks: 20,
            back: 0,
            reach: 5,
            params: true,
        },
        1000,
    );
}

#[test]
fn cyclic() {
    fuzz(
        "tiny",
        Shape {
            blocks: 4,
            back: 30,
            reach: 3,
            params: false,
        },
        1000,
    );
    fuzz(
        "small",
        Shape {
            blocks: 8,
            back: 20,
            reach: 3,
            params: true,
        },
        1500,
    );
    fuzz(
        "large",
        Shape {
            blocks: 25,
            back: 12,
            reach: 4,
            params: true,
        },
        1000,
    );
    fuzz(
        "wild",
        Shape {
            blocks: 12,
            back: 45,
            reach: 10,
            params: true,
        },
        1000,
    );
}

#[test]
fn programs() {
    let factor = std::env::var("FUZZ_FACTOR")
        .ok()
        .and_then(|f| f.parse().ok())
        .unwrap_or(1u64);
    for round in 1..=2000 * factor {
        let mut rng = Rng(round.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let graph = random_program(&mut rng, round % 2 == 0);
        let f = build(&mut rng, &graph, round % 4 < 2);
        check(&graph, &f, &format!("program {round}"));
    }
}

/// Parameters and comparisons that structurizing added.
fn overhead(f: &Function) -> (usize, usize) {
    let params = f.layout.iter().map(|&b| f.blocks[b].params.len()).sum();
    let insts = f.layout.iter().flat_map(|&b| &f.blocks[b].insts);
    let compares = insts
        .filter(|&&i| matches!(f.insts[i].op, Op::ICmp(IntCond::Eq)))
        .count();
    (params, compares)
}

#[test]
fn structured_input_needs_no_selectors() {
    let cases: &[(&str, &[&[usize]])] = &[
        ("if", &[&[1, 2], &[2], &[]]),
        ("if else", &[&[1, 2], &[3], &[3], &[]]),
        ("nested if", &[&[1, 4], &[2, 3], &[3], &[4], &[]]),
        ("while", &[&[1], &[2, 3], &[1], &[]]),
        ("do while", &[&[1], &[1, 2], &[]]),
        ("do while with body", &[&[1], &[2], &[1, 3], &[]]),
        ("rotated with guard", &[&[1, 2], &[1, 2], &[]]),
        ("break", &[&[1], &[2, 5], &[3, 5], &[4], &[1], &[]]),
        ("continue", &[&[1], &[2, 5], &[3, 4], &[1], &[1], &[]]),
        (
            "deep continue",
            &[&[1], &[2, 7], &[3, 5], &[6, 4], &[5], &[6], &[1], &[]],
        ),
        (
            "deep continue, rotated",
            &[&[1], &[2, 4], &[5, 3], &[4], &[5], &[1, 6], &[]],
        ),
        ("nested loops", &[&[1], &[2, 5], &[3, 4], &[2], &[1], &[]]),
        ("nested rotated loops", &[&[1], &[2], &[2, 3], &[1, 4], &[]]),
        ("switch", &[&[1, 2, 3, 4], &[5], &[5], &[5], &[5], &[]]),
        (
            "switch with breaks",
            &[&[1, 2, 4], &[4, 3], &[4], &[4], &[]],
        ),
        ("early return", &[&[1, 2], &[], &[3, 4], &[4], &[]]),
        ("return in loop", &[&[1], &[2, 4], &[3, 5], &[1], &[5], &[]]),
        (
            "break with code",
            &[&[1], &[2, 5], &[4, 3], &[1], &[6], &[6], &[]],
        ),
        (
            "break with code, one side",
            &[&[1], &[2, 5], &[4, 3], &[1], &[5], &[]],
        ),
        ("endless", &[&[1], &[1]]),
        (
            "continue to where a switch ends",
            &[
                &[1],
                &[2, 7],
                &[6, 3, 5],
                &[4, 8],
                &[6, 8],
                &[6],
                &[1],
                &[],
                &[6],
            ],
        ),
    ];
    for (name, graph) in cases {
        let graph: Vec<Vec<usize>> = graph.iter().map(|s| s.to_vec()).collect();
        let f = build(&mut Rng(77), &graph, false);
        let after = check(&graph, &f, name);
        assert_eq!(overhead(&after), (0, 0), "{name}");
    }
}

#[test]
fn long_functions_take_linear_time() {
    // A chain of ifs, then a deep nest.
    let mut graph: Vec<Vec<usize>> = Vec::new();
    for i in 0..20_000 {
        graph.push(vec![2 * i + 1, 2 * i + 2]);
        graph.push(vec![2 * i + 2]);
    }
    let base = graph.len();
    let depth = 3000;
    for i in 0..depth {
        graph.push(vec![base + i + 1, base + 2 * depth - i]);
    }
    for i in 0..depth {
        graph.push(vec![base + depth + i + 1]);
    }
    graph.push(vec![]);
    let mut f = plain(&graph);
    let start = std::time::Instant::now();
    structurize::run(&mut f).unwrap();
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    let merges = &f.structure.as_ref().unwrap().merges;
    assert!(f
        .layout
        .iter()
        .any(|&b| matches!(merges[b], Some(Merge::Selection { .. }))));

    // A chain of loops.
    let mut graph: Vec<Vec<usize>> = vec![vec![1]];
    for i in 1..10_000 {
        graph.push(vec![i, i + 1]);
    }
    graph.push(vec![]);
    let mut f = plain(&graph);
    let start = std::time::Instant::now();
    structurize::run(&mut f).unwrap();
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}

fn plain(graph: &[Vec<usize>]) -> Function {
    let mut f = Function::default();
    for _ in graph {
        f.add_block();
    }
    let blocks = f.layout.clone();
    let cond = f.append_const(blocks[0], Type::Bool, 1);
    for (i, s) in graph.iter().enumerate() {
        f.blocks[blocks[i]].term = match s.as_slice() {
            [] => Terminator::Return(Values::new()),
            [a] => Terminator::Jump(Edge::new(Block::new(*a))),
            [a, b, ..] => {
                Terminator::Branch(cond, Edge::new(Block::new(*a)), Edge::new(Block::new(*b)))
            }
        };
    }
    f
}
