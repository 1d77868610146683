//! Words about crews of two, which applications call for.

use shoal_protocol::{CrewSay, CrewTold};
use wasm_bindgen::prelude::*;

use super::{Crew, node, words};

#[wasm_bindgen]
impl Crew {
    /// Calls for a crew of two with that node: for the brain's `crewSays`, with crew and epoch 0.
    pub fn meet(with: f64) -> Vec<u8> {
        words::say(&CrewSay::Meet { with: node(with) })
    }

    /// This node's talk in a crew of two is over: for the brain's `crewSays`, with that crew.
    pub fn leave() -> Vec<u8> {
        words::say(&CrewSay::Leave)
    }

    /// Whom the coordinator could not call together with this node, if that is what it says in no crew's name.
    #[wasm_bindgen(js_name = notMet)]
    pub fn not_met(told: &[u8]) -> Result<Option<f64>, JsError> {
        Ok(match words::read(told, "a word for a crew")? {
            CrewTold::NotMet { with } => Some(with.0 as f64),
            CrewTold::Poke(_) | CrewTold::Watch(_) | CrewTold::Drop { .. } => None,
        })
    }
}
