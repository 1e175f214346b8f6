//! Authentication: the coordinator signs, and every worker has a separate key.
//!
//! ```text
//! root    = 32 random bytes, the coordinator's alone
//! sign    = Ed25519 key of seed HMAC(root, "coordinator")
//! workers = HMAC(root, "workers")
//! worker  = HMAC(workers, name of the node)
//! ```
//!
//! HMAC is that of SHA-256. A worker holds the public half of `sign`, so that it can check what the coordinator says and cannot say it. With
//! its own key it makes messages of its own node and of no other; with that of all `workers`, of any node.

use super::config::is_token;
use super::error::NatsError;
use crate::digest::hex;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretBox};
use sha2::Sha256;
use std::fmt;

/// Bytes of a MAC at the end of a worker's message: 2¹²⁸ guesses.
pub(super) const MAC: usize = 16;
/// Bytes of a signature at the end of a coordinator's message.
pub(super) const SIGNATURE: usize = Signature::BYTE_SIZE;
/// What is signed begins with it, so that a signature made for another protocol is none here.
const SIGNED: &[u8] = b"eggroll nats coordinator 2\0";
/// As above, of work: the name of its node, zero, and the message follow.
const WORK: &[u8] = b"eggroll nats work 2\0";
/// As above, of MACs.
const AUTHENTICATED: &[u8] = b"eggroll nats worker 2\0";

type Secret = SecretBox<[u8; 32]>;

fn mac(key: &Secret, parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac = Hmac::new_from_slice(key.expose_secret()).expect("takes keys of every length");
    parts.iter().for_each(|part| mac.update(part));
    mac
}

fn derive(key: &Secret, name: &str) -> Secret {
    SecretBox::new(Box::new(mac(key, &[name.as_bytes()]).finalize().into_bytes().into()))
}

/// The key of a run's coordinator, from which all others are made. It is in no `Debug` and wiped when dropped.
pub struct CoordinatorKey {
    run: String,
    root: Secret,
    sign: SigningKey,
    workers: Secret,
}

impl CoordinatorKey {
    /// A new key, from the system's random numbers.
    ///
    /// # Errors
    ///
    /// [`NatsError::Random`] if there are none.
    pub fn random(run: &str) -> Result<Self, NatsError> {
        let mut root = Box::new([0; 32]);
        getrandom::fill(&mut *root).map_err(|error| NatsError::Random(error.to_string()))?;
        Ok(Self::of_root(run, SecretBox::new(root)))
    }

    pub(super) fn of_root(run: &str, root: Secret) -> Self {
        let sign = SigningKey::from_bytes(derive(&root, "coordinator").expose_secret());
        Self { run: run.to_owned(), sign, workers: derive(&root, "workers"), root }
    }

    pub(super) fn root(&self) -> &Secret {
        &self.root
    }

    /// The run's name.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Eight bytes of the public key in hexadecimal digits: what nodes compare.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.sign.verifying_key())
    }

    /// The key with which a process is any worker, whatever its name: for workers that are trusted.
    pub fn workers(&self) -> WorkerKey {
        self.worker_key(None, self.workers.expose_secret())
    }

    /// The key with which a process is the worker `node`, and no other.
    ///
    /// # Errors
    ///
    /// [`NatsError::Setting`] if no node can have that name.
    pub fn worker(&self, node: &str) -> Result<WorkerKey, NatsError> {
        is_token("node", node)?;
        Ok(self.worker_key(Some(node), derive(&self.workers, node).expose_secret()))
    }

    fn worker_key(&self, node: Option<&str>, secret: &[u8; 32]) -> WorkerKey {
        let (run, node) = (self.run.clone(), node.map(str::to_owned));
        WorkerKey { run, node, coordinator: self.sign.verifying_key(), secret: SecretBox::new(Box::new(*secret)) }
    }

    /// A message with the coordinator's signature.
    pub fn seal(&self, mut message: Vec<u8>) -> Vec<u8> {
        let signature = self.sign.sign(&[SIGNED, &message].concat());
        message.extend(signature.to_bytes());
        message
    }

    /// Work with a signature that is good for `node` alone.
    pub fn seal_work(&self, node: &str, mut work: Vec<u8>) -> Vec<u8> {
        let signature = self.sign.sign(&[WORK, node.as_bytes(), &[0], &work].concat());
        work.extend(signature.to_bytes());
        work
    }

    /// The message without its MAC, if that is of `node`.
    pub fn open<'a>(&self, node: &str, sealed: &'a [u8]) -> Option<&'a [u8]> {
        let (message, tag) = sealed.split_last_chunk::<MAC>()?;
        let found = mac(&derive(&self.workers, node), &[AUTHENTICATED, message]).verify_truncated_left(tag);
        found.is_ok().then_some(message)
    }

    /// The message without its signature, if that is of this coordinator or another one with its key.
    pub fn open_own<'a>(&self, sealed: &'a [u8]) -> Option<&'a [u8]> {
        verify(&self.sign.verifying_key(), &[SIGNED], sealed)
    }
}

/// A worker's key. It is in no `Debug` and wiped when dropped.
pub struct WorkerKey {
    run: String,
    node: Option<String>,
    coordinator: VerifyingKey,
    secret: Secret,
}

impl WorkerKey {
    pub(super) fn of_parts(run: &str, node: Option<String>, coordinator: &[u8; 32], secret: Secret) -> Option<Self> {
        let coordinator = VerifyingKey::from_bytes(coordinator).ok()?;
        Some(Self { run: run.to_owned(), node, coordinator, secret })
    }

    pub(super) fn secret(&self) -> &Secret {
        &self.secret
    }

