//! Golden tests: every `tests/cases/<pass>/*.kir` is parsed, verified, put through the pass that the folder names,
//! verified again and printed; the text must be that of the `.expected` file beside it. `BLESS=1` writes those
//! files. To add a folder, add a line to [`passes`].
//!
//! The functions are executed too, before and after: those whose parameters are numbers and pointers to global memory, on a
//! few inputs. A line `; run fn0 1 0x20 [00ff]` in a case adds inputs of its own: numbers, and buffers by their bytes. Runs
//! that the interpreter cannot do in the first place (an unknown value decides, images) count only where they were asked for.
//! Whole kernels are launched where a case says how ([`launch`]).

mod launch;

use spirv_lowering::analysis::arg_access;
use spirv_lowering::analysis::control_flow::Analyses;
use spirv_lowering::analysis::waits::Looking;
use spirv_lowering::error::LowerError;
use spirv_lowering::interface::KernelInterface;
use spirv_lowering::interp::{self, Error, Memory, Options, Region, Scalar};
use spirv_lowering::ir::compact::compact;
use spirv_lowering::ir::entity::{Entity, FuncId};
use spirv_lowering::ir::function::Function;
use spirv_lowering::ir::module::Module;
use spirv_lowering::ir::parse::parse_module;
use spirv_lowering::ir::types::{Space, Type};
use spirv_lowering::ir::verify::rules::Rule;
use spirv_lowering::ir::verify::verify_module;
use spirv_lowering::native;
use spirv_lowering::passes::lower_builtin_vars::Arrangement;
use spirv_lowering::passes::quirks::opaque_zeros::Zeros;
use spirv_lowering::passes::quirks::unsigned_compares::Compares;
use spirv_lowering::passes::{self, CleanUp, CLEAN_UP};
use spirv_lowering::pipeline::lists;
use spirv_lowering::pipeline::pass::Step;
use spirv_lowering::quirks::{CodeQuirk, CodeQuirks};
use spirv_lowering::target::{subgroup, Target};
use std::path::{Path, PathBuf};

