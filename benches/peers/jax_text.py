"""Training of a small text model by EGGROLL in JAX: the peer of `examples/char_lm --model gru` and `--model float-transformer`.

Every member reads the same sequences. A layer of pair q computes y = x Wᵀ ± σ (x·b) a with normal a, b; its estimate is the sum over pairs of
half the difference of the members' losses times a bᵀ: of each token, projected onto the row that the token gave the layer, or of the mean. Adam
updates. Prints one JSON object. README.md says what is the same on both sides.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import time
from functools import partial

os.environ["JAX_PLATFORMS"] = "cpu"  # read when jax is imported

import jax
import jax.numpy as jnp
import numpy as np

SYMBOLS, WIDTH, INNER, HEADS, BLOCKS = 66, 64, 256, 4, 2
SEQUENCES, TOKENS = 16, 32
SIGMA, RATE, GAMMA = 0.05, 0.006, 0.5
# Layers whose outputs act on later tokens: these tokens' losses count for them, each step by GAMMA less.
LATER = {"gru": ("gate", "candidate"), "transformer": ("key", "value")}
SQUARE = {"gru": ("gate", "candidate", "out"), "transformer": ("query", "key", "value", "out")}
CHUNKS = (1, 2, 4, 8, 16, 32)  # pairs side by side; the fastest is measured


def make_weights(model, key):
    shapes = {"head": (SYMBOLS, WIDTH)}
    for block in range(BLOCKS):
        shapes |= {f"{block} {name}": (WIDTH, WIDTH) for name in SQUARE[model]}
        shapes |= {f"{block} up": (INNER, WIDTH), f"{block} down": (WIDTH, INNER)}
    keys = jax.random.split(key, len(shapes))
    return {name: jax.random.normal(k, shape) / shape[1] ** 0.5 for k, (name, shape) in zip(keys, shapes.items())}


def make_batch(key):
    """Embedded tokens, which are not trained here, and the tokens behind them."""
    tables, places, tokens = jax.random.split(key, 3)
    tokens = jax.random.randint(tokens, (SEQUENCES, TOKENS + 1), 0, SYMBOLS)
    embedded = jax.random.normal(tables, (SYMBOLS, WIDTH))[tokens[:, :-1]] / 2
    return embedded + jax.random.normal(places, (TOKENS, WIDTH)) / 10, tokens[:, 1:]


def normalized(x):
    return x * jax.lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-6)


def recurrence(gate, candidate):
    """h_t = (1 − f_t) h_(t−1) + f_t c_t, unrolled: faster than a loop or an associative scan here."""
    forget = jax.nn.sigmoid(gate)
    step = lambda h, each: (h + each[0] * (each[1] - h),) * 2
    swapped = lambda x: x.swapaxes(0, 1)
    return swapped(jax.lax.scan(step, jnp.zeros_like(gate[:, 0]), (swapped(forget), swapped(candidate)), unroll=TOKENS)[1])


def attention(query, key, value):
    split = lambda x: x.reshape(*x.shape[:2], HEADS, WIDTH // HEADS)
    scores = jnp.einsum("bthd,bshd->bhts", split(query), split(key)) / (WIDTH // HEADS) ** 0.5
    scores = jnp.where(jnp.tril(jnp.ones((TOKENS, TOKENS), bool)), scores, -jnp.inf)
    return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores, -1), split(value)).reshape(query.shape)


def losses(model, weights, batch, noise=None):
    """Loss of every token, and the rows that it gave each layer."""
    x, targets = batch
    rows = {}

    def linear(name, row):
        rows[name] = row
        plain = row @ weights[name].T
        return plain if noise is None else plain + noise(name, row)

    for block in range(BLOCKS):
        of = lambda name, row: linear(f"{block} {name}", row)
        z = normalized(x)
        if model == "gru":
            mixed = normalized(recurrence(of("gate", z), of("candidate", z)))
        else:
            mixed = attention(of("query", z), of("key", z), of("value", z))
        x = x + of("out", mixed)
        x = x + of("down", jax.nn.gelu(of("up", normalized(x))))
    logits = linear("head", normalized(x))
    picked = jnp.take_along_axis(logits, targets[..., None], -1)[..., 0]
    return jax.nn.logsumexp(logits, -1) - picked, rows


def estimate(model, credit, weights, batch, key, pairs, chunk):
    """Of the summed losses' gradient, times the number of pairs."""
    rows = losses(model, weights, batch)[1]
    unit = {name: row / jnp.square(row).sum(-1, keepdims=True) for name, row in rows.items()}
    spread = {name: SIGMA * weight.std() for name, weight in weights.items()}
    ahead = jnp.arange(TOKENS)[None] - jnp.arange(TOKENS)[:, None]
    discount = jnp.where(ahead >= 0, GAMMA ** ahead.astype(float), 0.0)

    def pair(key):
        draws = jax.random.normal(key, (sum(sum(w.shape) for w in weights.values()),))
        factors, at = {}, 0
        for name, weight in weights.items():
            d_out, d_in = weight.shape
            factors[name] = draws[at : at + d_out], draws[at + d_out : at + d_out + d_in]
            at += d_out + d_in

        def member(sign):
            noise = lambda name, row: sign * spread[name] * (row @ factors[name][1])[..., None] * factors[name][0]
            return losses(model, weights, batch, noise)[0]

        half = (member(1.0) - member(-1.0)) / 2
        later = half @ discount.T
        found = {}
        for name, (a, b) in factors.items():
            if credit == "mean":
                found[name] = a * half.sum() / spread[name], b
            else:
                score = later if name.split()[-1] in LATER[model] else half
                found[name] = a / spread[name], jnp.einsum("bt,bti->i", score * (rows[name] @ b), unit[name])
        return found

    def step(total, keys):
        found = jax.vmap(pair)(keys)
        return {name: total[name] + jnp.einsum("qo,qi->oi", *found[name]) for name in total}, None

    keys = jax.random.split(key, pairs)
    start = jax.tree.map(jnp.zeros_like, weights)
    return jax.lax.scan(step, start, keys.reshape(pairs // chunk, chunk, *keys.shape[1:]))[0]


@partial(jax.jit, static_argnames=("model", "credit", "pairs", "chunk"))
def generation(state, generation, batch, key, model, credit, pairs, chunk):
    """One generation with Adam."""
    weights, first, second = state
    found = estimate(model, credit, weights, batch, jax.random.fold_in(key, generation), pairs, chunk)
    t = generation + 1.0
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, found)
    second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, second, found)
    move = lambda w, m, v: w - RATE * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.99**t)) + 1e-12)
    return jax.tree.map(move, weights, first, second), first, second


