//! LLVM's code generator in this process, through LLVM's C interface: of the program that this
//! library is preloaded into, or of a library that it is linked against.

use super::{dlsym, write, RTLD_DEFAULT, UNABLE};
use core::ffi::{c_char, c_int, c_void, CStr};
use core::ptr::null_mut;

type Handle = *mut c_void;
/// The place of a function's message. None is freed: they are few, and they are about failures that
/// do not occur.
type ErrorMessage = *mut *mut c_char;

/// The values of `LLVMCodeGenLevelAggressive`, `LLVMRelocPIC`, `LLVMCodeModelDefault` and
/// `LLVMObjectFile`.
const AGGRESSIVE: c_int = 3;
const POSITION_INDEPENDENT: c_int = 2;
const DEFAULT_MODEL: c_int = 0;
const OBJECT: c_int = 1;

/// The statuses of jobs.
pub const DONE: u8 = 0;
const FAILED: u8 = 1;

/// Declares functions of LLVM by their names without `LLVM`.
macro_rules! functions {
    ($($name:ident = $symbol:literal: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        pub struct Llvm {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Llvm {
            /// Finds the functions. Returns `None` if one of them is missing.
            pub fn find() -> Option<Self> {
                Some(Self {
                    $($name: {
                        // SAFETY: the name ends with a zero.
                        let address = unsafe { dlsym(RTLD_DEFAULT, $symbol.as_ptr()) };
                        if address.is_null() {
                            return None;
                        }
                        // SAFETY: the function of this name has this type in each version of LLVM that has it.
                        unsafe {
                            core::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($argument),*) $(-> $result)?,
                            >(address)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    read = c"LLVMCreateMemoryBufferWithSTDIN": fn(*mut Handle, ErrorMessage) -> c_int;
    buffer_start = c"LLVMGetBufferStart": fn(Handle) -> *const c_void;
    buffer_size = c"LLVMGetBufferSize": fn(Handle) -> usize;
    dispose_buffer = c"LLVMDisposeMemoryBuffer": fn(Handle);
    create_context = c"LLVMContextCreate": fn() -> Handle;
    dispose_context = c"LLVMContextDispose": fn(Handle);
    parse = c"LLVMParseIRInContext": fn(Handle, Handle, *mut Handle, ErrorMessage) -> c_int;
    dispose_module = c"LLVMDisposeModule": fn(Handle);
    target = c"LLVMGetTargetFromTriple": fn(*const c_char, *mut Handle, ErrorMessage) -> c_int;
    create_machine = c"LLVMCreateTargetMachine":
        fn(Handle, *const c_char, *const c_char, *const c_char, c_int, c_int, c_int) -> Handle;
    dispose_machine = c"LLVMDisposeTargetMachine": fn(Handle);
    create_layout = c"LLVMCreateTargetDataLayout": fn(Handle) -> Handle;
    dispose_layout = c"LLVMDisposeTargetData": fn(Handle);
    set_layout = c"LLVMSetModuleDataLayout": fn(Handle, Handle);
    set_triple = c"LLVMSetTarget": fn(Handle, *const c_char);
    create_options = c"LLVMCreatePassBuilderOptions": fn() -> Handle;
    dispose_options = c"LLVMDisposePassBuilderOptions": fn(Handle);
    run_passes = c"LLVMRunPasses": fn(Handle, *const c_char, Handle, Handle) -> Handle;
    message = c"LLVMGetErrorMessage": fn(Handle) -> *mut c_char;
    dispose_message = c"LLVMDisposeErrorMessage": fn(*mut c_char);
    emit = c"LLVMTargetMachineEmitToMemoryBuffer": fn(Handle, Handle, c_int, ErrorMessage, *mut Handle) -> c_int;
}

impl Llvm {
    /// Compiles the text at the standard input and writes an object file. Returns the job's status.
    /// The job's words, with a zero after each: the program, `triple`, `processor`, `features`, and
    /// lists of passes, of which the first that LLVM supports is used.
    pub unsafe fn compile(&self, words: &[u8], output: c_int) -> u8 {
        let mut words = words
            .split_inclusive(|&byte| byte == 0)
            .filter_map(|word| CStr::from_bytes_with_nul(word).ok());
        let (Some(_), Some(triple), Some(processor), Some(features)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return UNABLE;
        };
        let mut error: *mut c_char = null_mut();
        let (mut text, mut target) = (null_mut(), null_mut());
        // SAFETY: LLVM's interface, with handles of its own; text and module are disposed of by whom it says.
        unsafe {
            if (self.target)(triple.as_ptr(), &mut target, &mut error) != 0 {
                return UNABLE;
            }
            let machine = (self.create_machine)(
                target,
                triple.as_ptr(),
                processor.as_ptr(),
                features.as_ptr(),
                AGGRESSIVE,
                POSITION_INDEPENDENT,
                DEFAULT_MODEL,
            );
            if machine.is_null() {
                return UNABLE;
            }
            if (self.read)(&mut text, &mut error) != 0 {
                return complain(error);
            }
            let context = (self.create_context)();
            let mut module = null_mut();
            // It takes the text.
            if (self.parse)(context, text, &mut module, &mut error) != 0 {
                return complain(error);
            }
            (self.set_triple)(module, triple.as_ptr());
            let layout = (self.create_layout)(machine);
            (self.set_layout)(module, layout);
            (self.dispose_layout)(layout);
            let status = match self.optimise(module, machine, words) {
                true => self.write_object(module, machine, output),
                false => FAILED,
            };
            (self.dispose_module)(module);
            (self.dispose_context)(context);
            (self.dispose_machine)(machine);
            status
        }
    }

    unsafe fn optimise<'a>(
        &self,
        module: Handle,
        machine: Handle,
        mut lists: impl Iterator<Item = &'a CStr>,
    ) -> bool {
        // SAFETY: as above; a list with a name that LLVM does not know is refused before it changes anything.
        unsafe {
            let options = (self.create_options)();
            let done = lists.any(|passes| {
                let error = (self.run_passes)(module, passes.as_ptr(), machine, options);
                if !error.is_null() {
                    (self.dispose_message)((self.message)(error));
                }
                error.is_null()
            });
            (self.dispose_options)(options);
            done
        }
    }

    unsafe fn write_object(&self, module: Handle, machine: Handle, output: c_int) -> u8 {
        let (mut object, mut error) = (null_mut(), null_mut());
        // SAFETY: as above.
        unsafe {
            if (self.emit)(machine, module, OBJECT, &mut error, &mut object) != 0 {
                return complain(error);
            }
            let size = (self.buffer_size)(object);
            let bytes =
                core::slice::from_raw_parts((self.buffer_start)(object).cast::<u8>(), size);
            let written = write_all(output, bytes);
            (self.dispose_buffer)(object);
            if written {
                DONE
            } else {
                FAILED
            }
        }
    }
}

unsafe fn complain(error: *const c_char) -> u8 {
    if !error.is_null() {
        // SAFETY: a message of LLVM's.
        unsafe { write_all(2, CStr::from_ptr(error).to_bytes()) };
    }
    FAILED
}

unsafe fn write_all(fd: c_int, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        // SAFETY: so many bytes.
        let written = unsafe { write(fd, bytes.as_ptr().cast(), bytes.len()) };
        let Some(left) = usize::try_from(written).ok().and_then(|n| bytes.get(n..)) else {
            return false;
        };
        bytes = left;
    }
    true
}
