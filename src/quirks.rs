//! The faults and peculiarities of drivers and compilers that nothing else reveals. This is the one
//! place that depends on the vendor.
//!
//! A row of [`table`] is a fault or a peculiarity of some versions of a driver, or of the clang
//! that generates code for processors. Those that shape code go to the compiler as a set
//! ([`Quirks::of_code`]); [`Caps`](crate::backend::Caps) and the back ends ask for theirs
//! ([`Quirks::has`]). `PUMICE_QUIRKS` switches single rows on and off: `-NAME` for a driver
//! that has it, `+NAME` for one that has not. docs/quirks.md is printed from the table, and
//! `ci/quirks` shows for the rows of the devices at hand that their tests fail without them.
//!
//! A fault that can be measured is not here but in [`probe`](crate::backend::vulkan::probe).

mod compilers;

use spirv_lowering::quirks::{CodeQuirk, CodeQuirks};
use std::fmt::Write as _;

/// The rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Quirk {
    /// One that shapes the code of kernels, and is defined in the compiler.
    Code(CodeQuirk),
    LoopResults,
    HostAddresses,
    RowsAreVectors,
    RoundingMode,
    SerialPipelines,
    LateWakeUps,
    SlowCopies,
    LongGroups,
    ShortChannels,
    IndependentSubgroups,
    LostTruncations,
    CutAlignments,
    KnownSizes,
    FiniteNumbers,
    FloatExchanges,
    ConfusedConversions,
    PaddedHalves,
    ConfusedImages,
    NullReservations,
    VariableNan,
    UnknownFunctions,
    MissingInlines,
    Constructors,
    UsedLists,
    DeviceQueues,
    ZeroDivisors,
    LocalTypes,
    LoneVariables,
    LostLines,
    LongArrays,
    WideIntegers,
    ThreadedLoops,
    OddVectors,
    GivesUp,
    ArgumentNames,
    UnsignedHints,
    DebugInformation,
    RepeatedDecorations,
    MergeInstructions,
    SelfConversions,
    IntegerTruths,
    ScalarExponents,
    UncastMembers,
    BlockOrder,
    UnnamedVariables,
    UndeclaredContraction,
    UndeclaredModes,
    AliasHints,
    UntypedPointers,
    FunctionPointers,
    PipeStorage,
}

/// The vendor of a driver or a compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Vendor {
    Llvmpipe,
    /// Another driver of Mesa whose compiler is NIR.
    Nir,
    SwiftShader,
    Nvidia,
    /// LLVM as the compiler of the processor's code.
    Clang,
    /// LLVM's own SPIR-V target, with the clang before it.
    SpirvTarget,
    /// llvm-spirv, with the clang before it.
    Translator,
    /// A compiler whose SPIR-V an application hands on, which one is not known; and the validator
    /// that the module meets.
    Producer,
    /// A vendor without a row.
    Other,
}

/// The versions of a driver that have a quirk.
#[derive(Debug, Clone, Copy)]
pub struct Driver {
    /// The vendor.
    pub vendor: Vendor,
    /// The first version with the quirk; `[0, 0, 0]`: all known ones.
    pub from: [u32; 3],
    /// The first version without the quirk again; `None`: the newest that was examined has it.
    pub fixed: Option<[u32; 3]>,
}

/// A row of the table.
pub struct Row {
    /// The quirk.
    pub quirk: Quirk,
    /// The drivers that have the quirk.
    pub drivers: &'static [Driver],
    /// A further condition on the processor, if any.
    pub only: Option<fn() -> bool>,
    /// The fault, and its workaround.
    pub what: &'static str,
    /// The tests that fail without the workaround: part of their names in tests/api, or a place.
    pub test: &'static str,
    /// Where they were seen to fail.
    pub fails_on: &'static str,
    /// When to look again.
    pub again: &'static str,
}

const fn all(vendor: Vendor) -> Driver {
    Driver {
        vendor,
        from: [0; 3],
        fixed: None,
    }
}

