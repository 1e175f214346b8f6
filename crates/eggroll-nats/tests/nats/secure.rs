//! Who may come in: passwords, tokens and certificates.

use crate::nodes::*;
use crate::server::{Server, skip};
use crate::support::{LearningModel, Net};
use eggroll_nats::{ConnectOptions, NatsConfig, NatsError, Worker};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A run to the end with these options; then those that must be refused.
pub fn admits(server: &Server, url: &str, options: ConnectOptions, refused: Vec<ConnectOptions>) {
    let config = |node: &str| NatsConfig { options: options.clone(), ..config(url, node) };
    for options in refused {
        let strange = NatsConfig { options, patience: Duration::from_secs(1), ..config("stranger") };
        let error = Worker::connect(&strange).map(drop).expect_err("refused");
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
    let password = |password: &str| ConnectOptions::with_user_and_password("node".to_owned(), password.to_owned());
    for (lines, right, wrong) in [
        ("authorization { user: \"node\", password: \"secret\" }\n", password("secret"), password("secret?")),
        (
            "authorization { token: \"secret\" }\n",
            ConnectOptions::with_token("secret".to_owned()),
            ConnectOptions::new(),
        ),
    ] {
        let Some(server) = Server::with("127.0.0.1", |_| lines.to_owned()) else { return };
        admits(&server, &server.url(), right, vec![wrong]);
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
    let authority = || ConnectOptions::new().require_tls(true).add_root_certificates(file("ca.pem"));
    let certificate = |options: ConnectOptions| options.add_client_certificate(file("client.pem"), file("client.key"));
    let unknown_authority = certificate(ConnectOptions::new().require_tls(true));
    let url = server.url_at("localhost").replace("nats://", "tls://");
    admits(&server, &url, certificate(authority()), vec![unknown_authority, authority()]);
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

/// A worker gets in with the page's configuration, works, and comes back after the end, from the checkpoint. It cannot write the log, nor speak for another.
#[test]
fn configurations_of_the_page_let_workers_work_and_nothing_else() {
    let password = |user: &str| format!("secret-of-{user}");
    let Some(server) = Server::with("127.0.0.1", |_| configuration("authorization", password)) else { return };
    let options = |user: &str| ConnectOptions::with_user_and_password(user.to_owned(), password(user));
    let of = |user: &str| NatsConfig { options: options(user), ..config(&server.url(), user) };
    let coordinator = Local::start_with_pause::<Net>(of("coordinator"), Some(5));
    let start = |user| work::<Net>(of(user), |model, members| Ok(model.fitness(members)));
    let workers = ["w1", "w2"].map(start);
    coordinator.wait(5);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(1).build().expect("a runtime");
    let refused = |user: &str, subject: String| {
        let (sender, heard) = std::sync::mpsc::channel();
        let options = options(user).custom_inbox_prefix(format!("_INBOX_{user}")).event_callback(move |event| {
            let _ = sender.send(event.to_string());
            async {}
        });
        runtime.block_on(async {
            let client = options.connect(server.url()).await.expect("connects");
            client.publish(subject, "forged".into()).await.expect("sends");
            client.flush().await.expect("flushes");
            tokio::time::sleep(Duration::from_millis(300)).await;
        });
        heard.try_iter().any(|event| event.to_lowercase().contains("permissions violation"))
    };
    for subject in ["log", "work", "result.w2"] {
        assert!(refused("w1", format!("eggroll.{RUN}.{subject}")), "{subject}");
    }
    assert!(refused("w1", format!("$JS.API.STREAM.DELETE.eggroll-{RUN}-log")));
    assert!(!refused("w1", format!("eggroll.{RUN}.result.w1")), "canary");
    coordinator.resume();
    assert_eq!(coordinator.finish().digest, expected::<Net>());
    for worker in workers {
        assert_eq!(worker.join().expect("no panic").expect("works").0, expected::<Net>());
    }
    let (digest, report) = start("w1").join().expect("no panic").expect("works");
    assert_eq!((digest, report.checkpoints), (expected::<Net>(), 1));
}

#[test]
fn addresses_show_no_secrets() {
    for servers in ["nats://user:secret@127.0.0.1:1", "no address at all", "nats://secret@@"] {
        let config = NatsConfig { patience: Duration::from_millis(200), ..config(servers, "w1") };
        let error = Worker::connect(&config).map(drop).expect_err("nobody is there");
        let shown = format!("{error} {error:?} {config:?}");
        assert!(!shown.contains("secret"), "{shown}");
        assert!(matches!(error, NatsError::Connection { .. } | NatsError::Patience { .. }), "{error}");
    }
}

/// What the server has of a run goes when it is told to.
#[test]
fn a_run_that_is_removed_begins_anew() {
    let Some(server) = Server::start() else { return };
    let run = |node: &str| {
        let coordinator = Local::start::<Net>(config(&server.url(), "coordinator"));
        let worker = work::<Net>(config(&server.url(), node), |model, members| Ok(model.fitness(members)));
        let counts = coordinator.finish().counts;
        worker.join().expect("no panic").expect("works");
        counts
    };
    assert_eq!(run("w1").recovered, 0);
    eggroll_nats::remove_run(&config(&server.url(), "remover")).expect("removes");
    eggroll_nats::remove_run(&config(&server.url(), "remover")).expect("nothing is there");
    assert_eq!(run("w2").recovered, 0);
}
