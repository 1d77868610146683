//! The UDP sockets of the radio: one for each address of this machine, because an answer must leave from where
//! the question came to.

use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::task::{Context, Poll};

use str0m::net::Transmit;
use tokio::io::ReadBuf;
use tokio::net::UdpSocket;

/// Addresses used: machines with more have virtual networks that lead nowhere.
const MAX_ADDRESSES: usize = 8;
/// Largest datagram heard. WebRTC's fit an Ethernet frame.
pub(super) const MAX_DATAGRAM: usize = 2048;
/// Asked of the system for each socket, which may give less: a burst must survive until this task's turn.
const SOCKET_BUFFER: usize = 2 << 20;

pub(super) struct Ports {
    sockets: Vec<(SocketAddr, UdpSocket)>,
    /// Who is looked at first, so that no socket starves the others.
    turn: usize,
}

/// A datagram: its bytes, where it came from and to.
pub(super) struct Came {
    pub(super) length: usize,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
}

impl Ports {
    /// What cannot be bound is left out: without any, no call comes about and links stay on the relay.
    pub(super) fn open() -> Ports {
        let sockets = addresses().into_iter().filter_map(|address| bind(address).ok()).collect();
        Ports { sockets, turn: 0 }
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.sockets.iter().map(|(address, _)| *address)
    }

    pub(super) async fn receive(&mut self, into: &mut [u8; MAX_DATAGRAM]) -> Came {
        poll_fn(|context| self.poll(context, into)).await
    }

    /// A datagram that cannot leave is a lost one.
    pub(super) async fn send(&self, transmit: &Transmit) {
        let socket = self.sockets.iter().find(|(address, _)| *address == transmit.source);
        if let Some((_, socket)) = socket {
            let _ = socket.send_to(&transmit.contents, transmit.destination).await;
        }
    }

    /// From every address that speaks the same kind of IP.
    pub(super) async fn send_from_all(&self, bytes: &[u8], to: SocketAddr) {
        for (address, socket) in &self.sockets {
            if address.is_ipv4() == to.is_ipv4()
                && address.ip().is_loopback() == to.ip().is_loopback()
            {
                let _ = socket.send_to(bytes, to).await;
            }
        }
    }

    fn poll(&mut self, context: &mut Context<'_>, into: &mut [u8; MAX_DATAGRAM]) -> Poll<Came> {
        let count = self.sockets.len();
        for offset in 0..count {
            let at = (self.turn + offset) % count;
            let (to, socket) = &self.sockets[at];
            loop {
                let mut buffer = ReadBuf::new(into);
                match socket.poll_recv_from(context, &mut buffer) {
                    Poll::Ready(Ok(from)) => {
                        self.turn = at + 1;
                        let length = buffer.filled().len();
                        return Poll::Ready(Came { length, from, to: *to });
                    }
                    // Somebody refused an earlier datagram: that says nothing about the next.
                    Poll::Ready(Err(_)) => {}
                    Poll::Pending => break,
                }
            }
        }
        Poll::Pending
    }
}

/// Loopback too, so that nodes of one machine find each other without a network.
pub(super) fn addresses() -> Vec<IpAddr> {
    let all = if_addrs::get_if_addrs().unwrap_or_default();
    let mut outside: Vec<IpAddr> = all
        .iter()
        .filter(|interface| !interface.is_loopback() && !interface.is_link_local())
        .map(if_addrs::Interface::ip)
        .collect();
    // IPv4 first: what every peer of a home network has.
    outside.sort_by_key(IpAddr::is_ipv6);
    outside.truncate(MAX_ADDRESSES - 1);
    outside.push(Ipv4Addr::LOCALHOST.into());
    outside
}

fn bind(address: IpAddr) -> std::io::Result<(SocketAddr, UdpSocket)> {
    let socket = std::net::UdpSocket::bind((address, 0))?;
    socket.set_nonblocking(true)?;
    let options = socket2::SockRef::from(&socket);
    let _ = options.set_recv_buffer_size(SOCKET_BUFFER);
    let _ = options.set_send_buffer_size(SOCKET_BUFFER);
    let address = socket.local_addr()?;
    Ok((address, UdpSocket::from_std(socket)?))
}
