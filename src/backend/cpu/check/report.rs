//! A finding in words.

use super::allocations::{self, Allocation, Given};
use crate::util::lock::{rank, Mutex};
use crate::util::log;
use rustc_hash::FxHashSet;
use spirv_lowering::claims::FalseClaim;
use spirv_lowering::interface::{ArgKind, KernelInterface};
use spirv_lowering::interp::{Finding, Pixel, WorkItem, Wrong};
use spirv_lowering::ir::types::Space;
use std::fmt::Write;

/// Places of which it has been said. It is reported once to a program that launches a kernel a thousand times.
static REPORTED: Mutex<Option<FxHashSet<String>>, { rank::CHECK_REPORTS }> = Mutex::new(None);

/// Logs a finding, once.
pub fn say(interface: &KernelInterface, given: &Given, finding: &Finding) {
    let kernel = &interface.name;
    let kind = std::mem::discriminant(&finding.wrong);
    let line = finding.line;
    let key = match finding.other {
        // Whichever of the two comes first.
        Some((_, other)) if line != 0 => {
            format!("{kernel} {} {} {kind:?}", line.min(other), line.max(other))
        }
        _ => format!("{kernel} {} {line} {kind:?}", finding.function),
    };
    if REPORTED.lock().get_or_insert_default().insert(key) {
        // Asked for, so not a matter of the log's level.
        log::write(
            log::Level::Error,
            format_args!("{}", text(interface, given, finding)),
        );
    }
}

/// Logs, once, a claim of the compiler that does not hold.
pub fn false_claim(claim: &FalseClaim) {
    let text = format!("check: {claim}");
    if REPORTED.lock().get_or_insert_default().insert(text.clone()) {
        log::write(log::Level::Error, format_args!("{text}"));
    }
}

/// Logs, once, that a kernel cannot be interpreted.
pub fn not_checked(kernel: &str, why: &str) {
    let key = format!("{kernel} not checked");
    if REPORTED.lock().get_or_insert_default().insert(key) {
        let text = format_args!("check: kernel {kernel} is run unchecked: {why}");
        log::write(log::Level::Warn, text);
    }
}

fn text(interface: &KernelInterface, given: &Given, finding: &Finding) -> String {
    let kernel = &interface.name;
    let mut text = format!("check: kernel {kernel}");
    if finding.function != *kernel {
        let _ = write!(text, ", function {}", finding.function);
    }
    match finding.line {
        0 => text.push_str(" (a build with -g tells the line)"),
        line => {
            let _ = write!(text, ", line {line}");
        }
    }
    let _ = write!(text, ": {}", what(finding));
    if !finding.note.is_empty() {
        let _ = write!(text, " ({})", finding.note);
    }
    if let Some((address, _)) = finding.at {
        let own = matches!(finding.space, Some(Space::Local | Space::Private));
        if !own {
            let _ = write!(text, "; {}", nearest(given, address));
        }
    }
    if let Some(pixel) = &finding.pixel {
        let _ = write!(text, "; {}", image(interface, pixel));
    }
    let _ = write!(text, "; work-item {}", item(&finding.item));
    if let Some((other, line)) = &finding.other {
        let _ = write!(text, " and {}", item(other));
        if *line != 0 {
            let _ = write!(text, " in line {line}");
        }
    }
    if finding.times > 1 {
        let _ = write!(text, "; {} times in this launch", finding.times);
    }
    text
}

