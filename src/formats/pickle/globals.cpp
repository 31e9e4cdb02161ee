#include "formats/pickle/globals.hpp"

#include <algorithm>
#include <string>

#include "formats/pickle/global_tables.hpp"

namespace ballast {

std::string_view name(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::known: return "known";
    case Verdict::inert: return "inert";
    case Verdict::dangerous: return "dangerous";
  }
  return "inert";
}

namespace pickle {
namespace {

template <class Table>
bool has(const Table& table, std::string_view word) {
  return std::ranges::binary_search(table, word);
}

// Longer than any entry; nobody needs to look at the rest of a hostile name.
constexpr std::size_t kLongestPath = 96;
static_assert(std::ranges::all_of(kDangers, [](const Danger& d) { return d.path.size() < kLongestPath; }));
static_assert(std::ranges::all_of(kKnown, [](std::string_view path) { return path.size() < kLongestPath; }));

std::string path_of(std::string_view module, std::string_view name) {
  std::string path(python3_module(module).substr(0, kLongestPath));
  path += '.';
  path += name.substr(0, kLongestPath);
  return path;
}

// torch.FloatTensor, torch.cuda.sparse.HalfTensor, torch.cuda.ByteStorage
bool is_element_class(std::string_view module, std::string_view name) {
  constexpr std::string_view kTensor = "Tensor", kStorage = "Storage";
  const bool dense = module == "torch" || module == "torch.cuda";
  const bool sparse = module == "torch.sparse" || module == "torch.cuda.sparse";
  if (dense && name.ends_with(kStorage)) return has(kElements, name.substr(0, name.size() - kStorage.size()));
  if ((!dense && !sparse) || !name.ends_with(kTensor)) return false;
  const std::string_view element = name.substr(0, name.size() - kTensor.size());
  return has(kElements, element) && !element.starts_with('Q') && !element.starts_with("Complex");
}

bool is_dtype(std::string_view module, std::string_view name) { return module == "torch" && has(kDTypes, name); }

// Classes whose instances are their attributes: modules of torch, and what TorchScript makes of any.
bool is_module_class(std::string_view module, std::string_view name) {
  if (name.find('.') != std::string_view::npos) return false;
  return module.starts_with("torch.nn.modules.") || module == "__torch__" || module.starts_with("__torch__.");
}

// The entry for the longest beginning of the path that ends at a dot or at its end.
const Danger* danger_of(std::string_view path) {
  while (true) {
    const auto found = std::ranges::lower_bound(kDangers, path, {}, &Danger::path);
    if (found != std::end(kDangers) && found->path == path) return found;
    const auto dot = path.rfind('.');
    if (dot == std::string_view::npos) return nullptr;
    path = path.substr(0, dot);
  }
}

// No honest name is this long, and looking for the way out at the end of many long ones would take its time.
constexpr std::size_t kLongestName = 1024;

// "_os" is what half of Python's own modules call os.
std::string_view without_underscores(std::string_view word) {
  return word.substr(std::min(word.find_first_not_of('_'), word.size()));
}

bool is_way_out(std::string_view word) { return has(kWaysOut, word) || has(kWaysOut, without_underscores(word)); }

// Whether Python could know it. The lines of a text that is taken for a pickle ("import torch.nn") are no names.
bool is_dotted_name(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           static_cast<unsigned char>(c) >= 0x80;
  });
}

// Classes have methods and other classes; what has attributes and a small letter is a module or a function.
bool is_class(std::string_view module, std::string_view word, bool is_first) {
  const std::string_view bare = without_underscores(word);
  if (bare.empty() || bare[0] < 'a' || bare[0] > 'z') return true;
  return is_first && has(kKnown, path_of(module, word));
}

// Why a name leads from its module to another one, or nothing. An attribute that has attributes and is no class is a
// module that was imported there, under its own name or another one.
std::string_view why_it_leads_out(std::string_view module, std::string_view name) {
  if (name.size() > kLongestName) return kImports;
  const bool may_be_reached = is_dotted_name(name) && is_dotted_name(module.substr(0, kLongestName));
  for (bool is_first = true;; is_first = false) {
    const auto dot = name.find('.');
    const std::string_view word = name.substr(0, dot);
    if (is_way_out(word)) return kImports;
    if (dot == std::string_view::npos) return {};
    const std::string_view rest = name.substr(dot + 1);
    if (may_be_reached && !is_class(module, word, is_first)) {
      const Danger* danger = danger_of(path_of(without_underscores(word), rest));
      return danger != nullptr && !danger->why.empty() ? danger->why : kImports;
    }
    name = rest;
  }
}

}  // namespace

Judgement judge(std::string_view module, std::string_view name) {
  const std::string path = path_of(module, name);
  if (has(kKnown, path)) return {Verdict::known, {}};
  const std::string_view python3 = python3_module(module);
  if (is_dtype(python3, name) || is_element_class(python3, name)) return {Verdict::known, {}};

  // Both spellings: which of them counts depends on the protocol that the file says it has.
  for (const std::string_view spelled : {std::string_view(path), module.substr(0, kLongestPath)}) {
    const Danger* danger = danger_of(spelled);
    if (danger != nullptr && !danger->why.empty()) return {Verdict::dangerous, danger->why};
    if (danger != nullptr) break;
  }
  if (const auto why = why_it_leads_out(module, name); !why.empty()) return {Verdict::dangerous, why};
  return {is_module_class(python3, name) ? Verdict::known : Verdict::inert, {}};
}

bool is_allowed_by_weights_only(std::string_view module, std::string_view name) {
  const std::string_view python3 = python3_module(module);
  return has(kAllowedByWeightsOnly, path_of(module, name)) || is_dtype(python3, name) ||
         is_element_class(python3, name);
}

std::string_view python3_module(std::string_view module) noexcept {
  const auto found = std::ranges::lower_bound(kRenamedModules, module, {}, &Python2Module::old);
  return found != std::end(kRenamedModules) && found->old == module ? found->now : module;
}

}  // namespace pickle
}  // namespace ballast
