"""EGGROLL on CartPole-v1 in JAX: the peer of `benches/rollout.rs`.

A perceptron 4 -> hidden -> 2 with relu and biases. MemberChunk 2q and 2q + 1 share the noise of pair q with signs +1 and -1; a
layer computes y = x W + b + s (c (x B) A^T + sigma e), c = sigma / sqrt(rank). All members play the same episode of a
generation, the best action each, until all have fallen or 500 steps are over; fitness is the return. One JSON object per cell
goes to stdout, messages go to stderr. README.md says what is as in the JAX reference and what is tuned.
"""

import argparse
import json
import math
import os
import platform
import sys
import time
from functools import partial, reduce

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # read when jax is imported; cuda for a GPU

import jax
import jax.numpy as jnp
import numpy as np

LIMIT = 500  # steps of an episode
GRAVITY, CART, POLE, HALF_LENGTH, FORCE, TAU = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
EDGE, FALLEN = 2.4, 12 * 2 * math.pi / 360


def physics(np, state, action):
    """Barto, Sutton and Anderson's cart and pole, one Euler step as Gymnasium takes it. state: [..., 4], action: [...]"""
    x, speed, angle, turn = (state[..., i] for i in range(4))
    force = np.where(action == 1, FORCE, -FORCE)
    sin, cos = np.sin(angle), np.cos(angle)
    push = (force + POLE * HALF_LENGTH * turn**2 * sin) / (CART + POLE)
    turning = (GRAVITY * sin - cos * push) / (HALF_LENGTH * (4.0 / 3.0 - POLE * cos**2 / (CART + POLE)))
    moving = push - POLE * HALF_LENGTH * turning * cos / (CART + POLE)
    state = np.stack([x + TAU * speed, speed + TAU * moving, angle + TAU * turn, turn + TAU * turning], -1)
    return state, (abs(state[..., 0]) > EDGE) | (abs(state[..., 2]) > FALLEN)


def draw(key, shape, rank):
    """Noise of one layer for one pair: B [d_in, rank], A [d_out, rank] and that of the bias, [d_out], from one draw."""
    inputs, outputs = shape
    rows = jax.random.normal(key, ((inputs + outputs) * rank + outputs,))
    b, a, bias = jnp.split(rows, (inputs * rank, (inputs + outputs) * rank))
    return b.reshape(inputs, rank), a.reshape(outputs, rank), bias


def pair_noise(key, generation, pair, shapes, rank):
    """Noise is a function of its address (generation, pair, layer): any member can redraw it, nothing is stored."""
    address = lambda layer: reduce(jax.random.fold_in, (generation, pair, layer), key)
    return [draw(address(layer), shape, rank) for layer, shape in enumerate(shapes)]


def forward(params, noise, scales, x):
    """One member's scores of one observation; `scales` are its signs times c and times sigma."""
    for index, ((weight, bias), (b, a, e)) in enumerate(zip(params, noise, strict=True)):
        x = x @ weight + bias + scales[0] * ((x @ b) @ a.T) + scales[1] * e
        x = jax.nn.relu(x) if index < len(params) - 1 else x
    return x


