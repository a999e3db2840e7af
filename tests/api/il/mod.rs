//! SPIR-V given by the application: hand-written modules, built and run, or refused with a log that says why.
//!
//! [`Il`] is a kernel `k(global uchar *in, global uchar *out)` around some instructions. Types and integer constants are
//! declared by use: `%u32`, `%f64`, vectors `%u32x4`, pointers `%g_u32` (global), `%l_` (local), `%p_` (private), `%c_`
//! (constant), `%x_` (generic), constants `%u32_7`. Two macros move values: `%a = in u32x4 3` loads from slot 3, `out 2 u32
//! %a` stores to slot 2; a slot has [`SLOT`] bytes. `out 2 bool %a` stores 0 or 1 of 32 bits.

mod arithmetic;
mod bfloat16;
mod constants;
mod control;
mod converted;
mod debug;
mod device_queues;
mod extended;
mod groups;
mod linking;
mod memory;
mod pipe_storage;
mod queries;
mod refused;
mod untyped;

use pumice_spirv_tools::TargetEnv;
use pumice_tests::*;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::ptr::{null, null_mut};

/// Bytes from one value to the next in the buffers of a kernel.
const SLOT: usize = 128;
/// Slots of each buffer.
const SLOTS: usize = 64;

/// A module to be.
#[derive(Default, Clone)]
struct Il {
    capabilities: String,
    decorations: String,
    globals: String,
    body: String,
    imports: String,
    functions: String,
}

impl Il {
    /// A kernel of these instructions.
    fn new(body: &str) -> Self {
        Self {
            body: body.to_owned(),
            ..Self::default()
        }
    }

    /// More capabilities; words that begin with `SPV_` are extensions.
    fn needs(mut self, names: &str) -> Self {
        for name in names.split_whitespace() {
            let line = match name.starts_with("SPV_") {
                true => format!("OpExtension \"{name}\"\n"),
                false => format!("OpCapability {name}\n"),
            };
            self.capabilities += &line;
        }
        self
    }

    /// Returns true, and leaves the test out, if the device does not compute with floats of a width that it uses.
    #[track_caller]
    fn lacks_floats(&self, setup: &Setup) -> bool {
        let text = self.text();
        let widths = [("Float16\n", "cl_khr_fp16"), ("Float64\n", "cl_khr_fp64")];
        let lacking = widths.iter().find(|(capability, extension)| {
            text.contains(&format!("OpCapability {capability}")) && !setup.has_extension(extension)
        });
        if let Some((_, extension)) = lacking {
            pumice_tests::left_out(&format!("no {extension}"));
        }
        lacking.is_some()
    }

    /// Execution modes and decorations.
    fn decorated(mut self, text: &str) -> Self {
        self.decorations += text;
        self.decorations += "\n";
        self
    }

    /// Types, constants and variables of module scope.
    fn with(mut self, text: &str) -> Self {
        self.globals += text;
        self.globals += "\n";
        self
    }

    /// Functions without bodies.
    fn imports(mut self, text: &str) -> Self {
        self.imports += text;
        self.imports += "\n";
        self
    }

    /// Further functions.
    fn calls(mut self, text: &str) -> Self {
        self.functions += text;
        self.functions += "\n";
        self
    }

    /// The module as text.
    fn text(&self) -> String {
        let mut numbers = 0;
        let mut used = String::new();
        for text in [&self.globals, &self.body, &self.functions, &self.imports] {
            used += &expand(text, &mut numbers);
            used.push('\u{1}');
        }
        let mut parts = used.split('\u{1}');
        let mut part = || parts.next().unwrap_or_default();
        let (globals, body, functions, imports) = (part(), part(), part(), part());
        // Variables stand at the start of a function.
        let is_variable =
            |line: &&str| line.contains("VariableKHR ") || line.contains("= OpVariable ");
        let (variables, body): (Vec<&str>, Vec<&str>) = body.lines().partition(is_variable);
        let body = [variables, body].concat().join("\n");
        let mut declared = Declared::default();
        let frame = "%void %g_u8 ";
        for word in words(&format!("{frame}{used}")) {
            declared.need(word, globals);
        }
        // What module scope declares comes after all that is declared by use, unless by use it needs what is there.
        let (before, after) = (&declared.before, &declared.after);
        let mut capabilities = sorted(&self.capabilities);
        if declared.seen.contains("f64") {
            capabilities.insert_str(0, "OpCapability Float64\n");
        }
        // Entry points and execution modes come first. Since 1.4 an entry point names the variables that it may use.
        let mut decorations: Vec<&str> = self.decorations.lines().map(str::trim).collect();
        decorations.sort_by_key(|line| match line {
            line if line.starts_with("OpEntryPoint") => 0,
            line if line.starts_with("OpExecutionMode") => 1,
            _ => 2,
        });
        let decorations = decorations.join("\n");
        let interface: String = globals
            .lines()
            .filter(|line| is_variable(line))
            .filter_map(|line| line.split_whitespace().next())
            .map(|id| format!(" {id}"))
            .collect();
        format!(
            "OpCapability Addresses\nOpCapability Kernel\nOpCapability Linkage\nOpCapability Int8\n\
             OpCapability Int16\nOpCapability Int64\nOpCapability Float16Buffer\n\
             OpCapability Vector16\nOpCapability GenericPointer\n{capabilities}\
             %cl = OpExtInstImport \"OpenCL.std\"\nOpMemoryModel Physical64 OpenCL\n\
             OpEntryPoint Kernel %k \"k\"{interface}\n{decorations}\n{before}\n{globals}\n{after}\n\
             %k_type = OpTypeFunction %void %g_u8 %g_u8\n{imports}\
             %k = OpFunction %void None %k_type\n%in = OpFunctionParameter %g_u8\n\
             %out = OpFunctionParameter %g_u8\n%entry = OpLabel\n{body}\nOpReturn\nOpFunctionEnd\n{functions}\n"
        )
    }

