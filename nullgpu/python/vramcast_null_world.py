# SPDX-License-Identifier: Apache-2.0
"""vramcast_null_world.py - one process plays one rank of a large job (`vramcast dryrun --world N`).

PyTorch's own ProcessGroupNCCL runs over the null GPU's libnccl, where every other rank is taken to
do what this one does. What is missing is whoever would meet this rank: the store in which ranks find
each other, gloo, and objects that another rank would have sent. All of that is answered here."""
import hashlib
import os
import pickle
import sys

STORES = ("TCPStore", "FileStore")
SMALL = 65536  # bytes of whole numbers that a root tells ranks which are played after it
NEXT_COLOR = -2  # as in nccl.c: whatever color is asked for next
KEPT = []  # C++ holds stores that are written in Python by their C++ half alone


def world():
    """How many ranks the job has; 0: a dry run of real ranks."""
    return int(os.environ.get("VRAMCAST_NULL_WORLD", "0"))


def rank():
    return int(os.environ.get("RANK", "0"))


# ---- where ranks meet ----

def _make_store(dist):
    class WorldStore(dist.Store):
        """Holds what this rank says. What another rank would have said is made up: 128 bytes, as
        many as an ncclUniqueId has."""

        def __init__(self, *unused, **names):
            super().__init__()
            self.said = {}
            self.patience = names.get("timeout")
            KEPT.append(self)

        def set(self, key, value):
            self.said[key] = value.encode() if isinstance(value, str) else bytes(value)

        def get(self, key):
            made_up = hashlib.sha512(key.encode()).digest() * 2
            return self.said.get(key, made_up)

        def add(self, key, amount):
            total = int(self.said.get(key, b"0")) + amount
            self.said[key] = str(total).encode()
            return total

        def compare_set(self, key, expected, desired):
            if self.said.get(key, b"").decode(errors="replace") == expected:
                self.set(key, desired)
            return self.get(key)

        def append(self, key, value):
            self.set(key, self.said.get(key, b"") + bytes(value, "ascii")
                     if isinstance(value, str) else self.said.get(key, b"") + bytes(value))

        def wait(self, keys, timeout=None):
            pass

        def check(self, keys):
            return all(key in self.said for key in keys)

        def delete_key(self, key):
            return self.said.pop(key, None) is not None

        def num_keys(self):
            return len(self.said)

        def multi_get(self, keys):
            return [self.get(key) for key in keys]

        def multi_set(self, keys, values):
            for key, value in zip(keys, values):
                self.set(key, value)

        def has_extended_api(self):
            return True

        def set_timeout(self, timeout):
            self.patience = timeout

        def clone(self):
            return self
    return WorldStore


def _replace(modules, name, thing):
    for module in modules:
        if hasattr(module, name):
            setattr(module, name, thing)


def _meet_nobody(torch, c10d, modules):
    store = _make_store(torch.distributed)
    for name in STORES:
        _replace(modules + [torch._C._distributed_c10d], name, store)

    def rendezvous(url, rank_=-1, world_size=-1, **unused):
        given = unused.get("rank", rank_)
        yield (store(), given if given is not None and given >= 0 else rank(),
               world_size if world_size and world_size > 0 else world())
    _replace(modules, "rendezvous", rendezvous)
    _replace(modules, "_store_based_barrier", lambda *unused, **names: None)


# ---- groups ----

def _tell_libnccl(color, ranks, mine):
    """ncclCommSplit would ask the others how many they are."""
    import ctypes
    library = ctypes.CDLL(None)
    if hasattr(library, "vc_null_group") and mine in ranks:
        library.vc_null_group(ctypes.c_int(color), len(ranks), ranks.index(mine))


def _without_gloo(backend):
    """gloo's part is played by PyTorch's own fake process group: memory of the host alone."""
    text = str(backend).lower()
    if text == "undefined":
        return "cpu:fake,cuda:nccl"
    return text.replace("gloo", "fake") if "gloo" in text else backend


