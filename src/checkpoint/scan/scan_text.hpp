// Text beside the weights that a loader acts on: configurations that name code, layers that hold code, and templates.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ballast/global.hpp>

namespace ballast {

struct TextFinding {
  std::string what;
  Verdict verdict = Verdict::unknown;
};

// Scans a configuration: "auto_map" names Python files that transformers runs if it is asked to, a Lambda layer of
// Keras holds marshalled byte code, a chat template is a program in Jinja.
std::vector<TextFinding> look_into_json(std::string_view text);

// Scans a chat template. An expression that leads from a value to its class, and from there to all of Python, is
// dangerous.
std::vector<TextFinding> look_into_template(std::string_view text, std::string_view name);

// Scans the code of a TorchScript archive: its language is small, but it can read and write files.
std::vector<TextFinding> look_into_script(std::string_view text);

// Whether bytes of an HDF5 file hold the configuration of a Lambda layer. HDF5 stores attributes as plain bytes.
bool has_lambda_layer(std::string_view bytes);

}  // namespace ballast
