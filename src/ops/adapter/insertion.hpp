// Base names of a state dict as they are once modules are wrapped: the structure of the adapted model, deduced from the
// adapter's own names.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ballast::adapter {

// "base_model.model.mha.out_proj.weight" -> "base_model.model.mha.base_layer.out_proj.base_layer.weight", where both
// "…mha" and "…mha.base_layer.out_proj" are adapted. What is wrapped already stays so. All names have their prefix.
class Wrapping {
 public:
  Wrapping(std::set<std::string, std::less<>> modules, std::string_view wrapper,
           std::vector<std::string> modules_to_save);

  std::string wrapped(std::string_view name);

  // The module that is saved whole and in which the last name lay; empty where there was none.
  const std::string& saved_whole() const { return saved_whole_; }
  // Modules that were met in the name of a tensor of the base.
  const std::set<std::string, std::less<>>& met() const { return met_; }

 private:
  std::set<std::string, std::less<>> modules_;
  std::string wrapper_;
  std::vector<std::string> modules_to_save_;
  std::string saved_whole_;
  std::set<std::string, std::less<>> met_;
};

}  // namespace ballast::adapter
