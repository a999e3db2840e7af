//! Batches of the layer's own among those of a vkQueueSubmit.
//!
//! - *Hold*: a batch without commands waits for the layer's semaphore. A wait holds back everything later in submission
//!   order, so what follows begins late, and the batches themselves stay as they are.
//! - *Late*: a batch gives its signals to one behind it, without commands, that waits for the layer's semaphore first. A
//!   signal covers everything earlier in submission order, so whoever waits for it sees the same memory as before.

use ash::vk;
use smallvec::SmallVec;

/// The batches added to a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Added {
    /// The layer's semaphore, a timeline.
    pub semaphore: vk::Semaphore,
    /// The batch that does not begin before a value.
    pub hold: Option<(usize, u64)>,
    /// The batch whose signals do not come before a value; [`can_be_late`].
    pub late: Option<(usize, u64)>,
}

/// The values of a batch's semaphores, where its chain has them and nothing else.
///
/// # Safety
/// The chain must be valid.
unsafe fn values<'a>(info: &vk::SubmitInfo<'a>) -> Option<&'a vk::TimelineSemaphoreSubmitInfo<'a>> {
    let next = info.p_next.cast::<vk::TimelineSemaphoreSubmitInfo<'a>>();
    // SAFETY: a structure of a chain, of which no more than kind and next is looked at before the kind is known.
    unsafe {
        let base = next.cast::<vk::BaseInStructure<'_>>().as_ref()?;
        (base.s_type == vk::StructureType::TIMELINE_SEMAPHORE_SUBMIT_INFO && base.p_next.is_null())
            .then(|| &*next)
    }
}

/// Whether a batch has signals that can be split off.
///
/// # Safety
/// The batch must be valid for vkQueueSubmit.
pub unsafe fn can_be_late(info: &vk::SubmitInfo<'_>) -> bool {
    // SAFETY: the caller's promise.
    info.signal_semaphore_count > 0 && unsafe { values(info) }.is_some()
}

/// A batch without its signals, and what its chain is then.
fn without_signals<'a>(
    values: &vk::TimelineSemaphoreSubmitInfo<'a>,
) -> vk::TimelineSemaphoreSubmitInfo<'a> {
    vk::TimelineSemaphoreSubmitInfo {
        signal_semaphore_value_count: 0,
        p_signal_semaphore_values: std::ptr::null(),
        ..*values
    }
}

