# SPDX-License-Identifier: Apache-2.0
"""vramcast_null_world.py - one process plays one rank of a large job (`vramcast dryrun --world N`).

PyTorch's own ProcessGroupNCCL runs over the null GPU's libnccl, where every other rank is taken to
do what this one does. What is missing is whoever would meet this rank: the store in which ranks find
each other, gloo, and objects that another rank would have sent. All of that is answered here."""
import ctypes
import functools
import hashlib
import os
import pickle
import re
import socket
import struct
import sys

from vramcast_null_said import Said, rank, ranks_decide, short

STORES = ("TCPStore", "FileStore", "HashStore")
ROOTS = 8  # so many ranks are played because they broadcast numbers
SMALL = 65536  # bytes of a tensor on the host that ranks tell each other
MESSAGE = ctypes.c_char_p(b"a message of another rank")  # the stand-ins keep where it lies
OF_NCCL = "//cuda//"  # in the keys under which PyTorch keeps what a communicator is found by
# Where a rank says where its symmetric memory is found; the last number is the rank in its group.
OF_SYMMETRIC = re.compile(r"(\w+SymmetricMemory/\d+)/(\d+)$")
OF_EXPERTS = re.compile(r"(^|_)(ep|expert_model_parallel)(_|$)", re.I)  # as libraries describe their groups
NEXT_COLOR = -2  # as in nccl.c: whatever color is asked for next
HANDLE = 0x63706972616D7672
MOST_STAGES = 64
GROUPS = {}  # ranks of each group that PyTorch made, by its name
PEERS = set()  # ranks that this one exchanges messages with
KEPT = []  # C++ holds stores that are written in Python by their C++ half alone


def world():
    """How many ranks the job has; 0: a dry run of real ranks."""
    return int(os.environ.get("VRAMCAST_NULL_WORLD", "0"))


# ---- where ranks meet ----

def _nccl_id(key):
    return hashlib.sha512(key.encode()).digest() * 2  # 128 bytes, as many as an ncclUniqueId has


def _neighbour(value, peer):
    """Another rank's symmetric memory is taken to be this one's, on a card of its own. A request for a rendezvous
    (CUDASymmetricMemoryTypes.hpp) begins with card, process and size; what else ranks tell each other is shorter."""
    if len(value) < 32:
        return value
    card, process, size = struct.unpack_from("iiQ", value)
    if peer == 0:
        _lend_multicast(process, size)
    return struct.pack("i", card + 1 + peer) + value[4:]


