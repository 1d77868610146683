//! Simulations over WebGPU for JavaScript: one member's band of a grid. All promises reject with a
//! `UnitFailure`; calls on one band are made one after the other.

use js_sys::{Array, Uint8Array};
use shoal_engine::wgsl::{Edges, SimBand as Band, SimProgram};
use shoal_kinds::Kind;
use shoal_protocol::{Failure, Poke, Span, Time};
use wasm_bindgen::prelude::*;

use crate::failure::{internal, to_js};
use crate::gpu::{Engine, Outcome};
use crate::object::Fields;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** A poke over the field: from a place, by a way, in cells. */
export interface SimPoke {
  at: [number, number];
  by: [number, number];
  radius: number;
  strength: number;
}
/** What one step of so many cells takes, once warm, in milliseconds. */
export interface SimTime {
  cells: number;
  took: number;
}
"#;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(typescript_type = "SimPoke")]
    pub type SimPoke;
    #[wasm_bindgen(method, getter)]
    fn at(this: &SimPoke) -> Array;
    #[wasm_bindgen(method, getter)]
    fn by(this: &SimPoke) -> Array;
    #[wasm_bindgen(method, getter)]
    fn radius(this: &SimPoke) -> f32;
    #[wasm_bindgen(method, getter)]
    fn strength(this: &SimPoke) -> f32;

    #[wasm_bindgen(typescript_type = "SimTime")]
    pub type SimTime;

    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn millis() -> f64;
}

#[wasm_bindgen]
impl Engine {
    /// Compiles a simulation; `work` is what the brain's `job` gives as bytes.
    pub async fn sim(&self, work: Vec<u8>) -> Result<Simulation, JsValue> {
        let work: Kind = postcard::from_bytes(&work)
            .map_err(|error| internal(format!("a job that cannot be read: {error}")))?;
        let no_sim = || internal("a job that is no simulation".into());
        let work = work.sim().ok_or_else(no_sim)?;
        said(self.gpu.sim(work).await).map(Simulation)
    }
}

/// A simulation compiled for this device.
#[wasm_bindgen]
pub struct Simulation(SimProgram);

#[wasm_bindgen]
impl Simulation {
    /// How long a step takes here.
    pub async fn time(&self) -> Result<SimTime, JsValue> {
        let now = || Time((millis() * 1000.0) as u64);
        let (cells, took) = said(self.0.time(now).await)?;
        let fields = Fields::new().with("cells", cells as f64).with("took", took.0 as f64 / 1000.0);
        Ok(fields.done().unchecked_into())
    }

    /// What whole rows come to, a few numbers for each; nothing where the job does not ask for that.
    pub fn reduce(&self, rows: &[u8]) -> Option<Vec<f64>> {
        let work = self.0.work();
        work.reduce.map(|how| how.rows(work, rows))
    }

    /// Room for rows of the grid, all zero; their edges are computed apart or not.
    pub async fn open(&self, start: f64, len: f64, apart: bool) -> Result<SimBand, JsValue> {
        said(self.0.open(Span::new(start as u64, len as u64), apart).await).map(SimBand)
    }
}

/// A band of rows with its state.
#[wasm_bindgen]
pub struct SimBand(Band);

#[wasm_bindgen]
impl SimBand {
    /// Puts whole rows at row `row` of the grid, which lies in the band.
    pub fn load(&mut self, row: f64, bytes: &Uint8Array) -> Result<(), JsValue> {
        said(self.0.load_js(row as u64, bytes))
    }

    /// Makes the first state.
    pub async fn init(&mut self) -> Result<(), JsValue> {
        said(self.0.init().await)
    }

    /// The edges of the present state.
    pub async fn edges(&self) -> Result<SimEdges, JsValue> {
        said(self.0.edges().await).map(SimEdges)
    }

    /// One step, from `step` to the next; the halos are the rows just above and just below the band.
    pub async fn step(
        &mut self,
        step: f64,
        above: Vec<u8>,
        below: Vec<u8>,
        poke: Option<SimPoke>,
    ) -> Result<SimEdges, JsValue> {
        let poke = poke.as_ref().map(read);
        said(self.0.step(step as u64, &above, &below, poke).await).map(SimEdges)
    }

    /// Takes the last step back; says whether there was one.
    pub fn back(&mut self) -> bool {
        self.0.back()
    }

    /// The bytes of some rows of the grid, all of them in the band.
    pub async fn read(&self, start: f64, len: f64) -> Result<Outcome, JsValue> {
        said(self.0.read(Span::new(start as u64, len as u64)).await).map(Outcome)
    }

    /// A picture, RGBA, with one pixel for `stride` by `stride` cells, of the rows at multiples of the stride.
    pub async fn show(&self, stride: u32) -> Result<Outcome, JsValue> {
        said(self.0.show(stride).await).map(|view| Outcome(view.rgba))
    }
}

/// The first and the last rows of a band where the browser mapped them.
#[wasm_bindgen]
pub struct SimEdges(Edges);

#[wasm_bindgen]
impl SimEdges {
    /// The upper edge, then the lower one, as long. Valid until `free`.
    pub fn view(&self) -> Uint8Array {
        self.0.as_js()
    }
}

fn read(poke: &SimPoke) -> Poke {
    let pair = |of: Array| [0, 1].map(|at| of.get(at).as_f64().unwrap_or(0.0) as f32);
    Poke {
        at: pair(poke.at()),
        by: pair(poke.by()),
        radius: poke.radius(),
        strength: poke.strength(),
    }
}

fn said<T>(outcome: Result<T, Failure>) -> Result<T, JsValue> {
    outcome.map_err(|failure| to_js(&failure))
}
