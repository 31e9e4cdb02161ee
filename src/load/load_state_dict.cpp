#include <ballast/conversions.hpp>
#include <ballast/diff.hpp>
#include <ballast/load_state_dict.hpp>
#include <ballast/suggest.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>

#include <ballast/scan.hpp>
#include "checkpoint/quantization/packed_parts.hpp"
#include "core/progress_meter.hpp"
#include "core/text.hpp"
#include "kernels/cast.hpp"
#include "load/place.hpp"
#include "transform/wrappers.hpp"

namespace ballast {
namespace {

// Prefixes that programs put before all names of a model.
constexpr std::array kPrefixes = {"model.", "state_dict.", "net.", "transformer.", "base_model.model."};

bool matches_any(const std::vector<std::string>& globs, std::string_view name) {
  return std::ranges::any_of(globs, [&](const std::string& glob) { return glob_match(glob, name); });
}

// () and (1,) are the same number: programs write either.
bool shape_fits(const Shape& file, const Shape& model) {
  const auto is_one = [](const Shape& shape) { return shape.rank() == 0 || (shape.rank() == 1 && shape[0] == 1); };
  return file == model || (is_one(file) && is_one(model));
}

class Loader {
 public:
  Loader(std::vector<BoundTensor> model, Checkpoint checkpoint, const LoadStateDictOptions& options)
      : model_(std::move(model)),
        options_(options),
        checkpoint_(renamed(chosen(std::move(checkpoint)))),
        packed_(checkpoint_) {}

  LoadReport run() {
    const auto start = std::chrono::steady_clock::now();
    jobs_.reserve(model_.size());
    for (BoundTensor& tensor : model_) match(tensor);
    find_unexpected();
    compare_tied();
    suggest();
    if (options_.strict && !report_.ok()) throw StateDictError(std::move(report_));
    carry_out();
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(report_);
  }

 private:
  struct Job {
    BoundTensor* to;
    Tensor from;
  };

  void take_notes(const Checkpoint& checkpoint, std::size_t first) {
    report_.notes.insert(report_.notes.end(), checkpoint.notes.begin() + static_cast<std::ptrdiff_t>(first),
                         checkpoint.notes.end());
  }

  Checkpoint chosen(Checkpoint checkpoint) {
    if (options_.slice) checkpoint = take_slice(std::move(checkpoint), *options_.slice);
    const std::size_t said = checkpoint.notes.size();
    if (!options_.conversions.empty()) checkpoint = with_conversions(std::move(checkpoint), options_.conversions);
    take_notes(checkpoint, said);
    return apply(std::move(checkpoint), options_.map);
  }

  Checkpoint renamed(Checkpoint checkpoint) {
    const StateDict before = checkpoint.tensors;
    checkpoint = rename(std::move(checkpoint), options_.key_mapping);
    if (!options_.strip_prefix.empty()) checkpoint = strip_prefix(std::move(checkpoint), options_.strip_prefix);
    if (!options_.add_prefix.empty()) checkpoint = add_prefix(std::move(checkpoint), options_.add_prefix);
    const std::size_t said = checkpoint.notes.size();
    if (options_.find_prefix) checkpoint = with_prefix_found(std::move(checkpoint));
    take_notes(checkpoint, said);
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (before[i].name != checkpoint.tensors[i].name)
        report_.renamed.push_back({std::string(before[i].name), std::string(checkpoint.tensors[i].name)});
    }
    return checkpoint;
  }

