//! Devices of the machine that are not offered: why, and what to do about it.

use pumice_runtime::backend::vulkan::{self, Surveyed, Unusable};
use pumice_runtime::util::config;
use std::path::Path;

/// A device that is not offered, or something else that is not there.
#[derive(Debug, PartialEq)]
pub struct Absent {
    /// The name of the device.
    pub name: String,
    /// Why.
    pub reason: String,
    /// The remedy.
    pub remedy: String,
    /// Somebody wants it so, or it is no loss.
    pub on_purpose: bool,
}

/// The devices of the machine, present and absent.
#[derive(Debug, Default, PartialEq)]
pub struct Report {
    /// Names of the Vulkan devices that are offered.
    pub vulkan: Vec<String>,
    /// All others.
    pub absent: Vec<Absent>,
}

/// A card of a vendor with Vulkan drivers.
struct Card {
    vendor_id: u32,
    /// Where it is on the bus.
    place: String,
}

/// Examines the machine, of which devices with these names are offered.
pub fn report(offered: &[&str]) -> Report {
    let words = &config::get().devices;
    let cards = cards(Path::new("/sys/bus/pci/devices"));
    made_of(vulkan::survey(), offered, words, &cards)
}

fn made_of(
    survey: Result<Vec<Surveyed>, String>,
    offered: &[&str],
    words: &[String],
    cards: &[Card],
) -> Report {
    let mut report = Report::default();
    let mut vendors = Vec::new();
    let mut missing = |name: &str, reason: String, remedy: &str| {
        report.absent.push(Absent {
            name: name.to_owned(),
            reason,
            remedy: remedy.to_owned(),
            on_purpose: false,
        });
    };
    match survey {
        Err(error) => missing(
            "Vulkan",
            error,
            "for GPUs install the Vulkan loader (Debian: libvulkan1, Fedora: vulkan-loader, Arch: vulkan-icd-loader) and a driver",
        ),
        Ok(devices) if devices.is_empty() => missing(
            "Vulkan",
            "no Vulkan device".to_owned(),
            "for GPUs install the Vulkan driver of the card's vendor, or Mesa's (Debian: mesa-vulkan-drivers)",
        ),
        Ok(devices) => {
            for device in devices {
                vendors.push(device.vendor_id);
                let (reason, remedy, on_purpose) = match device.software {
                    Ok(_) if offered.contains(&device.name.as_str()) => {
                        report.vulkan.push(device.name);
                        continue;
                    }
                    Ok(true) if words.is_empty() => (
                        "it is software, and the processor is a device already".to_owned(),
                        format!("PUMICE_DEVICES=\"{}\" offers it alone", device.name),
                        true,
                    ),
                    Ok(_) => (
                        format!("PUMICE_DEVICES={} leaves it out", words.join(",")),
                        "unset PUMICE_DEVICES, or add its name".to_owned(),
                        true,
                    ),
                    Err(Unusable { reason, remedy }) => (reason, remedy.to_owned(), false),
                };
                report.absent.push(Absent {
                    name: device.name,
                    reason,
                    remedy,
                    on_purpose,
                });
            }
        }
    }
    for card in cards
        .iter()
        .filter(|card| !vendors.contains(&card.vendor_id))
    {
        let (vendor, remedy) = match card.vendor_id {
            NVIDIA => (
                "NVIDIA",
                "install NVIDIA's driver with its Vulkan part (in containers NVIDIA_DRIVER_CAPABILITIES=all, and libegl1, libgl1, libxext6)",
            ),
            AMD => ("AMD", "install Mesa's Vulkan drivers (Debian: mesa-vulkan-drivers)"),
            _ => ("Intel", "install Mesa's Vulkan drivers (Debian: mesa-vulkan-drivers)"),
        };
        report.absent.push(Absent {
            name: format!("card of {vendor} at {}", card.place),
            reason:
                "no Vulkan driver knows it, or this user must not open it (/dev/dri, /dev/nvidia0)"
                    .to_owned(),
            remedy: format!("{remedy}; else let the user into the groups `render` and `video`"),
            on_purpose: false,
        });
    }
    report
}

