// Parts of quantized weights that are not what a reader takes them for: each is refused, or left with a note, and never
// becomes other numbers.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <ballast/ballast.hpp>

#include "builders/safetensors_file.hpp"
#include "checkpoint/packed_model.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

using test::SafetensorsFile;
using Model = test::PackedModel;

std::string quantized(const std::string& method, const std::string& more = "") {
  return R"({"dtype":"float32","quantization_config":{"quant_method":")" + method + '"' + more + "}}";
}

std::string groups(const std::string& weights) {
  return quantized("compressed-tensors", R"(,"config_groups":{"g":{"targets":["Linear"],"weights":)" + weights + "}}");
}

SafetensorsFile ones(const char* dtype, std::vector<std::uint64_t> shape, const char* scale,
                     std::vector<std::uint64_t> scale_shape) {
  std::size_t count = 1, scales = 1;
  for (const std::uint64_t size : shape) count *= size;
  for (const std::uint64_t size : scale_shape) scales *= size;
  const std::uint8_t one = std::string(dtype) == "I8" ? 1 : 0x38;
  return std::move(SafetensorsFile()
                       .values("m.q.weight", dtype, shape, std::vector<std::uint8_t>(count, one))
                       .values(scale, "F32", scale_shape, std::vector<float>(scales, 2)));
}

SafetensorsFile gptq() {
  return std::move(SafetensorsFile()
                       .tensor("m.q.qweight", "I32", {4, 32})
                       .tensor("m.q.qzeros", "I32", {2, 4})
                       .tensor("m.q.scales", "F16", {2, 32}));
}

SafetensorsFile torchao(const std::string& type, const std::string& names, const std::string& data = "{}",
                        const char* dtype = "I8") {
  const std::string text =
      "{\\\"_type\\\": \\\"" + type + "\\\", \\\"_data\\\": " + data + ", \\\"_tensor_data_names\\\": [" + names + "]}";
  SafetensorsFile file;
  file.metadata({{"tensor_names", "[\\\"m.q.weight\\\"]"}, {"m.q.weight", text}})
      .values("m.q._weight_qdata", dtype, {2, 8}, std::vector<std::int8_t>(16, 1))
      .values("m.q._weight_scale", "F32", {2, 1}, std::vector<float>{2, 3});
  return file;
}
constexpr const char* kData = "\\\"qdata\\\", \\\"scale\\\"";

SafetensorsFile comfy(const std::string& said, SafetensorsFile file) {
  file.values("m.q.comfy_quant", "U8", {said.size()}, std::vector<char>(said.begin(), said.end()));
  return file;
}

SafetensorsFile nvfp4(std::uint64_t scales) {
  return std::move(SafetensorsFile()
                       .tensor("m.q.weight", "U8", {2, 32})
                       .tensor("m.q.weight_scale", "F8_E4M3", {2, scales})
                       .values<float>("m.q.weight_scale_2", "F32", {}, {1}));
}

SafetensorsFile hqq(std::uint64_t rows) {
  const auto text = [](const std::string& of) { return std::vector<char>(of.begin(), of.end()); };
  return std::move(SafetensorsFile()
                       .tensor("m.q.W_q", "U8", {rows, 8})
                       .tensor("m.q.scale", "F16", {4, 1})
                       .tensor("m.q.zero", "F16", {4, 1})
                       .values<std::int32_t>("m.q.nbits", "I32", {}, {4})
                       .values<std::int32_t>("m.q.axis", "I32", {}, {1})
                       .values<std::int64_t>("m.q.shape", "I64", {2}, {4, 8})
                       .values("m.q.packing", "U8", {7}, text("4bit_u8"))
                       .values("m.q.compute_dtype", "U8", {13}, text("torch.float16")));
}

SafetensorsFile quanto(std::uint64_t rows) {
  return std::move(SafetensorsFile()
                       .tensor("m.q.weight._data._data", "U8", {rows, 32})
                       .tensor("m.q.weight._scale", "F16", {8, 1})
                       .tensor("m.q.weight._shift", "F16", {8, 1})
                       .tensor("m.q.bias", "F16", {8}));
}

