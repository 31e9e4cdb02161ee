#!/usr/bin/env python3
"""Measures the Python module beside what people use today: ./dev bench python.

Each row is a ratio of two things that run one after the other, in random order, many times; its figure is the median of
the ratios. The A/A column is the same thing against itself, and says how much of a figure is noise. A row that misses its
goal makes the exit code 1.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import ballast
from ballast.safetensors.numpy import load_file


def seconds(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def median_ratio(first, second, rounds):
    ratios = []
    for _ in range(rounds):
        order = [(0, first), (1, second)]
        random.shuffle(order)
        times = {which: seconds(run) for which, run in order}
        ratios.append(times[1] / times[0])
    return statistics.median(ratios)


class Bench:
    def __init__(self):
        self.missed = 0

    def row(self, name, figure, goal, unit="x", at_least=True, control=None):
        is_met = figure >= goal if at_least else figure <= goal
        self.missed += not is_met
        control = "" if control is None else f"{control:5.2f}"
        print(f"{name:<64} {figure:8.2f} {unit:<3} {'>=' if at_least else '<='} {goal:<6} {control:>6}  {'ok' if is_met else 'MISSED'}")


def use(tensors):
    """Every byte, once."""
    return sum(int(tensor.reshape(-1).view("u8").sum()) for tensor in tensors.values())


def loading(bench, folder, rounds, megabytes):
    count = 64
    each = (megabytes << 20) // count // 4
    state = {f"layer.{i}": np.random.default_rng(i).random(each, dtype="f4") for i in range(count)}
    path = os.path.join(folder, "big.safetensors")
    ballast.save(state, path)
    raw = os.path.join(folder, "big.raw")
    with open(raw, "wb") as file:
        for array in state.values():
            array.tofile(file)
    del state

    def ours():
        use(load_file(path))

    def from_file():
        use({"all": np.fromfile(raw, "f4")})

    rivals = {"numpy.fromfile": from_file}
    try:
        from safetensors.numpy import load_file as theirs

        rivals["safetensors"] = lambda: use(theirs(path))
    except ImportError:
        pass
    try:
        import torch

        pt = os.path.join(folder, "big.pt")
        ballast.convert(path, pt)
        options = {"mmap": True} if torch.__version__ >= "2.1" else {}
        rivals["torch.load"] = lambda: use({k: v.numpy() for k, v in torch.load(pt, **options).items()})
    except ImportError:
        pass
    control = median_ratio(ours, ours, rounds)
    for name, run in rivals.items():
        figure = median_ratio(ours, run, rounds)
        bench.row(f"load_file of {megabytes} MB and every byte, {name} / ours", figure, 0.95, control=control)


def opening(bench, folder, rounds):
    path = os.path.join(folder, "many.safetensors")
    names = [f"model.layers.{i // 10}.mlp.part{i % 10}.weight" for i in range(100_000)]
    ballast.save({name: np.zeros(1, "f4") for name in names}, path)
    encoded = [name.encode() for name in names]

    def ours():
        list(ballast.open(path).keys())

    def least():  # the library's own time, and what making the strings takes at least
        checkpoint = ballast.open(path)
        made = [name.decode() for name in encoded]
        return checkpoint, made

    control = median_ratio(least, least, rounds)
    figure = median_ratio(least, ours, rounds)
    bench.row("open and keys of 100 000 tensors / open and the strings", figure, 1.5, at_least=False, control=control)
    tensor = ballast.open(path)[names[0]]

    def index():
        for _ in range(10_000):
            tensor[0:1]

    figure = min(seconds(index) for _ in range(rounds)) / 10_000 * 1e6
    bench.row("one t[0:1]", figure, 3, "us", at_least=False)


def starting(bench, rounds):
    def start(code):
        return min(seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True)) for _ in range(rounds)) * 1e3

    bench.row("import ballast, beyond an empty program", start("import ballast") - start("pass"), 50, "ms", at_least=False)


def converting(bench, folder):
    path = os.path.join(folder, "big.safetensors")
    out = os.path.join(folder, "half.safetensors")
    code = f"""
import resource, ballast
def anonymous():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon:"))
before, most = anonymous(), 0
def look(*state):
    global most
    most = max(most, anonymous())
ballast.convert({path!r}, {out!r}, dtype="*=F16", progress=look, force=True)
print(most - before)
"""
    kilobytes = int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
    bench.row("memory that convert takes from Python", kilobytes / 1024, 96, "MiB", at_least=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--megabytes", type=int, default=1024)
    options = parser.parse_args()
    bench = Bench()
    print(f"{'':<64} {'figure':>8}     goal     {'A/A':>6}")
    with tempfile.TemporaryDirectory(prefix="ballast-bench-") as folder:
        starting(bench, options.rounds)
        opening(bench, folder, options.rounds)
        loading(bench, folder, options.rounds, options.megabytes)
        converting(bench, folder)
    sys.exit(1 if bench.missed else 0)


if __name__ == "__main__":
    main()
