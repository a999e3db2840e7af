//! The OpenCL objects: passive state, one object a file. Constructors and operations make the specification's checks on
//! values; the checks on pointers are the C edge's.

pub mod device;
pub mod info;
pub mod platform;
