//! What the coordinator says: each word goes where it is dealt with.

use shoal_kinds::Kind;
use shoal_protocol::sign::join_statement;
use shoal_protocol::{FromNode, Time, ToNode};

use crate::Output;
use crate::consent::Consent;
use crate::state::{JobInfo, Node};

impl Node {
    pub(crate) fn received(&mut self, now: Time, message: ToNode) {
        match message {
            ToNode::Welcome { node, session } => self.welcomed(now, node, session),
            ToNode::Refused(refusal) => self.refused(now, refusal),
            ToNode::Job { job, name, owner, items, work, limits, takes, signed } => {
                let consent = Consent::Asked;
                // A coordinator may be newer than this node.
                let Some(work) = Kind::read(&work) else {
                    self.send(FromNode::Declined { job, declined: true });
                    return;
                };
                let info = JobInfo {
                    name,
                    owner,
                    items,
                    work,
                    limits,
                    takes,
                    signed,
                    consent,
                    told_declined: false,
                    check_again: false,
                };
                self.told(job, info);
            }
            ToNode::Lend(leases) => self.lent(leases),
            ToNode::Revoke(attempts) => self.revoked(&attempts),
            ToNode::Forget(job) => self.forget(job),
            ToNode::Challenge { nonce, coordinator } => {
                self.coordinator = Some(coordinator);
                self.challenged(join_statement(&coordinator, &nonce));
            }
            ToNode::Audition { crew, job } => self.audition(crew, job),
            ToNode::Enlist(enlist) => self.enlist(enlist),
            ToNode::Dismiss { crew } => self.dismiss(crew),
            ToNode::ToCrew { crew, say } => self.tell_crew(crew, say),
            ToNode::Quic(offer) => self.quic.offered(offer),
            ToNode::Swarm(told) => self.outputs.push_back(Output::Swarm(told)),
            ToNode::Warm { job } => self.warm(job),
            ToNode::Ask { call, job, body, rest } => self.asked(call, job, body, rest),
            ToNode::AskMore { call, body } => self.asked_more(call, &body),
            ToNode::Link => self.must_link(),
        }
    }
}
