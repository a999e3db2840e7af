//! Functions on device queues and events, at which LLVM's own SPIR-V target fails: it knows no
//! `clk_event_t`, and crashes at some forms of `enqueue_kernel`. They become calls of undefined
//! functions, which the reader of `spirv-lowering` translates (`read/device_queue.rs`); events
//! become integers.
//!
//! clang's own IR, before any pass, can be rewritten as text: a block is the function that launches
//! it in a call, a constant. It becomes part of the callee's name, since the target does not keep
//! pointers to functions. Passes may fold calls of blocks, so the pointers in the captures of
//! blocks are removed after them ([`without_pointers`]).

use rustc_hash::FxHashMap;

/// The prefix of the names of the calls.
const CALL: &str = "__pumice_device_";
/// The functions of OpenCL C, by the middle parts of their mangled names.
const FUNCTIONS: [&str; 11] = [
    "ndrange_1D",
    "ndrange_2D",
    "ndrange_3D",
    "get_default_queue",
    "enqueue_marker",
    "create_user_event",
    "set_user_event_status",
    "is_valid_event",
    "retain_event",
    "release_event",
    "capture_event_profiling_info",
];
/// clang's functions that take a block: their names, the replacements, and the place of the block's
/// function among the arguments.
const ON_BLOCKS: [(&str, &str, usize); 8] = [
    ("__enqueue_kernel_basic", "enqueue_kernel_basic", 3),
    ("__enqueue_kernel_varargs", "enqueue_kernel_varargs", 3),
    (
        "__enqueue_kernel_basic_events",
        "enqueue_kernel_basic_events",
        6,
    ),
    (
        "__enqueue_kernel_events_varargs",
        "enqueue_kernel_events_varargs",
        6,
    ),
    (
        "__get_kernel_work_group_size_impl",
        "get_kernel_work_group_size",
        0,
    ),
    (
        "__get_kernel_preferred_work_group_size_multiple_impl",
        "get_kernel_preferred_work_group_size_multiple",
        0,
    ),
    (
        "__get_kernel_sub_group_count_for_ndrange_impl",
        "get_kernel_sub_group_count_for_ndrange",
        1,
    ),
    (
        "__get_kernel_max_sub_group_size_for_ndrange_impl",
        "get_kernel_max_sub_group_size_for_ndrange",
        1,
    ),
];
const EVENT: &str = "target(\"spirv.DeviceEvent\")";

/// Returns true if a source probably uses them, or has variables that are blocks.
pub fn used_in(source: &str) -> bool {
    let marks = [
        "enqueue_",
        "clk_event_t",
        "ndrange_",
        "get_kernel_",
        "_default_queue",
        "_user_event",
        "(^",
    ];
    marks.iter().any(|mark| source.contains(mark))
}

/// Returns true if IR has blocks, so that it must go through [`without_pointers`] after the passes.
pub fn has_blocks(ir: &str) -> bool {
    ir.contains("_block_invoke")
}

/// Replaces calls of the device-queue functions in a module by calls of the built-in library. Runs
/// before any pass.
pub fn with_calls(ir: &str) -> String {
    if !ir.contains("spirv.DeviceEvent") && !ir.contains("ndrange_") && !has_blocks(ir) {
        return ir.to_owned();
    }
    let mut out = String::with_capacity(ir.len() + 4096);
    // The calls on blocks that were made, by their names; and what was declared.
    let mut made: Vec<(usize, String)> = Vec::new();
    let mut declared: FxHashMap<usize, String> = FxHashMap::default();
    for line in ir.split_inclusive('\n') {
        let line = renamed(&line.replace(EVENT, "i64"));
        let found = ON_BLOCKS
            .iter()
            .enumerate()
            .find_map(|(number, (name, ..))| {
                let at = line.find(&format!("@{name}("))?;
                Some((number, at, at + name.len() + 1))
            });
        let Some((number, at, open)) = found else {
            out += &line;
            continue;
        };
        if line.starts_with("declare ") {
            declared.insert(number, line.clone());
            continue;
        }
        match call(&line, number, at, open) {
            Some((text, name)) => {
                out += &text;
                if !made.iter().any(|(_, known)| *known == name) {
                    made.push((number, name));
                }
            }
            None => out += &line,
        }
    }
    for (number, name) in made {
        let (theirs, _, place) = ON_BLOCKS[number];
        let line = declared.get(&number).and_then(|line| {
            let open = line.find(&format!("@{theirs}("))? + theirs.len() + 1;
            let (start, end) = argument(line, open, place)?;
            let head = &line[..open - theirs.len() - 1];
            let rest = format!("{}{}", &line[open..start], &line[end..]);
            Some(format!("{head}@{name}{rest}"))
        });
        out += &line.unwrap_or_default();
    }
    out
}

/// Returns a line with the mangled functions under their new names.
fn renamed(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("@_Z") {
        let (before, after) = rest.split_at(at);
        out += before;
        let digits = after[3..].bytes().take_while(u8::is_ascii_digit).count();
        let length: usize = after[3..3 + digits].parse().unwrap_or(0);
        let name = after.get(3 + digits..3 + digits + length).unwrap_or("");
        if FUNCTIONS.contains(&name) {
            out += &format!("@{CALL}{name}.");
            rest = &after[3 + digits + length..];
        } else {
            out += "@_Z";
            rest = &after[3..];
        }
    }
    out + rest
}

