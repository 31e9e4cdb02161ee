"""The Hugging Face Hub: its addresses, its cache, what is fetched from it, and what it refuses."""

import ctypes.util
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from hub_server import Hub, git_id, is_large
from support import *

if ctypes.util.find_library("curl") is None:
    sys.exit(77)

TENSORS = {f"t{i}": ("F32", [1000], pack("F32", [float(i)] * 1000)) for i in range(40)}
BIG = {"big": ("U8", [40 << 20], os.urandom(1 << 20) * 40)}


class HubCase(unittest.TestCase):
    def setUp(self):
        self.hub = Hub()
        self.addCleanup(self.hub.close)
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) if hasattr(self, "enterContext") else pathlib.Path(tempfile.mkdtemp())
        self.cache = self.folder / "hub"
        self.files = {"model.safetensors": safetensors(TENSORS), "config.json": b'{"model_type": "x"}', "README.md": b"# Hello"}
        self.hub.add("org/model", self.files)

    def environment(self, **changes):
        kept = {key: value for key, value in environment().items() if not key.startswith(("HF_", "HUGGING", "TRANSFORMERS"))}
        return kept | {"HF_ENDPOINT": self.hub.endpoint(), "HF_HOME": str(self.folder), "HF_HUB_CACHE": str(self.cache)} | changes

    def run_command(self, *args, **changes):
        done = subprocess.run([COMMAND, *map(str, args)], capture_output=True, env=self.environment(**changes), timeout=120)
        return Result(done.returncode, done.stdout, done.stderr.decode())

    def succeeds(self, *args, **changes):
        result = self.run_command(*args, **changes)
        self.assertEqual(result.code, OK, result)
        return result

    def fails(self, code, texts, *args, **changes):
        result = self.run_command(*args, **changes)
        self.assertEqual(result.code, code, result)
        for text in [texts] if isinstance(texts, str) else texts:
            self.assertIn(text, result.err)
        return result

    def names(self, target, **changes):
        return sorted(tensor["name"] for tensor in self.succeeds("ls", target, "--json", **changes).json()["tensors"])

    def commit(self, repository="org/model", revision="main"):
        return self.hub.commit_of(self.hub.repositories[repository][revision])

    @property
    def repository(self):
        return self.cache / "models--org--model"


class Sidecars(HubCase):
    def test_files_beside_the_weights_go_along(self):
        beside = {"tokenizer.json": b"{}" * 100000, "sub/README.md": b"x", "pytorch_model.bin": b"x", "merges.txt": b""}
        self.hub.add("org/model", self.files | beside)
        done = self.succeeds("convert", "hf://org/model", f"{self.folder}/out/")
        found = {path.name: path.read_bytes() for path in (self.folder / "out").iterdir()}
        self.assertEqual(sorted(found), ["README.md", "config.json", "merges.txt", "model.safetensors", "tokenizer.json"])
        self.assertEqual(found["tokenizer.json"], beside["tokenizer.json"])
        self.assertEqual(found["README.md"], self.files["README.md"])
        self.assertIn('left in the folder of the source: "pytorch_model.bin", "sub/"', done.err)

    def test_files_come_from_the_cache_too(self):
        folder = self.succeeds("fetch", "hf://org/model").out.strip()
        self.succeeds("convert", folder, f"{self.folder}/out/")
        self.assertEqual((self.folder / "out/config.json").read_bytes(), self.files["config.json"])


