#include <ballast/dequantize.hpp>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "checkpoint/densify.hpp"
#include "checkpoint/quantization/config.hpp"
#include "checkpoint/quantization/find_packed.hpp"
#include "checkpoint/quantization/neighbours.hpp"
#include "checkpoint/quantization/torchao_wrappers.hpp"
#include "checkpoint/quantization/weights/module.hpp"
#include "checkpoint/quantization/without_packing.hpp"
#include "core/checked.hpp"
#include "core/name_list.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "tensor/checkpoint_parts.hpp"
#include "tensor/doors.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kMostForABit = 32;  // bits of F32

class Dequantizer {
 public:
  Dequantizer(Checkpoint& checkpoint, const DequantizeOptions& options, Blocks blocks)
      : checkpoint_(checkpoint),
        options_(options),
        blocks_(blocks),
        quantization_(std::move(*checkpoint.quantization)),
        has_no_config_(quantization_.config.is_null()),
        undecoded_(undecoded_scheme(quantization_.scheme, quantization_.config)),
        source_(checkpoint_, quantization_),
        packed_(checkpoint_),
        neighbours_(checkpoint_),
        whole_of_weight_(packed_.all().size()),
        whole_of_part_(checkpoint.size()),
        is_dropped_(checkpoint.size()) {
    is_made_.reserve(packed_.all().size());
  }

  void run() {
    for (std::size_t i = 0; i < packed_.all().size(); ++i) make(i);
    refuse_unknown_parts();
    refuse_unknown_wrappers();
    keep_orphans();
    if (made_ == 0 && kept_.empty() && block_weights_ == 0) keep_all();
    if (made_ != 0) {
      drop_activations();
      forget_parts();
      place_wholes();
    }
    // What is still packed stays so, for everybody who asks.
    checkpoint_.quantization.reset();
    if (made_ == 0 || !kept_.empty() || block_weights_ != 0) checkpoint_.quantization = std::move(quantization_);
    say_kept();
    say_version();
  }

 private:
  struct Whole {
    std::string name;
    Tensor tensor;
    bool is_placed = false, is_taken_back = false;
  };

  void make(std::size_t number) {
    const PackedWeight& weight = packed_.all()[number];
    if (blocks_ == Blocks::stay && weight.row->read == read_mxfp4_blocks) {
      ++block_weights_;
      return;
    }
    // quantization_config says what names and dtypes leave open.
    const bool is_refined = weight.scheme != weight.row->name;
    PackedModule module(source_, weight.number, weight.base,
                        is_refined || quantization_.scheme.empty() ? weight.scheme : quantization_.scheme,
                        weight.name());
    try {
      if (weight.row->read == nullptr) refuse_scheme(weight.scheme);
      neighbours_.check(module, weight);
      Tensor whole = weight.row->read(module);
      if (is_taken(module)) return keep(module.weight(), "another tensor has that name");
      check_expansion(module, whole);
      // Some contradictions are found by whoever reads first: groups that are not there, and bits of a mask.
      if (options_.lenient && whole.storage() && whole.has_data()) whole.storage()->prepare({});
      // Each weight stands in the place of a part of its own, so that none is lost.
      const auto is_used = [&](std::size_t part) { return whole_of_part_[part] != nullptr; };
      if (std::ranges::all_of(module.parts(), is_used)) return keep(module.weight(), "its parts are those of another");
      wholes_.push_back({module.take_name(), std::move(whole)});
      whole_of_weight_[number] = &wholes_.back();
      ++made_;
      for (const std::size_t part : module.parts())
        if (!is_used(part)) whole_of_part_[part] = &wholes_.back();
      is_made_.emplace(wholes_.back().name, true);
    } catch (const MissingPart& missing) {
      if (!undecoded_.empty()) return keep_undecoded(module.weight());
      keep(module.weight(), quote(missing.name) + " is missing");
    } catch (const Error& error) {
      const bool is_forgiven = error.code() == Errc::malformed || error.code() == Errc::unsupported;
      if (!options_.lenient || !is_forgiven) throw;
      keep(module.weight(), what_is_wrong(error, module.weight()));
    }
  }

  // The message of an error without the weight, which the note names.
  static std::string what_is_wrong(const Error& error, std::string_view weight) {
    const std::string beginning = fmt::format("the quantized weight {} ", quote(weight));
    const std::string& message = error.message();
    return message.starts_with(beginning) ? "it " + message.substr(beginning.size()) : message;
  }

  void keep_undecoded(std::string_view weight) {
    if (!options_.lenient) refuse_scheme(undecoded_);
    keep(weight, undecoded_ + " is not decoded");
  }

  // A tensor of the weight's own name that is not one of its parts: the floats that somebody put beside the codes.
  bool is_taken(const PackedModule& module) const {
    if (is_made_.contains(module.weight())) return true;
    const std::size_t near = module.parts().empty() ? 0 : module.parts().front();
    const auto number = Doors::number_near(checkpoint_.tensors, near, module.weight());
    return number && std::ranges::find(module.parts(), *number) == module.parts().end();
  }

