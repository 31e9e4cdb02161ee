#include "checkpoint/densify.hpp"

#include <ballast/densify.hpp>
#include <ballast/error.hpp>

#include <fmt/format.h>

#include <set>
#include <utility>

#include "core/checked.hpp"
#include "core/expansion.hpp"
#include "core/name_hash.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "tensor/checkpoint_parts.hpp"
#include "tensor/dequantized_storage.hpp"
#include "tensor/sparse_storage.hpp"

namespace ballast {
namespace {

// Four bytes of a sparse tensor can claim to be an exbibyte, and so can the values that are added up in it. So the
// sizes of the result and of the parts are compared with the bytes that the file really has.
class Expansion {
 public:
  explicit Expansion(const Limits& limits) : limits_(limits) {}

  void add(const Composite& composite, std::span<const Tensor> parts, const Tensor& whole, std::uint64_t memory_bytes) {
    make(whole.nbytes());
    make(memory_bytes);
    for (const Tensor& part : parts) {
      make(part.nbytes());
      if (part.storage() && seen_.insert(part.storage().get()).second)
        real_ = checked_add(real_, part.storage()->size_bytes()).value_or(UINT64_MAX);
    }
    if (made_ <= real_) return;
    const std::uint64_t added = made_ - real_;
    if (expands_too_much(limits_, added, real_)) {
      throw Error(Errc::limit, fmt::format("the parts of tensor {} would become {}, far more than the file holds",
                                           quote(composite.name), format_bytes(whole.nbytes())))
          .hint(leave_it_out() + ", or keep it as its parts");
    }
  }

 private:
  void make(std::uint64_t bytes) { made_ = checked_add(made_, bytes).value_or(UINT64_MAX); }

  const Limits& limits_;
  std::set<const Storage*> seen_;
  std::uint64_t real_ = 0, made_ = 0;
};

class Densifier {
 public:
  enum class Which : std::uint8_t { all, quantized };

  Densifier(Checkpoint& checkpoint, Which which, const Limits& limits)
      : checkpoint_(checkpoint), which_(which), expansion_(limits) {}

  void run() {
    make_wholes();
    if (!wholes_.empty()) place_wholes();
  }

 private:
  struct Whole {
    const Composite* composite;
    Tensor tensor;
    bool is_placed = false;
  };

  void make_wholes() {
    for (const Composite& composite : checkpoint_.composites) {
      const bool is_sparse = is_sparse_layout(composite.layout);
      if (is_sparse ? which_ != Which::all : composite.layout != "quantized") continue;
      std::vector<Tensor> parts;
      for (const std::string& part : composite.parts) {
        if (const Tensor* tensor = checkpoint_.find(part)) parts.push_back(*tensor);
      }
      // A selection may have removed a part: the parts that are left are plain tensors.
      if (parts.empty() || parts.size() != composite.parts.size()) continue;
      Tensor whole = is_sparse ? dense_tensor(composite, parts) : dequantized_tensor(composite, parts);
      expansion_.add(composite, parts, whole, is_sparse ? index_memory_bytes(parts) : channel_memory_bytes(parts));
      for (const std::string& part : composite.parts) wholes_of_part_[part].push_back(wholes_.size());
      wholes_.push_back({&composite, std::move(whole)});
    }
  }

  // Each whole stands where the first of its parts stood.
  void place_wholes() {
    StateDict tensors;
    tensors.reserve(checkpoint_.size());
    for (const auto& [name, tensor] : checkpoint_.tensors) {
      const auto part = wholes_of_part_.find(name);
      if (part == wholes_of_part_.end()) {
        tensors.insert(name, tensor);
        continue;
      }
      for (const std::size_t i : part->second) {
        Whole& whole = wholes_[i];
        if (whole.is_placed) continue;
        tensors.insert(free_name(whole.composite->name, tensors), whole.tensor);
        whole.is_placed = true;
      }
    }
    replace_tensors(checkpoint_, std::move(tensors),
                    [&](std::string_view name) { return !wholes_of_part_.contains(name); });
  }

  // As everywhere, the second tensor of the same name gets "~2".
  std::string free_name(const std::string& name, const StateDict& placed) {
    const auto is_taken = [&](const std::string& other) {
      return placed.contains(other) || (checkpoint_.contains(other) && !wholes_of_part_.contains(other));
    };
    if (!is_taken(name)) return name;
    std::uint64_t& number = last_number_.try_emplace(name, 1).first->second;
    std::string other;
    do {
      other = fmt::format("{}~{}", name, ++number);
    } while (is_taken(other));
    checkpoint_.notes.push_back(
        {name, fmt::format("another tensor is called {}: it is listed as {}", quote(name), quote(other)),
         Note::Kind::remark});
    return other;
  }

  Checkpoint& checkpoint_;
  Which which_;
  Expansion expansion_;
  std::vector<Whole> wholes_;
  NameMap<std::uint64_t> last_number_;  // the last number that was given to a name that was taken
  NameMap<std::vector<std::size_t>> wholes_of_part_;
};

}  // namespace

Checkpoint densify(Checkpoint checkpoint, const Limits& limits) {
  Densifier(checkpoint, Densifier::Which::all, limits).run();
  return checkpoint;
}

Checkpoint densify_quantized(Checkpoint checkpoint, const Limits& limits) {
  Densifier(checkpoint, Densifier::Which::quantized, limits).run();
  return checkpoint;
}

}  // namespace ballast
