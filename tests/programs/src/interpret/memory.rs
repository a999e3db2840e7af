//! Memory objects. Accesses outside of them, reads of what was never written and data races are errors.

use super::Undefined;

/// Where a pointer points to: the kind of the object, its number, the byte in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pointer {
    pub kind: Region,
    pub object: usize,
    pub offset: usize,
}

/// The kind of memory that holds an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Region {
    Global,
    Local,
    Private,
}

impl Pointer {
    /// As the bits of a value. Never 0.
    pub fn bits(self) -> u64 {
        let kind = match self.kind {
            Region::Global => 1,
            Region::Local => 2,
            Region::Private => 3u64,
        };
        kind << 60 | (self.object as u64) << 36 | self.offset as u64
    }

    /// From the bits of a value.
    pub fn from_bits(bits: u64) -> Result<Self, Undefined> {
        let kind = match bits >> 60 {
            1 => Region::Global,
            2 => Region::Local,
            3 => Region::Private,
            _ => return Err(Undefined("a pointer to nothing")),
        };
        Ok(Self {
            kind,
            object: (bits >> 36 & 0xff_ffff) as usize,
            offset: (bits & 0xf_ffff_ffff) as usize,
        })
    }
}

/// The last accesses of a byte.
#[derive(Debug, Clone, Copy, Default)]
struct Shadow {
    /// Work-item and time of the last write, of the last read. Items count from 1.
    writer: u32,
    written: u32,
    reader: u32,
    read: u32,
    /// The last write, the last read was atomic.
    atomic: bool,
}

/// More than one work-item.
const MANY: u32 = u32::MAX;

/// The work-item and the time of an access.
#[derive(Debug, Clone, Copy)]
pub struct Access {
    /// Work-item, from 1.
    pub item: u32,
    /// Counts barriers over all groups. What happened in another group was at no known time.
    pub time: u32,
    /// The time at which this group began.
    pub begin: u32,
    pub atomic: bool,
}

/// An object in memory.
#[derive(Debug, Clone, Default)]
pub struct Object {
    pub data: Vec<u8>,
    written: Vec<bool>,
    shadow: Vec<Shadow>,
}

impl Object {
    /// With contents.
    pub fn of(data: Vec<u8>, shared: bool) -> Self {
        let shadow = if shared { data.len() } else { 0 };
        Self {
            written: vec![true; data.len()],
            shadow: vec![Shadow::default(); shadow],
            data,
        }
    }

    /// Without.
    pub fn empty(size: usize, shared: bool) -> Self {
        let mut object = Self::of(vec![0; size], shared);
        object.written.fill(false);
        object
    }

    fn check(&self, at: usize, size: usize, align: usize) -> Result<(), Undefined> {
        if at.checked_add(size).is_none_or(|end| end > self.data.len()) {
            return Err(Undefined("an access outside of an object"));
        }
        if at % align != 0 {
            return Err(Undefined("a misaligned access"));
        }
        Ok(())
    }

    /// Reads a little-endian number.
    pub fn read(&mut self, at: usize, size: usize, by: Access) -> Result<u64, Undefined> {
        self.reads(at, size, by)?;
        self.peek(at, size)
    }

    /// Reads a number as part of an atomic write, which is what is looked at.
    pub fn peek(&self, at: usize, size: usize) -> Result<u64, Undefined> {
        self.check(at, size, size)?;
        if !self.written[at..at + size].iter().all(|&written| written) {
            return Err(Undefined("a read of what was never written"));
        }
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(&self.data[at..at + size]);
        Ok(u64::from_le_bytes(bytes))
    }

    fn reads(&mut self, at: usize, size: usize, by: Access) -> Result<(), Undefined> {
        for shadow in self.shadow.iter_mut().skip(at).take(size) {
            let concurrent = shadow.written >= by.time || shadow.written < by.begin;
            let other = shadow.writer != 0 && shadow.writer != by.item;
            if other && concurrent && !(shadow.atomic && by.atomic) {
                return Err(Undefined("a data race"));
            }
            let other = shadow.reader != 0 && shadow.reader != by.item;
            let counts = shadow.read == by.time || shadow.read < by.begin;
            shadow.reader = if other && counts { MANY } else { by.item };
            shadow.read = by.time;
        }
        Ok(())
    }

    fn writes(&mut self, at: usize, size: usize, by: Access) -> Result<(), Undefined> {
        for shadow in self.shadow.iter_mut().skip(at).take(size) {
            let racy = |who: u32, when: u32| {
                let other = who != 0 && who != by.item;
                other && (when >= by.time || when < by.begin)
            };
            let both_atomic = shadow.atomic && by.atomic;
            if (racy(shadow.writer, shadow.written) || racy(shadow.reader, shadow.read))
                && !both_atomic
            {
                return Err(Undefined("a data race"));
            }
            let many = shadow.writer != 0 && shadow.writer != by.item;
            shadow.writer = if many && by.atomic { MANY } else { by.item };
            shadow.written = by.time;
            shadow.atomic = by.atomic;
        }
        Ok(())
    }

    /// Writes a little-endian number.
    pub fn write(
        &mut self,
        at: usize,
        size: usize,
        value: u64,
        by: Access,
    ) -> Result<(), Undefined> {
        self.check(at, size, size)?;
        self.writes(at, size, by)?;
        self.data[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
        self.written[at..at + size].fill(true);
        Ok(())
    }

    /// The bytes of a struct, with 256 for each that was never written.
    pub fn copy(&mut self, at: usize, size: usize, by: Access) -> Result<Vec<u64>, Undefined> {
        self.check(at, size, 1)?;
        self.reads(at, size, by)?;
        let byte = |i: usize| u64::from(self.data[i]) | u64::from(!self.written[i]) << 8;
        Ok((at..at + size).map(byte).collect())
    }

    /// Writes bytes that [`copy`](Self::copy) gave.
    pub fn paste(&mut self, at: usize, bytes: &[u64], by: Access) -> Result<(), Undefined> {
        self.check(at, bytes.len(), 1)?;
        self.writes(at, bytes.len(), by)?;
        for (i, &byte) in bytes.iter().enumerate() {
            self.data[at + i] = byte as u8;
            self.written[at + i] = byte < 256;
        }
        Ok(())
    }

    /// Forgets who accessed it.
    pub fn forget(&mut self) {
        self.shadow.fill(Shadow::default());
    }

    /// The bytes, and whether each was written.
    pub fn contents(&self) -> impl Iterator<Item = Option<u8>> + '_ {
        let pairs = self.data.iter().zip(&self.written);
        pairs.map(|(&byte, &written)| written.then_some(byte))
    }
}