SafetensorsFile mlx(std::uint64_t words) {
  return std::move(SafetensorsFile()
                       .tensor("m.q.weight", "U32", {2, words})
                       .tensor("m.q.scales", "F16", {2, 1})
                       .tensor("m.q.biases", "F16", {2, 1}));
}

SafetensorsFile bitmask(std::vector<std::int64_t> offsets) {
  return std::move(SafetensorsFile()
                       .tensor("m.q.weight.compressed", "BF16", {4})
                       .values<std::uint8_t>("m.q.weight.bitmask", "U8", {2, 1}, {3, 12})
                       .values<std::int64_t>("m.q.weight.shape", "I64", {2}, {2, 4})
                       .values<std::int64_t>("m.q.weight.row_offsets", "I64", {2}, offsets));
}

SafetensorsFile packed_words(SafetensorsFile more = {}) {
  more.tensor("m.q.weight_packed", "I32", {4, 1})
      .values<std::int64_t>("m.q.weight_shape", "I64", {2}, {4, 8})
      .tensor("m.q.weight_scale", "BF16", {4, 1});
  return more;
}

// Codes of 3 bits, ten in a word: releases of compressed-tensors before 0.15 left the other two bits unused.
TEST(PackedWords, MayHaveGapsInCodesAndInZeroPoints) {
  std::uint32_t codes = 0;
  std::vector<std::uint32_t> zeros(2);
  for (unsigned i = 0; i < 10; ++i) codes |= (i % 8) << (3 * i);
  for (unsigned row = 0; row < 12; ++row) zeros[row / 10] |= ((row + 1) % 8) << (3 * (row % 10));
  SafetensorsFile file;
  file.values("m.q.weight_packed", "I32", {12, 4}, std::vector<std::uint32_t>(48, codes))
      .values<std::int64_t>("m.q.weight_shape", "I64", {2}, {12, 32})
      .values("m.q.weight_scale", "F32", {12, 1}, std::vector<float>(12, 2))
      .values("m.q.weight_zero_point", "I32", {2, 1}, zeros);
  const auto values = Model(file, groups(R"({"num_bits":3,"symmetric":false})")).values("m.q.weight");
  for (int row = 0; row < 12; ++row)
    for (int column = 0; column < 32; ++column)
      EXPECT_EQ(values[static_cast<std::size_t>(row * 32 + column)], 2.0F * float(column % 10 % 8 - (row + 1) % 8))
          << row << " " << column;
}

struct Refused {
  const char* name;
  SafetensorsFile file;
  std::string config;
  Errc code;
  const char* message;
};

