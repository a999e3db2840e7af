//! clang as the code generator of processors: compiles LLVM's IR to an object file for this
//! machine.

use super::process::{self, Finished};
use super::toolchain::{self, Toolchain};
use crate::compile::words::BuildFailure;
use crate::quirks::{Quirks, Vendor};
use spirv_lowering::quirks::CodeQuirks;
use std::borrow::Cow;
use std::process::Command;
use std::sync::{Arc, OnceLock};

/// A compiler that generates code for this machine.
pub struct Generator {
    toolchain: &'static Toolchain,
    report: DriverReport,
    quirks: Quirks,
    code_quirks: CodeQuirks,
}

/// The properties of this machine and compiler that clang's driver reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct DriverReport {
    /// Its version, or zeros if it does not report one.
    version: [u32; 3],
    /// The arguments for this machine's processor and features, or none if it does not report them.
    processor: Vec<String>,
}

/// Encodes a report for the cache: a line for the version, one for each argument.
fn written(report: &DriverReport) -> String {
    let [major, minor, patch] = report.version;
    format!("{major} {minor} {patch}\n{}", report.processor.join("\n"))
}

fn read(bytes: &[u8]) -> Option<DriverReport> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (version, processor) = text.split_once('\n')?;
    let numbers: Result<Vec<u32>, _> = version.split(' ').map(str::parse).collect();
    Some(DriverReport {
        version: numbers.ok()?.try_into().ok()?,
        processor: processor.lines().map(str::to_owned).collect(),
    })
}

fn ask(toolchain: &Toolchain) -> Result<DriverReport, BuildFailure> {
    let mut driver = toolchain.driver();
    let nothing = if cfg!(windows) { "NUL" } else { "/dev/null" };
    let native = if cfg!(target_arch = "aarch64") {
        "-mcpu=native"
    } else {
        "-march=native"
    };
    driver.args([native, "-###", "-c", "-x", "ir", nothing, "-o", nothing]);
    let Ok(finished) = process::run(driver, &[]) else {
        return Ok(DriverReport::default());
    };
    let stopped = process::stopped(process::time_limit());
    if !finished.success && finished.diagnostics.ends_with(&stopped) {
        return Err(BuildFailure(stopped));
    }
    let version = version_in(&finished.diagnostics);
    let line = finished
        .diagnostics
        .lines()
        .find(|line| line.contains("\"-cc1\""))
        .unwrap_or_default();
    let words: Vec<&str> = line
        .split_whitespace()
        .map(|word| word.trim_matches('"'))
        .collect();
    let mut processor = Vec::new();
    for pair in words.windows(2) {
        if matches!(pair[0], "-target-cpu" | "-tune-cpu" | "-target-feature") {
            processor.extend([pair[0].to_owned(), pair[1].to_owned()]);
        }
    }
    Ok(DriverReport { version, processor })
}

/// Parses the version in `Debian clang version 22.1.8 (1~deb12u1)`.
pub fn version_in(text: &str) -> [u32; 3] {
    let mut version = [0; 3];
    let number = text.split("clang version ").nth(1).unwrap_or_default();
    let number = number
        .split(|c: char| !c.is_ascii_digit() && c != '.')
        .next();
    for (place, part) in version
        .iter_mut()
        .zip(number.unwrap_or_default().split('.'))
    {
        *place = part.parse().unwrap_or(0);
    }
    version
}

/// The lines of LLVM's IR from which on it is compiled with fewer passes. LLVM's scheduler takes
/// the square of the length of a block, and most of what `-O3` does beyond `-O1` takes more than in
/// proportion: 62,000 lines of hash functions take 65 s with all of it and 15 s without.
const LARGE: usize = 40_000;

/// The passes for code that Pumice's passes, the lowering and the packing have processed: those of
/// `-O3` that still help, chosen by the bench, in which each of them counts. Reassociation runs
/// before loops are unrolled, and the hoisting of uniform values is repeated after that.
const PASSES: &str =
    "cgscc(inline),function(sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,\
     reassociate,loop-mssa(loop-rotate,licm),loop(indvars,loop-deletion),gvn,dse,loop-unroll<O3>,sroa,\
     early-cse<memssa>,instcombine<no-verify-fixpoint>,vector-combine,loop-mssa(licm),simplifycfg)";

/// A parameter that LLVM before 18 does not know: there it is the default.
const ONCE: &str = "<no-verify-fixpoint>";

/// The passes for versions of LLVM that have other names for them.
const OTHER_PASSES: &str = "default<O3>";

/// The target triple of the machine.
pub const TRIPLE: &str = if cfg!(target_arch = "aarch64") {
    "aarch64-unknown-linux-gnu"
} else {
    "x86_64-unknown-linux-gnu"
};

impl Generator {
    /// Returns the compiler for this machine, which is the same for all calls, or the reason why
    /// there is none. Its report stays the same as long as neither it nor the machine changes, and
    /// a query takes 20 ms: `load` returns the report that `store` stored for the compiler of that
    /// identity. A query that failed for want of memory or the like is repeated by the next call.
    pub fn find(
        load: impl FnOnce(&str) -> Option<Vec<u8>>,
        store: impl FnOnce(&str, &[u8]),
    ) -> Result<Arc<Self>, BuildFailure> {
        static FOUND: OnceLock<Arc<Generator>> = OnceLock::new();
        if let Some(found) = FOUND.get() {
            return Ok(found.clone());
        }
        let toolchain = toolchain::get().ok_or_else(|| BuildFailure(toolchain::missing()))?;
        let stored = load(&toolchain.identity).and_then(|bytes| read(&bytes));
        let (report, is_new) = match stored {
            Some(report) => (report, false),
            None => (ask(toolchain)?, true),
        };
        let quirks = Quirks::of(Vendor::Clang, report.version);
        let found = Arc::new(Self {
            toolchain,
            report,
            quirks,
            code_quirks: quirks.of_code(),
        });
        if found.report.processor.is_empty() {
            return Ok(found);
        }
        if is_new {
            store(&toolchain.identity, written(&found.report).as_bytes());
        }
        Ok(FOUND.get_or_init(|| found).clone())
    }

