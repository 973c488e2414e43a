# SPDX-License-Identifier: Apache-2.0
"""Changes that python/change_hook.py makes, on a stand-in for torch that says what was called: changes.py FOLDER, which
has the hook as sitecustomize.py. Prints TAP."""
import os
import subprocess
import sys

TORCH = '''
import sys, types
log, state = [], {"autocast": False, "grad": True}
float32, bfloat16, float16 = "float32", "bfloat16", "float16"
is_grad_enabled = lambda: state["grad"]
is_autocast_enabled = lambda: state["autocast"]
def set_autocast_enabled(on): state["autocast"] = on
def set_autocast_gpu_dtype(dtype): log.append(dtype)
def clear_autocast_cache(): pass
class Tensor:
    is_cuda = True
    def __init__(self, dtype=float32): self.dtype = dtype
    def to(self, dtype): return Tensor(dtype)
    def backward(self): autograd.backward(self)
is_tensor = lambda x: isinstance(x, Tensor)
def zeros(shape): return Tensor()
class Module:
    def __init__(self): self.weight = Tensor()
    def _call_impl(self, *args): return self.forward(*args)
    def __call__(self, *args): return self._call_impl(*args)
    def parameters(self): return [self.weight]
    def modules(self): return [self]
    def named_modules(self): return [("", self)]
    def to(self, dtype): self.weight.dtype = dtype; return self
    def cuda(self): return self
    def zero_grad(self): log.append("zero")
class Optimizer:
    def __init__(self, params, defaults): self.param_groups, self.defaults = list(params), defaults
    def zero_grad(self): log.append("zero")
    def step(self): log.append("step")
class SGD(Optimizer):
    def __init__(self, params, lr=0.001, momentum=0, weight_decay=0): super().__init__(params, locals())
class Adam(Optimizer):
    def __init__(self, params, lr=0.001, weight_decay=0, fused=None): super().__init__(params, locals())
class AdamW(Adam): pass
class GradScaler:
    def step(self, o): log.append("scaled"); o.step()
    def update(self): log.append("update")
    def unscale_(self, o): log.append("unscale")
compile = lambda f: f
clip = lambda *args: log.append("clip")
autograd = types.SimpleNamespace(backward=lambda x: log.append("autocast" if state["autocast"] else "backward"),
                                 grad=lambda x: None)
nn = types.SimpleNamespace(Module=Module, utils=types.SimpleNamespace(clip_grad_norm_=clip, clip_grad_value_=clip))
nn.utils.clip_grad = nn.utils
optim = types.SimpleNamespace(Optimizer=Optimizer, SGD=SGD, Adam=Adam, AdamW=AdamW)
class _ConvNd(Module): pass
nn.modules = types.SimpleNamespace(conv=types.SimpleNamespace(_ConvNd=_ConvNd))
channels_last, channels_last_3d = "2d", "3d"
sys.modules["torch.backends"] = backends = types.ModuleType("torch.backends")
sys.modules["torch.backends.cudnn"] = backends.cudnn = types.ModuleType("torch.backends.cudnn")
amp, cuda = types.SimpleNamespace(GradScaler=GradScaler), types.SimpleNamespace(get_device_capability=lambda: (8, 0))
'''
NET = '''
import torch
class Net(torch.nn.Module):
    def forward(self, x): return (torch.state["autocast"], x.dtype)
net, x = Net(), torch.Tensor()
'''
LOOP = NET + '''
o = torch.optim.AdamW(net.parameters())
for _ in range(4):
    net(x); x.backward(); torch.nn.utils.clip_grad_norm_(net.parameters()); o.step(); o.zero_grad()
print(*torch.log)
'''
OTHER = '''
import torch
class Own(torch.optim.SGD): pass
o = {}([torch.Tensor()], 0.5, weight_decay=0.25)
print(type(o).__name__, isinstance(o, Own), o.defaults["lr"], o.defaults["weight_decay"], o.defaults.get("fused"))
'''
CONVOLUTION = '''
import torch
class Weight:
    format = None
    def dim(self): return 5
    def is_contiguous(self, memory_format): return self.format == memory_format
    def contiguous(self, memory_format): c.log.append("to " + memory_format); self.format = memory_format; return self
class Conv3d(torch.nn.modules.conv._ConvNd):
    log = []
    def __init__(self): self.weight = Weight(); self.weight.data = self.weight
    def forward(self, x): self.log.append("call")
c = Conv3d()
'''
folder, n, bad = sys.argv[1], 0, 0
os.makedirs(os.path.join(folder, "site"), exist_ok=True)
with open(os.path.join(folder, "site", "torch.py"), "w") as out:
    out.write(TORCH)