  void keep(std::string_view weight, std::string why) {
    if (kept_.emplace(weight).second) kept_list_.add(std::string(weight));
    if (why_.empty()) why_ = std::move(why);
  }

  // A part that the reader did not ask for may change what the weight is.
  void refuse_unknown_parts() {
    for (std::size_t i = 0; i < checkpoint_.size(); ++i) {
      if (whole_of_part_[i] != nullptr || packed_.has_of_activations(i)) continue;
      const auto number = packed_.weight_of(i);
      Whole* whole = number ? whole_of_weight_[*number] : nullptr;
      if (whole == nullptr) continue;  // it is kept
      const std::string why =
          fmt::format("has a part that is not known for it ({})", quote(checkpoint_.tensors[i].name));
      if (!options_.lenient) {
        throw Error(Errc::unsupported, fmt::format("the quantized weight {} {}", quote(whole->name), why))
            .in(checkpoint_.target)
            .hint(copy_them());
      }
      keep(whole->name, "it " + why);
      whole_of_weight_[*number] = nullptr;
      whole->is_taken_back = true;
      --made_;
    }
    for (Whole*& whole : whole_of_part_)
      if (whole != nullptr && whole->is_taken_back) whole = nullptr;
  }

  // Of codes whose scales are not there nobody can make a weight.
  void keep_orphans() {
    for (std::size_t i = 0; i < checkpoint_.size(); ++i) {
      if (whole_of_part_[i] != nullptr || !quantization_.parts.contains(checkpoint_.tensors[i].name)) continue;
      const std::string weight = packed_.orphan_of(i);
      if (weight.empty()) continue;
      if (undecoded_.empty())
        keep(weight, "its other parts are missing");
      else
        keep_undecoded(weight);
    }
  }

  // A scheme of which only the configuration speaks.
  void keep_all() {
    if (!options_.lenient) refuse_scheme(quantization_.scheme);
    for (const auto& [name, tensor] : quantization_.parts) keep(name, quantization_.scheme + " is not decoded");
  }

  void check_expansion(const PackedModule& module, const Tensor& whole) const {
    std::uint64_t real = 0;
    for (const std::size_t number : module.parts()) {
      const Tensor& part = checkpoint_.tensors[number].tensor;
      const std::uint64_t bytes = part.storage() ? std::min(part.nbytes(), part.storage()->size_bytes()) : 0;
      real = checked_add(real, bytes).value_or(UINT64_MAX);
    }
    const std::uint64_t made = whole.nbytes();
    if (made <= real || made - real <= options_.limits.max_expansion_bytes || made / kMostForABit <= real) return;
    throw Error(Errc::limit, fmt::format("the quantized weight {} would become {}, far more than its parts have",
                                         quote(module.weight()), format_bytes(made)))
        .in(checkpoint_.target)
        .hint(raise_limit("max_expansion_bytes"));
  }

  [[noreturn]] void refuse_scheme(std::string_view scheme) const {
    throw Error(Errc::unsupported, fmt::format("the weights are quantized with {}, which is not decoded", scheme))
        .in(checkpoint_.target)
        .hint(copy_them());
  }

  static std::string copy_them() {
    return "the tensors can be copied as they are, without " + mention(Remedy::dequantize);
  }

  // A class of torchao whose attributes are other ones.
  void refuse_unknown_wrappers() {
    for (const TorchaoWrapper& wrapper : torchao_wrappers(checkpoint_)) {
      const auto is_there = [&](const std::string& part) { return checkpoint_.contains(part); };
      const bool is_read = std::ranges::any_of(
          wrapper.parts, [&](const std::string& part) { return is_there(part) && !is_untouched(part); });
      if (is_read || kept_.contains(wrapper.weight) || std::ranges::none_of(wrapper.parts, is_there)) continue;
      if (const auto missing = std::ranges::find_if_not(wrapper.parts, is_there); missing != wrapper.parts.end()) {
        keep(wrapper.weight, quote(*missing) + " is missing");
        continue;
      }
      if (!options_.lenient) refuse_scheme(wrapper.type);
      keep(wrapper.weight, "it is a " + wrapper.type);
    }
  }

  // As long as a weight stays packed, so do the numbers for the activations.
  void drop_activations() {
    if (!kept_.empty()) return;
    NameList dropped;
    for (std::size_t i = 0; i < checkpoint_.size(); ++i) {
      if (whole_of_part_[i] != nullptr || !packed_.has_of_activations(i)) continue;
      dropped.add(std::string(checkpoint_.tensors[i].name));
      is_dropped_[i] = true;
    }
    if (dropped.empty()) return;
    note(dropped.count() == 1
             ? fmt::format("{} is for activations and left out", dropped.text())
             : fmt::format("{} tensors are for activations and left out: {}", dropped.count(), dropped.text()));
  }

