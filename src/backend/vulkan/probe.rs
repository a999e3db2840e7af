//! Measures the device's arithmetic where Vulkan leaves it open: fused multiply-add, exact division
//! and square root, subnormal numbers.
//!
//! For drivers known here the answers are in a table. For all others they are measured once, by a
//! small kernel on chosen and random operands, and kept in the cache directory by driver and device
//! UUID. If measuring fails, the answer is "no", which costs speed and nothing else.

use crate::backend::{
    Device, DeviceError, MachineCode, Op, OrderRule, Placement, Result, Slice, StreamDesc, Use,
};
use crate::util::files;
use ash::vk;
use pumice_spirv_tools::TargetEnv;
use spirv_lowering::fused::Fused;
use spirv_lowering::interface::KernelInterface;
use std::path::PathBuf;
use std::time::Duration;

/// Answers for one floating-point width.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Arithmetic {
    /// Fma rounds once.
    pub fused_fma: bool,
    /// Division is correctly rounded.
    pub exact_div: bool,
    /// The square root is correctly rounded.
    pub exact_sqrt: bool,
    /// Subnormals survive without an execution mode.
    pub denormals: bool,
}

/// Answers for half, single and double precision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answers {
    /// 16 bits.
    pub fp16: Arithmetic,
    /// 32 bits.
    pub fp32: Arithmetic,
    /// 64 bits.
    pub fp64: Arithmetic,
    /// Exp2 in single precision is within 3 ulp and two more for each unit of the operand.
    pub exp2: bool,
    /// Log2 in single precision is within 2 ulp, within 2^-22 between 1/2 and 2, of subnormals too.
    pub log2: bool,
    /// UnpackHalf2x16 is exact, of subnormal halves too.
    pub unpack_half: bool,
    /// PackHalf2x16 rounds to nearest even, to subnormal halves and to infinity too.
    pub pack_half: bool,
}

/// llvmpipe computes with subnormals up to Mesa 25.0.7; 26.2.6 takes them for zeros, of `double`, too.
const SUBNORMALS_GO: [u32; 3] = [25, 1, 0];

/// Returns the recorded answers for a known driver, or `None` if they have to be measured.
pub fn recorded_answers(driver: vk::DriverId, version: [u32; 3]) -> Option<Answers> {
    let software = Arithmetic {
        fused_fma: false,
        exact_div: true,
        exact_sqrt: true,
        denormals: true,
    };
    let exact = Arithmetic {
        fused_fma: true,
        ..software
    };
    match driver {
        // Fma is a multiplication and an addition; the rest is the host's IEEE arithmetic.
        vk::DriverId::MESA_LLVMPIPE if version < SUBNORMALS_GO => Some(Answers {
            fp16: software,
            fp32: software,
            fp64: software,
            // 3.03 ulp near zero; subnormals are taken for normal numbers.
            exp2: false,
            log2: false,
            unpack_half: true,
            pack_half: true,
        }),
        vk::DriverId::NVIDIA_PROPRIETARY => Some(Answers {
            fp16: Arithmetic {
                fused_fma: true,
                denormals: true,
                ..Arithmetic::default()
            },
            fp32: Arithmetic {
                fused_fma: true,
                ..Arithmetic::default()
            },
            fp64: exact,
            exp2: true,
            // Measured: beyond 2^-22 in [1/2, 2].
            log2: false,
            // There is `half`.
            unpack_half: false,
            pack_half: false,
        }),
        _ => None,
    }
}

/// Returns the answers for a device of an unknown driver: from the cache directory, or measured now
/// and kept there.
pub fn cached(device: &dyn Device) -> Answers {
    let path = cache_file(device);
    if let Some(answers) = path
        .as_ref()
        .and_then(|path| std::fs::read_to_string(path).ok())
        .and_then(|text| Answers::parse(&text))
    {
        return answers;
    }
    match measure(device) {
        Ok(answers) => {
            if let Some(path) = path {
                keep(&path, &answers);
            }
            answers
        }
        Err(error) => {
            crate::log!(
                Warn,
                "{}: arithmetic cannot be measured: {error}",
                device.caps().name
            );
            Answers::default()
        }
    }
}

