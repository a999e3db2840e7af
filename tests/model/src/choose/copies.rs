//! Chooses transfers, copies and fills.

use super::{Chooser, Span};
use crate::program::{Place, Shape, What};

impl Chooser<'_> {
    /// Rows on an object and on something else, and where they begin.
    fn rows(&mut self, object: (usize, usize), other: usize) -> Option<(usize, usize, Shape)> {
        let all = self.view(object).len();
        if let Some(pitch) = self.memory(object.0).kind.pitch() {
            let most = (all / pitch).min(other / pitch);
            if most == 0 {
                let row = self.size(other.min(pitch), 4);
                return (row > 0).then(|| (0, 0, Shape::line(row)));
            }
            let rows = self.size(most, 1);
            let narrow = self.rng.percent(30);
            let row = if narrow { self.size(pitch, 4) } else { pitch };
            let column = self.spot(pitch, row, 4);
            let first = self.spot(all / pitch, rows, 1) * pitch + column;
            let second = if self.rng.percent(70) { row } else { pitch };
            let shape = Shape {
                row,
                rows,
                first: pitch,
                second,
            };
            let at = self.spot(other, shape.span(second), 4);
            return Some((first, at, shape));
        }
        if self.rng.percent(75) || all.min(other) < 64 {
            let step = *self.rng.pick(&[4, 4, 4, 1]);
            let size = self.size(all.min(other), step);
            let (first, second) = (self.spot(all, size, step), self.spot(other, size, step));
            return (size > 0).then(|| (first, second, Shape::line(size)));
        }
        let row = 4 * (1 + self.rng.below(all.min(other).min(1024) / 8));
        let pitches = [row, row + 4, 2 * row];
        let (first, second) = (*self.rng.pick(&pitches), *self.rng.pick(&pitches));
        let rows = 1 + self.size((all / first).min(other / second).saturating_sub(1), 1);
        let shape = Shape {
            row,
            rows,
            first,
            second,
        };
        let at = self.spot(all, shape.span(first), 4);
        Some((at, self.spot(other, shape.span(second), 4), shape))
    }

    pub(super) fn read(&mut self) -> Option<What> {
        let (object, host) = (self.object(|_| true)?, self.host(true)?);
        let (at, to, shape) = self.rows(object, host.size())?;
        Some(What::Read(self.side(object, at), host.place(to), shape))
    }

    pub(super) fn write(&mut self) -> Option<What> {
        let (object, host) = (self.object(|_| true)?, self.host(false)?);
        let (at, from, shape) = self.rows(object, host.size())?;
        Some(What::Write(self.side(object, at), host.place(from), shape))
    }

    pub(super) fn copy(&mut self) -> Option<What> {
        let (mut src, mut dst) = (self.object(|_| true)?, self.object(|_| true)?);
        let is_image = |own: &Self, object: (usize, usize)| own.memory(object.0).kind.pitch();
        if is_image(self, src).is_none() && is_image(self, dst).is_some() {
            std::mem::swap(&mut src, &mut dst);
        }
        let turn = self.rng.percent(50);
        let other = is_image(self, dst);
        let (from, mut to, mut shape) = self.rows(src, self.view(dst).len())?;
        match (is_image(self, src), other) {
            (Some(_), None) => shape.second = shape.row,
            (Some(a), Some(b)) => {
                shape.second = b;
                to = if a == b { from } else { to / b * b };
            }
            _ if src.0 == dst.0 => shape.second = shape.first,
            _ => {}
        }
        let (src, dst) = (self.side(src, from), self.side(dst, to));
        if !turn {
            return Some(What::Copy(src, dst, shape));
        }
        let turned = Shape {
            first: shape.second,
            second: shape.first,
            ..shape
        };
        Some(What::Copy(dst, src, turned))
    }

    fn pattern(&mut self) -> Vec<u8> {
        let size = 1 << self.rng.below(7);
        self.rng.bytes(size)
    }

    pub(super) fn fill(&mut self) -> Option<What> {
        let object = self.object(|_| true)?;
        let all = self.view(object).len();
        let (pattern, step) = match self.memory(object.0).kind.pitch() {
            Some(pitch) => (self.rng.bytes(4), pitch),
            None => {
                let pattern = self.pattern();
                let step = pattern.len();
                (pattern, step)
            }
        };
        let size = self.size(all, step);
        let at = self.spot(all, size, step);
        Some(What::Fill(self.side(object, at), size, pattern))
    }

    pub(super) fn memcpy(&mut self) -> Option<What> {
        let mut side = |write| -> Option<Span> {
            if self.rng.percent(30) {
                return self.host(write);
            }
            let memory = self.address()?;
            Some(Span {
                memory,
                map: None,
                start: 0,
                end: self.memory(memory).size,
            })
        };
        let (dst, src) = (side(true)?, side(false)?);
        let step = *self.rng.pick(&[4, 4, 1]);
        let size = self.size(dst.size().min(src.size()), step);
        let to = self.spot(dst.size(), size, step);
        let from = self.spot(src.size(), size, step);
        let kinds = [dst, src].map(|span| self.memory(span.memory).kind);
        let intel = kinds.iter().any(|kind| kind.is_usm())
            || (self.scope.caps.usm[0] && self.rng.percent(10));
        Some(What::Memcpy(dst.place(to), src.place(from), size, intel))
    }

    pub(super) fn mem_fill(&mut self) -> Option<What> {
        let memory = self.address()?;
        let (all, pattern) = (self.memory(memory).size, self.pattern());
        let size = self.size(all, pattern.len());
        let place = Place {
            memory,
            at: self.spot(all, size, pattern.len()),
            map: None,
        };
        Some(What::MemFill(place, size, pattern))
    }
}