    /// Its words.
    fn words(&self) -> Vec<u32> {
        assemble(&self.text())
    }

    /// Builds and runs it with one work-item.
    #[track_caller]
    fn run(&self, setup: &Setup, input: &Data) -> Data {
        self.run_size(setup, input, 1)
    }

    /// Builds and runs it with one work-group.
    #[track_caller]
    fn run_size(&self, setup: &Setup, input: &Data, size: usize) -> Data {
        match self.try_run(setup, input, size) {
            Ok(data) => data,
            Err(log) => panic!("{log}\n{}", self.text()),
        }
    }

    /// Builds and runs it; or the build log.
    fn try_run(&self, setup: &Setup, input: &Data, size: usize) -> Result<Data, String> {
        let program = build(setup, &self.words())?;
        Ok(run_program(setup, &program, input, size))
    }

    /// Builds it and launches one work-item: what the launch returns.
    #[track_caller]
    fn launch(&self, setup: &Setup, input: &Data) -> sys::cl_int {
        let program = build(setup, &self.words()).unwrap_or_else(|log| panic!("{log}"));
        let kernel = setup.kernel(&program, "k");
        let (from, to) = (setup.buffer_of(&input.0), setup.buffer(SLOT * SLOTS));
        kernel.set_buffer(0, &from).set_buffer(1, &to);
        let code = setup.queue.try_enqueue(&kernel, &[1], None);
        ok!(clFinish(setup.queue.0));
        code
    }

    /// The log of the build that must fail.
    #[track_caller]
    fn log(&self, setup: &Setup) -> String {
        match build(setup, &self.words()) {
            Ok(_) => panic!("builds, and should not:\n{}", self.text()),
            Err(log) => log,
        }
    }
}

/// Modules with all kinds of things in them, for tests that damage them.
pub fn samples() -> Vec<Vec<u32>> {
    [
        memory::copying(),
        memory::generic(),
        memory::variables(),
        memory::builtins(),
        control::phis(),
        control::calling(),
        untyped::taking_pointers(),
        extended::in_memory(),
    ]
    .iter()
    .map(Il::words)
    .collect()
}

/// Capabilities before extensions.
fn sorted(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The words of a module.
fn assemble(text: &str) -> Vec<u32> {
    pumice_spirv_tools::assemble(TargetEnv::Universal_1_6, text)
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// clCreateProgramWithIL.
fn create(setup: &Setup, words: &[u32]) -> Result<Program, String> {
    let mut code = 0;
    let bytes = size_of_val(words);
    let program = call!(clCreateProgramWithIL(
        setup.context.0,
        words.as_ptr().cast(),
        bytes,
        &mut code
    ));
    match code {
        0 => Ok(Program(program)),
        code => Err(format!("{}: {}", code_name(code), complaint(words))),
    }
}

/// Returns the message of the validator.
fn complaint(words: &[u32]) -> String {
    match pumice_spirv_tools::validate(TargetEnv::Universal_1_6, words) {
        Ok(()) => "valid".to_owned(),
        Err(error) => error,
    }
}

/// A built program, or the code and the log.
fn build(setup: &Setup, words: &[u32]) -> Result<Program, String> {
    let program = create(setup, words)?;
    let code = call!(clBuildProgram(
        program.0,
        1,
        &setup.device,
        null(),
        None,
        null_mut()
    ));
    match code {
        0 => Ok(program),
        code => Err(format!(
            "{}\n{}",
            code_name(code),
            setup.build_log(&program)
        )),
    }
}

/// A built program of a module in text.
pub fn build_text(setup: &Setup, text: &str) -> Result<Program, String> {
    build(setup, &assemble(text))
}

/// Runs the kernel `k` of a program.
fn run_program(setup: &Setup, program: &Program, input: &Data, size: usize) -> Data {
    let kernel = setup.kernel(program, "k");
    let (from, to) = (
        setup.buffer_of(&input.0),
        setup.buffer_of(&[0xa5u8; SLOT * SLOTS]),
    );
    kernel.set_buffer(0, &from).set_buffer(1, &to);
    setup.run(&kernel, &[size], Some(&[size]));
    Data(setup.read(&to, SLOT * SLOTS))
}

/// The contents of a buffer.
#[derive(Clone)]
struct Data(Vec<u8>);

impl Data {
    /// All zero.
    fn new() -> Self {
        Self(vec![0; SLOT * SLOTS])
    }

    /// Puts values into a slot.
    fn put<T: Plain>(mut self, slot: usize, values: &[T]) -> Self {
        let bytes = size_of_val(values);
        // SAFETY: plain values are bytes.
        let source = unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), bytes) };
        self.0[slot * SLOT..slot * SLOT + bytes].copy_from_slice(source);
        self
    }

    /// The values in a slot.
    fn get<T: Plain, const N: usize>(&self, slot: usize) -> [T; N] {
        let bytes = &self.0[slot * SLOT..];
        let size = size_of::<T>();
        std::array::from_fn(|i| T::from_bytes(&bytes[i * size..(i + 1) * size]))
    }

    /// The value in a slot.
    fn one<T: Plain>(&self, slot: usize) -> T {
        self.get::<T, 1>(slot)[0]
    }
}

