#!/usr/bin/env python3
"""Changes every refusal in src/formats, src/checkpoint and src/cache in turn, and says which changes no test notices.

Usage: ./dev refusals [--jobs N] [--list] [--again] [--tests REGEX] [PATH…]

A copy of the tree is compiled once, with a switch in each condition (find_refusals.py, switch.hpp); with PATHs, only in
their files, and ccache has the others. Every test runs once to see which changes make a difference in it; then every
change runs with those tests, the fastest first, until one of them fails or takes too long. living.txt lists the changes
that are known to live, with the reasons. Exit code 1: a change lives that is not listed there, or one is listed that
does not live.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from find_refusals import find_sites, rewrite

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = ROOT / "build" / "refusals"
COPY = WORK / "ballast"
BUILD = COPY / "build" / "release"
FOLDERS = ("src/formats", "src/checkpoint", "src/cache")
BELOW = {"core", "io", "kernels", "device", "tensor"}  # the tests in these folders never reach a refusal
MOST_IN_A_FILE = 256  # changes: if one file gets more of them, the numbers in the other files stay
MAKES_A_DIFFERENCE, MEANS_NOTHING = 1, 2  # as in switch.hpp
MOST_MEMORY = 4 << 30  # a change must not use up the memory of the machine


@dataclasses.dataclass
class Change:
    number: int
    path: str
    line: int
    key: str  # the name of the change in living.txt
    tests: list = dataclasses.field(default_factory=list)  # the tests in which the change makes a difference
    noticed_by: str = ""


@dataclasses.dataclass
class Test:
    name: str
    command: list
    environment: dict
    seconds: float = 0.0


def git_files():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            check=True, capture_output=True).stdout
    return [path for path in listed.decode().split("\0") if path and (ROOT / path).is_file()]


def find_changes(chosen=("",)):
    """{path: the text with switches} of files whose paths begin with one of `chosen`, [Change] of all files"""
    files = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.[ch]pp"))
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in files}
    rewritten, changes, taken = {}, [], {}
    for place, (path, sites) in enumerate(find_sites(texts).items()):
        number = 1 + place * MOST_IN_A_FILE
        header = f'#include "{COPY / "tests/refusals/switch.hpp"}"\n' if sites else ""
        if path.startswith(chosen):
            rewritten[path] = header + rewrite(texts[path], sites, number)
        for site in sites:
            for change in site.changes:
                key = f"{path} {site.function}: {site.condition} [{change}]"
                taken[key] = taken.get(key, 0) + 1
                if taken[key] > 1:
                    key += f" ({taken[key]})"
                changes.append(Change(number, path, site.line, key))
                number += 1
    return rewritten, changes


def copy_tree(rewritten):
    """Writes the copy. Files that stay the same keep their times, so that little is compiled again."""
    kept = set()
    for path in git_files():
        content = rewritten[path].encode() if path in rewritten else (ROOT / path).read_bytes()
        target = COPY / path
        kept.add(target)
        if target.is_file() and target.read_bytes() == content:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        shutil.copymode(ROOT / path, target)
    for folder in ("src", "tests", "include", "cli"):
        for path in (COPY / folder).rglob("*"):
            if path.is_file() and path not in kept and "__pycache__" not in path.parts:
                path.unlink()


def test_programs():
    """The folders of tests, by the names that tests/CMakeLists.txt gives to their programs and labels."""
    folders = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("*_test.cpp")}
    return {"_".join(folder.parts) for folder in folders} - BELOW


def build():
    if not (BUILD / "build.ninja").exists():
        subprocess.run(["cmake", "-S", COPY, "--preset", "release", "-DBALLAST_BUILD_BENCH=OFF", "--log-level=WARNING"],
                       check=True, stdout=subprocess.DEVNULL, cwd=COPY)
    examples = [f"example_{path.stem}" for path in (ROOT / "examples").glob("*.cpp")]
    targets = [f"{program}_test" for program in test_programs()] + ["ballast_cli", *examples]
    subprocess.run(["cmake", "--build", BUILD, "--target", *targets], check=True, stdout=sys.stderr)


def find_tests(pattern):
    shown = subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1"], check=True, capture_output=True)
    tests, wanted = [], test_programs() | {"e2e"}
    for test in json.loads(shown.stdout)["tests"]:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        is_wanted = not wanted.isdisjoint(properties.get("LABELS", []))
        if not is_wanted or not test.get("command") or not re.search(pattern, test["name"]):
            continue
        environment = dict(pair.split("=", 1) for pair in properties.get("ENVIRONMENT", []))
        tests.append(Test(test["name"], test["command"], environment))
    return tests


def begin_test():
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):  # a shell has jobs in its background ignore these
        signal.signal(number, signal.SIG_DFL)


def run(test, seconds, environment):
    """Returns the exit code, or None if the test takes longer than `seconds`."""
    with tempfile.TemporaryDirectory(prefix="ballast-refusal-") as folder:
        everything = os.environ | {"BALLAST_SHARED": str(ROOT.parent / "shared"), "TMPDIR": folder, "HOME": folder}
        process = subprocess.Popen(test.command, env=everything | test.environment | environment, cwd=BUILD,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True, preexec_fn=begin_test)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None


def passes(test, seconds, **environment):
    """Whether the test passes; 77 says that it was skipped. A test that takes too long has a second try."""
    code = run(test, seconds, environment)
    if code is None:
        code = run(test, seconds, environment)
    return code in (0, 77)


def see_differences(tests, changes, pool):
    """Runs each test once. Returns the changes that mean something. If a test lets nobody write the file with the
    differences, such as one that confines the command, any change may make a difference in it."""
    means_nothing = set()

    def see(test):
        with tempfile.NamedTemporaryFile(dir=WORK) as seen:
            seen.truncate(1 + changes[-1].number)
            start = time.monotonic()
            has_passed = passes(test, 900, BALLAST_REFUSALS_SEEN=seen.name)
            test.seconds = time.monotonic() - start
            if has_passed:
                return True, pathlib.Path(seen.name).read_bytes()
            return passes(test, 900), bytes([MAKES_A_DIFFERENCE]) * (1 + changes[-1].number)

    for test, (has_passed, seen) in zip(tests, pool.map(see, tests)):
        if not has_passed:
            print(f"left out, because it fails without a change: {test.name}", file=sys.stderr)
            continue
        for change in changes:
            if seen[change.number] == MAKES_A_DIFFERENCE:
                change.tests.append(test)
            elif seen[change.number] == MEANS_NOTHING:
                means_nothing.add(change.number)
    return [change for change in changes if change.number not in means_nothing]


def try_change(change):
    for test in sorted(change.tests, key=lambda test: test.seconds):
        if not passes(test, 20 + 5 * test.seconds, BALLAST_REFUSAL=str(change.number)):
            change.noticed_by = test.name
            return change
    return change


def read_living():
    """{key: reason} of living.txt: a line with the key, then indented ones with the reason."""
    reasons, key = {}, None
    for line in (HERE / "living.txt").read_text().splitlines():
        if line.startswith(" "):
            reasons[key] = f"{reasons[key]} {line.strip()}".strip()
        elif line and not line.startswith("#"):
            key = line
            reasons[key] = ""
    return reasons


def report(changes, tried, is_whole):
    known = read_living()
    living = [change for change in tried if not change.noticed_by]
    new = [change for change in living if change.key not in known]
    keys = {change.key for change in changes}
    stale = [key for key in known if key not in keys] if is_whole else []
    stale += [f"{change.key}, which {change.noticed_by} notices" for change in tried
              if change.noticed_by and change.key in known]
    print(f"{len(tried)} changes: {len(tried) - len(living)} noticed, {len(living) - len(new)} live for a reason, "
          f"{len(new)} live for none")
    for change in new:
        such_as = ", such as " + change.tests[0].name if change.tests else ""
        print(f"lives, line {change.line}, makes a difference in {len(change.tests)} tests{such_as}:\n{change.key}")
    for key in stale:
        print(f"does not live: {key}")
    return 1 if new or stale else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("paths", nargs="*", metavar="PATH", help="only refusals in files whose paths begin so")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="tests at once (one a processor)")
    parser.add_argument("--list", action="store_true", help="list the changes and stop")
    parser.add_argument("--again", action="store_true", help="only those that lived the last time")
    parser.add_argument("--tests", default="", metavar="REGEX", help="only tests with such names")
    options = parser.parse_args()

    paths = tuple(options.paths) or ("",)
    rewritten, changes = find_changes(paths)
    chosen = [change for change in changes if change.path.startswith(paths)]
    if options.again:
        lived = set((WORK / "lived.txt").read_text().splitlines())
        chosen = [change for change in chosen if change.key in lived]
    if options.list:
        for change in chosen:
            print(f"{change.path}:{change.line}: {change.key.split(' ', 1)[1]}")
        return 0

    os.nice(10)
    copy_tree(rewritten)
    build()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        tests = find_tests(options.tests)
        meaningful = see_differences(tests, changes, pool)
        tried = []
        for change in pool.map(try_change, [change for change in chosen if change in meaningful]):
            tried.append(change)
            print(f"\r{len(tried)} of {len(chosen)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    (WORK / "lived.txt").write_text("".join(f"{change.key}\n" for change in tried if not change.noticed_by))
    (WORK / "noticed.txt").write_text("".join(f"{c.key}\t{c.noticed_by}\n" for c in tried if c.noticed_by))
    is_whole = not (options.paths or options.again or options.tests)
    return report(changes, tried, is_whole)


if __name__ == "__main__":
    sys.exit(main())
