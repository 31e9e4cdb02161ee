"""ballast-mpi writes and says what ballast does, with 1 to 4 processes, and ends in time if one of them fails."""

import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from seeded_weights import write_weights
from support import *

COMMAND_MPI = os.environ["BALLAST_MPI_COMMAND"]
MPIRUN = os.environ["BALLAST_MPIRUN"].split()
FAIL_LIB = os.environ["BALLAST_FAIL_LIB"]
FAIL_MPI_LIB = os.environ["BALLAST_FAIL_MPI_LIB"]
SECONDS = 10  # after a failure, no process lives longer
MPIRUN_INTERRUPTED = 1  # the exit code of mpirun after Ctrl-C, whatever its processes end with


def numbers(count, seed):
    generator = random.Random(seed)
    return struct.pack(f"<{count}f", *(generator.gauss(0, 0.02) for _ in range(count)))


def model(layers=6, rows=256, columns=256):
    return safetensors({f"layers.{i}.weight": ("F32", [rows, columns], numbers(rows * columns, i)) for i in range(layers)} |
                       {f"layers.{i}.bias": ("F32", [rows], numbers(rows, 100 + i)) for i in range(layers)})


def write_lora(test, layer, rows, columns):
    test.write("lora/adapter_model.safetensors",
               {f"base_model.model.{layer}.lora_A.weight": ("F32", [8, columns], numbers(8 * columns, 2)),
                f"base_model.model.{layer}.lora_B.weight": ("F32", [rows, 8], numbers(rows * 8, 3))})
    test.write("lora/adapter_config.json", json.dumps(
        {"peft_type": "LORA", "r": 8, "lora_alpha": 16, "target_modules": [layer]}).encode())


def own_lines(text):
    """What ballast-mpi said, without what mpirun says of the exit code."""
    return [line for line in text.splitlines() if line.startswith(("ballast:", "  hint:"))]


class Ranks(TestCase):
    def mpirun(self, ranks, *args, program=COMMAND_MPI, wrapper=None, seconds=120):
        """Runs the program in so many processes. `wrapper` is what the shell of each does before."""
        words = [program, *map(str, args)]
        if wrapper is not None:
            words = ["sh", "-c", wrapper + '\nexec "$0" "$@"', *words]
        begin = time.monotonic()
        done = subprocess.run([*MPIRUN, "-n", str(ranks), *words], capture_output=True, cwd=self.folder, timeout=seconds,
                              env=environment(), stdin=subprocess.DEVNULL)
        self.seconds = time.monotonic() - begin
        return Result(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))

    def ranks(self, ranks, *args, code=OK, **more):
        result = self.mpirun(ranks, *args, **more)
        self.assertEqual(result.code, code, f"{ranks} ranks: {' '.join(map(str, args))}\n{result}")
        return result

    def bytes_in(self, folder):
        return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}

    def writes_the_same(self, *args, out, most=4):
        """The verb with the output {out} gives the same files, whatever the number of processes."""
        (self.folder / "alone").mkdir()
        self.ballast(*(str(arg).format(out=f"alone/{out}") for arg in args))
        wanted = self.bytes_in(self.folder / "alone")
        self.assertNotEqual(wanted, {})
        for n in range(1, most + 1):
            (self.folder / f"n{n}").mkdir()
            self.ranks(n, *(str(arg).format(out=f"n{n}/{out}") for arg in args))
            found = self.bytes_in(self.folder / f"n{n}")
            self.assertEqual(list(found), list(wanted))
            self.assertTrue(found == wanted, f"{n} processes write something else")


class Writing(Ranks):
    def test_a_copy(self):
        self.write("in.safetensors", model())
        self.writes_the_same("convert", "in.safetensors", "{out}", out="copy.safetensors")

    def test_a_cast_into_shards(self):
        self.write("in.safetensors", model())
        self.writes_the_same("convert", "in.safetensors", "{out}", "--dtype", "BF16", "--max-shard-size", "200KB",
                             out="m.safetensors")

    def test_a_new_folder_with_a_manifest(self):
        self.write("in/model.safetensors", model())
        self.write("in/config.json", b"{}")
        self.writes_the_same("convert", "in", "{out}/", "--compress", "--verify", "--manifest", "{out}.json", out="new")

    def test_a_torch_file(self):
        self.write("in.safetensors", model())
        self.writes_the_same("convert", "in.safetensors", "{out}", out="m.pt", most=3)

    def test_a_gguf_of_a_model(self):
        model = self.folder / "model"
        shutil.copytree(VECTORS / "hf2gguf/q_llama8/Tiny-Quant-Llama-8L", model)
        write_weights(model)
        self.writes_the_same("convert", model, "{out}", "--type", "Q4_K_M", out="m.gguf")

    def test_a_merged_adapter(self):
        self.write("base.safetensors", {"layer.weight": ("F32", [512, 384], numbers(512 * 384, 1))})
        write_lora(self, "layer", 512, 384)
        self.writes_the_same("adapter", "merge", "base.safetensors", "lora", "-o", "{out}", out="merged.safetensors")


