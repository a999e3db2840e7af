//! Texels of images by descriptor, and what a kernel may not do with them: read or write a texel that there is not (OpenCL
//! C, section 6.15.15: the result is undefined; coordinates that a sampler has brought into the image are in it), store what
//! was never written, race.

use super::error::{Error, Fault};
use super::images::View;
use super::item::InstRun;
use super::scalar::Scalar;
use super::watch::{Fact, Pixel, Shared, Wrong};

impl InstRun<'_, '_, '_> {
    /// The place that the first three operands name, and the texel if there is one.
    fn pixel(&mut self, binding: u32, writes: bool) -> Result<(Pixel, Option<[u32; 3]>), Error> {
        let view = self.machine.images.as_ref().map(|i| i.view(binding));
        let none = || Error::NotInterpreted(self.place());
        // Where nothing is bound there is no texel.
        let view = view.ok_or_else(none)?.unwrap_or(View {
            coordinates: 1,
            ..View::default()
        });
        let mut at = [0; 3];
        for (i, at) in at.iter_mut().enumerate().take(view.coordinates.into()) {
            *at = self.decided(self.arg(i), "a coordinate of an image")? as i32;
        }
        let pixel = Pixel { binding, at, view };
        let inside = view.inside(at);
        if inside.is_none() {
            if self.machine.watch.is_none() {
                let (address, size) = (binding.into(), view.texel.into());
                return Err(self.fault(None)(Fault::Outside { address, size }));
            }
            let wrong = match writes {
                true => Wrong::WriteOutside,
                false => Wrong::ReadOutside,
            };
            self.note(Fact {
                pixel: Some(pixel),
                ..Fact::new(wrong)
            });
        }
        Ok((pixel, inside))
    }

    /// Notes the race that an access to a texel makes.
    fn touch_texel(&mut self, pixel: Pixel, at: [u32; 3], writes: bool, same: bool) {
        let Some(images) = &self.machine.images else {
            return;
        };
        let place = (images.address(pixel.binding, at), pixel.view.texel.into());
        if let Some(race) = self.races(Shared::Image, place, writes, same) {
            let pixel = Some(pixel);
            self.machine.wrong(self.item, Fact { pixel, ..race });
        }
    }

    /// The components of a texel; zeros, where there is none.
    pub(super) fn read_texel(&mut self, binding: u32) -> Result<[Scalar; 4], Error> {
        let (pixel, inside) = self.pixel(binding, false)?;
        let Some(at) = inside else {
            return Ok([Scalar::known(0); 4]);
        };
        self.touch_texel(pixel, at, false, false);
        let images = self.machine.images.as_mut();
        let texel = images.map_or([0; 4], |images| images.load(binding, at));
        Ok(texel.map(|component| Scalar::known(component.into())))
    }

    /// Writes a texel; nothing, where there is none.
    pub(super) fn write_texel(&mut self, binding: u32) -> Result<(), Error> {
        let (pixel, inside) = self.pixel(binding, true)?;
        let components = [3, 4, 5, 6].map(|i| self.arg(i));
        let Some(at) = inside else {
            return Ok(());
        };
        let mut stored = components.iter().zip(pixel.view.stored);
        if stored.any(|(component, stored)| stored && !component.is_known()) {
            self.note(Fact {
                pixel: Some(pixel),
                ..Fact::new(Wrong::NeverWritten)
            });
        }
        let values = components.map(|component| component.bits as u32);
        let images = self.machine.images.as_mut();
        let changed = images.is_some_and(|images| images.store(binding, at, values));
        self.touch_texel(pixel, at, true, !changed);
        Ok(())
    }
}
