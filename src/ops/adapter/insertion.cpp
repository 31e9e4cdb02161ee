#include "ops/adapter/insertion.hpp"

#include "ops/adapter/modules.hpp"
#include "ops/adapter/names.hpp"
#include "ops/adapter/prefix.hpp"

namespace ballast::adapter {

Wrapping::Wrapping(std::set<std::string, std::less<>> modules, std::string_view wrapper,
                   std::vector<std::string> modules_to_save)
    : modules_(std::move(modules)), wrapper_(wrapper), modules_to_save_(std::move(modules_to_save)) {}

std::string Wrapping::wrapped(std::string_view name) {
  saved_whole_.clear();
  std::string path(prefix_of(name));
  std::string_view rest = name.substr(path.size());
  if (!path.empty()) path.pop_back();
  const auto append = [&](std::string_view segment) {
    if (!path.empty()) path += '.';
    path += segment;
  };
  while (true) {
    append(take_segment(rest));
    if (rest.empty()) return path;
    const std::string_view module = std::string_view(path).substr(std::min(path.size(), prefix_of(path).size()));
    const std::string_view next = first_segment(rest);
    if (saved_whole_.empty() && is_saved_whole(modules_to_save_, module)) {
      saved_whole_ = path;
      if (next == "original_module" || next == "modules_to_save") return path + "." + std::string(rest);
      append("original_module");
      continue;
    }
    // A token adapter stands between a module and what it wraps.
    if (next != "token_adapter" && modules_.contains(path + ".token_adapter")) append("token_adapter");
    while (modules_.contains(path)) {
      if (is_any_parameter(first_segment(rest))) return path + "." + std::string(rest);  // of another adapter
      met_.insert(path);
      if (first_segment(rest) == wrapper_) take_segment(rest);
      append(wrapper_);
    }
  }
}

}  // namespace ballast::adapter
