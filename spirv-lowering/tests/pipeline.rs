//! The pipeline as data: passes can be left out by name and by number, what they promise is checked, each is dumped.

use spirv_lowering::ir::function::Function;
use spirv_lowering::ir::parse::parse_module;
use spirv_lowering::ir::verify::rules::Rule;
use spirv_lowering::passes::CLEAN_UP;
use spirv_lowering::pipeline::lists::{SHARED, VULKAN};
use spirv_lowering::pipeline::pass::{Pass, Step};
use spirv_lowering::target::Target;
use spirv_lowering::{Options, Program};

/// A loop over a table on the stack and one of the program, with local memory, a barrier and a generic pointer.
const KERNEL: &str = r#"
global @0 "table" constant size 16 align 4 init x"00112233445566778899aabbccddeeff"
global @1 "shared" local size 256 align 4
kernel "k" fn0 {
  pointer global "a" "uint*" global none
  value i32 count 1 size 4 "n" "uint" private none
}
func fn0 "k" export (ptr.global, i32) -> () {
block0(v0: ptr.global, v1: i32):
  v2 = alloca.size16.align4 : ptr.private
  v3 = global_addr @0 : ptr.constant
  mem_copy.size16.align4 v2, v3
  v4 = builtin.local_id.0 : i64
  v5 = const 4 : i64
  v6 = imul v4, v5 : i64
  v7 = global_addr @1 : ptr.local
  v8 = ptr_add v7, v6 : ptr.local
  v9 = const 0 : i32
  jump block1(v9, v9)
block1(v10: i32, v11: i32):
  v12 = icmp.ult v10, v1 : bool
  br v12, block2, block3
block2:
  v13 = const 3 : i32
  v14 = and v10, v13 : i32
  v15 = zext v14 : i64
  v16 = imul v15, v5 : i64
  v17 = ptr_add v2, v16 : ptr.private
  v18 = space_cast v17 : ptr.generic
  v19 = load.align4 v18 : i32
  v20 = iadd v11, v19 : i32
  v21 = const 1 : i32
  v22 = iadd v10, v21 : i32
  jump block1(v22, v20)
block3:
  store.align4 v8, v11
  barrier.work_group.work_group.acq_rel.l
  v23 = load.align4 v7 : i32
  v24 = builtin.global_id.0 : i64
  v25 = imul v24, v5 : i64
  v26 = ptr_add v0, v25 : ptr.global
  store.align4 v26, v23
  return
}
"#;

fn program() -> Program {
    Program::from_module(parse_module(KERNEL).unwrap())
}

fn targets() -> [Target; 2] {
    [Target::full(), Target::lavapipe()]
}

fn passes() -> Vec<&'static Pass> {
    let pass = |step: &'static Step| match step {
        Step::Pass(pass) => Some(pass),
        Step::CleanUp => None,
    };
    SHARED.iter().chain(VULKAN).filter_map(pass).collect()
}

#[test]
fn names_are_unique() {
    let mut names: Vec<&str> = passes().iter().map(|pass| pass.name).collect();
    names.extend(CLEAN_UP.iter().map(|pass| pass.name));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// Without a pass that is not needed the kernel still lowers; without another it is an error that tells where.
#[test]
fn every_pass_can_be_left_out() {
    let program = program();
    for target in targets() {
        let lower = |skip: &[&str]| {
            let mut ran = Vec::new();
            let mut note = |name: &str, _: &Function| ran.push(name.to_owned());
            let mut options = Options {
                verify: true,
                skip,
                dump: Some(&mut note),
                ..Default::default()
            };
            let result = program.lower("k", &target, &mut options);
            (result, ran)
        };
        let (all, ran) = lower(&[]);
        all.unwrap();
        for pass in passes() {
            let (result, without) = lower(&[pass.name]);
            assert!(!without.iter().any(|name| name == pass.name));
            if !pass.needed {
                result.unwrap();
            } else if let Err(error) = result {
                assert!(error.to_string().contains("internal"), "{error}");
            }
        }
        for pass in CLEAN_UP {
            assert!(ran.iter().any(|name| name == pass.name), "{}", pass.name);
            lower(&[pass.name]).0.unwrap();
        }
        let error = lower(&["lower_builtin_vars"]).0.unwrap_err().to_string();
        assert!(error.contains("Builtin"), "{error}");
    }
}

/// With so many runs of passes that can be left out, there are that many of them and no more.
#[test]
fn passes_can_be_bisected() {
    let program = program();
    let needed: Vec<&str> = passes()
        .iter()
        .filter(|p| p.needed)
        .map(|p| p.name)
        .collect();
    for target in targets() {
        let runs = |limit: Option<usize>| {
            let mut count = 0;
            let mut note = |name: &str, _: &Function| {
                count += usize::from(name != "inline" && !needed.contains(&name));
            };
            let mut options = Options {
                verify: true,
                limit,
                dump: Some(&mut note),
                ..Default::default()
            };
            program.lower("k", &target, &mut options).unwrap();
            count
        };
        let all = runs(None);
        assert!(all > 20, "{all}");
        for limit in 0..all {
            assert!(runs(Some(limit)) <= limit);
        }
        assert_eq!(runs(Some(all)), all);
    }
}

#[test]
fn promises_are_checked() {
    let module = parse_module(KERNEL).unwrap();
    let func = module.functions.values().next().unwrap();
    for broken in [
        Rule::NoGenericPointers,
        Rule::NoBuiltins,
        Rule::NoProgramVariables,
        Rule::NoArguments,
        Rule::NoMemCopy,
        Rule::NoLocalPointers,
        Rule::NoPrivatePointers,
        Rule::Structured,
    ] {
        assert!(broken.check(func).is_err(), "{broken:?}");
    }
    for kept in [
        Rule::NoCalls,
        Rule::NoPrintf,
        Rule::NoImageAccess,
        Rule::NoImageQueries,
        Rule::NoWorkGroupOperations,
    ] {
        assert!(kept.check(func).is_ok(), "{kept:?}");
    }
}
