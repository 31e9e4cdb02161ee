#include "stores/hub/settings.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace ballast::hub {
namespace {

constexpr std::string_view kEndpoint = "https://huggingface.co";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string first_of(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (std::string value = variable(name); !value.empty()) return value;
  }
  return {};
}

bool is_true(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text == "1" || text == "ON" || text == "YES" || text == "TRUE";
}

std::string home() { return variable("HOME"); }

bool is_name_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// "$NAME" or "${NAME}" at the beginning of a text: how long it is, and the name.
std::pair<std::size_t, std::string> variable_at(std::string_view text) {
  if (text.starts_with("${")) {
    const std::size_t end = text.find('}');
    if (end != std::string_view::npos) return {end + 1, std::string(text.substr(2, end - 2))};
  }
  const auto end = std::find_if_not(text.begin() + 1, text.end(), is_name_letter);
  return {static_cast<std::size_t>(end - text.begin()), std::string(text.begin() + 1, end)};
}

// "~/models", "$SCRATCH/hub". A variable that is not set stays as it is written.
std::string expanded(std::string path) {
  if (path == "~" || path.starts_with("~/")) path.replace(0, 1, home());
  std::string result;
  for (std::string_view rest = path; !rest.empty();) {
    const std::size_t plain = std::min(rest.find('$'), rest.size());
    result += rest.substr(0, plain);
    rest.remove_prefix(plain);
    if (rest.empty()) break;
    const auto [size, name] = variable_at(rest);
    const char* value = std::getenv(name.c_str());
    result += value != nullptr ? std::string_view(value) : rest.substr(0, size);
    rest.remove_prefix(size);
  }
  return result;
}

std::string home_of_hub() {
  if (std::string given = variable("HF_HOME"); !given.empty()) return expanded(given);
  if (std::string caches = variable("XDG_CACHE_HOME"); !caches.empty()) return expanded(caches) + "/huggingface";
  return home() + "/.cache/huggingface";
}

std::string without_space(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isspace(c) != 0; });
  return text;
}

std::string token_of_user() {
  if (is_true(variable("HF_HUB_DISABLE_IMPLICIT_TOKEN"))) return {};
  if (std::string token = without_space(first_of({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})); !token.empty()) return token;
  const std::string given = variable("HF_TOKEN_PATH");
  std::ifstream file(given.empty() ? home_of_hub() + "/token" : expanded(given));
  std::string text;
  std::getline(file, text);
  return without_space(std::move(text));
}

unsigned seconds(const char* name, unsigned otherwise) {
  const double value = std::strtod(variable(name).c_str(), nullptr);
  return value >= 1 && value < 1e6 ? static_cast<unsigned>(value) : otherwise;
}

}  // namespace

Settings settings_of(const HubOptions& options) {
  Settings settings;
  settings.endpoint = !options.endpoint.empty() ? options.endpoint : variable("HF_ENDPOINT");
  if (settings.endpoint.empty()) settings.endpoint = kEndpoint;
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  const std::string cache = first_of({"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"});
  settings.cache = !options.cache_dir.empty() ? options.cache_dir
                   : !cache.empty()           ? expanded(cache)
                                              : home_of_hub() + "/hub";
  settings.token = !options.token.empty() ? without_space(options.token) : token_of_user();
  settings.makes_links = !is_true(variable("HF_HUB_DISABLE_SYMLINKS"));
  const std::string hub = variable("HF_HUB_OFFLINE");
  const char* decides = hub.empty() ? "TRANSFORMERS_OFFLINE" : "HF_HUB_OFFLINE";
  const bool says_so = is_true(variable(decides));
  settings.is_offline = options.offline || says_so;
  settings.offline_because = says_so && !options.offline ? std::string(decides) + " is set" : "this is offline";
  return settings;
}

HttpOptions http_options(HttpOptions given) {
  const HttpOptions usual;
  if (given.idle_seconds == usual.idle_seconds)
    given.idle_seconds = seconds("HF_HUB_DOWNLOAD_TIMEOUT", usual.idle_seconds);
  if (given.connect_milliseconds == usual.connect_milliseconds)
    given.connect_milliseconds = 1000 * seconds("HF_HUB_ETAG_TIMEOUT", usual.connect_milliseconds / 1000);
  return given;
}

}  // namespace ballast::hub
