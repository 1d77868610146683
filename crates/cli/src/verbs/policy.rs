//! What goes into a job request about checking, order and whose code it is.

use serde_json::{Map, Value, json};
use shoal_host::identities;
use shoal_host::keys::Key;
use shoal_protocol::Signed;

use super::Context;
use crate::args::PolicyArgs;
use crate::client::Client;
use crate::fail::Fail;
use crate::keys;

/// Adds the policy, and this submitter's signature of the code.
pub(super) async fn add(
    context: &Context,
    client: &Client,
    args: &PolicyArgs,
    code: &[u8],
    request: &mut Map<String, Value>,
) -> Result<(), Fail> {
    add_rules(context, client, args, request).await?;
    sign(context, args, code, request)
}

/// Adds the policy of a job without code.
pub(super) async fn add_rules(
    context: &Context,
    client: &Client,
    args: &PolicyArgs,
    request: &mut Map<String, Value>,
) -> Result<(), Fail> {
    if let Some(verify) = &args.verify {
        request.insert("verify".into(), verify.clone().into());
    }
    if let Some(tolerance) = &args.tolerance {
        request.insert("tolerance".into(), tolerance.clone().into());
    }
    if let Some(weight) = args.weight {
        request.insert("weight".into(), weight.into());
    }
    if let Some(priority) = args.priority {
        request.insert("priority".into(), priority.name().into());
        if priority.has_home()
            && let Some(home) = home(context, client).await?
        {
            request.insert("home".into(), home.into());
        }
    }
    Ok(())
}

/// Adds this submitter's signature of the code.
pub(super) fn sign(
    context: &Context,
    args: &PolicyArgs,
    code: &[u8],
    request: &mut Map<String, Value>,
) -> Result<(), Fail> {
    let signed = signer(context, args)?.sign_code(code);
    request.insert("signature".into(), signature(&signed));
    Ok(())
}

pub(super) fn signature(signed: &Signed) -> Value {
    json!({"key": signed.by.to_string(), "signature": signed.signature.to_string()})
}

fn signer(context: &Context, args: &PolicyArgs) -> Result<Key, Fail> {
    match &args.signer_key {
        Some(path) => Ok(keys::from_file(path)?),
        None => keys::submitter(&context.data_folder()?),
    }
}

/// The node of this machine, if one runs from this data folder and is in the pool.
async fn home(context: &Context, client: &Client) -> Result<Option<u64>, Fail> {
    let own: Vec<String> =
        identities(&context.data_folder()?).iter().map(ToString::to_string).collect();
    if own.is_empty() {
        return Ok(None);
    }
    let nodes = client.nodes().await?.nodes;
    Ok(nodes.iter().find(|node| own.contains(&node.identity)).map(|node| node.id))
}
