"""check: one verb that says whether models are fit to ship, and why not."""

import json
import math
import os
import pathlib
import pickle
import shutil
import struct
import subprocess
import unittest

from support import *

LLAMA = VECTORS / "hf2gguf" / "llama3" / "Llama-3.2-1B-Instruct"
MIXTRAL = next(path for path in (VECTORS / "hf2gguf" / "mixtral").iterdir() if path.is_dir())


def read_tensors(path):
    data = path.read_bytes()
    length = struct.unpack_from("<Q", data)[0]
    head = json.loads(data[8:8 + length])
    metadata = head.pop("__metadata__", {})
    body = data[8 + length:]
    return {name: (one["dtype"], one["shape"], body[slice(*one["data_offsets"])]) for name, one in head.items()}, metadata


class Evil:
    def __reduce__(self):
        return os.system, ("true",)


class CheckCase(TestCase):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "model"
        shutil.copytree(LLAMA, self.model)
        for path in [self.model, *self.model.iterdir()]:
            path.chmod(0o755)
        (self.model / "LICENSE").write_text("Do what you like.\n")

    def change(self, tensors=(), remove=(), metadata=None, **config):
        old, said = read_tensors(self.model / "model.safetensors")
        for name in remove:
            del old[name]
        old.update(tensors)
        (self.model / "model.safetensors").write_bytes(safetensors(old, said if metadata is None else metadata))
        path = self.model / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | config))

    def findings(self, *options, code, target=None):
        report = self.ballast("check", target or self.model, "--json", *options, code=code).json()
        self.assertEqual(report["schema"], "ballast.check/1")
        self.assertEqual(report["passes"], code == OK)
        return [(one["rule"], one["level"], one["tensor"]) for target in report["targets"] for one in target["findings"]]


