//! Steps that order others, or replace what all threads use.

use super::*;

/// Puts an object in the place of a thread's own, or of one that all share.
fn replace(rng: &mut Rng, own: &mut [Arc<Buf>], shared: &[Mutex<Arc<Buf>>], new: Arc<Buf>) {
    let old = if rng.percent(50) {
        let index = rng.below(own.len());
        std::mem::replace(&mut own[index], new)
    } else {
        std::mem::replace(&mut *lock(rng.pick(shared)), new)
    };
    drop(old);
}

impl Worker<'_> {
    pub(super) fn marker(&mut self) {
        let lane = self.lane();
        self.enqueue(
            "marker",
            &lane,
            &[],
            false,
            |count, list, event| call!(clEnqueueMarkerWithWaitList(lane.id, count, list, event)),
            |_| {},
        );
    }

    pub(super) fn barrier(&mut self) {
        let lane = self.lane();
        if self.rng.percent(70) {
            lane.barrier();
            return;
        }
        // What fails in the list of a barrier would make everything after it fail.
        let nodes = std::mem::take(&mut self.nodes);
        let (sound, rest) = nodes.into_iter().partition(|node| !node.fails);
        self.nodes = sound;
        self.enqueue(
            "barrier",
            &lane,
            &[],
            false,
            |count, list, event| call!(clEnqueueBarrierWithWaitList(lane.id, count, list, event)),
            |_| {},
        );
        self.nodes.extend(rest);
    }

    pub(super) fn user_event(&mut self) {
        let event = create!(clCreateUserEvent(self.shared.world.context));
        let fails = self.rng.percent(15);
        let status = if fails { -77 } else { CL_COMPLETE };
        let node = Node::new("user event", None, Some(event), fails);
        ok!(clRetainEvent(event));
        let chained = !self.nodes.is_empty() && self.rng.percent(40) && {
            let before = self.rng.pick(&self.nodes);
            chain(before, event, status)
        };
        if !chained {
            let due = Instant::now() + Duration::from_micros(self.rng.below(3000) as u64);
            let gate = Gate { event, status, due };
            assert!(
                self.gates.send(gate).is_ok(),
                "the thread of user events is gone"
            );
        }
        self.remember(&node);
    }

    pub(super) fn migrate(&mut self) {
        let (lane, buffer) = (self.lane(), self.buffer());
        let view = buffer.view(&mut self.rng);
        let flags = if self.rng.percent(50) {
            CL_MIGRATE_MEM_OBJECT_HOST
        } else {
            0
        };
        let used = view.origin..view.origin + view.size;
        self.enqueue(
            "migrate",
            &lane,
            &[Use::read(&buffer, used)],
            false,
            |count, list, event| {
                call!(clEnqueueMigrateMemObjects(
                    lane.id, 1, &view.mem, flags, count, list, event
                ))
            },
            |_| {},
        );
    }

    /// Replaces one of the objects, whose commands may still be under way.
    pub(super) fn renew(&mut self) {
        let world = &self.shared.world;
        match self.rng.below(10) {
            0 => {
                let index = self.rng.below(self.lanes.len());
                self.lanes[index] = Lane::new(world, &mut self.rng);
            }
            1 | 2 => {
                let index = self.rng.below(self.buffers.len());
                self.buffers[index] = Buf::new(world, &mut self.rng);
            }
            3 => {
                let new = Buf::new(world, &mut self.rng);
                let old = {
                    let mut slot = lock(self.rng.pick(&self.shared.buffers));
                    std::mem::replace(&mut *slot, new)
                };
                drop(old);
            }
            4 => {
                let new = Program::new(world, &mut self.rng);
                *lock(self.rng.pick(&self.shared.programs)) = new;
            }
            5 | 6 if world.images => {
                let new = Buf::image(world, &mut self.rng);
                replace(&mut self.rng, &mut self.images, &self.shared.images, new);
            }
            7 | 8 if !world.svm.is_empty() => {
                let new = Buf::svm(world, &mut self.rng);
                replace(&mut self.rng, &mut self.svms, &self.shared.svms, new);
            }
            _ => self.new_kernels(),
        }
    }

    /// A context of its own, with references counted.
    pub(super) fn own_context(&mut self) {
        let device = *self.rng.pick(&self.shared.world.devices);
        let context = create!(clCreateContext(null(), 1, &device, None, null_mut()));
        let queue = create!(clCreateCommandQueueWithProperties(context, device, null()));
        let size = 4 * (1 + self.rng.below(5000));
        let mem = create!(clCreateBuffer(context, CL_MEM_READ_WRITE, size, null_mut()));
        ok!(clRetainMemObject(mem));
        let references = info_value!(cl_uint, clGetMemObjectInfo(mem), CL_MEM_REFERENCE_COUNT);
        assert_eq!(references, 2, "references of a buffer");
        let data = self.rng.bytes(size);
        let mut back = vec![0u8; size];
        ok!(clEnqueueWriteBuffer(
            queue,
            mem,
            CL_FALSE,
            0,
            size,
            data.as_ptr().cast(),
            0,
            null(),
            null_mut()
        ));
        ok!(clReleaseMemObject(mem));
        ok!(clReleaseContext(context));
        let mut event = null_mut();
        ok!(clEnqueueReadBuffer(
            queue,
            mem,
            CL_FALSE,
            0,
            size,
            back.as_mut_ptr().cast(),
            0,
            null(),
            &mut event
        ));
        ok!(clReleaseMemObject(mem));
        ok!(clFlush(queue));
        ok!(clReleaseCommandQueue(queue));
        ok!(clWaitForEvents(1, &event));
        ok!(clReleaseEvent(event));
        pending::compare("read in a context of its own", &back, &data);
    }
}
