"""HDF5 files as h5py and Minari write them, read by mimus: layouts, spaces, orders."""

import json

import gymnasium as gym
import h5py
import minari
import numpy as np
import pytest
from minari.data_collector import EpisodeBuffer
from minari.dataset.minari_storage import MinariStorage

EPISODES = 12  # names sort episode_10 before episode_2


def counts(mimus, source, *options, tmp_path):
    recording = tmp_path / "out.rec"
    report = mimus.json("import", source, "-o", recording, *options)
    return report, mimus.json("info", recording)


def space_of(kind):
    return {
        "discrete": gym.spaces.Discrete(5, start=-2),
        "multi": gym.spaces.MultiDiscrete([3, 4], start=[1, 0]),
        "binary": gym.spaces.MultiBinary(3),
        "dict": gym.spaces.Dict({"move": gym.spaces.Discrete(3), "arm": gym.spaces.MultiDiscrete([2, 6])}),
        "tuple": gym.spaces.Tuple([gym.spaces.Discrete(7, start=2), gym.spaces.Discrete(3)]),
    }[kind]


HEADS = {"discrete": [5], "multi": [3, 4], "binary": [2, 2, 2], "dict": [2, 6, 3], "tuple": [7, 3]}
OBSERVATIONS = gym.spaces.Dict(
    {
        "position": gym.spaces.Box(-np.inf, np.inf, (3,), np.float64),
        "joints": gym.spaces.Tuple([gym.spaces.Box(-1, 1, (), np.float32) for _ in range(11)]),
        "near": gym.spaces.Discrete(4),
    }
)


def stacked(space, samples):
    """Samples of a space, as Minari keeps them: an array a leaf."""
    if isinstance(space, gym.spaces.Dict):
        return {key: stacked(part, [sample[key] for sample in samples]) for key, part in space.spaces.items()}
    if isinstance(space, gym.spaces.Tuple):
        return tuple(stacked(part, [sample[i] for sample in samples]) for i, part in enumerate(space.spaces))
    if isinstance(space, gym.spaces.Text):
        return list(samples)
    return np.stack([np.asarray(sample) for sample in samples])


def flat(space, sample):
    """The elements of a sample in the order of gymnasium.spaces.flatten, without its one-hot numbers."""
    if isinstance(space, gym.spaces.Dict):
        return np.concatenate([flat(part, sample[key]) for key, part in space.spaces.items()])
    if isinstance(space, gym.spaces.Tuple):
        return np.concatenate([flat(part, sample[i]) for i, part in enumerate(space.spaces)])
    if isinstance(space, gym.spaces.Text):
        return np.zeros(0)
    return np.asarray(sample, np.float64).ravel()


def starts_of(space):
    if isinstance(space, gym.spaces.Dict):
        return np.concatenate([starts_of(part) for part in space.spaces.values()])
    if isinstance(space, gym.spaces.Tuple):
        return np.concatenate([starts_of(part) for part in space.spaces])
    return np.ravel(getattr(space, "start", np.zeros(getattr(space, "n", 1))))


def write_minari(folder, actions, observations=OBSERVATIONS):
    """A dataset written by Minari itself; gives the senses and labels that are to come out."""
    observations.seed(1), actions.seed(2)
    data = folder / "data"
    data.mkdir(parents=True)
    storage = MinariStorage.new(data, observations, actions)
    senses, labels = [], []
    for number in range(EPISODES):
        steps = 3 + number
        seen = [observations.sample() for _ in range(steps + 1)]
        done = [actions.sample() for _ in range(steps)]
        senses += [flat(observations, sample) for sample in seen[:-1]]
        labels += [flat(actions, sample) - starts_of(actions) for sample in done]
        storage.update_episodes(
            [
                EpisodeBuffer(
                    id=None,
                    observations=stacked(observations, seen),
                    actions=stacked(actions, done),
                    rewards=[0.0] * steps,
                    terminations=[False] * steps,
                    truncations=[False] * (steps - 1) + [True],
                    infos={},
                )
            ]
        )
    storage.update_metadata({"dataset_id": "play-v0", "minari_version": minari.__version__})
    return np.array(senses, np.float32), np.array(labels)


