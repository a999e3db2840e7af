//! The log: lines on standard error, chosen by `PUMICE_LOG`.

use std::fmt::Arguments;
use std::sync::OnceLock;

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Level {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// Returns the level set by PUMICE_LOG. An unknown word is reported and counts as `warn`.
pub fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| match std::env::var("PUMICE_LOG").as_deref() {
        Err(_) | Ok("" | "error") => Level::Error,
        Ok("off") => Level::Off,
        Ok("warn") => Level::Warn,
        Ok("info") => Level::Info,
        Ok("debug") => Level::Debug,
        Ok("trace") => Level::Trace,
        Ok(other) => {
            eprintln!(
                "pumice: PUMICE_LOG={other} is not one of off, error, warn, info, debug, trace"
            );
            Level::Warn
        }
    })
}

/// Writes a line if its level is enabled. Use the [`crate::log!`] macro.
pub fn write(level: Level, args: Arguments<'_>) {
    use std::io::Write;
    // A closed standard error must not take the application down.
    let _ = writeln!(
        std::io::stderr(),
        "pumice: {}{args}",
        match level {
            Level::Error => "error: ",
            Level::Warn => "warning: ",
            _ => "",
        }
    );
}

/// `log!(Info, "text {}", value)`: formats only when the level is wanted.
#[macro_export]
macro_rules! log {
    ($level:ident, $($arg:tt)*) => {
        if $crate::util::log::Level::$level <= $crate::util::log::level() {
            $crate::util::log::write($crate::util::log::Level::$level, format_args!($($arg)*));
        }
    };
}
