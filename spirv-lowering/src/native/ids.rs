//! What code in the text calls the things that a pack knows of itself.

use crate::interface::Implicit;

/// Names of what a pack knows of itself.
#[derive(Debug, Clone, Default)]
pub struct Ids {
    /// Numbers of the work-group, i32.
    pub group: [String; 3],
    /// Local ids: i32, of lane 0 in the first dimension; or vectors, in linear packs.
    pub local: [String; 3],
    /// The linear local id of lane 0, i32.
    pub index: String,
    /// The number of the pack, i32.
    pub pack: String,
    /// The pack's frame.
    pub frame: String,
    /// Where implicit arguments lie among the push constants.
    pub implicit: Vec<(Implicit, u32)>,
}