def measure(args, chunk, seconds):
    """Member-tokens per second of every generation, without the first three."""
    weights = make_weights(args.model, jax.random.key(0))
    batch = make_batch(jax.random.key(1))
    zeros = jax.tree.map(jnp.zeros_like, weights)
    state, rates, begin = (weights, zeros, zeros), [], None
    while len(rates) < 8 or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        begin = begin or start
        state = generation(state, len(rates), batch, jax.random.key(2), args.model, args.credit, args.population // 2, chunk)
        jax.block_until_ready(state)
        rates.append(args.population * SEQUENCES * TOKENS / (time.perf_counter() - start))
    return rates[3:]


def check():
    """The estimate's cosine with the gradient by differentiation, and with another batch's, which must be far smaller. By means, q pairs of p
    weights give √(q / (q + p)) at best: 0.10 for 1,024."""
    failed = 0
    for model in SQUARE:
        weights = make_weights(model, jax.random.key(0))
        gradient = lambda batch: jax.grad(lambda w: losses(model, w, batch)[0].sum())(weights)
        batch, other = make_batch(jax.random.key(1)), make_batch(jax.random.key(9))
        truth, wrong = gradient(batch), gradient(other)
        for credit, pairs, least in (("token", 256, 0.3), ("mean", 1024, 0.06)):
            found = jax.jit(estimate, static_argnums=(0, 1, 5, 6))(model, credit, weights, batch, jax.random.key(2), pairs, 16)
            flat = lambda tree: np.concatenate([np.ravel(tree[name]) for name in sorted(tree)])
            cosine = lambda to: float(flat(found) @ flat(to) / np.linalg.norm(flat(found)) / np.linalg.norm(flat(to)))
            near, far = cosine(truth), cosine(wrong)
            verdict = "ok" if near > least and abs(far) < near / 2 else "FAILED"
            failed += verdict != "ok"
            print(f"{verdict}: {model} by {credit}, {pairs} pairs: cosine {near:.3f}, of another batch {far:.3f}", file=sys.stderr)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=SQUARE, default="gru")
    parser.add_argument("--credit", choices=("token", "mean"), default="token")
    parser.add_argument("--population", type=int, default=64, help="a multiple of 64")
    parser.add_argument("--seconds", type=float, default=10.0, help="of generations, at least")
    parser.add_argument("--check", action="store_true", help="verify the arithmetic instead of timing it")
    args = parser.parse_args()
    # The plain stream is statistically equal and up to twice as fast on CPUs; the partitionable one is for sharding.
    jax.config.update("jax_threefry_partitionable", False)
    if args.check:
        sys.exit(1 if check() else 0)
    if args.population < 64 or args.population % 64:
        parser.error(f"--population must be a multiple of 64, not {args.population}")
    chunk = max(CHUNKS, key=lambda chunk: statistics.median(measure(args, chunk, 0.0)))
    q1, median, q3 = statistics.quantiles(measure(args, chunk, args.seconds), n=4)
    print(json.dumps({
        "jax": jax.__version__, "threads": os.cpu_count(), "python": platform.python_version(), "pairs_at_once": chunk,
        "tokens_per_second": median, "q1": q1, "q3": q3,
    }))  # fmt: skip


if __name__ == "__main__":
    main()
