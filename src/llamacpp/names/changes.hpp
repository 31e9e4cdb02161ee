// What llama.cpp's converter does to the values of tensors, and the way back. All lazy.
#pragma once

#include <vector>

#include <ballast/tensor.hpp>

#include "llamacpp/names/numbers.hpp"
#include "llamacpp/names/tables.hpp"

namespace ballast::names {

// The tensors that GGUF has in the place of those that Hugging Face has, and back; the order is that of the names in
// the row, and the tensors of a stack are in the order of their numbers. Queries and keys of llama are not among these:
// their heads are checked against each other by whoever sees all of them. Errc::mismatch if the shapes do not fit.
std::vector<Tensor> to_gguf(Change change, const std::vector<Tensor>& tensors, const Numbers& numbers,
                            std::uint64_t block);
std::vector<Tensor> to_huggingface(Change change, const std::vector<Tensor>& tensors, const Numbers& numbers,
                                   std::uint64_t block);

}  // namespace ballast::names