const fn before(vendor: Vendor, fixed: [u32; 3]) -> Driver {
    Driver {
        fixed: Some(fixed),
        ..all(vendor)
    }
}

const LLVMPIPE: &[Driver] = &[all(Vendor::Llvmpipe)];
/// Before a change between Mesa 22.3.6 and 25.0.7.
const OLD_LLVMPIPE: &[Driver] = &[before(Vendor::Llvmpipe, [25, 0, 0])];
/// Before Mesa 24.1.3.
const OLD_NIR: &[Driver] = &[before(Vendor::Nir, [24, 1, 3])];
/// Whichever driver of Mesa.
const NIR: &[Driver] = &[all(Vendor::Llvmpipe), all(Vendor::Nir)];
/// Since a change between Mesa 22.3.6 and 25.0.7.
const NEW_LLVMPIPE: &[Driver] = &[Driver {
    vendor: Vendor::Llvmpipe,
    from: [25, 0, 0],
    fixed: None,
}];
const NVIDIA: &[Driver] = &[all(Vendor::Nvidia)];
const SWIFTSHADER: &[Driver] = &[all(Vendor::SwiftShader)];
const SOFTWARE: &[Driver] = &[all(Vendor::Llvmpipe), all(Vendor::SwiftShader)];

const ALL_CLANG: &[Driver] = &[all(Vendor::Clang)];
const CLANG: &[Driver] = &[before(Vendor::Clang, [23, 0, 0])];

const SPIRV_TARGET: &[Driver] = &[all(Vendor::SpirvTarget)];

/// Where the rows of LLVM's SPIR-V target were seen to fail.
const CLANG_22: &str = "clang 22.1.8";

const MESA_25: &str = "llvmpipe, Mesa 25.0.7";
const NVIDIA_580: &str = "H200, NVIDIA 580.159";

