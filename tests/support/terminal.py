# SPDX-License-Identifier: Apache-2.0
"""terminal.py COLUMNS FILE PROGRAM [ARG]... - run a program whose standard error is a terminal of so many columns; what
the terminal received goes into FILE, and the exit code is the program's. With BOTH=1 its standard output is one too."""
import fcntl
import os
import struct
import sys
import termios

columns, file, line = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
ours, its = os.openpty()
fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
child = os.fork()
if not child:
    os.setsid()
    fcntl.ioctl(its, termios.TIOCSCTTY, 0)
    os.dup2(its, 2)
    if os.environ.get("BOTH"):
        os.dup2(its, 1)
    os.execvp(line[0], line)
os.close(its)
with open(file, "wb") as received:
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the last one who had it open is gone
            break
        if not part:
            break
        received.write(part)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) % 256)
