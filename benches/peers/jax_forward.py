"""EGGROLL's perturbed forward and gradient estimate in JAX on the CPU: the peer of `examples/throughput`.

A bias-free MLP in -> hidden -> out with relu sees one input row per member. Members 2q and 2q + 1 share the noise of
pair q with signs +1 and -1; a layer computes y = x W + s c (x B) A^T with c = sigma / sqrt(rank). One JSON object per
cell goes to stdout, messages go to stderr. See README.md for the columns and for what is, and is not, as in the JAX
reference (Sarkar et al., arXiv 2511.16652).
"""

import argparse
import functools
import json
import math
import os
import platform
import sys
import time
from typing import Any, NamedTuple

os.environ["JAX_PLATFORMS"] = "cpu"  # read when jax is imported

import jax
import jax.numpy as jnp
import numpy as np

SIZES = {"small": (4, 256, 2), "medium": (64, 512, 64), "large": (256, 2048, 256)}
SIGMA = 0.1
CHUNK = 64  # members or pairs drawn at a time: the noise in flight stays in cache


class Data(NamedTuple):
    """What a pass reads. Arguments of the jitted function, so that XLA cannot fold them into constants."""

    key: jax.Array
    weights: Any  # [d_in, d_out] per layer
    x: jax.Array  # [members, d_in]
    fitness: jax.Array  # [pairs], already folded: f(+) - f(-)
    factors: Any = None  # ([pairs, rank, d_in], [pairs, rank, d_out]) per layer, for `cached`


def mlp(layer, rows, weights):
    """Both layers; `layer(index, rows, weight)` is the plain or the perturbed product."""
    return layer(1, jax.nn.relu(layer(0, rows, weights[0])), weights[1])


def sign(member):
    return 1.0 - 2.0 * (member % 2)


def noise_key(key, *address):
    """Noise is a function of its address (generation, pair, layer): any member can redraw it, nothing is stored."""
    return functools.reduce(jax.random.fold_in, address, key)


def draw_factors(key, shape, rank):
    """B: [d_in, rank] and A: [d_out, rank] from one draw, as the reference does."""
    rows = jax.random.normal(key, (sum(shape), rank))
    return rows[: shape[0]], rows[shape[0] :]


def population(member, data, chunk):
    """Every member's pass under vmap: the whole population at once, or `chunk` members at a time."""
    inputs = jnp.arange(len(data.x)), data.x
    if chunk is None:
        return jax.vmap(member)(*inputs)
    return jax.lax.map(lambda each: member(*each), inputs, batch_size=chunk)


def inference(data, generation, rank, chunk):
    return mlp(lambda index, rows, weight: rows @ weight, data.x, data.weights)


