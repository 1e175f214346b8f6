"""Scores items with llama.cpp on a GGUF file: the share whose completion is the most probable continuation of the prompt, token by token.

The items are lines of JSON, {"prompt": [ids], "completion": [ids]}, as `llm --quantized` writes them into test.jsonl. Prints one JSON object. Needs
llama-cpp-python: benches/peers/README.md.
"""

import argparse
import json

import llama_cpp
import numpy


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("items")
    arguments = parser.parse_args()
    model = llama_cpp.Llama(arguments.model, n_ctx=1024, n_batch=512, logits_all=True, verbose=False)
    with open(arguments.items) as file:
        items = [json.loads(line) for line in file]
    exact, total, count = 0, 0.0, 0
    for item in items:
        prompt, completion = item["prompt"], item["completion"]
        model.reset()
        model.eval(prompt + completion[:-1])
        logits = numpy.array(model.scores[len(prompt) - 1 : len(prompt) + len(completion) - 1], dtype=numpy.float64)
        exact += int((logits.argmax(axis=1) == numpy.array(completion)).all())
        norm = logits.max(axis=1) + numpy.log(numpy.exp(logits - logits.max(axis=1, keepdims=True)).sum(axis=1))
        total += float((logits[numpy.arange(len(completion)), completion] - norm).sum())
        count += len(completion)
    print(json.dumps({
        "version": llama_cpp.__version__,
        "items": len(items),
        "accuracy": exact / len(items),
        "mean_log_probability": total / count,
    }))


if __name__ == "__main__":
    main()