  // A prefix counts only if every tensor of the model is there without it, or with it. What wrappers put into names is
  // looked for first, name by name.
  Checkpoint with_prefix_found(Checkpoint checkpoint) const {
    if (model_.empty() || holds_all(checkpoint, [](const std::string& name) { return name; })) return checkpoint;
    std::vector<std::string> wanted;
    for (const BoundTensor& tensor : model_) {
      if (tensor.is_persistent) wanted.push_back(tensor.name);
    }
    checkpoint = match_wrapped_names(std::move(checkpoint), wanted);
    if (holds_all(checkpoint, [](const std::string& name) { return name; })) return checkpoint;
    Checkpoint plain = take_out_wrappers(checkpoint);
    for (const std::string prefix : kPrefixes) {
      if (holds_all(plain, [&](const std::string& name) { return prefix + name; }))
        return strip_prefix(std::move(plain), prefix);
      const auto stripped = [&](const std::string& name) { return name.substr(std::min(prefix.size(), name.size())); };
      const bool all_have_it =
          std::ranges::all_of(model_, [&](const BoundTensor& tensor) { return tensor.name.starts_with(prefix); });
      if (all_have_it && holds_all(plain, stripped)) return add_prefix(std::move(plain), prefix);
    }
    return checkpoint;
  }

  template <class NameOf>
  bool holds_all(const Checkpoint& checkpoint, const NameOf& name_of) const {
    return std::ranges::all_of(model_, [&](const BoundTensor& tensor) {
      return !is_wanted(tensor) || checkpoint.contains(name_of(tensor.name));
    });
  }

  bool is_wanted(const BoundTensor& tensor) const {
    return tensor.is_persistent && !tensor.is_optional && !tied_name(tensor.name) &&
           !matches_any(options_.ignore_missing, tensor.name);
  }

  std::optional<std::string> tied_name(std::string_view name) const {
    for (const auto& [a, b] : options_.tied) {
      if (a == name) return b;
      if (b == name) return a;
    }
    return std::nullopt;
  }

  void match(BoundTensor& to) {
    if (!to.is_persistent) return;
    const Tensor* from = checkpoint_.find(to.name);
    if (from != nullptr) {
      used_.insert(from);
    } else if (const auto other = tied_name(to.name); other && (from = checkpoint_.find(*other)) != nullptr) {
      used_.insert(from);
      report_.tied.push_back(to.name);
    } else {
      if (!to.is_optional && !matches_any(options_.ignore_missing, to.name)) report_.missing.push_back(to.name);
      return;
    }
    const Tensor wanted = in_dtype(*from, to);
    const Shape model_shape = to.shape.value_or(wanted.shape());
    const DType model_dtype = to.assign || !to.dtype ? wanted.dtype() : *to.dtype;
    if (!shape_fits(wanted.shape(), model_shape) || wanted.dtype() != model_dtype) {
      const bool is_left = options_.ignore_mismatched_sizes && wanted.dtype() == model_dtype;
      auto& list = is_left ? report_.left : report_.mismatched;
      list.push_back({to.name, from->dtype(), model_dtype, from->shape(), model_shape});
      return;
    }
    if (wanted.dtype() != from->dtype()) report_.cast.push_back(to.name);
    jobs_.push_back({&to, wanted.shape() == model_shape ? wanted : reshaped(wanted, model_shape)});
  }

  static Tensor reshaped(const Tensor& tensor, const Shape& shape) {
    return tensor.is_contiguous() ? tensor.reshape(shape) : tensor.contiguous(1).reshape(shape);
  }

  Tensor in_dtype(const Tensor& tensor, const BoundTensor& to) const {
    std::optional<DType> wanted;
    if (options_.dtype_policy == DTypePolicy::to_model) wanted = to.dtype;
    const bool is_real = is_floating(tensor.dtype()) || info(tensor.dtype()).kind == DTypeKind::ggml;
    if (options_.dtype_policy == DTypePolicy::to_one && is_real) wanted = options_.dtype;
    if (!wanted || *wanted == tensor.dtype()) return tensor;
    if (!is_real && !kernels::can_cast(tensor.dtype(), *wanted)) return tensor;  // a mismatch, which is reported later
    packed_.refuse(to.name, tensor, "cast");
    return tensor.to(*wanted);
  }

