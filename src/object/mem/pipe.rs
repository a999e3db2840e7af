//! Pipes (OpenCL API specification, "Pipes"): memory objects that kernels alone reach. Their bytes are those of
//! `spirv_lowering::pipe`; the empty pipe is written there when it is made, and commands treat it as any memory object.

use super::store::Store;
use super::Mem;
use crate::cl::{self, cl_mem_flags, cl_pipe_info, cl_pipe_properties, cl_uint};
use crate::error::{ensure, err, ClResult, OrErr};
use crate::handle::Ref;
use crate::object::context::Context;
use crate::object::device::PIPE_MAX_PACKET_SIZE;
use crate::object::info::{answer, InfoOut, Written};
use spirv_lowering::pipe;

/// The packets that a pipe holds.
#[derive(Debug, Clone, Copy)]
pub struct Packets {
    /// CL_PIPE_PACKET_SIZE, in bytes.
    size: cl_uint,
    /// CL_PIPE_MAX_PACKETS.
    most: cl_uint,
}

impl Mem {
    /// Implements clCreatePipe. `properties`: with the closing zero; `None` if there are none.
    pub fn pipe(
        context: &Ref<Context>,
        flags: cl_mem_flags,
        packet_size: cl_uint,
        max_packets: cl_uint,
        properties: Option<&[cl_pipe_properties]>,
    ) -> ClResult<Ref<Self>> {
        // "Only CL_MEM_READ_WRITE and CL_MEM_HOST_NO_ACCESS can be specified when creating a pipe object. If the value
        // specified for flags is 0, the default is used which is CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS."
        let both = cl::CL_MEM_READ_WRITE | cl::CL_MEM_HOST_NO_ACCESS;
        ensure!(
            flags & !both == 0,
            cl::CL_INVALID_VALUE,
            "a pipe has no flags but READ_WRITE and HOST_NO_ACCESS"
        );
        ensure!(
            properties.is_none(),
            cl::CL_INVALID_VALUE,
            "the properties of a pipe have to be null"
        );
        ensure!(
            packet_size != 0 && packet_size <= PIPE_MAX_PACKET_SIZE && max_packets != 0,
            cl::CL_INVALID_PIPE_SIZE,
            "{max_packets} packets of {packet_size} bytes"
        );
        let sizes = context.devices.iter();
        let most = sizes.map(|device| device.caps().max_alloc_size).max();
        let fits = |size: &u64| *size <= most.unwrap_or(0);
        let (size, header) = match (
            pipe::size(packet_size, max_packets).filter(fits),
            pipe::header(packet_size, max_packets),
        ) {
            (Some(size), Some(header)) => (size, header),
            _ => {
                return err(
                    cl::CL_MEM_OBJECT_ALLOCATION_FAILURE,
                    format!("a pipe of {max_packets} packets of {packet_size} bytes"),
                )
            }
        };
        let flags = if flags == 0 {
            both
        } else {
            flags | cl::CL_MEM_READ_WRITE
        };
        let store = Store::new(&context.memories, size, flags, 0, Some(&header))?;
        Ok(Self::make(context, flags, store, |mem| {
            mem.object_type = cl::CL_MEM_OBJECT_PIPE;
            mem.packets = Some(Packets {
                size: packet_size,
                most: max_packets,
            });
        }))
    }

    /// Returns true if the memory object is a pipe.
    pub fn is_pipe(&self) -> bool {
        self.packets.is_some()
    }

    /// Implements clGetPipeInfo.
    pub fn pipe_info(&self, param: cl_pipe_info, out: InfoOut<'_>) -> ClResult<Written> {
        let packets = self
            .packets
            .or_err(cl::CL_INVALID_MEM_OBJECT, "the memory object is not a pipe")?;
        answer! { param, out;
            CL_PIPE_PACKET_SIZE => packets.size,
            CL_PIPE_MAX_PACKETS => packets.most,
            // None can be given.
            CL_PIPE_PROPERTIES => Vec::<cl_pipe_properties>::new(),
        }
    }
}
