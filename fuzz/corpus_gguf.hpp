// The inputs that fuzzing GGUF begins with.
#pragma once

#include <bit>
#include <string>
#include <vector>

#include "builders/gguf_file.hpp"

namespace ballast::fuzz {

inline test::GgufBuilder gguf_of_everything(std::uint32_t version, std::endian order) {
  using namespace test;
  GgufBuilder file(version, order);
  file.kv("general.name", "x").kv("n", 7u).kv_raw("b", kBool, "\1").kv_raw("u8", kU8, "x").kv_raw("i8", kI8Value, "x");
  file.kv_raw("u16", kU16, file.number(std::uint16_t{1})).kv_raw("i16", kI16, file.number(std::int16_t{-1}));
  file.kv_raw("i32", kI32, file.number(-1)).kv_raw("u64", kU64, file.number(std::uint64_t{1}));
  file.kv_raw("i64", kI64, file.number(std::int64_t{-1})).kv_raw("f64", kF64, file.number(std::uint64_t{1} << 62));
  file.kv_raw("f32", kF32Value, file.number(1u << 30)).strings("words", {"a", "", "bc"});
  file.array("numbers", kI16, 2, file.number(std::int16_t{1}) + file.number(std::int16_t{2}))
      .array("none", kI32, 0, "");
  return file.tensor("w", kF32, {2, 3}).tensor("h", kF16, {4}).tensor("q", kQ4_0, {32, 2}).tensor("s", kF32, {});
}

inline std::vector<std::string> ggufs() {
  using namespace test;
  std::vector<std::string> inputs = {"", "GGUF", "FUGG", "lmgg", GgufBuilder().text()};
  for (const std::uint32_t version : {1u, 2u, 3u}) {
    for (const std::endian order : {std::endian::little, std::endian::big})
      inputs.push_back(gguf_of_everything(version, order).text());
  }
  const GgufBuilder base = GgufBuilder().kv("k", 1u).tensor("w", kF32, {2});
  const std::uint64_t minus_one = ~std::uint64_t{0};
  for (const GgufBuilder& file : {
           GgufBuilder(base).key_count(minus_one),
           GgufBuilder(base).tensor_count(minus_one),
           GgufBuilder(base).stored_version(4),
           GgufBuilder(base).kv("k", 2u),
           GgufBuilder(base).tensor("w", kF32, {2}),
           GgufBuilder().alignment(64).tensor("a", kF32, {1}).tensor("b", kF32, {1}),
           GgufBuilder().alignment(13),
           GgufBuilder().alignment(1).tensor("a", kI8, {3}).tensor("b", kI8, {3}),
           GgufBuilder().kv_raw("k", 13, "x"),
           GgufBuilder().array("k", kArray, 1, ""),
           GgufBuilder().array("k", kArray, 1, base.number(4u) + base.number(std::uint64_t{1}) + base.number(7u)),
           GgufBuilder().array("k", kU64, minus_one, ""),
           GgufBuilder().tensor(std::string(64, 'n'), kF32, {1}),
           GgufBuilder().tensor("n", {57, 32, 20}, {64}).tensor("w", kF32, {1}),
           GgufBuilder().tensor("n", {4, 32, 18}, {32}),
           GgufBuilder().tensor("e", kF32, {4, 0}).tensor("w", kF32, {1}),
           GgufBuilder().tensor_at("a", kF32, {8}, 32).tensor_at("b", kF32, {8}, 0).data(64),
           GgufBuilder().tensor_at("a", kF32, {8}, 0).tensor_at("b", kF32, {8}, 0).data(32),
           GgufBuilder().tensor_at("a", kF32, {minus_one}, minus_one).data(32),
           GgufBuilder().tensor("v", kNvfp4, {64}).tensor("k", kQ4_K, {256}).tensor("q", kQ8_0, {32}),
           GgufBuilder(base).append_data("tail"),
       })
    inputs.push_back(file.text());
  // One block of every type.
  GgufBuilder types;
  for (const GgmlType& type :
       {GgmlType{3, 32, 20}, GgmlType{6, 32, 22}, GgmlType{10, 256, 84}, GgmlType{11, 256, 110}, GgmlType{13, 256, 176},
        GgmlType{14, 256, 210}, GgmlType{15, 256, 292}, GgmlType{16, 256, 66}, GgmlType{19, 256, 50},
        GgmlType{23, 256, 136}, GgmlType{29, 256, 56}, GgmlType{34, 256, 54}, GgmlType{39, 32, 17},
        GgmlType{41, 128, 18}, GgmlType{42, 64, 18}})
    types.tensor("t" + std::to_string(type.id), type, {type.block_elements});
  inputs.push_back(types.text());
  return inputs;
}

}  // namespace ballast::fuzz