std::vector<Refused> refused() {
  const auto with = [](SafetensorsFile file, const char* name, const char* dtype, std::vector<std::uint64_t> shape) {
    file.tensor(name, dtype, shape);
    return file;
  };
  SafetensorsFile with_g_idx = ones("I8", {1, 8}, "m.q.weight_scale", {1, 2});
  with_g_idx.values<std::int32_t>("m.q.weight_g_idx", "I32", {8}, {0, 1, 0, 1, 0, 1, 0, 1});
  return {
      // parts that a reader does not ask for
      {"integers whose columns are in groups", with_g_idx, groups(R"({"num_bits":8})"), Errc::unsupported,
       "has groups of columns that do not follow each other"},
      {"two scales", with(ones("F8_E4M3", {1, 4}, "m.q.weight_scale", {1}), "m.q.weight_scale_inv", "F32", {1}),
       quantized("fp8"), Errc::unsupported, "has a part that is not known for it (\"m.q.weight_scale\")"},
      {"a matrix that corrects", with(gptq(), "m.q.lora_A.weight", "F16", {4, 32}),
       quantized("gptq", R"(,"bits":4,"group_size":16)"), Errc::unsupported, "matrices that correct what it computes"},
      {"torchao's factors for inputs",
       with(torchao("Int8Tensor", std::string(kData) + ", \\\"act_pre_scale\\\""), "m.q._weight_act_pre_scale", "F32",
            {8}),
       quantized("torchao"), Errc::unsupported, "goes with factors for its inputs"},
      {"another attribute of torchao's",
       with(torchao("Int8Tensor", std::string(kData) + ", \\\"rotation\\\""), "m.q._weight_rotation", "F32", {8}),
       quantized("torchao"), Errc::unsupported, "is a Int8Tensor of torchao with \"rotation\""},
      {"ComfyUI's NVFP4", comfy(R"({"format": "nvfp4"})", nvfp4(4)), "", Errc::unsupported,
       "is kept in ComfyUI's form \"nvfp4\""},
      {"ComfyUI's rotated integers",
       comfy(R"({"format": "int8_tensorwise", "convrot": true})", ones("I8", {2, 2}, "m.q.weight_scale", {})), "",
       Errc::unsupported, "int8_tensorwise"},
      // parts that contradict each other, or the configuration
      {"AWQ's zero points for other outputs",
       std::move(SafetensorsFile()
                     .tensor("m.q.qweight", "I32", {32, 4})
                     .tensor("m.q.qzeros", "I32", {2, 5})
                     .tensor("m.q.scales", "F16", {2, 32})),
       quantized("awq"), Errc::malformed, "has \".qzeros\" of shape [2, 5]"},
      {"Gemma's scales of other rows",
       std::move(SafetensorsFile().tensor("m.q.weight", "U8", {2, 4}).tensor("m.q.weight_scale", "F32", {3, 1})),
       quantized("gemma", R"(,"num_bits":4)"), Errc::malformed, "has \"_scale\" of shape [3, 1]"},
      {"scales for other blocks of MXFP4",
       std::move(SafetensorsFile()
                     .tensor("m.q.weight_blocks", "U8", {2, 4, 1, 16})
                     .tensor("m.q.weight_scales", "U8", {2, 4, 2})),
       quantized("mxfp4"), Errc::malformed, "has \"_scales\" of shape [2, 4, 2]"},
      {"twice the codes of HQQ", hqq(4), quantized("hqq"), Errc::malformed, "has 4 rows in codes of shape [4, 8]"},
      {"twice the codes of quanto's 2 bits", quanto(4), quantized("quanto", R"(,"weights":"int2")"), Errc::malformed,
       "do not fit the int2"},
      {"twice the words of MLX", mlx(16), quantized("metal", R"(,"bits":4,"group_size":64)"), Errc::malformed,
       "do not fit the 4 bits"},
      {"NVFP4 with groups of 32", nvfp4(2), quantized("modelopt"), Errc::malformed, "for each group of 16"},
      {"MXFP4 with groups of 16",
       std::move(SafetensorsFile().tensor("m.q.weight_packed", "U8", {2, 32}).tensor("m.q.weight_scale", "U8", {2, 4})),
       groups(R"({"num_bits":4,"type":"float"})"), Errc::malformed, "for each group of 32"},
      {"scales of a square that lie across", ones("F8_E4M3", {4, 4}, "m.q.weight_scale", {1, 4}), quantized("fp8"),
       Errc::malformed, "has \"_scale\" of shape [1, 4]"},
      {"scales of rows that lie across", ones("F8_E4M3", {4, 8}, "m.q.weight_scale", {1, 4}), quantized("fp8"),
       Errc::malformed, "has \"_scale\" of shape [1, 4]"},
      {"scales that are integers",
       std::move(SafetensorsFile().tensor("m.q.weight", "F8_E4M3", {4, 8}).tensor("m.q.weight_scale", "I32", {4, 1})),
       quantized("fp8"), Errc::malformed, "has scales of I32"},
      {"a scale for all that is an integer",
       std::move(SafetensorsFile()
                     .tensor("m.q.weight", "U8", {2, 8})
                     .tensor("m.q.weight_scale", "F8_E4M3", {2, 1})
                     .tensor("m.q.weight_scale_2", "I32", {})),
       quantized("modelopt"), Errc::malformed, "has scales of I32"},
      {"quanto's rows with several scales",
       std::move(SafetensorsFile().tensor("m.q.weight._data", "I8", {4, 8}).tensor("m.q.weight._scale", "F16", {4, 2})),
       quantized("quanto"), Errc::malformed, "has \"._scale\" of shape [4, 2]"},
      {"quanto's elements without a sign",
       std::move(SafetensorsFile().tensor("m.q.weight._data", "U8", {4, 8}).tensor("m.q.weight._scale", "F16", {4, 1})),
       quantized("quanto"), Errc::malformed, "is kept in elements of U8"},
      {"MLX's biases that are integers",
       std::move(SafetensorsFile()
                     .tensor("m.q.weight", "U32", {2, 8})
                     .tensor("m.q.scales", "F16", {2, 1})
                     .tensor("m.q.biases", "I16", {2, 1})),
       quantized("metal", R"(,"bits":4,"group_size":64)"), Errc::malformed, "has biases of I16"},
      {"BitNet's values in elements",
       std::move(SafetensorsFile().tensor("m.q.weight", "I8", {4, 4}).tensor("m.q.weight_scale", "F32", {1})),
       quantized("bitnet"), Errc::malformed, "is kept in elements of I8"},
      {"offsets of other integers",
       std::move(SafetensorsFile()
                     .tensor("m.q.weight.compressed", "BF16", {4})
                     .values<std::uint8_t>("m.q.weight.bitmask", "U8", {2, 1}, {3, 12})
                     .values<std::int64_t>("m.q.weight.shape", "I64", {2}, {2, 4})
                     .tensor("m.q.weight.row_offsets", "I32", {2})),
       quantized("compressed-tensors"), Errc::malformed, "has offsets of I32"},
      {"ComfyUI's word that is no JSON", comfy("fp8", ones("F8_E4M3", {2, 2}, "m.q.weight_scale", {})), "",
       Errc::malformed, "has a comfy_quant that cannot be read"},
      {"blocks of another size than the configuration's", ones("F8_E4M3", {4, 8}, "m.q.weight_scale", {2, 2}),
       groups(R"({"num_bits":8,"strategy":"block","block_structure":[4,4]})"), Errc::malformed, "fit no strategy"},
      {"torchao's zero points of other blocks",
       with(torchao("Int8Tensor", std::string(kData) + ", \\\"zero_point\\\""), "m.q._weight_zero_point", "I8", {1, 2}),
       quantized("torchao"), Errc::malformed, "has \"_zero_point\" of shape [1, 2]"},
      {"words of another number of bits", packed_words(), groups(R"({"num_bits":8})"), Errc::malformed,
       "which fit no number of bits in config_groups"},
      {"GPTQ with other groups", gptq(), quantized("gptq", R"(,"bits":4,"group_size":8)"), Errc::malformed,
       "has 2 groups for 32 inputs, and its configuration says groups of 8"},
      {"GPTQ of another number of bits", gptq(), quantized("gptq", R"(,"bits":8)"), Errc::malformed,
       "do not fit the 8 bits"},
      {"torchao's integers without a sign", torchao("Int8Tensor", kData, "{}", "U8"), quantized("torchao"),
       Errc::malformed, "is a Int8Tensor of torchao with elements of U8"},
      {"another strategy", ones("I8", {4, 4}, "m.q.weight_scale", {4, 1}),
       groups(R"({"num_bits":8,"strategy":"tensor"})"), Errc::malformed, "fit no strategy of config_groups"},
      {"other groups", ones("I8", {4, 8}, "m.q.weight_scale", {4, 2}),
       groups(R"({"num_bits":8,"strategy":"group","group_size":2})"), Errc::malformed, "fit no strategy"},
      {"another block of torchao's", torchao("Int8Tensor", kData, "{\\\"block_size\\\": [1, 4]}"), quantized("torchao"),
       Errc::malformed, "has scales of shape [2, 1] for blocks of [1, 4]"},
      {"another shape of torchao's", torchao("Int8Tensor", kData, "{\\\"shape\\\": [4, 4]}"), quantized("torchao"),
       Errc::malformed, "is described as one of shape [4, 4]"},
      {"offsets that are not those of the bits", bitmask({0, 3}), quantized("compressed-tensors"), Errc::malformed,
       "has the values of row 1 from 3 on by its offsets, and from 2 by its bits"},
      {"a bias for more rows than codes",
       with(
           std::move(
               SafetensorsFile().tensor("m.q.weight", "U8", {2, 4}).values<float>("m.q.weight_scale", "F32", {1}, {2})),
           "m.q.bias", "BF16", {9}),
       quantized("bitnet"), Errc::malformed, "has 9 rows in codes of shape [2, 4]"},
  };
}

