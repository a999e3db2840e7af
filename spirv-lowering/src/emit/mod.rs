//! Emitters, which write Target IR as the code of a back end.

pub mod vulkan;
