//! NumPy's `.npz` files: a zip archive with an `.npy` file for each array. Only what NumPy writes is read: entries that are
//! stored or deflated. Reading never panics, whatever the bytes.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use flate2::Crc;
use flate2::read::DeflateDecoder;

/// The end of an archive may be followed by a comment of this length.
const MAX_COMMENT: u64 = 0xffff;
/// Lists of entries up to this size are read: some hundred thousand arrays.
const MAX_LIST: u64 = 32 << 20;
const END: [u8; 4] = *b"PK\x05\x06";
const END_BYTES: usize = 22;
/// Of archives over 4 GiB: where their end stands, and their end.
const END_64_AT: [u8; 4] = *b"PK\x06\x07";
const END_64_AT_BYTES: u64 = 20;
const END_64: [u8; 4] = *b"PK\x06\x06";
const END_64_BYTES: usize = 56;
const ENTRY: [u8; 4] = *b"PK\x01\x02";
const ENTRY_BYTES: usize = 46;
const LOCAL: [u8; 4] = *b"PK\x03\x04";
const LOCAL_BYTES: usize = 30;
/// In the place of a number that stands among the extra fields.
const ELSEWHERE: u64 = 0xffff_ffff;
const EXTRA_64: u16 = 1;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;
const ENCRYPTED: u16 = 1;
/// What is read at a time to be checked.
const PIECE: usize = 1 << 20;

/// An array of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Without its ending.
    pub(crate) name: String,
    method: u16,
    flags: u16,
    /// The checksum of its content.
    crc: u32,
    packed: u64,
    size: u64,
    at: u64,
}

/// Where an array's bytes are.
#[derive(Debug)]
pub(crate) enum Content {
    /// As they are, in the archive.
    Plain {
        start: u64,
        size: u64,
    },
    Unpacked(Vec<u8>),
}

/// The arrays of an archive, in its order.
pub(crate) fn list(file: &mut File) -> io::Result<Vec<Entry>> {
    let size = file.seek(SeekFrom::End(0))?;
    let tail = size.min(END_BYTES as u64 + MAX_COMMENT);
    let bytes = part(file, size - tail, tail)?;
    let end = bytes.windows(END_BYTES).rposition(|window| window.starts_with(&END));
    let end = end.ok_or_else(|| broken("it does not end as a zip archive"))?;
    let (mut count, mut length, mut start) =
        (two(&bytes, end + 10), four(&bytes, end + 12), four(&bytes, end + 16));
    if start == ELSEWHERE || length == ELSEWHERE || count == 0xffff {
        let at = (size - tail + end as u64).checked_sub(END_64_AT_BYTES);
        let place = part(file, at.unwrap_or(0), END_64_AT_BYTES)?;
        if place.starts_with(&END_64_AT) {
            let end = part(file, eight(&place, 8), END_64_BYTES as u64)?;
            if !end.starts_with(&END_64) {
                return Err(broken("its end is not where it says"));
            }
            (count, length, start) = (eight(&end, 32), eight(&end, 40), eight(&end, 48));
        }
    }
    if length > MAX_LIST {
        return Err(broken("its list of arrays is too long"));
    }
    let bytes = part(file, start, length)?;
    let (mut at, mut entries) = (0, Vec::new());
    while (entries.len() as u64) < count {
        let (entry, next) = entry(&bytes, at)?;
        entries.push(entry);
        at = next;
    }
    Ok(entries)
}

fn entry(list: &[u8], at: usize) -> io::Result<(Entry, usize)> {
    let cut = || broken("its list of arrays is cut short");
    let head = list.get(at..at + ENTRY_BYTES).filter(|head| head.starts_with(&ENTRY));
    let head = head.ok_or_else(cut)?;
    let (name, extra, comment) = (two(head, 28), two(head, 30), two(head, 32));
    let (name, extra, comment) = (name as usize, extra as usize, comment as usize);
    let start = at + ENTRY_BYTES;
    let words = list.get(start..start + name).ok_or_else(cut)?;
    let fields = list.get(start + name..start + name + extra).ok_or_else(cut)?;
    let mut long = long_numbers(fields).into_iter();
    let mut number = |at| match four(head, at) {
        ELSEWHERE => long.next().ok_or_else(cut),
        number => Ok(number),
    };
    let (size, packed) = (number(24)?, number(20)?);
    let at = number(42)?;
    let name_of = String::from_utf8_lossy(words).into_owned();
    let entry = Entry {
        name: name_of.strip_suffix(".npy").unwrap_or(&name_of).to_owned(),
        method: two(head, 10) as u16,
        flags: two(head, 8) as u16,
        crc: four(head, 16) as u32,
        packed,
        size,
        at,
    };
    Ok((entry, start + name + extra + comment))
}

