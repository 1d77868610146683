//! Who belongs to the crew, epoch by epoch, and to whom this node needs a link.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use shoal_protocol::limit::MAX_MEMBERS;
use shoal_protocol::sign::link_statement;
use shoal_protocol::{CrewTask, Enlist, MemberInfo, NodeId, Time};
use shoal_seal::{is_signed, present, read};

use super::Mesh;
use super::control::Control;
use super::peer::{OtherMember, State};

/// In crews up to this size everybody has a link to everybody: collectives find them ready. In larger ones
/// only neighbours do; others get one when something is to be said to them.
const ALL_PAIRS: usize = 8;

impl Mesh {
    pub(super) fn enlist(&mut self, now: Time, enlist: &Enlist) {
        let desk = &mut self.desk;
        let known = desk.crew.is_some();
        if known && (desk.crew != Some(enlist.crew) || enlist.epoch <= desk.epoch) {
            return;
        }
        (desk.crew, desk.epoch) = (Some(enlist.crew), enlist.epoch);
        desk.direct_first = enlist.task == CrewTask::Swarm;
        if let Ok(own) = read(&enlist.token, &desk.config.coordinator) {
            desk.set_clock(now, &own);
        }
        // One that cannot be shown is shown as it is: the others say what is wrong with it.
        let token = present(&enlist.token).unwrap_or_else(|_| enlist.token.clone());
        desk.token = Arc::new(Control::Token(&token).encode());
        let me = desk.me();
        let members: BTreeMap<NodeId, &MemberInfo> = enlist
            .members
            .iter()
            .take(MAX_MEMBERS)
            .filter(|member| member.node != me)
            .map(|member| (member.node, member))
            .collect();
        self.peers.retain(|node, peer| {
            let same =
                |member: &&MemberInfo| (member.identity, member.key) == (peer.identity, peer.key);
            let stays = members.get(node).is_some_and(same);
            if !stays {
                peer.leave(desk);
            }
            stays
        });
        for member in members.values() {
            self.admit(now, member);
        }
        for node in neighbours(enlist) {
            self.with(node, |peer, desk| peer.want(now, desk));
        }
    }

    /// Takes a member in. Its key must be signed by its identity, or it is never talked to.
    fn admit(&mut self, now: Time, member: &MemberInfo) {
        let desk = &mut self.desk;
        let MemberInfo { node, identity, key, proof } = *member;
        let known = self.peers.get(&node).is_some_and(|peer| peer.proven);
        let statement = link_statement(&desk.config.coordinator, &key);
        let proven = known || is_signed(&identity.0, &statement, &proof);
        let peer = self.peers.entry(node).or_insert_with(|| OtherMember::new(node, identity, key));
        peer.proven = proven;
        if proven {
            peer.enter(now, desk);
        } else {
            peer.state = State::Shunned;
            desk.accuse(node, "its links' key is not signed by its identity".into());
        }
    }
}

/// To whom this node needs a link in any case.
fn neighbours(enlist: &Enlist) -> Vec<NodeId> {
    let members = &enlist.members;
    if members.len() <= ALL_PAIRS {
        return members.iter().map(|member| member.node).collect();
    }
    let (rank, count) = (usize::from(enlist.rank), members.len());
    let ranks = [(rank + 1) % count, (rank + count - 1) % count];
    ranks.into_iter().filter_map(|rank| members.get(rank)).map(|member| member.node).collect()
}
