"""Exports, run by onnxruntime and held against the network computed in double precision from the checkpoint."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import ROOT, play
from safetensors import safe_open
from safetensors.numpy import load_file

SAMPLES = 10000
TOLERANCE = 1e-5

# Senses, heads, masks and settings: many heads and one, with and without masks, each activation, stacked, and linear.
POLICIES = {
    "reference": (143, (9, 10, 3, 5, 10, 3, 7), True, "--hidden", "128,128"),
    "gelu-stacked": (9, (5, 2, 3), True, "--hidden", "32,16", "--activation", "gelu", "--stack", "3"),
    "tanh": (12, (4, 6), False, "--hidden", "24", "--activation", "tanh"),
    "one-head": (20, (3,), False, "--hidden", "20"),
    "one-masked-head": (5, (12,), True, "--hidden", "16,16,16"),
}


@pytest.fixture(params=POLICIES)
def policy(request, trained):
    """A run, its kind, and samples that it has not seen."""
    kind = POLICIES[request.param]
    run, _ = trained(*kind)
    return run, kind


def erf(x):
    """By its Taylor series, and 1 beyond 6: good to 1e-11, and nobody's library."""
    inside = np.clip(x, -6, 6)
    total = term = inside.astype(np.longdouble)
    for n in range(1, 150):
        term = term * (-inside * inside) / n
        total = total + term / (2 * n + 1)
    return np.where(np.abs(x) > 5.9, np.sign(x), (2 / np.sqrt(np.pi) * total)).astype(float)


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "gelu": lambda x: x * 0.5 * (1 + erf(x / np.sqrt(2))),
}


def logits_of(run, stacked):
    """The logits of (N, stack, senses), oldest first, in double precision."""
    with safe_open(run / "best.safetensors", "np") as file:
        shape = json.loads(file.metadata()["shape"])
        tensors = {name: file.get_tensor(name).astype(float) for name in file.keys()}
    x = ((stacked - tensors["mean"]) * tensors["scale"]).reshape(len(stacked), -1)
    layers = len(shape["width"]) - 1
    for layer in range(layers):
        x = x @ tensors[f"layers.{layer}.weight"].T + tensors[f"layers.{layer}.bias"]
        if layer + 1 < layers:
            x = ACTIVATIONS[shape["activation"]](x)
    return x


def unseen(kind, seed=3):
    """Stacked senses (N, stack, S) and masks (N, A), or None, of play that nobody trained on."""
    senses, heads, masks, *options = kind
    stack = int(options[options.index("--stack") + 1]) if "--stack" in options else 1
    arrays = play(SAMPLES + stack - 1, senses, heads, masks, seed)
    frames = np.lib.stride_tricks.sliding_window_view(arrays["obs"], stack, axis=0).transpose(0, 2, 1)
    legal = arrays["action_masks"][stack - 1 :] if masks else None
    return np.ascontiguousarray(frames), legal


def split(values, heads):
    return np.split(values, np.cumsum(heads)[:-1], axis=1)


def check_choice(chosen, logits, heads, legal=None):
    """The most probable legal action of every head, wherever it is so by more than rounding."""
    legal = np.ones(logits.shape, bool) if legal is None else legal
    for head, (values, allowed) in enumerate(zip(split(logits, heads), split(legal, heads))):
        masked = np.where(allowed, values, -np.inf)
        rows = np.arange(len(masked))
        behind = masked.max(1) - masked[rows, chosen[:, head]]
        limit = 2 * TOLERANCE * np.maximum(1, np.abs(masked.max(1)))
        assert (behind <= limit).all(), f"head {head}: {np.count_nonzero(behind > limit)} other choices"
        assert np.count_nonzero(behind) <= 2, f"head {head}: too many ties"


def check_logits(found, expected):
    limit = TOLERANCE * np.maximum(1, np.abs(expected))
    assert (np.abs(found - expected) <= limit).all(), np.abs(found - expected).max()


