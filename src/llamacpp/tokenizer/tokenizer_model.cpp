#include "llamacpp/tokenizer/tokenizer_model.hpp"

#include <string_view>

#include <fmt/format.h>

#include "core/text.hpp"

namespace ballast::llamacpp {
namespace {

constexpr std::string_view kModelNames[] = {"BPE", "WordPiece", "Unigram"};  // by TokenizerModel

// Older files do not say it. Empty if what they have fits several kinds.
std::string_view model_name(const Json& model, bool has_scores) {
  if (const std::string_view type = token_text(model.find("type")); !type.empty()) return type;
  if (has_scores) return "Unigram";
  return model.find("merges") ? "BPE" : "";
}

}  // namespace

void require_model(const TokenizerFiles& files, TokenizerModel wanted) {
  const Json* model = files.part("model");
  if (!model) return;
  const Json* vocabulary = model->find("vocab");
  const bool has_scores = vocabulary && vocabulary->is_list();  // [ [token, score], … ]
  const std::string_view name = model_name(*model, has_scores);
  const std::string_view wanted_name = kModelNames[static_cast<std::size_t>(wanted)];
  if (!name.empty() && name != wanted_name)
    throw files.error(Errc::unsupported,
                      fmt::format("the tokenizer is a model of the kind {}, and this class of models has {}",
                                  quote(name), quote(wanted_name)),
                      "tokenizer.json");
  if (has_scores != (wanted == TokenizerModel::unigram))
    throw files.error(Errc::malformed, fmt::format("the vocabulary is not one of the kind {}", quote(wanted_name)),
                      "tokenizer.json");
}

}  // namespace ballast::llamacpp
