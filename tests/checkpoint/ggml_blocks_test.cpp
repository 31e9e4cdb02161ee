// ggml's blocks kept inside safetensors by agreement: what the agreement says must fit the tensors.
#include "checkpoint/agreements/ggml_blocks.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include <ballast/storage.hpp>

#include "builders/gguf_file.hpp"
#include "builders/torch_file.hpp"
#include "core/base64.hpp"

namespace ballast {
namespace {

constexpr const char* kGgmlBlocksKey = "ballast.gguf";

// A block of Q8_0 has 34 bytes and 32 elements.
Tensor one_block() { return Tensor::from_bytes(DType::u8, {34}, std::vector<std::byte>(34)); }

std::string fields_of_a_file() { return to_base64(test::GgufBuilder().kv("general.name", "small").bytes()); }

std::string agreement(const std::string& block, const std::string& fields = fields_of_a_file()) {
  return R"({"order":["w"],"blocks":{)" + block + R"(},"fields":")" + fields + "\"}";
}

std::string block(const std::string& name, const std::string& dtype, const std::string& shape) {
  return '"' + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + "}";
}

Checkpoint unfolded(const Tensor& tensor, const std::string& text) {
  Checkpoint checkpoint;
  checkpoint.tensors.insert("w", tensor);
  checkpoint.metadata[kGgmlBlocksKey] = text;
  return unfold_ggml_blocks(std::move(checkpoint));
}

std::string shape_of_a_block(std::size_t rank) {
  std::string shape = "32]";
  while (--rank > 0) shape = "1," + shape;
  return "[" + shape;
}

TEST(GgmlBlocks, ComeBackWithTheirFields) {
  const Checkpoint back = unfolded(one_block(), agreement(block("w", "Q8_0", "[32]")));
  EXPECT_EQ(back.at("w").dtype(), DType::q8_0);
  EXPECT_EQ(back.typed_metadata.find_string("general.name"), "small");
  EXPECT_TRUE(back.metadata.empty());
  EXPECT_EQ(unfolded(one_block(), agreement(block("w", "Q8_0", shape_of_a_block(64)))).at("w").rank(), 64u);
}

// Anybody can write metadata.
TEST(GgmlBlocks, LeavesMetadataThatDoesNotFitAndSaysSo) {
  const auto refused = [](const Tensor& tensor, const std::string& text) {
    SCOPED_TRACE(text);
    const Checkpoint back = unfolded(tensor, text);
    EXPECT_TRUE(test::has_note(back, "does not fit the tensors"));
    EXPECT_EQ(back.at("w").dtype(), tensor.dtype());
    EXPECT_TRUE(back.typed_metadata.empty());
  };
  refused(one_block(), "");
  refused(one_block(), "{}");
  for (const std::string& wrong :
       {block("w", "Q9_9", "[32]"), block("w", "U8", "[34]"), block("w", "Q8_0", shape_of_a_block(65)),
        block("w", "Q8_0", "[64]"), block("w", "Q8_0", "[0]"), block("w", "Q8_0", "[4294967296,4294967296]"),
        block("v", "Q8_0", "[32]")})
    refused(one_block(), agreement(wrong));
  refused(one_block(), agreement(block("w", "Q8_0", "[32]"), "no base64!"));
  refused(one_block(), agreement(block("w", "Q8_0", "[32]"), ""));
  refused(one_block().bitcast(DType::i8), agreement(block("w", "Q8_0", "[32]")));
  refused(Tensor(DType::u8, {34}, Strides{2}, memory_storage(std::vector<std::byte>(68))),
          agreement(block("w", "Q8_0", "[32]")));
  for (const std::size_t nearly : {33u, 35u})
    refused(Tensor::from_bytes(DType::u8, {nearly}, std::vector<std::byte>(nearly)),
            agreement(block("w", "Q8_0", "[32]")));
}

}  // namespace
}  // namespace ballast
