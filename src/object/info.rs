//! Answers to `clGet*Info`.
//!
//! A query method takes an [`InfoOut`] and must return [`Written`], which only [`InfoOut::write`] makes: so a branch
//! that forgets to answer does not compile, and the size rules stand in one place:
//!
//! - the size of the answer is always reported, when the application asked for it;
//! - a buffer that is too small is CL_INVALID_VALUE and stays untouched;
//! - no buffer at all is allowed.
//!
//! ```ignore
//! impl Info for Event {
//!     fn query(&self, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written> {
//!         answer! { param, out;
//!             CL_EVENT_COMMAND_TYPE => self.command_type,
//!             CL_EVENT_CONTEXT => &self.context,
//!         }
//!     }
//! }
//! ```

use crate::cl::{cl_image_format, cl_name_version, cl_uint, CL_INVALID_VALUE};
use crate::error::{ensure, err, ClResult};
use crate::features::{Versioned, VENDOR_SUFFIX};
use crate::handle::{Body, Object, Ref};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// An object that answers `clGet*Info`. Queries with more inputs (build info, argument info, ...) are plain methods of
/// the same shape.
pub trait Info {
    /// Answers one query, or returns [`unknown`].
    fn query(&self, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written>;
}

/// Proof that a query was answered.
#[derive(Debug)]
pub struct Written(());

/// Where an answer goes: the application's buffer and the place for its size, both optional.
#[derive(Debug)]
pub struct InfoOut<'a> {
    buffer: Option<&'a mut [MaybeUninit<u8>]>,
    size_ret: Option<&'a mut MaybeUninit<usize>>,
}

impl<'a> InfoOut<'a> {
    /// Creates the output from `param_value` with its size, and `param_value_size_ret`.
    pub fn new(
        buffer: Option<&'a mut [MaybeUninit<u8>]>,
        size_ret: Option<&'a mut MaybeUninit<usize>>,
    ) -> Self {
        Self { buffer, size_ret }
    }

    /// Answers with a value.
    pub fn write(self, value: impl InfoValue) -> ClResult<Written> {
        let mut count = Sink {
            buffer: &mut [],
            at: 0,
        };
        value.put(&mut count);
        let size = count.at;
        if let Some(size_ret) = self.size_ret {
            size_ret.write(size);
        }
        if let Some(buffer) = self.buffer {
            ensure!(
                buffer.len() >= size,
                CL_INVALID_VALUE,
                "param_value_size is {}, the answer needs {size}",
                buffer.len()
            );
            value.put(&mut Sink { buffer, at: 0 });
        }
        Ok(Written(()))
    }
}

/// Returns the error for a parameter name that the object does not know.
pub fn unknown<T>(param: cl_uint) -> ClResult<T> {
    err(
        CL_INVALID_VALUE,
        format!("unknown parameter name {param:#x}"),
    )
}

/// Answers a query by a table of parameter names, each with the value to write.
macro_rules! answer {
    ($param:expr, $out:expr; $($($name:ident)|+ $(if $guard:expr)? => $value:expr,)*) => {
        match $param {
            $($(cl::$name)|+ $(if $guard)? => $out.write($value),)*
            other => crate::object::info::unknown(other),
        }
    };
}
pub(crate) use answer;

/// Takes and counts the bytes of a value, in order. What does not fit is dropped.
pub struct Sink<'a> {
    buffer: &'a mut [MaybeUninit<u8>],
    at: usize,
}

impl Sink<'_> {
    /// Appends bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let rest = self.buffer.get_mut(self.at..).unwrap_or_default();
        for (to, from) in rest.iter_mut().zip(bytes) {
            to.write(*from);
        }
        self.at += bytes.len();
    }
}

