# SPDX-License-Identifier: Apache-2.0
"""vramcast_null_routes.py - what is taken of scores: experts for tokens, classes for boxes. Nobody computes them, so they
are equal, and of equal ones a library takes the same in every row: one expert would get all tokens. Here ties go round:
row by row to the next choices, as a router's load is balanced. With a skew the first choice of one rank gets so many
times its share."""
import os

MOST = 1024  # choices: those of a router, not the words of a language
TAKES = {"topk", "argmax", "max", "argmin", "min"}
SKEW, HOT = map(float, os.environ.get("VRAMCAST_NULL_EXPERT_SKEW", "1 0").split())
SAID = "what is taken of equal scores, as the experts of a token or the class of a box: " + \
    ("each as often" if SKEW <= 1 else "the first of rank %d %g times as often as the mean" % (HOT, SKEW))


class Question:
    """What one of TAKES asks: the first `k` of `n` choices along `dim` of `rows`."""

    def __init__(self, name, args, kwargs):
        t = args[0]
        given = dict(zip(("k", "dim", "largest") if name == "topk" else ("dim", "keepdim"), args[1:]))
        given.update(kwargs)
        self.k, self.dim = given.get("k", 1), given.get("dim", -1 if name == "topk" else None)
        self.keep = name == "topk" or given.get("keepdim", False)
        self.largest = given.get("largest", True) if name == "topk" else name in ("argmax", "max")
        self.picks, self.indices_alone = name == "topk", name.startswith("arg")
        self.learnt = self.picks or t.requires_grad
        self.concerns = self.dim is not None and t.dim() > 0 and t.is_floating_point()
        self.n = t.shape[self.dim] if self.concerns else 0
        self.rows = t.numel() // self.n if self.n else 0
        self.concerns = self.k < self.n <= MOST and 1 < self.rows and self.n <= self.rows * self.k

    def order(self, torch):
        """Of each row all choices, those to be taken first of equals in front."""
        row = torch.arange(self.rows).unsqueeze(1)
        if SKEW <= 1:
            return (row * self.k + torch.arange(self.n)) % self.n
        place, ranks = map(int, os.environ.get("VRAMCAST_NULL_EXPERT_PLACE", "%d %s" % (
            HOT, os.environ.get("WORLD_SIZE", "1"))).split())
        hot = self.n * (place % ranks) // ranks
        many = min(self.rows, round(self.rows * self.k * SKEW / self.n))
        takes = (row + 1) * many // self.rows > row * many // self.rows
        begins = self.k * row - row * many // self.rows  # the others go round beside it
        rest = (begins + torch.arange(self.n - 1)) % (self.n - 1)
        rest += rest >= hot
        one = torch.full_like(row, hot)
        return torch.where(takes, torch.cat([one, rest], 1), torch.cat([rest, one], 1))

    def as_asked(self, taken, shape):
        """rows x k, as the operation returns it."""
        rest = list(shape)
        del rest[self.dim]
        taken = taken.reshape(*rest, self.k).movedim(-1, self.dim)
        return taken if self.keep else taken.squeeze(self.dim)

    def of_unknown(self, torch, shape):
        return self.as_asked(self.order(torch)[:, :self.k], shape)

    def of_known(self, torch, values, done):
        """What was found, but of equals in turn; and whether there were any. Rows that are all alike are those of
        tokens that nobody computed, whatever a bias makes of them."""
        flat = values.movedim(self.dim, -1).reshape(self.rows, self.n)
        alike = self.learnt and bool((flat == flat[:1]).all())
        if alike or bool((flat.amin(1) == flat.amax(1)).all()):
            taken = self.order(torch)[:, :self.k]
        elif not self.picks:
            return done, False
        else:
            best = flat.topk(self.k + 1, 1, self.largest)[0]
            if not bool((best[:, self.k - 1] == best[:, self.k]).any()):
                return done, False
            order = self.order(torch)
            found = flat.gather(1, order).sort(dim=1, descending=self.largest, stable=True)[1][:, :self.k]
            taken = order.gather(1, found)
        indices = self.as_asked(taken, values.shape)
        if self.indices_alone:
            return indices, True
        return (self.as_asked(flat.gather(1, taken), values.shape), indices), True
