//! Where a result goes. A file appears under its name only when it is whole.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::fail::{Fail, is_full};

/// A half-written result. Dropped without [`Sink::finish`], it leaves no trace.
pub(crate) struct Sink {
    path: PathBuf,
    /// The file beside the target that is written first; `None` for pipes and devices, written
    /// directly.
    temporary: Option<PathBuf>,
    writer: Option<BufWriter<Box<dyn Write + Send>>>,
    /// The same file where it is one: bytes of other files are copied into it by the system.
    file: Option<File>,
}

impl Sink {
    /// Opens the way to `path`; `-` is stdout.
    pub(crate) fn create(path: &Path) -> Result<Sink, Fail> {
        let open = |writer: Box<dyn Write + Send>, temporary, file| Sink {
            path: path.to_owned(),
            temporary,
            writer: Some(BufWriter::with_capacity(1 << 20, writer)),
            file,
        };
        if path.as_os_str() == "-" {
            return Ok(open(Box::new(io::stdout()), None, None));
        }
        let cannot = |error: io::Error| Fail::writing(path, &error);
        match fs::metadata(path) {
            Ok(there) if there.is_dir() => {
                Err(Fail::input(format!("{} is a folder: name a file instead", path.display())))
            }
            Ok(there) if !there.is_file() => {
                let device = fs::OpenOptions::new().write(true).open(path).map_err(cannot)?;
                Ok(open(Box::new(device), None, None))
            }
            _ => {
                let temporary = beside(path)?;
                let file =
                    File::create_new(&temporary).map_err(|error| missing_folder(path, error))?;
                let same = file.try_clone().map_err(cannot)?;
                Ok(open(Box::new(file), Some(temporary), Some(same)))
            }
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Fail> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.write_all(bytes).map_err(|error| self.fail(&error))
    }

    /// Whether [`Sink::append`] has a file to copy into.
    pub(crate) fn is_file(&self) -> bool {
        self.file.is_some()
    }

    /// Copies part of another file behind what is written, without looking at it. Says whether it did: the system does not say
    /// which of the two files is to blame, so unless this one's disk is full, the same may go well on another way.
    pub(crate) fn append(&mut self, from: &File, (offset, size): (u64, u64)) -> Result<bool, Fail> {
        self.flush()?;
        let Some(mut file) = self.file.as_ref() else { return Ok(false) };
        let mut part = from;
        let copied = part
            .seek(SeekFrom::Start(offset))
            .and_then(|_| io::copy(&mut part.take(size), &mut file));
        match copied {
            Ok(copied) => Ok(copied == size),
            Err(error) if is_full(&error) => Err(self.fail(&error)),
            Err(_) => Ok(false),
        }
    }

    /// What is written next begins the file anew.
    pub(crate) fn rewind(&mut self) -> Result<(), Fail> {
        self.flush()?;
        let Some(mut file) = self.file.as_ref() else { return Ok(()) };
        let emptied = file.rewind().and_then(|()| file.set_len(0));
        emptied.map_err(|error| self.fail(&error))
    }

    /// What was written so far goes to whoever reads a pipe.
    pub(crate) fn flush(&mut self) -> Result<(), Fail> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.flush().map_err(|error| self.fail(&error))
    }

    /// Puts the whole result in its place.
    pub(crate) fn finish(mut self) -> Result<(), Fail> {
        if let Some(mut writer) = self.writer.take() {
            writer.flush().map_err(|error| self.fail(&error))?;
        }
        self.file = None;
        if let Some(temporary) = &self.temporary {
            fs::rename(temporary, &self.path).map_err(|error| self.fail(&error))?;
            self.temporary = None;
        }
        Ok(())
    }

    fn fail(&self, error: &io::Error) -> Fail {
        let is_pipe = self.temporary.is_none();
        if is_pipe && error.kind() == io::ErrorKind::BrokenPipe {
            return Fail::PipeClosed;
        }
        Fail::writing(&self.path, error)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Closed first: Windows deletes no open file.
            (self.writer, self.file) = (None, None);
            let _ = fs::remove_file(temporary);
        }
    }
}

/// A name nobody else uses, in the same folder, so that the rename cannot cross file systems.
fn beside(path: &Path) -> Result<PathBuf, Fail> {
    if path.file_name().is_none() {
        return Err(Fail::input(format!("{} is not the name of a file", path.display())));
    }
    let mut random = [0; 6];
    getrandom::fill(&mut random)
        .map_err(|error| Fail::world("internal", format!("no random numbers: {error}")))?;
    let [a, b, c, d, e, f] = random;
    let number = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
    // Without the file's own name, which may be as long as names can be.
    Ok(path.with_file_name(format!(".shoal-{number:x}.part")))
}

