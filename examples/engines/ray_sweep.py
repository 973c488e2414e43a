# SPDX-License-Identifier: Apache-2.0
"""ray_sweep.py PARTS FILE TRACE... --vary KEY=VALUES - a sweep as tasks of Ray.

A task that dies is made again, whether the program, its worker or its machine went. The traces lie where every worker
can read them."""
import subprocess
import sys

import ray


@ray.remote(num_cpus=1, max_retries=30, retry_exceptions=True)
def part(number, parts, words):
    command = ["vramcast", "sweep", "-q", "--json", "-j", "1", *words, "--shard", f"{number}/{parts}"]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def main():
    parts, path, words = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    ray.init(ignore_reinit_error=True)
    lines = ray.get([part.remote(i + 1, parts, words) for i in range(parts)])
    return subprocess.run(["vramcast", "reduce", "-", "-o", path], input=b"".join(lines)).returncode


if __name__ == "__main__":
    sys.exit(main())
