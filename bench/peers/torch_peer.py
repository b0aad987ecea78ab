"""The bench's training in PyTorch: eager, or forward and loss through torch.compile."""

import torch

import common

KEYS = "senses", "labels", "illegal"


class MaskedLoss(torch.autograd.Function):
    """The loss of common.py with its gradient written out: in eager mode a quarter of autograd's
    operations."""

    @staticmethod
    def forward(ctx, logits, labels, illegal, member):
        x = logits.masked_fill(illegal, common.ILLEGAL)
        x -= x.amax(1, keepdim=True)
        at_labels = x.gather(1, labels).sum()
        x.exp_()
        sums = x @ member
        ctx.save_for_backward(x, sums, labels, member)
        return (sums.log().sum() - at_labels) / len(x)

    @staticmethod
    def backward(ctx, gradient):
        x, sums, labels, member = ctx.saved_tensors
        x.mul_(sums.reciprocal_() @ member.T)
        x.scatter_add_(1, labels, torch.full((1, 1), -1.0).expand(labels.shape))
        return x.mul_(gradient / len(x)), None, None, None


def masked_loss(logits, labels, illegal, member):
    """The same for the compiler, which derives and fuses it."""
    x = logits.masked_fill(illegal, common.ILLEGAL)
    x = x - x.detach().amax(1, keepdim=True)
    return (torch.log(torch.exp(x) @ member) - x.gather(1, labels)).sum() / len(x)


def network(work):
    layers = []
    for weight, bias in work.first_parameters():
        layer = torch.nn.Linear(*weight.shape)
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(weight.T))
            layer.bias.copy_(torch.from_numpy(bias))
        layers += [layer, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def tensors(part):
    out = {key: torch.from_numpy(array) for key, array in part.items()}
    out["labels"] = out["labels"].long()
    return out


def main():
    arguments = common.arguments(__doc__, "--compile")
    work = common.Work(arguments.data, arguments.ours)
    torch.set_num_threads(common.cores())
    torch.manual_seed(work.seed)
    training, heldout = map(tensors, work.parts)
    member, first = torch.from_numpy(work.member), work.first.tolist()
    model = network(work)
    adam = torch.optim.Adam(model.parameters(), lr=work.lr, betas=work.betas, eps=work.epsilon, fused=True)
    loss_of = masked_loss if arguments.compile else MaskedLoss.apply

    def forward(rows):
        batch = [training[key].index_select(0, rows) for key in KEYS]
        return loss_of(model(batch[0]), *batch[1:], member)

    def judge(senses, labels, illegal):
        """The hits of each head."""
        logits = model(senses).masked_fill(illegal, common.ILLEGAL)
        chosen = torch.stack([logits[:, a:b].argmax(1) + a for a, b in zip(first, first[1:])], 1)
        return (chosen == labels).sum(0)

    if arguments.compile:
        forward = torch.compile(forward, dynamic=False)
        judge = torch.compile(judge, dynamic=False)

    def step(rows):
        loss = forward(rows)
        adam.zero_grad()
        loss.backward()
        adam.step()
        return loss.detach() * len(rows)

    def epoch(_):
        order = torch.randperm(work.training)
        loss = sum(step(order[i : i + n]) for i, n in work.batches(work.training))
        with torch.no_grad():
            hits = sum(
                judge(*(heldout[key][i : i + n] for key in KEYS)) for i, n in work.batches(work.heldout)
            )
        return loss.item() / work.training, hits.numpy()

    name = "PyTorch, torch.compile" if arguments.compile else "PyTorch, eager"
    common.run(arguments.out, name, torch.__version__, work, epoch)


if __name__ == "__main__":
    main()
