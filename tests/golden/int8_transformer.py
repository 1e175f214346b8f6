#!/usr/bin/env python3
"""Scalar oracle for the int8 transformer: plain Python integers, standard library only.

    python3 int8_transformer.py            self-checks, then writes int8_transformer.json beside this file
    python3 int8_transformer.py measure    spreads of a D=64 model with weights round(16 N(0,1)), writes nothing

The formulas are those of the corrected Int8NativeFormer class: Int8NativeFormer's layers with
symmetric rounding, per-head scaling and a loss in 1/256 bit.  Floating point only makes
the tables.  Every intermediate passes i32(), which raises if it leaves int32; the absolute products of a dot product
must sum within int32, so that every order of summation fits.

Generator: SplitMix64 (state += 0x9E3779B97F4A7C15, then the usual mix); uniform(lo, hi) = lo + z mod (hi - lo + 1).
Tensors are drawn in the order of Config.shapes(), row by row: matrices -60..60, gains 12..20, biases -8..8.
A noise draws -60..60, per tensor B then A (matrix, row by row) or n0 then n1 (vector).
Seeds: weights S, tokens S + 1 (T + 1 of them: token t + 1 is the target of token t), noise of pair p S + 2 + p.

Layout of the JSON (integers only): "tables" has ACT (256 entries, from q = -128 on), POW, EXP2, LOGT.  Each of "cases":
    sizes     D, H, F, L, T, V, rank, sg, and the seed S
    rotary    cos and sin, [T][d / 2]
    tokens, targets
    weights   name -> [d_in][d_out] (embedding.weight: [V][D]) or [n]
    noise     pair -> name -> {"B": [rank][d_in], "A": [rank][d_out]} (embedding.weight: B [rank][V], A [rank][D])
              or {"n0": [n], "n1": [n]}
    outputs   plain, pair0+, pair0-, pair1+, pair1- -> x of the last token after each stage, logits of the last token,
              losses of all tokens, score
"""
import json
import math
import os
import sys
import time
from collections import Counter
from operator import mul

LO, HI = -(2**31), 2**31 - 1
peak, hits = [0], Counter()


def i32(a):
    if not LO <= a <= HI:
        raise OverflowError(a)
    peak[0] = max(peak[0], abs(a))
    return a


