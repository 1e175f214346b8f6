//! Runs over a real `nats-server`, with workers that die, lag, join late and lie: the parameters are always those of one process.
//!
//! Without a server's program here the tests say so and pass, unless `EGGROLL_REQUIRE_NATS` is set: `scripts/nats-server` installs it.

mod attacker;
mod credentials;
#[cfg(feature = "wgpu")]
mod devices;
mod faults;
mod hostile;
mod lies;
mod nodes;
mod partition;
mod restarts;
mod secure;
mod server;
#[path = "../run/reliability/support.rs"]
#[expect(dead_code, reason = "its models and configurations are used, its damage to files is not")]
mod support;
mod traffic;
