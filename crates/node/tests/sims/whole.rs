//! A whole member as a party: real links, sealed, by relay and directly.

use std::sync::Arc;

use ed25519_dalek::{Signer as _, SigningKey};
use shoal_kinds::SimWork;
use shoal_node::session::RadioDo;
use shoal_node::{Member, MemberConfig, MemberInput, MemberOutput};
use shoal_protocol::sign::link_statement;
use shoal_protocol::{
    Epoch, Identity, MemberInfo, NodeId, PublicKey, Signature, Time, frame, hash,
};
use shoal_seal::{Claims, Keys, Rights, mint};

use crate::party::{Does, Given, Party};
use crate::world::CREW;

/// When the world's clock begins, in Unix time.
const UNIX: u64 = 1_700_000_000_000_000;

pub(crate) struct Whole {
    pub(crate) member: Member,
}

fn root() -> SigningKey {
    SigningKey::from_bytes(&[200; 32])
}

fn secret(node: NodeId) -> [u8; 32] {
    [node.0 as u8; 32]
}

impl Party for Whole {
    const NEEDS_ORDER: bool = false;

    fn new(now: Time, node: NodeId, work: SimWork) -> Whole {
        let config = MemberConfig {
            me: node,
            coordinator: PublicKey(root().verifying_key().to_bytes()),
            secret: secret(node),
            seed: hash(&node.0.to_le_bytes()).0,
            unix_at_zero: UNIX,
            tries_direct: true,
            work: Some(work),
        };
        let mut member = Member::new(now, config);
        member.handle(now, MemberInput::Relay(true));
        Whole { member }
    }

    fn card(node: NodeId) -> MemberInfo {
        let coordinator = PublicKey(root().verifying_key().to_bytes());
        let signer = SigningKey::from_bytes(&[node.0 as u8 + 100; 32]);
        let key = Keys::new(secret(node)).public();
        let proof = signer.sign(&link_statement(&coordinator, &key)).to_bytes();
        let identity = Identity(signer.verifying_key().to_bytes());
        MemberInfo { node, identity, key, proof: Signature::new(&proof) }
    }

    fn token(holder: NodeId, epoch: Epoch) -> Vec<u8> {
        let (buffers, until) = ((1, 15), UNIX + 3_600_000_000);
        let claims = Claims { crew: CREW, epoch, holder, buffers, rights: Rights::WRITE, until };
        let sign = |statement: &[u8]| Signature::new(&root().sign(statement).to_bytes());
        mint(sign, &claims, hash(&[holder.0.to_le_bytes(), [epoch.0 as u8; 8]].concat()).0)
    }

    fn give(&mut self, now: Time, given: Given<'_>) {
        let input = match given {
            Given::Enlist(enlist) => MemberInput::Enlist(Box::new(enlist)),
            Given::Net { bytes, .. } => MemberInput::Frame(bytes),
            Given::Relay(up) => MemberInput::Relay(up),
            Given::Call(node) => MemberInput::Radio(node, b"here I am".to_vec()),
            Given::DirectUp(node) => MemberInput::DirectUp(node),
            Given::DirectDown(node) => MemberInput::DirectDown(node),
            Given::Direct { from, bytes } => MemberInput::Direct(from, bytes),
            Given::App { to, channel, message } => MemberInput::App { to, channel, message },
            Given::Collective { op, data } => MemberInput::Collective { op, data },
            Given::Answer(answer) => MemberInput::Engine(answer),
            Given::Told(told) => MemberInput::Told(told),
            Given::Tick => MemberInput::Tick,
        };
        self.member.handle(now, input);
    }

    fn poll(&mut self) -> Option<Does> {
        loop {
            return Some(match self.member.poll_output()? {
                MemberOutput::Frame(bytes) => {
                    let (header, _) = frame::split(&bytes).unwrap();
                    Does::Net { to: header.destination, bytes: Arc::new(bytes) }
                }
                MemberOutput::Direct(to, bytes) => Does::Direct { to, bytes: Arc::new(bytes) },
                MemberOutput::Radio(node, RadioDo::Dial) => Does::Dial(node),
                MemberOutput::Radio(node, RadioDo::Hear(_)) => Does::Called(node),
                MemberOutput::Engine(command) => Does::Command(command),
                MemberOutput::Says { epoch, say } => Does::Says { epoch, say },
                MemberOutput::Deliver { attempt, output } => Does::Deliver { attempt, output },
                MemberOutput::App { channel, bytes, .. } => Does::App { channel, bytes },
                MemberOutput::Done { data, .. } => Does::Done(data),
                MemberOutput::Radio(_, RadioDo::Listen | RadioDo::Hang)
                | MemberOutput::Using(_, _) => continue,
                unexpected @ (MemberOutput::Refused { .. }
                | MemberOutput::NotBegun(_)
                | MemberOutput::Stage(_)
                | MemberOutput::Answer { .. }
                | MemberOutput::Part { .. }) => panic!("{unexpected:?}"),
            });
        }
    }

    fn next_timeout(&self) -> Option<Time> {
        self.member.next_timeout()
    }

    fn check(&self) {
        self.member.check();
    }
}
