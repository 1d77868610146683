//! Asking for a count: what a client says, how it is cut into items, and why it is refused.

use alloc::string::String;
use serde::{Deserialize, Serialize};
use shoal_protocol::limit::MAX_UNIT_BYTES;
use shoal_protocol::{Dtype, Lane, Needs};

use super::{BLOCK, CountWork, WORKGROUP};
use crate::feed::{Feed, InputSplit};
use crate::kind::Kind;
use crate::plan::{Ask, Common, Note, OutputJson, Part, PlanError, Refusal, Tools, blob, sizing};

/// Bytes of a number.
const NUMBER: u32 = 4;
/// Items in a node's first unit: one workgroup.
const GRAIN_ITEMS: u64 = WORKGROUP as u64;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CountRequest {
    /// The hash of the numbers: `u32`, little-endian.
    pub blob: String,
    pub value: u32,
}

impl Ask for CountRequest {
    fn kind(&self) -> &'static str {
        "count"
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn plan(&self, common: &Common<'_>, tools: &Tools<'_>) -> Result<Part, PlanError> {
        let blob = blob(tools.store, "input", &self.blob)?;
        if !blob.size.is_multiple_of(NUMBER.into()) {
            return Err(CountError::NotNumbers { size: blob.size }.into());
        }
        let each = BLOCK * NUMBER;
        let items = blob.size.div_ceil(each.into());
        let sizing = sizing(GRAIN_ITEMS, MAX_UNIT_BYTES / u64::from(each), common.unit)?;
        let mut needs = Needs::lane(Lane::Gpu);
        needs.buffer_bytes = sizing.grain.min(items) * u64::from(each);
        needs.workgroup_invocations = WORKGROUP;
        needs.storage_buffers = 2;
        needs.takes.gpu_memory = sizing.most.min(items) * u64::from(each + NUMBER);
        let input = Feed { blob, split: InputSplit::PerItem { bytes: each, reach: 0 } };
        let kind = Kind::Count(CountWork { input, value: self.value });
        let output = Some(OutputJson { scalar: "u32".into(), per_item: 1 });
        let note = Note { output, ..Note::default() };
        Ok(Part { kind, items, sizing, needs, dtype: Dtype::Bytes, note })
    }
}

/// Why a count is refused.
#[derive(Debug, thiserror::Error)]
pub enum CountError {
    #[error("the input has {size} bytes, which are no whole numbers: a u32 has {NUMBER}")]
    NotNumbers { size: u64 },
}

impl Refusal for CountError {
    fn code(&self) -> &'static str {
        match self {
            CountError::NotNumbers { .. } => "not_divisible",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Intake, Planned, Store, StoreError, plan, read};
    use alloc::format;
    use alloc::string::ToString;
    use shoal_protocol::{BlobRef, Hash};

    struct NoCode;
    impl Intake for NoCode {}

    /// Holds one blob of so many bytes, whatever its hash.
    struct Holds(u64);
    impl Store for Holds {
        fn find(&self, hash: Hash) -> Result<Option<BlobRef>, StoreError> {
            Ok(Some(BlobRef { hash, size: self.0 }))
        }
        fn read(&self, _: Hash, _: &mut dyn FnMut(&[u8]) -> bool) -> Result<bool, StoreError> {
            Ok(false)
        }
        fn put(&self, _: &[u8]) -> Result<BlobRef, StoreError> {
            Err("nothing is put here".into())
        }
        fn drop_torn(&self, _: Hash) {}
    }

    fn planned(bytes: u64, more: &str) -> Result<Planned, PlanError> {
        let blob = Hash([7; 32]);
        let request = format!(r#"{{"kind":"count","blob":"{blob}","value":7{more}}}"#);
        let tools = Tools { intake: &NoCode, store: &Holds(bytes) };
        plan(&read(request.as_bytes())?, None, &tools)
    }

    #[test]
    fn numbers_are_cut_into_blocks_and_the_last_may_be_short() {
        let spec = planned(4 * 2049, "").expect("planned").spec;
        assert_eq!(spec.items, 3);
        assert_eq!(spec.needs.takes.gpu_memory, 3 * (4096 + 4));
        assert_eq!(Kind::read(&spec.work.work()), Some(spec.work.clone()));
        let ends = spec.work.feeds()[0].range(shoal_protocol::Span::new(2, 1));
        assert_eq!(ends, (8192, 8196), "one number is left for the last block");
    }

    #[test]
    fn what_cannot_be_counted_is_refused_with_the_reason() {
        let refused = |bytes, more| planned(bytes, more).expect_err("refused");
        assert_eq!(refused(7, "").code(), "not_divisible");
        assert!(refused(7, "").to_string().contains("7 bytes"));
        assert_eq!(refused(0, "").code(), "empty_input");
        assert_eq!(refused(4, r#","unit":1000000"#).code(), "bad_request");
        assert!(refused(4, r#","step":2"#).to_string().contains("step"));
    }
}
