//! Pointers from C. All raw-pointer work of the C edge is here.
//!
//! Entry bodies are safe functions: they get pointers wrapped as [`In`] and [`Out`], which only the shells of
//! [`crate::table`] can make. By making one, a shell passes on the promise of the C caller: *a pointer that is not null
//! is as the specification of the function asks* (readable or writable for as many elements as the other arguments
//! say). On this promise rest the `unsafe` blocks below. What the specification lets a caller get wrong (null, counts
//! that do not fit, dead handles) is checked.

use pumice_runtime::cl::{self, cl_int, cl_uint};
use pumice_runtime::command::buffer::Rect;
use pumice_runtime::command::image::Box3;
use pumice_runtime::command::{self, Command, QueueTarget};
use pumice_runtime::command_buffer::{DispatchUpdate, MutableCommand};
use pumice_runtime::error::{err, ClResult, OrErr};
use pumice_runtime::handle::{self, Body, Object, Ref};
use pumice_runtime::object::context::Context;
use pumice_runtime::object::event::Event;
use pumice_runtime::object::info::InfoOut;
use pumice_runtime::object::mem::description::Description;
use pumice_runtime::object::mem::Mem;
use pumice_runtime::object::properties::Form;
use smallvec::SmallVec;
use std::ffi::{c_char, c_void, CStr};
use std::mem::MaybeUninit;

/// A pointer to what the application wants read.
#[derive(Debug)]
pub struct In<T>(*const T);

/// A pointer to where the application wants something written. Handles come as `Out<c_void>` too, see [`Handle`].
#[derive(Debug)]
pub struct Out<T>(*mut T);

/// A handle, or user data.
pub type Handle = Out<c_void>;

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for In<T> {}
impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Out<T> {}

/// Conversion of an argument as C passes it.
pub trait FromC {
    /// The type that entry bodies receive.
    type Arg;
    /// Wraps the argument.
    ///
    /// # Safety
    /// A pointer is null or as the specification of the called function asks, until the call returns.
    unsafe fn wrap(self) -> Self::Arg;
}

macro_rules! plain {
    ($($type:ty)*) => { $(
        impl FromC for $type {
            type Arg = Self;
            unsafe fn wrap(self) -> Self {
                self
            }
        }
    )* };
}
plain! { u32 i32 u64 usize isize }

impl<F> FromC for Option<F> {
    type Arg = Self;
    unsafe fn wrap(self) -> Self {
        self
    }
}

impl<T> FromC for *const T {
    type Arg = In<T>;
    unsafe fn wrap(self) -> In<T> {
        In(self)
    }
}

impl<T> FromC for *mut T {
    type Arg = Out<T>;
    unsafe fn wrap(self) -> Out<T> {
        Out(self)
    }
}

impl<T> In<T> {
    /// Returns NULL.
    pub fn null() -> Self {
        Self(std::ptr::null())
    }

    /// Returns true for NULL.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Returns the pointer itself.
    pub fn as_ptr(self) -> *const T {
        self.0
    }

    /// Returns the address, not to be followed.
    pub fn address(self) -> usize {
        self.0 as usize
    }

    /// Casts to a pointer of the type that the specification gives to the data.
    pub fn cast<U>(self) -> In<U> {
        In(self.0.cast())
    }
}

impl<T: Copy> In<T> {
    /// Returns the value pointed at; `None` for NULL.
    pub fn get(self) -> Option<T> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: not null, so readable (see the module's head); it may be unaligned.
        Some(unsafe { self.0.read_unaligned() })
    }

    /// Returns `count` elements; `None` for NULL.
    pub fn elements(self, count: usize) -> Option<impl Iterator<Item = T>> {
        // SAFETY: not null, so readable for `count` elements (see the module's head); they may be unaligned.
        let element = move |index| unsafe { self.0.add(index).read_unaligned() };
        (!self.0.is_null()).then(|| (0..count).map(element))
    }

