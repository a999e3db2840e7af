//! Minimal forms of what programs in use need: a failure here is a program that breaks.

use pumice_tests::Setup;

/// OpenCL C lets a scalar be the exponent of a vector, which the compilers hand on as it stands.
#[test]
fn vectors_scaled_by_a_scalar() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(
        "kernel void f(global float4 *v, int exponent) { v[0] = ldexp(v[0], exponent); }",
        "f",
    );
    let buffer = setup.buffer_of(&[1.0f32, -2.0, 0.5, 3.0]);
    kernel.set_buffer(0, &buffer).set(1, 3i32);
    setup.run(&kernel, &[1], None);
    assert_eq!(setup.read::<f32>(&buffer, 4), [8.0, -16.0, 4.0, 24.0]);
}

/// Functions that are `inline` as C99 has it have a definition for the calls that the compiler leaves.
#[test]
fn inline_functions_that_are_called() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(
        "__attribute__((noinline)) inline int twice(int x) { return x * 2; }
         kernel void f(global int *v) { v[0] = twice(v[0]) + twice(v[1]); }",
        "f",
    );
    let buffer = setup.buffer_of(&[5, 7]);
    kernel.set_buffer(0, &buffer);
    setup.run(&kernel, &[1], None);
    assert_eq!(setup.read::<i32>(&buffer, 2), [24, 7]);
}

/// Files that were written on Windows begin with a byte order mark.
#[test]
fn sources_with_a_byte_order_mark() {
    let setup = Setup::new();
    let kernel = setup.kernel_of("\u{feff}kernel void f(global int *v) { v[0] += 1; }", "f");
    let buffer = setup.buffer_of(&[41]);
    kernel.set_buffer(0, &buffer);
    setup.run(&kernel, &[1], None);
    assert_eq!(setup.read::<i32>(&buffer, 1), [42]);
}

/// A hash over parts of a message (John the Ripper's HMAC-SHA256, with a simpler hash).
const PARTS: &str = "typedef struct { uint total; uint state[8]; uchar buffer[64]; } hash;
    inline void copy(void *restrict to, const void *restrict from, uint size) {
        const char *s = from;
        char *d = to;
        while (size--) *d++ = *s++;
    }
    __attribute__((noinline)) void block(hash *h, const uchar *data) {
        for (int i = 0; i < 64; i++) h->state[i & 7] = h->state[i & 7] * 31 + data[i];
    }
    inline void update(hash *h, const uchar *input, uint size) {
        if (size <= 0) return;
        uint left = h->total & 63, fill = 64 - left;
        h->total += size;
        if (left && size >= fill) {
            copy(h->buffer + left, input, fill);
            block(h, h->buffer);
            input += fill;
            size -= fill;
            left = 0;
        }
        while (size >= 64) {
            block(h, input);
            input += 64;
            size -= 64;
        }
        if (size > 0) copy(h->buffer + left, input, size);
    }
    inline void finish(uchar *output, hash *h) {
        uchar length[8], pad[64] = { 0x80 };
        ulong bits = h->total << 3;
        for (int i = 0; i < 8; i++) length[i] = bits >> (56 - 8 * i);
        uint last = h->total & 63;
        update(h, pad, last < 56 ? 56 - last : 120 - last);
        update(h, length, 8);
        for (int i = 0; i < 32; i++) output[i] = h->state[i >> 2] >> ((i & 3) * 8);
    }
    inline void hash_of(uint count, const uchar *parts[], const uint *sizes, uchar *output) {
        hash h;
        h.total = 0;
        for (uint i = 0; i < 8; i++) h.state[i] = i;
        for (uint i = 0; i < count; i++) update(&h, parts[i], sizes[i]);
        finish(output, &h);
    }
    inline void keyed(const uchar *key, uint length, uint count, const uchar *parts[], const uint *sizes, uchar *output) {
        uchar pad[64];
        const uchar *all[5];
        uint all_sizes[5], i;
        for (i = 0; i < length; i++) pad[i] = key[i] ^ 0x36;
        for (; i < 64; i++) pad[i] = 0x36;
        all[0] = pad;
        all_sizes[0] = 64;
        for (i = 0; i < count; i++) {
            all[i + 1] = parts[i];
            all_sizes[i + 1] = sizes[i];
        }
        hash_of(1 + count, all, all_sizes, output);
        for (i = 0; i < length; i++) pad[i] = key[i] ^ 0x5c;
        for (; i < 64; i++) pad[i] = 0x5c;
        all[0] = pad;
        all_sizes[0] = 64;
        all[1] = output;
        all_sizes[1] = 32;
        hash_of(2, all, all_sizes, output);
    }
    kernel void f(global uint *in, global uchar *out) {
        uint key[8];
        uchar result[32], x[5], y[3];
        const uchar *parts[2];
        uint sizes[2];
        for (int i = 0; i < 8; i++) key[i] = in[i];
        for (int i = 0; i < 5; i++) x[i] = in[i];
        for (int i = 0; i < 3; i++) y[i] = in[i + 4];
        parts[0] = x;
        parts[1] = y;
        sizes[0] = 5;
        sizes[1] = 3;
        keyed((uchar *)key, 32, 2, parts, sizes, result);
        for (int i = 0; i < 32; i++) out[i] = result[i];
    }";

