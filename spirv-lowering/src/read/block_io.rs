//! Translates block reads and writes of sub-groups (SPV_INTEL_subgroups, cl_intel_subgroups).
//!
//! All work-items of a sub-group read or write together: component `k` of the work-item with local
//! id `i` is element `i + k * SubgroupMaxSize` of a block in memory, or element `i` of row `k` of a
//! block in an image, whose texels are taken as bytes. In an image the coordinate counts bytes, so
//! that elements and texels may be of different sizes: `pumice_block_read` and `pumice_block_write`
//! of the built-in library compose the ones of the others.

use super::body::{bad, Body};
use super::words::Instruction;
use crate::error::Result;
use crate::ir::entity::Value;
use crate::ir::function::Values;
use crate::ir::op::{GroupOp, Op, Scope};
use crate::ir::types::{Space, Type};
use spirv::Op as S;

/// The alignment of the pointer of a block read, in bytes; writes have more.
const READ_ALIGNMENT: u32 = 4;

impl Body<'_, '_> {
    /// Translates a block read or write. Returns false if the instruction is none.
    pub(super) fn block_inst(&mut self, inst: &Instruction, op: S) -> Result<bool> {
        match op {
            S::SubgroupBlockReadINTEL => {
                let (ty, id) = self.result(inst)?;
                let (scalar, count) = self.vector_of(ty)?;
                let (align, volatile) = (scalar.size().min(READ_ALIGNMENT), false);
                let mut out = Values::new();
                for address in self.block_elements(inst.word(2)?, scalar, count)? {
                    out.push(self.ins(Op::Load { align, volatile }, &[address], scalar));
                }
                self.set(id, ty, out)?;
            }
            S::SubgroupBlockWriteINTEL => {
                let (values, scalar) = self.uniform(inst.word(1)?)?;
                let (align, volatile) = (scalar.size(), false);
                let addresses = self.block_elements(inst.word(0)?, scalar, values.len())?;
                for (address, value) in addresses.into_iter().zip(values) {
                    self.effect(Op::Store { align, volatile }, &[address, value]);
                }
            }
            S::SubgroupImageBlockReadINTEL => {
                let (ty, id) = self.result(inst)?;
                let (scalar, count) = self.vector_of(ty)?;
                let block = self.image_block(inst.word(2)?, inst.word(3)?, scalar)?;
                let mut out = Values::new();
                for row in 0..count {
                    out.push(self.read_in_row(&block, row as u64)?);
                }
                self.set(id, ty, out)?;
            }
            S::SubgroupImageBlockWriteINTEL => {
                let (values, scalar) = self.uniform(inst.word(2)?)?;
                let block = self.image_block(inst.word(0)?, inst.word(1)?, scalar)?;
                for (row, value) in values.into_iter().enumerate() {
                    self.write_in_row(&block, row as u64, value)?;
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns the addresses of a work-item's elements of a block in memory.
    fn block_elements(&mut self, pointer: u32, scalar: Type, count: usize) -> Result<Vec<Value>> {
        check(scalar)?;
        let (base, space) = self.pointer(pointer)?;
        if !matches!(space, Space::Global | Space::Local) {
            return bad("a block in this address space");
        }
        let lane = self.lane_id();
        let size = self.max_subgroup_size();
        let bytes = u64::from(scalar.size());
        let first = self.element(base, lane, bytes)?;
        let mut all = Vec::with_capacity(count);
        for k in 0..count {
            let k = self.constant(Type::I32, k as u64);
            let after = self.ins(Op::IMul, &[size, k], Type::I32);
            all.push(self.element(first, after, bytes)?);
        }
        Ok(all)
    }

    /// Returns a work-item's part of a block in an image.
    fn image_block(&mut self, image: u32, coordinate: u32, scalar: Type) -> Result<ImageBlock> {
        check(scalar)?;
        let image = self.scalar_of(image, Type::Handle)?;
        let (at, ty) = self.uniform(coordinate)?;
        let (&[x, y], Type::I32) = (at.as_slice(), ty) else {
            return bad("a coordinate of a block is two integers");
        };
        let lane = self.lane_id();
        let bytes = self.constant(Type::I32, scalar.size().into());
        let after = self.ins(Op::IMul, &[lane, bytes], Type::I32);
        let x = self.ins(Op::IAdd, &[x, after], Type::I32);
        Ok(ImageBlock {
            image,
            x,
            y,
            scalar,
        })
    }

    /// Returns the operands by which the library's functions find a part of an element.
    fn in_row(&mut self, block: &ImageBlock, row: u64, after: u64) -> [Value; 4] {
        let (row, after) = (
            self.constant(Type::I32, row),
            self.constant(Type::I32, after),
        );
        let x = self.ins(Op::IAdd, &[block.x, after], Type::I32);
        let y = self.ins(Op::IAdd, &[block.y, row], Type::I32);
        let bytes = self.constant(Type::I32, block.scalar.size().min(4).into());
        [block.image, x, y, bytes]
    }

    fn read_in_row(&mut self, block: &ImageBlock, row: u64) -> Result<Value> {
        let mut words = Values::new();
        for after in (0..block.scalar.size().into()).step_by(4) {
            let operands = self.in_row(block, row, after);
            words.extend(self.call_name("pumice_block_read", &operands, &[Type::I32])?);
        }
        Ok(match *words.as_slice() {
            [low, high] => {
                let low = self.ins(Op::ZExt, &[low], Type::I64);
                let high = self.ins(Op::ZExt, &[high], Type::I64);
                let by = self.constant(Type::I64, 32);
                let high = self.ins(Op::Shl, &[high, by], Type::I64);
                self.ins(Op::Or, &[low, high], Type::I64)
            }
            [word] => self.resize(word, block.scalar, false),
            _ => return bad("an element of this size"),
        })
    }

    fn write_in_row(&mut self, block: &ImageBlock, row: u64, value: Value) -> Result<()> {
        let lane = self.lane_id();
        for after in (0..block.scalar.size().into()).step_by(4) {
            let by = self.constant(block.scalar, 8 * after);
            let part = self.ins(Op::LShr, &[value, by], block.scalar);
            let one = self.resize(part, Type::I32, false);
            // Texels may be larger than elements, so that several work-items have one.
            let two = self.joined(one, 1, block.scalar);
            let four = self.joined(two, 2, block.scalar);
            let mut operands = self.in_row(block, row, after).to_vec();
            operands.extend([lane, one, two, four]);
            self.call_name("pumice_block_write", &operands, &[])?;
        }
        Ok(())
    }

    /// Returns what `lanes` work-items hold together with what as many behind them hold, where that
    /// is no more than 32 bits.
    fn joined(&mut self, value: Value, lanes: u32, scalar: Type) -> Value {
        let bits = lanes * scalar.bits();
        if bits >= 32 {
            return value;
        }
        let lanes = self.constant(Type::I32, lanes.into());
        let shuffle = Op::Group(GroupOp::ShuffleXor, Scope::SubGroup);
        let next = self.ins(shuffle, &[value, lanes], Type::I32);
        let by = self.constant(Type::I32, bits.into());
        let next = self.ins(Op::Shl, &[next, by], Type::I32);
        self.ins(Op::Or, &[value, next], Type::I32)
    }
}

/// A work-item's part of a block in an image: its element of the first row begins `x` bytes from the
/// left.
struct ImageBlock {
    image: Value,
    x: Value,
    y: Value,
    scalar: Type,
}

fn check(scalar: Type) -> Result<()> {
    match scalar {
        Type::I8 | Type::I16 | Type::I32 | Type::I64 => Ok(()),
        _ => bad("blocks have elements of 8 to 64 bits"),
    }
}
