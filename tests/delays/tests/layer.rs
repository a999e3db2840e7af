//! The layer below a program of its own: submissions are late, idle ends that, and devices end with work held back.
//!
//! One test alone, since it sets the environment of its process.

use ash::vk;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// `libpumice_delays.so`, beside the running program.
fn library() -> PathBuf {
    let program = std::env::current_exe().expect("this program");
    program
        .ancestors()
        .skip(1)
        .take(3)
        .map(|directory| directory.join("libpumice_delays.so"))
        .find(|library| library.exists())
        .expect("the layer, built")
}

/// Makes the loader find the layer, with delays of up to a second.
fn enable(place: &Path) {
    let manifest =
        include_str!("../manifest.json").replace("@LIBRARY@", &library().display().to_string());
    std::fs::create_dir_all(place).expect("a directory");
    std::fs::write(place.join("pumice_delays.json"), manifest).expect("a manifest");
    std::env::set_var("VK_LAYER_PATH", place);
    std::env::set_var("VK_INSTANCE_LAYERS", "VK_LAYER_PUMICE_delays");
    std::env::set_var("PUMICE_DELAYS", "1:1000000");
}

/// A device with one queue and a timeline semaphore.
struct Device {
    raw: ash::Device,
    queue: vk::Queue,
    semaphore: vk::Semaphore,
}

impl Device {
    fn new(instance: &ash::Instance, physical: vk::PhysicalDevice) -> Self {
        let priorities = [1.0];
        let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&priorities)];
        let mut features = vk::PhysicalDeviceVulkan12Features::default().timeline_semaphore(true);
        let info = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .push_next(&mut features);
        let mut kind =
            vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        // SAFETY: the structures are valid; drivers of Vulkan 1.2 have timelines, and every one a first queue.
        unsafe {
            let raw = instance
                .create_device(physical, &info, None)
                .expect("a device");
            let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
            Self {
                queue: raw.get_device_queue(0, 0),
                semaphore: raw.create_semaphore(&info, None).expect("a semaphore"),
                raw,
            }
        }
    }

    /// Submits a signal of `value`.
    fn submit(&self, value: u64) {
        let (semaphore, values) = ([self.semaphore], [value]);
        let mut timeline =
            vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&values);
        let info = [vk::SubmitInfo::default()
            .signal_semaphores(&semaphore)
            .push_next(&mut timeline)];
        // SAFETY: one thread uses the queue; the values rise.
        unsafe { self.raw.queue_submit(self.queue, &info, vk::Fence::null()) }.expect("submitted");
    }

    fn value(&self) -> u64 {
        // SAFETY: a timeline semaphore of the device.
        unsafe { self.raw.get_semaphore_counter_value(self.semaphore) }.expect("a value")
    }

    /// How long it takes until the device is idle.
    fn wait_idle(&self) -> Duration {
        let began = Instant::now();
        // SAFETY: one thread uses the queue.
        unsafe { self.raw.device_wait_idle() }.expect("idle");
        began.elapsed()
    }

    fn destroy(self) {
        // SAFETY: the device is idle, but for what the layer holds back itself.
        unsafe {
            self.raw.destroy_semaphore(self.semaphore, None);
            self.raw.destroy_device(None);
        }
    }
}

/// Submits and looks; idle lets everything go.
fn exercise(device: &Device) {
    let mut late = 0;
    for value in 1..=20 {
        device.submit(value);
        late += u32::from(device.value() < value);
    }
    assert!(late > 5, "late {late} times of 20");
    let mut waited = device.wait_idle();
    assert_eq!(device.value(), 20);
    for value in 21..=40 {
        device.submit(value);
        waited += device.wait_idle();
        assert_eq!(device.value(), value);
    }
    // The delays together are three seconds and more.
    assert!(waited < Duration::from_secs(1), "{waited:?}");
    // Waiting works without anyone letting go.
    device.submit(41);
    let (semaphores, values) = ([device.semaphore], [41]);
    let info = vk::SemaphoreWaitInfo::default()
        .semaphores(&semaphores)
        .values(&values);
    // SAFETY: a timeline semaphore of the device.
    unsafe { device.raw.wait_semaphores(&info, 10_000_000_000) }.expect("signalled");
    assert_eq!(device.value(), 41);
    // A fence of nothing is held back, too.
    let fence = vk::FenceCreateInfo::default();
    // SAFETY: the fence is new, and destroyed when it was signalled.
    unsafe {
        let fence = device.raw.create_fence(&fence, None).expect("a fence");
        device
            .raw
            .queue_submit(device.queue, &[], fence)
            .expect("submitted");
        device
            .raw
            .wait_for_fences(&[fence], true, 10_000_000_000)
            .expect("signalled");
        device.raw.destroy_fence(fence, None);
    }
}

#[test]
fn submissions_are_late_and_devices_end() {
    let place = std::env::temp_dir().join(format!("pumice-delays-{}", std::process::id()));
    enable(&place);
    // Twice, since the layer is unloaded with the last instance.
    for _ in 0..2 {
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_2);
        let info = vk::InstanceCreateInfo::default().application_info(&application);
        // SAFETY: the structures are valid; libvulkan is the Vulkan loader.
        let (_entry, instance) = unsafe {
            let Ok(entry) = ash::Entry::load() else {
                break;
            };
            let instance = entry.create_instance(&info, None).expect("an instance");
            (entry, instance)
        };
        // SAFETY: the instance lives.
        let physical = unsafe { instance.enumerate_physical_devices() }.unwrap_or_default();
        if let Some(physical) = physical.first() {
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        let device = Device::new(&instance, *physical);
                        exercise(&device);
                        device.destroy();
                    });
                }
            });
        }
        // SAFETY: nothing of the instance is left.
        unsafe { instance.destroy_instance(None) };
    }
    let _ = std::fs::remove_dir_all(&place);
}