def made(what, change, program, said, report, by="VRAMCAST_CHANGE"):
    global n, bad
    n += 1
    env = {**os.environ, "PYTHONPATH": f"{folder}:{folder}/site", by: change, by + "_REPORT": os.path.join(folder, "report")}
    ran = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    got = ""
    for name in os.listdir(folder):
        if name.startswith("report."):
            with open(os.path.join(folder, name)) as file:
                got += file.read()
            os.unlink(os.path.join(folder, name))
    ok = ran.stdout.strip() == said and got.split("\n")[0] == report
    bad |= not ok
    print(f"{'ok' if ok else 'not ok'} {n} - {what}")
    if not ok:
        print(f"#   said {ran.stdout!r} {ran.stderr[-500:]!r}, reported {got!r}; expected {said!r}, {report!r}")


made("another optimizer has the rate and the decay that were asked for", "optimizer:to=sgd",
     OTHER.format("torch.optim.AdamW"), "SGD False 0.5 0.25 None", "optimizer 1")
made("a class of the program's own becomes it, too", "optimizer:to=adamw,step=fused", OTHER.format("Own"),
     "AdamW False 0.5 0.25 True", "optimizer 1")
made("the class that the program names is made once", "optimizer:to=adamw", OTHER.format("torch.optim.AdamW"),
     "AdamW False 0.5 0.25 None", "optimizer 1")
made("an optimizer of a package that is not there", "optimizer:to=adam8bit", OTHER.format("Own"), "",
     "!bitsandbytes is not installed")
made("a program without an optimizer", "optimizer:to=sgd", "import torch", "", "optimizer 0")
made("autocast is on in the forward pass, not in the backward pass", "precision",
     NET + "print(net(x)); x.backward(); print(torch.log, torch.state['autocast'])",
     "(True, 'float32')\n['bfloat16', 'backward'] False", "precision 1")
made("evaluation is under autocast", "precision", NET + "torch.state['grad'] = False; print(net(x))", "(True, 'float32')",
     "precision 1")
made("or not, if that is asked for", "precision:eval=float", NET + "torch.state['grad'] = False; print(net(x))",
     "(False, 'float32')", "precision 0")
made("a program that casts by itself", "precision", NET + "torch.state['autocast'] = True; net(x); x.backward(); print(*torch.log)",
     "autocast", "precision 0")
made("a model of 16 bit gets data of 16 bit", "precision:to=bf16", NET + "net.cuda(); print(net(x), net.weight.dtype)",
     "(False, 'bfloat16') bfloat16", "precision 1")
made("that was made on the card, too", "precision:to=bf16", NET + "torch.optim.SGD([net.weight]); print(net.weight.dtype)",
     "bfloat16", "precision 1")
made("each second step is made, and nothing is forgotten before", "accumulate", LOOP,
     "backward backward clip step zero backward backward clip step zero", "accumulate 1")
made("a program has enough steps, or says how many", "accumulate:micro=3", LOOP,
     "backward backward backward clip step zero backward", "!it makes 4 steps, and 6 are needed")
made("two changes at once", "accumulate\noptimizer:to=sgd", LOOP.replace("print(", "print(type(o).__name__, "),
     "SGD backward backward clip step zero backward backward clip step zero", "accumulate 1")
made("a scaler waits, too", "accumulate", NET + '''
o, s = torch.optim.SGD([net.weight]), torch.amp.GradScaler()
for _ in range(4):
    x.backward(); s.unscale_(o); s.step(o); s.update(); net.zero_grad()
print(*torch.log)''', "backward backward unscale scaled step update zero backward backward unscale scaled step update zero",
     "accumulate 1")
made("a program that accumulates already", "accumulate", NET + "o = torch.optim.SGD([net.weight])\nx.backward(); x.backward(); o.step()",
     "", "!it accumulates gradients already, or has several backward passes a step")
made("a setting of the library", "set:backends.cudnn.deterministic=True\nset:backends.budget=0.5",
     "import torch, torch.backends.cudnn; print(torch.backends.cudnn.deterministic, torch.backends.budget)", "True 0.5", "set 1")
made("convolutions go to the other layout, once", "channels_last", CONVOLUTION + "c(1); c(2); print(*c.log)", "to 3d call call", "channels_last 1")
made("a program without convolutions", "channels_last", CONVOLUTION, "", "channels_last 0")
made("the allocator is limited before the first module is called", '{"limit": 250, "units": [{"name": "Net/", "do": "keep"}]}', NET + '''
torch.cuda.is_available, torch.cuda.current_device = lambda: True, lambda: 0
torch.cuda.get_device_properties = lambda device: torch.types.SimpleNamespace(total_memory=1000)
torch.cuda.set_per_process_memory_fraction = torch.log.append
net.forward = lambda x: torch.log.append("call")
net(x); net(x); print(*torch.log)''', "0.25 call call", "1 1", "VRAMCAST_BUDGET")
made("torch.compile may keep less, and modules are called as they are", '{"share": 40, "units": []}', NET + '''
config = torch.types.SimpleNamespace(activation_memory_budget=1.0)
torch.sys.modules["torch._functorch"] = torch.types.SimpleNamespace(config=config)
print(config.activation_memory_budget, torch.compile(net)(x), config.activation_memory_budget)''',
     "1.0 (False, 'float32') 0.4", "1 1", "VRAMCAST_BUDGET")
