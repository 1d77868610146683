//! Operators with graphs inside.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::Fact;
use super::call::{Call, Fault, Told, wrong};
use super::plain::single;
use crate::node::Attr;

/// What both branches make, or the one that runs if that is known.
pub(super) fn branch(call: &Call<'_>) -> Told {
    let (then, or) = ("then_branch", "else_branch");
    match single(call.fact(0)?) {
        Some(0) => return made(call, or),
        Some(_) => return made(call, then),
        None => {}
    }
    let (then, or) = (made(call, then)?, made(call, or)?);
    if then.iter().zip(&or).any(|(a, b)| a.as_ref().map(|a| &a.ty) != b.as_ref().map(|b| &b.ty)) {
        let why = "its branches make different shapes, and which one runs is not known before";
        return Err(Fault::Unknown(why.to_string()));
    }
    let typed = then.into_iter().map(|fact| fact.map(|fact| Fact::from(fact.ty)));
    Ok(typed.collect())
}

fn made(call: &Call<'_>, name: &str) -> Told {
    let Some(Attr::Graph(graph)) = call.node.attribute(name) else {
        return wrong(format!("it has no `{name}`"));
    };
    let (facts, missing) = call.scope.inside(graph, call.path).map_err(Fault::Inside)?;
    let outputs = graph.outputs.iter().map(|output| facts.get(&output.name).cloned());
    let outputs: Vec<_> = outputs.collect();
    if outputs.iter().all(Option::is_some) {
        return Ok(outputs);
    }
    Err(Fault::Unknown(match missing.first() {
        Some(missing) => format!("inside it, {}: {}", missing.place, missing.why),
        None => "what it makes depends on what is not known before it runs".to_string(),
    }))
}
