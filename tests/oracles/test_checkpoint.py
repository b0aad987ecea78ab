"""Checkpoints, read by the safetensors package: docs/run.md says what is in them."""

import json

import numpy as np
from safetensors import safe_open


def test_a_checkpoint_is_what_the_documentation_says(trained):
    run, recording = trained(9, (5, 2), True, "--stack", 3, "--hidden", "16,24", "--activation", "gelu")
    with safe_open(run / "last.safetensors", "np") as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}
    assert metadata["format"] == "mimus-checkpoint"
    shape = json.loads(metadata["shape"])
    assert shape == {"senses": 9, "stack": 3, "width": [27, 16, 24, 7], "activation": "gelu"}
    schema = json.loads(metadata["schema"])
    assert schema["heads"] == [{"name": "h0", "actions": 5}, {"name": "h1", "actions": 2}] and schema["masks"]
    widths = shape["width"]
    for prefix in ("", "moment1.", "moment2."):
        for layer, (inputs, outputs) in enumerate(zip(widths, widths[1:])):
            assert tensors[f"{prefix}layers.{layer}.weight"].shape == (outputs, inputs)
            assert tensors[f"{prefix}layers.{layer}.bias"].shape == (outputs,)
    assert len(tensors) == 2 + 3 * 2 * 3
    assert all(tensor.dtype == np.float32 and np.isfinite(tensor).all() for tensor in tensors.values())
    # The recording's own mean and spread, but for what was held out.
    senses = np.load(recording)["obs"]
    assert np.abs((tensors["mean"] - senses.mean(0)) / senses.std(0)).max() < 0.1
    np.testing.assert_allclose(tensors["scale"], 1 / senses.std(0), rtol=0.1)