class Addresses(HubCase):
    def test_a_repository_is_opened_by_every_spelling_of_its_address(self):
        commit = self.commit()
        for target in ("hf://org/model", "hf://org/model/", "hf://models/org/model", "hf://org/model@main", f"hf://org/model@{commit}",
                       "hf://org/model/model.safetensors", "hf://org/model@main/model.safetensors", "https://huggingface.co/org/model",
                       "https://huggingface.co/org/model/tree/main", "https://huggingface.co/org/model/blob/main/model.safetensors",
                       "https://hf.co/org/model/resolve/main/model.safetensors?download=true",
                       self.hub.endpoint() + "/org/model/raw/main/model.safetensors"):
            with self.subTest(target):
                self.assertEqual(self.names(target), sorted(TENSORS))

    def test_revisions_with_slashes_are_whole(self):
        self.hub.add("org/model", {"model.safetensors": safetensors({"other": ("F32", [1], b"abcd")})}, "refs/pr/1")
        for target in ("hf://org/model@refs/pr/1", "hf://org/model@refs%2Fpr%2F1", "hf://org/model@refs/pr/1/model.safetensors",
                       "https://huggingface.co/org/model/tree/refs%2Fpr%2F1"):
            with self.subTest(target):
                self.assertEqual(self.names(target), ["other"])

    def test_what_is_no_repository_of_models_is_refused_by_name(self):
        for target in ("hf://datasets/org/name", "hf://spaces/org/name", "https://huggingface.co/datasets/org/name"):
            self.fails(UNSUPPORTED, "the Hub's", "ls", target)
        for target in ("hf://org", "hf://", "hf://../../etc/passwd", "hf://org/model/../other", "hf://org/a--b", "hf://org/.x", "hf://org/model@"):
            self.fails(USAGE, "hf://org/name", "ls", target)
        self.assertEqual(self.hub.requests, [])

    def test_what_lies_in_a_folder_is_found_by_path_and_by_flag(self):
        self.hub.add("org/parts", {"unet/model.safetensors": safetensors({"u": ("F32", [1], b"abcd")}), "vae/model.safetensors": safetensors({"v": ("F32", [1], b"abcd")})})
        self.assertEqual(self.names("hf://org/parts/unet"), ["u"])
        self.assertEqual(sorted(tensor["name"] for tensor in self.succeeds("ls", "hf://org/parts", "--subfolder", "vae", "--json").json()["tensors"]), ["v"])
        self.succeeds("verify", "hf://org/parts", "--subfolder", "vae")


class Choice(HubCase):
    def one(self, name, tensor):
        return {name: safetensors({tensor: ("F32", [1], b"abcd")})}

    def test_the_file_comes_before_the_index_and_safetensors_before_pickles(self):
        index = json.dumps({"metadata": {}, "weight_map": {"sharded": "model-00001-of-00001.safetensors"}}).encode()
        files = {"pytorch_model.bin": b"no", "model.safetensors.index.json": index, **self.one("model-00001-of-00001.safetensors", "sharded")}
        self.hub.add("org/sharded", files)
        self.assertEqual(self.names("hf://org/sharded"), ["sharded"])
        self.hub.add("org/both", files | self.one("model.safetensors", "whole"))
        self.assertEqual(self.names("hf://org/both"), ["whole"])

    def test_a_variant_is_taken_if_it_is_asked_for(self):
        self.hub.add("org/variants", self.one("model.safetensors", "plain") | self.one("model.fp16.safetensors", "half"))
        self.assertEqual(self.names("hf://org/variants"), ["plain"])
        self.assertEqual(sorted(t["name"] for t in self.succeeds("ls", "hf://org/variants", "--variant", "fp16", "--json").json()["tensors"]), ["half"])
        self.fails(IO, ['no files of the variant "bf16"', "model.fp16.safetensors"], "ls", "hf://org/variants", "--variant", "bf16")

    def test_a_sharded_variant_has_an_index_of_its_own(self):
        index = json.dumps({"metadata": {}, "weight_map": {"half": "model.fp16-00001-of-00001.safetensors"}}).encode()
        self.hub.add("org/variants", {"model.safetensors.index.fp16.json": index} | self.one("model.fp16-00001-of-00001.safetensors", "half"))
        self.assertEqual(sorted(t["name"] for t in self.succeeds("ls", "hf://org/variants", "--variant", "fp16", "--json").json()["tensors"]), ["half"])

    def test_several_quantizations_are_listed(self):
        self.hub.add("org/gguf", {f"model-{kind}.gguf": b"GGUF" for kind in ("Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0", "F16", "IQ2_M")})
        self.fails(USAGE, ["model-Q4_K_M.gguf", "model-IQ2_M.gguf", "model-F16.gguf", "by its name"], "ls", "hf://org/gguf")


