//! Makes a program that shows something as small as it gets: leaves calls out, many at a time first, then makes numbers smaller.

use pumice_tests::sequences::program::{Program, NUMBERS};

/// The smallest form that still `shows` it, with at most so many tries.
pub fn shrink(
    program: Program,
    mut budget: usize,
    mut shows: impl FnMut(&Program) -> Result<bool, String>,
) -> Result<Program, String> {
    let mut best = program;
    let mut better = |best: &mut Program, next: Program| {
        if budget == 0 || next == *best {
            return Ok(false);
        }
        budget -= 1;
        let shown = shows(&next)?;
        if shown {
            *best = next;
        }
        Ok::<_, String>(shown)
    };
    let mut piece = best.0.len().div_ceil(2).max(1);
    loop {
        let mut at = best.0.len();
        while at > 0 {
            let from = at.saturating_sub(piece);
            let mut next = best.clone();
            next.0.drain(from..at);
            better(&mut best, next)?;
            at = from.min(best.0.len());
        }
        if piece == 1 {
            break;
        }
        piece = piece.div_ceil(2);
    }
    for call in 0..best.0.len() {
        let mut next = best.clone();
        next.0[call].thread = 0;
        better(&mut best, next)?;
        for place in 0..NUMBERS {
            let mut smaller = true;
            while smaller {
                smaller = false;
                for edit in [|_| 0, |number| number % 16, |number: u32| number / 2] {
                    let mut next = best.clone();
                    let number = &mut next.0[call].numbers[place];
                    *number = edit(*number);
                    smaller |= better(&mut best, next)?;
                }
            }
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pumice_tests::sequences::program::Call;

    /// Two calls of sixty are at fault, with a number above 99 in one of them.
    #[test]
    fn what_does_not_matter_goes() {
        let call = |row, number| Call {
            row,
            thread: row as u32 % 3,
            numbers: [number; NUMBERS],
        };
        let program = Program((0..60).map(|at| call(at % 9, 1000)).collect());
        let is = |call: &Call, row, least| call.row == row && call.numbers[2] >= least;
        let small = shrink(program, 5000, |program| {
            let first = program.0.iter().position(|call| is(call, 3, 100));
            let mut rest = program.0.iter().skip(first.map_or(usize::MAX, |at| at + 1));
            Ok(first.is_some() && rest.any(|call| is(call, 7, 0)))
        });
        let small = small.expect("a program");
        assert_eq!(small.0.len(), 2);
        assert_eq!(small.0[1].numbers, [0; 6]);
        assert_eq!((small.0[0].thread, small.0[1].thread), (0, 0));
        assert!((100..200).contains(&small.0[0].numbers[2]));
        assert_eq!(small.0[0].numbers[0], 0);
    }
}
