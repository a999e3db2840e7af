//! Functions that call functions that call functions: what is lowered grows with what is written, not with what it would be if
//! every call were inlined.

use spirv_lowering::interface::Implicit;
use spirv_lowering::ir::parse::parse_module;
use spirv_lowering::native::{self, Packing, Shape, Stack};
use spirv_lowering::target::Target;
use spirv_lowering::{Options, Program};
use std::fmt::Write;

/// A kernel that reaches a large function through so many levels of functions with three calls each.
fn program(levels: usize) -> Program {
    let mut text = String::from(
        "kernel \"k\" fn0 {\n  pointer global \"a\" \"uint*\" global none\n}\n\
         func fn0 \"k\" export (ptr.global) -> () {\n\
         block0(v0: ptr.global):\n\
         \x20 v1 = builtin.global_id.0 : i64\n\
         \x20 v2 = trunc v1 : i32\n\
         \x20 v3 = call.fn1 v2 : i32\n\
         \x20 store.align4 v0, v3\n\
         \x20 return\n\
         }\n",
    );
    for level in 1..=levels {
        let next = level + 1;
        let _ = write!(
            text,
            "func fn{level} \"level{level}\" (i32) -> (i32) {{\n\
             block0(v0: i32):\n\
             \x20 v1 = const {level} : i32\n\
             \x20 v2 = call.fn{next} v0 : i32\n\
             \x20 v3 = iadd v2, v1 : i32\n\
             \x20 v4 = call.fn{next} v3 : i32\n\
             \x20 v5 = xor v4, v0 : i32\n\
             \x20 v6 = call.fn{next} v5 : i32\n\
             \x20 return v6\n\
             }}\n"
        );
    }
    let _ = write!(
        text,
        "func fn{} \"leaf\" (i32) -> (i32) {{\n\
         block0(v0: i32):\n\
         \x20 v1 = const 5 : i32\n\
         \x20 v2 = const 3 : i32\n",
        levels + 1
    );
    let mut value = 0;
    let mut next = 3;
    for _ in 0..1000 {
        let _ = write!(
            text,
            "  v{next} = imul v{value}, v1 : i32\n  v{} = lshr v{value}, v2 : i32\n  v{} = xor v{next}, v{} : i32\n",
            next + 1,
            next + 2,
            next + 1
        );
        value = next + 2;
        next += 3;
    }
    let _ = write!(text, "  return v{value}\n}}\n");
    Program::from_module(parse_module(&text).expect("a module"))
}

#[test]
fn levels_of_calls_do_not_multiply() {
    for target in [Target::full(), Target::processor(16)] {
        let size = |levels| {
            let mut options = Options {
                verify: true,
                ..Options::default()
            };
            let lowered = program(levels).lower("k", &target, &mut options);
            let lowered = lowered.expect("a kernel");
            lowered.words.len() * 4 + lowered.kir.len()
        };
        // 81 calls of the large function, and 59,049.
        let (few, many) = (size(4), size(10));
        assert!(many < 4 * few, "{few} bytes, then {many}");
    }
}

/// LLVM's IR for packs of 16 work-items of a module of KIR.
fn llvm(kir: &str) -> Result<String, String> {
    let shape = Shape {
        lanes: 16,
        width: 16,
        packing: Packing::Rows,
        quirks: Default::default(),
        gathers: true,
        stack: Stack::Whole,
    };
    let module = parse_module(kir).map_err(|error| error.to_string())?;
    native::emit(&module, &[(Implicit::GlobalBase, 0)], shape).map_err(|error| error.to_string())
}

#[test]
fn large_functions_are_called_on_processors() {
    let size = |levels| {
        let lowered = program(levels).lower("k", &Target::processor(16), &mut Options::default());
        let kir = lowered.expect("a kernel").kir;
        let text = llvm(&kir).expect("LLVM's IR");
        let functions = text.matches("define internal void @function_").count();
        assert!(functions > 0 && functions <= levels + 1, "{functions}");
        text.len()
    };
    let (few, many) = (size(4), size(10));
    assert!(many < 2 * few, "{few} bytes, then {many}");
}

/// Calls of oneself, of nothing or with other types are refused: a kernel's text may come from a file.
#[test]
fn calls_that_cannot_be_are_refused() {
    let kernel = |call: &str, body: &str| {
        llvm(&format!(
            "kernel \"k\" fn0 {{\n}}\nfunc fn0 \"k\" export () -> () {{\nblock0:\n  v0 = const 1 : i32\n  {call}\n  return\n}}\n\
             func fn1 \"f\" (i32) -> (i32) {{\nblock0(v0: i32):\n{body}  return v0\n}}\n"
        ))
    };
    assert!(kernel("v1 = call.fn1 v0 : i32", "").is_ok());
    for (call, body) in [
        ("v1 = call.fn1 v0 : i32", "  v1 = call.fn1 v0 : i32\n"),
        ("v1 = call.fn1 v0 : i64", ""),
        ("v1 = call.fn1 v0, v0 : i32", ""),
        ("v1 = call.fn2 v0 : i32", ""),
        ("call.fn0", ""),
    ] {
        assert!(kernel(call, body).is_err(), "{call} {body}");
    }
}

/// A kernel that calls a large function so many times, with eight values that live across each call.
fn calls_in_a_row(calls: usize) -> Program {
    let mut text = String::from(
        "kernel \"k\" fn0 {\n  pointer global \"a\" \"uint*\" global none\n}\n\
         func fn0 \"k\" export (ptr.global) -> () {\n\
         block0(v0: ptr.global):\n\
         \x20 v1 = builtin.global_id.0 : i64\n\
         \x20 v2 = trunc v1 : i32\n",
    );
    let _ = (0..8).try_for_each(|i| writeln!(text, "  v{} = xor v2, v{} : i32", 3 + i, 2 + i));
    for call in 0..calls {
        let (a, b) = (3 + call, 10 + call);
        let result = 11 + calls + call;
        let _ = write!(
            text,
            "  v{result} = call.fn1 v{b} : i32\n  v{} = iadd v{a}, v{result} : i32\n",
            b + 1,
        );
    }
    let _ = write!(text, "  store.align4 v0, v{}\n  return\n}}\n", 10 + calls);
    text += "func fn1 \"leaf\" (i32) -> (i32) {\nblock0(v0: i32):\n  v1 = const 5 : i32\n";
    for i in 0..1000 {
        let _ = write!(
            text,
            "  v{} = imul v{}, v1 : i32\n  v{} = xor v{}, v0 : i32\n",
            2 * i + 2,
            if i == 0 { 0 } else { 2 * i + 1 },
            2 * i + 3,
            2 * i + 2
        );
    }
    let _ = write!(text, "  return v2001\n}}\n");
    Program::from_module(parse_module(&text).expect("a module"))
}

#[test]
fn values_that_live_across_calls_do_not_multiply() {
    let size = |calls| {
        let lowered =
            calls_in_a_row(calls).lower("k", &Target::processor(16), &mut Options::default());
        lowered.expect("a kernel").kir.len()
    };
    let (few, many) = (size(250), size(1000));
    assert!(many < 6 * few, "{few} bytes, then {many}");
}
