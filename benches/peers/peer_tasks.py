"""The tasks of `learning.py` in JAX: CartPole-v1, Pendulum-v1 and MNIST, for a population of flat parameter vectors.

A task maps a population [members, values] and a key to fitness [members], higher is better, and to the work done. All
members of a generation see the same episodes, or the same mini-batch. `context` is what a task remembers between generations:
statistics of observations where they are normalized, else nothing. The physics are written from Gymnasium's formulas.
"""

import gzip
import math
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jax_rollout import physics

TEST_EPISODES = 100


class Perceptron:
    """Linear layers with biases and an activation between, as slices of one flat vector."""

    def __init__(self, widths, activation):
        self.widths, self.activation = list(widths), activation
        self.size = sum((d_in + 1) * d_out for d_in, d_out in zip(widths, widths[1:]))

    def initial(self, key):
        """Weights and biases uniform in +-1/sqrt(d_in)."""
        parts = []
        for own, d_in, d_out in zip(jax.random.split(key, len(self.widths)), self.widths, self.widths[1:]):
            parts.append(jax.random.uniform(own, ((d_in + 1) * d_out,), minval=-(d_in**-0.5), maxval=d_in**-0.5))
        return jnp.concatenate(parts)

    def layers(self, flat):
        """Weights [d_in, d_out] and biases [d_out] of one member."""
        found, start = [], 0
        for d_in, d_out in zip(self.widths, self.widths[1:]):
            middle, end = start + d_in * d_out, start + (d_in + 1) * d_out
            found.append((flat[start:middle].reshape(d_in, d_out), flat[middle:end]))
            start = end
        return found

    def __call__(self, layers, x):
        """Outputs [..., d_out] of inputs x: [..., d_in]."""
        for index, (weight, bias) in enumerate(layers):
            x = x @ weight + bias
            x = self.activation(x) if index < len(layers) - 1 else x
        return x


class Episodes:
    """What CartPole and Pendulum share. `play` returns [members, episodes] and the sums of what was observed."""

    unit = "environment steps"

    def evaluate(self, population, context, key):
        """Fitness [members], environment steps, and the statistics of observations with those of this generation."""
        keys = jax.random.split(key, self.episodes)
        returns, steps, sums = self.play(population, context, jax.vmap(self.start)(keys))
        return returns.mean(1), steps, merge(context, sums) if self.normalize else context

    def score(self, mean, context, key):
        """Mean return over fresh episodes."""
        starts = jax.vmap(self.start)(jax.random.split(key, TEST_EPISODES))
        return self.play(mean[None], context, starts)[0].mean()

    def context(self):
        """Count, mean and sums of squared distances to it."""
        return jnp.zeros(()), jnp.zeros(self.observations), jnp.zeros(self.observations)


class CartPole(Episodes):
    """CartPole-v1: 1 for each step until the pole falls, at most 500. One episode for each member, the best action."""

    name, goals, restart_after = "CartPole", (475.0,), 0
    population, episodes, test_every, budget = 128, 1, 2, 5_000_000
    observations, normalize, steps = 4, False, 500

    def __init__(self, _args):
        self.network = Perceptron((4, 32, 32, 2), jax.nn.relu)

    def start(self, key):
        return jax.random.uniform(key, (4,), minval=-0.05, maxval=0.05)

    def play(self, population, context, starts):
        layers = jax.vmap(self.network.layers)(population)
        shape = (population.shape[0], starts.shape[0])

        def step(carry):
            time, state, alive, returns = carry
            scores = jax.vmap(self.network)(layers, state)  # [members, episodes, 2]
            state, fallen = physics(jnp, state, scores.argmax(-1))
            return time + 1, state, alive & ~fallen, returns + alive

        carry = 0, jnp.tile(starts, (shape[0], 1, 1)), jnp.ones(shape, bool), jnp.zeros(shape)
        returns = jax.lax.while_loop(lambda carry: (carry[0] < self.steps) & carry[2].any(), step, carry)[3]
        return returns, returns.sum(), None


class Pendulum(Episodes):
    """Pendulum-v1: 200 steps of a torque within +-2, which is 2 tanh of the output. Four episodes for each member."""

    name, goals, restart_after = "Pendulum", (-200.0,), 150
    population, episodes, test_every, budget = 64, 4, 5, 40_000_000
    observations, normalize, steps = 3, True, 200

    def __init__(self, _args):
        self.network = Perceptron((3, 32, 1), jnp.tanh)

    def start(self, key):
        angle, speed = jax.random.uniform(key, (2,), minval=-1.0)
        return jnp.stack([math.pi * angle, speed])

    def play(self, population, context, starts):
        layers = jax.vmap(self.network.layers)(population)
        scaling = normalizer(context)

        def step(carry, _):
            state, returns, (total, squares) = carry
            angle, speed = state[..., 0], state[..., 1]  # [members, episodes]
            seen = jnp.stack([jnp.cos(angle), jnp.sin(angle), speed], -1)
            torque = 2 * jnp.tanh(jax.vmap(self.network)(layers, scaling(seen))[..., 0])
            state, reward = pendulum_step(jnp, angle, speed, torque)
            return (state, returns + reward, (total + seen.sum((0, 1)), squares + (seen**2).sum((0, 1)))), None

        shape = (population.shape[0], starts.shape[0])
        sums = jnp.zeros(3), jnp.zeros(3)
        carry = jnp.tile(starts, (shape[0], 1, 1)), jnp.zeros(shape), sums
        (_, returns, sums), _ = jax.lax.scan(step, carry, None, self.steps)
        steps = float(shape[0] * shape[1] * self.steps)
        return returns, steps, (steps, *sums)


