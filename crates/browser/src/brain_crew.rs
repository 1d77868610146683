//! What the brain is told by crews, by the exchange of blobs, and of the way by QUIC.

use shoal_node::Input;
use shoal_protocol::{CrewId, CrewSay, Epoch, LinkKey, Micros};
use wasm_bindgen::prelude::*;

use crate::brain::{Brain, Outputs};
use crate::failure::{self, UnitFailure};

#[wasm_bindgen]
impl Brain {
    /// The public half of the key this node's links are sealed with.
    #[wasm_bindgen(js_name = linkKey)]
    pub fn link_key(&mut self, now: f64, key: &[u8]) -> Result<Outputs, JsError> {
        let key = key.try_into().map_err(|_| {
            JsError::new(&format!("a link's key of {} bytes; expected 32", key.len()))
        })?;
        Ok(self.handle(now, Input::LinkKey(LinkKey(key))))
    }

    /// A member of a crew has something to say, as the crew's `says` gives it.
    #[wasm_bindgen(js_name = crewSays)]
    pub fn crew_says(
        &mut self,
        now: f64,
        crew: f64,
        epoch: u32,
        say: &[u8],
    ) -> Result<Outputs, JsError> {
        let say = postcard::from_bytes(say).map_err(|error| {
            JsError::new(&format!("a crew's word that cannot be read: {error}"))
        })?;
        Ok(self.say(now, crew, epoch, say))
    }

    /// What the exchange of blobs has to say, as the swarm's `say` gives it.
    #[wasm_bindgen(js_name = shareSays)]
    pub fn share_says(&mut self, now: f64, say: &[u8]) -> Result<Outputs, JsError> {
        let say = postcard::from_bytes(say).map_err(|error| {
            JsError::new(&format!("a word about blobs that cannot be read: {error}"))
        })?;
        Ok(self.handle(now, Input::ShareSays(say)))
    }

    /// The answer to `audition`: what a step of so many cells took, in milliseconds.
    pub fn auditioned(&mut self, now: f64, crew: f64, cells: f64, took: f64) -> Outputs {
        let took = Micros((took * 1_000.0) as u64);
        self.say(now, crew, 0, CrewSay::Auditioned { cells: cells as u64, took })
    }

    /// This node cannot take part in the crew; epoch 0 at an audition.
    #[wasm_bindgen(js_name = crewFailed)]
    pub fn crew_failed(
        &mut self,
        now: f64,
        crew: f64,
        epoch: u32,
        failure: &UnitFailure,
    ) -> Outputs {
        self.say(now, crew, epoch, CrewSay::Failed { failure: failure::from_js(failure) })
    }

    /// The way by QUIC is open.
    #[wasm_bindgen(js_name = quicUp)]
    pub fn quic_up(&mut self, now: f64) -> Outputs {
        self.handle(now, Input::QuicUp)
    }

    /// It could not be opened, or is gone.
    #[wasm_bindgen(js_name = quicDown)]
    pub fn quic_down(&mut self, now: f64) -> Outputs {
        self.handle(now, Input::QuicDown)
    }
}

impl Brain {
    fn say(&mut self, now: f64, crew: f64, epoch: u32, say: CrewSay) -> Outputs {
        let (crew, epoch) = (CrewId(crew as u64), Epoch(epoch));
        self.handle(now, Input::CrewSays { crew, epoch, say })
    }
}
