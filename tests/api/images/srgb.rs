//! Writes to images of sRGB formats (cl_khr_srgb_image_writes).

use super::*;

const KERNELS: &str = "
    #ifdef cl_khr_srgb_image_writes
    kernel void plane(write_only image2d_t to, global const float4 *from) {
        int2 at = (int2)(get_global_id(0), get_global_id(1));
        write_imagef(to, at, from[at.x + 16 * at.y]);
    }
    kernel void volume(write_only image3d_t to, global const float4 *from) {
        int4 at = (int4)(get_global_id(0), get_global_id(1), 1, 0);
        write_imagef(to, at, from[at.x + 16 * at.y]);
    }
    kernel void back(read_only image2d_t from, global float4 *to) {
        int2 at = (int2)(get_global_id(0), get_global_id(1));
        to[at.x + 16 * at.y] = read_imagef(from, at);
    }
    #endif";

/// The linear value of a byte, by the formula of the specification.
fn linear(byte: u8) -> f32 {
    let c = f64::from(byte) / 255.0;
    let linear = match c <= 0.04045 {
        true => c / 12.92,
        false => ((c + 0.055) / 1.055).powf(2.4),
    };
    linear as f32
}

#[test]
fn colours_are_converted_and_alpha_is_not() {
    let setup = Setup::new();
    if !setup.has_extension("cl_khr_srgb_image_writes") {
        return pumice_tests::left_out("no writes to sRGB images");
    }
    let program = setup.build(KERNELS);
    // Every byte in red, green and alpha, and values that are none of them.
    let odd = [-1.0, 2.0, f32::NAN, 0.0031, 0.5, 1e-9, f32::INFINITY, -0.0];
    let odd_bytes = [0u8, 255, 0, 10, 188, 0, 255, 0];
    let pixels: Vec<[f32; 4]> = (0..=255u8)
        .map(|n| {
            let blue = odd[usize::from(n) % 8];
            [linear(n), linear(255 - n), blue, f32::from(n) / 255.0]
        })
        .collect();
    let expected: Vec<[u8; 4]> = (0..=255u8)
        .map(|n| [n, 255 - n, odd_bytes[usize::from(n) % 8], n])
        .collect();
    let from = setup.buffer_of(&pixels);
    for order in [CL_sRGBA, CL_sBGRA] {
        let format = cl_image_format {
            image_channel_order: order,
            image_channel_data_type: CL_UNORM_INT8,
        };
        let mut expected = expected.clone();
        if order == CL_sBGRA {
            expected.iter_mut().for_each(|pixel| pixel.swap(0, 2));
        }
        for (name, kind, depth) in [
            ("plane", CL_MEM_OBJECT_IMAGE2D, 0),
            ("volume", CL_MEM_OBJECT_IMAGE3D, 2),
        ] {
            let shape = desc(kind, [16, 16, depth]);
            let to = image(&setup, CL_MEM_READ_WRITE, &format, &shape, null_mut());
            let kernel = setup.kernel(&program, name);
            kernel.set_buffer(0, &to).set_buffer(1, &from);
            setup.run(&kernel, &[16, 16], None);
            let origin = [0, 0, depth / 2];
            let bytes = read(&setup, &to, origin, [16, 16, 1], (0, 0), 16 * 16 * 4);
            assert_eq!(bytes, expected.concat(), "{name} {order:#x}");
            if name == "plane" {
                let seen = setup.buffer(256 * 16);
                let back = setup.kernel(&program, "back");
                back.set_buffer(0, &to).set_buffer(1, &seen);
                setup.run(&back, &[16, 16], None);
                let seen = setup.read::<[f32; 4]>(&seen, 256);
                assert!(seen
                    .iter()
                    .zip(&pixels)
                    .all(|(a, b)| a[0] == b[0] && a[1] == b[1]));
            }
        }
    }
}
