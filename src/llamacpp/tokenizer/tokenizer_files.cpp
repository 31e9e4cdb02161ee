#include "llamacpp/tokenizer/tokenizer_files.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/text.hpp"

namespace ballast::llamacpp {

const Json* TokenizerFiles::object(Slot& slot, const std::string& file) const {
  if (!slot.is_read) {
    slot.json = json(file);
    if (slot.json && !slot.json->is_object()) throw error(Errc::malformed, "the file is not a JSON object", file);
    slot.is_read = true;
  }
  return slot.json ? &*slot.json : nullptr;
}

const TokenizerJson* TokenizerFiles::tokenizer_json() const {
  if (!std::exchange(has_read_tokenizer_, true)) tokenizer_ = TokenizerJson::read(folder_);
  return tokenizer_ ? &*tokenizer_ : nullptr;
}

std::optional<Json> TokenizerFiles::json(const std::string& file) const { return folder_.json(file); }

std::uint64_t TokenizerFiles::token_id(const Json& value, std::string_view token, const std::string& file) const {
  constexpr std::int64_t kGreatest = 0xFFFFFFFF;
  if (value.is_integer() && value.number() >= 0 && value.number() <= static_cast<double>(kGreatest))
    return value.count();
  throw error(Errc::malformed, "the id of token " + quote(token) + " is no number of at most 32 bits", file);
}

void TokenizerFiles::require_own_ids(TokenIds& tokens, const std::string& file) const {
  std::ranges::sort(tokens, {}, [](const auto& token) { return std::pair(token.second, token.first); });
  const auto twice = std::ranges::adjacent_find(
      tokens, [](const auto& a, const auto& b) { return a.second == b.second && a.first != b.first; });
  if (twice == tokens.end()) return;
  throw error(Errc::malformed,
              fmt::format("the tokens {} and {} both have id {}", quote(twice->first), quote((twice + 1)->first),
                          twice->second),
              file);
}

Error TokenizerFiles::error(Errc code, std::string message, const std::string& file) const {
  return Error(code, std::move(message)).in(folder_.path(file));
}

Error TokenizerFiles::missing(const std::string& file) const {
  return Error(Errc::not_found, "the model's folder has no " + file + ", which its tokenizer needs")
      .in(folder_.path(file))
      .hint("fetch the tokenizer's files, too; they lie beside the weights in the model's repository");
}

std::string_view token_text(const Json* value) {
  if (value && value->is_object()) value = value->find("content");
  return value && value->is_text() ? std::string_view(value->text()) : std::string_view();
}

const Json* non_null(const Json* value) { return value && !value->is_null() ? value : nullptr; }

bool is_true(const Json* value) { return value && value->is_bool() && value->boolean(); }

std::string with_plain_newlines(std::string text) {
  std::size_t done = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    text[done++] = text[i] == '\r' ? '\n' : text[i];
  }
  text.resize(done);
  return text;
}

}  // namespace ballast::llamacpp