def _lend_multicast(process, size):
    """The first rank of a group makes the multicast object and sends it to the sockets of the others."""
    with open("/proc/net/unix") as table:
        paths = [line.split()[-1] for line in table if line.rstrip().endswith("/symm_mem-%d" % process)]
    shared = os.memfd_create("vramcast")
    try:
        os.write(shared, struct.pack("QQQi4x", HANDLE, 0, size, 0))  # struct handle of share.c
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            for path in paths:
                sender.sendmsg([b"fd"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", shared))], 0, path)
    finally:
        os.close(shared)


def _make_store(dist, driver):
    failure = getattr(dist, "DistStoreError", RuntimeError)

    class WorldStore(dist.Store):
        """Holds what this rank says, and hears what ranks said that were played before. A key that nobody
        set is waited for by a real store; here nobody will."""

        def __init__(self, *unused, **names):
            super().__init__()
            self.said = {}
            self.patience = names.get("timeout")
            KEPT.append(self)

        def set(self, key, value):
            value = value.encode() if isinstance(value, str) else bytes(value)
            self.said[key] = value
            symmetric = OF_SYMMETRIC.search(key)
            if symmetric:
                self.said[symmetric.group(1)] = value
            elif OF_NCCL not in key:
                Said("store." + short(key)).tell(value)
            elif hasattr(driver, "vc_null_id") and len(value) == len(_nccl_id(key)):
                driver.vc_null_id(value, _nccl_id(key))
                _tell_members(key)

        def _find(self, key):
            symmetric = OF_SYMMETRIC.search(key)
            if symmetric and key not in self.said and symmetric.group(1) in self.said:
                return _neighbour(self.said[symmetric.group(1)], int(symmetric.group(2)))
            if key not in self.said and OF_NCCL in key:
                _tell_members(key)
                return _nccl_id(key)
            return self.said[key] if key in self.said else Said("store." + short(key)).hear_any(None)

        def get(self, key):
            value = self._find(key)
            if value is None:
                ranks_decide(driver, "a key of the store that nobody set, " + key)
                raise failure("vramcast: no rank that was played has set the key %r of the store; a real one "
                              "waits for it" % key)
            return value

        def add(self, key, amount):
            """Every rank adds as much, and this one comes last."""
            total = int(self.said.get(key, b"0")) + amount * world()
            self.said[key] = str(total).encode()
            return total

        def compare_set(self, key, expected, desired):
            there = self._find(key)
            if (there or b"").decode(errors="replace") == expected:
                self.set(key, desired)
            return self._find(key) or expected.encode()

        def append(self, key, value):
            value = value.encode() if isinstance(value, str) else bytes(value)
            self.set(key, self.said.get(key, b"") + value)

        def wait(self, keys, timeout=None):
            for key in keys:
                self.get(key)

        def check(self, keys):
            return all(self._find(key) is not None for key in keys if OF_NCCL not in key)

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


def _meet_nobody(torch, c10d, modules, driver):
    store = _make_store(torch.distributed, driver)
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
    library = ctypes.CDLL(None)
    if hasattr(library, "vc_null_group") and mine in ranks:
        library.vc_null_group(ctypes.c_int(color), len(ranks), ranks.index(mine), _array(ranks))


def _array(ranks):
    return (ctypes.c_int * len(ranks))(*ranks)


def _tell_members(key):
    """Who is in the communicator that is found by this key: "default_pg/0//GROUP//cuda//0"; "//cuda//0:8" is of two;
    "//cuda//UniqueNCCLID:1" is the second of those that a large one is found by."""
    library = ctypes.CDLL(None)
    before, _, device = key.partition(OF_NCCL)
    ranks = GROUPS.get(before.rsplit("//", 1)[-1], range(world()))
    if re.fullmatch(r"\d+:\d+", device):
        ranks = [ranks[int(i)] for i in device.split(":")]
    if hasattr(library, "vc_null_members"):
        library.vc_null_members(_nccl_id(key), len(ranks), _array(ranks))


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


def _answer_reducers(torch):
    """DistributedDataParallel reads what a reduction leaves behind, and PyTorch's fake process group leaves nothing:
    in gloo's place the bucket itself is what is left."""
    kind = torch.nn.parallel.DistributedDataParallel
    make = kind.__init__

    def left(state, bucket):
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    def made(self, *args, **kwargs):
        make(self, *args, **kwargs)
        group = getattr(self, "process_group", None)
        if group is not None and group._get_backend(torch.device(self.device_type)).name() == "fake":
            self.register_comm_hook(None, left)
    kind.__init__ = functools.wraps(make)(made)


def _note_experts(ranks, what):
    """Over which ranks experts are spread, for vramcast_null_routes.py."""
    hot = int(os.environ.get("VRAMCAST_NULL_EXPERT_SKEW", "1 0").split()[1])
    if hot in ranks and OF_EXPERTS.search(what):
        os.environ["VRAMCAST_NULL_EXPERT_PLACE"] = "%d %d" % (ranks.index(hot), len(ranks))


def _watch_groups(c10d, seen):
    make = c10d._new_process_group_helper
    color = getattr(c10d, "_process_group_color", None)

    def helper(group_size, group_rank, global_ranks_in_group, backend, *rest, **names):
        ranks = list(global_ranks_in_group)
        if ranks:
            seen.add(tuple(ranks))
            GROUPS[str(names.get("group_name") or (rest + ("", ""))[1])] = ranks
        _note_experts(ranks, names.get("group_desc") or "")
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


def _ranks(c10d, group):
    return c10d.get_process_group_ranks(group or c10d._get_default_group())


def _mark(driver, tensor, what):
    """What a tensor on the card holds is decided by ranks that were not played, or not (None)."""
    if hasattr(driver, "vc_null_made_up") and tensor.is_contiguous():
        driver.vc_null_made_up(ctypes.c_void_p(tensor.data_ptr()), ctypes.c_uint64(tensor.nbytes), what)


class _Lines:
    """What is said in each group, call by call."""

    def __init__(self, c10d, what):
        self.c10d, self.what, self.lines = c10d, what, {}

    def next(self, group):
        name = "%s.%s" % (self.what, short(repr(_ranks(self.c10d, group))))
        line = self.lines.setdefault(name, Said(name))
        line.calls += 1
        return line


def _collect_objects(torch, c10d, modules, driver, roots):
    lines, sent, got, arriving, inside = _Lines(c10d, "told"), {}, {}, [], []
    gather_all, gather_one = c10d.all_gather_object, c10d.gather_object
    broadcast_list = c10d.broadcast_object_list
    send_list, receive_list = c10d.send_object_list, c10d.recv_object_list
    send, receive = c10d.broadcast, c10d.recv

    def announce(objects):
        """The two tensors as which a list of objects travels."""
        texts = [pickle.dumps(thing) for thing in objects]
        arriving[:] = [torch.tensor([len(text) for text in texts], device="cpu"),
                       torch.tensor(list(b"".join(texts)), dtype=torch.uint8, device="cpu")]

    def from_root(names, position, args):
        """The root, its group, and whether it is this rank."""
        root = _root(c10d, names, position, args)
        group = names.get("group", args[position + 1] if len(args) > position + 1 else None)
        return root, group, root == rank()

    def heard_from(line, root, what, otherwise):
        heard = line.hear(root, None)
        if heard is None:
            ranks_decide(driver, "%s of rank %d, which was not played" % (what, root))
        return otherwise if heard is None else heard

    def gathered(what, obj, group):
        things, sure = lines.next(group).hear_all(_ranks(c10d, group), obj)
        if not sure:
            ranks_decide(driver, what)
        return things

    def all_gather_object(object_list, obj, group=None):
        if not _on_host(c10d, group):  # for the memory that it takes
            gather_all(object_list, obj, group)
        object_list[:] = gathered("all_gather_object", obj, group)

    def gather_object(obj, object_gather_list=None, dst=None, group=None, **names):
        things = gathered("gather_object", obj, group)
        if object_gather_list is not None:
            object_gather_list[:] = things

    def broadcast_object_list(object_list, *args, **names):
        root, group, mine = from_root(names, 0, args)
        line = lines.next(group)
        if mine:
            line.tell(object_list)
        heard = object_list if mine else heard_from(line, root, "broadcast_object_list", object_list)
        if _on_host(c10d, group):
            object_list[:] = heard
            return None
        if not mine:
            announce(heard)
        return broadcast_list(object_list, *args, **names)

    def broadcast(tensor, *args, **names):
        work = send(tensor, *args, **names)
        root, group, mine = from_root(names, 0, args)
        if arriving:
            tensor.copy_(arriving.pop(0))
        elif tensor.is_cuda and _decides(tensor):
            roots.add(root)  # as libnccl hears it
        elif tensor.device.type == "cpu" and tensor.nbytes <= SMALL:
            line = lines.next(group)
            if mine:
                line.tell(tensor)
            else:
                heard = heard_from(line, root, "broadcast", tensor)
                if heard.shape == tensor.shape:
                    tensor.copy_(heard)
        return work

    def along(lines, offset, what="sent"):
        """The messages between ranks so far apart: stages of a pipeline hand on alike things."""
        return lines.setdefault((offset, what), Said("%s%+d" % (what, offset)))

    def say_along(thing, who, what="sent"):
        line = along(sent, who - rank(), what)
        line.tell(thing)
        line.calls += 1

    def hear_along(who, what="sent", tensor=None):
        """Of the sender itself, or of one that told a rank as far away. Into `tensor`, if there is one."""
        line = along(got, rank() - who, what)
        heard, sure = line.hear_like(who)
        line.calls += 1
        if tensor is not None and heard is not None and heard.shape == tensor.shape:
            tensor.copy_(heard)
        if tensor is not None and tensor.is_cuda:
            _mark(driver, tensor, None if sure else MESSAGE)
        elif not sure:
            ranks_decide(driver, "a message of rank %d, which was not played" % who)
        return heard

    def as_one(function, *args, **names):
        """The messages that it is made of are none of their own."""
        inside.append(1)
        try:
            return function(*args, **names)
        finally:
            inside.pop()

    def send_object_list(object_list, *args, **names):
        say_along(object_list, _root(c10d, names, 0, args, "dst"))
        return as_one(send_list, object_list, *args, **names)

    def recv_object_list(object_list, *args, **names):
        heard = hear_along(_root(c10d, names, 0, args))
        announce(object_list if heard is None else heard)
        names.pop("use_batch", None)  # one by one they go through recv below
        return as_one(receive_list, object_list, *args, **names)

    def recv(tensor, *args, **names):
        who = receive(tensor, *args, **names)
        if arriving:
            tensor.copy_(arriving.pop(0))
        return who

    def scatter_object_list(output, given=None, *args, **names):
        root, group, mine = from_root(names, 0, args)
        line = lines.next(group)
        if mine:
            line.tell(given)
        else:
            given = heard_from(line, root, "scatter_object_list", None)
        output[0] = given[c10d.get_rank(group)] if given else None

    for f in (all_gather_object, gather_object, broadcast_object_list, broadcast,
              send_object_list, recv_object_list, recv, scatter_object_list):
        _replace(modules, f.__name__, f)
    return say_along, hear_along, lambda: bool(inside), as_one


# ---- messages of whole numbers between ranks ----

def _decides(tensor):
    """Whole numbers, by which programs compare or decide, as the other stand-ins of NCCL carry them."""
    return not tensor.is_floating_point() and not tensor.is_complex() and tensor.nbytes <= SMALL


def _note_peer(c10d, args, names, which):
    """That rank of the job is at the other end of a message."""
    peer, group = names.get(which, args[0] if args else None), names.get("group", args[1] if len(args) > 1 else None)
    if peer is None and names.get("group_" + which) is not None:
        peer = c10d.get_process_group_ranks(group or c10d.GroupMember.WORLD)[names["group_" + which]]
    if peer is not None:
        PEERS.add(peer)


def _send_numbers(c10d, modules, driver, along):
    """What stages of a pipeline announce to each other. libnccl carries what a rank sent to this one; where
    that one was not played, another that sent to a rank as far away is heard."""
    say_along, hear_along, is_inside, as_one = along

    def saying(send):
        def said(tensor, *args, **names):
            _note_peer(c10d, args, names, "dst")
            own = not is_inside()  # not what another one of these calls
            work = as_one(send, tensor, *args, **names)
            if _decides(tensor) and own:
                say_along(tensor.cpu(), _root(c10d, names, 0, args, "dst"), "numbers")
            return work
        said.__name__ = send.__name__
        return said

    def hearing(receive):
        def heard(tensor, *args, **names):
            _note_peer(c10d, args, names, "src")
            own = not is_inside()
            work = as_one(receive, tensor, *args, **names)
            if _decides(tensor) and own:
                if tensor.is_cuda and hasattr(driver, "vc_null_settle"):
                    driver.vc_null_settle(ctypes.c_void_p(tensor.data_ptr()), ctypes.c_size_t(tensor.nbytes))
                hear_along(_root(c10d, names, 0, args), "numbers", tensor)
            return work
        heard.__name__ = receive.__name__
        return heard
    for wrap, name in (saying, "isend"), (saying, "send"), (hearing, "irecv"), (hearing, "recv"):
        _replace(modules, name, wrap(getattr(c10d, name)))


# ---- collectives of tensors on the host ----

def _reduced(torch, op, things):
    """All that ranks gave, by the name of the operation."""
    name = str(op).rpartition(".")[2]
    stacked = torch.stack(things)
    if name == "AVG":
        return stacked.sum(0) / len(things)
    ways = {"SUM": stacked.sum, "MAX": stacked.amax, "MIN": stacked.amin, "PRODUCT": stacked.prod}
    if name in ways:
        return ways[name](0)
    way = {"BAND": torch.bitwise_and, "BOR": torch.bitwise_or, "BXOR": torch.bitwise_xor}.get(name)
    return functools.reduce(way, things) if way else things[0]


def _collect_on_host(torch, c10d, modules, driver):
    reduce_all, gather_all = c10d.all_reduce, c10d.all_gather
    lines = _Lines(c10d, "host")

    def given(tensor, group, what):
        things, sure = lines.next(group).hear_all(_ranks(c10d, group), tensor.detach().clone())
        if not sure and not tensor.is_floating_point():
            ranks_decide(driver, what)
        return things

    def all_reduce(tensor, op=c10d.ReduceOp.SUM, group=None, async_op=False):
        work = reduce_all(tensor, op, group, async_op)
        if tensor.device.type == "cpu" and tensor.nbytes <= SMALL:
            tensor.copy_(_reduced(torch, op, given(tensor, group, "all_reduce")))
        elif tensor.device.type == "cpu" and op == c10d.ReduceOp.SUM:
            tensor.mul_(c10d.get_world_size(group))
        return work

    def all_gather(tensor_list, tensor, group=None, async_op=False):
        work = gather_all(tensor_list, tensor, group, async_op)
        if tensor.device.type == "cpu" and tensor.nbytes <= SMALL:
            for other, thing in zip(tensor_list, given(tensor, group, "all_gather")):
                other.copy_(thing)
        elif tensor.device.type == "cpu":
            for other in tensor_list:
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


def _stages(groups):
    """(what, rank) of the pipeline of rank 0: the smallest group with all that it exchanges messages with."""
    known = list(groups) + [tuple(range(world()))] * (world() <= MOST_STAGES)
    line = min((g for g in known if 0 in g and PEERS and PEERS <= set(g)), key=len, default=())
    return [("stage %d of %d" % (i + 1, len(line)), who) for i, who in enumerate(line) if who]


def _write_roles(path, groups, meshes, roots):
    stages = _stages(groups) if os.environ.get("VRAMCAST_NULL_STAGES") else ()
    lines = [line for mesh in meshes for line in _lines(mesh)]
    lines += [("group", list(ranks)) for ranks in sorted(groups)]
    lines.append(("world", list(range(world()))))
    found = {0: "first of all"}
    for what, who in stages or _places(lines):
        found.setdefault(who, what)
    for who in () if stages else sorted(roots - {rank()})[:ROOTS]:
        found.setdefault(who, "broadcasts to rank %d" % rank())
    with open(path, "w") as f:
        for who in found:
            f.write("%d %s\n" % (who, found[who]))


def _find_roles(groups, roots):
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
    atexit.register(_write_roles, path, groups, meshes, roots)
    leave, mine = os._exit, os.getpid()

    def leave_at_once(status):
        if os.getpid() == mine:  # not a worker's end
            _write_roles(path, groups, meshes, roots)
        leave(status)
    os._exit = leave_at_once


# ---- who reads what was made up ----

def _name_readers(dist, driver):
    """Device memory that holds what other ranks would have decided is copied to the host."""
    if not hasattr(driver, "vc_null_on_made_up"):
        return
    compares = []  # DistributedDataParallel, whether all ranks have the same parameters: else no rank would go on
    verify = getattr(dist, "_verify_params_across_processes", None)

    def verified(*args, **names):
        compares.append(True)
        try:
            return verify(*args, **names)
        finally:
            compares.pop()
    if verify:
        dist._verify_params_across_processes = verified
    told = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(
        lambda what: compares or ranks_decide(driver, "%s of whole numbers" % what.decode()))
    KEPT.append(told)
    driver.vc_null_on_made_up(told)


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
    groups, roots, driver = set(), set(), ctypes.CDLL(None)
    _take_any_options(c10d)
    _answer_reducers(torch)
    _meet_nobody(torch, c10d, modules, driver)
    _watch_groups(c10d, groups)
    along = _collect_objects(torch, c10d, modules, driver, roots)
    _send_numbers(c10d, modules, driver, along)
    _collect_on_host(torch, c10d, modules, driver)
    _name_readers(dist, driver)
    _find_roles(groups, roots)
