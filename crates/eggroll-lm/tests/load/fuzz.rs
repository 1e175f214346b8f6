//! Generated chat templates and tokenizers: a text or an error, but no panic, no overflow and no end of memory.
//!
//! `EGGROLL_FUZZ_CASES` is the number of cases of each kind; `scripts/torture` runs ten thousand within a bound of memory and time.

use crate::write_gguf::alphabet;
use eggroll_lm::load::{ChatTemplate, Message, SpecialTokens, Tokenizer};
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use serde_json::{Value, json};

const TEXT: &str = " Ab  12 é\n<a> İ ab<b>aaa\u{fdfa} ";

fn cases() -> u64 {
    std::env::var("EGGROLL_FUZZ_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(250)
}

/// Choices, one case after the other.
struct Choices(TestRng);

impl Choices {
    fn new(case: u64) -> Self {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&case.to_le_bytes());
        Self(TestRng::from_seed(RngAlgorithm::ChaCha, &seed))
    }

    fn below(&mut self, count: usize) -> usize {
        self.0.next_u32() as usize % count
    }

    fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }

    fn expression(&mut self, depth: usize) -> String {
        const VALUES: [&str; 17] = [
            "x",
            "messages",
            "ns",
            "'ab'",
            "1",
            "0",
            "-1",
            "2.5",
            "none",
            "true",
            "[]",
            "{'a': 1}",
            "(1, 'b')",
            "range(9)",
            "10 ** 9",
            "'é' * 99999",
            "loop",
        ];
        const AFTER: [&str; 30] = [
            ".split()",
            ".join(messages)",
            ".replace('a', x)",
            ".format(x)",
            ".zfill(99999999)",
            ".center(9, 'x')",
            ".items()",
            ".get(x)",
            "|tojson(indent=99)",
            "|list",
            "|join(x)",
            "|map('upper')",
            "|sort",
            "|groupby(0)",
            "|batch(3, x)",
            "|slice(99999)",
            "|indent(9999)",
            "|int",
            "|float",
            "|round(3)",
            "|length",
            "|first",
            "|dictsort",
            "|unique",
            "|string",
            "[0]",
            "[::-1]",
            "[x]",
            ".content",
            "()",
        ];
        let inner = |choices: &mut Self| choices.expression(depth.saturating_sub(1));
        match if depth == 0 { 0 } else { self.below(7) } {
            0 => self.of(&VALUES).to_owned(),
            1 | 2 => format!("({}){}", inner(self), self.of(&AFTER)),
            3 => {
                let operator = self.of(&[
                    "+",
                    "*",
                    "-",
                    "/",
                    "//",
                    "%",
                    "**",
                    "~",
                    "<",
                    "==",
                    "in",
                    "and",
                    "or",
                    "if",
                    "is sameas",
                ]);
                format!("({}) {operator} ({})", inner(self), inner(self))
            }
            4 => format!("[{}, {}]", inner(self), inner(self)),
            5 => format!("{{{}: {}}}", inner(self), inner(self)),
            _ => {
                let count = [1, 10, 200, 5000][self.below(4)];
                let (begin, end) = [("(", ")"), ("[", "]"), ("-", ""), ("not ", ""), ("x[", "]")][self.below(5)];
                format!("{}{}{}", begin.repeat(count), inner(self), end.repeat(count))
            }
        }
    }

    fn statements(&mut self, depth: usize) -> String {
        let count = 1 + self.below(3);
        (0..count).map(|_| self.statement(depth)).collect()
    }

    fn statement(&mut self, depth: usize) -> String {
        let value = self.expression(2);
        let inner = |choices: &mut Self| choices.statements(depth.saturating_sub(1));
        match if depth == 0 { self.below(2) } else { self.below(12) } {
            0 | 1 => format!("{{{{ {value} }}}}"),
            2 => format!("{{% if {value} %}}{}{{% else %}}{}{{% endif %}}", inner(self), inner(self)),
            3 | 4 => format!("{{% for x in {value} recursive %}}{}{{{{ loop(x) }}}}{{% endfor %}}", inner(self)),
            5 => format!("{{% for x in {value} %}}{}{{% endfor %}}", inner(self)),
            6 => format!("{{% set x = {value} %}}{}", inner(self)),
            7 => format!(
                "{{% set ns = namespace(x=1) %}}{{% for i in range(999) %}}{{% set ns.x = {value} %}}{}{{% endfor %}}",
                inner(self)
            ),
            8 => format!("{{% macro f(a, b={value}) %}}{}{{% endmacro %}}{{{{ f(x) }}}}", inner(self)),
            9 => format!(
                "{{% macro g(a) %}}{}{{{{ g({value}) }}}}{{{{ caller() }}}}{{% endmacro %}}{{% call g(1) %}}{}{{% endcall %}}",
                inner(self),
                inner(self)
            ),
            10 => format!(
                "{{% set x %}}{}{{% endset %}}{{% filter upper %}}{}{{% endfilter %}}",
                inner(self),
                inner(self)
            ),
            _ => {
                // Broken anywhere.
                let mut text = inner(self);
                let place =
                    (0..=self.below(text.len() + 1)).rev().find(|&place| text.is_char_boundary(place)).unwrap_or(0);
                text.truncate(place);
                text
            }
        }
    }

    fn step(&mut self, depth: usize, key: &str) -> Value {
        let text =
            |choices: &mut Self| choices.of(&["", "a", " ", "▁", "ab", "<a>", "aaaaaaaaaa", "İ", "\u{301}"]).to_owned();
        let (inner, kinds): (_, &[&str]) = match key {
            "normalizer" => {
                ("normalizers", &["NFC", "NFD", "NFKC", "NFKD", "Prepend", "Replace", "Lowercase", "Strip"])
            }
            "pre_tokenizer" => (
                "pretokenizers",
                &["Split", "ByteLevel", "Digits", "Metaspace", "Whitespace", "WhitespaceSplit", "Punctuation"],
            ),
            _ => ("decoders", &["ByteLevel", "Replace", "ByteFallback", "Fuse", "Strip", "Metaspace"]),
        };
        if depth > 0 && self.below(2) == 0 {
            let count = self.below(4);
            let steps: Vec<Value> = (0..count).map(|_| self.step(depth - 1, key)).collect();
            return json!({ "type": "Sequence", inner: steps });
        }
        let pattern = match self.below(2) {
            0 => json!({ "String": text(self) }),
            _ => {
                json!({ "Regex": self.of(&["a+", "", r"\s+(?!\S)|\w", "(a+a+)+(?=b)|b", r"\w{50}", "[", " ?a", "(?<=a)b", "(a|b)*"]) })
            }
        };
        let flag = |choices: &mut Self| choices.below(2) == 0;
        json!({
            "type": self.of(kinds), "pattern": pattern, "content": text(self).chars().next().map_or(text(self), String::from),
            "prepend": text(self), "behavior": self.of(&["Isolated", "Removed", "MergedWithNext", "MergedWithPrevious", "Contiguous"]),
            "invert": flag(self), "add_prefix_space": flag(self), "use_regex": flag(self), "trim_offsets": flag(self),
            "individual_digits": flag(self), "replacement": "▁", "prepend_scheme": self.of(&["first", "always", "never"]),
            "split": flag(self), "strip_left": flag(self), "strip_right": flag(self), "start": self.below(3), "stop": self.below(3),
        })
    }

    fn tokenizer(&mut self) -> Value {
        let mut vocabulary: serde_json::Map<String, Value> = alphabet()
            .into_iter()
            .chain(["ab".into(), "aa".into()])
            .zip(0u32..)
            .map(|(token, id)| (token, id.into()))
            .collect();
        if self.below(4) == 0 {
            vocabulary.insert(String::new(), 258.into());
        }
        let next = vocabulary.len();
        let names = ["<a>", "<b>", "a", " ", "İ", "▁", "A"];
        let added: Vec<Value> = (0..self.below(4))
            .map(|place| {
                json!({ "id": next + place, "content": self.of(&names), "single_word": self.below(2) == 0, "lstrip": self.below(2) == 0,
                    "rstrip": self.below(2) == 0, "normalized": self.below(2) == 0, "special": self.below(2) == 0 })
            })
            .collect();
        let mut json = json!({
            "version": "1.0", "added_tokens": added, "normalizer": null, "pre_tokenizer": null, "decoder": null,
            "post_processor": { "type": "TemplateProcessing", "single": [{ "Sequence": { "id": self.of(&["A", "B"]), "type_id": 0 } }],
                "pair": [{ "Sequence": { "id": "A", "type_id": 0 } }, { "Sequence": { "id": "B", "type_id": 1 } }], "special_tokens": {} },
            "model": { "type": "BPE", "unk_token": null, "fuse_unk": false, "byte_fallback": self.below(2) == 0, "ignore_merges": self.below(2) == 0,
                "vocab": vocabulary, "merges": ["a b", "a a"] },
        });
        for key in ["normalizer", "pre_tokenizer", "decoder"] {
            if self.below(4) > 0 {
                json[key] = self.step(2, key);
            }
        }
        json
    }
}