@pytest.mark.parametrize("kind", HEADS)
def test_minari_datasets(mimus, tmp_path, kind):
    senses, labels = write_minari(tmp_path / "play-v0", space_of(kind))
    for path in ("play-v0", "play-v0/data", "play-v0/data/main_data.hdf5"):
        report, info = counts(mimus, tmp_path / path, tmp_path=tmp_path)
        assert report["samples"] == len(senses) and report["episodes"] == EPISODES
        assert info["episodes"]["shortest"] == 3 and info["episodes"]["longest"] == 3 + EPISODES - 1
        assert [head["actions"] for head in info["heads"]] == HEADS[kind]
        for head, column in zip(info["heads"], labels.T):
            assert head["counts"] == [int((column == a).sum()) for a in range(head["actions"])]
        assert [sense["name"] for sense in info["senses"]] == [f"joints/_index_{i}" for i in range(11)] + [
            "near",
            "position[0]",
            "position[1]",
            "position[2]",
        ]
        for sense, column in zip(info["senses"], senses.T):
            assert sense["mean"] == pytest.approx(column.mean(dtype=np.float64), rel=1e-5, abs=1e-6)


def test_minari_images_and_texts_are_refused_by_name(mimus, tmp_path):
    image = gym.spaces.Box(0, 255, (64, 64, 3), np.uint8)
    write_minari(tmp_path / "a", gym.spaces.Discrete(2), gym.spaces.Dict({"eye": image, "x": gym.spaces.Discrete(3)}))
    line = mimus.refused("import", tmp_path / "a", "-q", "-o", tmp_path / "out.rec")
    assert "observations/eye: holds" in line and "senses" in line
    report, _ = counts(mimus, tmp_path / "a", "--senses", "x", tmp_path=tmp_path)
    assert report["episodes"] == EPISODES and report["schema"]["senses"] == ["x"]
    text = gym.spaces.Text(10)
    write_minari(tmp_path / "b", gym.spaces.Discrete(2), gym.spaces.Dict({"say": text, "x": gym.spaces.Discrete(3)}))
    assert "observations/say: holds text" in mimus.refused("import", tmp_path / "b", "-q", "-o", tmp_path / "out.rec")


def test_minari_continuous_actions_need_bins(mimus, tmp_path):
    write_minari(tmp_path / "play", gym.spaces.Box(-1, 1, (2,), np.float32))
    assert "--bin" in mimus.refused("import", tmp_path / "play", "-q", "-o", tmp_path / "out.rec")
    _, info = counts(mimus, tmp_path / "play", "--bin", "all:quantile:5", tmp_path=tmp_path)
    assert [head["actions"] for head in info["heads"]] == [5, 5]


@pytest.mark.parametrize("column", [False, True])
def test_d4rl(mimus, tmp_path, column):
    random = np.random.default_rng(3)
    n = 200
    labels, terminals, timeouts = random.integers(0, 6, n), random.random(n) < 0.05, random.random(n) < 0.02
    shape = (n, 1) if column else (n,)
    with h5py.File(tmp_path / "play.hdf5", "w") as file:
        file["observations"] = random.normal(size=(n, 4)).astype(np.float32)
        file.create_dataset("actions", data=labels.reshape(shape), compression="gzip", shuffle=True, fletcher32=True)
        file["rewards"] = np.zeros(shape, np.float32)
        file["terminals"] = terminals.reshape(shape)
        file["timeouts"] = timeouts.reshape(shape).astype(np.uint8)
        file["infos/qpos"] = np.zeros((n, 3))
    report, info = counts(mimus, tmp_path / "play.hdf5", tmp_path=tmp_path)
    ends = terminals | timeouts
    assert report["samples"] == n and report["episodes"] == ends.sum() + (not ends[-1])
    assert info["heads"][0]["counts"] == np.bincount(labels, minlength=6).tolist()


