// VB-LoRA with save_only_topk_weights keeps only the k largest of the logits over the vector bank: their indices, in
// the smallest integers that hold them, and their softmax without the last weight, since all weights add up to 1.
#include <ballast/error.hpp>

#include <cmath>
#include <limits>

#include "core/text.hpp"
#include "peft/choice.hpp"
#include "peft/computed.hpp"
#include "peft/files/special.hpp"
#include "peft/hints.hpp"
#include "peft/names.hpp"

namespace ballast::peft {
namespace {

constexpr std::string_view kIndices = "_topk_indices", kWeights = "_topk_weights";

constexpr std::uint64_t kMostLogits = std::uint64_t{1} << 30;  // a few bytes of indices can stand for any number

DType index_dtype(std::uint64_t vector_count) {
  if (vector_count < (1u << 8)) return DType::u8;
  if (vector_count < (1u << 15)) return DType::i16;
  return vector_count < (std::uint64_t{1} << 31) ? DType::i32 : DType::i64;
}

Shape with_last(const Shape& shape, std::uint64_t last) {
  std::vector<std::uint64_t> dims(shape.begin(), shape.end());
  dims.back() = last;
  return Shape(dims);
}

// Whether each element is an integer in bytes of its own.
bool is_integer(DType dtype) {
  const DTypeKind kind = info(dtype).kind;
  return (kind == DTypeKind::unsigned_integer || kind == DTypeKind::signed_integer) && info(dtype).block_elements == 1;
}

Tensor indices_of(const Tensor& logits, std::uint64_t count, DType dtype) {
  return computed(dtype, with_last(logits.shape(), count), "largest", {logits}, [=](const auto& from) {
    std::vector<std::byte> out;
    for (const Choice& choice : choices_of(from[0], count)) {
      for (const std::uint64_t index : choice.indices) {  // little-endian, of any width
        for (std::size_t i = 0; i < info(dtype).block_bytes; ++i) out.push_back(static_cast<std::byte>(index >> 8 * i));
      }
    }
    return out;
  });
}

Tensor weights_of(const Tensor& logits, std::uint64_t count) {
  return computed(DType::f32, with_last(logits.shape(), count - 1), "softmax", {logits}, [=](const auto& from) {
    std::vector<float> weights;
    for (const Choice& choice : choices_of(from[0], count))
      weights.insert(weights.end(), choice.weights.begin(), choice.weights.end() - 1);
    return to_bytes(weights);
  });
}

Tensor logits_of(const Tensor& indices, const Tensor& weights, std::uint64_t vector_count) {
  const Shape shape = with_last(indices.shape(), vector_count);
  if (shape.numel().value_or(UINT64_MAX) > kMostLogits)
    throw Error(Errc::limit, "logits of the shape " + to_string(shape))
        .hint("is the vector bank that of this adapter?");
  return computed(DType::f32, shape, "logarithms of weights", {indices, weights}, [=](const auto& from) {
    const std::vector<Choice> choices = saved_choices(from[0], from[1], vector_count);
    std::vector<float> logits(choices.size() * vector_count, -std::numeric_limits<float>::infinity());
    for (std::size_t row = 0; row < choices.size(); ++row) {
      for (std::size_t i = 0; i < choices[row].indices.size(); ++i)
        logits[row * vector_count + choices[row].indices[i]] = std::log(choices[row].weights[i]);
    }
    return to_bytes(logits);
  });
}

}  // namespace

void keep_largest(StateDict& file, const AdapterConfig& config) {
  if (!config.is_set("save_only_topk_weights")) return;
  const std::uint64_t count = config.count("topk", 2);
  StateDict kept;
  for (const auto& [name, tensor] : file) {
    if (name.find("vblora_logits_") == std::string_view::npos) {
      kept.insert(name, tensor);
      continue;
    }
    const std::uint64_t vector_count = tensor.rank() == 0 ? 0 : tensor.shape()[tensor.rank() - 1];
    if (count < 1 || count > vector_count) {
      throw Error(Errc::mismatch, "tensor " + quote(name) + " has " + std::to_string(vector_count) +
                                      " logits, but \"topk\" asks for " + std::to_string(count))
          .hint(kIsItTheConfig);
    }
    kept.insert(std::string(name) + std::string(kIndices), indices_of(tensor, count, index_dtype(vector_count)));
    kept.insert(std::string(name) + std::string(kWeights), weights_of(tensor, count));
  }
  file = std::move(kept);
}

void spread_largest(StateDict& file) {
  StateDict spread;
  const Tensor* bank = file.find(std::string(kRoot) + "vblora_vector_bank");
  for (const auto& [name, tensor] : file) {
    if (name.ends_with(kWeights)) continue;
    if (!name.ends_with(kIndices)) {
      spread.insert(name, tensor);
      continue;
    }
    const std::string logits(without_ending(name, kIndices));
    const Tensor* weights = file.find(logits + std::string(kWeights));
    if (weights == nullptr || bank == nullptr || bank->rank() == 0 || tensor.rank() == 0) {
      throw Error(Errc::malformed, "tensor " + quote(name) + " has no weights or no vector bank beside it")
          .hint(kWasItSavedWhole);
    }
    const std::uint64_t count = tensor.shape()[tensor.rank() - 1];
    if (count == 0 || weights->shape() != with_last(tensor.shape(), count - 1) || !is_integer(tensor.dtype()))
      throw Error(Errc::mismatch, "the indices and the weights of " + quote(logits) + " do not belong together");
    spread.insert(logits, logits_of(tensor, *weights, bank->shape()[0]));
  }
  file = std::move(spread);
}

}  // namespace ballast::peft