fn missing_folder(path: &Path, error: io::Error) -> Fail {
    if error.kind() == io::ErrorKind::NotFound {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        return Fail::input(format!(
            "cannot write {}: the folder {} does not exist",
            path.display(),
            folder.display()
        ));
    }
    Fail::writing(path, &error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> PathBuf {
        let mut random = [0; 8];
        getrandom::fill(&mut random).expect("random numbers");
        let folder =
            std::env::temp_dir().join(format!("shoal-sink-{:x}", u64::from_le_bytes(random)));
        fs::create_dir(&folder).expect("a new folder");
        folder
    }

    #[test]
    fn a_file_appears_only_when_it_is_whole() {
        let folder = folder();
        let path = folder.join("out.npy");
        let mut sink = Sink::create(&path).expect("a sink");
        sink.write(b"half").expect("written");
        drop(sink);
        assert_eq!(fs::read_dir(&folder).expect("readable").count(), 0);
        let mut sink = Sink::create(&path).expect("a sink");
        sink.write(b"whole").expect("written");
        assert!(!path.exists());
        sink.finish().expect("finished");
        assert_eq!(fs::read(&path).expect("the result"), b"whole");
        assert_eq!(fs::read_dir(&folder).expect("readable").count(), 1);
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn parts_of_other_files_come_behind_what_is_written() {
        let folder = folder();
        let (from, path) = (folder.join("log"), folder.join("out.npy"));
        let bytes: Vec<u8> = (0..200_000_u32).map(|at| (at / 3) as u8).collect();
        fs::write(&from, &bytes).expect("written");
        let from = File::open(&from).expect("there");
        let mut sink = Sink::create(&path).expect("a sink");
        assert!(sink.is_file());
        sink.write(b"head").expect("written");
        assert!(sink.append(&from, (150_000, 50_000)).expect("writable"));
        assert!(sink.append(&from, (7, 100_000)).expect("writable"));
        sink.write(b"tail").expect("written");
        sink.finish().expect("finished");
        let parts = [b"head", &bytes[150_000..], &bytes[7..100_007], b"tail"];
        assert!(fs::read(&path).expect("the result") == parts.concat());
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn a_file_that_cannot_be_copied_from_leaves_nothing_behind() {
        let folder = folder();
        let (short, path) = (folder.join("log"), folder.join("out.npy"));
        fs::write(&short, "some").expect("written");
        let mut sink = Sink::create(&path).expect("a sink");
        sink.write(b"head").expect("written");
        let closed = File::options().write(true).open(&short).expect("there");
        assert!(!sink.append(&closed, (0, 4)).expect("writable"), "it is not open for reading");
        let short = File::open(&short).expect("there");
        assert!(!sink.append(&short, (0, 5)).expect("writable"), "there are four bytes only");
        sink.rewind().expect("a file");
        sink.write(b"new").expect("written");
        sink.finish().expect("finished");
        assert_eq!(fs::read(&path).expect("the result"), b"new");
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn a_name_may_be_as_long_as_names_can_be() {
        let folder = folder();
        let path = folder.join("n".repeat(255));
        let mut sink = Sink::create(&path).expect("a sink");
        sink.write(b"whole").expect("written");
        sink.finish().expect("finished");
        assert_eq!(fs::read(&path).expect("the result"), b"whole");
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn a_missing_folder_and_a_folder_are_told() {
        let folder = folder();
        let Err(Fail::Input { message, .. }) = Sink::create(&folder.join("no/out.npy")) else {
            panic!("the folder does not exist");
        };
        assert!(message.contains("does not exist"), "{message}");
        let Err(Fail::Input { message, .. }) = Sink::create(&folder) else {
            panic!("a folder is no file");
        };
        assert!(message.contains("is a folder"), "{message}");
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_called_so() {
        let mut sink = Sink::create(Path::new("/dev/full")).expect("a device");
        sink.write(&[0; 10]).expect("buffered");
        let Err(Fail::World { code, .. }) = sink.finish() else { panic!("/dev/full is full") };
        assert_eq!(code, "disk_full");
        let mut sink = Sink::create(Path::new("/dev/full")).expect("a device");
        sink.file = File::options().write(true).open("/dev/full").ok();
        let from = File::open("/proc/self/exe").expect("this program");
        let Err(Fail::World { code, message }) = sink.append(&from, (0, 10)) else {
            panic!("/dev/full is full")
        };
        assert!(code == "disk_full" && message.contains("/dev/full"), "{code} {message}");
    }
}