/// The rows of drivers, and of LLVM as the compiler of the processor's code.
static DRIVERS: &[Row] = &[
    Row {
        quirk: Quirk::LoopResults,
        drivers: OLD_LLVMPIPE,
        only: None,
        what: "Work-items that have left a loop run along with those of their vector that go on, and what the loop computes is computed \
               again for them, so that it may be wrong after the loop. The device is not offered.",
        test: "command: the_doctor_finds_what_is_missing",
        fails_on: "llvmpipe, Mesa 22.3.6: five of 2,288 generated kernels; none of the five with \
               25.0.7",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::Code(CodeQuirk::OverwrittenValues),
        drivers: SWIFTSHADER,
        only: None,
        what: "What a loop computes is computed again for work-items that have left it, as long as others of their vector go on. What the \
               code after a loop needs is kept in memory (`overwritten_values`).",
        test: "graphs::what_is_left_of_a_loop",
        fails_on: "SwiftShader of Chromium 156",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::Code(CodeQuirk::SkippedValues),
        drivers: NEW_LLVMPIPE,
        only: None,
        what: "A branch that no work-item takes is skipped, and with it what it computes for the code after its loop, to which the branch \
               leads: the driver makes invalid code of it, and LLVM ends the process. Such loops get another way out \
               (`second_exits`).",
        test: "tests/programs/kept/skipped_values.cl",
        fails_on: MESA_25,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::Code(CodeQuirk::NestedBranches),
        drivers: LLVMPIPE,
        only: None,
        what: "The driver's stack of masks has 80 entries, beyond which it writes: the process ends. Programs with branches or loops that \
               are nested more deeply do not build (`nested_branches`).",
        test: "builds::branches_that_are_nested_deeply",
        fails_on: MESA_25,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::Code(CodeQuirk::MisroundedDoubles),
        drivers: LLVMPIPE,
        only: Some(lacks_avx512),
        what: "Trunc and RoundEven of doubles go by way of single precision where the processor has no AVX-512. They are made of Floor \
               (`misrounded_doubles`).",
        test: "numerics::",
        fails_on: "llvmpipe, Mesa 22.3.6, on a processor without AVX-512",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::Code(CodeQuirk::ConstantZeros),
        drivers: LLVMPIPE,
        only: None,
        what: "`x * 0` and `0 / x` are 0, `x + 0` is x, whatever x is: infinities, NaN and signs of zeros are lost. Constant zeros become \
               opaque (`opaque_zeros`).",
        test: "numerics::constant_zeros",
        fails_on: MESA_25,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::Code(CodeQuirk::ExtendedCompares),
        drivers: OLD_NIR,
        only: None,
        what: "`(long)i < 5`, where the driver finds out that 5 is a constant and Pumice does not, is never true: it is compared in 32 bits \
               if 5 is not below their least number, which is 2^31 there (Mesa's issue 11402). Such comparisons are made unsigned \
               (`unsigned_compares`).",
        test: "loop_bounds::extended_numbers",
        fails_on: "by its sources every driver of Mesa: llvmpipe, Mesa 22.3.6",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::Code(CodeQuirk::DividedTripCounts),
        drivers: NIR,
        only: None,
        what: "A trip count is the distance to the limit divided by the step, where both are constants: one more or less where the \
               induction variable is a float that is rounded on the way (`for (x = 0; x < 3; x += 0.3f)`), far more where it wraps around; the least \
               integer by -1 ends the process. Such steps become opaque (`divided_trip_counts`).",
        test: "loop_bounds::constant_trip_counts",
        fails_on: "llvmpipe, Mesa 25.0.7; by its sources every driver of Mesa",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::Code(CodeQuirk::FencesWait),
        drivers: LLVMPIPE,
        only: Some(orders_by_itself),
        what: "A memory fence makes the work-items of a group wait for one another, and hangs in divergent flow. Fences are left out and \
               atomics have no order: the driver's optimiser moves no atomic access, and a processor of this architecture orders them by \
               itself.",
        test: "collectives::sub_group_barriers_and_local_memory",
        fails_on: MESA_25,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::Code(CodeQuirk::LongWords),
        drivers: LLVMPIPE,
        only: None,
        what: "Memory is accessed a component at a time, each a loop over the lanes, so that one access of 64 bits is better than two of \
               32.",
        test: "ci/bench: triad, float",
        fails_on: "slower on llvmpipe, Mesa 22.3.6",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::HostAddresses,
        drivers: SOFTWARE,
        only: None,
        what: "No fault: device addresses are those of the host, so that all memory of the host is \
               shared.",
        test: "svm::the_largest_allocation",
        fails_on: MESA_25,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::RowsAreVectors,
        drivers: SOFTWARE,
        only: None,
        what: "No fault: vectors are filled from rows of a work-group, so that short rows leave lanes empty, and tests for the end of the \
               ND-range make code slower and longer.",
        test: "ci/bench: triad, float",
        fails_on: "slower on llvmpipe, Mesa 22.3.6",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::Code(CodeQuirk::NegatedBounds),
        drivers: NVIDIA,
        only: None,
        what: "`for (i = n; i > -n; i -= 2)` ends after five or six iterations. Comparisons with negations are made unsigned \
               (`unsigned_compares`).",
        test: "loop_bounds::",
        fails_on: NVIDIA_580,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::Code(CodeQuirk::WrappingInduction),
        drivers: NVIDIA,
        only: None,
        what: "Loops are taken to end before their induction variable wraps around, where its step is a constant. Large steps become \
               opaque (`wrapping_induction`).",
        test: "miscompiled::counters_that_wrap_around",
        fails_on: "H100, NVIDIA 580.159",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::Code(CodeQuirk::NarrowBitCounts),
        drivers: NVIDIA,
        only: None,
        what: "BitCount of 8 and 16-bit values that are extended with zeros counts the bits of what they would be extended with their \
               sign to. One more bit is set, and subtracted from the count (`narrow_bit_counts`).",
        test: "executors 91500113",
        fails_on: "H100, H200, NVIDIA 580.159: nine of 1,300 generated kernels",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::Code(CodeQuirk::NarrowExtremes),
        drivers: NVIDIA,
        only: None,
        what: "A loop runs once, or for ever, whose trip count is `max(x, (ushort)1)`. Minima and maxima of 8 and 16 bits are taken in \
               32 (`narrow_extremes`).",
        test: "tests/programs/kept/narrow_trip_counts.cl",
        fails_on: "H200, NVIDIA 580.159",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::Code(CodeQuirk::MixedQuotients),
        drivers: NVIDIA,
        only: None,
        what: "`x = n % (x + 1) * 31 + 32` gives, with 64 bits and done twice, what it gives once; in some kernels `x % y` is wrong \
               alone. Such numbers are divided by other operations (`lower_division`).",
        test: "tests/programs/kept/remainders.cl",
        fails_on: "H200, NVIDIA 580.159",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::Code(CodeQuirk::FoldedBits),
        drivers: NVIDIA,
        only: None,
        what: "`rotate((ushort)x, 8)` is anything, `~x` of a loop is done once if an even number of times, and `(x & 1) * 20` or \
               `((a == b) & x) * 20` is 20 in some kernels, of which many have `x % 3` too. They become other operations \
               (`folded_bits`).",
        test: "tests/programs/kept/swapped_bytes.cl",
        fails_on: "H200, NVIDIA 580.159",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::Code(CodeQuirk::ChosenSigns),
        drivers: NVIDIA,
        only: None,
        what: "`x < 0 ? -0.0f : 1.0f` gives 0 without its sign. Zeros that are chosen or else a one of the other sign become opaque \
               (`opaque_zeros`).",
        test: "numerics::constant_zeros",
        fails_on: NVIDIA_580,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::Code(CodeQuirk::HalfOverflow),
        drivers: ALL_CLANG,
        only: None,
        what: "`(float)(half)(x << 24)` is `(float)(x << 24)`, not infinite: so in LLVM 15 to 22. Integers are bounded before they become \
               halfs (`half_overflow`).",
        test: "il::arithmetic::integers_beyond_halfs",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::Code(CodeQuirk::ForgottenHalves),
        drivers: NVIDIA,
        only: None,
        what: "`convert_float(convert_half(x))` is `x`: what the half has rounded is forgotten. It is made by integers where it is \
               widened again (`lower_convert`).",
        test: "halves::a_number_that_comes_back_was_rounded",
        fails_on: NVIDIA_580,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::Code(CodeQuirk::ForgottenRounding),
        drivers: NEW_LLVMPIPE,
        only: None,
        what: "`(float)(half)i` is `(float)i`, `(double)(float)d` is `d`: what the narrower number has rounded is forgotten. It is made opaque where \
               it comes from, or made by integers (`lower_convert`).",
        test: "il::arithmetic::narrower_numbers_round",
        fails_on: "llvmpipe, Mesa 25.0.7 and 26.2.6",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::Code(CodeQuirk::FlushedFloats),
        drivers: NVIDIA,
        only: None,
        what: "A double becomes a subnormal float, but that is 0 as a double again (as all are, there being no CL_FP_DENORM), so that it \
               is unknown which way it was rounded. Then the float is taken for an integer (`lower_convert`).",
        test: "numerics::doubles_to_floats",
        fails_on: "H200, NVIDIA 580.159",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::RoundingMode,
        drivers: NVIDIA,
        only: None,
        what: "Subnormals are flushed unless RoundingModeRTE of 32 bits is declared: then they still are in Fma and Sqrt, and what a \
               function built on both makes of a subnormal number is nonsense. It is not declared; to nearest is what the driver does.",
        test: "CTS math_brute_force",
        fails_on: NVIDIA_580,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::SerialPipelines,
        drivers: NVIDIA,
        only: None,
        what: "With several threads that make pipelines, a kernel now and then begins in code that is not there; the work hangs, and \
               four seconds later the device is lost (Xid 109): 23 of 50 runs of the integration tests on one queue (13 of 26 with the \
               pipeline cache, 3 of 11 without, 7 of 13 with a cache for each pipeline). With pipelines made one by one 2 of 21, with no \
               submission meanwhile none of 17: so they are made.",
        test: "all of tests/api, many times",
        fails_on: NVIDIA_580,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::LateWakeUps,
        drivers: NVIDIA,
        only: None,
        what: "With several threads that wait for one semaphore a wake-up may come 10 ms late. \
               Waits are slices of 1 ms.",
        test: "ci/bench: event chain",
        fails_on: "slower on an H200, NVIDIA 580.159",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::SlowCopies,
        drivers: NVIDIA,
        only: None,
        what: "vkCmdCopyBuffer reaches 840 GB/s on an H200 where a shader reaches 4100. From 1 MiB \
               on a shader copies and fills.",
        test: "ci/bench: copy buffer",
        fails_on: "slower on an H200, NVIDIA 580.159",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::LongGroups,
        drivers: NVIDIA,
        only: None,
        what: "A work-group that runs for more than 4.5 s (7.5 s on a queue with graphics) loses the device. Nothing can be done; the log \
               says what happened.",
        test: "by hand",
        fails_on: NVIDIA_580,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::ShortChannels,
        drivers: NVIDIA,
        only: None,
        what: "Channels of 5 and 6 bits are widened to 8 bits first: 1/31 reads as 8/255, which Vulkan allows. The formats are not \
               reported.",
        test: "CTS images",
        fails_on: NVIDIA_580,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::IndependentSubgroups,
        drivers: NVIDIA,
        only: None,
        what: "No fault: sub-groups make progress independently of one another. Vulkan has no promise of it, and a measurement could hang \
               the device.",
        test: "CTS subgroups",
        fails_on: NVIDIA_580,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::FiniteNumbers,
        drivers: SPIRV_TARGET,
        only: None,
        what: "Of what may be reassociated it is said to be neither NaN nor infinite, so that `x / 0` is 0 with \
               -cl-unsafe-math-optimizations. That is taken back where the options do not say it (`finite_numbers`).",
        test: "relaxed::quotients_of_infinities_and_zeros",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::Code(CodeQuirk::NanTexels),
        drivers: LLVMPIPE,
        only: None,
        what: "A NaN that is written to a normalised channel becomes its greatest number, where OpenCL C has 0 and Vulkan nothing. \
               It is replaced (`pumice_write_f`).",
        test: "images::numbers_that_are_none_become_zero",
        fails_on: MESA_25,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::Code(CodeQuirk::MergedBits),
        drivers: CLANG,
        only: Some(has_avx512),
        what: "Bits of two values that a constant chooses, merged with one of the two under a mask, become one masked vpternlog of AVX-512 whose operands are in a wrong order \
               (LLVM's issue 157929, in 15 to 22). A fence stands between the bits and the mask (`native::emit::optimization_barrier`): one more instruction \
               where such bits are merged.",
        test: "miscompiled::bits_of_some_lanes",
        fails_on: "clang 22.1.8 and 15.0.6, a processor with AVX-512",
        again: "2028-01",
    },
    Row {
        quirk: Quirk::Code(CodeQuirk::AbsoluteDifferences),
        drivers: CLANG,
        only: None,
        what: "`abs_diff` of unsigned integers is the signed absolute value of `y - x` where LLVM 22 knows that y is not smaller, which is wrong for half the \
               range and more (`TargetLowering::expandABD`). It is written in another form (`absolute_differences`).",
        test: "miscompiled::absolute_differences",
        fails_on: "clang 22.1.8, vectors of 256 bits",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::Code(CodeQuirk::MovedLoads),
        drivers: &[before(Vendor::Clang, [24, 0, 0])],
        only: None,
        what: "A masked load is moved to a selection by its mask, past stores between them (LLVM's issue 215453, in 22 and 23). \
               Such loads are frozen (`native::emit::access`).",
        test: "miscompiled::values_loaded_before_a_store",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::Code(CodeQuirk::HalvesOfMasks),
        drivers: CLANG,
        only: Some(has_avx512_fp16),
        what: "The bits of a comparison of two values that all work-items share, as a half, have no instruction in AVX-512 FP16: the compiler ends (\"Cannot select: \
               f16 = bitcast\", in LLVM 15 to 22). Integers that become such a half go through a general register.",
        test: "miscompiled::comparisons_as_halves",
        fails_on: "clang 22.1.8, a processor with AVX-512 FP16",
        again: "2028-01",
    },
];