def _take_any_options(c10d):
    """Options are of one backend, and handed to all: gloo does not look at them, its part must not either."""
    plugin = c10d.Backend._plugins.get("FAKE")
    kind = getattr(sys.modules["torch"]._C._distributed_c10d.FakeProcessGroup, "Options", None)
    if plugin is None or not plugin.extended_api:
        return

    def create(common, options):
        return plugin.creator_fn(common, options if kind and isinstance(options, kind) else None)
    c10d.Backend._plugins["FAKE"] = plugin._replace(creator_fn=create)


def _watch_groups(c10d, seen):
    make = c10d._new_process_group_helper
    color = getattr(c10d, "_process_group_color", None)

    def helper(group_size, group_rank, global_ranks_in_group, backend, *rest, **names):
        ranks = list(global_ranks_in_group)
        if ranks:
            seen.add(tuple(ranks))
        if color is not None:
            _tell_libnccl(color(ranks), ranks or list(range(world())), rank())
        return make(group_size, group_rank, global_ranks_in_group, _without_gloo(backend),
                    *rest, **names)
    c10d._new_process_group_helper = helper
    split = getattr(c10d.ProcessGroup, "split_group", None)
    if split is None:
        return

    def split_group(self, ranks, *args, **names):
        _tell_libnccl(NEXT_COLOR, list(ranks), self.rank())
        return split(self, ranks, *args, **names)
    c10d.ProcessGroup.split_group = split_group


# ---- collectives of objects ----

def _folder():
    return os.path.join(os.environ.get("VRAMCAST_NULL_REPORT", ""), "world")


class _Said:
    """What each rank that was played told the others, so that those played after it hear it."""

    def __init__(self, what):
        self.what, self.calls = what, 0

    def _path(self, number, who):
        return os.path.join(_folder(), "%s.%d.%s" % (self.what, number, who))

    def hear_any(self, otherwise):
        """From whichever rank said it."""
        import glob
        found = sorted(glob.glob(self._path(self.calls, "*")))
        return self.hear(found[0].rpartition(".")[2], otherwise) if found else otherwise

    def tell(self, thing):
        try:
            os.makedirs(_folder(), exist_ok=True)
            with open(self._path(self.calls, rank()), "wb") as f:
                pickle.dump(thing, f)
        except (OSError, pickle.PicklingError, TypeError, AttributeError):
            pass  # then nobody hears it

    def hear(self, who, otherwise):
        """From that rank, if it was played in this dry run; the files are this program's own."""
        try:
            with open(self._path(self.calls, who), "rb") as f:
                return pickle.load(f)
        except (OSError, EOFError):
            if who != rank():  # `vramcast dryrun` may play rank 0 first and this one again
                self._note_unheard()
            return otherwise

    def _note_unheard(self):
        try:
            os.makedirs(_folder(), exist_ok=True)
            open(os.path.join(_folder(), "unheard"), "wb").close()
        except OSError:
            pass


def _copies(thing, n):
    text = pickle.dumps(thing)
    return [pickle.loads(text) for _ in range(n)]


def _on_host(c10d, group):
    find = getattr(c10d, "_get_object_coll_device", None) or c10d._get_pg_default_device
    return str(find(group)).startswith("cpu")


def _root(c10d, names, position, args, key="src"):
    """The global rank of the root, however the caller named it."""
    inside = names.get("group_" + key)
    if inside is not None:
        return c10d.get_global_rank(names.get("group") or c10d._get_default_group(), inside)
    given = names.get(key, args[position] if len(args) > position else None)
    return 0 if given is None else given


def _name(c10d, group):
    """The same for all ranks of a group."""
    ranks = c10d.get_process_group_ranks(group or c10d._get_default_group())
    return hashlib.sha256(repr(ranks).encode()).hexdigest()[:12]


