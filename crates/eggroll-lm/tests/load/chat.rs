//! Chat templates: what published ones use, and what must fail.

use crate::write_gguf::{Value, tiny, write};
use eggroll_lm::load::{ChatTemplate, LoadError, Message, Pretrained, SpecialTokens, Tokenizer};

fn render(source: &str, messages: &[Message]) -> Result<String, String> {
    let tokens = SpecialTokens { bos: Some("<s>".into()), eos: Some("</s>".into()), ..SpecialTokens::default() };
    let template = ChatTemplate::new(source, tokens).map_err(|error| error.to_string())?;
    template.render(messages, true).map_err(|error| error.to_string())
}

fn chat() -> [Message; 2] {
    [Message::user(" Hi <b> & \"you\" "), Message::assistant("Yo")]
}

#[test]
fn white_space_is_that_of_transformers() {
    let source = "{{ bos_token }}\n{%- for message in messages %}\n    {%- if message['role'] == 'user' %}\n[INST]{{ message.content.strip() }}[/INST]\n    {% else %}\n{{ message['content'] + eos_token }}\n    {%- endif %}\n{%- endfor %}\n";
    assert_eq!(render(source, &chat()).unwrap(), "<s>[INST]Hi <b> & \"you\"[/INST]\nYo</s>");
}

#[test]
fn methods_and_names_of_python_are_there() {
    let source = "{% set ns = namespace(n=0) %}{% for m in messages %}{% if loop.last %}{% continue %}{% endif %}{% set ns.n = ns.n + 1 %}{{ m.content.split('<')[0] | trim }}{{ m['role'].upper() }}{% endfor %}{{ ns.n }}{{ tools is none }}{{ messages[1:] | length }}{{ strftime_now is defined }}{% if not tools is defined %}x{% endif %}{{ pad_token is defined }}{{ 'Yo' in messages[1].content }}{{ messages[-1].content.startswith('Y') }}{{ add_generation_prompt }}";
    assert_eq!(render(source, &chat()).unwrap(), "HiUSER1True1TrueFalseTrueTrueTrue");
}

/// What transformers does to messages before a template sees them.
#[test]
fn messages_are_those_of_transformers() {
    let source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}|{{ m.reasoning_content }}|{{ m.thinking }}|{{ m.tool_calls is defined }}{% endfor %}{{ image_token }}";
    let tokens = SpecialTokens { others: vec![("image_token".into(), "<i>".into())], ..SpecialTokens::default() };
    let template = ChatTemplate::new(source, tokens).unwrap();
    let messages = r#"{"messages": [{"role": "a", "content": null, "tool_calls": null}, {"role": "a", "content": "x", "reasoning": "why"}]}"#;
    assert_eq!(template.render_json(messages).unwrap(), "<a>|||False<a>x|why|why|False<i>");
}

/// Values that are undefined are keys, as in Python, and a long name of what is undefined takes no memory.
#[test]
fn undefined_values_are_keys() {
    let source = "{% set m = {'a': 1} %}{% set x = {} %}{{ m[x.kind] is defined }}{{ x.kind in m }}{{ m.get(x.kind, 'd') }}{{ u | last }}";
    assert_eq!(render(source, &[]).unwrap(), "FalseFalsed");
    let source = "{% set k = 'a' * 5000000 %}{{ range(1000) | map('attr', k) | list | length }}";
    assert_eq!(render(source, &[]).unwrap(), "1000");
    let source = "{% for i in [1, 2] %}{% set v %}a{% break %}{% endset %}{% endfor %}";
    assert!(render(source, &[]).unwrap_err().contains("break and continue out of a set"));
}

#[test]
fn a_template_can_refuse_a_chat() {
    let source = "{{ raise_exception('Conversation roles must alternate') }}";
    let error = render(source, &chat()).unwrap_err();
    assert!(error.contains("refuses this chat: Conversation roles must alternate"), "{error}");
}

#[test]
fn errors_of_templates_are_reported() {
    assert!(render("{% for m in messages %}", &chat()).unwrap_err().contains("syntax error"));
    assert!(
        render("{{ messages[0].nothing.more }}", &chat()).unwrap_err().contains("\"nothing\" is undefined (line 1)")
    );
    assert!(render("{{ open('/etc/passwd') }}", &chat()).unwrap_err().contains("\"open\" is undefined"));
    assert!(render("{% include 'x' %}", &chat()).unwrap_err().contains("no other templates"));
    assert!(
        render("\n{{ 'é'.encode() }}", &chat()).unwrap_err().contains("\"encode\" of str is not supported (line 2)")
    );
}

