//! Launches a generated kernel on a device, as the runtime would.

use pumice_runtime::backend::{
    self, staging, Device, MachineCode, Memory, Op, OrderRule, Placement, Slice, StreamDesc, Use,
};
use pumice_runtime::compile::executable::subgroup_size;
use pumice_runtime::compile::native::Native;
use pumice_runtime::compile::{builtin_library, to_bytes};
use spirv_lowering::interface::{ArgKind, Implicit, KernelInterface, SPEC_GUARD};
use spirv_lowering::interp::NdRange;
use spirv_lowering::target::Target;
use spirv_lowering::{Options, Program};
use spirv_lowering_testing::generate::{Case, CaseArg};
use std::path::Path;
use std::sync::Arc;

/// How far a kernel is: the folder that its SPIR-V goes to, and its seed.
pub struct Trace<'a>(pub Option<(&'a Path, u64)>);

impl Trace<'_> {
    /// Says how far it is.
    pub fn note(&self, what: &str) {
        if let Some((_, seed)) = self.0 {
            println!("seed {seed}: {what}");
        }
    }

    /// A file about the kernel, over that of the one before.
    pub fn file(&self, name: &str, contents: &[u8]) {
        if let Some((dir, _)) = self.0 {
            if let Err(error) = std::fs::write(dir.join(name), contents) {
                println!("{}: {error}", dir.display());
            }
        }
    }
}

/// A box of work-groups of one size, as the runtime makes dispatches.
struct Part {
    first: [u32; 3],
    groups: [u32; 3],
    local: [u32; 3],
}

fn parts(range: &NdRange) -> Vec<Part> {
    let cut = |dim: usize| {
        let (global, local) = (range.global[dim], range.local[dim].max(1));
        let (whole, rest) = (global / local, global % local);
        let mut list = Vec::new();
        if whole > 0 {
            list.push((0, whole, local));
        }
        if rest > 0 {
            list.push((whole, 1, rest));
        }
        list
    };
    let mut list = Vec::new();
    for &(z, depth, lz) in &cut(2) {
        for &(y, height, ly) in &cut(1) {
            for &(x, width, lx) in &cut(0) {
                list.push(Part {
                    first: [x, y, z],
                    groups: [width, height, depth],
                    local: [lx, ly, lz],
                });
            }
        }
    }
    list
}

/// The arguments of a dispatch.
struct Block {
    /// Push constants.
    push: Vec<u8>,
    /// The explicit arguments, where they lie in a buffer.
    args: Vec<u8>,
}

