//! Reading the facts back.

use std::collections::VecDeque;

use shoal_scheduler::Fact;

use super::facts::{Facts, open_error};
use crate::options::OpenError;

/// Facts read a few batches at a time, so that a long history does not have to fit in memory.
pub(crate) struct Log<'a> {
    facts: &'a Facts,
    table: &'static str,
    last: i64,
    ready: VecDeque<Fact>,
    end: Result<(), OpenError>,
}

impl<'a> Log<'a> {
    pub(super) fn new(facts: &'a Facts, table: &'static str) -> Log<'a> {
        Log { facts, table, last: 0, ready: VecDeque::new(), end: Ok(()) }
    }

    /// Whether the log was read to its end.
    pub(crate) fn end(self) -> Result<(), OpenError> {
        self.end
    }

    fn read(&mut self) -> Result<(), OpenError> {
        let path = &self.facts.path;
        let bad = |error: rusqlite::Error| open_error(path, &error);
        let table = self.table;
        let sql = format!("SELECT id, batch FROM {table} WHERE id > ? ORDER BY id LIMIT 64");
        let mut statement = self.facts.db.prepare(&sql).map_err(bad)?;
        let mut rows = statement.query([self.last]).map_err(bad)?;
        while let Some(row) = rows.next().map_err(bad)? {
            self.last = row.get(0).map_err(bad)?;
            let bytes = row.get_ref(1).and_then(|value| Ok(value.as_blob()?)).map_err(bad)?;
            let facts: Vec<Fact> = postcard::from_bytes(bytes).map_err(|error| {
                let message = format!("batch {} is no list of facts: {error}", self.last);
                OpenError::Database { path: path.clone(), message }
            })?;
            self.ready.extend(facts);
        }
        Ok(())
    }
}

impl Iterator for Log<'_> {
    type Item = Fact;

    fn next(&mut self) -> Option<Fact> {
        if self.ready.is_empty() && self.end.is_ok() {
            self.end = self.read();
        }
        self.ready.pop_front()
    }
}
