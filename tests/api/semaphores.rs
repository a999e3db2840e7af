//! Semaphores: cl_khr_semaphore.

use pumice_tests::sys::*;
use pumice_tests::{call, code_name, create, info_value, ok, Event, Queue, Setup};
use std::ptr::{null, null_mut};

const ORDERS: [cl_command_queue_properties; 2] = [0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE];
const IN_WAIT_LIST: cl_int = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
const BINARY: [cl_semaphore_properties_khr; 3] = [
    CL_SEMAPHORE_TYPE_KHR as cl_semaphore_properties_khr,
    CL_SEMAPHORE_TYPE_BINARY_KHR as cl_semaphore_properties_khr,
    0,
];
const DEVICES: cl_semaphore_properties_khr =
    CL_SEMAPHORE_DEVICE_HANDLE_LIST_KHR as cl_semaphore_properties_khr;

/// The functions of the extension.
#[derive(Clone, Copy)]
struct Functions {
    create: clCreateSemaphoreWithPropertiesKHR_t,
    retain: clRetainSemaphoreKHR_t,
    release: clReleaseSemaphoreKHR_t,
    wait: clEnqueueWaitSemaphoresKHR_t,
    signal: clEnqueueSignalSemaphoresKHR_t,
    info: clGetSemaphoreInfoKHR_t,
}

/// Calls a function of [`Functions`].
macro_rules! sem {
    ($all:expr, $name:ident($($arg:expr),* $(,)?)) => {{
        let function = $all.$name.expect("a function");
        #[allow(clippy::macro_metavars_in_unsafe, unused_unsafe)]
        // SAFETY: a test passes pointers that live as long as the call asks, and whatever else it passes wrongly is
        // what the driver has to refuse.
        unsafe { function($($arg),*) }
    }};
}

impl Functions {
    fn new(setup: &Setup) -> Self {
        Self {
            create: setup.function(c"clCreateSemaphoreWithPropertiesKHR"),
            retain: setup.function(c"clRetainSemaphoreKHR"),
            release: setup.function(c"clReleaseSemaphoreKHR"),
            wait: setup.function(c"clEnqueueWaitSemaphoresKHR"),
            signal: setup.function(c"clEnqueueSignalSemaphoresKHR"),
            info: setup.function(c"clGetSemaphoreInfoKHR"),
        }
    }

    /// Creates a semaphore, or returns the error.
    fn try_create(
        self,
        context: cl_context,
        properties: &[cl_semaphore_properties_khr],
    ) -> Result<Semaphore, cl_int> {
        let mut code = 1;
        let id = sem!(self, create(context, properties.as_ptr(), &mut code));
        assert_eq!(id.is_null(), code != 0, "{}", code_name(code));
        match code {
            0 => Ok(Semaphore {
                functions: self,
                id,
            }),
            code => Err(code),
        }
    }
}

/// A semaphore that releases itself.
struct Semaphore {
    functions: Functions,
    id: cl_semaphore_khr,
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        let code = sem!(self.functions, release(self.id));
        if !std::thread::panicking() {
            assert_eq!(code, 0, "{}", code_name(code));
        }
    }
}

impl Semaphore {
    fn new(setup: &Setup) -> Self {
        let functions = Functions::new(setup);
        match functions.try_create(setup.context.0, &BINARY) {
            Ok(made) => made,
            Err(code) => panic!("{}", code_name(code)),
        }
    }

    fn signal(&self, queue: &Queue, wait: &[cl_event]) -> Event {
        enqueue(true, queue, &[self], wait).expect("a signal")
    }

    fn wait(&self, queue: &Queue, wait: &[cl_event]) -> Event {
        enqueue(false, queue, &[self], wait).expect("a wait")
    }

    fn is_signalled(&self) -> bool {
        let functions = self.functions;
        let mut value: cl_semaphore_payload_khr = 7;
        let code = sem!(
            functions,
            info(
                self.id,
                CL_SEMAPHORE_PAYLOAD_KHR,
                8,
                (&raw mut value).cast(),
                null_mut()
            )
        );
        assert_eq!(code, 0);
        assert!(value < 2);
        value == 1
    }
}

