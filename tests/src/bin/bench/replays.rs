//! Recorded launches that are enqueued together, beside the same launches enqueued one by one.

use super::work::{expect, uncounted, Figure, Ready, Rig, SOURCE};
use pumice_tests::client::Result;

/// Launches of a graph.
const LAUNCHES: usize = 1000;

/// The part of the time that counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// From the first call until all is done.
    All,
    /// The calls until the device has what it needs: what the host pays.
    Calls,
}

/// Small launches, each after the one before, one by one or (`recorded`) as a command buffer.
pub fn launches(rig: &Rig, recorded: bool, part: Part) -> Result<Option<Ready>> {
    let (context, queue) = rig.open()?;
    let program = context.program(SOURCE, "")?;
    let buffer = context.buffer(256)?;
    queue.write(&buffer, &[0i32; 64])?;
    let kernel = program.kernel("bump")?;
    kernel.arg_buffer(0, &buffer)?;
    let commands = match recorded {
        true => match queue.command_buffer()? {
            Some(commands) => Some(commands),
            None => return Ok(None),
        },
        false => None,
    };
    if let Some(commands) = &commands {
        for _ in 0..LAUNCHES {
            commands.launch(&kernel, &[64], &[64])?;
        }
        commands.finalize()?;
    }
    let mut total = 0;
    Ok(Some(Ready {
        run: Box::new(move |n| {
            let _keep = &context;
            for _ in 0..n {
                match &commands {
                    Some(commands) => commands.enqueue()?,
                    None => {
                        for _ in 0..LAUNCHES {
                            queue.launch(&kernel, &[64], &[64])?;
                        }
                    }
                }
                queue.flush()?;
                match part {
                    Part::All => queue.finish()?,
                    Part::Calls => uncounted(|| queue.finish())?,
                }
            }
            total += (LAUNCHES * n) as i32;
            let counts: Vec<i32> = queue.read_vec(&buffer, 64)?;
            expect(counts.iter().all(|&c| c == total), "the number of launches")
        }),
        figure: Figure::Micros(LAUNCHES as f64),
    }))
}
