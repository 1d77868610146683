//! The durable log: SQLite with one row for each batch of the driver. A batch is one transaction, so
//! after a crash it is there whole or not at all.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags, params};
use serde::de::DeserializeOwned;
use shoal_kinds::plan::Note;
use shoal_protocol::{Attempt, JobId};
use shoal_scheduler::{Fact, Place};

use super::log::Log;
use crate::driver::keyed::{Key, Keyed};
use crate::options::OpenError;

/// The layout of the tables and of the facts in them. Raised when an older build could misread it.
const FORMAT: u32 = 4;

const FACTS_TABLE: &str =
    "CREATE TABLE facts (id INTEGER PRIMARY KEY, batch BLOB NOT NULL) STRICT;";
/// Which job each client's key stands for. Builds that do not know it leave it alone, so it needs no new format.
const KEYS_TABLE: &str =
    "CREATE TABLE IF NOT EXISTS keys (key TEXT PRIMARY KEY, kept BLOB NOT NULL) STRICT;";
const TABLES: &str = "
    CREATE TABLE notes (job INTEGER PRIMARY KEY, note BLOB NOT NULL) STRICT;
    CREATE TABLE stored (attempt INTEGER PRIMARY KEY, place BLOB NOT NULL) STRICT;
    PRAGMA user_version = 4;
";

/// Pages in the write-ahead log before it is folded into the database: 16 MiB, so that the two syncs
/// this costs come once in thousands of batches.
const CHECKPOINT_PAGES: u32 = 4096;

/// How long a program that looks at the database, like a backup, may take.
const BUSY_MILLIS: u32 = 2_000;

/// Facts in one row when the log is written anew: about as many as a busy batch has.
const REWRITE_BATCH: usize = 1024;

pub(crate) struct Facts {
    pub(super) db: Connection,
    pub(super) path: PathBuf,
}

/// A result that arrived by HTTP and waits for its node's `Done`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) attempt: Attempt,
    pub(crate) job: JobId,
    pub(crate) place: Place,
}

/// All that one batch makes durable.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) facts: Vec<Fact>,
    pub(crate) notes: Vec<(JobId, Note)>,
    pub(crate) stored: Vec<Stored>,
    /// Stored results that are merged or of no use any more.
    pub(crate) settled: Vec<Attempt>,
    /// Jobs whose notes are of no use any more.
    pub(crate) forgotten: Vec<JobId>,
    pub(crate) keys: Vec<Keyed>,
    /// Keys whose jobs are gone.
    pub(crate) unkeyed: Vec<String>,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.facts.is_empty() && self.is_only_facts()
    }

    fn is_only_facts(&self) -> bool {
        self.notes.is_empty()
            && self.stored.is_empty()
            && self.settled.is_empty()
            && self.forgotten.is_empty()
            && self.keys.is_empty()
            && self.unkeyed.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.facts.clear();
        self.notes.clear();
        self.stored.clear();
        self.settled.clear();
        self.forgotten.clear();
        self.keys.clear();
        self.unkeyed.clear();
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("the disk is full")]
    Full,
    /// Another program holds it, or the disk fails now: perhaps not later.
    #[error("{0}")]
    Busy(String),
    #[error("{0}")]
    Broken(String),
}

