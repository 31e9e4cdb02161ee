#include "remedies.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <set>

#include "arguments.hpp"

namespace ballast::cli {
namespace {

struct Row {
  Remedy remedy;
  std::string_view words;             // a flag, or more than that
  std::string_view verb = "convert";  // that has the flag, if the verb that runs does not have it
};

// In the order of Remedy.
constexpr std::array kRows = {
    Row{Remedy::adapter_name, "--name", "adapter extract"},
    Row{Remedy::allow_dangerous, "--allow-dangerous"},
    Row{Remedy::allow_empty, "--allow-empty"},
    Row{Remedy::allow_requantize, "--allow-requantize"},
    Row{Remedy::architecture, "--architecture"},
    Row{Remedy::base_vocabulary, "--base-vocabulary", "adapter extract"},
    Row{Remedy::cast, "--dtype"},
    Row{Remedy::cast_by_name, "--dtype"},
    Row{Remedy::cat, "ballast cat T NAME -o -"},
    Row{Remedy::compress, "--compress"},
    Row{Remedy::dense, "--dense"},
    Row{Remedy::dequantize, "--dequantize"},
    Row{Remedy::dialect, "--to", "adapter convert"},
    Row{Remedy::diff, "ballast diff"},
    Row{Remedy::exclude, "--exclude"},
    Row{Remedy::fetch, "ballast fetch"},
    Row{Remedy::fetch_folder, "-o DIR", "fetch"},
    Row{Remedy::hash_file, "ballast hash TARGET > FILE"},
    Row{Remedy::heads, "--heads"},
    Row{Remedy::ignore_mismatched, "--ignore-mismatched", "adapter inject"},
    Row{Remedy::imatrix, "--imatrix"},
    Row{Remedy::include, "--include"},
    Row{Remedy::info, "ballast info"},
    Row{Remedy::initial_adapter, "--initial-adapter", "adapter merge"},
    Row{Remedy::keep_values, "--keep-values"},
    Row{Remedy::kv_heads, "--kv-heads"},
    Row{Remedy::lenient, "--lenient"},
    Row{Remedy::limit, "--limit"},
    Row{Remedy::limits, "ballast --limits"},
    Row{Remedy::ls, "ballast ls"},
    Row{Remedy::manifest, "ballast convert IN OUT --manifest FILE"},
    Row{Remedy::max_shard_bytes, "--max-shard-size"},
    Row{Remedy::meta_get, "ballast meta get TARGET"},
    Row{Remedy::metadata, "ballast convert IN OUT.safetensors --metadata KEY=VALUE"},
    Row{Remedy::names, "--names"},
    Row{Remedy::output, "-o"},
    Row{Remedy::overwrite, "--force"},
    Row{Remedy::plain_http, "--plain-http"},
    Row{Remedy::pre_tokenizer, "--pre-tokenizer"},
    Row{Remedy::raw_blocks, "--raw"},
    Row{Remedy::rename, "--rename"},
    Row{Remedy::root, "--root"},
    Row{Remedy::save_embeddings, "--save-embeddings", "adapter extract"},
    Row{Remedy::scan, "ballast scan"},
    Row{Remedy::stats, "ballast stats"},
    Row{Remedy::strict, "--strict"},
    Row{Remedy::strip_prefix, "--strip-prefix"},
    Row{Remedy::tensor_type, "--tensor-type"},
    Row{Remedy::weights_only, "--weights-only"},
};

constexpr bool is_in_enum_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (static_cast<std::size_t>(kRows[i].remedy) != i) return false;
  return kRows.size() == kRemedyCount;
}
static_assert(is_in_enum_order(), "flag_of() indexes the table by the remedy");

thread_local const Advice::Words* words_of_host = nullptr;

// The options of the verb that runs. It stays after the verb, whose errors are said last.
thread_local std::set<std::string, std::less<>> options_of_verb;

constexpr std::string_view kTakesNames = " NAME=";  // behind an option whose value may begin with names of tensors

// Whether the verb that runs has this flag; if no verb is known, it may have each.
bool has_option(Remedy remedy, std::string_view flag) {
  if (options_of_verb.empty()) return true;
  const std::string_view name = flag.substr(0, flag.find(' '));
  return options_of_verb.contains(remedy == Remedy::cast_by_name ? std::string(name).append(kTakesNames)
                                                                 : std::string(name));
}

std::string flag_of(Remedy remedy, std::string_view argument) {
  const Row& row = kRows[static_cast<std::size_t>(remedy)];
  std::string flag(row.words);
  if (!argument.empty()) flag.append(" ").append(argument) += remedy == Remedy::limit ? "=VALUE" : "";
  const std::string_view other_verb = other_verb_for(remedy);
  return other_verb.empty() ? flag : flag.append(" of ballast ").append(other_verb);
}

}  // namespace

std::string_view other_verb_for(Remedy remedy) {
  const Row& row = kRows[static_cast<std::size_t>(remedy)];
  return row.words.starts_with('-') && !has_option(remedy, row.words) ? row.verb : std::string_view();
}

void word_for(const Command& verb) {
  options_of_verb.clear();
  for (const Command* command = &verb; command != nullptr; command = command->parent) {
    for (const Argument& argument : command->arguments) {
      if (argument.is_positional()) continue;
      options_of_verb.insert("--" + argument.long_name);
      if (!argument.short_name.empty()) options_of_verb.insert("-" + argument.short_name);
      if (argument.value_name.starts_with("[GLOB=]"))
        options_of_verb.insert("--" + argument.long_name + std::string(kTakesNames));
    }
  }
}

Wording::Wording(const Advice::Words& words) : before_(words_of_host) {
  if (words) words_of_host = &words;
}

Wording::~Wording() { words_of_host = before_; }

std::string worded(const Advice& advice) {
  return words_of_host == nullptr ? advice.text(flag_of) : advice.text(*words_of_host);
}

std::string text_of(const Note& note) { return note.hint.empty() ? note.text : note.text + "; " + worded(note.hint); }

}  // namespace ballast::cli
