//! The table: which entry point fails with which code when, and how that is brought about, or why it cannot be here.

use crate::world::World;
use pumice_tests::sys::cl_int;
use std::collections::BTreeMap;

/// In place of a code: the device has not, or has, what the row is about.
pub const NOT_HERE: cl_int = cl_int::MIN;

/// Brings the error about: what the calls returned.
pub type Provoke = Box<dyn Fn(&World) -> Vec<cl_int>>;

/// How a condition is met.
pub enum How {
    /// By these calls, each of which returns the code.
    Provoked(Provoke),
    /// The error is impossible, for this reason.
    Never(&'static str),
}

/// One condition of one error of one entry point.
pub struct Row {
    pub call: &'static str,
    pub name: &'static str,
    pub code: cl_int,
    pub what: String,
    pub how: How,
}

/// (entry point, name of the code) and how many conditions the specification lists for it.
pub type Listed = BTreeMap<(&'static str, &'static str), usize>;

/// All rows.
pub struct Table {
    pub rows: Vec<Row>,
    pub listed: Listed,
}

/// One code or several.
pub trait Codes {
    fn list(self) -> Vec<cl_int>;
}

impl Codes for cl_int {
    fn list(self) -> Vec<cl_int> {
        vec![self]
    }
}

impl<const N: usize> Codes for [cl_int; N] {
    fn list(self) -> Vec<cl_int> {
        self.to_vec()
    }
}

impl Codes for Vec<cl_int> {
    fn list(self) -> Vec<cl_int> {
        self
    }
}

impl Table {
    pub fn new() -> Self {
        let mut listed = Listed::new();
        for line in include_str!("specification.txt").lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [call, code, count] = words[..] else {
                panic!("specification.txt: {line}")
            };
            listed.insert((call, code), count.parse().expect("a number"));
        }
        Self {
            rows: Vec::new(),
            listed,
        }
    }

    pub fn add(
        &mut self,
        call: &'static str,
        (name, code): (&'static str, cl_int),
        what: impl Into<String>,
        how: How,
    ) {
        let what = what.into();
        self.rows.push(Row {
            call,
            name,
            code,
            what,
            how,
        });
    }

    /// A row of a family of calls, for those of which the specification lists the code.
    pub fn provoked(
        &mut self,
        call: &'static str,
        code: (&'static str, cl_int),
        what: impl Into<String>,
        provoke: impl Fn(&World) -> Vec<cl_int> + 'static,
    ) {
        if self.listed.contains_key(&(call, code.0)) {
            self.add(call, code, what, How::Provoked(Box::new(provoke)));
        }
    }

    /// A reason for all of a code that no other row is about.
    pub fn never(&mut self, code: (&'static str, cl_int), why: &'static str) {
        let calls: Vec<(&'static str, usize)> = self
            .listed
            .iter()
            .filter(|((_, name), _)| *name == code.0)
            .map(|((call, _), count)| (*call, *count))
            .collect();
        for (call, count) in calls {
            let had = self.count(call, code.0);
            for _ in had..count {
                self.add(call, code, why, How::Never(why));
            }
        }
    }

    /// Rows about an error of an entry point.
    pub fn count(&self, call: &str, name: &str) -> usize {
        let same = |row: &&Row| row.call == call && row.name == name;
        self.rows.iter().filter(same).count()
    }
}

/// A code with its name.
macro_rules! code {
    ($name:ident) => {
        (stringify!($name), pumice_tests::sys::$name)
    };
}

/// `rows! { table, world; clName { CL_CODE "condition" = calls; CL_CODE "condition" => never "why"; } }`
macro_rules! rows {
    ($t:ident, $w:ident; $($call:ident { $($code:ident $what:literal $(= $e:expr)? $(=> never $why:literal)?;)* })*) => {
        $($( row! { $t, $w, $call, $code, $what, [$($e)?], [$($why)?] } )*)*
    };
}

macro_rules! row {
    ($t:ident, $w:ident, $call:ident, $code:ident, $what:literal, [$e:expr], []) => {
        $t.add(
            stringify!($call),
            code!($code),
            $what,
            crate::table::How::Provoked(Box::new(|$w: &crate::world::World| {
                // A row may need nothing of it.
                let _ = $w;
                crate::table::Codes::list($e)
            })),
        );
    };
    ($t:ident, $w:ident, $call:ident, $code:ident, $what:literal, [], [$why:literal]) => {
        $t.add(
            stringify!($call),
            code!($code),
            $what,
            crate::table::How::Never($why),
        );
    };
}

/// The code of a call that is to make nothing.
macro_rules! makes {
    ($w:ident, $name:ident($($arg:expr),* $(,)?)) => {{
        let mut code = 1;
        let made = pumice_tests::call!($name($($arg,)* &mut code));
        $w.made(!made.is_null());
        code
    }};
}
