//! bench farm
use super::Plan;
use super::report::Report;
use crate::shell::Outcome;
pub(super) fn run(_plan: &Plan) -> Outcome<Report> {
    Err("not yet".into())
}
