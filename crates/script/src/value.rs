//! Values of variables and expressions, and the variables of one client.

use crate::error::{EvalError, RuntimeErrorKind};
use crate::number;
use crate::symbols::VarId;

/// What an expression yields. Copying it is free, so evaluation never allocates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// SQL's null.
    Null,
    /// A truth value.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A double.
    Double(f64),
}

impl Scalar {
    /// Truth for `\if` and `CASE`: numbers other than zero are true, null is false.
    #[must_use]
    pub fn truth(self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(value) => value,
            Self::Int(value) => value != 0,
            Self::Double(value) => value.abs() > 0.0 || value.is_nan(),
        }
    }

    /// Appends the text that pgbench puts into a statement: `NULL`, `true`, `17`, `1.5`.
    pub fn write_text(self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"NULL"),
            Self::Bool(true) => out.extend_from_slice(b"true"),
            Self::Bool(false) => out.extend_from_slice(b"false"),
            Self::Int(value) => number::write_int(value, out),
            Self::Double(value) => number::write_double(value, out),
        }
    }

    pub(crate) const fn type_name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Int(_) => "int",
            Self::Double(_) => "double",
        }
    }
}

/// What a variable holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// Nothing was ever stored.
    #[default]
    Unset,
    /// SQL's null.
    Null,
    /// A truth value.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A double.
    Double(f64),
    /// Text from `\gset`, `\aset` or `-D`. It goes into statements as it is; an expression that
    /// reads it takes it for null, a boolean, an integer or a double.
    Text(String),
}

impl From<Scalar> for Value {
    fn from(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Null => Self::Null,
            Scalar::Bool(value) => Self::Bool(value),
            Scalar::Int(value) => Self::Int(value),
            Scalar::Double(value) => Self::Double(value),
        }
    }
}

impl Value {
    /// The value as expressions see it; `name` is for the error.
    pub(crate) fn scalar(&self, name: &str) -> Result<Scalar, EvalError> {
        match self {
            Self::Int(value) => Ok(Scalar::Int(*value)),
            Self::Null => Ok(Scalar::Null),
            Self::Bool(value) => Ok(Scalar::Bool(*value)),
            Self::Double(value) => Ok(Scalar::Double(*value)),
            Self::Text(text) => scalar_of_text(name, text),
            Self::Unset => Err(EvalError::Undefined { name: name.into() }),
        }
    }
}

/// How pgbench reads a variable's text (`makeVariableValue`): `null`, a prefix of `true`, `yes`,
/// `false` or `no`, `on`, `off`, `of`, an integer, a double.
fn scalar_of_text(name: &str, text: &str) -> Result<Scalar, EvalError> {
    let prefix_of = |word: &str| {
        word.len() >= text.len()
            && word.as_bytes()[..text.len()].eq_ignore_ascii_case(text.as_bytes())
    };
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    let malformed = || EvalError::Malformed {
        name: name.into(),
        value: text.into(),
    };
    if text.is_empty() {
        return Err(malformed());
    }
    if is("null") {
        return Ok(Scalar::Null);
    }
    if prefix_of("true") || prefix_of("yes") || is("on") {
        return Ok(Scalar::Bool(true));
    }
    if prefix_of("false") || prefix_of("no") || is("off") || is("of") {
        return Ok(Scalar::Bool(false));
    }
    let number = number::skip_space(text);
    let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        let range = |_| EvalError::IntegerRange { value: text.into() };
        return number.parse().map(Scalar::Int).map_err(range);
    }
    number::parse_double(text)
        .map(Scalar::Double)
        .ok_or_else(malformed)
}

/// The variables of one client. They live as long as the client: across transactions, scripts and
/// retries.
#[derive(Clone, Debug, Default)]
pub struct Vars {
    values: Vec<Value>,
}

impl Vars {
    /// Room for the variables of [`crate::Symbols::len`] names, all unset.
    #[must_use]
    pub fn new(len: usize) -> Self {
        Self {
            values: vec![Value::Unset; len],
        }
    }

    /// The value of `id`; [`Value::Unset`] if nothing was stored.
    #[inline]
    #[must_use]
    pub fn get(&self, id: VarId) -> &Value {
        self.values.get(id.index()).unwrap_or(&Value::Unset)
    }

    /// Stores `value`, making room for names interned since [`Vars::new`].
    #[inline]
    pub fn set(&mut self, id: VarId, value: Value) {
        *self.slot(id) = value;
    }

    /// Stores text that came from outside: a column of `\gset`, a `-D` option. Neither the text in
    /// statements nor the value in expressions differs from pgbench's, whatever form is kept.
    pub fn set_text(&mut self, id: VarId, text: &str) {
        let slot = self.slot(id);
        if let Some(value) = plain_int(text) {
            *slot = Value::Int(value);
        } else if let Value::Text(old) = slot {
            old.clear();
            old.push_str(text);
        } else {
            *slot = Value::Text(text.to_owned());
        }
    }

    /// Appends the text of `id` as pgbench puts it into a statement; false, and nothing appended,
    /// if it is unset (the extended protocol then sends a null).
    ///
    /// A null value gives the four letters `NULL`, in every query mode, as in pgbench.
    pub fn write_text(&self, id: VarId, out: &mut Vec<u8>) -> bool {
        let scalar = match self.get(id) {
            Value::Int(value) => Scalar::Int(*value),
            Value::Unset => return false,
            Value::Null => Scalar::Null,
            Value::Bool(value) => Scalar::Bool(*value),
            Value::Double(value) => Scalar::Double(*value),
            Value::Text(text) => {
                out.extend_from_slice(text.as_bytes());
                return true;
            }
        };
        scalar.write_text(out);
        true
    }

    /// Stores what a `\setshell` command printed: an integer, at most white space behind it. Only
    /// the first line counts, and only its first 63 bytes.
    pub fn set_shell_result(&mut self, id: VarId, output: &str) -> Result<(), RuntimeErrorKind> {
        const LINE_BYTES_MAX: usize = 63;
        let end = output
            .find('\n')
            .map_or(output.len(), |at| at + 1)
            .min(LINE_BYTES_MAX);
        let line = &output[..output.floor_char_boundary(end)];
        let number = number::skip_space(line).trim_end();
        let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(RuntimeErrorKind::ShellResult(line.to_owned()));
        }
        self.set(id, Value::Int(wrap_to_int(number::leading_int(number))));
        Ok(())
    }

    #[inline]
    fn slot(&mut self, id: VarId) -> &mut Value {
        let index = id.index();
        if index >= self.values.len() {
            self.values.resize(index + 1, Value::Unset);
        }
        &mut self.values[index]
    }
}

/// The integer whose text is exactly `text`: no sign `+`, no leading zero, no space.
fn plain_int(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = match digits.as_bytes() {
        [b'0'] => digits.len() == text.len(),
        [b'1'..=b'9', ..] => true,
        _ => false,
    };
    if plain { text.parse().ok() } else { None }
}

/// pgbench keeps the result of `\setshell` in C's `int`.
#[expect(clippy::cast_possible_truncation, reason = "pgbench's own conversion")]
const fn wrap_to_int(value: i64) -> i64 {
    value as i32 as i64
}
