//! Tests of the generator, the interpreter, the shrinker and the form of cases, without a device.

use crate::ast::*;
use crate::case::{Case, Expected};
use crate::generate::generate;
use crate::interpret;
use crate::names;
use crate::shrink::shrink;
use crate::types::{Scalar, Space, Type};
use std::rc::Rc;

/// A kernel `k(global uint *v0)` in work-groups of four, with a local array `v1` of four.
fn kernel(body: Block) -> Program {
    let uint = || Rc::new(Type::scalar(Scalar::Uint));
    let var = |ty, space| Var {
        ty,
        space,
        volatile: false,
        align: 0,
    };
    Program {
        structs: Vec::new(),
        globals: Vec::new(),
        functions: vec![Function {
            result: Type::Void,
            params: vec![0],
            vars: vec![
                var(Type::Pointer(Space::Global, uint()), Space::Private),
                var(Type::Array(uint(), 4), Space::Local),
            ],
            body,
            noinline: false,
            block: false,
        }],
        options: "-cl-std=CL3.0".to_owned(),
        pragmas: Vec::new(),
        attributes: String::new(),
        args: vec![Arg::Buffer(vec![1; 32])],
        range: Range {
            dims: 1,
            global: [8, 1, 1],
            local: [4, 1, 1],
            offset: [0; 3],
        },
        sub_groups: false,
        sub_group_size: 0,
    }
}

fn id(query: Query) -> Expr {
    Expr::query(query, 0)
}

fn local(program: &Program, index: Expr) -> Place {
    Place::var(1, &program.kernel().vars[1].ty).index(index)
}

fn out(program: &Program) -> Place {
    let pointer = Place::var(0, &program.kernel().vars[0].ty).load();
    pointer.moved(id(Query::GlobalId)).deref()
}

/// Each writes its number, and reads that of the next.
fn exchange(barrier: bool) -> Program {
    let mut program = kernel(Vec::new());
    let number = id(Query::LocalId).to(Scalar::Uint);
    let own = local(&program, id(Query::LocalId));
    let one = Expr::number(Scalar::Ulong, 1);
    let next = Expr::binary(Binary::Add, id(Query::LocalId), one);
    let next = Expr::binary(Binary::And, next, Expr::number(Scalar::Ulong, 3));
    let mut body = vec![Stmt::Assign(own, None, number)];
    if barrier {
        body.push(Stmt::Barrier);
    }
    let read = local(&program, next).load();
    body.push(Stmt::Assign(out(&program), None, read));
    program.functions[0].body = body;
    program
}

fn why(program: &Program) -> &'static str {
    interpret::run(program, 8).map_or_else(|undefined| undefined.0, |_| "defined")
}

#[test]
fn work_items_wait_at_barriers() {
    let results = interpret::run(&exchange(true), 8).expect("a result");
    let words: Vec<u8> = results.buffers[0]
        .iter()
        .step_by(4)
        .map(|byte| byte.expect("a byte"))
        .collect();
    assert_eq!(words, [1, 2, 3, 0, 1, 2, 3, 0]);
}

#[test]
fn races_are_refused() {
    // The first item reads what the second has not written yet; were it run later, it would be a race.
    assert_eq!(why(&exchange(false)), "a read of what was never written");
    let mut program = kernel(Vec::new());
    let first = local(&program, Expr::int(0));
    program.functions[0].body = vec![Stmt::Assign(first, None, Expr::number(Scalar::Uint, 1))];
    assert_eq!(why(&program), "a data race");
    let mut program = kernel(Vec::new());
    let pointer = Place::var(0, &program.kernel().vars[0].ty).load();
    let group = id(Query::GroupId);
    program.functions[0].body = vec![Stmt::Assign(
        pointer.moved(Expr::int(0)).deref(),
        None,
        group.to(Scalar::Uint),
    )];
    assert_eq!(why(&program), "a data race");
}

#[test]
fn barriers_are_for_all() {
    let mut program = kernel(Vec::new());
    let some = Expr::binary(
        Binary::Lt,
        id(Query::LocalId),
        Expr::number(Scalar::Ulong, 2),
    );
    program.functions[0].body = vec![Stmt::If(some, vec![Stmt::Barrier], Vec::new())];
    assert_eq!(why(&program), "a barrier that not all work-items reach");
}

#[test]
fn overflow_and_division_are_refused() {
    let with = |value: Expr| {
        let mut program = kernel(Vec::new());
        let place = out(&program);
        program.functions[0].body = vec![Stmt::Assign(place, None, value)];
        why(&program)
    };
    let most = || Expr::int(i64::from(i32::MAX));
    assert_eq!(
        with(Expr::binary(Binary::Add, most(), Expr::int(1))),
        "a signed integer overflows"
    );
    assert_eq!(
        with(Expr::binary(Binary::Div, most(), Expr::int(0))),
        "a division by zero"
    );
    assert_eq!(
        with(Expr::binary(Binary::Sub, most(), Expr::int(1))),
        "defined"
    );
    let short = |value| Expr::number(Scalar::Ushort, value);
    assert_eq!(
        with(Expr::binary(Binary::Mul, short(65535), short(65535))),
        "a signed integer overflows"
    );
}

#[test]
fn generated_programs_are_defined() {
    let mut defined = 0;
    for seed in 1..80 {
        let program = generate(seed, false, &[]);
        assert!(names::in_order(&program), "seed {seed}");
        let Ok(results) = interpret::run(&program, 8) else {
            continue;
        };
        defined += 1;
        let mut case = Case::new(&program);
        case.expected.push(Expected::new(8, results.clone()));
        assert_eq!(
            Case::parse(&case.text()).as_ref(),
            Some(&case),
            "seed {seed}"
        );
        let same = |buffer: &Vec<Option<u8>>| buffer.iter().map(|byte| byte.unwrap_or(0)).collect();
        let mut buffers: Vec<Vec<u8>> = results.buffers.iter().map(same).collect();
        assert_eq!(case.expected[0].difference(&buffers, &results.lines), None);
        buffers[0][0] ^= 1;
        assert!(case.expected[0]
            .difference(&buffers, &results.lines)
            .is_some());
    }
    assert!(defined > 70, "{defined} of 79");
}

#[test]
fn a_program_is_made_small() {
    // What is wrong with it is that it has a switch.
    let has = |program: &Program| format!("{program:?}").contains("Switch");
    let seed = (1..)
        .find(|&seed| has(&generate(seed, false, &[])))
        .expect("a switch");
    let program = generate(seed, false, &[]);
    let before = crate::print::source(&program).lines().count();
    let small = shrink(program, 3000, &mut |program| {
        Ok(has(program) && interpret::run(program, 8).is_ok())
    })
    .expect("a program");
    assert!(has(&small) && names::in_order(&small));
    let after = crate::print::source(&small).lines().count();
    assert!(after < 30 && after < before, "{after} of {before} lines");
}
