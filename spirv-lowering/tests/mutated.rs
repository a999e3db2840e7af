//! Golden cases with words and lines exchanged: what still parses and verifies survives every optimisation and the
//! interpreter, whatever it means.

use spirv_lowering::analysis::control_flow::Analyses;
use spirv_lowering::interp::{self, Memory, Options, Scalar};
use spirv_lowering::ir::parse::parse_module;
use spirv_lowering::ir::types::{Space, Type};
use spirv_lowering::ir::verify::verify_module;
use spirv_lowering::passes::{self, CleanUp};
use spirv_lowering_testing::rng::Rng;

const LOOPS: [CleanUp; 2] = [
    CleanUp {
        name: "separate_loops",
        run: |func, _| passes::separate_loops::run(func),
    },
    CleanUp {
        name: "unroll_loops",
        run: |func, _| passes::unroll_loops::run(func),
    },
];

/// Runs every function: it ends, well or with an error.
fn interpret(module: &spirv_lowering::ir::module::Module) {
    for (id, func) in module.functions.iter() {
        for strict in [true, false] {
            let mut memory = Memory::new();
            let args: Vec<Scalar> = func
                .params
                .iter()
                .map(|ty| match ty {
                    Type::Ptr(Space::Global | Space::Constant) => memory.add(vec![7; 64], 16),
                    _ => 3,
                })
                .map(Scalar::known)
                .collect();
            let options = Options {
                steps: 20_000,
                strict,
                ..Default::default()
            };
            if memory.add_globals(module).is_ok() {
                let _ = interp::call(module, id, &args, &mut memory, &options);
            }
        }
    }
}

/// The text of all golden cases.
fn cases() -> Vec<String> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut paths = Vec::new();
    for folder in std::fs::read_dir(root).unwrap() {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            paths.push(file.unwrap().path());
        }
    }
    paths.sort();
    let texts = paths.iter().filter_map(|p| std::fs::read_to_string(p).ok());
    texts.collect()
}

fn mutate(rng: &mut Rng, text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..1 + rng.below(3) {
        let (i, j) = (rng.below(lines.len()), rng.below(lines.len()));
        match rng.below(4) {
            0 => lines.swap(i, j),
            1 => {
                let line = lines[j].clone();
                lines.insert(i, line);
            }
            2 if lines.len() > 2 => {
                lines.remove(i);
            }
            _ => {
                // One word for another of the text.
                let words: Vec<&str> = lines[j].split(' ').collect();
                let new = rng.pick(&words).to_owned();
                let mut words: Vec<&str> = lines[i].split(' ').collect();
                let at = rng.below(words.len());
                words[at] = &new;
                lines[i] = words.join(" ");
            }
        }
    }
    lines.join("\n")
}

#[test]
fn mutated_text_is_refused_or_survives_the_passes() {
    let cases = cases();
    let mut rng = Rng::new(1);
    let count = std::env::var("FUZZ")
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(3000);
    let mut valid = 0;
    for _ in 0..count {
        let case = rng.below(cases.len());
        let text = mutate(&mut rng, &cases[case]);
        let Ok(mut module) = parse_module(&text) else {
            continue;
        };
        if verify_module(&module).is_err() {
            continue;
        }
        valid += 1;
        interpret(&module);
        for (_, func) in module.functions.iter_mut() {
            if func.layout.is_empty() {
                continue;
            }
            let mut analyses = Analyses::default();
            for pass in LOOPS.iter().chain(passes::CLEAN_UP) {
                (pass.run)(func, &mut analyses);
                if let Err(e) = spirv_lowering::ir::verify::verify_standalone(func) {
                    panic!("after {}: {e}\n{text}", pass.name);
                }
            }
        }
        if let Some(first) = module.functions.keys().next() {
            let _ = passes::inline::run(&mut module, first);
            verify_module(&module).unwrap_or_else(|e| panic!("after inline: {e}\n{text}"));
        }
    }
    assert!(valid * 50 > count, "{valid} of {count}");
}
