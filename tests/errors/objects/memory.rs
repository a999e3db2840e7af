//! Buffers, images, samplers and pipes: what makes them.

use crate::table::Table;
use crate::world::{description, World};
use pumice_tests::sys::*;
use pumice_tests::{call, ext, info_value};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

const RGBA: cl_image_format = cl_image_format {
    image_channel_order: CL_RGBA,
    image_channel_data_type: CL_UNSIGNED_INT8,
};

/// A format that no device here has.
const NO_FORMAT: cl_image_format = cl_image_format {
    image_channel_order: CL_Rx,
    image_channel_data_type: CL_UNORM_INT8,
};
const ROWS: cl_uint = CL_IMAGE_REQUIREMENTS_ROW_PITCH_ALIGNMENT_EXT;
const KIND: cl_uint = CL_BUFFER_CREATE_TYPE_REGION;

pub fn rows(t: &mut Table) {
    rows! { t, w;
        clCreateBuffer {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clCreateBuffer(c, 0, 16, null_mut())));
            CL_INVALID_VALUE "flags" = [CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 1 << 40, CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS]
                .map(|flags| makes!(w, clCreateBuffer(w.s.context.0, flags, 16, null_mut())));
            CL_INVALID_VALUE "immutable and written" = makes!(w, clCreateBuffer(w.s.context.0,
                CL_MEM_IMMUTABLE_EXT | CL_MEM_COPY_HOST_PTR | CL_MEM_READ_WRITE, 16, w.place()));
            CL_INVALID_VALUE "immutable without contents" = makes!(w, clCreateBuffer(w.s.context.0, CL_MEM_IMMUTABLE_EXT, 16, null_mut()));
            CL_INVALID_BUFFER_SIZE "nothing" = makes!(w, clCreateBuffer(w.s.context.0, 0, 0, null_mut()));
            CL_INVALID_BUFFER_SIZE "too large" = makes!(w, clCreateBuffer(w.s.context.0, 0, usize::MAX, null_mut()));
            CL_INVALID_BUFFER_SIZE "more than the allocation has" =
                makes!(w, clCreateBuffer(w.s.context.0, CL_MEM_USE_HOST_PTR, 8192, w.svm));
            CL_INVALID_HOST_PTR "none, but wanted" = makes!(w, clCreateBuffer(w.s.context.0, CL_MEM_COPY_HOST_PTR, 16, null_mut()));
            CL_INVALID_HOST_PTR "one that is not wanted" = makes!(w, clCreateBuffer(w.s.context.0, 0, 16, w.place()));
            CL_INVALID_OPERATION "addresses of buffers" => never "the call has no properties";
            CL_INVALID_PROPERTY "not a property" => never "the call has no properties";
            CL_INVALID_PROPERTY "not a value" => never "the call has no properties";
            CL_INVALID_PROPERTY "twice" => never "the call has no properties";
        }
        clCreateBufferWithProperties {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clCreateBufferWithProperties(c, null(), 0, 16, null_mut())));
            CL_INVALID_PROPERTY "not a property" =
                makes!(w, clCreateBufferWithProperties(w.s.context.0, [0x1234, 1, 0].as_ptr(), 0, 16, null_mut()));
            CL_INVALID_BUFFER_SIZE "nothing" = makes!(w, clCreateBufferWithProperties(w.s.context.0, null(), 0, 0, null_mut()));
            CL_INVALID_BUFFER_SIZE "too large" = makes!(w, clCreateBufferWithProperties(w.s.context.0, null(), 0, usize::MAX, null_mut()));
            CL_INVALID_HOST_PTR "none, but wanted" =
                makes!(w, clCreateBufferWithProperties(w.s.context.0, null(), CL_MEM_COPY_HOST_PTR, 16, null_mut()));
            CL_INVALID_HOST_PTR "one that is not wanted" =
                makes!(w, clCreateBufferWithProperties(w.s.context.0, null(), 0, 16, w.place()));
            CL_INVALID_VALUE "flags" = makes!(w, clCreateBufferWithProperties(w.s.context.0, null(), 1 << 40, 16, null_mut()));
            CL_INVALID_BUFFER_SIZE "more than the allocation has" =
                makes!(w, clCreateBufferWithProperties(w.s.context.0, null(), CL_MEM_USE_HOST_PTR, 8192, w.svm));
            CL_INVALID_OPERATION "no addresses" => never "the devices here have them";
            CL_INVALID_PROPERTY "not a value" = makes!(w, clCreateBufferWithProperties(w.s.context.0,
                [CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT, 7, 0].as_ptr(), 0, 16, null_mut()));
            CL_INVALID_PROPERTY "twice" = makes!(w, clCreateBufferWithProperties(w.s.context.0,
                [CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT, 1, CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT, 1, 0].as_ptr(), 0, 16, null_mut()));
            CL_INVALID_VALUE "immutable and written" = makes!(w, clCreateBufferWithProperties(w.s.context.0, null(),
                CL_MEM_IMMUTABLE_EXT | CL_MEM_COPY_HOST_PTR | CL_MEM_READ_WRITE, 16, w.place()));
            CL_INVALID_VALUE "immutable without contents" =
                makes!(w, clCreateBufferWithProperties(w.s.context.0, null(), CL_MEM_IMMUTABLE_EXT, 16, null_mut()));
        }
        clCreateSubBuffer {
            CL_INVALID_MEM_OBJECT "not a buffer" = { let mut all = w.bad(|m| sub(w, m, 0, KIND, Some((0, 16))));
                all.push(sub(w, w.i.0, 0, KIND, Some((0, 16)))); all };
            CL_INVALID_MEM_OBJECT "a part" = sub(w, w.part.0, 0, KIND, Some((0, 16)));
            CL_INVALID_VALUE "no region" = sub(w, w.b.0, 0, KIND, None);
            CL_INVALID_VALUE "a kind" = sub(w, w.b.0, 0, 1, Some((0, 16)));
            CL_INVALID_VALUE "out of bounds" = [(2048, 4096), (usize::MAX - 255, 512)].map(|r| sub(w, w.b.0, 0, KIND, Some(r)));
            CL_INVALID_VALUE "host pointers" = [CL_MEM_USE_HOST_PTR, CL_MEM_ALLOC_HOST_PTR, CL_MEM_COPY_HOST_PTR]
                .map(|flags| sub(w, w.b.0, flags, KIND, Some((0, 16))));
            CL_INVALID_VALUE "the host may read the buffer only" = sub(w, w.host_read.0, CL_MEM_HOST_WRITE_ONLY, KIND, Some((0, 16)));
            CL_INVALID_VALUE "the host may write the buffer only" = sub(w, w.host_write.0, CL_MEM_HOST_READ_ONLY, KIND, Some((0, 16)));
            CL_INVALID_VALUE "the host may do nothing" = [CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY]
                .map(|flags| sub(w, w.host_none.0, flags, KIND, Some((0, 16))));
            CL_INVALID_VALUE "an immutable buffer" = [CL_MEM_READ_WRITE, CL_MEM_WRITE_ONLY, CL_MEM_HOST_WRITE_ONLY]
                .map(|flags| sub(w, w.immutable.0, flags, KIND, Some((0, 16))));
            CL_INVALID_BUFFER_SIZE "nothing" = sub(w, w.b.0, 0, KIND, Some((0, 0)));
            CL_INVALID_MEM_OBJECT "an image over a buffer" = sub(w, w.i_line.0, 0, KIND, Some((0, 16)));
            CL_INVALID_VALUE "the buffer is only written" = [CL_MEM_READ_WRITE, CL_MEM_READ_ONLY]
                .map(|flags| sub(w, w.b_write.0, flags, KIND, Some((0, 16))));
            CL_INVALID_VALUE "the buffer is only read" = [CL_MEM_READ_WRITE, CL_MEM_WRITE_ONLY]
                .map(|flags| sub(w, w.b_read.0, flags, KIND, Some((0, 16))));
            CL_INVALID_VALUE "flags" = sub(w, w.b.0, 1 << 40, KIND, Some((0, 16)));
            CL_MISALIGNED_SUB_BUFFER_OFFSET "within what the device aligns to" = sub(w, w.b.0, 0, KIND, Some((alignment(w) / 2, 16)));
        }
        clSetMemObjectDestructorCallback {
            CL_INVALID_VALUE "no function" = call!(clSetMemObjectDestructorCallback(w.b.0, None, null_mut()));
            CL_INVALID_MEM_OBJECT "not a memory object" = w.bad(|m|
                call!(clSetMemObjectDestructorCallback(m, Some(nothing_of_context), null_mut())));
        }
        clCreateImage {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clCreateImage(c, 0, &RGBA, &description(8, 8, 0), null_mut())));
            CL_INVALID_VALUE "flags" = image(w, 1 << 40, &RGBA, &description(8, 8, 0), null_mut());
            CL_INVALID_VALUE "immutable and written" =
                image(w, CL_MEM_IMMUTABLE_EXT | CL_MEM_COPY_HOST_PTR | CL_MEM_READ_WRITE, &RGBA, &description(8, 8, 0), w.place());
            CL_INVALID_VALUE "immutable without contents" = image(w, CL_MEM_IMMUTABLE_EXT, &RGBA, &description(8, 8, 0), null_mut());
            CL_INVALID_IMAGE_FORMAT_DESCRIPTOR "none" = image(w, 0, null(), &description(8, 8, 0), null_mut());
            CL_INVALID_IMAGE_FORMAT_DESCRIPTOR "an order that is none" = image(w, 0,
                &cl_image_format { image_channel_order: 1, ..RGBA }, &description(8, 8, 0), null_mut());
            CL_INVALID_IMAGE_SIZE "too large" = image(w, 0, &RGBA, &description(1 << 30, 8, 0), null_mut());
            CL_INVALID_HOST_PTR "none, but wanted" = image(w, CL_MEM_COPY_HOST_PTR, &RGBA, &description(8, 8, 0), null_mut());
            CL_INVALID_HOST_PTR "one that is not wanted" = image(w, 0, &RGBA, &description(8, 8, 0), w.place());
            CL_INVALID_OPERATION "no images" => never "the devices here have them";
            CL_IMAGE_FORMAT_NOT_SUPPORTED "a format that no device has" = image(w, CL_MEM_WRITE_ONLY, &NO_FORMAT, &description(8, 8, 0), null_mut());
            CL_INVALID_IMAGE_FORMAT_DESCRIPTOR "a row pitch that does not fit" = image(w, 0, &RGBA, &over(w.b.0, 8, 8, 33), null_mut());
            CL_INVALID_IMAGE_SIZE "a buffer that is too small" = image(w, 0, &RGBA, &over(w.part.0, 64, 64, 0), null_mut());
            CL_INVALID_VALUE "a buffer that is only written, or read, of which more is wanted" = [
                (w.b_write.0, CL_MEM_READ_WRITE), (w.b_write.0, CL_MEM_READ_ONLY), (w.b_read.0, CL_MEM_READ_WRITE),
                (w.b_read.0, CL_MEM_WRITE_ONLY), (w.b.0, CL_MEM_USE_HOST_PTR), (w.b.0, CL_MEM_COPY_HOST_PTR)]
                .map(|(of, flags)| image(w, flags, &RGBA, &over(of, 8, 8, 0), null_mut()));
            CL_INVALID_VALUE "the host may only write the buffer" = image(w, CL_MEM_HOST_READ_ONLY, &RGBA, &over(w.host_write.0, 8, 8, 0), null_mut());
            CL_INVALID_VALUE "the host may only read the buffer" = image(w, CL_MEM_HOST_WRITE_ONLY, &RGBA, &over(w.host_read.0, 8, 8, 0), null_mut());
            CL_INVALID_VALUE "the host may do nothing" = [CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY]
                .map(|flags| image(w, flags, &RGBA, &over(w.host_none.0, 8, 8, 0), null_mut()));
            CL_INVALID_VALUE "an immutable buffer, of which more is wanted" = image(w, CL_MEM_READ_WRITE, &RGBA, &over(w.immutable.0, 8, 8, 0), null_mut());
            CL_INVALID_PROPERTY "not a property" => never "the call has no properties";
            CL_INVALID_PROPERTY "not a value" => never "the call has no properties";
            CL_INVALID_PROPERTY "twice" => never "the call has no properties";
        }
        clGetSupportedImageFormats {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c|
                call!(clGetSupportedImageFormats(c, 0, CL_MEM_OBJECT_IMAGE2D, 1, w.place().cast(), null_mut())));
            CL_INVALID_VALUE "flags" = call!(clGetSupportedImageFormats(w.s.context.0, 1 << 40, CL_MEM_OBJECT_IMAGE2D, 1, w.place().cast(),
                null_mut()));
            CL_INVALID_VALUE "not an image" =
                call!(clGetSupportedImageFormats(w.s.context.0, 0, CL_MEM_OBJECT_BUFFER, 1, w.place().cast(), null_mut()));
            CL_INVALID_VALUE "no room" =
                call!(clGetSupportedImageFormats(w.s.context.0, 0, CL_MEM_OBJECT_IMAGE2D, 0, w.place().cast(), null_mut()));
        }
        clCreateSampler {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clCreateSampler(c, CL_TRUE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST)));
            CL_INVALID_VALUE "values" = [(7, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST), (CL_TRUE, 1, CL_FILTER_NEAREST),
                (CL_TRUE, CL_ADDRESS_CLAMP, 1)].map(|(n, a, f)| makes!(w, clCreateSampler(w.s.context.0, n, a, f)));
            CL_INVALID_OPERATION "no images" => never "the devices here have them";
            CL_INVALID_VALUE "not of the enumeration" = [(7, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST), (CL_TRUE, 1, CL_FILTER_NEAREST)]
                .map(|(n, a, f)| makes!(w, clCreateSampler(w.s.context.0, n, a, f)));
        }
        clCreateSamplerWithProperties {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clCreateSamplerWithProperties(c, null())));
            CL_INVALID_VALUE "a property" = makes!(w, clCreateSamplerWithProperties(w.s.context.0, [0x1234, 1, 0].as_ptr()));
            CL_INVALID_OPERATION "no images" => never "the devices here have them";
            CL_INVALID_VALUE "twice" = makes!(w, clCreateSamplerWithProperties(w.s.context.0, [u64::from(CL_SAMPLER_NORMALIZED_COORDS), 1,
                u64::from(CL_SAMPLER_NORMALIZED_COORDS), 1, 0].as_ptr()));
            CL_INVALID_VALUE "not a value" = makes!(w, clCreateSamplerWithProperties(w.s.context.0,
                [u64::from(CL_SAMPLER_FILTER_MODE), 1, 0].as_ptr()));
        }
        clCreatePipe {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clCreatePipe(c, 0, 4, 16, null())));
            CL_INVALID_PIPE_SIZE "no packets, or of no size" = [(0, 16), (4, 0)].map(|(size, count)|
                makes!(w, clCreatePipe(w.s.context.0, 0, size, count, null())));
            CL_INVALID_VALUE "flags" = makes!(w, clCreatePipe(w.s.context.0, 1 << 40, 4, 16, null()));
            CL_INVALID_VALUE "properties" = makes!(w, clCreatePipe(w.s.context.0, 0, 4, 16, [0x1234, 1, 0].as_ptr()));
            CL_INVALID_OPERATION "no pipes" => never "the devices here have them";
            CL_INVALID_PIPE_SIZE "packets that are too large" = makes!(w, clCreatePipe(w.s.context.0, 0, 1 << 30, 16, null()));
            CL_INVALID_VALUE "immutable" = makes!(w, clCreatePipe(w.s.context.0, CL_MEM_IMMUTABLE_EXT, 4, 16, null()));
        }
        clGetPipeInfo {
            CL_INVALID_MEM_OBJECT "not a pipe" = { let ask = |m| call!(clGetPipeInfo(m, CL_PIPE_PACKET_SIZE, 4, w.place(), w.size()));
                let mut all = w.bad(ask); all.push(ask(w.b.0)); all };
        }
        clCreateImage2D {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clCreateImage2D(c, 0, &RGBA, 8, 8, 0, null_mut())));
            CL_INVALID_VALUE "flags" = makes!(w, clCreateImage2D(w.s.context.0, 1 << 40, &RGBA, 8, 8, 0, null_mut()));
            CL_INVALID_VALUE "immutable without contents" =
                makes!(w, clCreateImage2D(w.s.context.0, CL_MEM_IMMUTABLE_EXT, &RGBA, 8, 8, 0, null_mut()));
            CL_INVALID_IMAGE_FORMAT_DESCRIPTOR "none" = makes!(w, clCreateImage2D(w.s.context.0, 0, null(), 8, 8, 0, null_mut()));
            CL_INVALID_IMAGE_FORMAT_DESCRIPTOR "an order that is none" = makes!(w, clCreateImage2D(w.s.context.0, 0,
                &cl_image_format { image_channel_order: 1, ..RGBA }, 8, 8, 0, null_mut()));
            CL_INVALID_HOST_PTR "none, but wanted" =
                makes!(w, clCreateImage2D(w.s.context.0, CL_MEM_COPY_HOST_PTR, &RGBA, 8, 8, 0, null_mut()));
            CL_INVALID_HOST_PTR "one that is not wanted" = makes!(w, clCreateImage2D(w.s.context.0, 0, &RGBA, 8, 8, 0, w.place()));
            CL_INVALID_IMAGE_SIZE "nothing, or too large" = [0, 1 << 30].map(|width|
                makes!(w, clCreateImage2D(w.s.context.0, 0, &RGBA, width, 8, 0, null_mut())));
            CL_INVALID_OPERATION "no images" => never "the devices here have them";
            CL_IMAGE_FORMAT_NOT_SUPPORTED "a format that no device has" =
                makes!(w, clCreateImage2D(w.s.context.0, CL_MEM_WRITE_ONLY, &NO_FORMAT, 8, 8, 0, null_mut()));
            CL_INVALID_IMAGE_SIZE "too high" = makes!(w, clCreateImage2D(w.s.context.0, 0, &RGBA, 8, 1 << 30, 0, null_mut()));
            CL_INVALID_IMAGE_SIZE "a row pitch that is too small" =
                makes!(w, clCreateImage2D(w.s.context.0, CL_MEM_COPY_HOST_PTR, &RGBA, 8, 8, 31, w.place()));
        }
        clCreateImageWithProperties {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| with_properties(w, c, null(), 0, &RGBA, null_mut()));
            CL_INVALID_PROPERTY "not a property" = with_properties(w, w.s.context.0, [0x1234, 1, 0].as_ptr(), 0, &RGBA, null_mut());
            CL_INVALID_VALUE "flags" = with_properties(w, w.s.context.0, null(), 1 << 40, &RGBA, null_mut());
            CL_INVALID_IMAGE_FORMAT_DESCRIPTOR "none" = with_properties(w, w.s.context.0, null(), 0, null(), null_mut());
            CL_INVALID_HOST_PTR "none, but wanted" =
                with_properties(w, w.s.context.0, null(), CL_MEM_COPY_HOST_PTR, &RGBA, null_mut());
            CL_INVALID_HOST_PTR "one that is not wanted" = with_properties(w, w.s.context.0, null(), 0, &RGBA, w.place());
            CL_INVALID_OPERATION "no images" => never "the devices here have them";
            CL_IMAGE_FORMAT_NOT_SUPPORTED "a format that no device has" = with_all(w, CL_MEM_WRITE_ONLY, &NO_FORMAT, &description(8, 8, 0), null_mut());
            CL_INVALID_IMAGE_FORMAT_DESCRIPTOR "a row pitch that does not fit" = with_all(w, 0, &RGBA, &over(w.b.0, 8, 8, 33), null_mut());
            CL_INVALID_IMAGE_SIZE "a buffer that is too small" = with_all(w, 0, &RGBA, &over(w.part.0, 64, 64, 0), null_mut());
            CL_INVALID_VALUE "a buffer that is only written, or read, of which more is wanted" = [
                (w.b_write.0, CL_MEM_READ_WRITE), (w.b_write.0, CL_MEM_READ_ONLY), (w.b_read.0, CL_MEM_READ_WRITE),
                (w.b_read.0, CL_MEM_WRITE_ONLY), (w.b.0, CL_MEM_USE_HOST_PTR), (w.b.0, CL_MEM_COPY_HOST_PTR)]
                .map(|(of, flags)| with_all(w, flags, &RGBA, &over(of, 8, 8, 0), null_mut()));
            CL_INVALID_VALUE "the host may only write the buffer" = with_all(w, CL_MEM_HOST_READ_ONLY, &RGBA, &over(w.host_write.0, 8, 8, 0), null_mut());
            CL_INVALID_VALUE "the host may only read the buffer" = with_all(w, CL_MEM_HOST_WRITE_ONLY, &RGBA, &over(w.host_read.0, 8, 8, 0), null_mut());
            CL_INVALID_VALUE "the host may do nothing" = [CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY]
                .map(|flags| with_all(w, flags, &RGBA, &over(w.host_none.0, 8, 8, 0), null_mut()));
            CL_INVALID_VALUE "an immutable buffer, of which more is wanted" = with_all(w, CL_MEM_READ_WRITE, &RGBA, &over(w.immutable.0, 8, 8, 0), null_mut());
            CL_INVALID_PROPERTY "not a value" => never "no property is known";
            CL_INVALID_PROPERTY "twice" => never "no property is known";
            CL_INVALID_IMAGE_FORMAT_DESCRIPTOR "an order that is none" =
                with_all(w, 0, &cl_image_format { image_channel_order: 1, ..RGBA }, &description(8, 8, 0), null_mut());
            CL_INVALID_IMAGE_SIZE "too large" = with_all(w, 0, &RGBA, &description(1 << 30, 8, 0), null_mut());
            CL_INVALID_VALUE "immutable and written" = with_all(w, CL_MEM_IMMUTABLE_EXT | CL_MEM_COPY_HOST_PTR | CL_MEM_READ_WRITE, &RGBA,
                &description(8, 8, 0), w.place());
            CL_INVALID_VALUE "immutable without contents" = with_all(w, CL_MEM_IMMUTABLE_EXT, &RGBA, &description(8, 8, 0), null_mut());
        }
        clCreateImage3D {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| deep(w, c, 0, &RGBA, [8, 8, 4], [0, 0], null_mut()));
            CL_INVALID_VALUE "flags" = deep(w, w.s.context.0, 1 << 40, &RGBA, [8, 8, 4], [0, 0], null_mut());
            CL_INVALID_VALUE "immutable without contents" =
                deep(w, w.s.context.0, CL_MEM_IMMUTABLE_EXT, &RGBA, [8, 8, 4], [0, 0], null_mut());
            CL_INVALID_IMAGE_FORMAT_DESCRIPTOR "none" = deep(w, w.s.context.0, 0, null(), [8, 8, 4], [0, 0], null_mut());
            CL_INVALID_IMAGE_FORMAT_DESCRIPTOR "an order that is none" = deep(w, w.s.context.0, 0,
                &cl_image_format { image_channel_order: 1, ..RGBA }, [8, 8, 4], [0, 0], null_mut());
            CL_IMAGE_FORMAT_NOT_SUPPORTED "a format that no device has" =
                deep(w, w.s.context.0, CL_MEM_WRITE_ONLY, &NO_FORMAT, [8, 8, 4], [0, 0], null_mut());
            CL_INVALID_IMAGE_SIZE "no width, or no height" = [[0, 8, 4], [8, 0, 4]].map(|size|
                deep(w, w.s.context.0, 0, &RGBA, size, [0, 0], null_mut()));
            CL_INVALID_IMAGE_SIZE "no depth, or one slice" = [0, 1].map(|depth|
                deep(w, w.s.context.0, 0, &RGBA, [8, 8, depth], [0, 0], null_mut()));
            CL_INVALID_IMAGE_SIZE "too large" = [[1 << 30, 8, 4], [8, 1 << 30, 4], [8, 8, 1 << 30]].map(|size|
                deep(w, w.s.context.0, 0, &RGBA, size, [0, 0], null_mut()));
            CL_INVALID_IMAGE_SIZE "pitches that are too small, or no multiple" = [[31, 0], [32, 255], [32, 260]].map(|pitches|
                deep(w, w.s.context.0, CL_MEM_COPY_HOST_PTR, &RGBA, [8, 8, 4], pitches, w.place()));
            CL_INVALID_HOST_PTR "none, but wanted" =
                deep(w, w.s.context.0, CL_MEM_COPY_HOST_PTR, &RGBA, [8, 8, 4], [0, 0], null_mut());
            CL_INVALID_HOST_PTR "one that is not wanted" = deep(w, w.s.context.0, 0, &RGBA, [8, 8, 4], [0, 0], w.place());
            CL_INVALID_OPERATION "no images" => never "the devices here have them";
        }
        clGetImageRequirementsInfoEXT {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| requirements(w, c, null(), 0, &RGBA, &description(8, 8, 0), ROWS, 8));
            CL_INVALID_PROPERTY "not a property" =
                requirements(w, w.s.context.0, [0x1234, 1, 0].as_ptr(), 0, &RGBA, &description(8, 8, 0), ROWS, 8);
            CL_INVALID_PROPERTY "not a value" => never "no property is known";
            CL_INVALID_PROPERTY "twice" => never "no property is known";
            CL_INVALID_VALUE "flags" = requirements(w, w.s.context.0, null(), 1 << 40, &RGBA, &description(8, 8, 0), ROWS, 8);
            CL_INVALID_VALUE "a name that is none" = requirements(w, w.s.context.0, null(), 0, &RGBA, &description(8, 8, 0), 0xfff1, 8);
            CL_INVALID_VALUE "a place that is too small" = { let code = requirements(w, w.s.context.0, null(), 0, &RGBA, &description(8, 8, 0),
                ROWS, 1); w.size_is_open(); code };
            CL_INVALID_IMAGE_FORMAT_DESCRIPTOR "an order that is none" = requirements(w, w.s.context.0, null(), 0,
                &cl_image_format { image_channel_order: 1, ..RGBA }, &description(8, 8, 0), ROWS, 8);
            CL_INVALID_IMAGE_DESCRIPTOR "a kind that is none" = requirements(w, w.s.context.0, null(), 0, &RGBA,
                &cl_image_desc { image_type: CL_MEM_OBJECT_BUFFER, ..description(8, 8, 0) }, ROWS, 8);
        }
    }
}

