#!/usr/bin/env python3
"""Write the .npz files of this folder's npz/: `python3 make_npz.py`, with NumPy.

The tests know the contents by formula; the bytes are NumPy's own, but for a fixed date.
"""
import os
import zipfile

import numpy as np

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "npz")
ROWS, WIDTH = 5, 3


def write(name, arrays, deflate=False, version=None, pickle=False):
    """As numpy.savez and savez_compressed do it, zip64 extra fields included."""
    how = zipfile.ZIP_DEFLATED if deflate else zipfile.ZIP_STORED
    with zipfile.ZipFile(os.path.join(HERE, name), "w", how) as archive:
        for key, array in arrays.items():
            info = zipfile.ZipInfo(key + ".npy")
            info.compress_type = how
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), version, pickle)


def grid(dtype):
    """row * 10 + column, a value that every type can hold."""
    rows, columns = np.arange(ROWS)[:, None], np.arange(WIDTH)[None, :]
    return (rows * 10 + columns).astype(dtype)


actions = np.array([0, 2, 1, 0, 2])

# every element type in both byte orders, as senses x_<type>
types = ["<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "|i1", "<i2", ">i2", "<i4", ">i4", "<i8", ">i8",
         "|u1", "<u2", ">u2", "<u4", ">u4", "<u8", ">u8", "|b1"]
named = {"x_" + {"<": "le_", ">": "be_", "|": ""}[t[0]] + t[1:]: grid(t) for t in types}
labels = {"a_" + {"<": "le_", ">": "be_", "|": ""}[t[0]] + t[1:]: actions.astype(t) for t in types}
special = np.array([[0.0, -0.0, 1.0], [-2.5, 65504.0, 2.0**-24], [2.0**-14, 1 / 3, np.inf],
                    [-np.inf, np.nan, 0.1], [1023.5, -7.0, 3.0]], np.float16)
write("types.npz", {**named, **labels, "half": special}, deflate=True)

# header versions, by the same content
for version in (1, 2, 3):
    write(f"version{version}.npz", {"obs": grid("<f4"), "actions": actions}, version=(version, 0))

# what cannot be read, next to what can
record = np.zeros(ROWS, [("position", "<f4", (2,)), ("naïve", "<i4")])
write("odd.npz", {
    "obs": grid("<f4"), "actions": actions,
    "fortran": np.asfortranarray(grid("<f4")), "column": np.asfortranarray(actions[:, None]),
    "record": record, "object": np.array([{"a": 1}] * ROWS, object), "text": np.array(["x"] * ROWS),
    "complex": np.zeros(ROWS, complex), "date": np.zeros(ROWS, "M8[s]"), "number": np.float32(3),
    "empty": np.zeros((ROWS, 0), np.float32),
}, pickle=True)

# trajectories as imitation keeps them: one observation more than actions in each
lengths = [2, 1, 4]
write("imitation.npz", {
    "obs": np.arange(sum(lengths) + len(lengths), dtype="<f4")[:, None] * np.array([1, 100], "<f4"),
    "acts": np.arange(sum(lengths)) % 3, "infos": np.array([{}] * sum(lengths), object),
    "terminal": np.array([True, False, True]), "indices": np.cumsum(lengths[:-1]),
}, deflate=True, pickle=True)
write("imitation_one.npz", {
    "obs": np.arange(4, dtype="<f4")[:, None], "acts": np.array([1, 0, 1]),
    "terminal": np.array([True]), "indices": np.cumsum([]),
}, deflate=True)
