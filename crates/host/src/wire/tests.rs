//! The wire against a server that says exactly what it is told.

use super::*;
use std::net::TcpListener;

/// A server that answers each connection's requests with the given answers, then closes it.
fn server(answers: Vec<Vec<Vec<u8>>>) -> (Wire, std::thread::JoinHandle<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    let thread = std::thread::spawn(move || {
        let mut requests = 0;
        for answers in answers {
            let (mut socket, _) = listener.accept().expect("a client");
            for answer in answers {
                let mut head = Vec::new();
                while find(&head, b"\r\n\r\n").is_none() {
                    let mut byte = [0];
                    socket.read_exact(&mut byte).expect("a request");
                    head.push(byte[0]);
                }
                requests += 1;
                socket.write_all(&answer).expect("a reader");
            }
        }
        requests
    });
    let tls = crate::tls::Trust::nobody().config().expect("TLS");
    (Wire::new(Origin::new(&base, tls).expect("an origin")), thread)
}

fn answer(body: &[u8]) -> Vec<u8> {
    let mut bytes =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend(body);
    bytes
}

fn get(wire: &mut Wire) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    let request =
        Request { method: "GET", path: "/", token: "t", range: None, beside: None, body: &[] };
    wire.exchange(&request, &mut |at, piece| {
        assert_eq!(at as usize, body.len());
        body.extend_from_slice(piece);
        Ok(())
    })?;
    Ok(body)
}

#[test]
fn bodies_arrive_whole_over_one_kept_connection() {
    let large: Vec<u8> = (0..PIECE * 2 + 5).map(|i| i as u8).collect();
    let (mut wire, server) = server(vec![vec![answer(&large), answer(b""), answer(b"abc")]]);
    assert_eq!(get(&mut wire).expect("large"), large);
    assert_eq!(get(&mut wire).expect("empty"), b"");
    assert_eq!(get(&mut wire).expect("small"), b"abc");
    assert_eq!(server.join().expect("no panic"), 3);
}

#[test]
fn a_connection_closed_while_idle_is_opened_again() {
    let (mut wire, server) = server(vec![vec![answer(b"one")], vec![answer(b"two")]]);
    assert_eq!(get(&mut wire).expect("first"), b"one");
    assert_eq!(get(&mut wire).expect("second"), b"two");
    assert_eq!(server.join().expect("no panic"), 2);
}

#[test]
fn answers_cut_short_or_garbled_are_errors() {
    let mut cut = answer(b"abcdef");
    cut.truncate(cut.len() - 2);
    for bad in [cut, b"SSH-2.0-x\r\n\r\n".to_vec(), b"HTTP/1.1 200 OK\r\n\r\n".to_vec()] {
        let (mut wire, server) = server(vec![vec![bad]]);
        assert!(get(&mut wire).is_err());
        server.join().expect("no panic");
    }
}
