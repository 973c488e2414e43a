# SPDX-License-Identifier: Apache-2.0
"""budget_hook.py - what `fit --find budget` chose, made in a program that knows nothing of it. The build puts it behind
change_hook.py.

VRAMCAST_BUDGET is {"observe": true}, or "coarse", where units are not cut for what they keep, or {"units": [{"name": "GPT2LMHeadModel/transformer.h.0", "do": "recompute"}, ...]};
"timed": true: kernels tell of the marks, too; "limit": bytes that the allocator may reserve; "share": percent of what it would
that torch.compile may keep, where that decides in place of units.
A unit is the calls of one module; its name is the class of the outermost module that is called, and its own in there.
What is done with one is a method of _Budget. Marks in the recording say which units there are ("budget unit NAME") and
where their passes begin and end: "budget F 3", "budget E 3", "budget B 3" (its backward pass)."""


def alone(tensor):
    """What a pack hook may return: a result that is saved keeps its node alive, which keeps it."""
    return tensor if tensor.grad_fn is None else tensor.detach()


def uncached(args, kwargs):
    """What is computed twice without a cache, which would be written to twice."""
    return ([None if type(a).__name__.endswith("Cache") else a for a in args],
            {k: None if type(v).__name__.endswith("Cache") else False if k == "use_cache" and v else v for k, v in kwargs.items()})


class _Home:
    """A storage in pinned host memory; on the device again as long as somebody needs it there."""

    def __init__(self, torch, held, like):
        self.torch, self.device, self.there = torch, like.device, lambda: None
        self.put(torch, lambda kind: torch.empty(0, dtype=kind, device=like.device).set_(held), like.dtype)

    def put(self, torch, seen_as, kind):
        self.copy = torch.empty(seen_as(torch.uint8).shape, dtype=torch.uint8, pin_memory=True)
        self.copy.copy_(seen_as(torch.uint8), non_blocking=True)

    def whole(self):
        return self.copy.to(self.device, non_blocking=True)

    def back(self, kind, offset, size, stride):
        import weakref
        whole = self.there()
        if whole is None:
            whole = self.whole()
            self.there = weakref.ref(whole)
        tensor = self.torch.empty(0, dtype=kind, device=self.device).set_(whole.untyped_storage(), offset, size, stride)
        tensor._vramcast = whole  # as long as the tensor lives
        return tensor


class _Lower(_Home):
    """A storage in a type of half the size, that of 8 bits scaled by the largest value."""

    def put(self, torch, seen_as, kind):
        low, whole = self.of(torch, kind), seen_as(kind)
        self.kind, self.scale = kind, None
        if low.itemsize == 1:
            self.scale = torch.linalg.vector_norm(whole, float("inf"), dtype=torch.float32).clamp_(min=1e-12) / torch.finfo(low).max
            whole = whole / self.scale
        self.copy = whole.to(low)

    def whole(self):
        whole = self.copy.to(self.kind)
        return whole if self.scale is None else whole.mul_(self.scale)

    @staticmethod
    def of(torch, kind):
        eight = getattr(torch, "float8_e4m3fn", None)
        return {torch.float64: torch.float32, torch.float32: torch.bfloat16, torch.bfloat16: eight, torch.float16: eight}.get(kind)


class _Held:
    """A tensor that a module keeps; it says until when: "budget drops UNIT ADDRESS"."""

    def __init__(self, tell, unit, tensor):
        self.tensor, self.tell, self.what = alone(tensor), tell, "drops %d %d" % (unit, tensor.untyped_storage().data_ptr())

    def __del__(self):
        self.tell(self.what)


