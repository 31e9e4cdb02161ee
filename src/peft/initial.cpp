// PiSSA and its kin begin with s B0 A0, a part of the weight W, and train what is left to W - s B0 A0 + s B A. Added to
// W itself, s B A would be s B0 A0 too much. As a LoRA of W the change is s [B, -B0] [A; A0], of twice the rank.
#include "peft/initial.hpp"

#include <ballast/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <numbers>
#include <optional>

#include "core/remedy.hpp"
#include "core/text.hpp"
#include "peft/computed.hpp"
#include "peft/hints.hpp"
#include "peft/names.hpp"
#include "peft/scaling.hpp"
#include "tensor/concat_storage.hpp"

namespace ballast {
namespace peft {
namespace {

// Initialisations that change the base, by the beginning of init_lora_weights in lower case. If `is_difference` is
// true, the base loses s B0 A0 and nothing else.
struct Initialisation {
  std::string_view begins, what;
  bool is_difference = true;
};
constexpr Initialisation kChanging[] = {
    {"pissa", "PiSSA took the largest singular values of the base's weights out of them"},
    {"corda", "CorDA took the components that matter most for its data out of the base's weights"},
    {"olora", "OLoRA took a part of the base's weights out of them"},
    {"lora_ga", "LoRA-GA took the adapter's first values out of the base's weights"},
    {"loftq", "LoftQ quantized the base's weights, and put a part of the error into the adapter", false},
};
// These leave the base alone.
constexpr std::string_view kHarmless[] = {"gaussian", "eva", "orthogonal", "mica"};

std::string initialisation_of(const AdapterConfig& config) {
  const Json* value = config.find("init_lora_weights");
  if (value == nullptr || !value->is_text() || config.peft_type() != "LORA") return "";
  std::string text = value->text();
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return text;
}

const Initialisation* find_changing(std::string_view text) {
  const auto found = std::ranges::find_if(kChanging, [&](const auto& init) { return text.starts_with(init.begins); });
  return found == std::end(kChanging) ? nullptr : found;
}

bool is_kasa(const AdapterConfig& config) {
  return config.peft_type() == "LORA" && config.find("kasa_config") != nullptr;
}

// Along which side the ranks of a matrix of a LoRA lie; nothing for any other tensor.
std::optional<std::size_t> rank_axis(const PeftType& type, std::string_view name) {
  const auto parsed = parse_file_name(type, name);
  const char half = parsed ? lora_half(*parsed) : 0;
  return half == 0 ? std::nullopt : std::optional<std::size_t>(half == 'A' ? 0 : 1);
}

class Subtraction {
 public:
  Subtraction(Adapter trained, const Adapter& initial)
      : result_(std::move(trained)), initial_(initial), type_(peft_type(result_.config)) {}

  Adapter run() {
    check_kind();
    for (const auto& [name, tensor] : initial_.tensors) {
      if (rank_axis(type_, name) && !result_.tensors.contains(name)) throw_alone(name, "initial", "trained");
    }
    StateDict tensors;
    for (const auto& [name, tensor] : result_.tensors) {
      const auto axis = rank_axis(type_, name);
      if (axis) note_rank(name, tensor, *axis);
      tensors.insert(name, axis ? joined(name, tensor, *axis) : tensor);
    }
    result_.tensors = std::move(tensors);
    result_.files.insert(result_.files.end(), initial_.files.begin(), initial_.files.end());
    write_config();
    return std::move(result_);
  }

 private:
  void check_kind() const {
    const auto refuse = [](const std::string& what) {
      throw Error(Errc::unsupported, what + ", so subtracting the initial adapter does not lead back")
          .hint("merge it into the base that it was trained with");
    };
    if (type_.name != "LORA") refuse(fmt::format("this is an adapter of the type {}, and not a LoRA", type_.name));
    if (is_kasa(result_.config)) refuse(why_base_is_another(result_.config));
    if (const Initialisation* init = find_changing(initialisation_of(result_.config)); init && !init->is_difference)
      refuse(why_base_is_another(result_.config));
    // The ranks of a parameter lie one after the other, expert by expert.
    if (!result_.config.words("target_parameters").empty())
      refuse("\"target_parameters\" names parameters whose ranks are those of several experts");
  }

  [[noreturn]] static void throw_alone(std::string_view name, const char* one, const char* other) {
    throw Error(Errc::mismatch, fmt::format("the {} adapter has {}, and the {} one does not", one, quote(name), other))
        .hint("the initial adapter is the same one, saved before its training");
  }

