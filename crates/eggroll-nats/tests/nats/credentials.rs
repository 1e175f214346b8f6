//! Files of credentials: a token of the account for the user's key, and the key with which it answers the server's challenge.

use crate::secure::{admits, openssl};
use crate::server::{Server, skip};
use eggroll_nats::ConnectOptions;
use serde_json::{Value, json};
use std::path::Path;

/// First bytes of public keys, by who holds them.
const OPERATOR: u8 = 14 << 3;
const ACCOUNT: u8 = 0;
const USER: u8 = 20 << 3;
/// First bits of what a key is made from.
const SEED: u8 = 18 << 3;

const BASE32: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Text of bytes in an alphabet of 2^`bits` letters, the highest bits first, without padding.
fn encode(bytes: &[u8], bits: usize, alphabet: &[u8]) -> String {
    let bit = |i: usize| bytes.get(i / 8).map_or(0, |byte| usize::from(byte >> (7 - i % 8) & 1));
    let letter = |start: usize| alphabet[(start..start + bits).fold(0, |letter, i| 2 * letter + bit(i))];
    (0..8 * bytes.len()).step_by(bits).map(|start| char::from(letter(start))).collect()
}

/// Text of a key with its checksum.
fn key_text(prefix: &[u8], key: &[u8]) -> String {
    let mut bytes = [prefix, key].concat();
    let check = bytes.iter().fold(0u16, |check, byte| {
        (0..8).fold(check ^ u16::from(*byte) << 8, |check, _| check << 1 ^ if check >> 15 == 1 { 0x1021 } else { 0 })
    });
    bytes.extend(check.to_le_bytes());
    encode(&bytes, 5, BASE32)
}

/// An Ed25519 key, in a file of this folder.
struct Key<'a> {
    folder: &'a Path,
    name: &'static str,
    /// Text of its public part.
    public: String,
}

impl<'a> Key<'a> {
    fn new(folder: &'a Path, name: &'static str, prefix: u8) -> Result<Self, String> {
        openssl(folder, &format!("genpkey -algorithm ed25519 -outform DER -out {name}"))?;
        let public = openssl(folder, &format!("pkey -in {name} -inform DER -pubout -outform DER"))?;
        Ok(Self { folder, name, public: key_text(&[prefix], last(&public)) })
    }

    /// Text of what a user's key is made from.
    fn seed(&self) -> String {
        let bytes = std::fs::read(self.folder.join(self.name)).expect("reads");
        key_text(&[SEED | USER >> 5, USER << 3], last(&bytes))
    }

    /// A token that says `nats` of a key, signed with this one.
    fn token(&self, of: &str, nats: &Value) -> Result<String, String> {
        let claims = json!({ "jti": of, "iat": 0, "iss": self.public, "name": "test", "sub": of, "nats": nats });
        let header = json!({ "typ": "JWT", "alg": "ed25519-nkey" });
        let [header, claims] = [header, claims].map(|part| encode(part.to_string().as_bytes(), 6, BASE64));
        let signed = format!("{header}.{claims}");
        std::fs::write(self.folder.join("to-sign"), &signed).expect("writes");
        let signature =
            openssl(self.folder, &format!("pkeyutl -sign -rawin -keyform DER -inkey {} -in to-sign", self.name))?;
        Ok(format!("{signed}.{}", encode(&signature, 6, BASE64)))
    }
}

/// The key itself, which ends its encoding.
fn last(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.len() - 32..]
}

/// Lines of a server's configuration with one account, and its user's credentials.
fn account(folder: &Path) -> Result<(String, String), String> {
    let operator = Key::new(folder, "operator", OPERATOR)?;
    let [system, account] = ["system", "account"].map(|name| Key::new(folder, name, ACCOUNT));
    let (system, account) = (system?, account?);
    let user = Key::new(folder, "user", USER)?;
    let all = ["subs", "data", "payload", "imports", "exports", "conn", "leaf"].map(|limit| (limit, -1));
    let store = ["mem_storage", "disk_storage", "streams", "consumer"].map(|limit| (limit, -1));
    let limits = |store: &[(&str, i32)]| {
        let mut limits: Value =
            all.iter().chain(store).map(|(limit, value)| (limit.to_string(), json!(value))).collect();
        limits["wildcards"] = json!(true);
        json!({ "limits": limits, "type": "account", "version": 2 })
    };
    let of_operator = operator.token(&operator.public, &json!({ "type": "operator", "version": 2 }))?;
    let of_system = operator.token(&system.public, &limits(&[]))?;
    let of_account = operator.token(&account.public, &limits(&store))?;
    let of_user = json!({ "subs": -1, "data": -1, "payload": -1, "type": "user", "version": 2 });
    let of_user = account.token(&user.public, &of_user)?;
    let lines = format!(
        "operator: {of_operator}\nsystem_account: {0}\nresolver: MEMORY\nresolver_preload: {{\n{0}: {of_system}\n{1}: \
         {of_account}\n}}\n",
        system.public, account.public
    );
    let block = |what: &str, text: &str| format!("-----BEGIN {what}-----\n{text}\n------END {what}------\n\n");
    Ok((lines, block("NATS USER JWT", &of_user) + &block("USER NKEY SEED", &user.seed())))
}

#[test]
fn files_of_credentials() {
    let files = tempfile::tempdir().expect("a folder");
    let made = account(files.path()).and_then(|one| Ok((one, account(files.path())?)));
    let ((lines, own), (_, foreign)) = match made {
        Ok(made) => made,
        Err(reason) => return skip(&format!("no keys can be made here: {reason}")),
    };
    let Some(server) = Server::with("127.0.0.1", |_| lines) else { return };
    let of = |name: &str, credentials: &str| {
        let file = files.path().join(name);
        std::fs::write(&file, credentials).expect("writes");
        ConnectOptions::with_credentials(&std::fs::read_to_string(file).expect("reads"))
    };
    assert!(of("no.creds", "no credentials").is_err());
    let [own, foreign] =
        [("own.creds", &own), ("foreign.creds", &foreign)].map(|(name, text)| of(name, text).expect("reads"));
    admits(&server, &server.url(), own, vec![foreign]);
}
