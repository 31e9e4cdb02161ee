// What a format makes of a checkpoint: the tensors that it stores as values with names, and the files that some of
// them make.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/save.hpp>

#include "save/shards.hpp"

namespace ballast {

class Layouts {
 public:
  virtual ~Layouts() = default;

  // The values by number, and which of them belong into one file.
  virtual std::string_view name(std::size_t value) const = 0;
  virtual std::vector<Bundle> bundles() const = 0;

  // A file of these values. What is lost that way is added to the notes.
  virtual SavePlan::File lay_out(std::span<const std::size_t> values, const std::string& path,
                                 std::vector<Note>& notes) const = 0;
};

// Throws Errc::unsupported, with a way out, for a tensor that the format cannot store. The arguments must outlive it.
std::unique_ptr<Layouts> safetensors_layouts(const Checkpoint& checkpoint, const SaveOptions& options);
std::unique_ptr<Layouts> torch_layouts(const Checkpoint& checkpoint, const SaveOptions& options);

}  // namespace ballast