def _decides(tensor):
    """Whole numbers, by which programs compare or decide, as the other stand-ins of NCCL carry them."""
    return not tensor.is_floating_point() and not tensor.is_complex() and \
        tensor.numel() * tensor.element_size() <= SMALL


def _collect_objects(torch, c10d, modules):
    said, sent, got, arriving, numbers = _Said("told"), {}, {}, [], {}
    gather_all, broadcast_list = c10d.all_gather_object, c10d.broadcast_object_list
    send_list, receive_list = c10d.send_object_list, c10d.recv_object_list
    send, receive = c10d.broadcast, c10d.recv

    def announce(objects):
        """The two tensors as which a list of objects travels."""
        texts = [pickle.dumps(thing) for thing in objects]
        arriving[:] = [torch.tensor([len(text) for text in texts], device="cpu"),
                       torch.tensor(list(b"".join(texts)), dtype=torch.uint8, device="cpu")]

    def all_gather_object(object_list, obj, group=None):
        if not _on_host(c10d, group):
            return gather_all(object_list, obj, group)
        object_list[:] = _copies(obj, len(object_list))

    def gather_object(obj, object_gather_list=None, *args, **names):
        if object_gather_list is not None:
            object_gather_list[:] = _copies(obj, len(object_gather_list))

    def broadcast_object_list(object_list, *args, **names):
        root = _root(c10d, names, 0, args)
        group = names.get("group", args[1] if len(args) > 1 else None)
        said.calls += 1
        if root == rank():
            said.tell(object_list)
            return broadcast_list(object_list, *args, **names)
        heard = said.hear(root, object_list)
        if _on_host(c10d, group):
            object_list[:] = heard
            return None
        announce(heard)
        return broadcast_list(object_list, *args, **names)

    def broadcast(tensor, *args, **names):
        group = names.get("group", args[1] if len(args) > 1 else None)
        root = _root(c10d, names, 0, args)
        name = "numbers." + _name(c10d, group)
        line = numbers.setdefault(name, _Said(name))
        work = send(tensor, *args, **names)
        if arriving:
            tensor.copy_(arriving.pop(0))
        elif _decides(tensor) and root == rank():
            line.tell(tensor.cpu())
        elif _decides(tensor):
            heard = line.hear(root, None)
            if heard is not None and heard.shape == tensor.shape:
                tensor.copy_(heard)
        line.calls += 1
        return work

    def along(lines, offset):
        """The messages between ranks so far apart: stages of a pipeline hand on alike things."""
        return lines.setdefault(offset, _Said("sent%+d" % offset))

    def send_object_list(object_list, *args, **names):
        line = along(sent, _root(c10d, names, 0, args, "dst") - rank())
        line.tell(object_list)
        line.calls += 1
        return send_list(object_list, *args, **names)

    def recv_object_list(object_list, *args, **names):
        who = _root(c10d, names, 0, args)
        line = along(got, rank() - who)
        announce(line.hear(who, None) or line.hear_any(object_list))
        line.calls += 1
        names.pop("use_batch", None)  # one by one they go through recv below
        return receive_list(object_list, *args, **names)

    def recv(tensor, *args, **names):
        who = receive(tensor, *args, **names)
        if arriving:
            tensor.copy_(arriving.pop(0))
        return who

    def scatter_object_list(output, given=None, *args, **names):
        said.calls += 1
        group = names.get("group", args[1] if len(args) > 1 else None)
        if given is not None:
            said.tell(given)
        given = given or said.hear(_root(c10d, names, 0, args), None)
        output[0] = given[c10d.get_rank(group)] if given else None

    for f in (all_gather_object, gather_object, broadcast_object_list, broadcast,
              send_object_list, recv_object_list, recv, scatter_object_list):
        _replace(modules, f.__name__, f)


# ---- collectives of tensors on the host ----

