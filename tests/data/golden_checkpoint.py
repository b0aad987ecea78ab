#!/usr/bin/env python3
"""Write golden_checkpoint.safetensors with the reference implementation of the format.

Needs the packages safetensors and numpy. test_model.c knows the same formula for the values:
tensor number t (in the order of `names`), flat element i: ((7 t + 3 i) mod 31 - 15) / 8.
"""
import json
import os

import numpy
from safetensors.numpy import save_file

SENSES, STACK, WIDTH, HEADS = 3, 2, [6, 4, 5], [2, 3]

schema = {
    "senses": ["x", "y", "z"],
    "heads": [{"name": "gun", "actions": ["hold", "fire"]}, {"name": "move", "actions": 3}],
    "masks": True,
    "weights": False,
}
shape = {"senses": SENSES, "stack": STACK, "width": WIDTH, "activation": "gelu"}
state = {"epoch": 3, "step": 1641, "correction1": 0.875, "correction2": 0.0625, "best": 1.1,
         "best_epoch": 2, "stale": 1}
layers = [(f"layers.{l}.{part}", size) for l in range(2)
          for part, size in (("weight", (WIDTH[l + 1], WIDTH[l])), ("bias", (WIDTH[l + 1],)))]
names = [("mean", (SENSES,)), ("scale", (SENSES,))]
names += [(prefix + name, size) for prefix in ("", "moment1.", "moment2.") for name, size in layers]

tensors = {}
for t, (name, size) in enumerate(names):
    i = numpy.arange(numpy.prod(size))
    tensors[name] = (((7 * t + 3 * i) % 31 - 15) / 8).astype(numpy.float32).reshape(size)

save_file(tensors, os.path.join(os.path.dirname(__file__), "golden_checkpoint.safetensors"), metadata={
    "format": "mimus-checkpoint",
    "version": "1",
    "schema": json.dumps(schema),
    "shape": json.dumps(shape),
    "config": json.dumps({"epochs": 12}),
    "facts": json.dumps({"epoch": 3}),
    "state": json.dumps(state),
})
