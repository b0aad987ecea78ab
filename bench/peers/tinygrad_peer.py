"""The bench's training in tinygrad, on the first OpenCL device; TinyJit replays the kernels of a step.

BEAM=1 in the environment lets tinygrad search for kernels by timing them. On two cores with PoCL
that took a quarter of an hour and gained less than runs differ by: it is left off."""

import importlib.metadata
import os

os.environ.update(DEV="CL", TRAINING="1")

import numpy as np  # noqa: E402
from tinygrad import Device, Tensor, TinyJit, nn  # noqa: E402

import common  # noqa: E402

KEYS = "senses", "labels", "illegal"


def tensors(part):
    """Flags as floats: tinygrad turns `array[rows]` into a gather of numbers, but into a sum over
    all rows for flags."""
    arrays = {**part, "illegal": part["illegal"].astype(np.float32)}
    return {key: Tensor(array).realize() for key, array in arrays.items()}


def main():
    arguments = common.arguments(__doc__)
    work = common.Work(arguments.data, arguments.ours)
    training, heldout = map(tensors, work.parts)
    member, first = Tensor(work.member).realize(), work.first.tolist()
    layers = [[Tensor(array).realize() for array in layer] for layer in work.first_parameters()]
    parameters = [tensor for layer in layers for tensor in layer]
    b1, b2 = work.betas
    adam = nn.optim.Adam(parameters, lr=work.lr, b1=b1, b2=b2, eps=work.epsilon)
    loss_sum = Tensor.zeros(1).contiguous().realize()
    hits = Tensor.zeros(len(work.sizes)).contiguous().realize()

    def masked_logits(x, illegal):
        for i, (weight, bias) in enumerate(layers):
            x = (x if i == 0 else x.relu()) @ weight + bias
        return (illegal > 0).where(common.ILLEGAL, x)

    @TinyJit
    def step(rows, counts):
        adam.zero_grad()
        senses, labels, illegal = (training[key][rows] for key in KEYS)
        x = masked_logits(senses, illegal)
        x = x - x.detach().max(1, keepdim=True)
        losses = ((x.exp() @ member).log() - x.gather(1, labels)).sum(1) * counts
        (losses.sum() / counts.sum()).backward()
        loss_sum.assign(loss_sum + losses.detach().sum())
        Tensor.realize(loss_sum, *adam.schedule_step())

    @TinyJit
    def judge(rows, counts):
        senses, labels, illegal = (heldout[key][rows] for key in KEYS)
        x = masked_logits(senses, illegal)
        chosen = Tensor.stack(*[x[:, a:b].argmax(1) + a for a, b in zip(first, first[1:])], dim=1)
        hits.assign(hits + ((chosen == labels) * counts.unsqueeze(1)).sum(0)).realize()

    def batches(order):
        """Rows of every batch and what each counts. All are of one size, so that there is one
        program: the last is filled up with rows that do not count."""
        for i, n in work.batches(len(order)):
            rows = np.zeros(work.batch, np.int32)
            rows[:n] = order[i : i + n]
            counts = (np.arange(work.batch) < n).astype(np.float32)
            yield Tensor(rows).realize(), Tensor(counts).realize()

    random = np.random.default_rng(work.seed)
    in_order = list(batches(np.arange(work.heldout)))

    def epoch(_):
        for batch in batches(random.permutation(work.training)):
            step(*batch)
        for batch in in_order:
            judge(*batch)
        result = loss_sum.item() / work.training, hits.numpy()
        for tensor in (loss_sum, hits):
            tensor.assign(tensor.zeros_like()).realize()
        return result

    version, device = importlib.metadata.version("tinygrad"), Device["CL"].device_name
    common.run(arguments.out, "tinygrad", version, work, epoch, device)


if __name__ == "__main__":
    main()
