//! One row of a result, in the bytes that it came in.

use std::cell::OnceCell;

use super::column::Definition;
use super::reader::Reader;
use super::render;

/// How values of a type are laid out in a row in binary form: MySQL's `COM_STMT_EXECUTE` response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    Fixed(usize),
    /// A date or time: one byte of length first.
    Short,
    /// As text is.
    Long,
}

impl Layout {
    pub(super) fn of(kind: u8) -> Self {
        match kind {
            // NULL has no bytes; TINY; SHORT, YEAR; LONG, FLOAT, INT24; DOUBLE, LONGLONG.
            6 => Self::Fixed(0),
            1 => Self::Fixed(1),
            2 | 13 => Self::Fixed(2),
            3 | 4 | 9 => Self::Fixed(4),
            5 | 8 => Self::Fixed(8),
            // TIMESTAMP, DATE, TIME, DATETIME and their later forms.
            7 | 10..=12 | 14 | 17..=19 => Self::Short,
            _ => Self::Long,
        }
    }
}

/// In which form a row came, and in which it is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowForm {
    Text,
    Binary,
    /// It came in binary form, and is wanted as text.
    BinaryAsText,
}

/// One row of a result.
#[derive(Debug, Clone)]
pub struct Row<'a> {
    pub(super) payload: &'a [u8],
    pub(super) definitions: &'a [Definition],
    pub(super) form: RowForm,
    /// The same row in text form, made when somebody looks.
    pub(super) rendered: OnceCell<Vec<u8>>,
}

impl<'a> Row<'a> {
    pub(super) fn new(payload: &'a [u8], definitions: &'a [Definition], form: RowForm) -> Self {
        Self {
            payload,
            definitions,
            form,
            rendered: OnceCell::new(),
        }
    }

    /// In order, `None` for NULL; ends early where the row is damaged.
    #[must_use]
    pub fn values(&self) -> Values<'_> {
        match self.form {
            RowForm::Text => Values::text(self.payload, self.definitions.len()),
            RowForm::Binary => Values::binary(self.payload, self.definitions),
            RowForm::BinaryAsText => {
                let text = self
                    .rendered
                    .get_or_init(|| render::text_row(self.payload, self.definitions));
                Values::text(text, self.definitions.len())
            }
        }
    }
}

/// The values of a row.
#[derive(Debug, Clone)]
pub struct Values<'a> {
    rest: Reader<'a>,
    at: usize,
    count: usize,
    /// Of a row in binary form: which values are NULL, and the columns.
    binary: Option<(&'a [u8], &'a [Definition])>,
}

impl<'a> Values<'a> {
    fn text(payload: &'a [u8], count: usize) -> Self {
        Self {
            rest: Reader(payload),
            at: 0,
            count,
            binary: None,
        }
    }

    pub(super) fn binary(payload: &'a [u8], definitions: &'a [Definition]) -> Self {
        let mut rest = Reader(payload);
        // A zero, then a bit for every column, from the third on.
        let nulls = (definitions.len() + 2).div_ceil(8);
        let bitmap = rest.take(1).and_then(|_| rest.take(nulls));
        let count = bitmap.map_or(0, |_| definitions.len());
        Self {
            rest,
            at: 0,
            count,
            binary: Some((bitmap.unwrap_or_default(), definitions)),
        }
    }

    #[inline]
    fn value(&mut self) -> Option<<Self as Iterator>::Item> {
        let Some((nulls, definitions)) = self.binary else {
            if let [0xFB, ..] = self.rest.0 {
                self.rest.take(1)?;
                return Some(None);
            }
            return Some(Some(self.rest.bytes()?));
        };
        let bit = self.at + 2;
        if nulls[bit / 8] & (1 << (bit % 8)) != 0 {
            return Some(None);
        }
        let value = match Layout::of(definitions[self.at].kind) {
            Layout::Fixed(length) => self.rest.take(length)?,
            Layout::Short => {
                let length = self.rest.u8()?;
                self.rest.take(length.into())?
            }
            Layout::Long => self.rest.bytes()?,
        };
        Some(Some(value))
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = Option<&'a [u8]>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.count {
            return None;
        }
        let value = self.value();
        self.at += 1;
        if value.is_none() {
            self.at = self.count;
        }
        value
    }
}
