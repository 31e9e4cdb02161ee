"""Several processes that mpirun or srun started do not all write the same file."""

import unittest

from support import *

# What the launchers tell each process, and what a shell in an allocation of Slurm has.
MPIRUN = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1"}
SRUN = {"SLURM_NTASKS": "8", "SLURM_PROCID": "3", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "8"}
HYDRA = {"PMI_SIZE": "4", "PMI_RANK": "0"}
BATCH = {"SLURM_JOB_ID": "17", "SLURM_NTASKS": "8", "SLURM_NPROCS": "8", "SLURM_PROCID": "0"}
ONE_TASK = BATCH | {"SLURM_STEP_ID": "1", "SLURM_STEP_NUM_TASKS": "1"}
ONE_RANK = {"OMPI_COMM_WORLD_SIZE": "1", "OMPI_COMM_WORLD_RANK": "0"}


class Launched(TestCase):
    def setUp(self):
        super().setUp()
        self.write("in.safetensors", {"w": ("F32", [2, 2], [1, 2, 3, 4])})
        self.before = self.names_in_folder()

    def test_by_a_launcher_in_several_processes_refuses_to_write(self):
        for launcher, processes in ((MPIRUN, "mpirun started 2"), (SRUN, "srun started 8"), (HYDRA, "mpiexec started 4")):
            self.refused("convert", "in.safetensors", "out.safetensors", code=USAGE, says=processes, hint="ballast-mpi",
                         env=environment(**launcher))
        self.assertEqual(self.names_in_folder(), self.before)

    def test_refuses_with_every_verb_that_writes(self):
        content = (self.folder / "in.safetensors").read_bytes()
        for words in (["convert", "in.safetensors", "half/", "--dtype", "F16"], ["meta", "set", "in.safetensors", "a=b"],
                      ["meta", "unset", "in.safetensors", "a"], ["cat", "in.safetensors", "w", "-o", "w.npy"],
                      ["view", "in.safetensors", "--html", "page.html"], ["fetch", "hf://org/name"], ["cache", "clear"],
                      ["adapter", "from-diff", "in.safetensors", "in.safetensors", "-o", "lora", "--rank", "1"]):
            with self.subTest(verb=words[:2]):
                result = self.refused(*words, code=USAGE, says="each of them would write the same", env=environment(**MPIRUN))
                self.assertIn("ballast-mpi", result.err)
        self.assertEqual(self.names_in_folder(), self.before)
        self.assertEqual((self.folder / "in.safetensors").read_bytes(), content)

    def test_reads_as_usual(self):
        for words in (["info", "in.safetensors"], ["hash", "in.safetensors"], ["stats", "in.safetensors"],
                      ["cat", "in.safetensors", "w"], ["verify", "in.safetensors"], ["meta", "get", "in.safetensors"]):
            self.assertEqual(self.ballast(*words, env=environment(**SRUN)).raw, self.ballast(*words).raw)

    def test_shows_what_would_be_written(self):
        words = ["convert", "in.safetensors", "out.safetensors", "--dtype", "F16", "--dry-run"]
        self.assertEqual(self.ballast(*words, env=environment(**MPIRUN)).raw, self.ballast(*words).raw)
        self.assertEqual(self.names_in_folder(), self.before)

    def test_makes_no_cache(self):
        self.ballast("convert", "in.safetensors", "in.pt")
        self.before = self.names_in_folder()
        wish = {"BALLAST_CACHE": "all"}
        self.refused("stats", "in.pt", "--cache-all", code=USAGE, says="each of them would write the same",
                     env=environment(**MPIRUN, **wish))
        self.ballast("stats", "in.pt", env=environment(**MPIRUN, **wish))
        self.assertEqual(self.names_in_folder(), self.before)
        self.ballast("stats", "in.pt", env=environment(**wish))
        self.assertNotEqual(self.names_in_folder(), self.before, "one process makes it")

    def test_in_one_process_writes_as_usual(self):
        for number, launcher in enumerate((BATCH, ONE_TASK, ONE_RANK)):
            self.ballast("convert", "in.safetensors", f"{number}.safetensors", env=environment(**launcher))


if __name__ == "__main__":
    unittest.main()
