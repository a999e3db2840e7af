//! Compiles the utility shaders (`util/*.wgsl`) to Vulkan SPIR-V with naga.

use std::path::Path;

type Error = Box<dyn std::error::Error>;

/// Every WGSL file becomes one SPIR-V module `OUT_DIR/<name>.spv` with an entry point for each function.
pub fn build(out: &Path) -> Result<(), Error> {
    println!("cargo::rerun-if-changed=util");
    for entry in std::fs::read_dir("util")? {
        let path = entry?.path();
        if path.extension().is_some_and(|ext| ext == "wgsl") {
            let source = std::fs::read_to_string(&path)?;
            let words = compile(&source).map_err(|error| format!("{}: {error}", path.display()))?;
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let name = path.file_stem().ok_or("a file without a name")?;
            std::fs::write(out.join(name).with_extension("spv"), bytes)?;
        }
    }
    Ok(())
}

fn compile(source: &str) -> Result<Vec<u32>, Error> {
    use naga::{back::spv, front::wgsl, valid};
    let module = wgsl::parse_str(source).map_err(|error| error.emit_to_string(source))?;
    let flags = valid::ValidationFlags::all();
    let info = valid::Validator::new(flags, valid::Capabilities::IMMEDIATES)
        .validate(&module)
        .map_err(|error| error.emit_to_string(source))?;
    let options = spv::Options {
        lang_version: (1, 3),
        // The runtime vouches for ranges.
        bounds_check_policies: naga::proc::BoundsCheckPolicies::default(),
        force_loop_bounding: false,
        ..spv::Options::default()
    };
    Ok(spv::write_vec(&module, &info, &options, None)?)
}
