#!/usr/bin/env python3
"""Measures the server of `view`: ./dev bench view.

It asks as the page does, 128 MB of tensors in a request, for the statistics of 1 GB of Gaussian BF16, and reads the same
file from the page cache beside it, with two threads in pieces of 1 MiB. The two run one after the other, in random order,
each round with a new server, which has kept nothing. The figure is the median of the ratios; the A/A column is the reading
against itself. A row that misses its goal makes the exit code 1.
"""

import http.client
import json
import os
import pathlib
import random
import re
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

COMMAND = os.environ["BALLAST_COMMAND"]
TENSORS, TENSOR_BYTES = 64, 1 << 24
BATCH_BYTES = 128_000_000
ROUNDS = 7
SPEED, MEMORY_MIB = 0.5, 96


def gaussian_bf16(count, seed):
    rng = random.Random(seed)
    return b"".join(struct.pack("<f", rng.gauss(0, 0.02))[2:] for _ in range(count))


def write_checkpoint(path):
    """Tensors that differ, made of one block that begins elsewhere in each."""
    block = gaussian_bf16(1 << 17, 1)
    header = {f"layers.{i}.weight": {"dtype": "BF16", "shape": [2048, 4096], "data_offsets": [i * TENSOR_BYTES, (i + 1) * TENSOR_BYTES]} for i in range(TENSORS)}
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for i in range(TENSORS):
            turned = block[2 * i:] + block[:2 * i]
            for _ in range(TENSOR_BYTES // len(block)):
                file.write(turned)


class Server:
    def __init__(self, path):
        self.process = subprocess.Popen([COMMAND, "view", path, "--no-browser"], stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            found = re.search(r"127\.0\.0\.1:(\d+)/\?token=(\w+)", line)
            if found:
                break
        self.port = int(found[1])
        self.cookie = self.ask("/?token=" + found[2]).getheader("Set-Cookie").split(";")[0]

    def ask(self, path, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", path, headers=headers)
        return connection.getresponse()

    def statistics(self):
        each = BATCH_BYTES // TENSOR_BYTES
        for first in range(0, TENSORS, each):
            numbers = ",".join(map(str, range(first, min(first + each, TENSORS))))
            answer = self.ask(f"/api/stats/0?numbers={numbers}", Cookie=self.cookie).read()
            document = json.loads(strip_progress(answer))
            if not all(abs(row["std"] - 0.02) < 0.001 for row in document["tensors"]):
                raise RuntimeError("wrong statistics")

    def own_mib(self):
        """What it has of its own now, in MiB: memory that maps no file."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"RssAnon:\s+(\d+)", status)[1]) / 1024

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
        self.process.stderr.close()


def strip_progress(answer):
    while answer.startswith(b'{"done"'):
        answer = answer.split(b"\n", 1)[1]
    return answer


def read_once(path):
    size = path.stat().st_size

    def read(first, end):
        buffer = bytearray(1 << 20)
        with path.open("rb", buffering=0) as file:
            while first < end:
                first += os.preadv(file.fileno(), [buffer], first)

    threads = [threading.Thread(target=read, args=part) for part in ((0, size // 2), (size // 2, size))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def seconds(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def one_round(path):
    """Seconds of the server, of reading, of reading again, and the most that the server had of its own."""
    server, most, is_over = Server(path), [0.0], threading.Event()

    def watch():
        while not is_over.wait(0.005):
            most[0] = max(most[0], server.own_mib())

    watcher = threading.Thread(target=watch)
    watcher.start()
    jobs = [("ours", server.statistics), ("theirs", lambda: read_once(path)), ("control", lambda: read_once(path))]
    random.shuffle(jobs)
    times = {name: seconds(job) for name, job in jobs}
    is_over.set()
    watcher.join()
    server.stop()
    return times, most[0]


def main():
    with tempfile.TemporaryDirectory(prefix="ballast-view-bench-") as folder:
        path = pathlib.Path(folder) / "weights.safetensors"
        write_checkpoint(path)
        read_once(path)
        rounds = [one_round(path) for _ in range(ROUNDS)]
    middle = lambda name: statistics.median(times[name] for times, _ in rounds)
    speed = statistics.median(times["theirs"] / times["ours"] for times, _ in rounds)
    control = statistics.median(times["theirs"] / times["control"] for times, _ in rounds)
    memory = max(mib for _, mib in rounds)
    fits = lambda is_met: "ok" if is_met else "MISSED"
    print(f"| view: statistics of 1 GiB of BF16 / read them from the page cache, 2 threads each | {1000 * middle('ours'):.1f} ms | "
          f"{1000 * middle('theirs'):.1f} ms | {speed:.2f}x the speed | at least {SPEED:.2f} | {control:.2f} | {fits(speed >= SPEED)} |")
    print(f"| view: memory of the server's own meanwhile | {memory:.1f} MiB | | | at most {MEMORY_MIB} MiB | | {fits(memory <= MEMORY_MIB)} |")
    return 0 if speed >= SPEED and memory <= MEMORY_MIB else 1


if __name__ == "__main__":
    sys.exit(main())
