//! What cases do not reach: bounds, bytes that are elsewhere, and calls that make no sense.

use super::*;

/// A program's memory without a program.
struct Memory {
    bytes: Vec<u8>,
    now: u64,
    /// Bytes that are left of it.
    stdin: u32,
}

impl Memory {
    fn new() -> Memory {
        Memory { bytes: vec![0; 1 << 20], now: 0, stdin: 1000 }
    }

    fn text(&mut self, at: u32, text: &str) -> Text {
        assert_eq!(self.write(at, text.as_bytes()), Ok(()));
        Text { at, len: text.len() as u32 }
    }

    fn word(&self, at: u32) -> u32 {
        let at = at as usize;
        u32::from_le_bytes(self.bytes[at..at + 4].try_into().expect("four"))
    }
}

impl Guest for Memory {
    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read(&self, at: u32, into: &mut [u8]) -> Result<(), Errno> {
        let at = at as usize;
        into.copy_from_slice(self.bytes.get(at..at + into.len()).ok_or(Errno::FAULT)?);
        Ok(())
    }

    fn write(&mut self, at: u32, bytes: &[u8]) -> Result<(), Errno> {
        let at = at as usize;
        let place = self.bytes.get_mut(at..at + bytes.len()).ok_or(Errno::FAULT)?;
        place.copy_from_slice(bytes);
        Ok(())
    }

    fn copy(&mut self, file: u32, from: u64, at: u32, len: u32) -> Result<(), Errno> {
        let bytes: Vec<u8> = (0..u64::from(len)).map(|i| (from + i) as u8 ^ file as u8).collect();
        self.write(at, &bytes)
    }

    fn stdin_left(&self) -> u64 {
        u64::from(self.stdin)
    }

    fn stdin(&mut self, at: u32, len: u32) -> Result<(), Errno> {
        self.stdin -= len;
        self.write(at, &vec![b'i'; len as usize])
    }

    fn stamp(&mut self) -> u64 {
        self.now += 1;
        self.now
    }
}

fn opened(files: &mut Files, memory: &mut Memory, fd: u32, path: &str) -> Result<u32, Errno> {
    let path = memory.text(0, path);
    let opening = Opening { lookup: 0, flags: 1, rights: 66, inheriting: 0, fd_flags: 0 };
    files.path_open(memory, fd, path, opening, 512).map(|()| memory.word(512))
}

fn write(files: &mut Files, memory: &mut Memory, fd: u32, len: u32) -> Result<u32, Errno> {
    assert_eq!(memory.write(600, &[4096_u32.to_le_bytes(), len.to_le_bytes()].concat()), Ok(()));
    files.fd_write(memory, fd, Pieces { at: 600, count: 1 }, 512).map(|()| memory.word(512))
}

#[test]
fn what_is_written_has_a_bound_and_what_is_removed_makes_room() {
    let (mut files, mut memory) = (Files::new(10_000, None), Memory::new());
    let fd = opened(&mut files, &mut memory, 3, "a").expect("made");
    assert_eq!(write(&mut files, &mut memory, fd, 9000), Ok(9000));
    // As a disk does it: what there is room for, then nothing.
    let rest = 10_000 - 9000 - 256 - 1;
    assert_eq!(write(&mut files, &mut memory, fd, 9000), Ok(rest));
    assert_eq!(write(&mut files, &mut memory, fd, 1), Err(Errno::NOSPC));
    assert_eq!(files.fd_filestat_set_size(&mut memory, fd, 1 << 40), Err(Errno::NOSPC));
    assert_eq!(opened(&mut files, &mut memory, 3, "b"), Err(Errno::NOSPC));
    let path = memory.text(0, "a");
    assert_eq!(files.path_unlink_file(&mut memory, 3, path), Ok(()));
    assert_eq!(
        write(&mut files, &mut memory, fd, 300),
        Ok(257),
        "its name's room; it is still open"
    );
    assert_eq!(files.fd_close(fd), Ok(()));
    let fd = opened(&mut files, &mut memory, 3, "b").expect("room again");
    assert_eq!(write(&mut files, &mut memory, fd, 9000), Ok(9000));
}

