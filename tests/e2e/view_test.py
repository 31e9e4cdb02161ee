"""ballast view: the server and the report without a browser: who may ask, what is answered, what is in the file."""

import base64
import ctypes.util
import hashlib
import json
import math
import os
import pathlib
import random
import re
import shutil
import socket
import struct
import time
import unittest

import web
from support import *
from view_page import HOSTILE, Server, documents_of


class ViewTest(TestCase):
    def report(self, *words):
        path = self.folder / "report.html"
        self.ballast("view", *words, "--html", path, "--force")
        return path.read_text(encoding="utf-8")

    def json_of(self, *words):
        return self.run_raw(*words, "--json").raw


class TheReport(ViewTest):
    def test_has_the_documents_of_the_verbs_word_for_word(self):
        documents = documents_of(self.report(TINY))
        self.assertEqual(documents["info-0"], self.json_of("info", TINY))
        self.assertEqual(documents["scan-0"], self.json_of("scan", TINY))

    def test_has_them_of_every_kind_of_file(self):
        for path in ("torch2/lightning_like.ckpt", "torch2/odd_keys.pt", "torch2/sparse.pt", "torch2/meta.pt", "gguf/kv_all.gguf", "safetensors/names_odd.safetensors",
                     "safetensors/metadata_odd.safetensors", "safetensors/empty.safetensors"):
            target = VECTORS / path
            with self.subTest(path):
                documents = documents_of(self.report(target))
                self.assertEqual(documents["info-0"], self.json_of("info", target))
                self.assertEqual(documents["scan-0"], self.json_of("scan", target))

    def test_lists_what_ls_lists(self):
        for target in (TINY, VECTORS / "torch2" / "sparse.pt", VECTORS / "gguf" / "kv_all.gguf"):
            side = json.loads(documents_of(self.report(target))["model"])["sides"][0]
            listed = self.run_raw("ls", target, "--json").json()["tensors"]
            self.assertEqual(side["names"], [t["name"] for t in listed])
            self.assertEqual([side["dtypes"][k] for k in side["dtype"]], [t["dtype"] for t in listed])
            self.assertEqual([side["shapes"][k] for k in side["shape"]], [t["shape"] for t in listed])
            self.assertEqual(side["bytes"], [t["bytes"] for t in listed])
            self.assertEqual(side["offset"], [-1 if t["offset"] is None else t["offset"] for t in listed])

    def test_has_the_numbers_of_stats_to_six_digits(self):
        columns = json.loads(documents_of(self.report(TINY))["stats-0"])
        rows = self.run_raw("stats", TINY, "--json").json()["tensors"]
        for key in ("min", "max", "mean", "std", "l2"):
            for text, row in zip(columns[key].split(" "), rows, strict=True):
                self.assertAlmostEqual(float(text), row[key], delta=1e-5 * abs(row[key]) + 1e-30)
        self.assertEqual(len(columns["histograms"]), 64 * len(rows))

    def test_of_two_has_their_difference(self):
        a = self.write("a.safetensors", {"w": ("F32", [2], [1, 2]), "gone": ("F32", [1], [1])})
        b = self.write("b.safetensors", {"w": ("F32", [2], [1, 3]), "new": ("F32", [1], [1])})
        documents = documents_of(self.report(a, b))
        self.assertEqual(documents["diff"], self.json_of("diff", a, b))
        self.assertEqual(documents["info-1"], self.json_of("info", b))

    def test_is_the_same_bytes_again_whatever_the_threads(self):
        large = self.write("large.safetensors", {"w": ("F32", [5 << 10, 1 << 10], large_weights(5 << 20))})
        self.assertEqual(self.report(large, "--threads", "1"), self.report(large, "--threads", "4"))

    def test_runs_its_own_script_only_and_asks_for_nothing(self):
        page = self.report(TINY)
        policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page).group(1)
        self.assertLess(page.index("Content-Security-Policy"), page.index("<style>"))
        self.assertIn("default-src 'none'", policy)
        self.assertIn("connect-src 'none'", policy)
        self.assertIn("require-trusted-types-for 'script'", policy)
        self.assertNotIn("unsafe", policy)
        for tag in ("script", "style"):
            text = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL).group(1)
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            self.assertIn(f"{tag}-src 'sha256-{digest}'", policy)
        # Nothing in the markup leads anywhere.
        markup = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
        self.assertEqual(re.findall(r'(?:src|href|action)="(?!#|data:,)[^"]*"', markup), [])

    def test_has_no_name_and_no_metadata_in_its_markup(self):
        path = self.write("hostile.safetensors", {HOSTILE: ("F32", [1], [1])}, {"key" + HOSTILE: "value" + HOSTILE})
        page = self.report(path)
        self.assertNotIn("alert(", page)
        self.assertNotIn("onerror", page)
        self.assertEqual(json.loads(documents_of(page)["model"])["sides"][0]["names"], [HOSTILE])

    def test_has_an_escaped_title(self):
        path = self.folder / "<b>&'\".safetensors"
        path.write_bytes(TINY.read_bytes())
        title = re.search(r"<title>(.*?)</title>", self.report(path)).group(1)
        self.assertTrue(title.endswith("/&lt;b&gt;&amp;&#39;&quot;.safetensors"), title)

    def test_of_a_thousand_tensors_is_under_a_megabyte(self):
        tensors = {f"model.layers.{i // 10}.role_{i % 10}.weight": ("F32", [8, 8], [((i * 37 + k * 11) % 101) / 7 - 5 for k in range(64)]) for i in range(1000)}
        page = self.report(self.write("many.safetensors", tensors))
        self.assertLess(len(page.encode()), 1_000_000)

    def test_of_a_hundred_thousand_tensors_is_under_eight_megabytes(self):
        rng, header, data = random.Random(1), {}, bytearray()
        for i in range(100_000):
            begin = len(data)
            data += struct.pack("<8f", *(rng.gauss(0, 0.02) for _ in range(8)))
            header[f"model.layers.{i // 1000}.mlp.experts.{i // 4 % 250}.{('up', 'gate', 'down', 'router')[i % 4]}_proj.weight"] = {
                "dtype": "F32", "shape": [2, 4], "data_offsets": [begin, len(data)]}
        self.assertEqual(len(header), 100_000)
        path = self.folder / "many.safetensors"
        path.write_bytes(with_header(json.dumps(header), bytes(data)))
        self.assertLess(len(self.report(path).encode()), 8_000_000)

    def test_does_not_overwrite_without_being_told(self):
        (self.folder / "there.html").write_text("mine")
        result = self.run_raw("view", TINY, "--html", self.folder / "there.html")
        self.assertEqual(result.code, USAGE, result)
        self.assertEqual((self.folder / "there.html").read_text(), "mine")

    def test_never_takes_the_place_of_what_it_shows(self):
        tensors = {"w": ("F32", [1], [1]), "v": ("F32", [1], [2])}
        for name in ("a.safetensors", "b.safetensors"):
            self.write(name, tensors)
        whole = (self.folder / "a.safetensors").read_bytes()
        os.link(self.folder / "a.safetensors", self.folder / "same.html")
        os.symlink("a.safetensors", self.folder / "link.html")
        for words in (("view", "a.safetensors", "--html", "a.safetensors"), ("view", "a.safetensors", "--html", "./a.safetensors"), ("view", "a.safetensors", "--html", "same.html"),
                      ("view", "a.safetensors", "--html", "link.html"), ("view", "b.safetensors", "a.safetensors", "--html", "a.safetensors"), ("cat", "a.safetensors", "w", "-o", "a.safetensors")):
            self.refused(*words, "--force", code=USAGE, says="a file of the checkpoint itself")
            self.assertEqual((self.folder / "a.safetensors").read_bytes(), whole, words)

    def test_never_takes_the_place_of_the_base_of_what_it_shows(self):
        adapter, base = VECTORS / "peft" / "lora_all_linear" / "adapter", self.folder / "base.safetensors"
        base.write_bytes((VECTORS / "peft" / "lora_all_linear" / "base.safetensors").read_bytes())
        self.refused("view", adapter, "--base", base, "--html", base, "--force", code=USAGE, says="a file of the checkpoint itself")

    def test_says_what_cannot_be_read_and_shows_the_rest(self):
        shutil.copytree(VECTORS / "quantized" / "gptq-4bit-g32-asym-actorder" / "in", self.folder / "model")
        path = self.folder / "model" / "model.safetensors"
        data = bytearray(path.read_bytes())
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8:8 + size])
        groups = min(name for name in header if name.endswith("g_idx"))
        at = 8 + size + header[groups]["data_offsets"][0]
        data[at:at + 4] = (1 << 30).to_bytes(4, "little")
        path.write_bytes(data)
        result = self.ballast("view", "model", "--dequantize", "--html", "a.html")
        self.assertIn("1 tensor of model could not be read: the page says why", result.err)
        documents = documents_of((self.folder / "a.html").read_text())
        columns, names = json.loads(documents["stats-0"]), json.loads(documents["model"])["sides"][0]["names"]
        self.assertEqual([names[int(number)] for number in columns["why_not"]], [groups.replace("g_idx", "weight")])
        self.assertEqual(columns["mean"].split(" ").count("null"), 1)

    def test_of_an_adapter_whose_modules_cannot_be_compared_says_so(self):
        result = self.ballast("view", VECTORS / "gguf" / "lora_adapter.gguf", "--html", "a.html")
        self.assertIn("the page does not show how much each module changes", result.err)
        documents = documents_of((self.folder / "a.html").read_text())
        self.assertIn("attention.head_count", json.loads(documents["modules"])["error"])
        self.assertNotIn(b"--heads", documents["modules"])

    def test_says_which_texts_are_cut(self):
        (self.folder / "model").mkdir()
        (self.folder / "model" / "model.safetensors").write_bytes(TINY.read_bytes())
        (self.folder / "model" / "README.md").write_text("é" * 40_000)
        (self.folder / "model" / "config.json").write_text("{}")
        files = {file["name"]: file for file in json.loads(documents_of(self.report(self.folder / "model"))["texts-0"])["files"]}
        self.assertEqual((files["README.md"].get("cut"), set(files["README.md"]["text"]), files["README.md"]["bytes"]), (True, {"é"}, 80_000))
        self.assertNotIn("cut", files["config.json"])

    def test_refuses_options_that_would_do_nothing(self):
        for words, says in ((("--html", ""), "without a name"), (("--sample", "9"), "--sample is for a report"), (("--html", "a.html", "--port", "9"), "--port is for a page")):
            self.refused("view", TINY, *words, code=USAGE, says=says)

    def test_takes_about_as_many_values_as_a_sample_has(self):
        tensors = {"row": ("U8", [1, 100_000], bytes(100_000)), "experts": ("U8", [64, 40, 50], bytes(128_000)), "column": ("U8", [100_000, 1], bytes(100_000)),
                   "vector": ("U8", [100_000], bytes(100_000)), "small": ("U8", [10, 10], bytes(100))}
        side, columns = (json.loads(documents_of(self.report(self.write("a.safetensors", tensors), "--sample", "1000"))[name]) for name in ("model", "stats-0"))
        names = side["sides"][0]["names"]
        for number, count in columns["counts"].items():
            self.assertTrue(500 <= count <= 1000 or names[int(number)] == "small", (names[int(number)], count))
        self.assertEqual(columns["counts"][str(names.index("small"))], 100)

    def test_samples_blocks_whole(self):
        documents = documents_of(self.report(VECTORS / "gguf" / "tensors_all_types.gguf", "--sample", "300"))
        side, columns = json.loads(documents["model"])["sides"][0], json.loads(documents["stats-0"])
        for number, count in columns["counts"].items():
            if side["dtypes"][side["dtype"][int(number)]].startswith(("Q", "IQ")):
                self.assertEqual(count % 32, 0, side["names"][int(number)])

    def test_has_a_page_of_less_than_120_kilobytes(self):
        page = re.sub(r'<script type="text/plain".*?</script>', "", self.report(TINY), flags=re.DOTALL)
        self.assertLess(len(page.encode()), 120_000)

    def test_goes_to_standard_output(self):
        result = self.run_raw("view", TINY, "--html", "-")
        self.assertEqual(result.code, OK, result)
        self.assertTrue(result.out.startswith("<!doctype html>"))

    def test_of_a_sample_says_how_many_values_it_saw(self):
        path = self.write("wide.safetensors", {"w": ("F32", [64, 8], list(range(512)))})
        columns = json.loads(documents_of(self.report(path, "--sample", "64"))["stats-0"])
        self.assertEqual(columns["sample"], 64)
        self.assertEqual(columns["counts"], {"0": 60})  # every 9th of 128 runs of 4

    def test_shows_an_adapter(self):
        config = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q"], "base_model_name_or_path": "x"}
        (self.folder / "adapter_config.json").write_text(json.dumps(config))
        self.write("adapter_model.safetensors", {
            "base_model.model.l.0.q.lora_A.weight": ("F32", [2, 3], [1, 0, 0, 0, 1, 0]),
            "base_model.model.l.0.q.lora_B.weight": ("F32", [4, 2], [3, 0, 0, 4, 0, 0, 0, 0]),
        })
        base = self.folder / "base"
        base.mkdir()
        (base / "model.safetensors").write_bytes(safetensors({"l.0.q.weight": ("F32", [4, 3], [5] + [0] * 11)}))
        documents = documents_of(self.report(self.folder, "--base", base))
        self.assertEqual(documents["adapter"], self.json_of("adapter", "info", self.folder))
        (module,) = json.loads(documents["modules"])["modules"]
        self.assertEqual((module["name"], module["rank"], module["alpha"], module["scaling"]), ("l.0.q", 2, 4, 2))
        self.assertAlmostEqual(module["norm"], 10)  # 2 * |diag(3, 4)|
        self.assertAlmostEqual(module["share"], 2)
        # Squares of 9 and 16: e to the entropy of 9/25 and 16/25.
        self.assertAlmostEqual(module["effective_rank"], 1.9223, places=3)


