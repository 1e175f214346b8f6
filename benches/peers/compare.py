"""Our examples and other libraries on this machine, taking turns: one table of ratios with their spread. `scripts/peers` installs and runs it.

Each comparison runs `--rounds` times, ours and then the peer. A ratio above 1 says that ours is faster, or needs fewer steps of environments or
evaluations. The table has the median of the rounds' ratios and the least and largest; of `learning` the rounds are seeds.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
SIZES = {"medium": "64-512-64", "large": "256-2048-256"}
POPULATION, RANKS = 2048, (1, 4)
# What is the same on both sides of `text`: 64 members that read 16 sequences of 32 bytes, two blocks of width 64.
TEXT = {"gru": "gru", "float-transformer": "transformer"}
GENERATIONS = 200


class Table:
    def __init__(self):
        self.rounds = {}

    def add(self, what, peer, unit, ours, theirs, lower_is_better):
        ratio = theirs / ours if lower_is_better else ours / theirs
        self.rounds.setdefault((what, peer, unit), []).append((ours, theirs, ratio))
        say(f"{what}, {peer}: {ours:.4g} and {theirs:.4g} {unit}, ratio {ratio:.2f}")

    def markdown(self):
        lines = ["| what | peer | ours | peer's | unit | ratio | least, largest | of |", "|---|---|---|---|---|---|---|---|"]
        for (what, peer, unit), rounds in self.rounds.items():
            ours, theirs, ratios = zip(*rounds)
            lines.append(f"| {what} | {peer} | {shown(ours)} | {shown(theirs)} | {unit} | {shown(ratios)} "
                         f"| {min(ratios):.3g}, {max(ratios):.3g} | {len(ratios)} |")  # fmt: skip
        return "\n".join(lines)


def shown(values):
    """The median, without an exponent."""
    median = statistics.median(values)
    return f"{median:,.0f}" if median >= 1000 else f"{median:.3g}"


class Failed(Exception):
    """A command that did not start, or ended with an error."""


def output(command):
    """What a command prints."""
    command = [str(part) for part in command]
    say("running " + " ".join(command))
    try:
        found = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    except OSError as error:
        raise Failed(f"{command[0]}: {error.strerror}") from error
    if found.returncode:
        raise Failed(f"{' '.join(command)}: ended with {found.returncode}")
    return found.stdout


def result(text):
    return json.loads(next(line for line in reversed(text.splitlines()) if line.startswith("RESULT ")).removeprefix("RESULT "))


def example(args, name, *options):
    return result(output([args.ours / name, *options]))


def script(name, *options):
    """The lines that a peer's script prints."""
    return [json.loads(line) for line in output([sys.executable, FOLDER / name, *options]).splitlines()]


def forward(args, table):
    """Each peer's fastest way to each result: JAX tuned or as its reference, drawn by member or by pair; PyTorch eager or compiled."""
    grid = ["--populations", POPULATION, "--ranks", ",".join(map(str, RANKS)), "--sizes", ",".join(SIZES.values())]
    names = {widths: name for name, widths in SIZES.items()}
    place = lambda cell: (names.get(cell["size"], cell["size"]), cell["rank"], cell["column"].replace("fly_by_pair", "fly"))
    ours = {place(cell): cell["median_ms"] for cell in example(args, "throughput", *grid, "--no-open-es", "--seconds", 8)["cells"]}
    jax = ["--columns", "inference,fly,fly_by_pair,cached,estimate", "--seconds", 1]
    peers = {
        "JAX": [("jax_forward.py", *grid, *jax), ("jax_forward.py", *grid, *jax, "--untuned")],
        "PyTorch": [("torch_forward.py", *grid, "--seconds", 1)],
    }
    for peer, scripts in peers.items():
        theirs = {}
        for cell in (cell for each in scripts for cell in script(*each)[1:] if "median_ms" in cell):
            theirs[place(cell)] = min(cell["median_ms"], theirs.get(place(cell), cell["median_ms"]))
        for key, milliseconds in theirs.items():
            size, rank, column = key
            what = f"{column}, {size}, N {POPULATION}" + (f", rank {rank}" if rank else "")
            table.add(what, peer, "ms", ours[key], milliseconds, lower_is_better=True)


