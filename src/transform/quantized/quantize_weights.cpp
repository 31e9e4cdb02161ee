#include <ballast/error.hpp>
#include <ballast/quantize.hpp>

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "checkpoint/quantization/packed_parts.hpp"
#include "core/name_list.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "tensor/checkpoint_parts.hpp"
#include "tensor/tensor_numbers.hpp"
#include "transform/quantized/choose.hpp"
#include "transform/quantized/config.hpp"
#include "transform/quantized/four_bits.hpp"
#include "transform/quantized/fp8_blocks.hpp"

namespace ballast {
namespace {

NamedParts mxfp4_parts(const Tensor& weight) {
  if (weight.rank() == 3) {  // experts of gpt-oss, whose inputs come first
    constexpr std::array<std::size_t, 3> kOutputsFirst = {0, 2, 1};
    auto [codes, scales] = mxfp4_blocks(weight.permute(kOutputsFirst));
    return {{"_blocks", std::move(codes)}, {"_scales", std::move(scales)}};
  }
  auto [codes, scales] = mxfp4_blocks(weight);
  return {{"_packed", codes.reshape({weight.shape()[0], weight.shape()[1] / 2})}, {"_scale", std::move(scales)}};
}

NamedParts parts_of(const Tensor& weight, WeightScheme scheme) {
  switch (scheme) {
    case WeightScheme::nf4: return nf4_parts(weight, false);
    case WeightScheme::nf4_double: return nf4_parts(weight, true);
    case WeightScheme::mxfp4: return mxfp4_parts(weight);
    case WeightScheme::fp8_block: break;
  }
  auto [codes, scales] = fp8_blocks(weight);
  return {{"", std::move(codes)}, {"_scale_inv", std::move(scales)}};
}

// Whether a program that loads the model takes the matrix for a layer that it looks for in the configuration.
bool may_be_layer(std::string_view name, const Tensor& tensor) {
  return tensor.rank() > 2 || (tensor.rank() == 2 && name.ends_with(".weight"));
}

class WeightQuantizer {
 public:
  WeightQuantizer(Checkpoint& checkpoint, const QuantizeOptions& options)
      : checkpoint_(checkpoint), options_(options), choose_(checkpoint, options) {}

  void run() {
    StateDict tensors;
    tensors.reserve(checkpoint_.size());
    const PackedParts packed(checkpoint_);
    for (const auto& [name, tensor] : checkpoint_) {
      packed.refuse(name, tensor, fmt::format("quantized with {}", ballast::name(options_.scheme)));
      const Choice choice = choose_(name, tensor);
      if (choice == Choice::stack) refuse_stack(name);
      if (choice == Choice::quantized) {
        place_parts(name, tensor, tensors);
      } else {
        leave(name, tensor, choice);
        tensors.insert(name, tensor);
      }
    }
    if (result_.modules == 0) refuse_nothing();
    modules_.left.emplace("lm_head");  // it may be tied to the embedding, and have no tensor of its own
    for (const std::string& name : modules_.quantized) modules_.left.erase(name);
    replace_tensors(checkpoint_, std::move(tensors),
                    [&](std::string_view name) { return !quantized_names_.contains(name); });
    describe();
    say();
  }

 private:
  void place_parts(std::string_view name, const Tensor& tensor, StateDict& tensors) {
    const std::size_t number = numbers_(tensor);
    if (number >= made_.size()) made_.resize(number + 1);
    if (made_[number].empty()) made_[number] = parts_of(tensor, options_.scheme);
    for (const auto& [ending, part] : made_[number]) {
      std::string part_name = std::string(name) + ending;
      if (part_name != name && checkpoint_.contains(part_name))
        throw Error(Errc::invalid_argument,
                    fmt::format("tensor {} is there already, and a part of the quantized {} would have its name",
                                quote(part_name), quote(name)))
            .about(part_name)
            .in(checkpoint_.target)
            .hint(rename_it() + ", or " + leave_it_out());
      result_.parts.insert(part_name, part);
      tensors.insert(part_name, part);
    }
    ++result_.modules;
    quantized_names_.emplace(name);
    modules_.quantized.emplace(module_of_parameter(name));
    bytes_[nf4_result(tensor.dtype())] += tensor.nbytes();
    const bool is_even = tensor.shape()[0] % kFp8Block == 0 && tensor.shape()[1] % kFp8Block == 0;
    if (options_.scheme == WeightScheme::fp8_block && !is_even) ragged_.add(name);
  }