/// The action of a folder of cases on a module.
enum Pass {
    /// To every function with a body.
    Function(fn(&mut Function) -> bool),
    /// The same, of the clean-up.
    CleanUp(&'static CleanUp),
    /// The same, and it may fail.
    Try(fn(&mut Function) -> Result<(), LowerError>),
    /// To the module, given the function of its first kernel (or fn0).
    Module(fn(&mut Module, FuncId) -> Result<(), String>),
    /// The same, and it leaves the interface of the kernel.
    Interface(fn(&mut Module, FuncId) -> Result<KernelInterface, String>),
    /// Prints a fact about the function.
    Fact(fn(&Module, FuncId) -> Result<String, String>),
}

fn unsigned_compares(func: &mut Function, of_negations: bool) -> Result<(), LowerError> {
    let which = Compares {
        of_negations,
        of_extended: !of_negations,
    };
    passes::quirks::unsigned_compares::run(func, which).map(|_| ())
}

/// Lowers sub-groups to those of eight, with some operations beside those that are needed.
fn subgroup_size(module: &mut Module, func: FuncId, ops: u32) -> Result<(), String> {
    let target = Target {
        subgroup_ops: 0x1b | ops,
        ..Target::lavapipe()
    };
    let attributes = &module.kernels.first().ok_or("no kernel")?.attributes;
    if !passes::lower_subgroup_size::applies(attributes, &target) {
        return Err("its sub-groups are the device's".to_owned());
    }
    let result = passes::lower_subgroup_size::run(&mut module.functions[func], attributes, &target);
    result.map_err(|e| e.to_string())
}

fn passes(folder: &str) -> Option<Pass> {
    Some(match folder {
        "round_trip" => Pass::Function(|_| false),
        "clean" => Pass::Function(passes::clean),
        "contract" => Pass::Function(|f| passes::contract::run(f, &Target::full())),
        "release_locks" => Pass::Function(|f| passes::release_locks::run(f, &Looking::default())),
        "separate_loops" => Pass::Function(passes::separate_loops::run),
        "split_sub_groups" => Pass::Try(|f| passes::split_sub_groups::run(f, 8).map(|_| ())),
        "unroll_loops" => Pass::Function(passes::unroll_loops::run),
        "expand_memcopy" => Pass::Try(passes::expand_memcopy::run),
        "narrow_bit_counts" => Pass::Try(passes::quirks::narrow_bit_counts::run),
        "lower_division" => Pass::Try(|f| passes::lower_division::run(f, false).map(|_| ())),
        "lower_division_all" => Pass::Try(|f| passes::lower_division::run(f, true).map(|_| ())),
        "folded_bits" => Pass::Try(|f| passes::quirks::folded_bits::run(f).map(|_| ())),
        "narrow_extremes" => Pass::Try(passes::quirks::narrow_extremes::run),
        "absolute_differences" => {
            Pass::Try(|f| passes::quirks::absolute_differences::run(f).map(|_| ()))
        }
        "half_overflow" => Pass::Try(|f| passes::quirks::half_overflow::run(f).map(|_| ())),
        "opaque_zeros" => {
            Pass::Try(|f| passes::quirks::opaque_zeros::run(f, Zeros::All).map(|_| ()))
        }
        "wrapping_induction" => {
            Pass::Try(|f| passes::quirks::wrapping_induction::run(f).map(|_| ()))
        }
        "divided_trip_counts" => {
            Pass::Try(|f| passes::quirks::divided_trip_counts::run(f).map(|_| ()))
        }
        "unsigned_compares" => Pass::Try(|f| unsigned_compares(f, true)),
        "unsigned_compares_extended" => Pass::Try(|f| unsigned_compares(f, false)),
        "misrounded_doubles" => Pass::Try(passes::quirks::misrounded_doubles::run),
        "legalize" => Pass::Try(passes::legalize::run),
        "lower_atomic" => Pass::Try(|f| passes::lower_atomic::run(f, &Target::full())),
        "lower_convert" => Pass::Try(|f| {
            let target = Target {
                quirks: CodeQuirks::from([CodeQuirk::ForgottenHalves]),
                ..Target::full()
            };
            passes::lower_convert::run(f, &target)
        }),
        "lower_private" => Pass::Try(|f| passes::lower_private::run(f).map(|_| ())),
        "zero_memory" => Pass::Function(|f| passes::zero_memory::run(f, |_, _| true)),
        "structurize" => Pass::Try(passes::structurize::run),
        "overwritten_values" => Pass::Try(|f| {
            passes::structurize::run(f)?;
            passes::quirks::overwritten_values::run(f);
            Ok(())
        }),
        "nested_branches" => Pass::Module(|m, func| {
            let func = &mut m.functions[func];
            let done = passes::structurize::run(func);
            done.and_then(|()| passes::quirks::nested_branches::check(func))
                .map_err(|error| error.to_string())
        }),
        "second_exits" => Pass::Try(|f| {
            passes::structurize::run(f)?;
            passes::quirks::second_exits::run(f);
            Ok(())
        }),
        "lower_int16" => Pass::Interface(|m, f| {
            let target = Target {
                int64: true,
                ..Target::weak()
            };
            small_ints(m, f, &target)
        }),
        "lower_int16_words" => Pass::Interface(|m, f| {
            let target = Target {
                storage8: false,
                storage16: false,
                unpacks_halves: true,
                packs_halves: true,
                ..Target::weak()
            };
            small_ints(m, f, &target)
        }),
        "lower_int64" => Pass::Interface(|m, f| {
            let interface = arguments(m, f, &Target::weak())?;
            let func = &mut m.functions[f];
            let lower = |func: &mut Function| {
                passes::lower_private::run(func)?;
                passes::legalize::run(func)?;
                passes::lower_int64::run(func)
            };
            lower(func).map_err(|e| e.to_string())?;
            passes::clean(func);
            match Rule::NoInt64.check(func) {
                Ok(()) => Ok(interface),
                Err(what) => Err(what),
            }
        }),
        "lower_dot" => Pass::Try(|f| passes::lower_dot::run(f, &Target::lavapipe())),
        "lower_group" => Pass::Module(|m, f| {
            passes::lower_group::run(
                &mut m.functions[f],
                &mut m.globals,
                &Target {
                    subgroup_ops: 0x1f,
                    subgroup_extended_types: false,
                    ..Target::lavapipe()
                },
            )
            .map_err(|e| e.to_string())
        }),
        "lower_subgroup_size" => Pass::Module(|m, f| subgroup_size(m, f, subgroup::CLUSTERED)),
        "lower_subgroup_size_plain" => Pass::Module(|m, f| subgroup_size(m, f, 0)),
        "lower_local" => Pass::Module(|m, f| local(m, f, &Target::lavapipe())),
        "lower_local_explicit" => Pass::Module(|m, f| local(m, f, &Target::full())),
        "lower_images" => Pass::Module(|m, f| images(m, f, &Target::full())),
        "lower_images_no_load" => Pass::Module(|m, f| images(m, f, &Target::lavapipe())),
        "fold_constant_loads" => Pass::Module(|m, f| {
            let result = passes::fold_constant_loads::run(&mut m.functions[f], &m.globals);
            result.map(|_| ()).map_err(|e| e.to_string())
        }),
        "compact" => Pass::Function(|f| {
            *f = compact(f);
            true
        }),
        "lower_generic_ptr" => Pass::Try(passes::lower_generic_ptr::run),
        "lower_builtin_vars" => Pass::Try(|f| builtin_vars(f, None)),
        "wide_range" => Pass::Try(|f| passes::wide_range::run(f).map(drop)),
        "lower_half_atomic" => {
            Pass::Try(|f| passes::lower_half_atomic::run(f, &Target::full()).map(drop))
        }
        "lower_builtin_vars_linear" => Pass::Try(|f| builtin_vars(f, Some(8))),
        "lower_printf" => Pass::Module(|m, f| {
            let variables = m.globals.clone();
            let sites = passes::lower_printf::run(&mut m.functions[f], &m.printfs, &variables);
            m.printfs = sites.map_err(|e| e.to_string())?;
            Ok(())
        }),
        "lower_globals" => Pass::Module(|m, f| {
            let layout = passes::lower_globals::layout(m).map_err(|e| e.to_string())?;
            let module = m.clone();
            passes::lower_globals::run(&mut m.functions[f], &module, &layout)
                .map_err(|e| e.to_string())
        }),
        "guard_range" => Pass::Module(|m, f| {
            let kernel = m.kernels.first().ok_or("no kernel")?;
            if !passes::guard_range::applies(&m.functions[f], kernel, m) {
                return Err("it can tell how work-items are grouped".to_owned());
            }
            let done = passes::guard_range::run(&mut m.functions[f]);
            done.map(|_| ()).map_err(|e| e.to_string())
        }),
        "lower_builtins" => Pass::Module(|m, f| builtins(m, f, &Target::full())),
        "lower_builtins_plain" => Pass::Module(|m, f| builtins(m, f, &Target::lavapipe())),
        "lower_args" => Pass::Interface(|m, f| arguments(m, f, &Target::full())),
        "lower_args_in_memory" => Pass::Interface(|m, f| {
            let target = Target {
                max_push_constants: 32,
                ..Target::full()
            };
            arguments(m, f, &target)
        }),
        "arg_access" => {
            Pass::Fact(|m, f| Ok(format!("{:?}", arg_access::analyse(&m.functions[f]))))
        }
        "local_size" => Pass::Fact(|m, f| {
            let locals = native::locals(&m.globals, &m.functions[f]);
            Ok(format!(
                "{} bytes",
                locals.map_err(|e| e.to_string())?.bytes
            ))
        }),
        "lower_atomic_none" => Pass::Try(|f| {
            let target = Target {
                float32_atomic_add_global: false,
                float32_atomic_add_local: false,
                ..Target::full()
            };
            passes::lower_atomic::run(f, &target)
        }),
        "lower_convert_forgets" => Pass::Try(|f| {
            let target = Target {
                quirks: CodeQuirks::from([CodeQuirk::ForgottenRounding]),
                ..Target::full()
            };
            passes::lower_convert::run(f, &target)
        }),
        "lower_convert_flushes" => Pass::Try(|f| {
            let target = Target {
                quirks: CodeQuirks::from([CodeQuirk::FlushedFloats]),
                ..Target::full()
            };
            passes::lower_convert::run(f, &target)
        }),
        "lower_convert_plain" => Pass::Try(|f| passes::lower_convert::run(f, &Target::lavapipe())),
        "share_calls" => Pass::Module(|module, func| share(module, func, usize::MAX)),
        "carry" => Pass::Module(|module, func| share(module, func, 0)),
        "inline" => Pass::Module(|m, f| passes::inline::run(m, f).map_err(|e| e.to_string())),
        _ => Pass::CleanUp(CLEAN_UP.iter().find(|pass| pass.name == folder)?),
    })
}

fn builtin_vars(func: &mut Function, lanes: Option<u32>) -> Result<(), LowerError> {
    let linear = true;
    passes::lower_builtin_vars::run(func, Arrangement { lanes, linear })
}

fn builtins(module: &mut Module, func: FuncId, target: &Target) -> Result<(), String> {
    let options = spirv_lowering::Options::default();
    let config = passes::lower_builtins::Config::new(&options, module.functions.len());
    let names = module.clone();
    let name = |id: FuncId| names.functions.get(id).map(|f| f.name.clone());
    passes::lower_builtins::run(&mut module.functions[func], &name, target, config)
        .map_err(|e| e.to_string())
}

fn arguments(
    module: &mut Module,
    func: FuncId,
    target: &Target,
) -> Result<KernelInterface, String> {
    let kernel = module.kernels.first().ok_or("no kernel")?.clone();
    let func = &mut module.functions[func];
    let access = arg_access::analyse(func);
    let images = passes::lower_images::run(func, &kernel, target).map_err(|e| e.to_string())?;
    let found = passes::lower_args::Found {
        access: &access,
        images: &images,
        implicits: &[],
        looking: &Looking::default(),
    };
    passes::lower_args::run(func, &kernel, found, target).map_err(|e| e.to_string())
}

/// Describes the arguments of an interface.
fn described(interface: &KernelInterface) -> String {
    let mut text = format!("; {} bytes of push constants", interface.push_size);
    if interface.args_in_buffer {
        text += &format!(", {} in memory", interface.arg_buffer_size);
    }
    if interface.uses_indirect_pointers {
        text += ", pointers from memory are followed";
    }
    for (which, at) in &interface.implicit {
        text += &format!("\n; {which:?} at {at}");
    }
    for (arg, access) in interface.args.iter().zip(&interface.arg_access) {
        text += &format!("\n; {}: {:?}, access {}", arg.name, arg.kind, access.bits());
    }
    for sampler in &interface.samplers {
        text += &format!("\n; {sampler:?}");
    }
    text + "\n"
}

/// Shares whatever is called twice.
fn share(module: &mut Module, func: FuncId, calls_squared: usize) -> Result<(), String> {
    let limits = passes::share_calls::Limits {
        budget: 0,
        most: 0,
        min_size: 1,
        calls_squared,
        ..Default::default()
    };
    let forms = passes::share_calls::run(module, func, &limits, false);
    let shared = forms.map_err(|e| e.to_string())?.divided;
    let shared = shared.ok_or("nothing is shared")?.kernel;
    module.functions[func] = Function {
        name: module.functions[func].name.clone(),
        ..shared
    };
    Ok(())
}

/// Lowers small integers for a target.
fn small_ints(
    module: &mut Module,
    func: FuncId,
    target: &Target,
) -> Result<KernelInterface, String> {
    let interface = arguments(module, func, target)?;
    local(module, func, target)?;
    let func = &mut module.functions[func];
    let lower = |func: &mut Function| {
        passes::lower_private::run(func)?;
        passes::lower_int16::run(func, target)
    };
    lower(func).map_err(|e| e.to_string())?;
    Rule::NoInt16.check(func).map(|()| interface)
}

fn local(module: &mut Module, func: FuncId, target: &Target) -> Result<(), String> {
    let globals = module.globals.clone();
    let result = passes::lower_local::run(&mut module.functions[func], &globals, &[16, 17], target);
    result.map(|_| ()).map_err(|e| e.to_string())
}

fn images(module: &mut Module, func: FuncId, target: &Target) -> Result<(), String> {
    let kernel = module.kernels.first().ok_or("no kernel")?;
    let result = passes::lower_images::run(&mut module.functions[func], kernel, target);
    result.map(|_| ()).map_err(|e| e.to_string())
}

/// Cases whose results may differ: products that are contracted, reciprocals in place of divisions, addresses of private
/// memory as numbers.
const NOT_RUN: [&str; 4] = [
    "contract/fused",
    "const_fold/floats",
    "mem2reg/lanes",
    "lower_private/table",
];

/// Passes after which a function needs what a launch supplies, or several of them: it is not called by itself.
const LAUNCHED: [&str; 4] = [
    "guard_range",
    "lower_printf",
    "lower_subgroup_size",
    "lower_subgroup_size_plain",
];

/// An input of a function.
#[derive(Clone)]
enum Input {
    Bits(u64),
    Buffer(Vec<u8>),
}

type Outcome = (Vec<Scalar>, Vec<Region>);

fn execute(
    module: &Module,
    func: FuncId,
    inputs: &[Input],
    strict: bool,
) -> Result<Outcome, Error> {
    let mut memory = Memory::new();
    let place = |input: &Input| match input {
        Input::Bits(bits) => Scalar::known(*bits),
        Input::Buffer(bytes) => Scalar::known(memory.add(bytes.clone(), 128)),
    };
    let args: Vec<Scalar> = inputs.iter().map(place).collect();
    memory.add_globals(module)?;
    let options = Options {
        steps: 1_000_000,
        strict,
        noise: if strict { 1 } else { 0x1234_5678_9abc },
        ..Default::default()
    };
    let results = interp::call(module, func, &args, &mut memory, &options)?;
    Ok((results, memory.regions().to_vec()))
}

/// Inputs for a function, where they can be made up.
fn inputs(func: &Function, round: u64) -> Option<Vec<Input>> {
    let input = |(i, ty): (usize, &Type)| {
        let seed = (round * 31 + i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Some(match ty {
            Type::Ptr(Space::Global | Space::Constant) => Input::Buffer(
                (0..512u64)
                    .map(|k| (seed >> 40).wrapping_mul(k) as u8)
                    .collect(),
            ),
            Type::Ptr(_) | Type::Handle => return None,
            ty => Input::Bits(
                match round {
                    0 => i as u64,
                    1 => seed >> 3,
                    _ => seed % 7,
                } & ty.mask(),
            ),
        })
    };
    func.params.iter().enumerate().map(input).collect()
}

/// The runs that a case asks for.
fn asked(text: &str) -> Result<Vec<(FuncId, Vec<Input>)>, String> {
    let mut list = Vec::new();
    for line in text.lines().filter_map(|l| l.strip_prefix("; run fn")) {
        let mut words = line.split_whitespace();
        let number = |word: &str| match word.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).map_err(|e| format!("{word}: {e}")),
            None => word.parse::<u64>().map_err(|e| format!("{word}: {e}")),
        };
        let func = FuncId::new(number(words.next().unwrap_or_default())? as usize);
        let mut inputs = Vec::new();
        for word in words {
            inputs.push(
                match word.strip_prefix('[').and_then(|w| w.strip_suffix(']')) {
                    Some(hex) => {
                        let byte = |i| number(&format!("0x{}", &hex[i..i + 2])).map(|b| b as u8);
                        Input::Buffer(
                            (0..hex.len())
                                .step_by(2)
                                .map(byte)
                                .collect::<Result<_, _>>()?,
                        )
                    }
                    None => Input::Bits(number(word)?),
                },
            );
        }
        list.push((func, inputs));
    }
    Ok(list)
}

