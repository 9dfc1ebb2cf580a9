//! nginx as a plain proxy: what a proxy that decides nothing costs.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use crate::error::{During as _, Result};
use crate::process::{Process, free_address};

/// Starts nginx before a server, with as many workers as cores and kept connections to it.
///
/// # Errors
/// When it is not installed, or does not start.
pub async fn start(folder: &Path, upstream: SocketAddr) -> Result<(Process, SocketAddr)> {
    let home = folder.join("nginx");
    fs::create_dir_all(&home).during("make a folder")?;
    let address = free_address()?;
    let user = if nix::unistd::geteuid().is_root() {
        "user root;"
    } else {
        ""
    };
    let home_text = home.display();
    let text = format!(
        "{user}
daemon off;
worker_processes auto;
pid {home_text}/pid;
error_log stderr warn;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  tcp_nodelay on;
  keepalive_timeout 600s;
  keepalive_requests 1000000000;
  client_max_body_size 16m;
  client_body_temp_path {home_text}/body;
  proxy_temp_path {home_text}/proxy;
  fastcgi_temp_path {home_text}/fastcgi;
  uwsgi_temp_path {home_text}/uwsgi;
  scgi_temp_path {home_text}/scgi;
  upstream echo {{
    server {upstream};
    keepalive 512;
    keepalive_requests 1000000000;
  }}
  server {{
    listen {address};
    location / {{
      proxy_pass http://echo;
      proxy_http_version 1.1;
      proxy_set_header Connection \"\";
    }}
    location = /ready {{ return 200 \"\"; }}
  }}
}}
"
    );
    let file = home.join("nginx.conf");
    fs::write(&file, text).during("write a configuration")?;
    let mut command = Command::new("nginx");
    command
        .arg("-p")
        .arg(&home)
        .arg("-c")
        .arg(&file)
        .args(["-e", "stderr"]);
    let mut process = Process::start("nginx", command, folder)?;
    process.ready(address, "/ready").await?;
    Ok((process, address))
}
