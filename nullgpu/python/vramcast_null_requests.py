# SPDX-License-Identifier: Apache-2.0
"""vramcast_null_requests.py - plays a trace of requests to a server that is ready, when each came, and says what became
of them. A line of the trace: {"at": SECONDS, "prompt": [[NAME, TOKENS], ...], "output": TOKENS, "answer": NAME}."""
import json
import random
import re
import threading
import time
import urllib.error
import urllib.request

# What vLLM and SGLang count, under one name.
COUNTS = {"preempted": r"vllm:num_preemptions_total|sglang:num_retracted_reqs_total",
          "found": r"vllm:prefix_cache_hits_total|sglang:cached_tokens_total",
          "asked": r"vllm:prefix_cache_queries_total|sglang:prompt_tokens_total"}


class Player:
    def __init__(self, port, path):
        self.base = "http://127.0.0.1:%d" % port
        with open(path) as lines:
            self.requests = [json.loads(line) for line in lines]
        self.texts, self.answers, self.lock = {}, {}, threading.Lock()
        self.done, self.refused, self.error = 0, 0, None

    def tokens(self, name, n):
        """The beginning of that text: an answer as it was given, or tokens that any vocabulary has."""
        with self.lock:
            text = self.answers.get(name) or self.texts.setdefault(name, [])
            draw = random.Random("%s %d" % (name, len(text)))
            while len(text) < n:
                text.append(draw.randrange(10, 250))
            return text[:n]

    def ask(self, path, body=None):
        data = json.dumps(body).encode() if body else None
        with urllib.request.urlopen(urllib.request.Request(
                self.base + path, data, {"Content-Type": "application/json"}), timeout=3600) as answer:
            return answer.read().decode()

    def play(self, model, request):
        prompt = [t for name, n in request["prompt"] for t in self.tokens(name, n)]
        body = {"model": model, "prompt": prompt, "max_tokens": request["output"], "temperature": 0, "ignore_eos": True,
                "return_token_ids": True}
        try:
            ids = json.loads(self.ask("/v1/completions", body))["choices"][0].get("token_ids")
            with self.lock:
                self.done += 1
                if ids:
                    self.answers[request["answer"]] = ids
        except urllib.error.HTTPError as e:
            with self.lock:
                self.refused += 1
                self.error = self.error or re.sub(r"\s+", " ", e.read().decode("utf-8", "replace"))[:200]
        except (OSError, ValueError, KeyError) as e:  # the server is gone
            with self.lock:
                self.error = self.error or str(e)

    def run(self, alive):
        """Until all are answered, or the server is not alive() any more."""
        model = json.loads(self.ask("/v1/models"))["data"][0]["id"]
        begin, threads = time.monotonic(), []
        for request in self.requests:
            while alive() and time.monotonic() - begin < request["at"]:
                time.sleep(0.01)
            threads.append(threading.Thread(target=self.play, args=(model, request), daemon=True))
            threads[-1].start()
        for thread in threads:
            while alive() and thread.is_alive():
                thread.join(0.2)

    def sentence(self):
        text = "%d of %d requests answered" % (self.done, len(self.requests))
        if self.refused:
            text += ", %d refused" % self.refused
        try:
            metrics = self.ask("/metrics")
        except (OSError, ValueError):
            metrics = ""
        count = {name: sum(float(v) for v in re.findall(r"(?m)^(?:%s)(?:\{[^}]*\})? ([0-9.e+]+)$" % pattern, metrics))
                 for name, pattern in COUNTS.items()}
        if count["preempted"]:
            text += ", preempted %d times" % count["preempted"]
        if count["found"]:
            text += ", %d of %d tokens found in the prefix cache" % (count["found"], count["asked"])
        return text + ("; " + self.error if self.error else "")