def test_robomimic(mimus, tmp_path):
    random = np.random.default_rng(4)
    with h5py.File(tmp_path / "play.hdf5", "w") as file:
        data = file.create_group("data")
        data.attrs["total"], data.attrs["env_args"] = 78, "{}"
        for number in range(EPISODES):
            steps = 1 + number
            demo = data.create_group(f"demo_{number}")
            demo.attrs["num_samples"] = steps
            demo["actions"], demo["rewards"] = random.integers(0, 3, (steps, 2)), np.zeros(steps)
            demo["dones"], demo["states"] = np.zeros(steps, int), random.normal(size=(steps, 20))
            for group in ("obs", "next_obs"):
                demo[f"{group}/object"] = np.full((steps, 2), float(number))
                demo[f"{group}/robot0_eef_pos"] = random.normal(size=(steps, 3))
                demo[f"{group}/agentview_image"] = np.zeros((steps, 84, 84, 3), np.uint8)
        file["mask/train"] = np.array([b"demo_11", b"demo_2"])
        file["mask/valid"] = np.array([b"demo_3"])
    line = mimus.refused("import", tmp_path / "play.hdf5", "-q", "-o", tmp_path / "out.rec")
    assert "/data/demo_0/obs/agentview_image: holds images" in line and "--senses object,robot0_eef_pos" in line
    keep = ("--senses", "object,robot0_eef_pos")
    report, info = counts(mimus, tmp_path / "play.hdf5", *keep, tmp_path=tmp_path)
    assert (report["samples"], report["episodes"]) == (78, 12)
    assert [sense["name"] for sense in info["senses"]][:3] == ["object[0]", "object[1]", "robot0_eef_pos[0]"]
    report, info = counts(mimus, tmp_path / "play.hdf5", *keep, "--filter", "train", tmp_path=tmp_path)
    assert (report["samples"], report["episodes"]) == (15, 2) and info["senses"][0]["minimum"] == 2


def test_masks_in_infos_forbid(mimus, tmp_path):
    legal = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 0], [1, 1, 1]], bool)
    with h5py.File(tmp_path / "play.hdf5", "w") as file:
        episode = file.create_group("episode_0")
        episode["observations"], episode["actions"] = np.zeros((4, 2)), [0, 1, 2]
        episode["infos/action_mask"] = legal
    assert "forbid" in mimus.refused("import", tmp_path / "play.hdf5", "-q", "--heads", 3, "-o", tmp_path / "out.rec")
    report, info = counts(mimus, tmp_path / "play.hdf5", "--illegal", "drop", tmp_path=tmp_path)
    assert (report["samples"], report["dropped"]) == (2, 1) and report["schema"]["masks"]


def play_with_masks(path, heads, seed=5, samples=300):
    random = np.random.default_rng(seed)
    legal = random.random((samples, sum(heads))) < 0.6
    actions = np.stack([random.integers(0, n, samples) for n in heads], 1)
    for h, n in enumerate(heads):
        legal[np.arange(samples), sum(heads[:h]) + actions[:, h]] = True
    arrays = {
        "obs": random.normal(size=(samples, 7)).astype(np.float32),
        "actions": actions,
        "action_masks": legal,
        "episode_starts": np.arange(samples) % 23 == 0,
        "weights": random.random(samples).astype(np.float32),
    }
    arrays["actions"][::13, 0] = -1
    np.savez(path, **arrays)
    return arrays


HEADS_OUT = [(6,), (3, 5)]


