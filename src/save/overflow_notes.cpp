#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/save.hpp>

#include <algorithm>
#include <string>

#include "core/remedy.hpp"
#include "core/text.hpp"

namespace ballast {
namespace {

constexpr std::size_t kMostNames = 5;

std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string_view outcome(DType dtype) {
  if (info(dtype).kind == DTypeKind::ggml) return "lost in blocks whose scale does not reach so far";
  return info(dtype).block_bytes == 1 ? "cut to its largest number" : "written as infinite";
}

std::string text_of(std::span<const TensorOverflows* const> tensors, bool strict) {
  Overflows all;
  std::string names;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, dtype, overflows] = *tensors[i];
    all.add(overflows);
    if (i < kMostNames)
      names += fmt::format("{}{} ({}, {:g})", i == 0 ? "" : ", ", quote(name), overflows.count, overflows.largest);
  }
  if (tensors.size() > kMostNames) names += fmt::format(" and {}", counted(tensors.size() - kMostNames, "more tensor"));
  const DType dtype = tensors.front()->dtype;
  const std::string_view verb = strict ? "would be" : all.count == 1 ? "was" : "were";
  return fmt::format("{} of {} {} beyond {} and {} {}, the largest {:g}: {}", counted(all.count, "value"),
                     counted(tensors.size(), "tensor"), all.count == 1 ? "is" : "are", name(dtype), verb,
                     outcome(dtype), all.largest, names);
}

}  // namespace

std::vector<Note> overflow_notes(std::span<const TensorOverflows> overflows, bool strict) {
  std::vector<Note> notes;
  for (const DTypeInfo& dtype : all_dtypes()) {
    std::vector<const TensorOverflows*> tensors;
    for (const TensorOverflows& tensor : overflows) {
      if (tensor.dtype == dtype.dtype && tensor.overflows.count != 0) tensors.push_back(&tensor);
    }
    if (tensors.empty()) continue;
    // Tensors with the most overflows come first.
    std::ranges::stable_sort(tensors, std::ranges::greater(), [](const auto* t) { return t->overflows.count; });
    notes.push_back({"", text_of(tensors, strict)});
    if (strict)
      throw Error(Errc::mismatch, notes.back().text)
          .hint("keep the values wider with " + mention(Remedy::cast, "F32") + ", or those tensors alone with " +
                mention(Remedy::cast_by_name, "'NAME=F32'") + " as the first rule; without " + mention(Remedy::strict) +
                " this is a note");
  }
  return notes;
}

}  // namespace ballast
