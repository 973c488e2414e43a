# SPDX-License-Identifier: Apache-2.0
"""mcp_session.py - a session with `vramcast mcp`, message by message."""
import json
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402

PROGRAM, TMP = os.environ["VRAMCAST"], os.environ["TMP"]
INITIALIZE = {"method": "initialize", "params": {
    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}


def session(*messages):
    """The replies to messages (a text goes as it is; others get jsonrpc and an id)."""
    lines = [m if isinstance(m, str) else json.dumps({"jsonrpc": "2.0", "id": i, **m})
             for i, m in enumerate(messages)]
    done = subprocess.run([PROGRAM, "mcp"], input="\n".join(lines) + "\n", text=True,
                          capture_output=True, timeout=120)
    assert done.returncode == 0 and not done.stderr, done.stderr
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    # calls are answered as they end
    return sorted(replies, key=lambda r: r["id"]) if all(isinstance(r["id"], int) for r in replies) else replies


def call(name, **arguments):
    return {"method": "tools/call", "params": {"name": name, "arguments": arguments}}


def test_initialize():
    """initialize agrees on a revision; what is unknown gets the newest"""
    first, second = session(INITIALIZE, {**INITIALIZE, "params": {"protocolVersion": "1999-01-01"}})
    assert first["id"] == 0 and first["result"]["protocolVersion"] == "2025-06-18"
    assert first["result"]["serverInfo"]["name"] == "vramcast" and "tools" in first["result"]["capabilities"]
    assert second["result"]["protocolVersion"] >= "2025-11-25"


def test_notifications():
    """notifications and responses are not answered, and an id is handed back as it came"""
    replies = session('{"jsonrpc":"2.0","method":"notifications/initialized"}', "",
                      '{"jsonrpc":"2.0","id":5,"result":{}}', '{"jsonrpc":"2.0","id":"a\\"b","method":"ping"}')
    assert replies == [{"jsonrpc": "2.0", "id": 'a"b', "result": {}}], replies


def test_tools():
    """the tools have schemas made from the options of the commands"""
    tools = {t["name"]: t for t in session({"method": "tools/list"})[0]["result"]["tools"]}
    assert sorted(tools) == ["diff", "dryrun", "explain", "fit", "rerun", "sim"]
    sim = tools["sim"]["inputSchema"]
    assert sim["required"] == ["path"] and sim["properties"]["gpu"]["type"] == "array"
    reads = {name: t["annotations"]["readOnlyHint"] for name, t in tools.items()}
    assert reads == {"diff": True, "dryrun": False, "explain": True, "fit": True, "rerun": False, "sim": True}, reads


def test_rerun():
    """sim and fit never run a program; rerun does, and says why it does not"""
    asked = {"path": ["tests/recordings/gpt.vct"], "set": ["batch=8"], "gpu": ["rtx4090"]}
    sim, rerun = session(call("sim", **asked), call("rerun", **asked))
    assert "bounds from one recording" in sim["result"]["content"][0]["text"] and "not rerun" not in str(sim)
    assert rerun["result"]["isError"] and "--program" in rerun["result"]["content"][0]["text"], rerun


def test_sim():
    """sim answers in words, the verdict first; running out is an answer and no error"""
    fits, oom = session(call("sim", path=["traces/decomfl.vct"], gpu=["t4"]),
                        call("sim", path="traces/decomfl.vct", capacity="1GiB"))
    text = fits["result"]["content"][0]["text"]
    assert text.split("\n")[0].startswith("torch 2.9 on Tesla T4: fits: 1.89 GiB of 14.57 GiB"), text
    assert "structuredContent" not in fits["result"] and len(text) < 12000
    assert "runs out of memory" in oom["result"]["content"][0]["text"] and oom["result"]["isError"] is False


def test_json():
    """with json the whole document comes, too"""
    result = session(call("sim", path=["traces/decomfl.vct"], gpu=["t4"], json=True, **{"no-advice": True}))[0]["result"]
    assert result["structuredContent"]["runs"][0]["verdict"] == "fits"
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


def test_fit_diff_explain():
    """fit, diff and explain"""
    pair = ["tests/recordings/eval-4-8.vct@batch=4", "tests/recordings/eval-8-16.vct@batch=8"]
    fit, diff, explain = session(
        call("fit", path=pair, gpu=["t4"]), call("diff", a=pair[0], b=pair[1], sites=3),
        call("explain", text="CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total capacity; 9.50 "
             "GiB already allocated; 10.25 MiB free; 9.60 GiB reserved in total by PyTorch)"))
    assert "largest that fits" in fit["result"]["content"][0]["text"]
    assert diff["result"]["content"][0]["text"].startswith("B needs more than A")
    assert "Cause: fragmentation" in explain["result"]["content"][0]["text"]


def test_failures():
    """a file that is not there is an error of the tool; wrong arguments are one of the call"""
    gone, extra, kind, missing, tool, method = session(
        call("sim", path=["nope.vct"]), call("sim", path=["x"], colour="red"), call("sim", path=["x"], gpu=7.5, json=1),
        call("diff", a="x"), call("rm"), {"method": "resources/list"})
    assert gone["result"]["isError"] and "cannot open nope.vct" in gone["result"]["content"][0]["text"]
    assert extra["error"] == {"code": -32602, "message": "the tool sim has no argument 'colour'"}
    assert kind["error"]["code"] == -32602 and "true or false" in kind["error"]["message"]
    assert "'b' is missing" in missing["error"]["message"] and "no tool 'rm'" in tool["error"]["message"]
    assert method["error"]["code"] == -32601


def test_options_cannot_be_smuggled():
    """a path or a value that looks like an option is none"""
    path, value = session(call("sim", path=["--output=/tmp/x", "-o"]), call("sim", path=["traces/attention.vct"],
                                                                          gpu=["--json"]))
    assert "cannot open --output=/tmp/x" in path["result"]["content"][0]["text"]
    assert "no gpu '--json'" in value["result"]["content"][0]["text"]


def test_damage():
    """what is no JSON, too deep or too long gets an error, and the session goes on"""
    replies = session("{", "[" * 2000, '{"jsonrpc":"2.0","id":1}', json.dumps({"id": 2, "method": "x" * 100000}),
                      "[1,2]", {"method": "ping"})
    assert [r.get("error", {}).get("code") for r in replies] == [-32700, -32700, -32600, -32601, -32600, None], replies


def live(*messages, until):
    """The messages of a session that stays open, up to the first that `until` likes."""
    with subprocess.Popen([PROGRAM, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        seen = []
        try:
            for message in messages:
                server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            server.stdin.flush()
            for line in server.stdout:
                seen.append(json.loads(line))
                if until(seen[-1]):
                    break
        finally:
            server.terminate()
        return seen


def blocked(**arguments):
    """A call that waits for ever: nobody writes to that pipe."""
    pipe = os.path.join(os.environ["TMP"], "pipe")
    if not os.path.exists(pipe):
        os.mkfifo(pipe)
    return call("sim", path=[pipe], **arguments)


def test_blocked():
    """a call that does not end holds up nothing, and ends after its time; other calls do not wait for it"""
    seen = live({"id": 1, **blocked(timeout=1.5)}, {"id": 2, "method": "ping"},
                {"id": 3, **call("sim", path=["traces/decomfl.vct"], gpu=["t4"])}, until=lambda m: m.get("id") == 1)
    assert [m["id"] for m in seen] == [2, 3, 1], seen
    assert seen[2]["result"]["isError"] and "ended after 1.5 s" in seen[2]["result"]["content"][0]["text"]
    wrong = session(blocked(timeout=-1), blocked(timeout="soon"))
    assert [w["error"]["code"] for w in wrong] == [-32602, -32602]


def test_cancel():
    """a cancelled call is not answered, and what waited for its place is"""
    calls = [{"id": i, **blocked()} for i in range(4)]
    stop = [{"method": "notifications/cancelled", "params": {"requestId": i}} for i in (0, 1, 2, 3, 77)]
    seen = live(*calls, {"id": 9, **call("sim", path=["traces/decomfl.vct"], gpu=["t4"])}, *stop,
                until=lambda m: m.get("id") == 9)
    assert [m["id"] for m in seen] == [9], seen


def test_progress():
    """who gives a token hears how long a call has run"""
    asked = blocked(timeout=3)
    asked["params"]["_meta"] = {"progressToken": "tok"}
    seen = live({"id": 1, **asked}, until=lambda m: m.get("id") == 1)
    told = [m["params"] for m in seen if m.get("method") == "notifications/progress"]
    assert len(told) >= 2 and all(t["progressToken"] == "tok" for t in told), seen
    assert told[0]["progress"] < told[1]["progress"]


def test_many():
    """twenty calls at once are all answered"""
    replies = session(*[call("sim", path=["traces/decomfl.vct"], gpu=["t4"])] * 20)
    assert [r["id"] for r in replies] == list(range(20)) and not any(r["result"]["isError"] for r in replies)


def test_dryrun_errors():
    """a card that is not known is an error; a command may be one text, with quotes"""
    card, line, quotes = session(call("dryrun", command=["/bin/true"], gpu=["rtx99999"]),
                                 call("dryrun", command="/nowhere/python 'a b' c", gpu=["t4"]),
                                 call("dryrun", command="python 'a", gpu=["t4"]))
    assert card["result"]["isError"] and "no gpu 'rtx99999'" in card["result"]["content"][0]["text"]
    assert line["result"]["isError"] and "/nowhere/python'" not in line["result"]["content"][0]["text"].replace("a b", "")
    assert quotes["error"]["code"] == -32602


def hostile(seed):
    """Lines of one session that nobody should send; each that has an id and a method is to be answered once."""
    dice = random.Random(seed)
    odd = [None, True, -1, 1e308, "", "\x1b[31m", "é" * 50, [], {}, [[]], {"path": None}, "../" * 40, "-", "--help", "@batch=4",
           "traces/decomfl.vct", ["traces/decomfl.vct"] * 3, 2 ** 70, "nosuch.vct", "/dev/null", "/", TMP + "/pipe"]
    lines = []
    for i in range(dice.randint(3, 8)):
        kind = dice.randrange(9)
        if kind == 0:
            lines.append(dice.choice(["{", "}", "[]", "null", "1", '"x"', "[" * 5000, "{\"a\":" * 3000, "\x00", "GET / HTTP/1.1", "\ud83d",
                                      "x" * 200000, '{"jsonrpc":"2.0"', '{"jsonrpc":"1.0","id":1,"method":"ping"}']))
        elif kind == 1:
            lines.append(json.dumps({"jsonrpc": "2.0", "id": i, "method": dice.choice(["", "ping ", "tools/nosuch", "shutdown", "tools/call"]),
                                     "params": dice.choice(odd)}))
        elif kind == 2:
            lines.append(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled",
                                     "params": dice.choice([{}, {"requestId": dice.choice(odd)}, {"requestId": i - 1}, None])}))
        elif kind == 3: # what was sent is sent again
            lines.append(dice.choice(lines) if lines else "")
        else:
            name = dice.choice(["sim", "fit", "explain", "diff", "dryrun", "nosuch", None])
            given = {dice.choice(["path", "gpu", "text", "command", "set", "timeout", "find", "nosuch"]): dice.choice(odd)
                     for _ in range(dice.randint(0, 4))}
            given["timeout"] = dice.choice([0.5, 1, given.get("timeout", 1)])
            lines.append(json.dumps({"jsonrpc": "2.0", "id": i, **call(name, **given)}))
    return lines


def test_hostile():
    """sessions of nonsense end when they are over, answer what comes last, and leave no process behind"""
    for seed in range(int(os.environ.get("HOSTILE", "8"))):
        lines = hostile(seed) + [json.dumps({"jsonrpc": "2.0", "id": "last", "method": "ping"})]
        done = subprocess.run([PROGRAM, "mcp"], input="\n".join(lines).encode("utf-8", "surrogatepass") + b"\n", capture_output=True, timeout=60)
        replies = [json.loads(line) for line in done.stdout.splitlines()]
        assert done.returncode == 0 and not done.stderr, (seed, done.returncode, done.stderr[-300:])
        assert sum(r.get("id") == "last" for r in replies) == 1, (seed, lines[:3], replies)
        assert all(("result" in r) != ("error" in r) for r in replies if "id" in r), (seed, replies)


tap.run(globals())