    /// Returns copies of `count` elements; `None` for NULL.
    pub fn array(self, count: usize) -> Option<Vec<T>> {
        self.elements(count).map(Iterator::collect)
    }
}

impl In<c_char> {
    /// Returns the string up to its NUL; `None` for NULL. Bytes that are not UTF-8 are replaced.
    pub fn text(self) -> Option<String> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: not null, so a string that ends with NUL (see the module's head).
        Some(
            unsafe { CStr::from_ptr(self.0) }
                .to_string_lossy()
                .into_owned(),
        )
    }
}

impl In<usize> {
    /// Reads as many sizes as there are work dimensions, at most three, then zeros. Returns `None`
    /// for NULL.
    pub fn sizes(self, dims: cl_uint) -> Option<[usize; 3]> {
        if self.0.is_null() {
            return None;
        }
        let mut sizes = [0; 3];
        for (index, size) in sizes.iter_mut().enumerate().take(dims as usize) {
            // SAFETY: not null, so readable for `dims` elements (see the module's head); they may be unaligned.
            *size = unsafe { self.0.add(index).read_unaligned() };
        }
        Some(sizes)
    }
}

impl In<c_void> {
    /// Returns `size` bytes, or `None` for NULL and for sizes that no object can have. They must
    /// not be used after the call.
    pub fn bytes<'a>(self, size: usize) -> Option<&'a [u8]> {
        if self.0.is_null() || size > isize::MAX as usize {
            return None;
        }
        // SAFETY: not null, so readable for `size` bytes (see the module's head).
        Some(unsafe { std::slice::from_raw_parts(self.0.cast(), size) })
    }
}

impl<T> Out<T> {
    /// Returns NULL.
    pub fn null() -> Self {
        Self(std::ptr::null_mut())
    }

    /// Returns true for NULL.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Returns the address.
    pub fn as_ptr(self) -> *mut T {
        self.0
    }

    /// Writes a value, unless it is NULL.
    pub fn set(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not null, so writable (see the module's head); it may be unaligned.
            unsafe { self.0.write_unaligned(value) };
        }
    }

    /// Writes values one after the other, unless it is NULL.
    pub fn set_all(self, values: impl IntoIterator<Item = T>) {
        if !self.0.is_null() {
            for (index, value) in values.into_iter().enumerate() {
                // SAFETY: not null, so writable for as many elements as the caller said there is room for, which the
                // entry body has compared with the number of values.
                unsafe { self.0.add(index).write_unaligned(value) };
            }
        }
    }

    /// Converts to a pointer to read from, where the headers lack a `const`.
    pub fn input(self) -> In<T> {
        In(self.0)
    }
}

impl Out<c_void> {
    /// Returns the live object that the handle names.
    pub fn object<T: Body>(self) -> ClResult<Ref<T>> {
        handle::lookup(self.0)
    }

    /// Returns the live context that the handle names, unless it was terminated.
    pub fn context(self) -> ClResult<Ref<Context>> {
        let context = self.object::<Context>()?;
        context.ensure_works()?;
        Ok(context)
    }
}

/// Gives the application a new object.
pub fn publish<T: Body>(object: ClResult<Ref<T>>) -> ClResult<*mut c_void> {
    object.map(|object| Object::publish(&object))
}

/// Gives the application the event of a command, if it asked for one.
pub fn publish_event(place: Out<cl::cl_event>, event: Option<Ref<Event>>) {
    if let (Some(event), false) = (event, place.is_null()) {
        place.set(Object::publish(&event));
    }
}

/// Looks up a list of objects that must not be empty.
pub fn objects<T: Body>(count: cl_uint, list: In<*mut c_void>) -> ClResult<Vec<Ref<T>>> {
    match list.elements(count as usize) {
        Some(handles) if count > 0 => handles.map(|handle| handle::lookup(handle)).collect(),
        _ => err(cl::CL_INVALID_VALUE, "a list is NULL or its length is 0"),
    }
}