  void find_unexpected() {
    for (const auto& [name, tensor] : checkpoint_) {
      if (used_.contains(&tensor) || matches_any(options_.ignore_unexpected, name)) continue;
      const auto other = tied_name(name);
      if (other && used_.contains(checkpoint_.find(*other))) continue;
      report_.unexpected.emplace_back(name);
    }
  }

  void compare_tied() {
    const auto alone = [](const Tensor& tensor) {
      Checkpoint checkpoint;
      checkpoint.tensors.insert("", tensor);
      return checkpoint;
    };
    for (const auto& [a, b] : options_.tied) {
      const Tensor *first = checkpoint_.find(a), *second = checkpoint_.find(b);
      if (first == nullptr || second == nullptr) continue;
      if (!diff(alone(*first), alone(*second), {.threads = options_.threads}).equal())
        report_.differing.push_back(fmt::format("{} = {}", a, b));
    }
  }

  // For each of the first few missing names, suggests the nearest unexpected name.
  void suggest() {
    constexpr std::size_t kMost = 32, kCandidates = 1000;
    const auto candidates = std::span(report_.unexpected).first(std::min(kCandidates, report_.unexpected.size()));
    for (const std::string& missing : std::span(report_.missing).first(std::min(kMost, report_.missing.size()))) {
      if (auto name = nearest(missing, candidates)) report_.suggestions.emplace_back(missing, std::move(*name));
    }
  }

  void carry_out() {
    std::vector<Job> placed, copies;  // ballast::Tensors, and memory of the model's own
    std::vector<Tensor> tensors;
    std::vector<Device> devices;
    std::uint64_t total = 0;
    placed.reserve(jobs_.size());
    for (Job& job : jobs_) {
      ++report_.loaded;
      const Device device = device_for(job.to->name, options_.map_location, options_.device);
      if (device.kind() != Device::Kind::meta) total += job.from.nbytes();
      if (job.to->assign) {
        tensors.push_back(job.from);
        devices.push_back(device);
        placed.push_back(std::move(job));
      } else if (device.kind() != Device::Kind::meta) {
        copies.push_back(std::move(job));
      }
    }
    jobs_.clear();
    if (options_.consume) checkpoint_ = {};  // the jobs hold what is needed of it
    const PlaceOptions how{options_.mode, !options_.assign, options_.consume, options_.threads};
    const OverflowCounter overflows;
    ProgressMeter meter(options_.progress, "loading", total);
    tensors = place(tensors, devices, how, meter);
    copy(copies, how, meter);
    report_.overflows = overflows.total();
    for (std::size_t i = 0; i < placed.size(); ++i) {
      const bool is_copy = tensors[i].has_data() && tensors[i].storage() != placed[i].from.storage();
      if (is_copy) report_.bytes += tensors[i].nbytes();
      placed[i].to->assign(std::move(tensors[i]));
    }
  }

  void copy(std::vector<Job>& jobs, const PlaceOptions& how, ProgressMeter& meter) {
    std::vector<Tensor> tensors;
    std::vector<std::span<std::byte>> memory;
    for (Job& job : jobs) {
      memory.push_back(job.to->prepare(job.from.dtype(), job.from.shape()));
      if (memory.back().size() != job.from.nbytes()) {
        throw Error(Errc::mismatch, fmt::format("the model gave {} bytes of memory for a tensor of {}",
                                                memory.back().size(), job.from.nbytes()));
      }
      report_.bytes += job.from.nbytes();
      tensors.push_back(std::move(job.from));
    }
    read_into(std::move(tensors), memory, how, meter);
  }

  std::vector<BoundTensor> model_;
  const LoadStateDictOptions& options_;
  LoadReport report_;
  Checkpoint checkpoint_;
  PackedParts packed_;                      // of checkpoint_
  std::unordered_set<const Tensor*> used_;  // of checkpoint_
  std::vector<Job> jobs_;
};

void append_names(std::string& text, std::string_view what, const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 8;
  if (names.empty()) return;
  text += fmt::format("{:<11} {}\n", what, names.size());
  for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i) text += "  " + names[i] + "\n";
  if (names.size() > kShown) text += fmt::format("  ... and {} more\n", names.size() - kShown);
}

