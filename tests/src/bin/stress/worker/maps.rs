//! Maps: of buffers, and what they have in common with those of images and of shared virtual memory.

use super::*;

/// A call that maps.
pub(super) struct Call {
    pub(super) blocking: bool,
    pub(super) flags: cl_map_flags,
    pub(super) count: cl_uint,
    pub(super) list: *const cl_event,
    pub(super) event: *mut cl_event,
}

/// The results of such a call: its code, the pointer, and at which offsets from it which bytes of the model are.
pub(super) type Given = (cl_int, usize, Vec<(usize, Range<usize>)>);

impl Worker<'_> {
    pub(super) fn map(&mut self) {
        let (lane, buffer) = (self.lane(), self.buffer());
        let view = buffer.view(&mut self.rng);
        let part = self.rng.range(view.size, 1);
        let used = view.origin + part.start..view.origin + part.end;
        let rows = vec![(0, used.clone())];
        let host = buffer.host;
        self.map_some(&lane, &buffer, Way::Object(view.mem), used, |call| {
            let mut code = 1;
            let got = call!(clEnqueueMapBuffer(
                lane.id,
                view.mem,
                cl_bool::from(call.blocking),
                call.flags,
                part.start,
                part.len(),
                call.count,
                call.list,
                call.event,
                &mut code
            ));
            check_pointer(code, got);
            let wanted = host + view.origin + part.start;
            assert!(
                host == 0 || code != 0 || got as usize == wanted,
                "pointer of a map of host memory"
            );
            (code, got as usize, rows)
        });
    }

    /// Maps in some mode; `touched`: bytes of the model that others must leave alone.
    pub(super) fn map_some(
        &mut self,
        lane: &Arc<Lane>,
        holder: &Arc<Buf>,
        way: Way,
        touched: Range<usize>,
        make: impl FnOnce(&Call) -> Given,
    ) {
        let blocking = self.rng.percent(40);
        let flags = *self.rng.pick(&[
            CL_MAP_READ,
            CL_MAP_WRITE,
            CL_MAP_READ | CL_MAP_WRITE,
            CL_MAP_WRITE_INVALIDATE_REGION,
        ]);
        let write = flags != CL_MAP_READ;
        // Maps of shared virtual memory are distinguished by their pointers alone.
        let alone = write || matches!(way, Way::Pointer);
        let id = map_number();
        let (mut pointer, mut rows) = (0, Vec::new());
        let mut expected = Vec::new();
        // A map for writing must not overlap any other.
        let uses = [Use {
            buffer: holder.clone(),
            range: touched.clone(),
            write: alone,
            map: id,
        }];
        let node = self.enqueue(
            "map",
            lane,
            &uses,
            blocking,
            |count, list, event| {
                let (code, got, parts) = make(&Call {
                    blocking,
                    flags,
                    count,
                    list,
                    event,
                });
                (pointer, rows) = (got, parts);
                code
            },
            |locked| {
                let contents = locked.of(holder);
                expected = contents.bytes[touched.clone()].to_vec();
                Map::enter(contents, id, &touched, alone);
            },
        );
        let Some(node) = node else { return };
        let map = Map {
            buffer: holder.clone(),
            way,
            pointer,
            range: touched,
            rows,
            flags,
            id,
            expected,
        };
        self.pending.push(Pending::Map(node, map));
    }
}

/// A pointer comes with success, and only then.
pub(super) fn check_pointer(code: cl_int, got: *mut c_void) {
    assert_eq!(
        code == 0,
        !got.is_null(),
        "the pointer of a map: {got:?}, {code}"
    );
}
