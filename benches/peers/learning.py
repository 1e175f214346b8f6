"""Evaluations and seconds to a stated score: evosax and EvoTorch against our examples, on CartPole, Pendulum and MNIST.

`--search` chooses each peer's settings on seed 100 and writes them to learning_settings.json; without, the settings in
that file are run on seeds 0, 1 and 2, then our examples. Stdout has a Markdown table, `--json FILE` everything.
README.md says what is equal on both sides and what is not.
"""

import argparse
import itertools
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from functools import partial
from importlib import metadata
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"  # read when jax is imported

import jax
import jax.numpy as jnp
import numpy as np
import optax
from evosax.algorithms import PGPE, SNES, Open_ES
from evosax.core.optimizer import clipup

import peer_tasks
from peer_tasks import TASKS

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
SETTINGS = FOLDER / "learning_settings.json"
SEARCH_SEED = 100
# Our example without projection, as in docs/sweep.md.
PLAIN = "--by-image false --project off --population 1024 --batch 64 --lr 0.002 --shift 0 --generations 12000"
FIT, TEST, CONFIRM, RESTART = range(4)  # purposes of keys

# sigma, learning rate. ClipUp's rate is the length of a step of all parameters together, Adam's that of each.
GRIDS = {
    "evosax Open_ES": {"control": ((0.1, 0.3, 0.5), (0.03, 0.1, 0.3)), "mnist": ((0.02, 0.06), (0.003, 0.01))},
    "evosax SNES": {"control": ((0.1, 0.3, 0.5, 1.0), (0.5, 1.0)), "mnist": ((0.03, 0.1), (1.0, 3.0))},
    "evosax PGPE": {"control": ((0.1, 0.3, 0.5), (0.2, 0.6, 1.8)), "mnist": ((0.02, 0.06), (0.5, 1.5))},
    "EvoTorch PGPE": {"control": ((0.1, 0.3, 0.5), (0.2, 0.6, 1.8)), "mnist": ((0.02, 0.06), (0.5, 1.5))},
}


class Evosax:
    """An algorithm of evosax. A whole generation is one jitted function; evosax minimizes."""

    def __init__(self, algorithm, task, sigma, rate):
        solution = jnp.zeros(task.network.size)
        if algorithm == "evosax Open_ES":
            schedule = optax.constant_schedule(sigma)
            self.es = Open_ES(task.population, solution, optimizer=optax.adam(rate), std_schedule=schedule)
        elif algorithm == "evosax SNES":
            self.es = SNES(task.population, solution, optimizer=optax.sgd(rate))
        else:
            self.es = PGPE(task.population, solution, optimizer=clipup(rate, 2 * rate))
        found = self.es.default_params
        self.params = found.replace(std_init=sigma) if hasattr(found, "std_init") else found
        self.task = task
        self.generation = jax.jit(self.one)

    def start(self, mean, key):
        return self.es.init(key, mean, self.params)

    def one(self, state, context, key):
        ask, evaluate, tell = jax.random.split(key, 3)
        population, state = self.es.ask(ask, state, self.params)
        fitness, work, context = self.task.evaluate(population, context, evaluate)
        return self.es.tell(tell, population, -fitness, state, self.params)[0], context, work

    @staticmethod
    def mean(state):
        return state.mean


class EvoTorch:
    """EvoTorch's functional PGPE with ClipUp, its default optimizer. PyTorch samples and updates, JAX evaluates."""

    def __init__(self, _algorithm, task, sigma, rate):
        import torch
        from evotorch.algorithms import functional

        self.torch, self.functional, self.task, self.sigma, self.rate = torch, functional, task, sigma, rate
        self.evaluate = jax.jit(task.evaluate)

    def start(self, mean, key):
        self.torch.manual_seed(int(jax.random.bits(key)))
        center = self.torch.from_numpy(np.array(mean))
        return self.functional.pgpe(
            center_init=center, center_learning_rate=self.rate, stdev_learning_rate=0.1, stdev_init=self.sigma,
            objective_sense="max", ranking_method="centered", optimizer="clipup",
        )  # fmt: skip

    def generation(self, state, context, key):
        population = self.functional.pgpe_ask(state, popsize=self.task.population)
        fitness, work, context = self.evaluate(jnp.from_dlpack(population), context, key)
        fitness = self.torch.from_numpy(np.array(fitness))
        return self.functional.pgpe_tell(state, population, fitness), context, work

    @staticmethod
    def mean(state):
        return jnp.asarray(state.optimizer_state.center.numpy())


