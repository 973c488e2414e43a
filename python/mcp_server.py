# SPDX-License-Identifier: Apache-2.0
"""mcp_server.py - `vramcast mcp`: the questions as tools of an assistant, by the Model Context Protocol over standard input and
output: JSON-RPC 2.0, one message a line. Each call is a command of ours in a process of its own, so that nothing which
goes wrong in it, or does not end, can end the conversation. commands/cmd_mcp.c carries this text and starts it with the
program, its version, and the options of the commands."""
import collections
import ctypes
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time

PROGRAM, VERSION, OPTIONS = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
PARSE_ERROR, NO_REQUEST, NO_METHOD, WRONG_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
# What differs between revisions does not concern a server that has tools only.
REVISIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
RUNNING, LONGEST, GRACE = 4, 12000, 0.3  # replays use all cores; of an answer for people the end is kept
INSTRUCTIONS = (
    "vramcast answers whether a PyTorch training run fits into the memory of a GPU. Use explain for an out-of-memory "
    "message; sim, fit and diff for recordings and snapshots; dryrun for a script without a GPU. The first line of an "
    "answer is the verdict.")
TRACE = "a recording (.vct), a PyTorch memory snapshot (.pickle) or a profiler trace"

# options: of the command, those that make sense here; operands: name, whether a list will do, help; writes: it runs a
# program that the call names; by: who answers for other values, and where that is the program, it runs, too
Tool = collections.namedtuple("Tool", "about options operands writes by", defaults=(False, None))
TOOLS = {
    "sim": Tool(
        "Does a recorded training run fit into a GPU's memory, with anything changed? Says the verdict, the peak, who "
        "holds the memory and what would help. Several recordings at different values (a.vct@batch=8) and 'set' "
        "extrapolate.",
        "gpu capacity set transform conf torch model used context assume device fail-above no-advice json",
        [("path", True, TRACE)], by="recordings"),
    "rerun": Tool(
        "What a recorded program needs at another value ('set'): it is run again without a card, if its user ran it "
        "on this machine before. Exact where sim extrapolates. The program really runs, without computing.",
        "gpu capacity set conf torch seeds assume json", [("path", True, TRACE)], by="rerun"),
    "fit": Tool(
        "The largest batch size (or other recorded parameter) that fits a card, from two or more recordings made at "
        "different values, as in a.vct@batch=8.",
        "find gpu capacity set transform conf torch target multiple json",
        [("path", True, TRACE + ", with @name=value behind it")], by="recordings"),
    "explain": Tool("What a CUDA out-of-memory message means, and what to try. No recording.", "json",
                    [("text", False, "the message, or a whole log with it")]),
    "diff": Tool("What changed between two recordings: peaks, first difference, lines of code.", "fail-above sites json",
                 [("a", False, TRACE), ("b", False, TRACE)]),
    "dryrun": Tool(
        "Runs a PyTorch training script on a GPU that is not there, and says whether it fits. The script really runs, "
        "without computing; it needs a CUDA build of PyTorch.",
        "gpu capacity ranks world steps output param no-record",
        [("command", True, "the program and its arguments")], True),
}
TYPES = {"flag": {"type": "boolean"}, "text": {"type": "string"}, "uint": {"type": "integer", "minimum": 0},
         "real": {"type": "number"}, "list": {"type": "array", "items": {"type": "string"}}}