made("half of the layers are computed twice inside of what is compiled", '{"share": 100, "twice": 50, "units": []}', NET + '''
nn, types, modules = torch.nn, torch.types, torch.sys.modules
nn.ModuleList = type("ModuleList", (nn.Module,), {})
nn.Module.children = lambda module: iter(getattr(module, "inside", ()))
modules["torch._functorch"] = types.SimpleNamespace(config=types.SimpleNamespace())
modules["torch.utils.checkpoint"] = types.SimpleNamespace(
    checkpoint=lambda f, *args, use_reentrant: torch.log.append("twice") or f(*args))
class Layer(nn.Module):
    def __init__(self, number): self.number, self.inside, self.weight = number, [nn.Module()], None
    def forward(self, x): torch.log.append(self.number)
layers = [Layer(i) for i in range(4)]
net.inside = [nn.Module(), nn.ModuleList()]
net.inside[1].inside = layers
torch.compile(net)
for layer in layers: layer(x)
print(*torch.log)''', "0 twice 1 2 twice 3", "1 1", "VRAMCAST_BUDGET")
made("of a module that is computed twice from the host nothing holds what it was called with",
     '{"units": [{"name": "Net/", "do": "recompute_offload"}]}', NET + '''
import contextlib, weakref
types, functions = torch.types, []
torch.nn.modules.batchnorm = types.SimpleNamespace(_BatchNorm=type("Norm", (), {}))
torch.autograd.graph = types.SimpleNamespace(
    saved_tensors_hooks=lambda pack, unpack: torch.log.append("sent") or contextlib.nullcontext())
torch.sys.modules["torch.utils.checkpoint"] = types.SimpleNamespace(
    checkpoint=lambda f, *args, use_reentrant: functions.append(f) or torch.log.append("twice") or f(*args))
net.parameters = net.buffers = lambda: []
net.forward = lambda x: torch.log.append("call")
x = torch.Tensor()
gone = weakref.ref(x)
net(x)
del x
print(*torch.log, len(functions), gone())''', "sent twice call 1 None", "1 1", "VRAMCAST_BUDGET")
made("what a module inside of a wrapper keeps is counted, once", '{"observe": true}', NET + '''
import contextlib
torch.autograd.graph = torch.types.SimpleNamespace(
    saved_tensors_hooks=lambda pack, unpack: torch.log.append("counted") or contextlib.nullcontext())
torch.nn.modules.batchnorm = torch.types.SimpleNamespace(_BatchNorm=type("Norm", (), {}))
torch.Tensor.is_inference, torch.Tensor._version = lambda x: False, 0
torch.nn.Module.buffers = lambda module, recurse: []
class DistributedDataParallel(torch.nn.Module):
    def __init__(self, module): self.module = module
    def forward(self, x): return self.module(x)
part = torch.nn.Module()
part.forward = lambda x: torch.log.append("part")
net.named_modules, net.forward = lambda: [("", net), ("part", part)], part
class TorchDispatchMode:
    __enter__ = lambda mode: torch.log.append("watched")
    __exit__ = lambda mode, *what: None
torch.sys.modules["torch.utils._python_dispatch"] = torch.types.SimpleNamespace(TorchDispatchMode=TorchDispatchMode)
DistributedDataParallel(net)(x)
print(*torch.log)''', "counted watched part", "", "VRAMCAST_BUDGET")
made("a product that is changed in place is known by where it lies", '{"observe": true}', NET + '''
hook = [c.cell_contents for c in torch.nn.Module._call_impl.__closure__ if type(c.cell_contents).__name__ == "_Budget"][0]
new = torch.types.SimpleNamespace
class Tensor(torch.Tensor):
    is_cuda = True
    def untyped_storage(self): return new(data_ptr=lambda: 7)
torch.Tensor = torch.nn.Parameter = Tensor
def op(name, mutable, written):
    return new(__name__=name, _schema=new(is_mutable=mutable, arguments=[new(alias_info=new(is_write=written)), new(alias_info=None)]))
hook.state.above, found = [net], []
for name, mutable, written in (("add_", True, True), ("bmm", False, False), ("mul", False, True), ("out", True, False), ("add_", True, True)):
    hook.watch(op(name, mutable, written), (Tensor(), Tensor()), (Tensor(), 3))
    found.append(net in hook.written)
print(*found, all(callable(getattr(hook, w)) for w in ("keep", "recompute", "products", "offload", "recompute_offload")))''',
     "False False False False True True", "", "VRAMCAST_BUDGET")
made("a program that does not compile", '{"share": 40, "units": []}', NET + "net(x)", "", "", "VRAMCAST_BUDGET")
print(f"1..{n}")
sys.exit(bad)