fn cache_file(device: &dyn Device) -> Option<PathBuf> {
    let directory = crate::util::config::get().cache_dir.as_ref()?;
    let caps = device.caps();
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
    Some(directory.join(format!(
        "arithmetic-{}-{}",
        hex(&caps.driver_uuid),
        hex(&caps.device_uuid)
    )))
}

/// Writes to a file of another name first, so that no reader sees half of it. Failing to write is no error.
fn keep(path: &std::path::Path, answers: &Answers) {
    let temporary = path.with_extension(std::process::id().to_string());
    let written = path
        .parent()
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| files::limited(|| std::fs::write(&temporary, answers.print())))
        .and_then(|()| std::fs::rename(&temporary, path));
    if let Err(error) = written {
        crate::log!(Debug, "{}: {error}", path.display());
    }
}

const HEADER: &str = "pumice-arithmetic-3";

impl Answers {
    fn widths(&self) -> [Arithmetic; 3] {
        [self.fp16, self.fp32, self.fp64]
    }

    fn print(&self) -> String {
        let words: Vec<String> = self
            .widths()
            .iter()
            .map(|a| {
                [a.fused_fma, a.exact_div, a.exact_sqrt, a.denormals]
                    .map(|flag| if flag { '1' } else { '0' })
                    .iter()
                    .collect()
            })
            .collect();
        let functions: String = [self.exp2, self.log2, self.unpack_half, self.pack_half]
            .map(|flag| if flag { '1' } else { '0' })
            .iter()
            .collect();
        format!("{HEADER} {} {functions}\n", words.join(" "))
    }

    fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let flags = |word: &str| -> Option<[bool; 4]> {
            let flags: [u8; 4] = word.as_bytes().try_into().ok()?;
            let valid = flags.iter().all(|byte| matches!(byte, b'0' | b'1'));
            valid.then(|| flags.map(|flag| flag == b'1'))
        };
        let width = |word: &str| -> Option<Arithmetic> {
            let [fused_fma, exact_div, exact_sqrt, denormals] = flags(word)?;
            Some(Arithmetic {
                fused_fma,
                exact_div,
                exact_sqrt,
                denormals,
            })
        };
        match words[..] {
            [HEADER, half, single, double, functions] => {
                let [exp2, log2, unpack_half, pack_half] = flags(functions)?;
                Some(Self {
                    fp16: width(half)?,
                    fp32: width(single)?,
                    fp64: width(double)?,
                    exp2,
                    log2,
                    unpack_half,
                    pack_half,
                })
            }
            _ => None,
        }
    }
}

/// A floating-point format, as bits in a u64.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Half,
    Single,
    Double,
}

impl Format {
    fn bytes(self) -> usize {
        match self {
            Self::Half => 2,
            Self::Single => 4,
            Self::Double => 8,
        }
    }

    /// Rounds to the nearest value of the format, ties to even.
    fn encode(self, value: f64) -> u64 {
        match self {
            Self::Half => u64::from(half_bits(value)),
            Self::Single => u64::from((value as f32).to_bits()),
            Self::Double => value.to_bits(),
        }
    }

    fn decode(self, bits: u64) -> f64 {
        match self {
            Self::Half => half_value(bits as u16),
            Self::Single => f64::from(f32::from_bits(bits as u32)),
            Self::Double => f64::from_bits(bits),
        }
    }

    /// Returns the smallest normal number.
    fn least_normal(self) -> f64 {
        match self {
            Self::Half => 2f64.powi(-14),
            Self::Single => f64::from(f32::MIN_POSITIVE),
            Self::Double => f64::MIN_POSITIVE,
        }
    }

    /// Computes x * y + z, rounded once. The halves that are measured have exact sums in double
    /// precision.
    fn fma(self, x: f64, y: f64, z: f64) -> u64 {
        match self {
            Self::Half => self.encode(x * y + z),
            Self::Single => u64::from((x as f32).fused(y as f32, z as f32).to_bits()),
            Self::Double => x.fused(y, z).to_bits(),
        }
    }

