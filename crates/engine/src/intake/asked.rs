//! The check as planning asks for it, with parameters as JSON; the client verbs use the same before they send
//! anything.

use shoal_kinds::llm::LlmPlan;
use shoal_kinds::map::How;
use shoal_kinds::onnx::{BatchPlan, CutAsk, CutPlan, Head, ModelPlan};
use shoal_kinds::plan::{Intake, Map, Value};
use shoal_kinds::sim::{SimAsked, SimPlan};
use shoal_kinds::{
    ElementType, FoldPlan, IntakeError, Kernel, MapAsk, MapPlan, MapReading, ProgramForm,
    RenderPlan,
};

use super::{ParamValue, SimAsk};

/// This engine's check.
#[derive(Clone, Copy, Debug, Default)]
pub struct EngineIntake;

impl Intake for EngineIntake {
    fn map_kernel(
        &self,
        wgsl: &str,
        entry: Option<&str>,
        params: &Map<String, Value>,
    ) -> Result<MapPlan, IntakeError> {
        super::map_kernel(wgsl, entry, &values(params)?)
    }

    fn map_reading(
        &self,
        wgsl: &str,
        entry: Option<&str>,
        params: &Map<String, Value>,
        ask: &MapAsk,
    ) -> Result<MapReading, IntakeError> {
        super::map_reading(wgsl, entry, &values(params)?, ask)
    }

    fn fold(
        &self,
        how: &How,
        output: &ElementType,
        out_per_item: u32,
        items: u64,
    ) -> Result<FoldPlan, IntakeError> {
        super::fold(how, output, out_per_item, items)
    }

    fn input_names(&self, wgsl: &str, kernel: &Kernel) -> Vec<String> {
        super::input_names(wgsl, kernel)
    }

    fn render_kernel(
        &self,
        wgsl: &str,
        entry: Option<&str>,
        params: &Map<String, Value>,
    ) -> Result<RenderPlan, IntakeError> {
        super::render_kernel(wgsl, entry, &values(params)?)
    }

    fn sim(&self, asked: &SimAsked<'_>) -> Result<SimPlan, IntakeError> {
        let SimAsked { source, width, height, steps, halo, passes, params } = *asked;
        let params = &values(params)?;
        let ask = SimAsk { source, width, height, steps, halo, passes, params };
        super::sim(&ask).map(|(work, needs)| SimPlan { work, needs })
    }

    fn module(&self, wasm: &[u8], memory_limit: u64) -> Result<ProgramForm, IntakeError> {
        super::wasi_program(wasm, memory_limit)
    }

    fn knows_paths(&self, wasm: &[u8]) -> bool {
        super::knows_paths(wasm)
    }

    fn model(&self, file: &[u8]) -> Result<ModelPlan, IntakeError> {
        super::model(file)
    }

    fn parts(&self, file: &[u8], ask: &CutAsk<'_>) -> Result<CutPlan, IntakeError> {
        super::parts(file, ask)
    }

    fn batch(&self, file: &[u8], item: &[Head], grows: bool) -> Result<BatchPlan, IntakeError> {
        super::batch(file, item, grows)
    }

    fn language_model(&self, head: Vec<u8>, size: u64) -> Result<LlmPlan, IntakeError> {
        super::language_model(head, size)
    }
}

/// Parameters of a kernel, as they are written in JSON.
pub fn values(params: &Map<String, Value>) -> Result<Vec<(String, ParamValue)>, IntakeError> {
    let convert = |(name, json): (&String, &Value)| {
        let value = value(json).ok_or_else(|| {
            let expected = "expected a number, true, false or a list of numbers";
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
