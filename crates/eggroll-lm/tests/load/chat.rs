//! Chat templates: what published ones use, and what must fail.

use crate::write_gguf::{tiny, write};
use eggroll_lm::load::{ChatTemplate, Message, SpecialTokens, Tokenizer};

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
    assert_eq!(render(source, &chat()).unwrap(), "HiUSER1True1FalseFalseTrueTrueTrue");
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
    assert!(render("{{ messages[0].nothing.more }}", &chat()).unwrap_err().contains("undefined"));
    assert!(render("{{ open('/etc/passwd') }}", &chat()).unwrap_err().contains("unknown function"));
    assert!(render("{% include 'x' %}", &chat()).is_err());
}

#[test]
fn a_template_without_end_is_stopped() {
    let nested = "{% for a in range(99999) %}{% for a in range(99999) %}{% for a in range(99999) %}{% endfor %}{% endfor %}{% endfor %}";
    assert!(render(nested, &chat()).unwrap_err().contains("does not end within"));
    let recursive = "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}";
    assert!(render(recursive, &chat()).is_err());
    let deep = format!("{}x{}", "{{ ".to_owned() + &"(".repeat(100_001), ")".repeat(100_001) + " }}");
    assert!(render(&deep, &chat()).is_err());
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
    let template = ChatTemplate::open(path, &tokenizer).unwrap().expect("a template");
    assert_eq!(template.render(&[Message::user("a"), Message::system("b")], true).unwrap(), "user: a\nsystem: b\n");
    drop(gguf);
}
