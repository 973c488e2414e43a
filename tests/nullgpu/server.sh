#!/bin/sh
# server.sh - `dryrun -- vllm serve`: it ends when the server is ready, and one sentence says with what, or what it died of. The
# servers here are scripts that print what vLLM and SGLang print.
. tests/support/tap.sh
own cc || { skip "made-up servers" "no cc for ${ARCH:-this machine}"; finish; }
site=$TMP/site; mkdir -p "$site/torch/lib" "$TMP/bin"; : > "$site/torch/__init__.py"
py=$(python3 -c "import sys; print(sys.executable)") || { skip "made-up servers" "no python3"; finish; }
export PYTHONPATH="$site" TMPDIR="$TMP/private" PATH="$TMP/bin:$PATH"; mkdir -p "$TMPDIR"
echo 'int cudaMalloc(void **p, unsigned long n); int ask(void **p, long n) { return cudaMalloc(p, n); }' > "$TMP/want.c"
cc -shared -fPIC -o "$site/torch/lib/libtorch_cuda.so" "$TMP/want.c" -L"$BUILD/nullgpu" -l:vcnull-libcudart.so.12
server() { # NAME LINES AND WHAT THEN HAPPENS [CODE AFTER Ctrl-C] : a program of that name
	{ echo "#!$py"; echo "import signal, sys, time"
	  echo "signal.signal(signal.SIGINT, lambda *a: (print('ended as by Ctrl-C', flush=True), sys.exit(${4:-0})))"
	  printf 'print("""%s""", flush=True)\n' "$2"; echo "$3"; } > "$TMP/bin/$1"; chmod +x "$TMP/bin/$1"; }
