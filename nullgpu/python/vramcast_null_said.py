# SPDX-License-Identifier: Apache-2.0
"""vramcast_null_said.py - what ranks of a job that are played one after another told each other
(`vramcast dryrun --world N`).

Files in the private folder of the dry run, by what was said, the number of the call and the rank. A rank that
tells something new to one that was played before and had asked for it marks that one: it is to be played
again. nullgpu/exchange.c does the same for what NCCL carries."""
import glob
import hashlib
import io
import os
import pickle
import sys


def rank():
    return int(os.environ.get("RANK", "0"))


def folder():
    return os.path.join(os.environ.get("VRAMCAST_NULL_REPORT", ""), "world")


def _write(name, data, how="wb"):
    try:
        os.makedirs(folder(), exist_ok=True)
        with open(os.path.join(folder(), name), how) as f:
            f.write(data)
    except OSError:
        pass  # then nobody hears it


def _read(name):
    try:
        with open(os.path.join(folder(), name), "rb") as f:
            return f.read()
    except OSError:
        return None


def short(text):
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def tensor_of(dtype, shape, data):
    torch = sys.modules["torch"]
    dtype = getattr(torch, dtype)
    return torch.frombuffer(bytearray(data), dtype=dtype).reshape(shape) if data else torch.empty(shape, dtype=dtype)


class _Pickler(pickle.Pickler):
    """The same bytes for the same values: PyTorch's own are others each time."""

    def reducer_override(self, thing):
        torch = sys.modules.get("torch")
        if torch is None or type(thing) is not torch.Tensor or thing.device.type != "cpu" or \
                thing.layout is not torch.strided or thing.is_quantized:
            return NotImplemented
        data = bytes(thing.detach().contiguous().reshape(-1).view(torch.uint8).tolist())
        return tensor_of, (str(thing.dtype).rpartition(".")[2], tuple(thing.shape), data)


def packed(thing):
    out = io.BytesIO()
    _Pickler(out).dump(thing)
    return out.getvalue()


class _Asked:
    """Which ranks that were played before asked for what."""
    by = None

    @classmethod
    def who(cls, name, any_name):
        if cls.by is None:
            cls.by = {}
            for path in glob.glob(os.path.join(folder(), "asked.*")):
                who = path.rpartition(".")[2]
                if who != str(rank()):
                    cls.by[who] = set((_read(os.path.basename(path)) or b"").decode().split("\n"))
        return [who for who, names in cls.by.items() if name in names or any_name in names]


class Said:
    """One line of things that ranks say, each in its turn. The files are this program's own."""

    def __init__(self, what):
        self.what, self.calls, self.asked = what, 0, set()

    def _name(self, who):
        return "%s.%d.%s" % (self.what, self.calls, who)

    def tell(self, thing, alike=False):
        """`alike`: all say something, and who said the same has heard nothing new."""
        try:
            text = packed(thing)
        except (pickle.PicklingError, TypeError, AttributeError):
            return  # then nobody hears it
        name = self._name(rank())
        if _read(name) == text:
            return
        _write(name, text)
        for who in _Asked.who(name, self._name("*")):
            if not alike or _read(self._name(who)) != text:
                _write("stale." + who, b"")

    def _ask(self, who):
        name = self._name(who)
        if name not in self.asked:
            self.asked.add(name)
            _write("asked.%d" % rank(), (name + "\n").encode(), "ab")

    def hear(self, who, otherwise):
        """From that rank, if it was played in this dry run."""
        self._ask(who)
        text = _read(self._name(who))
        return otherwise if text is None else pickle.loads(text)

    def _who_said(self):
        found = glob.glob(os.path.join(glob.escape(folder()), glob.escape(self._name("")) + "*"))
        return sorted(int(path.rpartition(".")[2]) for path in found)

    def hear_any(self, otherwise):
        """From whichever rank said it."""
        self._ask("*")
        found = self._who_said()
        return pickle.loads(_read(self._name(found[0]))) if found else otherwise

    def hear_like(self, who):
        """From that rank; where it was not played from the next one below that said it. And whether that is
        known: the rank's own word, or the same of several."""
        self._ask("*")
        said = {one: _read(self._name(one)) for one in self._who_said() if one != rank()}
        if not said:
            return None, False
        one = max((one for one in said if one <= who), default=min(said))
        return pickle.loads(said[one]), one == who or (len(said) > 1 and len(set(said.values())) == 1)

    def hear_all(self, ranks, mine):
        """What each of these says, and whether that is known: of all, or the same of several. Who was not
        played is taken to say what the one below it says."""
        self.tell(mine, alike=True)
        self._ask("*")
        own = packed(mine)
        said = {who: _read(self._name(who)) for who in self._who_said() if who in set(ranks)}
        said[rank()] = own
        texts, last = [], said[min(said)]
        for who in ranks:
            last = said.get(who, last)
            texts.append(last)
        sure = len(said) == len(ranks) or (len(said) > 1 and all(text == own for text in said.values()))
        return [pickle.loads(text) for text in texts], sure


# ---- what was made up ----

def where():
    """The line of the program that is being run."""
    frame = sys._getframe(1)
    ours = os.path.dirname(os.path.abspath(__file__))
    library = os.sep + "torch" + os.sep
    first = None
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith((ours, "<")):
            at = "%s:%d" % (os.path.basename(path), frame.f_lineno)
            if library not in path:
                return at
            first = first or at
        frame = frame.f_back
    return first or "the program"


def ranks_decide(driver, what):
    """The verdict names it: something that ranks which were not played would decide."""
    if hasattr(driver, "vc_null_ranks_decide"):
        driver.vc_null_ranks_decide(("%s, read at %s" % (what, where())).encode()[:119])
