//! Images of EGL, as textures of our own.

use super::functions::{call, gl};
use super::{Error, Gl, Name, Object, Result, Texture};
use std::sync::Arc;

/// A texture of our own whose storage is an image of EGL, which lives as long.
pub struct Imported {
    gl: Arc<Gl>,
    texture: Texture,
}

impl Imported {
    /// Makes the texture, and returns it with what it is. [`Error::NoObject`]: there is no such image, or none that can be the storage of
    /// a two-dimensional texture.
    pub fn new(gl: &Arc<Gl>, image: usize) -> Result<(Self, Object)> {
        let object = gl.run(move |current| {
            let functions = &current.functions;
            let mut texture = Texture {
                target: gl::TEXTURE_2D,
                level: 0,
                name: 0,
            };
            current.clear_errors();
            call!(functions, GenTextures(1, &mut texture.name));
            call!(functions, BindTexture(texture.target, texture.name));
            call!(
                functions,
                EGLImageTargetTexture2DOES(texture.target, image as *const _)
            );
            let bound = current.check("an image of EGL");
            call!(functions, BindTexture(texture.target, 0));
            let found = match bound {
                Ok(()) => current.describe(Name::Texture(texture)),
                Err(_) => Err(Error::NoObject),
            };
            if found.is_err() {
                call!(functions, DeleteTextures(1, &texture.name));
            }
            found
        })?;
        let Name::Texture(texture) = object.name else {
            return Err(Error::NoObject);
        };
        let gl = gl.clone();
        Ok((Self { gl, texture }, object))
    }
}

impl Drop for Imported {
    fn drop(&mut self) {
        let name = self.texture.name;
        self.gl.post(move |current| {
            if let Some(delete) = current.functions.DeleteTextures {
                // SAFETY: the context is current in this thread; one name.
                unsafe { delete(1, &name) };
            }
        });
    }
}
