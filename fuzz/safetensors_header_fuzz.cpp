// The header parser against a second opinion: simdjson's DOM and the rules of the format, written once more without any
// thought of speed.
//
//   If the parser reads a header, the second opinion reads it too, and both see the same names, dtypes, shapes, offsets
//   and metadata.
//   If the second opinion reads a header, the parser reads it too, or refuses it for one of its deliberate reasons.
//
// The first byte of an input is how many bytes of data follow the header, from 0 to 255; the rest is the header.
#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ballast/error.hpp>

#include "formats/safetensors/header.hpp"
#include "second_opinion.hpp"

namespace {

namespace dom = simdjson::dom;
using ballast::Errc;
using ballast::Error;

struct TensorSeen {
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin, end;
  friend bool operator==(const TensorSeen&, const TensorSeen&) = default;
};

struct HeaderSeen {
  std::map<std::string, TensorSeen> tensors;
  std::map<std::string, std::string> metadata;
  friend bool operator==(const HeaderSeen&, const HeaderSeen&) = default;
};

const std::map<std::string_view, std::uint64_t> kBits = {
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
    {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
    {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
    {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}};

bool is_whole_number(dom::element value, std::uint64_t& number) { return value.get(number) == simdjson::SUCCESS; }

std::optional<TensorSeen> read_tensor(dom::element entry) {
  dom::object object;
  dom::array shape, offsets;
  std::string_view dtype;
  if (entry.get(object) != simdjson::SUCCESS || object["dtype"].get(dtype) != simdjson::SUCCESS ||
      !kBits.contains(dtype))
    return {};
  if (object["shape"].get(shape) != simdjson::SUCCESS || object["data_offsets"].get(offsets) != simdjson::SUCCESS)
    return {};
  TensorSeen seen{std::string(dtype), {}, 0, 0};
  for (const dom::element dim : shape) {
    if (!is_whole_number(dim, seen.shape.emplace_back())) return {};
  }
  if (offsets.size() != 2 || !is_whole_number(offsets.at(0).value(), seen.begin) ||
      !is_whole_number(offsets.at(1).value(), seen.end))
    return {};

  // Computed in 128 bits, in which no count that passes can overflow.
  unsigned __int128 count = 1;
  for (const std::uint64_t dim : seen.shape) {
    count *= dim;
    if (count > UINT64_MAX) return {};
  }
  const unsigned __int128 bits = count * kBits.at(dtype);
  if (bits % 8 != 0 || seen.end < seen.begin || bits / 8 != seen.end - seen.begin) return {};
  return seen;
}

std::optional<HeaderSeen> second_opinion(dom::parser& parser, const std::string& text, std::uint64_t data_bytes) {
  dom::element document;
  dom::object root;
  if (parser.parse(text).get(document) != simdjson::SUCCESS || document.get(root) != simdjson::SUCCESS) return {};
  if (has_a_key_twice(document)) return {};
  HeaderSeen seen;
  for (const auto& [key, value] : root) {
    if (key == "__metadata__") {
      dom::object metadata;
      if (value.is_null()) continue;
      if (value.get(metadata) != simdjson::SUCCESS) return {};
      for (const auto& [name, words] : metadata) {
        std::string_view string;
        if (words.get(string) != simdjson::SUCCESS) return {};
        seen.metadata.emplace(std::string(name), string);
      }
    } else {
      const auto tensor = read_tensor(value);
      if (!tensor) return {};
      seen.tensors.emplace(std::string(key), *tensor);
    }
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places;
  for (const auto& [name, tensor] : seen.tensors) places.emplace_back(tensor.begin, tensor.end);
  std::sort(places.begin(), places.end());
  std::uint64_t at = 0;
  for (const auto& [begin, end] : places) {
    if (begin != at || end > data_bytes) return {};
    at = end;
  }
  return seen;
}

HeaderSeen seen_by_us(const ballast::safetensors::Header& header) {
  HeaderSeen seen;
  seen.metadata.insert(header.metadata.begin(), header.metadata.end());
  for (const auto& [name, tensor] : header.tensors) {
    seen.tensors.emplace(name, TensorSeen{std::string(ballast::name(tensor.dtype())),
                                          {tensor.shape().begin(), tensor.shape().end()},
                                          tensor.offset(),
                                          tensor.offset() + tensor.nbytes()});
  }
  return seen;
}

[[noreturn]] void fail(const char* what, const std::string& why = {}) {
  std::fprintf(stderr, "%s %s\n", what, why.c_str());
  std::abort();
}

void require(bool condition, const char* what, const std::string& why = {}) {
  if (!condition) fail(what, why);
}

// Whether only our parser refuses the header, for a reason that docs/formats/safetensors.md gives.
bool is_on_purpose(const Error& error, const std::string& text) {
  if (error.code() == Errc::limit) return true;  // rank, number of tensors
  const auto says = [&](const char* reason) { return error.message().find(reason) != std::string::npos; };
  if (says("must be a whole number")) return text.compare(*error.offset() - 8, 2, "-0") == 0;  // the DOM reads 0
  return says("nested deeper than") || says("a number does not fit 64 bits");
}

// Checks the rules that hold for every header that is read, whatever the second opinion says.
void check_invariants(const ballast::safetensors::Header& header, const std::string& text, std::uint64_t data_bytes) {
  std::uint64_t at = 0;
  for (const auto& [name, tensor] : header.tensors) {
    require(tensor.offset() == at, "a hole, an overlap, or the wrong order");
    at += tensor.nbytes();
    require(header.tensors.find(name) == &tensor, "a name that does not lead to its tensor");
  }
  require(at == header.data_end && at <= data_bytes, "the data end elsewhere");
  const auto [begin, end] = header.metadata_text;
  require(begin <= end && end <= text.size(), "metadata outside of the text");
  if (begin == end) require(header.metadata.empty(), "metadata from nowhere");
  if (begin != end)
    require(text[begin] == '"' && (text[end - 1] == '}' || text[end - 1] == 'l'), "metadata cut wrongly");
}

void check_complaint(const Error& error, const std::string& text) {
  require(error.code() == Errc::malformed || error.code() == Errc::limit || error.code() == Errc::unsupported,
          "an odd kind of error", error.what());
  require(error.offset() && *error.offset() >= 8 && *error.offset() <= 8 + text.size(), "a byte outside of the header",
          error.what());
  require(!error.message().empty() && error.message().size() < 2000, "a message that nobody would read", error.what());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint64_t data_bytes = data[0];
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);

  std::optional<HeaderSeen> ours;
  std::optional<Error> error;
  try {
    const auto header = ballast::safetensors::parse_header(std::make_shared<ballast::PaddedText>(text),
                                                           ballast::meta_storage(data_bytes), {});
    check_invariants(header, text, data_bytes);
    ours = seen_by_us(header);
  } catch (const Error& thrown) {
    error = thrown;
    check_complaint(thrown, text);
  }

  dom::parser parser;
  const auto theirs = second_opinion(parser, text, data_bytes);
  if (ours) {
    require(theirs.has_value(), "we read what the second opinion refuses");
    require(*ours == *theirs, "both read it, but not alike");
  } else if (theirs) {
    require(is_on_purpose(*error, text), "we refuse what the second opinion reads:", error->what());
  }
  return 0;
}
