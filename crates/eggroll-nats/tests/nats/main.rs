//! Runs over a real `nats-server`, with workers that die, lag, join late and lie, and a server that loses what it has acknowledged: the parameters are
//! always those of one process, or the run ends with an error by name.
//!
//! Without a server's program here the tests say so and pass, unless `EGGROLL_REQUIRE_NATS` is set: `scripts/nats-server` installs it.

mod audit;
mod credentials;
#[cfg(feature = "wgpu")]
mod devices;
mod faults;
mod losses;
mod nodes;
mod partition;
mod parts;
mod restarts;
mod secure;
mod server;
#[path = "../../../eggroll-run/tests/run/reliability/support.rs"]
#[expect(dead_code, reason = "its models and configurations are used, its damage to files is not")]
mod support;
mod traffic;
