//! The files of the language models' tasks.

use eggroll_examples::tasks::{Example, Splits, sft, words};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// What a reader makes of a file with this content, or its message without the folder.
fn read<T>(
    examples: impl Fn(&Path) -> Result<T, eggroll_examples::Failure>,
    name: &str,
    text: impl AsRef<[u8]>,
) -> Result<T, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    examples(&path).map_err(|error| error.to_string().replace(&path.display().to_string(), name))
}

fn lines(count: usize) -> String {
    (0..count).map(|index| format!("w{index}\t{}\n", if index % 2 == 0 { "1.5" } else { "-2" })).collect()
}

/// The word of a question.
fn word(example: &Example) -> &str {
    example.prompt.split('"').nth(1).unwrap()
}

fn is_positive(example: &&Example) -> bool {
    example.completion == " positive"
}

#[test]
fn the_words_of_the_repository() {
    let Splits { train, dev, test } =
        words::examples(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/words/sentiment.tsv"))).unwrap();
    let [positive, negative] = &train[..] else { panic!("{} kinds", train.len()) };
    assert_eq!((positive.len(), negative.len(), dev.len(), test.len()), (1583, 4028 - 512 - 1583, 256, 256));
    assert!(positive.iter().all(|word| is_positive(&word)) && !negative.iter().any(|word| is_positive(&word)));
    let positive_of = |examples: &[Example]| examples.iter().filter(is_positive).count();
    assert_eq!((positive_of(&dev), positive_of(&test)), (102, 121));
    let all = positive.iter().chain(negative).chain(&dev).chain(&test);
    assert_eq!(all.map(word).collect::<HashSet<_>>().len(), 4028);
    let first = |examples: &[Example]| examples.iter().take(3).map(word).collect::<Vec<_>>().join(" ");
    assert_eq!(first(&dev), "rageful poisonings outcry");
    assert_eq!(first(&test), "favorable fabulous ffs");
    let prompt =
        "<|im_start|>user\nIs the word \"favorable\" positive or negative?<|im_end|>\n<|im_start|>assistant\nIt is";
    assert_eq!(test[0].prompt, prompt);

    // The baseline of the documentation.
    fn start(example: &Example) -> &str {
        &word(example)[..word(example).len().min(4)]
    }
    let mut votes: HashMap<&str, i32> = HashMap::new();
    for example in train.iter().flatten() {
        *votes.entry(start(example)).or_default() += if is_positive(&example) { 1 } else { -1 };
    }
    let vote = |example: &&Example| votes.get(start(example)).is_some_and(|votes| *votes > 0);
    assert_eq!(test.iter().filter(|example| vote(example) == is_positive(example)).count(), 235);
}

#[test]
fn words_that_are_refused() {
    for bad in ["kind", "\t2.4", "kind\tx", "kind\tNaN", "kind\t0", "kind\t4.1", "kind\t1\t2", " k\t1"] {
        let error = read(words::examples, "words.tsv", format!("good\t2\n\n{bad}\n{}", lines(600))).unwrap_err();
        assert!(error.starts_with(&format!("words.tsv: line 3: found {bad:?}, expected a word, a tab")), "{error}");
    }
    let error = read(words::examples, "words.tsv", "kind\t2\nbad\t-2\nkind\t-2.1\n").unwrap_err();
    assert_eq!(error, "words.tsv: line 3: the word \"kind\" has the other sign on line 1: remove one");
    let once = read(words::examples, "words.tsv", lines(600));
    assert_eq!(read(words::examples, "words.tsv", format!("{}w7\t-3\nw8\t3\n", lines(600))), once);
    assert_eq!(read(words::examples, "words.tsv", lines(513)).unwrap().train.concat().len(), 1);
    let short = read(words::examples, "words.tsv", lines(512)).unwrap_err();
    assert!(short.starts_with("words.tsv: found 512 words, expected at least 513"), "{short}");
    let missing = words::examples(Path::new("/nonexistent/words.tsv")).unwrap_err().to_string();
    assert!(missing.starts_with("/nonexistent/words.tsv: "), "{missing}");
}

#[test]
fn names_tell_the_kind_of_examples() {
    let json: String = (0..20).map(|index| format!("{{\"prompt\":\"a\",\"completion\":\"{index}\"}}\r\n\n")).collect();
    for name in ["x.jsonl", "x.JSONL", "x.ndjson", "x.json", "x.tar.jsonl"] {
        let Splits { train, dev, test } = read(sft::examples, name, format!("\u{feff}{json}")).unwrap();
        assert_eq!((train.len(), train[0].len(), dev.len(), test.len()), (1, 16, 2, 2), "{name}");
        assert_eq!(test[1], Example { prompt: "a".into(), completion: "19".into(), line: 39 });
    }
    for name in ["x.txt", "x", "x.jsonl.bak"] {
        let error = read(sft::examples, name, &json).unwrap_err();
        assert_eq!(
            error,
            format!("{name}: found JSON in the first line, expected text, or a name that ends in .jsonl")
        );
    }
    let text = read(sft::examples, "x.txt", "\u{feff}{one}\r\n\n two \n".repeat(10)).unwrap();
    assert_eq!(text.train[0][0], Example { prompt: String::new(), completion: "{one}".into(), line: 1 });
    assert_eq!(text.train[0][1].completion, " two ");
}

#[test]
fn examples_that_are_refused() {
    let good = "\n{\"prompt\":\"a\",\"completion\":\"b\"}\n\n";
    for (bad, reason) in [
        ("nonsense", "(expected ident"),
        ("{\"prompt\":\"a\",\"completions\":\"b\"}", "missing field `completion`"),
        ("{\"prompt\":null,\"completion\":\"b\"}", "invalid type: null"),
        ("{\"prompt\":\"a\",\"completion\":\"b\",\"completion\":\"c\"}", "duplicate field `completion`"),
        ("{\"prompt\":\"a\",\"completion\":\"\"}", "the completion is empty"),
    ] {
        let error = read(sft::examples, "x.jsonl", format!("{good}{bad}")).unwrap_err();
        assert!(error.starts_with(&format!("x.jsonl: line 4: found {bad:?}")) && error.contains(reason), "{error}");
    }
    let compressed = read(sft::examples, "x.jsonl.gz", b"\x1f\x8b\x08\0").unwrap_err();
    assert_eq!(compressed, "x.jsonl.gz: line 1: found the byte 0x8B, expected text in UTF-8, not compressed");
    let few = read(sft::examples, "x.txt", "a\n".repeat(9)).unwrap_err();
    assert!(few.starts_with("9 examples: sft needs 10 at least"), "{few}");
}
