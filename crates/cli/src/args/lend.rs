//! The verbs that bring a coordinator or a node.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use shoal_host::Accelerate;
use shoal_node::Rules;
use shoal_protocol::{PublicKey, sign};

use super::help;

/// Start a pool on this machine, run one small job, and print how to join
#[derive(Debug, Args)]
#[command(
    after_help = help::UP
)]
pub(crate) struct Up {
    #[command(flatten)]
    pub(crate) listen: Listen,
    #[command(flatten)]
    pub(crate) lend: Lend,
    /// Do not compute on this machine
    #[arg(long)]
    pub(crate) no_node: bool,
    /// Skip the small job that shows that the pool works
    #[arg(long)]
    pub(crate) no_demo: bool,
}

/// Start only a coordinator, without a node
#[derive(Debug, Args)]
#[command(after_help = help::SERVE)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) listen: Listen,
}

/// Lend this machine to a pool
#[derive(Debug, Args)]
#[command(
    after_help = help::JOIN
)]
pub(crate) struct Join {
    /// The join link that `shoal up` prints
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// Join as one of the operator's own machines, whose answers are not checked; needs the API key in
    /// SHOAL_KEY or --key-file
    #[arg(long)]
    pub(crate) own: bool,
    /// Same as --own, with the API key from this file
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Same as --own, with this API key; other users of this machine can see it in the process list
    #[arg(long, value_name = "KEY", conflicts_with_all = ["own", "key_file"])]
    pub(crate) key: Option<String>,
    #[command(flatten)]
    pub(crate) lend: Lend,
}

