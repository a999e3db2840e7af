//! Streams: operations are written down in batches and run in their order (`track.rs`).

use super::check;
use super::code;
use super::image::{self, Descriptor};
use super::memory;
use super::pool::Pool;
use super::step::{
    AllTimes, Batch, CpuDispatch, CpuSequence, MemoryRange, Push, Step, StepAction, StepWait,
};
use super::timeline::CpuTimeline;
use super::track::Track;
use crate::backend::external::SharedResource;
use crate::backend::image::Resource;
use crate::backend::{
    Binding, DeviceError, Op, OrderRule, Pipeline, Point, ProfileSlot, Result, Sequence, Slice,
    Stream, StreamDesc, Timeline, Times, Use,
};
use std::sync::Arc;

/// Batches that are kept to be used again, and small ones: a chain of commands over two queues has as many in flight.
const MOST_SPARE: usize = 8;
const MOST_SMALL_SPARE: usize = 128;
/// The most steps of a small batch.
const SMALL: usize = 16;

/// A stream.
pub struct CpuStream {
    track: Arc<Track>,
    timeline: Arc<CpuTimeline>,
    timeline_dyn: Arc<dyn Timeline>,
    open: Batch,
    /// The value of the open command.
    open_value: u64,
    /// Steps of the open batch that are of commands which have ended.
    ended: usize,
    submitted: u64,
    spare: Vec<Batch>,
    /// Empty: where completed batches are moved to.
    completed: Vec<Batch>,
    next_slot: u64,
    profiling: bool,
    times: AllTimes,
}

impl CpuStream {
    /// Creates a stream whose batches the pool runs.
    pub fn new(pool: &Arc<Pool>, desc: StreamDesc) -> Self {
        let timeline = CpuTimeline::new(desc.terminable);
        Self {
            track: Track::new(&timeline, pool),
            timeline_dyn: timeline.clone(),
            timeline,
            open: Batch::default(),
            open_value: 1,
            ended: 0,
            submitted: 0,
            spare: Vec::new(),
            completed: Vec::new(),
            next_slot: 0,
            profiling: desc.profiling,
            times: AllTimes::default(),
        }
    }

    /// Returns the memory range of a slice. The batch keeps its memory.
    fn place(&mut self, slice: &Slice) -> Result<MemoryRange> {
        let ours = memory::of(slice.memory.as_ref())?;
        let pointer = ours.pointer().wrapping_add(slice.offset as usize);
        self.keep(slice);
        Ok(MemoryRange {
            pointer,
            size: slice.size,
        })
    }

    /// Makes the open command wait for a value.
    fn add_wait(&mut self, timeline: Arc<CpuTimeline>, value: u64) {
        // What has been reached well is not waited for.
        if timeline.reached() < value || timeline.failure(value).is_some() {
            self.open.waits.push(StepWait {
                step: self.open.steps.len(),
                timeline,
                value,
            });
        }
    }

    /// Gives what is recorded next another value.
    fn close_command(&mut self) {
        if self.open.steps.len() > self.ended {
            self.ended = self.open.steps.len();
            self.open_value += 1;
        }
    }

    fn keep(&mut self, slice: &Slice) {
        let known = self.open.memories.last();
        if !known.is_some_and(|last| Arc::ptr_eq(last, &slice.memory)) {
            self.open.memories.push(slice.memory.clone());
        }
    }

