//! The module being read, and the map from SPIR-V ids to its functions and variables.

use super::consts::InitReloc;
use super::parsed::{Def, FuncDef, Parsed};
use super::types::{Kind, TyId};
use crate::error::{LowerError, Result};
use crate::ir::entity::{FuncId, GlobalId};
use crate::ir::function::{Function, Linkage};
use crate::ir::module::{Global, GlobalReloc, Module};
use crate::ir::types::{Space, Type};
use crate::pipe;
use rustc_hash::FxHashMap;

/// The functions and variables of one SPIR-V module in the module being read.
pub(super) struct Output<'m> {
    pub module: &'m mut Module,
    funcs: FxHashMap<u32, FuncId>,
    globals: FxHashMap<u32, GlobalId>,
    /// Variables without their initial bytes yet.
    new_globals: Vec<u32>,
    /// Functions that are mapped but not read yet.
    pub pending: Vec<u32>,
    /// Set if functions and variables are taken one by one from a library.
    lazy: bool,
}

impl<'m> Output<'m> {
    /// Creates the output for a whole module.
    pub fn new(module: &'m mut Module) -> Self {
        Self {
            module,
            funcs: FxHashMap::default(),
            globals: FxHashMap::default(),
            new_globals: Vec::new(),
            pending: Vec::new(),
            lazy: false,
        }
    }

    /// Creates the output for parts of a library, some of which were taken before.
    pub fn lazy(
        module: &'m mut Module,
        funcs: FxHashMap<u32, FuncId>,
        globals: FxHashMap<u32, GlobalId>,
    ) -> Self {
        Self {
            funcs,
            globals,
            lazy: true,
            ..Self::new(module)
        }
    }

    /// Returns the functions and variables read so far, each by its SPIR-V id, for the next
    /// [`Output::lazy`].
    pub fn take_maps(self) -> (FxHashMap<u32, FuncId>, FxHashMap<u32, GlobalId>) {
        (self.funcs, self.globals)
    }

    /// Maps the library function `source` to the imported function `id`, whose body it becomes.
    pub fn adopt(&mut self, p: &Parsed, source: u32, id: FuncId) -> Result<()> {
        let f = func_def(p, source)?;
        let (params, results) = signature(p, f)?;
        let have = &mut self.module.functions[id];
        if have.params != params || have.results != results {
            return Err(LowerError::invalid(format!(
                "the function `{}` is declared with other parameters than its definition in the library",
                have.name
            )));
        }
        have.linkage = Linkage::LinkOnce;
        self.funcs.insert(source, id);
        self.pending.push(source);
        Ok(())
    }

    /// Returns the function of a SPIR-V id.
    pub fn function(&mut self, p: &Parsed, id: u32) -> Result<FuncId> {
        if let Some(&func) = self.funcs.get(&id) {
            return Ok(func);
        }
        let f = func_def(p, id)?;
        let (params, results) = signature(p, f)?;
        let (name, linkage) = match p.decorations.linkage(id) {
            // llvm-spirv exports blocks, whose names are the same in all modules; nobody calls those of another.
            Some((name, _)) if f.has_body && name.contains("_block_invoke") => {
                (name, Linkage::Internal)
            }
            Some((name, linkage)) if f.has_body == (linkage != Linkage::Import) => (name, linkage),
            Some((name, _)) if !f.has_body => (name, Linkage::Import),
            Some((name, _)) => (name, Linkage::Export),
            None if !f.has_body => {
                return Err(LowerError::invalid(format!(
                    "the function %{id} has neither a body nor a linkage name"
                )))
            }
            None => {
                let entry = p
                    .entry_of
                    .get(&id)
                    .and_then(|&e| p.entries.get(e as usize))
                    .map(|e| e.name.clone());
                (entry.unwrap_or_else(|| p.name(id)), Linkage::Internal)
            }
        };
        let func = match linkage {
            Linkage::Internal => self.new_function(name, linkage, params, results),
            // By name, so that another library may define it.
            _ if self.lazy => self.import(&name, &params, &results)?,
            Linkage::Import => self.import(&name, &params, &results)?,
            _ => {
                if let Some(&have) = self.module.by_name.get(&name) {
                    if self.module.functions[have].linkage != Linkage::Import {
                        let what = format!("the function `{name}` is defined twice");
                        return Err(LowerError::invalid(what));
                    }
                }
                let func = self.import(&name, &params, &results)?;
                self.module.functions[func].linkage = linkage;
                func
            }
        };
        if f.has_body && (linkage == Linkage::Internal || !self.lazy) {
            self.pending.push(id);
        }
        self.funcs.insert(id, func);
        Ok(func)
    }

    fn new_function(
        &mut self,
        name: String,
        linkage: Linkage,
        params: Vec<Type>,
        results: Vec<Type>,
    ) -> FuncId {
        self.module.functions.push(Function {
            name,
            linkage,
            params,
            results,
            ..Function::default()
        })
    }

    /// Returns the function of a name, which it declares as an import if there is none yet.
    pub fn import(&mut self, name: &str, params: &[Type], results: &[Type]) -> Result<FuncId> {
        if let Some(&func) = self.module.by_name.get(name) {
            let have = &self.module.functions[func];
            if have.params != params || have.results != results {
                return Err(LowerError::invalid(format!(
                    "the function `{name}` is used with two different types"
                )));
            }
            return Ok(func);
        }
        let func = self.new_function(
            name.to_owned(),
            Linkage::Import,
            params.to_vec(),
            results.to_vec(),
        );
        self.module.by_name.insert(name.to_owned(), func);
        Ok(func)
    }

