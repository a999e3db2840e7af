//! The position of a work-item.

/// Where a work-item is in its work-group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LocalPosition {
    pub id: [u32; 3],
    /// Linear local id.
    pub index: u32,
}
