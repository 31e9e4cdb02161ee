// Weights that other programs keep quantized, decoded by one thread, against a fill of as many bytes by streaming
// stores.
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <ballast/dequantize.hpp>
#include <ballast/json.hpp>
#include <ballast/open.hpp>
#include <ballast/save.hpp>
#include <ballast/transform.hpp>

#include "benchmarks.hpp"
#include "builders/safetensors_file.hpp"
#include "builders/temp_dir.hpp"
#include "kernels/stream.hpp"

namespace ballast::bench {
namespace {

constexpr std::uint64_t kRows = 4096, kColumns = 8192;
constexpr std::size_t kPieceBytes = std::size_t{2} << 20;

std::vector<std::byte> random_bytes(std::size_t size) {
  std::mt19937_64 random(1);
  std::vector<std::byte> bytes(size + 8);
  for (std::size_t i = 0; i < size; i += 8) {
    const std::uint64_t word = random();
    std::memcpy(bytes.data() + i, &word, 8);
  }
  bytes.resize(size);
  return bytes;
}

// A weight in parts, in memory.
class Parts {
 public:
  Parts(std::string scheme, DType dtype, const char* config = "{}") {
    checkpoint_.quantization.emplace();
    checkpoint_.quantization->scheme = std::move(scheme);
    checkpoint_.quantization->config = Json::parse(config);
    checkpoint_.quantization->dtype = dtype;
  }

  // Random codes.
  Parts& codes(const char* name, DType dtype, const Shape& shape) {
    auto bytes = random_bytes(static_cast<std::size_t>(*bytes_of(dtype, *shape.numel())));
    // Honest files have no NaN.
    if (dtype == DType::f8_e4m3)
      for (std::byte& byte : bytes)
        if ((byte & std::byte{0x7F}) == std::byte{0x7F}) byte ^= std::byte{1};
    return add(name, Tensor::from_bytes(dtype, shape, bytes));
  }
  // Powers of two as bytes, from 2^-15 to 1.
  Parts& exponents(const char* name, const Shape& shape) {
    auto bytes = random_bytes(static_cast<std::size_t>(*shape.numel()));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(112) | (byte & std::byte{15});
    return add(name, Tensor::from_bytes(DType::u8, shape, bytes));
  }
  // Scales near 1, as numbers of a floating dtype.
  Parts& scales(const char* name, DType dtype, const Shape& shape) {
    std::mt19937 random(2);
    std::vector<float> values(static_cast<std::size_t>(*shape.numel()));
    for (float& value : values) value = 0.5F + static_cast<float>(random() % 1024) / 1024;
    return add(name, Tensor::from_values(DType::f32, shape, std::span<const float>(values)).to(dtype).realize());
  }
  template <class T>
  Parts& values(const char* name, DType dtype, const Shape& shape, const std::vector<T>& values) {
    return add(name, Tensor::from_values(dtype, shape, std::span<const T>(values)));
  }
  Parts& text(const char* name, const std::string& text) {
    return add(name, Tensor::from_bytes(DType::u8, {text.size()}, std::as_bytes(std::span(text))));
  }

  Tensor weight() const { return dequantize(checkpoint_).at("m.weight"); }

 private:
  Parts& add(const char* name, const Tensor& tensor) {
    checkpoint_.tensors.insert(std::string("m.") + name, tensor);
    return *this;
  }

