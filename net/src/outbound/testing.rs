//! A proxy for tests, in a network of its own: whatever address it is asked for, it leads to this machine.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A proxy that opens tunnels: `10.1.2.3:80` is port 80 of this machine.
#[derive(Debug)]
pub struct TestProxy {
    address: SocketAddr,
    state: Arc<State>,
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

#[derive(Debug)]
struct State {
    /// The login that it wants, as `user:password`.
    login: Option<String>,
    targets: Mutex<Vec<String>>,
}

impl TestProxy {
    /// Starts one that wants a login, as `user:password`, or none.
    ///
    /// # Panics
    /// When there is no port.
    pub async fn start(login: Option<&str>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            login: login.map(str::to_owned),
            targets: Mutex::default(),
        });
        let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(accept(
            listener,
            Arc::clone(&state),
            tasks.clone(),
            shutdown.clone(),
        ));
        tasks.close();
        Self {
            address,
            state,
            shutdown,
            tasks,
        }
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The addresses that tunnels were opened to.
    ///
    /// # Panics
    /// When another test thread has.
    pub fn tunnels(&self) -> Vec<String> {
        self.state.targets.lock().unwrap().clone()
    }

    /// Ends it, and every tunnel.
    pub async fn stop(self) {
        self.shutdown.cancel();
        self.tasks.wait().await;
    }
}

async fn accept(listener: TcpListener, state: Arc<State>, tasks: TaskTracker, shutdown: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => return,
        };
        if let Ok((stream, _)) = accepted {
            let (state, shutdown) = (Arc::clone(&state), shutdown.clone());
            tasks.spawn(async move {
                tokio::select! {
                    _ = serve(stream, &state) => {}
                    () = shutdown.cancelled() => {}
                }
            });
        }
    }
}

async fn serve(stream: TcpStream, state: &State) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let wanted = state.login.as_ref().map(|login| {
        let login = STANDARD.encode(login);
        format!("Proxy-Authorization: Basic {login}")
    });
    let target = lines.first().and_then(|line| line.split(' ').nth(1));
    let target: Option<SocketAddr> = target.and_then(|target| target.parse().ok());
    let (Some(target), true) = (
        target,
        lines.first().is_some_and(|line| line.starts_with("CONNECT ")),
    ) else {
        return stream.write_all(b"HTTP/1.1 405 Method Not Allowed\r\n\r\n").await;
    };
    if wanted.is_some_and(|wanted| !lines.contains(&wanted)) {
        return stream
            .write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n")
            .await;
    }
    state.targets.lock().unwrap().push(target.to_string());
    let Ok(mut there) = TcpStream::connect((Ipv4Addr::LOCALHOST, target.port())).await else {
        return stream.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n").await;
    };
    stream
        .write_all(b"HTTP/1.1 200 Connection established\r\nVia: 1.1 tests\r\n\r\n")
        .await?;
    copy_bidirectional(&mut stream, &mut there).await.map(|_| ())
}
