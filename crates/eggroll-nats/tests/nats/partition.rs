//! A worker in a separate network namespace, whose cable is pulled and put back. Needs to be root; says so and passes elsewhere.

use crate::nodes::*;
use crate::server::Server;
use crate::support::Net;
use std::process::Command;
use std::time::Duration;

/// A namespace and its cable; removed when dropped.
struct Namespace {
    name: String,
    cable: String,
}

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split(' ')).output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

impl Namespace {
    const HOST: &str = "10.213.77.1";

    fn new() -> Result<Self, String> {
        let name = format!("eggroll{}", std::process::id() % 100_000);
        let (cable, end) = (format!("{name}a"), format!("{name}b"));
        ip(&format!("netns add {name}"))?;
        let namespace = Self { name, cable };
        let (name, cable) = (&namespace.name, &namespace.cable);
        ip(&format!("link add {cable} type veth peer name {end} netns {name}"))?;
        ip(&format!("addr add {}/24 dev {cable}", Self::HOST))?;
        ip(&format!("link set {cable} up"))?;
        ip(&format!("-n {name} addr add 10.213.77.2/24 dev {end}"))?;
        ip(&format!("-n {name} link set {end} up"))?;
        Ok(namespace)
    }

    fn cable(&self, state: &str) {
        ip(&format!("link set {} {state}", self.cable)).expect("as when it was made");
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = ip(&format!("link del {}", self.cable));
        let _ = ip(&format!("netns del {}", self.name));
    }
}

#[test]
fn a_worker_that_is_cut_off_comes_back() {
    let namespace = match Namespace::new() {
        Ok(namespace) => namespace,
        Err(reason) => {
            eprintln!("skipped: no network namespace can be made here: {reason}");
            return;
        }
    };
    let Some(server) = Server::with("0.0.0.0", |_| "ping_interval: \"1s\"\nping_max: 2\n".to_owned()) else { return };
    let url = server.url_at("127.0.0.1");
    let coordinator = Local::start::<Net>(config(&url, "coordinator"));
    let inside = ["ip", "netns", "exec", &namespace.name];
    let far_url = server.url_at(Namespace::HOST);
    let far = Start { inside: &inside, delay: Duration::from_millis(150), ..Start::worker("far", &far_url) }.node();
    far.hear("evaluating 0");
    let near = Start { delay: Duration::from_millis(150), ..Start::worker("near", &url) }.node();
    far.hear("evaluating 1");
    namespace.cable("down");
    // The slice that it had goes to the other, which continues alone.
    coordinator.wait(4);
    namespace.cable("up");
    let outcome = coordinator.finish();
    assert_eq!(outcome.digest, expected::<Net>());
    for worker in [near, far] {
        assert_ne!(worker.hear("slices"), "0");
        assert_eq!(worker.hear("digest"), expected::<Net>());
    }
}
