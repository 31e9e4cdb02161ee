#include <ballast/align.hpp>
#include <ballast/error.hpp>
#include <ballast/gguf_model.hpp>
#include <ballast/transform.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/text.hpp"
#include "llamacpp/names/match.hpp"
#include "transform/prefix_match.hpp"

namespace ballast {
namespace {

constexpr std::string_view kWhose[] = {"Hugging Face", "llama.cpp"};  // in the order of NameStyle

// T5 has blocks of two kinds, "enc.blk.0" and "dec.blk.0", which has_gguf_names() does not know.
bool has_llamacpp_names(const Checkpoint& checkpoint) {
  const auto is_one = [](const auto& entry) {
    return entry.name.starts_with("blk.") || entry.name.starts_with("enc.blk.") || entry.name.starts_with("dec.blk.");
  };
  return checkpoint.format == Format::gguf && std::any_of(checkpoint.begin(), checkpoint.end(), is_one);
}

class Alignment {
 public:
  Alignment(Checkpoint a, Checkpoint b, const AlignOptions& options)
      : both_{std::move(a), std::move(b), {}}, options_(options) {}

  Aligned run() {
    switch (options_.names) {
      case AlignNames::keep: return std::move(both_);
      case AlignNames::automatic: try_huggingface(); break;
      case AlignNames::huggingface: give_names(NameStyle::huggingface); break;
      case AlignNames::gguf: give_names(NameStyle::gguf); break;
    }
    match_prefixes();
    return std::move(both_);
  }

 private:
  void give_names(NameStyle style) {
    for (auto [checkpoint, other] : {std::pair(&both_.a, &both_.b), std::pair(&both_.b, &both_.a)}) {
      if (has_llamacpp_names(*checkpoint) == (style == NameStyle::gguf)) continue;
      take(*checkpoint, renamed(*checkpoint, *other, style), style);
    }
  }

  void try_huggingface() {
    if (has_llamacpp_names(both_.a) == has_llamacpp_names(both_.b)) return;
    Checkpoint& gguf = has_llamacpp_names(both_.a) ? both_.a : both_.b;
    const Checkpoint& other = &gguf == &both_.a ? both_.b : both_.a;
    if (names::find_architecture(gguf, options_.name_options) == nullptr) return;
    try {
      Checkpoint named = renamed(gguf, other, NameStyle::huggingface);
      // The other one may have names of its own, or a prefix before those of Hugging Face.
      const bool is_better = count_shared(named, other) > count_shared(gguf, other) ||
                             !find_prefix(named, other).empty() || !find_prefix(other, named).empty();
      if (is_better) take(gguf, std::move(named), NameStyle::huggingface);
    } catch (const Error& error) {
      if (error.code() == Errc::cancelled) throw;
      both_.notes.push_back({gguf.target, fmt::format("the names of llama.cpp are kept: {}", error.message()),
                             Note::Kind::remark, error.hint()});
    }
  }

  // The checkpoint under other names. What it does not say itself, the config.json of either may say.
  Checkpoint renamed(const Checkpoint& checkpoint, const Checkpoint& other, NameStyle style) const {
    NameOptions options = options_.name_options;
    if (style == NameStyle::gguf) options = completed(std::move(options), other);
    try {
      return decoded_if_needed(checkpoint, style, options);
    } catch (const Error& error) {
      if (error.code() != Errc::invalid_argument) throw;
    }
    for (const Checkpoint* folder : {&checkpoint, &other}) {
      if (!folder->target.empty()) options = completed(std::move(options), folder->target, options_.open);
    }
    return decoded_if_needed(checkpoint, style, options);
  }

  // Blocks that are transposed on the way must be decoded first.
  static Checkpoint decoded_if_needed(const Checkpoint& checkpoint, NameStyle style, const NameOptions& options) {
    try {
      return to_names(checkpoint, style, options);
    } catch (const Error& error) {
      if (error.code() != Errc::unsupported) throw;
    }
    Checkpoint named = to_names(cast(checkpoint, DType::f32), style, options);
    named.notes.push_back(
        {checkpoint.target, "all tensors are taken as F32, since blocks cannot be transposed", Note::Kind::remark});
    return named;
  }

  void take(Checkpoint& checkpoint, Checkpoint named, NameStyle style) {
    const auto whose = kWhose[static_cast<std::size_t>(style)];
    both_.notes.push_back(
        {checkpoint.target, fmt::format("taken under the names of {}, with its values", whose), Note::Kind::remark});
    for (std::size_t i = checkpoint.notes.size(); i < named.notes.size(); ++i) both_.notes.push_back(named.notes[i]);
    checkpoint = std::move(named);
    both_.style = style;
  }

  void match_prefixes() {
    const std::string in_b = find_prefix(both_.b, both_.a), in_a = find_prefix(both_.a, both_.b);
    if (in_a.empty() == in_b.empty()) return;
    const std::string& prefix = in_a.empty() ? in_b : in_a;
    try {
      both_.b = in_a.empty() ? without_prefix(both_.b, both_.a, prefix) : with_prefix_of(both_.b, both_.a, prefix);
    } catch (const Error&) {  // two tensors would get one name
      return;
    }
    both_.prefix = prefix;
    const std::string& target = in_a.empty() ? both_.b.target : both_.a.target;
    both_.notes.push_back({target,
                           fmt::format("names begin with {} here only; they are matched without it", quote(prefix)),
                           Note::Kind::remark});
  }

  Aligned both_;
  const AlignOptions& options_;
};

}  // namespace

Aligned align(Checkpoint a, Checkpoint b, const AlignOptions& options) {
  return Alignment(std::move(a), std::move(b), options).run();
}

}  // namespace ballast
