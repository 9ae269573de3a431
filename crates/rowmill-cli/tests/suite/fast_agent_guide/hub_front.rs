//! A stand-in for the hub that has its files and its tools at one address, like the hub.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

/// The actual addresses of files and tools, as `host:port`.
#[derive(Clone)]
struct Upstreams {
    files: String,
    tools: String,
}

/// Starts the stand-in and returns its URL. It ends with the test process.
pub(super) fn hub_with_tools(files_url: &str, tools_url: &str) -> String {
    let host = |url: &str| url.split('/').nth(2).unwrap().to_owned();
    let upstreams = Upstreams { files: host(files_url), tools: host(tools_url) };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let upstreams = upstreams.clone();
            // The client notices a connection that breaks.
            thread::spawn(move || drop(forward(&client, &upstreams)));
        }
    });
    url
}

/// Clients of files and of tools have separate connections, so the first request determines where all
/// requests of a connection go.
fn forward(client: &TcpStream, upstreams: &Upstreams) -> io::Result<()> {
    let mut start = [0; 64];
    let length = client.peek(&mut start)?;
    let start = String::from_utf8_lossy(&start[..length]);
    let wants_tools = start.split(' ').nth(1).is_some_and(|path| path.starts_with("/mcp"));
    let server = TcpStream::connect(if wants_tools { &upstreams.tools } else { &upstreams.files })?;
    let (mut from_server, mut to_client) = (server.try_clone()?, client.try_clone()?);
    let back = thread::spawn(move || {
        let copied = io::copy(&mut from_server, &mut to_client);
        drop(to_client.shutdown(Shutdown::Both));
        copied
    });
    io::copy(&mut &*client, &mut &server)?;
    server.shutdown(Shutdown::Write)?;
    drop(back.join());
    Ok(())
}
