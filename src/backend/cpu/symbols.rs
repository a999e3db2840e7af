//! Functions that the code of kernels may call: none but these are known to the loader.

use super::{half, texel};

/// The C library's own, where it has the calling convention of kernels.
#[cfg(not(windows))]
mod c {
    extern "C" {
        pub fn memcpy(to: *mut u8, from: *const u8, size: usize) -> *mut u8;
        pub fn memmove(to: *mut u8, from: *const u8, size: usize) -> *mut u8;
        pub fn memset(to: *mut u8, value: i32, size: usize) -> *mut u8;
        pub fn fmod(a: f64, b: f64) -> f64;
        pub fn fmodf(a: f32, b: f32) -> f32;
        pub fn fma(a: f64, b: f64, c: f64) -> f64;
        pub fn fmaf(a: f32, b: f32, c: f32) -> f32;
        pub fn pow(a: f64, b: f64) -> f64;
        pub fn powf(a: f32, b: f32) -> f32;
        pub fn fmin(a: f64, b: f64) -> f64;
        pub fn fmax(a: f64, b: f64) -> f64;
        pub fn fminf(a: f32, b: f32) -> f32;
        pub fn fmaxf(a: f32, b: f32) -> f32;
    }

    macro_rules! of_one {
        ($of:ident $type:ident: $($name:ident)*) => {
            extern "C" { $(fn $name(x: $type) -> $type;)* }
            /// Addresses of functions of one number.
            pub fn $of(wanted: &str) -> Option<usize> {
                match wanted {
                    $(stringify!($name) => Some($name as *const () as usize),)*
                    _ => None,
                }
            }
        };
    }

    of_one!(doubles f64: sin cos exp2 log2 sqrt floor ceil trunc rint nearbyint roundeven round);
    of_one!(floats f32: sinf cosf exp2f log2f sqrtf floorf ceilf truncf rintf nearbyintf roundevenf roundf);
}

/// The same functions with the calling convention of kernels.
#[cfg(windows)]
mod c {
    use super::super::abi::for_kernels;
    use spirv_lowering::fused::Fused;

    for_kernels! {
        pub unsafe fn memcpy(to: *mut u8, from: *const u8, size: usize) -> *mut u8 {
            // SAFETY: the kernel's code vouches for both ranges.
            unsafe { std::ptr::copy_nonoverlapping(from, to, size) };
            to
        }
    }
    for_kernels! {
        pub unsafe fn memmove(to: *mut u8, from: *const u8, size: usize) -> *mut u8 {
            // SAFETY: the kernel's code vouches for both ranges.
            unsafe { std::ptr::copy(from, to, size) };
            to
        }
    }
    for_kernels! {
        pub unsafe fn memset(to: *mut u8, value: i32, size: usize) -> *mut u8 {
            // SAFETY: the kernel's code vouches for the range.
            unsafe { std::ptr::write_bytes(to, value as u8, size) };
            to
        }
    }

    macro_rules! of_numbers {
        ($type:ident: $($name:ident($($arg:ident),*) $value:expr;)*) => { $(
            for_kernels! {
                pub fn $name($($arg: $type),*) -> $type { $value }
            }
        )* };
    }
    of_numbers! { f64:
        fmod(a, b) a % b;
        fma(a, b, c) a.fused(b, c);
        pow(a, b) a.powf(b);
        fmin(a, b) a.min(b);
        fmax(a, b) a.max(b);
    }
    of_numbers! { f32:
        fmodf(a, b) a % b;
        fmaf(a, b, c) a.fused(b, c);
        powf(a, b) a.powf(b);
        fminf(a, b) a.min(b);
        fmaxf(a, b) a.max(b);
    }

    macro_rules! of_one {
        ($of:ident $type:ident: $($name:ident $method:ident;)*) => {
            /// Addresses of functions of one number.
            pub fn $of(wanted: &str) -> Option<usize> {
                $(for_kernels! {
                    fn $name(x: $type) -> $type { x.$method() }
                })*
                match wanted {
                    $(stringify!($name) => Some($name as *const () as usize),)*
                    _ => None,
                }
            }
        };
    }
    of_one! { doubles f64:
        sin sin; cos cos; exp2 exp2; log2 log2; sqrt sqrt; floor floor; ceil ceil; trunc trunc; round round;
        rint round_ties_even; nearbyint round_ties_even; roundeven round_ties_even;
    }
    of_one! { floats f32:
        sinf sin; cosf cos; exp2f exp2; log2f log2; sqrtf sqrt; floorf floor; ceilf ceil; truncf trunc; roundf round;
        rintf round_ties_even; nearbyintf round_ties_even; roundevenf round_ties_even;
    }
}

/// Returns the address of a function that code may call.
pub fn address(name: &str) -> Option<usize> {
    let found = match name {
        "memcpy" => c::memcpy as *const (),
        "memmove" => c::memmove as *const (),
        "memset" => c::memset as *const (),
        "fmod" => c::fmod as *const (),
        "fmodf" => c::fmodf as *const (),
        "fma" => c::fma as *const (),
        "fmaf" => c::fmaf as *const (),
        "fmin" => c::fmin as *const (),
        "fmax" => c::fmax as *const (),
        "fminf" => c::fminf as *const (),
        "fmaxf" => c::fmaxf as *const (),
        "pow" => c::pow as *const (),
        "powf" => c::powf as *const (),
        "__truncdfhf2" => half::half_of_double as *const (),
        "__truncsfhf2" | "__gnu_f2h_ieee" => half::half_of_float as *const (),
        "__extendhfsf2" | "__gnu_h2f_ieee" => half::float_of_half as *const (),
        "__extendhfdf2" => half::double_of_half as *const (),
        "pumice_texel_load" => texel::pumice_texel_load as *const (),
        "pumice_texel_store" => texel::pumice_texel_store as *const (),
        _ => return c::doubles(name).or_else(|| c::floats(name)),
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
