// diff: two models of BF16 that differ everywhere, against reading both.
#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <ballast/ballast.hpp>

#include "benchmarks.hpp"
#include "generate.hpp"

namespace ballast::bench {
namespace {

constexpr std::uint64_t kMatrices = 32, kSide = 4096, kElements = kSide * kSide;  // 1 GiB in all
constexpr unsigned kThreads = 2;

// Gaussian numbers; `noise` is the size of what is added to them.
void write_gaussian(const std::string& path, float noise) {
  std::mt19937 numbers(1), changes(2);
  std::normal_distribution<float> normal;
  std::vector<float> values(kElements / 16);
  for (float& value : values) value = normal(numbers) + noise * normal(changes);
  const Tensor piece = Tensor::from_values<float>(DType::f32, {values.size()}, values).to(DType::bf16).realize();
  std::string header = "{";
  for (std::uint64_t i = 0; i < kMatrices; ++i)
    header += fmt::format(R"({}"layers.{}.weight":{{"dtype":"BF16","shape":[{},{}],"data_offsets":[{},{}]}})",
                          i == 0 ? "" : ",", i, kSide, kSide, i * kElements * 2, (i + 1) * kElements * 2);
  header += "}";
  const std::uint64_t length = header.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), 8) << header;
  std::vector<std::byte> bytes(piece.nbytes());
  piece.read(0, bytes);
  for (std::uint64_t i = 0; i < kMatrices * 16; ++i)
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

void bench_diff(Report& report) {
  const std::string row = "diff of 2 x 1 GiB of BF16 that differ / read both from the page cache, 2 threads each";
  const std::string equal_row =
      "diff of 2 x 1 GiB of BF16 that are equal / read both from the page cache, 2 threads each";
  if (!report.wants(row) && !report.wants(equal_row)) return;
  const std::string a = scratch() + "/a.safetensors", b = scratch() + "/b.safetensors";
  write_gaussian(a, 0);
  const auto ours = [&] { keep(diff(ballast::open(a), ballast::open(b), {.threads = kThreads})); };
  const auto theirs = [&] {
    read_once(a, kThreads);
    read_once(b, kThreads);
  };
  for (const bool is_equal : {false, true}) {
    const std::string& name = is_equal ? equal_row : row;
    if (!report.wants(name)) continue;
    write_gaussian(b, is_equal ? 0.0F : 0.01F);
    report.add(name, compare({ours}, {theirs}, 15), Goal::speed_at_least, 0.6);
  }
  std::filesystem::remove(a);
  std::filesystem::remove(b);
}

}  // namespace ballast::bench
