//! stub
use crate::backend::{Image, image::ImageRegion};
pub unsafe fn image_to_memory(_: &dyn Image, _: &ImageRegion, _: *mut u8, _: u32, _: u32) {}
pub unsafe fn memory_to_image(_: *const u8, _: u32, _: u32, _: &dyn Image, _: &ImageRegion) {}
pub unsafe fn image_copy(_: &dyn Image, _: [u32;3], _: &dyn Image, _: [u32;3], _: [u32;3]) {}
