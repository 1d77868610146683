//! One device's share of a model: some rows of every matrix, so that it computes some outputs of each, and each of them
//! whole, from all inputs. Queries, keys and values are cut between groups of heads that share keys; all else between
//! sixteens of rows, as engines read them.

use alloc::vec::Vec;
use core::ops::Range;

use crate::config::Config;
use crate::head::TensorInfo;
use crate::model::{Model, Role, joined};

/// Rows that stay together where no head says so.
const TOGETHER: u64 = 16;

/// Some of so many equal parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    parts: Range<u64>,
    of: u64,
}

/// A tensor, or what a share has of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its rows, and where those are in the file; a share may have none of them.
    pub tensor: TensorInfo,
    /// It is a list of numbers otherwise.
    pub is_matrix: bool,
}

/// What a share needs of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// In the order of the file.
    pub pieces: Vec<Piece>,
    /// Bytes of the file, in its order; neighbours are one range.
    pub ranges: Vec<Range<u64>>,
    /// Of all ranges together.
    pub bytes: u64,
}

/// Where a role's rows may be cut.
enum Cut {
    /// Each device has all of it.
    Nowhere,
    /// Between so many units of so many rows.
    Between { units: u64, rows: u64, all: u64 },
}

impl Share {
    /// None where those are no parts.
    pub fn new(parts: Range<u64>, of: u64) -> Option<Share> {
        (!parts.is_empty() && parts.end <= of).then_some(Share { parts, of })
    }

    /// Whether it has the first or the last part.
    pub fn is_first(&self) -> bool {
        self.parts.start == 0
    }

    pub fn is_last(&self) -> bool {
        self.parts.end == self.of
    }

    /// To the nearest unit: the shares beside it begin and end where it does.
    fn units(&self, units: u64) -> Range<u64> {
        let before = |part: u64| {
            let twice = 2 * u128::from(units) * u128::from(part) + u128::from(self.of);
            (twice / (2 * u128::from(self.of))) as u64
        };
        before(self.parts.start)..before(self.parts.end)
    }
}

impl Cut {
    fn of(role: Role, config: &Config) -> Cut {
        let sixteens = |all: u32| {
            let all = u64::from(all);
            Cut::Between { units: all.div_ceil(TOGETHER), rows: TOGETHER, all }
        };
        let heads = |each: u32| {
            let (units, rows) = (config.kv_heads.into(), u64::from(each * config.head_dim));
            Cut::Between { units, rows, all: units * rows }
        };
        match role {
            Role::Embedding | Role::Head => sixteens(config.vocab),
            Role::Query | Role::QueryBias => heads(config.heads / config.kv_heads),
            Role::Key | Role::KeyBias | Role::ValueOf | Role::ValueBias => heads(1),
            Role::Out | Role::Down => sixteens(config.width),
            Role::Gate | Role::Up => sixteens(config.ff),
            Role::RopeFactors
            | Role::OutputNorm
            | Role::AttentionNorm
            | Role::QueryNorm
            | Role::KeyNorm
            | Role::OutBias
            | Role::PostAttentionNorm
            | Role::FeedNorm
            | Role::PostFeedNorm => Cut::Nowhere,
        }
    }
}

impl Model {
    /// The rows of such a tensor that a share has, or the numbers of a list; none where every share has all of them.
    pub fn rows_of(&self, share: &Share, role: Role) -> Option<Range<u64>> {
        match Cut::of(role, self.config()) {
            Cut::Nowhere => None,
            Cut::Between { units, rows, all } => {
                let units = share.units(units);
                Some((units.start * rows).min(all)..(units.end * rows).min(all))
            }
        }
    }

    /// What a share needs, of all layers.
    pub fn slice(&self, share: &Share) -> Slice {
        let mut pieces: Vec<Piece> = self
            .roles()
            .map(|(role, tensor)| {
                let is_matrix = role.is_matrix();
                let rows = self.rows_of(share, role);
                let tensor = match rows {
                    Some(rows) if is_matrix => matrix_rows(tensor, rows),
                    Some(rows) => list_rows(tensor, rows),
                    None => tensor.clone(),
                };
                Piece { tensor, is_matrix }
            })
            .collect();
        pieces.sort_by_key(|piece| piece.tensor.at.start);
        let there = pieces.iter().map(|piece| piece.tensor.at.clone());
        let ranges = joined(there.filter(|at| !at.is_empty()));
        let bytes = ranges.iter().map(|range| range.end - range.start).sum();
        Slice { pieces, ranges, bytes }
    }
}

