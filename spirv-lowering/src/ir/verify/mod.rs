//! Checks the rules of KIR and reports every breach, with the instruction in question. (The one file of `ir` that uses
//! `analysis`.)
//!
//! - All references are in range; every instruction of the layout is there once, every value has one definition.
//! - Operands and results have the number and types that the operation asks for; constants fit their type.
//! - Uses are dominated by definitions (in blocks that the entry reaches).
//! - Targets pass one argument of the right type for each parameter; the entry block has no predecessors and has
//!   the function's parameters; returns give the function's results.
//! - `alloca` stands in the entry block.
//! - Structured functions: merge and continue blocks are in the layout and dominated by their header, each is used
//!   once, blocks follow their dominators in the layout, back edges come from continue constructs, one a loop, and
//!   branches without a merge are exits of a construct around them.

mod ops;
pub mod rules;

use ops::check;

use crate::analysis::cfg::Cfg;
use crate::analysis::dom::DomTree;
use crate::error::LowerError;
use crate::ir::entity::{Block, Entity, Inst, SecondaryMap, Value};
use crate::ir::function::{Edge, Function, Linkage, Merge, Terminator, ValueDef};
use crate::ir::module::Module;
use crate::ir::op::Op;
use crate::ir::print::raw_inst;
use crate::ir::types::Type;
use std::fmt;

/// All breaches found in a function or module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyErrors(pub Vec<String>);

impl fmt::Display for VerifyErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, message) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            f.write_str(message)?;
        }
        Ok(())
    }
}

impl std::error::Error for VerifyErrors {}

impl From<VerifyErrors> for LowerError {
    fn from(errors: VerifyErrors) -> Self {
        LowerError::internal(format!("broken KIR: {errors}"))
    }
}

/// Checks every function and what the module refers to.
pub fn verify_module(module: &Module) -> Result<(), VerifyErrors> {
    let mut errors = Vec::new();
    for (id, global) in module.globals.iter() {
        if let Some(init) = &global.init {
            if init.len() as u64 != global.size {
                errors.push(format!(
                    "{id}: {} initial bytes for a size of {}",
                    init.len(),
                    global.size
                ));
            }
        }
        for reloc in &global.relocs {
            if module.globals.get(reloc.target).is_none() {
                errors.push(format!("{id}: relocation against missing {}", reloc.target));
            }
            if reloc
                .offset
                .checked_add(8)
                .is_none_or(|end| end > global.size)
            {
                errors.push(format!("{id}: relocation at {} is outside", reloc.offset));
            }
        }
    }
    for kernel in &module.kernels {
        if module.functions.get(kernel.func).is_none() {
            errors.push(format!("kernel {}: missing {}", kernel.name, kernel.func));
        }
    }
    for (id, func) in module.functions.iter() {
        errors.extend(
            verify(Some(module), func)
                .into_iter()
                .map(|e| format!("{id} `{}`: {e}", func.name)),
        );
    }
    finish(errors)
}

/// Checks a function alone, without references to functions, globals and printf sites.
pub fn verify_standalone(func: &Function) -> Result<(), VerifyErrors> {
    finish(verify(None, func))
}

/// Returns true if an operation that refers to nothing else may have operands and results of these
/// types.
pub fn accepts(op: Op, operands: &[Type], results: &[Type]) -> bool {
    check(None, &Function::default(), op, operands, results).is_ok()
}

fn finish(errors: Vec<String>) -> Result<(), VerifyErrors> {
    if errors.is_empty() {
        Ok(())
    } else {
        Err(VerifyErrors(errors))
    }
}

struct Verifier<'a> {
    module: Option<&'a Module>,
    func: &'a Function,
    errors: Vec<String>,
}

fn verify(module: Option<&Module>, func: &Function) -> Vec<String> {
    let mut this = Verifier {
        module,
        func,
        errors: Vec::new(),
    };
    if func.layout.is_empty() {
        if func.linkage != Linkage::Import {
            this.errors.push("no body, and not an import".into());
        }
        return this.errors;
    }
    this.references();
    if this.errors.is_empty() {
        this.types();
        this.dominance();
        this.structure();
    }
    this.errors
}

