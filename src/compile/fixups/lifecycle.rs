//! Turns constructors and destructors of program-scope objects (C++ for OpenCL) into kernels with
//! the execution modes Initializer and Finalizer.
//!
//! clang lists the functions that construct in `llvm.global_ctors`, of which LLVM's SPIR-V target
//! makes invalid code. It makes them register destructors by `__cxa_atexit`, or `atexit`, with a
//! null pointer in place of an object in global memory. With `-fno-use-cxa-atexit` each object gets
//! a function `__dtor_NAME`, named after it, that calls the destructor; so the object can be
//! restored. One kernel then calls the constructors and another, in the opposite order, the
//! destructors.
//!
//! Destructors that are registered elsewhere, for static objects of functions, stay calls of
//! `atexit`, which is undefined: such a program does not link.

use super::whole_program::names;
use std::collections::{HashMap, HashSet};

/// The lists of functions that run before all others, and after.
const LISTS: [&str; 2] = ["@llvm.global_ctors = ", "@llvm.global_dtors = "];

/// The kernels, with the numbers of their execution modes in SPIR-V.
const KERNELS: [(&str, u32); 2] = [("__pumice_initializer", 33), ("__pumice_finalizer", 34)];

/// Returns the module in LLVM's textual IR, with kernels in place of the lists.
pub fn with_kernels(ir: &str) -> String {
    let [construct, destruct] = LISTS.map(|list| listed(ir, list));
    if construct.is_empty() && destruct.is_empty() && !ir.contains("@atexit(") {
        return ir.to_owned();
    }
    let functions = functions(ir);
    let mut registered = Registered::default();
    for name in &construct {
        registered.walk(name, &functions);
    }
    let calls: HashMap<&str, String> = registered
        .destructors
        .iter()
        .filter_map(|stub| Some((*stub, completed(ir, stub, &functions)?)))
        .collect();
    let mut out = String::with_capacity(ir.len());
    let mut within = "";
    for line in ir.split_inclusive('\n') {
        if LISTS.iter().any(|list| line.starts_with(list)) {
            continue;
        }
        if line.starts_with("define ") {
            within = names(line).next().unwrap_or_default();
            if construct.contains(&within) || destruct.contains(&within) {
                out += &line.replacen(" spir_kernel ", " spir_func ", 1);
                continue;
            }
        }
        if let (Some(stub), Some((result, _))) = (registration(line), line.split_once(" = ")) {
            // Later values are numbered on from this one.
            out += &match registered.seen.contains(within) && calls.contains_key(stub) {
                true => format!("{result} = add i32 0, 0\n"),
                // No pointers to functions, so that it is this name that the build log has.
                false => format!("{result} = call spir_func i32 @atexit()\n"),
            };
            continue;
        }
        if line.starts_with("declare ") && names(line).next() == Some("atexit") {
            out += "declare spir_func i32 @atexit()\n";
            continue;
        }
        if within.starts_with("__dtor_") && line.trim_start().starts_with("call ") {
            // Nobody knows a function whose object was not found.
            out += calls.get(within).map_or("", String::as_str);
            continue;
        }
        out += line;
    }
    let destructors = registered.destructors.iter().rev();
    let destructors = destructors.filter(|stub| calls.contains_key(**stub));
    let destruct: Vec<&str> = destructors.copied().chain(destruct).collect();
    let opaque = !ir.contains("{ i32, void ()*");
    add_kernels(&mut out, [&construct, &destruct], opaque);
    out
}

/// Returns the functions of a list, those of lower priority numbers first.
fn listed<'a>(ir: &'a str, list: &str) -> Vec<&'a str> {
    let Some(line) = ir.lines().find(|line| line.starts_with(list)) else {
        return Vec::new();
    };
    let mut found: Vec<(u32, &str)> = line
        .split("{ i32 ")
        .filter_map(|entry| {
            let (priority, rest) = entry.split_once(',')?;
            Some((priority.parse().ok()?, names(rest).next()?))
        })
        .collect();
    found.sort_by_key(|(priority, _)| *priority);
    found.into_iter().map(|(_, name)| name).collect()
}

/// Returns the first lines of functions by name, and the bodies of those that have one.
fn functions(ir: &str) -> HashMap<&str, (&str, &str)> {
    let mut found = HashMap::new();
    let mut at = 0;
    while let Some(line) = ir.get(at..).and_then(|r| r.split_inclusive('\n').next()) {
        let rest = &ir[at + line.len()..];
        let body = match line.starts_with("define ") {
            true => &rest[..rest.find("\n}\n").map_or(rest.len(), |end| end + 1)],
            false => "",
        };
        if line.starts_with("define ") || line.starts_with("declare ") {
            if let Some(name) = names(line).next() {
                found.insert(name, (line, body));
            }
        }
        at += line.len() + body.len();
    }
    found
}

