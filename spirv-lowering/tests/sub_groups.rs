//! Sub-groups of every size that is emulated, in those of every size that devices have: a kernel with each kind of operation,
//! in uniform and divergent flow, does the same as in sub-groups of the size that it requires.

use spirv_lowering::interp::{self, Arg, Memory, NdRange, Options};
use spirv_lowering::ir::module::Module;
use spirv_lowering::ir::parse::parse_module;
use spirv_lowering::ir::verify::verify_module;
use spirv_lowering::passes::lower_subgroup_size;
use spirv_lowering::target::{subgroup, Target};
use std::fmt::Write;

/// Operations of `v5`, an i32, `v6`, an i64, `v7`, a Bool, and `v8`, a lane.
const OPERATIONS: &[(&str, &str)] = &[
    ("elect", "bool"),
    ("all v7", "bool"),
    ("any v7", "bool"),
    ("all_equal v7", "bool"),
    ("broadcast v5, v9", "i32"),
    ("shuffle v6, v8", "i64"),
    ("shuffle_xor v5, v10", "i32"),
    ("shuffle_up v5, v9", "i32"),
    ("shuffle_down v6, v10", "i64"),
    ("rotate v5, v8", "i32"),
    ("rotate v5, v9, v10", "i32"),
    ("reduce.iadd v5", "i32"),
    ("reduce.smin v6", "i64"),
    ("reduce.land v7", "bool"),
    ("inclusive_scan.imul v5", "i32"),
    ("exclusive_scan.umax v6", "i64"),
    ("exclusive_scan.lxor v7", "bool"),
    ("clustered_reduce.xor v5, v10", "i32"),
];

/// Returns a kernel whose operations a work-item does if a bit of its number is set, for one bit after the other, and then
/// in any case.
fn kernel(size: u32) -> String {
    let mut text = format!(
        "kernel \"k\" fn0 sub_group_size {size} {{
  pointer global \"out\" \"\" global none
}}
func fn0 \"k\" (ptr.global) -> () {{
block0(v0: ptr.global):
  v1 = builtin.local_id.0 : i64
  v2 = const 1000 : i64
  v3 = imul v1, v2 : i64
  v4 = const 0x123456789 : i64
  v6 = imul v1, v4 : i64
  v5 = trunc v6 : i32
  v11 = const 3 : i64
  v12 = urem v1, v11 : i64
  v13 = const 0 : i64
  v7 = icmp.ne v12, v13 : bool
  v14 = builtin.sub_group_local_id : i32
  v9 = const 1 : i32
  v10 = const 2 : i32
  v8 = iadd v14, v10 : i32
  v15 = ptr_add v0, v3 : ptr.global
  jump block1
"
    );
    let (mut value, mut place) = (100, 0);
    for part in 0..4u64 {
        let (head, body) = (2 * part + 1, 2 * part + 2);
        let after = head + 2;
        writeln!(text, "block{head}:").unwrap();
        let bit = if part == 3 { 0 } else { 1u64 << (2 * part) };
        writeln!(text, "  v{value} = const {bit} : i64").unwrap();
        writeln!(text, "  v{} = and v1, v{value} : i64", value + 1).unwrap();
        writeln!(
            text,
            "  v{} = icmp.eq v{}, v{value} : bool",
            value + 2,
            value + 1
        )
        .unwrap();
        writeln!(text, "  br v{}, block{body}, block{after}", value + 2).unwrap();
        writeln!(text, "block{body}:").unwrap();
        value += 3;
        for (operation, ty) in OPERATIONS {
            writeln!(text, "  v{value} = group.sub_group.{operation} : {ty}").unwrap();
            let result = value;
            let wide = match *ty {
                "i64" => result,
                _ => {
                    value += 1;
                    writeln!(text, "  v{value} = zext v{result} : i64").unwrap();
                    value
                }
            };
            writeln!(text, "  v{} = const {place} : i64", value + 1).unwrap();
            writeln!(
                text,
                "  v{} = ptr_add v15, v{} : ptr.global",
                value + 2,
                value + 1
            )
            .unwrap();
            writeln!(text, "  store.align8 v{}, v{wide}", value + 2).unwrap();
            value += 3;
            place += 8;
        }
        writeln!(text, "  jump block{after}").unwrap();
    }
    text + "block9:\n  return\n}\n"
}

/// Runs the kernel of a module in sub-groups of some size, unless it requires one. Returns the bytes that it leaves, and which
/// bits of them are unknown.
fn run(module: &Module, size: u32, items: u32) -> (Vec<u8>, Vec<u8>) {
    let mut memory = Memory::new();
    let out = memory.add(vec![0; 1000 * items as usize], 128);
    let options = Options {
        subgroup_size: size,
        ..Options::default()
    };
    let range = NdRange::linear(items, items);
    let args = [Arg::Pointer(out)];
    interp::run(module, "k", &range, &args, &mut memory, &options).unwrap();
    let region = memory.region(out).unwrap();
    (region.bytes.clone(), region.unknown.clone())
}

#[test]
fn every_size_in_every_other() {
    for size in [2, 4, 8, 16, 32] {
        let module = parse_module(&kernel(size)).unwrap();
        verify_module(&module).unwrap();
        for device in [4, 8, 16, 32, 64, 128u32] {
            for ops in [0xff, 0xff & !subgroup::CLUSTERED] {
                let target = Target {
                    subgroup_size: device,
                    subgroup_ops: ops,
                    ..Target::full()
                };
                let attributes = &module.kernels[0].attributes;
                let mut lowered = module.clone();
                let func = &mut lowered.functions[module.kernels[0].func];
                if !lower_subgroup_size::applies(attributes, &target) {
                    assert_eq!(size, device);
                    continue;
                }
                let done = lower_subgroup_size::run(func, attributes, &target);
                assert_eq!(done.is_ok(), size < device, "{size} in {device}: {done:?}");
                if done.is_err() {
                    continue;
                }
                verify_module(&lowered).unwrap();
                lowered.kernels[0].attributes.required_sub_group_size = None;
                for items in [1, 7, 64, 100, 150] {
                    let (want, unknown) = run(&module, device, items);
                    let (got, _) = run(&lowered, device, items);
                    let known = (want.iter().zip(&got).zip(&unknown))
                        .position(|((want, got), unknown)| (want ^ got) & !unknown != 0);
                    assert_eq!(
                        known, None,
                        "{items} work-items in sub-groups of {size} in those of {device}, operations {ops:x}"
                    );
                    // Most is known: lanes that are not active give little.
                    let open = unknown.iter().filter(|&&byte| byte != 0).count();
                    assert!(items == 1 || open * 5 < unknown.len(), "{open}");
                }
            }
        }
    }
}