class Reading(HubCase):
    def test_a_header_is_read_by_ranges_and_nothing_is_kept(self):
        self.names("hf://org/model")
        self.assertEqual([text for _, text in self.hub.cdn.requests], ["bytes=0-98303"])
        self.assertFalse(self.cache.exists())

    def test_many_shards_cost_two_requests_each_at_most(self):
        shards = {f"model-{i:05}-of-00020.safetensors": safetensors({f"s{i}": ("F32", [1], b"abcd")}) for i in range(1, 21)}
        index = json.dumps({"metadata": {}, "weight_map": {f"s{i}": f"model-{i:05}-of-00020.safetensors" for i in range(1, 21)}}).encode()
        self.hub.add("org/shards", shards | {"model.safetensors.index.json": index})
        self.assertEqual(len(self.names("hf://org/shards")), 20)
        self.assertEqual(len(self.hub.requests), 1 + 1 + 20)  # the list, the index, a redirect for each
        self.assertEqual(len(self.hub.cdn.requests), 20)

    def test_a_signed_address_is_used_again(self):
        self.succeeds("hash", "hf://org/model")
        resolves = [path for path, _ in self.hub.requests if "/resolve/" in path]
        self.assertEqual(len(resolves), 1)

    def test_a_signed_address_that_has_expired_is_asked_for_again(self):
        def expire(handler):
            if handler.number == 2:
                handler.send(403, b"expired")
                return True

        self.hub.cdn.fault = expire
        self.succeeds("hash", "hf://org/model")

    def test_a_listing_of_several_pages_is_read_to_its_end(self):
        self.hub.page_size = 2
        self.assertEqual(self.names("hf://org/model"), sorted(TENSORS))

    def test_a_listing_that_goes_on_elsewhere_is_refused(self):
        def elsewhere(handler):
            handler.send(200, b"[]", [("X-Repo-Commit", "0" * 40), ("Link", '<http://localhost:1/api/models/x>; rel="next"')])
            return True

        self.hub.fault = elsewhere
        self.fails(UNSAFE, "another host", "ls", "hf://org/model")

    def test_a_listing_without_an_end_is_left(self):
        def again(handler):
            handler.send(200, b"[]", [("X-Repo-Commit", "0" * 40), ("Link", f'<{self.hub.endpoint()}{handler.path}>; rel="next"')])
            return True

        self.hub.fault = again
        self.fails(IO, "does not end", "ls", "hf://org/model")

    def test_a_file_of_another_size_than_listed_is_a_change(self):
        digest = hashlib.sha256(self.files["model.safetensors"]).hexdigest()
        self.hub.cdn.files["objects/" + digest] += b"more"
        self.fails(IO, "changed on the server", "ls", "hf://org/model")

    def test_an_adapter_is_loaded_by_the_name_of_its_repository(self):
        folder = VECTORS / "peft" / "adalora" / "adapter"
        self.hub.add("org/lora", {name: (folder / name).read_bytes() for name in ("adapter_model.safetensors", "adapter_config.json")})
        for target in ("hf://org/lora", "org/lora"):
            self.assertEqual(self.succeeds("adapter", "info", target, "--json").json()["type"], "ADALORA")
        self.succeeds("fetch", "hf://org/lora")
        self.assertEqual(self.succeeds("adapter", "info", "org/lora", "--json", HF_HUB_OFFLINE="1").json()["type"], "ADALORA")

    def test_an_adapter_is_merged_into_the_base_that_it_names(self):
        name = "model.layers.0.self_attn.q_proj"
        self.hub.add("org/base", {"model.safetensors": safetensors({f"{name}.weight": ("F32", [2, 2], pack("F32", [1.0, 2.0, 3.0, 4.0]))})})
        config = {"peft_type": "LORA", "r": 1, "lora_alpha": 1, "target_modules": ["q_proj"], "base_model_name_or_path": "org/base", "revision": "main"}
        lora = {f"base_model.model.{name}.lora_A.weight": ("F32", [1, 2], pack("F32", [1.0, 0.0])), f"base_model.model.{name}.lora_B.weight": ("F32", [2, 1], pack("F32", [10.0, 20.0]))}
        self.hub.add("org/lora", {"adapter_model.safetensors": safetensors(lora), "adapter_config.json": json.dumps(config).encode()})
        out = self.folder / "merged.safetensors"
        self.assertIn("the base is hf://org/base@main", self.succeeds("adapter", "merge", "--base-from-hub", "org/lora", "-o", out).err)
        self.assertEqual(self.succeeds("cat", out, f"{name}.weight", "--json").json()["values"], [[11.0, 2.0], [23.0, 4.0]])
        config["base_model_name_or_path"] = "/home/me/model"
        self.hub.add("org/lora", {"adapter_model.safetensors": safetensors(lora), "adapter_config.json": json.dumps(config).encode()})
        self.fails(IO, "no repository of the Hub", "adapter", "merge", "--base-from-hub", "org/lora", "-o", out, "--force")

    def test_a_model_becomes_the_gguf_that_its_folder_becomes_whatever_its_address(self):
        folder = VECTORS / "hf2gguf" / "llama3" / "Llama-3.2-1B-Instruct"
        files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        self.hub.add("org/Llama-3.2-1B-Instruct", files)
        self.hub.add("org/Llama-3.2-1B-Instruct", files, "v2")
        address, out = "hf://org/Llama-3.2-1B-Instruct", self.folder / "out.gguf"
        self.succeeds("convert", folder, self.folder / "local.gguf", "--type", "Q8_0")
        self.succeeds("fetch", address)
        snapshot = self.cache / "models--org--Llama-3.2-1B-Instruct/snapshots" / self.commit("org/Llama-3.2-1B-Instruct")
        for target in (address, address + "@v2", address + "@v2/model.safetensors", snapshot,
                       self.hub.endpoint() + "/org/Llama-3.2-1B-Instruct/tree/v2"):
            with self.subTest(target):
                self.succeeds("convert", target, out, "--type", "Q8_0", "--force")
                self.assertEqual(out.read_bytes(), (self.folder / "local.gguf").read_bytes())

    def test_nothing_is_written_elsewhere(self):
        self.fails(UNSUPPORTED, "of this machine", "meta", "set", "hf://org/model", "a=b")
        for target in ("hf://org/x", "https://example.org/out.safetensors", "s3://bucket/out.safetensors"):
            self.fails(UNSUPPORTED, "written to an address", "convert", "hf://org/model", target)
        self.fails(IO, "hf://org/model", "ls", "org/model")

    def test_a_whole_repository_is_scanned(self):
        self.hub.add("org/evil", {"a/evil.bin": b"cos\nsystem\n(S'true'\ntR.", "README.md": b"# Hello"})
        result = self.run_command("scan", "hf://org/evil")
        self.assertEqual(result.code, NO, result)
        self.assertIn("os.system", result.out)


