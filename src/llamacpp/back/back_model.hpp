// BackModel: a config.json that is being made of what a GGUF says.
//
// The keys of an architecture (key_tables.cpp) are read backwards: a row that names values of config.json gives the
// name that the class has, and every formula has its inverse. What the keys do not say follows from the class
// (classes.cpp) or from the tensors (tensor_signs.cpp). In the end the way there is gone again, and what does not come
// out as it was is noted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ballast/json.hpp>

#include "llamacpp/back/facts.hpp"
#include "llamacpp/keys/key_rows.hpp"

namespace ballast::llamacpp::back {

struct BackModel;

// A class of transformers that a GGUF may have been.
struct BackClass {
  std::string_view architecture, class_name, model_type;
  std::string_view fixed = "{}";                   // JSON: what every model of the class has, and config.json must say
  bool (*fits)(const GgufFacts& facts) = nullptr;  // null if all do
  void (*finish)(BackModel& model) = nullptr;      // what is more than a row
  bool has_own_code = false;                       // its code is published with its models, not in transformers
  bool is_twin = false;  // the same model as that of an earlier row; the one counts that gives the GGUF's keys again
};

struct BackModel {
  BackModel(const GgufFacts& facts, const BackClass& of);

  // The first of the names that the class has for a value, of several with a space between two. The usual one if
  // transformers has no such class.
  std::string_view name_of(std::string_view sources) const;
  // The default of the class; null if it has none.
  const Json* default_of(std::string_view name) const { return defaults.find(name); }

  void set(std::string_view name, Json value) {
    if (!value.is_null()) config.set(name, std::move(value));
  }
  void set_null_unless_said(std::string_view name) {
    if (config.find(name) == nullptr) config.set(name, nullptr);
  }

  const GgufFacts& facts;
  const BackClass& of;
  Json config;
  Json defaults;                      // of the class; null if transformers has none
  Json rope = Json::Members();        // what belongs into the parameters of rotary positions
  std::vector<std::string> told{};    // tensors that config.json says as well
  std::vector<std::string> likely{};  // names whose values are only likely
};

// The first class that the GGUF fits, and its twins. None if the architecture is not known.
std::vector<const BackClass*> classes_of(const GgufFacts& facts);

void add_keys(BackModel& model);                         // every row of the architecture's tables
void undo_formula(BackModel& model, const KeyRow& row);  // a row that has a formula
void add_rope(BackModel& model);                         // behind the keys
void add_tensor_signs(BackModel& model);                 // what the presence of tensors says
void add_tokens(BackModel& model);                       // ids of special tokens

// Keys that the way there makes of the configuration otherwise than the GGUF has them.
struct BackCheck {
  bool is_possible = false;          // the way there takes the configuration
  std::string reason{};              // why not
  std::vector<std::string> lost{};   // keys of the GGUF that have another value, or none
  std::vector<std::string> added{};  // keys that the GGUF does not have: the class has defaults for them
};
BackCheck check(const Json& config, const GgufFacts& facts);

}  // namespace ballast::llamacpp::back
