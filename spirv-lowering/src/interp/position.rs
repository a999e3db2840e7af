//! The position of a work-item.

/// The position of a work-item in its work-group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LocalPosition {
    pub id: [u32; 3],
    /// The linear local id.
    pub index: u32,
}
