# SPDX-License-Identifier: Apache-2.0
"""mcp_session.py - a session with `vramcast mcp`, message by message."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402

PROGRAM = os.environ["VRAMCAST"]
INITIALIZE = {"method": "initialize", "params": {
    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}


def session(*messages):
    """The replies to messages (a text goes as it is; others get jsonrpc and an id)."""
    lines = [m if isinstance(m, str) else json.dumps({"jsonrpc": "2.0", "id": i, **m})
             for i, m in enumerate(messages)]
    done = subprocess.run([PROGRAM, "mcp"], input="\n".join(lines) + "\n", text=True,
                          capture_output=True, timeout=120)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


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
    assert sorted(tools) == ["diff", "dryrun", "explain", "fit", "sim"]
    sim = tools["sim"]["inputSchema"]
    assert sim["required"] == ["path"] and sim["properties"]["gpu"]["type"] == "array"
    assert tools["sim"]["annotations"]["readOnlyHint"] and not tools["dryrun"]["annotations"]["readOnlyHint"]


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
    assert "in pieces" in explain["result"]["content"][0]["text"]


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


tap.run(globals())