def rdiv(a, b):
    assert 0 < i32(b)
    q = i32(abs(i32(a)) + b // 2) // b
    return q if a >= 0 else -q


def rshift(a, k):
    return rdiv(a, 1 << k)


def limit(a, bound, where):
    if abs(i32(a)) > bound:
        hits[where] += 1
    return min(bound, max(-bound, a))


def clip(a, where):
    return limit(a, 127, "clip " + where)


def wide(a, where):
    return limit(a, 32767, "wide " + where)


def h(d):
    """The largest p with 4^p <= d."""
    return (d.bit_length() - 1) // 2


def dot(xs, ys):
    assert len(xs) == len(ys)
    products = list(map(mul, xs, ys))
    i32(sum(map(abs, products)))
    return sum(products)


def rescale(xs):
    m = max(map(abs, xs))
    hits["rescale of zeros"] += m == 0
    return xs if m == 0 else [rdiv(i32(127 * x), m) for x in xs]


def half_away(y):
    """Rounds to nearest, halves away from zero; keeps how near the closest call was to a tie."""
    half_away.margin = min(half_away.margin, abs(abs(y) % 1 - 0.5))
    return math.floor(y + 0.5) if y >= 0 else -math.floor(0.5 - y)


half_away.margin = 1.0
ACT = [clip(half_away(q / 2 * (1 + math.erf(q / 16 / math.sqrt(2)))), "table") for q in range(-128, 128)]
POW = [rshift(half_away(2**12 * 2 ** (-(i % 16) / 16)), i // 16) for i in range(208)]
EXP2 = [[half_away(2**15 * 2 ** (-i / steps)) for i in range(16)] for steps in (16, 256)]
LOGT = [half_away(256 * math.log2(1 + i / 256)) for i in range(256)]


def rotary_table(f, d, T):
    return [[half_away(2**14 * f(t * 10000 ** (-2 * j / d))) for j in range(d // 2)] for t in range(T)]


def log(s):
    """256 log2(s)."""
    b = i32(s).bit_length() - 1
    assert 16 <= b <= 24
    return 256 * b + LOGT[(s >> (b - 8)) - 256]


def loss(logits, target):
    g, s = max(logits), 0
    for logit in logits:
        c = i32(g - logit)
        hits["loss term 0"] += c // 256 > 16
        s += rshift(i32(EXP2[0][c // 16 % 16] * EXP2[1][c % 16]), 14 + c // 256) if c // 256 <= 16 else 0
    return i32(log(s) - 256 * 16 + (g - logits[target]))


class Config:
    def __init__(self, D, H, F, L, T, V=256, rank=1, sg=4):
        assert D % H == 0 and D // H % 2 == 0 and V <= 256 and T <= 2048 and 0 <= sg <= 26
        assert max(D, F) <= 65536 and rank * max(D, F) <= 8192
        self.D, self.H, self.F, self.L, self.T, self.V, self.rank, self.sg = D, H, F, L, T, V, rank, sg
        self.d = D // H
        self.cos, self.sin = rotary_table(math.cos, self.d, T), rotary_table(math.sin, self.d, T)

    def shapes(self):
        """name -> shape, in drawing order."""
        D, F, out = self.D, self.F, {"embedding.weight": (self.V, self.D), "embedding_bias": (self.D,)}

        def add(prefix, **shapes):
            out.update({prefix + name.replace("_", "."): shape for name, shape in shapes.items()})

        def add_mlp(prefix):
            add(prefix, norm_gain=(D,), norm_bias=(D,), expand_weight=(D, F), expand_bias=(F,))
            add(prefix, contract_weight=(F, D), contract_bias=(D,))

        add_mlp("mlp.")
        for l in range(self.L):
            prefix = "blocks.%d.attention." % l
            add(prefix, norm_gain=(D,), norm_bias=(D,), query_weight=(D, D), key_weight=(D, D))
            add(prefix, value_weight=(D, D), output_weight=(D, D))
            add_mlp("blocks.%d.mlp." % l)
        add("norm.", gain=(D,), bias=(D,))
        return out


class Member:
    """A model with weights W and, for s = +1 or -1, noise N; eats tokens in chunks and keeps keys and values."""

    def __init__(self, cfg, W, N=None, s=0, probe=None):
        self.c, self.W, self.N, self.s, self.probe = cfg, W, N, s, probe
        self.pos, self.cache, self.columns = 0, {}, {}

    def note(self, name, values):
        if self.probe is not None:
            self.probe.setdefault(name, []).append(list(values))

    def vector(self, name):
        if self.s == 0:
            return self.W[name]
        triples = zip(self.W[name], self.N[name]["n0"], self.N[name]["n1"])
        return [clip(n + self.s * rshift(a * b, 4 + self.c.sg), "gain or bias") for n, a, b in triples]

    def noise(self, x, inner, outer):
        """s rshift(sum_k rshift(x . inner_k, 4) outer_k[o], sg) for every o."""
        g = [rshift(dot(x, row), 4) for row in inner]
        return [self.s * rshift(dot(g, column), self.c.sg) for column in zip(*outer)]

    def lin(self, name, x):
        w, b = name + ".weight", name + ".bias"
        if w not in self.columns:
            self.columns[w] = list(zip(*self.W[w]))
        y = [dot(x, column) for column in self.columns[w]]
        if self.s:
            y = [i32(a + p) for a, p in zip(y, self.noise(x, self.N[w]["B"], self.N[w]["A"]))]
        y = [rshift(a, 4 + h(len(x))) for a in y]
        return [clip(a + v, "lin") for a, v in zip(y, self.vector(b) if b in self.W else [0] * len(y))]

    def embed(self, token):
        x = self.W["embedding.weight"][token]
        if self.s:
            N = self.N["embedding.weight"]
            b = [row[token] for row in N["B"]]
            x = [v + self.s * rshift(dot(b, column), 4 + self.c.sg) for v, column in zip(x, zip(*N["A"]))]
        return rescale([i32(a + b) for a, b in zip(x, self.vector("embedding_bias"))])

    def head(self, x):
        y = [dot(x, row) for row in self.W["embedding.weight"]]
        if self.s:
            N = self.N["embedding.weight"]
            y = [i32(a + p) for a, p in zip(y, self.noise(x, N["A"], N["B"]))]
        return [wide(rshift(a, 2 + h(self.c.D)), "head") for a in y]

    def norm(self, name, x):
        m = max(1, rdiv(sum(map(abs, x)), self.c.D))
        triples = zip(x, self.vector(name + ".gain"), self.vector(name + ".bias"))
        n = [clip(rdiv(i32(a * g), m) + b, "norm") for a, g, b in triples]
        self.note(name, n)
        return n

    def mlp(self, name, x):
        expanded = self.lin(name + ".expand", self.norm(name + ".norm", x))
        u = [ACT[128 + clip(a, "expand")] for a in expanded]
        y = self.lin(name + ".contract", u)
        self.note(name + " before ACT", expanded)
        self.note(name + " after ACT", u)
        self.note(name + " contract", y)
        return rescale([i32(a + b) for a, b in zip(x, y)])

    def split(self, x):
        return [x[i * self.c.d : (i + 1) * self.c.d] for i in range(self.c.H)]

    def rotate(self, x, t):
        """One head's rotary step at position t, then rescale to int8."""
        C, S, n = self.c.cos[t], self.c.sin[t], self.c.d // 2
        low = [rshift(i32(i32(x[j] * C[j]) - i32(x[j + n] * S[j])), 14) for j in range(n)]
        high = [rshift(i32(i32(x[j + n] * C[j]) + i32(x[j] * S[j])), 14) for j in range(n)]
        return rescale(low + high)

    def attend(self, q8, keys, values, t):
        S = [dot(q8, k) for k in keys]
        index = [rshift(i32(max(S) - score), 7 + h(self.c.d)) for score in S]
        hits["attention weight 0"] += sum(i >= 208 for i in index)
        w = [POW[i] if i < 208 else 0 for i in index]
        self.note("w %d" % t, w)
        return [rdiv(dot(w, column), sum(w)) for column in zip(*values)]

    def attention(self, name, xs):
        """xs: the residuals of positions pos, pos + 1, ...; earlier keys and values are in the cache."""
        kept, out = self.cache.setdefault(name, []), []
        for t, x in enumerate(xs, self.pos):
            n = self.norm(name + ".norm", x)
            q, k, v = (self.lin(name + w, n) for w in (".query", ".key", ".value"))
            v = [clip(a, "value") for a in v]
            q8, k8 = ([self.rotate(part, t) for part in self.split(a)] for a in (q, k))
            kept.append((k8, self.split(v)))
            o = []
            for i in range(self.c.H):
                o += self.attend(q8[i], [k8[i] for k8, _ in kept], [v[i] for _, v in kept], t)
            y = self.lin(name + ".output", o)
            for what, values in (("query", q), ("key", k), ("q8", sum(q8, [])), ("k8", sum(k8, []))):
                self.note(name + " " + what, values)
            for what, values in (("value", v), ("mixed", o), ("output", y)):
                self.note(name + " " + what, values)
            out.append(rescale([i32(a + b) for a, b in zip(x, y)]))
        return out

    def feed(self, tokens):
        """Logits of each of the tokens, and {stage: residual of each token}."""
        xs = [self.embed(t) for t in tokens]
        stages = {"embedding": xs}
        stages["mlp"] = xs = [self.mlp("mlp", x) for x in xs]
        for name in ["blocks.%d." % l for l in range(self.c.L)]:
            stages[name + "attention"] = xs = self.attention(name + "attention", xs)
            stages[name + "mlp"] = xs = [self.mlp(name + "mlp", x) for x in xs]
        self.pos += len(tokens)
        return [self.head(self.norm("norm", x)) for x in xs], stages


def evaluate(cfg, W, tokens, targets, N=None, s=0, chunks=None):
    member, logits, at = Member(cfg, W, N, s), [], 0
    for n in chunks or [len(tokens)]:
        more, stages = member.feed(tokens[at : at + n])
        logits, at = logits + more, at + n
    losses = [loss(row, target) for row, target in zip(logits, targets)]
    x = {stage: xs[-1] for stage, xs in stages.items()}
    return {"x": x, "logits": logits[-1], "losses": losses, "score": i32(-sum(losses))}, logits


class SplitMix64:
    MASK = 2**64 - 1

    def __init__(self, seed):
        self.state = seed & self.MASK

    def next(self):
        self.state = z = (self.state + 0x9E3779B97F4A7C15) & self.MASK
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & self.MASK
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & self.MASK
        return z ^ z >> 31

    def uniform(self, n, lo, hi):
        return [lo + self.next() % (hi - lo + 1) for _ in range(n)]

    def gauss16(self):
        u, v = (self.next() >> 11) + 1, self.next() >> 11
        z = math.sqrt(-2 * math.log(u * 2.0**-53)) * math.cos(2 * math.pi * v * 2.0**-53)
        return clip(half_away(16 * z), "gauss")


def make_weights(cfg, seed, span=60):
    g, W = SplitMix64(seed), {}
    for name, shape in cfg.shapes().items():
        if len(shape) == 2:
            W[name] = [g.uniform(shape[1], -span, span) for _ in range(shape[0])]
        else:
            W[name] = g.uniform(shape[0], 12, 20) if name.endswith("gain") else g.uniform(shape[0], -8, 8)
    return W


def make_noise(cfg, seed, span=60):
    g, N = SplitMix64(seed), {}
    for name, shape in cfg.shapes().items():
        if len(shape) == 2:
            N[name] = {key: [g.uniform(n, -span, span) for _ in range(cfg.rank)] for key, n in zip("BA", shape)}
        else:
            N[name] = {key: g.uniform(shape[0], -span, span) for key in ("n0", "n1")}
    return N


def flip(N):
    """The noise with the first factor of every product negated."""
    return {
        name: {"B": [[-b for b in row] for row in f["B"]], "A": f["A"]}
        if "B" in f
        else {"n0": [-n for n in f["n0"]], "n1": f["n1"]}
        for name, f in N.items()
    }


def check_scalars():
    assert min(ACT) == -3 and max(ACT) == 127 and ACT[128] == 0
    assert [h(d) for d in (1, 3, 4, 15, 16, 63, 64, 65536)] == [0, 0, 1, 1, 2, 2, 3, 8]
    for a in range(-700, 701):
        for b in (1, 2, 3, 7, 16, 127, 128, 350):
            r = rdiv(a, b)
            assert r == -rdiv(-a, b) and abs(r) == (2 * abs(a) + b) // (2 * b) and abs(2 * (a - r * b)) <= b
    assert rescale([0, 0]) == [0, 0] and rescale([40000, -16384, 1]) == [127, -52, 0]
    for level in (-32767, 0, 5, 32767):
        assert all(loss([level] * 256, target) == 2048 for target in (0, 100, 255))
        assert loss([level] * 17, 3) == 256 * 4 + LOGT[16]
    assert loss([9000] + [0] * 255, 0) == 0 and loss([9000] + [0] * 255, 7) == 9000
    assert loss([32767] + [-32767] * 255, 1) == 65534
    g, errors = SplitMix64(99), []
    for spread in (50, 300, 1000, 4000, 32767):
        for V in (17, 256) * 5:
            logits = g.uniform(V, -spread, spread)
            top = max(logits)
            exact = 256 * math.log2(sum(2 ** ((v - top) / 256) for v in logits)) + top - logits[0]
            errors.append(loss(logits, 0) - exact)
    assert -3 < min(errors) and max(errors) < 2
    print("loss minus exact loss, 1/256 bit: %.2f .. %.2f" % (min(errors), max(errors)))


def check_limits():
    """Worst cases at the limits: noise may be -128, everything else is within 127."""
    for d, rank in ((65536, 0), (8192, 1), (4096, 2), (1, 8192)):
        perturbation = rshift(i32(rshift(127 * 128 * d, 4) * 128 * rank), 0)
        for k in (4 + h(d), 2 + h(d)):
            rshift(i32(127 * 127 * d + perturbation), k)
        rshift(rank * 128 * 128, 4 + 26)  # the largest sg is 26
    rshift(2 * 32767 * 2**14, 14)  # rotary
    rshift(2 * 127 * 127 * 65536, 7 + h(65536))  # max S - S_j
    rdiv(2048 * 4096 * 127, 2048 * 4096)  # mixing of values
    i32(2048 * (65534 + 2048))  # score
    print("worst |intermediate| at the limits: %d = %.3f of 2^31" % (peak[0], peak[0] / 2**31))
    peak[0] = 0


def check_wide():
    """Large weights and noise reach the clips at 32767 that the golden cases are too small for."""
    cfg = Config(D=64, H=2, F=64, L=1, T=4, V=17, rank=128, sg=0)
    W, N, text = make_weights(cfg, 7, 127), make_noise(cfg, 8, 127), [3, 16, 0, 3]
    hits.clear()
    for s in (1, -1):
        assert evaluate(cfg, W, text, text, N, s) == evaluate(cfg, W, text, text, flip(N), -s)
    print("large values, branches taken:", {name: n for name, n in sorted(hits.items()) if n})
    assert hits["clip lin"] and hits["wide head"]
    print("their peak |intermediate|: %d" % peak[0])


def golden_case(seed, **sizes):
    cfg = Config(**sizes)
    W, pairs = make_weights(cfg, seed), [make_noise(cfg, seed + 2 + p) for p in (0, 1)]
    text = SplitMix64(seed + 1).uniform(cfg.T + 1, 0, cfg.V - 1)
    members, out = {"plain": (None, 0)}, {}
    for p, N in enumerate(pairs):
        members.update({"pair%d+" % p: (N, 1), "pair%d-" % p: (N, -1)})

    def run(N=None, s=0, chunks=None):
        return evaluate(cfg, W, text[:-1], text[1:], N, s, chunks)

    hits.clear()
    for name, (N, s) in members.items():
        out[name] = run(N, s)[0]
    print(sizes, {name: o["score"] for name, o in out.items()})
    print("  branches taken:", {name: n for name, n in sorted(hits.items()) if n})
    for name, (N, s) in members.items():
        for chunks in ([1] * cfg.T, [2, 1, cfg.T - 3]):
            assert run(N, s, chunks) == run(N, s), "chunks"
        if s:
            assert run(flip(N), -s) == run(N, s) and run(N, -s)[1] != run(N, s)[1], "swap"
    assert run(pairs[0], 0)[0] == out["plain"]
    return {
        "sizes": {**sizes, "seed": seed},
        "rotary": {"cos": cfg.cos, "sin": cfg.sin},
        "tokens": text[:-1],
        "targets": text[1:],
        "weights": W,
        "noise": {"pair%d" % p: N for p, N in enumerate(pairs)},
        "outputs": out,
    }


def dump(v, pad=""):
    """JSON with a line per list and per dict entry, lists without blanks."""
    if not isinstance(v, dict):
        return json.dumps(v, separators=(",", ":"))
    lines = ",\n".join("%s %s: %s" % (pad, json.dumps(k), dump(w, pad + " ")) for k, w in v.items())
    return "{\n" + lines + "\n" + pad + "}"


def measure(seeds=(1, 2)):
    cfg, rows, entropies, own, losses = Config(64, 4, 256, 2, 16), {}, [], [], []
    for seed in seeds:
        g, W, probe = SplitMix64(seed), {}, {}
        for name, shape in cfg.shapes().items():
            if len(shape) == 2:
                W[name] = [[g.gauss16() for _ in range(shape[1])] for _ in range(shape[0])]
            else:
                W[name] = [16 * name.endswith("gain")] * shape[0]
        text = g.uniform(cfg.T + 1, 0, 255)
        logits, stages = Member(cfg, W, probe=probe).feed(text[:-1])
        for name, xs in [("x after " + stage, xs) for stage, xs in stages.items()] + list(probe.items()):
            if not name.startswith("w "):
                rows.setdefault(name, []).append(xs)
        rows.setdefault("logits (bits)", []).append([[v / 256 for v in row] for row in logits])
        own += [row[t] / 256 for row, t in zip(logits, text)]
        losses += [loss(row, t) / 256 for row, t in zip(logits, text[1:])]
        for w in probe["w %d" % (cfg.T - 1)]:
            entropies.append(-sum(v / sum(w) * math.log2(v / sum(w)) for v in w if v))

    def variance(vs):
        return sum(v * v for v in vs) / len(vs) - (sum(vs) / len(vs)) ** 2

    print("%-30s %8s %13s %8s %7s %7s" % ("what", "std", "across tokens", "max", "zeros%", "rails%"))
    for name, runs in rows.items():
        vs = [v for xs in runs for x in xs for v in x]
        across = [variance(channel) for xs in runs for channel in zip(*xs)]
        spreads = math.sqrt(variance(vs)), math.sqrt(sum(across) / len(across)), max(map(abs, vs))
        rail = 32767 if name.endswith(("before ACT", "query", "key", "output", "contract")) else 127
        shares = vs.count(0), sum(abs(v) >= rail for v in vs)
        print("%-30s %8.2f %13.2f %8.1f %7.2f %7.2f" % (name, *spreads, *(100 * n / len(vs) for n in shares)))
    mean = sum(entropies) / len(entropies)
    ends = min(entropies), mean, max(entropies), math.log2(cfg.T)
    print("attention entropy at the last position, bits: min %.2f, mean %.2f, max %.2f of %.2f" % ends)
    ends = min(own), sum(own) / len(own), max(own)
    print("logit of the token just read, bits: min %.2f, mean %.2f, max %.2f" % ends)
    print("loss, bits: mean %.2f" % (sum(losses) / len(losses)))
    print("clipped on the way:", {name: n for name, n in sorted(hits.items()) if n})


if __name__ == "__main__":
    if sys.argv[1:] == ["measure"]:
        measure()
    else:
        check_scalars()
        check_limits()
        check_wide()
        cases = {
            "rank1": golden_case(2240, D=8, H=2, F=16, L=2, T=6, V=256, rank=1, sg=3),
            "rank2": golden_case(2340, D=12, H=3, F=20, L=1, T=5, V=17, rank=2, sg=1),
        }
        tables = {"ACT": ACT, "POW": POW, "EXP2": EXP2, "LOGT": LOGT}
        path = os.path.splitext(os.path.abspath(__file__))[0] + ".json"
        with open(path, "w") as f:
            f.write(dump({"tables": tables, "cases": cases}) + "\n")
        print("closest table entry to a tie: %.2g; file: %d bytes" % (half_away.margin, os.path.getsize(path)))
    print("peak |intermediate| %d, CPU %.2f s" % (peak[0], time.process_time()))
