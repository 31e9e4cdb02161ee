// Looking at every value, against reading every byte once from the page cache.
#include <algorithm>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <ballast/ballast.hpp>

#include "benchmarks.hpp"
#include "generate.hpp"

namespace ballast::bench {
namespace {

constexpr std::size_t kTensors = 32, kRows = 1024, kColumns = 4096;  // 256 MiB in all
constexpr unsigned kThreads = 2;

// Gaussian BF16, as weights are: random bytes would have a NaN in every block.
void write_weights(const std::string& path) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.02F);
  std::vector<float> values(kRows * kColumns);
  for (float& value : values) value = normal(random);
  Checkpoint checkpoint;
  for (std::size_t i = 0; i < kTensors; ++i) {
    std::ranges::rotate(values, values.begin() + 4099);  // tensors with the same bytes would be a finding of check
    const Tensor weights =
        Tensor::from_values<float>(DType::f32, {kRows, kColumns}, values).to(DType::bf16).realize(kThreads);
    checkpoint.tensors.insert(fmt::format("layers.{}.weight", i), weights);
  }
  save(checkpoint, path, {.durable = false});
}

}  // namespace

void bench_stats(Report& report) {
  const std::string of_stats = "stats of 256 MiB of BF16 / read them from the page cache, 2 threads each";
  const std::string of_problems = "problems of 256 MiB of BF16 / read them from the page cache, 2 threads each";
  const std::string of_check = "check of 256 MiB of BF16 / read them from the page cache, 2 threads each";
  if (!report.wants(of_stats) && !report.wants(of_problems) && !report.wants(of_check)) return;
  const std::string path = scratch() + "/weights.safetensors";
  write_weights(path);
  const Side theirs{[&] { read_once(path, kThreads); }};
  if (report.wants(of_stats)) {
    const auto ours = [&] { keep(stats(open(path), {.threads = kThreads})); };
    report.add(of_stats, compare({ours}, theirs), Goal::speed_at_least, 0.6);
  }
  if (report.wants(of_problems)) {
    const auto ours = [&] { keep(find_problems(open(path), {.threads = kThreads})); };
    report.add(of_problems, compare({ours}, theirs), Goal::speed_at_least, 0.5);
  }
  if (report.wants(of_check)) {
    const auto ours = [&] { keep(check({path}, {.threads = kThreads})); };
    report.add(of_check, compare({ours}, theirs), Goal::speed_at_least, 0.6);
  }
}

}  // namespace ballast::bench
