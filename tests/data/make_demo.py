#!/usr/bin/env python3
"""Write the .demo files of this folder's demo/ and, as seeds, of ../fuzz/corpus/demo: `python3 make_demo.py`.

Protocol buffers by hand, with the field numbers of ML-Agents, so that what mimus declares in demo.proto is held
against something else.
"""
import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
RESERVED = 33  # bytes for the metadata and their length


def varint(number):
    number &= (1 << 64) - 1  # a negative int32 takes ten bytes
    out = b""
    while True:
        out += bytes([number & 0x7F | (0x80 if number > 0x7F else 0)])
        number >>= 7
        if number == 0:
            return out


def number(field, value):
    return varint(field << 3) + varint(value)


def block(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


def text(field, value):
    return block(field, value.encode())


def float32(field, value):
    return varint(field << 3 | 5) + struct.pack("<f", value)


def floats(field, values):
    return block(field, struct.pack("<%df" % len(values), *values))


def ints(field, values):
    return block(field, b"".join(varint(value) for value in values))


def delimited(content):
    return varint(len(content)) + content


def metadata(steps, episodes, version=1, name="play"):
    return number(1, version) + text(2, name) + number(3, steps) + number(4, episodes) + float32(5, 0.5)


def brain(branches, descriptions=(), name="Player?team=0"):
    """As recorders write it today; the deprecated fields stay empty."""
    spec = number(2, len(branches)) + ints(3, branches)
    spec += b"".join(text(4, description) for description in descriptions)
    return text(7, name) + number(8, 1) + block(9, spec)


def hybrid_brain(continuous, branches):
    return text(7, "Driver") + block(9, number(1, continuous) + number(2, len(branches)) + ints(3, branches))


def old_brain(sizes, continuous=False, descriptions=()):
    out = ints(3, sizes) + b"".join(text(5, description) for description in descriptions)
    return out + (number(6, 1) if continuous else b"") + text(7, "PlayerLearning")


def observation(values, shape=None, name=""):
    out = ints(1, shape if shape is not None else [len(values)]) + block(4, floats(1, values))
    return out + (ints(6, [1]) + number(7, 0) + text(8, name) if name else b"")


def picture(name=""):
    png = b"\x89PNG\r\n\x1a\n" + bytes(8)
    return ints(1, [84, 84, 3]) + number(2, 1) + block(3, png) + (text(8, name) if name else b"")


def agent(observations, mask=(), done=False, limit=False, identity=-12345, group=0):
    out = float32(7, -0.01)
    out += (number(8, 1) if done else b"") + (number(9, 1) if limit else b"") + number(10, identity)
    out += ints(11, mask) if mask else b""
    out += b"".join(block(13, seen) for seen in observations)
    return out + (number(14, group) + float32(15, 1.5) if group else b"")


def pair(agent_info, action=b""):
    return block(1, agent_info) + block(2, action)


def discrete(values):
    return ints(7, values)


def old(values):
    return floats(1, values)


def demo(brain_message, records, steps=None, episodes=1, copy=True, version=1):
    meta = metadata(len(records) if steps is None else steps, episodes, version)
    out = delimited(meta)
    out += bytes(RESERVED - len(out)) + delimited(brain_message)
    out += b"".join(delimited(record) for record in records)
    return out + (meta if copy else b"")


def recorded():
    """Two episodes, two named sensors, two named heads, masks on some. Record t senses t, t + 0.5 and -t, and holds
    the action (t - 1) % 3, t % 2 that led to it."""
    ends = {3: "done", 6: "limit"}
    masks = {1: (0, 0, 1, 0, 0), 4: (1, 0, 0, 0, 0)}  # true is forbidden: 2 in head move, 0 in head move
    return [
        pair(
            agent([observation([t, t + 0.5], name="Rays"), observation([-t], name="Speed")], masks.get(t, ()),
                  t in ends, ends.get(t) == "limit", identity=-7 if t <= 3 else 8, group=3),
            discrete([(t - 1) % 3, t % 2])) for t in range(8)
    ]


def converted():
    """Three episodes, a sensor without a name, actions as floats, in the record in which they were taken; the last
    record has none. Records that are done show the next episode already. Record t takes action t % 4."""
    return [
        pair(agent([observation([t, 10 * t])], done=t in (2, 4)), old([t % 4]) if t < 6 else b"") for t in range(7)
    ]


def unseen():
    """No senses; masks of five actions on records 0 and 2, which forbid the next record's action."""
    masks = {0: (0, 1, 0, 0, 1), 2: (0, 0, 0, 1, 0)}
    return [pair(agent([observation([], [0])], masks.get(t, ())), old([(2 * t + 2) % 5])) for t in range(4)]


def steering():
    """Two continuous actions and one head of two, of the record before; record t holds t / 10 and -t."""
    return [
        pair(agent([observation([t])], (0, 0)), floats(6, [t / 10, -t]) + discrete([t % 2])) for t in range(6)
    ]


FILES = {
    "recorded.demo": demo(brain([3, 2], ["move", "jump"]), recorded(), episodes=3),
    "converted.demo": demo(old_brain([4], descriptions=[""]), converted(), episodes=3, copy=False),
    "unseen.demo": demo(old_brain([5]), unseen(), copy=False),
    "killed.demo": demo(brain([3, 2], ["move", "jump"]), recorded(), steps=0, episodes=0, copy=False)[:-9],
    "nothing.demo": demo(brain([3, 2]), [], episodes=0),
    "camera.demo": demo(brain([3]), [pair(agent([picture("Eye"), observation([t], name="Ear")]), discrete([t % 3]))
                                     for t in range(4)]),
    "continuous.demo": demo(old_brain([2], True), [pair(agent([observation([t])]), old([t, t % 3])) for t in range(7)]),
    "hybrid.demo": demo(hybrid_brain(2, [2]), steering()),
    "stray.demo": demo(brain([3]), [pair(agent([observation([1])]), discrete([action]))
                                    for action in (0, 3, -1, 2, 70000)], version=0),
}


def write(folder, name, content):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as out:
        out.write(content)


def main():
    for name, content in FILES.items():
        write(os.path.join(HERE, "demo"), name, content)
        for options in range(6):  # the first byte of a seed, see fuzz_demo.c
            seed = name.replace(".demo", "-%d" % options)
            write(os.path.join(HERE, "..", "fuzz", "corpus", "demo"), seed, bytes([options]) + content)


if __name__ == "__main__":
    main()
