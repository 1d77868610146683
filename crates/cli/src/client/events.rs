//! Server-sent events: a stream of `event:` and `data:` lines.

use bytes::Bytes;

/// Longest event kept: a job's JSON is a few kB, with thousands of nodes' shares some hundred.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// Turns bytes as they arrive into events.
#[derive(Default)]
pub(super) struct EventReader {
    line: Vec<u8>,
    name: String,
    data: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) data: String,
}

/// More than [`MAX_EVENT_BYTES`] without an end: no event stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl EventReader {
    /// All events that these bytes complete.
    pub(super) fn push(&mut self, bytes: &Bytes) -> Result<Vec<Event>, TooLong> {
        let mut events = Vec::new();
        for &byte in bytes.iter() {
            match byte {
                b'\n' => {
                    let line = std::mem::take(&mut self.line);
                    events.extend(self.line_ended(&String::from_utf8_lossy(&line)));
                }
                b'\r' => {}
                _ => self.line.push(byte),
            }
        }
        if self.line.len() + self.data.len() > MAX_EVENT_BYTES {
            return Err(TooLong);
        }
        Ok(events)
    }

    fn line_ended(&mut self, line: &str) -> Option<Event> {
        if line.is_empty() {
            let event = Event {
                name: std::mem::take(&mut self.name),
                data: std::mem::take(&mut self.data),
            };
            return (!event.data.is_empty()).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.name = value.into(),
            "data" if self.data.is_empty() => self.data = value.into(),
            "data" => {
                self.data.push('\n');
                self.data.push_str(value);
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_wherever_the_bytes_are_cut() {
        let stream =
            b": hello\n\nevent: job\ndata: {\"a\":\ndata: 1}\r\n\r\nevent:tiles\ndata:[2]\n\n";
        for cut in 0..stream.len() {
            let mut reader = EventReader::default();
            let mut events = reader.push(&Bytes::copy_from_slice(&stream[..cut])).expect("short");
            events.extend(reader.push(&Bytes::copy_from_slice(&stream[cut..])).expect("short"));
            let found: Vec<_> = events.iter().map(|e| (e.name.as_str(), e.data.as_str())).collect();
            assert_eq!(found, [("job", "{\"a\":\n1}"), ("tiles", "[2]")]);
        }
    }
}