impl Facts {
    pub(crate) fn open(path: &Path) -> Result<Facts, OpenError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let bad = |error: rusqlite::Error| open_error(path, &error);
        let db = Connection::open_with_flags(path, flags).map_err(bad)?;
        // The folder's lock keeps others out; without shared memory commits need fewer calls.
        db.execute_batch(&format!(
            "PRAGMA busy_timeout = {BUSY_MILLIS}; PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL;
             PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES};"
        ))
        .map_err(bad)?;
        let found: u32 = db.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(bad)?;
        if found > FORMAT {
            return Err(OpenError::NewerDatabase { path: path.into(), found, newest: FORMAT });
        }
        if (1..FORMAT).contains(&found) {
            return Err(OpenError::OlderDatabase { path: path.into(), found, reads: FORMAT });
        }
        if found == 0 {
            db.execute_batch(&format!("BEGIN; {FACTS_TABLE} {TABLES} COMMIT;")).map_err(bad)?;
        }
        db.execute_batch(KEYS_TABLE).map_err(bad)?;
        Ok(Facts { db, path: path.into() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Every fact, oldest first.
    pub(crate) fn log(&self) -> Log<'_> {
        Log::new(self, "facts")
    }

    pub(crate) fn notes(&self) -> Result<Vec<(JobId, Note)>, OpenError> {
        let rows = self.rows("SELECT job, note FROM notes")?;
        Ok(rows.into_iter().map(|(job, note)| (JobId(job), note)).collect())
    }

    pub(crate) fn stored(&self) -> Result<Vec<Stored>, OpenError> {
        let rows = self.rows("SELECT attempt, place FROM stored")?;
        let stored = |(attempt, (job, place))| Stored { attempt: Attempt(attempt), job, place };
        Ok(rows.into_iter().map(stored).collect())
    }

    pub(crate) fn keys(&self) -> Result<Vec<Keyed>, OpenError> {
        let bad = |error: rusqlite::Error| open_error(&self.path, &error);
        let mut statement = self.db.prepare("SELECT key, kept FROM keys").map_err(bad)?;
        let mut rows = statement.query([]).map_err(bad)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().map_err(bad)? {
            let name: String = row.get(0).map_err(bad)?;
            let bytes = row.get_ref(1).and_then(|value| Ok(value.as_blob()?)).map_err(bad)?;
            let (job, body) = postcard::from_bytes(bytes).map_err(|error| {
                let message = format!("the key {name:?}: {error}");
                OpenError::Database { path: self.path.clone(), message }
            })?;
            all.push(Keyed { key: Key { name, body }, job });
        }
        Ok(all)
    }

    /// All rows of a number and something that was written with postcard.
    fn rows<T: DeserializeOwned>(&self, sql: &str) -> Result<Vec<(u64, T)>, OpenError> {
        let bad = |error: rusqlite::Error| open_error(&self.path, &error);
        let mut statement = self.db.prepare(sql).map_err(bad)?;
        let mut rows = statement.query([]).map_err(bad)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().map_err(bad)? {
            let number: i64 = row.get(0).map_err(bad)?;
            let bytes = row.get_ref(1).and_then(|value| Ok(value.as_blob()?)).map_err(bad)?;
            let thing = postcard::from_bytes(bytes).map_err(|error| {
                let message = format!("row {number} of ({sql}): {error}");
                OpenError::Database { path: self.path.clone(), message }
            })?;
            all.push((number.cast_unsigned(), thing));
        }
        Ok(all)
    }

    /// Writes the log anew with what `pick` makes of each fact, and then `end`; all or nothing.
    pub(crate) fn rewrite(
        &mut self,
        mut pick: impl FnMut(Fact, &mut Vec<Fact>),
        end: impl IntoIterator<Item = Fact>,
    ) -> Result<(), OpenError> {
        let bad = |error: rusqlite::Error| open_error(&self.path, &error);
        let unwritten = |error: StoreError| match error {
            StoreError::Full => OpenError::DiskFull { path: self.path.clone() },
            StoreError::Busy(message) | StoreError::Broken(message) => {
                OpenError::Database { path: self.path.clone(), message }
            }
        };
        let transaction = self.db.unchecked_transaction().map_err(bad)?;
        transaction
            .execute_batch("ALTER TABLE facts RENAME TO old; ")
            .and_then(|()| transaction.execute_batch(FACTS_TABLE))
            .map_err(bad)?;
        let mut log = Log::new(self, "old");
        let mut batch = Vec::new();
        for fact in log.by_ref() {
            pick(fact, &mut batch);
            if batch.len() >= REWRITE_BATCH {
                write_facts(&transaction, &batch).map_err(unwritten)?;
                batch.clear();
            }
        }
        log.end()?;
        batch.extend(end);
        for batch in batch.chunks(REWRITE_BATCH) {
            write_facts(&transaction, batch).map_err(unwritten)?;
        }
        transaction.execute_batch("DROP TABLE old").and_then(|()| transaction.commit()).map_err(bad)
    }

    /// Makes a batch durable, all or nothing.
    pub(crate) fn write(&mut self, batch: &Batch) -> Result<(), StoreError> {
        if batch.is_only_facts() {
            // A lone statement is its own transaction.
            return write_facts(&self.db, &batch.facts);
        }
        let transaction = self.db.transaction()?;
        write_facts(&transaction, &batch.facts)?;
        for (job, note) in &batch.notes {
            let bytes = postcard::to_allocvec(note).map_err(broken)?;
            let mut insert =
                transaction.prepare_cached("INSERT OR REPLACE INTO notes VALUES (?, ?)")?;
            insert.execute(params![job.0.cast_signed(), bytes])?;
        }
        for Stored { attempt, job, place } in &batch.stored {
            let bytes = postcard::to_allocvec(&(job, place)).map_err(broken)?;
            let mut insert =
                transaction.prepare_cached("INSERT OR REPLACE INTO stored VALUES (?, ?)")?;
            insert.execute(params![attempt.0.cast_signed(), bytes])?;
        }
        for attempt in &batch.settled {
            let mut delete = transaction.prepare_cached("DELETE FROM stored WHERE attempt = ?")?;
            delete.execute(params![attempt.0.cast_signed()])?;
        }
        for job in &batch.forgotten {
            let mut delete = transaction.prepare_cached("DELETE FROM notes WHERE job = ?")?;
            delete.execute(params![job.0.cast_signed()])?;
        }
        write_keys(&transaction, batch)?;
        Ok(transaction.commit()?)
    }
}

