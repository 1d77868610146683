//! A WGSL kernel over a grid, step by step, computed by a crew of nodes together.

mod reduce;
mod work;

#[cfg(feature = "plan")]
mod plan;
#[cfg(feature = "plan")]
mod request;

pub use reduce::{Figures, MAX_REDUCED, Reduce};
pub use work::{Pass, SimField, SimSlots, SimWork, TRIAL_STEPS};

#[cfg(feature = "plan")]
pub use plan::{SimAsked, SimError, SimPlan};
#[cfg(feature = "plan")]
pub use request::SimRequest;

use alloc::vec::Vec;
use shoal_protocol::Lane;

use crate::crew::{CrewPlan, CrewProblem, Recovery, Ring, Totals};
use crate::form::Form;
use crate::kind::{About, Code, Told, body, packed};
use crate::plain::Plain;

impl About for SimWork {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn told() -> Told {
        Told {
            item: "row",
            items: "rows",
            ..Told::of("a part of a simulation, together with others")
        }
    }

    fn lane(&self) -> Lane {
        Lane::Gpu
    }

    fn code(&self) -> Option<Code> {
        Some(Code::kernel(&self.source))
    }

    /// An item is a row.
    fn form(&self) -> Form<'_> {
        Form::Items { bytes: self.row_bytes() }
    }

    /// Bands of rows; a member's memory holds its own and both halos.
    fn crew(&self) -> Option<CrewPlan> {
        let ring = Ring {
            shares: self.height.into(),
            work: self.width.into(),
            share_bytes: self.row_bytes(),
            copies: work::TURNS,
            halo: self.halo.into(),
            edge_bytes: self.halo_bytes(),
        };
        Some(CrewPlan {
            problem: CrewProblem::Ring(ring),
            members: self.members.into(),
            steps: self.steps,
            keep_every: self.keep_every,
            guesses: self.speculate,
            trial: self.trial_rows().saturating_mul(self.width.into()).saturating_mul(TRIAL_STEPS),
            recovery: Recovery::Checkpoint,
            totals: self
                .reduce
                .map(|how| Totals { numbers: self.lanes as usize, name: how.name() }),
        })
    }

    fn plain(&self) -> Plain {
        let mut fields = Vec::from([
            ("kind", Plain::Text("sim".into())),
            ("bytes", Plain::Bytes(packed(self))),
            ("width", Plain::number(self.width)),
            ("height", Plain::number(self.height)),
        ]);
        fields.extend(self.first.as_ref().map(|first| ("first", Plain::blob(first))));
        Plain::Object(fields)
    }

    fn body(&self) -> Vec<u8> {
        body(self)
    }

    #[cfg(feature = "plan")]
    fn settings(&self) -> crate::plan::Settings {
        let passes = self.passes.iter().map(Pass::words);
        let mut settings = crate::plan::Settings::new();
        settings.insert("halo".into(), self.halo.into());
        settings.insert("height".into(), self.height.into());
        settings.insert("params".into(), crate::plan::hex(&self.params).into());
        settings.insert("passes".into(), passes.collect());
        settings.insert("steps".into(), self.steps.into());
        settings.insert("width".into(), self.width.into());
        settings
    }

    #[cfg(feature = "plan")]
    fn inputs(&self, _store: &dyn crate::plan::Store) -> Vec<crate::plan::NamedInput> {
        let first = self.first.iter();
        first.map(|first| crate::plan::NamedInput::plain("input", first)).collect()
    }

    #[cfg(feature = "plan")]
    fn sides(&self, _items: u64, _per_item: u64) -> Option<Vec<u64>> {
        let sides = [self.height.into(), self.width.into(), self.lanes.into()];
        Some(if self.lanes == 1 { sides[..2].into() } else { sides.into() })
    }
}
