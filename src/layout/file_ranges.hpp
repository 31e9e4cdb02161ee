// The bytes of files that a tensor is made of.
#pragma once

#include <vector>

#include <ballast/rank_plan.hpp>

namespace ballast {

struct FileRanges {
  std::vector<FileRange> ranges;
  bool is_plain = true;  // false: these are the bytes of everything that the tensor is computed from
};
FileRanges file_ranges(const Tensor& tensor);

}  // namespace ballast