class Check(CheckCase):
    def test_a_sound_model_passes_without_a_word(self):
        self.assertEqual(self.findings(code=OK), [])
        result = self.ballast("check", self.model)
        self.assertRegex(result.out, r"^ok +.*model: 20 tensors, ")
        self.assertEqual(result.err, "1 target passes\n")

    def test_every_reference_model_passes(self):
        for case in sorted((VECTORS / "hf2gguf").glob("*/*/model.safetensors")):
            with self.subTest(case.parent.name):
                report = self.ballast("check", case.parent, "--json").json()
                rules = {finding["rule"] for finding in report["targets"][0]["findings"]}
                self.assertLessEqual(rules, {"licence", "unknown-code"})

    def test_a_missing_tensor_is_named_as_the_checkpoint_would_have_it(self):
        self.change(remove=["model.layers.1.mlp.up_proj.weight"], num_hidden_layers=2)
        # Two layers are too few to say what a layer has.
        self.assertEqual(self.findings(code=OK), [])
        old, _ = read_tensors(self.model / "model.safetensors")
        more = {name.replace("layers.0.", f"layers.{i}."): value for name, value in old.items() if "layers.0." in name for i in (2, 3)}
        self.change(more, num_hidden_layers=4)
        copies = [f"model.layers.2.{part}_proj.weight" for part in (
            "mlp.down", "mlp.gate", "mlp.up", "self_attn.o", "self_attn.q", "self_attn.k", "self_attn.v")]
        self.assertEqual(self.findings(code=NO), [("missing", "fail", "model.layers.1.mlp.up_proj.weight")] + [("duplicate", "warn", name) for name in copies])

    def test_a_shard_that_never_arrived(self):
        self.write("m/model-00001-of-00002.safetensors", {"a": ("F32", [1], [1.0])})
        (self.folder / "m/model.safetensors.index.json").write_text(json.dumps(
            {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors", "c": "model-00002-of-00002.safetensors"}}))
        result = self.ballast("check", "m", code=NO)
        self.assertIn('1 of 2 shards is not there, "model-00002-of-00002.safetensors", with 2 of 3 tensors', result.out)
        self.refused("ls", "m", code=IO, says="1 of 2 shards is not there", hint="interrupted")

    def test_missing_layers_and_layers_too_many(self):
        self.change(num_hidden_layers=5)
        self.assertEqual(self.findings(code=NO), [("missing", "fail", None)])
        self.change(num_hidden_layers=1)
        self.assertEqual(self.findings(code=NO), [("contradiction", "fail", None)])

    def test_shapes_that_contradict_the_configuration(self):
        self.change(vocab_size=400)
        self.assertEqual(self.findings(code=NO), [("contradiction", "fail", "model.embed_tokens.weight")])
        self.change(vocab_size=326, intermediate_size=200)
        self.assertEqual({finding[2] for finding in self.findings(code=NO)},
                         {f"model.layers.{i}.mlp.{part}_proj.weight" for i in (0, 1) for part in ("up", "gate", "down")})

    def test_a_head_that_is_missing(self):
        self.change(tie_word_embeddings=False)
        self.assertEqual(self.findings(code=NO), [("missing", "fail", None)])

    def test_an_expert_that_is_missing(self):
        shutil.rmtree(self.model)
        shutil.copytree(MIXTRAL, self.model)
        for path in [self.model, *self.model.iterdir()]:
            path.chmod(0o755)
        tensors, _ = read_tensors(self.model / "model.safetensors")
        self.change(remove=[next(name for name in tensors if ".experts.1." in name)])
        self.assertIn(("missing", "fail", None), self.findings(code=NO))

    def test_tensors_that_are_left_over(self):
        self.change({"model.extra.weight": ("F32", [2], pack("F32", [1.0, 2.0]))})
        self.assertEqual(self.findings(code=OK), [("left-over", "warn", "model.extra.weight")])

    def test_values_that_break_a_model(self):
        bad = pack("F32", [1.0, math.nan, math.inf, 2.0])
        self.change({"model.norm.weight": ("F32", [4], bad)}, hidden_size=64)
        rules = [finding[0] for finding in self.findings(code=NO)]
        self.assertIn("nan", rules)
        self.assertIn("infinity", rules)
        self.assertIn("contradiction", rules)

    def test_what_transformers_and_lawyers_need(self):
        self.change(metadata={})
        (self.model / "LICENSE").unlink()
        (self.model / "README.md").write_text("# A model\n")
        self.assertEqual(self.findings(code=OK), [("format", "warn", None), ("licence", "warn", None)])
        (self.model / "README.md").write_text("---\nlanguage: en\nlicense: mit\n---\n# A model\n")
        self.assertEqual(self.findings(code=OK), [("format", "warn", None)])

    def test_a_matrix_that_is_stored_again(self):
        old, _ = read_tensors(self.model / "model.safetensors")
        same = old["model.embed_tokens.weight"]
        says = []
        for copies in range(1, 4):
            self.change({f"model.copy{i}.weight": same for i in range(copies)})
            report = self.ballast("check", self.model, "--json").json()
            says += [one["what"] for one in report["targets"][0]["findings"] if one["rule"] == "duplicate"]
        twin = 'has the bytes of "model.embed_tokens.weight"'
        self.assertEqual(says, [twin, twin + ", and so has another one", twin + ", and so have 2 others"])

    def test_a_pickle_that_runs_code(self):
        (self.folder / "evil.pkl").write_bytes(pickle.dumps({"a": Evil()}))
        self.assertIn(("unsafe", "fail", None), self.findings(code=NO, target=self.folder / "evil.pkl"))

    def test_what_cannot_be_opened_is_a_finding_and_what_is_not_there_an_error(self):
        (self.folder / "cut.safetensors").write_bytes(TINY.read_bytes()[:500])
        self.assertIn(("malformed", "fail", None), self.findings(code=NO, target=self.folder / "cut.safetensors"))
        self.refused("check", self.folder / "none.safetensors", code=IO, says="none.safetensors")
        self.refused("check", code=USAGE, says="check what?")

    def test_an_index_that_names_what_is_not_there(self):
        folder = self.folder / "shards"
        folder.mkdir()
        (folder / "a.safetensors").write_bytes(TINY.read_bytes())
        (folder / "model.safetensors.index.json").write_text('{"weight_map": {"model.norm.weight": "a.safetensors", "x": "b.safetensors"}}')
        self.assertIn(("missing", "fail", None), self.findings(code=NO, target=folder))

    def test_a_folder_of_checkpoints_is_each_of_them(self):
        folder = self.folder / "several"
        folder.mkdir()
        for name in ("a.safetensors", "b.safetensors"):
            (folder / name).write_bytes(TINY.read_bytes())
        report = self.ballast("check", folder, TINY, "--json").json()
        self.assertEqual([pathlib.Path(one["target"]).name for one in report["targets"]], ["a.safetensors", "b.safetensors", "tiny.safetensors"])


class Policy(CheckCase):
    def policy(self, text):
        (self.folder / "policy").write_text(text)
        return "--policy", self.folder / "policy"

    def test_says_what_fails(self):
        self.change(metadata={})
        self.assertEqual(self.findings(*self.policy("fail format # it must be loaded\n"), code=NO), [("format", "fail", None)])
        self.assertEqual(self.findings(*self.policy("ignore format"), code=OK), [])
        self.assertEqual(self.findings(*self.policy("fail all\nwarn format, nan"), code=OK), [("format", "warn", None)])

    def test_says_which_dtypes_weights_have(self):
        self.assertEqual(self.findings(*self.policy("dtypes F32 F16\nfail dtype"), code=NO), [("dtype", "fail", "model.embed_tokens.weight")])
        self.assertEqual(self.findings(*self.policy("dtypes BF16\nfail dtype"), code=OK), [])

    def test_says_which_code_is_trusted(self):
        (self.folder / "a.pkl").write_bytes(b"cmymodule\nThing\n)R.")
        self.assertEqual(self.findings(code=NO, target=self.folder / "a.pkl"), [("missing", "fail", None), ("unknown-code", "warn", None)])
        self.assertEqual(self.findings(*self.policy("mymodule.*\n"), code=NO, target=self.folder / "a.pkl"), [("missing", "fail", None)])

    def test_a_line_that_makes_no_sense_is_refused_by_its_number(self):
        for text, says in {"fail": "line 1 of the policy: which rule?", "\nfail nothing": 'line 2 of the policy: there is no rule "nothing"',
                           "dtypes F31": 'there is no dtype "F31"', "deny all": '"deny" is no word of a policy'}.items():
            self.refused("check", self.model, *self.policy(text), code=USAGE, says=says, hint="fail RULE")
        self.refused("check", self.model, "--policy", self.folder / "none", code=IO, says="cannot open the policy")

    def test_the_rules_are_shown(self):
        rules = {line.split("\t")[0]: line.split("\t")[1] for line in self.ballast("check", "--rules").lines()}
        self.assertEqual({rule for rule, level in rules.items() if level == "fail"},
                         {"unsafe", "malformed", "missing", "contradiction", "nan", "infinity"})


class Documents(CheckCase):
    def test_sarif_has_every_finding(self):
        self.change(vocab_size=400, metadata={})
        run = self.ballast("check", self.model, "--sarif", code=NO).json()["runs"][0]
        self.assertEqual([(one["ruleId"], one["level"]) for one in run["results"]], [("contradiction", "error"), ("format", "warning")])
        self.assertIn("model.embed_tokens.weight has the shape", run["results"][0]["message"]["text"])
        self.assertEqual(len(run["tool"]["driver"]["rules"]), len(self.ballast("check", "--rules").lines()))

    def test_text_names_the_tensor_and_the_rule(self):
        self.change(vocab_size=400)
        result = self.ballast("check", self.model, code=NO)
        self.assertRegex(result.out, r"(?m)^FAIL +.*model: 20 tensors, .*, 1 failure$")
        self.assertRegex(result.out, r"(?m)^  fail\tcontradiction\tmodel.embed_tokens.weight\thas the shape \[326, 64\], and by config.json it would have \[400, 64\]$")
        self.assertEqual(result.err, "1 of 1 target fails\n")


CI = SOURCE / "examples" / "ci"


@unittest.skipUnless(shutil.which("git"), "git is not installed")
class ContinuousIntegration(CheckCase):
    """The hook and the workflow of examples/ci do what they say, in a repository with awkward names."""

    def setUp(self):
        super().setUp()
        self.repository = self.folder / "repository"
        self.repository.mkdir()
        bin = self.folder / "bin"
        bin.mkdir()
        (bin / "ballast").symlink_to(COMMAND)
        self.environment = environment() | {"PATH": f"{bin}:{os.environ['PATH']}", "HOME": str(self.folder), "GIT_CONFIG_NOSYSTEM": "1"}
        self.run_in("git", "init", "-q")
        self.run_in("git", "config", "user.email", "a@example.org")
        self.run_in("git", "config", "user.name", "A")

    def run_in(self, *words, code=0):
        done = subprocess.run(words, cwd=self.repository, env=self.environment, capture_output=True, timeout=60)
        self.assertEqual(done.returncode != 0, code != 0, done)
        return done

    def put(self, name, tensors):
        (self.repository / name).write_bytes(safetensors(tensors, {"format": "pt"}))
        self.run_in("git", "add", "--", name)

    def workflow_step(self, name):
        lines = (CI / "check-models.yml").read_text().splitlines()
        at = lines.index("        run: |", lines.index(f"      - name: {name}")) + 1
        script = []
        while at < len(lines) and (lines[at].startswith(" " * 10) or not lines[at]):
            script.append(lines[at][10:])
            at += 1
        return "\n".join(script)

    SOUND = {"w": ("F32", [2], pack("F32", [1.0, 2.0]))}
    BROKEN = {"w": ("F32", [2], pack("F32", [1.0, math.nan]))}

    def test_the_hook_lets_sound_models_through_and_stops_the_others(self):
        shutil.copy(CI / "pre-commit", self.repository / ".git/hooks/pre-commit")
        self.put("-a b.safetensors", self.SOUND)
        self.run_in("git", "commit", "-q", "-m", "sound")
        self.put("bad\n.safetensors", self.BROKEN)
        stopped = self.run_in("git", "commit", "-q", "-m", "broken", code=1)
        self.assertIn("1 of 2 values is NaN", (stopped.stdout + stopped.stderr).decode())
        (self.repository / ".ballast-policy").write_text("warn nan\n")
        self.run_in("git", "commit", "-q", "-m", "allowed")
        (self.repository / "notes.txt").write_text("no model")
        self.run_in("git", "add", "notes.txt")
        self.run_in("git", "commit", "-q", "-m", "nothing to check")

    def test_the_workflow_writes_what_it_uploads(self):
        check = self.workflow_step("Check")
        self.put("a.safetensors", self.SOUND)
        self.run_in("bash", "-e", "-o", "pipefail", "-c", check)
        self.assertEqual(json.loads((self.repository / "ballast.sarif").read_text())["runs"][0]["results"], [])
        self.put("-b.safetensors", self.BROKEN)
        self.run_in("bash", "-e", "-o", "pipefail", "-c", check, code=1)
        results = json.loads((self.repository / "ballast.sarif").read_text())["runs"][0]["results"]
        self.assertEqual([one["ruleId"] for one in results], ["nan"])
        self.assertEqual(results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "./-b.safetensors")


if __name__ == "__main__":
    unittest.main()
