"""Prints what run.sh measured: mimus and its peers, one row each."""

import argparse
import json
import statistics

AGREES = 0.005  # of held-out agreement


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def ours(document):
    """A row like the peers', of what `mimus bench --json` said."""
    device = document["devices"][0]
    settled = device["epoch"]["settled"]
    return {
        "name": "mimus",
        "version": document["version"],
        "device": device["name"],
        "minimum": settled["minimum"],
        "median": settled["median"],
        "maximum": settled["maximum"],
        "held_out_agreement": device["held_out_agreement"],
    }


def peer(result):
    settled = result["settled"]
    spread = {"minimum": settled[0], "median": statistics.median(settled), "maximum": settled[-1]}
    return {**result, **spread}


def cells(row, first, document):
    samples = document["workload"]["training_samples"]
    difference = 100 * (row["held_out_agreement"] - first["held_out_agreement"])
    return [
        row["name"],
        row["version"],
        f"{row['median']:.3f}",
        f"{row['minimum']:.3f} to {row['maximum']:.3f}",
        f"{samples / row['median']:,.0f}",
        f"{row['median'] / document['devices'][0]['epoch']['floor']:.2f}",
        "" if row is first else f"{row['median'] / first['median']:.2f}",
        f"{100 * row['held_out_agreement']:.2f}%",
        "" if row is first else f"{difference:+.2f}",
    ]


TITLES = [
    "program", "version", "epoch, s", "from, to", "samples/s", "over floor", "mimus faster", "agreement", "points",
]  # fmt: skip


def as_text(rows):
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        padded = [text.ljust(w) if i < 2 else text.rjust(w) for i, (text, w) in enumerate(zip(row, widths))]
        print("  ".join(padded).rstrip())


def as_markdown(rows):
    def line(texts):
        return "| " + " | ".join(texts) + " |"

    print(line(rows[0]))
    print(line(["---"] * 2 + ["---:"] * (len(rows[0]) - 2)))
    for row in rows[1:]:
        print(line(row))


def describe(document, rows):
    work, device = document["workload"], document["devices"][0]
    hidden = ",".join(map(str, work["config"]["hidden"]))
    print(
        f"{work['samples']:,} samples of the arena ({work['held_out_samples']:,} held out), hidden {hidden}, "
        f"batch {work['config']['batch']:,}, lr {work['config']['lr']:g}, {work['config']['epochs']} epochs."
    )
    print("; ".join(f"{row['name']} on {row['device'] or 'the processor'}" for row in rows) + ".")
    print(
        f"mimus by {device['platform']} {device['driver']}. The floor is {device['epoch']['floor']:.3f} s, at {device['limits']['flops'] / 1e9:,.0f} G multiply-add "
        "operations a second.\n"
    )


def verdicts(first, peers, document):
    nearest = min(peers, key=lambda row: row["median"])
    over = nearest["median"] / document["devices"][0]["epoch"]["floor"]
    print(
        f"\nThe fastest other is {nearest['name']}: {nearest['median'] / first['median']:.2f} times mimus' time, "
        f"and {over:.2f} times the floor,\nso that nothing on this machine could be more than {over:.2f} times as fast as it."
    )
    off = max(abs(row["held_out_agreement"] - first["held_out_agreement"]) for row in peers)
    outcome = "equal" if off <= AGREES else "NOT equal"
    print(f"Agreement is {outcome} within {100 * AGREES:g} points: the largest difference is {100 * off:.2f}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("ours")
    parser.add_argument("peers", nargs="*")
    arguments = parser.parse_args()
    document = load(arguments.ours)
    first, peers = ours(document), [peer(load(path)) for path in arguments.peers]
    rows = [TITLES] + [cells(row, first, document) for row in [first, *peers]]
    describe(document, [first, *peers])
    (as_markdown if arguments.markdown else as_text)(rows)
    if peers:
        verdicts(first, peers, document)


if __name__ == "__main__":
    main()