void read_all(const Checkpoint& checkpoint) {
  for (const auto& [name, tensor] : checkpoint) {
    std::vector<std::byte> bytes(tensor.nbytes());
    tensor.read(0, bytes);
  }
}

TEST(RefusedParts, NameTheWeightAndWhatIsWrong) {
  for (const Refused& row : refused()) {
    const Model model(row.file, row.config);
    EXPECT_ERROR(read_all(model.opened()), row.code, row.message) << row.name;
    EXPECT_ERROR(read_all(model.opened()), row.code, "m.q.weight") << row.name;
  }
}

TEST(RefusedParts, StayIfTheCallerIsLenient) {
  for (const Refused& row : refused()) {
    const Model model(row.file, row.config);
    const Checkpoint checkpoint = model.opened({.lenient = true});
    EXPECT_EQ(checkpoint.size(), model.packed().size()) << row.name;
    EXPECT_TRUE(checkpoint.quantization) << row.name;
    ASSERT_FALSE(checkpoint.notes.empty()) << row.name;
    const std::string& said = checkpoint.notes.back().text;
    EXPECT_NE(said.find("stays as its parts: it "), std::string::npos) << row.name << ": " << said;
  }
}

TEST(RefusedParts, AreNotThoseThatFit) {
  EXPECT_EQ(Model(comfy(R"({"format": "float8_e4m3fn"})", ones("F8_E4M3", {1, 2}, "m.q.weight_scale", {})),
                  R"({"dtype":"float32"})")
                .values("m.q.weight"),
            (std::vector<float>{2, 2}));
  EXPECT_EQ(Model(torchao("Int8Tensor", kData, "{\\\"block_size\\\": [1, 8], \\\"shape\\\": [2, 8]}"))
                .opened()
                .at("m.q.weight")
                .shape(),
            (Shape{2, 8}));
  EXPECT_NO_THROW(read_all(Model(bitmask({0, 2})).opened()));
  EXPECT_NO_THROW(read_all(Model(hqq(2)).opened()));
  const Checkpoint six = Model(std::move(SafetensorsFile()
                                             .tensor("m.q.weight", "U8", {2, 4})
                                             .tensor("m.q.weight_scale", "BF16", {1})
                                             .tensor("m.q.bias", "BF16", {6})),
                               quantized("bitnet"))
                             .opened();
  EXPECT_EQ(six.at("m.q.weight").shape(), (Shape{6, 4})) << "the last byte of a column has two rows of padding";
}

