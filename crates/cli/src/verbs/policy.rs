//! What goes into a job request about checking, order and whose code it is.

use shoal_api::{CommonRequest, SignatureJson};
use shoal_host::identities;
use shoal_host::keys::Key;
use shoal_protocol::Signed;

use super::Context;
use crate::args::{PolicyArgs, PriorityArg};
use crate::client::Client;
use crate::fail::Fail;
use crate::keys;

/// Adds the policy, and this submitter's signature of the code.
pub(super) async fn add(
    context: &Context,
    client: &Client,
    args: &PolicyArgs,
    code: &[u8],
    request: &mut CommonRequest,
) -> Result<(), Fail> {
    add_rules(context, client, args, request).await?;
    sign(context, args, code, request)
}

/// Adds the policy of a job without code.
pub(super) async fn add_rules(
    context: &Context,
    client: &Client,
    args: &PolicyArgs,
    request: &mut CommonRequest,
) -> Result<(), Fail> {
    request.verify = args.verify.clone();
    request.tolerance = args.tolerance.clone();
    request.weight = args.weight.map(Into::into);
    request.priority = args.priority.map(Into::into);
    if args.priority.is_some_and(PriorityArg::has_home) {
        request.home = home(context, client).await?;
    }
    Ok(())
}

/// Adds this submitter's signature of the code.
pub(super) fn sign(
    context: &Context,
    args: &PolicyArgs,
    code: &[u8],
    request: &mut CommonRequest,
) -> Result<(), Fail> {
    request.signature = Some(signature(&signer(context, args)?.sign_code(code)));
    Ok(())
}

pub(super) fn signature(signed: &Signed) -> SignatureJson {
    SignatureJson { key: signed.by.to_string(), signature: signed.signature.to_string() }
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
    let list = client.nodes(false).await?;
    Ok(list.nodes.iter().find(|node| own.contains(&node.identity)).map(|node| node.id))
}
