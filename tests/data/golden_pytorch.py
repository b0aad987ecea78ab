#!/usr/bin/env python3
"""Write golden_pytorch.json: what PyTorch gets for small training runs, and plain Python for the random numbers.

The reference in tests/support and the device are both held against it. Nothing here shares code with the project: stacking,
masks, loss, dropout and the sampler's order are written again from their definitions, autograd and torch.optim do the rest.
Everything that goes in is exact in float32; what comes out is float64.

    golden_pytorch.py [golden_pytorch.json]     needs torch 1.13 or later
"""
import json
import pathlib
import random
import sys

import torch

NO_LABEL = 0xFFFF
STEPS = 10
ROWS = 32
EPISODES = (0, 1, 8)  # first rows: an episode of one row, one of seven, the rest


# --------------------------------------------------------------------- random numbers


def philox(counter, key):
    """Philox 4x32-10 (Salmon et al. 2011, section 4)."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = p1 >> 32 ^ c1 ^ k0, p1 & 0xFFFFFFFF, p0 >> 32 ^ c3 ^ k1, p0 & 0xFFFFFFFF
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1, c2, c3


def dropout_factors(case, step, layer, rows, columns, dtype):
    """1 / (1 - p) where an element is kept, 0 where it is dropped."""
    key = (case["seed"] & 0xFFFFFFFF, case["seed"] >> 32 ^ 0x44726F70)
    rate = case["dropout"]
    factors = torch.zeros(rows, columns, dtype=dtype)
    for row in range(rows):
        for column in range(columns):
            word = philox((column >> 2, row, step, layer | case["run"] << 8), key)[column & 3]
            if (word >> 8) / 2**24 >= rate:
                factors[row, column] = 1 / (1 - rate)
    return factors


def epoch_order(seed, run, epoch, n):
    """The rows in the order in which an epoch visits them."""
    key = (seed & 0xFFFFFFFF, seed >> 32 ^ 0x53616D70)
    bits = 1
    while 4**bits < n:
        bits += 1
    mask = 2**bits - 1

    def scatter(value):
        left, right = value >> bits, value & mask
        for turn in range(6):
            first, second = philox((turn, 0, epoch, run), key)[:2]
            mixed = (right + first) * 0x85EBCA6B & 0xFFFFFFFF
            mixed = ((mixed ^ mixed >> 13) + second) * 0xC2B2AE35 & 0xFFFFFFFF
            left, right = right, left ^ (mixed ^ mixed >> 16) & mask
        return left << bits | right

    rows = []
    for position in range(n):
        row = scatter(position)
        while row >= n:
            row = scatter(row)
        rows.append(row)
    return rows


# --------------------------------------------------------------------------- the cases


def exact(rng, bound, step):
    """A multiple of `step`, a power of two, in [-bound, bound]: exact in float32, short in JSON."""
    return rng.randint(-int(bound / step), int(bound / step)) * step


def make_rows(case, rng):
    """Samples, labels and masks; the label follows the senses, so that there is something to learn."""
    case["rows"] = ROWS
    case["first"] = [max(first for first in EPISODES if first <= row) for row in range(ROWS)]
    case["samples"] = [exact(rng, 2, 2**-8) for _ in range(ROWS * case["senses"])]
    case["actions"], masks = [], []
    for row in range(ROWS):
        word, begin = 0, 0
        for head, count in enumerate(case["heads"]):
            label = int(4 * abs(case["samples"][row * case["senses"] + head])) % count
            legal = [a == label or rng.random() < 0.6 for a in range(count)]
            if row % 11 == 3 + head:
                legal, label = [False] * count, NO_LABEL  # no legal action
            elif row % 7 == 2 + head:
                label = NO_LABEL  # legal actions, but no label
            case["actions"].append(label)
            word |= sum(bit << begin + a for a, bit in enumerate(legal))
            begin += count
        masks.append(word)
    case["masks"] = masks if case["masks"] else None
    case["weights"] = [rng.randint(0, 8) / 4 for _ in range(ROWS)] if case["weights"] else None


def make_case(name, **settings):
    rng = random.Random(name)
    case = {
        "name": name, "senses": 5, "stack": 1, "hidden": [16, 16], "activation": "relu", "heads": [3, 4],
        "optimizer": "adam", "lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weight_decay": 0.0, "clip": 0.0,
        "label_smoothing": 0.0, "dropout": 0.0, "head_weights": None, "class_weights": None,
        "seed": 0, "run": 0, "steps": STEPS, "masks": True, "weights": False,
    }
    case.update(settings)
    case["mean"] = [exact(rng, 0.5, 2**-4) for _ in range(case["senses"])]
    case["scale"] = [rng.randint(2, 24) / 16 for _ in range(case["senses"])]
    case["scale"][-1] = 0.0  # a sense that was constant in training
    make_rows(case, rng)
    width = widths(case)
    case["initial"] = []
    for inputs, outputs in zip(width, width[1:]):
        bound = (6 / (inputs + outputs)) ** 0.5
        case["initial"] += [exact(rng, bound, 2**-12) for _ in range(inputs * outputs)]
        case["initial"] += [exact(rng, 0.25, 2**-12) for _ in range(outputs)]
    return case


CASES = [
    ("adam", {}),
    ("adamw", dict(optimizer="adamw", lr=1e-2, weight_decay=0.5, clip=0.25, label_smoothing=0.125, weights=True,
                   head_weights=[1.0, 0.5], class_weights=[0.5, 1.0, 2.0, 1.5, 0.75, 1.0, 0.25])),
    ("sgd", dict(optimizer="sgd", lr=0.0625, weight_decay=0.03125, clip=0.5, weights=True)),
    ("tanh", dict(activation="tanh", weight_decay=0.0625, beta1=0.75, beta2=0.9375)),
    ("gelu-stack-3", dict(activation="gelu", stack=3, hidden=[16], label_smoothing=0.25)),
    ("linear", dict(hidden=[], lr=1e-2, masks=False)),
    ("dropout", dict(dropout=0.25, seed=0x123456789ABCDEF, optimizer="adamw", weight_decay=0.25)),
]


# ---------------------------------------------------------------------------- training


def widths(case):
    return [case["senses"] * case["stack"], *case["hidden"], sum(case["heads"])]


def inputs_of(case, dtype):
    """(N, K * S): normalised, stacked, the first sample of an episode repeated before it."""
    senses = torch.tensor(case["samples"], dtype=dtype).reshape(ROWS, -1)
    x = (senses - torch.tensor(case["mean"], dtype=dtype)) * torch.tensor(case["scale"], dtype=dtype)
    back = range(case["stack"] - 1, -1, -1)
    return torch.cat([x[[max(row - b, case["first"][row]) for row in range(ROWS)]] for b in back], 1)


def forward(case, parameters, x, step):
    function = {"relu": torch.relu, "tanh": torch.tanh, "gelu": torch.nn.functional.gelu}[case["activation"]]
    last = len(parameters) // 2 - 1
    for layer in range(last + 1):
        x = x @ parameters[2 * layer] + parameters[2 * layer + 1]
        if layer < last:
            x = function(x)
            if case["dropout"] > 0:
                x = x * dropout_factors(case, step, layer, *x.shape, x.dtype)
    return x


def judge(case, logits):
    """The loss, and per head the negative log likelihood, hits and labelled rows."""
    dtype = logits.dtype
    words = torch.tensor(case["masks"] or [2 ** logits.shape[1] - 1] * ROWS)
    legal = (words[:, None] >> torch.arange(logits.shape[1]) & 1).bool()
    labels = torch.tensor(case["actions"]).reshape(ROWS, -1)
    weight = torch.tensor(case["weights"] or [1.0] * ROWS, dtype=dtype)
    class_weight = torch.tensor(case["class_weights"] or [1.0] * logits.shape[1], dtype=dtype)
    head_weight = case["head_weights"] or [1.0] * len(case["heads"])
    smoothing = case["label_smoothing"]
    loss, begin, nll, hits, labelled = torch.zeros((), dtype=dtype), 0, [], [], []
    for head, count in enumerate(case["heads"]):
        part = slice(begin, begin + count)
        rows = (labels[:, head] != NO_LABEL) & legal[:, part].any(1)
        allowed, label = legal[rows, part], labels[rows, head]
        masked = logits[rows, part].masked_fill(~allowed, -torch.inf)
        minus_log = -torch.log_softmax(masked, 1)
        of_label = minus_log.gather(1, label[:, None])[:, 0]
        of_all = minus_log.masked_fill(~allowed, 0).sum(1) / allowed.sum(1)
        scale = weight[rows] * head_weight[head] * class_weight[part][label]
        loss = loss + (scale * ((1 - smoothing) * of_label + smoothing * of_all)).sum() / ROWS
        nll.append(of_label.sum().item())
        hits.append((masked.argmax(1) == label).sum().item())
        labelled.append(len(label))
        begin += count
    return loss, nll, hits, labelled


def split(case, flat):
    parameters, begin, width = [], 0, widths(case)
    for inputs, outputs in zip(width, width[1:]):
        parameters.append(flat[begin:begin + inputs * outputs].reshape(inputs, outputs))
        parameters.append(flat[begin + inputs * outputs:begin + (inputs + 1) * outputs])
        begin += (inputs + 1) * outputs
    return parameters


def make_optimizer(case, parameters):
    decay = dict(lr=case["lr"], weight_decay=case["weight_decay"])
    if case["optimizer"] == "sgd":
        return torch.optim.SGD(parameters, momentum=case["beta1"], **decay)
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[case["optimizer"]]
    return kind(parameters, betas=(case["beta1"], case["beta2"]), eps=case["epsilon"], **decay)


def train(case, dtype):
    parameters = [p.clone().requires_grad_() for p in split(case, torch.tensor(case["initial"], dtype=dtype))]
    optimizer = make_optimizer(case, parameters)
    x = inputs_of(case, dtype)
    result = {"losses": [], "nll": [], "hits": []}
    for step in range(STEPS):
        optimizer.zero_grad()
        loss, nll, hits, labelled = judge(case, forward(case, parameters, x, step))
        loss.backward()
        if case["clip"] > 0:
            norm = torch.nn.utils.clip_grad_norm_(parameters, case["clip"])
            assert step > 0 or norm > case["clip"], "a clip that never clips proves nothing"
        optimizer.step()
        result["losses"].append(loss.item())
        result["nll"] += nll
        result["hits"] += hits
        result["labelled"] = labelled
    result["final"] = torch.cat([p.detach().flatten() for p in parameters]).tolist()
    return result


def worst(a, b):
    return max(abs(x - y) for x, y in zip(a, b))


def main():
    cases = []
    for name, settings in CASES:
        case = make_case(name, **settings)
        result, single = train(case, torch.float64), train(case, torch.float32)
        result["float32_loss"] = worst(result["losses"], single["losses"])
        result["float32_parameter"] = worst(result["final"], single["final"])
        cases.append({**case, **result})
    orders = [
        {"seed": seed, "run": run, "epoch": epoch, "rows": epoch_order(seed, run, epoch, n)}
        for seed, run, epoch, n in [(0, 0, 0, 1), (1, 0, 1, 5), (0x7EDCBA9876543210, 2, 7, 64), (3, 1, 2**31, 65)]
    ]
    here = pathlib.Path(__file__).with_name("golden_pytorch.json")
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here
    lines = ",\n".join(json.dumps(case) for case in cases), ",\n".join(json.dumps(order) for order in orders)
    path.write_text('{"torch": "%s",\n"cases": [\n%s],\n"orders": [\n%s]}\n' % (torch.__version__, *lines))


if __name__ == "__main__":
    main()