// Schemes and layouts that are known by their names, with and without a configuration.
struct Named {
  const char* name;
  SafetensorsFile file;
  std::string config;
  const char* message;
};

std::vector<Named> named() {
  const auto file = [](std::vector<std::tuple<const char*, const char*, std::vector<std::uint64_t>>> tensors) {
    SafetensorsFile made;
    made.tensor("m.norm.weight", "BF16", {8});
    for (const auto& [name, dtype, shape] : tensors) made.tensor(std::string("m.q.") + name, dtype, shape);
    return made;
  };
  const auto tiles = [&](const char* type) {
    const std::string text =
        std::string("{\\\"_type\\\": \\\"") + type +
        "\\\", \\\"_data\\\": {}, \\\"_tensor_data_names\\\": [\\\"qdata\\\", \\\"scale_and_zero\\\"]}";
    SafetensorsFile made =
        file({{"_weight_qdata", "I32", {1, 4, 32, 4}}, {"_weight_scale_and_zero", "BF16", {2, 8, 2}}});
    made.metadata({{"tensor_names", "[\\\"m.q.weight\\\"]"}, {"m.q.weight", text}});
    return made;
  };
  const auto higgs = file(
      {{"weight", "I16", {8, 8}}, {"scales", "F16", {2, 8}}, {"tables", "F16", {16, 2}}, {"tables2", "F16", {16, 2}}});
  const auto spqr = file({{"dense_weights", "I64", {8}}, {"row_offsets", "I32", {9}}, {"col_vals", "I32", {4}}});
  return {
      {"Marlin's 2:4",
       file({{"weight_packed", "I32", {4, 32}}, {"scale_packed", "F16", {2, 32}}, {"meta", "I16", {8, 8}}}),
       quantized("compressed-tensors", R"(,"format":"marlin-24")"), "compressed-tensors for a kernel (marlin-24)"},
      {"torchao's tiles", tiles("Int4TilePackedTo4dTensor"), quantized("torchao"), "torchao.Int4TilePackedTo4dTensor"},
      {"torchao's tiles alone", tiles("Int4TilePackedTo4dTensor"), "", "torchao.Int4TilePackedTo4dTensor"},
      {"AWQ for another kernel",
       file({{"qweight", "I16", {2, 64}}, {"scales", "F16", {2, 8}}, {"qzeros", "F16", {2, 8}}}),
       quantized("awq", R"(,"version":"gemv_fast")"), "awq for a kernel (gemv_fast)"},
      {"BitBLAS", file({{"qweight", "I8", {8, 32}}, {"scales", "F16", {8, 2}}, {"zeros", "F16", {2, 8}}}),
       quantized("gptq", R"(,"checkpoint_format":"bitblas")"), "gptq for a kernel (bitblas)"},
      {"FP-Quant", file({{"qweight", "U8", {8, 32}}, {"scales", "U8", {8, 2}}}), quantized("fp_quant"), "fp_quant"},
      {"SINQ", file({{"W_q", "U8", {8, 8}}, {"meta.scale", "F16", {8}}}), quantized("sinq"), "sinq"},
      {"HIGGS", higgs, quantized("higgs"), "higgs"},
      {"HIGGS alone", higgs, "", "higgs"},
      {"SpQR", spqr, quantized("spqr"), "spqr"},
      {"SpQR alone", spqr, "", "spqr"},
      {"QuIP# alone", file({{"Qidxs", "I64", {8, 4}}, {"SU", "F16", {8}}, {"SV", "F16", {8}}}), "", "quip"},
  };
}

