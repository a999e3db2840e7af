//! Accesses to texels of images by descriptor, and their errors: a texel outside of the image
//! (OpenCL C, section 6.15.15: the result is undefined; a sampler has brought its coordinates into
//! the image), a store of a value that was never written, a race. Also accesses to images whose
//! texels are memory of the run.

use super::error::{Error, Fault};
use super::images::View;
use super::inst::InstRun;
use super::pictures::{Picture, TEXEL_BYTES};
use super::scalar::Scalar;
use super::watch::{Fact, Pixel, Shared, Wrong};

impl InstRun<'_, '_, '_> {
    /// Returns the place that the first three operands name, and the coordinates of the texel if it
    /// is in the image.
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

    /// Records an access to a texel, and reports a race.
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

    /// Reads the components of a texel; zeros outside of the image.
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

    /// Writes a texel; does nothing outside of the image.
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

/// Accesses to images among the arguments: by handle, or by descriptor after `lower_images`.
impl InstRun<'_, '_, '_> {
    /// Returns the image that the first operand refers to.
    pub(super) fn picture(&mut self) -> Result<Picture, Error> {
        let number = self.decided(self.arg(0), "an image")?;
        let argument = usize::try_from(number).ok().and_then(|n| n.checked_sub(1));
        self.picture_of(argument)
    }

    /// Returns the image that an argument holds.
    fn picture_of(&self, argument: Option<usize>) -> Result<Picture, Error> {
        let picture = argument.and_then(|argument| self.machine.pictures.get(argument));
        let none = Error::NotInterpreted(self.place());
        picture.copied().flatten().ok_or(none)
    }

    /// Returns the image at a binding.
    pub(super) fn picture_at(&self, binding: u32) -> Result<Picture, Error> {
        self.picture_of(self.machine.bindings.get(&binding).copied())
    }

    /// Returns the address of the texel at the coordinates from operand `first` on.
    fn texel_of(&mut self, picture: &Picture, first: usize) -> Result<Option<u64>, Error> {
        let mut at = [0; 3];
        for (i, at) in at.iter_mut().enumerate().take(picture.dim.coordinates()) {
            *at = self.decided(self.arg(first + i), "a coordinate of an image")? as u32;
        }
        Ok(picture.address(at))
    }

    /// Reads the components of a texel.
    pub(super) fn read_picture(
        &mut self,
        picture: &Picture,
        first: usize,
    ) -> Result<[Scalar; 4], Error> {
        let outside = Fault::Outside {
            address: picture.at,
            size: TEXEL_BYTES.into(),
        };
        let at = self.texel_of(picture, first)?;
        let at = at.ok_or_else(|| self.fault(None)(outside))?;
        let mut components = [Scalar::known(0); 4];
        for (component, at) in components.iter_mut().zip((at..).step_by(4)) {
            let read = self.machine.memory.read(at, 4);
            *component = read.map_err(|fault| self.fault(None)(fault))?;
        }
        Ok(components)
    }

    /// Writes a texel, whose components follow the coordinates; does nothing outside of the image.
    pub(super) fn write_picture(&mut self, picture: &Picture, first: usize) -> Result<(), Error> {
        let Some(at) = self.texel_of(picture, first)? else {
            return Ok(());
        };
        for (i, at) in (0..4).zip((at..).step_by(4)) {
            let component = self.arg(first + 3 + i);
            let written = self.machine.memory.write(at, 4, component);
            written.map_err(|fault| self.fault(None)(fault))?;
        }
        Ok(())
    }
}
