//! Structured control flow as a tree: chains of blocks, selections and loops, as code with masks is made from it.
//!
//! A *chain* is what control runs through from a block until it leaves for a place that an enclosing construct names: the
//! merge block of a selection, the merge block or the continue target of a loop, or the header that a loop repeats from.

use crate::error::{LowerError, Result};
use crate::ir::entity::{Block, SecondaryMap, Value};
use crate::ir::function::{Function, Merge, Terminator};
use rustc_hash::FxHashMap;

/// The number of a construct in [`Tree::constructs`].
pub type ConstructId = usize;

/// A run of blocks and constructs.
#[derive(Debug, Default)]
pub struct Chain {
    /// In order. Nothing follows an item that control does not pass.
    pub items: Vec<Item>,
}

/// A piece of a chain.
#[derive(Debug)]
pub enum Item {
    /// The instructions of a block.
    Code(Block),
    /// The edge that leaves a block for a place of an enclosing construct, or for the next block of the chain.
    Edge(Edge),
    /// Returns from the function, at the end of this block.
    Return(Block),
    /// Control never gets here.
    Unreachable,
    /// A branch at the end of a block.
    Select(Select),
    /// A loop.
    Loop(LoopConstruct),
}

/// An edge of the control-flow graph: target number `index` of the end of block `from`, which stands for all targets with
/// the same block and arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Where it begins.
    pub from: Block,
    /// Which of the targets.
    pub index: usize,
    /// Where it goes.
    pub to: Block,
    /// The place of an enclosing construct that it goes to. None: the next block of the chain.
    pub place: Option<JumpTarget>,
}

/// A place that edges go to from within a construct.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct JumpTarget {
    /// The construct.
    pub construct: ConstructId,
    /// Which.
    pub kind: JumpTargetKind,
}

/// See [`JumpTarget`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum JumpTargetKind {
    Merge,
    Continue,
    Header,
}

/// A branch or switch with its arms.
#[derive(Debug)]
pub struct Select {
    /// Its number.
    pub construct: ConstructId,
    /// The block that ends with it.
    pub block: Block,
    /// The arms of the targets.
    pub arms: Vec<Arm>,
    /// Where the arms meet, if they do.
    pub merge: Option<Block>,
}

/// The code of one edge of a branch. All cases of a switch that go to one block with the same
/// arguments are one arm: the lanes that take them converge, and its code is emitted once.
#[derive(Debug)]
pub struct Arm {
    /// The numbers of its targets, in order.
    pub targets: Vec<usize>,
    /// The code.
    pub body: Chain,
}

/// A loop.
#[derive(Debug)]
pub struct LoopConstruct {
    /// Its number.
    pub construct: ConstructId,
    /// From the header on.
    pub body: Chain,
    /// From the continue target on, to the edge back.
    pub latch: Chain,
    /// Where it goes on after the loop.
    pub merge: Block,
}

/// The properties of a construct.
#[derive(Debug, Clone, Copy)]
pub struct Construct {
    /// The construct around it.
    pub parent: Option<ConstructId>,
    /// A loop, not a selection.
    pub is_loop: bool,
    /// Its header.
    pub block: Block,
}

/// A function as a tree.
#[derive(Debug, Default)]
pub struct Tree {
    /// From the entry block on.
    pub root: Chain,
    /// All constructs, outer ones before inner ones.
    pub constructs: Vec<Construct>,
    /// The innermost construct that each block stands in. The header of a loop stands in it, the block before a branch
    /// does not.
    pub home: SecondaryMap<Block, Option<ConstructId>>,
    /// How many edges go to a block.
    pub edges_in: SecondaryMap<Block, u32>,
}

struct Builder<'f> {
    func: &'f Function,
    tree: Tree,
    /// Constructs around what is being built, with their places.
    around: Vec<(ConstructId, [(Option<Block>, JumpTargetKind); 3])>,
    /// Blocks that have their place in the tree.
    placed: SecondaryMap<Block, bool>,
}

/// Deeper nesting would need more stack than a thread may have.
const DEEPEST: usize = 2000;

impl Tree {
    /// Builds the tree of a structured function.
    pub fn new(func: &Function) -> Result<Self> {
        let Some(entry) = func.entry() else {
            return Ok(Self::default());
        };
        let mut builder = Builder {
            func,
            tree: Self::default(),
            around: Vec::new(),
            placed: SecondaryMap::new(),
        };
        for &block in &func.layout {
            for target in func.blocks[block].term.targets() {
                builder.tree.edges_in[target.block] += 1;
            }
        }
        builder.tree.root = builder.chain(entry)?;
        Ok(builder.tree)
    }
}

