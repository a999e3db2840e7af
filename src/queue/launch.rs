//! Launches of kernels: their arguments, what else they are told, printf, and their dispatches.

use super::children::Family;
use super::encode::{Encoded, How};
use super::host::{is_host_thread, Action};
use super::resume::{resume_size, set_up, with_resumes};
use super::state::State;
use super::Queue;
use crate::backend::{Op, Point, Slice, Use};
use crate::command::Launch;
use crate::compile::implicit::ImplicitValues;
use crate::error::ClResult;
use smallvec::SmallVec;

impl Queue {
    /// Before a launch that prints, without a lock: waits where too many of them are under way.
    pub(super) fn hold_back_printing(&self) {
        let printing = self.state.lock().printing.clone();
        if printing.many() && !is_host_thread() {
            self.submit_all();
            printing.wait();
        }
    }

    pub(super) fn encode_launch(
        &self,
        state: &mut State,
        launch: &Launch,
        how: How,
    ) -> ClResult<Encoded> {
        let index = self.target.index;
        let kernel = &launch.kernel;
        let interface = kernel.code.interface();
        let prints = kernel.printf.is_some() && interface.uses_printf;
        if prints || kernel.kept.is_some() || kernel.enqueues.is_some() {
            state.host_thread()?;
        }
        let mut uses: SmallVec<[Use; 8]> = SmallVec::new();
        for (mem, access) in &kernel.buffers {
            let write = access & 2 != 0;
            mem.prepare(index, write)?;
            uses.push(Use {
                slice: mem.slice(index, 0, mem.size() as u64)?,
                write,
            });
        }
        for (mem, access) in &kernel.images {
            mem.prepare(index, access & 2 != 0)?;
        }
        if !kernel.images.is_empty() {
            self.fill_shown_images(state, kernel)?;
        }
        if let Some(globals) = &kernel.globals {
            let slice = Slice {
                memory: globals.clone(),
                offset: 0,
                size: globals.size(),
            };
            uses.push(Use { slice, write: true });
        }
        let mut push: SmallVec<[u8; 256]> = SmallVec::new();
        let mut arguments = 0;
        if interface.args_in_buffer {
            let size = u64::from(interface.arg_buffer_size)
                .max(kernel.args.len() as u64)
                .max(8);
            let piece = self.argument_piece(state, size)?;
            // SAFETY: the piece is at least as large as the arguments, and nothing else uses it.
            unsafe {
                let to = piece.pointer as *mut u8;
                std::ptr::copy_nonoverlapping(kernel.args.as_ptr(), to, kernel.args.len());
            }
            arguments = piece.address();
        } else {
            push.extend_from_slice(&kernel.args);
        }
        push.resize(interface.push_size as usize, 0);
        let printf = match (&kernel.printf, interface.uses_printf) {
            (Some(sites), true) => Some((
                sites.clone(),
                state.printing.take(self.target.device.backend().as_ref())?,
            )),
            _ => None,
        };
        if let Some((_, buffer)) = &printf {
            uses.push(Use {
                slice: buffer.slice(),
                write: true,
            });
        }
        let family = match &kernel.enqueues {
            Some(enqueues) => {
                let printing = state.printing.clone();
                let begun = Point {
                    timeline: self.progress.timeline.clone(),
                    value: state.stream.open_value(),
                };
                let place = |size| self.argument_piece(state, size);
                let made = Family::new(&self.target, enqueues, &printing, begun, place)?;
                Some(made)
            }
            None => None,
        };
        let resume = match launch.resumes {
            0 => None,
            _ => {
                let piece = self.argument_piece(state, resume_size(launch))?;
                set_up(&piece, launch);
                Some(piece)
            }
        };
        if let Some(piece) = &resume {
            uses.push(Use {
                slice: piece.slice(),
                write: true,
            });
        }
        let mut told = ImplicitValues {
            arguments,
            globals: kernel.globals.as_ref().map_or(0, |memory| memory.address()),
            printf: printf.as_ref().map_or(0, |(_, buffer)| buffer.address()),
            enqueue: family.as_ref().map_or(0, |(_, address)| *address),
            resume: resume.as_ref().map_or(0, |piece| piece.address()),
            dims: launch.dims,
            offset: launch.offset,
            global: launch.global,
            local: launch.local,
            groups: launch.groups,
            first_group: [0; 3],
        };
        let mut slots: SmallVec<[_; 2]> = SmallVec::new();
        let last = launch.dispatches.len().saturating_sub(1);
        let mut part = 0;
        for (number, dispatch) in launch.dispatches.iter().enumerate() {
            if dispatch.part != part {
                part = dispatch.part;
                state.unordered_barrier()?;
            }
            told.first_group = dispatch.first_group;
            told.write(kernel.code.interface(), &mut push);
            let op = Op::Dispatch {
                pipeline: &dispatch.pipeline,
                groups: dispatch.groups,
                push: &push,
                uses: &uses,
                bindings: &kernel.bindings,
                touches_anything: kernel.touches_anything,
            };
            slots.extend(state.record(op, how.profile && (number == 0 || number == last))?);
        }
        if let (Some(piece), Some(dispatch)) = (&resume, launch.dispatches.first()) {
            slots.extend(with_resumes(launch, dispatch, piece, &push, &uses, |op| {
                state.record(op, how.profile)
            })?);
        }
        let [x, y, z] = launch.global;
        state.note_work(x.saturating_mul(y).saturating_mul(z));
        if !kernel.images.is_empty() {
            self.empty_shown_images(state, kernel)?;
        }
        if kernel.host_memory {
            self.target.context.note_pointers_followed();
            self.progress.set_follows(state.value());
        }
        let mut encoded = self.on_device(state, slots);
        if let Some((family, _)) = family {
            encoded.place.value = state.value();
            encoded.place.host_seq = state.host.add_launches(self.progress.host_done());
            encoded.action = Some(Action::Children {
                family: Box::new(family),
                printf: printf.map(|(sites, buffer)| (buffer, sites)),
            });
            return Ok(encoded);
        }
        if let Some((sites, buffer)) = printf {
            encoded.place.value = state.value();
            encoded.action = Some(Action::Printf {
                buffer,
                sites,
                kept: kernel.kept.clone(),
            });
        } else if let Some(kept) = &kernel.kept {
            // The host thread lets go of it as soon as the device is done, whether or not the queue is used again.
            encoded.action = Some(Action::LetGo(kept.clone()));
        }
        if encoded.action.is_some() {
            encoded.place.host_seq = state.new_host_task(SmallVec::new(), false);
        }
        Ok(encoded)
    }
}