/// Enqueues a signal or a wait, or returns the error.
fn enqueue(
    signal: bool,
    queue: &Queue,
    semaphores: &[&Semaphore],
    wait: &[cl_event],
) -> Result<Event, cl_int> {
    let functions = semaphores[0].functions;
    let ids: Vec<_> = semaphores.iter().map(|semaphore| semaphore.id).collect();
    let mut event = null_mut();
    let function = match signal {
        true => functions.signal,
        false => functions.wait,
    };
    let function = function.expect("a function");
    let list = if wait.is_empty() {
        null()
    } else {
        wait.as_ptr()
    };
    // SAFETY: all handles live, and the lists are as long as their lengths say.
    let code = unsafe {
        function(
            queue.0,
            ids.len() as u32,
            ids.as_ptr(),
            null(),
            wait.len() as u32,
            list,
            &mut event,
        )
    };
    assert_eq!(event.is_null(), code != 0, "{}", code_name(code));
    match code {
        0 => Ok(Event(event)),
        code => Err(code),
    }
}

fn status(event: &Event) -> cl_int {
    info_value!(
        i32,
        clGetEventInfo(event.0),
        CL_EVENT_COMMAND_EXECUTION_STATUS
    )
}

fn kind(event: &Event) -> cl_uint {
    info_value!(u32, clGetEventInfo(event.0), CL_EVENT_COMMAND_TYPE)
}

fn wait_for(event: &Event) -> cl_int {
    match call!(clWaitForEvents(1, &event.0)) {
        0 => 0,
        code => {
            assert_eq!(code, IN_WAIT_LIST);
            status(event)
        }
    }
}

fn user_event(setup: &Setup) -> Event {
    Event(create!(clCreateUserEvent(setup.context.0)))
}

/// The queries.
#[test]
fn what_is_reported() {
    let setup = Setup::new();
    let device = setup.device;
    let types = info_value!(u32, clGetDeviceInfo(device), CL_DEVICE_SEMAPHORE_TYPES_KHR);
    assert_eq!(types, CL_SEMAPHORE_TYPE_BINARY_KHR);
    let platform = setup.platform;
    let types = info_value!(
        u32,
        clGetPlatformInfo(platform),
        CL_PLATFORM_SEMAPHORE_TYPES_KHR
    );
    assert_eq!(types, CL_SEMAPHORE_TYPE_BINARY_KHR);
    let functions = Functions::new(&setup);
    let list = [BINARY[0], BINARY[1], DEVICES, device as u64, 0, 0];
    for (properties, devices) in [(&BINARY[..], 1), (&list[..], 1)] {
        let made = functions.try_create(setup.context.0, properties);
        let semaphore = made.expect("a semaphore");
        let query = |name| {
            let mut size = 0;
            let code = sem!(
                functions,
                info(semaphore.id, name, 0, null_mut(), &mut size)
            );
            assert_eq!(code, 0);
            let mut words = vec![0u64; size.div_ceil(8)];
            let place = words.as_mut_ptr().cast();
            let short = sem!(
                functions,
                info(semaphore.id, name, size - 1, place, null_mut())
            );
            assert_eq!(short, CL_INVALID_VALUE);
            let code = sem!(functions, info(semaphore.id, name, size, place, null_mut()));
            assert_eq!(code, 0);
            (size, words)
        };
        assert_eq!(
            query(CL_SEMAPHORE_CONTEXT_KHR),
            (8, vec![setup.context.0 as u64])
        );
        assert_eq!(query(CL_SEMAPHORE_REFERENCE_COUNT_KHR), (4, vec![1]));
        assert_eq!(query(CL_SEMAPHORE_TYPE_KHR), (4, vec![1]));
        assert_eq!(query(CL_SEMAPHORE_PAYLOAD_KHR), (8, vec![0]));
        assert_eq!(
            query(CL_SEMAPHORE_DEVICE_HANDLE_LIST_KHR),
            (8 * devices, vec![device as u64])
        );
        assert_eq!(
            query(CL_SEMAPHORE_PROPERTIES_KHR),
            (size_of_val(properties), properties.to_vec())
        );
        assert_eq!(sem!(functions, retain(semaphore.id)), 0);
        assert_eq!(query(CL_SEMAPHORE_REFERENCE_COUNT_KHR), (4, vec![2]));
        assert_eq!(sem!(functions, release(semaphore.id)), 0);
        let code = sem!(
            functions,
            info(semaphore.id, 0x1234, 0, null_mut(), null_mut())
        );
        assert_eq!(code, CL_INVALID_VALUE);
    }
}

