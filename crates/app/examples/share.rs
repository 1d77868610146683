//! Squares numbers that another application or page shares, or shares numbers to be squared.
//!
//! `share LINK` shares them with whoever calls, and tells its own number; `share LINK NUMBER` calls that one.

use std::error::Error;

use shoal_app::{Event, Pool, Right, Rights};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words[..] {
        [link] => share(&Pool::join(link)?),
        [link, peer] => square(&Pool::join(link)?, peer.parse()?),
        _ => Err("expected a join link, and the number of whom to call".into()),
    }
}

fn share(pool: &Pool) -> Result<(), Box<dyn Error>> {
    eprintln!("Waiting as node {}", pool.node());
    let peer = pool.accept()?;
    let numbers: Vec<u8> = (0..1024_u16).flat_map(|n| f32::from(n).to_le_bytes()).collect();
    let handle = peer.export(numbers, Rights::of(&[Right::Read, Right::Write]), "numbers")?;
    peer.say(serde_json::to_value(&handle)?)?;

    while !matches!(peer.next()?, Event::Written { .. }) {}
    let (version, bytes) = peer.exported(&handle)?;
    eprintln!("Version {version}: {:?}", &floats(&bytes)[..4]);
    Ok(())
}

fn square(pool: &Pool, node: u64) -> Result<(), Box<dyn Error>> {
    let peer = pool.connect(node)?;
    let handle = loop {
        if let Event::Said(value) = peer.next()? {
            break serde_json::from_value(value)?;
        }
    };
    let numbers = peer.import(handle)?;
    let squares = floats(&peer.pull(numbers)?).into_iter().map(|n| n * n);
    let version = peer.push(numbers, squares.flat_map(f32::to_le_bytes).collect(), None)?;
    eprintln!("Wrote version {version} to node {node}");
    Ok(())
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|four| f32::from_le_bytes(*four)).collect()
}
