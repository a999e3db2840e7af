//! How a device is divided, by its processors alone (OpenCL API specification, section 4.3): the schemes that there are and
//! what they make.

use crate::backend::processors::{Domain, Processor};
use crate::cl::{self, cl_device_affinity_domain, cl_device_partition_property};
use crate::error::{ensure, err, ClResult};

/// Returns the bit of CL_DEVICE_PARTITION_AFFINITY_DOMAIN.
fn bit(domain: Domain) -> cl_device_affinity_domain {
    match domain {
        Domain::Numa => cl::CL_DEVICE_AFFINITY_DOMAIN_NUMA,
        Domain::L4 => cl::CL_DEVICE_AFFINITY_DOMAIN_L4_CACHE,
        Domain::L3 => cl::CL_DEVICE_AFFINITY_DOMAIN_L3_CACHE,
        Domain::L2 => cl::CL_DEVICE_AFFINITY_DOMAIN_L2_CACHE,
        Domain::L1 => cl::CL_DEVICE_AFFINITY_DOMAIN_L1_CACHE,
    }
}

/// Groups the processors by the resource that they share, in their order. Returns `None` if that is
/// not known of all.
fn by_domain(all: &[Processor], domain: Domain) -> Option<Vec<Vec<u32>>> {
    let at = Domain::ALL.iter().position(|known| *known == domain)?;
    let mut groups: Vec<(&str, Vec<u32>)> = Vec::new();
    for processor in all {
        let shared = processor.shares.get(at)?.as_deref()?;
        match groups.iter_mut().find(|(known, _)| *known == shared) {
            Some((_, group)) => group.push(processor.number),
            None => groups.push((shared, vec![processor.number])),
        }
    }
    Some(groups.into_iter().map(|(_, group)| group).collect())
}

/// Returns CL_DEVICE_PARTITION_AFFINITY_DOMAIN: the domains that divide the device.
pub(super) fn domains(all: &[Processor]) -> cl_device_affinity_domain {
    let divides = |domain: &Domain| by_domain(all, *domain).is_some_and(|groups| groups.len() > 1);
    let found: Vec<Domain> = Domain::ALL.into_iter().filter(divides).collect();
    let next = match found.is_empty() {
        true => 0,
        false => cl::CL_DEVICE_AFFINITY_DOMAIN_NEXT_PARTITIONABLE,
    };
    found
        .into_iter()
        .fold(next, |bits, domain| bits | bit(domain))
}

/// Returns CL_DEVICE_PARTITION_PROPERTIES.
pub(super) fn properties(all: &[Processor]) -> Vec<cl_device_partition_property> {
    if all.len() < 2 {
        return vec![0];
    }
    let mut list = vec![
        cl::CL_DEVICE_PARTITION_EQUALLY,
        cl::CL_DEVICE_PARTITION_BY_COUNTS,
    ];
    if domains(all) != 0 {
        list.push(cl::CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN);
    }
    list
}

/// The result of a scheme.
#[derive(Debug, PartialEq, Eq)]
pub struct PartitionPlan {
    /// The processors of each sub-device.
    pub parts: Vec<Vec<u32>>,
    /// CL_DEVICE_PARTITION_TYPE.
    pub kind: Vec<cl_device_partition_property>,
}

