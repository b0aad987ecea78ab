"""What the peers share: the work, the first parameters, the clock, and the result.

Every peer trains what mimus trained: the same rows, normalised once and resident on the device;
the same widths, batches and Adam; parameters from the same distribution. An epoch is a pass over
the training rows in a fresh permutation, the last batch short, then a pass over the held-out rows;
its loss and its hits are read once, at its end.

The loss is -log softmax over the legal actions of every head, heads summed, samples averaged. All
heads are one expression: with x the row's logits, illegal ones at -1e30, shifted by the row's
maximum, and `member` the (A, H) matrix that says which action belongs to which head,

    loss = log(exp(x) member) - x[labels]

so that nothing is split or padded. (A head whose every logit lies 87 below another head's would
underflow; mimus shifts every head by its own maximum. In all that is trained here it is the same.)
"""

import argparse
import json
import os
import time

import numpy as np

ILLEGAL = -1e30


class Work:
    """The arrays of recording.py, and the settings that mimus reported.

    senses   (N, S) float32    normalised
    labels   (N, H) int        columns of the logits
    illegal  (N, A) bool
    """

    def __init__(self, data, ours):
        with open(ours, encoding="utf-8") as file:
            config = json.load(file)["workload"]["config"]
        arrays = np.load(data)
        self.sizes = arrays["sizes"].tolist()
        self.first = np.cumsum([0] + self.sizes)
        self.parts = [
            {key: arrays[f"{part}_{key}"] for key in ("senses", "labels", "illegal")}
            for part in ("training", "heldout")
        ]
        self.training, self.heldout = (len(part["labels"]) for part in self.parts)
        self.batch = min(config["batch"], self.training)
        self.epochs, self.seed = config["epochs"], config["seed"]
        self.lr, self.epsilon = config["lr"], config["epsilon"]
        self.betas = config["beta1"], config["beta2"]
        self.widths = [self.parts[0]["senses"].shape[1], *config["hidden"], sum(self.sizes)]

    @property
    def member(self):
        """(A, H) float32: 1 where the action belongs to the head."""
        return np.repeat(np.eye(len(self.sizes), dtype=np.float32), self.sizes, axis=0)

    def first_parameters(self, run=0):
        """Weights (in, out) and biases as mimus draws them: He uniform, the last layer a tenth of
        Glorot uniform, no bias."""
        random = np.random.default_rng(self.seed + run)
        layers = []
        for i, (n, m) in enumerate(zip(self.widths, self.widths[1:])):
            bound = np.sqrt(6 / n) if i + 2 < len(self.widths) else np.sqrt(6 / (n + m)) / 10
            weight = random.uniform(-bound, bound, (n, m)).astype(np.float32)
            layers.append((weight, np.zeros(m, np.float32)))
        return layers

    def batches(self, rows):
        """(first, size) of every batch of `rows` rows."""
        return [(i, min(self.batch, rows - i)) for i in range(0, rows, self.batch)]


def arguments(about, *flags, **numbers):
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("data", help="what recording.py wrote")
    parser.add_argument("ours", help="what `mimus bench --json` said of the same recording")
    parser.add_argument("-o", dest="out", required=True, help=".json file to write")
    for flag in flags:
        parser.add_argument(flag, action="store_true")
    for name, value in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    return parser.parse_args()


def cores():
    return len(os.sched_getaffinity(0))


def run(out, name, version, work, epoch, device=None):
    """Train: `epoch(number)` blocks until it returns the mean loss, and the held-out hits of each
    head (H). Seconds of every epoch are written, and what the last one reached. `device` None is
    the processor."""
    seconds = []
    for number in range(work.epochs):
        began = time.perf_counter()
        loss, hits = epoch(number)
        seconds.append(time.perf_counter() - began)
        print(f"{name}: epoch {number + 1}, loss {loss:.4f}, {seconds[-1]:.2f} s", flush=True)
    result = {
        "name": name,
        "version": version,
        "device": device,
        "first": seconds[0],
        "settled": sorted(seconds[1:]),
        "loss": float(loss),
        "held_out_agreement": float(np.mean(np.asarray(hits, np.float64) / work.heldout)),
    }
    with open(out, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
