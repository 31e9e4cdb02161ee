// Weights that are kept quantized: whatever their parts are, dequantize() refuses them with an Error that names the
// weight, or gives tensors that read the same in one piece and in parts.
//
// The input chooses a scheme, a configuration, and for each part whether it is there, its dtype, its shape and its
// bytes. If QUANTIZED_SCHEME is set, it chooses among those of that name only:
//
//   QUANTIZED_SCHEME=gptq ./dev fuzz quantized 600
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/dequantize.hpp>
#include <ballast/error.hpp>

namespace {

using namespace ballast;
using enum DType;
using Bytes = std::vector<std::byte>;

void require(bool condition, const char* what, const std::string& why = {}) {
  if (condition) return;
  std::fprintf(stderr, "%s %s\n", what, why.c_str());
  std::abort();
}

struct Part {
  std::string_view name;
  DType dtype;  // as an honest file has it
};
struct Scheme {
  std::string_view name;
  std::vector<Part> parts;
};

std::vector<Scheme> all_schemes() {
  return {
      {"gptq", {{"m.qweight", i32}, {"m.qzeros", i32}, {"m.scales", f16}, {"m.g_idx", i32}}},
      {"bitsandbytes",
       {{"m.weight", u8},
        {"m.weight.absmax", f32},
        {"m.weight.quant_map", f32},
        {"m.weight.quant_state.bitsandbytes__nf4", u8},
        {"m.weight.nested_absmax", f32},
        {"m.weight.nested_quant_map", f32}}},
      {"bitsandbytes", {{"m.weight", i8}, {"m.SCB", f32}, {"m.weight_format", u8}}},
      {"fp8", {{"m.weight", f8_e4m3}, {"m.weight_scale_inv", f32}, {"m.weight_zero_point", i8}}},
      {"fp8", {{"m.weight", i8}, {"m.weight_scale_inv", f8_e8m0}}},
      {"modelopt", {{"m.weight", u8}, {"m.weight_scale", f8_e4m3}, {"m.weight_scale_2", f32}}},
      {"bitnet", {{"m.weight", u8}, {"m.weight_scale", bf16}}},
      {"mxfp4", {{"m.weight_blocks", u8}, {"m.weight_scales", u8}}},
      {"compressed-tensors",
       {{"m.weight_packed", i32},
        {"m.weight_scale", bf16},
        {"m.weight_shape", i64},
        {"m.weight_zero_point", i32},
        {"m.weight_g_idx", i32},
        {"m.weight_global_scale", f32}}},
      {"compressed-tensors",
       {{"m.weight.compressed", bf16},
        {"m.weight.bitmask", u8},
        {"m.weight.shape", i64},
        {"m.weight.row_offsets", i64},
        {"m.weight_scale", bf16}}},
      {"mlx", {{"m.weight", u32}, {"m.scales", f16}, {"m.biases", f16}}},
      {"hqq",
       {{"m.W_q", u8},
        {"m.scale", f16},
        {"m.zero", f16},
        {"m.nbits", i32},
        {"m.axis", i32},
        {"m.shape", i64},
        {"m.packing", u8},
        {"m.compute_dtype", u8}}},
      {"quanto", {{"m.weight._data", i8}, {"m.weight._scale", bf16}}},
      {"quanto",
       {{"m.weight._data._data", u8}, {"m.weight._scale", bf16}, {"m.weight._shift", bf16}, {"m.bias", bf16}}},
      {"torchao",
       {{"m._weight_qdata", i8},
        {"m._weight_scale", f32},
        {"m._weight_zero_point", i8},
        {"m._weight_per_tensor_scale", f32}}},
      {"bitsandbytes",
       {{"m.weight", u8},
        {"m.weight.absmax", f32},
        {"m.weight.quant_map", f32},
        {"m.weight.quant_state.bitsandbytes__fp4", u8}}},
      {"fp8", {{"m.weight", f8_e4m3}, {"m.qscale_weight", f32}, {"m.qscale_act", f32}}},
      {"fp8", {{"m.weight", f8_e4m3}, {"m.scale_weight", f32}, {"m.comfy_quant", u8}}},
      {"mxfp4", {{"m.weight.blocks", u8}, {"m.weight.scales", u8}}},
      {"torchao",  // as a pickle has it
       {{"m.weight.qdata", i8},
        {"m.weight.scale", f32},
        {"m.weight.zero_point", i8},
        {"m.weight.per_tensor_scale", f32}}},
      {"auto-round", {{"m.qweight", i32}, {"m.qzeros", i32}, {"m.scales", f16}, {"m.g_idx", i32}}},
  };
}

const std::vector<Scheme>& schemes() {
  static const std::vector<Scheme> chosen = [] {
    std::vector<Scheme> schemes = all_schemes();
    if (const char* name = std::getenv("QUANTIZED_SCHEME"))
      std::erase_if(schemes, [&](const Scheme& scheme) { return scheme.name != name; });
    require(!schemes.empty(), "QUANTIZED_SCHEME is none of the schemes");
    return schemes;
  }();
  return chosen;
}

constexpr std::array kConfigs = {
    R"({})",
    R"({"bits":4,"group_size":32,"checkpoint_format":"gptq_v2","num_bits":4,"linear_class":"autobitlinear"})",
    R"({"weight_block_size":[4,4],"bits":3,"num_bits":2,"group_size":16,"mode":"nvfp4"})",
    R"({"config_groups":{"g":{"weights":{"num_bits":4,"group_size":8,"block_structure":[2,2]}}}})",
    R"({"config_groups":{"g":{"weights":{"num_bits":3,"group_size":32}}}})",
    R"({"bits":4,"group_size":32,"packing_format":"auto_round"})",
};
constexpr std::array<std::string_view, 8> kTexts = {
    R"({"blocksize":64,"dtype":"float16","shape":[4,32]})",
    R"({"blocksize":2,"dtype":"float32","shape":[3,3],"nested_blocksize":4,"nested_offset":0.5})",
    R"({"blocksize":1048576,"dtype":"bfloat16","shape":[65536,65536]})",
    "4bit_u8",
    "3bit_32",
    "1bit_u8",
    "torch.float16",
    R"({"_type":"IntxUnpackedToInt8Tensor","_data":{"dtype":{"_data":"bfloat16"}}})",
};

class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::uint8_t next() {
    if (bytes_.empty()) return 0;
    const std::uint8_t byte = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return byte;
  }

