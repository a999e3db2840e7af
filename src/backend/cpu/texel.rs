//! stub
use super::image::Descriptor;
pub unsafe extern "C" fn pumice_texel_load(_: *const Descriptor, _: u32, _: u64, _: *const i32, _: *const i32, _: *const i32, _: *mut u32) {}
pub unsafe extern "C" fn pumice_texel_store(_: *const Descriptor, _: u32, _: u64, _: *const i32, _: *const i32, _: *const i32, _: *const u32) {}