    /// Divides in double precision, which has more than twice the bits of the others, so that
    /// rounding twice is harmless.
    fn divide(self, x: f64, y: f64) -> u64 {
        self.encode(x / y)
    }

    fn root(self, x: f64) -> u64 {
        self.encode(x.sqrt())
    }
}

fn half_value(bits: u16) -> f64 {
    let (sign, exponent, fraction) = (
        bits >> 15,
        i32::from(bits >> 10 & 31),
        f64::from(bits & 1023),
    );
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if sign == 1 {
        -size
    } else {
        size
    }
}

fn half_bits(value: f64) -> u16 {
    let sign = u16::from(value.is_sign_negative()) << 15;
    let size = value.abs();
    if value.is_nan() {
        return sign | 0x7e00;
    }
    if size >= 65520.0 {
        return sign | 0x7c00;
    }
    // The unit in the last place of the result; dividing and multiplying by it is exact.
    let exponent = ((size.to_bits() >> 52) as i32 - 1023).max(-14);
    let units = (size / 2f64.powi(exponent - 10)).round_ties_even() as u16;
    // A carry out of the fraction goes into the exponent, as it should.
    sign | ((((exponent + 14) as u16) << 10) + units)
}

/// Random numbers that are the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a value in [1, 2), times two to the power of `exponent`.
    fn value(&mut self, exponent: i32) -> f64 {
        f64::from_bits(self.next() >> 12 | 1023 << 52) * 2f64.powi(exponent)
    }
}

/// Triples of operands measured for a format.
const TRIPLES: usize = 4096;
/// The last of them, for subnormals: x * y is one, and x is one.
const SUBNORMALS: [usize; 2] = [TRIPLES - 2, TRIPLES - 1];

fn operands(format: Format) -> Vec<[u64; 3]> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut list: Vec<[u64; 3]> = (0..SUBNORMALS[0])
        .map(|index| {
            // Numbers large enough that the error of their product is a normal half.
            let x = format.encode(random.value(5 + (index & 1) as i32));
            let y = format.encode(random.value(5));
            // Minus the rounded product: only a fused operation leaves the error.
            let product = format.encode(format.decode(x) * format.decode(y));
            [x, y, format.encode(-format.decode(product))]
        })
        .collect();
    let least = format.least_normal();
    let one = format.encode(1.0);
    list.push([format.encode(least * 1.5), format.encode(0.5), one]);
    list.push([format.encode(least * 0.75), one, one]);
    list
}

/// Measures a device.
pub fn measure(device: &dyn Device) -> Result<Answers> {
    let caps = device.caps();
    let one = |format: Format, wanted: bool| {
        if wanted {
            measure_format(device, format)
        } else {
            Ok(Arithmetic::default())
        }
    };
    Ok(Answers {
        fp16: one(Format::Half, caps.fp16)?,
        fp32: one(Format::Single, true)?,
        fp64: one(Format::Double, caps.fp64)?,
        ..measure_functions(device)?
    })
}

