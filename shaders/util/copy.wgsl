// Copies between buffers in units of 16 or 4 bytes. A work-group copies a tile of 1024 units; neighbouring invocations
// access neighbouring units.

struct Args {
    // First unit of source and target.
    src: u32,
    dst: u32,
    // Units to copy.
    count: u32,
}

var<immediate> args: Args;

@group(0) @binding(0) var<storage, read> source16: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> target16: array<vec4<u32>>;
@group(0) @binding(0) var<storage, read> source4: array<u32>;
@group(0) @binding(1) var<storage, read_write> target4: array<u32>;

@compute @workgroup_size(256)
fn copy16(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first = group.x * 1024u + lane;
    let begin = args.src + first;
    let to = args.dst + first;
    if group.x * 1024u + 1024u <= args.count {
        // All loads go out before the first store waits.
        let a = source16[begin];
        let b = source16[begin + 256u];
        let c = source16[begin + 512u];
        let d = source16[begin + 768u];
        target16[to] = a;
        target16[to + 256u] = b;
        target16[to + 512u] = c;
        target16[to + 768u] = d;
    } else {
        for (var at = first; at < args.count; at += 256u) {
            target16[args.dst + at] = source16[args.src + at];
        }
    }
}

@compute @workgroup_size(256)
fn copy4(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first = group.x * 1024u + lane;
    let begin = args.src + first;
    let to = args.dst + first;
    if group.x * 1024u + 1024u <= args.count {
        let a = source4[begin];
        let b = source4[begin + 256u];
        let c = source4[begin + 512u];
        let d = source4[begin + 768u];
        target4[to] = a;
        target4[to + 256u] = b;
        target4[to + 512u] = c;
        target4[to + 768u] = d;
    } else {
        for (var at = first; at < args.count; at += 256u) {
            target4[args.dst + at] = source4[args.src + at];
        }
    }
}
