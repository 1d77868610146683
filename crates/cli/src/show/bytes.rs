//! Progress of bytes on their way up or down.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Below this a transfer is over before a bar could be read.
const WORTH_SHOWING: u64 = 8 << 20;

/// A bar of bytes; hidden when there is no terminal or little to move. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Bytes(ProgressBar);

impl Bytes {
    pub(crate) fn new(label: &str, total: u64) -> Bytes {
        if total < WORTH_SHOWING {
            return Bytes::hidden();
        }
        let bar =
            ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(10));
        let style = ProgressStyle::with_template(
            "{prefix:.bold} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {eta}",
        );
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(label.to_owned());
        Bytes(bar)
    }

    pub(crate) fn hidden() -> Bytes {
        Bytes(ProgressBar::hidden())
    }

    pub(crate) fn set(&self, bytes: u64) {
        self.0.set_position(bytes);
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.0.inc(bytes);
    }

    pub(crate) fn expect(&self, total: u64) {
        self.0.set_length(total);
    }

    pub(crate) fn clear(&self) {
        self.0.finish_and_clear();
    }
}
