"""What the tests against other people's readers share: the command, and small recordings with the runs trained on them."""

import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("MIMUS_BUILD", ROOT / "build-ci" / "gcc")).resolve()
SHARED = ROOT.parent / "shared" / "data"  # recordings and models by others; not part of the repository


class Mimus:
    """The command: calls give what it printed, refused() the one line of a failure."""

    program = BUILD / "mimus"

    def __call__(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"mimus {' '.join(map(str, arguments))}: {done.stderr}"
        return done.stdout

    def json(self, *arguments):
        return json.loads(self(*arguments, "--json"))

    def refused(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True, timeout=300)
        assert done.returncode not in (0, -6, -11), f"mimus {' '.join(map(str, arguments))} was not refused"
        assert done.stderr.count("\n") == 1, done.stderr
        return done.stderr


@pytest.fixture(scope="session")
def mimus():
    return Mimus()


@pytest.fixture(scope="session")
def shared():
    """The folder of real files made by others; tests that need it are skipped where it is not."""
    if not SHARED.is_dir():
        pytest.skip(f"no files by others here ({SHARED})")
    return SHARED


def play(samples, senses, heads, masks, seed):
    """Play that can be learned: labels are the best legal action of a random linear rule, whatever the seed."""
    rule = np.random.default_rng(1)
    weights = [rule.normal(size=(senses, actions)) for actions in heads]
    offset, spread = rule.normal(size=senses) * 3, rule.uniform(0.1, 20, size=senses)
    random = np.random.default_rng(seed)
    plain = random.normal(size=(samples, senses))
    legal = [random.random((samples, actions)) < (0.7 if masks else 2) for actions in heads]
    labels = []
    for w, allowed in zip(weights, legal):
        allowed[np.arange(samples), random.integers(w.shape[1], size=samples)] = True
        labels.append(np.where(allowed, plain @ w, -np.inf).argmax(1))
    arrays = {
        "obs": (plain * spread + offset).astype(np.float32),
        "actions": np.stack(labels, 1),
        "episode_starts": np.arange(samples) % 50 == 0,
    }
    if masks:
        arrays["action_masks"] = np.concatenate(legal, 1)
    return arrays


@pytest.fixture(scope="session")
def trained(mimus, tmp_path_factory):
    """trained(senses, heads, masks, *options): the run of a short training, and the recording that it had. The same
    question gets the same run."""
    runs = {}

    def train(senses, heads, masks, *options):
        key = (senses, tuple(heads), masks, options)
        if key not in runs:
            folder = tmp_path_factory.mktemp("run")
            recording = folder / "play.npz"
            np.savez(recording, **play(4000, senses, heads, masks, seed=2))
            names = ",".join(f"h{i}:{actions}" for i, actions in enumerate(heads))
            mimus("train", recording, "-o", folder / "run", "--heads", names, "--epochs", 3, "--batch", 128, "--lr", 0.01,
                  "--quiet", *options)
            runs[key] = folder / "run", recording
        return runs[key]

    return train