/// Returns true if the processor computes with halves in vectors of AVX-512.
fn has_avx512_fp16() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx512fp16");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Returns all rows.
pub fn table() -> impl Iterator<Item = &'static Row> + Clone {
    DRIVERS.iter().chain(compilers::ROWS)
}

/// Returns true if the processor has AVX-512.
fn has_avx512() -> bool {
    !lacks_avx512()
}

/// Returns true if the processor has no AVX-512. Mesa 22.3 rounds doubles with an instruction of
/// the processor only where that takes as many doubles as single floats fit into a vector.
fn lacks_avx512() -> bool {
    #[cfg(target_arch = "x86_64")]
    return !std::arch::is_x86_feature_detected!("avx512f");
    #[cfg(not(target_arch = "x86_64"))]
    true
}

/// Returns true if the processor makes stores visible in their order, and loads are made in theirs.
fn orders_by_itself() -> bool {
    cfg!(any(target_arch = "x86_64", target_arch = "x86"))
}

impl Quirk {
    /// Returns the name in `PUMICE_QUIRKS`: `long-words` of `LongWords`.
    pub fn name(self) -> String {
        let words = match self {
            Self::Code(quirk) => format!("{quirk:?}"),
            quirk => format!("{quirk:?}"),
        };
        let mut name = String::new();
        for letter in words.chars() {
            if letter.is_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }

    /// Returns the bit of the quirk in a set: that of its row.
    fn bit(self) -> u128 {
        let row = table().position(|row| row.quirk == self);
        row.map_or(0, |row| 1 << row)
    }
}

/// The quirks of a driver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quirks(u128);

impl Quirks {
    /// Returns the quirks of a driver of this version, with the changes of `PUMICE_QUIRKS`.
    pub fn of(vendor: Vendor, version: [u32; 3]) -> Self {
        let changes = crate::util::config::get().quirks.as_deref();
        Self::changed(vendor, version, changes.unwrap_or_default(), |word| {
            crate::log!(Error, "PUMICE_QUIRKS: unknown word `{word}`");
        })
    }