    /// Returns the quirks of the compiler.
    pub fn quirks(&self) -> Quirks {
        self.quirks
    }

    /// Returns the quirks of the compiler that shape the code of kernels.
    pub fn code_quirks(&self) -> CodeQuirks {
        self.code_quirks
    }

    /// Returns a name for everything that decides the generated code, with vectors of `lanes`
    /// 32-bit elements: part of cache keys.
    pub fn identity(&self, lanes: u32) -> String {
        format!(
            "{} {}",
            self.toolchain.identity,
            self.processor(lanes).join(" ")
        )
    }

    /// Returns the arguments for the processor, with vectors of `lanes` 32-bit elements.
    fn processor(&self, lanes: u32) -> Cow<'_, [String]> {
        let report = &self.report.processor;
        let narrower = cfg!(target_arch = "x86_64")
            && report.iter().any(|word| match lanes {
                0..8 => word == "+avx2",
                8..16 => word == "+avx512f",
                _ => false,
            });
        if !report.is_empty() && !narrower {
            return report.into();
        }
        let cpu = match (std::env::consts::ARCH, lanes) {
            ("x86_64", 16..) => "x86-64-v4",
            ("x86_64", 8..) => "x86-64-v3",
            ("x86_64", _) => "x86-64-v2",
            _ => "generic",
        };
        vec!["-target-cpu".to_owned(), cpu.to_owned()].into()
    }

    /// Returns true if LLVM may use instructions for gathers, with vectors of `lanes` 32-bit
    /// elements. For AMD's processors before AVX-512, and for processors by their level alone, it
    /// takes the lanes one by one, though AVX2 has the instructions.
    pub fn gathers(&self, lanes: u32) -> bool {
        let processor = self.processor(lanes);
        let is = |start: &str| processor.iter().any(|word| word.starts_with(start));
        match lanes {
            0..8 => false,
            8..16 => !is("znver") && !is("x86-64"),
            _ => true,
        }
    }

    /// Compiles LLVM's IR in text to an object file: of ELF on every system, since the loader is
    /// Pumice's.
    pub fn object(&self, text: &str, lanes: u32) -> Result<Vec<u8>, BuildFailure> {
        let processor = self.processor(lanes);
        let is_large = text.lines().count() > LARGE;
        let served = if is_large {
            None
        } else {
            self.by_worker(text, &processor)
        };
        let finished = match served {
            Some(finished) => finished,
            None => self.by_clang(text, &processor, is_large)?,
        };
        if finished.success {
            Ok(finished.stdout)
        } else {
            Err(BuildFailure(finished.diagnostics))
        }
    }

    /// Compiles in a worker. Returns `None` if clang has to be run instead.
    fn by_worker(&self, text: &str, processor: &[String]) -> Option<Finished> {
        let option = |name: &str| {
            let pairs = processor.chunks_exact(2).filter(|pair| pair[0] == name);
            let values: Vec<&str> = pairs.map(|pair| pair[1].as_str()).collect();
            values.join(",")
        };
        let (cpu, features) = (option("-target-cpu"), option("-target-feature"));
        let older = PASSES.replace(ONCE, "");
        let words = [TRIPLE, &cpu, &features, PASSES, &older, OTHER_PASSES];
        process::run_llvm(&self.toolchain.clang, &words, text.as_bytes())
    }

    fn by_clang(
        &self,
        text: &str,
        processor: &[String],
        is_large: bool,
    ) -> Result<Finished, BuildFailure> {
        let mut clang = Command::new(&self.toolchain.clang);
        clang.args(["-cc1", "-disable-free", "-disable-llvm-verifier"]);
        clang.args(["-triple", TRIPLE]);
        clang.args(match is_large {
            false => &["-O3"][..],
            true => &["-O1", "-mllvm", "-enable-misched=false"],
        });
        clang.args(["-emit-obj", "-mrelocation-model", "pic", "-pic-level", "2"]);
        clang.args(["-Wno-override-module", "-ffp-contract=on"]);
        clang.args(processor);
        clang.args(super::command::FROM_IR);
        process::run(clang, text.as_bytes())
            .map_err(|error| BuildFailure(format!("cannot run clang: {error}\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(
            version_in("Debian clang version 22.1.8 (1~deb12u1)\nTarget: x"),
            [22, 1, 8]
        );
        assert_eq!(
            version_in("clang version 23.0.0git (https://x)"),
            [23, 0, 0]
        );
        assert_eq!(version_in("gcc"), [0; 3]);
    }

    /// Checks that a report is read back from the cache, and nothing else is.
    #[test]
    fn reports_are_cached() {
        let report = DriverReport {
            version: [22, 1, 8],
            processor: ["-target-cpu", "x", "-target-feature", "+y"]
                .map(str::to_owned)
                .into(),
        };
        assert_eq!(read(written(&report).as_bytes()), Some(report));
        for wrong in ["", "22 1 8", "22 1\n-target-cpu", "a b c\nd"] {
            assert_eq!(read(wrong.as_bytes()), None);
        }
    }
}