#[test]
fn entries_and_open_files_have_a_bound() {
    let (mut files, mut memory) = (Files::new(1 << 30, None), Memory::new());
    let mut last = Ok(0);
    for at in 0.. {
        last = opened(&mut files, &mut memory, 3, &format!("f{at}"));
        let Ok(fd) = last else { break };
        assert!(at < MAX_ENTRIES + 1);
        assert_eq!(files.fd_close(fd), Ok(()));
    }
    assert_eq!(last, Err(Errno::NOSPC));
    let mut open = 5;
    while opened(&mut files, &mut memory, 3, "f0").is_ok() {
        open += 1;
    }
    assert_eq!(open, MAX_OPEN);
}

#[test]
fn a_shared_folder_is_read_where_its_bytes_are() {
    let shared = Arc::new(Shared::new([("z", 4), ("d//./a", 300)]));
    let (mut files, mut memory) = (Files::new(1 << 20, Some(shared)), Memory::new());
    let path = memory.text(0, "d/a");
    let opening = Opening { lookup: 0, flags: 0, rights: 2, inheriting: 0, fd_flags: 0 };
    assert_eq!(files.path_open(&mut memory, 3, path, opening, 512), Ok(()));
    let fd = memory.word(512);
    assert_eq!(
        memory.write(600, &[4096_u32.to_le_bytes(), 500_u32.to_le_bytes()].concat()),
        Ok(())
    );
    let pieces = Pieces { at: 600, count: 1 };
    assert_eq!(files.fd_pread(&mut memory, fd, pieces, (10, 512)), Ok(()));
    assert_eq!((memory.word(512), memory.bytes[4096]), (290, 10 ^ 1));
}

/// Makes a file with these bytes; its descriptor stays open.
fn made(files: &mut Files, memory: &mut Memory, (fd, path): (u32, &str), bytes: &[u8]) {
    let file = opened(files, memory, fd, path).expect("made");
    assert_eq!(memory.write(4096, bytes), Ok(()));
    let piece = [4096_u32.to_le_bytes(), (bytes.len() as u32).to_le_bytes()].concat();
    assert_eq!(memory.write(600, &piece), Ok(()));
    assert_eq!(files.fd_write(memory, file, Pieces { at: 600, count: 1 }, 512), Ok(()));
}

#[test]
fn files_in_out_come_back_in_order_and_nothing_else_does() {
    let (mut files, mut memory) = (Files::new(1 << 20, None).with_out(), Memory::new());
    let (tmp, out) = (3, 5);
    for folder in ["d", "empty"] {
        let path = memory.text(0, folder);
        assert_eq!(files.path_create_directory(&mut memory, out, path), Ok(()));
    }
    made(&mut files, &mut memory, (out, "d/z"), b"deep");
    made(&mut files, &mut memory, (out, "d-"), b"before d/z");
    made(&mut files, &mut memory, (tmp, "kept"), b"in /tmp");
    made(&mut files, &mut memory, (tmp, "moved"), b"from /tmp");
    let (from, to) = (memory.text(0, "moved"), memory.text(64, "here"));
    assert_eq!(files.path_rename(&mut memory, (tmp, from), (out, to)), Ok(()));
    let (old, new) = (memory.text(0, "here"), memory.text(64, "again"));
    assert_eq!(files.path_link(&mut memory, (out, 0, old), (out, new)), Ok(()));
    let (target, link) = (memory.text(0, "../../etc/passwd"), memory.text(64, "link"));
    assert_eq!(files.path_symlink(&mut memory, target, out, link), Ok(()));
    files.own.check();
    let packed = files.left(1 << 20).expect("little");
    let left = shoal_kinds::exec::left::unpack(&packed).expect("whole");
    let expected: [(&str, &[u8]); 4] =
        [("again", b"from /tmp"), ("d-", b"before d/z"), ("d/z", b"deep"), ("here", b"from /tmp")];
    assert_eq!(left, expected);
    assert_eq!(files.left(packed.len() as u64), Some(packed.clone()));
    assert_eq!(files.left(packed.len() as u64 - 1), None, "one byte too many");
}

