//! The part of the compile server in the compiler's process: a library of its own that is preloaded
//! into clang.
//!
//! It replaces `main` once clang is loaded, linked and initialised, which costs most of a small
//! compilation, and forks a process for every job, in which the real `main` runs with the arguments
//! of the job. Or it forks a worker, which compiles LLVM's IR, one job after another
//! (`preload/llvm.rs`). `mod.rs` and `workers.rs` have the protocol. Everything here is
//! single-threaded and calls only the C library and LLVM.
//!
//! It serves only in the executable that `PUMICE_SERVER` names. Other programs that were started
//! with this library preloaded (the interpreter of a script that wraps clang) run as usual.
//!
//! There, and where `PUMICE_GUARDED` is set in the executable that it names and in every clang
//! (which a script of that name may start), no file is opened that would have to be waited for: a
//! source may include a FIFO that nobody writes to. The script itself may open any file.

#![no_std]
#![crate_type = "cdylib"]
#![allow(clippy::missing_safety_doc)]

#[path = "preload/llvm.rs"]
mod llvm;

use core::ffi::{c_char, c_int, c_long, c_short, c_uint, c_ulong, c_void, CStr};
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

type Main = unsafe extern "C" fn(c_int, *const *const c_char, *const *const c_char) -> c_int;
type Hook = unsafe extern "C" fn();
/// The type of `open`, whose last argument only some calls have.
type Open = unsafe extern "C" fn(*const c_char, c_int, c_uint) -> c_int;
type LibcStart = unsafe extern "C" fn(
    Main,
    c_int,
    *const *const c_char,
    Option<Hook>,
    Option<Hook>,
    Option<Hook>,
    *mut c_void,
) -> c_int;

#[repr(C)]
struct PollFd {
    fd: c_int,
    events: c_short,
    revents: c_short,
}

#[repr(C)]
struct IoVec {
    base: *mut c_void,
    length: usize,
}

#[repr(C)]
struct Message {
    name: *mut c_void,
    name_length: c_uint,
    parts: *mut IoVec,
    part_count: usize,
    control: *mut c_void,
    control_length: usize,
    flags: c_int,
}

/// A control message with file descriptors.
#[repr(C)]
struct ControlMessage {
    length: usize,
    level: c_int,
    kind: c_int,
    fds: [c_int; 4],
}

#[link(name = "c")]
extern "C" {
    fn __errno_location() -> *mut c_int;
    fn _exit(status: c_int) -> !;
    fn close(fd: c_int) -> c_int;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dup2(from: c_int, to: c_int) -> c_int;
    fn fcntl(fd: c_int, command: c_int, ...) -> c_int;
    fn fflush(stream: *mut c_void) -> c_int;
    fn fork() -> c_int;
    fn getenv(name: *const c_char) -> *const c_char;
    fn getpid() -> c_int;
    fn lseek(fd: c_int, offset: c_long, from: c_int) -> c_long;
    fn poll(fds: *mut PollFd, count: c_ulong, timeout: c_int) -> c_int;
    fn readlink(path: *const c_char, buffer: *mut c_char, size: usize) -> isize;
    fn recvmsg(socket: c_int, message: *mut Message, flags: c_int) -> isize;
    fn setrlimit(resource: c_int, limits: *const [c_ulong; 2]) -> c_int;
    fn setsid() -> c_int;
    fn signal(number: c_int, handler: usize) -> usize;
    fn sigprocmask(how: c_int, set: *const [c_ulong; 16], old: *mut [c_ulong; 16]) -> c_int;
    fn strncmp(a: *const c_char, b: *const c_char, length: usize) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    fn unsetenv(name: *const c_char) -> c_int;
    fn write(fd: c_int, data: *const c_void, size: usize) -> isize;
}