/// The argument block of a dispatch. Arguments in a buffer are at `arguments`.
fn block(
    case: &Case,
    interface: &KernelInterface,
    part: &Part,
    buffers: &[Arc<dyn Memory>],
    variables: Option<u64>,
    printf: u64,
    arguments: u64,
) -> Result<Block, String> {
    let mut push = vec![0u8; interface.push_size as usize];
    let mut args = vec![0u8; interface.arg_buffer_size as usize];
    let put = |block: &mut Vec<u8>, at: u32, bytes: &[u8]| -> Result<(), String> {
        let at = at as usize;
        block
            .get_mut(at..at + bytes.len())
            .ok_or("an argument beyond the block")?
            .copy_from_slice(bytes);
        Ok(())
    };
    let range = &case.range;
    for &(which, offset) in &interface.implicit {
        let per_dimension = |f: &dyn Fn(usize) -> u32| -> Vec<u8> {
            (0..3).flat_map(|d| f(d).to_le_bytes()).collect()
        };
        let bytes = match which {
            Implicit::ProgramGlobals => variables.ok_or("no variables")?.to_le_bytes().to_vec(),
            Implicit::PrintfBuffer => printf.to_le_bytes().to_vec(),
            Implicit::ArgBuffer => arguments.to_le_bytes().to_vec(),
            Implicit::GlobalOffset => per_dimension(&|d| range.offset[d]),
            Implicit::GlobalSize => per_dimension(&|d| range.global[d]),
            Implicit::NumGroups => {
                per_dimension(&|d| range.global[d].div_ceil(range.local[d].max(1)))
            }
            Implicit::EnqueuedLocalSize => per_dimension(&|d| range.local[d]),
            Implicit::GroupOffset => per_dimension(&|d| part.first[d]),
            Implicit::GlobalBase => {
                per_dimension(&|d| range.offset[d].wrapping_add(part.first[d] * range.local[d]))
            }
            Implicit::GlobalEnd => {
                per_dimension(&|d| range.offset[d].wrapping_add(range.global[d]))
            }
            Implicit::GlobalOffsetHigh | Implicit::GlobalSizeHigh | Implicit::GroupOffsetHigh => {
                per_dimension(&|_| 0)
            }
            Implicit::WorkDim => range.dims.to_le_bytes().to_vec(),
            other => return Err(format!("unsupported: {other:?}")),
        };
        put(&mut push, offset, &bytes)?;
    }
    let explicit = if interface.args_in_buffer {
        &mut args
    } else {
        &mut push
    };
    for (arg, value) in interface.args.iter().zip(&case.args) {
        match (&arg.kind, value) {
            (ArgKind::Value { offset, .. }, CaseArg::Value(bytes)) => {
                put(explicit, *offset, bytes)?
            }
            (ArgKind::Buffer { offset, .. }, CaseArg::Buffer(i)) => {
                put(explicit, *offset, &buffers[*i].address().to_le_bytes())?;
            }
            (ArgKind::Buffer { offset, .. }, CaseArg::Null) => put(explicit, *offset, &[0; 8])?,
            (ArgKind::Local { .. }, CaseArg::Local(_)) => {}
            (kind, value) => return Err(format!("unsupported: {value:?} for {kind:?}")),
        }
    }
    Ok(Block { push, args })
}

