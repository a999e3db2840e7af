use super::*;

const LIMIT: Duration = Duration::from_secs(20);

/// Starts a server of any program, which need not be a compiler, in a thread that blocks all
/// signals, as those of the library do.
fn shell() -> OwnedFd {
    let started = || start(Path::new("/bin/sh")).unwrap();
    std::thread::scope(|scope| {
        let thread = thread::spawn_scoped(scope, "test", started).unwrap();
        thread.join().unwrap()
    })
}

fn script(server: &OwnedFd, text: &str, input: &[u8], limit: Duration) -> JobEnd {
    words(server, &["/bin/sh", "-c", text], input, limit)
}

fn words(server: &OwnedFd, list: &[&str], input: &[u8], limit: Duration) -> JobEnd {
    let message = message(list.iter().map(OsStr::new)).unwrap();
    match job(server, &message, input, limit) {
        Ok(outcome) => outcome,
        Err(_) => panic!("no job"),
    }
}

fn number(text: &[u8]) -> u32 {
    String::from_utf8_lossy(text).trim().parse().unwrap()
}

fn ends(pid: u32) -> bool {
    let gone = || {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .map_or(true, |stat| stat.contains(") Z "))
    };
    (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        gone()
    })
}

#[test]
fn input_output_and_diagnostics() {
    let server = shell();
    let large = vec![b'x'; 3 << 20];
    let outcome = script(&server, "cat; echo said >&2", &large, LIMIT);
    assert_eq!(outcome.stdout.bytes(), large);
    assert_eq!(outcome.stderr.bytes(), b"said\n");
}

/// Checks that a job's memory is limited, by the size of its input.
#[test]
fn memory_is_limited() {
    let limit = |input: &[u8]| number(script(&shell(), "ulimit -d", input, LIMIT).stdout.bytes());
    let (small, large) = (limit(b""), limit(&vec![0; 1 << 16]));
    assert_eq!((small, large), (768 << 10, (768 << 10) + (1 << 20)));
    let of_ir = ["/bin/sh", "-c", "ulimit -d", "-x", "ir"];
    let of_ir = words(&shell(), &of_ir, &vec![0; 1 << 16], LIMIT);
    assert_eq!(number(of_ir.stdout.bytes()), (768 << 10) + (1 << 18));
}

/// Checks a job that ends without returning from `main`, as a compiler does that crashes.
#[test]
fn an_end_without_status() {
    let outcome = script(&shell(), "kill -9 $$", b"", LIMIT);
    assert!(outcome.status.is_none() && !outcome.timed_out);
}

#[test]
fn jobs_that_take_too_long_end() {
    let server = shell();
    for what in ["while :; do :; done", "exec sleep 100"] {
        let outcome = script(
            &server,
            &format!("echo $$; {what}"),
            b"",
            Duration::from_millis(500),
        );
        assert!(outcome.timed_out);
        assert!(ends(number(outcome.stdout.bytes())), "{what}");
    }
}

/// Checks that the server is no child of this process, has none of its files, and ends with its
/// socket.
#[test]
fn servers_end_with_their_socket() {
    use std::os::fd::AsRawFd;
    let inherited = std::fs::File::open("/dev/null").unwrap();
    let fd = inherited.as_raw_fd();
    let server = shell();
    let pid = number(script(&server, "echo $PPID", b"", LIMIT).stdout.bytes());
    let parent = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let ours = format!(" {} ", std::process::id());
    assert!(!parent.split_once(')').unwrap().1.starts_with(&ours));
    assert!(std::fs::read_link(format!("/proc/{pid}/fd/{fd}"))
        .map_or(true, |file| file != Path::new("/dev/null")));
    drop(server);
    assert!(ends(pid));
}

/// Checks that a program which is no server is noticed at once.
#[test]
fn scripts_are_no_servers() {
    let path = std::env::temp_dir().join(format!("pumice-script-{}", std::process::id()));
    std::fs::write(&path, "#!/bin/sh\nexec /bin/cat \"$@\"\n").unwrap();
    let mut mode = std::fs::metadata(&path).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    std::fs::set_permissions(&path, mode).unwrap();
    let server = start(&path).unwrap();
    let message = message([path.as_os_str()].into_iter()).unwrap();
    let began = Instant::now();
    assert!(job(&server, &message, b"", LIMIT).is_err());
    assert!(began.elapsed() < START_LIMIT);
    let _ = std::fs::remove_file(path);
}

/// Checks that clang gives the same result in a server, from the second job on, and for invalid
/// input too.
#[test]
fn clang_is_the_same() {
    let Some(toolchain) = crate::compile::clang::toolchain::get() else {
        return crate::left_out::left_out("no clang");
    };
    let command = || {
        let mut command = Command::new(&toolchain.clang);
        command.args(["-cc1", "-emit-llvm", "-o", "-", "-x", "cl", "-"]);
        command
    };
    for (source, right) in [
        ("kernel void f(global int *p) { *p = 1; }", true),
        ("kernel void f(global int *p) { *p = q; }", false),
        ("", true),
    ] {
        let alone =
            crate::compile::clang::process::run_alone(command(), source.as_bytes()).unwrap();
        let served = (0..2).find_map(|_| run(&command(), source.as_bytes(), LIMIT));
        let served = served.expect("a server");
        assert_eq!(alone.success, right);
        assert_eq!(served.success, right);
        assert_eq!(served.stdout, alone.stdout);
        assert_eq!(served.diagnostics, alone.diagnostics);
    }
}

#[test]
fn jobs_that_need_more_than_arguments_stay_here() {
    assert!(is_for_servers(Command::new("clang").args(["-cc1", "-"])));
    assert!(!is_for_servers(Command::new("clang").current_dir("/")));
    assert!(!is_for_servers(Command::new("clang").env("A", "B")));
    let long = "x".repeat(MOST_BYTES);
    assert!(message(["clang", &long].map(OsStr::new).into_iter()).is_none());
}

/// Checks that file names refer to the same files in a server.
#[test]
fn servers_are_where_the_application_is() {
    let here = std::env::current_dir().unwrap();
    let outcome = script(&shell(), "pwd -P; id -u", b"", LIMIT);
    let (user, _) = crate::util::file_state::rights();
    let expected = format!("{}\n{user}\n", here.canonicalize().unwrap().display());
    assert_eq!(String::from_utf8_lossy(outcome.stdout.bytes()), expected);
    assert_eq!(place(), place());
}
