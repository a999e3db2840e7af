//! From a program that goes wrong to a small one that does: edits are tried one after the other, each as often as it takes
//! to see a fault that does not come every time.

use crate::edit::{Edit, Name};
use crate::peer::{Answer, Peer};
use std::time::{Duration, Instant};

/// The smallest program found within the time.
pub fn shrink(peer: &mut Peer, name: &Name, actions: usize, patience: Duration) -> Name {
    let end = Instant::now() + patience;
    let tries = 12;
    let failed = (0..tries).filter(|_| fails(peer, name, 1)).count();
    // Enough to see it in nineteen of twenty cases.
    let rate = failed.max(1) as f64 / f64::from(tries);
    let attempts = (3.0 / rate).ceil() as usize;
    let mut best = name.clone();
    let kinds: [fn(usize) -> Edit; 5] =
        [Edit::Drop, Edit::Queue, Edit::Bare, Edit::Fast, Edit::Block];
    for kind in kinds {
        for at in (0..actions).rev() {
            if Instant::now() > end {
                return best;
            }
            let candidate = best.with(kind(at));
            if peer.differs(&best, &candidate) && fails(peer, &candidate, attempts) {
                best = candidate;
            }
        }
    }
    best
}

fn fails(peer: &mut Peer, name: &Name, attempts: usize) -> bool {
    (0..attempts).any(|_| !matches!(peer.run(name), Answer::Good(_)))
}