/// Looks up a list of objects that may be left out, with both NULL and 0.
pub fn optional_objects<T: Body>(
    count: cl_uint,
    list: In<*mut c_void>,
) -> ClResult<Option<Vec<Ref<T>>>> {
    match (count, list.is_null()) {
        (0, true) => Ok(None),
        (0, false) | (_, true) => err(
            cl::CL_INVALID_VALUE,
            "a list and its length do not fit together",
        ),
        (_, false) => objects(count, list).map(Some),
    }
}

/// Returns an event wait list of a command that does not wait for fences of OpenGL and EGL: "Passing such events to any
/// other CL API that enqueues commands will generate a CL_INVALID_EVENT error."
pub fn wait_list(count: cl_uint, list: In<cl::cl_event>) -> ClResult<SmallVec<[Ref<Event>; 4]>> {
    let events = events(count, list)?;
    match events.iter().any(|event| event.is_fence()) {
        true => err(cl::CL_INVALID_EVENT, "the wait list has a fence of OpenGL"),
        false => Ok(events),
    }
}

/// Returns an event wait list.
pub fn events(count: cl_uint, list: In<cl::cl_event>) -> ClResult<SmallVec<[Ref<Event>; 4]>> {
    if count == 0 && list.is_null() {
        return Ok(SmallVec::new());
    }
    let Some(handles) = list.elements(count as usize).filter(|_| count > 0) else {
        return err(
            cl::CL_INVALID_EVENT_WAIT_LIST,
            "the wait list and its length do not fit together",
        );
    };
    let mut events = SmallVec::new();
    for event in handles {
        let Ok(event) = handle::lookup(event) else {
            return err(
                cl::CL_INVALID_EVENT_WAIT_LIST,
                "an event of the wait list is not valid",
            );
        };
        events.push(event);
    }
    Ok(events)
}

/// Returns the buffer and size of a clGet*Info call.
pub fn info<'a>(size: usize, value: Out<c_void>, size_ret: Out<usize>) -> InfoOut<'a> {
    let buffer = if value.0.is_null() {
        None
    } else {
        // SAFETY: not null, so writable for `size` bytes (see the module's head).
        Some(unsafe { std::slice::from_raw_parts_mut(value.0.cast::<MaybeUninit<u8>>(), size) })
    };
    // SAFETY: null or writable (see the module's head); `MaybeUninit` asks nothing of its contents.
    let size_ret = unsafe { size_ret.0.cast::<MaybeUninit<usize>>().as_mut() };
    InfoOut::new(buffer, size_ret)
}

/// Answers calls that list handles or structures: `entries` elements have room, all are counted.
pub fn list_out<T: Copy>(
    found: &[T],
    entries: cl_uint,
    list: Out<T>,
    count: Out<cl_uint>,
) -> ClResult {
    if (entries == 0 && !list.is_null()) || (list.is_null() && count.is_null()) {
        return err(
            cl::CL_INVALID_VALUE,
            "no room for the list, or no list and no count",
        );
    }
    list.set_all(found.iter().copied().take(entries as usize));
    count.set(found.len() as cl_uint);
    Ok(())
}

/// Returns a property list: pairs up to a zero, which is kept; `None` for NULL.
pub fn properties<T: Copy + PartialEq + Default>(list: In<T>) -> Option<Vec<T>> {
    if list.is_null() {
        return None;
    }
    let mut all = Vec::new();
    loop {
        // SAFETY: not null, so a list that ends with a zero name (see the module's head), and that was not reached yet.
        let name = unsafe { list.0.add(all.len()).read_unaligned() };
        all.push(name);
        if name == T::default() {
            return Some(all);
        }
        // SAFETY: a name that is not zero is followed by a value.
        all.push(unsafe { list.0.add(all.len()).read_unaligned() });
    }
}

