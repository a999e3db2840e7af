//! Threads that serve others and call the application: should it wait in a callback for what only that thread does, another
//! thread has to serve in its place. OpenCL leaves such waits undefined, but DPC++ frees memory in a callback
//! (`clMemBlockingFreeINTEL`), which waits for every queue of the context.

use std::cell::RefCell;
use std::io::Result;
use std::mem::ManuallyDrop;

/// Starts the thread that serves in this one's place.
type HandOver = Box<dyn Fn() -> Result<()>>;

thread_local! {
    /// Set within [`handing_over`] until the thread waits. Without a destructor, so that threads have it to their end.
    static HAND_OVER: ManuallyDrop<RefCell<Option<HandOver>>> = const { ManuallyDrop::new(RefCell::new(None)) };
}

fn replace(hand_over: Option<HandOver>) -> Option<HandOver> {
    HAND_OVER.try_with(|own| own.replace(hand_over)).ok()?
}

/// Runs `calls`. Returns false if they have begun to wait: then `hand_over` has started the thread that goes on.
pub fn handing_over(hand_over: impl Fn() -> Result<()> + 'static, calls: impl FnOnce()) -> bool {
    replace(Some(Box::new(hand_over)));
    calls();
    replace(None).is_some()
}

/// Must be called before this thread waits for what other threads of the library do.
pub fn begins() {
    let Some(hand_over) = replace(None) else {
        return;
    };
    if let Err(error) = hand_over() {
        crate::log!(Error, "no thread to go on beside a callback: {error}");
        replace(Some(hand_over));
    }
}
