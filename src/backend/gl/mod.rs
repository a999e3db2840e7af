//! Sharing with OpenGL: a context of our own in the share group of the application's, and the contents of its objects.
//!
//! A context is current in one thread at a time, and the application's is current in its own. So each [`Gl`] has a thread
//! with a context that shares the application's objects: nothing that is done there changes the state of a context of the
//! application, and no call of the application waits for it but those that create objects.
//!
//! No code of the application runs in that thread: callbacks of events do in one beside it (`notifier`).
//!
//! Whatever the application does to an object must be complete before it is read here ([`Gl::order_after_caller`], or a fence);
//! what is written here is complete (`glFinish`) before its end is reported.

pub mod functions;
mod image;
mod notifier;
mod object;
mod pixels;
mod winsys;

use crate::util::forked;
use crate::util::guard::guarded;
use crate::util::shutdown::Call;
use crate::util::thread::spawn;
use functions::{call, gl, Functions, Sync as GlSync};
pub use image::Imported;
use notifier::Notifier;
pub use object::{Contents, Name, Object, Texture};
use parking_lot::Mutex;
pub use pixels::HostBytes;
use std::ffi::CStr;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::thread::ThreadId;
use std::time::Duration;
pub use winsys::{has_egl, is_there};

/// Why something cannot be had from OpenGL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The library of the binding API is not there.
    #[error("the library of the binding API is not there")]
    NoLibrary,
    /// There is no such context, or none that can be shared with.
    #[error("no context of OpenGL that can be shared with")]
    NoContext,
    /// There is no such object, or it has no storage, or another kind or other extents than it had.
    #[error("no such object of OpenGL")]
    NoObject,
    /// There is no such mipmap level.
    #[error("no such mipmap level")]
    NoLevel,
    /// There is no OpenCL format for its contents.
    #[error("the internal format {0:#x} has none in OpenCL")]
    NoFormat(u32),
    /// OpenCL cannot share it: it has a border, or samples.
    #[error("{0} cannot be shared")]
    Unshared(&'static str),
    /// The target is none of those of textures.
    #[error("the target is none of a texture")]
    NoTarget,
    /// OpenGL cannot do it.
    #[error("OpenGL refuses: {0}")]
    Refused(&'static str),
    /// There is no memory.
    #[error("no memory")]
    OutOfMemory,
    /// The thread of the context is gone.
    #[error("the context of OpenGL is gone")]
    Gone,
}

/// A result of OpenGL.
pub type Result<T = ()> = std::result::Result<T, Error>;

/// The application's context, by handles of the binding API. A context of 0: none, only the display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Source {
    Egl { display: usize, context: usize },
    Glx { display: usize, context: usize },
}

/// Properties of a context.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// The API is OpenGL ES.
    pub es: bool,
    /// Major and minor version, as one number: 3.1 is 31.
    pub version: i32,
    /// The unique identifiers of its devices (GL_EXT_memory_object), as Vulkan has them.
    pub uuids: Vec<[u8; 16]>,
    /// Set if it renders on the processor.
    pub software: bool,
}

/// A context that is current in this thread.
pub struct Current {
    /// Its functions.
    pub functions: Functions,
    /// Its properties.
    pub about: About,
    notifier: Notifier,
}

type Job = Box<dyn FnOnce(&Current) + Send>;
type Completion = Box<dyn FnOnce(Result) + Send>;

enum Message {
    Run(Job),
    /// Calls back when what the context has been given up to now is complete.
    Fence(Completion),
    /// Ends the thread, which then drops the sender.
    End(Option<Sender<()>>),
}

/// A context of our own, with its thread.
pub struct Gl {
    source: Source,
    about: About,
    messages: Sender<Message>,
    notifier: Notifier,
    ended: Mutex<Receiver<()>>,
    thread: ThreadId,
}

/// A fence of the application's, by its handle.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub enum Fence {
    /// A sync object of the share group.
    Gl(usize),
    /// A sync object of a display of EGL.
    Egl { display: usize, sync: usize },
}