/// Returns a property list whose properties have one value, or a list of values with a closing zero, by their `form`; all of
/// it, with the closing zeros. CL_INVALID_PROPERTY at the first name without a form, or that was there before: nothing is
/// read behind that. Empty for NULL.
pub fn formed_properties(
    list: In<cl::cl_properties>,
    form: impl Fn(cl::cl_properties) -> Option<Form>,
) -> ClResult<Vec<cl::cl_properties>> {
    let mut all = Vec::new();
    if list.is_null() {
        return Ok(all);
    }
    let next = |all: &mut Vec<_>| {
        // SAFETY: as in `properties`: not null, and what comes before has not ended the list.
        let word = unsafe { list.0.add(all.len()).read_unaligned() };
        all.push(word);
        word
    };
    let mut names = Vec::new();
    loop {
        let name = next(&mut all);
        if name == 0 {
            return Ok(all);
        }
        if names.contains(&name) {
            return err(cl::CL_INVALID_PROPERTY, "a property is given twice");
        }
        names.push(name);
        match form(name).or_err(cl::CL_INVALID_PROPERTY, "an unknown property")? {
            Form::Value => drop(next(&mut all)),
            Form::List => while next(&mut all) != 0 {},
        }
    }
}

/// Returns a property list as [`properties`] does, or CL_INVALID_VALUE at the first name without `bits`, or the first value
/// with others: nothing is read behind that.
pub fn known_properties(
    list: In<cl::cl_properties>,
    bits: impl Fn(cl::cl_properties) -> Option<cl::cl_bitfield>,
) -> ClResult<Vec<cl::cl_properties>> {
    let mut all = Vec::new();
    if list.is_null() {
        return Ok(all);
    }
    loop {
        // SAFETY: as in `properties`.
        let name = unsafe { list.0.add(all.len()).read_unaligned() };
        all.push(name);
        if name == 0 {
            return Ok(all);
        }
        let bits = bits(name).or_err(cl::CL_INVALID_VALUE, "an unknown property")?;
        // SAFETY: as in `properties`.
        let value = unsafe { list.0.add(all.len()).read_unaligned() };
        if value & !bits != 0 {
            return err(cl::CL_INVALID_VALUE, "an unknown value of a property");
        }
        all.push(value);
    }
}

/// Returns a partition scheme: a name, then a value, or with CL_DEVICE_PARTITION_BY_COUNTS values
/// up to a zero. Without the zero at the end of all; `None` for NULL.
pub fn partition_scheme(
    list: In<cl::cl_device_partition_property>,
) -> Option<Vec<cl::cl_device_partition_property>> {
    if list.is_null() {
        return None;
    }
    // SAFETY: not null, so a list of properties (see the module's head), of which the first is there.
    let at = |index: usize| unsafe { list.0.add(index).read_unaligned() };
    let mut scheme = vec![at(0)];
    match scheme[0] {
        cl::CL_DEVICE_PARTITION_EQUALLY | cl::CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN => {
            scheme.push(at(1));
        }
        cl::CL_DEVICE_PARTITION_BY_COUNTS => {
            while scheme.last() != Some(&cl::CL_DEVICE_PARTITION_BY_COUNTS_LIST_END) {
                scheme.push(at(scheme.len()));
            }
        }
        _ => {}
    }
    Some(scheme)
}

/// Strings with optional lengths: a length of 0, or no lengths, means up to the NUL.
pub fn strings(
    count: cl_uint,
    list: In<*const c_char>,
    lengths: In<usize>,
) -> ClResult<Vec<Vec<u8>>> {
    let Some(pointers) = list.array(count as usize).filter(|_| count > 0) else {
        return err(cl::CL_INVALID_VALUE, "no strings");
    };
    let lengths = lengths
        .array(count as usize)
        .unwrap_or_else(|| vec![0; pointers.len()]);
    pointers
        .into_iter()
        .zip(lengths)
        .map(|(pointer, length)| {
            if pointer.is_null() {
                return err(cl::CL_INVALID_VALUE, "a string is NULL");
            }
            Ok(if length == 0 {
                // SAFETY: not null, and without a length the string ends with NUL (see the module's head).
                unsafe { CStr::from_ptr(pointer) }.to_bytes().to_vec()
            } else {
                // SAFETY: not null, so readable for its length.
                unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), length) }.to_vec()
            })
        })
        .collect()
}