fn image(
    w: &World,
    flags: cl_mem_flags,
    format: *const cl_image_format,
    desc: *const cl_image_desc,
    at: *mut c_void,
) -> cl_int {
    makes!(w, clCreateImage(w.s.context.0, flags, format, desc, at))
}

fn sub(
    w: &World,
    of: cl_mem,
    flags: cl_mem_flags,
    kind: cl_uint,
    region: Option<(usize, usize)>,
) -> cl_int {
    let region = region.map(|(origin, size)| cl_buffer_region { origin, size });
    let place = region.as_ref().map_or(null(), |r| (&raw const *r).cast());
    makes!(w, clCreateSubBuffer(of, flags, kind, place))
}

fn with_properties(
    w: &World,
    c: cl_context,
    list: *const cl_mem_properties,
    flags: cl_mem_flags,
    format: *const cl_image_format,
    at: *mut c_void,
) -> cl_int {
    makes!(
        w,
        clCreateImageWithProperties(c, list, flags, format, &description(8, 8, 0), at)
    )
}

extern "C" fn nothing_of_context(_: *mut c_void, _: *mut c_void) {}

/// An image of two dimensions over a buffer.
fn over(buffer: cl_mem, width: usize, height: usize, row_pitch: usize) -> cl_image_desc {
    let mut desc = description(width, height, 0);
    desc.image_row_pitch = row_pitch;
    desc.buffer = buffer;
    desc
}