fn what(finding: &Finding) -> String {
    let space = match finding.space {
        Some(Space::Local) => "local ",
        Some(Space::Private) => "private ",
        Some(Space::Constant) => "constant ",
        Some(Space::Global) => "global ",
        _ => "",
    };
    let bytes = match finding.at {
        _ if finding.pixel.is_some() => finding.pixel.map_or(String::new(), |pixel| texel(&pixel)),
        Some((address, 0)) => format!("{space}address {address:#x}"),
        Some((address, size)) => format!("{size} bytes at {space}address {address:#x}"),
        None => format!("{space}memory"),
    };
    let whole = if finding.pixel.is_some() {
        "an image"
    } else {
        "memory"
    };
    match finding.wrong {
        Wrong::ReadOutside => format!("read outside of {whole}: {bytes}"),
        Wrong::WriteOutside => format!("write outside of {whole}: {bytes}"),
        Wrong::Misaligned { align } => format!("{bytes} is not aligned to {align} bytes"),
        Wrong::ReadOnly => format!("write to constant memory: {bytes}"),
        Wrong::Index { index, len } => format!("element {index} of an array of {len}"),
        Wrong::NeverWritten => {
            format!("what is stored was never written, or comes of what was not: {bytes}")
        }
        Wrong::Undetermined(what) => format!("{what} depends on what was never written"),
        Wrong::Race { writes, wrote } => {
            let word = |writes| if writes { "write" } else { "read" };
            format!(
                "data race: {} of {bytes} and {} by another work-item, which nothing orders",
                word(writes),
                word(wrote)
            )
        }
        Wrong::Barrier => {
            "the work-items of the group do not come to a barrier together".to_owned()
        }
    }
}

/// Returns the first coordinates, as many as the image has.
fn coordinates<T: ToString>(of: [T; 3], pixel: &Pixel, between: &str) -> String {
    let counted = of.iter().take(pixel.view.coordinates.into());
    let words: Vec<String> = counted.map(T::to_string).collect();
    words.join(between)
}

fn texel(pixel: &Pixel) -> String {
    format!("texel ({})", coordinates(pixel.at, pixel, ", "))
}

/// Returns the image, as the argument that it is.
fn image(interface: &KernelInterface, pixel: &Pixel) -> String {
    let mut args = interface.args.iter().enumerate();
    let found = args.find(|(_, arg)| {
        let image = arg.kind.image();
        image.is_some_and(|image| image.bindings.all().any(|of| of == pixel.binding))
    });
    let size = coordinates(pixel.view.size, pixel, " x ");
    match found {
        Some((_, arg)) if matches!(arg.kind, ArgKind::Captured { .. }) => {
            format!("the image of {size} texels that the block captured")
        }
        Some((index, arg)) if arg.name.is_empty() => {
            format!("the image of {size} texels that is argument {index}")
        }
        Some((index, arg)) => {
            let name = &arg.name;
            format!("the image of {size} texels that is argument {index}, {name}")
        }
        None => format!("an image of {size} texels"),
    }
}

/// Returns the buffer that an address belongs to, or is nearest to.
fn nearest(given: &Given, address: u64) -> String {
    let shown = |one: Allocation| format!("the buffer of {} bytes at {:#x}", one.size, one.base);
    if let Some(one) = allocations::holding(address) {
        if given.around(one, address).is_some() {
            return format!("byte {} of {}", address - one.base, shown(one));
        }
        let Some(part) = given.nearest(one, address) else {
            return shown(one);
        };
        let (size, offset) = (part.size, part.base - one.base);
        let sub = format!(
            "the sub-buffer of {size} bytes at byte {offset} of {}",
            shown(one)
        );
        return match address.checked_sub(part.base + size) {
            Some(gap) => format!("{gap} bytes behind the end of {sub}"),
            None => format!("{} bytes before {sub}", part.base - address),
        };
    }
    let (before, after) = allocations::around(address);
    let past = before.map(|one| (address - (one.base + one.size), one));
    let ahead = after.map(|one| (one.base - address, one));
    match (past, ahead) {
        _ if address < 4096 => "a null pointer".to_owned(),
        (Some((gap, one)), other) if other.is_none_or(|(far, _)| gap <= far) => {
            format!("{gap} bytes behind the end of {}", shown(one))
        }
        (_, Some((gap, one))) => format!("{gap} bytes before {}", shown(one)),
        _ => "there is no buffer".to_owned(),
    }
}

fn item(item: &WorkItem) -> String {
    let three = |of: [u64; 3]| format!("({}, {}, {})", of[0], of[1], of[2]);
    format!(
        "{} (local {} of group {})",
        three(item.global),
        three(item.local.map(u64::from)),
        three(item.group.map(u64::from))
    )
}
