//! Whole kernels of cases, executed before and after their pass, with the claims of all analyses.
//!
//! `; launch 8/4 [00ff] zeros:64 <01000000> local:32 null` in a case: eight work-items in groups of four, an offset behind a `+`
//! (`8/4+100`), and the arguments in their order: buffers by their bytes or of so many zeros, the bytes of values, local memory,
//! null pointers.

use spirv_lowering::analysis::arg_access::ArgAccess;
use spirv_lowering::claims::Order;
use spirv_lowering::interface::{KernelInterface, SPEC_GUARD};
use spirv_lowering::interp::{
    self, run_claimed, run_lowered, Arg, Lowered, Memory, NdRange, Options, Record,
};
use spirv_lowering::ir::function::Function;
use spirv_lowering::ir::module::Module;
use spirv_lowering::ir::op::Op;
use spirv_lowering::passes::lower_args;
use spirv_lowering::passes::lower_images::Descriptors;
use spirv_lowering::target::Target;
use spirv_lowering_testing::collect_claims;

/// The results of a launch: the bytes of each buffer with the mask of unknown bits, and the records
/// of printf.
type Left = (Vec<(Vec<u8>, Vec<u8>)>, Vec<Record>);

struct Launch {
    range: NdRange,
    args: Vec<String>,
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|e| format!("{text}: {e}"))
}

fn bytes(hex: &str) -> Result<Vec<u8>, String> {
    let byte = |i: usize| {
        let digits = hex
            .get(i..i + 2)
            .ok_or_else(|| format!("{hex}: half a byte"))?;
        u8::from_str_radix(digits, 16).map_err(|e| format!("{hex}: {e}"))
    };
    (0..hex.len()).step_by(2).map(byte).collect()
}

fn launches(text: &str) -> Result<Vec<Launch>, String> {
    let mut list = Vec::new();
    for line in text.lines().filter_map(|l| l.strip_prefix("; launch ")) {
        let mut words = line.split_whitespace();
        let range = words.next().unwrap_or_default();
        let (range, offset) = range.split_once('+').unwrap_or((range, "0"));
        let (global, local) = range.split_once('/').ok_or("launch: no group size")?;
        let sizes = |text: &str| -> Result<(u32, [u32; 3]), String> {
            let mut sizes = [1; 3];
            let list: Vec<&str> = text.split('x').collect();
            for (size, text) in sizes.iter_mut().zip(&list) {
                *size = number(text)?;
            }
            Ok((list.len() as u32, sizes))
        };
        let ((dims, global), (_, local)) = (sizes(global)?, sizes(local)?);
        list.push(Launch {
            range: NdRange {
                dims,
                global,
                local,
                offset: [number(offset)?, 0, 0],
            },
            args: words.map(str::to_owned).collect(),
        });
    }
    Ok(list)
}

impl Launch {
    /// Memory with the buffers, and the arguments.
    fn memory(&self, module: &Module) -> Result<(Memory, Vec<Arg>), String> {
        let mut memory = Memory::new();
        let mut args = Vec::new();
        for word in &self.args {
            let inner = |open, close| word.strip_prefix(open)?.strip_suffix(close);
            args.push(if let Some(hex) = inner('[', ']') {
                Arg::Pointer(memory.add(bytes(hex)?, 128))
            } else if let Some(hex) = inner('<', '>') {
                Arg::Value(bytes(hex)?)
            } else if let Some(size) = word.strip_prefix("zeros:") {
                Arg::Pointer(memory.add(vec![0; number(size)? as usize], 128))
            } else if let Some(size) = word.strip_prefix("local:") {
                Arg::Local(number(size)?.into())
            } else if word == "null" {
                Arg::Pointer(0)
            } else {
                return Err(format!("launch: what is {word}?"));
            });
        }
        memory.add_globals(module).map_err(|e| e.to_string())?;
        Ok((memory, args))
    }
}

fn options(strict: bool) -> Options {
    Options {
        steps: 1_000_000,
        strict,
        noise: if strict { 1 } else { 0x1234_5678_9abc },
        ..Default::default()
    }
}

/// Returns the memory that the application sees.
fn left(memory: &Memory, count: usize, printf: Vec<Record>) -> Left {
    let buffers = memory.regions().iter().take(count);
    let known = |r: &interp::Region| (r.bytes.clone(), r.unknown.clone());
    (buffers.map(known).collect(), printf)
}