impl Builder<'_> {
    fn merge(&self, block: Block) -> Option<Merge> {
        self.func.structure.as_ref().and_then(|s| s.merges[block])
    }

    fn current(&self) -> Option<ConstructId> {
        self.around.last().map(|&(id, _)| id)
    }

    /// Returns the place of an enclosing construct that a block is.
    fn place(&self, block: Block) -> Option<JumpTarget> {
        for &(construct, places) in self.around.iter().rev() {
            for (at, kind) in places {
                if at == Some(block) {
                    return Some(JumpTarget { construct, kind });
                }
            }
        }
        None
    }

    fn open(
        &mut self,
        block: Block,
        is_loop: bool,
        places: [(Option<Block>, JumpTargetKind); 3],
    ) -> Result<ConstructId> {
        if self.around.len() > DEEPEST {
            return Err(LowerError::unsupported("control flow nested that deep"));
        }
        let id = self.tree.constructs.len();
        self.tree.constructs.push(Construct {
            parent: self.current(),
            is_loop,
            block,
        });
        self.around.push((id, places));
        Ok(id)
    }

    fn edge(&self, from: Block, index: usize, to: Block) -> Edge {
        Edge {
            from,
            index,
            to,
            place: self.place(to),
        }
    }

    /// Returns the code of an edge, up to a place around it.
    fn arm(&mut self, from: Block, index: usize, to: Block) -> Result<Chain> {
        let edge = self.edge(from, index, to);
        if edge.place.is_some() {
            return Ok(Chain {
                items: vec![Item::Edge(edge)],
            });
        }
        let mut chain = self.chain(to)?;
        chain.items.insert(0, Item::Edge(edge));
        Ok(chain)
    }

    fn chain(&mut self, start: Block) -> Result<Chain> {
        let mut chain = Chain::default();
        let mut next = Some(start);
        while let Some(block) = next {
            next = match self.merge(block) {
                Some(Merge::Loop { merge, cont }) => {
                    self.loop_at(&mut chain, block, merge, cont)?;
                    (self.tree.edges_in[merge] > 0).then_some(merge)
                }
                _ => self.block(&mut chain, block)?,
            };
        }
        Ok(chain)
    }

    fn loop_at(
        &mut self,
        chain: &mut Chain,
        header: Block,
        merge: Block,
        cont: Block,
    ) -> Result<()> {
        let places = [
            (Some(merge), JumpTargetKind::Merge),
            (Some(cont), JumpTargetKind::Continue),
            (Some(header), JumpTargetKind::Header),
        ];
        let construct = self.open(header, true, places)?;
        let mut body = Chain::default();
        let mut next = self.block(&mut body, header)?;
        if let Some(block) = next.take() {
            let rest = self.chain(block)?;
            body.items.extend(rest.items);
        }
        let latch = if self.tree.edges_in[cont] > 0 {
            self.chain(cont)?
        } else {
            Chain::default()
        };
        self.around.pop();
        chain.items.push(Item::Loop(LoopConstruct {
            construct,
            body,
            latch,
            merge,
        }));
        Ok(())
    }

    /// Adds a block to the chain: one that is no header of a loop, or whose loop was entered.
    /// Returns the next block of the chain.
    fn block(&mut self, chain: &mut Chain, block: Block) -> Result<Option<Block>> {
        if std::mem::replace(&mut self.placed[block], true) {
            return Err(LowerError::internal(format!("{block} stands twice")));
        }
        self.tree.home[block] = self.current();
        chain.items.push(Item::Code(block));
        let term = &self.func.blocks[block].term;
        let targets: Vec<Block> = term.targets().iter().map(|t| t.block).collect();
        match term {
            Terminator::Return(_) => {
                chain.items.push(Item::Return(block));
                Ok(None)
            }
            Terminator::Unreachable => {
                chain.items.push(Item::Unreachable);
                Ok(None)
            }
            Terminator::Jump(_) => {
                let edge = self.edge(block, 0, targets[0]);
                chain.items.push(Item::Edge(edge));
                Ok(edge.place.is_none().then_some(targets[0]))
            }
            Terminator::Branch(..) | Terminator::Switch(..) => {
                let merge = match self.merge(block) {
                    Some(Merge::Selection { merge }) => Some(merge),
                    // One of its targets goes on, the others leave: as if it were the merge block of a selection.
                    _ => {
                        let mut on = targets.iter().filter(|&&t| self.place(t).is_none());
                        let first = on.next().copied();
                        if on.any(|&t| Some(t) != first) {
                            return Err(LowerError::internal("a branch without a merge block"));
                        }
                        first
                    }
                };
                let places = [
                    (merge, JumpTargetKind::Merge),
                    (None, JumpTargetKind::Merge),
                    (None, JumpTargetKind::Merge),
                ];
                let construct = self.open(block, false, places)?;
                let mut arms: Vec<Arm> = Vec::new();
                for (targets, to) in distinct(term) {
                    let body = self.arm(block, targets[0], to)?;
                    arms.push(Arm { targets, body });
                }
                self.around.pop();
                let merge = merge.filter(|&m| self.tree.edges_in[m] > 0);
                chain.items.push(Item::Select(Select {
                    construct,
                    block,
                    arms,
                    merge,
                }));
                Ok(merge)
            }
        }
    }
}

/// Returns the distinct edges of a terminator: the numbers of the targets that are one, and where
/// they go.
pub fn distinct(term: &Terminator) -> Vec<(Vec<usize>, Block)> {
    let mut found: FxHashMap<(Block, &[Value]), usize> = FxHashMap::default();
    let mut edges: Vec<(Vec<usize>, Block)> = Vec::new();
    for (index, edge) in term.targets().into_iter().enumerate() {
        let at = *found.entry((edge.block, &edge.args)).or_insert(edges.len());
        match edges.get_mut(at) {
            Some((targets, _)) => targets.push(index),
            None => edges.push((vec![index], edge.block)),
        }
    }
    edges
}
