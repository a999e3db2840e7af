//! Modules that are cut off or damaged, and those that would take much room.

use super::*;

#[test]
fn truncation() {
    for text in [LOOP, OPS, EXT, ENQUEUE] {
        let words = assemble(text);
        for end in 0..words.len() {
            let _ = read_module(&words[..end], &ReadOptions::default());
        }
    }
}

#[test]
fn damage() {
    let modules: Vec<Vec<u32>> = [LOOP, OPS, EXT, ENQUEUE]
        .iter()
        .map(|t| assemble(t))
        .collect();
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut random = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % limit.max(1) as u64) as usize
    };
    let start = Instant::now();
    let mut longest = Duration::ZERO;
    while start.elapsed() < Duration::from_secs(6) {
        let mut words = modules[random(modules.len())].clone();
        let bound = words[3] as usize;
        for _ in 0..1 + random(4) {
            let at = 3 + random(words.len() - 3);
            words[at] = match random(6) {
                0 => random(usize::MAX) as u32,
                1 => random(bound) as u32,
                2 => words[at] ^ 1 << random(32),
                3 => words[at] & 0xffff_0000 | random(500) as u32,
                4 => words[random(words.len())],
                _ => [0, 1, u32::MAX, 0x8000_0000][random(4)],
            };
        }
        let begin = Instant::now();
        if let Ok(module) = read_module(&words, &ReadOptions::default()) {
            let _ = verify_module(&module);
        }
        longest = longest.max(begin.elapsed());
    }
    assert!(longest < Duration::from_secs(2), "{longest:?}");
}

#[test]
fn nesting_and_sizes() {
    let header = "OpCapability Addresses\nOpCapability Kernel\nOpCapability Linkage\nOpMemoryModel Physical64 OpenCL
        %u32 = OpTypeInt 32 0\n%big = OpConstant %u32 4000000000\n";
    // Arrays of arrays, each of the largest length.
    let mut text = header.to_owned();
    text.push_str("%t0 = OpTypeArray %u32 %big\n");
    for i in 1..300 {
        text.push_str(&format!("%t{i} = OpTypeArray %t{} %big\n", i - 1));
    }
    assert!(read_error(&text).contains("nested"));
    // A constant whose parts are shared doubles at each level: only its size may count.
    let mut text = header.to_owned();
    text.push_str("%two = OpConstant %u32 2\n%p = OpTypePointer CrossWorkgroup %t60\n%t0 = OpTypeArray %u32 %two\n");
    text.push_str("%v0 = OpConstantComposite %t0 %two %two\n");
    for i in 1..=60 {
        let j = i - 1;
        text.push_str(&format!(
            "%t{i} = OpTypeArray %t{j} %two\n%v{i} = OpConstantComposite %t{i} %v{j} %v{j}\n"
        ));
    }
    text.push_str("%g = OpVariable %p CrossWorkgroup %v60\n");
    assert!(read_error(&text).contains("bytes"));
}
