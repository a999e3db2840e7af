//! Runs a work-group: its local memory, its work-items and their synchronisation.
//!
//! Work-items run one after the other, until each has ended or waits. Then the collective
//! operations of sub-groups are executed for the work-items that wait at one; the place that is
//! first in the code goes first, so that divergent work-items converge again. When nothing else can
//! run, all work-items must wait at the same operation of the work-group.

use super::args::Bound;
use super::arrays::{Arrays, Local, MOST_BYTES};
use super::collective;
use super::error::Error;
use super::item::{Item, ItemState};
use super::launch::{GroupRange, LocalPosition, Machine};
use super::memory::Memory;
use super::scalar::Scalar;
use super::watch::{Fact, Wrong};
use crate::ir::function::Storage;
use crate::ir::op::{Fences, Op, Scope};
use crate::ir::types::Space;
use rustc_hash::FxHashMap;

/// The place where a work-item waits: a call stack of functions and instructions.
type Point = Vec<(usize, usize)>;

/// Runs the whole ND-range.
pub(super) fn dispatch_all(machine: &mut Machine) -> Result<(), Error> {
    for dispatch in machine.range.dispatches() {
        run_dispatch(machine, dispatch)?;
    }
    Ok(())
}

/// Runs the work-groups of a dispatch.
pub(super) fn run_dispatch(machine: &mut Machine, dispatch: GroupRange) -> Result<(), Error> {
    machine.dispatch = dispatch;
    for z in 0..dispatch.groups[2] {
        for y in 0..dispatch.groups[1] {
            for x in 0..dispatch.groups[0] {
                machine.group = [x, y, z];
                run(machine)?;
            }
        }
    }
    Ok(())
}

