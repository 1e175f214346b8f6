"""Tiny random language models of several architectures, and the logits that transformers computes with them.

    pip install transformers==5.24 torch safetensors gguf==0.19 xllamacpp==2026.10.11549
    python3 language_models.py            # writes language_models/NAME/
    python3 language_models.py --gguf     # writes language_models/NAME.gguf, after llama.cpp gave the recorded logits for it
    python3 language_models.py --check FOLDER
        # FOLDER/NAME, as saved by the library, opens in transformers without a remark and gives the recorded logits

A folder has config.json and model.safetensors (bfloat16) as transformers writes them, and expected.safetensors: tokens of two
sequences and the logits at every position, computed in float32 from the stored weights with the plain ("eager") attention.
"""

import argparse
import json
import pathlib
import sys
import tempfile

import numpy
import torch
import transformers
from safetensors.torch import load_file, save_file

HERE = pathlib.Path(__file__).resolve().parent / "language_models"
LENGTHS = [40, 29]
SIZES = dict(
    vocab_size=96,
    hidden_size=32,
    intermediate_size=40,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    bos_token_id=1,
    eos_token_id=2,
    pad_token_id=None,
)
LLAMA3 = dict(
    rope_type="llama3",
    rope_theta=500.0,
    factor=4.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=16,
)
SLIDING, FULL = "sliding_attention", "full_attention"
GEMMA = dict(head_dim=12, sliding_window=8, tie_word_embeddings=True)

MODELS = {
    "llama3": transformers.LlamaConfig(**SIZES, num_hidden_layers=2, head_dim=8, rope_parameters=LLAMA3),
    "mistral": transformers.MistralConfig(**SIZES, num_hidden_layers=2, head_dim=12, sliding_window=8),
    "qwen2": transformers.Qwen2Config(
        **SIZES, num_hidden_layers=3, use_sliding_window=True, sliding_window=8, max_window_layers=1
    ),
    "qwen3": transformers.Qwen3Config(**SIZES, num_hidden_layers=2, head_dim=12),
    "smollm3": transformers.SmolLM3Config(**SIZES, num_hidden_layers=4),
    "gemma2": transformers.Gemma2Config(
        **SIZES,
        **GEMMA,
        num_hidden_layers=3,
        query_pre_attn_scalar=20,
        attn_logit_softcapping=2.0,
        final_logit_softcapping=5.0,
    ),
    "gemma3": transformers.Gemma3TextConfig(
        **SIZES,
        **GEMMA,
        num_hidden_layers=4,
        query_pre_attn_scalar=12,
        layer_types=[SLIDING, SLIDING, FULL, SLIDING],
        rope_parameters={
            FULL: dict(rope_type="linear", factor=4.0, rope_theta=1000.0),
            SLIDING: dict(rope_type="default", rope_theta=50.0),
        },
    ),
}