/// One semaphore orders what two queues do to a buffer, again and again.
#[test]
fn two_queues() {
    let source =
        "kernel void step(global uint *p) { size_t i = get_global_id(0); p[i] = p[i] * 3 + i; }";
    for order in ORDERS {
        let setup = Setup::with_queue(order);
        let other = setup.new_queue(order);
        let kernel = setup.kernel_of(source, "step");
        let buffer = setup.buffer_of(&[1u32; 4096]);
        kernel.set_buffer(0, &buffer);
        let semaphore = Semaphore::new(&setup);
        let launch = |queue: &Queue, wait: Option<&Event>| {
            let mut event = null_mut();
            ok!(clEnqueueNDRangeKernel(
                queue.0,
                kernel.0,
                1,
                null(),
                &4096,
                null(),
                u32::from(wait.is_some()),
                wait.map_or(null(), |event| &event.0),
                &mut event
            ));
            Event(event)
        };
        let mut last = launch(&setup.queue, None);
        let mut expected: Vec<u32> = (0..4096).map(|i| 3 + i).collect();
        for round in 0..20 {
            let (from, to) = match round % 2 {
                0 => (&setup.queue, &other),
                _ => (&other, &setup.queue),
            };
            let signal = semaphore.signal(from, &[last.0]);
            assert_eq!(kind(&signal), CL_COMMAND_SEMAPHORE_SIGNAL_KHR);
            let waited = semaphore.wait(to, &[]);
            assert_eq!(kind(&waited), CL_COMMAND_SEMAPHORE_WAIT_KHR);
            last = launch(to, (order != 0).then_some(&waited));
            for (i, value) in (0..).zip(&mut expected) {
                *value = value.wrapping_mul(3).wrapping_add(i);
            }
        }
        assert_eq!(wait_for(&last), 0);
        assert_eq!(setup.read::<u32>(&buffer, 4096), expected);
        assert!(!semaphore.is_signalled());
    }
}

/// A wait that comes before its signal holds up nobody else, not even the enqueue, and ends with the signal.
#[test]
fn wait_before_signal() {
    for order in ORDERS {
        let setup = Setup::with_queue(order);
        let other = setup.new_queue(order);
        let semaphore = Semaphore::new(&setup);
        let waited = semaphore.wait(&setup.queue, &[]);
        ok!(clFlush(setup.queue.0));
        let buffer = setup.buffer(256);
        let value = 5u32;
        let mut filled = null_mut();
        ok!(clEnqueueFillBuffer(
            other.0,
            buffer.0,
            (&raw const value).cast(),
            4,
            0,
            256,
            0,
            null(),
            &mut filled
        ));
        let filled = Event(filled);
        ok!(clFinish(other.0));
        assert!(status(&waited) > CL_COMPLETE as cl_int);
        // The signal is not flushed: it was waited for before it came.
        let signal = semaphore.signal(&other, &[filled.0]);
        assert_eq!(wait_for(&waited), 0);
        assert_eq!(status(&signal), CL_COMPLETE as cl_int);
        assert!(!semaphore.is_signalled());
        ok!(clFinish(setup.queue.0));
        // Out of order it holds up nobody in its own queue either.
        if order != 0 {
            let waited = semaphore.wait(&setup.queue, &[]);
            assert_eq!(setup.read::<u32>(&buffer, 64), [5; 64]);
            semaphore.signal(&setup.queue, &[]);
            assert_eq!(wait_for(&waited), 0);
        }
    }
}

