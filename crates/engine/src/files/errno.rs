//! Error numbers of preview1: those that calls on files come to.

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(u16);

impl Errno {
    pub const BADF: Errno = Errno(8);
    pub const BUSY: Errno = Errno(10);
    pub const EXIST: Errno = Errno(20);
    pub const FAULT: Errno = Errno(21);
    pub const ILSEQ: Errno = Errno(25);
    pub const INVAL: Errno = Errno(28);
    pub const IO: Errno = Errno(29);
    pub const ISDIR: Errno = Errno(31);
    pub const LOOP: Errno = Errno(32);
    pub const MFILE: Errno = Errno(33);
    pub const NAMETOOLONG: Errno = Errno(37);
    pub const NOENT: Errno = Errno(44);
    pub const NOSPC: Errno = Errno(51);
    pub const NOTDIR: Errno = Errno(54);
    pub const NOTEMPTY: Errno = Errno(55);
    pub const NOTSOCK: Errno = Errno(57);
    pub const NOTSUP: Errno = Errno(58);
    pub const PERM: Errno = Errno(63);
    pub const SPIPE: Errno = Errno(70);

    /// As a call returns it: 0 if all went well.
    pub fn of(done: Result<(), Errno>) -> i32 {
        match done {
            Ok(()) => 0,
            Err(Errno(number)) => i32::from(number),
        }
    }
}