/// Executes a module before and after a pass. How often that said something.
fn compare(text: &str, before: &Module, after: &Module) -> Result<usize, String> {
    let asked = asked(text)?;
    let mut runs: Vec<(FuncId, Vec<Input>, bool)> = Vec::new();
    runs.extend(asked.into_iter().map(|(func, inputs)| (func, inputs, true)));
    for (id, func) in before.functions.iter() {
        let same = after
            .functions
            .get(id)
            .is_some_and(|f| f.params == func.params);
        if same && !func.layout.is_empty() {
            let made = (0..4).filter_map(|round| inputs(func, round));
            runs.extend(made.map(|inputs| (id, inputs, false)));
        }
    }
    let mut count = 0;
    for (id, inputs, wanted) in runs {
        let original = match execute(before, id, &inputs, true) {
            Ok(original) => original,
            Err(error) if wanted => return Err(format!("{id}: {error}")),
            Err(_) => continue,
        };
        let (results, regions) =
            execute(after, id, &inputs, false).map_err(|e| format!("{id}, after: {e}"))?;
        let allowed = original.0.iter().zip(&results).all(|(a, b)| a.allows(*b));
        let kept = original.1.iter().zip(&regions).all(|(a, b)| {
            let bytes = a.bytes.iter().zip(&b.bytes).zip(&a.unknown);
            bytes
                .clone()
                .all(|((a, b), unknown)| (a ^ b) & !unknown == 0)
        });
        if !allowed || !kept {
            return Err(format!(
                "{id} gives {:x?}, after the pass {results:x?}",
                original.0
            ));
        }
        count += 1;
    }
    Ok(count)
}

