//! Asking for units without content.

use serde::{Deserialize, Serialize};
use shoal_protocol::{Dtype, Lane, Needs, Sizing, Verify};

use super::NoopWork;
use crate::kind::Kind;
use crate::plan::{Ask, Common, Note, Part, PlanError, Tools};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NoopRequest {
    pub items: u64,
}

impl Ask for NoopRequest {
    fn kind(&self) -> &'static str {
        "noop"
    }

    fn is_heavy(&self) -> bool {
        false
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn usual_verify(&self) -> Verify {
        Verify::None
    }

    fn plan(&self, common: &Common<'_>, _tools: &Tools<'_>) -> Result<Part, PlanError> {
        Ok(Part {
            kind: Kind::Noop(NoopWork),
            items: self.items,
            sizing: Sizing::fixed(common.unit.unwrap_or(1)),
            needs: Needs::lane(Lane::Inline),
            dtype: Dtype::Bytes,
            note: Note::default(),
        })
    }
}