def export(mimus, run, path, target, *options):
    """Export, have onnx check it, and open it in onnxruntime."""
    report = mimus.json("export", run, "-o", path, "--for", target, *options)
    assert report["check"]["samples"] > 100 and report["check"]["logit_difference"] <= TOLERANCE * 100
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 2
    return model, onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])


def signature(values):
    """Names, element types and sizes; what is not fixed is None."""
    return [
        (
            value.name,
            value.type.tensor_type.elem_type,
            [d.dim_value if d.HasField("dim_value") else None for d in value.type.tensor_type.shape.dim],
        )
        for value in values
    ]


FLOAT, INT64, BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL


def softmax(logits):
    weights = np.exp(logits - logits.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


def test_onnxruntime_chooses_what_the_policy_does(mimus, policy, tmp_path):
    run, kind = policy
    senses, heads, masks = kind[:3]
    model, session = export(mimus, run, tmp_path / "policy.onnx", "onnxruntime")
    stacked, legal = unseen(kind)
    inputs, actions = stacked[0].size, sum(heads)
    assert signature(model.graph.input) == [("senses", FLOAT, [None, inputs])] + masks * [("legal", BOOL, [None, actions])]
    assert signature(model.graph.output) == [
        ("logits", FLOAT, [None, actions]),
        ("probabilities", FLOAT, [None, actions]),
        ("actions", INT64, [None, len(heads)]),
    ]
    feed = {"senses": stacked.reshape(SAMPLES, inputs)}
    if masks:
        feed["legal"] = legal
    logits, probabilities, chosen = session.run(None, feed)
    expected = logits_of(run, stacked)
    check_logits(logits, expected)
    check_choice(chosen, expected, heads, legal)
    allowed = legal if masks else np.ones_like(probabilities, bool)
    for found, values, ok in zip(split(probabilities, heads), split(expected, heads), split(allowed, heads)):
        assert np.abs(found - softmax(np.where(ok, values, -np.inf))).max() < TOLERANCE
    assert (probabilities[~allowed] == 0).all()
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    assert [head["name"] for head in json.loads(metadata["mimus.schema"])["heads"]] == [f"h{i}" for i in range(len(heads))]
    assert int(metadata["mimus.stack"]) == stacked.shape[1]


def test_a_head_without_a_legal_action_is_no_nan(mimus, trained, tmp_path):
    kind = POLICIES["gelu-stacked"]
    run, _ = trained(*kind)
    _, session = export(mimus, run, tmp_path / "policy.onnx", "onnxruntime")
    stacked, legal = unseen(kind)
    legal[:, 5:7] = False  # the second head's
    _, probabilities, chosen = session.run(None, {"senses": stacked.reshape(SAMPLES, -1), "legal": legal})
    assert (chosen[:, 1] == -1).all() and (probabilities[:, 5:7] == 0).all()
    assert (chosen[:, [0, 2]] >= 0).all() and np.isfinite(probabilities).all()


def unity_feed(stacked, sizes, legal, actions):
    """Each sensor stacks by itself, the oldest sample first."""
    bounds = np.cumsum([0, *sizes])
    feed = {
        f"obs_{i}": np.ascontiguousarray(stacked[:, :, first:end]).reshape(len(stacked), -1)
        for i, (first, end) in enumerate(zip(bounds, bounds[1:]))
    }
    feed["action_masks"] = (np.ones((len(stacked), actions)) if legal is None else legal).astype(np.float32)
    return feed


@pytest.mark.parametrize("sensors", [1, 2])
def test_unity_chooses_what_the_policy_does(mimus, policy, tmp_path, sensors):
    run, kind = policy
    senses, heads, masks = kind[:3]
    sizes = [senses] if sensors == 1 else [senses - 4, 4]
    options = [] if sensors == 1 else ["--observations", ",".join(map(str, sizes))]
    model, session = export(mimus, run, tmp_path / "policy.onnx", "unity", *options)
    stacked, legal = unseen(kind)
    stack, actions = stacked.shape[1], sum(heads)
    assert model.opset_import[0].version == 9
    assert signature(model.graph.input) == [(f"obs_{i}", FLOAT, [None, n * stack]) for i, n in enumerate(sizes)] + [
        ("action_masks", FLOAT, [None, actions])
    ]
    assert signature(model.graph.output) == [
        ("version_number", FLOAT, [1]),
        ("memory_size", FLOAT, [1]),
        ("discrete_actions", INT64, [None, len(heads)]),
        ("discrete_action_output_shape", FLOAT, [1, len(heads)]),
        ("deterministic_discrete_actions", INT64, [None, len(heads)]),
    ]
    constants = {c.name: onnx.numpy_helper.to_array(c) for c in model.graph.initializer}
    assert constants["version_number"].tolist() == [3] and constants["memory_size"].tolist() == [0]
    assert constants["discrete_action_output_shape"].tolist() == [list(heads)]
    version, memory, drawn, shape, chosen = session.run(None, unity_feed(stacked, sizes, legal, actions))
    assert version.tolist() == [3] and memory.tolist() == [0] and shape.tolist() == [list(heads)]
    expected = logits_of(run, stacked)
    check_choice(chosen, expected, heads, legal)
    for head, allowed in enumerate(split(legal if masks else np.ones_like(expected, bool), heads)):
        assert allowed[np.arange(SAMPLES), drawn[:, head]].all(), "an action that is not allowed was drawn"


def test_unity_draws_with_the_policys_probabilities(mimus, trained, tmp_path):
    kind = POLICIES["gelu-stacked"]
    run, _ = trained(*kind)
    _, session = export(mimus, run, tmp_path / "policy.onnx", "unity")
    stacked, legal = (array[:1].repeat(40000, 0) for array in unseen(kind))
    legal[:] = True
    drawn = session.run(["discrete_actions"], unity_feed(stacked, [9], legal, 10))[0]
    for head, logits in enumerate(split(logits_of(run, stacked[:1]), kind[1])):
        p = softmax(logits)[0]
        found = np.bincount(drawn[:, head], minlength=len(p)) / len(drawn)
        assert (np.abs(found - p) <= 5 * np.sqrt(p * (1 - p) / len(drawn)) + 1e-4).all(), (found, p)


@pytest.mark.parametrize(
    "file, sizes, heads",
    [("SoccerTwos-network-architecture-small", (264, 72), (3, 3, 3)), ("deterDiscrete1obs3action_v2_0", (20,), (3,))],
)
def test_a_unity_export_is_like_those_that_work_there(mimus, trained, tmp_path, shared, file, sizes, heads):
    theirs = onnx.load(shared / "unity-onnx" / f"{file}.onnx")
    run, _ = trained(sum(sizes), heads, True, "--hidden", "16")
    ours, session = export(mimus, run, tmp_path / "policy.onnx", "unity", "--observations", ",".join(map(str, sizes)))
    assert signature(ours.graph.input) == signature(theirs.graph.input)
    assert signature(ours.graph.output) == signature(theirs.graph.output)
    assert [(o.domain, o.version) for o in ours.opset_import] == [(o.domain, o.version) for o in theirs.opset_import]
    feed = {f"obs_{i}": np.zeros((2, n), np.float32) for i, n in enumerate(sizes)}
    feed["action_masks"] = np.ones((2, sum(heads)), np.float32)
    other = onnxruntime.InferenceSession(theirs.SerializeToString(), providers=["CPUExecutionProvider"])
    for name in ("version_number", "memory_size", "discrete_action_output_shape"):
        np.testing.assert_array_equal(session.run([name], feed)[0], other.run([name], feed)[0])
    known = {node.op_type for node in theirs.graph.node} | {"Relu"}
    assert {node.op_type for node in ours.graph.node} <= known, "an operation that their models do not have"


def godot_choice(output, heads):
    """As the add-on's sync.gd looks for the largest logit: from 0 upwards."""
    choices = []
    for values in split(output, heads):
        best, largest = np.zeros(len(values), int), np.zeros(len(values), np.float32)
        for action in range(values.shape[1]):
            better = values[:, action] > largest
            best[better], largest[better] = action, values[better, action]
        choices.append(best)
    return np.stack(choices, 1)


def test_godot_chooses_what_the_policy_does(mimus, policy, tmp_path):
    run, kind = policy
    heads = kind[1]
    model, session = export(mimus, run, tmp_path / "policy.onnx", "godot")
    stacked, _ = unseen(kind)
    assert signature(model.graph.input) == [("obs", FLOAT, [None, stacked[0].size]), ("state_ins", FLOAT, [None])]
    assert signature(model.graph.output) == [("output", FLOAT, [None, sum(heads)]), ("state_outs", FLOAT, [None])]
    feed = {"obs": stacked.reshape(SAMPLES, -1), "state_ins": np.ones(SAMPLES, np.float32)}
    output, state = session.run(["output", "state_outs"], feed)
    expected = logits_of(run, stacked)
    check_choice(godot_choice(output, heads), expected, heads)
    assert (state == 1).all()
    for found, values in zip(split(output, heads), split(expected, heads)):
        check_logits(found, values - values.min(1, keepdims=True))


def test_othello_as_onnx_plays_legal_moves(mimus, tmp_path, shared):
    recording = shared / "othello" / "othello_1985.npz"
    run = tmp_path / "run"
    mimus("train", recording, "-o", run, "--epochs", 2, "--batch", 512, "--hidden", 64, "--quiet")
    report = mimus.json("export", run, "-o", tmp_path / "policy.onnx", "--for", "onnxruntime", "--check", recording)
    assert report["check"]["which"] == "held out" and report["check"]["samples"] > 5000
    session = onnxruntime.InferenceSession(tmp_path / "policy.onnx", providers=["CPUExecutionProvider"])
    arrays = np.load(recording)
    senses, legal = arrays["obs"].astype(np.float32), arrays["action_masks"].astype(bool)
    logits, _, chosen = session.run(None, {"senses": senses, "legal": legal})
    assert legal[np.arange(len(legal)), chosen[:, 0]].all()
    expected = logits_of(run, senses[:, None])
    check_logits(logits, expected)
    masked = np.where(legal, expected, -np.inf)
    assert np.count_nonzero(masked.argmax(1) != chosen[:, 0]) <= 2


# ------------------------------------------------------------------------------ heads of bins


@pytest.fixture(scope="module")
def driver(mimus, tmp_path_factory):
    """A policy of two continuous actions around a categorical one."""
    folder = tmp_path_factory.mktemp("bins")
    arrays = play(4000, 6, (4,), False, seed=5)
    steer, gas = np.tanh(arrays["obs"][:, 0] / 10), arrays["obs"][:, 1].astype(np.float32)
    arrays["actions"] = np.stack([steer, arrays["actions"][:, 0], gas], 1)
    np.savez(folder / "drive.npz", **arrays)
    mimus("train", folder / "drive.npz", "-o", folder / "run", "--heads", "steer:2,gear:4,gas:2", "--bin",
          "steer:uniform:7,gas:quantile:5", "--epochs", 3, "--batch", 128, "--lr", 0.01, "--hidden", 16, "--quiet")
    with safe_open(folder / "run" / "best.safetensors", "np") as file:
        heads = json.loads(file.metadata()["schema"])["heads"]
    return folder / "run", arrays["obs"], [np.array(head.get("values", range(4)), np.float32) for head in heads]


def chosen_values(run, senses, values):
    logits = split(logits_of(run, senses[:, None]), [len(v) for v in values])
    return np.stack([v[part.argmax(1)] for v, part in zip(values, logits)], 1)


def test_bins_give_their_values(mimus, driver, tmp_path):
    run, senses, values = driver
    expected = chosen_values(run, senses, values)
    model, session = export(mimus, run, tmp_path / "runtime.onnx", "onnxruntime")
    assert signature(model.graph.output)[-1] == ("values", FLOAT, [None, 3])
    found = session.run(["values"], {"senses": senses})[0]
    assert np.count_nonzero(found != expected) <= 2

    model, session = export(mimus, run, tmp_path / "unity.onnx", "unity")
    assert signature(model.graph.input)[1] == ("action_masks", FLOAT, [None, 4])
    assert [name for name, _, _ in signature(model.graph.output)] == [
        "version_number", "memory_size", "continuous_actions", "continuous_action_output_shape",
        "deterministic_continuous_actions", "discrete_actions", "discrete_action_output_shape",
        "deterministic_discrete_actions",
    ]
    feed = {"obs_0": senses, "action_masks": np.ones((len(senses), 4), np.float32)}
    names = ["deterministic_continuous_actions", "continuous_actions", "continuous_action_output_shape",
             "deterministic_discrete_actions"]
    numbers, drawn, size, branch = session.run(names, feed)
    assert np.count_nonzero(numbers != expected[:, [0, 2]]) <= 2 and size.tolist() == [2]
    assert np.isin(drawn[:, 0], values[0]).all() and np.isin(drawn[:, 1], values[2]).all()
    assert np.count_nonzero(branch[:, 0] != expected[:, 1]) <= 2

    model, session = export(mimus, run, tmp_path / "godot.onnx", "godot")
    output = session.run(["output"], {"obs": senses, "state_ins": np.zeros(len(senses), np.float32)})[0]
    assert output.shape[1] == 1 + 4 + 1
    assert np.count_nonzero(output[:, [0, 5]] != expected[:, [0, 2]]) <= 2


# ------------------------------------------------------------------------------ numbers alone


def test_safetensors_are_the_checkpoint_without_its_moments(mimus, policy, tmp_path):
    run, _ = policy
    mimus("export", run, "-o", tmp_path / "policy.safetensors", "--for", "safetensors")
    found, kept = load_file(tmp_path / "policy.safetensors"), load_file(run / "best.safetensors")
    assert set(found) == {name for name in kept if not name.startswith("moment")}
    assert all(np.array_equal(found[name], kept[name]) for name in found)
    with safe_open(tmp_path / "policy.safetensors", "np") as file:
        assert "state" not in file.metadata() and "schema" in file.metadata()


def test_numpy_reads_the_numbers(mimus, policy, tmp_path):
    run, _ = policy
    mimus("export", run, "-o", tmp_path / "policy.npz", "--for", "npz")
    kept = load_file(run / "best.safetensors")
    with np.load(tmp_path / "policy.npz") as found, safe_open(run / "best.safetensors", "np") as file:
        assert set(found) == {name for name in kept if not name.startswith("moment")} | {"schema", "shape"}
        for name in set(found) - {"schema", "shape"}:
            assert found[name].dtype == np.float32 and np.array_equal(found[name], kept[name])
        for name in ("schema", "shape"):
            assert json.loads(bytes(found[name])) == json.loads(file.metadata()[name])


def test_the_documentations_numpy_is_the_policy(mimus, trained, tmp_path, monkeypatch):
    """The code block of docs/export.md, as it stands there."""
    kind = POLICIES["reference"]
    run, _ = trained(*kind)
    mimus("export", run, "-o", tmp_path / "policy.npz", "--for", "npz")
    text = (ROOT / "docs" / "export.md").read_text()
    block = next(b for b in text.split("```python\n")[1:] if "np.load" in b).split("```")[0]
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(block, names)
    stacked, _ = unseen(kind)
    check_logits(names["logits"](stacked), logits_of(run, stacked))
