// A model's folder made a GGUF: quantized, against plain loops of the same algorithms; as it is, against a copy of its
// weights; and the memory that it takes.
#include <filesystem>
#include <fstream>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <ballast/ballast.hpp>
#include <ballast/recipe.hpp>

#include "benchmarks.hpp"
#include "generate.hpp"
#include "kernels/ggml/encode_plain.hpp"
#include "model_folder.hpp"

namespace ballast::bench {
namespace {

void convert(const std::string& folder, const std::string& type, const std::string& to, unsigned threads = 0) {
  save(apply_recipe(gguf_model(folder), {.type = type}), to, {.durable = false, .threads = threads});
}

// One tensor by one thread: our own reader gives the values, so that only the encoding is different.
void write_plainly(const Tensor& values, DType type, std::ofstream& file) {
  const auto encode = kernels::plain::encoder(type);
  const DTypeInfo& block = info(type);
  std::vector<float> in(std::size_t{64} << 10);
  std::vector<std::uint8_t> out;
  for (std::uint64_t done = 0; done < values.numel(); done += in.size()) {
    const auto some = std::span(in).first(std::min<std::uint64_t>(in.size(), values.numel() - done));
    values.read(done * sizeof(float), std::as_writable_bytes(some));
    out.resize(some.size() / block.block_elements * block.block_bytes);
    for (std::size_t i = 0; i < some.size() / block.block_elements; ++i)
      encode(some.data() + i * block.block_elements, out.data() + i * block.block_bytes);
    file.write(reinterpret_cast<const char*>(out.data()), static_cast<std::streamsize>(out.size()));
  }
}

void convert_plainly(const std::string& folder, const std::string& type, const std::string& to) {
  const Checkpoint model = gguf_model(folder), converted = apply_recipe(model, {.type = type});
  std::ofstream file(to, std::ios::binary);
  for (const auto& [name, tensor] : converted) {
    if (info(tensor.dtype()).kind == DTypeKind::ggml)
      write_plainly(model.at(name).to(DType::f32), tensor.dtype(), file);
  }
}

struct Outputs {
  std::string ours = scratch() + "/out.gguf", theirs = scratch() + "/copy";

  void remove() const {
    std::filesystem::remove(ours);
    std::filesystem::remove(theirs);
  }
};

void compare_with_plain_loops(Report& report) {
  const std::string row = "gguf: a model of 64 MB to Q4_K_M, 2 threads / plain loops, 1 thread";
  if (!report.wants(row)) return;
  const std::string folder = scratch() + "/model";
  write_folder(folder, {"llama", 1024, 2560, 16, 4, 3, 512}, Values::gaussian);
  const Outputs outputs;
  const auto remove = [&] { outputs.remove(); };
  const auto ours = [&] { convert(folder, "Q4_K_M", outputs.ours, 2); };
  const auto theirs = [&] { convert_plainly(folder, "Q4_K_M", outputs.theirs); };
  report.add(row, compare({ours, remove}, {theirs, remove}, 15), Goal::speed_at_least, 6.0);
  remove();
  std::filesystem::remove_all(folder);
}

void compare_with_copy(Report& report, const std::string& type, double share) {
  const std::string row = fmt::format("gguf: a {} of 1 GB to BF16 / copy", type);
  if (!report.wants(row)) return;
  const std::string folder = scratch() + "/model";
  const std::string weights = write_folder(folder, {type, 4096, 14336, 32, 8, 2, 8192}, Values::gaussian);
  const Outputs outputs;
  const auto remove = [&] { outputs.remove(); };
  const auto ours = [&] { convert(folder, "BF16", outputs.ours); };
  const auto theirs = [&] { copy_file(weights, outputs.theirs, /*sync=*/false); };
  report.add(row, compare({ours, remove}, {theirs, remove}, 15), Goal::speed_at_least, share);
  remove();
  std::filesystem::remove_all(folder);
}

void measure_memory(Report& report, std::uint64_t blocks) {
  const ModelSizes sizes{"llama", 4096, 14336, 32, 8, blocks, 8192};
  const std::string row = fmt::format("gguf: memory of blocks of an 8B model to Q4_K_M, {}", blocks);
  if (!report.wants(row)) return;
  const std::string folder = scratch() + "/model", to = scratch() + "/out.gguf";
  write_folder(folder, sizes, Values::hole);
  report.add_value(row, peak_anonymous([&] { convert(folder, "Q4_K_M", to); }), 96, "MiB");
  std::filesystem::remove(to);
  std::filesystem::remove_all(folder);
}

}  // namespace

void bench_gguf(Report& report) {
  compare_with_plain_loops(report);
  compare_with_copy(report, "qwen2", 1.0);
  compare_with_copy(report, "llama", 0.9);
  for (const std::uint64_t blocks : {1u, 8u}) measure_memory(report, blocks);
}

}  // namespace ballast::bench
