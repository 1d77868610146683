//! How a device is doing, as its shell sees it: what the coordinator should know before it loses it.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// The page is in front; always so for a native node. A hidden one is slowed by its browser.
    pub visible: bool,
    /// `None` where there is no battery or nobody tells.
    pub battery_percent: Option<u8>,
    pub charging: bool,
    /// Bytes cost the donor money.
    pub metered: bool,
}

impl Default for Condition {
    fn default() -> Condition {
        Condition { visible: true, battery_percent: None, charging: false, metered: false }
    }
}