    #[allow(clippy::too_many_arguments)]
    #[inline]
    fn dispatch(
        &mut self,
        pipeline: &Arc<dyn Pipeline>,
        push: &[u8],
        uses: &[Use],
        bindings: &[Binding],
        anything: bool,
        groups: [u32; 3],
    ) -> Result<CpuDispatch> {
        code::of(pipeline.as_ref())?;
        for one in uses {
            self.keep(&one.slice);
        }
        let mut given = Vec::new();
        if check::on() && !anything {
            for Use { slice, .. } in uses {
                let begin = memory::of(slice.memory.as_ref())?.pointer() as u64 + slice.offset;
                given.push((begin, begin + slice.size));
            }
        }
        let mut descriptors = Vec::new();
        for binding in bindings {
            let at = binding.binding as usize;
            let (Resource::Sampled(shown) | Resource::Storage(shown)) = &binding.resource else {
                continue;
            };
            if descriptors.len() <= at {
                descriptors.resize(at + 1, Descriptor::default());
            }
            descriptors[at] = image::of(shown.as_ref())?.descriptor();
            self.open.images.push(shown.clone());
        }
        let mut words = Push::from_elem(0, push.len().div_ceil(8));
        // SAFETY: there are as many bytes in the words, or more, and neither side is part of the other.
        unsafe {
            std::ptr::copy_nonoverlapping(push.as_ptr(), words.as_mut_ptr().cast(), push.len());
        }
        Ok(CpuDispatch {
            pipeline: pipeline.clone(),
            groups,
            push: words,
            descriptors,
            given,
        })
    }

    #[inline]
    fn action(&mut self, op: Op<'_>) -> Result<StepAction> {
        Ok(match op {
            Op::Dispatch {
                pipeline,
                groups,
                push,
                uses,
                bindings,
                touches_anything,
            } => StepAction::Dispatch(self.dispatch(
                pipeline,
                push,
                uses,
                bindings,
                touches_anything,
                groups,
            )?),
            Op::Copy { src, dst, region } => {
                StepAction::Copy(self.place(src)?, self.place(dst)?, region)
            }
            Op::Fill { dst, pattern } => StepAction::Fill(self.place(dst)?, pattern.into()),
            Op::Update { dst, data } => StepAction::Update(self.place(dst)?, data.into()),
            Op::CopyTexels {
                image,
                region,
                memory,
                pitches,
                to_image,
            } => {
                let place = self.place(memory)?;
                StepAction::CopyTexels(image.clone(), region, place, pitches, to_image)
            }
            Op::ImageCopy {
                src,
                src_origin,
                dst,
                dst_origin,
                size,
            } => StepAction::ImageCopy(src.clone(), src_origin, dst.clone(), dst_origin, size),
            Op::Call { work, uses } => {
                for one in uses {
                    self.keep(&one.slice);
                }
                StepAction::Call(work)
            }
            Op::Handover { resource, acquire } => match resource {
                SharedResource::Memory(slice) => {
                    StepAction::Handover(slice.memory.clone(), acquire)
                }
                SharedResource::Image(_) => {
                    return Err(DeviceError::Unsupported("shared images".to_owned()))
                }
            },
            Op::Sequence(sequence) => StepAction::Sequence(sequence.clone()),
            Op::Marker => StepAction::Nothing,
            Op::Keep(other) => {
                self.open.others.push(other);
                StepAction::Nothing
            }
        })
    }
}

impl Stream for CpuStream {
    fn timeline(&self) -> &Arc<dyn Timeline> {
        &self.timeline_dyn
    }

    fn open_value(&self) -> u64 {
        self.open_value
    }

    fn recorded_value(&self) -> u64 {
        self.open_value - u64::from(self.open.steps.len() == self.ended)
    }

    /// Ends the open command. Each command has a value of its own, whether or not it is observed,
    /// which costs a store.
    fn end_command(&mut self, _observed: &mut dyn FnMut() -> bool) {
        // A command that had to pause before its first operation waits again when it goes on.
        let steps = self.open.steps.len();
        while self.open.waits.pop_if(|wait| wait.step == steps).is_some() {}
        self.close_command();
    }

    fn commands_fail(&self) -> bool {
        true
    }

    fn depends_on(&mut self, value: u64) {
        let timeline = self.timeline.clone();
        self.add_wait(timeline, value);
    }

    fn open_len(&self) -> usize {
        self.open.steps.len()
    }

    fn wait_for(&mut self, point: &Point) {
        let ours = point.timeline.as_any().downcast_ref::<CpuTimeline>();
        // Its own work is in order.
        if let Some(timeline) = ours.and_then(CpuTimeline::myself) {
            if !Arc::ptr_eq(&timeline, &self.timeline) {
                self.add_wait(timeline, point.value);
            }
        }
    }

