//! One kept HTTP/1.1 connection, by hand: on two cores that everything shares, the load generator must be the cheapest part.

use std::io;
use std::net::SocketAddr;

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const MAX_HEAD: usize = 16 << 10;
const MAX_BODY: usize = 64 << 20;

/// A connection that carries one request at a time.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    buffer: BytesMut,
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The head, as it came.
    pub head: BytesMut,
    /// The body; of a chunked one the chunks as they came, framing included.
    pub body: BytesMut,
}

enum Framing {
    Length(usize),
    Chunked,
}

impl Connection {
    /// Connects, with TCP_NODELAY.
    ///
    /// # Errors
    /// When nobody listens there.
    pub async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: BytesMut::with_capacity(4096),
        })
    }

    /// Sends a whole request and reads the whole answer.
    ///
    /// # Errors
    /// When the connection breaks, or what comes is not an HTTP/1.1 answer with a length or chunks.
    pub async fn exchange(&mut self, request: &[u8]) -> io::Result<Answer> {
        self.stream.write_all(request).await?;
        let head = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break self.buffer.split_to(end + 4);
            }
            if self.buffer.len() > MAX_HEAD {
                return Err(invalid("the answer's head is too large"));
            }
            self.more().await?;
        };
        let (status, framing) = read_head(&head)?;
        let length = match framing {
            Framing::Length(length) if length > MAX_BODY => return Err(invalid("the answer is too large")),
            Framing::Length(length) => {
                self.buffer.reserve(length.saturating_sub(self.buffer.len()));
                while self.buffer.len() < length {
                    self.more().await?;
                }
                length
            }
            Framing::Chunked => self.chunks().await?,
        };
        let body = self.buffer.split_to(length);
        Ok(Answer { status, head, body })
    }

    /// Reads to the end of the last chunk; answers where that is.
    async fn chunks(&mut self) -> io::Result<usize> {
        let mut at = 0;
        loop {
            let rest = self.buffer.get(at..).unwrap_or_default();
            let Some(line) = find(rest, b"\r\n") else {
                self.more().await?;
                continue;
            };
            let size = rest
                .get(..line)
                .and_then(|line| std::str::from_utf8(line).ok())
                .and_then(|line| {
                    usize::from_str_radix(line.split(';').next().unwrap_or(line).trim(), 16).ok()
                })
                .filter(|size| at + size < MAX_BODY)
                .ok_or_else(|| invalid("a chunk has no size"))?;
            at += line + 2 + size + 2;
            while self.buffer.len() < at {
                self.more().await?;
            }
            if size == 0 {
                return Ok(at);
            }
        }
    }

    async fn more(&mut self) -> io::Result<()> {
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }
}

impl Answer {
    /// A header's value.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let head = std::str::from_utf8(&self.head).ok()?;
        head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    /// Whether it is the result of a tool that ran. Of a large one only the end is looked at.
    #[must_use]
    pub fn is_tool_result(&self) -> bool {
        let mut end: &[u8] = &self.body;
        end.advance(end.len().saturating_sub(4096));
        self.status == 200 && find(end, b"\"isError\":false").is_some()
    }
}

fn read_head(head: &[u8]) -> io::Result<(u16, Framing)> {
    let head = std::str::from_utf8(head).map_err(|_| invalid("the answer's head is not text"))?;
    let mut lines = head.lines();
    let status = lines
        .next()
        .and_then(|line| line.split(' ').nth(1)?.parse().ok())
        .ok_or_else(|| invalid("the answer has no status"))?;
    for line in lines {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        if key.eq_ignore_ascii_case("content-length") {
            let length = value.trim().parse();
            return Ok((
                status,
                Framing::Length(length.map_err(|_| invalid("the answer's length is no number"))?),
            ));
        }
        if key.eq_ignore_ascii_case("transfer-encoding") {
            return Ok((status, Framing::Chunked));
        }
    }
    Ok((status, Framing::Length(0)))
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, part)
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
