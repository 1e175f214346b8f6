"""Times llama.cpp on a GGUF file: tokens per second of a prompt of 512 tokens, and of one greedy text of 64 tokens.

Prints one JSON object. Needs llama-cpp-python: benches/peers/README.md.
"""

import argparse
import json
import statistics
import time

import llama_cpp


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument(
        "--no-extra-buffers", action="store_true", help="weights in the file's order: where llama.cpp's code for AMX dies (SIGILL)"
    )
    arguments = parser.parse_args()
    if arguments.no_extra_buffers:
        defaults = llama_cpp.llama_model_default_params

        def without_extra_buffers():
            parameters = defaults()
            parameters.use_extra_bufts = False
            return parameters

        llama_cpp.llama.llama_cpp.llama_model_default_params = without_extra_buffers
    model = llama_cpp.Llama(
        arguments.model,
        n_ctx=1024,
        n_batch=512,
        n_threads=arguments.threads,
        n_threads_batch=arguments.threads,
        verbose=False,
    )
    prompt = [(1000 + 37 * k) % 49000 for k in range(512)]
    prefill, generation = [], []
    for _ in range(arguments.passes):
        model.reset()
        start = time.perf_counter()
        model.eval(prompt)
        prefill.append(len(prompt) / (time.perf_counter() - start))
    for _ in range(arguments.passes):
        model.reset()
        model.eval(prompt[:24])
        count = 64
        start = time.perf_counter()
        for _ in range(count):
            model.eval([model.sample(temp=0.0)])
        generation.append(count / (time.perf_counter() - start))
    print(json.dumps({
        "version": llama_cpp.__version__,
        "threads": arguments.threads,
        "extra_buffers": not arguments.no_extra_buffers,
        "prefill": statistics.median(prefill),
        "generation": statistics.median(generation),
    }))


if __name__ == "__main__":
    main()
