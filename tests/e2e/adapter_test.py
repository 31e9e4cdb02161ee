"""adapter: info, extract, inject and convert, tried from outside, with files that are not ours."""

import unittest
import zipfile

from support import *

LORA = SOURCE / "examples" / "tiny-lora"
PEFT = VECTORS / "peft"


class Adapters(TestCase):
    def lora(self, name="lora", tensors=None, **config):
        """A folder as PEFT saves it, with a LoRA of rank 2 at q, whose weight is [4, 3]."""
        folder = self.folder / name
        folder.mkdir()
        fields = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q"]} | config
        (folder / "adapter_config.json").write_text(json.dumps(fields))
        prefix = "base_model.model.q.lora_"
        tensors = tensors or {f"{prefix}A.weight": ("F32", [2, 3], range(6)), f"{prefix}B.weight": ("F32", [4, 2], range(8))}
        self.write(f"{name}/adapter_model.safetensors", tensors, {"format": "pt"})
        return folder

    def base(self):
        return self.write("base.safetensors", {"q.weight": ("F32", [4, 3], range(12)), "k.weight": ("F32", [1], [5])})

    def test_the_example_is_what_its_program_writes(self):
        for program in "make_tiny.py", "make_tiny_lora.py":
            shutil.copy(SOURCE / "examples" / program, self.folder)
        subprocess.run([sys.executable, self.folder / "make_tiny_lora.py"], check=True, stdout=subprocess.DEVNULL)
        for file in "adapter_config.json", "adapter_model.safetensors":
            self.assertEqual((self.folder / "tiny-lora" / file).read_bytes(), (LORA / file).read_bytes())

    def test_extract_undoes_inject(self):
        self.ballast("adapter", "inject", TINY, LORA, "--name", "style", "-o", "adapted.safetensors")
        tensors, metadata = read_safetensors(self.folder / "adapted.safetensors")
        self.assertIn("base_model.model.model.layers.0.attn.qkv.base_layer.weight", tensors)
        self.assertIn("base_model.model.model.layers.1.mlp.up.lora_A.style.weight", tensors)
        self.assertNotIn("lm_head.weight", metadata)  # the base agreed about names that are gone now
        self.ballast("adapter", "extract", "adapted.safetensors", "--name", "style", "--config",
                     LORA / "adapter_config.json", "-o", "out")
        for file in "adapter_config.json", "adapter_model.safetensors":
            self.assertEqual((self.folder / "out" / file).read_bytes(), (LORA / file).read_bytes())

    def test_extract_writes_portable_names_and_overwrites_when_forced(self):
        self.ballast("adapter", "inject", TINY, LORA, "-o", "adapted.safetensors")
        extract = ["adapter", "extract", "adapted.safetensors", "--config", LORA / "adapter_config.json", "-o", "out"]
        self.ballast(*extract)
        self.assertIn("already exists", self.ballast(*extract, "--portable", code=USAGE).err)
        self.ballast(*extract, "--portable", "--force")
        tensors, _ = read_safetensors(self.folder / "out" / "adapter_model.safetensors")
        self.assertIn("model.layers.0.mlp.up.lora_A.weight", tensors)
        self.assertEqual(self.ballast("adapter", "info", "out", "--json").json()["modules"], {"qkv": 2, "up": 2})

    def test_a_pipe_gets_all_of_info_exactly(self):
        modules = [f"a_module_with_a_long_name_{i}" for i in range(40)]
        tensors = {f"base_model.model.{module}.lora_{part}.weight": ("F32", shape, range(18))
                   for module in modules for part, shape in (("A", [3, 6]), ("B", [6, 3]))}
        self.lora(tensors=tensors, r=3, lora_alpha=1, target_modules=modules)
        text = self.ballast("adapter", "info", "lora").out
        self.assertIn("scaling 0.3333333333333333, 40 modules", text)
        self.assertIn("parameters  1440\n", text)
        for module in modules:
            self.assertIn(module, text)
        _, text = Terminal("adapter", "info", "lora", "--color=never", cwd=self.folder, columns=80).finish()
        self.assertIn("scaling 0.333333, 40 modules", text)

    def test_what_is_lost_can_be_refused_by_every_verb_that_writes(self):
        def damaged(path):
            raw = bytearray((self.folder / path).read_bytes())
            raw[raw.index(struct.pack("<2f", 5, 6)) + 3] ^= 1
            (self.folder / path).write_bytes(raw)

        says = "have the checksum"
        self.write("plain.safetensors", {"q.weight": ("F32", [4, 3], range(5, 17)), "k.weight": ("F32", [1], [5])})
        self.ballast("convert", "plain.safetensors", "base.pt")
        damaged("base.pt")
        self.base()
        lora = self.lora()
        self.ballast("adapter", "inject", "plain.safetensors", lora, "-o", "adapted.pt")
        damaged("adapted.pt")
        self.ballast("convert", "plain.safetensors", "whole.pt")
        for verb in (["inject", "base.pt", lora], ["merge", "base.pt", lora], ["from-diff", "base.pt", "base.safetensors"],
                     ["from-diff", "base.safetensors", "base.pt"]):
            out = "o" if verb[0] == "from-diff" else "o.safetensors"
            with self.subTest(verb[0]):
                self.assertIn(says, self.ballast("adapter", *verb, "-o", out, "--force").err)
                self.assertIn(says, self.ballast("adapter", *verb, "-o", out, "--force", "--strict", code=NO).err)
                self.ballast("adapter", *[str(word).replace("base.pt", "whole.pt") for word in verb], "-o", out, "--force", "--strict")
        extract = ["adapter", "extract", "adapted.pt", "--config", lora / "adapter_config.json", "--force", "-o", "x",
                   "--save-embeddings", "never"]
        self.ballast(*extract, "--strict")  # of what it takes, nothing is damaged
        large = ("F32", [4, 3], [70000] * 12)
        self.write("large.safetensors", {"q.weight": large})
        inject = ["adapter", "inject", "large.safetensors", lora, "--dtype", "F16", "-o", "l.safetensors"]
        self.assertIn("beyond F16", self.ballast(*inject, "--strict", code=NO).err)
        self.assertIn("beyond F16", self.ballast(*inject).err)

    def test_hints_name_options_that_the_verb_has(self):
        large = self.write("large.safetensors", {"q.weight": ("F16", [4, 3], [60000] * 12)})
        strong = self.lora("strong", lora_alpha=40000)
        err = self.ballast("adapter", "merge", large, strong, "-o", "m.safetensors", "--strict", code=NO).err
        self.assertIn("--dtype 'NAME=F32' of ballast convert", err)
        err = self.ballast("convert", large, "m.safetensors", "--dtype", "f8_e4m3", "--strict", code=NO).err
        self.assertIn("--dtype 'NAME=F32' as the first rule", err)

    def test_names_of_every_dialect_are_mapped(self):
        self.ballast("adapter", "convert", LORA, "--to", "kohya", "-o", "k.safetensors")
        convert = ["adapter", "convert", "k.safetensors", "--to", "peft", "--base", TINY, "-o", "p", "--force"]
        self.ballast(*convert, "--key-mapping", r"^model\.layers\.=transformer.h.")
        tensors, _ = read_safetensors(self.folder / "p/adapter_model.safetensors")
        self.assertTrue(all(name.startswith("base_model.model.transformer.h.") for name in tensors), list(tensors))
        self.assertEqual(self.ballast("adapter", "info", "p", "--json").json()["scales"],
                         [{"rank": 4, "alpha": 8, "scaling": 2, "modules": 4}])
        for adapter in (LORA, "k.safetensors"):
            self.assertIn('the expression "nosuch" matches no name: nothing is renamed',
                          self.ballast("adapter", "info", adapter, "--key-mapping", "nosuch=x").err)
            self.ballast("adapter", "info", adapter, "--key-mapping", "(=x", code=USAGE)

    def test_an_archive_is_no_adapter(self):
        with zipfile.ZipFile(self.folder / "lora.zip", "w") as archive:
            for file in "adapter_config.json", "adapter_model.safetensors":
                archive.write(LORA / file, file)
        for verb in (["info"], ["convert", "--to", "kohya", "-o", "x.safetensors"]):
            self.refused("adapter", *verb, "lora.zip", code=UNSUPPORTED, says="this is an archive", hint="unpack it")

    def test_dry_runs_write_nothing(self):
        before = sorted(self.folder.iterdir())
        for rest in (["inject", TINY, LORA, "-o", "x.safetensors"], ["convert", LORA, "--to", "peft", "-o", "x"],
                     ["convert", LORA, "--to", "kohya", "-o", "x.safetensors"]):
            done = self.ballast("adapter", *rest, "--dry-run", "--json")
            self.assertEqual(done.json()["schema"], "ballast.adapter.write/1")
            self.assertTrue(done.json()["dry_run"])
        self.assertEqual(sorted(self.folder.iterdir()), before)

    def test_convert_to_kohya_and_back_keeps_names_and_scaling(self):
        self.ballast("adapter", "convert", LORA, "--to", "kohya", "-o", "k.safetensors")
        tensors, _ = read_safetensors(self.folder / "k.safetensors")
        self.assertEqual(tensors["lora_model_layers_0_mlp_up.alpha"], ("F32", [], pack("F32", [8])))
        self.ballast("adapter", "convert", "k.safetensors", "--to", "peft", "-o", "back")
        self.ballast("diff", LORA / "adapter_model.safetensors", "back/adapter_model.safetensors")
        info = self.ballast("adapter", "info", "back", "--json").json()
        self.assertEqual(info["scales"], [{"rank": 4, "alpha": 8, "scaling": 2, "modules": 4}])

    def test_an_adapter_of_kohya_is_injected_by_the_names_of_the_base(self):
        self.base()
        self.write("k.safetensors", {"lora_unet_q.lora_down.weight": ("F32", [2, 3], range(6)),
                                     "lora_unet_q.lora_up.weight": ("F32", [4, 2], range(8))})
        self.ballast("adapter", "inject", "base.safetensors", "k.safetensors", "-o", "x.safetensors")
        self.assertIn("base_model.model.q.lora_A.default.weight", read_safetensors(self.folder / "x.safetensors")[0])

    def test_bad_input_is_a_sentence_that_says_what_to_do(self):
        self.base()
        other = {"base_model.model.elsewhere.lora_A.weight": ("F32", [2, 3], range(6)),
                 "base_model.model.elsewhere.lora_B.weight": ("F32", [4, 2], range(8))}
        empty = self.lora("weightless")
        (empty / "adapter_model.safetensors").unlink()
        unread = self.lora("nan")
        (unread / "adapter_config.json").write_text('{"peft_type": "LORA", "lora_alpha": NaN}')
        table = [
            (self.lora("other", other), NO, "has a place in the model", "for another base?"),
            (empty, IO, "a configuration without weights", "was the download complete?"),
            (self.lora("rank", r=3), NO, "says rank 3 for module \"q\", its tensors have 2", "correct \"r\""),
            (self.lora("text", lora_alpha="four"), MALFORMED, "\"four\" is no number", "lora_alpha"),
            (unread, MALFORMED, "no JSON", "JSON has no NaN"),
            (self.lora("type", peft_type="LORAX"), UNSUPPORTED, "\"LORAX\" are not known", "did you mean LORA?"),
        ]
        for folder, code, text, hint in table:
            with self.subTest(folder.name):
                done = self.ballast("adapter", "inject", "base.safetensors", folder, "-o", "x.safetensors", code=code)
                self.assertIn(text, done.err)
                self.assertIn(hint, done.err)
        self.assertFalse((self.folder / "x.safetensors").exists())

    def test_an_adapter_that_was_trained_on_a_changed_base_is_refused_or_made_plain(self):
        self.base()
        trained, initial = self.lora("trained", init_lora_weights="pissa"), self.lora("initial")
        for verb in (["merge", "base.safetensors", trained], ["inject", "base.safetensors", trained],
                     ["convert", trained, "--to", "kohya"]):
            done = self.ballast("adapter", *verb, "-o", "x.safetensors", code=UNSUPPORTED)
            self.assertIn('"init_lora_weights" is "pissa"', done.err)
            self.assertIn("--initial-adapter", done.err)
        self.assertIn("PiSSA", self.ballast("adapter", "info", trained).out)

        # The adapter was not trained, so it changes nothing.
        self.ballast("adapter", "merge", "base.safetensors", trained, "--initial-adapter", initial, "-o", "m.safetensors")
        self.ballast("diff", "base.safetensors", "m.safetensors")
        self.ballast("adapter", "convert", trained, "--initial-adapter", initial, "--to", "peft", "-o", "plain")
        self.assertEqual(self.ballast("adapter", "info", "plain", "--json").json()["scales"],
                         [{"rank": 4, "alpha": 8, "scaling": 2, "modules": 1}])
        self.ballast("adapter", "inject", "base.safetensors", trained, "--initial-adapter", initial, "-o", "i.safetensors")
        tensors, _ = read_safetensors(self.folder / "i.safetensors")
        self.assertEqual(tensors["base_model.model.q.lora_A.default.weight"][1], [4, 3])
        self.assertIn("2 initial adapters for 1 adapter", self.ballast(
            "adapter", "merge", "base.safetensors", trained, "--initial-adapter", initial, "--initial-adapter", initial,
            "-o", "n.safetensors", code=USAGE).err)

    @unittest.skipUnless(PEFT.is_dir(), "the vectors are not there")
    def test_an_adapter_that_peft_converted_comes_out_of_extract_and_convert(self):
        case = PEFT / "lora_pissa_converted"
        config = "residual_adapter/adapter_config.json"
        self.ballast("adapter", "extract", case / "adapted_state_dict.safetensors", "--config", case / config,
                     "--initial-adapter", case / "initial", "-o", "extracted")
        self.ballast("adapter", "convert", case / "residual_adapter", "--initial-adapter", case / "initial", "--to", "peft",
                     "-o", "converted")
        for folder in "extracted", "converted":
            for file in "adapter_config.json", "adapter_model.safetensors":
                self.assertEqual((self.folder / folder / file).read_bytes(), (case / "adapter" / file).read_bytes(), file)

    def test_a_configuration_without_alpha_means_eight_in_every_verb(self):
        self.base()
        for name, alpha in ("missing", {}), ("null", {"lora_alpha": None}):
            folder = self.lora(name, **alpha)
            config = json.loads((folder / "adapter_config.json").read_text())
            if name == "missing":
                del config["lora_alpha"]
                (folder / "adapter_config.json").write_text(json.dumps(config))
            self.assertEqual(self.ballast("adapter", "info", folder, "--json").json()["scales"],
                             [{"rank": 2, "alpha": 8, "scaling": 4, "modules": 1}])
            self.ballast("adapter", "convert", folder, "--to", "kohya", "-o", f"{name}.safetensors")
            self.assertEqual(read_safetensors(self.folder / f"{name}.safetensors")[0]["lora_q.alpha"],
                             ("F32", [], pack("F32", [8])))
            self.ballast("adapter", "merge", "base.safetensors", folder, "-o", f"{name}-merged.safetensors")
            self.ballast("adapter", "merge", "base.safetensors", f"{name}.safetensors", "-o", f"{name}-too.safetensors")
            self.ballast("diff", f"{name}-merged.safetensors", f"{name}-too.safetensors")
            a, b = [[0, 1, 2], [3, 4, 5]], [[0, 1], [2, 3], [4, 5], [6, 7]]
            wanted = [3 * i + j + 4 * sum(b[i][k] * a[k][j] for k in range(2)) for i in range(4) for j in range(3)]
            merged = read_safetensors(self.folder / f"{name}-merged.safetensors")[0]["q.weight"]
            self.assertEqual(merged, ("F32", [4, 3], pack("F32", wanted)))
            self.ballast("adapter", "inject", "base.safetensors", folder, "-o", f"{name}-in.safetensors")
            self.ballast("adapter", "extract", f"{name}-in.safetensors", "--config", folder / "adapter_config.json", "-o",
                         f"{name}-out")
            self.assertEqual(json.loads((self.folder / f"{name}-out/adapter_config.json").read_text()), config)

    def test_info_names_the_variant_of_a_lora(self):
        table = [("aLoRA", False, {"alora_invocation_tokens": [7]}), ("Arrow", False, {"arrow_config": {"top_k": 2}}),
                 ("MonteCLoRA", True, {"monteclora_config": {"num_samples": 8}})]
        self.base()
        for variant, is_merged, config in table:
            folder = self.lora(variant, **config)
            self.assertIn(f"LORA ({variant}), as peft has it", self.ballast("adapter", "info", folder).out)
            info = self.ballast("adapter", "info", folder, "--json").json()
            self.assertEqual((info["type"], info["variants"]), ("LORA", [variant]))
            self.assertEqual(list(info["merge"]), ["formula" if is_merged else "why_not"])
            merge = ["adapter", "merge", "base.safetensors", folder, "-o", f"{variant}.safetensors"]
            if is_merged:
                self.ballast(*merge)
            else:
                self.refused(*merge, code=UNSUPPORTED, says=info["merge"]["why_not"])
        self.assertEqual(self.ballast("adapter", "info", self.lora(), "--json").json()["variants"], [])

    def test_an_alpha_of_zero_is_noted(self):
        self.base()
        done = self.ballast("adapter", "inject", "base.safetensors", self.lora(lora_alpha=0), "-o", "x.safetensors")
        self.assertIn("an alpha of 0", done.err)
        problems = self.ballast("adapter", "info", "lora", "--json").json()["problems"]
        self.assertEqual([problem["harmless"] for problem in problems], [True])

    def test_settings_that_a_dialect_cannot_express_are_refused_and_not_left_out(self):
        turned, experts = self.lora("turned", fan_in_fan_out=True), self.lora("experts", target_parameters=["experts.w"])
        for folder, field in (turned, "fan_in_fan_out"), (experts, "target_parameters"):
            for dialect, file in ("kohya", "x.safetensors"), ("diffusers", "x.safetensors"), ("gguf", "x.gguf"):
                self.refused("adapter", "convert", folder, "--to", dialect, "-o", file, code=UNSUPPORTED,
                             says=field, hint="merge the adapter into its base")
            self.ballast("adapter", "convert", folder, "--to", "peft", "-o", f"{folder}-peft")
        self.assertFalse((self.folder / "x.safetensors").exists())

    def test_options_that_must_be_given_are_asked_for(self):
        for rest, hint in ((["convert", LORA, "--to", "kohya"], "-o"), (["convert", LORA, "-o", "x"], "peft, diffusers"),
                           (["extract", TINY, "-o", "x"], "--config")):
            self.assertIn(hint, self.ballast("adapter", *rest, code=USAGE).err)

    def test_files_of_peft_come_out_as_they_were(self):
        for case in ("lora_plain", "lora_dora", "lora_modules_to_save_bert", "lora_bias_all", "vera_with_projection", "shira",
                     "adalora_rank_pattern", "vblora_topk_only", "prompt_tuning", "extra_tinylora"):
            with self.subTest(case):
                self.ballast("adapter", "extract", PEFT / case / "adapted_state_dict.safetensors", "--config",
                             PEFT / case / "adapter/adapter_config.json", "-o", case)
                for file in "adapter_config.json", "adapter_model.safetensors":
                    self.assertEqual((self.folder / case / file).read_bytes(), (PEFT / case / "adapter" / file).read_bytes())


if __name__ == "__main__":
    unittest.main()