class Reading(Ranks):
    def test_says_what_one_process_says(self):
        self.write("in.safetensors", model())
        self.ballast("convert", "in.safetensors", "in.pt")
        manifest = self.folder / "sums"
        manifest.write_text(self.ballast("hash", "in.safetensors").out)
        for args in (["hash", "in.safetensors"], ["hash", "in.pt", "--json"], ["stats", "in.safetensors", "--long"],
                     ["stats", "in.pt", "--histogram", "--quantiles", "0.5,1", "--json"],
                     ["stats", "in.safetensors", "layers.1.weight", "--axis", "-1", "--top", "3"],
                     ["stats", "in.safetensors", "--problems", "--json"], ["verify", "in.pt", "--json"],
                     ["verify", "in.safetensors", "--manifest", "sums"]):
            alone = self.run_raw(*args)
            for n in (1, 3):
                together = self.mpirun(n, *args)
                self.assertEqual((together.code, together.raw), (alone.code, alone.raw), args)

    def test_ends_with_the_exit_code_of_the_answer(self):
        self.write("in.safetensors", model(1))
        (self.folder / "sums").write_text("0" * 64 + "  layers.0.weight\n")
        result = self.ranks(2, "verify", "in.safetensors", "--manifest", "sums", code=NO)
        self.assertEqual(result.raw, self.ballast("verify", "in.safetensors", "--manifest", "sums", code=NO).raw)