class TheServer(ViewTest):
    def test_shows_the_page_to_whoever_has_the_address(self):
        with Server(TINY) as server:
            self.assertRegex(server.cookie, r"^ballast-\d+=[0-9a-f]{48}; Path=/; HttpOnly; SameSite=Strict$")
            self.assertNotIn(server.token, server.cookie)
            status, headers, body = server.ask("/", Cookie=server.cookie.split(";")[0])
            self.assertEqual(status, 200)
            self.assertIn(b"<!doctype html>", body)
            self.assertNotIn(server.token.encode(), body)
        self.assertEqual(server.code, OK)  # Ctrl-C is how it ends

    def test_sends_headers_that_keep_the_page_to_itself(self):
        with Server(TINY) as server:
            _, headers, _ = server.ask("/", Cookie=server.cookie.split(";")[0])
            policy = headers["Content-Security-Policy"]
            for part in ("default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "trusted-types 'none'"):
                self.assertIn(part, policy)
            self.assertNotIn("unsafe", policy)
            self.assertEqual(headers["Referrer-Policy"], "no-referrer")
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertEqual(headers["Cross-Origin-Resource-Policy"], "same-origin")
            self.assertEqual(headers["Cache-Control"], "no-store")
            self.assertFalse([key for key in headers if key.lower().startswith("access-control")])

    def test_refuses_everybody_else(self):
        with Server(TINY) as server:
            cookie, port = server.cookie.split(";")[0], server.port
            wrong = cookie[:-1] + ("0" if cookie[-1] != "0" else "1")
            refused = {
                "no cookie": {},
                "a wrong cookie": {"Cookie": wrong},
                "a shorter cookie": {"Cookie": cookie[:-4]},
                "the cookie of another port": {"Cookie": cookie.replace(str(port), str(port - 1))},
                "a foreign host": {"Cookie": cookie, "Host": f"evil.example:{port}"},
                "a host that begins like ours": {"Cookie": cookie, "Host": f"127.0.0.1.evil.example:{port}"},
                "no port": {"Cookie": cookie, "Host": "127.0.0.1"},
                "no host": {"Cookie": cookie, "Host": None},
                "a foreign origin": {"Cookie": cookie, "Origin": "https://evil.example"},
                "an origin that is none": {"Cookie": cookie, "Origin": "null"},
                "another port's origin": {"Cookie": cookie, "Origin": f"http://127.0.0.1:{port - 1}"},
                "another site's page": {"Cookie": cookie, "Sec_Fetch_Site": "cross-site"},
                "a page of another port": {"Cookie": cookie, "Sec_Fetch_Site": "same-site"},
            }
            for path in ("/", "/api/model", "/api/stats/0?numbers=0"):
                for what, headers in refused.items():
                    status, answered, body = server.ask(path, **headers)
                    self.assertEqual(status, 403, (what, path))
                    self.assertNotIn(b"tensor", body)
                    self.assertNotIn("Set-Cookie", answered)
            for token in ("", "0" * 48, server.token[:-1], server.token + "0"):
                self.assertEqual(server.ask("/?token=" + token)[0], 403, token)
            self.assertEqual(server.ask("/?token=" + server.token, Host=f"evil.example:{port}")[0], 403)
            self.assertEqual(server.ask("/?token=" + server.token, Origin="https://evil.example")[0], 403)
            status, _, _ = server.ask("/api/model", Cookie=cookie, Host=f"localhost:{port}", Origin=f"http://localhost:{port}")
            self.assertEqual(status, 200)  # that is us, too: over ssh -L

    def test_listens_on_loopback_alone(self):
        with Server(TINY) as server:
            listening = pathlib.Path("/proc/net/tcp").read_text() if pathlib.Path("/proc/net/tcp").exists() else ""
            found = [line.split()[1] for line in listening.splitlines()[1:] if line.split()[1].endswith(f":{server.port:04X}") and line.split()[3] == "0A"]
            self.assertEqual(found, [f"0100007F:{server.port:04X}"])

    def test_answers_nothing_but_get(self):
        with Server(TINY) as server:
            for method in ("POST", "PUT", "DELETE", "OPTIONS", "HEAD"):
                self.assertEqual(server.ask("/api/model", method, Cookie=server.cookie.split(";")[0])[0], 405, method)

    def test_survives_what_is_no_request(self):
        with Server(TINY) as server:
            for raw in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9\r\n\r\n", b"GET x HTTP/1.1\r\n\r\n", b"\0" * 5000, b"GET / HTTP/1.1\r\n: x\r\n\r\n", b"GET / HTTP/1.1\r\nHost : x\r\n\r\n", b"GET / HTTP/1.1\r\nHost: x\nOrigin: y\r\n\r\n",
                        b"GET /\0 HTTP/1.1\r\n\r\n",
                        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\n\r\n", b""):
                with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
                    try:
                        connection.sendall(raw)
                        connection.shutdown(socket.SHUT_WR)
                        answer = connection.recv(100)
                    except OSError:
                        answer = b""  # the server has hung up already
                    self.assertTrue(answer == b"" or answer.startswith(b"HTTP/1.1 4"), (raw[:40], answer))
            server.get("/api/model")

    def test_has_no_path_that_leads_to_a_file(self):
        with Server(TINY) as server:
            for path in ("/etc/passwd", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/api/texts/../../etc/passwd", "/api/%2fetc%2fpasswd", "/api/info/" + str(TINY),
                         "/api/info/1", "/api/info/-1", "/api/info/0x0", "/api/info/99999999999999999999", "/api/values/0/99999?", "/api/first/0/1e3", "/api/first/0/0/0", "/api", "/api/",
                         "/api/stats/0", "/api/stats/0?numbers=", "/api/stats/0?numbers=0,0", "/api/stats/0?numbers=" + ",".join(map(str, range(400))), "/api/diff", "/api/adapter", "/api/modules",
                         "/api/values/0/0?axes=0,1"):
                status, _, body = server.ask(path, Cookie=server.cookie.split(";")[0])
                if path == "/api/stats/0?numbers=":
                    self.assertIn(status, (200, 404))
                    continue
                self.assertEqual(status, 404, (path, body))
                self.assertNotIn(b"root:", body)

    def test_has_the_documents_of_the_verbs_word_for_word(self):
        with Server(TINY) as server:
            self.assertEqual(server.document("/api/info/0"), self.json_of("info", TINY))
            self.assertEqual(server.document("/api/scan/0"), self.json_of("scan", TINY))
            names = self.run_raw("ls", TINY, "--json").json()["tensors"]
            every = ",".join(str(i) for i in range(len(names)))
            for _ in range(2):  # the second time from what it kept
                self.assertEqual(server.document("/api/stats/0?numbers=" + every), self.json_of("stats", TINY))
                self.assertEqual(server.document("/api/stats/0?histogram=yes&numbers=" + every), self.json_of("stats", TINY, "--histogram", "--bins", "64"))
            (first,) = json.loads(server.document("/api/stats/0?numbers=1"))["tensors"]
            self.assertEqual(first["name"], names[1]["name"])

    def test_compares_two(self):
        a = self.write("a.safetensors", {"w": ("F32", [2], [1, 2])})
        b = self.write("b.safetensors", {"w": ("F32", [2], [1, 3])})
        with Server(a, b) as server:
            self.assertEqual(server.document("/api/diff"), self.json_of("diff", a, b))

    def test_keeps_names_out_of_the_markup(self):
        path = self.write("hostile.safetensors", {HOSTILE: ("F32", [1], [1])}, {HOSTILE: HOSTILE})
        with Server(path) as server:
            self.assertNotIn(b"alert(", server.get("/"))
            status, headers, body = server.ask("/api/model", Cookie=server.cookie.split(";")[0])
            self.assertEqual(headers["Content-Type"], "application/json; charset=utf-8")
            self.assertEqual(json.loads(body)["sides"][0]["names"], [HOSTILE])

    def values(self, server, number, words):
        status, headers, body = server.ask(f"/api/values/0/{number}?{words}", Cookie=server.cookie.split(";")[0])
        self.assertEqual(status, 200, body)
        return int(headers["X-Rows"]), int(headers["X-Columns"]), list(struct.unpack(f"<{len(body) // 4}f", body))

    def test_gives_every_value_of_a_slice_that_fits(self):
        path = self.write("m.safetensors", {"w": ("F32", [2, 3, 4], list(range(24)))})
        with Server(path) as server:
            words = "axes=1,2&at=1,0,0&rows=0:3&columns=1:3&height=100&width=100&how=extreme"
            self.assertEqual(self.values(server, 0, words), (3, 2, [13, 14, 17, 18, 21, 22]))
            turned = "axes=2,0&at=0,2,0&rows=0:4&columns=0:2&height=100&width=100&how=extreme"
            self.assertEqual(self.values(server, 0, turned), (4, 2, [8, 20, 9, 21, 10, 22, 11, 23]))

    def test_gives_what_stands_for_several_values(self):
        path = self.write("m.safetensors", {"w": ("F32", [2, 4], [1, -5, 2, 2, 3, 4, 0, 6]), "v": ("F32", [4], [1, 2, -3, float("inf")])})
        with Server(path) as server:
            words = "axes=0,1&at=0,0&rows=0:2&columns=0:4&height=1&width=2&how="
            self.assertEqual(self.values(server, 0, words + "extreme"), (1, 2, [-5, 6]))
            self.assertEqual(self.values(server, 0, words + "mean"), (1, 2, [0.75, 2.5]))
            rows, columns, (first, second) = self.values(server, 0, words + "rms")
            self.assertAlmostEqual(first, (51 / 4) ** 0.5, places=5)
            rows, columns, cells = self.values(server, 1, "axes=-1,0&at=0&rows=0:1&columns=0:4&height=9&width=2&how=extreme")
            self.assertEqual((rows, columns, cells[0]), (1, 2, 2))
            self.assertFalse(abs(cells[1]) < 1e30)  # not finite

    def test_refuses_a_slice_that_is_not_there(self):
        with Server(self.write("m.safetensors", {"w": ("F32", [2, 3], range(6)), "c": ("C64", [1, 1], b"\0" * 8)})) as server:
            for words in ("axes=0,1&at=0,0&rows=0:3&columns=0:3", "axes=0,0&at=0,0&rows=0:1&columns=0:1", "axes=0,2&at=0,0&rows=0:1&columns=0:1",
                          "axes=0,1&at=0,0&rows=1:1&columns=0:1", "axes=0,1&at=9,0&rows=0:1&columns=0:1", "axes=0,1&at=0,0&rows=2:1&columns=0:1"):
                self.assertIn(b"error", server.get(f"/api/values/0/0?{words}&height=9&width=9&how=mean", 400), words)
            self.assertIn(b"error", server.get("/api/values/0/1?axes=0,1&at=0,0&rows=0:1&columns=0:1&height=9&width=9&how=mean", 400))

    def test_computes_singular_values(self):
        path = self.write("m.safetensors", {"w": ("F32", [2, 3], [3, 0, 0, 0, 4, 0]), "bad": ("F32", [1, 1], [float("nan")])})
        with Server(path) as server:
            status, _, body = server.ask("/api/spectrum/0/0", Cookie=server.cookie.split(";")[0])
            if status == 400 and b"LAPACK" in body:
                self.skipTest("LAPACK is not installed")
            found = json.loads(body)
            self.assertEqual((found["complete"], found["of"]), (True, 2))
            self.assertAlmostEqual(found["values"][0], 4, places=5)
            self.assertAlmostEqual(found["values"][1], 3, places=5)
            self.assertAlmostEqual(found["stable_rank"], 25 / 16, places=5)
            self.assertIn(b"not finite", server.get("/api/spectrum/0/1", 400))

    def test_shows_the_first_values(self):
        with Server(self.write("m.safetensors", {"w": ("F32", [2], [1.5, 2])})) as server:
            self.assertEqual(json.loads(server.document("/api/first/0/0"))["text"], self.run_raw("cat", self.folder / "m.safetensors", "w").out)

    def test_shows_one_value_as_it_is(self):
        path = self.write("m.safetensors", {"i": ("I64", [1, 2], struct.pack("<2q", 5, 123456789)), "d": ("F64", [2], struct.pack("<2d", 1e300, 0.1))})
        with Server(path) as server:
            said = [json.loads(server.document(path))["text"].strip() for path in ("/api/first/0/0?at=0,1", "/api/first/0/1?at=0", "/api/first/0/1?at=1")]
            self.assertEqual(sorted(said), sorted(["123456789", "1e+300", "0.1"]))
            for at in ("2", "0,0", "x", "-1"):
                self.assertEqual(server.ask("/api/first/0/1?at=" + at, Cookie=server.cookie.split(";")[0])[0], 404, at)

    def ask_and_leave(self, server, path, pause=0.3):
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nCookie: {server.cookie.split(';')[0]}\r\n\r\n".encode())
            time.sleep(pause)

    def sparse(self, name, tensors):
        """A file of zeros that takes no room on the disk."""
        header, at = {}, 0
        for key, shape in tensors.items():
            header[key] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at := at + 4 * math.prod(shape)]}
        text = json.dumps(header).encode()
        with (self.folder / name).open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            file.truncate(8 + len(text) + at)
        return self.folder / name

    def seconds_of(self, server):
        """Of processors, that the server has used."""
        fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def test_ends_at_once_while_singular_values_are_computed(self):
        path = self.write("m.safetensors", {"w": ("I8", [4000, 4000], random.Random(1).randbytes(16_000_000))})
        with Server(path) as server:
            self.ask_and_leave(server, "/api/spectrum/0/0", 1.0)
            start = time.monotonic()
        self.assertEqual(server.code, OK)
        self.assertLess(time.monotonic() - start, 3)

    def test_computes_statistics_while_singular_values_are_computed(self):
        large = ("I8", [4000, 4000], random.Random(1).randbytes(16_000_000))
        path = self.write("m.safetensors", {"a": large, "b": large, "small": ("F32", [4], [1, 2, 3, 4])})
        with Server(path) as server:
            names = json.loads(server.document("/api/model"))["sides"][0]["names"]
            for number in (0, 1):
                self.ask_and_leave(server, f"/api/spectrum/0/{names.index('ab'[number])}")
            start = time.monotonic()
            server.document(f"/api/stats/0?numbers={names.index('small')}")
            self.assertLess(time.monotonic() - start, 3)

    def test_stops_a_job_that_nobody_waits_for(self):
        path = self.sparse("large.safetensors", {"w": [1 << 34], "small": [4]})  # 64 GiB: a quarter of a minute for each job
        with Server(path) as server:
            names = json.loads(server.document("/api/model"))["sides"][0]["names"]
            for _ in range(3):
                self.ask_and_leave(server, f"/api/stats/0?numbers={names.index('w')}")
            start = time.monotonic()
            server.document(f"/api/stats/0?numbers={names.index('small')}")
            self.assertLess(time.monotonic() - start, 5)
            time.sleep(0.5)
            before = self.seconds_of(server)
            time.sleep(1)
            self.assertLess(self.seconds_of(server) - before, 0.2)

    def test_says_which_port_is_taken(self):
        with Server(TINY) as server:
            result = self.run_raw("view", TINY, "--no-browser", "--port", str(server.port))
            self.assertEqual(result.code, IO, result)
            self.assertIn(f"port {server.port}", result.err)

    def test_wants_one_target_or_two(self):
        self.assertEqual(self.run_raw("view").code, USAGE)
        self.assertEqual(self.run_raw("view", TINY, TINY, TINY).code, USAGE)
        self.assertEqual(self.run_raw("view", TINY, "--port", "70000").code, USAGE)
        self.assertEqual(self.run_raw("view", TINY, "--base", TINY).code, USAGE)