stays='time.sleep(600)'
vllm='(EngineCore pid=1) INFO GPU KV cache size: 72,400 tokens
(EngineCore pid=1) INFO Maximum concurrency for 98,304 tokens per request: 6.73x
INFO replace gpu_memory_utilization config with `--kv-cache-memory=8901000000` to fit into requested memory, or `--kv-cache-memory=9901000000`
INFO:     Application startup complete.'
server vllm "$vllm" "$stays"
run dryrun --no-record -g rtx4090 -- vllm serve some/model
expect "a server that is ready is ended" 0 'ended as by Ctrl-C' '^vramcast: the server starts: 72,400 tokens, 6 requests of 98,304 tokens at a time; safe: --kv-cache-memory=8901000000$'
run dryrun -o "$TMP/a.vct" -g rtx4090 -- vllm serve some/model
expect "recorded, too" 0 '' '^vramcast: the server starts: 72,400 tokens'
server vllm "$vllm" "$stays" 7
run dryrun --no-record -g rtx4090 -- vllm serve some/model
expect "one that ends with a code of its own was ready all the same" 0 '' '^vramcast: the server starts'
server vllm "(EngineCore pid=1) ERROR ValueError: To serve at least one request with the model's max seq len (132000), (4.1 GiB KV cache is needed, which is larger than the available KV cache memory (3.86 GiB). Based on the available memory, the estimated maximum model length is 123872. Try increasing
RuntimeError: Engine core initialization failed. See root cause above." 'sys.exit(1)'
run dryrun --no-record -g rtx4090 -- vllm serve some/model
expect "what it dies of, and the option that avoids it" 1 '' "^vramcast: the server does not start: ValueError: To serve at least one request with the model's max seq len .132000., .4.1 GiB KV cache is needed.*; --max-model-len 123872 avoids it"
server vllm 'ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (969). Each decode sequence requires one' 'sys.exit(1)'
run dryrun --no-record -g rtx4090 -- vllm serve some/model
expect "too few blocks for states" 1 '' 'exceeds available Mamba cache blocks .969.; --max-num-seqs 969 avoids it$'
server vllm 'OSError: some/model is not a local folder' 'sys.exit(1)'
run dryrun --no-record -g rtx4090 -- vllm serve some/model
expect "an error that is not of memory" 1 '' '^vramcast: the server does not start: OSError: some/model is not a local folder$'
# A trace of requests is played: equal texts are equal tokens, an answer is what the server gave. One of 900 tokens is refused.
{ echo "#!$py"; cat << 'PY'
import http.server, json, os, signal, sys, threading
class Handler(http.server.BaseHTTPRequestHandler):
    def say(self, code, text):
        self.send_response(code); self.end_headers(); self.wfile.write(text.encode())
    def do_GET(self):
        self.say(200, json.dumps({"data": [{"id": "m"}]}) if self.path == "/v1/models" else
                 'vllm:num_preemptions_total{engine="0"} 2.0\nvllm:prefix_cache_hits_total{engine="0"} 16.0\nvllm:prefix_cache_queries_total{engine="0"} 64.0\n')
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with open(os.environ["SEEN"], "a") as f:
            f.write(json.dumps([len(body["prompt"]), body["prompt"][:4], body["prompt"][8:], body["max_tokens"], body["ignore_eos"]]) + "\n")
        if os.environ.get("DIES"):
            print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", flush=True); os._exit(1)
        if len(body["prompt"]) > 512:
            return self.say(400, '{"error": "This model\'s maximum context length is 512 tokens"}')
        self.say(200, json.dumps({"choices": [{"token_ids": [7, 7, 7]}]}))
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=s.serve_forever, daemon=True).start()
signal.signal(signal.SIGINT, lambda *a: os._exit(0))
print("Starting vLLM server on http://0.0.0.0:%d" % s.server_port, flush=True)
print("INFO:     Application startup complete.", flush=True)
threading.Event().wait(600)
PY
} > "$TMP/bin/vllm"; chmod +x "$TMP/bin/vllm"
export SEEN=$TMP/seen
cat > "$TMP/trace.jsonl" << 'TRACE'
{"arrival": 0, "prompt": [["system", 8], ["one", 4]], "output": 3, "answer": "a"}
{"arrival": 0.5, "prompt": [["system", 8], ["a", 3]], "output": 5}
{"arrival": 0.6, "prompt": 900, "output": 1}
TRACE
run dryrun --no-record -g rtx4090 --requests "$TMP/trace.jsonl" -- vllm serve some/model
expect "a trace of requests is played" 0 '' "^vramcast: 2 of 3 requests answered, 1 refused, preempted 2 times, 16 of 64 tokens found in the prefix cache; .*maximum context length is 512"
"$py" - "$SEEN" << 'PY' > "$TMP/said"
import json, sys
a, b, c = map(json.loads, open(sys.argv[1]))
print(a[0], b[0], c[0], b[2], b[3:], a[1] == b[1])
PY
check "of the lengths asked for, shared texts alike, with what the server answered before" grep -qx '12 11 900 \[7, 7, 7\] \[5, True\] True' "$TMP/said"
DIES=1 run dryrun --no-record -g rtx4090 --requests "$TMP/trace.jsonl" -- vllm serve some/model
expect "a server that dies of them" 1 '' 'the server died of OutOfMemoryError: CUDA out of memory; --tensor-parallel-size, .* avoids it$'
run dryrun --no-record -g rtx4090 --requests "$TMP/trace.jsonl" -- "$py" -c 1
expect "only a server plays them" 2 '' '^vramcast dryrun: --requests: the program is no vllm serve'
run dryrun --no-record -g rtx4090 --requests "$TMP/none" -- vllm serve some/model
expect "a trace that is not there" 125 '' 'none'
server sglang '[2026-09-09 11:57:27] max_total_num_tokens=2618868, chunked_prefill_size=-1, max_prefill_tokens=16384, max_running_requests=48, context_len=16384, available_gpu_mem=13.38 GB
The server is fired up and ready to roll!' "$stays"
run dryrun --no-record -g rtx4090 -- sglang serve --model-path some/model
expect "a server of SGLang" 0 '' '^vramcast: the server starts: 2618868 tokens, at most 48 requests at a time, of at most 16384 tokens$'
server vllm 'Application startup complete' 'sys.exit(5)'
run dryrun --no-record -g rtx4090 -- vllm bench latency
expect "other programs of vLLM are left alone" 5 'startup complete' 'the program ended with status 5'
finish