/// The corpus of `tests/golden/chat_templates.py`: the text of jinja2, or an error where that has one.
#[test]
fn templates_give_what_jinja2_gives() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/chat_templates.json");
    let golden: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    // Values are JSON within JSON: the order of their keys counts.
    let (values, cases) = (golden["values"].as_str().unwrap(), golden["cases"].as_array().unwrap());
    assert!(cases.len() >= 300, "{} cases", cases.len());
    // What this crate does not have, and says so.
    let refused = ["'é'.encode", "map('attr'"];
    let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_721_984_703);
    for case in cases {
        let source = case["template"].as_str().unwrap();
        let given = match case["values"].as_str().unwrap() {
            "{}" => values.to_owned(),
            own => format!("{}, {}", values.strip_suffix('}').unwrap(), own.strip_prefix('{').unwrap()),
        };
        let found = ChatTemplate::new(source, SpecialTokens::default())
            .and_then(|template| template.with_time(time).render_json(&given))
            .map_err(|error| error.to_string());
        match case["text"].as_str() {
            Some(_) if refused.iter().any(|refused| source.contains(refused)) => assert!(found.is_err(), "{source:?}"),
            text => assert_eq!(found.as_deref().ok(), text, "{source:?}: {found:?}"),
        }
    }
}

/// Runs on a thread with the stack of a test or of a worker.
fn on_small_stack<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().expect("no panic")
}

#[test]
fn a_template_without_end_is_stopped() {
    on_small_stack(|| {
        let nested = "{% for a in range(99999) %}{% for a in range(99999) %}{% for a in range(99999) %}{% endfor %}{% endfor %}{% endfor %}";
        assert!(render(nested, &chat()).unwrap_err().contains("does not end within"));
        let recursive = "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}";
        assert!(render(recursive, &chat()).unwrap_err().contains("deep"));
        let recursive = "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}";
        assert!(render(recursive, &chat()).unwrap_err().contains("deep"));
    });
}

/// What repeats in a template, `{}` for the place of what is inside: nested, or one after the other.
#[test]
fn deep_templates_are_errors_on_a_small_stack() {
    let nested = [
        ("(", ")"),
        ("[", "]"),
        ("{1:", "}"),
        ("{'a':", "}.a"),
        ("-", ""),
        ("+", ""),
        ("not ", ""),
        ("f(", ")"),
        ("f(a=", ")"),
        ("f(*", ")"),
        ("x[", "]"),
        ("x[:", "]"),
        ("x|d(", ")"),
        ("x is eq(", ")"),
        ("1 if x else ", ""),
        ("(1,", ")"),
        ("x.y(", ")[0]"),
        ("not -", ""),
        ("[-(", ")]"),
        ("{(", "):1}"),
        ("x ** (", ")"),
        ("'a' ~ (", ")"),
    ];
    let chains = [
        " + x",
        " ~ x",
        " * x",
        " ** x",
        " and x",
        " or x",
        " < x",
        " in x",
        " == x",
        " if x",
        ".x",
        "[0]",
        "[1:2]",
        "()",
        "|d",
        "|d|upper",
        " is defined",
        " is eq x",
        " - -x",
        " if x else x",
        ", x",
        " not in x",
        "|map('upper')",
        ".x()",
    ];
    let blocks = [
        ("{% if x %}", "{% endif %}"),
        ("{% for x in y %}", "{% endfor %}"),
        ("{% set x %}", "{% endset %}"),
        ("{% macro f() %}", "{% endmacro %}"),
        ("{% call f() %}", "{% endcall %}"),
        ("{% filter upper %}", "{% endfilter %}"),
        ("{% with %}", "{% endwith %}"),
        ("{% generation %}", "{% endgeneration %}"),
        ("{% if x %}{% else %}", "{% endif %}"),
        ("{{ {", "} }}"),
        ("{%", ""),
        ("{{", ""),
        ("{#", "#}"),
        ("{% if x %}{% elif y %}", ""),
        ("{% raw %}", "{% endraw %}"),
    ];
    on_small_stack(move || {
        for size in [100, 3000, 30_000] {
            for (begin, end) in nested {
                let source = format!("{{{{ {}x{} }}}}", begin.repeat(size), end.repeat(size));
                let found = render(&source, &chat());
                assert!(size == 100 || found.is_err(), "{size} times {begin:?}");
            }
            for link in chains {
                let _ = render(&format!("{{{{ x{} }}}}", link.repeat(size)), &chat());
                let _ = render(&format!("{{% if '' ~ x{} %}}{{% endif %}}", link.repeat(size)), &chat());
            }
            for (begin, end) in blocks {
                let _ = render(&format!("{}x{}", begin.repeat(size), end.repeat(size)), &chat());
            }
            let elifs = format!("{{% if x %}}{}{{% endif %}}", "{% elif x %}".repeat(size));
            assert_eq!(render(&elifs, &chat()).unwrap(), "");
        }
        assert!(render(&"x".repeat((1 << 20) + 1), &chat()).unwrap_err().contains("1048576 at most"));
    });
}

