// TokenizerFiles: the JSON files of a tokenizer, each read once, when it is first asked for.
//
// It keeps what it has read, so views of its texts live as long as it does. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ballast/error.hpp>
#include <ballast/json.hpp>

#include "llamacpp/model_folder.hpp"
#include "llamacpp/tokenizer/tokenizer_json.hpp"

namespace ballast::llamacpp {

class TokenizerFiles {
 public:
  explicit TokenizerFiles(const ModelFolder& folder) : folder_(folder) {}

  const ModelFolder& folder() const noexcept { return folder_; }
  bool has(const std::string& file) const { return folder_.has(file); }
  std::optional<Json> json(const std::string& file) const;  // any other file; nothing if it is missing

  // Null if the file is missing. Errc::malformed if its root is not an object.
  const Json* tokenizer() const { return tokenizer_json() ? &tokenizer_json()->root() : nullptr; }
  const Json* settings() const { return object(settings_, "tokenizer_config.json"); }
  const Json* config() const { return object(config_, "config.json"); }  // as it is written

  // The same tokenizer.json with its vocabulary and its merges, which are empty in tokenizer(). Null if it is missing.
  const TokenizerJson* tokenizer_json() const;

  // A member of tokenizer_config.json, or null.
  const Json* setting(std::string_view key) const { return settings() ? settings()->find(key) : nullptr; }
  // A member of tokenizer.json, or null.
  const Json* part(std::string_view key) const { return tokenizer() ? tokenizer()->find(key) : nullptr; }

  // An id of at most 32 bits. Errc::malformed for all else.
  std::uint64_t token_id(const Json& value, std::string_view token, const std::string& file) const;

  // Sorts the tokens by id. Errc::malformed if two texts have one id.
  using TokenIds = std::vector<std::pair<std::string_view, std::uint64_t>>;
  void require_own_ids(TokenIds& tokens, const std::string& file) const;

  // For complaints about a file of the folder.
  Error error(Errc code, std::string message, const std::string& file) const;
  Error missing(const std::string& file) const;

 private:
  struct Slot {
    bool is_read = false;
    std::optional<Json> json;
  };
  const Json* object(Slot& slot, const std::string& file) const;

  const ModelFolder& folder_;
  mutable bool has_read_tokenizer_ = false;
  mutable std::optional<TokenizerJson> tokenizer_;
  mutable Slot settings_, config_;
};

// The text of a value that is a text, or an object with a text as its "content". Empty for all else.
std::string_view token_text(const Json* value);

// Null for a missing value and for null itself.
const Json* non_null(const Json* value);
bool is_true(const Json* value);
// The lines of a text as Python reads it: "\r\n" and "\r" are "\n".
std::string with_plain_newlines(std::string text);

}  // namespace ballast::llamacpp