/// Measures whether Exp2 and Log2 in single precision are precise enough for relaxed math, and
/// whether halves in words are converted exactly.
fn measure_functions(device: &dyn Device) -> Result<Answers> {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let source: Vec<[u64; 3]> = (0..TRIPLES)
        .map(|index| {
            // Exponentials near zero in half of them, over the whole range in the others.
            let range = if index & 1 == 0 { 0.5 } else { 125.0 };
            let x = (random.value(0) * 2.0 - 3.0) * range;
            let y = match index % 4 {
                0 => f64::from(f32::from_bits(random.next() as u32 % 0x0080_0000 + 1)),
                1 => random.value(-1),
                2 => random.value(0),
                _ => random.value(random.0 as i32 % 120),
            };
            // Numbers around all halves, half of them between two, where the low bits are zero.
            let z = f64::from(f32::from_bits(
                (100 + random.next() as u32 % 45) << 23
                    | random.next() as u32 & 0x807f_f000
                    | random.next() as u32 & (0xfff >> (index % 4 * 4)),
            ));
            [f64::from(x as f32), f64::from(y as f32), z].map(|v| Format::Single.encode(v))
        })
        .collect();
    let results = run(device, Format::Single, &source)?;
    let [mut exp2, mut log2, mut unpack_half, mut pack_half] = [true; 4];
    for ([x, y, z], got) in source.iter().zip(&results) {
        // The low halves of the words are numbers of all sizes.
        let half = half_value(*x as u16);
        let unpacked = Format::Single.decode(got[6]);
        unpack_half &= unpacked.to_bits() == half.to_bits() || unpacked.is_nan() && half.is_nan();
        let packed = half_bits(Format::Single.decode(*z));
        pack_half &= got[7] == u64::from(packed) | PACKED;
        let [x, y] = [x, y].map(|&bits| Format::Single.decode(bits));
        let [power, logarithm] = [got[4], got[5]].map(|bits| Format::Single.decode(bits));
        let off = |got: f64, want: f64| (got - want).abs() / ulp(want);
        exp2 &= off(power, x.exp2()) <= 2.9 + (2.0 * x.abs()).floor();
        log2 &= if (0.5..=2.0).contains(&y) {
            (logarithm - y.log2()).abs() <= 2f64.powi(-22)
        } else {
            off(logarithm, y.log2()) <= 2.0
        };
    }
    Ok(Answers {
        exp2,
        log2,
        unpack_half,
        pack_half,
        ..Answers::default()
    })
}

/// Returns the unit in the last place of a number in single precision.
fn ulp(value: f64) -> f64 {
    let exponent = ((value.abs().to_bits() >> 52) as i32 - 1023).max(-126);
    2f64.powi(exponent - 23)
}

fn measure_format(device: &dyn Device, format: Format) -> Result<Arithmetic> {
    let source = operands(format);
    let results = run(device, format, &source)?;
    let mut answers = Arithmetic {
        fused_fma: true,
        exact_div: true,
        exact_sqrt: true,
        denormals: true,
    };
    for (index, (operands, got)) in source.iter().zip(&results).enumerate() {
        let [x, y, z] = operands.map(|bits| format.decode(bits));
        let [fma, quotient, root, product, ..] = *got;
        if SUBNORMALS.contains(&index) {
            answers.denormals &= product == format.encode(x * y);
        } else {
            answers.fused_fma &= fma == format.fma(x, y, z);
            answers.exact_div &= quotient == format.divide(x, y);
            answers.exact_sqrt &= root == format.root(x);
        }
    }
    Ok(answers)
}

/// Results of a triple.
const RESULTS: usize = 8;

/// A bit that is set beside a half in a word, which would be a subnormal float without.
const PACKED: u64 = 0x4000_0000;

