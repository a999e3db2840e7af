//! Programs: built from source, compiled and linked, and from binaries.

use super::{buffer, launch, set, Ended, Objects, Outcome, World, BYTES, COUNT, MEMORY, SOURCE};
use opencl_sys as sys;
use pumice_tests::call;
use std::ptr::{null, null_mut};

/// The source once more, as a program of its own, which the cache knows by now, if it could be written.
pub fn again(o: &mut Outcome, objects: &mut Objects, world: &World) -> Ended {
    let (mut source, length) = (SOURCE.as_ptr().cast(), SOURCE.len());
    let program = made!(
        o,
        objects,
        &[],
        clReleaseProgram,
        clCreateProgramWithSource(world.context, 1, &mut source, &length)
    );
    build(o, world, program)?;
    use_add(o, objects, world, program)
}

fn build(o: &mut Outcome, world: &World, program: sys::cl_program) -> Ended {
    done!(
        o,
        &[sys::CL_BUILD_PROGRAM_FAILURE],
        clBuildProgram(program, 1, &world.device, c"-w".as_ptr(), None, null_mut())
    );
    Ok(())
}

/// Adds three to a buffer of zeros with the kernel `add` of a program.
fn use_add(
    o: &mut Outcome,
    objects: &mut Objects,
    world: &World,
    program: sys::cl_program,
) -> Ended {
    let add = made!(
        o,
        objects,
        &[],
        clReleaseKernel,
        clCreateKernel(program, c"add".as_ptr())
    );
    let out = buffer(o, objects, world)?;
    let zero = 0i32;
    let pattern = (&raw const zero).cast();
    done!(
        o,
        MEMORY,
        clEnqueueFillBuffer(
            world.queue,
            out,
            pattern,
            4,
            0,
            BYTES,
            0,
            null(),
            null_mut()
        )
    );
    set(o, add, 0, &out)?;
    set(o, add, 1, &3i32)?;
    launch(o, world, add, &[COUNT])?;
    let mut back = vec![0i32; COUNT];
    done!(
        o,
        MEMORY,
        clEnqueueReadBuffer(
            world.queue,
            out,
            1,
            0,
            BYTES,
            back.as_mut_ptr().cast(),
            0,
            null(),
            null_mut()
        )
    );
    o.expect(
        back.iter().all(|one| *one == 3),
        "wrong numbers of a program",
    );
    Ok(())
}

/// A source that includes a header of the application, compiled and linked.
pub fn separately(o: &mut Outcome, objects: &mut Objects, world: &World) -> Ended {
    let header = "int value(int a) { return a; }\n";
    let source = "#include \"part.h\"\nkernel void add(global int *p, int a) { p[get_global_id(0)] += value(a); }\n";
    let mut program = |text: &str| {
        let (mut start, length) = (text.as_ptr().cast(), text.len());
        Ok(made!(
            o,
            objects,
            &[],
            clReleaseProgram,
            clCreateProgramWithSource(world.context, 1, &mut start, &length)
        ))
    };
    let (header, source) = (program(header)?, program(source)?);
    let mut name = c"part.h".as_ptr();
    done!(
        o,
        &[sys::CL_COMPILE_PROGRAM_FAILURE],
        clCompileProgram(
            source,
            1,
            &world.device,
            null(),
            1,
            &header,
            &mut name,
            None,
            null_mut()
        )
    );
    let linked = made!(
        o,
        objects,
        &[sys::CL_LINK_PROGRAM_FAILURE],
        clReleaseProgram,
        clLinkProgram(
            world.context,
            1,
            &world.device,
            null(),
            1,
            &source,
            None,
            null_mut()
        )
    );
    use_add(o, objects, world, linked)
}

/// The binary of the program, as a program.
pub fn from_binary(o: &mut Outcome, objects: &mut Objects, world: &World) -> Ended {
    let mut size = 0usize;
    done!(
        o,
        &[],
        clGetProgramInfo(
            world.program,
            sys::CL_PROGRAM_BINARY_SIZES,
            8,
            (&raw mut size).cast(),
            null_mut()
        )
    );
    let mut bytes = vec![0u8; size];
    let mut start = bytes.as_mut_ptr();
    done!(
        o,
        &[],
        clGetProgramInfo(
            world.program,
            sys::CL_PROGRAM_BINARIES,
            8,
            (&raw mut start).cast(),
            null_mut()
        )
    );
    let mut start = bytes.as_ptr();
    let program = made!(
        o,
        objects,
        &[],
        clReleaseProgram,
        clCreateProgramWithBinary(
            world.context,
            1,
            &world.device,
            &size,
            &mut start,
            null_mut()
        )
    );
    build(o, world, program)?;
    use_add(o, objects, world, program)
}