def train(peer, score, task, seed, seconds):
    """One run: work and seconds at each goal that was reached. Ends with the last goal or a budget. Compiled before."""
    address = lambda purpose, index: jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), purpose), index)

    def begin(attempt):
        first, own = jax.random.split(address(RESTART, attempt))
        return peer.start(task.network.initial(first), own), task.context()

    start = time.perf_counter()
    state, context = begin(0)
    for generation in range(3):  # the types of the first state may differ from those of the others
        state, context, work = peer.generation(state, context, address(FIT, generation))
        float(score(peer.mean(state), context, address(TEST, generation))), float(work)
    compile_seconds = time.perf_counter() - start

    start = time.perf_counter()
    state, context = begin(0)
    work, generation, restarts, since, best, reached, last = 0.0, 0, 0, 0, -np.inf, {}, None
    while work < task.budget and time.perf_counter() - start < seconds and len(reached) < len(task.goals):
        if task.restart_after and since == task.restart_after:
            restarts, since = restarts + 1, 0
            state, context = begin(restarts)
        state, context, more = peer.generation(state, context, address(FIT, generation))
        generation, since, work = generation + 1, since + 1, work + float(more)
        if generation % task.test_every:
            continue
        last = float(score(peer.mean(state), context, address(TEST, generation)))
        best = max(best, last)
        for goal in task.goals:
            if goal in reached or last < goal:
                continue
            if task.name != "MNIST" and float(score(peer.mean(state), context, address(CONFIRM, generation))) < goal:
                continue  # of many tests of an almost good policy one would pass by luck
            reached[goal] = point(task, work, generation, time.perf_counter() - start, restarts)
    total = point(task, work, generation, time.perf_counter() - start, restarts)
    return {"seed": seed, "reached": reached, "spent": total, "best": best, "last": last,
            "compile_seconds": compile_seconds}  # fmt: skip


def point(task, work, generation, seconds, restarts):
    """What was spent. Member evaluations are episodes, or passes of a mini-batch."""
    evaluations = generation * task.population * getattr(task, "episodes", 1)
    return {"work": work, "evaluations": evaluations, "generations": generation, "seconds": seconds,
            "restarts": restarts}  # fmt: skip


def build(algorithm, task, setting):
    """A peer and the jitted test of its mean."""
    kind = EvoTorch if algorithm.startswith("EvoTorch") else Evosax
    return kind(algorithm, task, **setting), jax.jit(task.score)


def search(args, tasks):
    """The setting that reached the first goal with the least work, or else scored best; the file keeps all."""
    found = json.loads(args.settings.read_text()) if args.settings.exists() else {}
    for name, algorithm in itertools.product(args.tasks, args.algorithms):
        task, tried = tasks[name], []
        task.restart_after = 0  # one attempt for each setting
        for sigma, rate in itertools.product(*GRIDS[algorithm]["mnist" if name == "mnist" else "control"]):
            setting = {"sigma": sigma, "rate": rate}
            run = train(*build(algorithm, task, setting), task, SEARCH_SEED, args.search_seconds)
            first = run["reached"].get(task.goals[0])
            tried.append({"setting": setting, "work": first and first["work"], "best": run["best"],
                          "spent": run["spent"]["work"]})  # fmt: skip
            say(f"{name}, {algorithm}: {tried[-1]}")
        best = min(tried, key=lambda one: (one["work"] is None, one["work"] or 0.0, -one["best"]))
        found.setdefault(name, {})[algorithm] = {"chosen": best["setting"], "tried": tried}
        args.settings.write_text(json.dumps(found, indent=1) + "\n")