#[test]
fn without_out_descriptors_and_inodes_are_those_of_before() {
    let memory = &mut Memory::new();
    let (mut plain, mut with) = (Files::new(1 << 20, None), Files::new(1 << 20, None).with_out());
    assert_eq!((plain.left(0), with.left(0)), (Some(Vec::new()), Some(Vec::new())));
    assert_eq!(plain.fd_prestat_get(memory, 5, 512), Err(Errno::BADF));
    assert_eq!(with.fd_prestat_get(memory, 5, 512), Ok(()));
    assert_eq!(memory.word(516), 4, "bytes of /out");
    for (files, fd) in [(&mut plain, 5), (&mut with, 6)] {
        assert_eq!(opened(files, memory, 3, "a"), Ok(fd));
        assert_eq!(files.fd_filestat_get(memory, fd, 1024), Ok(()));
        assert_eq!(memory.word(1032), 2, "the inode");
    }
}

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Calls with all kinds of arguments: none panics, and what is taken is given back when all is gone.
#[test]
fn no_call_breaks_the_tree() {
    for seed in 0..200 {
        let shared = Arc::new(Shared::new([("a", 4), ("d/a", 300)]));
        let files = Files::new(5_000, Some(shared));
        let mut files = if seed % 2 == 0 { files } else { files.with_out() };
        let (mut memory, mut state) = (Memory::new(), seed);
        for _ in 0..300 {
            any_call(&mut files, &mut memory, &mut state);
            files.own.check();
            assert!(files.left(1 << 20).is_some());
        }
    }
}

const NAMES: [&str; 12] =
    ["a", "b", "d", "d/a", "d/d", "d/d/b", ".", "..", "d/../a", "l", "a/", "d/l/b"];

fn any_call(files: &mut Files, memory: &mut Memory, state: &mut u64) {
    let mut any = |most: u64| next(state) % most;
    let fd = any(9) as u32;
    let (a, b) = (NAMES[any(12) as usize], NAMES[any(12) as usize]);
    let (one, two) = (memory.text(0, a), memory.text(64, b));
    let (small, wild) = (any(700), any(1 << 63));
    let odd = if any(4) == 0 { wild } else { small };
    let guest = memory;
    let pieces = Pieces { at: 600, count: any(3) as u32 };
    let _ = guest.write(600, &[4096_u32.to_le_bytes(), (odd as u32).to_le_bytes()].concat());
    let times = (any(9), any(9), any(17) as u32);
    let _ = match any(29) {
        0..=4 => {
            let (lookup, flags) = (any(2) as u32, any(16) as u32);
            let opening =
                Opening { lookup, flags, rights: any(128), inheriting: 0, fd_flags: any(6) as u32 };
            files.path_open(guest, fd, one, opening, 512)
        }
        5 => files.path_create_directory(guest, fd, one),
        6 => files.path_symlink(guest, one, fd, two),
        7 => files.path_link(guest, (fd, 0, one), (any(9) as u32, two)),
        8 | 9 => files.path_rename(guest, (fd, one), (any(9) as u32, two)),
        10 => files.path_unlink_file(guest, fd, one),
        11 => files.path_remove_directory(guest, fd, one),
        12 | 13 => files.fd_write(guest, fd, pieces, 512),
        14 => files.fd_pwrite(guest, fd, pieces, (odd, 512)),
        15 => files.fd_read(guest, fd, pieces, 512),
        16 => files.fd_seek(guest, fd, (odd as i64, any(4) as u32), 512),
        17 => files.fd_filestat_set_size(guest, fd, odd),
        18 => files.fd_readdir(guest, fd, (4096, odd as u32), (any(6), 512)),
        19 => files.fd_close(fd.max(5)),
        20 => files.path_filestat_get(guest, fd, (any(2) as u32, one), 512),
        21 => files.fd_renumber(fd, any(9) as u32),
        22 => files.fd_pread(guest, fd, pieces, (odd, 512)),
        23 => files.path_readlink(guest, fd, one, (4096, odd as u32), 512),
        24 => files.fd_filestat_set_times(guest, fd, times),
        25 => files.path_filestat_set_times(guest, fd, (any(2) as u32, one), times),
        26 => files.fd_fdstat_set_flags(fd, any(33) as u32),
        27 => files.fd_tell(guest, fd, 512),
        _ => files.fd_filestat_get(guest, fd, 512),
    };
}