TEST(RefusedParts, OfASchemeThatIsNotDecodedAreNamedByIt) {
  for (const Named& row : named()) {
    const Model model(row.file, row.config);
    ASSERT_TRUE(model.packed().quantization) << row.name;
    EXPECT_ERROR(model.opened(), Errc::unsupported, row.message) << row.name;
    EXPECT_ERROR(cast(model.packed(), DType::f32), Errc::unsupported, "is quantized with") << row.name;
    const Checkpoint lenient = model.opened({.lenient = true});
    EXPECT_EQ(lenient.size(), model.packed().size()) << row.name;
    EXPECT_FALSE(lenient.notes.empty()) << row.name;
  }
}

// What is left of a weight is no weight, and is said.
TEST(RefusedParts, OfAWeightThatIsNotWholeAreSaid) {
  const auto file = [](std::vector<std::tuple<const char*, const char*, std::vector<std::uint64_t>>> tensors) {
    SafetensorsFile made = ones("F8_E4M3", {1, 2}, "m.q.weight_scale_inv", {1, 1});
    for (const auto& [name, dtype, shape] : tensors) made.tensor(std::string("m.k.") + name, dtype, shape);
    return made;
  };
  struct Case {
    const char* name;
    SafetensorsFile file;
  };
  const std::vector<Case> cases = {
      {"NF4 without absmax", file({{"weight", "U8", {64, 1}},
                                   {"weight.quant_map", "F32", {16}},
                                   {"weight.quant_state.bitsandbytes__nf4", "U8", {9}}})},
      {"NF4 in floats without absmax", file({{"weight", "BF16", {64, 1}},
                                             {"weight.quant_map", "F32", {16}},
                                             {"weight.quant_state.bitsandbytes__nf4", "U8", {9}}})},
      {"MLX without scales", file({{"weight", "U32", {4, 4}}})},
      {"integers without a scale", file({{"weight", "I8", {4, 4}}})},
      {"BitNet without a scale", file({{"weight", "U8", {4, 4}}})},
      {"LLM.int8 without its rows' maxima", file({{"weight", "I8", {4, 4}}, {"weight_format", "U8", {}}})},
      {"LLM.int8 without its codes", file({{"SCB", "F32", {4}}})},
      {"NF4 without its codes", file({{"weight.absmax", "F32", {4}}, {"weight.quant_map", "F32", {16}}})},
      {"FP8 without its codes", file({{"weight_scale_inv", "F32", {4, 4}}})},
      {"GPTQ without its codes", file({{"qzeros", "I32", {1, 4}}, {"scales", "F16", {1, 32}}})},
      {"words without scales", file({{"weight_packed", "I32", {4, 4}}, {"weight_shape", "I64", {2}}})},
  };
  for (const Case& row : cases) {
    const Checkpoint checkpoint = Model(row.file, quantized("fp8")).opened();
    EXPECT_EQ(checkpoint.at("m.q.weight").values<float>(), (std::vector<float>{2, 2})) << row.name;
    ASSERT_TRUE(checkpoint.quantization) << row.name;
    ASSERT_FALSE(checkpoint.notes.empty()) << row.name;
    EXPECT_EQ(checkpoint.notes.back().text,
              "the quantized weight \"m.k.weight\" stays as its parts: its other parts are missing")
        << row.name;
  }
  SafetensorsFile floats = file({{"weight", "BF16", {4, 4}}, {"weight_scale", "F32", {4}}});
  EXPECT_TRUE(Model(floats, quantized("fp8")).opened().notes.empty()) << "a scale beside floats is nobody's";
}

