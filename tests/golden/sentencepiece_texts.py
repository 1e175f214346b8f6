"""A small SentencePiece vocabulary and what sentencepiece makes of random texts with it: tests/golden/sentencepiece_texts.json.

    pip install sentencepiece==0.2.3
    python3 tests/golden/sentencepiece_texts.py

The vocabulary is trained on the pages of this project's book, as a BPE with bytes for what has no token.
"""

import io
import json
import pathlib
import random

import sentencepiece

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXTS = 400


def train(prefix):
    pages = sorted((ROOT / "docs/book/src").glob("*.md"))
    lines = [line for page in pages for line in page.read_text().splitlines() if line.strip()]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type="bpe",
        vocab_size=700,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        add_dummy_prefix=prefix,
        character_coverage=0.999,
        minloglevel=2,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue()), lines


def kind(model, token):
    """As GGUF files number them."""
    if model.is_unknown(token):
        return 2
    if model.is_control(token):
        return 3
    if model.is_byte(token):
        return 6
    return 1


def text(draw, lines, characters):
    match draw.randrange(6):
        case 0:
            return "".join(draw.choice(characters) for _ in range(draw.randrange(1, 40)))
        case 1:
            return "".join(draw.choice("abet ") for _ in range(draw.randrange(1, 60)))
        case 2:
            ranges = [(32, 0x250), (0x4E00, 0x5000), (0x1F300, 0x1F600), (9, 14)]
            return "".join(chr(draw.randrange(*draw.choice(ranges))) for _ in range(draw.randrange(1, 20)))
        case 3:
            return draw.choice("aes-= ") * draw.randrange(1, 40)
        case _:
            line = draw.choice(lines)
            start = draw.randrange(len(line))
            return line[start : start + draw.randrange(1, 80)]


def recorded(prefix):
    model, lines = train(prefix)
    characters = sorted(set("".join(lines)))
    draw = random.Random(1)
    texts = [text(draw, lines, characters) for _ in range(TEXTS)]
    tokens = range(model.get_piece_size())
    return {
        "adds_prefix": prefix,
        "tokens": [model.id_to_piece(token) for token in tokens],
        "scores": [model.get_score(token) for token in tokens],
        "kinds": [kind(model, token) for token in tokens],
        "texts": [[text, model.encode(text), model.decode(model.encode(text))] for text in texts],
    }


if __name__ == "__main__":
    path = pathlib.Path(__file__).with_suffix(".json")
    path.write_text(json.dumps([recorded(True), recorded(False)], ensure_ascii=False, separators=(",", ":")) + "\n")
    print(path.stat().st_size, "bytes")