fn write_keys(db: &Connection, batch: &Batch) -> Result<(), StoreError> {
    for Keyed { key, job } in &batch.keys {
        let kept = postcard::to_allocvec(&(job, key.body)).map_err(broken)?;
        let mut insert = db.prepare_cached("INSERT OR REPLACE INTO keys VALUES (?, ?)")?;
        insert.execute(params![key.name, kept])?;
    }
    for name in &batch.unkeyed {
        db.prepare_cached("DELETE FROM keys WHERE key = ?")?.execute(params![name])?;
    }
    Ok(())
}

fn write_facts(db: &Connection, facts: &[Fact]) -> Result<(), StoreError> {
    if facts.is_empty() {
        return Ok(());
    }
    let bytes = postcard::to_allocvec(facts).map_err(broken)?;
    let mut insert = db.prepare_cached("INSERT INTO facts (batch) VALUES (?)")?;
    insert.execute(params![bytes])?;
    Ok(())
}

fn broken(error: postcard::Error) -> StoreError {
    StoreError::Broken(error.to_string())
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::Full,
            Some(
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::SystemIoFailure
                | ErrorCode::ReadOnly
                | ErrorCode::CannotOpen,
            ) => StoreError::Busy(error.to_string()),
            _ => StoreError::Broken(error.to_string()),
        }
    }
}

pub(super) fn open_error(path: &Path, error: &rusqlite::Error) -> OpenError {
    let path = path.into();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => OpenError::DiskFull { path },
        Some(ErrorCode::PermissionDenied | ErrorCode::ReadOnly | ErrorCode::CannotOpen) => {
            OpenError::Forbidden { path }
        }
        // The folder is ours by its lock, so it is no other coordinator.
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::Database {
            path,
            message: "another program holds it (a backup, or a database tool?); close that and start again".into(),
        },
        _ => OpenError::Database { path, message: error.to_string() },
    }
}