class Wrong(Exception):
    """What the client asked for cannot be; the code is JSON-RPC's."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def command_of(name):
    return "sim" if name == "rerun" else name


def options_of(name):
    """The options that the tool offers: name, kind, what stands for the value, help."""
    offered = TOOLS[name].options.split()
    return {o["name"]: o for o in OPTIONS[command_of(name)] if o["name"] in offered}


def described(name):
    tool, properties = TOOLS[name], {}
    runs = tool.writes or tool.by == "rerun"
    for operand, several, about in tool.operands:
        kind = {**TYPES["list"], "minItems": 1} if several else TYPES["text"]
        properties[operand] = {**kind, "description": about}
    for option, o in options_of(name).items():
        properties[option] = {**TYPES[o["kind"]], "description": f"{o['arg']}: {o['help']}" if o["arg"] else o["help"]}
    properties["timeout"] = {"type": "number", "exclusiveMinimum": 0,
                             "description": "seconds after which the call is ended [600]"}
    return {"name": name, "description": tool.about,
            "inputSchema": {"type": "object", "properties": properties,
                            "required": [o[0] for o in tool.operands], "additionalProperties": False},
            "annotations": {"readOnlyHint": not runs, "openWorldHint": runs}}


def object_in(members, name):
    return dict(members[name]) if isinstance(members.get(name), dict) else {}


# ---- from arguments to a command line ----

def is_plain(value):
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def texts(name, value):
    """The texts of a value, or of each element of a list."""
    found = value if isinstance(value, list) else [value]
    for i, v in enumerate(found):
        if not is_plain(v):
            raise Wrong(WRONG_PARAMS, f"params.arguments.{name}[{i}] wants a text")
    return [v if isinstance(v, str) else json.dumps(v) for v in found]


def option_words(name, kind, value):
    """A value stands behind "=", so that one which begins with a dash is no option."""
    if kind == "flag":
        if not isinstance(value, bool):
            raise Wrong(WRONG_PARAMS, f"the argument '{name}' wants true or false")
        return [f"--{name}"] if value else []
    if not is_plain(value) and not (kind == "list" and isinstance(value, list)):
        raise Wrong(WRONG_PARAMS, f"the argument '{name}' wants a {'list of texts' if kind == 'list' else 'text'}")
    return [f"--{name}={t}" if t else f"--{name}" for t in texts(name, value)]


def operand_words(tool, name, several, value):
    if not isinstance(value, str) and not (several and isinstance(value, list)):
        raise Wrong(WRONG_PARAMS, f"the argument '{name}' is missing, or is no {'list of texts' if several else 'text'}")
    if not tool.writes or isinstance(value, list):
        return texts(name, value)
    try:
        return shlex.split(value)
    except ValueError:
        raise Wrong(WRONG_PARAMS, f"the argument '{name}' ends within quotes") from None


class Call:
    """A call of a tool: a command line of ours, and its process while that runs."""

    def __init__(self, key, params):
        self.key, self.name = key, params.get("name") if isinstance(params.get("name"), str) else ""
        self.token = object_in(params, "_meta").get("progressToken")
        self.process = self.report = self.began = None
        self.gone = threading.Event()  # cancelled: it is not answered any more
        if self.name not in TOOLS:
            raise Wrong(WRONG_PARAMS, f"there is no tool '{self.name}'")
        self.tool, given = TOOLS[self.name], object_in(params, "arguments")
        self.seconds = given.pop("timeout", 600)
        if isinstance(self.seconds, (bool, str)) or not is_plain(self.seconds) or not 0 < self.seconds <= 86400:
            raise Wrong(WRONG_PARAMS, "the argument 'timeout' wants seconds, up to a day")
        self.json = given.get("json") is True
        operands = [(name, several, given.pop(name, None)) for name, several, _ in self.tool.operands]
        offered, self.line = options_of(self.name), []
        for name, value in given.items():
            if name not in offered:
                raise Wrong(WRONG_PARAMS, f"the tool {self.name} has no argument '{name}'")
            self.line += option_words(name, offered[name]["kind"], value)
        words = [w for o in operands for w in operand_words(self.tool, *o)]
        self.input = words.pop() + "\n" if self.name == "explain" else ""
        self.line += ["--", *words]

    def start(self):
        """What goes in and comes out lies in files, so that nothing blocks."""
        self.out, self.err, into = (tempfile.TemporaryFile() for _ in range(3))
        into.write(self.input.encode())
        into.seek(0)
        # of a program its narration is its answer, and a report that is not empty says that there was a run
        front = ["-q"] + ([f"--by={self.tool.by}"] if self.tool.by else [])
        if self.tool.writes:
            fd, self.report = tempfile.mkstemp(prefix="vramcast-")
            os.close(fd)
            front = [f"--report={self.report}"]
        libc = ctypes.CDLL(None)
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [PROGRAM, command_of(self.name), *front, *self.line], stdin=into, stdout=self.out,
            stderr=self.out if self.tool.writes else self.err, start_new_session=True,
            preexec_fn=lambda: libc.prctl(1, signal.SIGTERM))  # PR_SET_PDEATHSIG
        into.close()

    def end(self):
        """With all that it started. A dry run takes its folder away when it is asked to end."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
                self.process.wait(GRACE if number == signal.SIGTERM else None)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass

    def text(self, file, most=0):
        """All of the file, or its last `most` bytes."""
        size = os.fstat(file.fileno()).st_size
        data = os.pread(file.fileno(), size, max(0, size - most) if most else 0)
        return data.decode(errors="replace").rstrip("\n")

    def failed(self):
        """Is the code an answer, or did something go wrong? Of a dry run it is the program's."""
        code = self.process.returncode
        if self.report:
            return not os.path.exists(self.report) or not os.path.getsize(self.report)
        return code < 0 or code in (1, 2) or code > 6

    def answer(self, late):
        failed = late or self.failed()
        text = self.text(self.err if failed and not self.tool.writes else self.out, 0 if self.json else LONGEST)
        document = {"structuredContent": json.loads(text)} if self.json and not failed else {}
        if late:
            text += f"{chr(10) if text else ''}vramcast mcp: {self.name} was ended after {self.seconds:g} s; " \
                    "the argument 'timeout' says how long it may take"
        return {"content": [{"type": "text", "text": text}], "isError": failed, **document}

    def tell(self):
        """How long it has run, and the last line that it wrote."""
        last = self.text(self.out if self.tool.writes else self.err, 400).rpartition("\n")[2]
        send(method="notifications/progress", params={
            "progressToken": self.token, "progress": round(time.monotonic() - self.began, 3),
            "message": last or "running"})

    def run(self):
        """In a thread of its own, as soon as few enough are running."""
        late = False
        with places:
            if self.gone.is_set():
                return
            self.start()
            if self.gone.is_set():
                self.end()
            while self.process.poll() is None and not late:
                left = self.seconds - (time.monotonic() - self.began)
                try:
                    self.process.wait(max(0, min(1, left)))
                except subprocess.TimeoutExpired:
                    late = left <= 1
                    if self.token is not None and not late:
                        self.tell()
            self.end()  # and what it left behind
            if not self.gone.is_set():
                send(id=self.key, result=self.answer(late))

    def serve(self):
        try:
            self.run()
        except (OSError, ValueError) as e:
            send(id=self.key, error={"code": INTERNAL, "message": f"cannot run {self.name}: {e}"})
        finally:
            if self.report and os.path.exists(self.report):
                os.unlink(self.report)
            calls.remove(self)


