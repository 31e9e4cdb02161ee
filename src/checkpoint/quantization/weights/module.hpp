// PackedModule: the tensors that one quantized weight is kept in, as the reader of its scheme asks for them.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/error.hpp>

#include "core/name_hash.hpp"

namespace ballast {

// Thrown if a weight is not complete; it then stays as it is.
struct MissingPart {
  std::string name;
};

// What all modules of a checkpoint are read from. It must outlive them, and the checkpoint it.
struct PackedSource {
  PackedSource(const Checkpoint& checkpoint, const Quantization& quantization);

  const Checkpoint& checkpoint;
  const Quantization& quantization;
  NameViewMap<const PlainValue*> values;     // of the checkpoint, by their paths
  NameViewMap<const Composite*> composites;  // those of torchao's classes, by their names
  std::vector<const Json*> weight_settings;  // of compressed-tensors' groups of modules
  mutable std::string name;                  // of the part that is looked for
};

class PackedModule {
 public:
  // `base` is what the names of the parts begin with; both texts must outlive the module.
  // Its parts are probably near the tensor of that number.
  PackedModule(const PackedSource& source, std::size_t near, std::string_view base, std::string_view scheme,
               std::string weight)
      : source_(source), near_(near), base_(base), scheme_(scheme), weight_(std::move(weight)) {
    parts_.reserve(4);
  }

  // Both remember that the tensor is a part.
  const Tensor* find(std::string_view ending);
  const Tensor& need(std::string_view ending);  // throws MissingPart

  std::string_view base() const noexcept { return base_; }
  std::string_view weight() const noexcept { return weight_; }     // its name
  std::string take_name() noexcept { return std::move(weight_); }  // when the module is done with
  std::string_view scheme() const noexcept { return scheme_; }     // as its configuration calls it
  const Checkpoint& checkpoint() const noexcept { return source_.checkpoint; }
  const Quantization& quantization() const noexcept { return source_.quantization; }
  const std::vector<std::size_t>& parts() const noexcept { return parts_; }  // their numbers in the checkpoint

  // A value of quantization_config: a text, or empty; an integer.
  std::string_view text(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::string_view model_type() const;  // of config.json

  // What compressed-tensors' configuration says of weights, for each of its groups of modules.
  const std::vector<const Json*>& weight_settings() const noexcept { return source_.weight_settings; }

  // Complains if no group of modules has settings by which a weight of this shape has such scales, and tells a part as
  // missing if all of them speak of zero points and there are none.
  void check_weight_settings(const Shape& weight, const Tensor& scale, bool has_zero_points) const;

  const Composite* composite() const;  // of the base's name, if it is a class of torchao

  // How many inputs config.json says a module of this name has; 0 if it does not.
  std::uint64_t inputs_by_name(std::string_view module) const;
  std::uint64_t outputs_by_name(std::string_view module) const;

  // Settings that a file keeps beside the codes: as small tensors, or as the values of a pickle.
  std::int64_t setting(std::string_view ending);
  std::vector<std::int64_t> setting_list(std::string_view ending);
  std::string setting_text(std::string_view ending);

  // Small parts, read now.
  std::vector<std::byte> bytes(const Tensor& part, std::uint64_t at_most) const;
  std::int64_t number(std::string_view ending, const Tensor& part, std::size_t at = 0) const;

  // Errc::malformed: "the weight "x" …"
  [[noreturn]] void complain(const std::string& what, const std::string& hint = {}) const;
  [[noreturn]] void refuse(const std::string& what) const;  // Errc::unsupported

  // Complains about a part of another dtype or shape than its weight needs.
  void check_shape(std::string_view ending, const Tensor& part, const Shape& shape) const;
  void check_numbers(std::string_view ending, const Tensor& part) const;  // something that a float can be made of

 private:
  const PlainValue* value(std::string_view ending) const;

  std::string_view named(std::string_view ending) const;  // valid until the next call
  [[noreturn]] void throw_missing(std::string_view ending) const;

  const PackedSource& source_;
  std::size_t near_;
  std::string_view base_, scheme_;
  std::string weight_;
  std::vector<std::size_t> parts_;
};

}  // namespace ballast
