//! Simulation cases: the same steps on one band and on several, which pass each other their edges, computed apart or
//! not. Every way must give the same bits, and those must be what the case expects.

use pollster::block_on;
use serde_json::Value;
use shoal_engine::intake::{self, SimAsk};
use shoal_engine::wgsl::{Gpu, SimBand, SimProgram};
use shoal_kinds::{Kind, SimWork};
use shoal_protocol::{Failure, Poke, Span};

use crate::case::Case;
use crate::data::{bytes, compare};
use crate::prepared;

pub(crate) fn run(gpu: &Gpu, case: &Case) -> Result<(), String> {
    let source = case.text(&case.json["wgsl"]);
    let params = case.params();
    let ask = SimAsk {
        source: &source,
        width: case.number("width", 0) as u32,
        height: case.number("height", 0) as u32,
        steps: case.number("steps", 1),
        halo: case.json["halo"].as_u64().map(|halo| halo as u32),
        passes: case.json["passes"].as_str(),
        params: &params,
    };
    let Some((work, _)) = case.judge_intake(intake::sim(&ask))? else {
        return Ok(());
    };
    let first = (!case.json["first"].is_null()).then(|| bytes(case, &case.json["first"]));
    prepared::write_sim(case, &Kind::Sim(work.clone()), first.as_deref());
    let splits = case.json["bands"].as_array().unwrap();
    let mut found: Option<Vec<u8>> = None;
    for (bands, apart) in splits.iter().flat_map(|bands| [(bands, false), (bands, true)]) {
        let state = block_on(compute(gpu, case, &work, (bands, apart), first.as_deref()));
        let state = match (state, case.json["expect"]["failure"].as_array()) {
            (Ok(state), None) => state,
            (Ok(_), Some(_)) => return Err(format!("went well on {bands}")),
            (Err(failure), None) => return Err(failure.to_string()),
            (Err(failure), Some(parts)) => {
                let text = failure.to_string();
                if parts.iter().all(|part| text.contains(part.as_str().unwrap())) {
                    continue;
                }
                return Err(format!("failed otherwise: {text}"));
            }
        };
        match &found {
            Some(one) if *one != state => {
                return Err(format!("{bands} gives other bits than {}", splits[0]));
            }
            Some(_) => (),
            None => {
                compare(case, &case.json["expect"], &state)?;
                found = Some(state);
            }
        }
    }
    Ok(())
}

async fn compute(
    gpu: &Gpu,
    case: &Case,
    work: &SimWork,
    bands: (&Value, bool),
    first: Option<&[u8]>,
) -> Result<Vec<u8>, Failure> {
    let program = gpu.sim(work).await?;
    let mut members = open(&program, bands, first).await?;
    let mut edges = Vec::new();
    for band in &members {
        let found = band.edges().await?;
        edges.push((found.top().to_vec(), found.bottom().to_vec()));
    }
    let count = members.len();
    for step in 0..work.steps {
        let poke = poke(case, step);
        let mut made = Vec::new();
        for (rank, band) in members.iter_mut().enumerate() {
            let (above, below) =
                (&edges[(rank + count - 1) % count].1, &edges[(rank + 1) % count].0);
            let found = band.step(step, above, below, poke).await?;
            made.push((found.top().to_vec(), found.bottom().to_vec()));
        }
        edges = made;
    }
    let mut state = Vec::new();
    for band in &members {
        state.extend_from_slice(&band.read(band.rows()).await?);
    }
    Ok(state)
}

async fn open(
    program: &SimProgram,
    (bands, apart): (&Value, bool),
    first: Option<&[u8]>,
) -> Result<Vec<SimBand>, Failure> {
    let each = program.work().row_bytes();
    let mut members = Vec::new();
    let mut start = 0;
    for len in bands.as_array().unwrap() {
        let rows = Span::new(start, len.as_u64().unwrap());
        let mut band = program.open(rows, apart).await?;
        match first {
            Some(first) => {
                band.load(start, &first[(start * each) as usize..(rows.end() * each) as usize])?;
            }
            None => band.init().await?,
        }
        members.push(band);
        start = rows.end();
    }
    assert_eq!(start, u64::from(program.work().height), "the bands are the grid");
    Ok(members)
}

fn poke(case: &Case, step: u64) -> Option<Poke> {
    let pokes = case.json["pokes"].as_array()?;
    let poke = pokes.iter().find(|poke| poke["step"] == step)?;
    let number = |value: &Value| value.as_f64().unwrap() as f32;
    let pair = |value: &Value| [number(&value[0]), number(&value[1])];
    Some(Poke {
        at: pair(&poke["at"]),
        by: pair(&poke["by"]),
        radius: number(&poke["radius"]),
        strength: number(&poke["strength"]),
    })
}
