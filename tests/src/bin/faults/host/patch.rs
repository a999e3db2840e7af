//! Puts functions of this program in the place of those that a loaded library calls.
//!
//! A library calls what others define through words of its own, which the dynamic linker has filled in (the relocations
//! JUMP_SLOT, GLOB_DAT and those of whole addresses, after the ELF ABI's supplement for the processor). They are written anew.
//! So nobody else's calls are touched: not this program's, not a driver's, not a compiler's.

use std::ffi::{c_int, c_void, CStr};
use std::path::Path;

/// Kinds of relocations that are the address of a symbol.
#[cfg(target_arch = "x86_64")]
const ADDRESSES: [u32; 3] = [1, 6, 7];
#[cfg(target_arch = "aarch64")]
const ADDRESSES: [u32; 3] = [257, 1025, 1026];

const PT_DYNAMIC: u32 = 2;
const PT_LOAD: u32 = 1;
const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_JMPREL: i64 = 23;

#[repr(C)]
struct Dynamic {
    tag: i64,
    value: usize,
}

#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: usize,
    size: usize,
}

#[repr(C)]
struct Relocation {
    offset: usize,
    info: u64,
    addend: i64,
}

/// A library that is looked for, and where it is.
struct Found<'a> {
    path: &'a Path,
    base: usize,
    dynamic: usize,
    /// From its first byte in memory to behind its last.
    range: (usize, usize),
}

unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, found: *mut c_void) -> c_int {
    // SAFETY: the caller gives what it says, and `found` is that of `replace`.
    let (info, found) = unsafe { (&*info, &mut *found.cast::<Found<'_>>()) };
    // SAFETY: the name is a string, and there are so many headers.
    let (name, headers) = unsafe {
        (
            CStr::from_ptr(info.dlpi_name),
            std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()),
        )
    };
    let real = |path: &Path| path.canonicalize().ok();
    let name = name.to_str().ok().map(Path::new);
    if name.and_then(real) != real(found.path) {
        return 0;
    }
    found.base = info.dlpi_addr as usize;
    found.range = (usize::MAX, 0);
    for header in headers {
        let from = found.base + header.p_vaddr as usize;
        match header.p_type {
            PT_DYNAMIC => found.dynamic = from,
            PT_LOAD => {
                let to = from + header.p_memsz as usize;
                found.range = (found.range.0.min(from), found.range.1.max(to));
            }
            _ => {}
        }
    }
    1
}

/// Makes the library at `path`, which is loaded, call what `other` returns for a name and the function that it called so far.
/// Returns how many words were overwritten.
pub fn replace(path: &Path, mut other: impl FnMut(&str, usize) -> Option<usize>) -> usize {
    let mut found = Found {
        path,
        base: 0,
        dynamic: 0,
        range: (0, 0),
    };
    // SAFETY: the function is called with this structure before the call returns.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
    assert!(found.dynamic != 0, "{} is not loaded", path.display());
    // SAFETY: the library's own tables, which lie in memory as the ELF ABI says, as long as it is loaded, which is for good.
    unsafe {
        let value = |wanted: i64| {
            let mut entry = found.dynamic as *const Dynamic;
            while (*entry).tag != 0 && (*entry).tag != wanted {
                entry = entry.add(1);
            }
            if (*entry).tag == wanted {
                (*entry).value
            } else {
                0
            }
        };
        // The dynamic linker has made addresses of these, or has not, by the system.
        let place = |address: usize| match address < found.range.0 {
            true => address + found.base,
            false => address,
        };
        let symbols = place(value(DT_SYMTAB)) as *const Symbol;
        let strings = place(value(DT_STRTAB)) as *const libc::c_char;
        let tables = [(DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ)];
        let mut count = 0;
        for (table, size) in tables.map(|(table, size)| (value(table), value(size))) {
            if table == 0 {
                continue;
            }
            let length = size / size_of::<Relocation>();
            let relocations = std::slice::from_raw_parts(place(table) as *const Relocation, length);
            for relocation in relocations {
                let symbol = (relocation.info >> 32) as usize;
                if symbol == 0 || !ADDRESSES.contains(&(relocation.info as u32)) {
                    continue;
                }
                let name = CStr::from_ptr(strings.add((*symbols.add(symbol)).name as usize));
                let word = (found.base + relocation.offset) as *mut usize;
                let Some(new) = name.to_str().ok().and_then(|name| other(name, *word)) else {
                    continue;
                };
                write(word, new);
                count += 1;
            }
        }
        count
    }
}

/// Writes a word that the dynamic linker has made read-only.
///
/// # Safety
/// It must be a word of a library's table of addresses, which nobody uses at the moment.
unsafe fn write(word: *mut usize, value: usize) {
    // SAFETY: no arguments that matter.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let page = (word as usize / size * size) as *mut c_void;
    // SAFETY: the page of the word, which the library reads only; the caller's promise.
    unsafe {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        assert_eq!(
            libc::mprotect(page, size, rights),
            0,
            "a page can be written"
        );
        word.write(value);
    }
}
