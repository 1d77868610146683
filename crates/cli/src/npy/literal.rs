//! The few Python literals an .npy header is made of.

use super::NpyError;

/// What every header says.
pub(super) struct Fields<'a> {
    pub(super) descr: &'a str,
    pub(super) fortran: bool,
    pub(super) shape: Vec<u64>,
}

/// The few Python literals that a header is made of.
pub(super) struct Literal<'a> {
    rest: &'a str,
}

impl<'a> Literal<'a> {
    pub(super) fn new(text: &'a str) -> Literal<'a> {
        Literal { rest: text.trim() }
    }

    pub(super) fn dictionary(mut self) -> Result<Fields<'a>, NpyError> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        self.expect('{')?;
        while !self.take('}') {
            let key = self.string()?;
            self.expect(':')?;
            match key {
                "descr" if self.rest.starts_with('[') => {
                    return Err(NpyError::Dtype("[a structure]".into()));
                }
                "descr" => descr = Some(self.string()?),
                "fortran_order" => fortran = Some(self.truth()?),
                "shape" => shape = Some(self.tuple()?),
                _ => return Err(NpyError::Header("it has an unknown key")),
            }
            if !self.take(',') && !self.rest.starts_with('}') {
                return Err(NpyError::Header("expected ',' or '}' after a value"));
            }
        }
        match (descr, fortran, shape) {
            (Some(descr), Some(fortran), Some(shape)) if self.rest.is_empty() => {
                Ok(Fields { descr, fortran, shape })
            }
            (Some(_), Some(_), Some(_)) => Err(NpyError::Header("text follows the dictionary")),
            _ => Err(NpyError::Header("descr, fortran_order or shape is missing")),
        }
    }

    fn take(&mut self, wanted: char) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, wanted: char) -> Result<(), NpyError> {
        if self.take(wanted) { Ok(()) } else { Err(NpyError::Header("it is not a dictionary")) }
    }

    fn string(&mut self) -> Result<&'a str, NpyError> {
        const BROKEN: NpyError = NpyError::Header("expected a quoted string");
        let quote = self.rest.chars().next().filter(|c| matches!(c, '\'' | '"')).ok_or(BROKEN)?;
        let (text, rest) =
            self.rest.get(1..).and_then(|rest| rest.split_once(quote)).ok_or(BROKEN)?;
        self.rest = rest.trim_start();
        Ok(text)
    }

    fn truth(&mut self) -> Result<bool, NpyError> {
        for (word, value) in [("False", false), ("True", true)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest.trim_start();
                return Ok(value);
            }
        }
        Err(NpyError::Header("fortran_order is neither True nor False"))
    }

    fn tuple(&mut self) -> Result<Vec<u64>, NpyError> {
        const BROKEN: NpyError = NpyError::Header("shape is not a tuple of whole numbers");
        let mut axes = Vec::new();
        if !self.take('(') {
            return Err(BROKEN);
        }
        while !self.take(')') {
            let end = self.rest.find(|c: char| !c.is_ascii_digit()).ok_or(BROKEN)?;
            let (digits, rest) = self.rest.split_at(end);
            axes.push(digits.parse().map_err(|_| BROKEN)?);
            self.rest = rest.trim_start();
            self.take('L'); // Python 2 wrote long integers so.
            if !self.take(',') && !self.rest.starts_with(')') {
                return Err(BROKEN);
            }
        }
        Ok(axes)
    }
}
