#!/usr/bin/env python3
"""A generation of a large population on many replicas, simulated from what was measured on few.

`cargo bench -p eggroll-benches --bench distribution --features eggroll/mpi` measures the constants of one core (`--member`, `--pair`, `--update`); those of the
network are assumptions. Standard library only. What is simulated, generation after generation:

1. Every replica evaluates its even share of the members. Its speed in a generation varies by a normal factor (`--jitter`), and a few are
   slow (`--slow`, by `--slowness`): all wait for the slowest.
2. Fitness goes to all. Fully connected (MPI): Bruck's algorithm, log2(W) latencies and 4 bytes a member through every link. Through one
   server (a queue): every message costs the server a time of its own, and all fitness leaves it once for each replica.
3. Every replica makes the same update: the estimate costs every pair once on every replica, however many there are.
"""

import argparse
import math
import random


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = lambda name, default, text: parser.add_argument(name, type=float, default=default, help=f"{text} ({default})")
    add("--members", 2**20, "members of the population")
    add("--member", 217e-6, "seconds of evaluating a member on one core, measured")
    add("--pair", 8.5e-6, "seconds of a pair in the estimate on one core, measured")
    add("--update", 0.9e-3, "seconds of an update beside its pairs, measured")
    add("--cores", 1, "cores of a replica")
    add("--latency", 10e-6, "seconds of a message between machines, assumed")
    add("--bandwidth", 1.25e9, "bytes a second of a link, assumed: 10 Gbit/s")
    add("--jitter", 0.03, "standard deviation of a replica's speed, assumed")
    add("--slow", 0.001, "share of slices that are slow, assumed")
    add("--slowness", 1.5, "how much longer they take, assumed")
    add("--message", 20e-6, "seconds of a message in a queue's server, assumed")
    add("--slices", 4, "slices of a replica in a queue")
    add("--bits", 32, "bits of a score in a queue: 32, or 1.6 for signs")
    add("--generations", 100, "generations to simulate")
    return parser.parse_args()


def slowest(arguments, replicas, draw):
    """The longest of the replicas' evaluations."""
    def one(_):
        factor = max(0.5, draw.gauss(1.0, arguments.jitter))
        return factor * (arguments.slowness if draw.random() < arguments.slow else 1.0)

    share = math.ceil(arguments.members / 2 / replicas) * 2
    return max(map(one, range(replicas))) * share * arguments.member / arguments.cores


def through_links(arguments, replicas):
    share = (replicas - 1) / replicas
    return math.ceil(math.log2(replicas)) * arguments.latency + share * 4 * arguments.members / arguments.bandwidth


def through_server(arguments, replicas):
    if replicas == 1:
        return 0.0
    slices = min(arguments.slices * replicas, arguments.members / 2)
    all_bytes = arguments.members * arguments.bits / 8
    # A slice is given out and comes back; the fitness of all then leaves the server once for every replica.
    return (2 * slices + replicas) * arguments.message + (replicas + 1) * all_bytes / arguments.bandwidth


def main():
    arguments = parse()
    update = arguments.members / 2 * arguments.pair / arguments.cores + arguments.update
    print("| replicas | evaluation | links | update | generation | speedup | of it evaluation | server | generation | speedup |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    alone = arguments.members * arguments.member / arguments.cores + update
    for replicas in [1, 2, 8, 64, 256, 1024, 4096]:
        draw = random.Random(replicas)
        count = int(arguments.generations)
        evaluation = sum(slowest(arguments, replicas, draw) for _ in range(count)) / count
        exchanges = [through_links(arguments, replicas), through_server(arguments, replicas)]
        totals = [evaluation + exchange + update for exchange in exchanges]
        row = [f"{replicas}", *(f"{seconds:.3g} s" for seconds in [evaluation, exchanges[0], update, totals[0]])]
        row += [f"{alone / totals[0]:.1f}", f"{100 * evaluation / totals[0]:.0f} %"]
        row += [f"{exchanges[1]:.3g} s", f"{totals[1]:.3g} s", f"{alone / totals[1]:.1f}"]
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
