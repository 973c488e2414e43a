# SPDX-License-Identifier: Apache-2.0
"""train_jax.py [BATCH] - four steps of a transformer in plain JAX (6 layers of 512, 8 heads, 256 tokens,
Adam), then what XLA itself says of the compiled step, and what its pool held."""
import functools, sys
import jax, jax.numpy as jnp

L, D, H, T, V = 6, 512, 8, 256, 8192
B = int(sys.argv[1]) if len(sys.argv) > 1 else 16

def init(key):
    k = jax.random.split(key, 2 + 6 * L)
    n = lambda i, *s: jax.random.normal(k[i], s) * 0.02
    p = {"e": n(0, V, D), "p": n(1, T, D), "l": []}
    for i in range(L):
        j = 2 + 6 * i
        p["l"].append({"qkv": n(j, D, 3 * D), "o": n(j + 1, D, D), "a": n(j + 2, D, 4 * D), "b": n(j + 3, 4 * D, D)})
    return p

def norm(x):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)

def model(p, t):
    x = p["e"][t] + p["p"][None, : t.shape[1]]
    for l in p["l"]:
        q, k, v = jnp.split(norm(x) @ l["qkv"], 3, -1)
        h = lambda y: y.reshape(*y.shape[:2], H, D // H).transpose(0, 2, 1, 3)
        s = h(q) @ h(k).transpose(0, 1, 3, 2) / 8.0
        s = jnp.where(jnp.tril(jnp.ones((T, T), bool)), s, -1e9)
        y = jax.nn.softmax(s) @ h(v)
        x = x + y.transpose(0, 2, 1, 3).reshape(x.shape) @ l["o"]
        x = x + jax.nn.gelu(norm(x) @ l["a"]) @ l["b"]
    return norm(x) @ p["e"].T

def loss(p, t):
    lp = jax.nn.log_softmax(model(p, t)[:, :-1])
    return -jnp.take_along_axis(lp, t[:, 1:, None], -1).mean()

@functools.partial(jax.jit, donate_argnums=(0, 1, 2))
def step(p, m, v, t):
    g = jax.grad(loss)(p, t)
    m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
    v = jax.tree.map(lambda a, b: 0.99 * a + 0.01 * b * b, v, g)
    p = jax.tree.map(lambda a, b, c: a - 1e-3 * b / (jnp.sqrt(c) + 1e-8), p, m, v)
    return p, m, v



p = init(jax.random.key(0))
m, v = jax.tree.map(jnp.zeros_like, p), jax.tree.map(jnp.zeros_like, p)
for i in range(4):
    t = jax.random.randint(jax.random.key(i), (B, T), 0, V)
    p, m, v = step(p, m, v, t)
jax.block_until_ready(p)
said = step.lower(p, m, v, t).compile().memory_analysis()
print("step", said.argument_size_in_bytes + said.temp_size_in_bytes + said.output_size_in_bytes - said.alias_size_in_bytes)
print("pool", jax.devices()[0].memory_stats()["peak_bytes_in_use"])