/// The destructors that constructors register, in their order.
#[derive(Default)]
struct Registered<'a> {
    destructors: Vec<&'a str>,
    seen: HashSet<&'a str>,
}

impl<'a> Registered<'a> {
    fn walk(&mut self, name: &'a str, functions: &HashMap<&'a str, (&'a str, &'a str)>) {
        let Some((_, body)) = functions.get(name) else {
            return;
        };
        if !self.seen.insert(name) {
            return;
        }
        for line in body.lines() {
            if let Some(stub) = registration(line) {
                self.destructors.push(stub);
            } else if let Some(callee) = callee(line) {
                // Those of single objects. Whatever they call in turn is code of the program.
                if callee.starts_with("__cxx_global_var_init") {
                    self.walk(callee, functions);
                }
            }
        }
    }
}

fn callee(line: &str) -> Option<&str> {
    names(line.contains("call ").then_some(line)?).next()
}

/// Returns the function that a line registers to be called at the end.
fn registration(line: &str) -> Option<&str> {
    let line = line.contains(" call ").then_some(line)?;
    let mut names = names(line);
    names.next().filter(|name| *name == "atexit")?;
    names.next()
}

/// Returns the call of `__dtor_NAME`, with the object.
fn completed(ir: &str, stub: &str, functions: &HashMap<&str, (&str, &str)>) -> Option<String> {
    let object = stub.strip_prefix("__dtor_")?;
    let definition = format!("@{object} = ");
    let global = ir.lines().find(|line| line.starts_with(&definition))?;
    global.contains(" addrspace(1) ").then_some(())?;
    let (_, body) = functions.get(stub)?;
    let call = body.lines().find(|line| callee(line).is_some())?;
    let name = callee(call)?;
    let (head, _) = functions.get(name)?;
    // The type of the first parameter: a pointer that says its address space.
    let (_, parameters) = head.split_once(&format!("@{name}("))?;
    let end = parameters.find("addrspace(")?;
    let (pointee, space) = parameters.split_at(end);
    let space = &space[..space.find(')')? + 1];
    let argument = match pointee.trim() {
        "ptr" if space == "addrspace(1)" => format!("ptr addrspace(1) @{object}"),
        "ptr" => {
            format!("ptr {space} addrspacecast (ptr addrspace(1) @{object} to ptr {space})")
        }
        // The function that destructs an array knows it.
        "i8" => format!("i8 {space}* null"),
        ty if space == "addrspace(1)" => format!("{ty} {space}* @{object}"),
        ty => {
            format!("{ty} {space}* addrspacecast ({ty} addrspace(1)* @{object} to {ty} {space}*)")
        }
    };
    let (before, _) = call.split_once(&format!("@{name}("))?;
    Some(format!("{before}@{name}({argument})\n"))
}

/// Adds a kernel for each list of functions, if it is not empty, with its execution mode.
fn add_kernels(out: &mut String, lists: [&Vec<&str>; 2], opaque: bool) {
    let number = |line: &str| {
        let (number, _) = line.strip_prefix('!')?.split_once(" = ")?;
        number.parse::<u32>().ok()
    };
    let mut next = out.lines().filter_map(number).max().map_or(0, |n| n + 1);
    let mut modes = Vec::new();
    let mut nodes = String::new();
    for ((kernel, mode), functions) in KERNELS.iter().zip(lists) {
        if functions.is_empty() {
            continue;
        }
        *out += &format!("\ndefine spir_kernel void @{kernel}() convergent nounwind {{\nentry:\n");
        for function in functions {
            *out += &format!("  call spir_func void @{function}()\n");
        }
        *out += "  ret void\n}\n";
        let pointer = if opaque { "ptr" } else { "void ()*" };
        nodes += &format!("!{next} = !{{{pointer} @{kernel}, i32 {mode}}}\n");
        modes.push(format!("!{next}"));
        next += 1;
    }
    if !modes.is_empty() {
        let modes = modes.join(", ");
        *out += &format!("\n!spirv.ExecutionMode = !{{{modes}}}\n{nodes}");
    }
}

#[cfg(test)]
mod tests {
    use super::with_kernels;

