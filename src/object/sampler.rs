//! Samplers: three properties, which kernels get as one word (OpenCL API specification, section 5.7).

use super::context::Context;
use super::info::{answer, Info, InfoOut, Written};
use super::mem::description::check_images;
use super::properties::{pairs, unsupported};
use crate::cl::{
    self, cl_addressing_mode, cl_bool, cl_filter_mode, cl_sampler_properties, cl_uint,
};
use crate::error::{ensure, ClResult, OrErr};
use crate::handle::{Body, Kind, Object, Ref};
use spirv_lowering::interface::sampler as word;

/// A sampler.
pub struct Sampler {
    /// CL_SAMPLER_CONTEXT
    pub context: Ref<Context>,
    normalized: bool,
    addressing: cl_addressing_mode,
    filter: cl_filter_mode,
    /// The list as given, with its closing zero; empty: none given.
    properties: Vec<cl_sampler_properties>,
}

impl Body for Sampler {
    const KIND: Kind = Kind::Sampler;
}

impl Sampler {
    /// Implements clCreateSampler.
    pub fn new(
        context: &Ref<Context>,
        normalized: cl_bool,
        addressing: cl_addressing_mode,
        filter: cl_filter_mode,
    ) -> ClResult<Ref<Self>> {
        Self::make(context, normalized, addressing, filter, Vec::new())
    }

    /// Implements clCreateSamplerWithProperties.
    pub fn with_properties(
        context: &Ref<Context>,
        properties: Vec<cl_sampler_properties>,
    ) -> ClResult<Ref<Self>> {
        let (mut normalized, mut addressing, mut filter) =
            (cl::CL_TRUE, cl::CL_ADDRESS_CLAMP, cl::CL_FILTER_NEAREST);
        for (name, value) in pairs(&properties, cl::CL_INVALID_VALUE)? {
            let given = u32::try_from(value)
                .ok()
                .or_err(cl::CL_INVALID_VALUE, "the value of a sampler property")?;
            match u32::try_from(name) {
                Ok(cl::CL_SAMPLER_NORMALIZED_COORDS) => normalized = given,
                Ok(cl::CL_SAMPLER_ADDRESSING_MODE) => addressing = given,
                Ok(cl::CL_SAMPLER_FILTER_MODE) => filter = given,
                _ => return unsupported("sampler", name, cl::CL_INVALID_VALUE),
            }
        }
        Self::make(context, normalized, addressing, filter, properties)
    }

    fn make(
        context: &Ref<Context>,
        normalized: cl_bool,
        addressing: cl_addressing_mode,
        filter: cl_filter_mode,
        properties: Vec<cl_sampler_properties>,
    ) -> ClResult<Ref<Self>> {
        check_images(context)?;
        ensure!(
            normalized <= 1,
            cl::CL_INVALID_VALUE,
            "normalized_coords is no boolean"
        );
        ensure!(
            (cl::CL_ADDRESS_NONE..=cl::CL_ADDRESS_MIRRORED_REPEAT).contains(&addressing),
            cl::CL_INVALID_VALUE,
            "addressing mode {addressing:#x}"
        );
        ensure!(
            filter == cl::CL_FILTER_NEAREST || filter == cl::CL_FILTER_LINEAR,
            cl::CL_INVALID_VALUE,
            "filter mode {filter:#x}"
        );
        let repeats = matches!(
            addressing,
            cl::CL_ADDRESS_REPEAT | cl::CL_ADDRESS_MIRRORED_REPEAT
        );
        ensure!(
            !repeats || normalized != cl::CL_FALSE,
            cl::CL_INVALID_VALUE,
            "repeating needs normalised coordinates"
        );
        Ok(Object::new(Self {
            context: context.clone(),
            normalized: normalized != cl::CL_FALSE,
            addressing,
            filter,
            properties,
        }))
    }

    /// Returns the property word that kernels get.
    pub fn word(&self) -> u32 {
        let addressing = match self.addressing {
            cl::CL_ADDRESS_CLAMP_TO_EDGE => word::ADDRESS_CLAMP_TO_EDGE,
            cl::CL_ADDRESS_CLAMP => word::ADDRESS_CLAMP,
            cl::CL_ADDRESS_REPEAT => word::ADDRESS_REPEAT,
            cl::CL_ADDRESS_MIRRORED_REPEAT => word::ADDRESS_MIRRORED_REPEAT,
            _ => word::ADDRESS_NONE,
        };
        let filter = match self.filter {
            cl::CL_FILTER_LINEAR => word::FILTER_LINEAR,
            _ => word::FILTER_NEAREST,
        };
        let normalized = match self.normalized {
            true => word::NORMALIZED_COORDS,
            false => 0,
        };
        addressing | filter | normalized
    }
}

impl Info for Ref<Sampler> {
    fn query(&self, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written> {
        answer! { param, out;
            CL_SAMPLER_REFERENCE_COUNT => self.api_refs(),
            CL_SAMPLER_CONTEXT => &self.context,
            CL_SAMPLER_NORMALIZED_COORDS => self.normalized,
            CL_SAMPLER_ADDRESSING_MODE => self.addressing,
            CL_SAMPLER_FILTER_MODE => self.filter,
            CL_SAMPLER_PROPERTIES => &self.properties,
        }
    }
}