  Checkpoint checkpoint_;
};

void fill_by_streaming(std::span<std::byte> out) {
  alignas(64) static std::byte page[4096];
  std::memset(page, 0x3C, sizeof page);
  for (std::size_t i = 0; i < out.size(); i += sizeof page)
    kernels::stream_copy(out.data() + i, page, std::min(sizeof page, out.size() - i));
  kernels::finish_streaming();
}

void bench_weight(Report& report, const std::string& scheme, double share_of_fill, const Parts& parts) {
  const std::string job = "dequantize " + scheme + ", one thread / streaming fill";
  if (!report.wants(job)) return;
  const Tensor weight = parts.weight();
  std::vector<std::byte> out(static_cast<std::size_t>(weight.nbytes()), std::byte{1});
  const std::size_t granule = weight.storage()->granule();  // the engine never cuts it
  const std::size_t piece = granule >= kPieceBytes ? granule : kPieceBytes / granule * granule;
  const auto decode = [&] {
    for (std::size_t done = 0; done < out.size(); done += piece)
      weight.read(done, std::span(out).subspan(done, std::min(piece, out.size() - done)));
  };
  report.add(job, compare({decode}, {[&] { fill_by_streaming(out); }}), Goal::speed_at_least, share_of_fill);
}

// What a person waits for who converts such a model.
void bench_conversion(Report& report, const test::TempDir& folder) {
  const std::string job = "dequantize: convert 256 MiB of FP8 in blocks to BF16 / cast F8_E4M3 to BF16";
  if (!report.wants(job)) return;
  constexpr int kWeights = 8;
  Checkpoint packed, plain;
  packed.quantization.emplace();
  packed.quantization->scheme = "fp8";
  const Tensor codes = Tensor::from_bytes(DType::f8_e4m3, {kRows, kColumns}, random_bytes(kRows * kColumns));
  const std::vector<float> scales(kRows / 128 * kColumns / 128, 0.5F);
  for (int i = 0; i < kWeights; ++i) {
    const std::string name = fmt::format("{}.weight", i);
    plain.tensors.insert(name, codes);
    packed.tensors.insert(name, codes);
    packed.tensors.insert(name + "_scale_inv",
                          Tensor::from_values(DType::f32, {kRows / 128, kColumns / 128}, std::span(scales)));
  }
  const SaveOptions options{.overwrite = true, .durable = false};
  const auto remove = [&] { std::filesystem::remove(folder / "out.safetensors"); };
  const Side ours{[&] { save(dequantize(packed), folder / "out.safetensors", options); }, remove};
  const Side theirs{[&] { save(cast(plain, DType::bf16), folder / "out.safetensors", options); }, remove};
  report.add(job, compare(ours, theirs, 15), Goal::speed_at_least, 0.7);
}

// A model of many small weights. The goals are what there is, with some room: they guard against growth.
void bench_many(Report& report, const test::TempDir& folder) {
  const std::string recognize = "dequantize: open 93 696 tensors of FP8 and scales / open as many that are not packed";
  const std::string open_lazily = "dequantize: open 93 696 tensors of FP8 and scales as 46 848 weights / the same";
  if (!report.wants(recognize) && !report.wants(open_lazily)) return;
  constexpr int kLayers = 61, kExperts = 256;
  test::SafetensorsFile packed, plain;
  for (int layer = 0; layer < kLayers; ++layer) {
    for (int expert = 0; expert < kExperts; ++expert) {
      for (const char* projection : {"gate_proj", "up_proj", "down_proj"}) {
        const std::string name = fmt::format("model.layers.{}.mlp.experts.{}.{}.weight", layer, expert, projection);
        packed.tensor(name, "F8_E4M3", {4, 4}).tensor(name + "_scale_inv", "F32", {1, 1});
        plain.tensor(name, "F32", {2, 2}).tensor(name + "_scale_inv", "F32", {1, 1});
      }
    }
  }
  packed.write(folder, "packed.safetensors");
  plain.write(folder, "plain.safetensors");
  const auto open_file = [&](const char* name, bool dequantize) {
    return [path = folder / name, dequantize] { keep(open(path, {.dequantize = dequantize})); };
  };
  const Side theirs{open_file("plain.safetensors", false)};
  report.add(recognize, compare({open_file("packed.safetensors", false)}, theirs), Goal::time_at_most, 3);
  report.add(open_lazily, compare({open_file("packed.safetensors", true)}, theirs), Goal::time_at_most, 20);
  reset_peak();
  open_file("packed.safetensors", true)();
  report.add_value("dequantize: memory to open 46 848 weights of FP8, for each",
                   static_cast<double>(peak_bytes()) / 46848, 2304, "B");
}

std::vector<std::uint8_t> half_of_all_bits() {
  std::vector<std::uint8_t> mask(kRows * kColumns / 8);
  constexpr std::uint8_t kTwoOfFour[] = {3, 5, 6, 9, 10, 12};
  std::mt19937 random(3);
  for (std::uint8_t& byte : mask)
    byte = static_cast<std::uint8_t>(kTwoOfFour[random() % 6] | kTwoOfFour[random() % 6] << 4);
  return mask;
}

}  // namespace

void bench_quantized(Report& report) {
  const test::TempDir folder;
  bench_conversion(report, folder);
  bench_many(report, folder);
  using enum DType;
  constexpr std::uint64_t kAll = kRows * kColumns;
  const std::vector<std::int64_t> shape = {kRows, kColumns};
  bench_weight(report, "FP8 in blocks to BF16", 0.3,
               Parts("fp8", bf16)
                   .codes("weight", f8_e4m3, {kRows, kColumns})
                   .scales("weight_scale_inv", f32, {kRows / 128, kColumns / 128}));
  bench_weight(
      report, "packed int4 to BF16", 0.3,
      Parts("compressed-tensors", bf16, R"({"config_groups":{"g":{"weights":{"num_bits":4,"group_size":128}}}})")
          .codes("weight_packed", i32, {kRows, kColumns / 8})
          .values("weight_shape", i64, {2}, shape)
          .scales("weight_scale", bf16, {kRows, kColumns / 128}));
  bench_weight(report, "GPTQ of 4 bits to F16", 0.2,
               Parts("gptq", f16)
                   .codes("qweight", i32, {kColumns / 8, kRows})
                   .codes("qzeros", i32, {kColumns / 128, kRows / 8})
                   .scales("scales", f16, {kColumns / 128, kRows}));
  bench_weight(report, "AWQ to F16", 0.2,
               Parts("awq", f16)
                   .codes("qweight", i32, {kColumns, kRows / 8})
                   .codes("qzeros", i32, {kColumns / 128, kRows / 8})
                   .scales("scales", f16, {kColumns / 128, kRows}));
  const std::string state =
      fmt::format(R"({{"quant_type":"nf4","blocksize":64,"dtype":"bfloat16","shape":[{},{}]}})", kRows, kColumns);
  bench_weight(report, "NF4 to BF16", 0.25,
               Parts("bitsandbytes", bf16)
                   .codes("weight", u8, {kAll / 2, 1})
                   .scales("weight.absmax", f32, {kAll / 64})
                   .scales("weight.quant_map", f32, {16})
                   .text("weight.quant_state.bitsandbytes__nf4", state));
  bench_weight(report, "LLM.int8 to F32", 0.12,
               Parts("bitsandbytes", f16).codes("weight", i8, {kRows, kColumns}).scales("SCB", f32, {kRows}));
  bench_weight(report, "MXFP4 of gpt-oss to BF16", 0.12,
               Parts("mxfp4", bf16)
                   .codes("weight_blocks", u8, {1, kRows, kColumns / 32, 16})
                   .exponents("weight_scales", {1, kRows, kColumns / 32}));
  bench_weight(report, "NVFP4 to BF16", 0.12,
               Parts("modelopt", bf16)
                   .codes("weight", u8, {kRows, kColumns / 2})
                   .codes("weight_scale", f8_e4m3, {kRows, kColumns / 16})
                   .scales("weight_scale_2", f32, {1}));
  for (const std::uint64_t bits : {4u, 6u}) {
    bench_weight(report, fmt::format("MLX of {} bits to F16", bits), 0.12,
                 Parts("mlx", f16, bits == 4 ? R"({"bits":4,"group_size":64})" : R"({"bits":6,"group_size":64})")
                     .codes("weight", u32, {kRows, kColumns * bits / 32})
                     .scales("scales", f16, {kRows, kColumns / 64})
                     .scales("biases", f16, {kRows, kColumns / 64}));
  }
  const std::uint64_t groups = kAll / 64;
  bench_weight(report, "HQQ of 4 bits to F16", 0.12,
               Parts("hqq", f16)
                   .codes("W_q", u8, {groups / 2, 64})
                   .scales("scale", f16, {groups, 1})
                   .scales("zero", f16, {groups, 1})
                   .values<std::int32_t>("nbits", i32, {}, {4})
                   .values<std::int32_t>("axis", i32, {}, {1})
                   .values("shape", i64, {2}, shape)
                   .text("packing", "4bit_u8")
                   .text("compute_dtype", "torch.float16"));
  bench_weight(report, "quanto of 4 bits to BF16", 0.12,
               Parts("quanto", bf16)
                   .codes("weight._data._data", u8, {kAll / 128 / 2, 128})
                   .scales("weight._scale", bf16, {kAll / 128, 1})
                   .scales("weight._shift", bf16, {kAll / 128, 1})
                   .scales("bias", bf16, {kRows}));
  bench_weight(report, "BitNet to BF16", 0.12,
               Parts("bitnet", bf16, R"({"linear_class":"autobitlinear"})")
                   .codes("weight", u8, {kRows / 4, kColumns})
                   .scales("weight_scale", bf16, {1}));
  bench_weight(report, "values under a bit mask, BF16", 0.12,
               Parts("compressed-tensors", bf16)
                   .codes("weight.compressed", bf16, {kAll / 2})
                   .values("weight.bitmask", u8, {kRows, kColumns / 8}, half_of_all_bits())
                   .values("weight.shape", i64, {2}, shape));
}

}  // namespace ballast::bench