  // Each weight stands where the first of its parts stood. A weight may have the name of a part, and is another tensor.
  void place_wholes() {
    StateDict tensors;
    tensors.reserve(checkpoint_.size());
    for (std::size_t i = 0; i < checkpoint_.size(); ++i) {
      const auto& [name, tensor] = checkpoint_.tensors[i];
      Whole* whole = whole_of_part_[i];
      if (whole == nullptr && !is_dropped_[i]) tensors.insert(name, tensor);
      if (whole != nullptr && !std::exchange(whole->is_placed, true))
        tensors.insert(whole->name, std::move(whole->tensor));
    }
    replace_tensors(checkpoint_, std::move(tensors), [&](std::string_view name) { return is_untouched(name); });
  }

  void forget_parts() {
    checkpoint_.dequantized = quantization_.scheme;
    // What torchao's metadata say of a weight is about its parts.
    if (kept_.empty() && checkpoint_.metadata.erase("tensor_names") != 0)
      std::erase_if(checkpoint_.metadata, [](const auto& entry) { return entry.second.starts_with("{\"_type\":"); });
    StateDict parts;
    for (const auto& [name, tensor] : quantization_.parts)
      if (is_untouched(name)) parts.insert(name, tensor);
    quantization_.parts = std::move(parts);
    quantization_.modules = kept_.size() + block_weights_;
  }

  bool is_untouched(std::string_view name) const {
    const auto number = Doors::number_of(checkpoint_.tensors, name);
    return !number || (whole_of_part_[*number] == nullptr && !is_dropped_[*number]);
  }

  void say_kept() {
    if (kept_.empty()) return;
    note(kept_.size() == 1 ? fmt::format("the quantized weight {} stays as its parts: {}", kept_list_.text(), why_)
                           : fmt::format("{} quantized weights stay as their parts: {} (the first one because {})",
                                         kept_.size(), kept_list_.text(), why_));
  }

  // Nothing in the file itself tells the two versions of GPTQ apart.
  void say_version() {
    bool has_gptq = false;
    for (std::size_t i = 0; i < packed_.all().size(); ++i)
      has_gptq = has_gptq || (whole_of_weight_[i] != nullptr && packed_.all()[i].scheme == "gptq");
    if (has_gptq && has_no_config_)
      note("no configuration says of which version of GPTQ the weights are: they are read as version 1");
  }

  void note(std::string text) { checkpoint_.notes.push_back({"", std::move(text), Note::Kind::remark}); }

  Checkpoint& checkpoint_;
  const DequantizeOptions& options_;
  Blocks blocks_;
  Quantization quantization_;  // that of the checkpoint, until the end
  bool has_no_config_;
  std::string undecoded_;  // what undecoded_scheme() says of it
  PackedSource source_;
  PackedWeights packed_;
  Neighbours neighbours_;
  std::deque<Whole> wholes_;
  std::size_t made_ = 0;                 // of these, without those that were taken back
  std::uint64_t block_weights_ = 0;      // those that stay blocks
  std::vector<Whole*> whole_of_weight_;  // by the places in packed_; null if it stays as its parts
  NameViewMap<bool> is_made_;            // by the names of these
  std::vector<Whole*> whole_of_part_;    // by the numbers of tensors; null if a tensor is no part
  std::vector<bool> is_dropped_;
  std::set<std::string, std::less<>> kept_;
  NameList kept_list_;
  std::string why_;  // of the first one that is kept
};

}  // namespace

std::optional<DequantizedSize> dequantized_size(const Checkpoint& checkpoint, const Limits& limits) try {
  if (!checkpoint.quantization) return std::nullopt;
  Checkpoint parts;  // nothing but what dequantize() looks at
  parts.tensors = checkpoint.tensors;
  parts.metadata = checkpoint.metadata;
  parts.values = checkpoint.values;
  parts.composites = checkpoint.composites;
  parts.quantization = checkpoint.quantization;
  parts.notes = checkpoint.notes;
  const Checkpoint whole = dequantize(std::move(parts), {.limits = limits});
  DequantizedSize size;
  std::map<DType, std::uint64_t> bytes;
  for (const auto& [name, tensor] : whole) {
    const Tensor* before = checkpoint.find(name);
    if (before != nullptr && before->storage() == tensor.storage()) continue;
    ++size.weights;
    size.bytes += tensor.nbytes();
    bytes[tensor.dtype()] += tensor.nbytes();
  }
  if (size.weights == 0) return std::nullopt;
  size.dtype = std::ranges::max_element(bytes, {}, [](const auto& entry) { return entry.second; })->first;
  return size;
} catch (const Error& error) {
  if (error.code() != Errc::unsupported && error.code() != Errc::malformed && error.code() != Errc::limit) throw;
  return std::nullopt;
}

Checkpoint dequantize(Checkpoint checkpoint, const DequantizeOptions& options, Blocks blocks) {
  checkpoint = densify_quantized(std::move(checkpoint), options.limits);
  if (!options.lenient) refuse_unread_configuration(checkpoint);
  if (checkpoint.quantization) Dequantizer(checkpoint, options, blocks).run();
  return checkpoint;
}

Checkpoint dequantize(Checkpoint checkpoint, const DequantizeOptions& options) {
  return dequantize(std::move(checkpoint), options, Blocks::too);
}

}  // namespace ballast
