#include "formats/torch/zip_names.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/name_hash.hpp"
#include "core/text.hpp"

namespace ballast::torch {
namespace {

constexpr std::string_view kPickle = "data.pkl";

// The names that the format itself uses; the last ones are folders.
constexpr std::array<std::string_view, 9> kReserved = {kPickle,  "constants.pkl", "byteorder", "version", "data/",
                                                       ".data/", "constants/",    "code/",     "extra/"};

// The name behind "NAME/".
std::string_view inside(std::string_view name) {
  const auto slash = name.find('/');
  return slash == name.npos ? name : name.substr(slash + 1);
}

bool is_reserved_but_for_case(std::string_view name) {
  const std::string lower = lower_case(name);
  return std::ranges::any_of(kReserved, [&](std::string_view reserved) {
    const bool is_it = reserved.ends_with('/') ? lower.starts_with(reserved) : lower == reserved;
    return is_it && !name.starts_with(reserved);
  });
}

}  // namespace

std::vector<archive::ZipFinding> find_names_by_case(const archive::Zip& zip) {
  const auto has_capital = [](const archive::ZipMember& member) {
    return std::ranges::any_of(member.name, [](char c) { return c >= 'A' && c <= 'Z'; });
  };
  if (std::ranges::none_of(zip.members, has_capital)) return {};  // the usual case
  const bool is_torch = std::ranges::any_of(
      zip.members, [](const archive::ZipMember& member) { return lower_case(inside(member.name)) == kPickle; });
  std::vector<archive::ZipFinding> findings;
  if (!is_torch) return findings;

  NameMap<std::string_view> seen;
  for (const archive::ZipMember& member : zip.members) {
    const auto [other, is_new] = seen.try_emplace(lower_case(member.name), member.name);
    if (!is_new && other->second != member.name) {
      findings.push_back(
          {member.header_offset,
           fmt::format("members {} and {} differ only in the case of letters, which PyTorch's reader does "
                       "not see",
                       quote(other->second), quote(member.name))});
    } else if (is_reserved_but_for_case(inside(member.name))) {
      findings.push_back(
          {member.header_offset, fmt::format("PyTorch's reader takes member {} for {}", quote(member.name),
                                             quote(lower_case(inside(member.name))))});
    }
  }
  return findings;
}

}  // namespace ballast::torch
