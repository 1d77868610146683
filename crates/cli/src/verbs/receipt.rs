//! `shoal receipt` and `shoal verify`: what a job can show, and whether it holds.

use std::path::Path;

use serde_json::json;

use super::Context;
use crate::args;
use crate::client::Sink;
use crate::fail::Fail;
use crate::receipt::{Anchor, Check, Document, Files, Receipt, Verdict};
use crate::{keys, show};

pub(super) async fn fetch(context: &Context, args: args::Receipt) -> Result<(), Fail> {
    let output = args.output.as_deref().unwrap_or(Path::new("-"));
    let is_file = output.as_os_str() != "-";
    let mut sink = Sink::create(output)?;
    let client = context.client(&args.server)?;
    let document = client.receipt(args.job).await?;
    // For people by default, and always one document: a receipt is JSON in any case.
    let text = if context.json && !is_file {
        serde_json::to_string(&document)
    } else {
        serde_json::to_string_pretty(&document)
    };
    let text = text.map_err(|error| Fail::world("internal", error.to_string()))?;
    sink.write(text.as_bytes())?;
    sink.write(b"\n")?;
    sink.finish()?;
    if is_file && context.json {
        return show::json(&json!({"job": args.job, "output": output.display().to_string()}));
    }
    if is_file {
        let place = output.display();
        eprintln!("{place}: receipt of job {}; check it with: shoal verify {place}", args.job);
    }
    Ok(())
}

/// Asks nobody: everything is in the receipt, the files and the key.
pub(super) fn verify(context: &Context, args: &args::Verify) -> Result<(), Fail> {
    let (document, receipt) = Document::read(&args.receipt)?;
    let files =
        Files { result: args.result.clone(), code: args.code.clone(), inputs: args.inputs.clone() };
    let anchor = anchor(context, args);
    let checks = document.check(&receipt, anchor.as_ref(), &files)?;
    let failed = checks.iter().filter(|check| check.verdict == Verdict::Fails).count();
    let holds = failed == 0 && anchor.is_some();
    if context.json {
        let anchored = anchor.is_some();
        show::json(&json!({
            "job": receipt.job, "holds": holds, "anchored": anchored, "checks": checks,
        }))?;
    } else {
        print(&receipt, &checks)?;
    }
    let all = checks.len();
    if failed > 0 {
        let message = format!("the receipt is not valid: {failed} of {all} checks failed");
        return Err(Fail::world("receipt_mismatch", message));
    }
    if anchor.is_none() {
        let message = "cannot tell whether the receipt is valid: pass the coordinator's public key \
                       with --key HEX (`key` in GET /api/v1/pool of the coordinator)";
        return Err(Fail::Input { code: "no_key".into(), message: message.into() });
    }
    if !context.json {
        show::line("the receipt is valid")?;
    }
    Ok(())
}

fn anchor(context: &Context, args: &args::Verify) -> Option<Anchor> {
    if let Some(key) = args.key {
        return Some(Anchor { key, from: "the key you passed" });
    }
    let data = context.data_folder().ok()?;
    let key = keys::coordinator(&data)?;
    Some(Anchor { key, from: "this machine's coordinator" })
}

fn print(receipt: &Receipt, checks: &[Check]) -> Result<(), Fail> {
    let Receipt { job, name, owner, kind, state, items, .. } = receipt;
    let head = format!("job {job} ({name}) for {owner}: {kind} of {items} items, {state}");
    show::line(&show::harmless(&head))?;
    for Check { what, verdict, text } in checks {
        let mark = match verdict {
            Verdict::Holds => "holds",
            Verdict::Fails => "FAILS",
            Verdict::Unknown => "-",
        };
        show::line(&show::harmless(&format!("  {mark:<6} {what:<10} {text}")))?;
    }
    Ok(())
}
