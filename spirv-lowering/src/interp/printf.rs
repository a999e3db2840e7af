//! The records that printf calls leave, in the format of `passes::lower_printf`.

use super::memory::Memory;
use super::scalar::Scalar;
use crate::ir::module::{PrintfArg, PrintfSite};
use crate::passes::lower_printf::{RecordLayout, HEADER, STRING};

/// A record of a printf call: the call site and the bytes after the record's header.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Record {
    /// Index of the call site.
    pub site: u32,
    /// The bytes of the arguments, padding included as zeros.
    pub bytes: Vec<u8>,
    /// Set where a bit is unknown.
    pub unknown: Vec<u8>,
}

/// Creates the record of a call that is not lowered. `text` returns the string at an address.
pub(super) fn record(
    index: u32,
    site: &PrintfSite,
    args: &[Scalar],
    text: impl Fn(u64) -> Vec<u8>,
) -> Record {
    let layout = RecordLayout::new(site);
    let mut record = Record {
        site: index,
        bytes: vec![0; layout.size.saturating_sub(8) as usize],
        unknown: vec![0xff; layout.size.saturating_sub(8) as usize],
    };
    let mut put = |at: usize, bytes: &[u8], unknown: &[u8]| {
        let range = at..at + bytes.len();
        if let (Some(to), Some(mask)) = (
            record.bytes.get_mut(range.clone()),
            record.unknown.get_mut(range),
        ) {
            to.copy_from_slice(bytes);
            mask.copy_from_slice(unknown);
        }
    };
    let mut args = args.iter();
    for (arg, offset) in site.args.iter().zip(&layout.offsets) {
        let Some(offset) = offset.map(|o| o.saturating_sub(8) as usize) else {
            continue;
        };
        match arg {
            PrintfArg::Text(_) => {}
            PrintfArg::Value { ty, lanes } => {
                let size = ty.size() as usize;
                for lane in 0..*lanes as usize {
                    let value = args.next().copied().unwrap_or_default();
                    put(
                        offset + lane * size,
                        &value.bits.to_le_bytes()[..size],
                        &value.unknown.to_le_bytes()[..size],
                    );
                }
            }
            PrintfArg::String => {
                let address = args.next().copied().unwrap_or_default().bits;
                let word = u32::from(address != 0).to_le_bytes();
                put(offset, &word, &[0; 4]);
                if address != 0 {
                    let mut text = text(address);
                    text.truncate(STRING as usize - 5);
                    text.push(0);
                    put(offset + 4, &text, &vec![0; text.len()]);
                }
            }
        }
    }
    record
}

/// Returns the records in a printf buffer.
pub fn read_records(memory: &Memory, buffer: u64) -> Vec<Record> {
    let mut records = Vec::new();
    let Some(region) = memory.region(buffer) else {
        return records;
    };
    let word = |at: u32| {
        let value = region.read(at as usize, 4).unwrap_or_default();
        value.bits as u32
    };
    let end = word(0).min(region.bytes.len() as u32);
    let mut at = HEADER;
    while at.saturating_add(8) <= end {
        let size = word(at + 4);
        if size < 8 || size > end - at {
            break;
        }
        let range = at as usize + 8..(at + size) as usize;
        records.push(Record {
            site: word(at),
            bytes: region.bytes.get(range.clone()).unwrap_or(&[]).to_vec(),
            unknown: region.unknown.get(range).unwrap_or(&[]).to_vec(),
        });
        at += size;
    }
    records
}
