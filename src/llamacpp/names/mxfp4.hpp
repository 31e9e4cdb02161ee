// MXFP4 as gpt-oss publishes it, codes and scales apart, and as ggml's blocks have it. All lazy.
#pragma once

#include <vector>

#include <ballast/tensor.hpp>

namespace ballast::names {

// Codes [experts, rows, blocks, 16] and scales [experts, rows, blocks] as a stack of matrices of ggml's blocks, and
// back: the codes, then the scales. Errc::mismatch if the tensors are nothing of that kind.
Tensor mxfp4_to_gguf(const Tensor& codes, const Tensor& scales);
std::vector<Tensor> mxfp4_to_huggingface(const Tensor& blocks);

// The same where the rows of two matrices alternate in one: a stack of the even rows and one of the odd ones.
std::vector<Tensor> mxfp4_alternating(const Tensor& codes, const Tensor& scales);
std::vector<Tensor> mxfp4_alternated(const Tensor& even, const Tensor& odd);

}  // namespace ballast::names
