// Fills a buffer with a pattern of 16, 32, 64 or 128 bytes, in units of 16 bytes.

struct Args {
    // First unit of the pattern in its buffer.
    pattern: u32,
    // First unit to write.
    dst: u32,
    // Units to write.
    count: u32,
    // Units of the pattern, less one (a power of two, less one).
    mask: u32,
}

var<immediate> args: Args;

@group(0) @binding(0) var<storage, read> pattern: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> target_: array<vec4<u32>>;

@compute @workgroup_size(256)
fn fill16(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    // 1024 is a multiple of every pattern, and so is 256: one load serves all four stores.
    let first = group.x * 1024u + lane;
    let value = pattern[args.pattern + (lane & args.mask)];
    for (var k = 0u; k < 1024u; k += 256u) {
        let at = first + k;
        if at < args.count {
            target_[args.dst + at] = value;
        }
    }
}
