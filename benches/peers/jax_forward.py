"""EGGROLL's perturbed forward and gradient estimate in JAX: the peer of `examples/throughput` and `examples/paper_setting`.

A bias-free MLP in -> hidden -> out with relu, or one layer in -> out, sees one input row per member. MemberChunk 2q and 2q + 1 share the noise of
pair q with signs +1 and -1; a layer computes y = x W + s c (x B) A^T with c = sigma / sqrt(rank). One JSON object per
cell goes to stdout, messages go to stderr. README.md says what is as in the JAX reference and what is tuned.
"""

import argparse
import json
import math
import os
import platform
import sys
import time
from functools import partial, reduce
from typing import Any, NamedTuple

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # read when jax is imported; cuda for a GPU

import jax
import jax.numpy as jnp
import numpy as np

SIZES = {"small": (4, 256, 2), "medium": (64, 512, 64), "large": (256, 2048, 256),
         "paper": (8192, 8192)}
SIGMA = 0.1
CHUNK = 64  # members or pairs drawn at a time: the noise in flight stays in cache


class Data(NamedTuple):
    """What a pass reads: arguments of the jitted function, so that XLA cannot fold them into constants."""

    key: jax.Array
    weights: list[jax.Array]  # [d_in, d_out] per layer
    x: jax.Array  # [members, d_in]
    fitness: jax.Array  # [pairs], already folded: f(+) - f(-)
    factors: Any = None  # ([pairs, rank, d_in], [pairs, rank, d_out]) per layer, for `cached`


def mlp(layer, rows, weights):
    """All layers; `layer(index, rows, weight)` is the plain or the perturbed product."""
    for index, weight in enumerate(weights):
        rows = layer(index, jax.nn.relu(rows) if index else rows, weight)
    return rows


def sign(member, dtype=jnp.float32):
    return (1 - 2 * (member % 2)).astype(dtype)


def scale(rank):
    return SIGMA / math.sqrt(rank)


def noise_key(data, *address):
    """Noise is a function of its address (generation, pair, layer): any member can redraw it, nothing is stored."""
    return reduce(jax.random.fold_in, address, data.key)


def draw_factors(key, weight, rank):
    """B: [d_in, rank] and A: [d_out, rank] from one draw: fewer, longer calls of the generator."""
    shape = weight.shape
    rows = jax.random.normal(key, (sum(shape), rank), weight.dtype)
    return rows[: shape[0]], rows[shape[0] :]


