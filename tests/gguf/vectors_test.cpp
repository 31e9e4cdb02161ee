// Every GGUF file beside the repository, against what gguf-py and ggml's own reader say is in it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "formats/gguf/reader.hpp"
#include "kernels/digest.hpp"
#include "read_bytes.hpp"
#include "support/expect_error.hpp"
#include "support/fixtures.hpp"
#include "support/json_file.hpp"
#include "support/tensor_values.hpp"
#include "support/vectors.hpp"
#include "tensor/decoded_storage.hpp"

namespace ballast {
namespace {

const std::map<MetadataType, std::string_view> kTypeNames = {
    {MetadataType::u8, "UINT8"},      {MetadataType::i8, "INT8"},     {MetadataType::u16, "UINT16"},
    {MetadataType::i16, "INT16"},     {MetadataType::u32, "UINT32"},  {MetadataType::i32, "INT32"},
    {MetadataType::f32, "FLOAT32"},   {MetadataType::f64, "FLOAT64"}, {MetadataType::boolean, "BOOL"},
    {MetadataType::string, "STRING"}, {MetadataType::array, "ARRAY"}, {MetadataType::u64, "UINT64"},
    {MetadataType::i64, "INT64"},
};

std::string sha256_of(const Tensor& tensor) {
  const std::string bytes = test::text_of(tensor);
  kernels::Sha256 digest;
  digest.update(std::as_bytes(std::span(bytes)));
  return digest.hex();
}

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

// The expected value is a number, a boolean, a string, {"__bytes__": hex} or {"__float__": "inf"}.
bool is_value(const MetadataValue& value, const Json& expected) {
  if (expected.is_object()) {
    if (const Json* hex = expected.find("__bytes__")) return value.as_string() == from_hex(hex->text());
    return expected.at("__float__").text() == "inf" && std::isinf(*value.as_double());
  }
  if (expected.is_bool()) return value.as_bool() == expected.boolean();
  if (expected.is_text()) return value.as_string() == expected.text();
  if (expected.is_double()) {
    const double number = expected.number();
    return value.as_double() == number && std::signbit(*value.as_double()) == std::signbit(number);
  }
  return value.as_int() ? value.as_int() == expected.integer() : value.as_uint() == expected.count();
}

void expect_fields(const TypedMetadata& fields, const Json& expected) {
  std::size_t number = 0;
  for (const Json& kv : expected.list()) {
    ASSERT_LT(number, fields.size());
    const MetadataEntry& field = fields[number++];
    SCOPED_TRACE(std::string(field.key));
    EXPECT_EQ(field.key, kv.at("key").text());
    EXPECT_EQ(fields.find(field.key), &field);
    EXPECT_EQ(kTypeNames.at(field.type), kv.at("type").text());
    if (!field.is_array()) {
      EXPECT_TRUE(is_value(field.value(), kv.at("value"))) << text(field);
      continue;
    }
    EXPECT_EQ(kTypeNames.at(field.element_type), kv.at("element_type").text());
    const Json::List& values = kv.at("values").list();
    EXPECT_EQ(field.count, values.size());
    if (field.element_type == MetadataType::array) {  // kept, not looked into
      EXPECT_EQ(text(field), "[2 arrays]");
      continue;
    }
    auto item = field.items().begin();
    for (const Json& value : values) {
      ASSERT_FALSE(item == std::default_sentinel);
      EXPECT_TRUE(is_value(*item, value)) << text(field, 10);
      ++item;
    }
    EXPECT_TRUE(item == std::default_sentinel);
  }
  EXPECT_EQ(number, fields.size());
}

void expect_tensors(const gguf::GgufFile& file, const Json& expected) {
  std::size_t number = 0;
  for (const Json& wanted : expected.list()) {
    ASSERT_LT(number, file.checkpoint.size());
    const auto& [name, tensor] = file.checkpoint.tensors[number++];
    SCOPED_TRACE(std::string(name));
    EXPECT_EQ(name, wanted.at("name").text());
    EXPECT_EQ(ballast::name(tensor.dtype()), wanted.at("type").text());
    EXPECT_EQ(tensor.shape(), Shape(test::counts(wanted.at("shape"))));
    EXPECT_EQ(tensor.nbytes(), wanted.at("nbytes").count());
    const char* hash = file.is_big_endian ? "little_endian_sha256" : "raw_sha256";
    EXPECT_EQ(sha256_of(tensor), wanted.at(hash).text());
    const std::uint64_t offset = wanted.at("offset").count();
    EXPECT_TRUE(file.is_big_endian || tensor.offset() == offset);
    const Json* decoded_hash = wanted.find("f32_sha256");
    if (decoded_hash == nullptr || decoded_hash->is_null()) continue;  // ggml cannot decode this type
    EXPECT_EQ(sha256_of(decoded(tensor, DType::f32)), decoded_hash->text());
  }
  EXPECT_EQ(number, file.checkpoint.size());
}

TEST(GgufVectors, ReadAsGgufPyWroteThem) {
  const auto files = test::vector_files("gguf", ".gguf.expected.json");
  EXPECT_GE(files.size(), 22u);
  for (const auto& path : files) {
    SCOPED_TRACE(path.filename());
    const Json expected = test::read_json(path);
    const auto source =
        file_source(path.string().substr(0, path.string().size() - std::string_view(".expected.json").size()));
    const auto file = gguf::read(source);
    EXPECT_EQ(file.version, expected.at("version").count());
    EXPECT_EQ(file.is_big_endian, expected.at("endianness").text() == "big");
    EXPECT_EQ(file.alignment, expected.at("alignment").count());
    EXPECT_EQ(file.data_offset, expected.at("data_offset").count());
    EXPECT_EQ(file.checkpoint.files.at(0).bytes, expected.at("file_size").count());
    expect_fields(file.fields, expected.at("kv"));
    expect_tensors(file, expected.at("tensors"));

    // A file that ggml refuses is noted, and no other; ggml refuses version 1 and big-endian files as a whole.
    const bool has_oddity =
        std::ranges::any_of(file.checkpoint.notes, [](const Note& note) { return note.kind == Note::Kind::oddity; });
    const bool is_refused = !expected.at("accepted_by_ggml_gguf_cpp").boolean();
    EXPECT_EQ(has_oddity, is_refused && file.version != 1 && !file.is_big_endian);
  }
}

TEST(GgufVectors, ThatAreDamagedAreRefusedForTheirReason) {
  const std::map<std::string_view, std::string_view> reasons = {
      {"bad_truncated_header.gguf", "key \"llama.attention.head_count\": the file ends inside"},
      {"bad_truncated_data.gguf", "bytes from byte"},
      {"bad_magic.gguf", "does not begin with \"GGUF\""},
      {"bad_huge_count.gguf", "the tensor count is 1152921504606846976"},
      {"bad_duplicate_key.gguf", "key \"t.i16\" is there twice"},
      {"bad_string_length.gguf", "is 4611686018427387904, but only"},
      {"bad_alignment.gguf", "general.alignment is the u32 24"},
      {"bad_type_id.gguf", "type 4 was Q4_2"},
  };
  const Json list = test::read_json(test::vector_path("gguf/bad_files.expected.json"));
  for (const Json& bad : list.at("files").list()) {
    const std::string& name = bad.at("file").text();
    SCOPED_TRACE(name);
    const std::string path = test::vector_path("gguf/" + name);
    const auto error = test::error_of([&] { gguf::read(file_source(path)); });
    ASSERT_TRUE(error);
    EXPECT_NE(error->message().find(reasons.at(name)), std::string::npos) << error->what();
    EXPECT_TRUE(error->code() == Errc::malformed || error->code() == Errc::unsupported);
    EXPECT_EQ(error->where(), path);
    EXPECT_TRUE(error->offset());
  }
}

TEST(GgufVectors, BigEndianTwinsAreEqual) {
  const auto big = gguf::read(file_source(test::vector_path("gguf/big_endian_quant.gguf")));
  const auto little = gguf::read(file_source(test::vector_path("gguf/little_endian_twin.gguf")));
  EXPECT_EQ(big.fields, little.fields);
  ASSERT_EQ(big.checkpoint.size(), little.checkpoint.size());
  for (const auto& [name, tensor] : little.checkpoint) {
    EXPECT_EQ(test::text_of(big.checkpoint.at(name)), test::text_of(tensor)) << name;
    EXPECT_EQ(sha256_of(decoded(big.checkpoint.at(name), DType::f32)), sha256_of(decoded(tensor, DType::f32))) << name;
  }
}

// Real files from public repositories.
TEST(GgufFixtures, ReadAsGgufPySays) {
  SKIP_WITHOUT_FIXTURES("gguf");
  std::size_t count = 0;
  for (const auto& path : test::fixture_files("expected", ".gguf.json")) {
    SCOPED_TRACE(path.filename());
    const Json expected = test::read_json(path);
    const std::string& name = expected.at("file").text();
    const auto source = file_source(test::fixture_path(name));
    // The writer of this file gave all tensors the offset 0. ggml refuses the file, gguf-py accepts it.
    const bool shares_bytes = name.ends_with("gguf__test_model.gguf");
    if (shares_bytes) {
      EXPECT_ERROR(gguf::read(source), Errc::malformed, "shares bytes with tensor \"token_embd.weight\"");
    }
    const auto file = gguf::read(source, {.lenient = shares_bytes});
    EXPECT_EQ(file.data_offset, expected.at("data_offset").count());
    EXPECT_EQ(file.alignment, expected.at("alignment").count());
    EXPECT_EQ(file.is_big_endian, expected.at("endian").text() == "BIG");

    std::size_t number = 0;
    for (const Json& kv : expected.at("kv").list()) {
      const std::string& key = kv.at("key").text();
      if (key.starts_with("GGUF.")) continue;  // gguf-py's own keys, for the numbers before the metadata
      const MetadataEntry& field = file.fields[number++];
      EXPECT_EQ(field.key, key);
      EXPECT_EQ(kTypeNames.at(field.type), kv.at("types").list().at(0).text());
      EXPECT_EQ(field.count, kv.at("n").count());
    }
    EXPECT_EQ(number, file.fields.size());

    number = 0;
    for (const Json& wanted : expected.at("tensors").list()) {
      const auto& [name, tensor] = file.checkpoint.tensors[number++];
      EXPECT_EQ(name, wanted.at("name").text());
      EXPECT_EQ(ballast::name(tensor.dtype()), wanted.at("type").text());
      EXPECT_EQ(file.data_offset + tensor.offset(), wanted.at("data_offset").count());
      EXPECT_EQ(tensor.nbytes(), wanted.at("n_bytes").count());
      EXPECT_EQ(sha256_of(tensor), wanted.at("sha256").text());
    }
    EXPECT_EQ(number, file.checkpoint.size());
    ++count;
  }
  EXPECT_GE(count, 10u);
}

TEST(GgufFixtures, ThatNoReaderTakesAreRefusedForTheReasonInTheirNote) {
  SKIP_WITHOUT_FIXTURES("gguf");
  const auto read = [](const char* name) {
    return gguf::read(file_source(test::fixture_path("gguf/" + std::string(name))));
  };
  EXPECT_ERROR(read("llama.cpp__hist1__ggml-vocab-llama.gguf"), Errc::unsupported, "never released");
  EXPECT_ERROR(read("llama.cpp__test_writer.gguf"), Errc::malformed, "value type 13");
}

TEST(GgufFixtures, OfVersion1Read) {
  SKIP_WITHOUT_FIXTURES("gguf");
  const auto file = gguf::read(file_source(test::fixture_path("gguf/llama.cpp__hist3__ggml-vocab-llama.gguf")));
  EXPECT_EQ(file.version, 1u);
  EXPECT_EQ(file.fields.find("tokenizer.ggml.tokens")->count, 32000u);
  EXPECT_EQ((*++file.fields.find("tokenizer.ggml.tokens")->items().begin()).as_string(), "<s>");
}

TEST(GgufFixtures, BigEndianTwinsAreEqual) {
  SKIP_WITHOUT_FIXTURES("gguf");
  for (const char* name : {"bert-bge", "phi-3"}) {
    SCOPED_TRACE(name);
    const std::string path = test::fixture_path("gguf/llama.cpp__models__ggml-vocab-" + std::string(name));
    EXPECT_EQ(gguf::read(file_source(path + "-be.gguf")).fields, gguf::read(file_source(path + ".gguf")).fields);
  }
}

}  // namespace
}  // namespace ballast
