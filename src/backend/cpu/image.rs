//! stub
use crate::backend::image::ImageLimits;
use crate::backend::*;
use std::sync::Arc;
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Descriptor([u8;64]);
impl Default for Descriptor { fn default() -> Self { Self([0;64]) } }
pub struct CpuImage;
impl CpuImage {
    pub fn limits() -> ImageLimits { ImageLimits::default() }
    pub fn create(_: &ImageDesc) -> Result<Arc<dyn Image>> { Err(DeviceError::Unsupported("images".into())) }
    pub fn alias(_: &Arc<dyn Image>, _: PixelFormat) -> Result<Arc<dyn Image>> { Err(DeviceError::Unsupported("images".into())) }
    pub fn over(_: &Slice, _: *mut u8, _: PixelFormat) -> Result<Arc<dyn Image>> { Err(DeviceError::Unsupported("images".into())) }
    pub fn descriptor(&self) -> Descriptor { Descriptor::default() }
}
pub fn of(_: &dyn Image) -> Result<&CpuImage> { Err(DeviceError::Unsupported("images".into())) }