def pendulum_step(np, angle, speed, torque):
    """One step with m = l = 1, g = 10 and 0.05 s; the reward is that of the state before."""
    lean = (angle + math.pi) % (2 * math.pi) - math.pi
    reward = -(lean**2 + 0.1 * speed**2 + 0.001 * torque**2)
    speed = np.clip(speed + (15.0 * np.sin(angle) + 3.0 * torque) * 0.05, -8.0, 8.0)
    return np.stack([angle + speed * 0.05, speed], -1), reward


def merge(context, sums):
    """Count, mean and squared distances with those of another generation (Chan, Golub and LeVeque)."""
    (count, mean, squares), (more, total, total_squares) = context, sums
    other = total / more
    shift, all_of_them = other - mean, count + more
    squares = squares + total_squares - more * other**2 + shift**2 * count * more / all_of_them
    return all_of_them, mean + shift * more / all_of_them, squares


def normalizer(context):
    """Observations as z-scores of all generations before, within +-10."""
    count, mean, squares = context
    variance = jnp.where(count < 2, 1.0, jnp.maximum(squares / jnp.maximum(count, 1.0), 1e-8))
    return lambda seen: jnp.clip((seen - mean) / jnp.sqrt(variance), -10.0, 10.0)


class Mnist:
    """Cross-entropy of a mini-batch of the first 50,000 training images; the score is accuracy on the last 10,000."""

    name, goals, unit, restart_after = "MNIST", (0.95, 0.97), "member evaluations", 0
    population, batch, test_every, budget = 256, 128, 10, 20_000_000

    def __init__(self, args):
        self.network = Perceptron((784, 128, 10), jax.nn.relu)
        images = read_idx(args.data / "train-images-idx3-ubyte.gz", 16).reshape(-1, 784).astype(np.float32)
        labels = read_idx(args.data / "train-labels-idx1-ubyte.gz", 8).astype(np.int32)
        images /= images[:-10_000].std()  # not centered: the background stays 0
        self.images, self.labels = jnp.asarray(images[:-10_000]), jnp.asarray(labels[:-10_000])
        self.held_out = jnp.asarray(images[-10_000:]), jnp.asarray(labels[-10_000:])

    def context(self):
        return ()

    def evaluate(self, population, context, key):
        chosen = jax.random.randint(key, (self.batch,), 0, len(self.images))
        images, labels = self.images[chosen], self.labels[chosen]
        layers = jax.vmap(self.network.layers)(population)
        logits = jax.vmap(self.network, (0, None))(layers, images)  # [members, batch, 10]
        likelihoods = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[None, :, None], -1)
        return likelihoods.mean((1, 2)), population.shape[0], context

    def score(self, mean, context, key):
        images, labels = self.held_out
        return (self.network(self.network.layers(mean), images).argmax(1) == labels).mean()


def read_idx(path: Path, header):
    """Bytes of a gzip file of MNIST, without its header."""
    return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=header)


TASKS = {"cartpole": CartPole, "pendulum": Pendulum, "mnist": Mnist}


def check():
    """Forward, pendulum and statistics against float64 numpy. Names, errors, and distances of canaries."""
    random = np.random.default_rng(0)
    distance = lambda a, b: float(np.abs(np.asarray(a, np.float64) - b).max())
    network = Perceptron((5, 7, 3), jnp.tanh)
    flat, x = np.asarray(network.initial(jax.random.key(1)), np.float64), random.normal(size=(4, 5))
    explicit = lambda f: np.tanh(x @ f[:35].reshape(5, 7) + f[35:42]) @ f[42:63].reshape(7, 3) + f[63:]
    found = network(network.layers(jnp.asarray(flat, jnp.float32)), jnp.asarray(x, jnp.float32))
    results = [("forward", distance(found, explicit(flat)), distance(found, explicit(flat[::-1])))]

    angle, speed, torque = random.normal(size=(3, 100)) * np.array([[4.0], [3.0], [1.0]])
    reference = partial(pendulum_step, np)
    to32 = partial(jnp.asarray, dtype=jnp.float32)
    for index, part in enumerate(("pendulum's state", "pendulum's reward")):
        found = pendulum_step(jnp, to32(angle), to32(speed), to32(torque))[index]
        results.append((part, distance(found, reference(angle, speed, torque)[index]),
                        distance(found, reference(angle + 1, speed, torque)[index])))  # fmt: skip

    halves = random.normal(size=(2, 50, 3)) * 2 + 1
    context = jnp.zeros(()), jnp.zeros(3), jnp.zeros(3)
    for half in halves:
        context = merge(context, (50.0, to32(half.sum(0)), to32((half**2).sum(0))))
    seen = halves.reshape(-1, 3)
    found = normalizer(context)(to32(seen))
    results.append(("normalizer", distance(found, (seen - seen.mean(0)) / seen.std(0)), distance(found, seen)))
    return results
