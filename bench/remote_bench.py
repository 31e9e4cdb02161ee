#!/usr/bin/env python3
"""Measures remote checkpoints beside curl, on a loopback nginx: ./dev bench remote.

Each row is a ratio of two things that run one after the other, in random order, several times; its figure is the median
of the ratios. The A/A column is curl against itself, and says how much of a figure is noise. Both sides write into fresh
files, without fsync. A row that misses its goal makes the exit code 1.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

from delay_proxy import DelayProxy

COMMAND = os.environ["BALLAST_COMMAND"]
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin")
CONFIG = """
daemon off; worker_processes 2; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log off; sendfile on; keepalive_requests 100000;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{ listen 127.0.0.1:{port}; root {folder}/data; }}
}}
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def write_safetensors(path, tensors, bytes_each):
    header = {f"layers.{i}.weight": {"dtype": "F16", "shape": [bytes_each // 2], "data_offsets": [i * bytes_each, (i + 1) * bytes_each]} for i in range(tensors)}
    text, block = json.dumps(header).encode(), os.urandom(bytes_each)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _ in range(tensors):
            file.write(block)


def write_shards(folder, shards=163, tensors=564):
    folder.mkdir()
    weight_map = {}
    for shard in range(1, shards + 1):
        name = f"model-{shard:05}-of-{shards:06}.safetensors"
        header = {f"model.layers.{shard}.mlp.experts.{i}.down_proj.weight": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [4 * i, 4 * i + 4]} for i in range(tensors)}
        weight_map |= dict.fromkeys(header, name)
        text = json.dumps(header, separators=(",", ":")).encode()
        (folder / name).write_bytes(struct.pack("<Q", len(text)) + text + bytes(4 * tensors))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


class Bench:
    def __init__(self, folder, port, rounds):
        self.folder, self.port, self.rounds, self.missed = folder, port, rounds, 0
        self.size = (folder / "data/big.safetensors").stat().st_size

    def fresh(self):
        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        return out

    def seconds(self, words):
        start = time.perf_counter()
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return time.perf_counter() - start

    def curl(self, port=None, size=None, parts=8):
        out, size = self.fresh(), size or self.size
        step = -(-size // parts)
        words = ["curl", "-s", "-Z"]
        for i in range(parts):
            words += ["-r", f"{i * step}-{min(size, (i + 1) * step) - 1}", f"http://127.0.0.1:{port or self.port}/big.safetensors", "-o", str(out / str(i))]
        return self.seconds(words)

    def ballast(self, *words):
        out = self.fresh()
        return self.seconds([COMMAND, *(word.format(out=out) for word in words), "-q"])

    def ratio(self, first, second):
        ratios = []
        for _ in range(self.rounds):
            order = [(0, first), (1, second)]
            random.shuffle(order)
            times = {which: run() for which, run in order}
            ratios.append(times[1] / times[0])
        return statistics.median(ratios)

    def row(self, name, figure, goal, unit="x", at_least=True, control=None):
        is_met = figure >= goal if at_least else figure <= goal
        self.missed += not is_met
        control = "" if control is None else f"{control:5.2f}"
        print(f"{name:<64} {figure:8.2f} {unit:<3} {'>=' if at_least else '<='} {goal:<6} {control:>6}  {'ok' if is_met else 'MISSED'}", flush=True)

    def near(self):
        url = f"http://127.0.0.1:{self.port}/big.safetensors"
        noise = self.ratio(self.curl, self.curl)
        self.row("fetch, beside curl -Z of 8 ranges", self.ratio(lambda: self.ballast("fetch", url, "-o", "{out}", "--no-sync"), self.curl), 0.9, control=noise)
        self.row("convert, a copy", self.ratio(lambda: self.ballast("convert", url, "{out}/x.safetensors", "--no-sync"), self.curl), 0.7, control=noise)
        self.row("convert --dtype BF16", self.ratio(lambda: self.ballast("convert", url, "{out}/x.safetensors", "--dtype", "BF16", "--no-sync"), self.curl), 0.7, control=noise)

    def far(self):
        with DelayProxy(self.port, 0.05, 1 << 20) as port:
            times = [self.ballast("ls", f"http://127.0.0.1:{port}/shards/model.safetensors.index.json") for _ in range(self.rounds)]
            self.row("50 ms away: ls of an index of 163 shards", statistics.median(times), 1.5, "s", at_least=False)
            url = f"http://127.0.0.1:{port}/part.safetensors"
            one, eight = (self.make_fetch(url, count) for count in ("1", "8"))
            rounds, self.rounds = self.rounds, 1
            self.row("50 ms away: 200 MB with 8 requests in flight, beside one", self.ratio(eight, one), 4)
            self.rounds = rounds

    def make_fetch(self, url, count):
        return lambda: self.ballast("fetch", url, "-o", "{out}", "--no-sync", "--in-flight", count)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--megabytes", type=int, default=1000)
    given = arguments.parse_args()
    if NGINX is None or shutil.which("curl") is None:
        sys.exit("this needs nginx-light and curl: apt install nginx-light curl")
    with tempfile.TemporaryDirectory(dir=os.environ.get("BALLAST_BENCH_DIR")) as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        (folder / "data").mkdir()
        write_safetensors(folder / "data/big.safetensors", given.megabytes, 1_000_000)
        write_safetensors(folder / "data/part.safetensors", 200, 1_000_000)
        write_shards(folder / "data/shards")
        port = free_port()
        (folder / "nginx.conf").write_text(CONFIG.format(folder=folder, port=port))
        nginx = subprocess.Popen([NGINX, "-c", folder / "nginx.conf", "-p", folder], stderr=subprocess.DEVNULL)
        try:
            while socket.socket().connect_ex(("127.0.0.1", port)) != 0:
                time.sleep(0.05)
            bench = Bench(folder, port, given.rounds)
            bench.near()
            bench.far()
        finally:
            nginx.terminate()
            nginx.wait()
    sys.exit(bench.missed != 0)


if __name__ == "__main__":
    main()