/// Blobs with their lengths, as clCreateProgramWithBinary takes them: `None` for one that is NULL or empty.
pub fn blobs<'a>(
    count: cl_uint,
    list: In<*const u8>,
    lengths: In<usize>,
) -> ClResult<Vec<Option<&'a [u8]>>> {
    let (Some(pointers), Some(lengths)) =
        (list.array(count as usize), lengths.array(count as usize))
    else {
        return err(cl::CL_INVALID_VALUE, "lengths or binaries is NULL");
    };
    let both = pointers.into_iter().zip(lengths);
    Ok(both
        .map(|(pointer, length)| {
            if pointer.is_null() || length == 0 {
                return None;
            }
            // SAFETY: not null, so readable for its length (see the module's head).
            Some(unsafe { std::slice::from_raw_parts(pointer, length) })
        })
        .collect())
}

/// Writes blobs to the places that a list in the application's buffer points to (CL_PROGRAM_BINARIES). Places that are
/// NULL are skipped.
pub fn blobs_out(
    blobs: &[Vec<u8>],
    size: usize,
    value: Out<c_void>,
    size_ret: Out<usize>,
) -> ClResult {
    let needed = size_of_val(vec![0usize; blobs.len()].as_slice());
    size_ret.set(needed);
    if value.is_null() {
        return Ok(());
    }
    if size < needed {
        return err(cl::CL_INVALID_VALUE, "param_value_size is too small");
    }
    let places = In(value.0.cast_const().cast::<*mut u8>())
        .array(blobs.len())
        .unwrap_or_default();
    for (place, blob) in places.into_iter().zip(blobs) {
        if !place.is_null() {
            // SAFETY: the application asked for the sizes and gave places for as many bytes.
            unsafe { place.copy_from_nonoverlapping(blob.as_ptr(), blob.len()) };
        }
    }
    Ok(())
}

/// Creates a buffer of memory of the host in place ([`Mem::import_host`]).
pub fn import_host(
    context: &Ref<Context>,
    flags: cl::cl_mem_flags,
    memory: Out<c_void>,
    size: usize,
) -> ClResult<Ref<Mem>> {
    // SAFETY: the application vouches for the memory as long as the object lives (see the module's head).
    unsafe { Mem::import_host(context, flags, memory.0 as usize, size) }
}

/// Returns a new buffer over, or with a copy of, memory of the application.
pub fn buffer(
    context: &Ref<Context>,
    properties: Vec<cl::cl_mem_properties>,
    flags: cl::cl_mem_flags,
    size: usize,
    host_ptr: Out<c_void>,
) -> ClResult<Ref<Mem>> {
    // SAFETY: the caller of clCreateBuffer promises what this asks of `host_ptr`.
    unsafe { Mem::buffer(context, properties, flags, size, host_ptr.0) }
}

/// Returns a read of a buffer into memory of the application.
pub fn read_buffer(
    target: &QueueTarget,
    mem: Ref<Mem>,
    offset: usize,
    size: usize,
    pointer: Out<c_void>,
) -> ClResult<Command> {
    // SAFETY: the caller of clEnqueueReadBuffer promises what this asks of the pointer.
    unsafe { command::buffer::read(target, mem, offset, size, pointer.0) }
}

/// Returns a write of memory of the application to a buffer.
pub fn write_buffer(
    target: &QueueTarget,
    mem: Ref<Mem>,
    offset: usize,
    size: usize,
    pointer: In<c_void>,
) -> ClResult<Command> {
    // SAFETY: the caller of clEnqueueWriteBuffer promises what this asks of the pointer.
    unsafe { command::buffer::write(target, mem, offset, size, pointer.0) }
}