    fn changed(vendor: Vendor, version: [u32; 3], changes: &str, unknown: impl Fn(&str)) -> Self {
        let mut quirks = Self::default();
        for row in table() {
            let has = |driver: &Driver| {
                driver.vendor == vendor
                    && version >= driver.from
                    && driver.fixed.is_none_or(|fixed| version < fixed)
            };
            quirks.set(
                row.quirk,
                row.drivers.iter().any(has) && row.only.is_none_or(|only| only()),
            );
        }
        for word in changes.split(',').map(str::trim).filter(|w| !w.is_empty()) {
            let name = word.trim_start_matches(['+', '-']);
            match table().find(|row| row.quirk.name() == name) {
                Some(row) => quirks.set(row.quirk, !word.starts_with('-')),
                None => unknown(word),
            }
        }
        quirks
    }

    fn set(&mut self, quirk: Quirk, on: bool) {
        let bit = quirk.bit();
        self.0 = if on { self.0 | bit } else { self.0 & !bit };
    }

    /// Returns the quirks but one.
    #[cfg(test)]
    pub fn without(mut self, quirk: Quirk) -> Self {
        self.set(quirk, false);
        self
    }

    /// Returns the names of the quirks.
    pub fn names(self) -> Vec<String> {
        let mine = table().filter(|row| self.has(row.quirk));
        mine.map(|row| row.quirk.name()).collect()
    }

