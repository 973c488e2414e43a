# SPDX-License-Identifier: Apache-2.0
"""many.py LIST FOLDER - runs scripts, a child each, so that PyTorch is imported once. Lines of LIST: NAME MIB
SCRIPT ARGUMENT...; MIB is the memory of the card, - as it is. Prints "PID NAME STATUS" of each child;
what a child says goes to FOLDER/NAME.out."""
import os
import runpy
import sys
import traceback

import torch  # noqa: F401


def child(out, size, script, args):
    fd = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(fd, 1)
    os.dup2(fd, 2)
    if size != "-":  # the card is looked at when it is first used
        os.environ["VRAMCAST_NULL_TOTAL"] = str(int(size) << 20)
    sys.argv = [script, *args]
    status = 0
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as e:
        status = int(e.code or 0)
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.exit(status)


def main():
    with open(sys.argv[1]) as f:
        runs = [line.split() for line in f if line.strip()]
    for name, size, script, *args in runs:
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            child(os.path.join(sys.argv[2], name + ".out"), size, script, args)
        print(pid, name, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


main()
