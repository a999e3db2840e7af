//! How long each thing is late: a function of the seed, of what it is, and of how many of its kind there were before.
//!
//! Threads ask in any order, so only the sequence of each [`Site`] repeats with a seed, not who gets which delay.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;
use std::time::Duration;

/// The places of delays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Site {
    /// A call that submits.
    Submit,
    /// The beginning of a submission on the device.
    Hold,
    /// The signals of a submission.
    Late,
    /// A wait that is over.
    Wait,
    /// The answer to a look at a semaphore. There are many.
    Poll,
    /// A signal by the host.
    Signal,
    /// The mapping of memory.
    Map,
    /// No delay: the place of something.
    Place,
}

const SITES: usize = 8;

impl Site {
    /// In how many of 64 cases there is a delay at all.
    fn chance(self) -> u64 {
        match self {
            Self::Submit => 16,
            Self::Hold => 44,
            Self::Late => 20,
            Self::Wait => 24,
            Self::Poll => 4,
            Self::Signal | Self::Map => 16,
            Self::Place => 0,
        }
    }
}

/// The delays of a process.
#[derive(Debug, Default)]
pub struct Schedule {
    seed: u64,
    most_us: u64,
    drawn: [AtomicU64; SITES],
}

/// The default of `PUMICE_DELAYS`.
const DEFAULT: (u64, u64) = (1, 300);

/// Reads `SEED[:MAX_US]`.
fn parse(text: &str) -> Option<(u64, u64)> {
    match text.split_once(':') {
        Some((seed, most)) => Some((seed.parse().ok()?, most.parse().ok()?)),
        None => Some((text.parse().ok()?, DEFAULT.1)),
    }
}

/// The schedule of this process.
pub fn get() -> &'static Schedule {
    static SCHEDULE: OnceLock<Schedule> = OnceLock::new();
    SCHEDULE.get_or_init(|| {
        let text = std::env::var("PUMICE_DELAYS").unwrap_or_default();
        let (seed, most_us) = parse(&text).unwrap_or_else(|| {
            if !text.is_empty() {
                eprintln!("PUMICE_DELAYS={text}: SEED or SEED:MAX_US?");
            }
            DEFAULT
        });
        Schedule::new(seed, most_us)
    })
}

/// splitmix64.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Schedule {
    /// Delays of `most_us` microseconds at most.
    pub fn new(seed: u64, most_us: u64) -> Self {
        Self {
            seed,
            most_us,
            ..Self::default()
        }
    }

    fn draw(&self, site: Site) -> u64 {
        let number = self
            .drawn
            .get(site as usize)
            .map_or(0, |drawn| drawn.fetch_add(1, Ordering::Relaxed));
        mix(mix(mix(self.seed) ^ site as u64) ^ number)
    }

    /// The next delay. Mostly none or a short one, at times up to the longest.
    pub fn delay(&self, site: Site) -> Duration {
        let random = self.draw(site);
        if random % 64 >= site.chance() {
            return Duration::ZERO;
        }
        let is_long = (random >> 6).is_multiple_of(4);
        let most = if is_long {
            self.most_us
        } else {
            self.most_us / 8
        };
        Duration::from_micros((random >> 8) % (most + 1))
    }

    /// The next place among `count`; 0 if there is none.
    pub fn below(&self, count: usize) -> usize {
        (self.draw(Site::Place) >> 8) as usize % count.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(schedule: &Schedule, site: Site) -> Vec<u128> {
        (0..4000)
            .map(|_| schedule.delay(site).as_micros())
            .collect()
    }

    #[test]
    fn a_seed_fixes_the_delays_of_each_site() {
        let (one, other) = (Schedule::new(7, 300), Schedule::new(7, 300));
        let holds = delays(&one, Site::Hold);
        // What others draw makes no difference.
        assert_ne!(delays(&other, Site::Wait), holds);
        assert_eq!(delays(&other, Site::Hold), holds);
        assert_ne!(delays(&Schedule::new(8, 300), Site::Hold), holds);
    }

    #[test]
    fn delays_are_mostly_short_and_at_times_long() {
        for site in [Site::Submit, Site::Hold, Site::Late, Site::Wait, Site::Poll] {
            let delays = delays(&Schedule::new(1, 300), site);
            let share = |is: &dyn Fn(u128) -> bool| {
                delays.iter().filter(|delay| is(**delay)).count() * 64 / delays.len()
            };
            let chance = site.chance() as usize;
            assert!(share(&|delay| delay > 0).abs_diff(chance) <= 3, "{site:?}");
            assert!(share(&|delay| delay > 37) <= chance / 3, "{site:?}");
            assert!(delays.iter().all(|delay| *delay <= 300), "{site:?}");
            assert!(delays.iter().any(|delay| *delay > 250), "{site:?}");
        }
    }

    #[test]
    fn no_delay_is_longer_than_nothing() {
        let schedule = Schedule::new(3, 0);
        assert!(delays(&schedule, Site::Hold)
            .iter()
            .all(|delay| *delay == 0));
    }

    #[test]
    fn places_are_below_the_count() {
        let schedule = Schedule::new(5, 300);
        let mut seen = [0; 3];
        for _ in 0..300 {
            seen[schedule.below(3)] += 1;
        }
        assert!(seen.iter().all(|times| *times > 50), "{seen:?}");
        assert_eq!(schedule.below(0), 0);
    }

    #[test]
    fn the_variable_names_a_seed_and_a_limit() {
        assert_eq!(parse("5"), Some((5, 300)));
        assert_eq!(parse("5:20"), Some((5, 20)));
        assert_eq!(parse("five"), None);
        assert_eq!(parse("5:"), None);
    }
}
