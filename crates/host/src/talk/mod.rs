//! A node that lends nothing and talks: to measure links with, or for an application that has no node of its own.

mod carry;
mod measure;

use std::sync::Arc;

use shoal_node::{Input, MemberInput};
use shoal_protocol::{CrewId, CrewSay, Enlist, Epoch, NodeId, Path};
use tokio::sync::mpsc;

use self::carry::Carry;
use self::measure::Measure;
use super::{Event, Host};

/// What a node that lends nothing is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Talks {
    /// It answers whoever calls, and calls and measures on order.
    Measures,
    /// It carries what an application says and hears, over pipes.
    Carries,
}

pub(super) enum Talk {
    Measure(Measure),
    Carry(Carry),
}

/// From whoever started this node; it ends with its input.
pub(super) enum Order {
    Line(String),
    Carry(carry::Order),
    End,
}

/// Takes orders, if this node only talks.
pub(super) fn listen(talks: Option<Talks>, to_loop: &mpsc::Sender<Event>) -> Option<Talk> {
    let to_loop = to_loop.clone();
    Some(match talks? {
        Talks::Measures => {
            std::thread::spawn(move || measure::read(&to_loop));
            Talk::Measure(Measure::default())
        }
        Talks::Carries => {
            std::thread::spawn(move || carry::read(&to_loop));
            Talk::Carry(Carry::start())
        }
    })
}

impl Host<'_> {
    pub(super) fn talk_order(&mut self, order: Order) {
        match order {
            Order::Line(line) => self.measure_order(&line),
            Order::Carry(order) => self.carry_order(order),
            Order::End => return self.input(Input::Stop),
        }
        self.settle();
    }

    pub(super) fn talk_joined(&mut self, me: NodeId) {
        if let Some(Talk::Carry(carry)) = &mut self.talk {
            carry.joined(me);
        }
    }

    pub(super) fn talk_met(&mut self, enlist: &Enlist) {
        let mine = usize::from(enlist.rank);
        let other = enlist.members.iter().enumerate().find(|(rank, _)| *rank != mine);
        let Some((_, peer)) = other else { return };
        match &mut self.talk {
            Some(Talk::Measure(measure)) => measure.met(enlist.crew, peer.node),
            Some(Talk::Carry(carry)) => carry.met(enlist.crew, peer.node),
            None => {}
        }
    }

    pub(super) fn talk_not_met(&mut self, node: NodeId) {
        match &mut self.talk {
            Some(Talk::Measure(measure)) => measure.not_met(node),
            Some(Talk::Carry(carry)) => carry.not_met(node),
            None => {}
        }
    }

    pub(super) fn talk_parted(&mut self, crew: CrewId) {
        if let Some(Talk::Carry(carry)) = &mut self.talk {
            carry.parted(crew);
        }
    }

    pub(super) fn talk_using(&mut self, node: NodeId, path: Path) {
        match &mut self.talk {
            Some(Talk::Measure(measure)) => measure.using(path),
            Some(Talk::Carry(carry)) => carry.using(node, path),
            None => {}
        }
    }

    pub(super) fn talk_refused(&mut self, node: NodeId) {
        if let Some(Talk::Carry(carry)) = &mut self.talk {
            carry.refused(node);
        }
    }

    pub(super) fn talk_heard(&mut self, crew: CrewId, from: NodeId, channel: u16, bytes: Vec<u8>) {
        match &mut self.talk {
            Some(Talk::Measure(_)) => self.measure_heard(crew, from, channel, bytes),
            Some(Talk::Carry(carry)) => {
                carry.heard(from, channel, bytes);
                if carry.is_unheard() {
                    self.replies.tell_brain(Input::Stop);
                }
            }
            None => {}
        }
    }

    fn meet(&mut self, with: NodeId) {
        let (crew, epoch, say) = (CrewId(0), Epoch(0), CrewSay::Meet { with });
        self.input(Input::CrewSays { crew, epoch, say });
    }

    fn talk_say(&mut self, crew: CrewId, to: NodeId, channel: u16, message: Arc<Vec<u8>>) {
        self.member(crew, MemberInput::App { to, channel, message });
    }
}