def rollout(args, table):
    command = ["cargo", "bench", "--quiet", "--locked", "-p", "eggroll-benches", "--bench", "rollout", "--", "--runs", 2, "--generations", 10, "--jax", "--python", sys.executable]
    found = result(output(command))
    name = lambda cell: (tuple(cell["hidden"]), cell["population"], cell["rank"])
    ours = {name(cell): cell["env_steps_per_second"] for cell in found["cells"] if cell["fused"]}
    theirs = {}
    for cell in found["peer"]:
        theirs[name(cell)] = max(cell["env_steps_per_second"], theirs.get(name(cell), 0.0))
    for key, speed in theirs.items():
        hidden, population, rank = key
        what = f"CartPole, {'-'.join(map(str, (4, *hidden, 2)))}, N {population}, rank {rank}"
        table.add(what, "JAX", "steps/s", ours[key], speed, lower_is_better=False)


def text(args, table):
    for model, named in TEXT.items():
        for credit, of_peer in (("parts", "token"), ("mean", "mean")):
            with tempfile.TemporaryDirectory() as out:
                run = ["--model", model, "--credit", credit, "--generations", GENERATIONS, "--validate-every", GENERATIONS]
                ours = example(args, "char_lm", "--out", out, *run)["tokens_per_second"]
            theirs = script("jax_text.py", "--model", named, "--credit", of_peer)[0]["tokens_per_second"]
            table.add(f"char_lm {model}, N 64, by {of_peer}", "JAX", "member-tokens/s", ours, theirs, lower_is_better=False)


def llm(args, table):
    found = example(args, "llm", "--throughput", "--llama-cpp", "--python", sys.executable)
    for what, ours, ratio in (
        ("SmolLM2-135M, prompts, int8", "tokens_per_second", "llama_cpp_ratio"),
        ("SmolLM2-135M, prompts, f32", "plain_f32", "llama_cpp_ratio_f32"),
        ("SmolLM2-135M, 64 texts at once to one", "generation", "llama_cpp_generation_ratio"),
    ):
        table.add(what, "llama.cpp, Q4_1", "tokens/s", found[ours], found[ours] / found[ratio], lower_is_better=False)


def learning(args, table):
    """Steps or evaluations to the first goal, seed by seed; a peer's budget where it did not get there."""
    with tempfile.TemporaryDirectory() as out:
        file = Path(out) / "learning.json"
        output([sys.executable, FOLDER / "learning.py", "--ours", args.ours, "--json", file, "--tasks", *args.tasks])
        runs = json.loads(file.read_text())["runs"]
    spent = {}
    for run in runs:
        reached, seed = run["run"]["reached"], run["run"]["seed"]
        first = min(reached, key=float, default=None)
        spent.setdefault((run["task"], run["algorithm"]), {})[seed] = (reached[first] if first else run["run"]["spent"])["work"]
    for (task, algorithm), seeds in spent.items():
        for seed, work in seeds.items() if algorithm != "ours" else ():
            table.add(f"{task} to its goal", algorithm, "steps", spent[task, "ours"][seed], work, lower_is_better=True)


COMPARISONS = {compare.__name__: compare for compare in (forward, rollout, text, llm, learning)}


def say(text):
    print(text, file=sys.stderr, flush=True)


def header(args):
    """Versions and the machine's class."""
    packages = ("jax", "torch", "llama_cpp_python", "evosax", "evotorch")
    known = {found.metadata["Name"].lower().replace("-", "_"): found.version for found in metadata.distributions()}
    versions = ", ".join(f"{name} {known.get(name, 'not installed')}" for name in packages)
    commit = output(["git", "rev-parse", "--short", "HEAD"]).strip()
    models = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return f"eggroll {commit}; {versions}; {os.cpu_count()} cores, {models[0] if models else platform.processor()}; rounds: {args.rounds}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=COMPARISONS, default=list(COMPARISONS))
    parser.add_argument("--tasks", nargs="+", choices=("cartpole", "pendulum", "mnist"), default=["cartpole", "pendulum", "mnist"], help="of learning")
    parser.add_argument("--ours", type=Path, default=ROOT / "target/release/examples", help="our compiled examples")
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error(f"--rounds must be at least 1, not {args.rounds}")
    of_all, table, failures = header(args), Table(), []
    for round in range(args.rounds):
        say(f"round {round + 1} of {args.rounds}")
        for name in args.only:
            if name == "learning" and round > 0:
                continue
            try:
                COMPARISONS[name](args, table)
            except Failed as failure:
                failures.append(f"round {round + 1}, {name}: {failure}")
    print(of_all)
    print(table.markdown())
    sys.exit("\n".join(failures) or None)


if __name__ == "__main__":
    main()