class Token(HubCase):
    def test_a_token_goes_to_the_hub_and_nowhere_else(self):
        self.hub.token = "hf_secret"
        for changes in ({"HF_TOKEN": "hf_secret"}, {"HUGGING_FACE_HUB_TOKEN": "hf_secret\n"}):
            self.assertEqual(self.names("hf://org/model", **changes), sorted(TENSORS))
        (self.folder / "token").write_text("hf_secret\n")
        self.assertEqual(self.names("hf://org/model"), sorted(TENSORS))
        self.assertEqual(set(self.hub.tokens_seen), {"Bearer hf_secret"})
        self.assertNotIn("Authorization", str(self.hub.cdn.headers_seen))

    def test_a_token_that_should_not_be_sent_is_not_sent(self):
        self.names("hf://org/model", HF_TOKEN="hf_secret", HF_HUB_DISABLE_IMPLICIT_TOKEN="1")
        self.assertEqual(set(self.hub.tokens_seen), {None})

    def test_no_token_and_no_signature_is_ever_shown_or_kept(self):
        self.hub.gated.add("org/model")
        shown = ""
        for verb in ("ls", "fetch"):
            result = self.run_command(verb, "hf://org/model", "-v", HF_TOKEN="hf_secret")
            shown += result.err + result.out
        self.hub.gated.clear()
        self.hub.cdn.fault = lambda handler: handler.send(500, b"") or True
        shown += self.run_command("ls", "hf://org/model", HF_TOKEN="hf_secret").err
        self.hub.cdn.fault = None
        shown += self.succeeds("fetch", "hf://org/model", "--json", HF_TOKEN="hf_secret").out
        kept = b"".join(path.read_bytes() for path in self.cache.rglob("*") if path.is_file())
        self.assertNotIn("secret", shown)
        self.assertNotIn(b"secret", kept.replace(self.files["model.safetensors"], b""))


class Refusals(HubCase):
    def test_each_refusal_says_what_to_do(self):
        self.fails(IO, ["no repository org/nothing", "HF_TOKEN"], "ls", "hf://org/nothing")
        self.fails(IO, ["no repository org/nothing", "an account that may read it"], "ls", "hf://org/nothing", HF_TOKEN="x")
        self.fails(IO, ['no revision "v9"'], "ls", "hf://org/model@v9")
        self.fails(IO, ["no file", "did you mean model.safetensors?"], "ls", "hf://org/model/model.safetensor")
        self.hub.gated.add("org/model")
        self.fails(IO, ["accepted its terms", self.hub.endpoint() + "/org/model"], "ls", "hf://org/model")

    def test_a_repository_that_was_renamed_says_its_new_name(self):
        self.hub.renamed["org/old"] = "org/model"
        self.hub.repositories["org/old"] = self.hub.repositories["org/model"]
        self.assertIn("org/model now", self.succeeds("info", "hf://org/old").out)

    def test_a_hub_that_is_busy_is_asked_again_when_it_says(self):
        def busy(handler):
            if handler.number == 1:
                handler.send(429, b"", [("RateLimit", '"api";r=0;t=1')])
                return True

        self.hub.fault = busy
        begin = time.monotonic()
        self.names("hf://org/model")
        self.assertGreaterEqual(time.monotonic() - begin, 1.9)

    def test_a_hub_that_is_always_busy_is_left_with_a_sentence(self):
        self.hub.fault = lambda handler: handler.send(429, b"", [("Retry-After", "0")]) or True
        self.fails(IO, "too many requests", "ls", "hf://org/model")


