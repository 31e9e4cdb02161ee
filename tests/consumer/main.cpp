// A program as a user writes it: saves a checkpoint to the path it is given, opens it again and compares, with the
// public headers and nothing else of ours.
#include <ballast/ballast.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FILE.safetensors\n", argv[0]);
    return 2;
  }
  try {
    const std::array<float, 6> values{1, 2, 3, 4, 5, 6};
    ballast::Checkpoint written;
    written.tensors.insert("weight", ballast::Tensor::from_values<float>(ballast::DType::f32, {2, 3}, values));
    ballast::save(written, argv[1], {.overwrite = true});

    const ballast::Checkpoint read = ballast::open(argv[1]);
    const std::span<const float> weight = read.at("weight").as<float>();
    if (!std::equal(weight.begin(), weight.end(), values.begin(), values.end())) {
      std::fprintf(stderr, "%s: the values differ from those that were saved\n", argv[1]);
      return 1;
    }
    std::printf("%s: %zu tensor, as it was saved\n", argv[1], read.size());
  } catch (const ballast::Error& error) {
    std::fprintf(stderr, "%s\n%s\n", error.what(), error.hint().text().c_str());
    return 1;
  }
}
