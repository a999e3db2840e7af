//! The state that outlives a build: the caches on disk, and program binaries.

pub mod binary;
pub mod entries;
pub mod pipelines;
pub mod sections;
pub mod source;

mod surroundings;
