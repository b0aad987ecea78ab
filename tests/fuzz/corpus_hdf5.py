"""Writes the seeds of tests/fuzz/corpus/hdf5: recipes of fuzz_hdf5.c for files of every layout."""

import pathlib
import struct

FOLDER = pathlib.Path(__file__).parent / "corpus" / "hdf5"
NAMES = [line.strip().strip('",') for line in (FOLDER.parent.parent / "fuzz_hdf5.c").read_text().splitlines() if line.startswith('    "/')]
F32, I64, U8, F64BE, TEXT = 0, 1, 2, 3, 17


def dataset(name, kind, rows, values=b"", width=1, dimensions=1, how=0):
    return bytes([NAMES.index(name) << 3, kind, dimensions << 6 | how, rows | (width - 1) << 4]) + values


def link(name, to, kind):
    return bytes([NAMES.index(name) << 3 | 5, NAMES.index(to), kind, 0])


def text(which, content, fixed=0):
    return bytes([{"mimus_schema": 0, "action_space": 1, "observation_space": 2}[which] << 3 | 7, len(content), fixed, 0]) + content


def labels(*values):  # two bytes of three of an element are taken, and then the next three: small numbers survive
    return b"".join(struct.pack("<B", value) + bytes(4) for value in values)


flat = dataset("/observations", F32, 6, bytes(range(60)), 3, 2) + dataset("/actions", U8, 6, bytes([0, 1, 2, 1, 0, 1]))
ends = dataset("/terminals", U8, 6, bytes([0, 1, 0, 0])) + dataset("/timeouts", U8, 6, bytes([0, 0, 0, 1]), 1, 2)
masks = dataset("/action_masks", U8, 6, bytes([1]) * 18, 3, 2)
minari = b"".join(
    dataset(f"/episode_{e}/observations", F32, 4, bytes(40), 2, 2, 3) + dataset(f"/episode_{e}/actions", U8, 3, bytes([0, 1, 1]), how=11)
    for e in (0, 1)
)
nested = b"".join(
    dataset(f"/episode_{e}/observations/a", F64BE, 4, bytes(40), 2, 2) + dataset(f"/episode_{e}/actions/move", I64, 3, labels(0, 1, 2))
    for e in (0, 1)
)
infos = b"".join(dataset(f"/episode_{e}/infos/action_mask", U8, 4, bytes([1]) * 12, 3, 2) for e in (0, 1))
demos = b"".join(
    dataset(f"/data/demo_{d}/obs/x", F32, 5, bytes(30)) + dataset(f"/data/demo_{d}/obs/y", F32, 5, bytes(30), 2, 2)
    + dataset(f"/data/demo_{d}/actions", U8, 5, bytes([0, 1, 0, 1, 1]), 2, 2)
    for d in (2, 10)
)
space = b'{"type": "Discrete", "n": 4, "start": 0}'
schema = b'{"senses": ["a", "b"], "heads": [{"name": "m", "actions": 3}], "masks": false, "weights": false}'
SEEDS = {
    "flat": b"\0" + flat,
    "flat_ends": b"\0" + flat + ends + masks,
    "flat_named": b"\4" + flat + dataset("/x", F32, 6, bytes(20)) + dataset("/number", U8, 6, bytes([4, 4, 5, 5, 5, 9])),
    "flat_bins": b"\5" + flat + ends,
    "flat_dones": b"\6" + flat + ends,
    "flat_starts": b"\7" + flat + ends,
    "minari": b"\0" + minari,
    "minari_spaces": b"\0" + minari + text("action_space", space) + text("observation_space", b"{}", 1),
    "minari_schema": b"\0" + minari + text("mimus_schema", schema),
    "minari_nested": b"\0" + nested + infos,
    "minari_key": b"\1" + nested,
    "minari_heads": b"\2" + minari,
    "robomimic": b"\0" + demos,
    "robomimic_filter": b"\3" + demos + dataset("/mask/train", TEXT, 2, b"demo_2\0\0" * 2),
    "soft": b"\0" + flat + link("/x", "/observations", 0) + link("/weights", "/x", 0),
    "hard": b"\0" + nested + link("/observations/a", "/observations", 1),
    "external": b"\0" + link("/observations", "/x", 2) + flat,
    "huge": b"\0" + dataset("/observations", 250, 15, b"", 2, 2) + flat,
    "circle": b"\0" + bytes([NAMES.index("/observations/a") << 3 | 6, 0, 0, 0]) + link("/observations/action_mask", "/observations", 1) + flat,
}
for kind in range(20):
    SEEDS[f"type_{kind}"] = b"\0" + dataset("/observations", kind, 6, bytes(range(100)), 2, 2) + dataset("/actions", kind, 6, bytes(20))
for how in range(0, 64, 5):
    SEEDS[f"how_{how}"] = b"\0" + dataset("/observations", F32, 6, bytes(60), 3, 2, how) + dataset("/actions", U8, 6, bytes(6), how=how)
FOLDER.mkdir(exist_ok=True)
for name, content in SEEDS.items():
    (FOLDER / name).write_bytes(content)
