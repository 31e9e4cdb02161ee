// Moving data, against memcpy of the same bytes. The pages of all buffers exist before the measurement: otherwise page
// faults would be all that is measured.
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <ballast/ballast.hpp>

#include "benchmarks.hpp"
#include "core/huge_pages.hpp"
#include "generate.hpp"
#include "kernels/cast.hpp"
#include "kernels/gather.hpp"

namespace ballast::bench {
namespace {

constexpr std::uint64_t kBytes = std::uint64_t{128} << 20;

// Memory like that of the library: in huge pages, all of them present.
std::vector<std::byte> touched(std::uint64_t size) {
  std::vector<std::byte> bytes;
  bytes.reserve(size);
  prefer_huge_pages(bytes.data(), size);
  bytes.resize(size, std::byte{0x3c});
  return bytes;
}

}  // namespace

void bench_load(Report& report) {
  const std::string name = "load 128 MiB into the caller's buffer / memcpy from the map";
  if (!report.wants(name)) return;
  const std::string path = scratch() + "/data.safetensors";
  write_random(path, kBytes);
  const Tensor tensor = open(path).at("w");
  std::vector<std::byte> out = touched(kBytes);
  const auto map = tensor.bytes();
  std::memcpy(out.data(), map.data(), kBytes);  // all pages are present before either side begins
  report.add(name, compare({[&] { tensor.read(0, out); }}, {[&] { std::memcpy(out.data(), map.data(), kBytes); }}),
             Goal::speed_at_least, 0.95);
}

void bench_casts(Report& report) {
  struct Pair {
    DType from, to;
  };
  for (const auto& [from, to] :
       {Pair{DType::f32, DType::bf16}, {DType::bf16, DType::f32}, {DType::f32, DType::f16}, {DType::f16, DType::f32}}) {
    const std::string name_ = fmt::format("cast {} to {} / memcpy of the wide side", name(from), name(to));
    if (!report.wants(name_)) continue;
    const std::uint64_t count = kBytes / 4;
    std::vector<std::byte> in = touched(*bytes_of(from, count)), out = touched(*bytes_of(to, count));
    std::vector<std::byte> wide_in = touched(kBytes), wide_out = touched(kBytes);
    const auto cast = [&, from = from, to = to] { kernels::cast(from, to, in, out); };
    report.add(name_, compare({cast}, {[&] { std::memcpy(wide_out.data(), wide_in.data(), kBytes); }}),
               Goal::speed_at_least, 1.0);
  }
}

void bench_gather(Report& report) {
  constexpr std::uint64_t n = 8192;
  struct Case {
    const char* name;
    std::vector<std::uint64_t> shape;
    std::vector<std::int64_t> byte_strides;
    double goal;
  };
  const Case cases[] = {
      {"transpose 8192 x 8192 of 2 bytes / memcpy", {n, n}, {2, 2 * n}, 0.4},
      {"permute with inner runs of 256 bytes / memcpy", {n, n / 128, 128}, {256, 2 * n * 128, 2}, 0.8},
  };
  for (const Case& c : cases) {
    if (!report.wants(c.name)) continue;
    std::vector<std::byte> in = touched(n * n * 2), out = touched(n * n * 2);
    const auto gather = [&] { kernels::gather(out, in.data(), c.shape, c.byte_strides, 0, 2); };
    report.add(c.name, compare({gather}, {[&] { std::memcpy(out.data(), in.data(), in.size()); }}),
               Goal::speed_at_least, c.goal);
  }
}

}  // namespace ballast::bench
