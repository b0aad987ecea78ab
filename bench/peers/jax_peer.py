"""The bench's training in JAX: one compiled call an epoch, its steps a scan on the device."""

import functools

import jax
import jax.numpy as jnp

import common


def forward(layers, x):
    for weight, bias in layers[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    weight, bias = layers[-1]
    return x @ weight + bias


def masked(logits, illegal):
    return jnp.where(illegal, common.ILLEGAL, logits)


def first_state(work, run=0):
    """Parameters, both moments, and the steps that were taken."""
    layers = jax.tree.map(jnp.asarray, work.first_parameters(run))
    return (layers, *(jax.tree.map(jnp.zeros_like, layers) for _ in range(2)), jnp.int32(0))


def parts(work):
    return (jax.tree.map(jnp.asarray, part) for part in work.parts)


def make(work):
    """The training of one run as two functions: a step on rows of the data, and the hits of each
    head on the held-out part."""
    member = jnp.asarray(work.member)

    def loss_of(layers, batch):
        x = masked(forward(layers, batch["senses"]), batch["illegal"])
        x -= jax.lax.stop_gradient(x.max(1, keepdims=True))
        at_labels = jnp.take_along_axis(x, batch["labels"], 1)
        return (jnp.log(jnp.exp(x) @ member) - at_labels).sum() / len(x)

    def step(data, state, rows):
        """Adam: Kingma and Ba 2015, algorithm 1."""
        layers, m, v, t = state
        batch = jax.tree.map(lambda array: array.at[rows].get(mode="promise_in_bounds"), data)
        loss, gradient = jax.value_and_grad(loss_of)(layers, batch)
        b1, b2 = work.betas
        t += 1
        m = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, m, gradient)
        v = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, v, gradient)
        c1, c2 = 1 - b1**t, 1 - b2**t
        layers = jax.tree.map(
            lambda p, m, v: p - work.lr * (m / c1) / (jnp.sqrt(v / c2) + work.epsilon), layers, m, v
        )
        return (layers, m, v, t), loss * len(rows)

    def judge(layers, batch):
        """The hits of each head."""
        x = masked(forward(layers, batch["senses"]), batch["illegal"])
        first = work.first
        chosen = jnp.stack([x[:, a:b].argmax(1) + a for a, b in zip(first, first[1:])], 1)
        return (chosen == batch["labels"]).sum(0)

    def judge_all(layers, heldout):
        batch = min(work.batch, work.heldout)
        whole = work.heldout // batch * batch
        batches = jax.tree.map(lambda a: a[:whole].reshape(-1, batch, *a.shape[1:]), heldout)
        hits = jax.lax.map(functools.partial(judge, layers), batches).sum(0)
        if whole < work.heldout:
            hits += judge(layers, jax.tree.map(lambda a: a[whole:], heldout))
        return hits

    return step, judge_all


def main():
    arguments = common.arguments(__doc__)
    work = common.Work(arguments.data, arguments.ours)
    training, heldout = parts(work)
    state = first_state(work)
    step, judge_all = make(work)
    full, rest = divmod(work.training, work.batch)

    @functools.partial(jax.jit, donate_argnums=0)
    def epoch_on_device(state, key, training, heldout):
        order = jax.random.permutation(key, work.training)
        batches = order[: full * work.batch].reshape(full, work.batch)
        state, losses = jax.lax.scan(functools.partial(step, training), state, batches)
        loss = losses.sum()
        if rest > 0:
            state, last = step(training, state, order[full * work.batch :])
            loss += last
        return state, loss / work.training, judge_all(state[0], heldout)

    def epoch(number):
        nonlocal state
        key = jax.random.key(work.seed * work.epochs + number)
        state, loss, hits = epoch_on_device(state, key, training, heldout)
        return float(loss), hits

    common.run(arguments.out, "JAX", jax.__version__, work, epoch)


if __name__ == "__main__":
    main()