class _Budget:
    SHARE, LAYER = 0.25, 0.05  # of all saved bytes, above which a module, a container of layers, is looked into
    LEAST = 0.005              # of all saved bytes, below which a module is no unit
    SMALL = 1 << 16            # bytes, below which nothing goes to the host
    PRODUCTS = {"mm", "addmm", "bmm", "baddbmm", "convolution", "_scaled_dot_product_flash_attention",
                "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention",
                "_flash_attention_forward", "_efficient_attention_forward"}

    def __init__(self, torch, plan):
        import ctypes
        import weakref
        self.torch, self.state = torch, threading.local()
        self.observes, self.timed, self.done = plan.get("observe"), plan.get("timed"), {}
        self.looked_into = 1 if self.observes == "coarse" else self.SHARE
        self.limit, self.share, self.twice = plan.get("limit"), plan.get("share"), plan.get("twice")
        self.units = {u["name"]: (i, u["do"]) for i, u in enumerate(plan.get("units", ()))}
        self.by_module = weakref.WeakKeyDictionary()  # module: (number, what is done), once its root was called
        self.roots, self.seen = weakref.WeakKeyDictionary(), {}
        self.tree = weakref.WeakKeyDictionary()  # module: [name, saved bytes, calls]
        self.saved, self.changing = set(), weakref.WeakSet()
        self.given = []  # what modules were called with: module, tensor, its version then
        self.results, self.written = {}, weakref.WeakSet()  # results of products; modules in which one is changed in place
        self.mark = getattr(ctypes.CDLL(None), "vramcast_mark", None)

    def tell(self, what, number=None):
        if self.mark is not None:
            self.mark(("budget " + what if number is None else "budget %s %d" % (what, number)).encode())
            if self.timed and number is not None:
                self.torch.cuda._sleep(0)  # a kernel that says among kernels where the mark lies

    # ---- which modules ----

    def enter(self, root):
        """An outermost module is called for the first time: its units get to be known."""
        if self.limit and self.torch.cuda.is_available():
            total = self.torch.cuda.get_device_properties(self.torch.cuda.current_device()).total_memory
            self.torch.cuda.set_per_process_memory_fraction(min(1.0, self.limit / total))
            self.limit = None
        while type(root).__name__ in ("DistributedDataParallel", "DataParallel"):
            root = root.module
        kind = type(root).__name__
        self.seen[kind] = self.seen.get(kind, 0) + 1
        top = kind if self.seen[kind] == 1 else "%s#%d" % (kind, self.seen[kind])
        for name, module in root.named_modules():
            name = "%s/%s" % (top, name)
            if name in self.units and module not in self.by_module:
                self.by_module[module] = self.units[name]
            if self.observes and module not in self.tree:
                self.tree[module] = [name, 0, 0]

    def start(self):
        module = self.torch.nn.Module
        original, state, this = module._call_impl, self.state, self
        grad = self.torch.is_grad_enabled

        def _vramcast_call(layer, *args, **kwargs):
            above = state.__dict__.setdefault("above", [])
            if not above and layer not in this.roots:
                this.roots[layer] = True
                this.enter(layer)
            unit = this.by_module.get(layer)
            inside = getattr(state, "inside", False)
            above.append(layer)
            try:
                if inside or not grad():
                    return original(layer, *args, **kwargs)
                if this.observes:
                    return this.look(layer, original, args, kwargs)
                if unit is None:
                    return original(layer, *args, **kwargs)
                return this.run(layer, unit, original, args, kwargs)
            finally:
                above.pop()
        if self.share is None:
            module._call_impl = _vramcast_call
        compiles, backward = self.torch.compile, self.torch.autograd.backward

        def _vramcast_compile(*args, **kwargs):
            this.tell("compiled")
            if this.observes:  # it would look into what stands around the calls
                module._call_impl = original
            if this.share is not None:
                from torch._functorch import config
                config.activation_memory_budget = this.share / 100
                this.done["share"] = this.share
            if this.twice and args:
                this.wrap(getattr(args[0], "__self__", args[0]))
            return compiles(*args, **kwargs)

        def _vramcast_backward(*args, **kwargs):
            if this.observes and this.saved:
                for module in this.choose():
                    this.tell("unit " + this.tree[module][0])
                    if module in this.written:
                        this.tell("inplace " + this.tree[module][0])
                this.observes = False
            return backward(*args, **kwargs)
        self.torch.compile = _vramcast_compile
        if self.observes:
            self.torch.autograd.backward = _vramcast_backward

    def wrap(self, model):
        """So many percent of its layers, evenly spread, are computed twice inside of what is compiled."""
        from torch.utils.checkpoint import checkpoint

        def _vramcast_twice(forward):
            def _vramcast_forward(*args, **kwargs):
                args, kwargs = uncached(args, kwargs)
                return checkpoint(forward, *args, use_reentrant=False, **kwargs)
            return _vramcast_forward
        layers = self.layers(model) if isinstance(model, self.torch.nn.Module) else []
        for i, layer in enumerate(layers):
            if (i + 1) * self.twice // 100 > i * self.twice // 100:
                layer.forward = _vramcast_twice(layer.forward)

    def layers(self, module):
        """Modules of one kind beside each other that hold others; those of a list that is called for none."""
        kinds, found = {}, []
        for child in module.children():
            kinds.setdefault(type(child), []).append(child)
        for same in kinds.values():
            for one in same:
                if len(same) < 2 or not any(True for _ in one.children()):
                    found += self.layers(one)
                else:
                    found += one.children() if isinstance(one, self.torch.nn.ModuleList) else [one]
        return found

    def versions(self, layer):
        """Of what a module remembers; batch normalization is taken care of in again()."""
        batch = self.torch.nn.modules.batchnorm._BatchNorm
        return [b._version for m in layer.modules() if not isinstance(m, batch) for b in m.buffers(recurse=False)]

    def look(self, layer, original, args, kwargs):
        """Counts what each module saves for the backward pass."""
        torch, known, before = self.torch, self.tree.get(layer), self.versions(layer)
        try:
            if known is None:
                return original(layer, *args, **kwargs)
            known[2] += 1
            self.given += [(layer, t, t._version) for t in (*args, *kwargs.values())
                           if isinstance(t, torch.Tensor) and not t.is_inference()]
            if any(m in self.tree for m in self.state.above[:-1]):  # it is counted there
                return original(layer, *args, **kwargs)
            with torch.autograd.graph.saved_tensors_hooks(self.count, lambda tensor: tensor), self.watching():
                return original(layer, *args, **kwargs)
        finally:
            if self.versions(layer) != before:
                self.changing.add(layer)

    def watching(self):
        """A result of a product that is changed in place cannot be kept for a second time; autograd would not always tell."""
        from torch.utils._python_dispatch import TorchDispatchMode
        this = self

        class _Watch(TorchDispatchMode):
            def __torch_dispatch__(self, op, types, args=(), kwargs=None):
                out = op(*args, **(kwargs or {}))
                this.watch(op, args, out)
                return out

            def __exit__(self, *what):
                this.results.clear()
                return super().__exit__(*what)
        return _Watch()

    def watch(self, op, args, out):
        plain, schema = (self.torch.Tensor, self.torch.nn.Parameter), getattr(op, "_schema", None)
        if getattr(op, "overloadpacket", op).__name__ in self.PRODUCTS:
            for t in out if isinstance(out, (list, tuple)) else [out]:
                if type(t) in plain and t.is_cuda:  # which keeps the storage, so that no other one takes its address
                    self.results[t.untyped_storage().data_ptr()] = (t.untyped_storage(), list(self.state.above))
        elif schema is not None and schema.is_mutable:
            for t, a in zip(args, schema.arguments):
                if type(t) in plain and a.alias_info is not None and a.alias_info.is_write:
                    self.written.update(self.results.get(t.untyped_storage().data_ptr(), (0, ()))[1])

    def count(self, tensor):
        if type(tensor) is self.torch.Tensor and tensor.is_cuda and not (tensor.is_leaf and tensor.requires_grad):
            held = tensor.untyped_storage()
            key = (held.data_ptr(), held.nbytes())
            if key not in self.saved:
                self.saved.add(key)
                for module in {id(m): m for m in self.state.above}.values():
                    if module in self.tree:
                        self.tree[module][1] += held.nbytes()
        return alone(tensor)

    def choose(self):
        """The units: a module that saves much is looked into, a container of layers above all."""
        for module, tensor, version in self.given:  # changed in place, it cannot be given once more
            if tensor._version != version:
                self.changing.add(module)
        self.given.clear()
        called = {m: k for m, k in self.tree.items() if k[2] and k[1]}
        units = [m for m in called if "/" == called[m][0][-1]]
        every = sum(called[m][1] for m in units) or 1
        at = 0
        while at < len(units):
            name, size = called[units[at]][:2]
            below = self.below(units[at], called)
            kinds = {}
            for m in below:
                if any(c in called for c in m.modules() if c is not m):
                    kinds.setdefault(type(m), []).append(called[m][1])
            layers = any(len(s) > 1 and 2 * sum(s) >= size for s in kinds.values())
            inner = sum(called[m][1] for m in below)
            if below and (units[at] in self.changing or name[-1] == "/" or
                          inner >= 0.6 * size and size > (self.LAYER if layers else self.looked_into) * every):
                units[at:at + 1] = below
            else:
                at += 1
        return [m for m in units if called[m][1] > self.LEAST * every and m not in self.changing]

    def below(self, module, called):
        found = []
        for child in module.children():
            found += [child] if child in called else self.below(child, called)
        return found

    # ---- what is done with them ----

    def run(self, layer, unit, original, args, kwargs):
        number, what = unit
        forward, own = layer.forward, "forward" in layer.__dict__

        def _vramcast_forward(*values, **named):
            self.tell("F", number)
            out = getattr(self, what)(layer, forward, values, named)
            self.tell("E", number)
            self.behind(out, number)
            return out
        layer.__dict__["forward"] = _vramcast_forward
        self.done[number] = what
        try:
            return original(layer, *args, **kwargs)
        finally:
            if own:
                layer.__dict__["forward"] = forward
            else:
                del layer.__dict__["forward"]

    def behind(self, out, number):
        """Its backward pass begins where the first of its results gets a gradient."""
        begun, left = [], [out]

        def _vramcast_begins(*rest):
            if not begun:
                begun.append(1)
                self.tell("B", number)
        while left:
            one = left.pop()
            if isinstance(one, self.torch.Tensor):
                if one.grad_fn is not None:
                    one.grad_fn.register_prehook(_vramcast_begins)
            elif isinstance(one, dict):
                left += one.values()
            elif isinstance(one, (list, tuple)):
                left += one

    def held(self, layer, tensor):
        """Where times are told, what a module keeps is, too."""
        if not self.timed or type(tensor) is not self.torch.Tensor or not tensor.is_cuda or tensor.layout is not self.torch.strided:
            return alone(tensor) if isinstance(tensor, self.torch.Tensor) else tensor
        return _Held(self.tell, self.by_module[layer][0], tensor)

    def keep(self, layer, forward, args, kwargs):
        if not self.timed:
            return forward(*args, **kwargs)
        with self.torch.autograd.graph.saved_tensors_hooks(
                lambda tensor: self.held(layer, tensor), lambda kept: kept.tensor if isinstance(kept, _Held) else kept):
            return forward(*args, **kwargs)

    def products(self, layer, forward, args, kwargs):
        """Computed twice but for matrix products, convolutions and attention."""
        from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

        def _vramcast_policy(context, op, *values, **named):
            kept = getattr(op, "overloadpacket", op).__name__ in self.PRODUCTS
            if kept:  # but for dropout: what is drawn behind it would differ
                named.update(zip((a.name for a in op._schema.arguments), values))
            return CheckpointPolicy.MUST_SAVE if kept and not named.get("dropout_p") else CheckpointPolicy.PREFER_RECOMPUTE
        return self.recompute(layer, forward, args, kwargs,
                              context_fn=lambda: create_selective_checkpoint_contexts(_vramcast_policy))

    def offload(self, layer, forward, args, kwargs):
        """What is kept lies in pinned host memory until the backward pass."""
        return self.away(layer, forward, args, kwargs, _Home, lambda tensor, held: True)

    def lower(self, layer, forward, args, kwargs):
        """What is kept is kept in half the bytes, but for sums over rows and what is made of parameters alone."""
        most = max((a.nbytes for a in (*args, *kwargs.values()) if isinstance(a, self.torch.Tensor)), default=0)

        def _vramcast_may(tensor, held):
            node = tensor.grad_fn
            while node is not None and len(node.next_functions) == 1 and not hasattr(node, "variable"):
                node = node.next_functions[0][0]
            return held.nbytes() * 16 > most and _Lower.of(self.torch, tensor.dtype) and not hasattr(node, "variable")
        return self.away(layer, forward, args, kwargs, _Lower, _vramcast_may)

    def away(self, layer, forward, args, kwargs, place, may):
        """What is kept and may go is kept in another place: whole storages, each once."""
        torch, passing = self.torch, {}
        own = {t.untyped_storage().data_ptr() for part in (layer.parameters(), layer.buffers()) for t in part
               if type(t) in (torch.Tensor, torch.nn.Parameter)}

        def _vramcast_pack(tensor):
            if type(tensor) is not torch.Tensor or not tensor.is_cuda or tensor.layout is not torch.strided:
                return alone(tensor)
            held = tensor.untyped_storage()
            if held.data_ptr() in own or held.nbytes() < self.SMALL or tensor.is_leaf and tensor.requires_grad or not may(tensor, held):
                return alone(tensor)
            key = (held.data_ptr(), tensor._version)
            if key not in passing:  # which keeps the storage, so that no other one takes its address
                passing[key] = (held, place(torch, held, tensor))
            return passing[key][1], tensor.dtype, tensor.storage_offset(), tensor.size(), tensor.stride()

        def _vramcast_unpack(packed):
            return packed if isinstance(packed, torch.Tensor) else packed[0].back(*packed[1:])
        with torch.autograd.graph.saved_tensors_hooks(_vramcast_pack, _vramcast_unpack):
            out = forward(*args, **kwargs)
        passing.clear()
        return out

    def recompute_offload(self, layer, forward, args, kwargs):
        """Computed twice, from arguments that lie in pinned host memory until then."""
        names = [k for k, v in kwargs.items() if isinstance(v, self.torch.Tensor)]
        rest, n = {k: v for k, v in kwargs.items() if k not in names}, len(args)

        def _vramcast_named(*values, **named):  # which must not hold what it is called with
            return forward(*values[:n], **dict(zip(names, values[n:])), **named)

        def _vramcast_sent(*values, **named):
            return self.recompute(layer, _vramcast_named, values, named, holds=False)
        return self.offload(layer, _vramcast_sent, (*args, *(kwargs[k] for k in names)), rest)

    def recompute(self, layer, forward, args, kwargs, holds=True, **how):
        """Dropout draws the same numbers again, and batch normalization does not see the same batch twice."""
        from torch.utils.checkpoint import checkpoint
        args, kwargs = uncached(args, kwargs)
        times = []

        def _vramcast_again(*values):
            inside = getattr(self.state, "inside", False)
            self.state.inside = True
            times.append(1)
            try:
                if len(times) > 1:
                    return self.again(layer, forward, values, kwargs)
                return forward(*values, **kwargs)
            finally:
                self.state.inside = inside
        if holds:  # as long as the arguments
            _vramcast_again.held = [self.held(layer, t) for t in (*args, *kwargs.values())]
        return checkpoint(_vramcast_again, *args, use_reentrant=False, **how)

    def again(self, layer, forward, args, kwargs):
        batch = self.torch.nn.modules.batchnorm._BatchNorm
        norms = [(m, m.momentum, m._buffers.get("num_batches_tracked")) for m in layer.modules() if isinstance(m, batch)]
        for m, momentum, tracked in norms:
            m.momentum = 0.0
            m._buffers["num_batches_tracked"] = None
        try:
            return forward(*args, **kwargs)
        finally:
            for m, momentum, tracked in norms:
                m.momentum = momentum
                m._buffers["num_batches_tracked"] = tracked

    def report(self, path):
        with open("%s.%d" % (path, os.getpid()), "w") as out:
            out.write("%d %d\n" % (len(self.done), len(self.units) or self.share is not None))


def _vramcast_budget(torch, plan, path):
    import atexit
    hook = _Budget(torch, json.loads(plan))
    hook.start()
    if path:
        atexit.register(lambda: hook.done and hook.report(path))


def _vramcast_after_torch(torch):
    for what, name in ((_vramcast_recompute, "VRAMCAST_RECOMPUTE"), (_vramcast_change, "VRAMCAST_CHANGE"),
                       (_vramcast_budget, "VRAMCAST_BUDGET")):
        if os.environ.get(name):
            what(torch, os.environ[name], os.environ.get(name + "_REPORT"))


sys.meta_path.insert(0, _Finder({"torch": _vramcast_after_torch}))
_chain()