fn run(folder: &str, path: &Path, runs: &mut usize) -> Result<String, String> {
    let pass = passes(folder).ok_or_else(|| format!("no pass for the folder `{folder}`"))?;
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let mut module = parse_module(&text).map_err(|e| e.to_string())?;
    verify_module(&module).map_err(|e| format!("input: {e}"))?;
    let before = module.clone();
    let mut interface = None;
    match pass {
        Pass::Function(pass) => {
            for (_, func) in module.functions.iter_mut() {
                if !func.layout.is_empty() {
                    pass(func);
                }
            }
        }
        Pass::CleanUp(pass) => {
            for (_, func) in module.functions.iter_mut() {
                if !func.layout.is_empty() {
                    (pass.run)(func, &mut Analyses::default());
                }
            }
        }
        Pass::Try(pass) => {
            for (_, func) in module.functions.iter_mut() {
                if !func.layout.is_empty() {
                    pass(func).map_err(|e| e.to_string())?;
                }
            }
        }
        Pass::Module(pass) => {
            let first = module.kernels.first().map(|k| k.func);
            let func = first.or_else(|| module.functions.keys().next());
            if let Err(what) = pass(&mut module, func.ok_or("no function")?) {
                return Ok(format!("error: {what}\n"));
            }
        }
        Pass::Interface(pass) => {
            let func = module.kernels.first().ok_or("no kernel")?.func;
            match pass(&mut module, func) {
                Ok(made) => interface = Some(made),
                Err(what) => return Ok(format!("error: {what}\n")),
            }
        }
        Pass::Fact(pass) => {
            let first = module.kernels.first().map(|k| k.func);
            let func = first.or_else(|| module.functions.keys().next());
            return Ok(pass(&module, func.ok_or("no function")?)? + "\n");
        }
    }
    let case = text;
    let text = module.to_string();
    verify_module(&module).map_err(|e| format!("output: {e}\n{text}"))?;
    let name = path.with_extension("");
    if !NOT_RUN.iter().any(|case| name.ends_with(case)) {
        if !LAUNCHED.contains(&folder) {
            *runs += compare(&case, &before, &module)?;
        }
        *runs += launch::compare(&case, &before, &module, interface.as_ref())?;
    }
    let again = parse_module(&text).map_err(|e| format!("printed text: {e}\n{text}"))?;
    if again.to_string() != text {
        return Err(format!("text does not round-trip:\n{text}\n{again}"));
    }
    Ok(text + &interface.as_ref().map(described).unwrap_or_default())
}