class Fetching(HubCase):
    def check_layout(self, repository, revision="main"):
        """The rules of the official cache, one after the other."""
        files = self.hub.repositories[repository][revision]
        commit, folder = self.hub.commit_of(files), self.cache / ("models--" + repository.replace("/", "--"))
        self.assertEqual((folder / "refs" / revision).read_bytes(), commit.encode())
        self.assertTrue((self.cache / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55"))
        for path, data in files.items():
            link = folder / "snapshots" / commit / path
            digest = hashlib.sha256(data).hexdigest() if is_large(path) else git_id(data)
            self.assertEqual(os.readlink(link), "../" * (path.count("/") + 2) + "blobs/" + digest)
            self.assertEqual((folder / "blobs" / digest).read_bytes(), data)
            self.assertEqual((folder / "blobs" / digest).stat().st_mode & 0o777, 0o666 & ~current_umask())
        tree = json.loads((folder / "trees" / f"{commit}.json").read_text())
        self.assertEqual(tree["format_version"], 1)
        self.assertEqual(set(tree["files"]), set(files))
        left = [path.name for path in folder.rglob("*") if ".incomplete" in path.name or path.name.endswith((".tmp", ".pieces"))]
        self.assertEqual(left, [])

    def test_the_cache_has_the_layout_of_the_official_client(self):
        self.hub.add("org/model", self.files | {"sub dir/é #1.txt": b"odd", "a/b/model.safetensors": safetensors(TENSORS), "empty": b""})
        result = self.succeeds("fetch", "hf://org/model")
        self.assertEqual(result.out.strip(), str(self.repository / "snapshots" / self.commit()))
        self.check_layout("org/model")

    def test_what_is_there_is_not_fetched_again(self):
        self.succeeds("fetch", "hf://org/model")
        before = len(self.hub.cdn.requests)
        files = self.succeeds("fetch", "hf://org/model", "--json").json()["files"]
        self.assertEqual(len(self.hub.cdn.requests), before)
        self.assertTrue(all(file["was_there"] for file in files))

    def test_a_new_commit_shares_the_files_that_did_not_change(self):
        self.succeeds("fetch", "hf://org/model")
        before = len(self.hub.cdn.requests)
        self.hub.add("org/model", self.files | {"README.md": b"# Hello again"})
        self.succeeds("fetch", "hf://org/model")
        self.check_layout("org/model")
        self.assertEqual(len(self.hub.cdn.requests), before)

    def test_a_cache_opens_offline_and_names_what_is_missing(self):
        self.succeeds("fetch", "hf://org/model", "--include", "*.safetensors")
        self.hub.requests.clear()
        self.assertEqual(self.names("hf://org/model", HF_HUB_OFFLINE="1"), sorted(TENSORS))
        self.assertEqual(self.names("hf://org/model", TRANSFORMERS_OFFLINE="yes"), sorted(TENSORS))
        self.fails(IO, ["HF_HUB_OFFLINE is set", "org/model/config.json", "ballast fetch hf://org/model"], "ls", "hf://org/model/config.json", HF_HUB_OFFLINE="1")
        self.fails(IO, ["this is offline", "org/other"], "ls", "hf://org/other", "--offline")
        self.fails(USAGE, "nothing can be fetched", "fetch", "hf://org/model", "--offline")
        self.assertEqual(self.hub.requests, [])

    def test_a_cache_that_others_made_opens_offline(self):
        commit = "0123456789" * 4
        snapshot = self.repository / "snapshots" / commit
        snapshot.mkdir(parents=True)
        (self.repository / "refs").mkdir()
        (self.repository / "refs" / "main").write_text(commit + "\n")  # a line end that does not belong there
        (snapshot / "model.safetensors").write_bytes(safetensors(TENSORS))  # a file where links cannot be made
        (snapshot / "dangling.safetensors").symlink_to("../../blobs/nothing")
        self.assertEqual(self.names("hf://org/model", HF_HUB_OFFLINE="1"), sorted(TENSORS))

    def test_a_whole_commit_in_the_cache_asks_nobody(self):
        self.succeeds("fetch", "hf://org/model")
        self.hub.requests.clear()
        self.hub.cdn.requests.clear()
        at = f"hf://org/model@{self.commit()}"
        for target in (at, at + "/model.safetensors"):
            self.assertEqual(self.names(target), sorted(TENSORS))
        self.succeeds("fetch", at)
        self.fails(IO, "has no file", "ls", at + "/nothing.safetensors")
        self.assertEqual(self.hub.requests + self.hub.cdn.requests, [])

    def test_the_hub_is_asked_what_a_commit_has_that_the_cache_has_not(self):
        self.succeeds("fetch", "hf://org/model", "--include", "*.safetensors")
        tree = self.repository / "trees" / f"{self.commit()}.json"
        for content in (tree.read_text(), "[]", "no JSON", '{"files": {"../../x": {"size": 1, "blob_id": ""}}}'):
            tree.write_text(content)
            self.hub.requests.clear()
            self.assertEqual(self.names(f"hf://org/model@{self.commit()}"), sorted(TENSORS))
            self.assertEqual(len([path for path, _ in self.hub.requests if "/tree/" in path]), 1, content)

    def test_without_the_network_the_cache_is_used_with_a_note(self):
        self.succeeds("fetch", "hf://org/model")
        result = self.succeeds("info", "hf://org/model", HF_ENDPOINT="http://127.0.0.1:1")
        self.assertIn("does not answer", result.out + result.err)

    def test_an_interrupted_fetch_goes_on_where_it_was(self):
        data = safetensors(BIG)
        self.hub.add("org/big", {"model.safetensors": data})
        self.hub.cdn.fault = lambda handler: time.sleep(0.4)
        command = subprocess.Popen([COMMAND, "fetch", "hf://org/big", "--in-flight", "1"], env=self.environment(), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        blobs = self.cache / "models--org--big" / "blobs"
        deadline = time.monotonic() + 60
        while not any(b"1" in path.read_bytes().split(b"\n")[-1] for path in blobs.glob("*.pieces")) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertIsNone(command.poll(), "the fetch was over before it could be interrupted")
        command.send_signal(signal.SIGKILL)
        command.wait()
        self.hub.cdn.fault = None
        self.hub.cdn.requests.clear()
        self.succeeds("fetch", "hf://org/big")
        ranges = [re.fullmatch(r"bytes=(\d+)-(\d+)", text).groups() for _, text in self.hub.cdn.requests]
        self.assertNotIn(("0", "16777215"), ranges)
        asked_for = sum(int(last) + 1 - int(first) for first, last in ranges)
        self.assertTrue(0 < asked_for < len(data), f"{asked_for} of {len(data)} bytes")
        self.check_layout("org/big")

    def test_bytes_that_are_not_those_of_the_listing_are_refused_and_not_kept(self):
        digest = hashlib.sha256(self.files["model.safetensors"]).hexdigest()
        self.hub.cdn.files["objects/" + digest] = bytes(len(self.files["model.safetensors"]))
        self.fails(NO, "not those of the file", "fetch", "hf://org/model")
        self.assertFalse((self.repository / "blobs" / digest).exists())
        self.assertFalse(os.path.lexists(self.repository / "snapshots" / self.commit() / "model.safetensors"))
        self.hub.add("org/model", self.files)
        self.succeeds("fetch", "hf://org/model")
        self.check_layout("org/model")

    def test_small_files_are_checked_too(self):
        self.hub.fault = lambda handler: "/resolve/" in handler.path and handler.path.endswith("config.json") and (
            handler.send(206, b"x" * 19, [("Content-Range", "bytes 0-18/19")]) or True)
        self.fails(NO, "not those of the file", "fetch", "hf://org/model")

    def test_two_fetches_at_once_do_not_disturb_each_other(self):
        self.hub.add("org/big", {"model.safetensors": safetensors(BIG)})
        commands = [subprocess.Popen([COMMAND, "fetch", "hf://org/big"], env=self.environment(), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) for _ in range(3)]
        for command in commands:
            _, err = command.communicate(timeout=120)
            self.assertEqual(command.returncode, OK, err)
        self.check_layout("org/big")
        self.assertEqual(len({text for _, text in self.hub.cdn.requests}), len(self.hub.cdn.requests))

    def test_a_cache_without_links_stays_whole_whoever_fetches_next(self):
        self.hub.add("org/model", self.files | {"twin.json": self.files["config.json"]})
        self.succeeds("fetch", "hf://org/model", HF_HUB_DISABLE_SYMLINKS="1")
        snapshot = self.repository / "snapshots" / self.commit()
        self.succeeds("fetch", "hf://org/model")
        self.assertEqual({path: (snapshot / path).read_bytes() for path in ("model.safetensors", "twin.json", "README.md")},
                         {"model.safetensors": self.files["model.safetensors"], "twin.json": self.files["config.json"], "README.md": self.files["README.md"]})
        self.hub.add("org/model", self.files | {"README.md": b"# Two"}, "v2")
        self.succeeds("fetch", "hf://org/model@v2", HF_HUB_DISABLE_SYMLINKS="1")
        for revision in ("main", "v2"):
            self.assertEqual(self.names(f"hf://org/model@{revision}", HF_HUB_OFFLINE="1"), sorted(TENSORS))

    def test_a_file_of_another_size_in_the_cache_is_fetched_again(self):
        self.succeeds("fetch", "hf://org/model")
        link = self.repository / "snapshots" / self.commit() / "model.safetensors"
        link.unlink()
        link.write_bytes(b"no")
        self.assertEqual(self.names("hf://org/model"), sorted(TENSORS))
        self.succeeds("fetch", "hf://org/model")
        self.check_layout("org/model")

    def test_a_busy_hub_is_no_reason_not_to_use_the_cache(self):
        self.succeeds("fetch", "hf://org/model")
        self.hub.fault = lambda handler: handler.send(503, b"") or True
        self.assertEqual(self.names("hf://org/model"), sorted(TENSORS))

    def test_a_server_without_ranges_sends_a_large_file_at_once(self):
        data = safetensors({"w": ("U8", [80 << 20], bytes(80 << 20))})

        def whole(handler):
            handler.send(200, data, [("ETag", '"1"')])
            return True

        self.hub.cdn.fault = whole
        self.succeeds("fetch", self.hub.cdn.url("m.safetensors"), "-o", self.folder / "out")
        self.assertEqual((self.folder / "out/m.safetensors").read_bytes(), data)
        self.assertLessEqual(len(self.hub.cdn.requests), 3)

    def test_a_version_that_changes_is_noticed_without_a_strong_etag(self):
        self.hub.cdn.files["m.bin"] = bytes(40 << 20)
        self.hub.cdn.fault = lambda handler: handler.answer(etag=f'W/"{handler.number > 2}"') or True
        self.fails(IO, "changed on the server", "fetch", self.hub.cdn.url("m.bin"), "-o", self.folder / "out", "--in-flight", "1")

    def test_pieces_of_another_address_do_not_count(self):
        for name, byte in (("a", b"a"), ("b", b"b")):
            self.hub.cdn.files[f"{name}/m.bin"] = byte * (40 << 20)
        self.hub.cdn.fault = lambda handler: handler.number > 3 and (handler.send(404, b"") or True)
        out = self.folder / "out"
        self.run_command("fetch", self.hub.cdn.url("a/m.bin"), "-o", out, "--in-flight", "1")
        self.assertTrue((out / "m.bin.ballast.incomplete").exists())
        self.hub.cdn.fault = None
        self.succeeds("fetch", self.hub.cdn.url("b/m.bin"), "-o", out)
        self.assertEqual((out / "m.bin").read_bytes(), b"b" * (40 << 20))
        self.assertEqual([path.name for path in out.iterdir()], ["m.bin"])

    def test_a_link_in_the_place_of_a_partial_file_leads_nowhere(self):
        out, victim = self.folder / "out", self.folder / "victim"
        out.mkdir()
        victim.write_text("mine")
        (out / "m.bin.ballast.incomplete").symlink_to(victim)
        self.hub.cdn.files["m.bin"] = b"x" * 100
        self.assertNotEqual(self.run_command("fetch", self.hub.cdn.url("m.bin"), "-o", out).code, OK)
        self.assertEqual(victim.read_text(), "mine")

    def test_what_is_signed_is_not_shown(self):
        self.hub.cdn.files["m.bin"] = b"x" * 100
        for words in ([], ["-o", self.folder / "out", "--include", "z"], ["-o", self.folder / "out", "--json"]):
            result = self.run_command("fetch", self.hub.cdn.url("m.bin?signature=secret"), *words)
            self.assertNotIn("secret", result.err + result.out)
        self.assertNotIn("secret", self.run_command("fetch", "https://me:secret@example.org/x").err)

    def test_a_server_that_breaks_off_is_survived(self):
        data = self.files["model.safetensors"]

        def cut(handler):
            if handler.number <= 2:
                handler.send_response(206)
                handler.send_header("Content-Range", f"bytes 0-{len(data) - 1}/{len(data)}")
                handler.send_header("Content-Length", str(len(data)))
                handler.end_headers()
                handler.wfile.write(data[:1000 * handler.number] if handler.number == 1 else b"")
                handler.close_connection = True
                return True

        self.hub.cdn.fault = cut
        self.succeeds("fetch", "hf://org/model")
        self.check_layout("org/model")

    def test_a_folder_gets_files_and_what_the_official_client_notes(self):
        out = self.folder / "out"
        self.succeeds("fetch", "hf://org/model", "-o", out)
        for path, data in self.files.items():
            self.assertEqual((out / path).read_bytes(), data)
            commit, etag, _, _ = (out / ".cache/huggingface/download" / f"{path}.metadata").read_text().split("\n")
            self.assertEqual((commit, etag), (self.commit(), hashlib.sha256(data).hexdigest() if is_large(path) else git_id(data)))
        self.assertFalse(self.cache.exists())
        before = len(self.hub.cdn.requests)
        self.assertTrue(all(file["was_there"] for file in self.succeeds("fetch", "hf://org/model", "-o", out, "--json").json()["files"]))
        self.assertEqual(len(self.hub.cdn.requests), before)

    def test_records_that_came_with_a_folder_are_not_believed(self):
        out = self.folder / "out"
        self.succeeds("fetch", "hf://org/model", "-o", out)
        (out / "model.safetensors").write_bytes(bytes(len(self.files["model.safetensors"])))
        record = out / ".cache/huggingface/download/model.safetensors.metadata"
        record.write_text("\n".join([*record.read_text().split("\n")[:2], "99999999999", ""]))
        self.fails(USAGE, "already exists", "fetch", "hf://org/model", "-o", out)

    def test_a_file_of_the_users_is_not_overwritten(self):
        out = self.folder / "out"
        out.mkdir()
        (out / "config.json").write_text("mine")
        self.fails(USAGE, ["already exists", "--force"], "fetch", "hf://org/model", "-o", out)
        self.assertEqual((out / "config.json").read_text(), "mine")
        self.succeeds("fetch", "hf://org/model", "-o", out, "--force")
        self.assertEqual((out / "config.json").read_bytes(), self.files["config.json"])

    def test_a_newer_commit_replaces_what_was_fetched_before(self):
        out = self.folder / "out"
        self.succeeds("fetch", "hf://org/model", "-o", out)
        self.hub.add("org/model", self.files | {"README.md": b"# Hello again"})
        self.succeeds("fetch", "hf://org/model", "-o", out)
        self.assertEqual((out / "README.md").read_bytes(), b"# Hello again")

    def test_a_link_in_the_folder_leads_nowhere(self):
        out = self.folder / "out"
        out.mkdir()
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        (out / "sub").symlink_to(elsewhere)
        self.hub.add("org/sub", {"sub/a.txt": b"a"})
        self.fails(UNSAFE, "is a link", "fetch", "hf://org/sub", "-o", out)
        self.assertEqual(list(elsewhere.iterdir()), [])

    def test_names_that_lead_out_are_left_out_with_a_note(self):
        self.hub.add("org/evil", {"../../evil": b"x", "/etc/evil": b"x", "a\\b": b"x", "good.txt": b"good"})
        result = self.succeeds("fetch", "hf://org/evil")
        self.assertEqual(result.err.count("leads out"), 3, result.err)
        self.assertFalse((self.folder / "evil").exists())

    def test_an_index_brings_its_shards_and_an_address_goes_into_a_folder(self):
        shards = {f"model-{i:05}-of-00002.safetensors": safetensors({f"s{i}": ("F32", [1], b"abcd")}) for i in (1, 2)}
        index = json.dumps({"metadata": {}, "weight_map": {f"s{i}": f"model-{i:05}-of-00002.safetensors" for i in (1, 2)}}).encode()
        self.hub.add("org/shards", shards | {"model.safetensors.index.json": index, "README.md": b"#"})
        paths = [file["path"] for file in self.succeeds("fetch", "hf://org/shards/model.safetensors.index.json", "--json").json()["files"]]
        self.assertEqual(paths, sorted(shards) + ["model.safetensors.index.json"])
        self.hub.cdn.files |= {"m/" + name: data for name, data in shards.items()} | {"m/model.safetensors.index.json": index}
        out = self.folder / "out"
        self.fails(USAGE, "where should the file go", "fetch", self.hub.cdn.url("m/model.safetensors.index.json"))
        self.succeeds("fetch", self.hub.cdn.url("m/model.safetensors.index.json"), "-o", out)
        self.assertEqual(sorted(path.name for path in out.iterdir()), sorted([*shards, "model.safetensors.index.json"]))
        self.assertEqual(self.names(str(out)), ["s1", "s2"])

    def test_what_is_not_there_is_an_error_that_says_so(self):
        self.fails(IO, "no file", "fetch", "hf://org/model/nothing.bin")
        self.assertTrue((self.repository / ".no_exist" / self.commit() / "nothing.bin").exists())
        self.fails(IO, "no file matches", "fetch", "hf://org/model", "--include", "*.gguf")
        self.fails(USAGE, "no address", "fetch", "model.safetensors")


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


if __name__ == "__main__":
    unittest.main()
