use spirv_lowering::{ir, link, read};
use std::time::Instant;
fn words(path: &str) -> Vec<u32> {
    std::fs::read(path).unwrap().chunks_exact(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect()
}
fn main() {
    let mut print = false;
    let mut lib = None;
    let (mut ok, mut bad) = (0, 0);
    for path in std::env::args().skip(1) {
        if path == "-p" { print = true; continue; }
        if path == "-l" {
            let w = words("/usr/lib/clc/spirv64-mesa3d-.spv");
            let t = Instant::now();
            lib = Some(read::Library::new(w).unwrap());
            println!("library {:?}", t.elapsed());
            continue;
        }
        let w = words(&path);
        let t = Instant::now();
        match read::read_module(&w, &Default::default()) {
            Ok(mut m) => {
                let t1 = t.elapsed();
                let t = Instant::now();
                if let Some(l) = &lib { if let Err(e) = link::resolve(&mut m, &[l]) { println!("{path}: LINK {e}"); } }
                let t2 = t.elapsed();
                if print { println!("{m}"); }
                let missing: Vec<_> = m.functions.values().filter(|f| f.layout.is_empty()).map(|f| f.name.clone()).collect();
                let errs = match ir::verify::verify_module(&m) { Ok(()) => String::new(), Err(e) => format!("{e:?}") };
                println!("{path}: {} words read {t1:?} link {t2:?} kernels {} missing {missing:?} {}", w.len(), m.kernels.len(), errs.chars().take(1500).collect::<String>());
                ok += 1;
            }
            Err(e) => { println!("{path}: {e}"); bad += 1; }
        }
    }
    println!("{ok} ok {bad} bad");
}