# ---- the conversation ----

calls, places, writing = [], threading.Semaphore(RUNNING), threading.Lock()


def send(**message):
    with writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, separators=(",", ":")) + "\n")
        sys.stdout.flush()


def initialize(params):
    asked = params.get("protocolVersion")
    return {"protocolVersion": asked if asked in REVISIONS else REVISIONS[0], "capabilities": {"tools": {}},
            "serverInfo": {"name": "vramcast", "version": VERSION}, "instructions": INSTRUCTIONS}


METHODS = {"initialize": initialize, "ping": lambda _: {},
           "tools/list": lambda _: {"tools": [described(name) for name in TOOLS]}}


def cancel(key):
    for call in list(calls):
        if call.key == key:
            call.gone.set()
            if call.process:
                call.end()


def serve(message, key):
    """A message without an id is a notification, and a response is to nothing that we asked: neither is answered."""
    method, params = message.get("method"), object_in(message, "params")
    if method == "notifications/cancelled":
        cancel(params.get("requestId"))
    if "id" not in message if method is not None else "result" in message or "error" in message:
        return
    if not isinstance(method, str):
        raise Wrong(NO_REQUEST, "a message without a method")
    if method == "tools/call":
        calls.append(Call(key, params))
        threading.Thread(target=calls[-1].serve, daemon=True).start()
    elif method in METHODS:
        send(id=key, result=METHODS[method](params))
    else:
        raise Wrong(NO_METHOD, f"there is no method '{method}'")


def serve_line(line):
    key = None
    try:
        message = json.loads(line)
        message = message if isinstance(message, dict) else {}
        key = message.get("id") if is_plain(message.get("id")) else None
        serve(message, key)
    except Wrong as e:
        send(id=key, error={"code": e.code, "message": str(e)})
    except (ValueError, RecursionError) as e:
        send(id=None, error={"code": PARSE_ERROR, "message": str(e)})


def main():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        for line in sys.stdin.buffer:
            if line.strip():
                serve_line(line)
        while calls:
            time.sleep(0.01)
    except BrokenPipeError:
        os._exit(1)
    finally:
        for call in list(calls):
            call.gone.set()
            if call.process:
                call.end()


main()