TEST(RefusedParts, OfOneShardOfAModelAreSaid) {
  const Checkpoint codes =
      Model(std::move(SafetensorsFile().tensor("m.q.qweight", "I32", {4, 32})), quantized("gptq")).opened();
  ASSERT_FALSE(codes.notes.empty());
  EXPECT_NE(codes.notes.back().text.find("its other parts are missing"), std::string::npos);
  const Checkpoint scales =
      Model(std::move(SafetensorsFile().tensor("m.q.qzeros", "I32", {4, 4}).tensor("m.q.scales", "F16", {4, 32})),
            quantized("gptq"))
          .opened();
  ASSERT_FALSE(scales.notes.empty());
  EXPECT_NE(scales.notes.back().text.find("its other parts are missing"), std::string::npos);
}

TEST(RefusedParts, AreMissingIfTheConfigurationSpeaksOfThem) {
  const auto note = [](const SafetensorsFile& file, const std::string& config) {
    const Checkpoint checkpoint = Model(file, config).opened();
    return checkpoint.notes.empty() ? std::string() : checkpoint.notes.back().text;
  };
  EXPECT_NE(
      note(gptq(), quantized("gptq", R"(,"bits":4,"group_size":16,"desc_act":true)")).find("\"m.q.g_idx\" is missing"),
      std::string::npos);
  EXPECT_NE(note(torchao("Int8Tensor", std::string(kData) + ", \\\"zero_point\\\""), quantized("torchao"))
                .find("\"m.q._weight_zero_point\" is missing"),
            std::string::npos);
  EXPECT_NE(
      note(packed_words(), groups(R"({"num_bits":4,"symmetric":false})")).find("\"m.q.weight_zero_point\" is missing"),
      std::string::npos);
}

