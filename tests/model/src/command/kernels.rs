//! Launches of kernels: their arguments, and the memory declared to them that they reach by numbers.

use super::{command, record, Call, Record};
use crate::program::{Kind, Manner, Operand, Usm};
use crate::run::Run;
use pumice_tests::sys::*;
use pumice_tests::{ext, ok};
use std::ptr::null;

impl Run<'_> {
    pub(super) fn kernel(
        &self,
        call: Call,
        operands: [Operand; 2],
        manner: Manner,
        words: usize,
        numbers: [u32; 2],
    ) -> cl_int {
        let Some((kernel, own)) = self.prepared(operands, manner, numbers) else {
            return CL_INVALID_KERNEL;
        };
        let code = self.launch(call, kernel, &words, null());
        if own {
            ok!(clReleaseKernel(kernel));
        }
        code
    }

    /// Launches a kernel whose arguments are set.
    pub(super) fn launch(
        &self,
        call: Call,
        kernel: cl_kernel,
        global: *const usize,
        local: *const usize,
    ) -> cl_int {
        command!(
            self,
            call,
            clEnqueueNDRangeKernel or clCommandNDRangeKernelKHR:
                clCommandNDRangeKernelKHR_fn(kernel, 1, null(), global, local)
        )
    }

    /// A kernel with its arguments, and whether the caller releases it.
    fn prepared(
        &self,
        [dst, src]: [Operand; 2],
        manner: Manner,
        numbers: [u32; 2],
    ) -> Option<(cl_kernel, bool)> {
        let letter = |operand: Operand| match operand {
            Operand::Number(_) => "N",
            Operand::Object(side) if self.pitch(side).is_some() => "I",
            _ => "P",
        };
        let name = format!("{}{}", letter(dst), letter(src));
        // A kernel keeps the pointers that are declared to it.
        let own = (name.contains('N')).then(|| self.world.new_kernel(&name, manner));
        let kernel = own.or_else(|| self.world.kernel(&name, manner))?;
        self.operand(kernel, 0, dst);
        self.operand(kernel, 3, src);
        self.tell(kernel, &[dst, src]);
        for (index, number) in [6, 7].into_iter().zip(numbers) {
            ok!(clSetKernelArg(kernel, index, 4, (&raw const number).cast()));
        }
        Some((kernel, own.is_some()))
    }

    /// The two numbers behind an operand: the width of an image and its first row; 0 and the first word of a buffer.
    pub(super) fn numbers(&self, operand: Operand) -> [u32; 2] {
        let Operand::Object(side) = operand else {
            return [0; 2];
        };
        let offset = self.offset(side);
        match self.pitch(side) {
            Some(pitch) => [(pitch / 4) as u32, (offset / pitch) as u32],
            None => [0, (offset / 4) as u32],
        }
    }

    /// Sets an operand, and the two numbers behind it.
    fn operand(&self, kernel: cl_kernel, index: cl_uint, operand: Operand) {
        let numbers = self.numbers(operand);
        match operand {
            Operand::Object(side) => {
                let object = self.object(side);
                let size = size_of::<cl_mem>();
                ok!(clSetKernelArg(
                    kernel,
                    index,
                    size,
                    (&raw const object).cast()
                ));
            }
            Operand::Pointer(place) => {
                let pointer = self.pointer(place).cast_const();
                match self.program.memories[place.memory].kind.is_usm() {
                    true => {
                        let code = ext!(
                            self.world,
                            clSetKernelArgMemPointerINTEL:
                                clSetKernelArgMemPointerINTEL_t(kernel, index, pointer)
                        );
                        assert_eq!(code, 0, "clSetKernelArgMemPointerINTEL");
                    }
                    false => ok!(clSetKernelArgSVMPointer(kernel, index, pointer)),
                }
            }
            Operand::Number(place) => {
                let address = self.address(place) as u64;
                ok!(clSetKernelArg(
                    kernel,
                    index,
                    8,
                    (&raw const address).cast()
                ));
            }
        }
        for (offset, number) in [1, 2].into_iter().zip(numbers) {
            let number: *const u32 = &raw const number;
            ok!(clSetKernelArg(kernel, index + offset, 4, number.cast()));
        }
    }

    /// Tells the kernel of what its operands reach that are numbers.
    fn tell(&self, kernel: cl_kernel, operands: &[Operand]) {
        let yes: cl_bool = CL_TRUE;
        let mut pointers: Vec<usize> = Vec::new();
        for operand in operands {
            let Operand::Number(place) = operand else {
                continue;
            };
            let param = match self.program.memories[place.memory].kind {
                Kind::System => CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM,
                Kind::Usm(Usm::Host) => CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL,
                Kind::Usm(Usm::Device) => CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL,
                Kind::Usm(Usm::Shared) => CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL,
                _ => {
                    pointers.extend(self.stage.memories[place.memory].svm.map(|at| at as usize));
                    continue;
                }
            };
            let (size, value) = (size_of::<cl_bool>(), (&raw const yes).cast());
            ok!(clSetKernelExecInfo(kernel, param, size, value));
        }
        if !pointers.is_empty() {
            let (size, list) = (size_of_val(pointers.as_slice()), pointers.as_ptr().cast());
            let param = CL_KERNEL_EXEC_INFO_SVM_PTRS;
            ok!(clSetKernelExecInfo(kernel, param, size, list));
        }
    }
}
