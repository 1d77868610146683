//! What the peer says, and what comes of it.

use crate::ask::Answered;
use crate::capability::Capabilities;
use crate::connection::{Connection, Output};
use crate::error::{Code, PeerError};
use crate::words::{VERSION, Words, unpack};

impl Connection {
    /// A message of the peer.
    pub fn hear(&mut self, _channel: u16, message: &[u8]) {
        if self.ended.is_some() {
            return;
        }
        match unpack(message) {
            Ok((words, bytes)) => self.take(words, bytes),
            Err(error) => {
                let message = error.message.clone();
                self.say(&Words::Bye { code: error.code, message });
                self.finish(error);
            }
        }
    }

    fn take(&mut self, words: Words, bytes: &[u8]) {
        match words {
            Words::Hello { version, can } => self.greeted(version, &can),
            Words::Say { value } => self.outputs.push_back(Output::Said(value)),
            Words::Read { id, have, claim } => match self.exports.read(id, have, &claim) {
                Ok(Some(words)) => self.say(&words),
                Ok(None) => {}
                Err(error) => self.refuse(id, error),
            },
            Words::Write { id, size, onto, claim } => {
                if let Err(error) = self.exports.write(id, size, onto, &claim) {
                    self.refuse(id, error);
                }
            }
            Words::Part(part) if part.to_owner => match self.exports.part(&part, bytes) {
                Ok(said) => said.iter().for_each(|(words, bytes, channel)| {
                    self.post(words, bytes, *channel);
                    if let Words::Version(version) = words {
                        let (buffer, version) = (version.buffer, version.version);
                        self.outputs.push_back(Output::Written { buffer, version });
                    }
                }),
                Err(error) => self.refuse(part.id, error),
            },
            Words::Part(part) => {
                let (took, answered) = self.asks.part(&part, bytes);
                took.iter().for_each(|words| self.say(words));
                self.answer(answered);
            }
            Words::Took { id, from_owner: false, bytes } => self.asks.took(id, bytes),
            Words::Took { id, from_owner: true, bytes } => self.exports.took(id, bytes),
            Words::Same { id, version, .. } | Words::Wrote { id, version } => {
                let answered = self.asks.answered(id, version);
                self.answer(answered);
            }
            Words::Run { id, .. } => {
                let error = PeerError::new(Code::Capability, "this peer runs no shaders");
                self.refuse(id, error);
            }
            Words::Ran { id, versions } => {
                versions.iter().for_each(|one| self.newer(one.buffer, one.version));
                let answered = self.asks.answered(id, 0);
                self.answer(answered);
            }
            Words::Failed { id, code, message } => {
                let answered = self.asks.failed(id, PeerError { code, message });
                self.answer(answered);
            }
            Words::Version(one) => self.newer(one.buffer, one.version),
            Words::Revoked { buffer } => self.asks.revoked(buffer),
            Words::Bye { code, message } => self.finish(PeerError { code, message }),
        }
    }

    fn greeted(&mut self, version: u32, can: &Capabilities) {
        let peer = self.config.peer;
        if version != VERSION {
            let message = format!(
                "node {peer} speaks version {version} of these words; here it is {VERSION}"
            );
            return self.finish(PeerError::new(Code::Protocol, message));
        }
        if self.is_open {
            let message = format!("node {peer} opened a new connection");
            return self.finish(PeerError::new(Code::PeerGone, message));
        }
        self.is_open = true;
        self.outputs.push_back(Output::Opened(self.config.can.both(can)));
    }

    fn newer(&mut self, buffer: u32, version: u64) {
        for import in self.asks.heard(buffer, version) {
            self.outputs.push_back(Output::Newer { import, version });
        }
    }

    fn answer(&mut self, answered: Answered) {
        match answered {
            Answered::Nothing => {}
            Answered::Done(op, version) => self.outputs.push_back(Output::Done { op, version }),
            Answered::Failed(op, error) => self.outputs.push_back(Output::Failed { op, error }),
        }
    }

    fn refuse(&mut self, id: u64, error: PeerError) {
        self.exports.forget(id);
        self.say(&Words::Failed { id, code: error.code, message: error.message });
    }
}
