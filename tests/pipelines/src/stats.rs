//! The driver's statistics of pipelines, and what they are compared with.

use crate::maker::MARK;
use std::collections::BTreeMap;
use std::fmt;

/// The resources of a kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Vector registers of a work-item.
    pub vector_registers: u64,
    /// Registers that are kept in memory or in other registers for want of room.
    pub spilled: u64,
    /// Bytes of private memory.
    pub scratch: u64,
    /// Bytes of code.
    pub code: u64,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            vector_registers,
            spilled,
            scratch,
            code,
        } = self;
        write!(
            f,
            "vgprs {vector_registers} spilled {spilled} scratch {scratch} code {code}"
        )
    }
}

/// Kernels by name.
pub type Kernels = BTreeMap<String, Cost>;

/// The driver's version, what each pipeline costs, and those that were not made.
pub fn parse(text: &str) -> Result<(String, Kernels, Vec<String>), String> {
    let mut driver = None;
    let mut kernels = Kernels::new();
    let mut failures = Vec::new();
    // The last statistics before a kernel's mark are the kernel's.
    let mut cost: Option<Cost> = None;
    for line in text.lines() {
        if let Some(version) = line.strip_prefix("@device ") {
            driver = Some(version.to_owned());
        } else if line.starts_with("*** SHADER STATS") {
            cost = Some(Cost::default());
        } else if let Some(rest) = line.strip_prefix(MARK) {
            let mut words = rest.trim().splitn(3, ' ');
            let (module, kernel) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            // What follows in the names of blocks is made of the module's words, which are the compiler's.
            let kernel = kernel
                .split_once(".block.")
                .map_or(kernel, |(name, _)| name);
            let name = format!("{module}:{kernel}");
            match (words.next(), cost.take()) {
                (Some("made"), Some(cost)) => {
                    kernels.insert(name, cost);
                }
                // The code is that of an earlier one.
                (Some("made"), None) => {}
                (what, _) => failures.push(format!("{name}: {}", what.unwrap_or(""))),
            }
        } else if let (Some(cost), Some((name, value))) = (&mut cost, line.split_once(": ")) {
            let Ok(value) = value.trim().parse::<u64>() else {
                continue;
            };
            match name {
                "VGPRs" => cost.vector_registers = value,
                "Spilled SGPRs" | "Spilled VGPRs" => cost.spilled += value,
                "Scratch size" => cost.scratch = value,
                "Code size" => cost.code = value,
                _ => {}
            }
        }
    }
    let driver = driver.ok_or("no device was found")?;
    Ok((driver, kernels, failures))
}

/// Sums over kernels.
pub struct Totals(Cost);

impl Totals {
    /// Returns the costs of these kernels.
    pub fn of(kernels: &Kernels) -> Self {
        let add = |all: Cost, one: &Cost| Cost {
            vector_registers: all.vector_registers + one.vector_registers,
            spilled: all.spilled + one.spilled,
            scratch: all.scratch + one.scratch,
            code: all.code + one.code,
        };
        Self(kernels.values().fold(Cost::default(), add))
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in all {}", self.0)
    }
}

/// The costs of kernels on families of chips, with one version of the driver.
#[derive(Default)]
pub struct Expected {
    driver: String,
    costs: BTreeMap<(String, String), Cost>,
}

impl Expected {
    /// Adds the kernels of a family of chips.
    pub fn add(&mut self, driver: &str, chip: &str, kernels: Kernels) {
        driver.clone_into(&mut self.driver);
        let costs = kernels.into_iter();
        self.costs
            .extend(costs.map(|(name, cost)| ((chip.to_owned(), name), cost)));
    }

    /// From the text that `Display` gives.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        let driver = lines.next().and_then(|line| line.strip_prefix("driver "));
        let mut expected = Self {
            driver: driver.ok_or("the first line names no driver")?.to_owned(),
            ..Self::default()
        };
        for line in lines {
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |index: usize| words.get(index).and_then(|word| word.parse().ok());
            let (Some(&chip), Some(&name)) = (words.first(), words.get(1)) else {
                return Err(format!("`{line}` is not a line of costs"));
            };
            let (Some(vector_registers), Some(spilled), Some(scratch), Some(code)) =
                (number(3), number(5), number(7), number(9))
            else {
                return Err(format!("`{line}` is not a line of costs"));
            };
            let cost = Cost {
                vector_registers,
                spilled,
                scratch,
                code,
            };
            expected.costs.insert((chip.into(), name.into()), cost);
        }
        Ok(expected)
    }

    /// Kernels that take more registers or memory than they did, or a tenth more code. None where another version of the
    /// driver made them.
    pub fn worse_than(&self, before: &Self) -> Result<Vec<String>, String> {
        if self.driver != before.driver {
            println!("the costs are of {}: not compared", before.driver);
            return Ok(Vec::new());
        }
        let mut worse = Vec::new();
        for (key @ (chip, name), then) in &before.costs {
            let Some(now) = self.costs.get(key) else {
                worse.push(format!("{chip} {name}: not there"));
                continue;
            };
            if now.vector_registers > then.vector_registers
                || now.spilled > then.spilled
                || now.scratch > then.scratch
                || now.code > then.code + then.code / 10
            {
                worse.push(format!("{chip} {name}: {now}; it was {then}"));
            }
        }
        let new = self
            .costs
            .keys()
            .filter(|key| !before.costs.contains_key(key));
        worse.extend(new.map(|(chip, name)| format!("{chip} {name}: not known")));
        Ok(worse)
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "driver {}", self.driver)?;
        for ((chip, name), cost) in &self.costs {
            writeln!(f, "{chip} {name} {cost}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "@device 1 radv\n*** SHADER STATS ***\nVGPRs: 9\n@kernel m f made\n\
        *** SHADER STATS ***\nVGPRs: 16\nSpilled SGPRs: 2\nSpilled VGPRs: 1\nCode size: 100\nScratch size: 0\n\
        @kernel m k made\n@kernel m x FAILED for a reason\n";

    #[test]
    fn reports_are_read() {
        let (driver, kernels, failures) = parse(OUTPUT).unwrap();
        assert_eq!((driver.as_str(), kernels.len()), ("1 radv", 2));
        assert_eq!(kernels["m:k"].spilled, 3);
        assert_eq!(failures, ["m:x: FAILED for a reason"]);
        assert!(parse("").is_err());
    }

    #[test]
    fn higher_costs_are_reported() {
        let (driver, kernels, _) = parse(OUTPUT).unwrap();
        let mut then = Expected::default();
        then.add(&driver, "F", kernels.clone());
        let then = Expected::parse(&then.to_string()).unwrap();
        let judge = |change: fn(&mut Cost)| {
            let mut kernels = kernels.clone();
            change(kernels.get_mut("m:k").unwrap());
            let mut now = Expected::default();
            now.add(&driver, "F", kernels);
            now.worse_than(&then).unwrap().len()
        };
        assert_eq!(judge(|_| ()), 0);
        assert_eq!(judge(|cost| cost.vector_registers += 1), 1);
        assert_eq!(judge(|cost| cost.spilled += 1), 1);
        assert_eq!(judge(|cost| cost.code += 10), 0);
        assert_eq!(judge(|cost| cost.code += 11), 1);
        let mut now = Expected::default();
        now.add(&driver, "F", Kernels::new());
        assert_eq!(now.worse_than(&then).unwrap().len(), 2);
    }
}
