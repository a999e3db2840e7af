//! Program binaries (clGetProgramInfo CL_PROGRAM_BINARIES, clCreateProgramWithBinary).
//!
//! A binary holds the SPIR-V modules of the program and, for executables, the kernels lowered for
//! the device. Those are used if this build of the library and this device made them, and made anew
//! otherwise; for the processor they include object files, so that they run where there is no
//! compiler. A binary is bound to the device (by UUID) and to the format version; a checksum guards
//! the rest.

use super::sections;
use crate::backend::Device;
use crate::cl::{
    cl_program_binary_type, CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT,
    CL_PROGRAM_BINARY_TYPE_EXECUTABLE, CL_PROGRAM_BINARY_TYPE_LIBRARY,
};
use crate::compile::options::{BuildCall, BuildOptions};
use crate::compile::words::{to_bytes, to_words, SpirvModule};
use std::sync::Arc;

const MAGIC: [u8; 8] = *b"PUMICEb1";

/// The parts of a binary.
#[derive(Default)]
pub struct Binary {
    /// The type, CL_PROGRAM_BINARY_TYPE_*.
    pub kind: cl_program_binary_type,
    /// The options it was built with.
    pub options: String,
    /// SPIR-V.
    pub modules: Vec<SpirvModule>,
    /// Specialisation constants set before the build.
    pub spec_constants: Vec<(u32, Vec<u8>)>,
    /// The kernels, lowered for the device.
    pub executable: Option<LoweredKernels>,
}

/// The kernels of a binary, lowered for its device.
pub struct LoweredKernels {
    /// Their cache key.
    pub key: Vec<u8>,
    /// The result of `Executable::to_bytes`.
    pub kernels: Vec<u8>,
    /// The result of `Executable::objects`.
    pub objects: Vec<u8>,
}

impl Binary {
    /// Encodes the binary for a device.
    pub fn to_bytes(&self, device: &dyn Device) -> Vec<u8> {
        let mut body = Vec::new();
        let mut put = |part: &[u8]| sections::put(&mut body, part);
        put(&device.caps().device_uuid);
        put(&self.kind.to_le_bytes());
        put(self.options.as_bytes());
        put(&(self.modules.len() as u32).to_le_bytes());
        for module in &self.modules {
            put(&to_bytes(module));
        }
        put(&(self.spec_constants.len() as u32).to_le_bytes());
        for (id, value) in &self.spec_constants {
            put(&id.to_le_bytes());
            put(value);
        }
        if let Some(lowered) = &self.executable {
            put(&lowered.key);
            put(&lowered.kernels);
            put(&lowered.objects);
        }
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(blake3::hash(&body).as_bytes());
        out.extend_from_slice(&body);
        out
    }

    /// Decodes a binary. Returns `None` if it is damaged, or made for another device or by another
    /// version.
    pub fn from_bytes(bytes: &[u8], device: &dyn Device) -> Option<Self> {
        let (hash, mut body) = bytes.strip_prefix(&MAGIC)?.split_first_chunk::<32>()?;
        if blake3::hash(body).as_bytes() != hash {
            return None;
        }
        let mut take = || sections::take(&mut body);
        if take()? != device.caps().device_uuid {
            return None;
        }
        let number = |part: &[u8]| Some(u32::from_le_bytes(part.try_into().ok()?));
        let kind = number(take()?)?;
        let known = [
            CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT,
            CL_PROGRAM_BINARY_TYPE_LIBRARY,
            CL_PROGRAM_BINARY_TYPE_EXECUTABLE,
        ];
        if !known.contains(&kind) {
            return None;
        }
        let options = String::from_utf8(take()?.to_vec()).ok()?;
        let mut modules = Vec::new();
        for _ in 0..number(take()?)? {
            modules.push(Arc::new(to_words(take()?)?));
        }
        let mut spec_constants = Vec::new();
        for _ in 0..number(take()?)? {
            let id = number(take()?)?;
            spec_constants.push((id, take()?.to_vec()));
        }
        let mut bytes = || take().map(<[u8]>::to_vec);
        let executable = match (bytes(), bytes(), bytes()) {
            (Some(key), Some(kernels), Some(objects)) => Some(LoweredKernels {
                key,
                kernels,
                objects,
            }),
            _ => None,
        };
        Some(Self {
            kind,
            options,
            modules,
            spec_constants,
            executable,
        })
    }

    /// Returns the options, parsed. Those of an object or executable were accepted once, so
    /// anything else is damage.
    pub fn parsed_options(&self) -> Option<BuildOptions> {
        BuildOptions::parse(&self.options, BuildCall::Build)
            .or_else(|_| BuildOptions::parse(&self.options, BuildCall::Link))
            .ok()
    }
}
