//! The API, chapter by chapter, on the first device that Pumice offers.

mod addresses;
mod buffers;
mod builds;
mod collectives;
mod contexts;
mod devices;
mod environment;
mod events;
mod handles;
mod il;
mod image_kernels;
mod images;
mod kernels;
mod large;
mod local_memory;
mod long_loops;
mod numerics;
mod ordering;
mod printf;
mod programs;
mod queues;
mod refusals;
mod robustness;
mod several_devices;
mod svm;
mod threads;
