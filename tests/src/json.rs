//! Reads JSON, strictly: what a program wrote must be what the format allows.

use std::collections::BTreeMap;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// null, true and false
    Word(&'static str),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// An array.
    List(Vec<Json>),
    /// An object; no name twice.
    Object(BTreeMap<String, Json>),
}

impl Json {
    /// Reads a whole text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut reader = Reader { text, at: 0 };
        let value = reader.value()?;
        reader.space();
        match reader.rest().is_empty() {
            true => Ok(value),
            false => reader.fail("more"),
        }
    }

    /// A member of an object.
    pub fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Self::Object(members) => members.get(name),
            _ => None,
        }
    }

    /// A text that is a member; empty if there is none.
    pub fn text(&self, name: &str) -> &str {
        match self.get(name) {
            Some(Self::Text(text)) => text,
            _ => "",
        }
    }

    /// A number that is a member; NaN if there is none.
    pub fn number(&self, name: &str) -> f64 {
        match self.get(name) {
            Some(Self::Number(number)) => *number,
            _ => f64::NAN,
        }
    }

    /// The elements of an array.
    pub fn list(&self) -> &[Json] {
        match self {
            Self::List(list) => list,
            _ => &[],
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn fail<T>(&self, why: &str) -> Result<T, String> {
        let near: String = self.rest().chars().take(40).collect();
        Err(format!("{why} at byte {}: {near:?}", self.at))
    }

    fn space(&mut self) {
        self.at = self.text.len()
            - self
                .rest()
                .trim_start_matches([' ', '\n', '\t', '\r'])
                .len();
    }

    fn take(&mut self, what: &str) -> bool {
        self.space();
        let there = self.rest().starts_with(what);
        self.at += if there { what.len() } else { 0 };
        there
    }

    fn value(&mut self) -> Result<Json, String> {
        self.space();
        for word in ["null", "true", "false"] {
            if self.take(word) {
                return Ok(Json::Word(word));
            }
        }
        match self.rest().chars().next() {
            Some('"') => Ok(Json::Text(self.string()?)),
            Some('[') => self.sequence("[", "]", Self::value).map(Json::List),
            Some('{') => {
                let members = self.sequence("{", "}", |reader| {
                    reader.space();
                    let name = reader.string()?;
                    match reader.take(":") {
                        true => Ok((name, reader.value()?)),
                        false => reader.fail("no colon"),
                    }
                })?;
                let count = members.len();
                let members: BTreeMap<_, _> = members.into_iter().collect();
                match members.len() == count {
                    true => Ok(Json::Object(members)),
                    false => self.fail("a name twice before here"),
                }
            }
            _ => {
                let number = self
                    .rest()
                    .split([',', ']', '}', ' ', '\n'])
                    .next()
                    .unwrap_or("");
                let plain = number.starts_with(|c: char| c == '-' || c.is_ascii_digit());
                match number.parse() {
                    Ok(value) if plain => {
                        self.at += number.len();
                        Ok(Json::Number(value))
                    }
                    _ => self.fail("no value"),
                }
            }
        }
    }

    fn sequence<T>(
        &mut self,
        open: &str,
        close: &str,
        element: impl Fn(&mut Self) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let mut all = Vec::new();
        self.take(open);
        if self.take(close) {
            return Ok(all);
        }
        loop {
            all.push(element(self)?);
            if self.take(close) {
                return Ok(all);
            }
            if !self.take(",") {
                return self.fail("neither a comma nor the end");
            }
        }
    }

    fn string(&mut self) -> Result<String, String> {
        if !self.take("\"") {
            return self.fail("no string");
        }
        let mut text = String::new();
        let mut chars = self.rest().char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += at + 1;
                    return Ok(text);
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, c @ ('"' | '\\' | '/'))) => text.push(c),
                    Some((at, 'u')) => {
                        let digits = self.rest().get(at + 1..at + 5).unwrap_or("");
                        let code = u32::from_str_radix(digits, 16)
                            .ok()
                            .and_then(char::from_u32);
                        match code {
                            Some(c) => text.push(c),
                            None => return self.fail("no code"),
                        }
                        chars.nth(3);
                    }
                    _ => return self.fail("unknown escape"),
                },
                c if u32::from(c) < 0x20 => return self.fail("a control character"),
                c => text.push(c),
            }
        }
        self.fail("no end of a string")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_read_strictly() {
        let value =
            Json::parse(" {\"a\": [1, -2.5e1, true], \"b\":{\"c\":\"x\\u0041\\\"\"}, \"d\":[]}\n")
                .unwrap();
        assert_eq!(value.get("a").unwrap().list()[1], Json::Number(-25.0));
        assert_eq!(value.get("b").unwrap().text("c"), "xA\"");
        for wrong in [
            "",
            "{",
            "[1,]",
            "[1 2]",
            "{\"a\":1,\"a\":2}",
            "\"a\nb\"",
            "{} {}",
            "nan",
            "{a:1}",
            "[1]]",
        ] {
            assert!(Json::parse(wrong).is_err(), "{wrong}");
        }
    }
}
