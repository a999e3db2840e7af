//! The contexts of OpenGL and EGL that a context shares objects with (cl_khr_gl_sharing).

use crate::backend::gl::{Error, Gl, Source};
use crate::cl::{self, cl_int};
use crate::error::{ClError, ClResult, OrErr};
use parking_lot::Mutex;
use std::sync::Arc;

/// Returns the code and text of an error; that of an object that is not there is `object`.
pub(super) fn of_gl(error: Error, object: cl_int) -> ClError {
    let code = match error {
        Error::NoLibrary | Error::Unshared(_) => cl::CL_INVALID_OPERATION,
        Error::NoContext => cl::CL_INVALID_GL_SHAREGROUP_REFERENCE_KHR,
        Error::NoObject => object,
        Error::NoLevel => cl::CL_INVALID_MIP_LEVEL,
        Error::NoFormat(_) => cl::CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
        Error::NoTarget => cl::CL_INVALID_VALUE,
        Error::OutOfMemory => cl::CL_OUT_OF_HOST_MEMORY,
        Error::Refused(_) | Error::Gone => cl::CL_OUT_OF_RESOURCES,
    };
    ClError::new(code, error.to_string())
}

/// The contexts of OpenGL that a context shares objects with.
pub struct Sharing {
    gl: Option<Arc<Gl>>,
    /// Contexts of displays of EGL, for their images.
    displays: Mutex<Vec<(usize, Arc<Gl>)>>,
}

impl Sharing {
    /// Makes a context in the share group that is named, if one is.
    pub(super) fn new(source: Option<Source>) -> ClResult<Self> {
        let gl = source.map(open).transpose()?.map(Arc::new);
        Ok(Self {
            gl,
            displays: Mutex::default(),
        })
    }

    /// Returns the context in the share group of the application's. CL_INVALID_CONTEXT without one.
    pub fn gl(&self) -> ClResult<&Arc<Gl>> {
        (self.gl.as_ref()).or_err(
            cl::CL_INVALID_CONTEXT,
            "the context was made without one of OpenGL",
        )
    }

    /// Returns the context for images and fences of a display of EGL, made at its first use.
    pub(super) fn of_display(&self, display: usize) -> ClResult<Arc<Gl>> {
        let find = |known: &[(usize, Arc<Gl>)]| {
            let found = known.iter().find(|(of, _)| *of == display);
            found.map(|(_, gl)| gl.clone())
        };
        if let Some(known) = find(&self.displays.lock()) {
            return Ok(known);
        }
        // Two threads may make one each: the second goes.
        let source = Source::Egl {
            display,
            context: 0,
        };
        let made = Gl::new(source).map_err(|error| match error {
            Error::NoContext => of_gl(Error::NoObject, cl::CL_INVALID_EGL_OBJECT_KHR),
            error => of_gl(error, cl::CL_INVALID_EGL_OBJECT_KHR),
        });
        let made = Arc::new(made?);
        let mut displays = self.displays.lock();
        if let Some(known) = find(&displays) {
            return Ok(known);
        }
        displays.push((display, made.clone()));
        Ok(made)
    }

    /// Returns all of them.
    pub fn all(&self) -> Vec<Arc<Gl>> {
        let displays = self.displays.lock();
        let of_displays = displays.iter().map(|(_, gl)| gl);
        self.gl.iter().chain(of_displays).cloned().collect()
    }
}

/// Makes a context of our own in the share group of the application's.
pub(super) fn open(source: Source) -> ClResult<Gl> {
    Gl::new(source).map_err(|error| of_gl(error, cl::CL_INVALID_GL_OBJECT))
}
