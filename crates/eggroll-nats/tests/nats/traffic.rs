//! What a worker's connection carries, as the server counts it, against what `docs/nats.md` says of messages.

use crate::nodes::*;
use crate::server::Server;
use crate::support::Net;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Bytes of a message in addition to its payload, at most: subjects and headers.
const AROUND: u64 = 100;
/// Bytes of what a worker asks of the server when it begins, at most, and of the answers.
const BEGINNING: u64 = 4 * 1024;
const GENERATION_SLICES: u64 = 12;
const SLICE: u64 = 4;

/// What the server says of the closed connection of the worker `name`, once it lists it. The server closes first; a
/// task of its own lists the closed connection a moment later, and between the two it is nowhere.
fn closed_connection(port: u16, name: &str) -> Value {
    let start = Instant::now();
    loop {
        if let Some(found) = closed_connections(port).into_iter().find(|connection| connection["name"] == name) {
            return found;
        }
        assert!(start.elapsed() < LIMIT, "the server does not list the closed connection of {name}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn closed_connections(port: u16) -> Vec<Value> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("listens");
    stream.write_all(b"GET /connz?state=closed HTTP/1.0\r\n\r\n").expect("sends");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answers");
    let (_, body) = answer.split_once("\r\n\r\n").expect("has a body");
    let found: Value = serde_json::from_str(body).expect("is JSON");
    found["connections"].as_array().expect("connections").clone()
}

#[test]
fn bytes_are_what_the_page_says() {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port").port();
    let Some(server) = Server::with("127.0.0.1", |_| format!("http: \"127.0.0.1:{port}\"\n")) else { return };
    let url = server.url();
    let coordinator = Local::start::<Net>(config(&url, "coordinator"));
    let only = Start::worker("only", &url).node();
    assert_eq!(coordinator.finish().digest, expected::<Net>());
    assert_eq!(only.hear("slices"), (GENERATION_SLICES * GENERATIONS).to_string());
    let worker = closed_connection(port, "only");
    let count = |name: &str| worker[name].as_u64().expect("a count");

    // Of every second generation offers and the log have a digest.
    let (slices, digests) = (GENERATION_SLICES * GENERATIONS, GENERATION_SLICES * GENERATIONS / 2);
    let work = 16 * slices + 64 * digests;
    let fitness = (16 + 4 * SLICE * GENERATION_SLICES) * GENERATIONS + 64 * GENERATIONS / 2;
    let results = (16 + 4 * SLICE) * slices;
    let around = |messages: &str| AROUND * count(messages) + BEGINNING;
    println!("{worker:#}\nwork {work}, fitness {fitness}, results {results}");
    // The server's out is the worker's in.
    assert!((work + fitness..work + fitness + around("out_msgs")).contains(&count("out_bytes")), "{worker:#}");
    assert!((results..results + around("in_msgs")).contains(&count("in_bytes")), "{worker:#}");
}