/// Numbers that are too long for their places, in the order of these.
fn long_numbers(mut fields: &[u8]) -> Vec<u64> {
    while let Some((head, rest)) = fields.split_at_checked(4) {
        let Some((field, rest)) = rest.split_at_checked(two(head, 2) as usize) else { break };
        if two(head, 0) as u16 == EXTRA_64 {
            return field.as_chunks::<8>().0.iter().map(|it| u64::from_le_bytes(*it)).collect();
        }
        fields = rest;
    }
    Vec::new()
}

impl Entry {
    /// Its `.npy` file; `most` bytes of it are unpacked at most.
    pub(crate) fn content(&self, file: &mut File, most: u64) -> io::Result<Content> {
        if self.flags & ENCRYPTED != 0 {
            return Err(broken("the array is encrypted"));
        }
        let head = part(file, self.at, LOCAL_BYTES as u64)?;
        if !head.starts_with(&LOCAL) {
            return Err(broken("the array is not where its list says"));
        }
        let start = self.at + LOCAL_BYTES as u64 + two(&head, 26) + two(&head, 28);
        match self.method {
            STORED => {
                self.check(file, start)?;
                Ok(Content::Plain { start, size: self.size })
            }
            DEFLATED if self.size > most => Err(broken("the array is too large to be unpacked")),
            DEFLATED => {
                file.seek(SeekFrom::Start(start))?;
                let mut bytes = Vec::new();
                DeflateDecoder::new(file.take(self.packed))
                    .take(self.size + 1)
                    .read_to_end(&mut bytes)?;
                if bytes.len() as u64 != self.size {
                    return Err(broken("the array is not as long as its list says"));
                }
                let mut crc = Crc::new();
                crc.update(&bytes);
                self.fits(&crc)?;
                Ok(Content::Unpacked(bytes))
            }
            other => Err(broken(&format!("the array is packed by method {other}"))),
        }
    }

    /// Reads what is stored as it is once, a piece at a time.
    fn check(&self, file: &mut File, start: u64) -> io::Result<()> {
        file.seek(SeekFrom::Start(start))?;
        let (mut crc, mut left, mut piece) = (Crc::new(), self.size, vec![0; PIECE]);
        while left > 0 {
            let some = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            file.read_exact(&mut piece[..some]).map_err(|_| broken("it is cut short"))?;
            crc.update(&piece[..some]);
            left -= some as u64;
        }
        self.fits(&crc)
    }

    fn fits(&self, crc: &Crc) -> io::Result<()> {
        match crc.sum() == self.crc {
            true => Ok(()),
            false => Err(broken("an array was changed: its checksum is another one")),
        }
    }
}

fn part(file: &mut File, start: u64, size: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = vec![0; usize::try_from(size).map_err(io::Error::other)?];
    file.read_exact(&mut bytes).map_err(|_| broken("it is cut short"))?;
    Ok(bytes)
}

fn broken(why: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("it is no .npz file that can be read: {why}"),
    )
}

/// Little-endian numbers; what is not there is 0, and no head is so short.
fn number<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let all = bytes.get(at..at + N).unwrap_or_default();
    all.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn two(bytes: &[u8], at: usize) -> u64 {
    number::<2>(bytes, at)
}

fn four(bytes: &[u8], at: usize) -> u64 {
    number::<4>(bytes, at)
}