/// Returns the hashes that [`PARTS`] makes of whole messages.
fn hash_of(message: &[u8]) -> [u8; 32] {
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((8 * message.len() as u64).to_be_bytes());
    let mut state: [u32; 8] = std::array::from_fn(|i| i as u32);
    for (i, &byte) in padded.iter().enumerate() {
        let word = &mut state[i & 7];
        *word = word.wrapping_mul(31).wrapping_add(byte.into());
    }
    let mut output = [0; 32];
    for (bytes, word) in output.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    output
}

/// LLVM's SPIR-V target declares the array `all` of that hash as one pointer.
#[test]
fn lists_of_private_pointers() {
    let setup = Setup::new();
    let key: [u32; 8] = std::array::from_fn(|i| (i as u32).wrapping_mul(77_777_777) + 5);
    let padded = |with: u8| {
        let mut pad = [with; 64];
        let bytes = key.iter().flat_map(|word| word.to_le_bytes());
        pad.iter_mut()
            .zip(bytes)
            .for_each(|(pad, byte)| *pad ^= byte);
        pad
    };
    let mut inner = padded(0x36).to_vec();
    inner.extend(key[..5].iter().chain(&key[4..7]).map(|&word| word as u8));
    let mut outer = padded(0x5c).to_vec();
    outer.extend(hash_of(&inner));
    for options in ["", "-cl-opt-disable"] {
        let program = setup.try_build(PARTS, options).expect("it builds");
        let kernel = setup.kernel(&program, "f");
        let (input, output) = (setup.buffer_of(&key), setup.buffer(32));
        kernel.set_buffer(0, &input).set_buffer(1, &output);
        setup.run(&kernel, &[1], None);
        assert_eq!(setup.read::<u8>(&output, 32), hash_of(&outer), "{options}");
    }
}

/// An array of words that is written as one of shorts, in ways that C's rules of aliasing leave undefined, and that other
/// drivers do as they stand (John the Ripper's `PUTSHORT`).
#[test]
fn words_written_as_shorts() {
    let setup = Setup::new();
    let source = "#define PUT(words, index, value) ((ushort *)(words))[index] = (value)
        kernel void f(global const ushort *in, global uint *out, uint count) {
            uint words[16];
            for (uint i = 0; i < count; i++) {
                words[i] = in[2 * i];
                words[i] |= (uint)in[2 * i + 1] << 16;
            }
            PUT(words, count, 0x80);
            for (uint i = count + 1; i < 28; i++) PUT(words, i, 0);
            words[14] = count << 4;
            words[15] = 0;
            uint sum = 0;
            for (int i = 0; i < 16; i++) {
                sum = rotate(sum, 5u) ^ words[i];
                out[i] = words[i];
            }
            out[16] = sum;
        }";
    let input: [u16; 16] = std::array::from_fn(|i| 1000 + 77 * i as u16);
    for options in ["", "-cl-opt-disable"] {
        let program = setup.try_build(source, options).expect("it builds");
        let kernel = setup.kernel(&program, "f");
        for count in 1..8u32 {
            let mut shorts = [0u16; 32];
            shorts[..count as usize].copy_from_slice(&input[..count as usize]);
            shorts[count as usize] = 0x80;
            shorts[28] = (count << 4) as u16;
            let mut expected: Vec<u32> = shorts
                .chunks_exact(2)
                .map(|pair| u32::from(pair[0]) | u32::from(pair[1]) << 16)
                .collect();
            let sum = expected
                .iter()
                .fold(0u32, |sum, word| sum.rotate_left(5) ^ word);
            expected.push(sum);
            let (from, to) = (setup.buffer_of(&input), setup.buffer(68));
            kernel.set_buffer(0, &from).set_buffer(1, &to).set(2, count);
            setup.run(&kernel, &[1], None);
            assert_eq!(setup.read::<u32>(&to, 17), expected, "{count} {options}");
        }
    }
}

