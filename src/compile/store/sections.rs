//! A sequence of byte strings, each with its length before it: the form of cache entries and
//! program binaries.

/// Appends a part.
pub fn put(out: &mut Vec<u8>, part: &[u8]) {
    out.extend_from_slice(&(part.len() as u64).to_le_bytes());
    out.extend_from_slice(part);
}

/// Removes and returns the first part, or `None` if there is none, or it is truncated.
pub fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (part, after) = after.split_at_checked(length)?;
    *rest = after;
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_taken() {
        let mut bytes = Vec::new();
        put(&mut bytes, b"one");
        put(&mut bytes, b"");
        let mut rest = bytes.as_slice();
        assert_eq!(take(&mut rest), Some(&b"one"[..]));
        assert_eq!(take(&mut rest), Some(&b""[..]));
        assert_eq!(take(&mut rest), None);
        assert_eq!(take(&mut &bytes[..10]), None);
        assert_eq!(take(&mut &[0xff; 8][..]), None);
    }
}