const RTLD_DEFAULT: *mut c_void = null_mut();
const RTLD_NEXT: *mut c_void = usize::MAX as *mut c_void;
const SYS_CLOSE_RANGE: c_long = 436;
const SIGCHLD: c_int = 17;
const SIGIO: c_int = 29;
const SIG_DFL: usize = 0;
const SIG_IGN: usize = 1;
const SIG_SETMASK: c_int = 2;
const POLLIN: c_short = 1;
const POLLHUP: c_short = 0x10;
const F_GETFL: c_int = 3;
const F_SETFL: c_int = 4;
const F_SETOWN: c_int = 8;
const O_ACCMODE: c_int = 3;
const O_NONBLOCK: c_int = 0o4000;
const O_ASYNC: c_int = 0o20000;
const SEEK_SET: c_int = 0;
const SEEK_CUR: c_int = 1;
const SEEK_END: c_int = 2;
const RLIMIT_DATA: c_int = 2;
const ENOSYS: c_int = 38;
const ENXIO: c_int = 6;
const SCM_RIGHTS: c_int = 1;
const SOL_SOCKET: c_int = 1;

/// The bytes of memory that a job may take: so many, and so many for each byte of its input. Small
/// kernels take a tenth of that. A source of headers may be of any size; IR has several times the
/// bytes of its source.
const MEMORY: [c_ulong; 2] = [768 << 20, 16 << 10];
const MEMORY_OF_IR: c_ulong = 4 << 10;
const MEMORY_WITH_HEADERS: c_ulong = 8 << 30;

/// The socket with the jobs.
const JOBS: c_int = 1;
/// A descriptor of an empty file, in a worker.
const NOTHING: c_int = 3;
/// The only word of a message that starts a worker.
const WORKER: &[u8] = b"-pumice-worker\0";
/// The milliseconds without a job after which the server ends.
const IDLE: c_int = 15_000;
const MOST_BYTES: usize = 64 << 10;
const MOST_ARGUMENTS: usize = 2048;
/// The status of a job that this process cannot run.
const UNABLE: u8 = 2;

static MAIN: AtomicUsize = AtomicUsize::new(0);
/// Set if no file is opened that would have to be waited for.
static GUARDED: AtomicBool = AtomicBool::new(false);

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: ends the process.
    unsafe { _exit(1) }
}

/// Returns a symbol that the compiled `core` refers to, though nothing unwinds here.
#[no_mangle]
pub extern "C" fn rust_eh_personality() {}

/// Returns the entry point of every program on this C library, replaced to run the server in place
/// of `main`.
#[no_mangle]
pub unsafe extern "C" fn __libc_start_main(
    main: Main,
    count: c_int,
    arguments: *const *const c_char,
    init: Option<Hook>,
    fini: Option<Hook>,
    end: Option<Hook>,
    stack: *mut c_void,
) -> c_int {
    // SAFETY: the C library's function of this name has this type.
    unsafe {
        let next = dlsym(RTLD_NEXT, c"__libc_start_main".as_ptr());
        if next.is_null() {
            _exit(1);
        }
        let start: LibcStart = core::mem::transmute::<*mut c_void, LibcStart>(next);
        let mut first = main;
        if is_guarded() {
            GUARDED.store(true, Ordering::Relaxed);
            let word = |number| CStr::from_ptr(*arguments.add(number)).to_bytes();
            limit_memory((0..count as usize).map(word));
        }
        if is_this(c"PUMICE_SERVER") {
            GUARDED.store(true, Ordering::Relaxed);
            MAIN.store(main as usize, Ordering::Relaxed);
            first = serve;
        }
        start(first, count, arguments, init, fini, end, stack)
    }
}

/// Returns the file name of this process's executable with its terminating zero, or `None` if it is
/// unknown.
unsafe fn executable(path: &mut [c_char; 4096]) -> Option<&[c_char]> {
    // SAFETY: `path` has that length, less its terminating zero.
    let length = unsafe {
        readlink(
            c"/proc/self/exe".as_ptr(),
            path.as_mut_ptr(),
            path.len() - 1,
        )
    };
    let length = usize::try_from(length).ok().filter(|&n| n > 0)?;
    *path.get_mut(length)? = 0;
    path.get(..=length)
}