impl Verifier<'_> {
    fn inst_error(&mut self, inst: Inst, what: impl fmt::Display) {
        let text = raw_inst(self.func, inst);
        self.errors.push(format!("`{text}`: {what}"));
    }

    fn block_error(&mut self, block: Block, what: impl fmt::Display) {
        self.errors.push(format!("{block}: {what}"));
    }

    /// Checks all references, so that the other checks stay in range.
    fn references(&mut self) {
        let func = self.func;
        let mut in_layout: SecondaryMap<Block, bool> = SecondaryMap::new();
        for &block in &func.layout {
            if func.blocks.get(block).is_none() {
                self.errors.push(format!("layout has missing {block}"));
                return;
            }
            if std::mem::replace(&mut in_layout[block], true) {
                self.block_error(block, "twice in the layout");
            }
        }
        let mut seen_inst = vec![false; func.insts.len()];
        let mut defined = vec![false; func.values.len()];
        let mut define = |this: &mut Self, value: Value, def: ValueDef| match func.values.get(value)
        {
            None => this
                .errors
                .push(format!("missing {value} is defined as {def:?}")),
            Some(data) if data.def != def => {
                this.errors.push(format!(
                    "{value} is defined as {:?}, but recorded as {def:?}",
                    data.def
                ));
            }
            Some(_) if std::mem::replace(&mut defined[value.index()], true) => {
                this.errors.push(format!("{value} is defined twice"));
            }
            Some(_) => {}
        };
        for &block in &func.layout {
            let data = &func.blocks[block];
            for (i, &param) in data.params.iter().enumerate() {
                define(self, param, ValueDef::Param(block, i as u32));
            }
            for &inst in &data.insts {
                let Some(inst_data) = func.insts.get(inst) else {
                    self.block_error(block, format!("missing {inst}"));
                    continue;
                };
                if std::mem::replace(&mut seen_inst[inst.index()], true) {
                    self.block_error(block, format!("{inst} stands in more than one place"));
                    continue;
                }
                for (i, &result) in inst_data.results.iter().enumerate() {
                    define(self, result, ValueDef::Result(inst, i as u32));
                }
            }
        }
        let is_defined = |v: Value| defined.get(v.index()).copied().unwrap_or(false);
        for &block in &func.layout {
            let data = &func.blocks[block];
            for &inst in data.insts.iter().filter(|&&i| func.insts.get(i).is_some()) {
                for &arg in &func.insts[inst].args {
                    if !is_defined(arg) {
                        self.inst_error(inst, format!("{arg} has no definition in the layout"));
                    }
                }
            }
            let mut bad = Vec::new();
            data.term.for_each_use(|v| {
                if !is_defined(v) {
                    bad.push(v);
                }
            });
            for v in bad {
                self.block_error(
                    block,
                    format!("terminator uses {v}, which has no definition in the layout"),
                );
            }
            for target in data.term.targets() {
                if !in_layout[target.block] {
                    self.block_error(
                        block,
                        format!("leads to {}, which is not in the layout", target.block),
                    );
                }
                if Some(target.block) == func.entry() {
                    self.block_error(block, "leads to the entry block");
                }
            }
        }
    }

    fn types(&mut self) {
        let func = self.func;
        let Some(entry) = func.entry() else { return };
        let params: Vec<Type> = func.blocks[entry]
            .params
            .iter()
            .map(|&v| func.ty(v))
            .collect();
        if params != func.params {
            self.block_error(entry, "parameters differ from those of the function");
        }
        let mut args: Vec<Type> = Vec::new();
        let mut results: Vec<Type> = Vec::new();
        for &block in &func.layout {
            for &inst in &func.blocks[block].insts {
                let data = &func.insts[inst];
                args.clear();
                args.extend(data.args.iter().map(|&v| func.ty(v)));
                results.clear();
                results.extend(data.results.iter().map(|&v| func.ty(v)));
                if let Err(what) = check(self.module, func, data.op, &args, &results) {
                    self.inst_error(inst, what);
                }
                if matches!(data.op, Op::Alloca { .. }) && block != entry {
                    self.inst_error(inst, "outside the entry block");
                }
            }
            self.terminator(block);
        }
    }

    fn target(&mut self, from: Block, target: &Edge) {
        let func = self.func;
        let params = &func.blocks[target.block].params;
        if params.len() != target.args.len() {
            let (n, m) = (target.args.len(), params.len());
            self.block_error(
                from,
                format!(
                    "passes {n} arguments to {}, which has {m} parameters",
                    target.block
                ),
            );
            return;
        }
        for (&param, &arg) in params.iter().zip(&target.args) {
            let (p, a) = (func.ty(param), func.ty(arg));
            if p != a {
                self.block_error(
                    from,
                    format!("passes {arg} ({a}) for {param} ({p}) of {}", target.block),
                );
            }
        }
    }

    fn terminator(&mut self, block: Block) {
        let func = self.func;
        let term = &func.blocks[block].term;
        for target in term.targets() {
            self.target(block, target);
        }
        match term {
            Terminator::Branch(cond, ..) if func.ty(*cond) != Type::Bool => {
                self.block_error(block, format!("branches on {cond}, which is no bool"));
            }
            Terminator::Switch(value, cases, _) => {
                let ty = func.ty(*value);
                if !ty.is_int() {
                    self.block_error(block, format!("switches on {value}, which is no integer"));
                }
                let mut bits: Vec<u64> = cases.iter().map(|(b, _)| *b).collect();
                bits.sort_unstable();
                if bits.windows(2).any(|w| w[0] == w[1]) {
                    self.block_error(block, "switch has one case twice");
                }
                if bits.iter().any(|b| b & !ty.mask() != 0) {
                    self.block_error(block, "switch has a case that is too large");
                }
            }
            Terminator::Return(values)
                if !values
                    .iter()
                    .map(|&v| func.ty(v))
                    .eq(func.results.iter().copied()) =>
            {
                self.block_error(block, "returns other types than the function");
            }
            _ => {}
        }
    }

    fn dominance(&mut self) {
        let func = self.func;
        let cfg = Cfg::new(func);
        let dom = DomTree::new(&cfg);
        // Where a value is defined: block and position in it (0 for parameters); none in unreachable blocks.
        let mut at: Vec<Option<(Block, u32)>> = vec![None; func.values.len()];
        for &block in cfg.rpo() {
            let data = &func.blocks[block];
            for &param in &data.params {
                at[param.index()] = Some((block, 0));
            }
            for (i, &inst) in data.insts.iter().enumerate() {
                for &result in &func.insts[inst].results {
                    at[result.index()] = Some((block, i as u32 + 1));
                }
            }
        }
        for &block in cfg.rpo() {
            let ok = |v: Value, position: u32| match at[v.index()] {
                None => false,
                Some((def, def_position)) if def == block => def_position <= position,
                Some((def, _)) => dom.dominates(def, block),
            };
            let data = &func.blocks[block];
            for (i, &inst) in data.insts.iter().enumerate() {
                for &arg in &func.insts[inst].args {
                    if !ok(arg, i as u32) {
                        self.inst_error(
                            inst,
                            format!("in {block} is not dominated by the definition of {arg}"),
                        );
                    }
                }
            }
            let mut bad = Vec::new();
            data.term.for_each_use(|v| {
                if !ok(v, u32::MAX) {
                    bad.push(v);
                }
            });
            for v in bad {
                self.block_error(
                    block,
                    format!("terminator is not dominated by the definition of {v}"),
                );
            }
        }
    }

    fn structure(&mut self) {
        let func = self.func;
        let Some(structure) = &func.structure else {
            return;
        };
        let cfg = Cfg::new(func);
        let dom = DomTree::new(&cfg);
        let mut position: SecondaryMap<Block, u32> = SecondaryMap::new();
        for (i, &block) in func.layout.iter().enumerate() {
            position[block] = i as u32 + 1;
        }
        let mut is_merge: SecondaryMap<Block, bool> = SecondaryMap::new();
        let mut is_exit: SecondaryMap<Block, bool> = SecondaryMap::new();
        for &block in &func.layout {
            let (merge, cont) = match structure.merges[block] {
                None => continue,
                Some(Merge::Selection { merge }) => (merge, None),
                Some(Merge::Loop { merge, cont }) => (merge, Some(cont)),
            };
            if position[merge] == 0 || cont.is_some_and(|c| position[c] == 0) {
                self.block_error(block, "merge or continue block is not in the layout");
                continue;
            }
            if std::mem::replace(&mut is_merge[merge], true) {
                self.block_error(merge, "is the merge block of two headers");
            }
            is_exit[merge] = true;
            if merge == block {
                self.block_error(block, "is its own merge block");
            }
            for below in [Some(merge), cont].into_iter().flatten() {
                if cfg.is_reachable(below)
                    && cfg.is_reachable(block)
                    && !dom.dominates(block, below)
                {
                    self.block_error(
                        block,
                        format!("does not dominate its merge or continue block {below}"),
                    );
                }
            }
            if let Some(cont) = cont {
                is_exit[cont] = true;
            }
            match (&func.blocks[block].term, cont) {
                (Terminator::Jump(_) | Terminator::Branch(..), Some(_)) => {}
                (Terminator::Branch(..) | Terminator::Switch(..), None) => {}
                _ => self.block_error(block, "has a merge, but a terminator that cannot have it"),
            }
        }
        for &block in cfg.rpo() {
            if let Some(idom) = dom.idom(block) {
                if position[idom] > position[block] {
                    self.block_error(
                        block,
                        format!("comes before its dominator {idom} in the layout"),
                    );
                }
            }
            let back: Vec<Block> = cfg
                .preds(block)
                .iter()
                .copied()
                .filter(|&p| position[p] >= position[block])
                .collect();
            match (structure.merges[block], &back[..]) {
                (Some(Merge::Loop { cont, .. }), [latch]) => {
                    if !dom.dominates(cont, *latch) {
                        self.block_error(
                            *latch,
                            format!("closes the loop {block} from outside its continue construct"),
                        );
                    }
                }
                (Some(Merge::Loop { .. }), []) => {}
                (Some(Merge::Loop { .. }), _) => {
                    self.block_error(block, "loop has more than one back edge")
                }
                (_, []) => {}
                (_, _) => self.block_error(block, "back edge to a block that heads no loop"),
            }
            let term = &func.blocks[block].term;
            let several = match term {
                Terminator::Branch(_, a, b) => a.block != b.block,
                Terminator::Switch(..) => true,
                _ => false,
            };
            if several && structure.merges[block].is_none() {
                let leaves = term
                    .targets()
                    .iter()
                    .any(|t| is_exit[t.block] || position[t.block] <= position[block]);
                if !leaves || matches!(term, Terminator::Switch(..)) {
                    self.block_error(block, "branches without a merge");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse_module;
    use super::*;

    fn messages(body: &str) -> String {
        let text =
            format!("func fn0 \"f\" (i32, f32) -> (i32) {{\nblock0(v0: i32, v1: f32):\n{body}}}\n");
        match verify_module(&parse_module(&text).unwrap()) {
            Ok(()) => String::new(),
            Err(errors) => errors.to_string(),
        }
    }

    #[test]
    fn rules() {
        let ok = messages("v2 = iadd v0, v0 : i32\nreturn v2\n");
        assert_eq!(ok, "");
        for (body, what) in [
            ("v2 = iadd v0, v1 : i32\nreturn v2\n", "differ in type"),
            ("v2 = fadd v0, v0 : i32\nreturn v2\n", "not of a float type"),
            ("return v1\n", "returns other types"),
            ("return\n", "returns other types"),
            (
                "v3 = iadd v2, v0 : i32\nv2 = iadd v0, v0 : i32\nreturn v3\n",
                "not dominated",
            ),
            (
                "jump block1\nblock1:\nreturn v0\nblock2(v2: i32):\njump block1(v2)\n",
                "1 arguments",
            ),
            ("jump block0(v0, v1)\n", "leads to the entry block"),
            (
                "jump block1\nblock1:\nv2 = alloca.size4.align4 : ptr.private\nreturn v0\n",
                "outside the entry",
            ),
            ("br v0, block1, block1\nblock1:\nreturn v0\n", "is no bool"),
            ("v2 = trunc v0 : i64\nreturn v0\n", "narrower"),
            (
                "v2 = builtin.work_dim : i64\nreturn v0\n",
                "built-in variable",
            ),
            (
                "switch v0, [1: block1, 1: block1], block1\nblock1:\nreturn v0\n",
                "case twice",
            ),
        ] {
            let text = messages(body);
            assert!(text.contains(what), "{body}: {text}");
        }
    }

    #[test]
    fn structure_rules() {
        let text = |merge: &str| {
            format!(
                "func fn0 \"f\" (bool) -> () structured {{\nblock0(v0: bool):{merge}\n  br v0, block1, block2\n\
                 block1:\n  jump block3\nblock2:\n  jump block3\nblock3:\n  return\n}}\n"
            )
        };
        assert!(verify_module(&parse_module(&text(" selection block3")).unwrap()).is_ok());
        let errors = verify_module(&parse_module(&text("")).unwrap()).unwrap_err();
        assert!(errors.to_string().contains("without a merge"), "{errors}");
    }
}