/// The ids in a text, without their sign.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '%'))
        .filter_map(|word| word.strip_prefix('%'))
}

/// Replaces the macros.
fn expand(text: &str, numbers: &mut u32) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let parts: Vec<&str> = line.split_whitespace().collect();
        *numbers += 1;
        let n = *numbers;
        let written = match parts[..] {
            [id, "=", "in", ty, slot] => {
                let at = slot.parse::<usize>().expect("a slot") * SLOT;
                writeln!(
                    out,
                    "%m{n}a = OpInBoundsPtrAccessChain %g_u8 %in %u64_{at}\n\
                     %m{n}b = OpBitcast %g_{ty} %m{n}a\n{id} = OpLoad %{ty} %m{n}b"
                )
            }
            ["out", slot, "bool", id] => {
                let at = slot.parse::<usize>().expect("a slot") * SLOT;
                writeln!(
                    out,
                    "%m{n}v = OpSelect %u32 {id} %u32_1 %u32_0\n\
                     %m{n}a = OpInBoundsPtrAccessChain %g_u8 %out %u64_{at}\n\
                     %m{n}b = OpBitcast %g_u32 %m{n}a\nOpStore %m{n}b %m{n}v"
                )
            }
            ["out", slot, ty, id] => {
                let at = slot.parse::<usize>().expect("a slot") * SLOT;
                writeln!(
                    out,
                    "%m{n}a = OpInBoundsPtrAccessChain %g_u8 %out %u64_{at}\n\
                     %m{n}b = OpBitcast %g_{ty} %m{n}a\nOpStore %m{n}b {id}"
                )
            }
            _ => writeln!(out, "{line}"),
        };
        written.expect("text");
    }
    out
}

/// The declarations that a module needs.
#[derive(Default)]
struct Declared {
    seen: BTreeSet<String>,
    /// Before the module's own declarations.
    before: String,
    /// After them: pointers to types of the module's own.
    after: String,
}

impl Declared {
    /// Declares a type or a constant, and what it needs, if the name is one of those.
    fn need(&mut self, name: &str, globals: &str) {
        let own = |name: &str| globals.contains(&format!("%{name} ="));
        if own(name) || self.seen.contains(name) {
            return;
        }
        let line = |text: String| format!("%{name} = {text}\n");
        let scalar = |name: &str| match name {
            "void" => Some("OpTypeVoid".to_owned()),
            "bool" => Some("OpTypeBool".to_owned()),
            "u8" | "u16" | "u32" | "u64" => Some(format!("OpTypeInt {} 0", &name[1..])),
            "f16" | "f32" | "f64" => Some(format!("OpTypeFloat {}", &name[1..])),
            _ => None,
        };
        let text = if let Some(text) = scalar(name) {
            line(text)
        } else if let Some((class, to)) = name.split_once('_').filter(|p| p.0.len() == 1) {
            let class = match class {
                "g" => "CrossWorkgroup",
                "l" => "Workgroup",
                "p" => "Function",
                "c" => "UniformConstant",
                "x" => "Generic",
                "i" => "Input",
                _ => return,
            };
            self.need(to, globals);
            let text = line(format!("OpTypePointer {class} %{to}"));
            if own(to) {
                self.seen.insert(name.to_owned());
                self.after += &text;
                return;
            }
            text
        } else if let Some((ty, value)) = name
            .split_once('_')
            .filter(|p| scalar(p.0).is_some() && p.1.parse::<i64>().is_ok())
        {
            self.need(ty, globals);
            line(format!("OpConstant %{ty} {value}"))
        } else if let Some((element, count)) = name
            .split_once('x')
            .filter(|p| scalar(p.0).is_some() && p.1.parse::<u32>().is_ok())
        {
            self.need(element, globals);
            line(format!("OpTypeVector %{element} {count}"))
        } else {
            return;
        };
        self.seen.insert(name.to_owned());
        self.before += &text;
    }
}
