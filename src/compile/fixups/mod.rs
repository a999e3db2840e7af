//! Works around faults of clang, before or after it runs. Everything here maps text and words to
//! text and words: no process is started.
//!
//! | file | fault | where the workaround applies |
//! |---|---|---|
//! | `prelude` | functions that clang confuses or does not know | declared under other names before the source |
//! | `group_functions` | group functions that clang does not know | the same |
//! | `missing_inlines` | `inline` functions that are called and not emitted | compiled again |
//! | `lifecycle` | constructors and destructors of program-scope objects become invalid code | IR before the passes |
//! | `whole_program` | unused functions take most of the time | IR before the passes |
//! | `device_queues` | functions on device queues and events, at which the back end crashes | IR before the passes, and after them |
//! | `divisions` | divisions by zero are undefined behaviour | IR before the passes |
//! | `local_types` | variables in local memory lose their types | IR after the passes |
//! | `lost_truncations` | truncations are lost between other conversions | IR after the passes |
//! | `odd_vectors` | integers become vectors of lengths that SPIR-V lacks | IR after the passes |
//! | `lone_variables` | variables of a module without functions are left out | IR after the passes |
//! | `cut_alignments` | alignments of more than 128 bytes are 0 | the SPIR-V |
//! | `known_sizes` | the least sizes of arguments are claimed to be the greatest | the SPIR-V |
//! | `finite_numbers` | numbers that may be reassociated are claimed to be finite | the SPIR-V |
//! | `float_exchanges` | floats that were exchanged are compared as integers | the SPIR-V |
//! | `lines` | source lines are left out | IR after the passes, and the SPIR-V |
//! | `long_arrays` | the length of an array is cut to 32 bits | refused |
//! | `wide_integers` | integers of more than 64 bits | compiled again with fewer passes |
//! | `crash_reports` | the back end gives up | the same |
//! | `argument_info` | the types of the kernels' arguments in the source are lost | added to the SPIR-V |

pub mod argument_info;
pub mod crash_reports;
pub mod cut_alignments;
pub mod device_queues;
pub mod divisions;
pub mod finite_numbers;
pub mod float_exchanges;
pub mod known_sizes;
pub mod lifecycle;
pub mod lines;
pub mod local_types;
pub mod lone_variables;
pub mod long_arrays;
pub mod lost_truncations;
pub mod missing_inlines;
pub mod odd_vectors;
pub mod prelude;
pub mod whole_program;
pub mod wide_integers;

mod group_functions;
mod intel_subgroups;