    fn record(
        &mut self,
        op: Op<'_>,
        _order: OrderRule,
        profile: bool,
    ) -> Result<Option<ProfileSlot>> {
        let action = self.action(op)?;
        let slot = (profile && self.profiling).then(|| {
            self.next_slot += 1;
            self.open.times = Some(self.times.clone());
            self.next_slot
        });
        self.open.steps.push(Step {
            action,
            profile: slot,
            value: self.open_value,
        });
        Ok(slot.map(ProfileSlot))
    }

    fn barrier(&mut self) -> Result {
        Ok(())
    }

    fn take_sequence(&mut self) -> Result<Arc<dyn Sequence>> {
        self.ended = 0;
        let mut batch = std::mem::take(&mut self.open);
        batch.steps.retain(|step| !step.action.is_nothing());
        Ok(Arc::new(CpuSequence(batch)))
    }

    fn submit(&mut self, force: bool) -> Result<u64> {
        if self.open.steps.is_empty() {
            if !force {
                return Ok(self.submitted);
            }
            self.record(Op::Marker, OrderRule::InOrder, false)?;
        }
        self.close_command();
        self.reclaim();
        let next = self.spare.pop().unwrap_or_default();
        let mut batch = std::mem::replace(&mut self.open, next);
        self.ended = 0;
        // The command that is recorded next may have said what it waits for.
        let steps = batch.steps.len();
        while let Some(wait) = batch.waits.pop_if(|wait| wait.step == steps) {
            self.open.waits.push(StepWait { step: 0, ..wait });
        }
        self.submitted = batch.last_value();
        self.track.submit(batch);
        Ok(self.submitted)
    }

    fn reclaim(&mut self) {
        self.track.take_done(&mut self.completed);
        for mut batch in self.completed.drain(..) {
            batch.clear();
            let most = match batch.steps.capacity() <= SMALL {
                true => MOST_SMALL_SPARE,
                false => MOST_SPARE,
            };
            if self.spare.len() < most {
                self.spare.push(batch);
            }
        }
    }

    fn take_times(&mut self, slot: ProfileSlot) -> Result<Times> {
        let times = self.times.lock().remove(&slot.0);
        times.ok_or_else(|| DeviceError::Driver {
            call: "take_times",
            code: "the operation has not run".to_owned(),
        })
    }

