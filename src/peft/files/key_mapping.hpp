// KeyMapping: AdapterLoadOptions::key_mapping, whose first rule that matches a name counts.
#pragma once

#include <re2/re2.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/adapter.hpp>

#include "peft/files/dialects.hpp"

namespace ballast::peft {

class KeyMapping {
 public:
  // Throws Errc::invalid_argument if a rule is wrong. The rules must outlive this object.
  explicit KeyMapping(const std::vector<RenameRule>& rules);

  // What comes before the names of the base stays. Errc::invalid_argument if two names become one.
  StateDict map(const StateDict& tensors);
  LoraModules map(LoraModules modules);

  // A note for each rule that no name came to.
  void add_notes(Adapter& adapter) const;

 private:
  std::string mapped(std::string_view name);

  const std::vector<RenameRule>& rules_;
  std::vector<std::unique_ptr<re2::RE2>> expressions_;
  std::vector<bool> has_matched_, has_renamed_;
};

}  // namespace ballast::peft
