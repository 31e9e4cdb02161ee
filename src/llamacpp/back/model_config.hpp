// The config.json that a GGUF's metadata and tensors determine.
#pragma once

#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/json.hpp>

#include "llamacpp/back/back_model.hpp"

namespace ballast::llamacpp::back {

struct MadeConfig {
  const BackClass* of = nullptr;    // null if the class is not known, or if values are missing; a note says which
  Json config{};                    // null then
  std::vector<std::string> told{};  // tensors of the GGUF that are values of the configuration now
  std::vector<Note> notes{};
};

MadeConfig make_config_of(const Checkpoint& gguf);

}  // namespace ballast::llamacpp::back
