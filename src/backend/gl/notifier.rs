//! The thread that notifies of what the thread of a context has done: there, callbacks of the application may call for that
//! thread, and wait. One that waits hands over to another thread (`util/blocking.rs`).

use crate::util::guard::guarded;
use crate::util::shutdown::Call;
use crate::util::{blocking, thread};
use crossbeam_channel::{unbounded, Receiver, Sender};
use std::io::Result;

/// Something that is run by the thread.
type Notification = Box<dyn FnOnce() + Send>;

/// The way to the thread, which ends with the last of them.
#[derive(Clone)]
pub(super) struct Notifier(Sender<Notification>);

impl Notifier {
    /// Starts the thread.
    pub fn new() -> Result<Self> {
        let (sender, inbox) = unbounded();
        start(inbox)?;
        Ok(Self(sender))
    }

    /// Runs something after what was posted before.
    pub fn post(&self, notification: Notification) {
        let _ = self.0.send(notification);
    }

    /// Waits until what was posted is done.
    pub fn settle(&self) {
        let (reply, done) = unbounded::<()>();
        self.post(Box::new(move || drop(reply)));
        blocking::begins();
        // It ends with an error when the reply is dropped.
        let _ = done.recv();
    }
}

fn start(inbox: Receiver<Notification>) -> Result<()> {
    thread::spawn("pumice-gl-event", move || serve(&inbox))
}

fn serve(inbox: &Receiver<Notification>) {
    while let Ok(notification) = inbox.recv() {
        let _call = Call::enter_or_stay();
        let others = inbox.clone();
        let stays = blocking::handing_over(
            move || start(others.clone()),
            || {
                guarded("a notification", notification);
            },
        );
        if !stays {
            return;
        }
    }
}