def population(perturbed, data, generation, chunk):
    """Every member draws its pair's noise for itself, under vmap over `chunk` members (None: all of them) at a time."""

    def member(each):
        layer = lambda i, h, weight: perturbed(noise_key(data, generation, each[0] // 2, i), sign(each[0], h.dtype), h, weight)
        return mlp(layer, each[1], data.weights)

    return jax.lax.map(member, (jnp.arange(len(data.x)), data.x), batch_size=chunk or len(data.x))


def inference(data, generation, rank, chunk):
    return mlp(lambda index, rows, weight: rows @ weight, data.x, data.weights)


def fly(data, generation, rank, chunk):
    def perturbed(key, s, h, weight):
        b, a = draw_factors(key, weight, rank)
        return h @ weight + s * scale(rank) * ((h @ b) @ a.T)

    return population(perturbed, data, generation, chunk)


def open_es_fly(data, generation, rank, chunk):
    perturbed = lambda key, s, h, weight: h @ (weight + s * SIGMA * jax.random.normal(key, weight.shape, weight.dtype))
    return population(perturbed, data, generation, chunk)


def cached(data, generation, rank, chunk):
    """Given factors, in the faster of two layouts: a pair shares its factors or, at rank 1, they are repeated."""

    def by_member(index, h, weight):  # [members, d_in]; nothing but element-wise products, which XLA fuses
        b, a = (jnp.repeat(factor[:, 0], 2, axis=0) for factor in data.factors[index])  # [members, d_in], [.., d_out]
        signs = sign(jnp.arange(len(h)), h.dtype)[:, None]
        return h @ weight + signs * scale(rank) * (h * b).sum(1, keepdims=True) * a

    def by_pair(index, h, weight):  # [pairs, 2, d_in]
        b, a = data.factors[index]
        t = sign(jnp.arange(2), h.dtype)[:, None] * scale(rank) * jnp.einsum("psi,pri->psr", h, b)  # [pairs, 2, rank]
        return h @ weight + (t[..., None] * a[:, None]).sum(2)  # einsum("psr,pro->pso"), but fused with the addition

    if rank == 1:
        return mlp(by_member, data.x, data.weights)
    return mlp(by_pair, data.x.reshape(-1, 2, data.x.shape[1]), data.weights).reshape(len(data.x), -1)


def fly_by_pair(data, generation, rank, chunk):
    """Not as in the reference: drawn once for both members of a pair, all at once. The faster way where memory allows."""
    return cached(data._replace(factors=make_factors(data, generation, rank)), generation, rank, chunk)


def estimate(data, generation, rank, chunk):
    """sum_q f_q c B_q A_q^T per layer, one matmul over (pair, rank) for each chunk of pairs."""
    pairs = len(data.fitness)
    chunk = min(chunk or pairs, pairs)
    padded = -(-pairs // chunk) * chunk  # a padded pair has fitness 0 and adds nothing
    each = jnp.arange(padded).reshape(-1, chunk), jnp.pad(data.fitness, (0, padded - pairs)).reshape(-1, chunk)

    def layer(index, weight):
        def step(total, each):
            draw = lambda q: draw_factors(noise_key(data, generation, q, index), weight, rank)
            b, a = jax.vmap(draw)(each[0])  # [chunk, d_in, rank], [chunk, d_out, rank]
            weighted = b * each[1][:, None, None].astype(b.dtype)
            return total + jnp.einsum("qir,qor->io", weighted, a, preferred_element_type=jnp.float32), None

        return scale(rank) * jax.lax.scan(step, jnp.zeros(weight.shape), each)[0]

    return [layer(index, weight) for index, weight in enumerate(data.weights)]


COLUMNS = {f.__name__: f for f in (inference, fly, fly_by_pair, cached, open_es_fly, estimate)}
RANKLESS = ("inference", "open_es_fly")
OUT_OF_MEMORY = {"failed": "out of memory"}


def compiled(column, rank, chunk):
    return jax.jit(partial(COLUMNS[column], rank=rank, chunk=chunk))


def make_data(size, members, dtype=jnp.float32):
    """Unit-normal inputs and fitness, weights that keep the activations of order one."""
    keys = jax.random.split(jax.random.key(1), 4)
    weights = [jax.random.normal(k, s) / math.sqrt(s[0]) for k, s in zip(keys, zip(size, size[1:]))]
    x, fitness = jax.random.normal(keys[2], (members, size[0])), jax.random.normal(keys[3], (members // 2,))
    return Data(jax.random.key(0), [w.astype(dtype) for w in weights], x.astype(dtype), fitness)


@partial(jax.jit, static_argnames="rank")
def make_factors(data, generation, rank):
    """The factors that `fly` and `estimate` draw in this generation, rank before width as `cached` reads them."""
    draw = lambda q, i, w: [f.T for f in draw_factors(noise_key(data, generation, q, i), w, rank)]
    return jax.vmap(lambda q: [draw(q, i, w) for i, w in enumerate(data.weights)])(jnp.arange(len(data.fitness)))


def widths(name):
    """Of a name, or written out as 64-512-64."""
    return SIZES.get(name) or tuple(int(width) for width in name.split("-"))


def measure(function, data, seconds, repeats, passes):
    """Milliseconds of a pass after two warm-ups, until both the seconds and the repeats are reached. Every repeat waits once, after
    its passes."""
    times, total = [], 0.0
    while len(times) < repeats + 2 or total < seconds * 1e3:
        start = time.perf_counter()
        for each in range(passes):  # the generation is traced: every pass draws fresh noise
            last = function(data, len(times) * passes + each)
        jax.block_until_ready(last)
        times.append((time.perf_counter() - start) * 1e3 / passes)
        total += times[-1] * passes if len(times) > 2 else 0.0
    return times[2:]


def grid(args):
    """Every cell in order; a rankless column is there once per (size, population)."""
    for name, members in ((name, members) for name in args.sizes for members in args.populations):
        for rank in [None, *args.ranks]:
            for column in (c for c in args.columns if (c in RANKLESS) == (rank is None)):
                yield {"size": name, "population": members, "rank": rank, "column": column}


def time_cell(cell, args, chunk):
    """What becomes of one cell: its times, or why there are none."""
    name, members, rank, column = cell.values()
    data = make_data(widths(name), members, args.dtype)
    noise = 4 * members * max(w.size for w in data.weights)
    if column == "open_es_fly" and noise > args.max_bytes:
        return {"skipped": f"{noise:.2e} bytes of noise > --max-bytes {args.max_bytes:.2e}"}
    given = data._replace(factors=make_factors(data, 0, rank)) if column == "cached" else data
    times = measure(compiled(column, rank, chunk), given, args.seconds, args.repeats, args.passes)
    q1, median, q3 = (round(float(q), 4) for q in np.percentile(times, (25, 50, 75)))
    return {"median_ms": median, "q1_ms": q1, "q3_ms": q3, "repeats": len(times)}


def run(args, chunk):
    """One cell after another. A process that is killed for want of memory says nothing: --died-at continues after its cell."""
    emit = lambda cell: print(json.dumps(cell), flush=True)
    emit({"jax": jax.__version__, "device": jax.devices()[0].device_kind, "threads": os.cpu_count(),
          "python": platform.python_version(), "tuned": not args.untuned})
    for index, cell in enumerate(grid(args)):
        if index < args.died_at:
            continue
        if index == args.died_at:
            emit(cell | OUT_OF_MEMORY)
            continue
        try:
            emit(cell | time_cell(cell, args, chunk))
        except Exception as error:
            if not isinstance(error, MemoryError) and "RESOURCE_EXHAUSTED" not in str(error):
                raise
            emit(cell | OUT_OF_MEMORY)


def check(rank, chunk):
    """Every column against explicit weights in float64 numpy; a canary, mostly the wrong pair, must disagree."""
    generation, tolerance, failed = 7, 1e-5, 0  # float32 rounding of sums of about 20 terms of order one
    data = make_data((5, 17, 3), 10)
    data = data._replace(factors=make_factors(data, generation, rank))
    f64 = lambda array: np.asarray(array, np.float64)
    low = [SIGMA / rank**0.5 * np.einsum("qri,qro->qio", f64(b), f64(a)) for b, a in data.factors]
    draw = lambda q, i, w: SIGMA * f64(jax.random.normal(noise_key(data, generation, q, i), w.shape))
    dense = [np.stack([draw(q, i, w) for q in range(5)]) for i, w in enumerate(data.weights)]
    wrong = [np.roll(noise, 1, axis=0) for noise in low]

    def explicit(noise):
        weight = lambda m, i: f64(data.weights[i]) + (-1) ** m * noise[i][m // 2]
        return np.stack([np.maximum(row @ weight(m, 0), 0) @ weight(m, 1) for m, row in enumerate(f64(data.x))])

    distance = lambda found, to: max(np.abs(f64(a) - f64(b)).max() for a, b in zip(found, to, strict=True))
    summed = lambda noise: [np.tensordot(f64(data.fitness), layer, 1) for layer in noise]
    for column, expected, canary in [
        ("inference", explicit([0 * noise for noise in low]), explicit(low)),
        ("fly", explicit(low), explicit(wrong)),
        ("fly_by_pair", explicit(low), explicit(wrong)),
        ("cached", compiled("fly", rank, chunk)(data, generation), explicit(wrong)),
        ("open_es_fly", explicit(dense), explicit(low)),
        ("estimate", summed(low), summed(wrong)),
    ]:
        for size in (chunk, 4, None):  # 4 members or pairs leave a remainder
            found = jax.tree.leaves(compiled(column, rank, size)(data, generation))
            error, far = (distance(found, jax.tree.leaves(to)) for to in (expected, canary))
            verdict = "ok" if error < tolerance and far > 1000 * tolerance else "FAILED"
            failed += verdict != "ok"
            cell = f"{column}, rank {rank}, chunk {size}"
            print(f"{verdict}: {cell}: error {error:.1e}, canary {far:.1e}", file=sys.stderr)
    return failed


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
    sized = lambda text: all(width >= 1 for width in widths(text))
    parser.add_argument("--sizes", type=several(value(str, f"one of {', '.join(SIZES)}, or widths such as 64-512-64", sized)),
                        default=["medium"], help=", ".join([*SIZES, "or widths such as 64-512-64"]))
    parser.add_argument("--populations", type=several(even), default=[512], help="even member counts")
    parser.add_argument("--ranks", type=several(count), default=[1, 4])
    parser.add_argument("--columns", type=named(COLUMNS), default=list(COLUMNS), help=", ".join(COLUMNS))
    parser.add_argument("--repeats", type=count, default=5, help="at least this many timed passes per cell")
    parser.add_argument("--seconds", type=amount, default=0.5, help="at least this long per cell")
    parser.add_argument("--passes", type=count, default=1, help="passes between two waits, which a fast device should not see")
    parser.add_argument("--dtype", choices=("float32", "float16", "bfloat16"), default="float32", help="of weights, inputs and noise")
    parser.add_argument("--max-bytes", type=amount, default=6e9, help="skip open_es_fly above this much noise")
    parser.add_argument("--died-at", type=value(int, "a whole number", lambda v: v >= 0), default=-1,
                        help="the cell, from 0, that an earlier process died of: continue after it")
    parser.add_argument("--untuned", action="store_true", help="JAX's default generator, one vmap over the population")
    parser.add_argument("--check", action="store_true", help="verify the arithmetic instead of timing it")
    return parser.parse_args()


def main():
    args = arguments()
    # The plain stream is statistically equal and up to twice as fast here; the partitionable one is for sharding.
    jax.config.update("jax_threefry_partitionable", args.untuned)
    chunk = None if args.untuned else CHUNK
    if args.check:
        sys.exit(1 if check(1, chunk) + check(3, chunk) else 0)  # the two layouts of `cached`
    run(args, chunk)


if __name__ == "__main__":
    main()