/// Returns a rectangular read.
pub fn read_rect(
    target: &QueueTarget,
    mem: &Ref<Mem>,
    rect: &Rect,
    pointer: Out<c_void>,
) -> ClResult<Command> {
    // SAFETY: the caller of clEnqueueReadBufferRect promises what this asks of the pointer.
    unsafe { command::buffer::read_rect(target, mem, rect, pointer.0) }
}

/// Returns a rectangular write.
pub fn write_rect(
    target: &QueueTarget,
    mem: &Ref<Mem>,
    rect: &Rect,
    pointer: In<c_void>,
) -> ClResult<Command> {
    // SAFETY: the caller of clEnqueueWriteBufferRect promises what this asks of the pointer.
    unsafe { command::buffer::write_rect(target, mem, rect, pointer.0) }
}

/// Returns a copy between pointers, with a command type of its own.
pub fn memcpy(
    target: &QueueTarget,
    dst: Handle,
    src: In<c_void>,
    size: usize,
    kind: cl::cl_command_type,
) -> ClResult<Command> {
    // SAFETY: the caller of clEnqueueMemcpyINTEL promises what this asks of the pointers.
    unsafe { command::svm::memcpy(target, dst.0, src.0, size, kind) }
}

/// Returns a fill behind a pointer, with a command type of its own.
pub fn mem_fill(
    target: &QueueTarget,
    pointer: Handle,
    pattern: &[u8],
    size: usize,
    kind: cl::cl_command_type,
) -> ClResult<Command> {
    // SAFETY: the caller of clEnqueueMemFillINTEL promises what this asks of the pointer.
    unsafe { command::svm::fill(target, pointer.0, pattern, size, kind) }
}

/// Returns a copy between pointers.
pub fn svm_memcpy(
    target: &QueueTarget,
    dst: Handle,
    src: In<c_void>,
    size: usize,
) -> ClResult<Command> {
    // SAFETY: the caller of clEnqueueSVMMemcpy promises what this asks of the pointers.
    unsafe { command::svm::svm_memcpy(target, dst.0, src.0, size) }
}

/// Returns a fill behind a pointer.
pub fn svm_fill(
    target: &QueueTarget,
    pointer: Handle,
    pattern: &[u8],
    size: usize,
) -> ClResult<Command> {
    // SAFETY: the caller of clEnqueueSVMMemFill promises what this asks of the pointer.
    unsafe { command::svm::svm_fill(target, pointer.0, pattern, size) }
}

/// Returns what makes a copy between pointers, for a command buffer.
pub fn svm_memcpy_recipe(
    dst: Handle,
    src: In<c_void>,
    size: usize,
) -> impl Fn(&QueueTarget) -> ClResult<Command> + Send + Sync {
    let (dst, src) = (dst.0 as usize, src.0 as usize);
    // SAFETY: the caller of clCommandSVMMemcpyKHR promises what this asks of the pointers, whenever the command runs.
    move |target| unsafe { command::svm::svm_memcpy(target, dst as _, src as _, size) }
}

/// Returns what makes a fill behind a pointer, for a command buffer.
pub fn svm_fill_recipe(
    pointer: Handle,
    pattern: &[u8],
    size: usize,
) -> impl Fn(&QueueTarget) -> ClResult<Command> + Send + Sync {
    let (pointer, pattern) = (pointer.0 as usize, pattern.to_vec());
    // SAFETY: the caller of clCommandSVMMemFillKHR promises what this asks of the pointer, whenever the command runs.
    move |target| unsafe { command::svm::svm_fill(target, pointer as _, &pattern, size) }
}

