//! The radios of a world: an offer, an answer, and channels that come and die.

use shoal_node::mesh::*;
use shoal_node::session::RadioDo;
use shoal_protocol::{Micros, NodeId};

use crate::world::{OnTheWay, World, pair};

impl World {
    /// Radios: an offer and an answer, then they find each other or not.
    pub(crate) fn radio(&mut self, node: NodeId, peer: NodeId, act: RadioDo) {
        let output = MeshOutput::Radio(peer, act.clone());
        self.nodes.get_mut(&node).unwrap().said.push(output);
        let channel = self.channels.entry(pair(node, peer)).or_default();
        match act {
            RadioDo::Dial => {
                channel.fall();
                let offer = format!("offer {}", channel.life).into_bytes();
                self.give(node, MeshInput::Radio(peer, offer));
            }
            RadioDo::Listen => assert!(!channel.up, "listening while talking"),
            RadioDo::Hear(words) => {
                let words = String::from_utf8(words).unwrap();
                let (word, life) = words.split_once(' ').unwrap();
                if life != channel.life.to_string() {
                    return;
                }
                let life = channel.life;
                if word == "offer" {
                    let answer = format!("answer {life}").into_bytes();
                    self.give(node, MeshInput::Radio(peer, answer));
                } else if self.ice {
                    let found = OnTheWay::Found { pair: pair(node, peer), life };
                    self.clock.after(Micros(50_000), found);
                }
            }
            RadioDo::Hang => {
                let was_up = channel.up;
                channel.fall();
                if was_up {
                    self.give(peer, MeshInput::DirectDown(node));
                }
            }
        }
    }

    /// All direct channels die; both ends are told.
    pub(crate) fn cut(&mut self) {
        let pairs: Vec<_> = self.channels.iter().filter(|(_, channel)| channel.up).collect();
        for pair in pairs.into_iter().map(|(pair, _)| *pair).collect::<Vec<_>>() {
            let channel = self.channels.get_mut(&pair).unwrap();
            channel.fall();
            self.give(pair.0, MeshInput::DirectDown(pair.1));
            self.give(pair.1, MeshInput::DirectDown(pair.0));
        }
    }

    /// A node's socket to the coordinator opens or is lost.
    pub(crate) fn online(&mut self, node: u64, online: bool) {
        self.nodes.get_mut(&NodeId(node)).unwrap().online = online;
        let input = if online { MeshInput::RelayUp } else { MeshInput::RelayDown };
        self.give(NodeId(node), input);
    }

    /// All direct channels fall silent; nobody is told.
    pub(crate) fn mute(&mut self) {
        self.channels.values_mut().for_each(|channel| channel.dead = true);
    }
}
