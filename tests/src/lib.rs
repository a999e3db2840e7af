//! What the integration tests, the demo and the bench share: OpenCL through the ordinary loader.

pub mod client;
