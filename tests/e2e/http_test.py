"""Checkpoints behind addresses: the ranges that are asked for, and servers that fail, change their minds or lie."""

import ctypes.util
import http.server
import json
import re
import struct
import sys
import threading
import unittest
import zipfile

from support import *

if ctypes.util.find_library("curl") is None:
    sys.exit(77)


class Server(http.server.ThreadingHTTPServer):
    """Serves bytes by path. A fault is a function of the handler, which returns True if it has answered."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.requests, self.fault, self.lock = {}, [], None, threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, path):
        return f"http://127.0.0.1:{self.server_address[1]}/{path}"

    def handle_error(self, request, client_address):
        pass  # a client that hangs up is what some of the tests are about


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        with self.server.lock:
            self.server.requests.append((self.path, self.headers.get("Range")))
            self.number = len(self.server.requests)
        if self.server.fault is not None and self.server.fault(self):
            return
        self.answer()

    def answer(self, etag='"1"', headers=(), change=lambda body: body):
        body = self.server.files.get(self.path.split("?")[0].lstrip("/"))
        if body is None:
            return self.send(404, b"<html>not here</html>")
        first, last = self.wanted(len(body))
        if first >= len(body):
            return self.send(416, b"", [("Content-Range", f"bytes */{len(body)}")])
        part = body[first:last + 1]
        self.send(206, change(part), [("ETag", etag), ("Content-Range", f"bytes {first}-{last}/{len(body)}"), *headers])

    def wanted(self, size):
        first, last = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers["Range"]).groups()
        if first == "":
            return max(0, size - int(last)), size - 1
        return int(first), min(int(last), size - 1)

    def send(self, status, body, headers=()):
        self.send_response(status)
        names = {name.lower() for name, _ in headers}
        for name, value in headers:
            self.send_header(name, value)
        if "content-length" not in names:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Http(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.server = Server()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.tensors = {f"t{i}": ("F32", [1000], pack("F32", [float(i)] * 1000)) for i in range(40)}
        self.server.files["model.safetensors"] = safetensors(self.tensors)

    def run_command(self, *args):
        done = subprocess.run([COMMAND, *args], capture_output=True, env=environment(), timeout=120)
        return Result(done.returncode, done.stdout, done.stderr.decode())

    def names(self, path="model.safetensors"):
        result = self.run_command("ls", self.server.url(path), "--json")
        self.assertEqual(result.code, OK, result)
        return [tensor["name"] for tensor in result.json()["tensors"]]

    def fails(self, code, text, *args):
        result = self.run_command(*(args or ("ls", self.server.url("model.safetensors"))))
        self.assertEqual(result.code, code, result)
        self.assertIn(text, result.err)

    # --- what is asked for

    def test_a_header_costs_the_beginning_and_the_end_at_once(self):
        self.assertEqual(sorted(self.names()), sorted(self.tensors))
        self.assertEqual({text for _, text in self.server.requests}, {"bytes=0-65535", "bytes=-65557"})
        self.assertEqual(len(self.server.requests), 2)

    def test_a_long_header_costs_one_more_for_its_rest(self):
        many = {f"a.rather.long.name.of.a.tensor.{i}": ("F16", [1], b"xy") for i in range(3000)}
        self.server.files["many.safetensors"] = file = safetensors(many)
        self.assertEqual(len(self.names("many.safetensors")), 3000)
        header = 8 + struct.unpack_from("<Q", file)[0]
        rest = min(header, len(file) - 65557) - 1  # the end is there already
        self.assertEqual(self.server.requests[2:], [("/many.safetensors", f"bytes=65536-{rest}")])

    def test_one_tensor_costs_its_bytes(self):
        big = {"small": ("F32", [10], bytes(40)), "big": ("F32", [1 << 18], bytes(1 << 20)), "other": ("F32", [1 << 18], bytes(1 << 20))}
        self.server.files["big.safetensors"] = safetensors(big)
        result = self.run_command("hash", self.server.url("big.safetensors"), "big", "--json")
        self.assertEqual(result.code, OK, result)
        fetched = 0
        for _, text in self.server.requests[2:]:
            first, last = re.fullmatch(r"bytes=(\d+)-(\d+)", text).groups()
            fetched += int(last) - int(first) + 1
        self.assertLessEqual(fetched, 1.05 * (1 << 20))

    def test_a_zip_costs_its_beginning_its_end_and_its_pickle(self):
        self.server.files["tiny.pt"] = (SOURCE / "examples" / "tiny.pt").read_bytes()
        self.assertIn("state_dict.embed.weight", self.names("tiny.pt"))
        self.assertLessEqual(len(self.server.requests), 3)

    def test_an_index_finds_its_shards(self):
        shards = {f"model-{i:05}-of-00003.safetensors": {f"s{i}.w": ("F32", [1], b"abcd")} for i in range(1, 4)}
        for name, tensors in shards.items():
            self.server.files["m/" + name] = safetensors(tensors)
        weight_map = {tensor: name for name, tensors in shards.items() for tensor in tensors}
        self.server.files["m/model.safetensors.index.json"] = json.dumps({"metadata": {}, "weight_map": weight_map}).encode()
        self.assertEqual(sorted(self.names("m/model.safetensors.index.json")), ["s1.w", "s2.w", "s3.w"])

    def test_a_conversion_gives_the_bytes_of_a_local_one(self):
        with tempfile.TemporaryDirectory() as folder:
            local = pathlib.Path(folder) / "in.safetensors"
            local.write_bytes(self.server.files["model.safetensors"])
            for number, source in enumerate((self.server.url("model.safetensors"), str(local))):
                result = self.run_command("convert", source, f"{folder}/{number}.safetensors", "--dtype", "BF16")
                self.assertEqual(result.code, OK, result)
            self.assertEqual(*(pathlib.Path(folder, f"{i}.safetensors").read_bytes() for i in (0, 1)))

    def test_every_verb_that_reads_takes_an_address(self):
        url = self.server.url("model.safetensors")
        for words in (["info"], ["stats"], ["hash"], ["scan"], ["verify"], ["plan", "--ranks", "2"], ["diff", url], ["cat", "t1"]):
            verb, *more = words
            result = self.run_command(verb, url, *more)
            self.assertEqual(result.code, OK, result)
        self.server.files["evil.pkl"] = b"cos\nsystem\n(S'true'\ntR."
        self.assertEqual(self.run_command("scan", self.server.url("evil.pkl")).code, NO)

    def test_an_adapter_finds_its_configuration_beside_it(self):
        folder = VECTORS / "peft" / "adalora" / "adapter"
        for name in ("adapter_model.safetensors", "adapter_config.json"):
            self.server.files["a/" + name] = (folder / name).read_bytes()
        result = self.run_command("adapter", "info", self.server.url("a/adapter_model.safetensors"), "--json")
        self.assertEqual(result.code, OK, result)
        self.assertEqual(result.json()["type"], "ADALORA")

    # --- servers that fail

    def test_a_server_that_is_busy_is_asked_again(self):
        def busy(handler):
            if handler.number <= 2:
                handler.send(503, b"busy", [("Retry-After", "0")])
                return True

        self.server.fault = busy
        self.assertEqual(len(self.names()), 40)
        self.assertEqual(len(self.server.requests), 4)

    def test_a_connection_that_breaks_goes_on_where_it_stopped(self):
        def cut(handler):
            if handler.headers["Range"] == "bytes=0-65535":
                body = handler.server.files["model.safetensors"]
                handler.send(206, body[:100], [("Content-Range", f"bytes 0-65535/{len(body)}"), ("Content-Length", "65536"), ("ETag", '"1"')])
                handler.close_connection = True
                return True

        self.server.fault = cut
        self.assertEqual(len(self.names()), 40)
        self.assertIn("bytes=100-65535", [text for _, text in self.server.requests])

    def test_a_file_that_is_not_there_is_not_asked_for_again(self):
        self.fails(IO, "no such file on the server", "ls", self.server.url("nothing.safetensors"))
        self.assertLessEqual(len(self.server.requests), 2)

    def test_an_endless_page_of_an_error_is_not_read_to_its_end(self):
        def endless(handler):
            handler.send_response(404)
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            try:
                while True:
                    handler.wfile.write(b"10000\r\n" + bytes(65536) + b"\r\n")
            except OSError:
                handler.close_connection = True
            return True

        self.server.fault = endless
        self.fails(IO, "no such file on the server")

    def test_an_etag_that_goes_missing_is_a_change(self):
        def without(handler):
            if handler.number <= 2:
                return False
            handler.answer(etag="")
            return True

        self.server.fault = without
        self.fails(IO, "changed on the server", "hash", self.server.url("model.safetensors"))

    def test_a_server_that_sends_no_ranges_is_read_as_far_as_needed(self):
        def whole(handler):
            handler.send(200, handler.server.files["model.safetensors"], [("ETag", '"1"')])
            return True

        self.server.fault = whole
        self.assertEqual(len(self.names()), 40)

    def test_a_server_that_nobody_answers_for_is_an_error(self):
        self.fails(IO, "cannot be read", "ls", "http://127.0.0.1:1/model.safetensors")

    # --- servers that lie

    def lies(self, text, code=IO, **answer):
        self.server.fault = lambda handler: handler.answer(**answer) or True
        self.fails(code, text)

    def test_a_compressed_answer_is_refused(self):
        self.lies("compressed", headers=[("Content-Encoding", "gzip")])

    def test_another_range_than_asked_for_is_refused(self):
        self.lies("two different things", headers=[("Content-Range", "bytes 5-10/100")])

    def test_more_bytes_than_said_are_refused(self):
        def more(handler):
            if handler.headers["Range"] != "bytes=0-65535":
                return False
            body = handler.server.files["model.safetensors"]
            handler.send_response(206)
            handler.send_header("Content-Range", f"bytes 0-65535/{len(body)}")
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            for _ in range(100):
                handler.wfile.write(b"10000\r\n" + bytes(65536) + b"\r\n")
            return True

        self.server.fault = more
        self.fails(IO, "more bytes than it said")

    def test_endless_headers_are_refused(self):
        self.lies("cannot be read", headers=[(f"X-{i}", "x" * 1000) for i in range(200)])

    def test_a_file_that_changes_meanwhile_is_noticed(self):
        self.server.fault = lambda handler: handler.answer(etag=f'"{handler.number}"') or True
        self.fails(IO, "changed on the server", "hash", self.server.url("model.safetensors"))

    def redirected(self, location, code, text):
        def redirect(handler):
            if handler.path == "/model.safetensors":
                handler.send(302, b"", [("Location", location)])
                return True

        self.server.fault = redirect
        self.fails(code, text)

    def test_redirects_are_followed_a_few_times(self):
        self.server.files["elsewhere"] = self.server.files["model.safetensors"]

        def redirect(handler):
            if handler.path == "/model.safetensors":
                handler.send(302, b"", [("Location", "/elsewhere?signed=1")])
                return True

        self.server.fault = redirect
        self.assertEqual(len(self.names()), 40)

    def test_redirects_lead_nowhere_else(self):
        self.redirected("file:///etc/passwd", UNSAFE, "redirects to")
        self.redirected("/model.safetensors", UNSAFE, "again and again")
        self.redirected("ftp://127.0.0.1/x", UNSAFE, "redirects to")
        self.redirected("http://example.org/x", UNSAFE, "not secure")

    def test_a_plain_address_of_another_host_is_refused(self):
        self.fails(UNSAFE, "not secure", "ls", "http://example.org/model.safetensors")
        self.fails(USAGE, "without a user", "ls", "https://me:secret@example.org/model.safetensors")


if __name__ == "__main__":
    unittest.main()