    fn discard_times(&mut self, slot: ProfileSlot) {
        self.times.lock().remove(&slot.0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::CpuMemory;
    use super::*;
    use crate::backend::{BufferCopy, Memory};

    struct Scene(Arc<Pool>);

    impl Scene {
        fn new() -> Self {
            Self(Pool::new(2))
        }

        fn stream(&self, profiling: bool) -> CpuStream {
            let desc = StreamDesc {
                profiling,
                ..StreamDesc::default()
            };
            CpuStream::new(&self.0, desc)
        }
    }

    impl Drop for Scene {
        fn drop(&mut self) {
            self.0.close();
        }
    }

    fn slice(offset: u64, size: u64, memory: &Arc<dyn Memory>) -> Slice {
        Slice::new(memory.clone(), offset, size)
    }

    fn memory() -> Arc<dyn Memory> {
        Arc::new(CpuMemory::new(64, 1).expect("memory"))
    }

    fn bytes(memory: &Arc<dyn Memory>) -> Vec<u8> {
        let base = memory.mapped().expect("mapped").as_ptr();
        // SAFETY: of that size, and nothing is under way.
        unsafe { std::slice::from_raw_parts(base, 64).to_vec() }
    }

    fn wait(stream: &CpuStream, value: u64) {
        let reached = stream.timeline().wait(value, None);
        assert!(reached.expect("a wait"));
    }

    #[test]
    fn operations_have_the_effect_of_their_order() {
        let scene = Scene::new();
        let mut stream = scene.stream(false);
        let (a, b) = (memory(), memory());
        let rule = OrderRule::Unordered;
        let fill = |dst, pattern| Op::Fill { dst, pattern };
        let all = slice(0, 64, &a);
        stream
            .record(fill(&all, &[1, 2]), rule, false)
            .expect("a fill");
        let part = slice(8, 4, &a);
        let update = Op::Update {
            dst: &part,
            data: &[9, 8, 7, 6],
        };
        stream.record(update, rule, false).expect("an update");
        let (src, dst) = (slice(6, 8, &a), slice(16, 8, &b));
        let region = BufferCopy::linear(0, 0, 8);
        let copy = Op::Copy {
            src: &src,
            dst: &dst,
            region,
        };
        stream.record(copy, rule, false).expect("a copy");
        stream
            .record(fill(&all, &[0]), rule, false)
            .expect("a fill");
        assert_eq!((stream.open_len(), stream.open_value()), (4, 1));
        let value = stream.submit(false).expect("submitted");
        assert_eq!((value, stream.open_len(), stream.open_value()), (1, 0, 2));
        wait(&stream, value);
        assert_eq!(bytes(&b)[16..24], [1, 2, 9, 8, 7, 6, 1, 2]);
        assert!(bytes(&a).iter().all(|&byte| byte == 0));
    }

    /// Nothing to run is no batch, unless one is asked for.
    #[test]
    fn empty_batches() {
        let scene = Scene::new();
        let mut stream = scene.stream(false);
        assert_eq!(stream.submit(false).expect("submitted"), 0);
        assert_eq!(stream.submit(true).expect("submitted"), 1);
        wait(&stream, 1);
        assert_eq!(stream.submit(false).expect("submitted"), 1);
    }

    /// Checks that a batch keeps its memory until it has completed and the stream has reclaimed it,
    /// and no longer.
    #[test]
    fn batches_keep_what_they_use() {
        let scene = Scene::new();
        let mut stream = scene.stream(false);
        let kept = Arc::new(());
        let op = Op::Keep(kept.clone());
        stream.record(op, OrderRule::InOrder, false).expect("kept");
        assert_eq!(Arc::strong_count(&kept), 2);
        let value = stream.submit(false).expect("submitted");
        wait(&stream, value);
        stream.reclaim();
        assert_eq!(Arc::strong_count(&kept), 1);
    }

    #[test]
    fn streams_wait_for_one_another() {
        let scene = Scene::new();
        let (mut first, mut second) = (scene.stream(false), scene.stream(false));
        let (a, b) = (memory(), memory());
        let (all_a, all_b) = (slice(0, 64, &a), slice(0, 64, &b));
        let point = Point {
            timeline: first.timeline().clone(),
            value: 1,
        };
        second.wait_for(&point);
        let region = BufferCopy::linear(0, 0, 64);
        let copy = Op::Copy {
            src: &all_a,
            dst: &all_b,
            region,
        };
        second
            .record(copy, OrderRule::InOrder, false)
            .expect("a copy");
        let last = second.submit(false).expect("submitted");
        assert_eq!(second.timeline().completed().expect("a value"), 0);
        let fill = Op::Fill {
            dst: &all_a,
            pattern: &[5],
        };
        first
            .record(fill, OrderRule::InOrder, false)
            .expect("a fill");
        first.submit(false).expect("submitted");
        wait(&second, last);
        assert!(bytes(&b).iter().all(|&byte| byte == 5));
    }

    /// Operations of a sequence run in their order, each time, and keep their memory. Where one fails, the command does, and
    /// those behind it do not run.
    #[test]
    fn sequences_run_again_and_again() {
        struct Falls;
        impl crate::backend::Call for Falls {
            fn call(&self) {
                panic!("as the test wants");
            }
        }
        let scene = Scene::new();
        let mut recorder = CpuStream::new(
            &scene.0,
            StreamDesc {
                recorder: true,
                ..StreamDesc::default()
            },
        );
        let (a, b) = (memory(), memory());
        let (all_a, all_b) = (slice(0, 64, &a), slice(0, 64, &b));
        let rule = OrderRule::InOrder;
        let mut sequence = |falls: bool, pattern: &[u8]| {
            let dst = &all_a;
            let fill = Op::Fill { dst, pattern };
            recorder.record(fill, rule, false).expect("a fill");
            if falls {
                let work = Arc::new(Falls);
                let call = Op::Call { work, uses: &[] };
                recorder.record(call, rule, false).expect("a call");
            }
            let (src, dst) = (&all_a, &all_b);
            let region = BufferCopy::linear(0, 0, 64);
            let copy = Op::Copy { src, dst, region };
            recorder.record(copy, rule, false).expect("a copy");
            recorder.take_sequence().expect("a sequence")
        };
        let (good, bad) = (sequence(false, &[3]), sequence(true, &[4]));
        assert_eq!(recorder.open_len(), 0);
        let mut stream = scene.stream(false);
        let run = |stream: &mut CpuStream, sequence: &Arc<dyn Sequence>| {
            let op = Op::Sequence(sequence);
            stream.record(op, rule, false).expect("a sequence");
            let value = stream.submit(false).expect("submitted");
            wait(stream, value);
            stream.timeline.failure(value).is_some()
        };
        for _ in 0..3 {
            assert!(!run(&mut stream, &good));
            assert!(bytes(&b).iter().all(|&byte| byte == 3));
            assert!(run(&mut stream, &bad));
            assert_eq!((bytes(&a)[0], bytes(&b)[0]), (4, 3));
        }
        drop((all_a, all_b, good, bad));
        stream.reclaim();
        assert_eq!((Arc::strong_count(&a), Arc::strong_count(&b)), (1, 1));
    }

    /// A wait is neither the next command's, where nothing of its own is recorded, nor lost where that follows in another
    /// batch.
    #[test]
    fn waits_are_those_of_one_command() {
        struct Falls;
        impl crate::backend::Call for Falls {
            fn call(&self) {
                panic!("as the test wants");
            }
        }
        let scene = Scene::new();
        let mut stream = scene.stream(false);
        let record = |stream: &mut CpuStream, op| {
            let recorded = stream.record(op, OrderRule::InOrder, false);
            recorded.expect("an operation");
            stream.open_value()
        };
        let work = Arc::new(Falls);
        let bad = record(&mut stream, Op::Call { work, uses: &[] });
        stream.end_command(&mut || true);
        stream.depends_on(bad);
        stream.end_command(&mut || true);
        let good = record(&mut stream, Op::Marker);
        stream.end_command(&mut || true);
        stream.depends_on(bad);
        stream.submit(false).expect("submitted");
        let dependent = record(&mut stream, Op::Marker);
        stream.end_command(&mut || true);
        let last = record(&mut stream, Op::Marker);
        stream.submit(false).expect("submitted");
        wait(&stream, last);
        let failed = [bad, good, dependent, last].map(|at| stream.timeline.failure(at).is_some());
        assert_eq!(failed, [true, false, true, false]);
    }

    #[test]
    fn times_are_taken_once() {
        let scene = Scene::new();
        let (mut plain, mut stream) = (scene.stream(false), scene.stream(true));
        let none = plain.record(Op::Marker, OrderRule::InOrder, true);
        assert!(none.expect("a marker").is_none());
        let mut mark = |wanted| stream.record(Op::Marker, OrderRule::InOrder, wanted);
        assert!(mark(false).expect("a marker").is_none());
        let slots = [mark(true), mark(true)].map(|slot| slot.expect("a marker").expect("a slot"));
        let value = stream.submit(false).expect("submitted");
        wait(&stream, value);
        let [first, second] = slots;
        let again = ProfileSlot(first.0);
        let times = stream.take_times(first).expect("times");
        let later = stream.take_times(second).expect("times");
        assert!(times.start <= times.end && times.end <= later.start);
        assert!(stream.take_times(again).is_err());
    }
}
