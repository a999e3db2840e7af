//! Checks the claims of the analyses that passes rely on: for the functions of a generated kernel
//! as they are read, and for the function after each pass of the pipeline for some target.

use super::collect_claims;
use super::generate::Case;
use super::prove::{kernel_of, lower, run_options, Depth};
use spirv_lowering::claims::{Claims, FalseClaim, Order};
use spirv_lowering::interface::KernelInterface;
use spirv_lowering::interp::{self, run_claimed, Lowered, Options as RunOptions};
use spirv_lowering::ir::function::Function;
use spirv_lowering::ir::module::Module;
use spirv_lowering::passes;
use spirv_lowering::target::Target;

/// A claim that does not hold, and the last pass before it was made.
pub type FalseAfter = (String, FalseClaim);

/// A kernel in one stage of lowering, with what is claimed of it.
#[derive(Debug)]
pub struct Stage {
    /// The last pass that changed it.
    pub pass: String,
    /// The claims about the kernel, then those about the functions that it calls.
    pub pieces: Vec<Claims>,
}

/// The stages of a kernel for a target.
#[derive(Debug)]
pub struct ClaimedStages {
    /// The stages in order.
    pub stages: Vec<Stage>,
    interface: KernelInterface,
    options: RunOptions,
}

/// Returns the functions of a module as inlining gets them.
fn cleaned(module: &Module) -> Module {
    let mut module = module.clone();
    for (_, func) in module.functions.iter_mut() {
        if !func.layout.is_empty() && passes::expand_memcopy::run(func).is_ok() {
            passes::clean(func);
        }
    }
    module
}

/// Returns true for a pass before `arg_access`, which needs the parameters of the kernel.
fn has_parameters(pass: &str) -> bool {
    const OTHERS: [&str; 6] = [
        "inline",
        "separate_loops",
        "compact",
        "fold_constant_loads",
        "lower_generic_ptr",
        "unroll_loops",
    ];
    OTHERS.contains(&pass) || passes::CLEAN_UP.iter().any(|clean| clean.name == pass)
}

/// The stages of a kernel whose claims are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Each.
    All,
    /// One, which the number chooses: of a kernel about a twentieth of the work.
    One(u64),
}

impl ClaimedStages {
    /// Lowers a kernel for a target.
    ///
    /// # Errors
    ///
    /// Returns the reason why the kernel cannot be lowered.
    pub fn new(case: &Case, target: &Target, which: Which) -> Result<Self, String> {
        let verify = which == Which::All;
        let lowered = lower(&case.module, target, Depth::Every, verify).map_err(|e| e.what)?;
        let kernel = kernel_of(case);
        let wide = target.wide_range;
        let of_module = |pass: &str, module: &Module| Stage {
            pass: pass.into(),
            pieces: collect_claims::of_module(module, kernel, wide),
        };
        let count = lowered.functions.len() + 2;
        let wanted = |at: usize| match which {
            Which::All => true,
            Which::One(number) => number % count as u64 == at as u64,
        };
        let mut stages = Vec::new();
        if wanted(0) {
            stages.push(of_module("read", &case.module));
        }
        if wanted(1) {
            stages.push(of_module("clean", &cleaned(&case.module)));
        }
        let passes = lowered.functions.iter().map(|(pass, _)| pass);
        let parametric = passes.take_while(|pass| has_parameters(pass)).count();
        let of_kernel = |(at, (pass, func)): (usize, (String, Function))| {
            let mut claims = collect_claims::of(&func, &case.module, wide);
            if at < parametric {
                collect_claims::add_arguments(&mut claims);
            }
            Stage {
                pass,
                pieces: vec![claims],
            }
        };
        let functions = lowered.functions.into_iter().enumerate();
        stages.extend(functions.filter(|(at, _)| wanted(at + 2)).map(of_kernel));
        let mut options = run_options(target, false);
        if lowered.interface.lanes > 0 {
            // Packs of processors have the size that the kernel requires, where that matters.
            options.subgroup_size = lowered.interface.lanes;
        }
        Ok(Self {
            stages,
            interface: lowered.interface,
            options,
        })
    }

    /// Runs the kernel in each stage. Returns the claims that do not hold.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel has no defined result, or cannot be run.
    pub fn check(&self, case: &Case) -> Result<Vec<FalseAfter>, interp::Error> {
        let mut found = Vec::new();
        for stage in &self.stages {
            let (mut memory, args, _) = case.memory()?;
            let missing = || interp::Error::Invalid("no kernel".into());
            let lowered = Lowered {
                module: &case.module,
                kernel: case.module.kernels.first().ok_or_else(missing)?,
                func: &stage.pieces.first().ok_or_else(missing)?.func,
                interface: &self.interface,
                guard: false,
            };
            let claims = (stage.pieces.as_slice(), Order::Linear);
            let (range, options) = (&case.range, &self.options);
            let wrong = run_claimed(&lowered, claims, range, &args, &mut memory, options)?;
            found.extend(wrong.into_iter().map(|claim| (stage.pass.clone(), claim)));
        }
        Ok(found)
    }
}
