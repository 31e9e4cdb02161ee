"""Checkpoints behind addresses: the ranges that are asked for, and servers that fail, change their minds or lie."""

import ctypes.util
import io
import json
import re
import struct
import sys
import unittest
import unittest.mock
import zipfile

from support import *
from web import Server

if ctypes.util.find_library("curl") is None:
    sys.exit(77)


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

    def ranges(self):
        return [text for _, text in self.server.requests]

    def fails(self, code, text, *args):
        result = self.run_command(*(args or ("ls", self.server.url("model.safetensors"))))
        self.assertEqual(result.code, code, result)
        self.assertIn(text, result.err)

    # --- what is asked for

    def test_a_header_costs_the_beginning(self):
        self.assertEqual(sorted(self.names()), sorted(self.tensors))
        self.assertEqual(self.ranges(), ["bytes=0-98303"])

    def test_a_long_header_costs_one_more_for_its_rest(self):
        many = {f"a.rather.long.name.of.a.tensor.{i}": ("F16", [1], b"xy") for i in range(3000)}
        self.server.files["many.safetensors"] = file = safetensors(many)
        self.assertEqual(len(self.names("many.safetensors")), 3000)
        header = 8 + struct.unpack_from("<Q", file)[0]
        self.assertEqual(self.ranges(), ["bytes=0-98303", f"bytes=98304-{header - 1}"])

    def test_what_may_be_a_zip_costs_its_two_ends_at_once(self):
        self.server.files["model.bin"] = self.server.files["model.safetensors"]  # whatever it is
        self.assertEqual(len(self.names("model.bin")), 40)
        self.assertEqual(set(self.ranges()[:2]), {"bytes=0-65535", "bytes=-65557"})

    def converted(self, name, *options):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "in.safetensors").write_bytes(safetensors({f"layers.{i}.weight": ("F32", [64, 400], bytes(102400)) for i in range(300)}))
            result = self.run_command("convert", f"{folder}/in.safetensors", f"{folder}/{name}", *options)
            self.assertEqual(result.code, OK, result)
            self.server.files[name] = pathlib.Path(folder, name).read_bytes()

    def bytes_asked_for(self):
        spans = [re.fullmatch(r"bytes=(\d*)-(\d*)", text).groups() for text in self.ranges()]
        return sum(int(last) + (1 - int(first) if first else 0) for first, last in spans)

    def test_a_torch_zip_costs_its_ends_its_directory_and_its_pickle(self):
        self.converted("model.pt")
        result = self.run_command("ls", self.server.url("model.pt"), "--json")
        tensors = result.json()["tensors"]
        self.assertEqual(len(tensors), 300)
        self.assertEqual({tensor["offset"] for tensor in tensors}, {None})  # that would need the local headers
        self.assertLessEqual(len(self.ranges()), 4)
        with zipfile.ZipFile(io.BytesIO(self.server.files["model.pt"])) as file:
            needed = sum(info.file_size for info in file.infolist() if info.filename.endswith(".pkl")) + sum(46 + len(info.filename) for info in file.infolist())
        self.assertLessEqual(self.bytes_asked_for(), 65536 + 65557 + 1.05 * needed)

    def test_a_gguf_costs_at_most_twice_its_header(self):
        self.converted("model.gguf")
        self.assertEqual(len(self.names("model.gguf")), 300)
        self.assertEqual(self.ranges(), ["bytes=0-4194303"])
        self.server.files["other"] = self.server.files["model.gguf"]
        self.server.requests.clear()
        self.assertEqual(len(self.names("other")), 300)
        self.assertLessEqual(len(self.ranges()), 4)

    def test_one_tensor_of_a_torch_zip_costs_its_bytes(self):
        self.converted("model.pt")
        self.run_command("ls", self.server.url("model.pt"))
        header = self.bytes_asked_for()
        self.server.requests.clear()
        self.assertEqual(self.run_command("cat", self.server.url("model.pt"), "layers.7.weight", "--json").code, OK)
        self.assertLessEqual(self.bytes_asked_for() - header, 1.05 * 102400 + 4096)

    def test_data_is_read_only_if_the_file_has_one_meaning(self):
        self.run_command("hash", self.server.url("model.safetensors"))
        size = len(self.server.files["model.safetensors"])
        self.assertIn(f"bytes=98304-{size - 1}", self.ranges())

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
        self.assertEqual(len(self.server.requests), 3)

    def test_a_connection_that_breaks_goes_on_where_it_stopped(self):
        def cut(handler):
            if handler.headers["Range"] == "bytes=0-98303":
                body = handler.server.files["model.safetensors"]
                handler.send(206, body[:100], [("Content-Range", f"bytes 0-98303/{len(body)}"), ("Content-Length", "98304"), ("ETag", '"1"')])
                handler.close_connection = True
                return True

        self.server.fault = cut
        self.assertEqual(len(self.names()), 40)
        self.assertIn("bytes=100-98303", self.ranges())

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
            if handler.number <= 1:
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
        self.assertIn("does not send ranges", self.run_command("info", self.server.url("model.safetensors")).out)

    def test_an_empty_file_is_empty_with_ranges_and_without(self):
        self.server.files["empty.safetensors"] = b""
        self.fails(MALFORMED, "the file is empty", "ls", self.server.url("empty.safetensors"))
        self.server.fault = lambda handler: handler.send(200, b"", [("ETag", '"1"')]) or True
        self.fails(MALFORMED, "the file is empty", "ls", self.server.url("empty.safetensors"))

    # --- who asks

    def headers_seen(self, *args):
        seen = []

        def look(handler):
            seen.append((handler.path, handler.headers.get("Authorization")))
            if handler.path == "/away.safetensors":
                handler.send(302, b"", [("Location", f"http://localhost:{self.server.server_address[1]}/model.safetensors")])
                return True

        self.server.fault = look
        result = self.run_command(*args)
        self.assertEqual(result.code, OK, result)
        return seen

    def test_headers_go_to_the_host_of_the_target_and_not_along_with_a_redirect(self):
        seen = self.headers_seen("ls", self.server.url("away.safetensors"), "--header", "Authorization: secret")
        self.assertEqual(seen, [("/away.safetensors", "secret"), ("/model.safetensors", None)])

    def test_headers_may_be_read_from_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "headers")
            file.write_text("Authorization: from a file\n")
            seen = self.headers_seen("ls", self.server.url("model.safetensors"), "--header", f"@{file}")
        self.assertEqual(seen, [("/model.safetensors", "from a file")])

    def test_a_header_that_is_none_is_refused_without_showing_it(self):
        for wrong in ("secret", ":secret", "a: secret\nb: c"):
            result = self.run_command("ls", self.server.url("model.safetensors"), "--header", wrong)
            self.assertEqual(result.code, USAGE, result)
            self.assertNotIn("secret", result.err)

    def test_netrc_is_read_if_asked_for(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
            with unittest.mock.patch.dict(os.environ, {"HOME": folder}):
                seen = self.headers_seen("ls", self.server.url("model.safetensors"), "--netrc")
                self.assertTrue(seen[0][1].startswith("Basic "))
                self.assertEqual(self.headers_seen("ls", self.server.url("model.safetensors")), [("/model.safetensors", None)])

    def test_a_server_that_nobody_answers_for_is_an_error(self):
        self.fails(IO, "cannot be read", "ls", "http://127.0.0.1:1/model.safetensors")

    # --- servers that lie

    def lies(self, text, code=IO, **answer):
        self.server.fault = lambda handler: handler.answer(**answer) or True
        self.fails(code, text)

    def test_a_compressed_answer_is_refused(self):
        self.lies("compressed", headers=[("Content-Encoding", "gzip")])

    def test_another_range_than_asked_for_is_refused(self):
        def shifted(handler):
            body = handler.server.files["model.safetensors"]
            first, last = handler.wanted(len(body))
            handler.send(206, body[first:last + 1], [("ETag", '"1"'), ("Content-Range", f"bytes {first + 1}-{last + 1}/{len(body) + 1}")])
            return True

        self.server.fault = shifted
        self.fails(IO, "the server's answer to bytes=0-98303 makes no sense: it is for bytes 1-98304")

    def test_two_ranges_in_one_answer_are_refused(self):
        self.lies("two different things", headers=[("Content-Range", "bytes 5-10/100")])

    def test_more_bytes_than_said_are_refused(self):
        def more(handler):
            if handler.headers["Range"] != "bytes=0-98303":
                return False
            body = handler.server.files["model.safetensors"]
            handler.send_response(206)
            handler.send_header("Content-Range", f"bytes 0-98303/{len(body)}")
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            for _ in range(100):
                handler.wfile.write(b"10000\r\n" + bytes(65536) + b"\r\n")
            return True

        self.server.fault = more
        self.fails(IO, "more bytes than it said")

    def test_endless_headers_are_refused(self):
        self.lies("headers do not end", headers=[(f"X-{i}", "x" * 1000) for i in range(200)])

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
