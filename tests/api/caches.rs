//! The cache on disk: whatever becomes of its files, programs are built and right; many processes may use it at once.

use pumice_tests::rng::Rng;
use pumice_tests::{good_child, job, Scratch, Setup};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Sources that are built.
const SOURCES: usize = 5;

fn source(number: usize) -> String {
    format!(
        "kernel void add(global int *p, int n) {{ p[get_global_id(0)] += n * {}; }}",
        number + 1
    )
}

fn build(setup: &Setup, number: usize) {
    let program = setup.build(&source(number));
    let kernel = setup.kernel(&program, "add");
    let buffer = setup.buffer_of(&[1i32; 16]);
    kernel.set_buffer(0, &buffer).set(1, 5i32);
    setup.run(&kernel, &[16], None);
    let expected = 1 + 5 * (number as i32 + 1);
    assert_eq!(setup.read::<i32>(&buffer, 16), [expected; 16]);
}

/// Not a test of its own: the child of the others.
#[test]
fn inner() {
    let Some(job) = job() else {
        return;
    };
    let setup = Setup::new();
    match job.split_once(' ') {
        Some(("damage", place)) => damage(&setup, Path::new(place)),
        // Builds in an order of its own.
        Some(("order", seed)) => {
            let mut random = Rng::new(seed.parse().expect("a number"), 0);
            for _ in 0..4 * SOURCES {
                build(&setup, random.below(SOURCES));
            }
            (0..SOURCES).for_each(|number| build(&setup, number));
        }
        _ => build(&setup, 0),
    }
}

/// Runs [`inner`] in a process of its own, with its cache there.
fn child(job: &str, cache: &Path) {
    good_child("caches::inner", job, &[("PUMICE_CACHE_DIR", cache)]);
}

fn scratch(name: &str) -> Scratch {
    Scratch::new(name).expect("a directory")
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

/// Whatever became of the files of the cache, programs are built.
#[test]
fn damaged_caches() {
    let place = scratch("cache");
    let build = || child("build", &place);
    build();
    assert!(!files(&place).is_empty(), "something is cached");
    type Damage = fn(&Path, Vec<u8>) -> std::io::Result<()>;
    let damages: &[Damage] = &[
        |path, bytes| std::fs::write(path, &bytes[..bytes.len() / 2]),
        |path, _| std::fs::write(path, []),
        |path, mut bytes| {
            if let Some(last) = bytes.last_mut() {
                *last ^= 1;
            }
            std::fs::write(path, bytes)
        },
        |path, mut bytes| {
            bytes.fill(0xff);
            std::fs::write(path, bytes)
        },
        |path, _| {
            std::fs::remove_file(path)?;
            std::fs::create_dir(path)
        },
        #[cfg(unix)]
        |path, bytes| {
            // A link to itself.
            drop(bytes);
            std::fs::remove_file(path)?;
            std::os::unix::fs::symlink(path, path)
        },
    ];
    for damage in damages {
        for file in files(&place) {
            if let Ok(bytes) = std::fs::read(&file) {
                damage(&file, bytes).expect("a damaged file");
            }
        }
        build();
    }
    // A file where the directory should be, and a directory that cannot be.
    let _ = std::fs::remove_dir_all(&*place);
    std::fs::write(&*place, "no directory").expect("a file");
    build();
    let _ = std::fs::remove_file(&*place);
    child("build", Path::new("/proc/no/such/place"));
}

/// Every entry is cut or changed somewhere, again and again, or is another's; what is built of it is right all the same.
fn damage(setup: &Setup, place: &Path) {
    let mut random = Rng::new(20, 0);
    for round in 0..60 {
        build(setup, round % 2);
        let all = files(place);
        assert!(!all.is_empty(), "something is cached");
        for file in &all {
            let mut bytes = std::fs::read(file).expect("an entry");
            let at = random.below(bytes.len().max(1));
            match random.below(4) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, 0),
                2 => {
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte ^= 1 << random.below(8);
                    }
                }
                _ => bytes = std::fs::read(&all[random.below(all.len())]).expect("another"),
            }
            std::fs::write(file, bytes).expect("a damaged entry");
        }
        build(setup, round % 2);
    }
}

#[test]
fn entries_damaged_anywhere() {
    let place = scratch("damaged");
    child(&format!("damage {}", place.display()), &place);
}

/// Puts other bytes into a file that there is: one that has got another name meanwhile must not come back.
fn overwrite(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write;
    let mut open = std::fs::OpenOptions::new();
    open.write(true).truncate(true).open(file)?.write_all(bytes)
}

/// Eight processes fill a cache and use it while entries of it are damaged and removed. Nothing but whole entries is left.
#[test]
fn eight_processes_at_once() {
    let (place, alone) = (scratch("shared"), scratch("alone"));
    child("order 0", &alone);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let vandal = scope.spawn(|| {
            let mut random = Rng::new(7, 0);
            while !over.load(Ordering::Relaxed) {
                let all = files(&place);
                if !all.is_empty() {
                    // It may have gone, or be renamed at the moment.
                    let file = &all[random.below(all.len())];
                    let _ = match random.below(3) {
                        0 => std::fs::remove_file(file),
                        1 => overwrite(file, b"PUMICE"),
                        _ => overwrite(file, b""),
                    };
                }
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        });
        let processes: Vec<_> = (1..=8)
            .map(|seed| {
                let place = &place;
                scope.spawn(move || child(&format!("order {seed}"), place))
            })
            .collect();
        let ends: Vec<_> = processes.into_iter().map(|one| one.join()).collect();
        over.store(true, Ordering::Relaxed);
        vandal.join().expect("the one who damages");
        assert!(ends.iter().all(Result::is_ok), "a process failed");
    });
    child("order 9", &place);
    let names = |place: &Path| {
        let mut names: Vec<_> = files(place)
            .iter()
            .map(|file| file.file_name().map(|name| name.to_owned()))
            .collect();
        names.sort();
        names
    };
    // With the entries of the driver's own cache, of which there is one.
    assert_eq!(names(&place), names(&alone));
}
