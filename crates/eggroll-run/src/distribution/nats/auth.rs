//! Where the server is, and how a node makes itself known to it.

use super::error::NatsError;
use super::secret_files::read_secret;
use async_nats::ServerAddr;
use secrecy::SecretString;
use std::env;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Variables with a secret.
const TOKEN: &str = "EGGROLL_NATS_TOKEN";
const USER: &str = "EGGROLL_NATS_USER";
const PASSWORD: &str = "EGGROLL_NATS_PASSWORD";

/// How a node makes itself known to the server. Secrets are not shown, and wiped when dropped.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum NatsAuth {
    /// Not at all, or by its client certificate.
    #[default]
    None,
    /// A token.
    Token(SecretString),
    /// A user.
    UserPassword {
        /// Its name.
        user: String,
        /// Its password.
        password: SecretString,
    },
    /// A file of credentials, with a JWT and an NKey.
    Credentials(PathBuf),
}

impl NatsAuth {
    /// What the environment says: `EGGROLL_NATS_TOKEN`, or `EGGROLL_NATS_USER` and `EGGROLL_NATS_PASSWORD`; [`None`](Self::None) if none of
    /// them is set.
    ///
    /// # Errors
    ///
    /// [`NatsError::Environment`] if a user has no password, a password no user, or both a token and a user are set.
    pub fn from_environment() -> Result<Self, NatsError> {
        Self::of_variables(|name| env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn of_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, NatsError> {
        match (variable(TOKEN), variable(USER), variable(PASSWORD)) {
            (None, None, None) => Ok(Self::None),
            (Some(token), None, None) => Ok(Self::Token(token.into())),
            (None, Some(user), Some(password)) => Ok(Self::UserPassword { user, password: password.into() }),
            (Some(_), ..) => {
                Err(NatsError::Environment(format!("{TOKEN} is set, and {USER} or {PASSWORD} too: unset one")))
            }
            (_, Some(_), None) => Err(NatsError::Environment(format!("{USER} is set, and {PASSWORD} is not"))),
            (_, None, Some(_)) => Err(NatsError::Environment(format!("{PASSWORD} is set, and {USER} is not"))),
        }
    }

    /// The token that stands in a file, which nobody but its owner may read.
    ///
    /// # Errors
    ///
    /// [`NatsError::Key`].
    pub fn token_file(path: impl AsRef<Path>) -> Result<Self, NatsError> {
        let (path, text) = (path.as_ref(), read_secret(path.as_ref())?);
        match text.trim() {
            "" => Err(NatsError::Key { path: path.to_owned(), reason: "there is no token in it".to_owned() }),
            token => Ok(Self::Token(token.to_owned().into())),
        }
    }

    /// What travels as it is, so that whoever reads the network has it.
    fn travels(&self) -> Option<&'static str> {
        match self {
            Self::Token(_) => Some("token"),
            Self::UserPassword { .. } => Some("password"),
            // The server's challenge is signed.
            Self::None | Self::Credentials(_) => None,
        }
    }
}

impl fmt::Debug for NatsAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => write!(f, "None"),
            Self::Token(_) => write!(f, "Token(…)"),
            Self::UserPassword { user, .. } => write!(f, "UserPassword({user:?}, …)"),
            Self::Credentials(path) => write!(f, "Credentials({path:?})"),
        }
    }
}

/// Where the server is, and how to get in.
#[derive(Clone, Default)]
pub struct NatsConnection {
    /// Addresses, separated by commas: `nats://host:4222`, or `tls://host:4222`. Users and passwords in them are refused.
    pub servers: String,
    /// How this node makes itself known.
    pub auth: NatsAuth,
    /// Refuses a server without TLS.
    pub require_tls: bool,
    /// Sends a token or password without TLS to other hosts than this one, which is refused otherwise.
    pub allow_plain: bool,
    /// Certificates of authorities, PEM, in place of the system's.
    pub root_certificates: Option<PathBuf>,
    /// This node's certificate and its key, PEM.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
}

impl fmt::Debug for NatsConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { servers, auth, require_tls, allow_plain, root_certificates, client_certificate } = self;
        f.debug_struct("NatsConnection")
            .field("servers", &shown(servers))
            .field("auth", auth)
            .field("require_tls", require_tls)
            .field("allow_plain", allow_plain)
            .field("root_certificates", root_certificates)
            .field("client_certificate", client_certificate)
            .finish()
    }
}

/// Addresses without what stands before an `@`.
pub(super) fn shown(servers: &str) -> String {
    let server = |server: &str| match (server.split_once("://"), server.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://…@{host}"),
        (None, Some((_, host))) => format!("…@{host}"),
        _ => server.to_owned(),
    };
    servers.split(',').map(|one| server(one.trim())).collect::<Vec<_>>().join(",")
}

