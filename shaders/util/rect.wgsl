// Copies a box of rows and slices between buffers, in units of 4 bytes: x along a row, y rows, z slices.

struct Args {
    // First unit of source and target.
    src: u32,
    dst: u32,
    // Units a row, rows a slice.
    width: u32,
    rows: u32,
    // Pitches in units.
    src_row: u32,
    src_slice: u32,
    dst_row: u32,
    dst_slice: u32,
}

var<immediate> args: Args;

@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> target_: array<u32>;

@compute @workgroup_size(64, 4)
fn rect4(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < args.width && id.y < args.rows {
        let begin = args.src + id.z * args.src_slice + id.y * args.src_row + id.x;
        let to = args.dst + id.z * args.dst_slice + id.y * args.dst_row + id.x;
        target_[to] = source[begin];
    }
}
