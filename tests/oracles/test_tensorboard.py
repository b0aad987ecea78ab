"""Event files, read by the tensorboard package: docs/run.md says what is in them."""

import json
import shutil

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader
from tensorboard.compat.proto import event_pb2
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
from tensorboard.summary.writer.record_writer import RecordWriter

HEADS = {"h0": 5, "h1": 2}


@pytest.fixture
def run(trained, tmp_path):
    """A copy, to spoil."""
    made, _ = trained(6, HEADS.values(), True)
    return shutil.copytree(made, tmp_path / "run")


def accumulate(run):
    accumulator = EventAccumulator(str(run), size_guidance={"scalars": 0, "tensors": 0})
    accumulator.Reload()
    return accumulator


def rows_of(run):
    return [json.loads(line) for line in open(run / "metrics.jsonl")]


def event_files(run):
    return sorted(run.glob("events.out.tfevents.*"))


def raw_steps(run, tag):
    """Of all files as they are, before a reader drops what is there twice."""
    events = [event for file in event_files(run) for event in LegacyEventFileLoader(str(file)).Load()]
    return [event.step for event in events for value in event.summary.value if value.tag == tag]


def check(run):
    """TensorBoard shows what metrics.jsonl has."""
    accumulator, rows = accumulate(run), rows_of(run)
    members = {"loss/train": "loss", "loss/heldout": "held_out_loss", "lr": "lr", "gradient/norm": "norm", "epoch": "epoch",
               "steps/skipped": "skipped", "throughput/samples_per_second": "samples_per_second",
               "throughput/epoch_seconds": "seconds"}
    want = {tag: [row[key] for row in rows] for tag, key in members.items()}
    for i, head in enumerate(HEADS):
        for kind in ("agreement", "nll"):
            want[f"{kind}/{head}/train"] = [row["heads"][i][kind] for row in rows]
            want[f"{kind}/{head}/heldout"] = [row["heads"][i][f"held_out_{kind}"] for row in rows]
    ends = [sum(row["steps"] for row in rows[: i + 1]) for i in range(len(rows))]
    assert set(accumulator.Tags()["scalars"]) == {"loss/step", *want}
    for tag, values in want.items():
        scalars = accumulator.Scalars(tag)
        assert [scalar.step for scalar in scalars] == ends, tag
        assert [scalar.value for scalar in scalars] == pytest.approx(values, rel=1e-6), tag
    steps = accumulator.Scalars("loss/step")
    assert [scalar.step for scalar in steps] == list(range(1, ends[-1] + 1)) == raw_steps(run, "loss/step")
    assert [scalar.value for scalar in steps] == pytest.approx([x for row in rows for x in row["step_loss"]], rel=1e-6)
    times = [scalar.wall_time for scalar in steps]
    assert times == sorted(times)
    return accumulator


def test_tags_and_values_are_those_of_metrics_jsonl(run):
    accumulator = check(run)
    assert accumulator.file_version == 2.0
    text = accumulator.Tensors("config")[0].tensor_proto.string_val[0].decode()
    config = json.load(open(run / "config.json"))
    shown = dict(line.strip("| ").split(" | ") for line in text.splitlines()[2:])
    assert {key: json.loads(value) for key, value in shown.items()} == config
    assert accumulator.SummaryMetadata("config").plugin_data.plugin_name == "text"


def test_settings_are_hyperparameters(run):
    accumulator, config = accumulate(run), json.load(open(run / "config.json"))
    data = accumulator.SummaryMetadata("_hparams_/session_start_info").plugin_data
    assert data.plugin_name == "hparams"
    shown = HParamsPluginData.FromString(data.content)
    assert shown.version == 0
    hparams = {key: getattr(value, value.WhichOneof("kind")) for key, value in shown.session_start_info.hparams.items()}
    assert hparams.keys() == config.keys()
    for key, value in config.items():
        assert (json.loads(hparams[key]) if isinstance(value, list) else hparams[key]) == value


def test_a_resumed_run_goes_on(mimus, run):
    before = accumulate(run).Scalars("loss/train")
    mimus("train", "--resume", run, "--epochs", 5, "-q")
    assert len(event_files(run)) == 2
    after = check(run).Scalars("loss/train")
    assert len(after) == 5 and after[:3] == before


def test_a_file_that_a_kill_tore_is_read_and_mended(mimus, run):
    """As if killed between the rows of an epoch and its checkpoint, in the middle of a write."""
    (file,) = event_files(run)
    whole = file.read_bytes()
    rows = rows_of(run)
    mimus("train", "--resume", run, "--epochs", 4, "-q")
    second = event_files(run)[1]
    later = second.read_bytes()
    second.unlink()
    file.write_bytes(whole + later[:-5])
    torn = accumulate(run)
    assert len(torn.Scalars("loss/train")) == 4
    # back to where the third epoch ended, with what came behind left in the file
    ends = sum(row["steps"] for row in rows)
    mimus("train", "--resume", run, "--epochs", 6, "-q")
    assert raw_steps(run, "loss/step")[:ends] == list(range(1, ends + 1))
    assert sorted(set(raw_steps(run, "loss/step"))) == raw_steps(run, "loss/step")


def test_a_reader_that_saw_more_forgets_it(mimus, run, tmp_path):
    """TensorBoard is open while a run is killed behind its checkpoint, and resumed."""
    steps = len(accumulate(run).Scalars("loss/step"))
    (file,) = event_files(run)
    with open(file, "ab") as stream:
        for i in range(3):
            event = event_pb2.Event(wall_time=2e9, step=steps + 1 + i)
            event.summary.value.add(tag="loss/step", simple_value=1e6)
            writer = RecordWriter(stream)
            writer.write(event.SerializeToString())
            writer.flush()
    watching = accumulate(run)
    assert len(watching.Scalars("loss/step")) == steps + 3
    mimus("train", "--resume", run, "--epochs", 4, "-q")
    watching.Reload()
    values = [scalar.value for scalar in watching.Scalars("loss/step")]
    assert len(values) > steps + 3 and max(values) < 1e6
    check(run)