/// Calls `submit` with the batches and what is added to them.
///
/// # Safety
/// The batches must be valid for vkQueueSubmit, and a late one [`can_be_late`].
pub unsafe fn with<R>(
    infos: &[vk::SubmitInfo<'_>],
    added: &Added,
    submit: impl FnOnce(&[vk::SubmitInfo<'_>]) -> R,
) -> R {
    let semaphore = [added.semaphore];
    let stages = [vk::PipelineStageFlags::ALL_COMMANDS];
    let wait = vk::SubmitInfo::default()
        .wait_semaphores(&semaphore)
        .wait_dst_stage_mask(&stages);

    let hold_value = [added.hold.map_or(0, |(_, value)| value)];
    let mut hold_values =
        vk::TimelineSemaphoreSubmitInfo::default().wait_semaphore_values(&hold_value);
    let hold = wait.push_next(&mut hold_values);

    // The late batch in its two halves.
    let late_value = [added.late.map_or(0, |(_, value)| value)];
    let whole = added.late.and_then(|(at, _)| infos.get(at));
    // SAFETY: the caller's promise.
    let whole = whole.and_then(|info| Some((info, unsafe { values(info) }?)));
    let mut halves = whole.map(|(_, values)| {
        let signals = vk::TimelineSemaphoreSubmitInfo {
            signal_semaphore_value_count: values.signal_semaphore_value_count,
            p_signal_semaphore_values: values.p_signal_semaphore_values,
            ..vk::TimelineSemaphoreSubmitInfo::default().wait_semaphore_values(&late_value)
        };
        (without_signals(values), signals)
    });
    let halves = whole.zip(halves.as_mut()).map(|((info, _), halves)| {
        let work = vk::SubmitInfo {
            p_next: (&raw const halves.0).cast(),
            signal_semaphore_count: 0,
            p_signal_semaphores: std::ptr::null(),
            ..*info
        };
        let signals = vk::SubmitInfo {
            p_next: (&raw const halves.1).cast(),
            signal_semaphore_count: info.signal_semaphore_count,
            p_signal_semaphores: info.p_signal_semaphores,
            ..wait
        };
        [work, signals]
    });

    let mut all: SmallVec<[vk::SubmitInfo<'_>; 4]> = SmallVec::new();
    let (hold_at, late_at) = (added.hold.map(|(at, _)| at), added.late.map(|(at, _)| at));
    for (at, info) in infos.iter().enumerate() {
        if hold_at == Some(at) {
            all.push(hold);
        }
        match halves {
            Some(halves) if late_at == Some(at) => all.extend(halves),
            _ => all.push(*info),
        }
    }
    // Where there is no batch, a fence can be held back.
    if infos.is_empty() && hold_at.is_some() {
        all.push(hold);
    }
    submit(&all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ash::vk::Handle;

    /// Waits, number of commands, signals.
    type Seen = (Vec<(u64, u64)>, u32, Vec<(u64, u64)>);

    fn pairs(count: u32, semaphores: *const vk::Semaphore, values: *const u64) -> Vec<(u64, u64)> {
        (0..count as usize)
            // SAFETY: the arrays have that many elements.
            .map(|at| unsafe { ((*semaphores.add(at)).as_raw(), *values.add(at)) })
            .collect()
    }

    fn seen(infos: &[vk::SubmitInfo<'_>]) -> Vec<Seen> {
        infos
            .iter()
            .map(|info| {
                // SAFETY: the chain is valid.
                let values = unsafe { values(info) }.expect("values");
                assert_eq!(info.wait_semaphore_count, values.wait_semaphore_value_count);
                assert_eq!(
                    info.signal_semaphore_count,
                    values.signal_semaphore_value_count
                );
                let waits = pairs(
                    info.wait_semaphore_count,
                    info.p_wait_semaphores,
                    values.p_wait_semaphore_values,
                );
                let signals = pairs(
                    info.signal_semaphore_count,
                    info.p_signal_semaphores,
                    values.p_signal_semaphore_values,
                );
                (waits, info.command_buffer_count, signals)
            })
            .collect()
    }

    /// Two batches as the runtime makes them, with the layer's added.
    fn rewritten(hold: Option<(usize, u64)>, late: Option<(usize, u64)>) -> Vec<Seen> {
        let semaphores = [1, 2].map(vk::Semaphore::from_raw);
        let commands = [vk::CommandBuffer::null()];
        let stages = [vk::PipelineStageFlags::COMPUTE_SHADER];
        let (waits, signals) = ([10], [20]);
        let mut first =
            vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&signals);
        let mut second = vk::TimelineSemaphoreSubmitInfo::default()
            .wait_semaphore_values(&waits)
            .signal_semaphore_values(&signals);
        let infos = [
            vk::SubmitInfo::default()
                .command_buffers(&commands)
                .signal_semaphores(&semaphores[..1])
                .push_next(&mut first),
            vk::SubmitInfo::default()
                .wait_semaphores(&semaphores[..1])
                .wait_dst_stage_mask(&stages)
                .command_buffers(&commands)
                .signal_semaphores(&semaphores[1..])
                .push_next(&mut second),
        ];
        let added = Added {
            semaphore: vk::Semaphore::from_raw(9),
            hold,
            late,
        };
        // SAFETY: the batches are valid and their signals can be split off.
        unsafe { with(&infos, &added, seen) }
    }

    fn first() -> Seen {
        (vec![], 1, vec![(1, 20)])
    }

    fn second() -> Seen {
        (vec![(1, 10)], 1, vec![(2, 20)])
    }

    #[test]
    fn a_hold_comes_before_its_batch() {
        let hold = (vec![(9, 5)], 0, vec![]);
        assert_eq!(
            rewritten(Some((0, 5)), None),
            [hold.clone(), first(), second()]
        );
        assert_eq!(rewritten(Some((1, 5)), None), [first(), hold, second()]);
    }

    #[test]
    fn late_signals_follow_the_work() {
        let work = (vec![(1, 10)], 1, vec![]);
        let signals = (vec![(9, 6)], 0, vec![(2, 20)]);
        assert_eq!(rewritten(None, Some((1, 6))), [first(), work, signals]);
    }

    #[test]
    fn hold_and_late_signals() {
        let hold = (vec![(9, 5)], 0, vec![]);
        let (work, signals) = ((vec![], 1, vec![]), (vec![(9, 6)], 0, vec![(1, 20)]));
        assert_eq!(
            rewritten(Some((0, 5)), Some((0, 6))),
            [hold, work, signals, second()]
        );
    }

    #[test]
    fn nothing_but_a_fence_is_held() {
        let added = Added {
            semaphore: vk::Semaphore::from_raw(9),
            hold: Some((0, 3)),
            late: None,
        };
        // SAFETY: there are no batches.
        let seen = unsafe { with(&[], &added, seen) };
        assert_eq!(seen, [(vec![(9, 3)], 0, vec![])]);
    }

    #[test]
    fn other_chains_and_batches_without_signals_stay_whole() {
        let semaphore = [vk::Semaphore::from_raw(1)];
        let plain = vk::SubmitInfo::default().signal_semaphores(&semaphore);
        let mut group = vk::DeviceGroupSubmitInfo::default();
        let grouped = plain.push_next(&mut group);
        let mut values = vk::TimelineSemaphoreSubmitInfo::default();
        let silent = vk::SubmitInfo::default().push_next(&mut values);
        for info in [plain, grouped, silent] {
            // SAFETY: the batch is valid.
            assert!(!unsafe { can_be_late(&info) });
        }
    }
}
