# SPDX-License-Identifier: Apache-2.0
"""ray_sweep.py PARTS FILE TRACE... --vary KEY=VALUES - a sweep as tasks of Ray.

A program that dies is started again by its task, and a task whose worker or machine goes is made again by Ray. The
traces lie where every worker can read them."""
import subprocess
import sys

import ray


TRIES = 40


@ray.remote(num_cpus=1, max_retries=TRIES)
def part(number, parts, words):
    command = ["vramcast", "sweep", "-q", "--json", "-j", "1", *words, "--shard", f"{number}/{parts}"]
    for _ in range(TRIES):
        done = subprocess.run(command, stdout=subprocess.PIPE)
        if done.returncode >= 0:  # below: a signal
            break
    done.check_returncode()
    return done.stdout


def main():
    parts, path, words = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    ray.init(ignore_reinit_error=True)
    lines = ray.get([part.remote(i + 1, parts, words) for i in range(parts)])
    return subprocess.run(["vramcast", "reduce", "-", "-o", path], input=b"".join(lines)).returncode


if __name__ == "__main__":
    sys.exit(main())
