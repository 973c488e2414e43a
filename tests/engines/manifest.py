# SPDX-License-Identifier: Apache-2.0
"""manifest.py FILE - what the container of an indexed job runs; fails where the manifest is not one."""
import sys

lines = open(sys.argv[1]).read().splitlines()
text = "\n".join(line for line in lines if not line.startswith("#"))
for needed in ("kind: Job", "completionMode: Indexed", "completions: 8", "name: JOB_COMPLETIONS", 'value: "8"',
               "restartPolicy: OnFailure", "command: [sh, -c]"):
    assert needed in text, needed
folded, indent = [], None
for line in text.splitlines():
    if line.strip() == "- >-":
        indent = len(line) - len(line.lstrip())
    elif indent is not None and len(line) - len(line.lstrip()) > indent:
        folded.append(line.strip())
    elif indent is not None:
        break
assert folded
print(" ".join(folded))
