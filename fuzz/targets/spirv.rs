//! SPIR-V from applications to Vulkan's SPIR-V and to what processors run: whatever the module says, it is refused or what
//! comes out of it is valid. Modules are changed instruction by instruction, as few changed bytes would be read at all.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use pumice_runtime::compile::check::{checked, validate_vulkan};
use spirv_lowering::target::Target;
use spirv_lowering::{Options, Program, ReadOptions};

const MAGIC: u32 = 0x0723_0203;
const HEADER: usize = 5;

fn words(data: &[u8]) -> Vec<u32> {
    data.chunks_exact(4)
        .map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]))
        .collect()
}

/// Where instructions begin, and the end of the last whole one.
fn starts(words: &[u32]) -> Vec<usize> {
    let mut found = vec![HEADER];
    let mut at = HEADER;
    while at < words.len() {
        let len = (words[at] >> 16) as usize;
        if len == 0 || at + len > words.len() {
            break;
        }
        at += len;
        found.push(at);
    }
    found
}

/// A generator of numbers, the same for the same seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(0x1234_5679);
        (self.0 >> 33) as usize % n.max(1)
    }
}

/// Another module, different in an instruction or an operand.
fn changed(mut module: Vec<u32>, numbers: &mut Numbers, most: usize) -> Vec<u32> {
    let starts = starts(&module);
    let count = starts.len() - 1;
    if count == 0 {
        return module;
    }
    let pick = numbers.below(count);
    let (start, end) = (starts[pick], starts[pick + 1]);
    let other = numbers.below(count);
    let (from, to) = (starts[other], starts[other + 1]);
    match numbers.below(8) {
        // An operand becomes one from elsewhere.
        0 | 1 if end - start > 1 && to - from > 1 => {
            let place = start + 1 + numbers.below(end - start - 1);
            module[place] = module[from + 1 + numbers.below(to - from - 1)];
        }
        // Or a small number, or one more, or one bit of it changes.
        2 | 3 if end - start > 1 => {
            let place = start + 1 + numbers.below(end - start - 1);
            module[place] = match numbers.below(4) {
                0 => numbers.below(64) as u32,
                1 => module[place].wrapping_add(1),
                2 => module[place].wrapping_sub(1),
                _ => module[place] ^ 1 << numbers.below(32),
            };
        }
        // Another operation with the operands.
        4 => module[start] = module[start] & 0xffff_0000 | module[from] & 0xffff,
        // An instruction less, one twice, two exchanged.
        5 => {
            module.drain(start..end);
        }
        6 if module.len() + (end - start) <= most => {
            let copy = module[start..end].to_vec();
            module.splice(from..from, copy);
        }
        7 if start < from => {
            let (a, b) = (module[start..end].to_vec(), module[from..to].to_vec());
            module.splice(from..to, a);
            module.splice(start..end, b);
        }
        _ => {}
    }
    module
}

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let module = words(&data[..size]);
    if seed % 16 == 0 || module.len() <= HEADER || module[0] != MAGIC {
        return fuzzer_mutate(data, size, max_size);
    }
    let mut numbers = Numbers(u64::from(seed) << 20 | 1);
    let mut module = module;
    for _ in 0..1 + numbers.below(4) {
        module = changed(module, &mut numbers, max_size / 4);
    }
    let bytes: Vec<u8> = module.iter().flat_map(|w| w.to_le_bytes()).collect();
    let len = bytes.len().min(max_size);
    data[..len].copy_from_slice(&bytes[..len]);
    len
});

fuzz_target!(|data: &[u8]| {
    let Ok(module) = checked(&words(data)) else {
        return;
    };
    let Ok(program) = Program::read(&module, &ReadOptions::default()) else {
        return;
    };
    for kernel in program.kernels() {
        for target in [Target::full(), Target::lavapipe(), Target::processor(16)] {
            let mut options = Options {
                verify: true,
                ..Default::default()
            };
            let Ok(lowered) = program.lower(&kernel.name, &target, &mut options) else {
                continue;
            };
            if !target.native {
                if let Err(error) = validate_vulkan(&lowered.words) {
                    panic!("{}: {error}", kernel.name);
                }
            }
        }
    }
});
