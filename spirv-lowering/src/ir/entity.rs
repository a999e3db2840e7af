//! Entity references: `u32` newtypes, and the dense maps they index.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A `u32` index that names an entity of one kind.
pub trait Entity: Copy + Eq {
    /// Creates the entity with an index.
    fn new(index: usize) -> Self;
    /// Returns the index of the entity.
    fn index(self) -> usize;
}

macro_rules! entity {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u32);
        impl Entity for $name {
            fn new(index: usize) -> Self {
                Self(index as u32)
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}

entity!(
    /// An SSA value.
    Value, "v"
);
entity!(
    /// A basic block.
    Block, "block"
);
entity!(
    /// An instruction.
    Inst, "inst"
);
entity!(
    /// A function of a module.
    FuncId, "fn"
);
entity!(
    /// A program-scope, constant or local variable of a module.
    GlobalId, "@"
);
entity!(
    /// An array in Workgroup or Function storage of a lowered kernel.
    Var, "var"
);

/// A dense map that owns its entities: keys are handed out by [`PrimaryMap::push`].
#[derive(Clone, Debug)]
pub struct PrimaryMap<K, V> {
    items: Vec<V>,
    key: PhantomData<K>,
}

impl<K: Entity, V> PrimaryMap<K, V> {
    /// Creates an empty map.
    pub fn new() -> Self {
        Self {
            items: Vec::new(),
            key: PhantomData,
        }
    }
    /// Adds an entity.
    pub fn push(&mut self, item: V) -> K {
        self.items.push(item);
        K::new(self.items.len() - 1)
    }
    /// Returns the number of entities.
    pub fn len(&self) -> usize {
        self.items.len()
    }
    /// Returns true if there are no entities.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
    /// Returns the entity of a key, if there is one.
    pub fn get(&self, key: K) -> Option<&V> {
        self.items.get(key.index())
    }
    /// Returns all keys.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = K> + use<K, V> {
        (0..self.items.len()).map(K::new)
    }
    /// Returns all entities with their keys.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (K, &V)> {
        self.items.iter().enumerate().map(|(i, v)| (K::new(i), v))
    }
    /// Returns all entities with their keys, mutable.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (K, &mut V)> {
        self.items
            .iter_mut()
            .enumerate()
            .map(|(i, v)| (K::new(i), v))
    }
    /// Returns all entities.
    pub fn values(&self) -> std::slice::Iter<'_, V> {
        self.items.iter()
    }
}

impl<K: Entity, V> Default for PrimaryMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Entity, V> Index<K> for PrimaryMap<K, V> {
    type Output = V;
    fn index(&self, key: K) -> &V {
        &self.items[key.index()]
    }
}

impl<K: Entity, V> IndexMut<K> for PrimaryMap<K, V> {
    fn index_mut(&mut self, key: K) -> &mut V {
        &mut self.items[key.index()]
    }
}

/// A dense side table over entities that another map owns. Missing entries read as the default.
#[derive(Clone, Debug)]
pub struct SecondaryMap<K, V> {
    items: Vec<V>,
    default: V,
    key: PhantomData<K>,
}

impl<K: Entity, V: Clone> SecondaryMap<K, V> {
    /// Creates an empty table whose entries all read as `default`.
    pub fn with_default(default: V) -> Self {
        Self {
            items: Vec::new(),
            default,
            key: PhantomData,
        }
    }
}

impl<K: Entity, V: Clone + Default> SecondaryMap<K, V> {
    /// Creates an empty table.
    pub fn new() -> Self {
        Self::with_default(V::default())
    }
}

impl<K: Entity, V: Clone + Default> Default for SecondaryMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Entity, V: Clone> Index<K> for SecondaryMap<K, V> {
    type Output = V;
    fn index(&self, key: K) -> &V {
        self.items.get(key.index()).unwrap_or(&self.default)
    }
}

impl<K: Entity, V: Clone> IndexMut<K> for SecondaryMap<K, V> {
    fn index_mut(&mut self, key: K) -> &mut V {
        let index = key.index();
        if index >= self.items.len() {
            self.items.resize(index + 1, self.default.clone());
        }
        &mut self.items[index]
    }
}