impl Gl {
    /// Makes a context in the share group of the application's.
    pub fn new(source: Source) -> Result<Self> {
        let (messages, inbox) = channel();
        let (end, ended) = channel();
        let (reply, started) = channel();
        forked::needs_threads();
        let notifier = Notifier::new().map_err(|_| Error::OutOfMemory)?;
        let notifies = notifier.clone();
        let to_itself = messages.clone();
        spawn("pumice-gl", move || {
            let call = Call::enter_or_stay();
            let made = start(source, notifies);
            drop(call);
            match made {
                Ok((own, current)) => {
                    winsys::end_before_display(source, move || {
                        let (over, ended) = channel::<()>();
                        let _ = to_itself.send(Message::End(Some(over)));
                        let _ = ended.recv();
                    });
                    let _ = reply.send(Ok((current.about.clone(), std::thread::current().id())));
                    let _over = serve(&current, &inbox);
                    let _call = Call::enter_or_stay();
                    own.destroy();
                }
                Err(error) => {
                    let _ = reply.send(Err(error));
                }
            }
            let _ = end.send(());
        })
        .map_err(|_| Error::OutOfMemory)?;
        let (about, thread) = started.recv().map_err(|_| Error::Gone)??;
        Ok(Self {
            source,
            about,
            messages,
            notifier,
            ended: Mutex::new(ended),
            thread,
        })
    }

    /// Returns the properties of the context.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Returns the application's context.
    pub fn source(&self) -> Source {
        self.source
    }

    /// Makes the context's thread run a job after those before it.
    pub fn post(&self, job: impl FnOnce(&Current) + Send + 'static) {
        let _ = self.messages.send(Message::Run(Box::new(job)));
    }

    /// Runs a job in the context's thread, and waits for it.
    pub fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Current) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, done) = channel();
        self.post(move |current| {
            let _ = reply.send(job(current));
        });
        done.recv().unwrap_or(Err(Error::Gone))
    }

    /// Waits until the thread has done what it was given, and whoever waited for that was notified.
    pub fn settle(&self) {
        if std::thread::current().id() != self.thread {
            let _ = self.run(|_| Ok(()));
            self.notifier.settle();
        }
    }

    /// Makes what is run from now on come after what the application has given to its context, if that is current in the
    /// calling thread.
    pub fn order_after_caller(&self, caller: &Caller) {
        let Some(sync) = caller.fence else {
            return;
        };
        self.post(move |current| {
            let _ = current.wait_for(Fence::Gl(sync)).and_then(|()| {
                call!(current.functions, DeleteSync(sync as GlSync));
                Ok(())
            });
        });
    }

    /// Calls back when a sync object of the share group is signalled. The object is not needed any longer when this returns.
    pub fn when_signalled(
        &self,
        fence: Fence,
        done: impl FnOnce(Result) + Send + 'static,
    ) -> Result {
        self.run(move |current| current.wait_for(fence))?;
        let fence = Message::Fence(Box::new(done));
        self.messages.send(fence).map_err(|_| Error::Gone)
    }
}

impl Drop for Gl {
    /// Ends the thread and destroys the context, and waits for that: the application may end the display afterwards.
    fn drop(&mut self) {
        let _ = self.messages.send(Message::End(None));
        if std::thread::current().id() != self.thread {
            let _ = self.ended.lock().recv();
        }
    }
}

/// The context of OpenGL of a thread that enqueues a command.
#[derive(Default)]
pub struct Caller {
    /// A context is current in the thread.
    pub is_current: bool,
    fence: Option<usize>,
}

impl Caller {
    /// Looks at the calling thread. With `fence`, what its context was given is what [`Gl::order_after_caller`] waits for.
    pub fn here(of: &Gl, fence: bool) -> Self {
        let context = winsys::current(of.source);
        if context == 0 {
            return Self::default();
        }
        let mut here = Self {
            is_current: true,
            fence: None,
        };
        if fence {
            here.fence = of.fence_of_caller(context);
        }
        here
    }
}

