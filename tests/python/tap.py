# SPDX-License-Identifier: Apache-2.0
"""tap.py - runs the functions test_* of a file in their order, and prints TAP: the docstring is the
sentence. skip("why") leaves one out."""
import traceback


class Skipped(Exception):
    pass


def skip(why):
    raise Skipped(why)


def raises(kind, pattern, function, *args, **kwargs):
    import re
    try:
        function(*args, **kwargs)
    except kind as error:
        assert re.search(pattern, str(error)), f"{pattern!r} is not in {error!s}"
        return error
    raise AssertionError(f"no {kind.__name__}")


def run(names):
    failed = 0
    tests = [(k, f) for k, f in names.items() if k.startswith("test_")]
    for n, (_, function) in enumerate(tests, 1):
        try:
            function()
            print(f"ok {n} - {function.__doc__}")
        except Skipped as why:
            print(f"ok {n} - {function.__doc__} # SKIP {why}")
        except Exception:
            failed = 1
            print(f"not ok {n} - {function.__doc__}")
            print("".join("#   " + line + "\n" for line in traceback.format_exc().splitlines()))
    print(f"1..{len(tests)}")
    raise SystemExit(failed)
