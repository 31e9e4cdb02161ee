// Decoding ggml blocks to F32 on one thread, against two things: a fill of the same bytes by streaming stores, which is
// the most that memory can take, and the plain loops of the reference, as -O2 compiles them.
#include <cstdlib>
#include <memory>
#include <random>

#include <fmt/format.h>
#include <ballast/dtype.hpp>

#include "benchmarks.hpp"
#include "core/huge_pages.hpp"
#include "kernels/ggml/decode.hpp"
#include "kernels/ggml/decode_plain.hpp"
#include "kernels/stream.hpp"

namespace ballast::bench {
namespace {

constexpr std::size_t kOutBytes = std::size_t{128} << 20;

// Memory like that of the library: in huge pages, all of them present.
class Memory {
 public:
  explicit Memory(std::size_t size)
      : bytes_(static_cast<std::byte*>(std::aligned_alloc(kHuge, rounded(size)))), size_(size) {
    prefer_huge_pages(bytes_.get(), rounded(size));
    std::fill_n(bytes_.get(), size, std::byte{0x3c});
  }
  std::span<std::byte> bytes() const { return {bytes_.get(), size_}; }

 private:
  static constexpr std::size_t kHuge = std::size_t{2} << 20;
  static std::size_t rounded(std::size_t size) { return (size + kHuge - 1) / kHuge * kHuge; }
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte[], Free> bytes_;
  std::size_t size_;
};

// Any bytes are valid blocks.
void randomize(std::span<std::byte> bytes) {
  std::mt19937_64 random(1);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
}

// Does not fill with zeros: some memory controllers write lines of zeros at three times the speed.
void fill_by_streaming(std::span<std::byte> out) {
  alignas(64) static std::byte page[4096];
  if (page[0] == page[1]) randomize(page);
  for (std::size_t i = 0; i < out.size(); i += sizeof page) kernels::stream_copy(out.data() + i, page, sizeof page);
  kernels::finish_streaming();
}

void decode_plainly(DType type, std::span<const std::byte> blocks, float* out) {
  const auto decode = kernels::plain::decoder(type);
  const auto* in = reinterpret_cast<const std::uint8_t*>(blocks.data());
  for (const auto* end = in + blocks.size(); in != end; in += info(type).block_bytes, out += info(type).block_elements)
    decode(in, out);
}

void bench_type(Report& report, DType type, double share_of_fill) {
  const std::string job = fmt::format("decode {} to F32", name(type));
  if (!report.wants(job)) return;
  const Memory in_memory(*bytes_of(type, kOutBytes / sizeof(float))), out_memory(kOutBytes);
  const auto in = in_memory.bytes(), out = out_memory.bytes();
  randomize(in);

  const auto decode = [&] { kernels::decode_blocks(type, in, DType::f32, out); };
  const Comparison to_fill = compare({decode}, {[&] { fill_by_streaming(out); }});
  const double gb_per_second = static_cast<double>(out.size()) / to_fill.ours_ms * 1e-6;
  report.add(fmt::format("{} ({:.1f} GB/s) / streaming fill", job, gb_per_second), to_fill, Goal::speed_at_least,
             share_of_fill);

  if (kernels::plain::decoder(type) == nullptr) return;
  const auto some_in = in.first(in.size() / 4);
  const auto some_out = out.first(out.size() / 4);
  const auto decode_some = [&] { kernels::decode_blocks(type, some_in, DType::f32, some_out); };
  const auto plainly = [&] { decode_plainly(type, some_in, reinterpret_cast<float*>(some_out.data())); };
  report.add(job + " / plain loop", compare({decode_some}, {plainly}, 15), Goal::speed_at_least, 1.0);
}

}  // namespace

void bench_ggml_decode(Report& report) {
  using enum DType;
  for (const DType type : {f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k, tq1_0, tq2_0})
    bench_type(report, type, 0.8);
  for (const DType type : {q2_k, q3_k, iq4_nl, iq4_xs, mxfp4, nvfp4, q1_0, q2_0, iq1_s, iq1_m})
    bench_type(report, type, 0.5);
  for (const DType type : {iq2_xxs, iq2_xs, iq2_s, iq3_xxs, iq3_s}) bench_type(report, type, 0.3);
}

}  // namespace ballast::bench