/// Talk to other nodes and measure the links to them; reads commands from stdin
#[derive(Debug, Args)]
#[command(
    hide = true,
    after_help = help::TALK
)]
pub(crate) struct Talk {
    /// The join link that `shoal up` prints
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// Use only the coordinator's relay, never a direct connection
    #[arg(long)]
    pub(crate) no_direct: bool,
    /// Make links for the application that started this, over stdin and stdout; the crate `shoal-app` uses it
    #[arg(long)]
    pub(crate) pipe: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Listen {
    /// Address and port to listen on; port 0 picks any free port
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:7420")]
    pub(crate) listen: SocketAddr,
    /// Trust the X-Forwarded-For header of a reverse proxy on this machine
    #[arg(long)]
    pub(crate) proxy: bool,
    /// Relay data between nodes over WebSocket only; do not open QUIC on the UDP port of the same number
    #[arg(long)]
    pub(crate) no_quic: bool,
    /// A STUN server, which tells nodes their public address: `stun:HOST:PORT`; may be repeated
    #[arg(long, value_name = "URL", value_parser = stun)]
    pub(crate) stun: Vec<String>,
    /// A TURN server, for nodes that cannot be reached otherwise: `turn:HOST:PORT USER PASSWORD`, in
    /// quotes, or `turn:HOST:PORT secret:SECRET` for passwords that expire. Where UDP is blocked:
    /// `turn:HOST:PORT?transport=tcp` or, over TLS, `turns:HOST:PORT`; may be repeated
    #[arg(long, value_name = "URL USER PASSWORD", value_parser = turn)]
    pub(crate) turn: Vec<String>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Lend {
    /// Do not use this machine's GPU
    #[arg(long)]
    pub(crate) no_gpu: bool,
    /// Talk to other nodes only through the coordinator, never directly
    #[arg(long)]
    pub(crate) no_direct: bool,
    /// How many programs to run at a time; 0 for none [default: one per core]
    #[arg(long, value_name = "N")]
    pub(crate) cpus: Option<u16>,
    /// How much memory all running work may use together, such as 512M or 4G [default: half of this machine's]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory: Option<u64>,
    /// The name others see for this machine [default: its host name]
    #[arg(long = "node-name", value_name = "NAME")]
    pub(crate) node_name: Option<String>,
    /// Run only code signed with this key; may be repeated
    #[arg(long, value_name = "KEY", value_parser = public_key)]
    pub(crate) only: Vec<PublicKey>,
    /// Never run code signed with this key; may be repeated
    #[arg(long, value_name = "KEY", value_parser = public_key)]
    pub(crate) never: Vec<PublicKey>,
    /// Pause when running on battery below this charge; 0 never pauses
    #[arg(long, value_name = "PERCENT", default_value_t = 30, value_parser = percent())]
    pub(crate) battery_below: u8,
    /// The ONNX Runtime library, used for models where it is faster than the built-in engine; `none` to use only the
    /// built-in engine [default: the one this system has installed, if any]
    #[arg(long, value_name = "FILE", env = "SHOAL_ONNXRUNTIME")]
    pub(crate) onnxruntime: Option<PathBuf>,
    /// Use ONNX Runtime for every model that it can run, without timing the built-in engine
    #[arg(long)]
    pub(crate) prefer_onnxruntime: bool,
}

impl From<Lend> for shoal_host::Lend {
    fn from(lend: Lend) -> shoal_host::Lend {
        shoal_host::Lend {
            gpu: !lend.no_gpu,
            direct: !lend.no_direct,
            cpus: lend.cpus,
            memory: lend.memory,
            name: lend.node_name,
            rules: Rules { only: lend.only, never: lend.never },
            battery_below: lend.battery_below,
            accelerate: match lend.onnxruntime {
                None => Accelerate::Found,
                Some(none) if none.as_os_str() == "none" => Accelerate::Never,
                Some(path) => Accelerate::Library(path),
            },
            prefer_accelerator: lend.prefer_onnxruntime,
        }
    }
}

pub(super) fn public_key(text: &str) -> Result<PublicKey, String> {
    text.parse().map_err(|_| sign::NotAKey.to_string())
}

/// A size in bytes, said as people do: 512M, 4G, 4GiB. All are powers of two, as memory is sold.
fn size(text: &str) -> Result<u64, String> {
    let bad = || format!("{text:?} is not a size; expected one such as 512M or 4G");
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_uppercase().as_str() {
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return Err(bad()),
    };
    let number: u64 = number.parse().map_err(|_| bad())?;
    match number.checked_mul(1 << shift) {
        Some(0) => {
            Err("a device that lends no memory computes nothing; expected at least 1M".into())
        }
        Some(bytes) => Ok(bytes),
        None => Err(bad()),
    }
}

fn stun(text: &str) -> Result<String, String> {
    let is_url = ["stun:", "stuns:"].iter().any(|scheme| text.starts_with(scheme));
    match is_url && !text.contains(char::is_whitespace) {
        true => Ok(text.into()),
        false => Err("expected stun:HOST:PORT".into()),
    }
}

fn turn(text: &str) -> Result<String, String> {
    let is_url = ["turn:", "turns:"].iter().any(|scheme| text.starts_with(scheme));
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_whole = matches!(words.as_slice(), [_, _, _])
        || matches!(words.as_slice(), [_, secret] if secret.starts_with("secret:"));
    match is_url && is_whole {
        true => Ok(text.into()),
        false => {
            Err("expected `turn:HOST:PORT USER PASSWORD` or `turn:HOST:PORT secret:SECRET`".into())
        }
    }
}

fn percent() -> clap::builder::RangedI64ValueParser<u8> {
    clap::value_parser!(u8).range(0..=100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_say_them() {
        assert_eq!(size("512M"), Ok(512 << 20));
        assert_eq!(size("4G"), Ok(4 << 30));
        assert_eq!(size("4GiB"), Ok(4 << 30));
        assert_eq!(size("1t"), Ok(1 << 40));
        for bad in ["", "4", "G", "4X", "-1G", "1.5G", "0M", "99999999999T"] {
            assert!(size(bad).is_err(), "{bad}");
        }
        let why = size("4 gigs").expect_err("no size");
        assert!(why.contains("512M or 4G"), "{why}");
    }
}