    /// Returns the variable of a SPIR-V id, whose initial bytes come with
    /// [`Output::finish_globals`], or the pipe that it declares.
    pub fn global(&mut self, p: &Parsed, id: u32) -> Result<GlobalId> {
        if let Some(&global) = self.globals.get(&id) {
            return Ok(global);
        }
        if let Some(bytes) = p.pipe_storage(id)? {
            let global = self.module.globals.push(Global {
                name: p.name(id),
                linkage: Linkage::Internal,
                space: Some(Space::Global),
                size: bytes.len() as u64,
                align: pipe::ALIGN,
                init: Some(bytes),
                relocs: Vec::new(),
            });
            self.globals.insert(id, global);
            return Ok(global);
        }
        let var = match p.defs.get(id as usize) {
            Some(Def::Var(index)) => p.vars.get(*index as usize).filter(|v| v.builtin.is_none()),
            _ => None,
        };
        let var = var.ok_or_else(|| LowerError::invalid(format!("%{id} is not a variable")))?;
        let data = p.types.get(var.data);
        let (name, linkage) = match p.decorations.linkage(id) {
            Some(linkage) if !self.lazy => linkage,
            Some((name, _)) => (name, Linkage::Internal),
            None => (p.name(id), Linkage::Internal),
        };
        let align = p.alignment(id).filter(|a| *a <= 1 << 16);
        let global = self.module.globals.push(Global {
            name,
            linkage,
            space: Some(var.space),
            size: data.size,
            align: align.unwrap_or(1).max(data.align),
            init: None,
            relocs: Vec::new(),
        });
        self.globals.insert(id, global);
        if var.init != 0 {
            self.new_globals.push(id);
        }
        Ok(global)
    }

    /// Creates a variable in constant memory with the bytes of a constant of type `data`.
    pub fn table(&mut self, p: &Parsed, init: u32, data: TyId) -> Result<GlobalId> {
        if let Some(&global) = self.globals.get(&init) {
            return Ok(global);
        }
        let (bytes, relocs) = p.init_bytes(init, data)?.unwrap_or_default();
        let t = p.types.get(data);
        let relocs = self.relocs(p, relocs)?;
        let global = self.module.globals.push(Global {
            name: p.name(init),
            linkage: Linkage::Internal,
            space: Some(Space::Constant),
            size: t.size,
            align: t.align,
            init: Some(bytes).filter(|b| !b.is_empty()),
            relocs,
        });
        // Ids of constants are not those of variables.
        self.globals.insert(init, global);
        Ok(global)
    }

    fn relocs(&mut self, p: &Parsed, relocs: Vec<InitReloc>) -> Result<Vec<GlobalReloc>> {
        let mut list = Vec::with_capacity(relocs.len());
        for r in relocs {
            list.push(GlobalReloc {
                offset: r.offset,
                target: self.global(p, r.var)?,
                addend: r.addend as u64,
            });
        }
        Ok(list)
    }

    /// Fills in the initial bytes of variables, and of those that they point to.
    pub fn finish_globals(&mut self, p: &Parsed) -> Result<()> {
        while let Some(id) = self.new_globals.pop() {
            let var = match p.defs.get(id as usize) {
                Some(Def::Var(index)) => p.vars.get(*index as usize),
                _ => None,
            };
            let Some(var) = var else { continue };
            let in_var = |e: LowerError| match e {
                LowerError::InvalidInput { function, what } => LowerError::InvalidInput {
                    function,
                    what: format!("the variable %{id}: {what}"),
                },
                e => e,
            };
            let Some((bytes, relocs)) = p.init_bytes(var.init, var.data).map_err(in_var)? else {
                continue;
            };
            let list = self.relocs(p, relocs)?;
            let global = self.global(p, id)?;
            let global = &mut self.module.globals[global];
            global.init = Some(bytes);
            global.relocs = list;
        }
        Ok(())
    }
}

fn func_def(p: &Parsed, id: u32) -> Result<&FuncDef> {
    let def = match p.defs.get(id as usize) {
        Some(Def::Func(index)) => p.funcs.get(*index as usize),
        _ => None,
    };
    def.ok_or_else(|| LowerError::invalid(format!("%{id} is not a function")))
}

/// Returns the flattened parameter and result types. A kernel's structures by value arrive as
/// pointers.
pub(super) fn signature(p: &Parsed, f: &FuncDef) -> Result<(Vec<Type>, Vec<Type>)> {
    let name = |e: LowerError| e.in_function(&p.name(f.id));
    let Kind::Function { ret, params } = &p.types.get(f.ty).kind else {
        return Err(LowerError::invalid(format!(
            "%{} has no function type",
            f.id
        )));
    };
    if params.len() != f.params.len() {
        return Err(name(LowerError::invalid(
            "the number of parameters is not that of the function type",
        )));
    }
    let entry = p.is_entry(f.id);
    let (mut flat, mut results) = (Vec::new(), Vec::new());
    for &param in params {
        if entry && p.types.vector(param).is_none() {
            flat.push(Type::Ptr(Space::Private));
        } else {
            p.types.flatten(param, &mut flat).map_err(name)?;
        }
    }
    if flat.len() as u64 > super::types::MAX_LANES {
        return Err(name(LowerError::unsupported(
            "a function with too many parameters",
        )));
    }
    p.types.flatten(*ret, &mut results).map_err(name)?;
    Ok((flat, results))
}

impl Parsed {
    /// Returns true if the function is an entry point.
    pub fn is_entry(&self, id: u32) -> bool {
        self.entry_of.contains_key(&id)
    }

    /// Returns a map of ids for [`super::body::read_function`].
    pub fn scratch(&self) -> Vec<u32> {
        vec![0; self.bound as usize]
    }
}