def table_of_peers(args, tasks):
    """Runs of the chosen settings."""
    chosen = json.loads(args.settings.read_text())
    for name, algorithm in itertools.product(args.tasks, args.algorithms):
        if algorithm not in chosen.get(name, {}):
            say(f"{name}, {algorithm}: no setting in {args.settings}, run --search")
            continue
        setting = chosen[name][algorithm]["chosen"]
        peer, score = build(algorithm, tasks[name], setting)
        for seed in args.seeds:
            run = train(peer, score, tasks[name], seed, args.seconds)
            yield name, algorithm, setting, run


def binary(args, name):
    path = args.ours / name
    if not path.exists():
        say(f"{path}: not built, so that our rows of {name} are missing")
    return path if path.exists() else None


def our_control(args, name, task):
    """Our example at its defaults, with the peers' budget."""
    path = binary(args, name)
    for seed in args.seeds if path else ():
        with tempfile.TemporaryDirectory() as out:
            command = [path, "--out", out, "--seed", str(seed), "--budget", str(task.budget)]
            text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            settings = json.loads(next(Path(out).glob("*/settings.json")).read_text())
        result = json.loads(text.rsplit("RESULT ", 1)[1])
        evaluations = result["generations"] * settings.get("population", 0) * settings.get("episodes", 0)
        spent = {"work": result["env_steps"], "evaluations": evaluations, "generations": result["generations"],
                 "seconds": result["train_seconds"], "restarts": result["restarts"]}  # fmt: skip
        reached = {task.goals[0]: spent} if result["solved"] else {}
        best = result["mean_return"]
        yield name, "ours", "defaults", {"seed": seed, "reached": reached, "spent": spent, "best": best, "last": best}


def our_mnist(args, task):
    """Our example with projection and without, until the last goal or the budget of seconds."""
    path = binary(args, "mnist")
    for label, flags in (("ours", args.mnist), ("ours, no projection", args.mnist_plain)):
        for seed in args.seeds if path else ():
            with tempfile.TemporaryDirectory() as out:
                command = [path, args.data, "--out", out, "--validation", "10000", "--evaluate-every", "25"]
                command += ["--seed", str(seed), *flags.split()]
                points = watch(command, Path(out) / "curve.jsonl", task.goals[-1], args.seconds)
            as_point = lambda p: {"work": p["member_evaluations"], "evaluations": p["member_evaluations"],
                                  "generations": p["generation"], "seconds": p["seconds"], "restarts": 0}  # fmt: skip
            passing = {goal: next((p for p in points if p["accuracy"] >= goal), None) for goal in task.goals}
            reached = {goal: as_point(found) for goal, found in passing.items() if found}
            best = max(p["accuracy"] for p in points)
            run = {"seed": seed, "reached": reached, "spent": as_point(points[-1]), "best": best,
                   "last": points[-1]["accuracy"]}  # fmt: skip
            yield "mnist", label, flags, run


