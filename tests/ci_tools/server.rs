//! A small HTTP server on the loopback interface, for what programs ask of services: it answers by a function, and keeps what
//! it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    /// The lines of the head.
    pub(crate) head: String,
    pub(crate) body: String,
}

/// A status and a body; for a redirect, where to.
pub(crate) type Answer = (u16, Vec<u8>);

pub(crate) struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Listens until the process ends.
    pub(crate) fn start(answer: impl Fn(&Request) -> Answer + Send + 'static) -> Server {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // A client that went away has no answer.
                let _ = serve_request(&stream, &answer, &kept);
            }
        });
        Server { address, requests }
    }

    pub(crate) fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it was asked so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("no thread failed").clone()
    }
}

fn serve_request(
    stream: &TcpStream,
    answer: &impl Fn(&Request) -> Answer,
    kept: &Mutex<Vec<Request>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut request = Request::default();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        let length_of = |line: &str| line.to_lowercase().strip_prefix("content-length:").map(|it| it.trim().to_owned());
        length = length_of(&line).and_then(|text| text.parse().ok()).unwrap_or(length);
        request.head.push_str(&line);
    }
    let mut words = request.head.split(' ');
    request.method = words.next().unwrap_or_default().to_owned();
    request.path = words.next().unwrap_or_default().to_owned();
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    request.body = String::from_utf8_lossy(&body).into_owned();
    let (status, body) = answer(&request);
    let is_head = request.method == "HEAD";
    kept.lock().expect("no thread failed").push(request);
    let mut stream = stream;
    write!(stream, "HTTP/1.1 {status} OK\r\nConnection: close\r\n")?;
    if status == 302 {
        write!(stream, "Location: {}\r\nContent-Length: 0\r\n\r\n", String::from_utf8_lossy(&body))
    } else {
        write!(stream, "Content-Length: {}\r\n\r\n", body.len())?;
        stream.write_all(if is_head { &[] } else { &body })
    }
}