/// Divides these processors by a scheme.
pub(super) fn plan(
    all: &[Processor],
    scheme: &[cl_device_partition_property],
) -> ClResult<PartitionPlan> {
    let (Some(&name), values) = (scheme.first(), scheme.get(1..).unwrap_or_default()) else {
        return err(cl::CL_INVALID_VALUE, "no partition scheme");
    };
    if !properties(all).contains(&name) || name == 0 {
        return match name {
            cl::CL_DEVICE_PARTITION_EQUALLY | cl::CL_DEVICE_PARTITION_BY_COUNTS
                if all.len() == 1 =>
            {
                err(cl::CL_DEVICE_PARTITION_FAILED, "one compute unit is left")
            }
            _ => err(
                cl::CL_INVALID_VALUE,
                format!("the device has no partition scheme {name:#x}"),
            ),
        };
    }
    let value = values.first().copied().unwrap_or(0);
    let numbers: Vec<u32> = all.iter().map(|processor| processor.number).collect();
    match name {
        cl::CL_DEVICE_PARTITION_EQUALLY => {
            let Some(size) = usize::try_from(value).ok().filter(|size| *size > 0) else {
                return err(cl::CL_INVALID_VALUE, format!("{value} compute units each"));
            };
            ensure!(
                size <= all.len(),
                cl::CL_INVALID_DEVICE_PARTITION_COUNT,
                "{size} compute units of {}",
                all.len()
            );
            ensure!(
                size != all.len(),
                cl::CL_DEVICE_PARTITION_FAILED,
                "that is the whole device"
            );
            Ok(PartitionPlan {
                parts: numbers.chunks_exact(size).map(<[u32]>::to_vec).collect(),
                kind: vec![name, value, 0],
            })
        }
        cl::CL_DEVICE_PARTITION_BY_COUNTS => {
            let counts = values.split(|value| *value == 0).next().unwrap_or_default();
            let sizes: Option<Vec<usize>> = counts
                .iter()
                .map(|count| usize::try_from(*count).ok())
                .collect();
            let sum =
                |sizes: &Vec<usize>| sizes.iter().fold(0usize, |sum, n| sum.saturating_add(*n));
            let Some(sizes) = sizes.filter(|sizes| sum(sizes) <= all.len()) else {
                return err(
                    cl::CL_INVALID_DEVICE_PARTITION_COUNT,
                    format!("counts {counts:?} of {} compute units", all.len()),
                );
            };
            ensure!(!sizes.is_empty(), cl::CL_INVALID_VALUE, "no counts");
            let mut rest = &numbers[..];
            let mut parts = Vec::with_capacity(sizes.len());
            for size in sizes {
                let (part, left) = rest.split_at(size.min(rest.len()));
                parts.push(part.to_vec());
                rest = left;
            }
            let mut kind = vec![name];
            kind.extend_from_slice(counts);
            kind.extend([cl::CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0]);
            Ok(PartitionPlan { parts, kind })
        }
        _ => {
            let wanted = value as cl_device_affinity_domain;
            let next = wanted == cl::CL_DEVICE_AFFINITY_DOMAIN_NEXT_PARTITIONABLE;
            let known = |domain: &&Domain| next || bit(**domain) == wanted;
            let candidates: Vec<&Domain> = Domain::ALL.iter().filter(known).collect();
            ensure!(
                !candidates.is_empty(),
                cl::CL_INVALID_VALUE,
                "affinity domain {wanted:#x}"
            );
            for domain in candidates {
                if let Some(parts) = by_domain(all, *domain).filter(|parts| parts.len() > 1) {
                    let kind = vec![name, bit(*domain) as cl_device_partition_property, 0];
                    return Ok(PartitionPlan { parts, kind });
                }
            }
            err(
                cl::CL_DEVICE_PARTITION_FAILED,
                format!("affinity domain {wanted:#x} does not divide the device"),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Vec<Processor> {
        (0..8)
            .map(|number| Processor {
                number,
                shares: [
                    Some(format!("node{}", number / 4)),
                    None,
                    Some("0-7".to_owned()),
                    Some(format!("{}", number / 2)),
                    Some(format!("{}", number / 2)),
                ],
            })
            .collect()
    }

    fn code(scheme: &[cl_device_partition_property]) -> i32 {
        plan(&machine(), scheme).map_or_else(|e| e.code, |_| cl::CL_SUCCESS)
    }

    #[test]
    fn schemes() {
        let all = machine();
        let equally = plan(&all, &[cl::CL_DEVICE_PARTITION_EQUALLY, 3, 0]).expect("three each");
        assert_eq!(equally.parts, [vec![0, 1, 2], vec![3, 4, 5]]);
        let scheme = [cl::CL_DEVICE_PARTITION_BY_COUNTS, 1, 4, 0, 0];
        let counts = plan(&all, &scheme).expect("one and four");
        assert_eq!(counts.parts, [vec![0], vec![1, 2, 3, 4]]);
        assert_eq!(counts.kind, scheme);
        let domain = |bits: cl_device_affinity_domain| {
            let bits = bits as cl_device_partition_property;
            plan(&all, &[cl::CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN, bits, 0])
        };
        let next = domain(cl::CL_DEVICE_AFFINITY_DOMAIN_NEXT_PARTITIONABLE).expect("by node");
        assert_eq!(next.parts.len(), 2);
        assert_eq!(
            next.kind.get(1).copied(),
            Some(cl::CL_DEVICE_AFFINITY_DOMAIN_NUMA as cl_device_partition_property)
        );
        assert_eq!(
            domain(cl::CL_DEVICE_AFFINITY_DOMAIN_L2_CACHE)
                .expect("pairs")
                .parts
                .len(),
            4
        );
        assert!(domain(cl::CL_DEVICE_AFFINITY_DOMAIN_L3_CACHE).is_err());
        assert_eq!(
            domains(&all),
            cl::CL_DEVICE_AFFINITY_DOMAIN_NUMA
                | cl::CL_DEVICE_AFFINITY_DOMAIN_L2_CACHE
                | cl::CL_DEVICE_AFFINITY_DOMAIN_L1_CACHE
                | cl::CL_DEVICE_AFFINITY_DOMAIN_NEXT_PARTITIONABLE
        );
    }

    #[test]
    fn refusals() {
        let (equally, counts) = (
            cl::CL_DEVICE_PARTITION_EQUALLY,
            cl::CL_DEVICE_PARTITION_BY_COUNTS,
        );
        assert_eq!(code(&[equally, 8, 0]), cl::CL_DEVICE_PARTITION_FAILED);
        assert_eq!(
            code(&[equally, 9, 0]),
            cl::CL_INVALID_DEVICE_PARTITION_COUNT
        );
        assert_eq!(code(&[equally, 0, 0]), cl::CL_INVALID_VALUE);
        assert_eq!(
            code(&[counts, 8, 1, 0, 0]),
            cl::CL_INVALID_DEVICE_PARTITION_COUNT
        );
        assert_eq!(
            code(&[counts, -1, 0, 0]),
            cl::CL_INVALID_DEVICE_PARTITION_COUNT
        );
        assert_eq!(code(&[counts, 0, 0]), cl::CL_INVALID_VALUE);
        assert_eq!(code(&[-1, 1, 0]), cl::CL_INVALID_VALUE);
        assert_eq!(code(&[]), cl::CL_INVALID_VALUE);
        let one = &machine()[..1];
        let alone = plan(one, &[equally, 1, 0]).map_err(|e| e.code);
        assert_eq!(alone, Err(cl::CL_DEVICE_PARTITION_FAILED));
        assert_eq!(properties(one), [0]);
    }
}
