//! KIR: the SSA intermediate representation of kernels.
//!
//! # Shape
//! A [`module::Module`] holds functions, program-scope and local variables ([`module::Global`]) and kernels. A
//! [`function::Function`] is a graph of basic blocks with *block parameters* in place of phi nodes. Every value has a
//! scalar [`types::Type`]. There are no vector, array or structure values: whatever the source had is flattened to
//! scalars in memory order when the module is read, and functions take and return lists of scalars. Vectors live on
//! in memory accesses only: a [`op::Op::Load`] has one result a component.
//!
//! Memory is byte-addressed. A pointer is an address space and 64 bits; it has no pointee. `PtrAdd` adds a byte
//! offset. `Bool` values are never stored to memory (the reader converts them to and from `i8`).
//!
//! # Stages
//! 1. *Kernel IR*, as read: any control flow, calls, all address spaces, OpenCL built-in variables ([`op::Op::Builtin`]).
//! 2. *Device IR*, after inlining and lowering: one function a kernel, no calls, built-ins replaced by invocation ids
//!    and [`op::Op::Implicit`]/[`op::Op::ArgLoad`], local and private memory as arrays ([`op::Op::VarLoad`] and so on),
//!    remaining pointers are global addresses.
//! 3. *Target IR*, after structurizing: [`function::Function::structure`] is present, and only what the target has is
//!    used. The emitters walk it.
//!
//! # Text
//! `print` and `parse` round-trip:
//! ```text
//! global @0 "table" constant size 16 align 4 init x"00112233445566778899aabbccddeeff" reloc [8: @0 4]
//! printf 0 "%d\0a" [i32 1]
//! kernel "add" fn0 {
//!   pointer global "a" "float*" global none restrict max_size 64
//!   value i32 count 1 size 4 "n" "int" private none
//! }
//! func fn0 "add" export (ptr.global, i32) -> () {
//! block0(v0: ptr.global, v1: i32):
//!   v2 = builtin.global_id.0 : i64
//!   v3 = const 8 : i64
//!   v4 = imul v2, v3 : i64
//!   v5 = ptr_add v0, v4 : ptr.global
//!   v6, v7 = load.align8 v5 : f32, f32 @12       ; @ source line
//!   v8 = fadd[nnan, nsz] v6, v7 : f32
//!   store.align8 v5, v8, v6
//!   v9 = const 0 : i32
//!   v10 = icmp.slt v1, v9 : bool
//!   br v10, block1(v1), block2
//! block1(v11: i32):
//!   v12 = printf.0 v11 : i32
//!   jump block2
//! block2:
//!   return
//! }
//! func fn1 "elsewhere" import (i32) -> (i32)
//! ```
//! (`print.rs` is the authority.)
//!
//! # How to add an operation
//! Add a variant to [`op::Op`] with its documentation, then follow the compiler: `names` (text),
//! `verify`, `fold`, `emit::vulkan`.

pub mod compact;
pub mod entity;
pub mod fold;
pub mod function;
pub mod module;
pub mod names;
pub mod op;
pub mod parse;
pub mod print;
pub mod reinterpret;
pub mod strings;
pub mod subst;
pub mod types;
pub mod verify;
