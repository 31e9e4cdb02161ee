// Weights that other programs keep quantized: FP8 with its scales, GPTQ, AWQ, bitsandbytes, MXFP4 and their like.
//
// They are recognised, so that nobody takes their parts for weights. A scheme is told by the names and dtypes of the
// tensors in a module, and called as quantization_config in the config.json beside them calls it.
#pragma once

#include <string>

#include <ballast/checkpoint.hpp>
#include <ballast/open_options.hpp>

namespace ballast {

// Fills in Checkpoint::quantization. `target` is a file, an index or a folder; empty where there is nothing beside the
// checkpoint. Costs a look at every dtype where no tensor is of a type that values are packed in.
Checkpoint recognize_quantization(Checkpoint checkpoint, const std::string& target, const OpenOptions& options);

}  // namespace ballast
