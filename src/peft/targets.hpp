// Which modules of a base the fields of a configuration mean. Modules are named without "base_model.model.".
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/adapter.hpp>

namespace re2 {
class RE2;
}

namespace ballast::peft {

// Whether the name is `ending`, or ends with "." and `ending`.
bool ends_with_name(std::string_view name, std::string_view ending);

// The value of the first key of `field` (rank_pattern, alpha_pattern) that means the module, as PEFT looks for it:
// re.match(r"(.*\.)?({key})$", module), so that "q_proj" and "layers.0.self_attn.q_proj" both mean modules by their
// ends. Null if none does. Errc::unsupported for an expression that only Python understands.
const Json* find_pattern(const AdapterConfig& config, std::string_view field, std::string_view module);

// A field that means modules: a list by the ends of their names, a string as an expression over whole names. A field
// that is missing means none.
class ModulePattern {
 public:
  ModulePattern() = default;
  ModulePattern(const AdapterConfig& config, std::string_view field);
  bool matches(std::string_view module) const;

 private:
  std::vector<std::string> ends_;
  std::shared_ptr<const re2::RE2> expression_;
};

// target_modules, exclude_modules, layers_to_transform and layers_pattern together.
class TargetModules {
 public:
  explicit TargetModules(const AdapterConfig& config);

  bool is_known() const { return is_known_; }  // false for "all-linear", which only a model can tell
  bool contains(std::string_view module) const;

 private:
  bool is_transformed(std::string_view module) const;

  ModulePattern targets_, excluded_;
  std::vector<std::string> layers_, layer_patterns_;
  bool is_known_ = true;
};

// Whether modules_to_save names the module: by the end of its name, as PEFT has it.
bool is_saved_whole(const std::vector<std::string>& modules_to_save, std::string_view module);

}  // namespace ballast::peft