#[test]
fn no_template_takes_more_memory_than_its_bound() {
    let sources = [
        "{{ '{:>9223372036854775807}'.format('x') }}",
        "{{ '{:>999999999}'.format('x') }}",
        "{{ '{:.9000000000f}'.format(1.0) }}",
        "{{ '{:999999999d}'.format(1) }}",
        "{{ '{:{}}'.format('x', 999999999) }}",
        "{{ '%9999999999d' % 1 }}",
        "{{ '%999999999s' % 'x' }}",
        "{{ '%.99999999f' % 1.5 }}",
        "{{ [1] | tojson(indent=9223372036854775807) }}",
        "{{ [[[[[[1]]]]]] | tojson(indent=60000000) }}",
        "{{ [1, 2] | tojson(indent='x' * 60000000) }}",
        "{{ ([1] * 1000) | tojson(separators=('x' * 1000000, ':')) }}",
        "{% set a = 'a' * 1000000 %}{{ ([a] * 100000) | join }}",
        "{% set a = 'a' * 1000000 %}{{ ''.join([a] * 100000) }}",
        "{% set a = 'a' * 100000 %}{{ a.replace('a', a).replace('a', a) }}",
        "{% set a = 'a' * 100000 %}{{ a | replace('', a) }}",
        "{{ 'a'.center(10 ** 12) }}",
        "{{ 'a' | center(10 ** 12) }}",
        "{{ 'a'.ljust(10 ** 12) ~ 'a'.rjust(10 ** 12) ~ 'a'.zfill(10 ** 12) }}",
        "{{ '\t'.expandtabs(10 ** 12) }}",
        "{{ 'a' | indent(10 ** 9, true) }}",
        "{{ ('\n' * 100000) | indent(100000, true, true) }}",
        "{{ range(10 ** 9) | list }}",
        "{{ range(100000) | list * 100000 }}",
        "{{ 'a' * 10 ** 12 }}",
        "{% set a = 'a' * 1000000 %}{% set ns = namespace(x=[]) %}{% for i in range(600) %}{% set ns.x = ns.x + [{(a, i): 1}] %}{% endfor %}",
        "{{ [0] * 10 ** 10 }}",
        "{{ (1, 2) * 10 ** 10 }}",
        "{{ [1] | batch(10 ** 9, 0) | list }}",
        "{{ [1] | slice(10 ** 9, 0) | list }}",
        "{{ 10 ** 10 ** 10 }}",
        "{{ ('a' * 1000000) | list | map('upper') | list | length * 1000000000 }}{{ ('a' * 30000000) | list }}",
        "{{ ('a b ' * 10000000).split() }}",
        "{{ ('a\n' * 20000000).splitlines() }}",
        "{% set ns = namespace(s='ab') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
        "{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(100) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(140) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x == ns.x }}",
        "{% set ns = namespace(x=(1,)) %}{% for i in range(140) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}{{ {ns.x: 1} }}",
        "{% set ns = namespace(x=[]) %}{% for i in range(1000) %}{% for j in range(1000) %}{% set ns.x = [ns.x] %}{% endfor %}{% endfor %}",
        "{% set ns = namespace(x={}) %}{% for i in range(1000) %}{% set ns.x = {1: ns.x} %}{% endfor %}",
        "{% set ns = namespace() %}{% set ns.me = [ns] %}{{ ns }}",
        "{% for i in range(99999) %}{{ 'a' * 1000000 }}{% endfor %}",
        "{% macro f(n) %}{{ 'a' * 10000000 }}{{ f(n) }}{% endmacro %}{{ f(1) }}",
        "{% set x = 'a' * 30000000 %}{% set y %}{{ x }}{{ x }}{{ x }}{% endset %}",
        "{{ ('é' * 20000000)[::-1] ~ ('é' * 20000000)[::-1] }}",
        "{{ 'ab' | truncate(-5) }}{{ strftime_now('%A' * 9000000) }}",
    ];
    on_small_stack(move || {
        for source in sources {
            let found = render(source, &chat());
            assert!(found.is_err(), "{source}: {} bytes", found.unwrap().len());
        }
    });
}