impl NatsConnection {
    /// The addresses of the servers.
    ///
    /// # Errors
    ///
    /// [`NatsError::Connection`] if one is none or has a user in it, [`NatsError::Plain`] if a secret would travel without TLS.
    pub(super) fn addresses(&self) -> Result<Vec<ServerAddr>, NatsError> {
        let refuse = |reason: &str| NatsError::Connection { servers: shown(&self.servers), reason: reason.to_owned() };
        let parse = |server: &str| {
            if server.contains('@') {
                return Err(refuse(
                    "an address with a user or token in it: give it by a file or the environment, see NatsAuth",
                ));
            }
            let address = server.trim().parse::<ServerAddr>();
            address.map_err(|_| refuse("this is no address of a server: nats://host:4222 or tls://host:4222"))
        };
        let addresses = self.servers.split(',').map(parse).collect::<Result<Vec<_>, _>>()?;
        let is_plain = |address: &&ServerAddr| {
            let encrypted = self.require_tls || matches!(address.scheme(), "tls" | "wss");
            !encrypted && !is_loopback(address.host())
        };
        match (self.auth.travels(), addresses.iter().find(is_plain)) {
            (Some(what), Some(address)) if !self.allow_plain => {
                Err(NatsError::Plain { what, host: address.host().to_owned() })
            }
            _ => Ok(addresses),
        }
    }

    /// Whether addresses that a server advertises are not to be followed: a secret could travel to them without TLS.
    pub(super) fn stays(&self) -> bool {
        self.auth.travels().is_some() && !self.require_tls && !self.allow_plain
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(servers: &str, auth: NatsAuth) -> NatsConnection {
        NatsConnection { servers: servers.to_owned(), auth, ..NatsConnection::default() }
    }

    fn token() -> NatsAuth {
        NatsAuth::Token("secret".to_owned().into())
    }

    fn password() -> NatsAuth {
        NatsAuth::UserPassword { user: "user".to_owned(), password: "secret".to_owned().into() }
    }

    #[test]
    fn secrets_do_not_travel_in_the_open() {
        for (auth, what) in [(token(), "token"), (password(), "password")] {
            for far in
                ["nats://far:4222", "far", "nats://10.0.0.1", "nats://127.0.0.1,nats://far", "nats://[fe80::1]:4222"]
            {
                let refused = connection(far, auth.clone()).addresses();
                assert!(
                    matches!(&refused, Err(NatsError::Plain { what: found, .. }) if *found == what),
                    "{far}: {refused:?}"
                );
                let allowed = NatsConnection { allow_plain: true, ..connection(far, auth.clone()) };
                assert!(allowed.addresses().is_ok(), "{far}");
                let encrypted = NatsConnection { require_tls: true, ..connection(far, auth.clone()) };
                assert!(encrypted.addresses().is_ok() && !encrypted.stays(), "{far}");
                assert!(connection(far, NatsAuth::None).addresses().is_ok(), "no secret to {far}");
            }
            for near in ["nats://127.0.0.1:4222", "localhost", "nats://[::1]:4222", "127.0.0.7", "tls://far:4222"] {
                let connection = connection(near, auth.clone());
                assert!(connection.addresses().is_ok() && connection.stays(), "{near}");
            }
        }
    }

    #[test]
    fn secrets_are_in_no_address_debug_or_error() {
        for servers in
            ["nats://user:secret@far:4222", "secret@far", "nats://ok:1,tls://secret@far", "nats://user:se@secret@far"]
        {
            let connection = connection(servers, token());
            let error = connection.addresses().expect_err("refused");
            let shown = format!("{connection:?} {error} {error:?}");
            assert!(!shown.contains("secret") && shown.contains("@far"), "{shown}");
        }
        let shown = format!("{:?} {:?}", token(), password());
        assert!(!shown.contains("secret") && shown.contains("user"), "{shown}");
    }

    #[test]
    fn the_environment_says_who_this_is() {
        let of = |set: &[(&str, &str)]| {
            NatsAuth::of_variables(|name| {
                set.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(matches!(of(&[]), Ok(NatsAuth::None)));
        assert!(matches!(of(&[(TOKEN, "secret")]), Ok(NatsAuth::Token(_))));
        assert!(
            matches!(of(&[(USER, "w1"), (PASSWORD, "secret")]), Ok(NatsAuth::UserPassword { user, .. }) if user == "w1")
        );
        for set in [&[(USER, "w1")][..], &[(PASSWORD, "secret")], &[(TOKEN, "secret"), (USER, "w1")]] {
            let error = of(set).expect_err("refused").to_string();
            assert!(error.contains("EGGROLL_NATS_") && !error.contains("secret"), "{error}");
        }
    }
}
