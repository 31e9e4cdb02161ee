// Text beside the weights that a loader acts on: configurations that name code, layers that hold it, and templates.
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

// A configuration: "auto_map" names Python files that transformers runs when it is asked to, a Lambda layer of Keras
// holds marshalled byte code, a chat template is a program in Jinja.
std::vector<TextFinding> look_into_json(std::string_view text);

// A chat template. What walks from a value to its class, and from there to all of Python, is dangerous.
std::vector<TextFinding> look_into_template(std::string_view text, std::string_view name);

// The code of a TorchScript archive: its language is small, but it can read and write files.
std::vector<TextFinding> look_into_script(std::string_view text);

// Whether bytes of an HDF5 file hold the configuration of a Lambda layer. Attributes are stored as they are.
bool has_lambda_layer(std::string_view bytes);

}  // namespace ballast