/// A model whose template cannot be parsed opens, and its text is scored; only a chat fails.
#[test]
fn a_template_matters_when_it_is_used() {
    let mut file = tiny("llama");
    for source in ["{% broken", "{% for m in messages %}", "{{ x | no_filter }}"] {
        file.set("tokenizer.chat_template", Value::Text(source));
        let (_folder, path) = file.write();
        let model = Pretrained::open(&path).unwrap();
        assert!(model.tokenizer.encode("abc").is_ok());
        let template = model.chat_template.expect("a template");
        assert_eq!(template.source(), source);
        let error = template.render(&chat(), true).unwrap_err();
        assert!(matches!(&error, LoadError::Template(reason) if reason.contains("syntax error")), "{error}");
    }
    let deep: &'static str = format!("{{{{ {}1 }}}}", "-".repeat(100_000)).leak();
    file.set("tokenizer.chat_template", Value::Text(deep));
    let (_folder, path) = file.write();
    let model = on_small_stack(move || Pretrained::open(&path)).unwrap();
    assert!(model.chat_template.expect("a template").render(&chat(), true).is_err());
}

#[test]
fn the_template_of_a_folder_is_found() {
    let (folder, _) = write(b"", "model.safetensors");
    let (gguf, path) = tiny("llama").write();
    let tokenizer = Tokenizer::open(&path).unwrap();
    let open = || ChatTemplate::open(folder.path(), &tokenizer).unwrap().map(|template| template.source().to_owned());
    assert_eq!(open(), None);
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "tokenizer_config.json",
        r#"{"chat_template": [{"name": "tools", "template": "t"}, {"name": "default", "template": "d"}]}"#,
    );
    assert_eq!(open().as_deref(), Some("d"));
    write("tokenizer_config.json", r#"{"chat_template": "one"}"#);
    assert_eq!(open().as_deref(), Some("one"));
    write("chat_template.jinja", "two");
    assert_eq!(open().as_deref(), Some("two"));
    std::fs::create_dir(folder.path().join("additional_chat_templates")).unwrap();
    write("additional_chat_templates/tool_use.jinja", "{{ tools | length }} tools");
    let template = ChatTemplate::open(folder.path(), &tokenizer).unwrap().expect("a template");
    assert_eq!(template.render_json(r#"{"tools": [1]}"#).unwrap(), "1 tools");
    assert_eq!(template.render_json(r#"{"tools": null}"#).unwrap(), "two");
    std::fs::remove_file(folder.path().join("chat_template.jinja")).unwrap();
    let template = ChatTemplate::open(folder.path(), &tokenizer).unwrap().expect("a template");
    assert!(
        template.render(&[], true).unwrap_err().to_string().contains("the templates tool_use, but none named default")
    );
    write("chat_template.jinja", "\u{feff}{{ 'a' }}\r\nb\r\n");
    let template = ChatTemplate::open(folder.path(), &tokenizer).unwrap().expect("a template");
    assert_eq!(template.render(&[], true).unwrap(), "\u{feff}a\nb");
    std::fs::write(folder.path().join("chat_template.jinja"), b"\xff").unwrap();
    let template = ChatTemplate::open(folder.path(), &tokenizer).unwrap().expect("a template");
    assert!(template.render(&[], true).unwrap_err().to_string().contains("UTF-8"));
    let template = ChatTemplate::open(path, &tokenizer).unwrap().expect("a template");
    assert_eq!(template.render(&[Message::user("a"), Message::system("b")], true).unwrap(), "user: a\nsystem: b\n");
    drop(gguf);
}
