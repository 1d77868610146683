//! Joins the engine's check of kernels and programs to the coordinator, which must not know how
//! work is computed; the client verbs use the same check before they send anything.

use serde_json::{Map, Value};
use shoal_coordinator::{Intake, SimAsked, SimPlan};
use shoal_engine::intake::{
    self as engine, IntakeError, MapAsk, MapPlan, MapReading, ParamValue, RenderPlan, SimAsk,
};
use shoal_protocol::fold::How;
use shoal_protocol::{ElementType, FoldPlan, Kernel, Needs, SimWork};

/// The engine's check, as the coordinator asks for it.
pub(crate) struct EngineIntake;

impl Intake for EngineIntake {
    fn map_kernel(
        &self,
        wgsl: &str,
        entry: Option<&str>,
        params: &Map<String, Value>,
    ) -> Result<MapPlan, IntakeError> {
        map_kernel(wgsl, entry, params)
    }

    fn map_reading(
        &self,
        wgsl: &str,
        entry: Option<&str>,
        params: &Map<String, Value>,
        ask: &MapAsk,
    ) -> Result<MapReading, IntakeError> {
        map_reading(wgsl, entry, params, ask)
    }

    fn fold(
        &self,
        how: &How,
        output: &ElementType,
        out_per_item: u32,
        items: u64,
    ) -> Result<FoldPlan, IntakeError> {
        engine::fold(how, output, out_per_item, items)
    }

    fn input_names(&self, wgsl: &str, kernel: &Kernel) -> Vec<String> {
        engine::input_names(wgsl, kernel)
    }

    fn render_kernel(
        &self,
        wgsl: &str,
        entry: Option<&str>,
        params: &Map<String, Value>,
    ) -> Result<RenderPlan, IntakeError> {
        render_kernel(wgsl, entry, params)
    }

    fn sim(&self, asked: &SimAsked<'_>) -> Result<SimPlan, IntakeError> {
        let SimAsked { source, width, height, steps, halo, passes, params } = *asked;
        let params = &values(params)?;
        let ask = SimAsk { source, width, height, steps, halo, passes, params };
        simulation(&ask).map(|(work, needs)| SimPlan { work, needs })
    }

    fn module(&self, wasm: &[u8], memory_limit: u64) -> Result<(), IntakeError> {
        engine::wasi_module(wasm, memory_limit)
    }
}

pub(crate) fn map_kernel(
    wgsl: &str,
    entry: Option<&str>,
    params: &Map<String, Value>,
) -> Result<MapPlan, IntakeError> {
    engine::map_kernel(wgsl, entry, &values(params)?)
}

pub(crate) fn map_reading(
    wgsl: &str,
    entry: Option<&str>,
    params: &Map<String, Value>,
    ask: &MapAsk,
) -> Result<MapReading, IntakeError> {
    engine::map_reading(wgsl, entry, &values(params)?, ask)
}

pub(crate) fn render_kernel(
    wgsl: &str,
    entry: Option<&str>,
    params: &Map<String, Value>,
) -> Result<RenderPlan, IntakeError> {
    engine::render_kernel(wgsl, entry, &values(params)?)
}

pub(crate) fn simulation(ask: &SimAsk<'_>) -> Result<(SimWork, Needs), IntakeError> {
    engine::sim(ask)
}

pub(crate) fn values(
    params: &Map<String, Value>,
) -> Result<Vec<(String, ParamValue)>, IntakeError> {
    let convert = |(name, json): (&String, &Value)| {
        let value = value(json).ok_or_else(|| {
            let expected = "expected a number, a truth value or a list of numbers";
            let message = format!("the parameter `{name}` is {json}: {expected}");
            IntakeError::plain("bad_params", message)
        })?;
        Ok((name.clone(), value))
    };
    params.iter().map(convert).collect()
}

fn value(json: &Value) -> Option<ParamValue> {
    match json {
        Value::Bool(truth) => Some(ParamValue::Bool(*truth)),
        Value::Number(number) => match number.as_i64() {
            Some(int) => Some(ParamValue::Int(int)),
            None => number.as_f64().map(ParamValue::Float),
        },
        Value::Array(list) => list.iter().map(value).collect::<Option<_>>().map(ParamValue::List),
        Value::Null | Value::String(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_becomes_parameters_or_an_error_that_names_one() {
        let params = json!({"a": 1, "b": 0.5, "c": [1, 2.5], "d": true});
        let params = values(params.as_object().expect("an object")).expect("all are values");
        assert_eq!(params[0], ("a".into(), ParamValue::Int(1)));
        assert_eq!(params[1], ("b".into(), ParamValue::Float(0.5)));
        let bad = json!({"speed": "fast"});
        let error = values(bad.as_object().expect("an object")).expect_err("a text is no number");
        assert!(error.message.contains("speed"), "{}", error.message);
    }
}