/// A signal behind a user event, and its wait, happen when that is set.
#[test]
fn pending_signal() {
    for order in ORDERS {
        let setup = Setup::with_queue(order);
        let other = setup.new_queue(order);
        let (first, second) = (Semaphore::new(&setup), Semaphore::new(&setup));
        let gate = user_event(&setup);
        let signal = enqueue(true, &setup.queue, &[&first, &second], &[gate.0]).expect("a signal");
        assert!(!first.is_signalled());
        let waited = enqueue(false, &other, &[&second, &first], &[]).expect("a wait");
        ok!(clFlush(setup.queue.0));
        ok!(clFlush(other.0));
        assert!(status(&waited) > CL_COMPLETE as cl_int);
        ok!(clSetUserEventStatus(gate.0, 0));
        assert_eq!(wait_for(&waited), 0);
        assert_eq!(wait_for(&signal), 0);
        assert!(!first.is_signalled() && !second.is_signalled());
        let signal = first.signal(&setup.queue, &[]);
        assert_eq!(wait_for(&signal), 0);
        assert!(first.is_signalled() && !second.is_signalled());
    }
}

/// A signal that fails signals nothing, and fails its wait; the semaphore can be used afterwards.
#[test]
fn failures() {
    for order in ORDERS {
        for wait_first in [false, true] {
            let setup = Setup::with_queue(order);
            let other = setup.new_queue(order);
            let semaphore = Semaphore::new(&setup);
            let gate = user_event(&setup);
            let unpaired = wait_first.then(|| semaphore.wait(&other, &[]));
            let signal = semaphore.signal(&setup.queue, &[gate.0]);
            let waited = unpaired.unwrap_or_else(|| semaphore.wait(&other, &[]));
            ok!(clSetUserEventStatus(gate.0, -5));
            assert_eq!(wait_for(&signal), IN_WAIT_LIST);
            assert_eq!(wait_for(&waited), IN_WAIT_LIST);
            assert!(!semaphore.is_signalled());
            // One that failed before there was a wait gives way to the next signal.
            let gate = user_event(&setup);
            let signal = semaphore.signal(&setup.queue, &[gate.0]);
            ok!(clSetUserEventStatus(gate.0, -5));
            assert_eq!(wait_for(&signal), IN_WAIT_LIST);
            assert_eq!(wait_for(&semaphore.signal(&setup.queue, &[])), 0);
            assert!(semaphore.is_signalled());
            assert_eq!(wait_for(&semaphore.wait(&other, &[])), 0);
            ok!(clFinish(setup.queue.0));
            ok!(clFinish(other.0));
        }
    }
}

/// A semaphore that is released while a wait has no signal can never be signalled: the wait fails, nothing hangs.
#[test]
fn released_without_signal() {
    for order in ORDERS {
        let setup = Setup::with_queue(order);
        let semaphore = Semaphore::new(&setup);
        let waited = semaphore.wait(&setup.queue, &[]);
        drop(semaphore);
        assert_eq!(wait_for(&waited), IN_WAIT_LIST);
        ok!(clFinish(setup.queue.0));
        // With a signal it is not needed any more.
        let semaphore = Semaphore::new(&setup);
        let gate = user_event(&setup);
        let signal = semaphore.signal(&setup.queue, &[gate.0]);
        let waited = semaphore.wait(&setup.queue, &[]);
        drop(semaphore);
        ok!(clSetUserEventStatus(gate.0, 0));
        assert_eq!(wait_for(&waited), 0);
        assert_eq!(wait_for(&signal), 0);
    }
}

