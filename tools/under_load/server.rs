//! Servers of an origin: one that does so many requests at once, and one that can be taken away and
//! brought back.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nok";

/// A server with so many places. Each request takes one of them for so long; the others wait in the
/// order in which they came, as in the queue of an application server.
pub fn busy(places: usize, work: Duration) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (ask, asked) = channel::<Sender<()>>();
    let asked = Arc::new(Mutex::new(asked));
    for _ in 0..places {
        let asked = asked.clone();
        thread::spawn(move || {
            loop {
                let next = asked.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok(done) = next else { return };
                thread::sleep(work);
                let _ = done.send(());
            }
        });
    }
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let ask = ask.clone();
            thread::spawn(move || {
                let (done, is_done) = channel();
                serve(stream, || {
                    ask.send(done.clone()).is_ok() && is_done.recv().is_ok()
                })
            });
        }
    });
    Ok(address)
}

/// Answers each request when its work is done.
fn serve(stream: TcpStream, work: impl Fn() -> bool) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    loop {
        let (mut length, mut is_head, mut is_first) = (0, false, true);
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            is_head |= std::mem::take(&mut is_first) && line.starts_with("HEAD ");
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or_default();
            }
            if line == "\r\n" {
                break;
            }
        }
        io::copy(&mut reader.by_ref().take(length), &mut io::sink())?;
        if !work() {
            return Ok(());
        }
        reader
            .get_mut()
            .write_all(if is_head { &OK[..OK.len() - 2] } else { OK })?;
    }
}

/// A server that comes and goes.
pub struct Mortal {
    pub address: SocketAddr,
    is_there: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Mortal {
    pub fn new() -> io::Result<Mortal> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mortal = Mortal {
            address,
            is_there: Arc::default(),
            open: Arc::default(),
        };
        mortal.come()?;
        Ok(mortal)
    }

    pub fn come(&self) -> io::Result<()> {
        let listener = TcpListener::bind(self.address)?;
        self.is_there.store(true, Ordering::SeqCst);
        let (is_there, open) = (self.is_there.clone(), self.open.clone());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if !is_there.load(Ordering::SeqCst) {
                    return;
                }
                if let Ok(handle) = stream.try_clone() {
                    open.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(handle);
                }
                thread::spawn(move || serve(stream, || true));
            }
        });
        Ok(())
    }

    /// Ends all connections, whatever is on them, and takes no more.
    pub fn go(&self) {
        self.is_there.store(false, Ordering::SeqCst);
        // The listener ends with the next connection.
        let _ = TcpStream::connect(self.address);
        for stream in self
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain(..)
        {
            let _ = stream.shutdown(Shutdown::Both);
        }
        while TcpStream::connect(self.address).is_ok() {}
    }
}