class Reports(Ranks):
    def test_add_up_and_are_even(self):
        self.write("in.safetensors", safetensors(
            {f"t{i}": ("F32", [1000], numbers(1000, 1)) for i in range(1000)}))
        for n in range(1, 5):
            written = self.ranks(n, "convert", "in.safetensors", f"{n}.safetensors", "--json", "--rank-report").json()
            read = self.ranks(n, "hash", "in.safetensors", "--json", "--rank-report").json()
            self.assertEqual(len(written["ranks"]), n)
            self.assertEqual(sum(rank["written"] for rank in written["ranks"]), 4_000_000)
            self.assertEqual(sum(rank["read"] for rank in written["ranks"]), 4_000_000)
            self.assertEqual(sum(rank["read"] for rank in read["ranks"]), 4_000_000)
            for report in (written, read):
                sent, received = (sum(rank[key] for rank in report["ranks"]) for key in ("sent", "received"))
                self.assertEqual(sent, received)
                self.assertLessEqual(report["imbalance"]["read"], 1.05)
                self.assertLessEqual(report["imbalance"]["written"], 1.05)

    def test_are_even_for_ninety_two_thousand_tensors(self):
        header = json.dumps({f"t{i}": {"dtype": "F32", "shape": [8, 16], "data_offsets": [512 * i, 512 * (i + 1)]}
                             for i in range(92_000)}).encode()
        (self.folder / "in.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(512 * 92_000))
        report = self.ranks(4, "convert", "in.safetensors", "out.safetensors", "--dtype", "BF16", "--json",
                            "--rank-report").json()
        self.assertEqual(sum(rank["read"] for rank in report["ranks"]), 92_000 * 512)
        self.assertEqual(sum(rank["written"] for rank in report["ranks"]), 92_000 * 256)
        self.assertLessEqual(report["imbalance"]["read"], 1.05)
        self.assertLessEqual(report["imbalance"]["written"], 1.05)

    def test_count_what_is_really_read(self):
        """Frames of 1 MiB, and threads without end: no rank decodes what another one decodes, too."""
        self.write("plain.safetensors", safetensors({"w": ("F32", [1000, 1000], numbers(1_000_000, 1))}))
        self.ballast("convert", "plain.safetensors", "packed.safetensors", "--compress")
        packed = (self.folder / "packed.safetensors").stat().st_size
        for verb in (["convert", "packed.safetensors", "out.safetensors", "--threads", "128"],
                     ["hash", "packed.safetensors"], ["verify", "packed.safetensors"]):
            report = self.ranks(3, *verb, "--json", "--rank-report").json()
            read = sum(rank["read"] for rank in report["ranks"])
            self.assertLessEqual(read, packed * 1.01, verb)
            self.assertGreaterEqual(read, packed * 0.98, verb)

    def test_are_a_table_for_people_as_in_the_document(self):
        self.write("in.safetensors", model(20, 512, 512))
        page = (SOURCE / "docs/mpi.md").read_text()
        command, sample = re.search(r"```text\n\$ mpirun -n 2 ballast-mpi (convert .*)\n((?:.*\n)+?)```", page).groups()
        result = self.ranks(2, *command.split())
        sent, received = slice(20, 31), slice(31, 42)  # the names of temporary files, and these are not always as long
        for wanted, found in zip(sample.splitlines(), result.err.splitlines(), strict=True):
            self.assertEqual(re.sub(r"[\d.]+", "N", wanted[sent] + wanted[received]),
                             re.sub(r"[\d.]+", "N", found[sent] + found[received]))
            self.assertEqual(wanted[:20] + wanted[42:], found[:20] + found[42:])

    def test_have_no_column_of_what_is_not_counted(self):
        self.write("in.safetensors", model(1))
        result = self.ranks(2, "hash", "in.safetensors", "--rank-report")
        self.assertEqual(result.raw, self.ballast("hash", "in.safetensors").raw)
        self.assertRegex(result.err, r"(?m)^ +read +sent +received\nrank 0 .*\nrank 1 .*\nall .*\nimbalance ")
        self.assertNotIn("held", self.ranks(2, "hash", "in.safetensors", "--json", "--rank-report").json()["ranks"][0])


class Refusals(Ranks):
    def test_of_verbs_that_it_does_not_have_name_ballast(self):
        for words in (["info", "x"], ["adapter", "info", "x"], ["ls", "x"]):
            lines = own_lines(self.ranks(2, *words, code=USAGE).err)
            self.assertEqual(len(lines), 2, lines)
            self.assertIn("there is no verb", lines[0])
            self.assertIn("ballast has the others", lines[1])

    def test_of_no_words_at_all_are_said_once(self):
        lines = own_lines(self.ranks(2, code=USAGE).err)
        self.assertEqual(len(lines), 2, lines)
        self.assertIn("ballast-mpi --help", lines[1])
        self.assertEqual(self.ranks(2, "--version").out.split()[0], "ballast-mpi")

    def test_of_what_only_one_process_sees(self):
        self.write("in.safetensors", model(1))
        self.assertIn("standard input reaches one process", self.ranks(2, "hash", "-", code=USAGE).err)
        self.assertIn("there is no option", self.ranks(2, "stats", "in.safetensors", "--cache", code=USAGE).err)

    def test_the_help_promises_nothing_that_is_not_there(self):
        text = self.ranks(1, "--help", "--help-all").out
        self.assertRegex(text, r"\n +adapter +only merge; ballast has the rest of it\n")
        self.assertNotIn("-cache", text)

    def test_of_ballast_itself_where_each_process_would_write_the_same(self):
        self.write("in.safetensors", model(1))
        result = self.ranks(2, "convert", "in.safetensors", "out.safetensors", program=COMMAND, code=USAGE)
        self.assertIn("ballast-mpi writes it together", result.err)
        self.assertEqual(self.names_in_folder(), ["in.safetensors"])
        cached = self.ranks(2, "stats", "in.safetensors", "--cache", program=COMMAND, code=USAGE)
        self.assertIn("each of them would write the same", cached.err)
        self.ranks(2, "hash", "in.safetensors", program=COMMAND)
        self.ranks(2, "convert", "in.safetensors", "out.safetensors", "--dry-run", program=COMMAND)
        self.assertEqual(self.names_in_folder(), ["in.safetensors"])
        self.ranks(1, "convert", "in.safetensors", "out.safetensors", program=COMMAND)

    def test_of_processes_that_mpi_does_not_know(self):
        self.write("in.safetensors", model(1))
        done = subprocess.run([COMMAND_MPI, "convert", "in.safetensors", "out.safetensors"], cwd=self.folder, text=True,
                              env=environment(PMI_SIZE="4", PMI_RANK="0"), capture_output=True)
        self.assertEqual(done.returncode, USAGE, done)
        self.assertIn("MPI knows of one process only", done.stderr)
        self.assertEqual(self.names_in_folder(), ["in.safetensors"])

    def test_of_a_plan_that_differs(self):
        self.write("in.safetensors", model(2))
        result = self.ranks(2, "convert", "in.safetensors", "out.safetensors", code=NO,
                            wrapper=on_rank(1, 'set -- "$@" --dtype BF16'))
        self.assertIn("would not write the same", result.err)
        self.assertNotIn("out.safetensors", self.names_in_folder())

    def test_of_files_that_differ_under_one_name(self):
        """What two machines see whose files are copies, of which one is out of date."""
        for rank in (0, 1):
            self.write(f"in-{rank}.safetensors", safetensors({"w.weight": ("F32", [64, 64], numbers(64 * 64, rank))}))
        write_lora(self, "w", 64, 64)
        own_input = ('for word; do shift; [ "$word" = in.safetensors ] && word=in-$OMPI_COMM_WORLD_RANK.safetensors; '
                     'set -- "$@" "$word"; done')
        for verb in (["convert", "in.safetensors", "out.safetensors", "--dtype", "BF16"],
                     ["adapter", "merge", "in.safetensors", "lora", "-o", "out.safetensors"],
                     ["hash", "in.safetensors"], ["verify", "in.safetensors"], ["stats", "in.safetensors"],
                     ["stats", "in.safetensors", "w.weight"], ["stats", "in.safetensors", "--problems"]):
            with self.subTest(verb=verb):
                result = self.ranks(2, *verb, code=NO, wrapper=own_input)
                self.assertEqual(result.out, "")
                self.assertRegex(own_lines(result.err)[0], r"^ballast: in-1\.safetensors: the processes of this job read "
                                 r"different files: .* \(rank 1 of 2, host .+\)$")
                self.assertNotIn("out.safetensors", self.names_in_folder())
        # Copies that keep their times are the same files.
        shutil.copy2(self.folder / "in-0.safetensors", self.folder / "in-1.safetensors")
        self.assertEqual(self.ranks(2, "hash", "in.safetensors", wrapper=own_input).raw,
                         self.ballast("hash", "in-0.safetensors").raw)


def on_rank(rank, what):
    return f'if [ "$OMPI_COMM_WORLD_RANK" = {rank} ]; then\n{what}\nfi'


class Faults(Ranks):
    """One rank fails: all end in time, with one error, and what was there is there."""

    def setUp(self):
        super().setUp()
        self.write("in.safetensors", model(12))
        self.write("out.safetensors", b"old")

    def ends(self, *args, code, says, wrapper, ranks=3, is_aborted=False):
        result = self.ranks(ranks, *args, code=code, wrapper=wrapper)
        self.assertLess(self.seconds, SECONDS)
        lines = own_lines(result.err)
        if is_aborted:  # by MPI, which asks the other ranks to end, as Ctrl-C does
            lines = [line for line in lines if line != "ballast: interrupted"]
        self.assertEqual(len([line for line in lines if line.startswith("ballast:")]), 1, result)
        self.assertIn(says, lines[0])
        self.assertEqual(result.out, "")
        self.assertEqual((self.folder / "out.safetensors").read_bytes(), b"old")
        if not is_aborted:
            self.assertEqual([name for name in self.names_in_folder() if ".ballast-" in name], [])

    def convert(self, *more):
        return ("convert", "in.safetensors", "out.safetensors", "--force", "--threads", "1", *more)

    def test_while_it_opens(self):
        for rank in (0, 1, 2):
            self.ends(*self.convert(), code=IO, says="nowhere.safetensors: cannot be opened",
                      wrapper=on_rank(rank, 'shift 2; set -- convert nowhere.safetensors "$@"'))
            self.ends("hash", "in.safetensors", code=IO, says=f"(on rank {rank} of 3, host {socket.gethostname()})",
                      wrapper=on_rank(rank, "set -- hash nowhere.safetensors"))

    def test_of_all_alike_names_no_rank(self):
        self.assertNotIn("on rank", self.ranks(3, "hash", "nowhere.safetensors", code=IO).err)

    def test_of_mpi_itself(self):
        """An exchange fails for one rank alone, and the others wait for it."""
        for args in (self.convert(), ("hash", "in.safetensors")):
            for rank in (0, 1):
                self.ends(*args, code=IO, says="MPI failed at exchanging", is_aborted=True,
                          wrapper=on_rank(rank, f"export LD_PRELOAD={FAIL_MPI_LIB} BALLAST_FAIL_EXCHANGE=4"))

    def test_while_it_plans(self):
        self.ends(*self.convert(), code=USAGE, says="--dtype",
                  wrapper=on_rank(1, 'set -- "$@" --dtype nonsense'))

    def test_while_it_reads(self):
        packed = self.folder / "packed.safetensors"
        self.ballast("convert", "in.safetensors", packed, "--compress")
        raw = bytearray(packed.read_bytes())
        raw[-200:-100] = b"\xff" * 100
        (self.folder / "rotten.safetensors").write_bytes(raw)
        for args, arguments in ((("hash", "packed.safetensors"), "hash rotten.safetensors"),
                                (("convert", "packed.safetensors", "out.safetensors", "--force"),
                                 "convert rotten.safetensors out.safetensors --force")):
            # Whichever rank the broken bytes were dealt to.
            self.ends(*args, code=MALFORMED, says="rotten.safetensors", ranks=2,
                      wrapper=f"set -- {arguments}")

    def failing(self, rank, call, at=1, **fault):
        """Lets one rank's n-th call of that name fail. MPI makes calls of its own, but none of these."""
        faults = " ".join(f"BALLAST_FAIL_{key}={value}" for key, value in (fault or {"ERRNO": "ENOSPC"}).items())
        return on_rank(rank, f"export LD_PRELOAD={FAIL_LIB} BALLAST_FAIL_CALL={call} BALLAST_FAIL_AT={at} {faults}")

    def test_while_it_writes_syncs_and_renames(self):
        for rank, call in ((0, "fallocate"), (0, "pwrite"), (2, "pwrite"), (2, "fdatasync"), (0, "renameat")):
            with self.subTest(rank=rank, call=call):
                self.ends(*self.convert(), code=IO, says="out.safetensors", wrapper=self.failing(rank, call))

    def test_of_a_rank_that_is_killed(self):
        for rank in (0, 2):
            result = self.mpirun(3, *self.convert(), wrapper=self.failing(rank, "pwrite", 9, KILL=1))
            self.assertEqual(result.code, 128 + signal.SIGKILL, result)
            self.assertLess(self.seconds, SECONDS)
            self.assertEqual((self.folder / "out.safetensors").read_bytes(), b"old")
            self.ranks(2, *self.convert())
            self.assertEqual(self.names_in_folder(), ["in.safetensors", "out.safetensors"], "and it is cleaned up")
            self.write("out.safetensors", b"old")

    def test_keeps_finished_shards_for_the_next_run(self):
        def convert(ranks, out, **more):
            return self.mpirun(ranks, "convert", "in.safetensors", f"{out}/m.safetensors", "--max-shard-size", "1MB",
                               "--json", "--threads", "1", **more)

        for name in ("alone", "killed"):
            (self.folder / name).mkdir()
        convert(1, "alone")
        # Each rank syncs each shard that is complete, and so does the first one before it keeps the shard.
        convert(3, "killed", wrapper=self.failing(1, "fdatasync", 3, KILL=1))
        self.assertEqual(list((self.folder / "killed").glob("m*")), [], "nothing has its name yet")
        self.assertEqual(convert(2, "killed").json()["files_kept"], 2)
        self.assertTrue(self.bytes_in(self.folder / "killed") == self.bytes_in(self.folder / "alone"))

    def test_of_an_interrupt(self):
        """Encoding IQ3_S takes seconds a job, and mpirun kills a process a second after it has asked it to end."""
        self.write("large.safetensors", model(6, 4096, 4096))
        for ranks in ("1", "3"):
            self.write("out.gguf", b"old")
            process = subprocess.Popen([*MPIRUN, "-n", ranks, COMMAND_MPI, "convert", "large.safetensors", "out.gguf",
                                        "--force", "--dtype", "IQ3_S", "--threads", "1"], text=True,
                                       cwd=self.folder, env=environment(), stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
            deadline = time.monotonic() + 60
            while not list(self.folder.glob(".out.gguf.ballast-*")) and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(0.3)  # into the first jobs
            self.assertIsNone(process.poll(), "it has ended before the signal")
            self.assertNotEqual(list(self.folder.glob(".out.gguf.ballast-*")), [])
            process.send_signal(signal.SIGINT)
            begin = time.monotonic()
            said = process.communicate(timeout=60)[1]
            self.assertLess(time.monotonic() - begin, SECONDS)
            self.assertEqual(own_lines(said), ["ballast: interrupted"], said)
            self.assertEqual(process.returncode, MPIRUN_INTERRUPTED, said)
            self.assertEqual((self.folder / "out.gguf").read_bytes(), b"old")
            self.assertEqual([name for name in self.names_in_folder() if ".ballast-" in name], [])


if __name__ == "__main__":
    unittest.main()