/// A semaphore that a command names twice is signalled, and waited for, once.
#[test]
fn named_twice() {
    for order in ORDERS {
        let setup = Setup::with_queue(order);
        let (one, other) = (Semaphore::new(&setup), Semaphore::new(&setup));
        let list = [&one, &other, &one];
        enqueue(true, &setup.queue, &list, &[]).expect("a signal");
        let waited = enqueue(false, &setup.queue, &list, &[]).expect("a wait");
        assert_eq!(wait_for(&waited), 0);
        assert!(!one.is_signalled() && !other.is_signalled());
    }
}

/// A signal may be enqueued before the wait for the one before it.
#[test]
fn signals_ahead() {
    let setup = Setup::new();
    let other = setup.new_queue(0);
    let semaphore = Semaphore::new(&setup);
    let gate = user_event(&setup);
    assert_eq!(wait_for(&semaphore.signal(&setup.queue, &[])), 0);
    let second = semaphore.signal(&other, &[gate.0]);
    assert_eq!(wait_for(&semaphore.wait(&setup.queue, &[])), 0);
    let waited = semaphore.wait(&setup.queue, &[]);
    ok!(clFlush(setup.queue.0));
    assert!(status(&waited) > 0);
    ok!(clSetUserEventStatus(gate.0, 0));
    assert_eq!(wait_for(&waited), 0);
    assert_eq!(wait_for(&second), 0);
    // One that is signalled stays so.
    for _ in 0..100 {
        assert_eq!(wait_for(&semaphore.signal(&setup.queue, &[])), 0);
    }
    assert_eq!(wait_for(&semaphore.wait(&setup.queue, &[])), 0);
    assert!(!semaphore.is_signalled());
}

/// Everything may be given up with a wait for ever.
#[test]
fn abandoned() {
    for order in ORDERS {
        let setup = Setup::with_queue(order);
        let semaphore = Semaphore::new(&setup);
        drop(semaphore.wait(&setup.queue, &[]));
        let functions = semaphore.functions;
        assert_eq!(sem!(functions, retain(semaphore.id)), 0);
        ok!(clFlush(setup.queue.0));
    }
}

/// Threads that hand a counter over.
#[test]
fn threads() {
    let setup = Setup::new();
    let (there, back) = (Semaphore::new(&setup), Semaphore::new(&setup));
    let other = setup.new_queue(0);
    let rounds = 200;
    std::thread::scope(|scope| {
        let ids = (there.id as usize, back.id as usize);
        let functions = there.functions;
        let other = &other;
        scope.spawn(move || {
            for _ in 0..rounds {
                for (signal, id) in [(false, ids.0), (true, ids.1)] {
                    let id = id as cl_semaphore_khr;
                    let function = if signal {
                        functions.signal
                    } else {
                        functions.wait
                    };
                    // SAFETY: the handles live.
                    let code = unsafe {
                        function.expect("a function")(
                            other.0,
                            1,
                            &id,
                            null(),
                            0,
                            null(),
                            null_mut(),
                        )
                    };
                    assert_eq!(code, 0);
                }
                // The next signal may be enqueued before the wait for this one, but is executed after it.
                ok!(clFinish(other.0));
            }
        });
        for _ in 0..rounds {
            there.signal(&setup.queue, &[]);
            let waited = back.wait(&setup.queue, &[]);
            ok!(clFlush(setup.queue.0));
            assert_eq!(wait_for(&waited), 0);
        }
    });
    assert!(!there.is_signalled() && !back.is_signalled());
}

