// Every GGUF file beside the repository, against what gguf-py and ggml's own reader say is in it.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "formats/gguf/reader.hpp"
#include "kernels/digest.hpp"
#include "read_bytes.hpp"
#include "support/expect_error.hpp"
#include "support/json_file.hpp"
#include "support/shared_files.hpp"
#include "tensor/decoded_storage.hpp"

namespace ballast {
namespace {

namespace dom = simdjson::dom;

const std::map<FieldType, std::string_view> kTypeNames = {
    {FieldType::u8, "UINT8"},      {FieldType::i8, "INT8"},     {FieldType::u16, "UINT16"},
    {FieldType::i16, "INT16"},     {FieldType::u32, "UINT32"},  {FieldType::i32, "INT32"},
    {FieldType::f32, "FLOAT32"},   {FieldType::f64, "FLOAT64"}, {FieldType::boolean, "BOOL"},
    {FieldType::string, "STRING"}, {FieldType::array, "ARRAY"}, {FieldType::u64, "UINT64"},
    {FieldType::i64, "INT64"},
};

std::string sha256_of(const Tensor& tensor) {
  const std::string bytes = test::bytes_of(tensor);
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

// A number, a boolean, a string, {"__bytes__": hex} or {"__float__": "inf"}.
bool is_value(const FieldValue& value, dom::element expected) {
  if (expected.is_object()) {
    std::string_view text;
    if (expected["__bytes__"].get(text) == simdjson::SUCCESS) return value.as_string() == from_hex(text);
    return expected["__float__"].get_string().value() == "inf" && std::isinf(*value.as_double());
  }
  if (expected.is_bool()) return value.as_bool() == expected.get_bool().value();
  if (expected.is_string()) return value.as_string() == expected.get_string().value();
  if (expected.is_double()) {
    const double number = expected;
    return value.as_double() == number && std::signbit(*value.as_double()) == std::signbit(number);
  }
  if (expected.is_uint64()) return value.as_uint() == expected.get_uint64().value();
  return value.as_int() == expected.get_int64().value();
}

void expect_fields(const Fields& fields, dom::array expected) {
  std::size_t number = 0;
  for (const dom::element kv : expected) {
    ASSERT_LT(number, fields.size());
    const Field& field = fields[number++];
    SCOPED_TRACE(std::string(field.key));
    EXPECT_EQ(field.key, kv["key"].get_string().value());
    EXPECT_EQ(fields.find(field.key), &field);
    EXPECT_EQ(kTypeNames.at(field.type), kv["type"].get_string().value());
    if (!field.is_array()) {
      EXPECT_TRUE(is_value(field.value(), kv["value"])) << text(field);
      continue;
    }
    EXPECT_EQ(kTypeNames.at(field.element_type), kv["element_type"].get_string().value());
    const dom::array values = kv["values"];
    EXPECT_EQ(field.count, values.size());
    if (field.element_type == FieldType::array) {  // kept, not looked into
      EXPECT_EQ(text(field), "[2 arrays]");
      continue;
    }
    auto item = field.items().begin();
    for (const dom::element value : values) {
      ASSERT_FALSE(item == std::default_sentinel);
      EXPECT_TRUE(is_value(*item, value)) << text(field, 10);
      ++item;
    }
    EXPECT_TRUE(item == std::default_sentinel);
  }
  EXPECT_EQ(number, fields.size());
}

void expect_tensors(const gguf::GgufFile& file, dom::array expected) {
  std::size_t number = 0;
  for (const dom::element wanted : expected) {
    ASSERT_LT(number, file.checkpoint.size());
    const auto& [name, tensor] = file.checkpoint.tensors[number++];
    SCOPED_TRACE(std::string(name));
    EXPECT_EQ(name, wanted["name"].get_string().value());
    EXPECT_EQ(ballast::name(tensor.dtype()), wanted["type"].get_string().value());
    std::vector<std::uint64_t> shape;
    for (const dom::element dim : wanted["shape"].get_array()) shape.push_back(dim);
    EXPECT_EQ(tensor.shape(), Shape(shape));
    EXPECT_EQ(tensor.nbytes(), wanted["nbytes"].get_uint64().value());
    const char* hash = file.is_big_endian ? "little_endian_sha256" : "raw_sha256";
    EXPECT_EQ(sha256_of(tensor), wanted[hash].get_string().value());
    const std::uint64_t offset = wanted["offset"];
    EXPECT_TRUE(file.is_big_endian || tensor.offset() == offset);
    std::string_view decoded_hash;
    if (wanted["f32_sha256"].get(decoded_hash) != simdjson::SUCCESS) continue;  // ggml has no conversion
    EXPECT_EQ(sha256_of(decoded(tensor, DType::f32)), decoded_hash);
  }
  EXPECT_EQ(number, file.checkpoint.size());
}

TEST(GgufVectors, ReadAsGgufPyWroteThem) {
  SKIP_WITHOUT_SHARED("vectors/gguf");
  const auto files = test::shared_files("vectors/gguf", ".gguf.expected.json");
  EXPECT_GE(files.size(), 22u);
  for (const auto& path : files) {
    SCOPED_TRACE(path.filename());
    dom::parser parser;
    const dom::element expected = test::parse_json_file(parser, path);
    const auto source =
        io::open_file(path.string().substr(0, path.string().size() - std::string_view(".expected.json").size()));
    const auto file = gguf::read(source);
    EXPECT_EQ(file.version, expected["version"].get_uint64().value());
    EXPECT_EQ(file.is_big_endian, expected["endianness"].get_string().value() == "big");
    EXPECT_EQ(file.alignment, expected["alignment"].get_uint64().value());
    EXPECT_EQ(file.data_offset, expected["data_offset"].get_uint64().value());
    EXPECT_EQ(file.checkpoint.files.at(0).bytes, expected["file_size"].get_uint64().value());
    expect_fields(file.fields, expected["kv"]);
    expect_tensors(file, expected["tensors"]);

    // What ggml refuses is noted, and nothing else; it refuses version 1 and big-endian files as a whole.
    const bool has_oddity =
        std::ranges::any_of(file.checkpoint.notes, [](const Note& note) { return note.kind == Note::Kind::oddity; });
    const bool is_refused = !expected["accepted_by_ggml_gguf_cpp"].get_bool().value();
    EXPECT_EQ(has_oddity, is_refused && file.version != 1 && !file.is_big_endian);
  }
}

TEST(GgufVectors, ThatAreDamagedAreRefusedForTheirReason) {
  SKIP_WITHOUT_SHARED("vectors/gguf");
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
  dom::parser parser;
  const dom::element list = test::parse_json_file(parser, test::shared_path("vectors/gguf/bad_files.expected.json"));
  for (const dom::element bad : list["files"].get_array()) {
    const std::string_view name = bad["file"];
    SCOPED_TRACE(name);
    const std::string path = test::shared_path("vectors/gguf/" + std::string(name));
    const auto error = test::error_of([&] { gguf::read(io::open_file(path)); });
    ASSERT_TRUE(error);
    EXPECT_NE(error->message().find(reasons.at(name)), std::string::npos) << error->what();
    EXPECT_TRUE(error->code() == Errc::malformed || error->code() == Errc::unsupported);
    EXPECT_EQ(error->where(), path);
    EXPECT_TRUE(error->offset());
  }
}

TEST(GgufVectors, BigEndianTwinsAreEqual) {
  SKIP_WITHOUT_SHARED("vectors/gguf");
  const auto big = gguf::read(io::open_file(test::shared_path("vectors/gguf/big_endian_quant.gguf")));
  const auto little = gguf::read(io::open_file(test::shared_path("vectors/gguf/little_endian_twin.gguf")));
  EXPECT_EQ(big.fields, little.fields);
  ASSERT_EQ(big.checkpoint.size(), little.checkpoint.size());
  for (const auto& [name, tensor] : little.checkpoint) {
    EXPECT_EQ(test::bytes_of(big.checkpoint.at(name)), test::bytes_of(tensor)) << name;
    EXPECT_EQ(sha256_of(decoded(big.checkpoint.at(name), DType::f32)), sha256_of(decoded(tensor, DType::f32))) << name;
  }
}

// Real files from public repositories.
TEST(GgufFixtures, ReadAsGgufPySays) {
  SKIP_WITHOUT_SHARED("fixtures/gguf");
  std::size_t count = 0;
  for (const auto& path : test::shared_files("fixtures/expected", ".gguf.json")) {
    SCOPED_TRACE(path.filename());
    dom::parser parser;
    const dom::element expected = test::parse_json_file(parser, path);
    const std::string name(expected["file"].get_string().value());
    const auto source = io::open_file(test::shared_path("fixtures/" + name));
    // Its writer gave all tensors the offset 0. ggml refuses it, gguf-py believes it.
    const bool shares_bytes = name.ends_with("gguf__test_model.gguf");
    if (shares_bytes) {
      EXPECT_ERROR(gguf::read(source), Errc::malformed, "shares bytes with tensor \"token_embd.weight\"");
    }
    const auto file = gguf::read(source, {.lenient = shares_bytes});
    EXPECT_EQ(file.data_offset, expected["data_offset"].get_uint64().value());
    EXPECT_EQ(file.alignment, expected["alignment"].get_uint64().value());
    EXPECT_EQ(file.is_big_endian, expected["endian"].get_string().value() == "BIG");

    std::size_t number = 0;
    for (const dom::element kv : expected["kv"].get_array()) {
      const std::string_view key = kv["key"];
      if (key.starts_with("GGUF.")) continue;  // gguf-py's own, of what stands before the keys
      const Field& field = file.fields[number++];
      EXPECT_EQ(field.key, key);
      EXPECT_EQ(kTypeNames.at(field.type), kv["types"].get_array().at(0).get_string().value());
      EXPECT_EQ(field.count, kv["n"].get_uint64().value());
    }
    EXPECT_EQ(number, file.fields.size());

    number = 0;
    for (const dom::element wanted : expected["tensors"].get_array()) {
      const auto& [name, tensor] = file.checkpoint.tensors[number++];
      EXPECT_EQ(name, wanted["name"].get_string().value());
      EXPECT_EQ(ballast::name(tensor.dtype()), wanted["type"].get_string().value());
      EXPECT_EQ(file.data_offset + tensor.offset(), wanted["data_offset"].get_uint64().value());
      EXPECT_EQ(tensor.nbytes(), wanted["n_bytes"].get_uint64().value());
      EXPECT_EQ(sha256_of(tensor), wanted["sha256"].get_string().value());
    }
    EXPECT_EQ(number, file.checkpoint.size());
    ++count;
  }
  EXPECT_GE(count, 10u);
}

TEST(GgufFixtures, ThatNoReaderTakesAreRefusedForTheReasonInTheirNote) {
  SKIP_WITHOUT_SHARED("fixtures/gguf");
  const auto read = [](const char* name) {
    return gguf::read(io::open_file(test::shared_path("fixtures/gguf/" + std::string(name))));
  };
  EXPECT_ERROR(read("llama.cpp__hist1__ggml-vocab-llama.gguf"), Errc::unsupported, "never released");
  EXPECT_ERROR(read("llama.cpp__test_writer.gguf"), Errc::malformed, "value type 13");
}

TEST(GgufFixtures, OfVersion1Read) {
  SKIP_WITHOUT_SHARED("fixtures/gguf");
  const auto file =
      gguf::read(io::open_file(test::shared_path("fixtures/gguf/llama.cpp__hist3__ggml-vocab-llama.gguf")));
  EXPECT_EQ(file.version, 1u);
  EXPECT_EQ(file.fields.find("tokenizer.ggml.tokens")->count, 32000u);
  EXPECT_EQ((*++file.fields.find("tokenizer.ggml.tokens")->items().begin()).as_string(), "<s>");
}

TEST(GgufFixtures, BigEndianTwinsAreEqual) {
  SKIP_WITHOUT_SHARED("fixtures/gguf");
  for (const char* name : {"bert-bge", "phi-3"}) {
    SCOPED_TRACE(name);
    const std::string path = test::shared_path("fixtures/gguf/llama.cpp__models__ggml-vocab-" + std::string(name));
    EXPECT_EQ(gguf::read(io::open_file(path + "-be.gguf")).fields, gguf::read(io::open_file(path + ".gguf")).fields);
  }
}

}  // namespace
}  // namespace ballast
