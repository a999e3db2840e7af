//! Joins modules: library functions into a module ([`resolve`]), and modules into a program ([`link`]).

use crate::error::{LowerError, Result};
use crate::interface::KernelRole;
use crate::ir::entity::{FuncId, GlobalId};
use crate::ir::function::{Function, Linkage};
use crate::ir::module::{Global, Module};
use crate::ir::op::Op;
use crate::read::{Import, Library};
use rustc_hash::{FxHashMap, FxHashSet};

/// Defines the imported functions of a module from libraries, with everything that those need in turn. The first
/// library that defines a name is taken. Names that no library defines stay imports (and are an error only if they
/// are still called when a kernel is lowered).
pub fn resolve(module: &mut Module, libraries: &[&Library]) -> Result<()> {
    let mut imports: Vec<Import> = libraries.iter().map(|&l| Import::new(l)).collect();
    // Functions that come in are added at the end, so one pass over the growing list sees all of them.
    let mut next = 0;
    while next < module.functions.len() {
        let id: FuncId = crate::ir::entity::Entity::new(next);
        next += 1;
        if module.functions[id].linkage != Linkage::Import {
            continue;
        }
        let name = module.functions[id].name.clone();
        for import in &mut imports {
            if import.define(module, id, &name)? {
                break;
            }
        }
    }
    Ok(())
}

/// Joins modules into one. Imports are bound to exports; equal link-once definitions are merged; a name that is
/// defined twice is an error, and one that is never defined too, unless `allow_undefined`.
pub fn link(modules: Vec<Module>, allow_undefined: bool) -> Result<Module> {
    let mut out = Module::default();
    let mut global_names: FxHashMap<String, GlobalId> = FxHashMap::default();
    for module in modules {
        add(&mut out, module, &mut global_names)?;
    }
    if !allow_undefined {
        let undefined = out
            .globals
            .values()
            .find(|g| g.linkage == Linkage::Import)
            .map(|g| g.name.clone());
        let undefined = undefined.or_else(|| {
            let is_builtin = |f: &&Function| f.name.starts_with("_Z") || f.name.starts_with("__");
            let import = |f: &&Function| f.linkage == Linkage::Import && !is_builtin(f);
            out.functions.values().find(import).map(|f| f.name.clone())
        });
        if let Some(name) = undefined {
            return Err(LowerError::Undefined {
                function: None,
                name,
            });
        }
    }
    Ok(out)
}

/// Adds a module to the ones joined so far.
fn add(out: &mut Module, module: Module, names: &mut FxHashMap<String, GlobalId>) -> Result<()> {
    let old_globals: Vec<Global> = module.globals.values().cloned().collect();
    let mut globals = Vec::with_capacity(old_globals.len());
    let mut fill = Vec::new();
    let used = used_globals(&module);
    for (index, global) in old_globals.iter().enumerate() {
        if global.name.is_empty() && !used.contains(&index) {
            globals.push(None);
            continue;
        }
        let id = place_global(out, global, names)?;
        if let Some(id) = id.1 {
            fill.push((index, id));
        }
        globals.push(Some(id.0));
    }
    for (index, id) in fill {
        let Some(source) = old_globals.get(index) else {
            continue;
        };
        let mut global = source.clone();
        for reloc in &mut global.relocs {
            let target = globals
                .get(crate::ir::entity::Entity::index(reloc.target))
                .copied()
                .flatten();
            reloc.target =
                target.ok_or_else(|| LowerError::internal("a relocation to no variable"))?;
        }
        out.globals[id] = global;
    }
    let printfs = out.printfs.len() as u32;
    out.printfs.extend(module.printfs);
    let mut funcs = Vec::with_capacity(module.functions.len());
    let mut bodies = Vec::new();
    for (_, function) in module.functions.iter() {
        let (id, defines) = place_function(out, function)?;
        funcs.push(id);
        bodies.push(defines);
    }
    for ((old, function), defines) in module.functions.iter().zip(bodies) {
        if !defines {
            continue;
        }
        let Some(&id) = funcs.get(crate::ir::entity::Entity::index(old)) else {
            continue;
        };
        let mut function = function.clone();
        let insts: Vec<_> = function.insts.keys().collect();
        for inst in insts {
            let op = &mut function.insts[inst].op;
            *op = match *op {
                Op::Call(callee) => Op::Call(
                    *funcs
                        .get(crate::ir::entity::Entity::index(callee))
                        .ok_or_else(|| LowerError::internal("a call of no function"))?,
                ),
                Op::GlobalAddr(global) => Op::GlobalAddr(
                    *globals
                        .get(crate::ir::entity::Entity::index(global))
                        .and_then(Option::as_ref)
                        .ok_or_else(|| LowerError::internal("the address of no variable"))?,
                ),
                Op::Printf(site) => Op::Printf(site + printfs),
                other => other,
            };
        }
        out.functions[id] = function;
    }
    for mut kernel in module.kernels {
        // Nobody asks for these by name, and compilers give those of all modules the same.
        let role = kernel.attributes.role;
        if matches!(role, KernelRole::Initializer | KernelRole::Finalizer) {
            kernel.name = unused_name(out, kernel.name);
        }
        if out.kernels.iter().any(|k| k.name == kernel.name) {
            return Err(LowerError::invalid(format!(
                "the kernel `{}` is defined in two modules",
                kernel.name
            )));
        }
        kernel.func = *funcs
            .get(crate::ir::entity::Entity::index(kernel.func))
            .ok_or_else(|| LowerError::internal("a kernel without function"))?;
        out.kernels.push(kernel);
    }
    Ok(())
}

