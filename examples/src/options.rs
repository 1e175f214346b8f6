//! Which options a command line gives: one that nothing would use is refused, and so is a number that is none.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Parser};
use std::fmt::Debug;

/// Options that need a feature of this package: option, feature, and whether this build has it.
const FEATURES: [(&str, &str, bool); 4] = [
    ("csv", "csv", cfg!(feature = "csv")),
    ("dashboard", "tui", cfg!(feature = "tui")),
    ("tensorboard", "tensorboard", cfg!(feature = "tensorboard")),
    ("trace", "profile", cfg!(feature = "profile")),
];

/// The options that were given, by their long names. Defaults are not among them.
#[derive(Clone, Debug)]
pub struct Given(Vec<String>);

/// Reads the command line. Ends the program as [`Parser::parse`] does, also for a number that is NaN or infinite.
pub fn parse<A: Parser>() -> (A, Given) {
    parse_from(std::env::args_os()).unwrap_or_else(|error| error.exit())
}

/// The same of these words.
///
/// # Errors
///
/// What is wrong with them, or a request for help.
pub fn parse_from<A: Parser>(
    words: impl IntoIterator<Item = impl Into<std::ffi::OsString> + Clone>,
) -> Result<(A, Given), clap::Error> {
    let mut command = A::command().mut_args(with_short_value);
    let matches = command.try_get_matches_from_mut(words)?;
    let names = command.get_arguments().filter_map(|argument| Some((argument.get_id().as_str(), argument.get_long()?)));
    let given = names.filter(|(id, _)| matches.value_source(id) == Some(ValueSource::CommandLine));
    let given: Vec<(String, String)> = given.map(|(id, name)| (id.to_owned(), name.to_owned())).collect();
    for (id, name) in &given {
        let number = not_finite::<f64>(&matches, id, |number| number.is_finite());
        if let Some(number) = number.or_else(|| not_finite::<f32>(&matches, id, |number| number.is_finite())) {
            return Err(
                command.error(ErrorKind::ValueValidation, format!("--{name} must be a finite number, not {number}"))
            );
        }
    }
    let absent = |(name, _, is_built): &&(&str, &str, bool)| !is_built && given.iter().any(|(_, given)| given == name);
    if let Some((name, feature, _)) = FEATURES.iter().find(absent) {
        let message = format!("--{name} needs a build with --features {feature}");
        return Err(command.error(ErrorKind::InvalidValue, message));
    }
    let args = A::from_arg_matches(&matches)?;
    Ok((args, Given(given.into_iter().map(|(_, name)| name).collect())))
}

/// Shows `--population <X>` for `--population <POPULATION>`, so that every option shares a line with its help. Other names of values stay.
fn with_short_value(arg: Arg) -> Arg {
    let name = arg.get_value_names().and_then(|names| names.first());
    let is_default = name.is_some_and(|name| name.eq_ignore_ascii_case(arg.get_id().as_str()));
    if arg.get_long().is_some() && is_default { arg.value_name("X") } else { arg }
}

/// The first number of an option of this type that is not finite.
fn not_finite<T: Debug + Clone + Send + Sync + 'static>(
    matches: &ArgMatches,
    id: &str,
    is_finite: impl Fn(&T) -> bool,
) -> Option<String> {
    let mut numbers = matches.try_get_many::<T>(id).ok()??;
    numbers.find(|number| !is_finite(number)).map(|number| format!("{number:?}"))
}

impl Given {
    /// Whether the option of this name was given.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|given| given == name)
    }

    /// Refuses the first of these options that was given: nothing would use it.
    ///
    /// # Errors
    ///
    /// Its name, and `with`: what it cannot be used with.
    pub fn refuse(&self, names: &[&str], with: &str) -> Result<(), String> {
        self.check(with, |given| !names.contains(&given))
    }

    /// Refuses the first option that was given but for these.
    ///
    /// # Errors
    ///
    /// As [`refuse`](Self::refuse).
    pub fn refuse_all_but(&self, names: &[&str], with: &str) -> Result<(), String> {
        self.check(with, |given| names.contains(&given) || given.starts_with("trace"))
    }

    fn check(&self, with: &str, is_used: impl Fn(&str) -> bool) -> Result<(), String> {
        match self.0.iter().find(|given| !is_used(given)) {
            Some(name) => Err(format!("--{name} cannot be used {with}")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Parser, Debug)]
    struct RateArgs {
        #[arg(long, default_value_t = 0.5)]
        rate: f64,
        #[arg(long, value_delimiter = ',')]
        shares: Vec<f32>,
        #[arg(long)]
        resume: bool,
    }

    fn parsed(words: &[&str]) -> Result<(RateArgs, Given), String> {
        parse_from(["program"].iter().chain(words)).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_given_is_known() {
        let (args, given) = parsed(&["--shares", "0.5,1", "--resume"]).expect("parses");
        assert!(args.resume && args.rate == 0.5 && args.shares == [0.5, 1.0]);
        assert!(given.has("shares") && given.has("resume") && !given.has("rate"));
        assert_eq!(given.refuse(&["rate"], "now"), Ok(()));
        assert_eq!(given.refuse(&["rate", "shares"], "now"), Err("--shares cannot be used now".to_owned()));
        assert_eq!(given.refuse_all_but(&["shares"], "now"), Err("--resume cannot be used now".to_owned()));
        assert_eq!(given.refuse_all_but(&["shares", "resume"], "now"), Ok(()));
        let (_, none) = parsed(&[]).expect("parses");
        assert_eq!(none.refuse_all_but(&[], "now"), Ok(()));
    }

    #[test]
    fn values_have_short_names() {
        #[derive(Parser, Debug)]
        struct FolderArgs {
            data: Option<String>,
            /// Rate.
            #[arg(long, default_value_t = 0.5)]
            rate: f64,
            /// Folder.
            #[arg(long, value_name = "FOLDER")]
            out: Option<String>,
        }
        let help = parse_from::<FolderArgs>(["program", "--help"]).expect_err("help").to_string();
        for line in ["[DATA]", "--rate <X>      Rate [default: 0.5]", "--out <FOLDER>  Folder"] {
            assert!(help.contains(line), "{line}: {help}");
        }
        let (args, _) = parse_from::<FolderArgs>(["program", "--rate", "1"]).expect("parses");
        assert!(args.data.is_none() && args.rate == 1.0 && args.out.is_none());
    }

    /// Whatever this build has.
    #[test]
    fn options_without_their_feature_are_refused() {
        #[derive(Parser, Debug)]
        struct CsvArgs {
            #[arg(long)]
            csv: bool,
        }
        let parsed = parse_from::<CsvArgs>(["program", "--csv"]);
        if cfg!(feature = "csv") {
            assert!(parsed.expect("built in").0.csv);
        } else {
            let error = parsed.expect_err("not built in").to_string();
            assert!(error.contains("--csv needs a build with --features csv"), "{error}");
        }
    }

    #[test]
    fn numbers_are_finite() {
        for (words, expected) in [
            (&["--rate", "nan"][..], "--rate must be a finite number, not NaN"),
            (&["--rate=-inf"], "--rate must be a finite number, not -inf"),
            (&["--shares", "0.5,infinity"], "--shares must be a finite number, not inf"),
            (&["--shares", "1e39"], "--shares must be a finite number, not inf"),
        ] {
            let error = parsed(words).expect_err("refused");
            assert!(error.contains(expected), "{error}");
        }
    }
}
