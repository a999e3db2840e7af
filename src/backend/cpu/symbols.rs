//! Functions that the code of kernels may call: none but these are known to the loader.

use super::{half, texel};

extern "C" {
    fn memcpy(to: *mut u8, from: *const u8, size: usize) -> *mut u8;
    fn memmove(to: *mut u8, from: *const u8, size: usize) -> *mut u8;
    fn memset(to: *mut u8, value: i32, size: usize) -> *mut u8;
    fn fmod(a: f64, b: f64) -> f64;
    fn fmodf(a: f32, b: f32) -> f32;
    fn fma(a: f64, b: f64, c: f64) -> f64;
    fn fmaf(a: f32, b: f32, c: f32) -> f32;
    fn pow(a: f64, b: f64) -> f64;
    fn powf(a: f32, b: f32) -> f32;
    fn fmin(a: f64, b: f64) -> f64;
    fn fmax(a: f64, b: f64) -> f64;
    fn fminf(a: f32, b: f32) -> f32;
    fn fmaxf(a: f32, b: f32) -> f32;
}

macro_rules! of_one {
    ($($name:ident)*) => {
        extern "C" { $(fn $name(x: f64) -> f64;)* }
        /// Addresses of functions of one double.
        fn doubles(wanted: &str) -> Option<usize> {
            match wanted {
                $(stringify!($name) => Some($name as *const () as usize),)*
                _ => None,
            }
        }
    };
}

macro_rules! of_one_float {
    ($($name:ident)*) => {
        extern "C" { $(fn $name(x: f32) -> f32;)* }
        /// Addresses of functions of one float.
        fn floats(wanted: &str) -> Option<usize> {
            match wanted {
                $(stringify!($name) => Some($name as *const () as usize),)*
                _ => None,
            }
        }
    };
}

of_one!(sin cos exp2 log2 sqrt floor ceil trunc rint nearbyint roundeven round);
of_one_float!(sinf cosf exp2f log2f sqrtf floorf ceilf truncf rintf nearbyintf roundevenf roundf);

/// The address of a function that code may call.
pub fn address(name: &str) -> Option<usize> {
    let found = match name {
        "memcpy" => memcpy as *const (),
        "memmove" => memmove as *const (),
        "memset" => memset as *const (),
        "fmod" => fmod as *const (),
        "fmodf" => fmodf as *const (),
        "fma" => fma as *const (),
        "fmaf" => fmaf as *const (),
        "fmin" => fmin as *const (),
        "fmax" => fmax as *const (),
        "fminf" => fminf as *const (),
        "fmaxf" => fmaxf as *const (),
        "pow" => pow as *const (),
        "powf" => powf as *const (),
        "__truncdfhf2" => half::half_of_double as *const (),
        "__truncsfhf2" | "__gnu_f2h_ieee" => half::half_of_float as *const (),
        "__extendhfsf2" | "__gnu_h2f_ieee" => half::float_of_half as *const (),
        "__extendhfdf2" => half::double_of_half as *const (),
        "pumice_texel_load" => texel::pumice_texel_load as *const (),
        "pumice_texel_store" => texel::pumice_texel_store as *const (),
        _ => return doubles(name).or_else(|| floats(name)),
    };
    Some(found as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_these_are_known() {
        assert!(address("memcpy").is_some() && address("sinf").is_some());
        assert!(address("system").is_none());
    }
}