/// Returns a name for a kernel that no other has.
fn unused_name(out: &Module, name: String) -> String {
    let used = |name: &str| out.kernels.iter().any(|kernel| kernel.name == name);
    let others = (1..=out.kernels.len()).map(|number| format!("{name}.{number}"));
    std::iter::once(name.clone())
        .chain(others)
        .find(|name| !used(name))
        .unwrap_or(name)
}

/// Returns the variables, by index, that functions or other variables refer to. LLVM's SPIR-V
/// target adds an unused nameless one to most modules, which would cost every program a buffer.
fn used_globals(module: &Module) -> FxHashSet<usize> {
    use crate::ir::entity::Entity;
    let of_functions = module.functions.values().flat_map(|function| {
        function.insts.values().filter_map(|inst| match inst.op {
            Op::GlobalAddr(global) => Some(global.index()),
            _ => None,
        })
    });
    let of_variables = module.globals.values().flat_map(|global| &global.relocs);
    of_functions
        .chain(of_variables.map(|reloc| reloc.target.index()))
        .collect()
}

/// Returns the variable of the joined module for `global`, and the same again if its contents are
/// to be copied there.
fn place_global(
    out: &mut Module,
    global: &Global,
    names: &mut FxHashMap<String, GlobalId>,
) -> Result<(GlobalId, Option<GlobalId>)> {
    if global.linkage == Linkage::Internal || global.name.is_empty() {
        let id = out.globals.push(global.clone());
        return Ok((id, Some(id)));
    }
    let Some(&have) = names.get(&global.name) else {
        let id = out.globals.push(global.clone());
        names.insert(global.name.clone(), id);
        return Ok((id, Some(id)));
    };
    let old = &out.globals[have];
    if old.space != global.space {
        let name = &global.name;
        return Err(LowerError::invalid(format!(
            "the variable `{name}` has different address spaces in two modules"
        )));
    }
    match (old.linkage, global.linkage) {
        (_, Linkage::Import) | (Linkage::LinkOnce, Linkage::LinkOnce) => Ok((have, None)),
        (Linkage::Import, _) | (Linkage::LinkOnce, Linkage::Export) => Ok((have, Some(have))),
        (Linkage::Export, Linkage::LinkOnce) => Ok((have, None)),
        _ => Err(LowerError::invalid(format!(
            "the variable `{}` is defined in two modules",
            global.name
        ))),
    }
}

/// Returns the function of the joined module for `function`, and whether its body is to be copied
/// there.
fn place_function(out: &mut Module, function: &Function) -> Result<(FuncId, bool)> {
    let shell = || Function {
        name: function.name.clone(),
        linkage: function.linkage,
        params: function.params.clone(),
        results: function.results.clone(),
        ..Function::default()
    };
    if function.linkage == Linkage::Internal || function.name.is_empty() {
        return Ok((out.functions.push(shell()), true));
    }
    let Some(&have) = out.by_name.get(&function.name) else {
        let id = out.functions.push(shell());
        out.by_name.insert(function.name.clone(), id);
        return Ok((id, true));
    };
    let old = &out.functions[have];
    if old.params != function.params || old.results != function.results {
        let name = &function.name;
        return Err(LowerError::invalid(format!(
            "the function `{name}` has different types in two modules"
        )));
    }
    match (old.linkage, function.linkage) {
        (_, Linkage::Import)
        | (Linkage::LinkOnce, Linkage::LinkOnce)
        | (Linkage::Export, Linkage::LinkOnce) => Ok((have, false)),
        (Linkage::Import, _) | (Linkage::LinkOnce, Linkage::Export) => Ok((have, true)),
        _ => Err(LowerError::invalid(format!(
            "the function `{}` is defined in two modules",
            function.name
        ))),
    }
}