def fill(model, seed):
    """Weights that make logits of a size of about 1, exact in bfloat16."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in sorted(model.named_parameters()):
        values = torch.randn(parameter.shape, generator=generator)
        if name.endswith("norm.weight"):
            around = 0.0 if "Gemma" in type(model).__name__ else 1.0
            values = around + 0.3 * values
        elif name.endswith("bias"):
            values = 0.5 * values
        else:
            values = values * (1.5 if "q_proj" in name or "k_proj" in name else 1.0) / parameter.shape[-1] ** 0.5
        parameter.data = values.bfloat16().float()


def logits(model, tokens):
    with torch.no_grad():
        return model(tokens[None], use_cache=False).logits[0]


def make():
    for seed, (name, config) in enumerate(MODELS.items()):
        torch.manual_seed(seed)
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
        fill(model, seed)
        folder = HERE / name
        model.to(torch.bfloat16).save_pretrained(folder)
        (folder / "generation_config.json").unlink(missing_ok=True)
        model = open_model(folder)
        generator = torch.Generator().manual_seed(1000 + seed)
        expected = {}
        for index, length in enumerate(LENGTHS):
            tokens = torch.randint(config.vocab_size, (length,), generator=generator)
            expected[f"tokens.{index}"] = tokens
            expected[f"logits.{index}"] = logits(model, tokens)
        save_file(expected, folder / "expected.safetensors")
        sizes = [path.stat().st_size for path in sorted(folder.iterdir())]
        print(name, sizes, "logits", float(expected["logits.0"].std()), float(expected["logits.0"].abs().max()))


def open_model(folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
    )
    model, info = model
    wrong = {key: value for key, value in info.items() if value}
    if wrong:
        sys.exit(f"{folder}: {wrong}")
    return model.eval()


# The names that GGUF has for the architectures.
ARCHITECTURES = {"qwen3": "qwen3", "smollm3": "smollm3", "gemma2": "gemma2", "gemma3": "gemma3"}


def write_gguf(name, path, small):
    """As llama.cpp's converter lays such a model out; small files have matrices in bfloat16."""
    import gguf

    config, architecture = MODELS[name], ARCHITECTURES[name]
    writer = gguf.GGUFWriter(path, architecture)
    heads, kv_heads, layers = config.num_attention_heads, config.num_key_value_heads, config.num_hidden_layers
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // heads
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_block_count(layers)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_rope_dimension_count(head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    rope = config.rope_parameters
    writer.add_rope_freq_base(rope.get(FULL, rope)["rope_theta"])
    if name == "gemma2":
        writer.add_sliding_window(config.sliding_window)
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    if name == "gemma3":
        writer.add_sliding_window(config.sliding_window)
        writer.add_uint32("gemma3.attention.sliding_window_pattern", 3)
        writer.add_float32("gemma3.rope.freq_base_swa", rope[SLIDING]["rope_theta"])
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope[FULL]["factor"])
    tokens = ["<unk>", "<s>", "</s>"] + [chr(0x100 + i) for i in range(config.vocab_size - 3)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([3, 3, 3] + [1] * (config.vocab_size - 3))
    writer.add_token_merges([f"{tokens[3]} {tokens[4]}"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)

    architectures = {name: key for key, name in gguf.MODEL_ARCH_NAMES.items()}
    names = gguf.get_tensor_name_map(architectures[architecture], layers)
    for key, tensor in load_file(HERE / name / "model.safetensors").items():
        values, exact = tensor.float().numpy(), True
        if name == "smollm3" and ("q_proj" in key or "k_proj" in key):
            # The two rows of a rotated pair are neighbours.
            count = heads if "q_proj" in key else kv_heads
            values = values.reshape(count, 2, head_dim // 2, -1).swapaxes(1, 2).reshape(values.shape)
        if name.startswith("gemma") and key.endswith("norm.weight"):
            values = values + 1
        if name == "gemma2" and "q_proj" in key:
            # The format has no query_pre_attn_scalar; its place is taken by head_dim.
            values, exact = values * (head_dim / config.query_pre_attn_scalar) ** 0.5, False
        values = numpy.ascontiguousarray(values, dtype=numpy.float32)
        stored = names.get_name(key, try_suffixes=(".weight", ".bias"))
        if values.ndim == 2 and exact and small:
            kind = gguf.GGMLQuantizationType.BF16
            writer.add_tensor(stored, gguf.quants.quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(stored, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def llama_cpp_differs(name, path):
    """Largest difference of a log-probability after several beginnings."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx, parameters.n_gpu_layers, parameters.warmup = 64, 0, False
    parameters.cache_type_k = parameters.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    parameters.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    server = xllamacpp.Server(parameters)
    expected, largest = load_file(HERE / name / "expected.safetensors"), 0.0
    for index, length in [(0, 40), (0, 9), (0, 20), (1, 29)]:
        tokens = expected[f"tokens.{index}"][:length].tolist()
        request = dict(prompt=tokens, n_predict=1, n_probs=96, temperature=1.0, samplers=[], cache_prompt=False)
        answer = server.handle_completions(request)
        answer = json.loads(answer) if isinstance(answer, (str, bytes)) else answer
        found = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        wanted = torch.log_softmax(expected[f"logits.{index}"][length - 1], -1)
        assert len(found) == 96, f"{len(found)} tokens"
        largest = max([largest] + [abs(token["logprob"] - float(wanted[token["id"]])) for token in found])
    return largest


def make_gguf():
    for name in ARCHITECTURES:
        with tempfile.TemporaryDirectory() as folder:
            # llama.cpp rounds what it multiplies with matrices in bfloat16.
            path = pathlib.Path(folder) / "float32.gguf"
            write_gguf(name, path, small=False)
            difference = llama_cpp_differs(name, path)
        print(name, "llama.cpp: log-probabilities differ by", difference)
        # llama.cpp rounds GELU to float16.
        if not difference < (4e-3 if name.startswith("gemma") else 2e-5):
            sys.exit(f"{name}: too much")
        write_gguf(name, HERE / f"{name}.gguf", small=True)


def check(saved):
    for name in MODELS:
        expected = load_file(HERE / name / "expected.safetensors")
        model = open_model(saved / name)
        for index in range(len(LENGTHS)):
            found = logits(model, expected[f"tokens.{index}"])
            difference = float((found - expected[f"logits.{index}"]).abs().max())
            if not difference < 1e-4:
                sys.exit(f"{name}: logits differ by {difference}")
        print(name, type(model).__name__, "opens, its logits are the recorded ones:", difference)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--gguf", action="store_true")
    parser.add_argument("--check", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.gguf:
        make_gguf()
    elif arguments.check is not None:
        check(arguments.check)
    else:
        make()
