//! The control flow of a function: its graph, dominators and loops, each computed once.

use super::cfg::Cfg;
use super::dom::DomTree;
use super::loops::LoopForest;
use crate::ir::function::Function;
use std::cell::OnceCell;
use std::rc::Rc;

/// The control-flow graph of a function, and what is computed of it when asked for.
#[derive(Debug)]
pub struct ControlFlow {
    /// The graph.
    pub cfg: Cfg,
    dom: OnceCell<DomTree>,
    loops: OnceCell<LoopForest>,
}

impl ControlFlow {
    /// Computes the graph of a function.
    pub fn new(func: &Function) -> Self {
        Self {
            cfg: Cfg::new(func),
            dom: OnceCell::new(),
            loops: OnceCell::new(),
        }
    }

    /// Returns the dominator tree.
    pub fn dom(&self) -> &DomTree {
        self.dom.get_or_init(|| DomTree::new(&self.cfg))
    }

    /// Returns the loops.
    pub fn loops(&self) -> &LoopForest {
        self.loops
            .get_or_init(|| LoopForest::new(&self.cfg, self.dom()))
    }
}

/// The analyses that passes hand on to one another. They are kept while no edge of the function
/// changes, which is looked up whenever a pass asks: a pass need not say what it keeps.
#[derive(Debug, Default)]
pub struct Analyses(Option<Rc<ControlFlow>>);

impl Analyses {
    /// Returns the control flow of a function as it is now.
    pub fn control_flow(&mut self, func: &Function) -> Rc<ControlFlow> {
        match &self.0 {
            Some(flow) if flow.cfg.is_of(func) => flow.clone(),
            _ => self.0.insert(Rc::new(ControlFlow::new(func))).clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse::parse_function;

    #[test]
    fn control_flow_is_kept_until_an_edge_changes() {
        let text = "func fn0 \"f\" (bool) -> () {\nblock0(v0: bool):\n  br v0, block1, block2\n\
                    block1:\n  jump block2\nblock2:\n  return\n}\n";
        let mut func = parse_function(text).unwrap();
        let [entry, side, end] = func.layout[..] else {
            panic!("three blocks")
        };
        let mut analyses = Analyses::default();
        let first = analyses.control_flow(&func);
        assert_eq!(first.dom().idom(end), Some(entry));
        assert!(Rc::ptr_eq(&first, &analyses.control_flow(&func.clone())));
        for target in func.blocks[entry].term.targets_mut() {
            target.block = side;
        }
        let second = analyses.control_flow(&func);
        assert_eq!(second.dom().idom(end), Some(side));
        func.add_block();
        assert!(!Rc::ptr_eq(&second, &analyses.control_flow(&func)));
    }
}