/// Runs the kernel: fma(x, y, z), x / y, sqrt(x), x * y of every triple; in single precision exp2(x), log2(y), the half in the
/// lower bits of x, and z as a half, too.
fn run(device: &dyn Device, format: Format, source: &[[u64; 3]]) -> Result<Vec<[u64; RESULTS]>> {
    let failed = |what: &'static str| DeviceError::Driver {
        call: what,
        code: "no result".to_owned(),
    };
    let words = pumice_spirv_tools::assemble(TargetEnv::Vulkan_1_2, &kernel(format))
        .map_err(|error| DeviceError::Unsupported(format!("assembling a probe: {error}")))?;
    let interface = KernelInterface {
        name: "probe".to_owned(),
        push_size: 16,
        ..Default::default()
    };
    let pipeline = device
        .load(MachineCode::Spirv(&words), &interface)?
        .specialise([64, 1, 1], &[], 1)?;
    let bytes = format.bytes();
    let flat = |values: &[u64]| -> Vec<u8> {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes().into_iter().take(bytes))
            .collect()
    };
    let input: Vec<u8> = source.iter().flat_map(|triple| flat(triple)).collect();
    let from = device.allocate(input.len() as u64, Placement::HostWrite)?;
    let to = device.allocate((source.len() * RESULTS * bytes) as u64, Placement::HostRead)?;
    let place = from.mapped().ok_or_else(|| failed("mapping"))?;
    // SAFETY: the memory is mapped, as large as the input, and not in use yet.
    unsafe { std::ptr::copy_nonoverlapping(input.as_ptr(), place.as_ptr(), input.len()) };
    let mut push = [0u8; 16];
    push[..8].copy_from_slice(&from.address().to_ne_bytes());
    push[8..].copy_from_slice(&to.address().to_ne_bytes());
    let whole = |memory: &std::sync::Arc<dyn crate::backend::Memory>, write| Use {
        slice: Slice::new(std::sync::Arc::clone(memory), 0, memory.size()),
        write,
    };
    let mut stream = device.create_stream(StreamDesc::default())?;
    let op = Op::Dispatch {
        pipeline: &pipeline,
        groups: [(TRIPLES / 64) as u32, 1, 1],
        push: &push,
        uses: &[whole(&from, false), whole(&to, true)],
        bindings: &[],
        touches_anything: false,
    };
    stream.record(op, OrderRule::InOrder, false)?;
    let value = stream.submit(true)?;
    if !stream
        .timeline()
        .wait(value, Some(Duration::from_secs(20)))?
    {
        return Err(failed("a probe"));
    }
    let place = to.mapped().ok_or_else(|| failed("mapping"))?;
    // SAFETY: the memory is mapped and that large, and the work on it has completed.
    let output = unsafe { std::slice::from_raw_parts(place.as_ptr(), to.size() as usize) };
    let value = |at: usize| -> u64 {
        let mut word = [0u8; 8];
        word.iter_mut()
            .zip(output.iter().skip(at * bytes).take(bytes))
            .for_each(|(to, from)| *to = *from);
        u64::from_le_bytes(word)
    };
    Ok((0..source.len())
        .map(|index| std::array::from_fn(|part| value(index * RESULTS + part)))
        .collect())
}

