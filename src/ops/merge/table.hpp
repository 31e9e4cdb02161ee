// The table of merging: every type of PEFT, and its rule, or why it has none.
#pragma once

#include <string_view>

#include <ballast/merge.hpp>

#include "ops/merge/module.hpp"

namespace ballast::merging {

struct Method {
  MergeRule rule;
  void (*merge)(const Task& task) = nullptr;  // none where it is never merged, or has nothing but tokens
  std::string_view shared{};                  // parameters that belong to no module, separated by spaces
  bool finds_modules = false;                 // the file may name no module: target_modules does
};

const Method* find_method(std::string_view peft_type) noexcept;

}  // namespace ballast::merging
