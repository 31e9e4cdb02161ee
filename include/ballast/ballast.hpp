// Ballast: reads, converts and writes every model checkpoint, safely, lazily and without copies. This header includes
// all of the public API; each header says what several threads may do with it and who owns what.
#pragma once

#include <ballast/adapter.hpp>          // what fine-tuning adds to a model
#include <ballast/adapter_changes.hpp>  // how much an adapter changes each module
#include <ballast/align.hpp>            // two checkpoints of one model under the same names
#include <ballast/bind.hpp>             // the tensors inside a C++ object
#include <ballast/cache.hpp>            // checkpoints converted once, and used in that form from then on
#include <ballast/check.hpp>            // whether checkpoints are fit to ship
#include <ballast/checkpoint.hpp>       // a state dict and everything else that a file says
#include <ballast/conversions.hpp>      // what transformers does to published weights when it loads them
#include <ballast/densify.hpp>          // sparse and quantized tensors as dense ones
#include <ballast/dequantize.hpp>       // weights that other programs keep quantized, as numbers
#include <ballast/device.hpp>           // where tensors are to be
#include <ballast/diff.hpp>             // comparisons
#include <ballast/diff_adapters.hpp>    // comparisons of what two LoRAs add
#include <ballast/dtype.hpp>            // element types
#include <ballast/duplicates.hpp>       // tensors with equal bytes
#include <ballast/error.hpp>            // the one exception
#include <ballast/fetch.hpp>            // what an address names, whole, onto this machine
#include <ballast/float16.hpp>          // 16-bit floats as C++ types
#include <ballast/from_diff.hpp>        // a LoRA from two checkpoints
#include <ballast/gguf_model.hpp>       // a model of Hugging Face as a GGUF that llama.cpp runs
#include <ballast/global.hpp>           // what a pickle names
#include <ballast/hash.hpp>             // digests
#include <ballast/importance.hpp>       // how much each column of a weight matters
#include <ballast/json.hpp>             // small documents: configurations, rules
#include <ballast/limits.hpp>           // every cap on hostile input
#include <ballast/listing.hpp>          // which tensors, in which order, and how much they are together
#include <ballast/load.hpp>             // a state dict in one call
#include <ballast/load_state_dict.hpp>  // puts a checkpoint into a C++ object
#include <ballast/manifest.hpp>         // what was written, to be checked later
#include <ballast/merge.hpp>            // adapters put into the weights
#include <ballast/metadata.hpp>         // metadata edited in place
#include <ballast/metadata_text.hpp>    // metadata from what somebody typed
#include <ballast/model_info.hpp>       // what a model says about itself
#include <ballast/names.hpp>            // the names of Hugging Face and of llama.cpp
#include <ballast/open.hpp>             // opens checkpoints
#include <ballast/open_options.hpp>     // how checkpoints are opened
#include <ballast/overflows.hpp>        // values that do not fit a type
#include <ballast/private_maps.hpp>     // bytes that a program may write to
#include <ballast/problems.hpp>         // values that should not be there
#include <ballast/progress.hpp>         // how long jobs report and are cancelled
#include <ballast/provenance.hpp>       // where values come from
#include <ballast/quantize.hpp>         // weights in forms of fewer bits that transformers loads
#include <ballast/range.hpp>            // ranges of bytes
#include <ballast/rank_plan.hpp>        // what each rank of a parallel model needs
#include <ballast/recipe.hpp>           // which tensor gets which type in a file for llama.cpp
#include <ballast/remedy.hpp>           // what hints tell people to do
#include <ballast/remote.hpp>           // checkpoints behind addresses: HTTP, the Hugging Face Hub, S3
#include <ballast/save.hpp>             // writes checkpoints
#include <ballast/save_plan.hpp>        // what a save will do, and how
#include <ballast/scan.hpp>             // what pickles would import
#include <ballast/shape.hpp>            // dimensions and strides
#include <ballast/sidecars.hpp>         // what lies beside the weights of a model
#include <ballast/singular_values.hpp>  // how much of a matrix lies in few directions
#include <ballast/slice.hpp>            // "0:4, ..., -1"
#include <ballast/source.hpp>           // the bytes of files, wherever the files lie
#include <ballast/state_dict.hpp>       // tensors by name
#include <ballast/stats.hpp>            // statistics
#include <ballast/storage.hpp>          // bytes that can be read in ranges
#include <ballast/suggest.hpp>          // "did you mean"
#include <ballast/summary.hpp>          // a checkpoint at a glance
#include <ballast/team.hpp>             // several processes that do one job
#include <ballast/tensor.hpp>           // what bytes mean: dtype, shape, strides
#include <ballast/text.hpp>             // names and numbers for people
#include <ballast/training.hpp>         // the model in a training checkpoint
#include <ballast/transform.hpp>        // select, rename, cast
#include <ballast/tree.hpp>             // tensors by the prefixes of their names
#include <ballast/typed_metadata.hpp>   // typed metadata
#include <ballast/verify.hpp>           // checks
#include <ballast/weight_map.hpp>       // from one layout of weights to another