impl Gl {
    /// Places a fence in the context that is current in the calling thread. One of another share group has no fence that can
    /// be waited for here: it is finished.
    fn fence_of_caller(&self, context: usize) -> Option<usize> {
        let functions = winsys::functions(self.source)?;
        let (Source::Egl { context: own, .. } | Source::Glx { context: own, .. }) = self.source;
        if context == own {
            // SAFETY: a context is current in this thread, whose version has fences: ours in its share group has.
            let sync = unsafe { functions.FenceSync?(gl::SYNC_GPU_COMMANDS_COMPLETE, 0) };
            // SAFETY: as above.
            unsafe { functions.Flush?() };
            if !sync.is_null() {
                return Some(sync as usize);
            }
        }
        // SAFETY: as above.
        unsafe { functions.Finish?() };
        None
    }

    /// Flushes the context that is current in the calling thread, if there is one.
    pub fn flush_caller(&self) {
        if winsys::current(self.source) == 0 {
            return;
        }
        if let Some(flush) = winsys::functions(self.source).and_then(|all| all.Flush) {
            // SAFETY: a context is current in this thread.
            unsafe { flush() };
        }
    }
}

/// Makes the context, in its thread.
fn start(source: Source, notifier: Notifier) -> Result<(winsys::Own, Current)> {
    let (own, functions) = winsys::Own::new(source)?;
    let about = match About::of(&functions) {
        Ok(about) if about.version >= 31 => about,
        other => {
            crate::log!(Debug, "the context cannot be shared with: {other:?}");
            own.destroy();
            return Err(Error::NoContext);
        }
    };
    let current = Current {
        functions,
        about,
        notifier,
    };
    Ok((own, current))
}

/// How long the thread waits for a fence before it looks for jobs.
const SLICE: Duration = Duration::from_millis(1);

/// Does what comes until the end. Returns what is to be dropped when the context is destroyed.
fn serve(current: &Current, inbox: &Receiver<Message>) -> Option<Sender<()>> {
    let mut fences: Vec<(usize, Completion)> = Vec::new();
    let over = loop {
        let message = match fences.is_empty() {
            true => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            false => inbox.recv_timeout(Duration::ZERO),
        };
        let _call = Call::enter_or_stay();
        match message {
            Ok(Message::Run(job)) => {
                guarded("a job of OpenGL", || job(current));
                current.clear_errors();
            }
            Ok(Message::Fence(done)) => match current.fence() {
                Ok(sync) => fences.push((sync as usize, done)),
                Err(error) => current.notify(move || done(Err(error))),
            },
            Ok(Message::End(over)) => break over,
            Err(RecvTimeoutError::Disconnected) => break None,
            Err(RecvTimeoutError::Timeout) => {
                if let Some(result) = fences.first().and_then(|(sync, _)| current.poll(*sync)) {
                    let (_, done) = fences.remove(0);
                    current.notify(move || done(result));
                }
            }
        }
    };
    for (_, done) in fences {
        current.notify(move || done(Err(Error::Gone)));
    }
    over
}

impl Current {
    /// Runs what may call the application, or wait, in another thread.
    pub fn notify(&self, call: impl FnOnce() + Send + 'static) {
        self.notifier.post(Box::new(call));
    }

    /// Returns a fence after all that the context was given.
    fn fence(&self) -> Result<GlSync> {
        let sync = call!(self.functions, FenceSync(gl::SYNC_GPU_COMMANDS_COMPLETE, 0));
        call!(self.functions, Flush());
        match sync.is_null() {
            true => Err(Error::Refused("a fence")),
            false => Ok(sync),
        }
    }