#[test]
fn cases() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let bless = std::env::var_os("BLESS").is_some_and(|v| v == "1");
    let sorted = |dir: &Path| -> Vec<PathBuf> {
        let mut list: Vec<PathBuf> = std::fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        list.sort();
        list
    };
    let mut failures = Vec::new();
    let mut count = 0;
    let mut runs = 0;
    for folder in sorted(&root) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        for path in sorted(&folder) {
            if path.extension().is_none_or(|e| e != "kir") {
                continue;
            }
            count += 1;
            let expected_path = path.with_extension("expected");
            let expected = std::fs::read_to_string(&expected_path).unwrap_or_default();
            match run(&name, &path, &mut runs) {
                Ok(text) if text == expected => {}
                Ok(text) if bless => std::fs::write(&expected_path, text).unwrap(),
                Ok(text) => failures.push(format!(
                    "{}: got\n{text}\nexpected\n{expected}",
                    path.display()
                )),
                Err(what) => failures.push(format!("{}: {what}", path.display())),
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(count > 0);
    assert!(runs > 100, "{runs} runs");
}

/// Passes that stand in no list: they run before the lists.
const BEFORE: [&str; 4] = ["lower_builtins", "inline", "share_calls", "carry"];

/// Folders are named by passes, variants of them have more words behind it.
#[test]
fn every_pass_has_cases() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut folders: Vec<(String, usize)> = Vec::new();
    for folder in std::fs::read_dir(root).unwrap() {
        let folder = folder.unwrap();
        let files = std::fs::read_dir(folder.path()).unwrap();
        let is_case = |path: PathBuf| path.extension().is_some_and(|e| e == "kir");
        let count = files
            .filter(|f| is_case(f.as_ref().unwrap().path()))
            .count();
        folders.push((folder.file_name().to_string_lossy().into_owned(), count));
    }
    let listed = [lists::SHARED, lists::VULKAN, lists::NATIVE].into_iter();
    let listed = listed.flatten().filter_map(|step| match step {
        Step::Pass(pass) => Some(pass.name),
        Step::CleanUp => None,
    });
    let mut lacking: Vec<&str> = Vec::new();
    for name in listed.chain(CLEAN_UP.iter().map(|p| p.name)).chain(BEFORE) {
        let of_it = |folder: &str| {
            let rest = folder.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        };
        let mine = folders.iter().filter(|(folder, _)| of_it(folder));
        if mine.map(|(_, count)| count).sum::<usize>() < 2 {
            lacking.push(name);
        }
    }
    lacking.dedup();
    assert!(lacking.is_empty(), "fewer than two cases: {lacking:?}");
    let total: usize = folders.iter().map(|(_, count)| count).sum();
    assert!(total >= 150, "{total} cases");
}
