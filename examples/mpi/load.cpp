// A model that several processes load together, each its part: mpirun -n 4 load MODEL RULES
//
// The program prints what each rank read, sent and holds. Its model is that of examples/tiny.safetensors.
#include <ballast/ballast.hpp>
#include <ballast/mpi.hpp>

#include <cstdio>
#include <vector>

struct Weight {
  ballast::Tensor weight;
};
BALLAST_FIELDS(Weight, weight)

struct Attention {
  Weight qkv;
};
BALLAST_FIELDS(Attention, qkv)

struct Mlp {
  Weight up, down;
};
BALLAST_FIELDS(Mlp, up, down)

struct Layer {
  Weight norm;
  Attention attn;
  Mlp mlp;
};
BALLAST_FIELDS(Layer, norm, attn, mlp)

struct Model {
  Weight embed, norm;
  std::vector<Layer> layers = std::vector<Layer>(2);
  ballast::Tensor position_ids;
};
BALLAST_FIELDS(Model, embed, norm, layers, position_ids)

// The model is gone before MPI is, though it may well stay longer.
int run(const char* path, const char* rules) try {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Model model;
  const ballast::mpi::LoadOptions options{.load = {.ignore_unexpected = {"lm_head.weight"}}};
  const auto parsed = ballast::mpi::load_rank_rules(MPI_COMM_WORLD, rules);  // on all ranks or on none
  const auto loaded = ballast::mpi::load_state_dict(MPI_COMM_WORLD, model, path, parsed, options);
  if (rank == 0) std::fputs(to_string(loaded.ranks).c_str(), stdout);
  return 0;
} catch (const ballast::Error& error) {
  // Every rank has the same error.
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) std::fprintf(stderr, "load: %s\n", error.what());
  return ballast::info(error.code()).exit_code;
}

int main(int count, char** words) {
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&count, &words, MPI_THREAD_FUNNELED, &level);
  if (count != 3) std::fputs("usage: load MODEL RULES\n", stderr);
  const int result = count == 3 ? run(words[1], words[2]) : 2;
  MPI_Finalize();
  return result;
}
