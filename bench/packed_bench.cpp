// Compressed BF16 weights on one core: how close their size is to the entropy, and how fast they are unpacked.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <ballast/tensor.hpp>

#include "benchmarks.hpp"
#include "kernels/cast.hpp"
#include "support/cpu_time.hpp"
#include "tensor/packed_frames.hpp"
#include "tensor/packed_storage.hpp"

namespace ballast::bench {
namespace {

constexpr std::size_t kElements = std::size_t{16} << 20;

// Weights like those of a layer: normal, with a standard deviation of 0.02.
Tensor gaussian_weights() {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal(0, 0.02f);
  std::vector<float> values(kElements);
  for (float& value : values) value = normal(random);
  std::vector<std::byte> bytes(2 * kElements);
  kernels::cast(DType::f32, DType::bf16, std::as_bytes(std::span(values)), bytes);
  return Tensor::from_bytes(DType::bf16, Shape{kElements}, bytes);
}

// The smallest size that a coder can reach if it codes every element on its own.
double entropy_bytes(std::span<const std::byte> elements) {
  std::vector<double> counts(65536);
  for (std::size_t i = 0; i < elements.size(); i += 2) {
    std::uint16_t element;
    std::memcpy(&element, elements.data() + i, sizeof element);
    ++counts[element];
  }
  const double total = static_cast<double>(elements.size() / 2);
  double bits = 0;
  for (const double count : counts) bits -= count == 0 ? 0 : count * std::log2(count / total);
  return bits / 8;
}

StoragePtr pack(const Tensor& tensor) {
  std::vector<std::uint32_t> sizes;
  for (std::uint64_t i = 0; i < chunk_count(tensor.nbytes()); ++i) sizes.push_back(measure_frame(tensor, i));
  return packed_storage(tensor, std::move(sizes), "weights");
}

// The median of some rounds, in CPU time of this thread, so that other work on the machine does not count.
double seconds_a_gigabyte(const Storage& storage, std::span<std::byte> out, std::size_t step) {
  std::array<double, 15> rounds;
  for (double& seconds : rounds) {
    const double start = test::cpu_seconds();
    for (std::size_t done = 0; done < out.size(); done += step)
      storage.read(done, out.subspan(done, std::min(step, out.size() - done)));
    seconds = test::cpu_seconds() - start;
  }
  std::sort(rounds.begin(), rounds.end());
  return rounds[rounds.size() / 2] * 1e9 / static_cast<double>(out.size());
}

}  // namespace

void bench_packed(Report& report) {
  const std::string size_row = "compressed Gaussian BF16 / its order-0 entropy";
  const std::string time_row = "decompress a GB of Gaussian BF16, CPU time";
  if (!report.wants(size_row) && !report.wants(time_row)) return;
  const Tensor weights = gaussian_weights();
  const StoragePtr packed = pack(weights);
  const double bound = entropy_bytes(weights.bytes());
  const auto size = static_cast<double>(packed->size_bytes()), plain = static_cast<double>(weights.nbytes());
  report.add_value(fmt::format("{} (ratio {:.3f} of {:.3f})", size_row, plain / size, plain / bound), size / bound,
                   1 / 0.98, "x");

  std::vector<std::byte> frames(packed->size_bytes()), out(weights.nbytes());
  packed->read(0, frames);
  const Tensor in_memory = Tensor::from_bytes(DType::u8, Shape{frames.size()}, frames);
  const auto unpacked = unpacked_storage(in_memory, DType::bf16, weights.nbytes(), "weights");
  const double seconds = seconds_a_gigabyte(*unpacked, out, std::size_t{8} << 20);
  report.add_value(fmt::format("{} ({:.1f} GB/s)", time_row, 1 / seconds), seconds, 1, "s");
}

}  // namespace ballast::bench
