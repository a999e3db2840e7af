//! Emitters: Target IR to the code of a back end.

pub mod vulkan;
