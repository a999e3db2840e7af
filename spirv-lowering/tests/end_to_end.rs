//! OpenCL C to validated Vulkan SPIR-V: every kernel of `tests/kernels/*.cl`, for two targets, the verifier run after
//! each pass. Without clang 20 or newer there is nothing to compile with, and the tests leave themselves out.

#[path = "../../tests/src/left_out.rs"]
mod left_out;

use left_out::left_out;
use pumice_spirv_tools::TargetEnv;
use spirv::{Capability, ExecutionMode, MemoryAccess, Op};
use spirv_lowering::interface::{sampler, Access, ArgKind, ImageDim, Implicit, SamplerSource};
use spirv_lowering::quirks::{CodeQuirk, CodeQuirks};
use spirv_lowering::target::Target;
use spirv_lowering::{BuiltinLibrary, LinkOptions, Lowered, Options, Program, ReadOptions};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|c| u32::from_le_bytes(*c))
        .collect()
}

fn clang() -> Option<String> {
    (20..=30).rev().map(|v| format!("clang-{v}")).find(|c| {
        Command::new(c)
            .arg("--version")
            .output()
            .is_ok_and(|o| o.status.success())
    })
}

fn compile(clang: &str, source: &Path, header: bool) -> Vec<u32> {
    let name = source.file_stem().unwrap().to_string_lossy().into_owned();
    // Tests run at the same time and may compile the same source.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let unique = format!("pumice-e2e-{}-{number}-{name}.spv", std::process::id());
    let out = std::env::temp_dir().join(unique);
    let mut command = Command::new(clang);
    command.args("-cc1 -triple spirv64 -O2 -w -ffp-contract=off -emit-obj -mllvm -sink-common-insts=false -mllvm -spirv-ext=all,-SPV_KHR_float_controls2 -cl-std=CL3.0".split(' '));
    if header {
        command.args(["-fdeclare-opencl-builtins", "-finclude-default-header"]);
    } else {
        command.arg("-fno-builtin");
    }
    let result = command.arg(source).arg("-o").arg(&out).output().unwrap();
    assert!(
        result.status.success(),
        "{}: {}",
        source.display(),
        String::from_utf8_lossy(&result.stderr)
    );
    let bytes = std::fs::read(&out).unwrap();
    let _ = std::fs::remove_file(&out);
    words(&bytes)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

fn library(clang: &str) -> Option<BuiltinLibrary> {
    let libclc = ["/usr/lib/clc", "/usr/share/clc"]
        .iter()
        .find_map(|folder| std::fs::read(Path::new(folder).join("spirv64-mesa3d-.spv")).ok())?;
    let own = compile(clang, &root().join("../shaders/builtins/library.cl"), false);
    Some(BuiltinLibrary::new(&words(&libclc), &own).unwrap())
}

fn lower(program: &Program, kernel: &str, target: &Target) -> Lowered {
    lower_with(program, kernel, target, None)
}

fn lower_with(
    program: &Program,
    kernel: &str,
    target: &Target,
    library: Option<&BuiltinLibrary>,
) -> Lowered {
    let mut options = Options {
        verify: true,
        library,
        ..Default::default()
    };
    let lowered = program.lower(kernel, target, &mut options).unwrap();
    let words = &lowered.words;
    if !target.native {
        pumice_spirv_tools::validate_with_scalar_blocks(TargetEnv::Vulkan_1_2, words)
            .unwrap_or_else(|error| panic!("{kernel}: {error}"));
    }
    assert_eq!(Lowered::from_bytes(&lowered.to_bytes()).unwrap(), lowered);
    lowered
}

#[test]
fn kernels() {
    let Some(clang) = clang() else {
        return left_out("no clang 20 or newer");
    };
    let Some(library) = library(&clang) else {
        return left_out("no libclc");
    };
    let mut sources: Vec<PathBuf> = std::fs::read_dir(root().join("tests/kernels"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    sources.sort();
    let mut failures = Vec::new();
    for source in sources
        .iter()
        .filter(|p| p.extension().is_some_and(|e| e == "cl"))
    {
        let input = compile(&clang, source, true);
        if let Err(error) = pumice_spirv_tools::validate(TargetEnv::Universal_1_6, &input) {
            failures.push(format!("{}: {error}", source.display()));
        }
        let program = Program::read(&input, &ReadOptions::default()).unwrap();
        let options = LinkOptions {
            library: Some(&library),
            ..Default::default()
        };
        let program = Program::link(&[&program], &options).unwrap();
        program.globals().unwrap();
        for kernel in program.kernels() {
            let lower =
                |target: &Target| lower_with(&program, &kernel.name, target, Some(&library));
            let lines = lower(&Target::processor(8)).kir.lines().count();
            // `shared_calls` has 62,000 with everything inlined.
            assert!(lines < 20_000, "{}: {lines} lines", kernel.name);
            for target in [
                Target::full(),
                Target::lavapipe(),
                miscounting(),
                Target::weak(),
                small_in_memory(),
            ] {
                // Some compute with halves.
                let halves = kernel.name.contains("half") || kernel.name.contains("fp16");
                if halves && !target.fp16.supported {
                    continue;
                }
                let lowered = lower(&target);
                let has = |capability| has(&lowered.words, capability);
                assert!(target.int64 || !has(Capability::Int64));
                assert!(target.small_ints || !has(Capability::Int8) && !has(Capability::Int16));
                assert!(target.fp16.supported || !has(Capability::Float16));
                assert!(target.has_storage(1) || !has(Capability::StorageBuffer8BitAccess));
                assert!(target.has_storage(2) || !has(Capability::StorageBuffer16BitAccess));
                let most = match kernel.name.as_str() {
                    // 400,000 with everything inlined.
                    "shared_calls" => 150_000,
                    // 127,000 where each fma in libclc is rounded once.
                    "functions_of_double" => 30_000,
                    "fma_of_double" => 1_500,
                    _ => continue,
                };
                let (name, words) = (&kernel.name, lowered.words.len());
                assert!(words < most, "{name}: {words} words");
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Returns true if a module declares the capability.
fn has(words: &[u32], capability: Capability) -> bool {
    let declared = [2 << 16 | Op::Capability as u32, capability as u32];
    words[5..].windows(2).any(|pair| pair == declared)
}

/// A device with small integers in memory, but not in arithmetic.
fn small_in_memory() -> Target {
    Target {
        int64: true,
        ..Target::weak()
    }
}

/// A device whose compiler has the defect that `unsigned_compares` is for.
fn miscounting() -> Target {
    Target {
        quirks: CodeQuirks::from([CodeQuirk::NegatedBounds]),
        ..Target::full()
    }
}

/// The memory operands of all loads and stores through volatile pointers.
fn volatile_operands(words: &[u32]) -> Vec<(Op, MemoryAccess)> {
    let mut found = Vec::new();
    let mut at = 5;
    while at < words.len() {
        let (len, op) = ((words[at] >> 16) as usize, words[at] & 0xffff);
        let operand = [(Op::Load, 4), (Op::Store, 3)]
            .into_iter()
            .find(|&(known, _)| known as u32 == op);
        if let Some((op, place)) = operand.filter(|&(_, place)| place < len) {
            let access = MemoryAccess::from_bits_truncate(words[at + place]);
            if access.contains(MemoryAccess::VOLATILE) {
                found.push((op, access));
            }
        }
        at += len;
    }
    found
}

/// `Volatile` lets a cache answer, by itself.
#[test]
fn volatile_accesses_are_seen_by_others() {
    let Some(clang) = clang() else {
        return left_out("no clang 20 or newer");
    };
    let input = compile(&clang, &root().join("tests/kernels/volatile.cl"), true);
    let program = Program::read(&input, &ReadOptions::default()).unwrap();
    let seen = |op| match op {
        Op::Load => MemoryAccess::MAKE_POINTER_VISIBLE,
        _ => MemoryAccess::MAKE_POINTER_AVAILABLE,
    };
    let cases: [(&str, &[Op]); 3] = [
        ("locked", &[Op::Load]),
        ("waits", &[Op::Load, Op::Store]),
        (
            "in_step",
            &[
                Op::Store,
                Op::Load,
                Op::Load,
                Op::Store,
                Op::Load,
                Op::Load,
                Op::Store,
                Op::Load,
            ],
        ),
    ];
    for (kernel, ops) in cases {
        let operands = volatile_operands(&lower(&program, kernel, &Target::full()).words);
        let found: Vec<Op> = operands.iter().map(|&(op, _)| op).collect();
        assert_eq!(found, ops, "{kernel}");
        for (op, access) in operands {
            let wanted = seen(op) | MemoryAccess::NON_PRIVATE_POINTER;
            assert!(access.contains(wanted), "{kernel}: {access:?}");
        }
    }
}

/// Work-items that have parted meet again where the source has them meet, in kernels where that can be seen.
#[test]
fn kernels_with_barriers_reconverge() {
    let Some(clang) = clang() else {
        return left_out("no clang 20 or newer");
    };
    let mode = |target: &Target, file: &str, kernel: &str| {
        let path = root().join("tests/kernels").join(file);
        let input = compile(&clang, &path, true);
        let program = Program::read(&input, &ReadOptions::default()).unwrap();
        let words = lower(&program, kernel, target).words;
        let mode = ExecutionMode::MaximallyReconvergesKHR as u32;
        let instruction = 3 << 16 | Op::ExecutionMode as u32;
        words
            .windows(3)
            .any(|at| at[0] == instruction && at[2] == mode)
    };
    let without = Target {
        maximal_reconvergence: false,
        ..Target::full()
    };
    assert!(mode(&Target::full(), "reduction.cl", "reduce_static"));
    assert!(!mode(&without, "reduction.cl", "reduce_static"));
    assert!(!mode(&Target::full(), "vector_add.cl", "vector_add"));
}

#[test]
fn interface() {
    let Some(clang) = clang() else {
        return left_out("no clang 20 or newer");
    };
    let input = compile(&clang, &root().join("tests/kernels/vector_add.cl"), true);
    let program = Program::read(&input, &ReadOptions::default()).unwrap();
    let lowered = lower(&program, "vector_add", &Target::full());
    let interface = &lowered.interface;
    assert!(interface.guarded);
    assert_eq!(
        interface.implicit,
        [(Implicit::GlobalBase, 0), (Implicit::GlobalEnd, 12)]
    );
    let kinds: Vec<ArgKind> = interface.args.iter().map(|a| a.kind).collect();
    let buffer = |offset| ArgKind::Buffer {
        offset,
        constant: false,
    };
    assert_eq!(
        kinds,
        [
            buffer(24),
            buffer(32),
            buffer(40),
            ArgKind::Value {
                offset: 48,
                size: 4
            }
        ]
    );
    assert_eq!(interface.push_size, 52);
    assert_eq!(interface.arg_access, [1, 1, 2, 0].map(Access::from_bits));
    assert!(!interface.uses_indirect_pointers && interface.instruction_bound < 100);
    // A 3-vector has the size and alignment of a 4-vector.
    let lowered = lower(&program, "vector_add4", &Target::full());
    assert_eq!(
        lowered.interface.args[3].kind,
        ArgKind::Value {
            offset: 48,
            size: 16
        }
    );
    // Too small a push-constant block: the arguments go to a buffer.
    let small = Target {
        max_push_constants: 32,
        ..Target::full()
    };
    let lowered = lower(&program, "vector_add", &small);
    assert!(lowered.interface.args_in_buffer);
    assert_eq!(lowered.interface.arg_buffer_size, 28);
    assert_eq!(
        lowered.interface.implicit,
        [
            (Implicit::ArgBuffer, 0),
            (Implicit::GlobalBase, 8),
            (Implicit::GlobalEnd, 20)
        ]
    );
    assert_eq!(lowered.interface.push_size, 32);
}

#[test]
fn images() {
    let Some(clang) = clang() else {
        return left_out("no clang 20 or newer");
    };
    let Some(library) = library(&clang) else {
        return left_out("no libclc");
    };
    let input = compile(&clang, &root().join("tests/kernels/image.cl"), true);
    let program = Program::read(&input, &ReadOptions::default()).unwrap();
    let options = LinkOptions {
        library: Some(&library),
        ..Default::default()
    };
    let program = Program::link(&[&program], &options).unwrap();
    // Read and written: one binding where the target can load without a format, two where not.
    for (target, sampled) in [(Target::full(), false), (Target::lavapipe(), true)] {
        let interface = lower(&program, "rw", &target).interface;
        assert_eq!(interface.arg_access, [Access::ANY; 4]);
        for arg in &interface.args {
            let ArgKind::Image(image) = arg.kind else {
                panic!("{:?}", arg.kind);
            };
            assert_eq!(image.bindings.sampled.is_some(), sampled);
            assert!(image.bindings.storage.is_some());
            // Integer writes need to know the format, and those of floats where the device saturates NaN.
            let writes_floats = matches!(image.dim, ImageDim::D2 | ImageDim::D3);
            assert_eq!(
                image.info.is_none(),
                writes_floats && !target.quirks.has(CodeQuirk::NanTexels)
            );
        }
    }
    // Where the device filters, samplers are descriptors: one for each argument and word.
    let interface = lower(&program, "filters", &Target::full()).interface;
    let sources: Vec<SamplerSource> = interface.samplers.iter().map(|s| s.source).collect();
    let literal = SamplerSource::Literal(
        sampler::NORMALIZED_COORDS | sampler::ADDRESS_REPEAT | sampler::FILTER_LINEAR,
    );
    assert_eq!(sources.len(), 2);
    assert!(sources.contains(&SamplerSource::Arg(3)) && sources.contains(&literal));
    assert_eq!(interface.arg_access, [1, 1, 1, 0, 3].map(Access::from_bits));
    let interface = lower(&program, "filters", &Target::lavapipe()).interface;
    assert!(interface.samplers.is_empty());
    assert!(matches!(
        interface.args[3].kind,
        ArgKind::Sampler { offset: Some(_) }
    ));
}