fn before(module: &Module, launch: &Launch) -> Result<Left, String> {
    let (mut memory, args) = launch.memory(module)?;
    let count = memory.regions().len();
    let name = &module.kernels.first().ok_or("no kernel")?.name;
    let outcome = interp::run(
        module,
        name,
        &launch.range,
        &args,
        &mut memory,
        &options(true),
    );
    let outcome = outcome.map_err(|e| e.to_string())?;
    Ok(left(&memory, count, outcome.printf))
}

fn after(
    module: &Module,
    interface: &KernelInterface,
    launch: &Launch,
    guard: bool,
) -> Result<Left, String> {
    let (mut memory, args) = launch.memory(module)?;
    let count = memory.regions().len();
    let kernel = module.kernels.first().ok_or("no kernel")?;
    let lowered = Lowered {
        module,
        kernel,
        func: &module.functions[kernel.func],
        interface,
        guard,
    };
    let outcome = run_lowered(&lowered, &launch.range, &args, &mut memory, &options(false));
    let outcome = outcome.map_err(|e| format!("after: {e}"))?;
    Ok(left(&memory, count, outcome.printf))
}

/// Returns an error if a claim about a kernel does not hold, where the kernel can be run.
fn hold(module: &Module, interface: &KernelInterface, launch: &Launch) -> Result<(), String> {
    let kernel = module.kernels.first().ok_or("no kernel")?;
    let pieces = collect_claims::of_module(module, kernel.func, true);
    let (mut memory, args) = launch.memory(module)?;
    let lowered = Lowered {
        module,
        kernel,
        func: &pieces.first().ok_or("no function")?.func,
        interface,
        guard: false,
    };
    let (range, options) = (&launch.range, options(false));
    let claims = (pieces.as_slice(), Order::Linear);
    let found = run_claimed(&lowered, claims, range, &args, &mut memory, &options);
    match found.unwrap_or_default().first() {
        Some(found) => Err(found.to_string()),
        None => Ok(()),
    }
}

fn differ(want: &Left, got: &Left) -> bool {
    let allows = |want: &[u8], got: &[u8], unknown: &[u8]| {
        want.len() == got.len()
            && (want.iter().zip(got).zip(unknown)).all(|((a, b), u)| (a ^ b) & !u == 0)
    };
    let buffers = (want.0.iter().zip(&got.0)).all(|(a, b)| allows(&a.0, &b.0, &a.1));
    let mut records: Vec<&Record> = got.1.iter().collect();
    let mut found = |want: &Record| {
        let same = |got: &&Record| allows(&want.bytes, &got.bytes, &want.unknown);
        let at = records.iter().position(same);
        at.map(|at| records.swap_remove(at)).is_some()
    };
    !buffers || want.1.len() != got.1.len() || !want.1.iter().all(&mut found)
}

/// An interface for a function whose parameters are still the kernel's: how arguments are laid out matters to nobody.
fn interface(module: &Module) -> Result<KernelInterface, String> {
    let kernel = module.kernels.first().ok_or("no kernel")?;
    let mut func = module.functions[kernel.func].clone();
    let (access, images) = (ArgAccess::default(), Descriptors::default());
    let found = lower_args::Found {
        access: &access,
        images: &images,
        implicits: &[],
        looking: &Default::default(),
    };
    lower_args::run(&mut func, kernel, found, &Target::full()).map_err(|e| e.to_string())
}

fn is_guarded(func: &Function) -> bool {
    let insts = func.layout.iter().flat_map(|&b| &func.blocks[b].insts);
    insts
        .into_iter()
        .any(|&i| func.insts[i].op == Op::SpecSize(SPEC_GUARD))
}

/// Executes the kernel of a case before and after its pass. How often that said something.
pub fn compare(
    text: &str,
    original: &Module,
    module: &Module,
    made: Option<&KernelInterface>,
) -> Result<usize, String> {
    let mut count = 0;
    for launch in launches(text)? {
        let interface = match made {
            Some(made) => made.clone(),
            None => interface(module)?,
        };
        let want = before(original, &launch)?;
        hold(original, &self::interface(original)?, &launch)?;
        hold(module, &interface, &launch)?;
        let func = &module.functions[module.kernels.first().ok_or("no kernel")?.func];
        for guard in [false, true] {
            if guard && !is_guarded(func) {
                continue;
            }
            let got = after(module, &interface, &launch, guard)?;
            if differ(&want, &got) {
                return Err(format!("{want:x?} became {got:x?}"));
            }
            count += 1;
        }
    }
    Ok(count)
}