@unittest.skipIf(ctypes.util.find_library("curl") is None, "libcurl is not installed")
class OfARemoteCheckpoint(ViewTest):
    def elsewhere(self):
        server = web.Server()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def test_a_report_asks_for_many_tensors_at_a_time_and_once(self):
        elsewhere = self.elsewhere()
        elsewhere.files["model.safetensors"] = safetensors({f"w.{i}": ("U8", [100_000], bytes(100_000)) for i in range(100)})
        self.ballast("view", elsewhere.url("model.safetensors"), "--html", "a.html")
        self.assertLess(len(elsewhere.requests), 30)
        read = sum(int(end) - int(begin) + 1 for begin, end in re.findall(r"bytes=(\d+)-(\d+)", " ".join(str(text) for _, text in elsewhere.requests)))
        self.assertLess(read, 11_000_000)

    def test_a_report_does_not_have_the_query_of_an_address(self):
        elsewhere = self.elsewhere()
        elsewhere.files["model.safetensors"] = safetensors({"w": ("F32", [1], [1])})
        url = elsewhere.url("model.safetensors")
        page = self.report(url + "?X-Amz-Signature=SECRET", url + "?X-Amz-Signature=SECRET2")
        for name, document in ({"page": page.encode()} | documents_of(page)).items():
            self.assertNotIn(b"SECRET", document, name)
        self.assertEqual(json.loads(documents_of(page)["model"])["sides"][0]["target"], url)

    def test_reads_what_is_looked_at_and_no_more(self):
        elsewhere = self.elsewhere()
        elsewhere.files["model.safetensors"] = safetensors({"small": ("F32", [4], [1, 2, 3, 4]), "large": ("U8", [16_000_000], bytes(16_000_000))})
        with Server(elsewhere.url("model.safetensors")) as server:
            side = json.loads(server.document("/api/model"))["sides"][0]
            self.assertEqual((side["remote"], sorted(side["names"])), (True, ["large", "small"]))
            number = side["names"].index("small")
            (row,) = json.loads(server.document(f"/api/stats/0?numbers={number}"))["tensors"]
            self.assertEqual((row["name"], row["mean"]), ("small", 2.5))
        read = sum(int(end) - int(begin) + 1 for begin, end in re.findall(r"bytes=(\d+)-(\d+)", " ".join(str(text) for _, text in elsewhere.requests)))
        self.assertLess(read, 1_000_000, elsewhere.requests)


if __name__ == "__main__":
    unittest.main()