def rollout(params, key, generation, members, rank, sigma, cached):
    """Returns, one for each member, and the steps that were taken by members that had not fallen."""
    shapes = [weight.shape for weight, _ in params]
    each = jnp.arange(members)
    signs = 1.0 - 2.0 * (each % 2)
    scales = jnp.stack([signs * sigma / math.sqrt(rank), signs * sigma], 1)  # [members, 2]
    noise_of = lambda member: pair_noise(key, generation, member // 2, shapes, rank)
    if cached:  # drawn once for a pair and generation
        noise = jax.vmap(lambda q: pair_noise(key, generation, q, shapes, rank))(jnp.arange(members // 2))
        noise = jax.tree.map(lambda part: jnp.repeat(part, 2, axis=0), noise)
        scores = lambda state: jax.vmap(partial(forward, params))(noise, scales, state)
    else:  # by every member in every step, as the reference does
        scores = lambda state: jax.vmap(lambda m, s, x: forward(params, noise_of(m), s, x))(each, scales, state)

    def step(carry):
        time, state, alive, returns = carry
        state, fallen = physics(jnp, state, scores(state).argmax(1))
        return time + 1, state, alive & ~fallen, returns + alive

    start = jax.random.uniform(jax.random.fold_in(jax.random.fold_in(key, generation), members), (4,), minval=-0.05, maxval=0.05)
    carry = 0, jnp.tile(start, (members, 1)), jnp.ones(members, bool), jnp.zeros(members)
    returns = jax.lax.while_loop(lambda carry: (carry[0] < LIMIT) & carry[2].any(), step, carry)[3]
    return returns, returns.sum()


@partial(jax.jit, static_argnames=("members", "rank", "sigma", "rate", "cached"))
def generation_step(params, key, generation, members, rank, sigma, rate, cached):
    """Rollouts, z-scores, the estimate sqrt(N)/N sum_m f_m s_m E_m with the noise drawn again, and a step of SGD."""
    returns, steps = rollout(params, key, generation, members, rank, sigma, cached)
    shaped = (returns - returns.mean()) / (returns.std() + 1e-8)
    folded = (shaped[::2] - shaped[1::2]) / math.sqrt(members)  # [pairs]
    shapes = [weight.shape for weight, _ in params]
    noise = jax.vmap(lambda q: pair_noise(key, generation, q, shapes, rank))(jnp.arange(members // 2))
    moved = []
    for (weight, bias), (b, a, e) in zip(params, noise, strict=True):
        low = sigma / math.sqrt(rank) * jnp.einsum("qir,qor->io", b * folded[:, None, None], a)
        moved.append((weight + rate * low, bias + rate * sigma * folded @ e))
    return moved, returns.mean(), steps


def initial(widths, seed):
    """Uniform weights and biases of +-1/sqrt(d_in)."""
    keys = jax.random.split(jax.random.key(seed), 2 * len(widths))
    layer = lambda i, d_in, d_out: tuple(
        jax.random.uniform(k, s, minval=-(d_in**-0.5), maxval=d_in**-0.5) for k, s in zip(keys[2 * i :], ((d_in, d_out), (d_out,)))
    )
    return [layer(i, *pair) for i, pair in enumerate(zip(widths, widths[1:]))]


def train(args, hidden, members, rank, cached, seed):
    """Seconds, steps and last mean return of a training run. The generation is compiled before."""
    params, key = initial([4, *hidden, 2], seed), jax.random.key(1000 + seed)
    one = partial(generation_step, members=members, rank=rank, sigma=args.sigma, rate=args.rate, cached=cached)
    jax.block_until_ready(one(params, key, 0))
    start, total, mean = time.perf_counter(), 0, 0.0
    for generation in range(args.generations):
        params, mean, steps = one(params, key, generation)
        total += int(steps)  # the one read of a generation
    return time.perf_counter() - start, total, float(mean)


def run(args):
    emit = lambda cell: print(json.dumps(cell), flush=True)
    emit({"jax": jax.__version__, "device": jax.devices()[0].device_kind, "threads": os.cpu_count(),
          "python": platform.python_version(), "tuned": not args.untuned})
    for hidden, members, rank in args.cells:
        for noise in args.noise:
            runs = [train(args, hidden, members, rank, noise == "cached", seed) for seed in range(args.runs)]
            rates = [steps / seconds for seconds, steps, _ in runs]
            q1, median, q3 = (round(float(q)) for q in np.percentile(rates, (25, 50, 75)))
            steps = sum(steps for _, steps, _ in runs)
            emit({"hidden": hidden, "population": members, "rank": rank, "noise": noise, "env_steps_per_second": median,
                  "q1": q1, "q3": q3, "mean_episode_length": steps / (args.runs * args.generations * members),
                  "last_return": float(np.median([mean for _, _, mean in runs]))})


def check():
    """Physics and a member's forward against float64 numpy; canaries, the other action and the wrong pair, must disagree."""
    random = np.random.default_rng(0)
    states, actions = random.normal(size=(100, 4)) * (1.0, 1.0, 0.2, 1.0), random.integers(0, 2, 100)
    expected, canary = (physics(np, states, a)[0] for a in (actions, 1 - actions))
    found = physics(jnp, jnp.asarray(states, jnp.float32), jnp.asarray(actions))[0]
    distance = lambda a, b: float(np.abs(np.asarray(a, np.float64) - b).max())
    results = [("physics", distance(found, expected), distance(found, canary))]
    sigma, x = 0.3, random.normal(size=4)
    for rank in (1, 3):
        params, key = initial([4, 7, 5, 2], 3), jax.random.key(9)
        noise = lambda pair: pair_noise(key, 7, pair, [w.shape for w, _ in params], rank)

        def explicit(pair, sign):
            h = x
            for index, ((w, bias), (b, a, e)) in enumerate(zip(params, noise(pair), strict=True)):
                f64 = lambda array: np.asarray(array, np.float64)
                h = h @ (f64(w) + sign * sigma / rank**0.5 * f64(b) @ f64(a).T) + f64(bias) + sign * sigma * f64(e)
                h = np.maximum(h, 0) if index < 2 else h
            return h

        scales = jnp.asarray([-sigma / rank**0.5, -sigma])
        found = forward(params, noise(2), scales, jnp.asarray(x, jnp.float32))
        results.append((f"forward, rank {rank}", distance(found, explicit(2, -1)), distance(found, explicit(1, -1))))
    one = lambda cached: rollout(initial([4, 8, 2], 0), jax.random.key(0), 3, 10, 2, 0.5, cached)[0]
    other = rollout(initial([4, 8, 2], 1), jax.random.key(0), 3, 10, 2, 0.5, True)[0]
    results.append(("cached equals fly", distance(one(True), np.asarray(one(False))), distance(one(True), np.asarray(other))))
    failed = 0
    for name, error, far in results:
        verdict = "ok" if error < 1e-5 and far > 1e-2 else "FAILED"
        failed += verdict != "ok"
        print(f"{verdict}: {name}: error {error:.1e}, canary {far:.1e}", file=sys.stderr)
    return failed


def arguments():
    def cell(text):
        """32x32:128:1 is hidden layers of 32 and 32, 128 members, rank 1."""
        try:
            hidden, members, rank = text.split(":")
            found = [int(width) for width in hidden.split("x")], int(members), int(rank)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not WIDTHxWIDTH:MEMBERS:RANK")
        if min(found[0]) < 1 or found[1] < 2 or found[1] % 2 or found[2] < 1:
            raise argparse.ArgumentTypeError(f"{text!r}: widths and ranks are at least 1, members even")
        return found

    count = lambda text: int(text) if int(text) >= 1 else parser.error(f"{text} is less than 1")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", nargs="+", type=cell, default=[cell("32x32:128:1"), cell("256:2048:4")])
    parser.add_argument("--noise", nargs="+", choices=("fly", "cached"), default=["fly", "cached"])
    parser.add_argument("--generations", type=count, default=20, help="of each training run")
    parser.add_argument("--runs", type=count, default=3, help="training runs of each cell")
    parser.add_argument("--sigma", type=float, default=0.3)
    parser.add_argument("--rate", type=float, default=0.3, help="learning rate of SGD")
    parser.add_argument("--untuned", action="store_true", help="JAX's default generator")
    parser.add_argument("--check", action="store_true", help="verify the arithmetic instead of timing it")
    return parser.parse_args()


def main():
    args = arguments()
    # The plain stream is statistically equal and up to twice as fast here; the partitionable one is for sharding.
    jax.config.update("jax_threefry_partitionable", args.untuned)
    if args.check:
        sys.exit(1 if check() else 0)
    run(args)


if __name__ == "__main__":
    main()
