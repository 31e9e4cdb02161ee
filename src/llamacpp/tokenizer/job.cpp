#include "llamacpp/tokenizer/job.hpp"

#include <fmt/format.h>

namespace ballast::llamacpp {
namespace {

constexpr std::uint64_t kMostTokens = 1 << 22;  // sixteen times as many as Gemma has

}  // namespace

std::optional<std::uint64_t> TokenizerJob::number(std::string_view key) const {
  const Json* value = config.find(key);
  if (!value || !value->is_integer() || value->number() < 0) return std::nullopt;
  return value->count();
}

std::uint64_t TokenizerJob::checked_size(std::uint64_t size) const {
  if (size <= kMostTokens) return size;
  throw files.error(Errc::limit,
                    fmt::format("a vocabulary of {} tokens is not plausible; {} are the most", size, kMostTokens),
                    "config.json");
}

std::optional<std::uint64_t> TokenizerJob::vocab_size() const {
  const auto size = number("vocab_size");
  if (!size) return std::nullopt;
  const std::uint64_t multiple = checked_size(vocab_multiple);
  if (multiple == 0) throw files.error(Errc::malformed, "pad_vocab_size_multiple is 0", "config.json");
  return checked_size((checked_size(*size) + multiple - 1) / multiple * multiple);
}

void TokenizerJob::write_tokens(std::string_view model, std::string_view pre, const TokenList& tokens,
                                bool with_scores) {
  set("model", model);
  if (!pre.empty()) set("pre", pre);
  out.set(MetadataEntry::strings("tokenizer.ggml.tokens", tokens.texts));
  if (with_scores) out.set(MetadataEntry::numbers<float>("tokenizer.ggml.scores", tokens.scores));
  out.set(MetadataEntry::numbers<std::int32_t>("tokenizer.ggml.token_type", tokens.types));
}

void TokenizerJob::write_type_count() {
  set("token_type_count", static_cast<std::uint32_t>(number("type_vocab_size").value_or(1)));
}

void TokenizerJob::write_prefix_space() {
  const Json* setting = files.setting("add_prefix_space");
  if (setting && setting->is_bool()) set("add_space_prefix", setting->boolean());
}

}  // namespace ballast::llamacpp
