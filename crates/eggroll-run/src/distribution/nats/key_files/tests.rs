//! Files of keys: whose they are, who may read them, and what is refused.

use super::*;
use std::fs;

fn config(folder: &Path) -> NatsConfig {
    NatsConfig { keys: folder.join("keys"), nodes: vec!["w1".to_owned()], ..NatsConfig::new("nats://localhost", "run") }
}

fn refused<T>(result: Result<T, NatsError>) -> String {
    match result.map(drop) {
        Err(error @ NatsError::Key { .. }) => format!("{error} {error:?}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn keys_come_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(folder.path());
    assert!(find_key(&config).expect("nothing wrong").is_none(), "not made yet");
    let made = make_keys(&config).expect("made");
    let again = make_keys(&config).expect("read");
    assert_eq!(made.fingerprint(), again.fingerprint());
    let answer = |key: &WorkerKey, node: &str| again.open(node, &key.seal(node, vec![1])).is_some();
    let any = find_key(&config).expect("reads").expect("is there");
    assert!(any.node().is_none() && answer(&any, "w7"));
    let of_w1 = NatsConfig { node: "w1".to_owned(), ..config.clone() };
    let w1 = find_key(&of_w1).expect("reads").expect("is there");
    assert_eq!((w1.node(), answer(&w1, "w1"), answer(&w1, "w2")), (Some("w1"), true, false));
    let file = NatsConfig { keys: config.keys.join("run.w1.key"), ..config };
    assert_eq!(find_key(&file).expect("reads").expect("is there").node(), Some("w1"));
}

#[test]
fn nobody_is_any_worker_where_workers_are_not_trusted() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = NatsConfig { trust: Trust::Untrusted { scores: -1.0..=0.0 }, ..config(folder.path()) };
    let nobody = NatsConfig { nodes: Vec::new(), ..config.clone() };
    assert!(matches!(make_keys(&nobody), Err(NatsError::Setting { what: "nodes", .. })));
    make_keys(&config).expect("made");
    let mut files: Vec<_> =
        fs::read_dir(&config.keys).expect("reads").map(|file| file.expect("is there").file_name()).collect();
    files.sort();
    assert_eq!(files, ["run.coordinator.key", "run.w1.key"]);
    make_keys(&NatsConfig { trust: Trust::Trusted, ..config.clone() }).expect("made");
    assert!(refused(make_keys(&config)).contains("run.workers.key"), "one was handed out before");
}

#[cfg(unix)]
#[test]
fn keys_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(folder.path());
    make_keys(&config).expect("made");
    let mode = |path: &Path| fs::metadata(path).expect("is there").permissions().mode() & 0o777;
    assert_eq!(mode(&config.keys), 0o700);
    for holder in ["coordinator", "workers", "w1"] {
        let file = file_of(&config, holder);
        assert_eq!(mode(&file), 0o600, "{holder}");
        for open in [0o640, 0o604, 0o660] {
            fs::set_permissions(&file, fs::Permissions::from_mode(open)).expect("sets");
            let error = refused(read_secret(&file));
            assert!(error.contains("chmod 600"), "{error}");
        }
        fs::set_permissions(&file, fs::Permissions::from_mode(0o400)).expect("sets");
        assert!(read_secret(&file).is_ok(), "canary");
    }
}

#[cfg(unix)]
#[test]
fn folders_of_keys_are_not_for_others_to_write() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let above = folder.path().join("not/there/yet");
    let config = config(&above);
    let set = |mode| fs::set_permissions(&config.keys, fs::Permissions::from_mode(mode)).expect("sets");
    make_keys(&config).expect("made, with the folders above");
    for mode in [0o770, 0o702] {
        set(mode);
        let errors = [refused(make_keys(&config)), refused(find_key(&config))];
        assert!(errors.iter().all(|error| error.contains("chmod go-w")), "{errors:?}");
    }
    for mode in [0o755, 0o1777] {
        set(mode);
        make_keys(&config).expect("nobody else can replace a file there");
    }
}

#[test]
fn what_is_no_key_is_refused_without_showing_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(folder.path());
    make_keys(&config).expect("made");
    let file = file_of(&config, "w1");
    let good = fs::read_to_string(&file).expect("reads");
    let json: serde_json::Value = serde_json::from_str(&good).expect("JSON");
    let secret = json["secret"].as_str().expect("a text").to_owned();
    let with = |field: &str, value: serde_json::Value| {
        let mut json = json.clone();
        json[field] = value;
        json.to_string()
    };
    let cases = [
        (String::new(), "no key of eggroll"),
        ("x".repeat(5000), "4096"),
        (good[..good.len() / 2].to_owned(), "no key of eggroll"),
        (format!("\"{secret}\""), "no key of eggroll"),
        (with("secret", secret[..62].into()), "64 hexadecimal digits"),
        (with("secret", format!("{}zz", &secret[..62]).into()), "64 hexadecimal digits"),
        (with("secret", 7.into()), "no key of eggroll"),
        (with(&secret, 7.into()), "no key of eggroll"),
        (with("eggroll_key", 2.into()), "format 2"),
        (with("run", "other".into()), "\"other\""),
        (with("node", "a.b".into()), "a.b"),
        (with("node", serde_json::Value::Null), "name of its node"),
        (with("of", "coordinator".into()), "no worker may have"),
    ];
    for (text, reason) in cases {
        fs::write(&file, &text).expect("writes");
        let error = match WorkerKey::read_file(&file, "run") {
            Err(error) => format!("{error} {error:?}"),
            Ok(key) => panic!("{key:?} of {text}"),
        };
        assert!(error.contains(reason), "{error}, not {reason}");
        assert!(!error.contains(&secret[..16]), "{error}");
    }
    fs::write(&file, &good).expect("writes");
    assert!(WorkerKey::read_file(&file, "run").is_ok(), "canary");
    assert!(refused(WorkerKey::read_file(&folder.path().join("none.key"), "run")).contains("none.key"));
    assert!(refused(WorkerKey::read_file(folder.path(), "run")).contains("no file"));
    assert!(refused(CoordinatorKey::open_file(&file, "run")).contains("found a worker's"));
}
