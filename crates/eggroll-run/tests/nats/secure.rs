//! Who may come in: passwords, tokens and certificates.

use crate::nodes::*;
use crate::server::{Server, skip};
use crate::support::{LearningModel, Net};
use eggroll_run::distribution::nats::*;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A run to the end under this connection; then those that must be refused.
pub fn admits(server: &Server, connection: NatsConnection, refused: &[NatsConnection]) {
    let servers = connection.servers.clone();
    let config = |node| NatsConfig { connection: connection.clone(), ..config::<Net>(&servers, node) };
    // A worker without a key does not even try.
    make_keys(&config("coordinator")).expect("made");
    for connection in refused {
        let strange =
            NatsConfig { connection: connection.clone(), patience: Duration::from_secs(1), ..config("stranger") };
        let error = Worker::connect(strange).map(drop).expect_err("refused");
        let log = std::fs::read_to_string(server.folder.path().join("server.log")).unwrap_or_default();
        assert!(matches!(error, NatsError::Connection { .. } | NatsError::Patience { .. }), "{error}\n{log}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    let coordinator = Local::start::<Net>(config("coordinator"));
    let worker = work::<Net>(config("worker"), |model, members| Ok(model.fitness(members)));
    assert_eq!(coordinator.finish().digest, expected::<Net>());
    assert_eq!(worker.join().expect("no panic").expect("works").0, expected::<Net>());
}

#[test]
fn passwords_and_tokens() {
    for (lines, auth, wrong) in [
        (
            "authorization { user: \"node\", password: \"secret\" }\n",
            NatsAuth::UserPassword { user: "node".to_owned(), password: "secret".to_owned().into() },
            NatsAuth::UserPassword { user: "node".to_owned(), password: "secret?".to_owned().into() },
        ),
        ("authorization { token: \"secret\" }\n", NatsAuth::Token("secret".to_owned().into()), NatsAuth::None),
    ] {
        let Some(server) = Server::with("127.0.0.1", |_| lines.to_owned()) else { return };
        let shown = format!("{auth:?}");
        assert!(!shown.contains("secret"), "{shown}");
        let of = |auth| NatsConnection { servers: server.url(), auth, ..NatsConnection::default() };
        admits(&server, of(auth), &[of(wrong)]);
    }
}

/// What `openssl` answers in a folder.
pub fn openssl(folder: &Path, arguments: &str) -> Result<Vec<u8>, String> {
    match Command::new("openssl").args(arguments.split(' ')).current_dir(folder).output() {
        Ok(output) if output.status.success() => Ok(output.stdout),
        other => Err(format!("openssl {arguments}: {other:?}")),
    }
}

/// An authority, and certificates of it for a server and a client.
fn certificates(folder: &Path) -> Result<(), String> {
    let openssl = |arguments: &str| openssl(folder, arguments).map(drop);
    std::fs::write(folder.join("names"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        .map_err(|error| error.to_string())?;
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    openssl(&format!("req -x509 {key} -keyout ca.key -out ca.pem -days 2 -subj /CN=eggroll-test"))?;
    for name in ["server", "client"] {
        openssl(&format!("req {key} -keyout {name}.key -out {name}.csr -subj /CN={name}"))?;
        openssl(&format!(
            "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out {name}.pem -days 2 -extfile names"
        ))?;
    }
    Ok(())
}

#[test]
fn certificates_of_servers_and_nodes() {
    let files = tempfile::tempdir().expect("a folder");
    if let Err(reason) = certificates(files.path()) {
        return skip(&format!("no certificates can be made here: {reason}"));
    }
    let file = |name: &str| files.path().join(name);
    let lines = format!(
        "tls {{ cert_file: {:?}, key_file: {:?}, ca_file: {:?}, verify: true }}\n",
        file("server.pem"),
        file("server.key"),
        file("ca.pem")
    );
    let Some(server) = Server::with("127.0.0.1", |_| lines) else { return };
    let connection = NatsConnection {
        servers: server.url_at("localhost").replace("nats://", "tls://"),
        require_tls: true,
        root_certificates: Some(file("ca.pem")),
        client_certificate: Some((file("client.pem"), file("client.key"))),
        ..NatsConnection::default()
    };
    let unknown_authority = NatsConnection { root_certificates: None, ..connection.clone() };
    let without_certificate = NatsConnection { client_certificate: None, ..connection.clone() };
    admits(&server, connection, &[unknown_authority, without_certificate]);
}

/// A configuration that `docs/nats.md` shows, for this run and these passwords: the block that begins with this word.
pub fn configuration(block: &str, password: impl Fn(&str) -> String) -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/nats.md");
    let page = std::fs::read_to_string(page).expect("reads");
    let begin = format!("```text\n{block} {{");
    let (_, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("the page shows no {block}"));
    let (rest, _) = rest.split_once("```").expect("ends");
    let text = format!("{block} {{{rest}").replace("RUN", RUN);
    ["coordinator", "w1", "w2"].iter().fold(text, |text, user| {
        text.replace(&format!("${}_PASSWORD", user.to_uppercase()), &format!("{:?}", password(user)))
    })
}

/// A worker gets in with each of the page's configurations, works, and comes back after the end, from the checkpoint.
#[test]
fn configurations_of_the_page_let_workers_work() {
    let password = |user: &str| format!("secret-of-{user}");
    for block in ["accounts", "authorization"] {
        let Some(server) = Server::with("127.0.0.1", |_| configuration(block, password)) else { return };
        let of = |user: &str| {
            let auth = NatsAuth::UserPassword { user: user.to_owned(), password: password(user).into() };
            let connection = NatsConnection { servers: server.url(), auth, ..NatsConnection::default() };
            NatsConfig { connection, ..config::<Net>(&server.url(), user) }
        };
        let coordinator = Local::start::<Net>(of("coordinator"));
        let start = |user| work::<Net>(of(user), |model, members| Ok(model.fitness(members)));
        let workers = ["w1", "w2"].map(start);
        let outcome = coordinator.finish();
        assert_eq!(outcome.digest, expected::<Net>(), "{block}");
        for worker in workers {
            assert_eq!(worker.join().expect("no panic").expect("works").0, expected::<Net>(), "{block}");
        }
        let (digest, report) = start("w1").join().expect("no panic").expect("works");
        assert_eq!((digest, report.checkpoints), (expected::<Net>(), 1), "{block}");
    }
}

/// Of two coordinators of the same name and configuration, each with its own key, the second is refused, and so is a worker of the other.
#[test]
fn keys_are_of_one_run() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let other = server.folder.path().join("other-keys");
    let of_other = |node| NatsConfig { keys: other.clone(), ..config::<Net>(&url, node) };
    let strategy = Net::strategy().init(&Net::start());
    let first = Coordinator::connect(config::<Net>(&url, "coordinator"), &strategy).expect("connects");
    let error = Local::start::<Net>(of_other("coordinator")).end().map(drop);
    assert!(matches!(error, Err(NatsError::OtherKey { .. })), "{error:?}");
    let error = work::<Net>(of_other("w1"), |_, _| unreachable!("refused before")).join().expect("no panic");
    assert!(matches!(error, Err(NatsError::OtherKey { .. })), "{error:?}");
    drop(first);
    let coordinator = Local::start::<Net>(config::<Net>(&url, "coordinator"));
    // The file that was handed out, from a folder where nothing else is.
    let handed = server.folder.path().join("handed.key");
    std::fs::copy(keys(&url).join(format!("{RUN}.workers.key")), &handed).expect("copies");
    let worker = NatsConfig { keys: handed, ..config::<Net>(&url, "w1") };
    let worker = work::<Net>(worker, |model, members| Ok(model.fitness(members)));
    assert_eq!(coordinator.finish().digest, expected::<Net>());
    assert_eq!(worker.join().expect("no panic").expect("works").0, expected::<Net>());
}

#[test]
fn addresses_with_secrets_and_secrets_in_the_open_are_refused() {
    let connect = |servers: &str, auth: NatsAuth| {
        let connection = NatsConnection { servers: servers.to_owned(), auth, ..NatsConnection::default() };
        let config = NatsConfig { connection, ..config::<Net>("", "w1") };
        let error = Worker::connect(config).map(drop).expect_err("refused");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("secret"), "{shown}");
        error
    };
    let token = || NatsAuth::Token("secret".to_owned().into());
    let error = connect("nats://user:secret@127.0.0.1:1", NatsAuth::None);
    assert!(matches!(error, NatsError::Connection { .. }), "{error}");
    let error = connect("nats://192.0.2.1:4222", token());
    assert!(matches!(&error, NatsError::Plain { what: "token", host } if host == "192.0.2.1"), "{error}");
}

#[test]
fn every_stream_has_limits() {
    let Some(server) = Server::start() else { return };
    let coordinator = Local::start::<Net>(config::<Net>(&server.url(), "coordinator"));
    let worker = work::<Net>(config::<Net>(&server.url(), "w1"), |model, members| Ok(model.fitness(members)));
    coordinator.finish();
    worker.join().expect("no panic").expect("works");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let context = async_nats::jetstream::new(async_nats::connect(server.url()).await.expect("connects"));
        for stream in ["results", "fitness", "checkpoints"] {
            let stream = context.get_stream(format!("eggroll-{RUN}-{stream}")).await.expect("is there");
            let limits = &stream.cached_info().config;
            assert!(limits.max_bytes > 0 && !limits.max_age.is_zero() && limits.max_consumers > 0, "{limits:#?}");
        }
        let work = context.get_stream(format!("eggroll-{RUN}-work")).await;
        assert!(work.is_err(), "work is not kept");
    });
}

/// A bound that no checkpoint keeps to: the coordinator does not offer it, and a worker with a lower one does not load it.
#[test]
fn checkpoints_have_a_bound() {
    let Some(server) = Server::start() else { return };
    let of = |node, bytes| NatsConfig { checkpoint_bytes: bytes, ..config::<Net>(&server.url(), node) };
    let start = |node, bytes| work::<Net>(of(node, bytes), |model, members| Ok(model.fitness(members)));
    let worker = start("w1", None);
    let error = Local::start::<Net>(of("coordinator", Some(100))).end().map(drop);
    assert!(matches!(&error, Err(NatsError::Checkpoint { reason, .. }) if reason.contains("100")), "{error:?}");
    assert_eq!(Local::start::<Net>(of("coordinator", None)).finish().digest, expected::<Net>());
    worker.join().expect("no panic").expect("works");
    let late = start("w2", Some(100)).join().expect("no panic");
    assert!(matches!(&late, Err(NatsError::Checkpoint { reason, .. }) if reason.contains("100")), "{late:?}");
}