fn matrix_rows(tensor: &TensorInfo, rows: Range<u64>) -> TensorInfo {
    let columns = tensor.dims.first().copied().unwrap_or(0);
    cut(tensor, tensor.row_bytes(), &rows, [columns, rows.end - rows.start].into())
}

fn list_rows(tensor: &TensorInfo, rows: Range<u64>) -> TensorInfo {
    cut(tensor, tensor.ty.block_bytes() as u64, &rows, [rows.end - rows.start].into())
}

fn cut(tensor: &TensorInfo, each: u64, rows: &Range<u64>, dims: Vec<u64>) -> TensorInfo {
    let start = tensor.at.start;
    let at = start + rows.start * each..start + rows.end * each;
    TensorInfo { name: tensor.name.clone(), dims, ty: tensor.ty, at }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tiny;

    fn model(arch: &str) -> Model {
        let (bytes, size) = tiny(arch).file();
        Model::read(bytes, size).expect("a model")
    }

    #[test]
    fn shares_have_every_row_once_and_what_is_not_cut_each() {
        for arch in ["llama", "qwen2", "qwen3", "gemma3"] {
            let model = model(arch);
            for ends in [[0, 24, 48, 48], [0, 5, 48, 48], [0, 1, 20, 48]] {
                let shares = ends.windows(2).filter_map(|two| Share::new(two[0]..two[1], 48));
                let slices: Vec<Slice> = shares.map(|share| model.slice(&share)).collect();
                for (role, whole) in model.roles() {
                    let own = slices.iter().map(|slice| {
                        let mut all = slice.pieces.iter().map(|piece| &piece.tensor);
                        all.find(|tensor| tensor.name == whole.name).expect("it is there")
                    });
                    let own: Vec<_> = own.collect();
                    if Share::new(0..1, 1).and_then(|it| model.rows_of(&it, role)).is_none() {
                        assert!(own.iter().all(|tensor| *tensor == whole), "{role:?}");
                        continue;
                    }
                    let end = own.iter().fold(whole.at.start, |at, tensor| {
                        assert_eq!(tensor.at.start, at, "{role:?}");
                        let rows = tensor.dims.last().copied().unwrap_or(0);
                        let each = whole.at.end - whole.at.start;
                        let all: u64 = whole.dims[usize::from(role.is_matrix())..].iter().product();
                        assert_eq!((tensor.at.end - at) * all, each * rows, "{role:?}");
                        tensor.at.end
                    });
                    assert_eq!(end, whole.at.end, "{role:?}");
                }
                for slice in &slices {
                    let there = slice.pieces.iter().filter(|piece| !piece.tensor.at.is_empty());
                    for at in there.map(|piece| &piece.tensor.at) {
                        let holds = |it: &Range<u64>| it.start <= at.start && at.end <= it.end;
                        assert!(slice.ranges.iter().any(holds));
                    }
                }
            }
        }
    }

    #[test]
    fn heads_that_share_keys_stay_together() {
        let model = model("llama");
        // Two groups of two heads of 16 numbers.
        for (parts, queries, keys) in
            [(0..24, 0..32, 0..16), (24..48, 32..64, 16..32), (0..40, 0..64, 0..32)]
        {
            let share = Share::new(parts, 48).expect("a share");
            assert_eq!(model.rows_of(&share, Role::Query), Some(queries));
            assert_eq!(model.rows_of(&share, Role::ValueOf), Some(keys));
        }
        let none = Share::new(40..48, 48).expect("a share");
        assert_eq!(model.rows_of(&none, Role::Key), Some(32..32));
        assert!(none.is_last() && !none.is_first());
        assert_eq!(Share::new(3..3, 48), None);
        assert_eq!(Share::new(0..49, 48), None);
    }

    #[test]
    fn a_share_is_about_as_large_as_it_says() {
        let model = model("llama");
        let whole = Share::new(0..1, 1).expect("all of it");
        let half = Share::new(0..24, 48).expect("half of it");
        let (whole, half) = (model.slice(&whole), model.slice(&half));
        assert_eq!(whole.bytes, model.part(model.whole()).expect("all").bytes);
        assert!(half.bytes * 10 < whole.bytes * 7, "{} of {}", half.bytes, whole.bytes);
    }
}