  // The configuration may describe the result already: PEFT saves such a one beside a converted adapter.
  void note_rank(std::string_view name, const Tensor& tensor, std::size_t axis) {
    const std::string_view module = without_prefix(parse_file_name(type_, name)->module);
    const double found = tensor.rank() < 2 ? 0 : static_cast<double>(tensor.shape()[axis]);
    const double said = lora_rank(result_.config, module);
    const double times = found > 0 ? said / found : 0;
    const bool fits = (times == 1 || times == 2) && (said_times_ == 0 || said_times_ == times);
    if (!fits) {
      throw Error(Errc::mismatch, fmt::format("the configuration says rank {} for module {}, its tensors have {}", said,
                                              quote(module), found))
          .hint(kIsItTheConfig);
    }
    said_times_ = times;
  }

  Tensor joined(std::string_view name, const Tensor& tensor, std::size_t axis) const {
    const Tensor* before = initial_.tensors.find(name);
    if (before == nullptr) throw_alone(name, "trained", "initial");
    if (before->shape() != tensor.shape()) {
      throw Error(Errc::mismatch,
                  fmt::format("tensor {} has the shape {} in the initial adapter and {} in the trained one",
                              quote(name), to_string(before->shape()), to_string(tensor.shape())))
          .hint("the initial adapter is the same one, saved before its training");
    }
    const DType dtype = before->dtype() == tensor.dtype() ? tensor.dtype() : DType::f32;
    const Tensor first = before->to(dtype);
    return concatenated({tensor.to(dtype), axis == 0 ? first : scaled(first, -1)}, axis);
  }

  static Json times(const Json& number, double factor) {
    if (number.is_integer() && factor == 2) return Json(2 * number.integer());
    return Json(factor * number.number());
  }

  void multiply(const char* field, const char* patterns, double factor, int otherwise) {
    Json& fields = result_.config.fields;
    const Json* value = result_.config.find(field);
    fields.set(field, times(value == nullptr ? Json(otherwise) : *value, factor));
    const Json* pattern = result_.config.find(patterns);
    if (pattern == nullptr || !pattern->is_object()) return;
    Json::Members members;
    for (const auto& [key, number] : pattern->members()) members.emplace_back(key, times(number, factor));
    fields.set(patterns, std::move(members));
  }

  // The scaling stays what it was: alpha / r or, with rslora, alpha / √r.
  void write_config() {
    result_.config.fields.set("init_lora_weights", true);
    if (said_times_ == 2) return;
    multiply("lora_alpha", "alpha_pattern", result_.config.is_set("use_rslora") ? std::numbers::sqrt2 : 2, 8);
    multiply("r", "rank_pattern", 2, 8);
  }

  Adapter result_;
  const Adapter& initial_;
  const PeftType& type_;
  double said_times_ = 0;  // the ranks of the configuration over those of the tensors: 1 or 2
};

}  // namespace

std::string why_base_is_another(const AdapterConfig& config) {
  if (is_kasa(config))
    return "\"kasa_config\" is set: before training, KaSA cut the smallest singular values off the base's weights";
  const std::string init = initialisation_of(config);
  if (init.empty() || std::ranges::find(kHarmless, init) != std::end(kHarmless)) return "";
  const std::string said = fmt::format("\"init_lora_weights\" is {}", quote(init));
  if (const Initialisation* found = find_changing(init))
    return fmt::format("{}: before training, {}", said, found->what);
  return said + ", and it is not known whether that changes the base's weights";
}

void refuse_another_base(const AdapterConfig& config) {
  const std::string why = why_base_is_another(config);
  if (why.empty()) return;
  const Initialisation* init = find_changing(initialisation_of(config));
  const bool is_difference = init != nullptr && init->is_difference && !is_kasa(config);
  throw Error(Errc::unsupported, why + ", so the adapter does not belong to the base as it was")
      .hint((is_difference
                 ? "give the adapter as it was before training with " + mention(Remedy::initial_adapter) + "; or, "
                 : "") +
            "if this base is the one that training began with, say so in adapter_config.json: " +
            (is_kasa(config) ? "\"kasa_config\": null" : "\"init_lora_weights\": true"));
}

}  // namespace peft

Adapter subtract_initial(Adapter trained, const Adapter& initial) {
  const std::string source = trained.source;
  try {
    return peft::Subtraction(std::move(trained), initial).run();
  } catch (Error& error) {
    throw error.in(source);
  }
}

}  // namespace ballast