TEST(RefusedParts, ThatBecomeMuchLargerAreOverTheLimit) {
  OpenOptions options;
  options.limits.max_expansion_bytes = 1000;
  const Model model(std::move(SafetensorsFile()
                                  .tensor("m.q.weight.compressed", "F64", {0})
                                  .values("m.q.weight.bitmask", "U8", {64, 8}, std::vector<std::uint8_t>(512))
                                  .values<std::int64_t>("m.q.weight.shape", "I64", {2}, {64, 64})),
                    quantized("compressed-tensors"));
  EXPECT_ERROR(model.opened(options), Errc::limit, "far more than its parts have");
  EXPECT_EQ(model.values("m.q.weight"), std::vector<float>(4096));
}

TEST(RefusedParts, AreNotThoseOfEmptyWeights) {
  const auto shape = [](const SafetensorsFile& file, const std::string& config) {
    const Checkpoint checkpoint = Model(file, config).opened({.lenient = true});
    read_all(checkpoint);
    return checkpoint.size();
  };
  EXPECT_EQ(shape(ones("F8_E4M3", {0, 4}, "m.q.weight_scale", {1}), quantized("fp8")), 1u);
  EXPECT_EQ(shape(ones("F8_E4M3", {4, 0}, "m.q.weight_scale", {1}), quantized("fp8")), 1u);
  EXPECT_GE(shape(std::move(SafetensorsFile()
                                .tensor("m.q.qweight", "I32", {4, 0})
                                .tensor("m.q.qzeros", "I32", {1, 0})
                                .tensor("m.q.scales", "F16", {1, 0})),
                  quantized("gptq", R"(,"bits":4)")),
            1u);
  EXPECT_GE(shape(std::move(SafetensorsFile()
                                .tensor("m.q.weight_blocks", "U8", {0, 4, 1, 16})
                                .tensor("m.q.weight_scales", "U8", {0, 4, 1})),
                  quantized("mxfp4")),
            1u);
}

// Files that Python reads, and other programs of people who edit them.
TEST(QuantizationConfig, IsReadAsPythonReadsIt) {
  const SafetensorsFile file =
      std::move(SafetensorsFile()
                    .values("m.q.qweight", "I32", {4, 32}, std::vector<std::uint32_t>(128, 0x99999999))
                    .values("m.q.qzeros", "I32", {1, 4}, std::vector<std::uint32_t>(4, 0x77777777))
                    .values("m.q.scales", "F16", {1, 32}, std::vector<std::uint16_t>(32, 0x3C00)));
  const std::string second = R"("quantization_config":{"quant_method":"gptq","bits":4,"checkpoint_format":"gptq_v2"}})";
  for (const std::string& config :
       {"{\"limit\":Infinity," + second, "{\"limit\":NaN," + second,
        "{\"model_max_length\":1000000000000000019884624838656," + second, "\xEF\xBB\xBF{" + second}) {
    EXPECT_EQ(Model(file, config).values("m.q.weight")[0], 2) << config;
    const Model model(file, config);
    const test::TempDir out;
    SavePlan plan = plan_save(model.opened(), out / "model.safetensors");
    add_sidecars(plan, find_sidecars(model.opened()), model.packed(), model.opened());
    execute(plan);
    EXPECT_FALSE(open(out.path()).quantization) << config;
  }
}

TEST(QuantizationConfig, ThatCannotBeReadIsSaidAndNotGuessedAt) {
  const Model model(gptq(), R"({"quantization_config":{"quant_method":"gptq",)");
  const Checkpoint packed = model.packed();
  ASSERT_FALSE(packed.notes.empty());
  EXPECT_NE(packed.notes.back().text.find("it is not known what this file says of quantization"), std::string::npos);
  EXPECT_ERROR(model.opened(), Errc::malformed, "it is not known what this file says of quantization");
  EXPECT_ERROR(dequantize(packed), Errc::malformed, "it is not known what this file says of quantization");
  EXPECT_TRUE(model.opened({.lenient = true}).contains("m.q.weight"));
}

}  // namespace
}  // namespace ballast
