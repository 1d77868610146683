//! A bare TCP relay: two connections, and each one's bytes go to the other. The least that any relay has to do.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

use crate::Outcome;

/// What was fastest here of 16 KiB to 1 MiB.
const BUFFER: usize = 256 << 10;

/// Serves pairs until it is killed.
pub(crate) fn run() -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    loop {
        let (one, _) = listener.accept()?;
        let (other, _) = listener.accept()?;
        one.set_nodelay(true)?;
        other.set_nodelay(true)?;
        let (back, forth) = (other.try_clone()?, one.try_clone()?);
        thread::spawn(move || copy(one, other));
        thread::spawn(move || copy(back, forth));
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = vec![0; BUFFER];
    while let Ok(size) = from.read(&mut buffer)
        && size > 0
        && to.write_all(&buffer[..size]).is_ok()
    {}
    // The other direction ends with it.
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
