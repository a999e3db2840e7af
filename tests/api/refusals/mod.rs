//! Tests of calls with more errors than one condition of the specification, which `tests/errors`
//! has each: regions and kinds of images, every name of every query. All errors of a group of calls
//! are reported at once.

use pumice_tests::code_name;
use pumice_tests::sys::cl_int;

/// The calls that returned an unexpected code.
#[derive(Default)]
pub struct Seen(Vec<String>);

impl Seen {
    fn note(&mut self, what: &str, expected: cl_int, code: cl_int) {
        if code != expected {
            let (code, expected) = (code_name(code), code_name(expected));
            self.0.push(format!("{what}: {code} instead of {expected}"));
        }
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.0.is_empty(), "\n{}", self.0.join("\n"));
        }
    }
}

/// A call that returns a code.
macro_rules! gives {
    ($seen:ident, $what:expr, $code:expr, $name:ident($($arg:expr),* $(,)?)) => {
        $seen.note(&format!("{} {}", stringify!($name), $what), $code, call!($name($($arg),*)))
    };
}

/// A call with `errcode_ret`, which is left out here, that is to fail.
macro_rules! makes_none {
    ($seen:ident, $what:expr, $code:expr, $name:ident($($arg:expr),* $(,)?)) => {{
        let mut code = 1;
        let made = call!($name($($arg,)* &mut code));
        let what = format!("{} {}", stringify!($name), $what);
        if !made.is_null() {
            $seen.0.push(format!("{what}: made an object"));
        }
        $seen.note(&what, $code, code);
    }};
}

mod images;
mod queries;
