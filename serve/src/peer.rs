//! Finds out whether the client of a connection on this machine is a process of a run.
//!
//! In: a connection. Out: whether a process of a run holds its other end. A Unix socket names the process that connected.
//! TCP does not: the kernel lists the inode of each socket in `/proc/net`, and `/proc/PID/fd` who holds it. Invariant: a
//! client on this machine that has ended, or has closed its end, before it was looked up counts as one: a process of a run
//! could do just that. One over TCP whose files are not shown, of another user or in another container, and one on another
//! machine behind a proxy, is none.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use swarmc_runtime::belongs_to_run;

/// How often a socket is looked for: the kernel lists them in pieces, and leaves one out where others come and go
/// meanwhile.
const LOOKS: usize = 4;

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Client {
    /// Its address, and ours.
    Tcp(SocketAddr, SocketAddr),
    /// The process that connected to a Unix socket; none where it has ended.
    Unix(Option<i32>),
}

impl Client {
    /// Whether it belongs to a run.
    pub(crate) fn is_run_process(self) -> bool {
        match self {
            Client::Tcp(peer, local) => is_run_process(peer, local),
            Client::Unix(process) => process.is_none_or(belongs_to_run),
        }
    }

    /// Whether it came over a Unix socket, to which no page of a browser connects.
    pub(crate) fn is_unix(self) -> bool {
        matches!(self, Client::Unix(_))
    }
}

impl std::fmt::Display for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Client::Tcp(peer, _) => peer.fmt(f),
            Client::Unix(Some(process)) => write!(f, "process {process}"),
            Client::Unix(None) => f.write_str("a process that has ended"),
        }
    }
}

/// Whether the client of a connection over TCP, at `peer`, belongs to a run. `local` is our end.
fn is_run_process(peer: SocketAddr, local: SocketAddr) -> bool {
    let is_here = to_plain(peer).ip().is_loopback() || to_plain(peer).ip() == to_plain(local).ip();
    let listed = (0..LOOKS).find_map(|_| find_inode(peer, local));
    // A socket that is closed is listed without an inode for a while.
    let Some(inode) = listed.filter(|&inode| inode != 0) else { return is_here };
    let holders = find_holders(inode);
    if holders.is_empty() {
        return is_here && find_inode(peer, local) != Some(inode);
    }
    holders.into_iter().any(belongs_to_run)
}

/// An address of the fourth version, where one of the sixth stands for it.
fn to_plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// The inode of the socket that is bound to `own` and connected to `other`; 0 where it is closed.
fn find_inode(own: SocketAddr, other: SocketAddr) -> Option<u64> {
    let pairs = [(own, other), (to_plain(own), to_plain(other)), (to_mapped(own), to_mapped(other))]
        .map(|(own, other)| (format_address(own), format_address(other)));
    ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().find_map(|path| {
        let table = std::fs::read_to_string(path).ok()?;
        table.lines().find_map(|line| {
            let mut fields = line.split_ascii_whitespace();
            let (from, to) = (fields.nth(1)?, fields.next()?);
            // The fields behind the addresses: state, queues, timer, retransmits, user, timeout, inode.
            let is_it = pairs.iter().any(|(own, other)| from == own && to == other);
            is_it.then(|| fields.nth(6)?.parse().ok()).flatten()
        })
    })
}

/// An address of the sixth version, by which a socket of both versions lists one of the fourth.
fn to_mapped(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(IpAddr::V6(ip.to_ipv6_mapped()), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// An address as the kernel lists it: words of 32 bits in the order of the machine, as hexadecimal digits.
fn format_address(address: SocketAddr) -> String {
    let mut text = String::new();
    let mut push = |word: [u8; 4]| _ = write!(text, "{:08X}", u32::from_ne_bytes(word));
    match address.ip() {
        IpAddr::V4(ip) => push(ip.octets()),
        IpAddr::V6(ip) => ip.octets().as_chunks().0.iter().copied().for_each(push),
    }
    let _ = write!(text, ":{:04X}", address.port());
    text
}

/// The processes that hold the socket of this inode, as far as their files are shown.
fn find_holders(inode: u64) -> Vec<i32> {
    let wanted = format!("socket:[{inode}]");
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let holds = |process: &i32| {
        let files = std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        files.into_iter().any(|file| std::fs::read_link(file.path()).is_ok_and(|link| link.as_os_str() == &*wanted))
    };
    processes.filter(holds).collect()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_holder_of_a_connection_is_found_and_one_that_has_closed_is_no_person() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let client = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        let (server, _) = listener.accept().expect("it comes");
        let (own, other) = (client.local_addr().expect("bound"), client.peer_addr().expect("connected"));
        let inode = find_inode(own, other).expect("the kernel lists it");
        assert_eq!(find_holders(inode), [std::process::id() as i32]);
        assert_eq!(is_run_process(own, other), std::env::var_os("SWARM_RUN").is_some());
        assert_eq!(is_run_process(to_mapped(own), to_mapped(other)), is_run_process(own, other));
        drop(client);
        assert!(is_run_process(own, other));
        drop(server);
    }

    #[test]
    fn addresses_are_those_of_the_kernel() {
        assert_eq!(format_address("127.0.0.1:80".parse().expect("an address")), "0100007F:0050");
        let six = format_address("[::1]:4983".parse().expect("an address"));
        assert_eq!(six, "00000000000000000000000001000000:1377");
    }
}