  // As many bytes as are wanted; they are repeated if there are too few.
  Bytes take(std::size_t size) {
    Bytes taken(size);
    const auto some = bytes_.first(std::min(size, bytes_.size()));
    for (std::size_t i = 0; i < size && !some.empty(); ++i) taken[i] = static_cast<std::byte>(some[i % some.size()]);
    bytes_ = bytes_.subspan(some.size());
    return taken;
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

std::optional<Tensor> make_part(Input& in, DType honest) {
  const std::uint8_t how = in.next();
  if ((how & 7) == 7) return std::nullopt;  // it is missing
  const DType dtype = (how & 7) == 6 ? all_dtypes()[in.next() % all_dtypes().size()].dtype : honest;
  if (dtype == u8 && (how & 0xF0) == 0xF0) {
    const std::string_view text = kTexts[in.next() % kTexts.size()];
    return Tensor::from_bytes(u8, {text.size()}, std::as_bytes(std::span(text)));
  }
  std::vector<std::uint64_t> sizes(how >> 3 & 3);
  for (std::uint64_t& size : sizes) {
    const std::uint8_t byte = in.next();
    size = (byte & 0x80) != 0 ? std::uint64_t{1} << (byte & 7) : byte & 0x7F;
  }
  constexpr std::uint64_t kMostBytes = 1 << 16;
  const Shape shape{std::span<const std::uint64_t>(sizes)};
  const auto numel = shape.numel();
  if (!numel || *numel % info(dtype).block_elements != 0) return std::nullopt;
  const auto bytes = bytes_of(dtype, *numel);
  if (!bytes || *bytes > kMostBytes) return std::nullopt;
  if (dtype == i64 && *numel <= 3) {  // sizes
    std::vector<std::int64_t> numbers;
    for (std::uint64_t i = 0; i < *numel; ++i) numbers.push_back(static_cast<std::int8_t>(in.next()));
    return Tensor::from_values(i64, shape, std::span<const std::int64_t>(numbers));
  }
  return Tensor::from_bytes(dtype, shape, in.take(static_cast<std::size_t>(*bytes)));
}

void require_usual(const Error& error) {
  const Errc code = error.code();
  require(code == Errc::malformed || code == Errc::unsupported || code == Errc::limit, "an odd kind of error",
          error.what());
  require(error.message().size() < 2000, "a message that nobody would read", error.what());
}

std::optional<Bytes> read_or_complain(const Tensor& tensor, std::size_t step) try {
  Bytes bytes(static_cast<std::size_t>(tensor.nbytes()));
  if (tensor.storage()) tensor.storage()->prepare({});
  for (std::size_t done = 0; done < bytes.size(); done += step)
    tensor.read(done, std::span(bytes).subspan(done, std::min(step, bytes.size() - done)));
  return bytes;
} catch (const Error& error) {
  require_usual(error);
  require(error.message().find("\"m") != std::string::npos, "an error that names no weight", error.what());
  return std::nullopt;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in({data, size});
  const Scheme& scheme = schemes()[in.next() % schemes().size()];
  Checkpoint checkpoint;
  checkpoint.quantization.emplace();
  checkpoint.quantization->scheme = scheme.name;
  checkpoint.quantization->config = Json::parse(kConfigs[in.next() % kConfigs.size()]);
  checkpoint.quantization->bits = in.next() % 10;
  checkpoint.metadata["m.weight"] = kTexts[in.next() % kTexts.size()];
  for (const Part& part : scheme.parts)
    if (auto tensor = make_part(in, part.dtype)) checkpoint.tensors.insert(part.name, *std::move(tensor));

  constexpr std::array kClasses = {"torchao.quantization.Int8Tensor", "torchao.quantization.IntxUnpackedToInt8Tensor",
                                   "torchao.prototype.NVFP4Tensor", "torchao.prototype.MXTensor swizzled"};
  Composite composite;
  composite.name = "m.weight";
  composite.layout = kClasses[in.next() % kClasses.size()];
  for (const Part& part : scheme.parts)
    if (part.name.starts_with("m.weight.") && checkpoint.contains(part.name)) composite.parts.emplace_back(part.name);
  if (scheme.name == "torchao" && !composite.parts.empty()) checkpoint.composites.push_back(std::move(composite));
  if (scheme.name == "hqq" && in.next() % 2 == 0) {  // settings that a pickle has as values
    checkpoint.values.push_back({"m.nbits", "int", std::int64_t{in.next() % 9}});
    checkpoint.values.push_back({"m.axis", "int", std::int64_t{in.next() % 3}});
    checkpoint.values.push_back({"m.shape.0", "int", std::int64_t{in.next()}});
    checkpoint.values.push_back({"m.shape.1", "int", std::int64_t{in.next()}});
    checkpoint.values.push_back({"m.packing", "str", std::string(kTexts[3 + in.next() % 3])});
    checkpoint.values.push_back({"m.compute_dtype", "str", std::string("torch.float16")});
  }

  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 22;
  DequantizeOptions options;
  options.limits.max_expansion_bytes = kMostBytes;
  options.lenient = in.next() % 4 == 0;
  try {
    const Checkpoint whole = dequantize(std::move(checkpoint), options);
    for (const auto& [name, tensor] : whole) {
      if (tensor.nbytes() > kMostBytes) continue;
      const auto all = read_or_complain(tensor, kMostBytes), parts = read_or_complain(tensor, 37);
      require(all == parts, "other bytes in one piece than in parts");
    }
  } catch (const Error& error) {
    require_usual(error);
  }
  return 0;
}
