"""Folders of tokenizers whose tokens are in several files, and what transformers makes of them: tests/golden/added_tokens.json.

    python -m venv venv && venv/bin/pip install transformers==5.24.0 && venv/bin/python tests/golden/added_tokens.py
"""

import json
import pathlib
import tempfile

from transformers import PreTrainedTokenizerFast

TEXT = "<|im_start|>ab<|im_end|> c abc<|x|> ab <|endoftext|>"


def token(content, **flags):
    return {"content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True,
            **flags}


def letters(begins=False):
    """A tokenizer of three letters."""
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    template = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<|endoftext|>": {"id": "<|endoftext|>", "ids": [5], "tokens": ["<|endoftext|>"]}},
    }
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [{"id": 5, **token("<|endoftext|>")}],
        "normalizer": None, "pre_tokenizer": level, "post_processor": template if begins else None, "decoder": level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": "",
                  "fuse_unk": False, "byte_fallback": False, "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4, },
                  "merges": [["a", "b"], ["ab", "c"]]},
    }


def folders():
    chat = {"6": token("<|im_start|>"), "7": token("<|im_end|>")}
    named = {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
    settings = lambda **values: {"tokenizer_config.json": values}
    yield "nothing beside it", {}
    yield "added_tokens_decoder", settings(added_tokens_decoder=chat, **named)
    yield "in another order", settings(added_tokens_decoder={"7": chat["7"], "6": chat["6"]}, **named)
    yield "that repeats a token", settings(added_tokens_decoder={"5": token("<|endoftext|>"), **chat}, **named)
    yield "that changes flags", settings(added_tokens_decoder={"5": token("<|endoftext|>", lstrip=True, special=False)})
    yield "with lstrip", settings(added_tokens_decoder={**chat, "8": token("<|x|>", lstrip=True, special=False)})
    yield "with rstrip", settings(added_tokens_decoder={**chat, "8": token("<|x|>", rstrip=True)})
    yield "single words", settings(added_tokens_decoder={**chat, "8": token("<|x|>", single_word=True)})
    yield "of the vocabulary", settings(added_tokens_decoder={"4": token("abc", special=False)})
    yield "short", settings(added_tokens_decoder={"6": {"content": "<|im_start|>"}, "7": {"content": "<|im_end|>", "special": True}})
    yield "a name of the vocabulary", settings(eos_token="ab")
    yield "named as an object", settings(added_tokens_decoder=chat, eos_token={"__type": "AddedToken", **token("<|im_end|>")})
    yield "not special but named", settings(added_tokens_decoder={"6": token("<|im_start|>", special=False)}, bos_token="<|im_start|>")
    yield "added_tokens.json", {**settings(eos_token="<|im_end|>"), "added_tokens.json": {"<|im_end|>": 7, "<|im_start|>": 6}}
    yield "special_tokens_map.json", {"special_tokens_map.json": {"eos_token": token("<|endoftext|>"), "bos_token": "ab"}}
    yield "the map comes first", {**settings(eos_token="a"), "special_tokens_map.json": {"eos_token": "<|endoftext|>"}}
    yield "the decoder comes first", {**settings(eos_token="<|im_end|>", added_tokens_decoder=chat),
                                      "special_tokens_map.json": {"eos_token": "<|endoftext|>"}}
    yield "all files", {**settings(eos_token="<|im_end|>", added_tokens_decoder=chat), "added_tokens.json": {"<|x|>": 6}}
    yield "more special tokens", settings(added_tokens_decoder=chat, additional_special_tokens=["<|im_end|>", "abc"])
    yield "tokens of the model", settings(added_tokens_decoder=chat, image_token="abc", extra_special_tokens={"x_token": "c"})
    yield "add_bos_token alone", settings(bos_token="<|endoftext|>", add_bos_token=True)
    yield "a post-processor", {"tokenizer.json": letters(True), **settings(bos_token="<|endoftext|>")}
    yield "a post-processor and no", {"tokenizer.json": letters(True), **settings(bos_token="<|endoftext|>", add_bos_token=False)}
    # What transformers numbers anew, or adds with an id of its own: refused here.
    yield "refused: a gap", settings(added_tokens_decoder={"6": chat["6"], "9": chat["7"]})
    yield "refused: another's id", settings(added_tokens_decoder={"4": token("<|im_end|>")})
    yield "refused: another id", settings(added_tokens_decoder={"7": token("<|endoftext|>")})
    yield "refused: a begin that is missing", settings(bos_token="<|im_start|>")
    yield "refused: an end that is missing", settings(eos_token="<|im_end|>")
    yield "refused: padding that is missing", settings(pad_token={"__type": "AddedToken", **token("<pad>")})
    yield "refused: a token of the model", settings(image_token="<image>")
    yield "refused: the map, missing", {"special_tokens_map.json": {"eos_token": "<|im_end|>"}}


def main():
    rows = []
    for name, files in folders():
        files = {"tokenizer.json": letters(), **files}
        with tempfile.TemporaryDirectory() as folder:
            for file, content in files.items():
                pathlib.Path(folder, file).write_text(json.dumps(content))
            made = PreTrainedTokenizerFast.from_pretrained(folder)
        ids = made.encode(TEXT, add_special_tokens=False)
        rows.append({
            "name": name, "files": files, "ids": ids, "bos": made.bos_token_id, "eos": made.eos_token_id, "pad": made.pad_token_id,
            "adds_bos": len(made.encode("c", add_special_tokens=True)) > 1,
            "plain": made.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False),
        })
    path = pathlib.Path(__file__).with_suffix(".json")
    path.write_text(json.dumps({"text": TEXT, "folders": rows}, ensure_ascii=False, indent=1) + "\n")
    print(len(rows), "folders")


if __name__ == "__main__":
    main()
