// Writes the inputs that fuzzing begins with: `make_corpus DIR` makes DIR/NAME/... for every NAME_fuzz.cpp. The inputs
// are small and together touch every rule: fuzzers combine, they do not invent.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "corpus_archive.hpp"
#include "corpus_gguf.hpp"
#include "corpus_http.hpp"
#include "corpus_imatrix.hpp"
#include "corpus_llamacpp.hpp"
#include "corpus_maps.hpp"
#include "corpus_packed.hpp"
#include "corpus_pickle.hpp"
#include "corpus_quantized.hpp"
#include "corpus_tokenizer.hpp"
#include "corpus_torch.hpp"

namespace {

namespace fs = std::filesystem;

void write(const fs::path& folder, const std::vector<std::string>& inputs) {
  fs::create_directories(folder);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::ofstream file(folder / std::to_string(i), std::ios::binary);
    file << inputs[i];
    if (!file.flush()) throw fs::filesystem_error("cannot write", folder, std::make_error_code(std::errc::io_error));
  }
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, int begin, int end) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + shape + "],\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

// Each input begins with a byte that says how many bytes of data follow the header.
std::vector<std::string> safetensors_headers() {
  std::vector<std::string> inputs;
  const auto add = [&](int data_bytes, const std::string& header) {
    inputs.push_back(static_cast<char>(data_bytes) + header);
  };

  const std::vector<std::pair<const char*, int>> dtypes = {
      {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
      {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
      {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
      {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}};
  std::string all = "{";
  int at = 0;
  for (const auto& [dtype, bits] : dtypes) {
    add(bits / 2, "{" + entry("w", dtype, "2,2", 0, bits / 2) + "}");
    add(bits / 8, "{" + entry("odd", dtype, "", 0, bits / 8) + "}");
    all += (at ? "," : "") + entry(dtype, dtype, "4", at, at + bits / 2);
    at += bits / 2;
  }
  add(at, all + "}");

  const std::string w = entry("w", "U8", "4", 0, 4);
  for (const char* header : {"", " ", "{", "{}", "{}      ", " \n\t\r{ } ", "[]", "null", "{}{}", "{,}", "{\"w\"}",
                             "{\"w\":1}", "{\"w\":{}}", "\xEF\xBB\xBF{}"})
    add(0, header);
  add(4, "{" + w + "," + w + "}");
  add(8, "{" + w + "," + entry("v", "U8", "4", 4, 8) + "}");
  add(8, "{" + entry("v", "U8", "4", 4, 8) + "," + w + "}");
  add(8, "{" + w + "," + entry("\\u0077", "U8", "4", 4, 8) + "}");
  add(4, "{" + w + "," + entry("e", "U8", "0", 4, 4) + "," + entry("f", "U8", "0,18446744073709551615", 0, 0) + "}");
  add(9, "{" + w + "," + entry("v", "U8", "4", 5, 9) + "}");
  add(6, "{" + w + "," + entry("v", "U8", "4", 2, 6) + "}");
  add(4, "{" + w + ",}");
  add(3, "{" + w + "}");
  for (const char* number :
       {"-0", "-1", "1e0", "1.0", "01", "00", "18446744073709551615", "18446744073709551616", "99999999", "100000000",
        "123456789", "4294967296,4294967297", "1,", "1 1", "\"1\"", "null"})
    add(4, "{" + entry("w", "F32", number, 0, 4) + "}");
  add(4, "{" + entry("w", "F32", "1,1,1,1,1,1,1,1", 0, 4) + "}");
  std::string ones = "1";
  for (int i = 1; i < 65; ++i) ones += ",1";
  add(4, "{" + entry("w", "F32", ones, 0, 4) + "}");
  for (const char* name : {"\\\"\\\\\\/\\b\\f\\n\\r\\t", "\\u0000", "\\u00e9\\u4E2D", "\\uD83D\\uDE00", "\\uD800",
                           "\\uDC00", "\\uD83D\\u0041", "\\x", "\\u12", "\xC3\xA9", "\xFF", "\xED\xA0\x80", "\n",
                           "__metadata__", "", "12345678", "123456789abcdef\\n"})
    add(4, "{" + entry(name, "F32", "1", 0, 4) + "}");
  for (const char* metadata :
       {"{}", "null", "[]", "nul", "{\"format\":\"pt\"}", "{\"a\":\"b\",\"c\":\"\\u0041\"}",
        "{\"a\":\"b\",\"\\u0061\":\"c\"}", "{\"a\":1}", "{\"a\":null}", "{\"a\":{}}", "{\"a\"}", "{\"a\":\"b\",}"}) {
    add(0, std::string("{\"__metadata__\":") + metadata + "}");
    add(4, "{" + w + ", \"__metadat\\u0061__\" : " + metadata + " }");
  }
  const std::string fields = "\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]";
  for (const char* extra : {"null",
                            "true",
                            "false",
                            "0",
                            "-0",
                            "-1.5e+10",
                            "1e999",
                            "1e-999",
                            "1E308",
                            "18446744073709551616",
                            "-9223372036854775808",
                            "-9223372036854775809",
                            "01",
                            ".5",
                            "1.",
                            "\"\\u0041\"",
                            "\"\\uD800\"",
                            "[]",
                            "{}",
                            "[1,[2,{\"a\":[3]}]]",
                            "{\"a\":1,\"b\":2}",
                            "{\"a\":1,\"a\":2}",
                            "[[[[[[]]]]]]",
                            "[[[[[[[]]]]]]]",
                            "[1,]",
                            "[",
                            "truefalse"}) {
    add(4, "{\"w\":{\"x\":" + std::string(extra) + "," + fields + "}}");
    add(4, "{\"w\":{" + fields + ",\"x\":" + extra + "}}");
  }
  add(4, "{\"w\":{" + fields + "," + fields + "}}");
  add(4, "{\"w\":{\"x\":0,\"x\":0," + fields + "}}");
  add(4, "{ \"w\" : { \"data_offsets\" : [ 0 , 4 ] , \"shape\" : [ 4 ] , \"d\\u0074ype\" : \"\\u00558\" } }");
  for (const char* missing :
       {"\"dtype\":\"U8\",\"shape\":[4]", "\"dtype\":\"U8\",\"data_offsets\":[0,4]",
        "\"shape\":[4],\"data_offsets\":[0,4]", "\"dtype\":\"F33\",\"shape\":[4],\"data_offsets\":[0,4]",
        "\"dtype\":\"\",\"shape\":[4],\"data_offsets\":[0,4]",
        "\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4,4]",
        "\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,0]", "\"dtype\":\"U8\",\"shape\":4,\"data_offsets\":[0,4]"})
    add(4, "{\"w\":{" + std::string(missing) + "}}");
  std::string many = "{";
  for (int i = 0; i < 200; ++i)
    many += (i ? "," : "") + entry("layers." + std::to_string(i) + ".weight", "U8", "1", i, i + 1);
  add(200, many + "}");
  return inputs;
}

// Each input begins with a byte that says what it is: headers, a listing, an address.
std::vector<std::string> remote_texts() {
  const std::string id(40, 'a'), sha256(64, 'b');
  return {
      std::string("\0", 1) +
          "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-99/1000\r\nContent-Length: 100\r\n",
      std::string("\0", 1) + "HTTP/2 206\ncontent-range: bytes 934443-999999/1000000\netag: \"1\"\n",
      std::string("\0", 1) + "HTTP/1.1 416 x\nContent-Range: bytes */0\n",
      std::string("\0", 1) +
          "HTTP/1.1 429 x\nRetry-After: Wed, 21 Oct 2105 07:28:00 GMT\nDate: Wed, 21 Oct 2105 07:27:00 GMT\n",
      std::string("\0", 1) + "HTTP/1.1 429 x\nRateLimit: \"api\";r=0;t=55\nLink: <https://a/1>; rel=\"next\"\n",
      "\1[{\"type\":\"file\",\"path\":\"a/b.bin\",\"size\":3,\"oid\":\"" + id + "\"}]",
      "\1[{\"type\":\"file\",\"path\":\"c\",\"size\":3,\"oid\":\"" + id + "\",\"lfs\":{\"oid\":\"sha256:" + sha256 +
          "\",\"size\":9}}]",
      "\1[{\"type\":\"directory\",\"path\":\"../x\",\"size\":0,\"oid\":\"\"}]",
      "\2hf://org/name@refs/pr/1/a/b",
      "\2hf://models/org/name@a%2Fb",
      "\2https://huggingface.co/org/name/blob/main/a%20b?download=true",
      "\2https://hub.example/datasets/org/name",
  };
}

std::vector<std::string> shard_indexes() {
  std::vector<std::string> inputs = {"",
                                     "{",
                                     "{}",
                                     "[]",
                                     "null",
                                     "{\"weight_map\":{}}",
                                     "{\"weight_map\":[]}",
                                     "{\"weight_map\":null}",
                                     "{\"weight_map\":{\"w\":1}}",
                                     "{\"weight_map\":{\"w\":\"a\",\"w\":\"b\"}}",
                                     "{\"weight_map\":{\"w\":\"a\",\"\\u0077\":\"b\"}}",
                                     "{\"weight_map\":{},\"weight_map\":{}}",
                                     "{\"weight_map\":{},\"x\":[{\"y\":{\"z\":1,\"z\":2}}]}"};
  for (const char* file :
       {"model-00001-of-00002.safetensors", "..", ".", "../a", "/etc/passwd", "a/b", "a\\\\b", "", "\\u0000",
        "a\\u0000", "\\u002e\\u002e", "\\u002fa", "...", "\\u00e9", "\\uD800", "\\ud83d\\ude00"})
    inputs.push_back("{\"weight_map\":{\"w\":\"" + std::string(file) + "\"}}");
  for (const char* size :
       {"0", "12", "1.2e3", "-1", "1e300", "18446744073709551615", "18446744073709551616", "\"12\"", "null"})
    inputs.push_back("{\"metadata\":{\"total_size\":" + std::string(size) +
                     ",\"a\":\"b\"},\"weight_map\":{\"a\":\"2\",\"b\":\"1\",\"c\":\"2\"}}");
  std::string many = "{\n  \"metadata\": {\n    \"total_size\": 100\n  },\n  \"weight_map\": {";
  for (int i = 0; i < 100; ++i)
    many += (i ? ",\n    \"" : "\n    \"") + std::to_string(i) + "\": \"model-0000" + std::to_string(i % 7) +
            "-of-00007.safetensors\"";
  inputs.push_back(many + "\n  }\n}\n");
  return inputs;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "make_corpus DIR\n");
    return 2;
  }
  try {
    write(fs::path(argv[1]) / "safetensors_header", safetensors_headers());
    write(fs::path(argv[1]) / "shard_index", shard_indexes());
    write(fs::path(argv[1]) / "remote", remote_texts());
    write(fs::path(argv[1]) / "quantized", ballast::fuzz::quantized());
    write(fs::path(argv[1]) / "weight_map", ballast::fuzz::maps());
    write(fs::path(argv[1]) / "zip", ballast::fuzz::zips());
    write(fs::path(argv[1]) / "tar", ballast::fuzz::tars());
    write(fs::path(argv[1]) / "pickle", pickles());
    write(fs::path(argv[1]) / "gguf", ballast::fuzz::ggufs());
    write(fs::path(argv[1]) / "imatrix", ballast::fuzz::imatrices());
    write(fs::path(argv[1]) / "tokenizer", ballast::fuzz::tokenizers());
    write(fs::path(argv[1]) / "packed", ballast::fuzz::packed_tensors());
    write(fs::path(argv[1]) / "legacy_stream", ballast::fuzz::torch_files());
    write(fs::path(argv[1]) / "http_request", ballast::fuzz::http_requests());
    write(fs::path(argv[1]) / "model_card", ballast::fuzz::model_cards());
    write(fs::path(argv[1]) / "model_config", ballast::fuzz::model_configs());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
