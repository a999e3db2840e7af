//! The API, chapter by chapter, on the first device that Pumice offers.

mod addresses;
mod alignment;
mod applications;
mod bfloat16;
mod bounds;
mod buffers;
mod builds;
mod caches;
mod called_functions;
mod checks;
mod collectives;
mod command_buffers;
#[cfg(unix)]
mod compilers;
mod contexts;
mod cxx;
mod device_enqueue;
mod devices;
mod divergence;
mod dot_products;
mod drivers;
mod edges;
mod environment;
mod events;
#[cfg(unix)]
mod forks;
mod functions;
#[cfg(target_os = "linux")]
mod gl;
mod graphs;
mod halves;
mod handles;
mod il;
mod image_kernels;
mod images;
mod immutable;
mod initialize_memory;
mod initializers;
mod intel_subgroups;
#[cfg(target_os = "linux")]
mod interop;
mod kernels;
mod language;
mod large;
mod linking;
mod local_memory;
mod locks;
mod long_code;
mod long_loops;
mod loop_bounds;
mod meeting;
mod memory_order;
mod miscompiled;
mod native_kernels;
mod numerics;
mod ordering;
mod pipes;
mod powers;
mod print_callbacks;
mod printf;
#[cfg(target_os = "linux")]
mod process;
mod programs;
mod queue_contract;
mod queues;
mod refusals;
mod relaxed;
mod resources;
mod robustness;
mod semaphores;
mod several_devices;
mod shared_order;
mod sub_devices;
mod sub_group_sizes;
mod surroundings;
mod svm;
mod termination;
mod threads;
mod timelines;
mod unified_svm;
#[cfg(not(unix))]
mod without;
