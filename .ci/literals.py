#!/usr/bin/env python3
"""Changes one number of a crate's source at a time and asks a command whether it notices.

cargo-mutants changes operators and results, and no numbers: no shift, no mask, no entry of a table.
This does. An integer becomes one more and one less; a float the next f32 above and below. Numbers in
tests and comments are left alone, and so are lines of nothing but hex: the codes of the grids, 4608 of
them, each of which `harness/cases/tests/strength.rs` finds in the number of a case. The sources are
changed where they stand, so run it on a copy of the repository.

    literals.py [--skip REGEX] FILE… -- COMMAND

REGEX is looked for in the first line of the item that the number is in, and in the line itself.
"""
import argparse
import os
import re
import signal
import struct
import subprocess
import sys

# Not `.0` of a tuple, not `32` of `f32`; the suffix of `3u32` stays.
NUMBER = re.compile(
    r"(?<![\w$])(?<![^.]\.)(0x[0-9a-fA-F]+|\d+\.\d+|\d+)(?=(?:[iu](?:8|16|32|64|size))?(?!\w|\.\d))"
)
CODES = re.compile(r"\s*(0x[0-9a-f]+,\s*)+$")
ITEM = re.compile(r"^( {4})?(?:pub(?:\(\w+\))? )?(?:const |static |fn |layout!)")
TIMEOUT_S = 120


def next_f32(value, by):
    bits = struct.unpack("<i", struct.pack("<f", value))[0]
    # Below zero is the smallest negative number.
    bits = bits + by if bits or by > 0 else 0x80000001 - (1 << 32)
    return repr(struct.unpack("<f", struct.pack("<i", bits))[0])


def others(number):
    if "." in number:
        return [next_f32(float(number), by) for by in (1, -1)]
    value = int(number, 0)
    return [str(value + 1)] + ([str(value - 1)] if value else [])


def numbers(source):
    """Where each number of the code is, and the item that it is in."""
    at, item = 0, ""
    for line in source.splitlines(keepends=True):
        if line.startswith("#[cfg(test)]"):
            return
        code = line.split("//")[0]
        if ITEM.match(code) or code.startswith(("impl", "macro_rules!")):
            item = code.strip()
        if not code.lstrip().startswith("#") and not CODES.match(code):
            for number in NUMBER.finditer(code):
                yield at + number.start(), number[0], item, line.strip()
        at += len(line)


def judge(command):
    """Whether the command notices: fails, and not for want of a program to run."""
    pipe = subprocess.PIPE
    # A group of its own, so that a test that hangs dies with the cargo that started it.
    run = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True)
    try:
        _, errors = run.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
        return "timeout"
    if run.returncode == 0:
        return "MISSED"
    return "unviable" if "could not compile" in errors else "caught"


def main():
    if "--" not in sys.argv:
        sys.exit(__doc__)
    split = sys.argv.index("--")
    command = sys.argv[split + 1 :]
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--skip", default="(?!)")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args(sys.argv[1:split])

    if judge(command) != "MISSED":
        sys.exit("the command fails before anything is changed")
    totals = dict.fromkeys(("caught", "MISSED", "timeout", "unviable"), 0)
    for file in args.files:
        with open(file, encoding="utf-8") as f:
            source = f.read()
        try:
            for at, number, item, line in numbers(source):
                if re.search(args.skip, f"{item}\n{line}"):
                    continue
                for other in others(number):
                    with open(file, "w", encoding="utf-8") as f:
                        f.write(source[:at] + other + source[at + len(number) :])
                    verdict = judge(command)
                    totals[verdict] += 1
                    row = source.count("\n", 0, at) + 1
                    print(f"{verdict:8} {file}:{row}: {number} -> {other} in {line}", flush=True)
        finally:
            with open(file, "w", encoding="utf-8") as f:
                f.write(source)
    viable = sum(totals.values()) - totals["unviable"]
    print(f"{viable} viable: {totals}")


if __name__ == "__main__":
    main()