/// Returns true if the variable names the executable of this process.
unsafe fn is_this(variable: &CStr) -> bool {
    let mut buffer = [0; 4096];
    // SAFETY: strings of the environment, and one that ends in a zero.
    unsafe {
        let expected = getenv(variable.as_ptr());
        match executable(&mut buffer) {
            Some(path) if !expected.is_null() => {
                strncmp(expected, path.as_ptr(), path.len()) == 0
            }
            _ => false,
        }
    }
}

/// Returns true in the compiler that must not wait for files, or in a clang that was started in its
/// place.
unsafe fn is_guarded() -> bool {
    const CLANG: &CStr = c"clang";
    let mut buffer = [0; 4096];
    // SAFETY: strings of the environment, and one that ends in a zero.
    unsafe {
        if getenv(c"PUMICE_GUARDED".as_ptr()).is_null() {
            return false;
        }
        if is_this(c"PUMICE_GUARDED") {
            return true;
        }
        let Some(path) = executable(&mut buffer) else {
            return false;
        };
        let name = path.iter().rposition(|&c| c == b'/' as c_char);
        let name = path.get(name.map_or(0, |at| at + 1)..).unwrap_or_default();
        // The zero at the end of a shorter name differs.
        !name.is_empty() && strncmp(CLANG.as_ptr(), name.as_ptr(), CLANG.count_bytes()) == 0
    }
}

/// Returns the C library's function that the one of this library overrides.
unsafe fn next_function(name: &CStr, known: &AtomicUsize) -> Option<Open> {
    let mut address = known.load(Ordering::Relaxed);
    // SAFETY: the C library's functions of these names have this type.
    unsafe {
        if address == 0 {
            address = dlsym(RTLD_NEXT, name.as_ptr()) as usize;
            known.store(address, Ordering::Relaxed);
        }
        core::mem::transmute::<usize, Option<Open>>(address)
    }
}

/// Opens a file. Fails for reading a file that cannot be seeked (a FIFO, a terminal).
unsafe fn opened(open: Option<Open>, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    let guarded = GUARDED.load(Ordering::Relaxed) && flags & O_ACCMODE == 0;
    // SAFETY: the caller's arguments; the descriptor is new.
    unsafe {
        let Some(open) = open else {
            *__errno_location() = ENOSYS;
            return -1;
        };
        if !guarded {
            return open(path, flags, mode);
        }
        let fd = open(path, flags | O_NONBLOCK, mode);
        if fd >= 0 && lseek(fd, 0, SEEK_CUR) < 0 {
            close(fd);
            *__errno_location() = ENXIO;
            return -1;
        }
        fd
    }
}

/// Overrides the C library's `open`.
#[no_mangle]
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: the caller's arguments.
    unsafe { opened(next_function(c"open", &NEXT), path, flags, mode) }
}

/// Overrides the C library's `open64`.
#[no_mangle]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: the caller's arguments.
    unsafe { opened(next_function(c"open64", &NEXT), path, flags, mode) }
}

/// Replaces `main`: takes jobs until there are none for a while, or no client is left.
unsafe extern "C" fn serve(
    _: c_int,
    _: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    let mut text = [0u8; MOST_BYTES];
    // SAFETY: calls of the C library with memory of this function.
    unsafe {
        // A child that the application does not know of must not be found by its `wait`, nor be ended by its terminal.
        match fork() {
            0 => {}
            -1 => _exit(1),
            _ => _exit(0),
        }
        setsid();
        unsetenv(c"LD_PRELOAD".as_ptr());
        unsetenv(c"PUMICE_SERVER".as_ptr());
        unsetenv(c"LD_BIND_NOW".as_ptr());
        signal(SIGCHLD, SIG_IGN);
        // A thread of the library, which may have started this, blocks all signals, with them the one that ends a job.
        sigprocmask(SIG_SETMASK, &[0; 16], null_mut());
        // Whatever the application left open is not ours to keep open.
        if syscall(SYS_CLOSE_RANGE, 3 as c_uint, c_uint::MAX, 0 as c_uint) != 0 {
            (3..1024).for_each(|fd| shut(fd));
        }
        initialise_targets();
        loop {
            let (text, fds) = next(&mut text);
            if fork() == 0 {
                if text == WORKER {
                    work(fds);
                }
                job(text, fds, environment);
            }
            fds.into_iter().for_each(|fd| shut(fd));
        }
    }
}