/// The errors of the specification.
#[test]
fn errors() {
    let setup = Setup::new();
    let functions = Functions::new(&setup);
    let context = setup.context.0;
    let (kind, binary) = (BINARY[0], BINARY[1]);
    let device = setup.device as u64;
    let refused: &[(&[u64], cl_int)] = &[
        (&[0], CL_INVALID_VALUE),
        (&[DEVICES, device, 0, 0], CL_INVALID_VALUE),
        (&[!0, binary, 0], CL_INVALID_PROPERTY),
        (&[kind, 2, 0], CL_INVALID_PROPERTY),
        (&[kind, !0, 0], CL_INVALID_PROPERTY),
        // Nothing is read behind a name that was there before.
        (&[kind, binary, kind], CL_INVALID_PROPERTY),
        (&[kind, binary, DEVICES, 0, 0], CL_INVALID_DEVICE),
        (
            &[kind, binary, DEVICES, device, device, 0, 0],
            CL_INVALID_DEVICE,
        ),
        (
            &[kind, binary, DEVICES, context as u64, 0, 0],
            CL_INVALID_DEVICE,
        ),
    ];
    for (list, code) in refused {
        let refusal = functions.try_create(context, list).err();
        assert_eq!(refusal, Some(*code), "{list:x?}");
    }
    let mut code = 0;
    assert!(sem!(functions, create(context, null(), &mut code)).is_null());
    assert_eq!(code, CL_INVALID_VALUE);
    let queue = setup.queue.0;
    assert_eq!(
        functions.try_create(queue, &BINARY).err(),
        Some(CL_INVALID_CONTEXT)
    );
    for (wrong, name) in [(null_mut(), "null"), (queue, "a queue")] {
        for function in [functions.retain, functions.release] {
            // SAFETY: what is no semaphore is to be refused.
            let code = unsafe { function.expect("a function")(wrong) };
            assert_eq!(code, CL_INVALID_SEMAPHORE_KHR, "{name}");
        }
        let name = CL_SEMAPHORE_TYPE_KHR;
        let code = sem!(functions, info(wrong, name, 0, null_mut(), null_mut()));
        assert_eq!(code, CL_INVALID_SEMAPHORE_KHR);
    }

    let semaphore = Semaphore::new(&setup);
    let gate = user_event(&setup);
    let failed = user_event(&setup);
    ok!(clSetUserEventStatus(failed.0, -1));
    let second = Setup::new();
    let foreign_gate = user_event(&second);
    let foreign = Semaphore::new(&second);
    let no_semaphores = [semaphore.id, queue];
    let none = null_mut::<std::ffi::c_void>();
    for function in [functions.wait, functions.signal] {
        let call = |queue, number, ids: *const cl_semaphore_khr, count, list: *const cl_event| {
            let mut event = null_mut();
            // SAFETY: what is wrong is to be refused.
            let code = unsafe {
                function.expect("a function")(queue, number, ids, null(), count, list, &mut event)
            };
            assert!(event.is_null());
            code_name(code)
        };
        let (one, list) = (&raw const semaphore.id, &raw const gate.0);
        let refused = [
            (call(none, 1, one, 0, null()), CL_INVALID_COMMAND_QUEUE),
            (call(queue, 0, one, 0, null()), CL_INVALID_VALUE),
            (call(queue, 1, null(), 0, null()), CL_INVALID_VALUE),
            (call(queue, 1, &none, 0, null()), CL_INVALID_SEMAPHORE_KHR),
            (
                call(queue, 2, no_semaphores.as_ptr(), 0, null()),
                CL_INVALID_SEMAPHORE_KHR,
            ),
            (call(queue, 1, one, 1, null()), CL_INVALID_EVENT_WAIT_LIST),
            (call(queue, 1, one, 0, list), CL_INVALID_EVENT_WAIT_LIST),
            (call(queue, 1, one, 1, &none), CL_INVALID_EVENT_WAIT_LIST),
            (call(queue, 1, one, 1, &failed.0), IN_WAIT_LIST),
            (call(queue, 1, one, 1, &foreign_gate.0), CL_INVALID_CONTEXT),
            (call(queue, 1, &foreign.id, 0, null()), CL_INVALID_CONTEXT),
        ];
        for (number, (found, expected)) in refused.into_iter().enumerate() {
            assert_eq!(found, code_name(expected), "{number}");
        }
    }
    // Nothing of that has left a trace.
    assert_eq!(wait_for(&semaphore.signal(&setup.queue, &[])), 0);
    assert!(semaphore.is_signalled());
    assert_eq!(wait_for(&semaphore.wait(&setup.queue, &[])), 0);
}