/// Returns the update that a cl_mutable_dispatch_config_khr describes.
pub fn dispatch_update<'a>(config: *const c_void) -> ClResult<DispatchUpdate<'a>> {
    let config = In(config)
        .cast::<cl::cl_mutable_dispatch_config_khr>()
        .get();
    let config = config.or_err(cl::CL_INVALID_VALUE, "an update is NULL")?;
    let command = object::<MutableCommand>(config.command)?;
    let dims = match config.work_dim {
        0 => command.dims()?,
        dims => dims,
    };
    fn list<T: Copy>(count: cl_uint, list: *const T) -> ClResult<Vec<T>> {
        let fits = (count == 0) == list.is_null();
        if !fits {
            return err(
                cl::CL_INVALID_VALUE,
                "a list of an update and its length do not fit together",
            );
        }
        Ok(In(list).array(count as usize).unwrap_or_default())
    }
    let args = list(config.num_args, config.arg_list)?;
    let pointers = list(config.num_svm_args, config.arg_svm_list)?;
    let exec = list(config.num_exec_infos, config.exec_info_list)?;
    let arg = |arg: &cl::cl_mutable_dispatch_arg_khr| {
        let value = In(arg.arg_value).bytes(arg.arg_size);
        (arg.arg_index, arg.arg_size, value)
    };
    let pointer = |arg: &cl::cl_mutable_dispatch_arg_khr| (arg.arg_index, arg.arg_value as usize);
    let info = |info: &cl::cl_mutable_dispatch_exec_info_khr| {
        let value = In(info.param_value).bytes(info.param_value_size);
        (info.param_name, info.param_value_size, value)
    };
    Ok(DispatchUpdate {
        args: args.iter().map(arg).collect(),
        pointers: pointers.iter().map(pointer).collect(),
        exec: exec.iter().map(info).collect(),
        dims: config.work_dim,
        offset: In(config.global_work_offset).sizes(dims),
        global: In(config.global_work_size).sizes(dims),
        local: In(config.local_work_size).sizes(dims),
        command,
    })
}

/// Returns a new image over, or with a copy of, memory of the application.
pub fn image(
    context: &Ref<Context>,
    properties: Vec<cl::cl_mem_properties>,
    flags: cl::cl_mem_flags,
    format: &cl::cl_image_format,
    wanted: &Description,
    parent: Option<&Ref<Mem>>,
    host_ptr: Out<c_void>,
) -> ClResult<Ref<Mem>> {
    // SAFETY: the caller of clCreateImage promises what this asks of `host_ptr`.
    unsafe {
        Mem::create_image(
            context, properties, flags, format, wanted, parent, host_ptr.0,
        )
    }
}

/// Returns a read of an image into memory of the application.
pub fn read_image(
    target: &QueueTarget,
    mem: &Ref<Mem>,
    region: Box3,
    pitches: (usize, usize),
    pointer: Out<c_void>,
) -> ClResult<Command> {
    // SAFETY: the caller of clEnqueueReadImage promises what this asks of the pointer.
    unsafe { command::image::read(target, mem, region, pitches, pointer.0) }
}

/// Returns a write of memory of the application to an image.
pub fn write_image(
    target: &QueueTarget,
    mem: &Ref<Mem>,
    region: Box3,
    pitches: (usize, usize),
    pointer: In<c_void>,
) -> ClResult<Command> {
    // SAFETY: the caller of clEnqueueWriteImage promises what this asks of the pointer.
    unsafe { command::image::write(target, mem, region, pitches, pointer.0) }
}

/// Returns the live object that a handle in a structure names.
pub fn object<T: Body>(handle: *mut c_void) -> ClResult<Ref<T>> {
    handle::lookup(handle)
}

/// Returns a triple such as an origin or a region; `code` when it is NULL.
pub fn triple(list: In<usize>, code: cl_int) -> ClResult<[usize; 3]> {
    match list.array(3).as_deref() {
        Some(&[x, y, z]) => Ok([x, y, z]),
        _ => err(code, "an origin or region is NULL"),
    }
}

/// Returns the name of a function to look up.
pub fn symbol<'a>(name: In<c_char>) -> Option<&'a str> {
    if name.0.is_null() {
        return None;
    }
    // SAFETY: not null, so a string that ends with NUL (see the module's head).
    unsafe { CStr::from_ptr(name.0) }.to_str().ok()
}
