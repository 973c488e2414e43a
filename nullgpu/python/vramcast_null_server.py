#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vramcast_null_server.py --requests=[FILE] COMMAND... - runs a server of vLLM or SGLang until it is ready, plays a trace
of requests to it, if one is named, ends it, and says in one sentence what it starts with and what became of the requests,
or what it died of and the option that avoids it. What it holds is read from its own log."""
import re
import signal
import subprocess
import sys
import threading
import time

PORT = re.compile(r"(?:Uvicorn running|server) on https?://[^ ]*?:(\d+)")
READY = re.compile(r"Application startup complete|fired up and ready to roll")
TOKENS = re.compile(r"GPU KV cache size: ([\d,]+) tokens")
REQUESTS = re.compile(r"Maximum concurrency for ([\d,]+) tokens per request: ([\d.]+)x")
SAFE = re.compile(r"--kv-cache-memory=(\d+)")  # the first that vLLM names keeps to gpu_memory_utilization
SGLANG = re.compile(r"max_total_num_tokens=(\d+).*max_running_requests=(\d+).*context_len=(\d+)")
# What a start dies of, and the option against it; the groups of the pattern stand in its place.
DEATHS = [(re.compile(p), o) for p, o in (
    (r"max_num_seqs \((?:\d+)\) exceeds available Mamba cache blocks \((\d+)\)", "--max-num-seqs {0}"),
    (r"max seq len \(\d+\).*KV cache is needed.*estimated maximum model length is (\d+)", "--max-model-len {0}"),
    (r"max seq len \(\d+\).*KV cache is needed", "a smaller --max-model-len"),
    (r"No available memory for the cache blocks", "a higher --gpu-memory-utilization, or --tensor-parallel-size"),
    (r"Loaded weights leave no GPU memory|Not enough memory\. Please try to increase --mem-fraction-static",
     "a higher --mem-fraction-static, or --tp-size"),
    (r"state cache is too small|Not enough GPU memory for hybrid", "a smaller --max-running-requests, or a higher --mem-fraction-static"),
    (r"OutOfMemoryError|CUDA out of memory", "--tensor-parallel-size, fewer --max-num-batched-tokens, or narrower weights"))]
ERROR = re.compile(r"\b([A-Z]\w*(?:Error|Exception): .+)")


class Log:
    def __init__(self):
        self.found, self.death, self.error, self.ready = {}, None, None, threading.Event()

    def read(self, line):
        for name, pattern in (("port", PORT), ("tokens", TOKENS), ("requests", REQUESTS), ("safe", SAFE), ("sglang", SGLANG)):
            match = pattern.search(line)
            if match and name not in self.found:
                self.found[name] = match.groups()
        for pattern, option in DEATHS:
            match = pattern.search(line)
            if match and not self.death:
                said = ERROR.search(line)
                self.death = (said.group(1) if said else match.group(0)).split(". ")[0].strip(), option.format(*match.groups())
        match = ERROR.search(line)
        if match and not self.error:
            self.error = match.group(1).strip()
        if READY.search(line):
            self.ready.set()

    def sentence(self):
        if not self.ready.is_set():
            if self.death:
                return "the server does not start: %s; %s avoids it" % self.death
            return "the server does not start: " + (self.error or "it ended without saying why")
        text = "the server starts"
        if "sglang" in self.found:
            return text + ": %s tokens, at most %s requests at a time, of at most %s tokens" % self.found["sglang"]
        if "tokens" in self.found:
            text += ": %s tokens" % self.found["tokens"]
        if "requests" in self.found:
            length, times = self.found["requests"]
            text += ", %d requests of %s tokens at a time" % (int(float(times)), length)
        if "safe" in self.found:
            text += "; safe: --kv-cache-memory=%s" % self.found["safe"]
        return text


def copy(pipe, log, ended):
    for raw in iter(pipe.readline, b""):
        sys.stdout.buffer.write(raw)
        sys.stdout.buffer.flush()
        log.read(raw.decode("utf-8", "replace"))
    ended.set()


def end(server):
    """As Ctrl-C would; a server that does not go is made to."""
    for number, seconds in ((signal.SIGINT, 30), (signal.SIGTERM, 20), (signal.SIGKILL, 20)):
        server.send_signal(number)
        try:
            return server.wait(seconds)
        except subprocess.TimeoutExpired:
            continue


def play(log, path, server):
    """What became of the requests, in words."""
    from vramcast_null_requests import Player
    for _ in range(100):  # SGLang says that it is ready first
        if "port" in log.found or server.poll() is not None:
            break
        time.sleep(0.1)
    if "port" not in log.found:
        return "the requests were not played: the log names no port"
    player = Player(int(log.found["port"][0]), path)
    try:
        player.run(lambda: server.poll() is None)
        text = player.sentence()
    except (OSError, ValueError, KeyError, IndexError) as e:
        text = "the requests were not played: %s" % e
    if server.poll() is not None or log.death:
        text += "; the server died" + (" of %s; %s avoids it" % log.death if log.death else "")
    return text


def main(requests, command):
    log, ended, played = Log(), threading.Event(), None
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell ignores it for what it runs in the background
    try:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as e:
        print("vramcast: %s: %s" % (command[0], e.strerror), file=sys.stderr)
        return 127
    signal.signal(signal.SIGINT, lambda *a: server.send_signal(signal.SIGINT))
    threading.Thread(target=copy, args=(server.stdout, log, ended), daemon=True).start()
    while server.poll() is None and not log.ready.wait(0.2):
        pass
    if requests and log.ready.is_set():
        played = play(log, requests, server)
    survived = server.poll() is None
    if survived:
        end(server)
    ended.wait(20)  # what it left running may hold the pipe
    print("vramcast: " + log.sentence(), file=sys.stderr, flush=True)
    if played:
        print("vramcast: " + played, file=sys.stderr, flush=True)
    code = server.returncode or 0
    return 0 if log.ready.is_set() and (survived or not requests) else code if code > 0 else 128 - code if code < 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1].partition("=")[2], sys.argv[2:]))
