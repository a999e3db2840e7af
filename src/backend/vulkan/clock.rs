//! The device's timer beside the host's clock (`monotonic_ns`).
//!
//! Without VK_EXT_calibrated_timestamps a moment in both is had by running a timestamp on the device. That takes a stream,
//! of which nothing is known here: who asks says how (`run`: ticks, nanoseconds).

use super::conv::During;
use super::logical::LogicalDevice;
use crate::backend::{DeviceError, Result};
use crate::util::lock::{rank, Mutex};
use crate::util::{clock_ns, monotonic_ns};
use ash::{ext, vk};

/// The time domain of Vulkan that `monotonic_ns` reads.
#[cfg(not(windows))]
const HOST: vk::TimeDomainEXT = vk::TimeDomainEXT::CLOCK_MONOTONIC;
#[cfg(windows)]
const HOST: vk::TimeDomainEXT = vk::TimeDomainEXT::QUERY_PERFORMANCE_COUNTER;

/// Relates the device's timestamps to the host's clock.
pub struct Clock {
    calibrated: Option<ext::calibrated_timestamps::Device>,
    period: f64,
    bits: u32,
    /// A moment in both clocks: ticks, nanoseconds. None: not correlated yet.
    base: Mutex<Option<(u64, u64)>, { rank::CLOCK }>,
}

/// How old a correlation may grow before it is taken anew: clocks drift.
const CLOCK_AGE_NS: u64 = 1_000_000_000;

impl Clock {
    /// Creates the clock of a device.
    pub fn new(device: &LogicalDevice) -> Self {
        let adapter = &device.adapter;
        let instance = &adapter.instance.raw;
        let usable = adapter.extensions.calibrated_timestamps && {
            // Entry points of the extension are loaded through a handle of any device of the instance.
            let table =
                ext::calibrated_timestamps::Instance::new(&adapter.instance.entry, instance);
            // SAFETY: the device offers the extension.
            let domains =
                unsafe { table.get_physical_device_calibrateable_time_domains(adapter.raw) };
            let domains = domains.unwrap_or_default();
            domains.contains(&vk::TimeDomainEXT::DEVICE) && domains.contains(&HOST)
        };
        Self {
            calibrated: usable
                .then(|| ext::calibrated_timestamps::Device::new(instance, &device.raw)),
            period: f64::from(adapter.properties.limits.timestamp_period),
            bits: adapter.queue_family.timestamp_bits,
            base: Mutex::new(None),
        }
    }

    /// Returns a moment in device ticks and host nanoseconds.
    fn sample(&self, run: impl FnOnce() -> Result<(u64, u64)>) -> Result<(u64, u64)> {
        if let Some(table) = &self.calibrated {
            let info = [
                vk::CalibratedTimestampInfoEXT::default().time_domain(vk::TimeDomainEXT::DEVICE),
                vk::CalibratedTimestampInfoEXT::default().time_domain(HOST),
            ];
            // SAFETY: both domains were found to be offered.
            let (values, _) = unsafe { table.get_calibrated_timestamps(&info) }
                .during("vkGetCalibratedTimestampsEXT")?;
            if let [device, host] = values[..] {
                return Ok((device, clock_ns(host)));
            }
        }
        run()
    }

    fn base(&self, run: impl FnOnce() -> Result<(u64, u64)>) -> Result<(u64, u64)> {
        let now = monotonic_ns();
        let mut base = self.base.lock();
        match *base {
            // Without the extension a sample costs a submission, and is taken once.
            Some((_, host))
                if self.calibrated.is_none() || now.saturating_sub(host) < CLOCK_AGE_NS => {}
            _ => *base = Some(self.sample(run)?),
        }
        base.ok_or(DeviceError::Lost)
    }

    /// Converts two readings of the device's timer to host nanoseconds, in one correlation, ordered
    /// and never 0.
    pub fn to_host(
        &self,
        start: u64,
        end: u64,
        run: impl FnOnce() -> Result<(u64, u64)>,
    ) -> Result<(u64, u64)> {
        let (ticks, host) = self.base(run)?;
        let convert = |reading: u64| -> u64 {
            let nanoseconds = (self.distance(ticks, reading) as f64 * self.period) as i64;
            host.saturating_add_signed(nanoseconds).max(1)
        };
        let start = convert(start);
        Ok((start, convert(end).max(start)))
    }

    /// Returns the signed ticks from one reading to another, on a timer that wraps around.
    fn distance(&self, from: u64, to: u64) -> i64 {
        let unused = 64 - self.bits.clamp(1, 64);
        ((to.wrapping_sub(from) << unused) as i64) >> unused
    }

    /// Returns the device time, on the scale of profiled times, and the host time of this moment,
    /// in nanoseconds.
    pub fn now(&self, run: impl Fn() -> Result<(u64, u64)>) -> Result<(u64, u64)> {
        let (ticks, host) = self.sample(&run)?;
        Ok((self.to_host(ticks, ticks, run)?.0, host))
    }
}