/// A value with the C representation that the specification gives for an answer.
pub trait InfoValue {
    /// Appends the bytes to the sink.
    fn put(&self, sink: &mut Sink<'_>);
}

macro_rules! scalars {
    ($($type:ty)*) => { $(
        impl InfoValue for $type {
            fn put(&self, sink: &mut Sink<'_>) {
                sink.bytes(&self.to_ne_bytes());
            }
        }
    )* };
}
// cl_char .. cl_ulong, all bit sets and enums, size_t.
scalars! { u8 i8 u16 i16 u32 i32 u64 i64 usize isize }

/// As cl_bool.
impl InfoValue for bool {
    fn put(&self, sink: &mut Sink<'_>) {
        cl_uint::from(*self).put(sink);
    }
}

impl InfoValue for *mut c_void {
    fn put(&self, sink: &mut Sink<'_>) {
        (*self as usize).put(sink);
    }
}

impl InfoValue for *const c_void {
    fn put(&self, sink: &mut Sink<'_>) {
        (*self as usize).put(sink);
    }
}

/// As its handle; the application gets no reference.
impl<T: Body> InfoValue for Ref<T> {
    fn put(&self, sink: &mut Sink<'_>) {
        Object::handle(self).put(sink);
    }
}

/// As its handle, or NULL.
impl<T: Body> InfoValue for Option<Ref<T>> {
    fn put(&self, sink: &mut Sink<'_>) {
        self.as_ref().map_or(null_mut(), Object::handle).put(sink);
    }
}

impl InfoValue for cl_name_version {
    fn put(&self, sink: &mut Sink<'_>) {
        self.version.put(sink);
        self.name.put(sink);
    }
}

impl InfoValue for cl_image_format {
    fn put(&self, sink: &mut Sink<'_>) {
        [self.image_channel_order, self.image_channel_data_type].put(sink);
    }
}

impl<T: InfoValue> InfoValue for [T] {
    fn put(&self, sink: &mut Sink<'_>) {
        self.iter().for_each(|item| item.put(sink));
    }
}

/// With a NUL at the end.
impl InfoValue for str {
    fn put(&self, sink: &mut Sink<'_>) {
        sink.bytes(self.as_bytes());
        sink.bytes(&[0]);
    }
}

impl<T: InfoValue, const N: usize> InfoValue for [T; N] {
    fn put(&self, sink: &mut Sink<'_>) {
        self.as_slice().put(sink);
    }
}

impl<T: InfoValue> InfoValue for Vec<T> {
    fn put(&self, sink: &mut Sink<'_>) {
        self.as_slice().put(sink);
    }
}

impl InfoValue for String {
    fn put(&self, sink: &mut Sink<'_>) {
        self.as_str().put(sink);
    }
}

impl<T: InfoValue + ?Sized> InfoValue for &T {
    fn put(&self, sink: &mut Sink<'_>) {
        T::put(self, sink);
    }
}

/// Returns a name with its version, as the `*_WITH_VERSION` queries list them. Names longer than 63
/// bytes are cut.
pub fn name_version(name: &str, major: u32, minor: u32, patch: u32) -> cl_name_version {
    let mut array = [0; 64];
    for (to, from) in array.iter_mut().take(63).zip(name.bytes()) {
        *to = from as _;
    }
    cl_name_version {
        version: version(major, minor, patch),
        name: array,
    }
}

/// Returns CL_MAKE_VERSION
pub fn version(major: u32, minor: u32, patch: u32) -> cl_uint {
    (major & 0x3ff) << 22 | (minor & 0x3ff) << 12 | patch & 0xfff
}

/// Returns the version string, such as "OpenCL 3.0 PUMICE".
pub fn version_string((major, minor): (u32, u32)) -> String {
    format!("OpenCL {major}.{minor} {VENDOR_SUFFIX}")
}

/// Returns versioned names as the `*_WITH_VERSION` queries list them.
pub fn name_versions(list: &[Versioned]) -> Vec<cl_name_version> {
    list.iter()
        .map(|&(name, (major, minor, patch))| name_version(name, major, minor, patch))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to_bytes(query: impl Fn(InfoOut<'_>) -> ClResult<Written>) -> ClResult<Vec<u8>> {
        let (mut size, mut bytes) = (MaybeUninit::new(0), [MaybeUninit::new(0); 100]);
        query(InfoOut::new(Some(&mut bytes), Some(&mut size)))?;
        // SAFETY: initialised above.
        let written = bytes.map(|byte| unsafe { byte.assume_init() });
        // SAFETY: initialised above.
        Ok(written[..unsafe { size.assume_init() }].to_vec())
    }

    #[test]
    fn size_rules() {
        let mut size = MaybeUninit::new(0usize);
        let mut buffer = [MaybeUninit::new(0xaau8); 4];
        let small = InfoOut::new(Some(&mut buffer), Some(&mut size)).write("four");
        assert_eq!(small.err().map(|e| e.code), Some(CL_INVALID_VALUE));
        // SAFETY: all bytes were initialised above.
        unsafe {
            assert_eq!(size.assume_init(), 5);
            assert!(buffer.iter().all(|b| b.assume_init() == 0xaa));
        }
        assert!(InfoOut::new(None, None).write(1u32).is_ok());
    }

    #[test]
    fn encodings() {
        assert_eq!(to_bytes(|o| o.write("ab")).unwrap(), b"ab\0");
        assert_eq!(
            to_bytes(|o| o.write(true)).unwrap(),
            1u32.to_ne_bytes().to_vec()
        );
        assert_eq!(
            to_bytes(|o| o.write([1usize, 2, 3])).unwrap().len(),
            3 * size_of::<usize>()
        );
        assert_eq!(to_bytes(|o| o.write(Vec::<u32>::new())).unwrap().len(), 0);
        let named = to_bytes(|o| o.write(name_version("x", 3, 1, 2))).unwrap();
        assert_eq!(named.len(), 68);
        assert_eq!(named[..6], [2, 0x10, 0xc0, 0, b'x', 0]);
    }
}