/// Returns the range of an argument or parameter, with the comma after it, or else before it.
/// `open`: the position of the parenthesis.
fn argument(line: &str, open: usize, place: usize) -> Option<(usize, usize)> {
    let mut depth = 0;
    let mut number = 0;
    let mut start = open + 1;
    for (at, byte) in line.bytes().enumerate().skip(open) {
        match byte {
            b'(' => depth += 1,
            b')' if depth > 1 => depth -= 1,
            b')' | b',' if depth == 1 => {
                if number == place {
                    return Some(match byte {
                        b',' => (start, at + 2),
                        _ => (start - 2, at),
                    });
                }
                if byte == b')' {
                    return None;
                }
                number += 1;
                start = at + 2;
            }
            _ => {}
        }
    }
    None
}

/// Returns a call on a block as a call of a function for that block alone, and that function's
/// name.
fn call(line: &str, number: usize, at: usize, open: usize) -> Option<(String, String)> {
    let (_, ours, place) = ON_BLOCKS[number];
    let (start, end) = argument(line, open, place)?;
    let block = line.get(start..end)?.split_once("(ptr @")?.1;
    let block = block.split_once(' ')?.0;
    let name = format!("{CALL}{ours}${block}");
    let text = format!(
        "{}@{name}{}{}",
        &line[..at],
        &line[open..start],
        &line[end..]
    );
    Some((text, name))
}

/// Returns the module, after the passes, without pointers to the functions of blocks.
pub fn without_pointers(ir: &str) -> String {
    const BEFORE: &str = "addrspacecast (ptr @";
    const AFTER: &str = " to ptr addrspace(4))";
    let mut out = String::with_capacity(ir.len());
    let mut rest = ir;
    while let Some(at) = rest.find(BEFORE) {
        let (before, after) = rest.split_at(at);
        out += before;
        let name = after[BEFORE.len()..].split(' ').next().unwrap_or("");
        let end = BEFORE.len() + name.len();
        if name.contains("_block_invoke") && after[end..].starts_with(AFTER) {
            out += "null";
            rest = &after[end + AFTER.len()..];
        } else {
            out += BEFORE;
            rest = &after[BEFORE.len()..];
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_name_their_blocks() {
        let ir = "%e = alloca target(\"spirv.DeviceEvent\"), align 8\n\
            call spir_func void @_Z10ndrange_2DPKmS0_(ptr sret(%t) align 8 %nd, ptr noundef %g, ptr %l) #9\n\
            %8 = call spir_func i32 @__enqueue_kernel_basic(target(\"spirv.Queue\") %5, i32 1, ptr %tmp, ptr addrspace(4) addrspacecast (ptr @__k_block_invoke_kernel to ptr addrspace(4)), ptr addrspace(4) %7)\n\
            %9 = call i32 @__get_kernel_work_group_size_impl(ptr addrspace(4) addrspacecast (ptr @__k_block_invoke_2_kernel to ptr addrspace(4)), ptr addrspace(4) %7)\n\
            declare spir_func void @_Z10ndrange_2DPKmS0_(ptr, ptr, ptr)\n\
            declare spir_func i32 @__enqueue_kernel_basic(target(\"spirv.Queue\"), i32, ptr, ptr addrspace(4), ptr addrspace(4))\n\
            declare i32 @__get_kernel_work_group_size_impl(ptr addrspace(4), ptr addrspace(4)) #1\n";
        let wanted = "%e = alloca i64, align 8\n\
            call spir_func void @__pumice_device_ndrange_2D.PKmS0_(ptr sret(%t) align 8 %nd, ptr noundef %g, ptr %l) #9\n\
            %8 = call spir_func i32 @__pumice_device_enqueue_kernel_basic$__k_block_invoke_kernel(target(\"spirv.Queue\") %5, i32 1, ptr %tmp, ptr addrspace(4) %7)\n\
            %9 = call i32 @__pumice_device_get_kernel_work_group_size$__k_block_invoke_2_kernel(ptr addrspace(4) %7)\n\
            declare spir_func void @__pumice_device_ndrange_2D.PKmS0_(ptr, ptr, ptr)\n\
            declare spir_func i32 @__pumice_device_enqueue_kernel_basic$__k_block_invoke_kernel(target(\"spirv.Queue\"), i32, ptr, ptr addrspace(4))\n\
            declare i32 @__pumice_device_get_kernel_work_group_size$__k_block_invoke_2_kernel(ptr addrspace(4)) #1\n";
        assert_eq!(with_calls(ir), wanted);
    }

    #[test]
    fn other_modules_stay_as_they_are() {
        let ir = "%1 = call i64 @_Z13get_global_idj(i32 0)\n";
        assert_eq!(with_calls(ir), ir);
        assert!(!used_in("kernel void k(global int *p) { *p = 1; }"));
        assert!(!used_in("x = (a)^(b);"));
        assert!(used_in("enqueue_kernel(q, f, n, ^{ });"));
    }

    #[test]
    fn pointers_to_blocks_go() {
        let ir = "store ptr addrspace(4) addrspacecast (ptr @__k_block_invoke to ptr addrspace(4)), ptr %b\n\
            store ptr addrspace(4) addrspacecast (ptr @v to ptr addrspace(4)), ptr %b\n";
        let wanted = "store ptr addrspace(4) null, ptr %b\n\
            store ptr addrspace(4) addrspacecast (ptr @v to ptr addrspace(4)), ptr %b\n";
        assert_eq!(without_pointers(ir), wanted);
    }
}
