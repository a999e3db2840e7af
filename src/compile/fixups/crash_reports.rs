//! Separates clang's messages about a crash of its back end from those about the source.

/// Returns the messages before clang's back end gave up or crashed, and whether it did, which is no
/// error of the source.
pub fn split(diagnostics: &str) -> (&str, bool) {
    let marks = [
        "fatal error: error in backend",
        "PLEASE submit a bug report",
        "UNREACHABLE executed",
        "Assertion `",
        "the compiler crashed",
        "the compiler was killed",
    ];
    let at = marks.iter().filter_map(|mark| diagnostics.find(mark)).min();
    let line = at.map(|at| {
        diagnostics
            .get(..at)
            .and_then(|s| s.rfind('\n'))
            .map_or(0, |end| end + 1)
    });
    match line {
        Some(start) => (diagnostics.get(..start).unwrap_or_default(), true),
        None => (diagnostics, false),
    }
}

/// Returns true if these are the messages of a compiler that took all the memory that it may.
pub fn out_of_memory(diagnostics: &str) -> bool {
    diagnostics.contains("LLVM ERROR: out of memory") || diagnostics.contains("std::bad_alloc")
}

/// Returns true if the compiler crashed while it read the source, before any pass ran.
pub fn in_parser(diagnostics: &str) -> bool {
    diagnostics.contains("current parser token")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_the_compiler_are_none_of_the_source() {
        let warning = "program.cl:1:1: warning: something\n";
        let died = format!("{warning}fatal error: error in backend: unable to legalize\nmore\n");
        assert_eq!(split(&died), (warning, true));
        assert_eq!(split("the compiler crashed (signal 11)\n"), ("", true));
        let error = "program.cl:1:1: error: no such thing\n";
        assert_eq!(split(error), (error, false));
    }
}