/// Returns the next job. Ends the process if there is none for a while, or no client is left.
unsafe fn next(room: &mut [u8; MOST_BYTES]) -> (&[u8], [c_int; 4]) {
    // SAFETY: calls of the C library with memory of this function.
    unsafe {
        let mut jobs = PollFd {
            fd: JOBS,
            events: POLLIN,
            revents: 0,
        };
        if poll(&mut jobs, 1, IDLE) <= 0 {
            _exit(0);
        }
        let mut part = IoVec {
            base: room.as_mut_ptr().cast(),
            length: MOST_BYTES,
        };
        let mut control = ControlMessage {
            length: 0,
            level: 0,
            kind: 0,
            fds: [-1; 4],
        };
        let mut message = Message {
            name: null_mut(),
            name_length: 0,
            parts: &mut part,
            part_count: 1,
            control: (&raw mut control).cast(),
            control_length: size_of::<ControlMessage>(),
            flags: 0,
        };
        let size = recvmsg(JOBS, &mut message, 0);
        // Nothing: all who could send are gone.
        if size <= 0
            || control.level != SOL_SOCKET
            || control.kind != SCM_RIGHTS
            || control.length != size_of::<ControlMessage>()
        {
            _exit(0);
        }
        (&room[..size as usize], control.fds)
    }
}

/// The names of LLVM's targets, as the functions of LLVM's C interface that register them have
/// them.
const TARGETS: [&[u8]; 24] = [
    b"AArch64",
    b"AMDGPU",
    b"ARC",
    b"ARM",
    b"AVR",
    b"BPF",
    b"CSKY",
    b"Hexagon",
    b"Lanai",
    b"LoongArch",
    b"M68k",
    b"MSP430",
    b"Mips",
    b"NVPTX",
    b"PowerPC",
    b"RISCV",
    b"SPIRV",
    b"Sparc",
    b"SystemZ",
    b"VE",
    b"WebAssembly",
    b"X86",
    b"XCore",
    b"Xtensa",
];
const PARTS: [&[u8]; 5] = [
    b"TargetInfo",
    b"Target",
    b"TargetMC",
    b"AsmPrinter",
    b"AsmParser",
];

/// Registers all of LLVM's targets and their hundreds of passes, as clang does at the begin of each
/// job. Repeating it is quick and changes nothing. Where LLVM is not a shared library, the
/// functions are not found.
unsafe fn initialise_targets() {
    for target in TARGETS {
        for part in PARTS {
            let mut name = [0u8; 64];
            let words: [&[u8]; 3] = [b"LLVMInitialize", target, part];
            // The last byte stays zero.
            let bytes = words.into_iter().flatten();
            for (place, byte) in name[..63].iter_mut().zip(bytes) {
                *place = *byte;
            }
            // SAFETY: functions of these names take and return nothing.
            unsafe {
                let function = dlsym(RTLD_DEFAULT, name.as_ptr().cast());
                if !function.is_null() {
                    core::mem::transmute::<*mut c_void, Hook>(function)();
                }
            }
        }
    }
}