const NVIDIA: u32 = 0x10de;
const AMD: u32 = 0x1002;
const INTEL: u32 = 0x8086;

/// Returns the graphics and compute cards that Linux has on the PCI bus.
fn cards(bus: &Path) -> Vec<Card> {
    let number = |path: &Path, name: &str| {
        let text = std::fs::read_to_string(path.join(name)).ok()?;
        u32::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
    };
    let entries = std::fs::read_dir(bus).into_iter().flatten().flatten();
    let mut cards: Vec<Card> = entries
        .filter_map(|entry| {
            let path = entry.path();
            // Display controllers, and processing accelerators.
            let class = number(&path, "class")? >> 16;
            let vendor_id = number(&path, "vendor")?;
            let known = matches!(class, 0x03 | 0x12) && [NVIDIA, AMD, INTEL].contains(&vendor_id);
            known.then(|| Card {
                vendor_id,
                place: entry.file_name().to_string_lossy().into_owned(),
            })
        })
        .collect();
    cards.sort_by(|a, b| a.place.cmp(&b.place));
    cards
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, software: Result<bool, Unusable>) -> Surveyed {
        Surveyed {
            name: name.to_owned(),
            vendor_id: 0x10005,
            software,
        }
    }

    /// Every device that is not offered has a reason and a remedy.
    #[test]
    fn reasons_and_remedies() {
        let survey = vec![
            device("good", Ok(false)),
            device("soft", Ok(true)),
            device("old", Err(Unusable::old("it is older than Vulkan 1.2"))),
            device("other", Ok(false)),
        ];
        let report = made_of(Ok(survey.clone()), &["good"], &[], &[]);
        assert_eq!(report.vulkan, ["good"]);
        let names: Vec<_> = report
            .absent
            .iter()
            .map(|a| (a.name.as_str(), a.on_purpose))
            .collect();
        assert_eq!(names, [("soft", true), ("old", false), ("other", true)]);
        assert!(report.absent[0].remedy.contains("PUMICE_DEVICES=\"soft\""));
        assert!(report.absent[1].remedy.contains("newer"));
        let report = made_of(Ok(survey), &["good"], &["go".to_owned()], &[]);
        assert!(report.absent[0].reason.contains("PUMICE_DEVICES=go"));
        let card = Card {
            vendor_id: AMD,
            place: "0000:01:00.0".to_owned(),
        };
        for survey in [Ok(Vec::new()), Err("no loader".to_owned())] {
            let report = made_of(survey, &[], &[], std::slice::from_ref(&card));
            assert_eq!(report.absent.len(), 2);
            assert!(report.absent[1].remedy.contains("mesa-vulkan-drivers"));
            assert!(!report
                .absent
                .iter()
                .any(|a| a.reason.is_empty() || a.remedy.is_empty()));
        }
    }

    #[test]
    fn cards_are_found_on_the_bus() {
        let bus = std::env::temp_dir().join(format!("pumice-bus-{}", std::process::id()));
        for (place, class, vendor) in [
            ("0000:00:00.0", "0x060000", "0x8086"),
            ("0000:02:00.0", "0x030200", "0x10de"),
            ("0000:01:00.0", "0x030000", "0x1002"),
            ("0000:03:00.0", "0x030000", "0x1af4"),
        ] {
            std::fs::create_dir_all(bus.join(place)).unwrap();
            std::fs::write(bus.join(place).join("class"), format!("{class}\n")).unwrap();
            std::fs::write(bus.join(place).join("vendor"), format!("{vendor}\n")).unwrap();
        }
        let found: Vec<_> = cards(&bus)
            .into_iter()
            .map(|c| (c.vendor_id, c.place))
            .collect();
        assert_eq!(
            found,
            [
                (AMD, "0000:01:00.0".to_owned()),
                (NVIDIA, "0000:02:00.0".to_owned())
            ]
        );
        std::fs::remove_dir_all(&bus).unwrap();
        assert!(cards(&bus).is_empty());
    }
}