def watch(command, curve, goal, seconds):
    """Points of a run of ours, which is stopped when its last point passes the goal or its time is over."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        while process.poll() is None:
            time.sleep(0.2)
            points = read_lines(curve)
            if points and (points[-1]["seconds"] > seconds or any(p["accuracy"] >= goal for p in points)):
                break
    finally:
        process.terminate()  # a background job may ignore INT
        process.wait()
    return read_lines(curve)


def read_lines(path):
    """Complete lines of a file of JSON objects that is being written."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def markdown(runs, tasks):
    """One row for each task, goal and algorithm; the seeds in order, separated by slashes."""
    lines = ["| task, goal | algorithm | setting | steps or evaluations, M | evaluations, thousands | seconds "
             "| compile s | best score |", "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for (name, algorithm), group in itertools.groupby(runs, lambda run: run[:2]):
        group = list(group)
        task, each = tasks[name], [run for _, _, _, run in group]
        setting = group[0][2]
        setting = setting if isinstance(setting, str) else f"σ {setting['sigma']}, rate {setting['rate']}"
        for goal in task.goals:
            cell = lambda key, scale, digits: " / ".join(
                f"{run['reached'][goal][key] / scale:.{digits}f}" if goal in run["reached"]
                else f"not in {run['spent'][key] / scale:.{digits}f}" for run in each
            )  # fmt: skip
            compiled = f"{each[0]['compile_seconds']:.1f}" if "compile_seconds" in each[0] else "–"
            percent = name == "mnist"
            best = " / ".join(f"{100 * run['best']:.2f} %" if percent else f"{run['best']:.0f}" for run in each)
            target = f"{100 * goal:.0f} %" if percent else f"{goal:.0f}"
            lines.append(f"| {task.name}, {target} | {algorithm} | {setting} | {cell('work', 1e6, 3)} "
                         f"| {cell('evaluations', 1e3, 1)} | {cell('seconds', 1, 1)} | {compiled} | {best} |")  # fmt: skip
    return "\n".join(lines)


def say(text):
    print(text, file=sys.stderr, flush=True)


def versions():
    names = ("evosax", "evotorch", "jax", "optax", "torch", "numpy")
    known = {found.metadata["Name"].lower(): found.version for found in metadata.distributions()}
    return {"python": platform.python_version(), **{name: known.get(name) for name in names}, "cores": os.cpu_count()}


def check():
    """The tasks' arithmetic; the number of failures."""
    failed = 0
    for name, error, far in peer_tasks.check():
        verdict = "ok" if error < 1e-5 and far > 1e-2 else "FAILED"
        failed += verdict != "ok"
        say(f"{verdict}: {name}: error {error:.1e}, canary {far:.1e}")
    return failed


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--search", action="store_true", help=f"choose settings on seed {SEARCH_SEED}")
    parser.add_argument("--check", action="store_true", help="verify the tasks' arithmetic instead")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--algorithms", nargs="*", choices=GRIDS, default=list(GRIDS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--seconds", type=float, default=300.0, help="at most, for each run")
    parser.add_argument("--search-seconds", type=float, default=60.0, help="at most, for each run of the search")
    parser.add_argument("--settings", type=Path, default=SETTINGS, help="file of the settings")
    parser.add_argument("--ours", type=Path, default=ROOT / "target/release/examples", help="our compiled examples")
    parser.add_argument("--no-ours", action="store_true", help="peers only")
    parser.add_argument("--mnist", default="", help="flags of our example mnist; default: its defaults")
    parser.add_argument("--mnist-plain", default=PLAIN, help="its flags without projection")
    parser.add_argument("--data", type=Path, default=ROOT / "data/mnist", help="folder of MNIST's gzip files")
    parser.add_argument("--json", type=Path, help="write everything to this file")
    return parser.parse_args()


def main():
    args = arguments()
    # The plain stream is statistically equal and up to twice as fast on CPUs; the partitionable one is for sharding.
    jax.config.update("jax_threefry_partitionable", False)
    if args.check:
        sys.exit(1 if check() else 0)
    tasks = {name: TASKS[name](args) for name in args.tasks}
    if args.search:
        return search(args, tasks)
    runs = []
    for name in args.tasks:
        own = our_mnist if name == "mnist" else partial(our_control, name=name)
        only = argparse.Namespace(**{**vars(args), "tasks": [name]})
        for run in itertools.chain(table_of_peers(only, tasks), () if args.no_ours else own(args, task=tasks[name])):
            say(json.dumps(run))
            runs.append(run)
    print(json.dumps(versions()))
    print(markdown(runs, tasks))
    if args.json:
        rows = [dict(zip(("task", "algorithm", "setting", "run"), run)) for run in runs]
        found = {"versions": versions(), "seconds": args.seconds, "runs": rows}
        args.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
