"""EGGROLL's perturbed forward and gradient estimate in PyTorch: the peer of `examples/throughput`, as jax_forward.py is one in JAX.

Every pass is timed eagerly and, where a C++ compiler is found, by torch.compile; the faster one is printed. Both members of a pair share their
factors. One JSON object per cell goes to stdout. README.md says what the columns are.
"""

import argparse
import json
import math
import shutil
import statistics
import sys
import time

import torch

SIGMA = 0.1


class Network:
    """A bias-free perceptron with relu, and a row of input for each member: [pairs, 2, d_in]."""

    def __init__(self, widths, population, rank, dtype=torch.float32):
        draw = torch.Generator().manual_seed(1)
        normal = lambda *shape: torch.randn(shape, generator=draw, dtype=dtype)
        self.weights = [normal(d_in, d_out) / math.sqrt(d_in) for d_in, d_out in zip(widths, widths[1:])]
        self.x = normal(population // 2, 2, widths[0])
        self.fitness = normal(population // 2, 1, 1)  # f(+) − f(−) of each pair
        self.rank = rank
        self.scale = SIGMA / math.sqrt(rank) * torch.tensor([[1.0], [-1.0]], dtype=dtype)
        self.given = self.drawn()

    def drawn(self):
        """B: [pairs, d_in, rank] and A: [pairs, rank, d_out] of each layer."""
        pairs, dtype = len(self.x), self.x.dtype
        factors = lambda weight: (torch.randn(pairs, weight.shape[0], self.rank, dtype=dtype), torch.randn(pairs, self.rank, weight.shape[1], dtype=dtype))
        return [factors(weight) for weight in self.weights]

    def inference(self):
        rows = self.x.flatten(0, 1)
        for index, weight in enumerate(self.weights):
            rows = (torch.relu(rows) if index else rows) @ weight
        return rows

    def perturbed(self, factors):
        rows = self.x
        for index, (weight, (b, a)) in enumerate(zip(self.weights, factors)):
            rows = torch.relu(rows) if index else rows
            projected = (rows * b.transpose(1, 2)).sum(-1, keepdim=True) if self.rank == 1 else rows @ b
            plain = (rows.flatten(0, 1) @ weight).view(*rows.shape[:2], -1)
            projected = projected * self.scale
            rows = plain + projected * a if self.rank == 1 else torch.baddbmm(plain, projected, a)
        return rows.flatten(0, 1)

    def cached(self):
        return self.perturbed(self.given)

    def fly(self):
        return self.perturbed(self.drawn())

    def estimate(self, factors=None):
        flat = lambda b, a: (b * self.fitness).permute(1, 0, 2).flatten(1) @ a.flatten(0, 1)
        return [SIGMA / math.sqrt(self.rank) * flat(b, a) for b, a in factors or self.drawn()]


def milliseconds(function, seconds):
    """Of a pass, after two that are not counted: five at least."""
    times, begin = [], time.perf_counter()
    while len(times) < 7 or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        function()
        times.append(1e3 * (time.perf_counter() - start))
    return times[2:]


def cells(args):
    for size, population in ((size, population) for size in args.sizes for population in args.populations):
        yield size, population, None, "inference"
        for rank in args.ranks:
            yield from ((size, population, rank, column) for column in ("fly", "cached", "estimate"))


def check(rank):
    """Against explicit weights of every member, in float64; the same with the wrong signs must be far off."""
    network = Network((5, 17, 3), 10, rank, torch.float64)
    sign = lambda member: 1 - 2 * (member % 2)
    low = [[SIGMA / math.sqrt(rank) * b[q] @ a[q] for q in range(5)] for b, a in network.given]

    def explicit(sign):
        rows = network.x.flatten(0, 1)
        for index, weight in enumerate(network.weights):
            rows = torch.relu(rows) if index else rows
            rows = torch.stack([row @ (weight + sign(m) * low[index][m // 2]) for m, row in enumerate(rows)])
        return rows

    summed = lambda by: torch.cat([sum(by * f.item() * each for f, each in zip(network.fitness, layer)).flatten() for layer in low])
    estimate = torch.cat([each.flatten() for each in network.estimate(network.given)])
    failed = 0
    for column, found, expected, canary in (
        ("inference", network.inference(), explicit(lambda _: 0), explicit(sign)),
        ("cached", network.cached(), explicit(sign), explicit(lambda m: -sign(m))),
        ("estimate", estimate, summed(1), summed(-1)),
    ):
        error, far = ((found - to).abs().max().item() for to in (expected, canary))
        verdict = "ok" if error < 1e-12 and far > 1e-3 else "FAILED"
        failed += verdict != "ok"
        print(f"{verdict}: {column}, rank {rank}: error {error:.1e}, canary {far:.1e}", file=sys.stderr)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    several = lambda kind: lambda text: [kind(part) for part in text.split(",")]
    parser.add_argument("--sizes", type=several(str), default=["64-512-64"], help="widths such as 64-512-64")
    parser.add_argument("--populations", type=several(int), default=[512], help="even member counts")
    parser.add_argument("--ranks", type=several(int), default=[1, 4])
    parser.add_argument("--seconds", type=float, default=0.5, help="at least this long per cell and way")
    parser.add_argument("--check", action="store_true", help="verify the arithmetic instead of timing it")
    args = parser.parse_args()
    torch.manual_seed(0)
    if args.check:
        sys.exit(1 if check(1) + check(3) else 0)
    compiler = shutil.which("g++") or shutil.which("clang++")
    print(json.dumps({"torch": torch.__version__, "threads": torch.get_num_threads(), "compiler": compiler}), flush=True)
    with torch.inference_mode():
        for size, population, rank, column in cells(args):
            torch.compiler.reset()
            network = Network([int(width) for width in size.split("-")], population, rank or 1)
            ways = {"eager": getattr(network, column)}
            if compiler:
                ways["compiled"] = torch.compile(ways["eager"], dynamic=False)
            times = {way: milliseconds(function, args.seconds) for way, function in ways.items()}
            way = min(times, key=lambda way: statistics.median(times[way]))
            q1, median, q3 = statistics.quantiles(times[way], n=4)
            print(json.dumps({"size": size, "population": population, "rank": rank, "column": column, "way": way,
                              "median_ms": median, "q1_ms": q1, "q3_ms": q3}), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
