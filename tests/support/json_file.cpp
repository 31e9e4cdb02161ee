#include "support/json_file.hpp"

#include "support/files.hpp"

namespace ballast::test {

Json read_json(const std::filesystem::path& path) { return Json::parse(read_whole_file(path)); }

std::vector<std::uint64_t> counts(const Json& list) {
  std::vector<std::uint64_t> counts;
  for (const Json& count : list.list()) counts.push_back(count.count());
  return counts;
}

}  // namespace ballast::test
