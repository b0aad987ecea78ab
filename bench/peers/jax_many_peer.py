"""Many runs at once in JAX: the training of jax_peer.py under vmap, one compiled call an epoch.

Every run has its own parameters, moments and, but for --shared, its own order; the recording is
there once. The loss that is told is the mean of the runs, the hits are the first one's."""

import functools

import jax
import jax.numpy as jnp

import common
import jax_peer


def main():
    arguments = common.arguments(__doc__, "--shared", runs=16)
    work = common.Work(arguments.data, arguments.ours)
    runs, shared = arguments.runs, arguments.shared
    training, heldout = jax_peer.parts(work)
    states = [jax_peer.first_state(work, run) for run in range(runs)]
    state = jax.tree.map(lambda *each: jnp.stack(each), *states)
    step, judge_all = jax_peer.make(work)
    full, rest = divmod(work.training, work.batch)
    steps = jax.vmap(functools.partial(step, training), in_axes=(0, None if shared else 0))

    def order_of(key):
        """(N) for all, or (R, N)."""
        if shared:
            return jax.random.permutation(key, work.training)
        keys = jax.random.split(key, runs)
        return jax.vmap(lambda own: jax.random.permutation(own, work.training))(keys)

    @functools.partial(jax.jit, donate_argnums=0)
    def epoch_on_device(state, key):
        order = order_of(key)
        batches = order[..., : full * work.batch].reshape(*order.shape[:-1], full, work.batch)
        state, losses = jax.lax.scan(steps, state, jnp.moveaxis(batches, -2, 0))
        loss = losses.sum()
        if rest > 0:
            state, last = steps(state, order[..., full * work.batch :])
            loss += last.sum()
        hits = jax.vmap(judge_all, in_axes=(0, None))(state[0], heldout)
        return state, loss / work.training / runs, hits[0]

    def epoch(number):
        nonlocal state
        key = jax.random.key(work.seed * work.epochs + number)
        state, loss, hits = epoch_on_device(state, key)
        return float(loss), hits

    name = f"JAX vmap, {runs} runs{', shared' if shared else ''}"
    common.run(arguments.out, name, jax.__version__, work, epoch)


if __name__ == "__main__":
    main()