fn eight(bytes: &[u8], at: usize) -> u64 {
    number::<8>(bytes, at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::DeflateEncoder;

    /// An archive as NumPy writes it: each array with its name, packed or not.
    fn archive(arrays: &[(&str, &[u8], bool)]) -> Vec<u8> {
        let (mut bytes, mut list) = (Vec::new(), Vec::new());
        let two = |number: usize| (number as u16).to_le_bytes();
        let four = |number: usize| (number as u32).to_le_bytes();
        for (name, content, packed) in arrays {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(content).expect("memory");
            let method = if *packed { DEFLATED } else { STORED };
            let stored = if *packed { encoder.finish().expect("memory") } else { content.to_vec() };
            let name = format!("{name}.npy");
            let at = bytes.len();
            let mut crc = Crc::new();
            crc.update(content);
            let about = [
                &two(20)[..],
                &two(0),
                &method.to_le_bytes(),
                &[0; 4],
                &crc.sum().to_le_bytes(),
                &four(stored.len()),
                &four(content.len()),
                &two(name.len()),
            ]
            .concat();
            // NumPy leaves room in front of each array for longer numbers.
            bytes.extend(
                [&LOCAL[..], &about, &two(20), name.as_bytes(), &[0; 20], &stored].concat(),
            );
            let rest = [&two(0)[..], &two(0), &[0; 8], &four(at), name.as_bytes()].concat();
            list.extend([&ENTRY[..], &two(20), &about, &rest].concat());
        }
        let (start, count) = (bytes.len(), arrays.len());
        bytes.extend(&list);
        let end = [&END[..], &[0; 4], &two(count), &two(count), &four(list.len()), &four(start)];
        bytes.extend([&end.concat()[..], &two(0)].concat());
        bytes
    }

    fn file(name: &str, bytes: &[u8]) -> (std::path::PathBuf, File) {
        let path = std::env::temp_dir().join(format!("shoal-npz-{name}-{}", std::process::id()));
        std::fs::write(&path, bytes).expect("a file");
        let file = File::open(&path).expect("a file");
        (path, file)
    }

    #[test]
    fn arrays_are_found_by_name_stored_or_packed() {
        let long = [7; 5000];
        let bytes = archive(&[("a", b"plain", false), ("b/c", &long, true)]);
        let (path, mut file) = file("both", &bytes);
        let entries = list(&mut file).expect("an archive");
        let names: Vec<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["a", "b/c"]);
        let Ok(Content::Plain { start, size }) = entries[0].content(&mut file, 0) else {
            panic!("it is stored as it is");
        };
        assert_eq!(&bytes[start as usize..][..size as usize], b"plain");
        let Ok(Content::Unpacked(unpacked)) = entries[1].content(&mut file, 5000) else {
            panic!("it is packed");
        };
        assert_eq!(unpacked, long);
        assert!(entries[1].content(&mut file, 4999).is_err(), "too large");
        std::fs::remove_file(path).expect("removed");
    }

    #[test]
    fn a_changed_array_is_refused_stored_or_packed() {
        // Without a pattern, so that each bit counts.
        let content: Vec<u8> = (0..5000_u32)
            .map(|n| (n.wrapping_mul(n).wrapping_mul(2_654_435_761) >> 16) as u8)
            .collect();
        let bytes = archive(&[("a", &content, false), ("b", &content, true)]);
        let (path, mut whole) = file("whole", &bytes);
        for entry in list(&mut whole).expect("an archive") {
            let Entry { at, packed, .. } = entry;
            let mut changed = bytes.clone();
            let content = at as usize + LOCAL_BYTES + entry.name.len() + ".npy".len() + 20;
            changed[content + packed as usize / 2] ^= 1;
            let (other, mut changed) = file("flipped", &changed);
            assert!(entry.content(&mut whole, 1 << 20).is_ok());
            assert!(entry.content(&mut changed, 1 << 20).is_err(), "{entry:?}");
            std::fs::remove_file(other).expect("removed");
        }
        std::fs::remove_file(path).expect("removed");
    }

    #[test]
    fn whatever_is_cut_or_changed_is_refused_or_read_and_never_panics() {
        let bytes = archive(&[("a", b"plain", false), ("b", &[7; 100], true)]);
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0xff;
            for bytes in [&bytes[..at], &changed] {
                let (path, mut file) = file("broken", bytes);
                for entry in list(&mut file).unwrap_or_default() {
                    let _ = entry.content(&mut file, 1 << 20);
                }
                std::fs::remove_file(path).expect("removed");
            }
        }
        let (path, mut file) = file("none", b"\x93NUMPY");
        assert!(list(&mut file).is_err_and(|error| error.to_string().contains("zip")));
        std::fs::remove_file(path).expect("removed");
    }
}
