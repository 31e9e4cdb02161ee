// Encoding F32 to ggml blocks on one thread, against the plain loops of the reference, as -O2 compiles them; if memory
// is the limit, against memcpy of the floats.
#include <cstring>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <ballast/dtype.hpp>

#include "benchmarks.hpp"
#include "core/huge_pages.hpp"
#include "kernels/ggml/encode.hpp"
#include "kernels/ggml/encode_plain.hpp"
#include "kernels/ggml/encode_weights.hpp"

namespace ballast::bench {
namespace {

std::vector<float> gaussian(std::size_t count) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> distribution(0, 0.02F);
  std::vector<float> values;
  values.reserve(count);
  prefer_huge_pages(reinterpret_cast<std::byte*>(values.data()), count * sizeof(float));
  for (std::size_t i = 0; i < count; ++i) values.push_back(i < 65536 ? distribution(random) : values[i - 65536]);
  return values;
}

void encode_plainly(DType type, std::span<const float> values, std::span<std::byte> blocks) {
  const auto encode = kernels::plain::encoder(type);
  const float* in = values.data();
  auto* out = reinterpret_cast<std::uint8_t*>(blocks.data());
  for (const float* end = in + values.size(); in != end; in += info(type).block_elements, out += info(type).block_bytes)
    encode(in, out);
}

// The data stay in the second-level cache, so that only the work is measured.
void bench_work(Report& report, DType type, double times_plain) {
  const std::string job = fmt::format("encode F32 to {}", name(type));
  if (!report.wants(job)) return;
  const std::vector<float> in = gaussian(65536);
  std::vector<std::byte> out(*bytes_of(type, in.size()));
  const auto encode = [&] { kernels::encode_blocks(type, in, out); };
  const Comparison to_plain = compare({encode}, {[&] { encode_plainly(type, in, out); }}, 15);
  const double gb_per_second = static_cast<double>(in.size() * sizeof(float)) / to_plain.ours_ms * 1e-6;
  report.add(fmt::format("{} ({:.2f} GB/s) / plain loop", job, gb_per_second), to_plain, Goal::speed_at_least,
             times_plain);
}

void encode_plainly(DType type, std::span<const float> values, std::span<const float> importance,
                    std::span<std::byte> blocks) {
  const auto encode = kernels::plain::weighted_encoder(type);
  kernels::Weights weights(type, values, importance);
  auto* out = reinterpret_cast<std::uint8_t*>(blocks.data());
  while (!values.empty()) {
    const auto some = values.first(std::min(kernels::Weights::kStageElements, values.size()));
    const std::size_t count = some.size() / info(type).block_elements;
    encode(some.data(), weights.next(some.data(), some.size()), count, out);
    values = values.subspan(some.size());
    out += count * info(type).block_bytes;
  }
}

void bench_importance(Report& report, DType type, double times_plain) {
  const std::string job = fmt::format("encode 4 MB of F32 to {} with importance / plain loop", name(type));
  if (!report.wants(job)) return;
  const std::vector<float> in = gaussian(std::size_t{1} << 20);
  std::vector<float> importance(in.end() - 4096, in.end());
  for (float& weight : importance) weight *= weight;
  std::vector<std::byte> out(*bytes_of(type, in.size()));
  const auto ours = [&] { kernels::encode_rows(type, in, importance, out); };
  const auto theirs = [&] { encode_plainly(type, in, importance, out); };
  report.add(job, compare({ours}, {theirs}, 15), Goal::speed_at_least, times_plain);
}

void bench_memory(Report& report, DType type, double share_of_memcpy) {
  const std::string job = fmt::format("encode 128 MiB of F32 to {} / memcpy", name(type));
  if (!report.wants(job)) return;
  const std::vector<float> in = gaussian(std::size_t{32} << 20);
  std::vector<float> copy = in;
  std::vector<std::byte> out(*bytes_of(type, in.size()));
  const auto encode = [&] { kernels::encode_blocks(type, in, out); };
  const auto copy_all = [&] { std::memcpy(copy.data(), in.data(), in.size() * sizeof(float)); };
  report.add(job, compare({encode}, {copy_all}), Goal::speed_at_least, share_of_memcpy);
}

}  // namespace

void bench_ggml_encode(Report& report) {
  using enum DType;
  bench_memory(report, q8_0, 0.5);
  for (const DType type : {q2_k, q4_k, q5_k, q6_k, iq4_nl, iq4_xs}) bench_work(report, type, 2.0);
  for (const DType type : {q3_k, q4_0, q4_1, q5_0, q5_1, q8_0, q8_k, tq1_0, tq2_0, mxfp4, nvfp4, q1_0, q2_0})
    bench_work(report, type, 1.0);
  for (const DType type : {iq2_xxs, iq3_s}) bench_importance(report, type, 3.0);
  for (const DType type : {q4_0, q4_1, q2_k, q3_k, q4_k, q5_k, q6_k, iq4_nl, iq4_xs})
    bench_importance(report, type, 2.0);
  for (const DType type : {iq2_xs, iq2_s, iq3_xxs, iq1_s, iq1_m}) bench_importance(report, type, 1.6);
}

}  // namespace ballast::bench