  void leave(std::string_view name, const Tensor& tensor, Choice choice) {
    if (may_be_layer(name, tensor)) modules_.left.emplace(module_of_parameter(name));
    const bool is_stack = choice == Choice::not_a_weight && tensor.rank() > 2 && name.find(".experts.") != name.npos;
    if (choice == Choice::left || is_stack) left_.add(name);
    if (choice == Choice::left_uneven) uneven_.add(name);
    if (choice == Choice::left_as_conv1d) transposed_.add(name);
  }

  void describe() {
    if (!bytes_.empty())
      modules_.dtype = std::ranges::max_element(bytes_, {}, [](const auto& entry) { return entry.second; })->first;
    modules_.is_gpt_oss = choose_.is_gpt_oss();
    result_.config = quantization_config(options_.scheme, modules_);
    result_.scheme = result_.config.at("quant_method").text();
    result_.evidence = ballast::name(options_.scheme);
    result_.dtype = modules_.dtype;
    const bool is_fp8 = options_.scheme == WeightScheme::fp8_block;
    result_.bits = is_fp8 ? 8 : 4;
    if (!is_fp8) result_.group_size = options_.scheme == WeightScheme::mxfp4 ? 32 : 64;
    checkpoint_.quantization = std::move(result_);
  }

  void say() {
    const std::uint64_t count = quantized_names_.size();
    note(fmt::format("quantized with {}: {} weight{}{}", ballast::name(options_.scheme), count, count == 1 ? "" : "s",
                     left_.empty() ? "" : fmt::format("; matrices that are left as they are: {}", left_.text())));
    if (!uneven_.empty()) note("rows that are not whole blocks of 32 are left as they are: " + uneven_.text());
    if (!transposed_.empty())
      note("layers of GPT-2's kind, which are transposed, are left as they are: " + transposed_.text());
    if (!ragged_.empty())
      note("dimensions that are no multiples of 128 end in smaller blocks, which not every program reads: " +
           ragged_.text());
  }

  // Left as it is, it would be most of the model.
  [[noreturn]] void refuse_stack(std::string_view name) const {
    throw Error(Errc::unsupported, fmt::format("tensor {} is a stack of experts, and {} is loaded matrix by matrix",
                                               quote(name), ballast::name(options_.scheme)))
        .about(name)
        .in(checkpoint_.target)
        .hint(
            "transformers' map, applied backwards, makes a tensor of each expert; globs choose weights without stacks");
  }

  [[noreturn]] void refuse_nothing() const {
    const bool are_named = !options_.weights.empty();
    Error error(Errc::unsupported, fmt::format("no weight {} quantized with {}",
                                               are_named ? "of those names can be" : "is a linear layer that is",
                                               ballast::name(options_.scheme)));
    if (!transposed_.empty())
      throw error.in(checkpoint_.target).hint("layers of GPT-2's kind are transposed, and are left as they are");
    throw error.in(checkpoint_.target)
        .hint(are_named ? "only matrices called \"….weight\" are quantized"
                        : "name the weights: without names, those inside of numbered blocks are quantized");
  }

  void note(std::string text) { checkpoint_.notes.push_back({"", std::move(text), Note::Kind::remark}); }

  Checkpoint& checkpoint_;
  const QuantizeOptions& options_;
  WeightChooser choose_;
  Quantization result_;
  QuantizedModules modules_;
  TensorNumbers numbers_;
  std::vector<NamedParts> made_;  // a tensor of several names is quantized once
  std::set<std::string, std::less<>> quantized_names_;
  std::map<DType, std::uint64_t> bytes_;
  NameList left_, uneven_, transposed_, ragged_;
};

}  // namespace

std::optional<WeightScheme> weight_scheme(std::string_view name) noexcept {
  const auto found = std::ranges::find(kWeightSchemeNames, name);
  if (found == kWeightSchemeNames.end()) return std::nullopt;
  return static_cast<WeightScheme>(found - kWeightSchemeNames.begin());
}

Checkpoint quantize(Checkpoint checkpoint, const QuantizeOptions& options) {
  WeightQuantizer(checkpoint, options).run();
  return checkpoint;
}

}  // namespace ballast
