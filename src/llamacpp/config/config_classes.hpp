// What transformers' configuration classes add to a config.json: the values that it leaves out, other names for values,
// and a few conversions. They are those of transformers 4.57.6, which llama.cpp's converter reads every config.json
// with.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <utility>

#include <ballast/json.hpp>

#include "llamacpp/config/config_steps.hpp"

namespace ballast::llamacpp {

struct ConfigClass {
  // Some names in config.json are other names of values that the class has.
  using OtherNames = std::span<const std::pair<std::string_view, std::string_view>>;

  std::string_view model_type;
  std::array<ConfigStep, 5> steps;
  OtherNames other_names;     // the name, and the one that the class has for it
  std::string_view defaults;  // JSON
};

// Null if there is none.
const ConfigClass* config_class(std::string_view model_type);
const ConfigClass* config_class_in_name(std::string_view name);  // the longest model_type that is part of the name

}  // namespace ballast::llamacpp
