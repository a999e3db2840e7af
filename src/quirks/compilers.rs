//! The faults of compilers of OpenCL C and of SPIR-V, and what the validator of modules lacks.

use super::{all, Driver, Quirk, Row, Vendor, CLANG_22, SPIRV_TARGET};

/// Whichever compiler of OpenCL C.
const FRONT_ENDS: &[Driver] = &[all(Vendor::SpirvTarget), all(Vendor::Translator)];
const PRODUCERS: &[Driver] = &[all(Vendor::Producer)];
/// The modules, as compilers write them, that are not valid without a row.
const SAMPLES: &str = "unit tests: src/compile/check/samples";
const TRANSLATORS: &str = "llvm-spirv 14, 15 and that of dpcpp 2024.2";

/// The rows.
pub(super) static ROWS: &[Row] = &[
    Row {
        quirk: Quirk::LostTruncations,
        drivers: SPIRV_TARGET,
        only: None,
        what: "A truncation between two other conversions of integers is lost: what uses it computes with the wider value, which is not valid SPIR-V, \
               or a store writes 8 bytes in place of 4, silently (LLVM's pull request 175401 mends extensions). Conversions are separated (`lost_truncations`) where LLVM optimises nothing, \
               and where what came was not valid.",
        test: "miscompiled::conversions_that_follow_one_another",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::CutAlignments,
        drivers: SPIRV_TARGET,
        only: None,
        what: "Alignments are cut (LLVM's pull request 180184): that of an access through a pointer that may be null, which LLVM takes for \
               aligned to 2^32, to 0, and such SPIR-V is not valid; and that of a variable in private memory to 8 bits with a sign, so that \
               128 is 2^32 - 128 and more is 0. It is left out, or is 128 or 4096 (`cut_alignments`).",
        test: "alignment::variables_have_the_requested_alignment",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::KnownSizes,
        drivers: FRONT_ENDS,
        only: None,
        what: "The least size of what a pointer leads to, of arrays with `static` and references, is claimed to be the greatest \
               (MaxByteOffset), so that larger memory is refused. That is taken back (`known_sizes`).",
        test: "miscompiled::known_sizes_are_no_limits",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::ConfusedConversions,
        drivers: SPIRV_TARGET,
        only: None,
        what: "`convert_int(char)` is taken for a conversion of an unsigned operand, \
               `convert_uint(uchar)` for one of a signed operand, and `convert_char_sat` is the same of \
               `int` and `uint` (LLVM's pull request 200791). They are declared under other names \
               (`prelude`).",
        test: "language::unusual_ways",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::PaddedHalves,
        drivers: SPIRV_TARGET,
        only: None,
        what: "`vloada_half3` loses its padding. It is declared under another name (`prelude`).",
        test: "language::unusual_ways",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::ConfusedImages,
        drivers: SPIRV_TARGET,
        only: None,
        what: "`read_imagei` and `read_imageui` become one instruction, and channel data types are \
               counted from zero. They are declared under other names (`prelude`).",
        test: "image_kernels::integers_saturate",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::NullReservations,
        drivers: FRONT_ENDS,
        only: None,
        what: "CLK_NULL_RESERVE_ID is a cast of a pointer, which becomes no valid SPIR-V, and \
               `is_valid_reserve_id` is not known. Functions of the library give them (`prelude`).",
        test: "pipes::reservations::",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::VariableNan,
        drivers: FRONT_ENDS,
        only: None,
        what: "NAN is no constant expression, as OpenCL C has it: clang's header makes it of \
               `as_float`. It is defined again (`prelude`).",
        test: "language::constant_nan",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::UnknownFunctions,
        drivers: FRONT_ENDS,
        only: None,
        what: "No fault: functions of cl_khr_work_group_uniform_arithmetic, \
               cl_khr_extended_async_copies, cl_khr_async_work_group_copy_fence, \
               cl_intel_subgroups and cl_intel_bfloat16_conversions are not known, nor clocks to \
               old compilers. They are declared (`prelude`, `group_functions`, `intel_subgroups`).",
        test: "collectives::copies_of_planes",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::MissingInlines,
        drivers: FRONT_ENDS,
        only: None,
        what: "Plain `inline` is that of C99: a function that is not inlined after all has no \
               definition. The source is compiled again with that of GNU (`missing_inlines`).",
        test: "applications::inline_functions_that_are_called",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::Constructors,
        drivers: FRONT_ENDS,
        only: None,
        what: "Constructors and destructors of program-scope objects become lists of which LLVM \
               makes invalid code (its issue 110495, pull request 222367). They become kernels \
               that say when they run (`lifecycle`).",
        test: "initializers::programs_without_objects",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::UsedLists,
        drivers: FRONT_ENDS,
        only: None,
        what: "The list that `__attribute__((used))` makes of variables in constant memory ends \
               the compiler (LLVM's issue 221339). It goes (`whole_program`).",
        test: "builds::attribute_used",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::DeviceQueues,
        drivers: SPIRV_TARGET,
        only: None,
        what: "`clk_event_t` is not known, and some forms of `enqueue_kernel` end the compiler \
               (LLVM's pull request 187671). They become calls of functions that nobody knows \
               (`device_queues`).",
        test: "device_enqueue::kernels::errors",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::LocalTypes,
        drivers: SPIRV_TARGET,
        only: None,
        what: "A variable in local memory gets the type that its uses suggest, so that an array may be \
               one byte long (LLVM's pull request 202047). It is given an initial value, with which it \
               keeps its own (`local_types`).",
        test: "local_memory::arrays_keep_their_sizes",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::LoneVariables,
        drivers: SPIRV_TARGET,
        only: None,
        what: "The variables of a module without functions are left out (LLVM's issue 182899, pull \
               request 183833). It gets a function (`lone_variables`).",
        test: "linking::variables_alone",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::LostLines,
        drivers: SPIRV_TARGET,
        only: None,
        what: "OpLine is left out (LLVM's issue 136995). Calls of a function that does not exist stand \
               for it until there is SPIR-V (`lines`).",
        test: "checks::barriers",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::LongArrays,
        drivers: SPIRV_TARGET,
        only: None,
        what: "The length of an array of 2^32 elements is cut to 32 bits, silently. The program is \
               refused (`long_arrays`).",
        test: "builds::arrays_that_are_too_long",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::WideIntegers,
        drivers: SPIRV_TARGET,
        only: None,
        what: "What a counter has after its loop is computed in integers of 65 bits, which nothing can \
               execute. The source is compiled again without that pass (`wide_integers`).",
        test: "builds::integers_of_odd_widths",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::ThreadedLoops,
        drivers: SPIRV_TARGET,
        only: None,
        what: "Of a loop whose end some edges know a value of, jump threading makes two nested loops, \
               and the inner one is peeled or unrolled: work-items that go on by different edges are \
               at different copies of a barrier (LLVM's issue 224146, pull request 214624). That pass \
               is left out (`attempts`).",
        test: "miscompiled::loops_with_several_ways_back",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::ZeroDivisors,
        drivers: FRONT_ENDS,
        only: None,
        what: "No fault of LLVM's: the result of a division by 0 is unspecified in OpenCL C, and its behaviour \
               undefined in LLVM, so that `i / n` is what the passes make of `q = i / n; n ? q : 5`. \
               Divisors of 0 become 1 (`divisions`).",
        test: "language::divisions_by_zero",
        fails_on: CLANG_22,
        again: "2028-01",
    },
    Row {
        quirk: Quirk::FloatExchanges,
        drivers: SPIRV_TARGET,
        only: None,
        what: "`atomic_compare_exchange_strong` and `_weak` of `atomic_float` and `atomic_double` compare floats \
               with OpIEqual, which is not valid SPIR-V. They are compared as bits (`float_exchanges`).",
        test: "language::exchanges_of_floats",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::OddVectors,
        drivers: SPIRV_TARGET,
        only: None,
        what: "The compiler takes all memory where the passes leave a cast of an integer to a vector of 5 \
               to 7 or 9 to 15 elements: they make one of 6 bytes of a byte of a `short3`. The vector is \
               lengthened (`odd_vectors`).",
        test: "builds::bytes_of_vectors_of_three",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::GivesUp,
        drivers: SPIRV_TARGET,
        only: None,
        what: "The compiler ends where the passes leave vectors of booleans of odd sizes and the like \
               (`unable to legalize`, LLVM's issue 186864), or takes all memory where they leave \
               integers of 192 bits. The source is compiled again with fewer passes \
               (`crash_reports`).",
        test: "builds::code_that_the_compiler_gives_up_on",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::ArgumentNames,
        drivers: SPIRV_TARGET,
        only: None,
        what: "The names of the types of kernels' arguments are lost. They are taken from LLVM's IR \
               (`argument_info`).",
        test: "programs::argument_information",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::UnsignedHints,
        drivers: FRONT_ENDS,
        only: None,
        what: "`vec_type_hint` of an unsigned type is one of a signed type in SPIR-V, which has no \
               other. It is taken from LLVM's IR (`argument_info`).",
        test: "builds::attributes_of_kernels",
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::DebugInformation,
        drivers: PRODUCERS,
        only: None,
        what: "Instructions of OpenCL.DebugInfo.100 have operands that it does not allow (issues \
               2003 and 3247 of SPIRV-LLVM-Translator). Debug information, names of it and lines \
               are left out (`repairs`).",
        test: SAMPLES,
        fails_on: "llvm-spirv 14, 15 and that of dpcpp 2024.2, with -g",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::RepeatedDecorations,
        drivers: PRODUCERS,
        only: None,
        what: "An alignment or another decoration stands twice (issues 2509 and 3410 of \
               SPIRV-LLVM-Translator). One is left (`repairs`).",
        test: SAMPLES,
        fails_on: TRANSLATORS,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::MergeInstructions,
        drivers: PRODUCERS,
        only: None,
        what: "OpLoopMerge of loops with hints names merge blocks that are those of other loops \
               (issue 3391 of SPIRV-LLVM-Translator). Merge instructions, which mean nothing to \
               kernels, are left out (`repairs`).",
        test: SAMPLES,
        fails_on: TRANSLATORS,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::SelfConversions,
        drivers: PRODUCERS,
        only: None,
        what: "`convert_uint(int)` is a conversion of a type to itself (LLVM's issue 160614, pull \
               request 223365). It becomes a copy (`repairs`).",
        test: SAMPLES,
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::IntegerTruths,
        drivers: PRODUCERS,
        only: None,
        what: "OpAny and OpAll have operands that are integers (LLVM's issue 190736, pull request \
               191804). They are the same of their signs (`repairs`).",
        test: SAMPLES,
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::ScalarExponents,
        drivers: PRODUCERS,
        only: None,
        what: "`ldexp` of a vector has a scalar exponent (LLVM's issue 190736, pull request \
               190969). It becomes a vector (`repairs`).",
        test: SAMPLES,
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::UncastMembers,
        drivers: PRODUCERS,
        only: None,
        what: "A pointer in a constant aggregate has another type than the member: two strings of \
               different lengths. It is cast (`repairs`).",
        test: SAMPLES,
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::BlockOrder,
        drivers: PRODUCERS,
        only: None,
        what: "A block stands before one that dominates it (issue 205 of SPIRV-LLVM-Translator, \
               pull request 1655), or a variable after other instructions. They are put in order \
               (`repairs`).",
        test: SAMPLES,
        fails_on: "llvm-spirv 14 and 15",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::UnnamedVariables,
        drivers: PRODUCERS,
        only: None,
        what: "An entry point does not name the variables that it uses, since SPIR-V 1.4 (issue \
               1216 of SPIRV-LLVM-Translator). It names all (`repairs`).",
        test: SAMPLES,
        fails_on: TRANSLATORS,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::UndeclaredContraction,
        drivers: PRODUCERS,
        only: None,
        what: "The capability FPFastMathModeINTEL is declared without its extension (pull request \
               2028 of SPIRV-LLVM-Translator). It is added (`repairs`).",
        test: SAMPLES,
        fails_on: "llvm-spirv 14, 15 and that of dpcpp 2024.2, with fast arithmetic",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::UndeclaredModes,
        drivers: PRODUCERS,
        only: None,
        what: "SPV_KHR_float_controls2 is used, by its modes or its execution mode, without its \
               capability (LLVM's pull request 146941). It is declared (`float_controls`).",
        test: SAMPLES,
        fails_on: CLANG_22,
        again: "2027-05",
    },
    Row {
        quirk: Quirk::AliasHints,
        drivers: PRODUCERS,
        only: None,
        what: "No fault of the compiler: the validator that is compiled in wants \
               OpAliasDomainDeclINTEL in blocks, where SPV_INTEL_memory_access_aliasing has none. \
               The hints are left out (`alias_hints`).",
        test: SAMPLES,
        fails_on: "clang 22.1.8, llvm-spirv 14, 15 and that of dpcpp 2024.2, with restrict",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::UntypedPointers,
        drivers: PRODUCERS,
        only: None,
        what: "No fault of a compiler: the validator that is compiled in lacks \
               OpUntypedGroupAsyncCopyKHR, untyped access chains as constants, and `vloadn` and \
               `vstoren` by untyped pointers. It sees others with the same results (`stand_ins`).",
        test: SAMPLES,
        fails_on: "SPIRV-Tools of SDK 1.4.341",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::FunctionPointers,
        drivers: PRODUCERS,
        only: None,
        what: "No fault of a compiler: the validator that is compiled in refuses a constant \
               pointer to a function that comes later, and its type. It sees a null pointer \
               (`stand_ins`).",
        test: SAMPLES,
        fails_on: "SPIRV-Tools of SDK 1.4.341",
        again: "2027-05",
    },
    Row {
        quirk: Quirk::PipeStorage,
        drivers: PRODUCERS,
        only: None,
        what: "No fault of a compiler: the validator that is compiled in knows \
               OpConstantPipeStorage within functions alone. It sees an empty structure \
               (`stand_ins`).",
        test: SAMPLES,
        fails_on: "SPIRV-Tools of SDK 1.4.341",
        again: "2027-05",
    },
];