    /// Makes what the context is given from now on come after a fence.
    fn wait_for(&self, fence: Fence) -> Result {
        match fence {
            Fence::Gl(sync) => {
                if call!(self.functions, IsSync(sync as GlSync)) == 0 {
                    return Err(Error::NoObject);
                }
                call!(self.functions, WaitSync(sync as GlSync, 0, u64::MAX));
                Ok(())
            }
            Fence::Egl { display, sync } => winsys::wait_sync(display, sync),
        }
    }

    /// Waits for [`SLICE`] at most. Returns whether a fence of ours, which is deleted then, has been reached.
    fn poll(&self, sync: usize) -> Option<Result> {
        let sync = sync as GlSync;
        let poll = || -> Result<bool> {
            let slice = SLICE.as_nanos() as u64;
            let reached = call!(self.functions, ClientWaitSync(sync, 0, slice));
            if reached == gl::TIMEOUT_EXPIRED {
                return Ok(false);
            }
            call!(self.functions, DeleteSync(sync));
            match reached {
                gl::ALREADY_SIGNALED | gl::CONDITION_SATISFIED => Ok(true),
                _ => Err(Error::Refused("a wait for a fence")),
            }
        };
        match poll() {
            Ok(false) => None,
            Ok(true) => Some(Ok(())),
            Err(error) => Some(Err(error)),
        }
    }

    /// Forgets errors, and returns the first.
    pub(super) fn clear_errors(&self) -> u32 {
        let mut first = 0;
        let Some(get) = self.functions.GetError else {
            return 0;
        };
        // A lost context returns errors for ever.
        for _ in 0..16 {
            // SAFETY: the context is current in this thread.
            match unsafe { get() } {
                0 => break,
                error if first == 0 => first = error,
                _ => {}
            }
        }
        first
    }

    /// Fails if OpenGL has reported an error.
    fn check(&self, what: &'static str) -> Result {
        match self.clear_errors() {
            0 => Ok(()),
            gl::OUT_OF_MEMORY => Err(Error::OutOfMemory),
            code => {
                crate::log!(Debug, "OpenGL error {code:#x}: {what}");
                Err(Error::Refused(what))
            }
        }
    }
}

impl About {
    fn of(functions: &Functions) -> Result<Self> {
        let integer = |name| {
            let mut value = 0;
            call!(functions, GetIntegerv(name, &mut value));
            Ok(value)
        };
        let text = |name| {
            let text = call!(functions, GetString(name));
            // SAFETY: null, or a C string of the context's.
            let text = (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) });
            Ok(text.map_or(String::new(), |text| text.to_string_lossy().into_owned()))
        };
        let renderer = text(gl::RENDERER)?.to_lowercase();
        let mut about = Self {
            es: text(gl::VERSION)?.starts_with("OpenGL ES"),
            version: integer(gl::MAJOR_VERSION)? * 10 + integer(gl::MINOR_VERSION)?,
            software: ["llvmpipe", "softpipe", "swrast", "software", "swiftshader"]
                .iter()
                .any(|name| renderer.contains(name)),
            uuids: Vec::new(),
        };
        for index in 0..integer(gl::NUM_EXTENSIONS)? {
            let name = call!(functions, GetStringi(gl::EXTENSIONS, index as u32));
            // SAFETY: null, or a C string of the context's.
            let shares = !name.is_null()
                && unsafe { CStr::from_ptr(name) }.to_bytes() == b"GL_EXT_memory_object";
            if shares {
                for device in 0..integer(gl::NUM_DEVICE_UUIDS_EXT)?.clamp(0, 16) {
                    let mut uuid = [0; 16];
                    let place = uuid.as_mut_ptr();
                    call!(
                        functions,
                        GetUnsignedBytei_vEXT(gl::DEVICE_UUID_EXT, device as u32, place)
                    );
                    about.uuids.push(uuid);
                }
            }
        }
        // Rows lie one after the other in all that is read and written here.
        call!(functions, PixelStorei(gl::PACK_ALIGNMENT, 1));
        call!(functions, PixelStorei(gl::UNPACK_ALIGNMENT, 1));
        Ok(about)
    }
}