/// Runs a case on a thread with the stack of a worker.
fn run(case: u64, what: &str, work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(work).expect("a thread");
    assert!(thread.join().is_ok(), "{what} of case {case} panics");
}

#[test]
fn generated_templates() {
    for case in 0..cases() {
        run(case, "the template", move || {
            let source = Choices::new(case).statements(3);
            let template = match ChatTemplate::new(source, SpecialTokens::default()) {
                Ok(template) => template,
                Err(_) => return,
            };
            let _ = template.render(&[Message::user("Hi <b>"), Message::assistant("é\n")], true);
        });
    }
}

#[test]
fn generated_tokenizers() {
    let mut opened = 0;
    for case in 0..cases() {
        let json = Choices::new(case).tokenizer();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tokenizer.json"), json.to_string()).unwrap();
        let Ok(tokenizer) = Tokenizer::from_folder(folder.path()) else { continue };
        opened += 1;
        run(case, "the tokenizer", move || {
            for text in ["", "a", TEXT, &TEXT.repeat(50)] {
                // An error where the crate panics: the text meets a step in a way that nobody thought of.
                if let Ok(ids) = tokenizer.encode(text) {
                    let _ = tokenizer.decode(&ids, true);
                }
            }
            let all: Vec<u32> = (0..270).collect();
            let _ = (tokenizer.decode(&all, false), tokenizer.decode(&[], false));
            let _ = (tokenizer.largest_id(), tokenizer.to_json());
        });
    }
    assert!(opened > cases() / 10, "{opened} of {} tokenizers open", cases());
}