/// Runs one job in this process, by clang's `main`.
unsafe fn job(text: &[u8], fds: [c_int; 4], environment: *const *const c_char) -> ! {
    let mut arguments: [*const c_char; MOST_ARGUMENTS] = [null(); MOST_ARGUMENTS];
    // SAFETY: calls of the C library; `main` is that of this program, each argument ends with a zero.
    unsafe {
        signal(SIGCHLD, SIG_DFL);
        signal(SIGIO, SIG_DFL);
        let [input, output, diagnostics, client] = fds;
        dup2(input, 0);
        dup2(output, 1);
        dup2(diagnostics, 2);
        for fd in [input, output, diagnostics] {
            close(fd);
        }
        limit_memory(text.split(|&byte| byte == 0));
        begin(client);
        let mut count = 0;
        for argument in text.split_inclusive(|&byte| byte == 0) {
            if count + 1 == MOST_ARGUMENTS {
                _exit(1);
            }
            arguments[count] = argument.as_ptr().cast();
            count += 1;
        }
        let main: Main = core::mem::transmute::<usize, Main>(MAIN.load(Ordering::Relaxed));
        let status = main(count as c_int, arguments.as_ptr(), environment);
        fflush(null_mut());
        // Not `exit`: to clear up memory that is about to go takes time, during which nobody could read the output's end.
        say(client, if status == 0 { 0 } else { 1 });
        (0..3).for_each(|fd| shut(fd));
        _exit(status)
    }
}

/// Limits the memory of this process: some faults of LLVM, and some sources, would take that of the
/// whole machine.
unsafe fn limit_memory<'a>(arguments: impl Iterator<Item = &'a [u8]>) {
    // SAFETY: calls of the C library with memory of this function.
    unsafe {
        let size = lseek(0, 0, SEEK_END);
        lseek(0, 0, SEEK_SET);
        let (mut headers, mut each) = (false, MEMORY[1]);
        for word in arguments {
            headers |= word.starts_with(b"-I");
            if word == b"ir" {
                each = MEMORY_OF_IR;
            }
        }
        let limit = match headers {
            true => MEMORY_WITH_HEADERS,
            false => MEMORY[0] + each * c_ulong::try_from(size).unwrap_or(0),
        };
        setrlimit(RLIMIT_DATA, &[limit; 2]);
    }
}

/// Runs a worker: this process runs the jobs of a socket of its own, one after another, without
/// clang. Its memory is warm then, which halves the time of a small job.
unsafe fn work(fds: [c_int; 4]) -> ! {
    let mut text = [0u8; MOST_BYTES];
    // SAFETY: calls of the C library with memory of this function.
    unsafe {
        signal(SIGCHLD, SIG_DFL);
        dup2(fds[0], JOBS);
        fds.into_iter().for_each(|fd| shut(fd));
        // The server's diagnostics go nowhere.
        dup2(2, NOTHING);
        let llvm = llvm::Llvm::find();
        loop {
            let (text, [input, output, diagnostics, client]) = next(&mut text);
            signal(SIGIO, SIG_DFL);
            dup2(input, 0);
            dup2(diagnostics, 2);
            begin(client);
            let status = match &llvm {
                Some(llvm) => llvm.compile(text, output),
                None => UNABLE,
            };
            // From here on the client may close its end.
            signal(SIGIO, SIG_IGN);
            say(client, status);
            dup2(NOTHING, 0);
            dup2(NOTHING, 2);
            for fd in [input, output, diagnostics, client] {
                close(fd);
            }
            if status != llvm::DONE {
                _exit(1);
            }
        }
    }
}

/// Makes this process end when the other end of the job's socket is closed: the signal's default is
/// to end it.
unsafe fn begin(client: c_int) {
    // SAFETY: calls of the C library with memory of this function.
    unsafe {
        fcntl(client, F_SETOWN, getpid());
        fcntl(client, F_SETFL, fcntl(client, F_GETFL) | O_ASYNC);
        let mut closed = PollFd {
            fd: client,
            events: 0,
            revents: 0,
        };
        if poll(&mut closed, 1, 0) > 0 && closed.revents & POLLHUP != 0 {
            _exit(1);
        }
        say(client, 0xff);
    }
}

unsafe fn say(client: c_int, byte: u8) {
    // SAFETY: one byte.
    unsafe { write(client, (&raw const byte).cast(), 1) };
}

unsafe fn shut(fd: c_int) {
    // SAFETY: nothing uses it any longer.
    unsafe { close(fd) };
}
