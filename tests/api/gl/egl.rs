//! Images of EGL.

use super::world::*;
use pumice_tests::sys::*;
use pumice_tests::{info_value, Event};
use std::ptr::{null, null_mut};

const GL_TEXTURE_2D_IMAGE: u32 = 0x30B1;

#[test]
fn images_of_textures() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    // They need no context of OpenGL.
    let sharing = Sharing::new(&[0], 0);
    let size = [40, 24, 1];
    let before = noise(40 * 24 * 4, 1);
    let name = world.new_texture(TEXTURE_2D, size, RGBA8, Some(&before));
    gl!(world.gl, Finish());
    let image = gl!(
        world.egl,
        CreateImage(
            world.display,
            world.context,
            GL_TEXTURE_2D_IMAGE,
            name as usize as Pointer,
            null()
        )
    );
    assert!(!image.is_null());
    let mem = sharing.image(&world, image).expect("an image");
    // The memory object keeps what it was made from.
    gl!(world.egl, DestroyImage(world.display, image));
    assert_eq!(
        info_value!(usize, clGetImageInfo(mem.0), CL_IMAGE_WIDTH),
        40
    );
    let hand_over = |acquire: bool| {
        let mut event = null_mut();
        let queue = sharing.queue();
        let code = match acquire {
            true => cl!(
                sharing,
                acquire_images(queue, 1, &mem.0, 0, null(), &mut event)
            ),
            false => cl!(
                sharing,
                release_images(queue, 1, &mem.0, 0, null(), &mut event)
            ),
        };
        assert_eq!(code, 0);
        Event(event)
    };
    let kind = |event: &Event| info_value!(u32, clGetEventInfo(event.0), CL_EVENT_COMMAND_TYPE);
    let acquired = hand_over(true);
    assert_eq!(kind(&acquired), cl_egl::CL_COMMAND_ACQUIRE_EGL_OBJECTS_KHR);
    assert!(sharing.read_image(&mem, size, before.len()) == before);
    let after = noise(before.len(), 2);
    sharing.write_image(&mem, size, &after);
    let released = hand_over(false);
    assert_eq!(kind(&released), cl_egl::CL_COMMAND_RELEASE_EGL_OBJECTS_KHR);
    assert_eq!(released.wait(), 0);
    assert!(world.texture_bytes(TEXTURE_2D, 0, name, RGBA8, after.len()) == after);
    // It is none of OpenGL's for OpenCL.
    let (mut of, mut kind) = (0, 0);
    assert_eq!(
        cl!(sharing, object_info(mem.0, &mut kind, &mut of)),
        CL_INVALID_GL_OBJECT
    );
}

#[test]
fn wrong_images() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let sharing = Sharing::new(&[0], 0);
    let code = |image: usize| sharing.image(&world, image as Pointer).map(drop).err();
    assert_eq!(code(0), Some(cl_egl::CL_INVALID_EGL_OBJECT_KHR));
    assert_eq!(code(0x1230), Some(cl_egl::CL_INVALID_EGL_OBJECT_KHR));
    let mut code = 1;
    let context = sharing.setup.context.0;
    let bad = 0x1230 as Pointer;
    cl!(
        sharing,
        from_image(context, bad, bad, CL_MEM_READ_WRITE, null(), &mut code)
    );
    assert_eq!(code, cl_egl::CL_INVALID_EGL_OBJECT_KHR);
    cl!(
        sharing,
        from_image(
            context,
            world.display,
            bad,
            CL_MEM_ALLOC_HOST_PTR,
            null(),
            &mut code
        )
    );
    assert_eq!(code, CL_INVALID_VALUE);
    cl!(
        sharing,
        from_image(
            null_mut(),
            world.display,
            bad,
            CL_MEM_READ_WRITE,
            null(),
            &mut code
        )
    );
    assert_eq!(code, CL_INVALID_CONTEXT);
}
