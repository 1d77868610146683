//! What one block of a token says, and whether that allows something.

use core::fmt;
use core::ops::BitOr;

use serde::{Deserialize, Serialize};
use shoal_protocol::{CrewId, Epoch, NodeId};

/// What may be done to a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rights(u8);

impl Rights {
    pub const NONE: Rights = Rights(0);
    pub const READ: Rights = Rights(1);
    pub const WRITE: Rights = Rights(2);
    pub const EXECUTE: Rights = Rights(4);
    pub const ALL: Rights = Rights(7);

    /// Whether it has all of these.
    pub fn has(self, wanted: Rights) -> bool {
        self.0 & wanted.0 == wanted.0
    }
}

impl BitOr for Rights {
    type Output = Rights;

    fn bitor(self, other: Rights) -> Rights {
        Rights(self.0 | other.0)
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names =
            [(Rights::READ, "read"), (Rights::WRITE, "write"), (Rights::EXECUTE, "execute")];
        let mut written = false;
        for (_, name) in names.into_iter().filter(|(right, _)| self.has(*right)) {
            f.write_str(if written { " and " } else { "" })?;
            f.write_str(name)?;
            written = true;
        }
        if written { Ok(()) } else { f.write_str("nothing") }
    }
}

/// Who may do what to which buffers, in which epoch of which crew, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    pub crew: CrewId,
    pub epoch: Epoch,
    pub holder: NodeId,
    /// The first and the last.
    pub buffers: (u32, u32),
    pub rights: Rights,
    /// In microseconds since the Unix epoch.
    pub until: u64,
}

impl Claims {
    /// Whether a member of this crew may show them as its own.
    pub fn belong(&self, crew: CrewId, holder: NodeId) -> Result<(), Denied> {
        if self.crew != crew {
            return Err(Denied::OtherCrew { says: self.crew, here: crew });
        }
        if self.holder != holder {
            return Err(Denied::OtherHolder { says: self.holder, shown_by: holder });
        }
        Ok(())
    }

    /// Whether this may be done now. Looked at for each operation.
    pub fn allow(&self, right: Rights, buffer: u32, epoch: Epoch, now: u64) -> Result<(), Denied> {
        if self.epoch != epoch {
            return Err(Denied::OtherEpoch { says: self.epoch, here: epoch });
        }
        if now >= self.until {
            return Err(Denied::Expired { until: self.until, now });
        }
        let (first, last) = self.buffers;
        if buffer < first || buffer > last {
            return Err(Denied::OtherBuffer { buffer, first, last });
        }
        if !self.rights.has(right) {
            return Err(Denied::NoRight { wanted: right, has: self.rights });
        }
        Ok(())
    }

    /// Whether they allow nothing that the others do not, and are about the same.
    pub fn within(&self, wider: &Claims) -> bool {
        let same = (self.crew, self.epoch, self.holder) == (wider.crew, wider.epoch, wider.holder);
        same && self.buffers.0 >= wider.buffers.0
            && self.buffers.1 <= wider.buffers.1
            && wider.rights.has(self.rights)
            && self.until <= wider.until
    }
}

/// Why something is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    OtherCrew { says: CrewId, here: CrewId },
    OtherHolder { says: NodeId, shown_by: NodeId },
    OtherEpoch { says: Epoch, here: Epoch },
    Expired { until: u64, now: u64 },
    OtherBuffer { buffer: u32, first: u32, last: u32 },
    NoRight { wanted: Rights, has: Rights },
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Denied::OtherCrew { says, here } => {
                write!(f, "the token is for crew {says}, this is crew {here}")
            }
            Denied::OtherHolder { says, shown_by } => {
                write!(f, "the token is node {says}'s, but node {shown_by} shows it")
            }
            Denied::OtherEpoch { says, here } => {
                write!(f, "the token is for epoch {}, this is epoch {}", says.0, here.0)
            }
            Denied::Expired { until, now } => {
                let late = now.saturating_sub(*until) / 1_000_000;
                write!(f, "the token ended {late} seconds ago")
            }
            Denied::OtherBuffer { buffer, first, last } => {
                write!(f, "the token is for buffers {first} to {last}, not for {buffer}")
            }
            Denied::NoRight { wanted, has } => {
                write!(f, "the token allows {has}, not {wanted}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    const CLAIMS: Claims = Claims {
        crew: CrewId(1),
        epoch: Epoch(2),
        holder: NodeId(3),
        buffers: (4, 6),
        rights: Rights::WRITE,
        until: 100,
    };

    #[test]
    fn exactly_what_is_claimed_is_allowed() {
        let allow = |right, buffer, epoch, now| CLAIMS.allow(right, buffer, Epoch(epoch), now);
        assert_eq!(allow(Rights::WRITE, 4, 2, 99), Ok(()));
        assert_eq!(allow(Rights::WRITE, 6, 2, 0), Ok(()));
        let expired = Err(Denied::Expired { until: 100, now: 100 });
        assert_eq!(allow(Rights::WRITE, 4, 2, 100), expired);
        let buffer = |buffer| Err(Denied::OtherBuffer { buffer, first: 4, last: 6 });
        assert_eq!(allow(Rights::WRITE, 3, 2, 99), buffer(3));
        assert_eq!(allow(Rights::WRITE, 7, 2, 99), buffer(7));
        for epoch in [1, 3] {
            let other = Err(Denied::OtherEpoch { says: Epoch(2), here: Epoch(epoch) });
            assert_eq!(allow(Rights::WRITE, 4, epoch, 99), other, "older or newer");
        }
        for wanted in [Rights::READ, Rights::EXECUTE, Rights::READ | Rights::WRITE] {
            let none = Err(Denied::NoRight { wanted, has: Rights::WRITE });
            assert_eq!(allow(wanted, 4, 2, 99), none);
        }
    }

    #[test]
    fn only_its_holder_in_its_crew_may_show_it() {
        assert_eq!(CLAIMS.belong(CrewId(1), NodeId(3)), Ok(()));
        let crew = Denied::OtherCrew { says: CrewId(1), here: CrewId(9) };
        assert_eq!(CLAIMS.belong(CrewId(9), NodeId(3)), Err(crew));
        let holder = Denied::OtherHolder { says: NodeId(3), shown_by: NodeId(9) };
        assert_eq!(CLAIMS.belong(CrewId(1), NodeId(9)), Err(holder));
    }

    #[test]
    fn narrower_is_narrower_in_every_way() {
        assert!(CLAIMS.within(&CLAIMS));
        let wider = Claims { buffers: (0, 9), rights: Rights::ALL, until: 200, ..CLAIMS };
        assert!(CLAIMS.within(&wider) && !wider.within(&CLAIMS));
        let others = [
            Claims { crew: CrewId(9), ..CLAIMS },
            Claims { epoch: Epoch(9), ..CLAIMS },
            Claims { holder: NodeId(9), ..CLAIMS },
            Claims { buffers: (3, 6), ..CLAIMS },
            Claims { buffers: (4, 7), ..CLAIMS },
            Claims { rights: Rights::READ, ..CLAIMS },
            Claims { until: 101, ..CLAIMS },
        ];
        for other in others {
            assert!(!other.within(&CLAIMS), "{other:?}");
        }
    }

    #[test]
    fn rights_are_named() {
        assert_eq!((Rights::READ | Rights::EXECUTE).to_string(), "read and execute");
        assert_eq!(Rights::NONE.to_string(), "nothing");
    }
}