    const IR: &str = "\
        @c = addrspace(1) global %struct.C zeroinitializer, align 4\n\
        @_ZN1n1dE = addrspace(1) global %struct.C zeroinitializer, align 4\n\
        @llvm.global_ctors = appending global [2 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @late, ptr addrspace(1) @c }, { i32, ptr, ptr } { i32 200, ptr @_GLOBAL__sub_I_program.cl, ptr null }]\n\
        \n\
        define internal spir_func void @__cxx_global_var_init() #0 {\n\
        entry:\n\
        \x20 call spir_func void @C1(ptr addrspace(4) addrspacecast (ptr addrspace(1) @c to ptr addrspace(4)))\n\
        \x20 %0 = call spir_func i32 @atexit(ptr @__dtor_c) #2\n\
        \x20 ret void\n\
        }\n\
        \n\
        define linkonce_odr spir_func void @D1(ptr addrspace(4) noundef %this) {\n\
        \x20 ret void\n\
        }\n\
        \n\
        define internal spir_func void @__dtor_c() #0 {\n\
        entry:\n\
        \x20 call spir_func void @D1(ptr null)\n\
        \x20 ret void\n\
        }\n\
        \n\
        define internal spir_func void @late() #0 {\n\
        entry:\n\
        \x20 %0 = call spir_func i32 @atexit(ptr @__dtor__ZN1n1dE) #2\n\
        \x20 ret void\n\
        }\n\
        \n\
        define internal spir_func void @__dtor__ZN1n1dE() #0 {\n\
        entry:\n\
        \x20 call spir_func void @D1(ptr null)\n\
        \x20 ret void\n\
        }\n\
        \n\
        define internal spir_kernel void @_GLOBAL__sub_I_program.cl() #0 !kernel_arg_type !7 {\n\
        entry:\n\
        \x20 call spir_func void @__cxx_global_var_init()\n\
        \x20 ret void\n\
        }\n\
        \n\
        !7 = !{}\n";

    #[test]
    fn objects_are_made_and_unmade() {
        let out = with_kernels(IR);
        for lacking in [
            "global_ctors",
            "atexit(",
            "null)",
            "spir_kernel void @_GLOBAL",
        ] {
            assert!(!out.contains(lacking), "{lacking}: {out}");
        }
        for part in [
            "  %0 = add i32 0, 0\n  ret void",
            "  call spir_func void @D1(ptr addrspace(4) addrspacecast (ptr addrspace(1) @c to ptr addrspace(4)))\n  ret",
            "@D1(ptr addrspace(4) addrspacecast (ptr addrspace(1) @_ZN1n1dE to ptr addrspace(4)))",
            "@__pumice_initializer() convergent nounwind {\nentry:\n  call spir_func void @_GLOBAL__sub_I_program.cl()\n  call spir_func void @late()\n",
            "@__pumice_finalizer() convergent nounwind {\nentry:\n  call spir_func void @__dtor__ZN1n1dE()\n  call spir_func void @__dtor_c()\n",
            "!spirv.ExecutionMode = !{!8, !9}\n!8 = !{ptr @__pumice_initializer, i32 33}\n!9 = !{ptr @__pumice_finalizer, i32 34}\n",
        ] {
            assert!(out.contains(part), "{part}: {out}");
        }
    }

    /// Checks that a destructor whose object is not found is not called on a null pointer.
    #[test]
    fn unknown_objects_stay_undefined() {
        let out = with_kernels(&IR.replace("@c = ", "@other = "));
        assert!(out.contains("%0 = call spir_func i32 @atexit()\n"), "{out}");
        assert!(out.contains("@__pumice_finalizer()"), "{out}");
        assert!(!out.contains("call spir_func void @__dtor_c()"), "{out}");
    }

    #[test]
    fn typed_pointers() {
        let ir = IR
            .replace("{ i32, ptr, ptr }", "{ i32, void ()*, i8* }")
            .replace(
                "ptr addrspace(4) noundef",
                "%struct.C addrspace(4)* noundef",
            )
            .replace("(ptr null)", "(%struct.C* null)");
        let out = with_kernels(&ir);
        let call = "@D1(%struct.C addrspace(4)* addrspacecast (%struct.C addrspace(1)* @c to %struct.C addrspace(4)*))";
        assert!(out.contains(call), "{out}");
        assert!(
            out.contains("!{void ()* @__pumice_initializer, i32 33}"),
            "{out}"
        );
    }

    #[test]
    fn other_modules_stay_as_they_are() {
        for ir in [
            "",
            "define spir_kernel void @k() {\n  ret void\n}\n",
            "@llvm.global_ctors = ",
        ] {
            assert_eq!(with_kernels(ir), ir);
        }
        // Cut off.
        for end in 0..IR.len() {
            with_kernels(&IR[..end]);
        }
    }
}