/// Launches the kernel and gives what is in its buffers and program-scope variables. `one_copy`:
/// functions that are called twice have one copy.
pub fn run(
    device: &Arc<dyn Device>,
    case: &Case,
    one_copy: bool,
    trace: &Trace,
) -> Result<Vec<Vec<u8>>, String> {
    let image = |arg: &CaseArg| matches!(arg, CaseArg::Image { .. });
    if case.args.iter().any(image) {
        return Err("unsupported: images".to_owned());
    }
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let attributes = case.module.kernels.first().map(|k| &k.attributes);
    let size = subgroup_size(device.as_ref(), attributes.ok_or("no kernel")?);
    let target = &Target {
        subgroup_size: size.map_err(|what| format!("unsupported: {what}"))?,
        ..device.target().clone()
    };
    let program = Program::from_module(case.module.clone());
    let globals = program.globals().map_err(|e| text(&e))?;
    // As exact as the interpreter.
    let mut options = Options {
        correctly_rounded_divide_sqrt: true,
        verify: true,
        library: Some(builtin_library::get()?),
        one_copy_from: one_copy.then_some(1),
        ..Options::default()
    };
    let lowered = program
        .lower("k", target, &mut options)
        .map_err(|e| text(&e))?;
    trace.note(&format!("{} words", lowered.words.len()));
    let interface = &lowered.interface;
    let code = if target.native {
        MachineCode::Native(Arc::new(Native::new(
            &lowered,
            target,
            device.caps().driver_uuid,
            Arc::default(),
        )))
    } else {
        MachineCode::Spirv(&lowered.words)
    };
    trace.file("kernel.spv", &to_bytes(&lowered.words));
    let code = device.load(code, interface).map_err(|e| text(&e))?;
    trace.note("loaded");
    let upload = |data: &[u8]| -> Result<Arc<dyn Memory>, String> {
        let memory = device
            .allocate(data.len().max(1) as u64, Placement::Device)
            .map_err(|e| text(&e))?;
        if !data.is_empty() {
            staging::upload(device.as_ref(), &memory, 0, data).map_err(|e| text(&e))?;
        }
        Ok(memory)
    };
    let mut buffers = Vec::new();
    for data in &case.buffers {
        buffers.push(upload(data)?);
    }
    let mut variables = None;
    if !globals.data.is_empty() {
        let memory = upload(&globals.data)?;
        let mut data = globals.data.clone();
        for relocation in &globals.relocations {
            let at = relocation.offset as usize;
            let address = memory.address().wrapping_add(relocation.target);
            data[at..at + 8].copy_from_slice(&address.to_le_bytes());
        }
        staging::upload(device.as_ref(), &memory, 0, &data).map_err(|e| text(&e))?;
        variables = Some(memory);
    }
    let mut header = vec![0u8; 1 << 16];
    header[4..8].copy_from_slice(&((1u32 << 16) - 64).to_le_bytes());
    let printf = upload(&header)?;
    let mut stream = device
        .create_stream(StreamDesc::default())
        .map_err(|e| text(&e))?;
    let mut kept = Vec::new();
    for part in parts(&case.range) {
        let address = variables.as_ref().map(|v| v.address());
        let arguments = match interface.args_in_buffer {
            true => Some(upload(&vec![0; interface.arg_buffer_size as usize])?),
            false => None,
        };
        let made = block(
            case,
            interface,
            &part,
            &buffers,
            address,
            printf.address(),
            arguments.as_ref().map_or(0, |memory| memory.address()),
        )?;
        if let Some(memory) = &arguments {
            staging::upload(device.as_ref(), memory, 0, &made.args).map_err(|e| text(&e))?;
        }
        let mut sizes: Vec<(u32, u32)> = interface
            .args
            .iter()
            .zip(&case.args)
            .filter_map(|(arg, value)| match (&arg.kind, value) {
                (ArgKind::Local { spec_id }, CaseArg::Local(size)) => {
                    Some((*spec_id, (*size as u32).next_multiple_of(128)))
                }
                _ => None,
            })
            .collect();
        if interface.guarded {
            sizes.push((SPEC_GUARD, 0));
        }
        let groups = part.groups.iter().map(|&n| u64::from(n)).product();
        let pipeline = code
            .specialise(part.local, &sizes, groups)
            .map_err(|e| text(&e))?;
        trace.note("a pipeline");
        let uses: Vec<Use> = buffers
            .iter()
            .chain(&variables)
            .chain([&printf])
            .chain(&arguments)
            .map(|memory| Use {
                slice: Slice {
                    memory: memory.clone(),
                    offset: 0,
                    size: memory.size(),
                },
                write: true,
            })
            .collect();
        let op = Op::Dispatch {
            pipeline: &pipeline,
            groups: part.groups,
            push: &made.push,
            uses: &uses,
            bindings: &[],
            touches_anything: true,
        };
        stream
            .record(op, OrderRule::InOrder, false)
            .map_err(|e| text(&e))?;
        kept.extend(arguments);
    }
    let value = stream.submit(true).map_err(|e| text(&e))?;
    trace.note("submitted");
    stream.timeline().wait(value, None).map_err(|e| text(&e))?;
    drop(kept);
    let mut out = Vec::new();
    for memory in buffers.iter().chain(&variables) {
        out.push(download(device.as_ref(), memory).map_err(|e| text(&e))?);
    }
    Ok(out)
}

/// Returns the contents of memory that no command uses.
fn download(device: &dyn Device, memory: &Arc<dyn Memory>) -> backend::Result<Vec<u8>> {
    let size = memory.size();
    let mut staging = staging::Staging::new(device, size, Placement::HostRead)?;
    let src = Slice {
        memory: memory.clone(),
        offset: 0,
        size,
    };
    let dst = staging.slice(size);
    staging::copy(&mut *staging.stream, &src, &dst, size)?;
    // SAFETY: that many bytes are mapped there, and the copy has completed.
    let bytes = unsafe { std::slice::from_raw_parts(staging.pointer.as_ptr(), size as usize) };
    let bytes = bytes.to_vec();
    staging.stream.give_back();
    Ok(bytes)
}
