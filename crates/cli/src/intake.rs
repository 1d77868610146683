//! Joins the engine's check of kernels and programs to the coordinator, which must not know how
//! work is computed; the client verbs use the same check before they send anything.

use serde_json::{Map, Value};
use shoal_coordinator as coordinator;
use shoal_engine::intake::{self as engine, ParamValue};

/// The engine's check, as the coordinator asks for it.
pub(crate) struct EngineIntake;

impl coordinator::Intake for EngineIntake {
    fn map_kernel(
        &self,
        wgsl: &str,
        entry: Option<&str>,
        params: &Map<String, Value>,
    ) -> Result<coordinator::MapPlan, coordinator::IntakeError> {
        let plan = map_kernel(wgsl, entry, params).map_err(error)?;
        Ok(coordinator::MapPlan {
            kernel: plan.kernel,
            inputs: plan.inputs.into_iter().map(element).collect(),
            output: element(plan.output),
            needs: plan.needs,
        })
    }

    fn render_kernel(
        &self,
        wgsl: &str,
        entry: Option<&str>,
        params: &Map<String, Value>,
    ) -> Result<coordinator::RenderPlan, coordinator::IntakeError> {
        let engine::RenderPlan { kernel, pixel, needs } =
            render_kernel(wgsl, entry, params).map_err(error)?;
        Ok(coordinator::RenderPlan { kernel, pixel, needs })
    }

    fn module(&self, wasm: &[u8], memory_limit: u64) -> Result<Vec<u8>, coordinator::IntakeError> {
        engine::wasi_module(wasm, memory_limit).map_err(error)
    }
}

pub(crate) fn map_kernel(
    wgsl: &str,
    entry: Option<&str>,
    params: &Map<String, Value>,
) -> Result<engine::MapPlan, engine::IntakeError> {
    engine::map_kernel(wgsl, entry, &values(params)?)
}

pub(crate) fn render_kernel(
    wgsl: &str,
    entry: Option<&str>,
    params: &Map<String, Value>,
) -> Result<engine::RenderPlan, engine::IntakeError> {
    engine::render_kernel(wgsl, entry, &values(params)?)
}

fn values(params: &Map<String, Value>) -> Result<Vec<(String, ParamValue)>, engine::IntakeError> {
    let convert = |(name, json): (&String, &Value)| {
        let value = value(json).ok_or_else(|| engine::IntakeError {
            code: "bad_params",
            message: format!(
                "the parameter `{name}` is {json}: expected a number, a truth value or a list of \
                 numbers"
            ),
            line: None,
            column: None,
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

fn element(element: engine::ElementType) -> coordinator::ElementType {
    let engine::ElementType { name, stride, scalar, lanes } = element;
    coordinator::ElementType { name, stride, scalar, lanes }
}

fn error(error: engine::IntakeError) -> coordinator::IntakeError {
    let engine::IntakeError { code, message, line, column } = error;
    coordinator::IntakeError { code, message, line, column }
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