/// Returns the probe kernel of a format. Pushed: address of the triples, address of the results.
fn kernel(format: Format) -> String {
    let bytes = format.bytes();
    let capabilities = match format {
        Format::Half => "OpCapability Float16\nOpCapability StorageBuffer16BitAccess",
        Format::Single => "",
        Format::Double => "OpCapability Float64",
    };
    let mut body = String::new();
    for part in 0..3 {
        body += &format!(
            "%ia{part} = OpIAdd %u32 %in %c{part}\n\
             %ip{part} = OpAccessChain %pp %from %c0 %ia{part}\n\
             %v{part} = OpLoad %ty %ip{part} Aligned {bytes}\n"
        );
    }
    body += "%r0 = OpExtInst %ty %glsl Fma %v0 %v1 %v2\n%r1 = OpFDiv %ty %v0 %v1\n\
             %r2 = OpExtInst %ty %glsl Sqrt %v0\n%r3 = OpFMul %ty %v0 %v1\n";
    body += match format {
        Format::Single => {
            "%r4 = OpExtInst %ty %glsl Exp2 %v0\n%r5 = OpExtInst %ty %glsl Log2 %v1\n\
             %word = OpBitcast %u32 %v0\n%halves = OpExtInst %pair %glsl UnpackHalf2x16 %word\n\
             %r6 = OpCompositeExtract %ty %halves 0\n%z = OpCompositeConstruct %pair %v2 %zero\n\
             %half = OpExtInst %u32 %glsl PackHalf2x16 %z\n%word7 = OpBitwiseOr %u32 %half %packed\n\
             %r7 = OpBitcast %ty %word7\n"
        }
        _ => {
            "%r4 = OpCopyObject %ty %v0\n%r5 = OpCopyObject %ty %v0\n\
             %r6 = OpCopyObject %ty %v0\n%r7 = OpCopyObject %ty %v0\n"
        }
    };
    for part in 0..RESULTS {
        body += &format!(
            "%oa{part} = OpIAdd %u32 %out %c{part}\n\
             %op{part} = OpAccessChain %pp %to %c0 %oa{part}\n\
             OpStore %op{part} %r{part} Aligned {bytes}\n"
        );
    }
    let constants: String = (0..RESULTS)
        .map(|part| format!("%c{part} = OpConstant %u32 {part}\n"))
        .collect();
    format!(
        "OpCapability Shader
         OpCapability PhysicalStorageBufferAddresses
         OpCapability VulkanMemoryModel
         {capabilities}
         %glsl = OpExtInstImport \"GLSL.std.450\"
         OpMemoryModel PhysicalStorageBuffer64 Vulkan
         OpEntryPoint GLCompute %main \"main\" %id %push
         OpExecutionMode %main LocalSize 64 1 1
         OpDecorate %id BuiltIn GlobalInvocationId
         OpDecorate %args Block
         OpMemberDecorate %args 0 Offset 0
         OpMemberDecorate %args 1 Offset 8
         OpDecorate %list ArrayStride {bytes}
         OpDecorate %block Block
         OpMemberDecorate %block 0 Offset 0
         OpDecorate %r1 NoContraction
         OpDecorate %r3 NoContraction
         %void = OpTypeVoid
         %fn = OpTypeFunction %void
         %u32 = OpTypeInt 32 0
         %ty = OpTypeFloat {bits}
         %v3 = OpTypeVector %u32 3
         %pv3 = OpTypePointer Input %v3
         %list = OpTypeRuntimeArray %ty
         %block = OpTypeStruct %list
         %pblock = OpTypePointer PhysicalStorageBuffer %block
         %args = OpTypeStruct %pblock %pblock
         %pargs = OpTypePointer PushConstant %args
         %ppblock = OpTypePointer PushConstant %pblock
         %pp = OpTypePointer PhysicalStorageBuffer %ty
         %pair = OpTypeVector %ty 2
         %zero = OpConstant %ty 0
         %packed = OpConstant %u32 {PACKED}
         %three = OpConstant %u32 3
         %results = OpConstant %u32 {RESULTS}
         {constants}
         %id = OpVariable %pv3 Input
         %push = OpVariable %pargs PushConstant
         %main = OpFunction %void None %fn
         %entry = OpLabel
         %gid = OpLoad %v3 %id
         %x = OpCompositeExtract %u32 %gid 0
         %pfrom = OpAccessChain %ppblock %push %c0
         %from = OpLoad %pblock %pfrom
         %pto = OpAccessChain %ppblock %push %c1
         %to = OpLoad %pblock %pto
         %in = OpIMul %u32 %x %three
         %out = OpIMul %u32 %x %results
         {body}
         OpReturn
         OpFunctionEnd",
        bits = bytes * 8,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_round_to_nearest_even() {
        for bits in (0..=u16::MAX).filter(|bits| bits & 0x7c00 != 0x7c00) {
            assert_eq!(half_bits(half_value(bits)), bits);
        }
        assert_eq!(
            half_bits(1.0 + 2f64.powi(-11)),
            0x3c00,
            "a tie goes to even"
        );
        assert_eq!(half_bits(1.0 + 3.0 * 2f64.powi(-11)), 0x3c02);
        assert_eq!(half_bits(2f64.powi(-25)), 0);
        assert_eq!(half_bits(2f64.powi(-25) * 1.001), 1);
        assert_eq!(half_bits(2047.9), 0x6800, "a carry into the exponent");
        assert_eq!(half_bits(1e9), 0x7c00);
    }

    #[test]
    fn new_versions_are_measured() {
        let llvmpipe = |version| recorded_answers(vk::DriverId::MESA_LLVMPIPE, version);
        assert!(llvmpipe([25, 0, 7]).is_some_and(|answers| answers.fp64.denormals));
        assert_eq!(llvmpipe([26, 2, 6]), None);
    }

    #[test]
    fn answers_survive_the_file() {
        let answers =
            recorded_answers(vk::DriverId::NVIDIA_PROPRIETARY, [580, 159, 3]).expect("known");
        assert_eq!(Answers::parse(&answers.print()), Some(answers));
        assert_eq!(Answers::parse("pumice-arithmetic-3 1111 1111"), None);
        assert_eq!(
            Answers::parse("pumice-arithmetic-3 1111 1111 11x1 1111"),
            None
        );
    }
}
