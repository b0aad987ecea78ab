"""A recording as NumPy arrays, split and normalised as mimus does it.

docs/recording.md has the format; src/data/split.c how episodes are drawn. What comes out is what
mimus trains on, row for row: the same episodes held out, the same means and scales.
"""

import argparse
import json
import struct

import numpy as np

NO_LABEL = 0xFFFF


def read_rec(path):
    """The schema, and the columns of the whole file: senses, actions, masks, starts."""
    data = np.memmap(path, np.uint8, "r")
    magic, version, flags, size = struct.unpack_from("<8sIIQ", data, 0)
    if magic != b"\x89MREC\r\n\x1a" or version != 1 or flags != 0:
        raise SystemExit(f"{path}: expected a .rec file of version 1")
    schema = json.loads(bytes(data[64 : 64 + size]))
    senses, heads = count(schema["senses"]), schema["heads"]
    words = (sum(count(head["actions"]) for head in heads) + 31) // 32
    columns = {"senses": [], "actions": [], "masks": [], "starts": []}
    at = 64 + size
    while at + 64 <= len(data):
        magic, n, flags, size = struct.unpack_from("<8sIIQ", data, at)
        begin, at = at + 64, at + 64 + size
        if magic != b"MRECCHNK" or at > len(data):
            break  # the closing record, or a tail that was cut short

        def take(kind, shape):
            nonlocal begin
            end = begin + int(np.prod(shape)) * kind().itemsize
            column = data[begin:end].view(kind).reshape(shape)
            begin += (end - begin + 63) // 64 * 64
            return column

        columns["senses"].append(take(np.float32, (n, senses)))
        columns["actions"].append(take(np.uint16, (n, len(heads))))
        if schema["masks"]:
            columns["masks"].append(take(np.uint32, (n, words)))
        if schema["weights"]:
            raise SystemExit(f"{path}: the peers know no sample weights")
        bits = take(np.uint32, ((n + 31) // 32,)).view(np.uint8)
        columns["starts"].append(np.unpackbits(bits, bitorder="little")[:n])
    return schema, {key: np.concatenate(parts) for key, parts in columns.items() if parts}


def count(named):
    """The schema gives a number, or an array of names."""
    return named if isinstance(named, int) else len(named)


class Random:
    """The words of mimus__rng: Philox 4x32-10 with the key `seed`."""

    def __init__(self, seed, stream):
        self.key, self.stream, self.index = (seed & 0xFFFFFFFF, seed >> 32), stream, 0

    def word(self):
        block = self.index // 4
        c = [block & 0xFFFFFFFF, block >> 32, self.stream & 0xFFFFFFFF, self.stream >> 32]
        k0, k1 = self.key
        for _ in range(10):
            p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [p1 >> 32 ^ c[1] ^ k0, p1 & 0xFFFFFFFF, p0 >> 32 ^ c[3] ^ k1, p0 & 0xFFFFFFFF]
            k0, k1 = k0 + 0x9E3779B9 & 0xFFFFFFFF, k1 + 0xBB67AE85 & 0xFFFFFFFF
        self.index += 1
        return c[(self.index - 1) % 4]

    def below(self, bound):
        largest = 2**64 - 1
        limit = largest - largest % bound
        while True:
            value = self.word() << 32
            value |= self.word()
            if value < limit:
                return value % bound


def held_out(starts, fraction, seed):
    """A flag a row: whole episodes until they are `fraction` of the samples."""
    starts = starts.astype(bool)
    starts[0] = True
    first = np.flatnonzero(starts)
    samples = np.diff(np.append(first, len(starts)))
    if len(first) < 2:
        raise SystemExit("the recording is one episode: the peers hold out whole ones only")
    wanted = max(1, int(np.ceil(fraction * len(starts) - 1e-6)))
    random = Random(seed, int.from_bytes(b"split", "big"))
    order, held, drawn = np.arange(len(first)), np.zeros(len(first), bool), 0
    for i in range(len(first) - 1):
        if drawn >= wanted:
            break
        chosen = i + random.below(len(first) - i)
        order[[i, chosen]] = order[[chosen, i]]
        held[order[i]] = True
        drawn += samples[order[i]]
    return np.repeat(held, samples)


def statistics(senses):
    """Mean and 1 / standard deviation of each sense, 0 for one that never changes; in double
    precision, some rows at a time."""

    def mean_of(function):
        pieces = range(0, len(senses), 65536)
        return sum(function(senses[i : i + 65536].astype(np.float64)).sum(0) for i in pieces) / len(senses)

    mean = mean_of(lambda piece: piece)
    variance = mean_of(lambda piece: (piece - mean) ** 2)
    changes = senses.max(0) > senses.min(0)
    return mean.astype(np.float32), np.where(changes, 1 / np.sqrt(np.where(changes, variance, 1)), 0).astype(np.float32)


def prepare(path, config):
    """Arrays by name, as common.Work describes them, for either part; and the heads' sizes."""
    schema, columns = read_rec(path)
    sizes = [count(head["actions"]) for head in schema["heads"]]
    first = np.cumsum([0] + sizes[:-1], dtype=np.int32)
    if (columns["actions"] == NO_LABEL).any():
        raise SystemExit(f"{path}: the peers want a label in every head")
    held = held_out(columns["starts"], config["held_out"], config["seed"])
    mean, scale = statistics(columns["senses"][~held])
    legal = np.ones((len(held), sum(sizes)), bool)
    if schema["masks"]:
        bits = np.unpackbits(columns["masks"].view(np.uint8), axis=1, bitorder="little")
        legal = bits[:, : sum(sizes)].view(bool)
    arrays = {"sizes": np.array(sizes)}
    for part, rows in (("training", ~held), ("heldout", held)):
        arrays[part + "_senses"] = (columns["senses"][rows] - mean) * scale
        arrays[part + "_labels"] = columns["actions"][rows] + first
        arrays[part + "_illegal"] = ~legal[rows]
    return arrays


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recording")
    parser.add_argument("ours", help="what `mimus bench --json` said of it")
    parser.add_argument("-o", dest="out", required=True, help=".npz file to write")
    arguments = parser.parse_args()
    with open(arguments.ours, encoding="utf-8") as file:
        work = json.load(file)["workload"]
    arrays = prepare(arguments.recording, work["config"])
    for part, key in (("training", "training_samples"), ("heldout", "held_out_samples")):
        if len(arrays[part + "_labels"]) != work[key]:
            raise SystemExit(f"{part}: {len(arrays[part + '_labels'])} samples, mimus has {work[key]}")
    np.savez(arguments.out, **arrays)


if __name__ == "__main__":
    main()