def _collect_on_host(c10d, modules):
    reduce_all, gather_all = c10d.all_reduce, c10d.all_gather

    def all_reduce(tensor, op=c10d.ReduceOp.SUM, group=None, async_op=False):
        work = reduce_all(tensor, op, group, async_op)
        if tensor.device.type == "cpu" and op == c10d.ReduceOp.SUM:
            tensor.mul_(c10d.get_world_size(group))
        return work

    def all_gather(tensor_list, tensor, group=None, async_op=False):
        work = gather_all(tensor_list, tensor, group, async_op)
        for other in tensor_list if tensor.device.type == "cpu" else ():
            other.copy_(tensor)
        return work

    for f in (all_reduce, all_gather):
        _replace(modules, f.__name__, f)


# ---- roles ----

def _lines(mesh):
    """(name, ranks) of each line of the mesh that goes through a rank."""
    table = mesh.mesh
    names = mesh.mesh_dim_names or ["dim %d" % i for i in range(table.dim())]
    for i, name in enumerate(names):
        for line in table.swapaxes(i, -1).reshape(-1, table.size(i)).tolist():
            yield name, line


def _places(lines):
    """(what, rank): the last and a middle one of each line that rank 0 is on."""
    for name, line in lines:
        if 0 not in line or len(line) < 2:
            continue
        first = line.index(0)
        yield "%s: last of %d" % (name, len(line)), line[-1 if first != len(line) - 1 else 0]
        if len(line) > 2:
            yield "%s: middle of %d" % (name, len(line)), line[len(line) // 2]


def _write_roles(path, groups, meshes):
    lines = [line for mesh in meshes for line in _lines(mesh)]
    lines += [("group", list(ranks)) for ranks in sorted(groups)]
    lines.append(("world", list(range(world()))))
    found = {0: "first of all"}
    for what, who in _places(lines):
        found.setdefault(who, what)
    with open(path, "w") as f:
        for who in found:
            f.write("%d %s\n" % (who, found[who]))


def _find_roles(groups):
    path = os.environ.get("VRAMCAST_NULL_ROLES")
    if not path:
        return
    import atexit
    meshes = []
    try:
        from torch.distributed.device_mesh import DeviceMesh
    except ImportError:
        DeviceMesh = None
    if DeviceMesh is not None:
        make = DeviceMesh.__init__

        def init(self, *args, **names):
            make(self, *args, **names)
            if self.mesh.numel() == world():
                meshes.append(self)
        DeviceMesh.__init__ = init
    atexit.register(_write_roles, path, groups, meshes)
    leave, mine = os._exit, os.getpid()

    def leave_at_once(status):
        if os.getpid() == mine:  # not a worker's end
            _write_roles(path, groups, meshes)
        leave(status)
    os._exit = leave_at_once


# ---- starting ----

def launch(api):
    """torchrun and what is built on it would start many processes: here it starts one."""
    class elastic_launch:
        def __init__(self, config, entrypoint):
            self.entrypoint = entrypoint

        def __call__(self, *args):
            sys.stdout.flush()
            if not isinstance(self.entrypoint, str):
                return {rank(): self.entrypoint(*args)}
            import subprocess
            code = subprocess.call([self.entrypoint] + [str(a) for a in args])
            raise SystemExit(code if code >= 0 else 128 - code)
    api.elastic_launch = elastic_launch


def start(torch):
    """Called when `import torch` has finished."""
    dist = getattr(torch, "distributed", None)
    if dist is None or not dist.is_available():
        return
    import torch.distributed.distributed_c10d as c10d
    import torch.distributed.rendezvous  # noqa: F401
    import torch.testing._internal.distributed.fake_pg  # noqa: F401  the backend "fake"
    modules = [dist, c10d, sys.modules["torch.distributed.rendezvous"]]
    groups = set()
    _take_any_options(c10d)
    _meet_nobody(torch, c10d, modules)
    _watch_groups(c10d, groups)
    _collect_objects(torch, c10d, modules)
    _collect_on_host(c10d, modules)
    _find_roles(groups)
