#include "peft/files/wrapping.hpp"

#include "peft/names.hpp"
#include "peft/targets.hpp"

namespace ballast::peft {

Wrapping::Wrapping(Names modules, std::string_view wrapper, std::vector<std::string> modules_to_save)
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
    const std::string_view next = first_segment(rest);
    if (saved_whole_.empty() && is_saved_whole(modules_to_save_, without_prefix(path))) {
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

}  // namespace ballast::peft
