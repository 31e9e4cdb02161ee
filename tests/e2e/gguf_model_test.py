"""A model's folder becomes a GGUF, from outside: what is asked for, what is refused, and what is said."""

import json
import shutil
import struct
import unittest

from support import *

CASES = VECTORS / "hf2gguf"


class GgufModel(TestCase):
    def model(self, case):
        """A copy of a case's folder, to be changed."""
        source = CASES / case / json.loads((CASES / case / "case.json").read_text())["folder"]
        folder = self.folder / case
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        return folder

    def change(self, folder, file="config.json", **changes):
        content = json.loads((folder / file).read_text())
        content.update(changes)
        (folder / file).write_text(json.dumps({key: value for key, value in content.items() if value is not ...}))
        return folder

    def names(self, file):
        return [line.split("\t")[0] for line in self.ballast("ls", file).lines()]

    def test_a_folder_is_a_model_unless_names_are_kept(self):
        folder = self.model("llama")
        self.ballast("convert", folder, "model.gguf")
        self.assertIn("blk.0.attn_q.weight", self.names("model.gguf"))
        self.ballast("convert", folder, "copy.gguf", "--names", "keep")
        self.assertIn("model.layers.0.self_attn.q_proj.weight", self.names("copy.gguf"))
        self.ballast("convert", folder / "model.safetensors", "lone.gguf")
        self.assertIn("model.layers.0.self_attn.q_proj.weight", self.names("lone.gguf"))
        self.ballast("convert", folder / "model.safetensors", "asked.gguf", "--type", "bf16")
        self.assertIn("blk.0.attn_q.weight", self.names("asked.gguf"))

    def test_names_alone_need_no_options_beside_a_configuration(self):
        self.ballast("convert", self.model("llama"), "names.gguf", "--names", "gguf")
        self.assertIn("blk.0.attn_q.weight", self.names("names.gguf"))

    def test_one_dtype_for_all_is_a_type(self):
        self.ballast("convert", self.model("llama"), "half.gguf", "--dtype", "F16")
        info = self.ballast("ls", "half.gguf").out
        self.assertIn("blk.0.attn_norm.weight\tF32", info)
        self.assertIn("blk.0.attn_q.weight\tF16", info)
        self.assertEqual(self.ballast("meta", "get", "half.gguf", "general.file_type").out.strip(), "1")
        self.ballast("convert", "half.gguf", "brain.gguf", "--dtype", "BF16")
        self.assertEqual(self.ballast("meta", "get", "brain.gguf", "general.file_type").out.strip(), "32")

    def test_a_dry_run_shows_every_type(self):
        result = self.ballast("convert", self.model("llama"), "out.gguf", "--type", "Q8_0", "--dry-run")
        self.assertIn("output_norm.weight\tF32\t", result.out)
        self.assertIn("token_embd.weight\tQ8_0\t", result.out)
        self.assertRegex(result.err, r"\d+\.\d\d bits a weight")

    def test_options_that_contradict_each_other_are_refused(self):
        folder = self.model("llama")
        for arguments, says in ((["--type", "Q8_0", "--dtype", "F16"], "--type chooses the types"),
                                (["--type", "Q8_0", "--names", "keep"], "--names keep does not"),
                                (["--type", "Q8_0", "--names", "hf"], "--names hf does not"),
                                (["--pure"], "--pure needs --type"),
                                (["--allow-requantize"], "--allow-requantize needs --type"),
                                (["--include-weights", "attn"], "need --imatrix"),
                                (["--type", "auto", "--pure"], "have no effect"),
                                (["--type", "Q4_KM"], "no file type"),
                                (["--type", ""], "no file type"),
                                (["--heads", "4"], "config.json says already"),
                                (["--pre-tokenizer", "gpt-2", "--names", "keep"], "for a model's folder")):
            with self.subTest(arguments=arguments):
                self.refused("convert", folder, "out.gguf", *arguments, code=USAGE, says=says)
        self.refused("convert", folder, "out.safetensors", "--type", "Q8_0", code=USAGE, says="recipe for a GGUF")
        self.assertFalse((self.folder / "out.gguf").exists())

    def test_weights_that_contradict_the_configuration_are_refused(self):
        for changes, says in (({"vocab_size": 4000}, "rows, and the tokenizer has 4000 tokens"),
                              ({"hidden_size": 4096, "head_dim": 16}, "columns, and llama.embedding_length is 4096"),
                              ({"num_hidden_layers": 1}, "there is a block 1"),
                              ({"num_hidden_layers": 4}, "block 2 of 4 is not there"),
                              ({"max_position_embeddings": None}, "llama.context_length")):
            with self.subTest(changes=changes):
                folder = self.change(self.model("llama"), **changes)
                self.refused("convert", folder, "out.gguf", code=MALFORMED, says=says)
        self.refused("convert", self.model("llama"), "out.gguf", "--exclude", "lm_head*", code=MALFORMED, says="no head")
        self.refused("convert", self.change(self.model("mixtral"), num_local_experts=8), "out.gguf", code=MALFORMED,
                     says="experts, and llama.expert_count is 8")

    def test_a_configuration_that_is_no_json_is_an_error_and_an_unknown_class_a_note(self):
        folder = self.model("llama")
        (folder / "config.json").write_text((folder / "config.json").read_text() + ",")
        self.refused("convert", folder, "out.gguf", code=MALFORMED, says="config.json")
        folder = self.change(self.model("llama"), architectures=["JambaForCausalLM"])
        self.assertIn('"JambaForCausalLM", which is not known', self.ballast("convert", folder, "out.gguf").err)
        self.refused("convert", folder, "two.gguf", "--type", "f16", code=USAGE, says="JambaForCausalLM")

    def test_a_tokenizer_must_be_there(self):
        folder = self.model("qwen2")
        (folder / "tokenizer.json").unlink()
        for name in ("vocab.json", "merges.txt"):
            (folder / name).unlink(missing_ok=True)
        self.refused("convert", folder, "out.gguf", code=IO, says="tokenizer", hint="fetch the tokenizer")

    def test_an_importance_matrix_of_another_model_is_refused(self):
        content = struct.pack("<i", 1) + struct.pack("<i", 9) + b"blk.9.foo" + struct.pack("<ii4f", 1, 4, 1, 1, 1, 1)
        (self.folder / "other.dat").write_bytes(content)
        self.refused("convert", self.model("llama"), "out.gguf", "--type", "Q4_0", "--imatrix", "other.dat", code=USAGE,
                     says="no tensor of the model is in the importance matrix")

    def test_blocks_are_encoded_again_only_if_that_is_allowed(self):
        self.ballast("convert", self.model("llama"), "q8.gguf", "--type", "Q8_0")
        self.refused("convert", "q8.gguf", "q4.gguf", "--type", "Q4_0", code=USAGE, says="would be encoded again",
                     hint="--allow-requantize")
        self.ballast("convert", "q8.gguf", "q4.gguf", "--type", "Q4_0", "--allow-requantize")
        self.assertIn("blk.0.attn_q.weight\tQ4_0", self.ballast("ls", "q4.gguf").out)

    def test_metadata_are_set_over_those_of_the_folder(self):
        self.ballast("convert", self.model("llama"), "out.gguf", "--metadata", "general.name=Mine")
        self.assertEqual(self.ballast("meta", "get", "out.gguf", "general.name").out.strip(), "Mine")

    def test_rows_that_do_not_divide_fail_where_llama_cpp_fails(self):
        folder = self.model("llama")
        self.refused("convert", folder, "out.gguf", "--type", "Q4_0", "--tensor-type", "attn_q=Q1_0", code=UNSUPPORTED,
                     says="attn_q")


if __name__ == "__main__":
    unittest.main()
