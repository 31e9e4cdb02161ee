// The names of a base once modules are wrapped: the structure of the adapted model, as the adapter's own names tell it.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ballast::peft {

using Names = std::set<std::string, std::less<>>;

// "base_model.model.mha.out_proj.weight" becomes "base_model.model.mha.base_layer.out_proj.base_layer.weight" if both
// "…mha" and "…mha.base_layer.out_proj" are adapted. A module that is wrapped already stays as it is. All names have
// their prefix.
class Wrapping {
 public:
  Wrapping(Names modules, std::string_view wrapper, std::vector<std::string> modules_to_save);

  std::string wrapped(std::string_view name);

  // The module of modules_to_save that the last name lay in; empty if there was none.
  const std::string& saved_whole() const { return saved_whole_; }
  // The modules that names of the base's tensors have led to.
  const Names& met() const { return met_; }

 private:
  Names modules_;
  std::string wrapper_;
  std::vector<std::string> modules_to_save_;
  std::string saved_whole_;
  Names met_;
};

}  // namespace ballast::peft
