#include "stores/hub/address.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/text.hpp"
#include "net/addresses.hpp"

namespace ballast::hub {
namespace {

constexpr std::string_view kScheme = "hf://";
constexpr std::array<std::string_view, 3> kHosts = {"https://huggingface.co", "https://www.huggingface.co",
                                                    "https://hf.co"};
constexpr std::array<std::string_view, 4> kOtherKinds = {"datasets", "spaces", "kernels", "buckets"};
constexpr std::array<std::string_view, 5> kPages = {"tree", "blob", "resolve", "raw", "blame"};
// First components of the site's own pages, which are no organisations.
constexpr std::array<std::string_view, 10> kSitePages = {"api",  "docs",  "blog",    "settings",      "models",
                                                         "join", "login", "pricing", "organizations", "collections"};

template <std::size_t size>
bool is_among(const std::array<std::string_view, size>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::vector<std::string_view> components_of(std::string_view path) {
  std::vector<std::string_view> components;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    components.push_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return components;
}

std::string joined(const std::vector<std::string_view>& components, std::size_t from) {
  std::string path;
  for (std::size_t i = from; i < components.size(); ++i) path.append(i == from ? "" : "/").append(components[i]);
  return path;
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string percent_decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape =
        text[i] == '%' && i + 2 < text.size() && digit_of(text[i + 1]) >= 0 && digit_of(text[i + 2]) >= 0;
    if (!is_escape) {
      result += text[i];
      continue;
    }
    result += static_cast<char>(digit_of(text[i + 1]) * 16 + digit_of(text[i + 2]));
    i += 2;
  }
  return result;
}

[[noreturn]] void refuse(std::string_view target, std::string_view why) {
  throw Error(Errc::invalid_argument, std::string(why))
      .in(net::without_secrets(std::string(target)))
      .hint("hf://org/name, hf://org/name@revision, hf://org/name/path/of/a/file");
}

// How many components a revision takes: refs/pr/1 and refs/convert/parquet are taken whole.
std::size_t components_of_revision(const std::vector<std::string_view>& components, std::size_t at) {
  const bool is_ref = at + 2 < components.size() && components[at] == "refs" &&
                      (components[at + 1] == "pr" || components[at + 1] == "convert");
  return is_ref ? 3 : 1;
}

HubAddress checked(std::string_view target, HubAddress address) {
  if (!is_repository_name(address.repository))
    refuse(target, quote(address.repository) + " is no name of a repository");
  if (!address.path.empty() && !is_inner_path(address.path)) refuse(target, "the path leads out of the repository");
  const bool is_revision = address.revision.empty() || is_inner_path(address.revision);
  if (!is_revision) refuse(target, quote(address.revision) + " is no revision");
  return address;
}

void refuse_other_kinds(std::string_view target, const std::vector<std::string_view>& components) {
  if (components.empty() || !is_among(kOtherKinds, components[0])) return;
  throw Error(Errc::unsupported, fmt::format("Ballast opens models, and this is one of the Hub's {}", components[0]))
      .in(net::without_secrets(std::string(target)));
}

HubAddress parse_hf(std::string_view target) {
  std::string_view rest = target.substr(kScheme.size());
  while (rest.ends_with('/')) rest.remove_suffix(1);
  auto components = components_of(rest);
  refuse_other_kinds(target, components);
  if (!components.empty() && components[0] == "models") components.erase(components.begin());
  if (components.size() < 2) refuse(target, "this names no repository");
  HubAddress address;
  const std::size_t at = components[1].find('@');
  address.repository = fmt::format("{}/{}", components[0], components[1].substr(0, at));
  std::size_t path_from = 2;
  if (at != std::string_view::npos) {
    std::vector<std::string_view> revision = components;
    revision[1].remove_prefix(at + 1);
    const std::size_t count = components_of_revision(revision, 1);
    revision.resize(1 + count);
    address.revision = percent_decoded(joined(revision, 1));
    if (address.revision.empty()) refuse(target, "the revision is empty");
    path_from = 1 + count;
  }
  address.path = joined(components, path_from);
  return checked(target, std::move(address));
}

std::optional<HubAddress> parse_web(std::string_view target, std::string_view endpoint) {
  const auto rest_behind = [&](std::string_view host) -> std::optional<std::string_view> {
    if (host.empty() || !target.starts_with(host) || !target.substr(host.size()).starts_with('/')) return std::nullopt;
    return target.substr(host.size() + 1);
  };
  std::optional<std::string_view> rest = rest_behind(endpoint);
  for (const std::string_view host : kHosts)
    if (!rest) rest = rest_behind(host);
  if (!rest) return std::nullopt;
  std::string_view path = rest->substr(0, rest->find_first_of("?#"));
  while (path.ends_with('/')) path.remove_suffix(1);
  const auto components = components_of(path);
  refuse_other_kinds(target, components);
  if (components.size() < 2 || is_among(kSitePages, components[0])) return std::nullopt;
  HubAddress address;
  address.repository = fmt::format("{}/{}", components[0], components[1]);
  if (components.size() > 2) {
    if (!is_among(kPages, components[2]) || components.size() < 4) return std::nullopt;
    const std::size_t count = components_of_revision(components, 3);
    std::vector<std::string_view> revision(components.begin(),
                                           components.begin() + static_cast<std::ptrdiff_t>(3 + count));
    address.revision = percent_decoded(joined(revision, 3));
    address.path = percent_decoded(joined(components, 3 + count));
  }
  return checked(target, std::move(address));
}

}  // namespace

const std::string& HubAddress::revision_or_main() const {
  static const std::string main = "main";
  return revision.empty() ? main : revision;
}

std::string HubAddress::text() const {
  std::string text = std::string(kScheme) + repository;
  const bool is_whole_ref = revision.starts_with("refs/pr/") || revision.starts_with("refs/convert/");
  if (!revision.empty()) text += "@" + percent_encoded(revision, is_whole_ref);
  if (!path.empty()) text += "/" + path;
  return text;
}

std::optional<HubAddress> parse_address(std::string_view target, std::string_view endpoint) {
  if (target.starts_with(kScheme)) return parse_hf(target);
  return parse_web(target, endpoint);
}

bool is_repository_name(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || text.find('/', slash + 1) != std::string_view::npos) return false;
  const auto is_part = [](std::string_view part) {
    const auto is_letter = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.'; };
    const auto is_edge = [](char c) { return c == '-' || c == '.'; };
    return !part.empty() && part.size() <= 96 && std::all_of(part.begin(), part.end(), is_letter) &&
           !is_edge(part.front()) && !is_edge(part.back());
  };
  const bool is_ambiguous = text.find("--") != std::string_view::npos || text.find("..") != std::string_view::npos;
  return is_part(text.substr(0, slash)) && is_part(text.substr(slash + 1)) && !is_ambiguous && !text.ends_with(".git");
}

bool is_inner_path(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.back() == '/' || path.size() > 4096) return false;
  const auto is_odd = [](unsigned char c) { return c < 0x20 || c == 0x7F || c == '\\'; };
  if (std::any_of(path.begin(), path.end(), is_odd)) return false;
  const auto components = components_of(path);
  return std::all_of(components.begin(), components.end(), [](std::string_view component) {
    return !component.empty() && component != "." && component != ".." && component.size() <= 255;
  });
}

bool is_commit(std::string_view revision) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return revision.size() == 40 && std::all_of(revision.begin(), revision.end(), is_digit);
}

std::string percent_encoded(std::string_view text, bool keeps_slashes) {
  constexpr std::string_view kPlain = "-._~";
  std::string result;
  for (const char c : text) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || kPlain.find(c) != std::string_view::npos;
    if (is_plain || (c == '/' && keeps_slashes))
      result += c;
    else
      result += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return result;
}

}  // namespace ballast::hub