def fly(data, generation, rank, chunk):
    def member(m, row):
        def layer(index, h, weight):
            b, a = draw_factors(noise_key(data.key, generation, m // 2, index), weight.shape, rank)
            return h @ weight + sign(m) * (SIGMA / math.sqrt(rank)) * ((h @ b) @ a.T)

        return mlp(layer, row, data.weights)

    return population(member, data, chunk)


def cached(data, generation, rank, chunk):
    def layer(index, rows, weight):
        b, a = data.factors[index]
        pairs = rows.reshape(-1, 2, rows.shape[1])  # [pairs, 2, d_in]: a pair's members are neighbours
        signs = sign(jnp.arange(2))[:, None]  # [2, 1]
        t = signs * (SIGMA / math.sqrt(rank)) * jnp.einsum("psi,pri->psr", pairs, b)  # [pairs, 2, rank]
        # einsum("psr,pro->pso") as a fused product and sum: the rank is too short for XLA's batched matmul.
        delta = (t[..., None] * a[:, None]).sum(2)  # [pairs, 2, d_out]
        return rows @ weight + delta.reshape(len(rows), -1)

    return mlp(layer, data.x, data.weights)


def open_es_fly(data, generation, rank, chunk):
    def member(m, row):
        def layer(index, h, weight):
            noise = jax.random.normal(noise_key(data.key, generation, m // 2, index), weight.shape)
            return h @ (weight + sign(m) * SIGMA * noise)

        return mlp(layer, row, data.weights)

    return population(member, data, chunk)


def estimate(data, generation, rank, chunk):
    """sum_q f_q c B_q A_q^T per layer, one matmul over (pair, rank) for each chunk of pairs."""
    pairs = len(data.fitness)
    chunk = min(chunk or pairs, pairs)
    steps = -(-pairs // chunk)
    fitness = jnp.pad(data.fitness, (0, steps * chunk - pairs))  # a padded pair weighs nothing

    def layer(index, weight):
        def step(total, each):
            draw = lambda q: draw_factors(noise_key(data.key, generation, q, index), weight.shape, rank)
            b, a = jax.vmap(draw)(each[0])  # [chunk, d_in, rank], [chunk, d_out, rank]
            return total + jnp.einsum("qir,qor->io", b * each[1][:, None, None], a), None

        each = jnp.arange(steps * chunk).reshape(steps, chunk), fitness.reshape(steps, chunk)
        return (SIGMA / math.sqrt(rank)) * jax.lax.scan(step, jnp.zeros(weight.shape), each)[0]

    return [layer(index, weight) for index, weight in enumerate(data.weights)]


COLUMNS = {f.__name__: f for f in (inference, fly, cached, open_es_fly, estimate)}
RANKLESS = ("inference", "open_es_fly")


def compiled(column, rank, chunk):
    return jax.jit(functools.partial(COLUMNS[column], rank=rank, chunk=chunk))


def make_data(size, members):
    """A network of unit-variance activations, unit-normal inputs and fitness."""
    keys = jax.random.split(jax.random.key(1), 4)
    shapes = list(zip(size, size[1:]))
    weights = [jax.random.normal(k, s) / math.sqrt(s[0]) for k, s in zip(keys, shapes)]
    x, fitness = jax.random.normal(keys[2], (members, size[0])), jax.random.normal(keys[3], (members // 2,))
    return Data(jax.random.key(0), weights, x, fitness)


@functools.partial(jax.jit, static_argnames="rank")
def make_factors(data, generation, rank):
    """The factors that `fly` and `estimate` draw in this generation, rank before width as `cached` reads them."""

    def pair(q):
        draws = [draw_factors(noise_key(data.key, generation, q, i), w.shape, rank) for i, w in enumerate(data.weights)]
        return [(b.T, a.T) for b, a in draws]

    return jax.vmap(pair)(jnp.arange(len(data.fitness)))


def measure(function, data, seconds, repeats):
    """Milliseconds: two warm-ups, then passes until both the seconds and the repeats are reached."""
    times, begin = [], 0.0
    for generation in range(10**9):  # a traced argument: every pass draws fresh noise
        start = time.perf_counter()
        jax.block_until_ready(function(data, generation))
        now = time.perf_counter()
        if generation < 2:
            begin = now
            continue
        times.append((now - start) * 1e3)
        if len(times) >= repeats and now - begin >= seconds:
            return times


def run(args, chunk):
    """One cell after another; a rankless column runs once per (size, population)."""
    emit = lambda cell: print(json.dumps(cell), flush=True)
    device = jax.devices()[0].device_kind
    emit({"jax": jax.__version__, "device": device, "threads": os.cpu_count(), "python": platform.python_version(),
          "tuned": not args.untuned})
    for name in args.sizes:
        for members in args.populations:
            data = make_data(SIZES[name], members)
            noise_bytes = 4 * members * max(w.size for w in data.weights)
            for rank in [None, *args.ranks]:
                for column in (c for c in args.columns if (c in RANKLESS) == (rank is None)):
                    cell = {"size": name, "population": members, "rank": rank, "column": column}
                    if column == "open_es_fly" and noise_bytes > args.max_bytes:
                        emit(cell | {"skipped": f"{noise_bytes:.2e} bytes of noise > --max-bytes {args.max_bytes:.2e}"})
                        continue
                    given = data._replace(factors=make_factors(data, 0, rank)) if column == "cached" else data
                    times = measure(compiled(column, rank, chunk), given, args.seconds, args.repeats)
                    q1, median, q3 = (round(float(q), 4) for q in np.percentile(times, (25, 50, 75)))
                    emit(cell | {"median_ms": median, "q1_ms": q1, "q3_ms": q3, "repeats": len(times)})


def check(chunk):
    """Every column against explicit weights in float64 numpy; a canary with the wrong pair must disagree."""
    rank, generation, tolerance, ok = 3, 7, 1e-5, True  # float32 rounding of sums of about 20 terms of order one
    data = make_data((5, 17, 3), 10)
    data = data._replace(factors=make_factors(data, generation, rank))
    f64 = lambda array: np.asarray(array, np.float64)
    weights, x, fitness = [f64(w) for w in data.weights], f64(data.x), f64(data.fitness)
    scale = SIGMA / math.sqrt(rank)
    low = [scale * np.einsum("qri,qro->qio", f64(b), f64(a)) for b, a in data.factors]
    dense = [np.stack([SIGMA * f64(jax.random.normal(noise_key(data.key, generation, q, i), w.shape))
                       for q in range(len(fitness))]) for i, w in enumerate(weights)]

    def explicit(noise):
        layer = lambda m, i: weights[i] + (-1) ** m * noise[i][m // 2]
        return np.stack([np.maximum(row @ layer(m, 0), 0) @ layer(m, 1) for m, row in enumerate(x)])

    wrong = [np.roll(noise, 1, axis=0) for noise in low]
    for column, size, expected, agree in [
        ("inference", None, explicit([0 * noise for noise in low]), True),
        *[("fly", size, explicit(low), True) for size in (chunk, None, 4)],  # 4: a remainder is left over
        ("fly", chunk, explicit(wrong), False),
        ("cached", chunk, compiled("fly", rank, chunk)(data, generation), True),
        ("cached", chunk, explicit(wrong), False),
        ("open_es_fly", chunk, explicit(dense), True),
        *[("estimate", size, [np.tensordot(fitness, noise, 1) for noise in low], True) for size in (chunk, None, 4)],
        ("estimate", chunk, [np.tensordot(fitness, noise, 1) for noise in wrong], False),
    ]:
        found = compiled(column, rank, size)(data, generation)
        leaves = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
        error = max(np.abs(f64(got) - f64(want)).max() for got, want in leaves)
        passed = error < tolerance if agree else error > 1000 * tolerance
        ok &= bool(passed)
        print(f"{'ok' if passed else 'FAILED'}: {column}, chunk {size}, {'agrees' if agree else 'canary'}: "
              f"largest difference {error:.1e}", file=sys.stderr)
    return ok


def arguments():
    def value(kind, wanted, valid):
        """A converter whose error names the value; argparse then exits with code 2."""

        def convert(text):
            try:
                if valid(found := kind(text)):
                    return found
            except ValueError:
                pass
            raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")

        return convert

    several = lambda one: lambda text: [one(part) for part in text.split(",")]
    named = lambda table: several(value(str, f"one of {', '.join(table)}", lambda v: v in table))
    count = value(int, "a whole number of at least 1", lambda v: v >= 1)
    amount = value(float, "a finite number of at least 0", lambda v: 0 <= v < math.inf)
    even = value(int, "an even number of at least 2 (members come in pairs)", lambda v: v >= 2 and v % 2 == 0)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=named(SIZES), default=["medium"], help=", ".join(SIZES))
    parser.add_argument("--populations", type=several(even), default=[512], help="even member counts")
    parser.add_argument("--ranks", type=several(count), default=[1, 4])
    parser.add_argument("--columns", type=named(COLUMNS), default=list(COLUMNS), help=", ".join(COLUMNS))
    parser.add_argument("--repeats", type=count, default=5, help="at least this many timed passes per cell")
    parser.add_argument("--seconds", type=amount, default=0.5, help="at least this long per cell")
    parser.add_argument("--max-bytes", type=amount, default=6e9, help="skip open_es_fly above this much noise")
    parser.add_argument("--untuned", action="store_true", help="JAX's default generator, one vmap over the population")
    parser.add_argument("--check", action="store_true", help="verify the arithmetic instead of timing it")
    return parser.parse_args()


def main():
    args = arguments()
    # Statistically equal, up to twice as fast on a CPU; the partitionable stream exists for sharding over devices.
    jax.config.update("jax_threefry_partitionable", args.untuned)
    chunk = None if args.untuned else CHUNK
    if args.check:
        sys.exit(0 if check(chunk) else 1)
    run(args, chunk)


if __name__ == "__main__":
    main()