std::vector<std::string> lines_of(const std::vector<LoadReport::Mismatch>& mismatches) {
  std::vector<std::string> lines;
  for (const LoadReport::Mismatch& entry : mismatches) {
    lines.push_back(fmt::format("{}: {} {} in the file, {} {} in the model", entry.name, name(entry.file_dtype),
                                to_string(entry.file_shape), name(entry.model_dtype), to_string(entry.model_shape)));
  }
  return lines;
}

std::string summary(const LoadReport& report) {
  std::string text = "the state dict does not fit the model:";
  const char* separator = " ";
  const auto add = [&](std::size_t count, std::string_view what, std::string_view first) {
    if (count == 0) return;
    text += fmt::format("{}{} {} ({}{})", separator, count, what, quote(first), count > 1 ? ", ..." : "");
    separator = ", ";
  };
  add(report.missing.size(), "missing", report.missing.empty() ? "" : report.missing[0]);
  add(report.unexpected.size(), "unexpected", report.unexpected.empty() ? "" : report.unexpected[0]);
  add(report.mismatched.size(), "mismatched", report.mismatched.empty() ? "" : report.mismatched[0].name);
  add(report.differing.size(), "tied with other values", report.differing.empty() ? "" : report.differing[0]);
  return text;
}

}  // namespace

namespace binding {

BoundTensor bound(Tensor& tensor, const Context& context) {
  BoundTensor result{context.name, context.is_optional, context.is_persistent, std::nullopt, std::nullopt, {}, {}, {}};
  if (tensor.storage()) {  // else there is no tensor yet, and any dtype and shape will do
    result.dtype = tensor.dtype();
    result.shape = tensor.shape();
  }
  result.assign = [&tensor](Tensor value) { tensor = std::move(value); };
  result.value = [&tensor] { return tensor; };
  return result;
}

}  // namespace binding

std::string to_string(const LoadReport& report) {
  std::string text = fmt::format("{:<11} {}, {} copied\n", "loaded", report.loaded, format_bytes(report.bytes));
  append_names(text, "missing", report.missing);
  append_names(text, "unexpected", report.unexpected);
  append_names(text, "mismatched", lines_of(report.mismatched));
  append_names(text, "left", lines_of(report.left));
  append_names(text, "cast", report.cast);
  if (report.overflows.count != 0) {
    text += fmt::format("{:<11} {} finite values did not fit the model's dtype, the largest {:g}\n", "overflows",
                        report.overflows.count, report.overflows.largest);
  }
  append_names(text, "tied", report.tied);
  append_names(text, "differing", report.differing);
  std::vector<std::string> lines;
  for (const auto& [from, to] : report.renamed) lines.push_back(fmt::format("{} -> {}", from, to));
  append_names(text, "renamed", lines);
  for (const Note& note : report.notes) text += "note: " + note.text + "\n";
  for (const auto& [missing, candidate] : report.suggestions)
    text += fmt::format("did you mean {} for {}?\n", quote(candidate), quote(missing));
  return text;
}

StateDictError::StateDictError(LoadReport report) : Error(Errc::mismatch, summary(report)), report_(std::move(report)) {
  if (!report_.suggestions.empty()) {
    const auto& [missing, candidate] = report_.suggestions.front();
    hint(fmt::format("did you mean {} for {}?", quote(candidate), quote(missing)));
  }
}

LoadReport load_bound(std::vector<BoundTensor> model, Checkpoint checkpoint, const LoadStateDictOptions& options) {
  if (!options.allow_dangerous) refuse_dangerous(checkpoint);
  return Loader(std::move(model), std::move(checkpoint), options).run();
}

}  // namespace ballast
