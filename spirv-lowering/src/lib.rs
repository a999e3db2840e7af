//! Compiles OpenCL SPIR-V to Vulkan SPIR-V, or to LLVM IR for processors.
//!
//! ```text
//! words -> read -> KIR (ir) -> passes (pipeline) -> structured KIR -> emit::vulkan -> words   + KernelInterface
//!                                                -> native         -> LLVM IR as text
//! ```
//!
//! The crate knows no Vulkan handles, no OpenCL objects and no environment variables. It takes SPIR-V words and a
//! [`target::Target`] (the abilities of the device), and returns a [`Lowered`] kernel: code, and an
//! [`interface::KernelInterface`] (what the runtime must supply at dispatch). It never panics on malformed input:
//! see [`error::LowerError`].
//!
//! # Vulkan SPIR-V
//!
//! ```
//! use pumice_spirv_tools::{assemble, validate_with_scalar_blocks, TargetEnv};
//! use spirv_lowering::target::Target;
//! use spirv_lowering::{LinkOptions, Options, Program, ReadOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // kernel void answer(global uint *p) { *p = 42; }
//! let text = r#"
//!         OpCapability Addresses
//!         OpCapability Kernel
//!         OpCapability Int64
//!         OpMemoryModel Physical64 OpenCL
//!         OpEntryPoint Kernel %answer "answer"
//! %void = OpTypeVoid
//! %uint = OpTypeInt 32 0
//!  %ptr = OpTypePointer CrossWorkgroup %uint
//!   %fn = OpTypeFunction %void %ptr
//!   %42 = OpConstant %uint 42
//! %answer = OpFunction %void None %fn
//!    %p = OpFunctionParameter %ptr
//! %entry = OpLabel
//!         OpStore %p %42 Aligned 4
//!         OpReturn
//!         OpFunctionEnd"#;
//! let words = assemble(TargetEnv::Universal_1_5, text)?;
//!
//! let object = Program::read(&words, &ReadOptions::default())?;
//! let program = Program::link(&[&object], &LinkOptions::default())?;
//! assert_eq!(program.kernels()[0].name, "answer");
//!
//! let lowered = program.lower("answer", &Target::full(), &mut Options::default())?;
//! validate_with_scalar_blocks(TargetEnv::Vulkan_1_2, &lowered.words)?;
//! assert_eq!(lowered.interface.args.len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Code for a processor
//!
//! A [`Target::processor`](target::Target::processor) keeps the kernel as KIR, of which [`native::emit`] makes LLVM IR
//! for one way to pack work-items into vectors:
//!
//! ```
//! use spirv_lowering::ir::parse::parse_module;
//! use spirv_lowering::target::Target;
//! use spirv_lowering::{native, Options, Program};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let kernel = r#"
//! kernel "twice" fn0 {
//!   pointer global "p" "int*" global none
//! }
//! func fn0 "twice" (ptr.global) -> () {
//! block0(v0: ptr.global):
//!   v1 = load.align4 v0 : i32
//!   v2 = iadd v1, v1 : i32
//!   store.align4 v0, v2
//!   return
//! }
//! "#;
//! let program = Program::from_module(parse_module(kernel)?);
//! let lowered = program.lower("twice", &Target::processor(8), &mut Options::default())?;
//! let shape = native::Shape {
//!     lanes: 8,
//!     width: 8,
//!     packing: native::Packing::ANY_GROUP,
//!     quirks: Default::default(),
//!     gathers: true,
//!     stack: native::Stack::HERE,
//! };
//! let llvm = native::emit(&parse_module(&lowered.kir)?, &lowered.interface.implicit, shape)?;
//! assert!(llvm.contains("define"));
//! # Ok(())
//! # }
//! ```
//!
//! # Passes on textual KIR
//!
//! ```
//! use spirv_lowering::ir::{parse::parse_function, print};
//! use spirv_lowering::passes::dce;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let text = "func fn0 \"f\" (i32) -> (i32) {\nblock0(v0: i32):\n  v1 = iadd v0, v0 : i32\n  return v0\n}\n";
//! let mut function = parse_function(text)?;
//! assert!(dce::run(&mut function));
//! assert!(!print::raw(&function).to_string().contains("iadd"));
//! # Ok(())
//! # }
//! ```
//!
//! # Modules
//!
//! [`ir`] depends on nothing else in the crate; [`analysis`] on `ir`; [`edit`], the tools of passes, on both; [`read`],
//! [`passes`], [`emit`] and [`native`] on those, not on each other; [`pipeline`] runs the passes in order, and
//! [`program`] is the interface that the runtime uses. [`interp`] runs KIR.
//! `ci/layering` has the rules as a table.
#![forbid(unsafe_code)]

pub mod analysis;
pub mod claims;
pub mod device_queue;
pub mod edit;
pub mod emit;
pub mod encode;
pub mod error;
pub mod fused;
pub mod insts;
pub mod interface;
pub mod interp;
pub mod ir;
pub mod library;
pub mod link;
pub mod native;
pub mod options;
pub mod passes;
pub mod pipe;
pub mod pipeline;
pub mod printf;
pub mod program;
pub mod quirks;
pub mod read;
pub mod target;

pub use library::BuiltinLibrary;
pub use options::Options;
pub use pipeline::Lowered;
pub use program::{KernelInfo, LinkOptions, Program, ReadOptions, SpecConstant};