/// Private copies of structures and bytes that lie less aligned in global memory than the compiler makes the copy (John
/// the Ripper's phpass and pgpwde): GPUs trap on accesses at addresses that are no multiple of their size.
#[test]
fn copies_of_less_aligned_memory() {
    let setup = Setup::new();
    let source = "typedef struct { uint v[10]; uint length; } password;
        kernel void rows(global const password *in, global uint *out) {
            uint i = get_global_id(0);
            password mine __attribute__((aligned(8))) = in[i];
            mine.v[mine.length / 4] |= (uint)0x80 << ((mine.length & 3) << 3);
            uint sum = 0;
            for (uint j = 0; j < 10; j++) sum = rotate(sum, 5u) ^ mine.v[j];
            out[i] = sum;
        }
        kernel void bytes(global const uchar *in, global uint *out) {
            uint words[32] = { 0 }, i = get_global_id(0);
            __builtin_memcpy(words, in + i * 129 + 1, 127);
            words[in[i * 129] & 31] ^= 0x5a;
            uint sum = 0;
            for (uint j = 0; j < 32; j++) sum = rotate(sum, 5u) ^ words[j];
            out[i] = sum;
        }";
    const ITEMS: usize = 32;
    let fold = |words: &[u32]| {
        words
            .iter()
            .fold(0u32, |sum, word| sum.rotate_left(5) ^ word)
    };
    let rows: Vec<u32> = (0..ITEMS as u32 * 11)
        .map(|i| match i % 11 {
            10 => i % 37,
            _ => i.wrapping_mul(0x9e37_79b9),
        })
        .collect();
    let sums_of_rows: Vec<u32> = rows
        .chunks_exact(11)
        .map(|row| {
            let length = row[10];
            let mut x: [u32; 10] = std::array::from_fn(|i| row[i]);
            x[length as usize / 4] |= 0x80 << ((length & 3) << 3);
            fold(&x)
        })
        .collect();
    let bytes: Vec<u8> = (0..ITEMS * 129).map(|i| (i * 7 + i / 129) as u8).collect();
    let sums_of_bytes: Vec<u32> = bytes
        .chunks_exact(129)
        .map(|row| {
            let mut padded = [0; 128];
            padded[..127].copy_from_slice(&row[1..128]);
            let word = |b: &[u8]| b.iter().rev().fold(0, |w, &b| w << 8 | u32::from(b));
            let mut words: Vec<u32> = padded.chunks_exact(4).map(word).collect();
            words[usize::from(row[0]) & 31] ^= 0x5a;
            fold(&words)
        })
        .collect();
    let (rows, bytes) = (setup.buffer_of(&rows), setup.buffer_of(&bytes));
    let to = setup.buffer(ITEMS * 4);
    for options in ["", "-cl-opt-disable"] {
        let program = setup.try_build(source, options).expect("it builds");
        for (name, from, expected) in [
            ("rows", &rows, &sums_of_rows),
            ("bytes", &bytes, &sums_of_bytes),
        ] {
            let kernel = setup.kernel(&program, name);
            kernel.set_buffer(0, from).set_buffer(1, &to);
            setup.run(&kernel, &[ITEMS], Some(&[ITEMS]));
            assert_eq!(&setup.read::<u32>(&to, ITEMS), expected, "{name} {options}");
        }
    }
}

/// Writes past the end of a private array (John the Ripper's krb5tgs and gpg). Such programs are wrong, and work where a
/// compiler lays out a stack with something harmless behind; they end here, and what they keep elsewhere stands.
#[test]
fn writes_past_private_arrays() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(
        "kernel void past(global const uint *in, uint n, global uint *out) {
            uint before[16], array[16], after[16], i = get_global_id(0);
            for (uint j = 0; j < 16; j++) before[j] = in[j] ^ 1, after[j] = in[j] ^ 2;
            for (uint j = 0; j < n; j++) array[j] = in[(j + i) & 31];
            for (uint j = 0; j < 16; j++) {
                uint at = in[32 + j] & 15;
                out[i * 48 + j] = before[at];
                out[i * 48 + 16 + j] = array[at];
                out[i * 48 + 32 + j] = after[at];
            }
        }",
        "past",
    );
    const ITEMS: usize = 8;
    let words: Vec<u32> = (0..48u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
    let at = |j: usize| words[32 + j] as usize & 15;
    let mut expected = Vec::new();
    for i in 0..ITEMS {
        expected.extend((0..16).map(|j| words[at(j)] ^ 1));
        expected.extend((0..16).map(|j| words[(at(j) + i) & 31]));
        expected.extend((0..16).map(|j| words[at(j)] ^ 2));
    }
    let (from, to) = (setup.buffer_of(&words), setup.buffer(ITEMS * 48 * 4));
    for n in [16u32, 17, 27, 32] {
        kernel.set_buffer(0, &from).set(1, n).set_buffer(2, &to);
        setup.run(&kernel, &[ITEMS], Some(&[ITEMS]));
        assert_eq!(setup.read::<u32>(&to, ITEMS * 48), expected, "{n} elements");
    }
}