@pytest.mark.parametrize("heads", HEADS_OUT)
def test_npz_goes_in_and_out_bit_for_bit(mimus, tmp_path, heads):
    arrays = play_with_masks(tmp_path / "in.npz", heads)
    names = ",".join(f"h{i}:{n}" for i, n in enumerate(heads))
    mimus("import", tmp_path / "in.npz", "-o", tmp_path / "play.rec", "--heads", names)
    mimus("convert", tmp_path / "play.rec", "-o", tmp_path / "out.npz")
    out = np.load(tmp_path / "out.npz")
    for name, array in arrays.items():
        assert out[name].dtype == array.dtype and out[name].shape == array.shape, name
        assert out[name].tobytes() == array.tobytes(), name
    schema = json.loads(out["schema.json"])
    assert [head["name"] for head in schema["heads"]] == [f"h{i}" for i in range(len(heads))]
    mimus("import", tmp_path / "out.npz", "-o", tmp_path / "again.rec")
    prints = [mimus.json("info", tmp_path / name)["fingerprint"] for name in ("play.rec", "out.npz", "again.rec")]
    assert len(set(prints)) == 1


@pytest.mark.parametrize("heads", HEADS_OUT)
def test_minari_opens_what_convert_writes(mimus, tmp_path, heads):
    arrays = play_with_masks(tmp_path / "in.npz", heads)
    mimus("convert", tmp_path / "in.npz", "-o", tmp_path / "play-v2/data/main_data.hdf5", "--heads", ",".join(map(str, heads)))
    dataset = minari.MinariDataset(tmp_path / "play-v2/data")
    starts = np.flatnonzero(arrays["episode_starts"])
    assert dataset.total_episodes == len(starts) and dataset.total_steps == len(arrays["obs"])
    assert dataset.spec.dataset_id == "play-v2"
    space = dataset.action_space
    assert [space.n] == list(heads) if len(heads) == 1 else space.nvec.tolist() == list(heads)
    for episode, first, last in zip(dataset.iterate_episodes(), starts, [*starts[1:], len(arrays["obs"])]):
        assert episode.observations.dtype == np.float32 and episode.observations.shape == (last - first + 1, 7)
        assert episode.observations[:-1].tobytes() == arrays["obs"][first:last].tobytes()
        assert (episode.observations[-1] == episode.observations[-2]).all()
        assert dataset.observation_space.contains(episode.observations[0])
        assert (episode.actions.reshape(last - first, -1) == arrays["actions"][first:last]).all()
        assert (episode.infos["action_masks"][:-1] == arrays["action_masks"][first:last]).all()
        assert episode.infos["weights"][:-1].tobytes() == arrays["weights"][first:last].tobytes()
        assert episode.truncations.dtype == bool and episode.truncations.tolist() == [False] * (last - first - 1) + [True]
        assert not episode.terminations.any() and not episode.rewards.any()


def test_hdf5_goes_in_and_out_bit_for_bit(mimus, tmp_path):
    write_minari(tmp_path / "play-v0", space_of("dict"))
    mimus("import", tmp_path / "play-v0", "-o", tmp_path / "play.rec")
    mimus("convert", tmp_path / "play.rec", "-o", tmp_path / "out.h5")
    mimus("import", tmp_path / "out.h5", "-o", tmp_path / "again.rec")
    mimus("convert", tmp_path / "again.rec", "-o", tmp_path / "twice.h5")
    prints = [mimus.json("info", tmp_path / name)["fingerprint"] for name in ("play-v0", "play.rec", "out.h5", "again.rec")]
    assert len(set(prints)) == 1
    with h5py.File(tmp_path / "out.h5") as one, h5py.File(tmp_path / "twice.h5") as other:
        assert dict(one.attrs) == dict(other.attrs) and one.attrs["total_episodes"] == EPISODES
        assert json.loads(one.attrs["mimus_schema"])["heads"][0]["name"] == "arm[0]"
        for number in range(EPISODES):
            for name in ("observations", "actions", "rewards", "terminations", "truncations"):
                a, b = one[f"episode_{number}/{name}"], other[f"episode_{number}/{name}"]
                assert a.dtype == b.dtype and a[()].tobytes() == b[()].tobytes()
            assert one[f"episode_{number}"].attrs["id"] == number
