// config.json: whatever it says, it gives the keys that llama.cpp needs, each once, or an Error.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <ballast/error.hpp>

#include "llamacpp/config/model_config.hpp"
#include "llamacpp/keys/hyperparameters.hpp"

namespace {

using ballast::Errc;
using ballast::Error;
using namespace ballast::llamacpp;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const ModelFolder nowhere("there-is-no-such-folder", ballast::OpenOptions());
  try {
    const ModelConfig config = make_model_config(ballast::Json::parse(text), "Model");
    ballast::TypedMetadata keys;
    std::vector<ballast::Note> notes;
    add_early_keys(config, keys);
    add_hyperparameters(nowhere, config, 0, keys, notes);
    require(keys.find_uint("general.quantization_version") == 2, "the last key is missing");
    require(keys.contains(config.architecture + ".block_count"), "a model without blocks");
  } catch (const Error& error) {
    require(error.code() == Errc::malformed || error.code() == Errc::unsupported || error.code() == Errc::limit,
            "an odd kind of error");
    require(!error.message().empty() && error.message().size() < 20000, "a message that nobody would read");
  }
  return 0;
}
