#include "fetch/index_files.hpp"

#include <ballast/limits.hpp>

#include "checkpoint/recognize/shard_index.hpp"
#include "io/section.hpp"

namespace ballast::fetching {

bool is_index(std::string_view name) {
  return name.ends_with(".json") && name.find(".index.") != std::string_view::npos;
}

std::vector<std::string> files_of_index(const Source& index) {
  const Limits limits;
  return parse_shard_index(io::read_text(index, limits), limits).files;
}

}  // namespace ballast::fetching
