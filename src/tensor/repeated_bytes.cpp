#include "tensor/repeated_bytes.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <string>

#include "core/expansion.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "tensor/ancestors.hpp"

namespace ballast {
namespace {

// A sum that overflows becomes the largest number, which is over every limit.
void add_to(std::uint64_t& sum, std::uint64_t bytes) {
  if (__builtin_add_overflow(sum, bytes, &sum)) sum = UINT64_MAX;
}

}  // namespace

void RepeatedBytes::add(std::string_view name, const Tensor& tensor) {
  for_each_ancestor(tensor, [this](const Tensor& part, const Storage::Derivation& derivation) {
    if (!part.storage() || !derivation.from.empty()) return;
    add_to(viewed_, part.nbytes());
    if (storages_.insert(part.storage().get()).second) add_to(real_, part.storage()->size_bytes());
  });
  const std::uint64_t repeated = viewed_ - std::min(viewed_, real_);
  if (!expands_too_much(limits_, repeated, real_)) return;
  const std::string which = name.empty() ? "a tensor" : "tensor " + quote(name);
  throw Error(Errc::limit,
              which + " repeats bytes: " + std::to_string(viewed_) + " would be made of " + std::to_string(real_))
      .hint(leave_it_out() + ", or " + raise_limit("max_expansion_bytes"));
}

}  // namespace ballast