/// Runs a work-group.
fn run(machine: &mut Machine) -> Result<(), Error> {
    if let Some(watch) = &mut machine.watch {
        watch.begin_group();
    }
    if let Some(first) = machine.claims.as_ref().and_then(|c| c.pieces.first()) {
        machine.func = &first.func;
    }
    let arrays = Arrays::new(machine.func, &machine.specs)?;
    let noise = machine.noise();
    let mut local = Local {
        memory: Memory::new(),
        globals: FxHashMap::default(),
        arrays: arrays.make(Storage::Workgroup, noise),
    };
    for (id, global) in machine.module.globals.iter() {
        if global.space == Some(Space::Local) {
            local.global(machine, id)?;
        }
    }
    let mut shared = Vec::new();
    for bound in machine.bound.clone() {
        shared.push(match bound {
            Bound::Local(size) if size > MOST_BYTES => {
                return Err(Error::invalid("too much local memory"));
            }
            Bound::Local(size) => Some(Scalar::known(local.add(machine, size, 128))),
            Bound::Value(value) => Some(value),
            Bound::Copy(..) => None,
        });
    }
    let size = machine.dispatch.local;
    let mut items = Vec::new();
    for z in 0..size[2] {
        for y in 0..size[1] {
            for x in 0..size[0] {
                let place = LocalPosition {
                    id: [x, y, z],
                    index: (z * size[1] + y) * size[0] + x,
                };
                let noise = machine.noise();
                let arrays = arrays.make(Storage::Function, noise);
                items.push(Item::new(machine, place, &shared, arrays)?);
            }
        }
    }
    let mut piece = 0;
    if machine.claims.is_some() {
        begin_piece(machine, &mut items, piece, &shared);
    }
    loop {
        let mut waiting = false;
        for item in &mut items {
            if item.state == ItemState::Ready {
                item.run(machine, &mut local, &arrays)?;
            }
            waiting |= item.state == ItemState::Waiting;
        }
        if !waiting {
            match next_piece(machine, &items) {
                Ok(0) => break,
                Ok(next) => piece = next,
                Err(Error::Divergence(note)) if machine.watch.is_some() => {
                    note_divergence(machine, &items, &note);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
            // Which memory the barrier between them orders is not known any more.
            if let Some(watch) = &mut machine.watch {
                watch.group_barrier(Fences {
                    global: true,
                    local: true,
                    image: true,
                });
            }
            begin_piece(machine, &mut items, piece, &shared);
            continue;
        }
        if !sub_groups(machine, &mut items)? {
            match work_group(machine, &mut items) {
                Err(Error::Divergence(note)) if machine.watch.is_some() => {
                    note_divergence(machine, &items, &note);
                    return Ok(());
                }
                other => other?,
            }
        }
    }
    if let Some(last) = items.pop() {
        machine.results = last.results;
    }
    Ok(())
}

/// Begins a piece of the kernel in all work-items, which are at the beginning of the first one.
fn begin_piece<'a>(
    machine: &mut Machine<'a>,
    items: &mut [Item<'a>],
    number: usize,
    shared: &[Option<Scalar>],
) {
    let Some(claims) = &mut machine.claims else {
        return;
    };
    claims.begin(number, items.len());
    let pieces = claims.pieces;
    if let Some(piece) = pieces.get(number) {
        machine.func = &piece.func;
    }
    for item in items {
        match number {
            0 => item.enters(machine),
            _ => item.begin_piece(machine, shared),
        }
    }
}

/// Returns the piece of the kernel that all work-items continue with, or 0 if they have ended.
fn next_piece<'a>(machine: &Machine<'a>, items: &[Item<'a>]) -> Result<usize, Error> {
    if machine
        .claims
        .as_ref()
        .is_none_or(|claims| !claims.is_cut())
    {
        return Ok(0);
    }
    let mut all = items
        .iter()
        .map(|item| item.results.first().map_or(0, |v| v.bits));
    let first = all.next().unwrap_or(0);
    if all.any(|next| next != first) {
        return Err(Error::Divergence(
            "work-items go on behind other barriers".into(),
        ));
    }
    Ok(first as usize)
}

/// Returns the scope of the operation that a work-item waits at.
fn scope(item: &Item) -> Option<Scope> {
    match item.waiting_for()?.op {
        Op::Group(_, scope) => Some(scope),
        Op::Barrier { exec, .. } => Some(exec),
        _ => None,
    }
}

fn point<'a>(machine: &mut Machine<'a>, item: &Item<'a>) -> Point {
    let frames = item.frames.iter();
    frames
        .map(|frame| (machine.order(frame.func, frame.block), frame.pc))
        .collect()
}

/// Executes one operation of each sub-group that waits at one. Returns false if none does.
fn sub_groups<'a>(machine: &mut Machine<'a>, items: &mut [Item<'a>]) -> Result<bool, Error> {
    let mut any = false;
    for lanes in items.chunks_mut(machine.options.subgroup_size as usize) {
        let mut first: Option<Point> = None;
        for item in lanes.iter() {
            if item.state == ItemState::Waiting
                && matches!(scope(item), Some(Scope::SubGroup | Scope::WorkItem))
            {
                let here = point(machine, item);
                if first.as_ref().is_none_or(|first| here < *first) {
                    first = Some(here);
                }
            }
        }
        let Some(first) = first else { continue };
        any = true;
        let mut active: Vec<&mut Item> = Vec::new();
        for item in lanes.iter_mut() {
            if item.state == ItemState::Waiting && point(machine, item) == first {
                active.push(item);
            }
        }
        collective::run(machine, &mut active)?;
        active.iter().for_each(|item| item.has_waited(machine));
    }
    Ok(any)
}

/// Reports a barrier that not all work-items reach.
fn note_divergence<'a>(machine: &mut Machine<'a>, items: &[Item<'a>], note: &str) {
    let barriers = machine.watch.as_ref().is_some_and(|w| w.checks.barriers);
    let waits = items.iter().find(|item| item.state == ItemState::Waiting);
    if let Some(item) = waits.filter(|_| barriers) {
        let fact = Fact::new(Wrong::Barrier);
        machine.wrong(item, Fact { note, ..fact });
    }
}

/// Executes an operation of the whole work-group.
fn work_group<'a>(machine: &mut Machine<'a>, items: &mut [Item<'a>]) -> Result<(), Error> {
    let mut first: Option<Point> = None;
    for item in items.iter() {
        if item.state != ItemState::Waiting {
            return Err(Error::Divergence(format!(
                "work-item {} has ended, others wait",
                item.place.index
            )));
        }
        let here = point(machine, item);
        match &first {
            None => first = Some(here),
            Some(first) if *first == here => {}
            Some(_) => {
                return Err(Error::Divergence(format!(
                    "work-item {} waits at {}",
                    item.place.index,
                    item.location()
                )));
            }
        }
    }
    let mut all: Vec<&mut Item> = items.iter_mut().collect();
    collective::run(machine, &mut all)
}