    /// Returns the quirks that shape the code of kernels.
    pub fn of_code(self) -> CodeQuirks {
        let quirks = CodeQuirk::ALL.iter().copied();
        quirks
            .filter(|&quirk| self.has(Quirk::Code(quirk)))
            .collect()
    }

    /// Returns true if the driver has the quirk.
    pub fn has(self, quirk: Quirk) -> bool {
        self.0 & quirk.bit() != 0
    }
}

/// Returns the table in the form of docs/quirks.md.
pub fn document() -> String {
    let mut text = String::from(
        "# Quirks\n\nPrinted from `src/quirks.rs`. `PUMICE_QUIRKS=-NAME,+NAME` switches them; `ci/quirks` shows \
         that tests fail without\nthose of the devices at hand.\n\n\
         | name | driver, versions | what is wrong, what is done | test | fails without it on | look again |\n\
         |---|---|---|---|---|---|\n",
    );
    for row in table() {
        let drivers: Vec<String> = row.drivers.iter().map(Driver::text).collect();
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | `{}` | {} | {} |",
            row.quirk.name(),
            drivers.join(", "),
            row.what,
            row.test,
            row.fails_on,
            row.again
        );
    }
    text
}

impl Driver {
    fn text(&self) -> String {
        let dotted = |version: [u32; 3]| version.map(|n| n.to_string()).join(".");
        let mut text = format!("{:?}", self.vendor);
        if self.from != [0; 3] {
            let _ = write!(text, " from {}", dotted(self.from));
        }
        if let Some(fixed) = self.fixed {
            let _ = write!(text, " before {}", dotted(fixed));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_switch_them() {
        let of = |changes: &str| {
            Quirks::changed(Vendor::Llvmpipe, [22, 3, 0], changes, |_| panic!("unknown"))
        };
        assert!(
            of("").has(Quirk::Code(CodeQuirk::ConstantZeros))
                && !of("").has(Quirk::Code(CodeQuirk::NegatedBounds))
        );
        assert!(!of("-constant-zeros").has(Quirk::Code(CodeQuirk::ConstantZeros)));
        assert!(of("-constant-zeros").has(Quirk::HostAddresses));
        let new = Quirks::changed(Vendor::Llvmpipe, [25, 0, 7], "", |_| ());
        assert!(of("").has(Quirk::LoopResults) && !new.has(Quirk::LoopResults));
        assert!(of("+negated-bounds, -constant-zeros").has(Quirk::Code(CodeQuirk::NegatedBounds)));
        let none = Quirks::changed(Vendor::Other, [1, 0, 0], "", |_| ());
        assert_eq!(none, Quirks::default());
        let clang = |version| Quirks::changed(Vendor::Clang, version, "", |_| ());
        let only = Quirks::changed(Vendor::Other, [1, 0, 0], "+half-overflow", |_| ());
        assert_eq!(clang([24, 0, 0]), only);
        assert_eq!(
            clang([22, 1, 8]).has(Quirk::Code(CodeQuirk::MergedBits)),
            has_avx512()
        );
        let count = std::cell::Cell::new(0);
        Quirks::changed(
            Vendor::Other,
            [1, 0, 0],
            "-nonsense,misrounded-doubles",
            |_| count.set(count.get() + 1),
        );
        assert_eq!(count.get(), 1);
    }

    #[test]
    fn rows_are_complete() {
        // Each has a bit.
        assert!(table().count() <= u128::BITS as usize);
        let has_row = |&quirk| table().any(|row| row.quirk == Quirk::Code(quirk));
        assert!(CodeQuirk::ALL.iter().all(has_row));
        for (index, row) in table().enumerate() {
            assert!(table().take(index).all(|other| other.quirk != row.quirk));
            assert!(!row.drivers.is_empty() && !row.what.is_empty() && !row.test.is_empty());
            assert!(!row.fails_on.is_empty() && !row.again.is_empty() && !row.what.contains('|'));
        }
    }

    /// `BLESS=1` writes it.
    #[test]
    fn the_document_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/quirks.md");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, document()).expect("docs/quirks.md");
        }
        let text = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            text == document(),
            "docs/quirks.md is not what the table says: BLESS=1"
        );
    }
}
