//! In a process of its own, as the driver's environment is read when it is loaded: makes a pipeline of each kernel of each
//! module and says so on standard error, where the driver writes what it has to say of it before.

use pumice_runtime::backend::{self, MachineCode};
use pumice_runtime::compile::executable::subgroup_size;
use pumice_runtime::compile::{builtin_library, to_words};
use spirv_lowering::interface::ArgKind;
use spirv_lowering::target::Target;
use spirv_lowering::{LinkOptions, Lowered, Options, Program, ReadOptions};
use std::path::PathBuf;

/// Begins the line that ends what the driver says of a kernel.
pub const MARK: &str = "@kernel";

/// Makes the pipelines of these modules on the first device.
pub fn run(modules: &[PathBuf]) -> Result<(), String> {
    let devices = backend::enumerate(&[]);
    let device = devices.first().ok_or("no device")?;
    eprintln!("@device {}", &device.caps().driver_version);
    let library = builtin_library::get()?;
    for path in modules {
        let module = path.file_stem().unwrap_or_default().to_string_lossy();
        let bytes = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let words = to_words(&bytes).ok_or_else(|| format!("{}: no SPIR-V", path.display()))?;
        let link = LinkOptions {
            allow_undefined: false,
            library: Some(library),
        };
        let program = Program::read(&words, &ReadOptions::default())
            .and_then(|program| Program::link(&[&program], &link));
        let program = match program {
            Ok(program) => program,
            // A part of a program, or one that is refused everywhere.
            Err(error) => {
                eprintln!("@left {module} {error}");
                continue;
            }
        };
        for kernel in program.kernels() {
            let mut options = Options {
                verify: true,
                library: Some(library),
                ..Options::default()
            };
            let lowered = subgroup_size(device.as_ref(), &kernel.attributes).and_then(|size| {
                let target = Target {
                    subgroup_size: size,
                    ..device.target().clone()
                };
                let lowered = program.lower(&kernel.name, &target, &mut options);
                lowered.map_err(|error| error.to_string())
            });
            let lowered = match lowered {
                Ok(lowered) => lowered,
                Err(error) => {
                    eprintln!("@left {module} {}: {error}", kernel.name);
                    continue;
                }
            };
            match make(device.as_ref(), &lowered) {
                Ok(()) => eprintln!("{MARK} {module} {} made", kernel.name),
                Err(error) => eprintln!("{MARK} {module} {} FAILED {error}", kernel.name),
            }
        }
    }
    Ok(())
}

fn make(device: &dyn backend::Device, lowered: &Lowered) -> Result<(), String> {
    let interface = &lowered.interface;
    let code = device
        .load(MachineCode::Spirv(&lowered.words), interface)
        .map_err(|e| e.to_string())?;
    let size = interface.attributes.required_work_group_size;
    let local = interface.args.iter().filter_map(|arg| match arg.kind {
        ArgKind::Local { spec_id } => Some((spec_id, 1024)),
        _ => None,
    });
    let local: Vec<(u32, u32)> = local.collect();
    let size = size.unwrap_or([64, 1, 1]);
    code.specialise(size, &local, 1)
        .map(drop)
        .map_err(|e| e.to_string())
}
