// Weights that other programs keep quantized: FP8 with its scales, GPTQ, AWQ, bitsandbytes, MXFP4 and the like.
//
// They are recognized, so that nobody takes their parts for weights. The names and dtypes of the tensors in a module
// tell the scheme; its name is the one that quantization_config uses in the config.json beside them.
#pragma once

#include <string>

#include <ballast/checkpoint.hpp>
#include <ballast/open_options.hpp>

namespace ballast {

// Fills in Checkpoint::quantization. `target` is a file, an index or a folder; empty if nothing lies beside the
// checkpoint. If no tensor has a dtype that values are packed in, this only looks at every dtype.
Checkpoint recognize_quantization(Checkpoint checkpoint, const std::string& target, const OpenOptions& options);

}  // namespace ballast