fn with_all(
    w: &World,
    flags: cl_mem_flags,
    format: *const cl_image_format,
    desc: *const cl_image_desc,
    at: *mut c_void,
) -> cl_int {
    makes!(
        w,
        clCreateImageWithProperties(w.s.context.0, null(), flags, format, desc, at)
    )
}

/// By clCreateImage3D.
fn deep(
    w: &World,
    c: cl_context,
    flags: cl_mem_flags,
    format: *const cl_image_format,
    [width, height, depth]: [usize; 3],
    [row, slice]: [usize; 2],
    at: *mut c_void,
) -> cl_int {
    makes!(
        w,
        clCreateImage3D(c, flags, format, width, height, depth, row, slice, at)
    )
}

#[allow(clippy::too_many_arguments)]
fn requirements(
    w: &World,
    c: cl_context,
    list: *const cl_mem_properties,
    flags: cl_mem_flags,
    format: *const cl_image_format,
    desc: *const cl_image_desc,
    name: cl_image_requirements_info_ext,
    size: usize,
) -> cl_int {
    ext!(w.s, clGetImageRequirementsInfoEXT: clGetImageRequirementsInfoEXT_t(c, list, flags, format, desc, name, size, w.place(),
        w.size()))
}

/// Returns the alignment of buffers, in bytes.
fn alignment(w: &World) -> usize {
    let bits = info_value!(
        u32,
        clGetDeviceInfo(w.s.device),
        CL_DEVICE_MEM_BASE_ADDR_ALIGN
    );
    bits as usize / 8
}
