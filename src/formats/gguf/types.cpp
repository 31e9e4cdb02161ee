#include "formats/gguf/types.hpp"

#include <array>
#include <string_view>

#include <fmt/format.h>
#include <ballast/error.hpp>

namespace ballast::gguf {
namespace {

constexpr std::uint32_t kKnownIds = 43;   // GGML_TYPE_COUNT of the newest ggml that our table knows
constexpr std::uint32_t kMostIds = 1024;  // forks of ggml count past 200

struct Removed {
  std::uint32_t id;
  std::string_view name;
};
constexpr std::array kRemoved = {
    Removed{4, "Q4_2"},      Removed{5, "Q4_3"},        Removed{31, "Q4_0_4_4"},   Removed{32, "Q4_0_4_8"},
    Removed{33, "Q4_0_8_8"}, Removed{36, "IQ4_NL_4_4"}, Removed{37, "IQ4_NL_4_8"}, Removed{38, "IQ4_NL_8_8"},
};

constexpr std::int16_t kNone = -1;

const std::array<std::int16_t, kKnownIds>& dtypes_by_id() {
  static const auto table = [] {
    std::array<std::int16_t, kKnownIds> dtypes;
    dtypes.fill(kNone);
    for (const DTypeInfo& type : all_dtypes()) {
      const auto id = static_cast<std::size_t>(type.ggml_id);
      if (type.ggml_id >= 0 && id < dtypes.size()) dtypes[id] = static_cast<std::int16_t>(type.dtype);
    }
    return dtypes;
  }();
  return table;
}

}  // namespace

std::optional<DType> dtype_from_ggml(std::uint32_t id) noexcept {
  if (id >= kKnownIds || dtypes_by_id()[id] == kNone) return std::nullopt;
  return static_cast<DType>(dtypes_by_id()[id]);
}

void check_unknown_type(std::uint32_t id) {
  for (const Removed& removed : kRemoved) {
    if (id != removed.id) continue;
    throw Error(Errc::unsupported, fmt::format("type {} was {}, which ggml has removed", id, removed.name))
        .hint("get the model again in another quantization");
  }
  if (id < kKnownIds || id >= kMostIds) throw Error(Errc::malformed, fmt::format("type {} is none that ggml has", id));
}

std::string unknown_type_name(std::uint32_t id) { return fmt::format("GGML_{}", id); }

}  // namespace ballast::gguf