    pub(super) fn coordinator(&self) -> [u8; 32] {
        self.coordinator.to_bytes()
    }

    /// The run's name.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The node whose key it is; `None` if it is that of all workers.
    pub fn node(&self) -> Option<&str> {
        self.node.as_deref()
    }

    /// Eight bytes of the coordinator's public key in hexadecimal digits.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.coordinator)
    }

    /// A message with the MAC of `node`, which is taken for genuine if the key is that node's or all workers'.
    pub fn seal(&self, node: &str, mut message: Vec<u8>) -> Vec<u8> {
        let tag = match self.node {
            Some(_) => mac(&self.secret, &[AUTHENTICATED, &message]),
            None => mac(&derive(&self.secret, node), &[AUTHENTICATED, &message]),
        };
        message.extend(&tag.finalize().into_bytes()[..MAC]);
        message
    }

    /// The message without its signature, if that is the coordinator's.
    pub fn open<'a>(&self, sealed: &'a [u8]) -> Option<&'a [u8]> {
        verify(&self.coordinator, &[SIGNED], sealed)
    }

    /// Work without its signature, if the coordinator has signed it for `node`.
    pub fn open_work<'a>(&self, node: &str, sealed: &'a [u8]) -> Option<&'a [u8]> {
        verify(&self.coordinator, &[WORK, node.as_bytes(), &[0]], sealed)
    }
}

fn verify<'a>(key: &VerifyingKey, before: &[&[u8]], sealed: &'a [u8]) -> Option<&'a [u8]> {
    let (message, signature) = sealed.split_last_chunk::<SIGNATURE>()?;
    key.verify_strict(&[&before.concat(), message].concat(), &Signature::from_bytes(signature)).ok()?;
    Some(message)
}

fn fingerprint(key: &VerifyingKey) -> String {
    hex(&key.to_bytes()[..8])
}

impl fmt::Debug for CoordinatorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CoordinatorKey({:?}, {}, …)", self.run, self.fingerprint())
    }
}

impl fmt::Debug for WorkerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WorkerKey({:?}, {:?}, {}, …)", self.run, self.node, self.fingerprint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> CoordinatorKey {
        CoordinatorKey::of_root("run", SecretBox::new(Box::new([byte; 32])))
    }

    #[test]
    fn workers_are_told_apart_and_cannot_speak_as_the_coordinator() {
        let (run, other) = (key(1), key(2));
        let [w1, w2] = ["w1", "w2"].map(|node| run.worker(node).expect("a name"));
        let said = run.seal(b"work".to_vec());
        assert_eq!(w1.open(&said), Some(&b"work"[..]));
        assert_eq!(run.open_own(&said), Some(&b"work"[..]));
        assert_eq!(other.workers().open(&said), None, "of another run");
        let answer = w1.seal("w1", b"result".to_vec());
        assert_eq!(run.open("w1", &answer), Some(&b"result"[..]));
        assert_eq!(run.open("w2", &answer), None, "under another name");
        assert_eq!(run.open("w2", &w1.seal("w2", b"result".to_vec())), None, "made for another name");
        assert_eq!(other.open("w1", &answer), None);
        assert_eq!((w2.open(&answer), run.open_own(&answer)), (None, None), "no worker is the coordinator");
        assert_eq!(run.open("w1", &said), None);
        let any = run.workers();
        assert_eq!(run.open("w7", &any.seal("w7", b"result".to_vec())), Some(&b"result"[..]));
    }

    #[test]
    fn work_is_for_one_worker() {
        let (run, other) = (key(1), key(2));
        let work = run.seal_work("w1", b"work".to_vec());
        let any = run.workers();
        assert_eq!(run.worker("w1").expect("a name").open_work("w1", &work), Some(&b"work"[..]));
        assert_eq!(any.open_work("w1", &work), Some(&b"work"[..]));
        assert_eq!(any.open_work("w2", &work), None, "another's");
        assert_eq!((any.open(&work), run.open_own(&work)), (None, None), "no other message");
        assert_eq!(any.open_work("w1", &run.seal(b"work".to_vec())), None, "no other message is work");
        assert_eq!(other.workers().open_work("w1", &work), None, "of another run");
    }

    #[test]
    fn every_bit_counts() {
        let run = key(1);
        let (said, answer) = (run.seal(b"work".to_vec()), run.workers().seal("w1", b"result".to_vec()));
        for bit in 0..8 * said.len() {
            let mut said = said.clone();
            said[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(run.open_own(&said), None, "bit {bit}");
        }
        for bit in 0..8 * answer.len() {
            let mut answer = answer.clone();
            answer[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(run.open("w1", &answer), None, "bit {bit}");
        }
        for len in 0..SIGNATURE {
            assert_eq!((run.open_own(&said[..len]), run.open("w1", &answer[..len.min(MAC)])), (None, None));
        }
    }

    /// Known answers of OpenSSL (Ed25519) and Python (HMAC): a file of today is read by later versions.
    #[test]
    fn keys_are_stable() {
        let run = key(7);
        assert_eq!(run.fingerprint(), "211731a040390561");
        let answer = run.worker("w1").expect("a name").seal("w1", b"result".to_vec());
        assert_eq!(hex(&answer[6..]), "aec57e990ade8c56bc80e378ab1e0c1c");
    }

    #[test]
    fn secrets_are_not_shown() {
        let run = key(0xab);
        let shown = format!("{run:?} {:?} {:?}", run.workers(), run.worker("w1"));
        assert!(!shown.contains("abab") && !shown.contains("171, 171") && shown.contains("w1"), "{shown}");
    }
}
