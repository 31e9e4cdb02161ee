#include "formats/pickle/globals.hpp"

#include <algorithm>
#include <string>

#include "formats/pickle/denylist.hpp"
#include "formats/pickle/global_tables.hpp"

namespace ballast::pickle {
namespace {

template <class Table>
bool has(const Table& table, std::string_view word) {
  return std::ranges::binary_search(table, word);
}

// This is longer than any entry; nobody needs to look at the rest of a hostile name.
constexpr std::size_t kLongestPath = 96;
static_assert(std::ranges::all_of(kDangers, [](const Danger& d) { return d.path.size() < kLongestPath; }));
static_assert(std::ranges::all_of(kAllowlist, [](const Allowed& a) { return a.path.size() < kLongestPath; }));

std::string path_of(std::string_view module, std::string_view name) {
  std::string path(python3_module(module).substr(0, kLongestPath));
  path += '.';
  path += name.substr(0, kLongestPath);
  return path;
}

// "_os" is what half of Python's own modules call os.
std::string_view without_underscores(std::string_view word) {
  return word.substr(std::min(word.find_first_not_of('_'), word.size()));
}

// torch.FloatTensor, torch.cuda.sparse.HalfTensor, torch.cuda.ByteStorage
bool is_element_class(std::string_view module, std::string_view name) {
  constexpr std::string_view kTensorEnd = "Tensor", kStorageEnd = "Storage";
  const bool dense = module == "torch" || module == "torch.cuda";
  const bool sparse = module == "torch.sparse" || module == "torch.cuda.sparse";
  if (dense && name.ends_with(kStorageEnd)) return has(kElements, name.substr(0, name.size() - kStorageEnd.size()));
  if ((!dense && !sparse) || !name.ends_with(kTensorEnd)) return false;
  const std::string_view element = name.substr(0, name.size() - kTensorEnd.size());
  return has(kElements, element) && !element.starts_with('Q') && !element.starts_with("Complex");
}

// The name of a class or a constant begins with a capital letter, that of a function does not. A name with a dot leads
// elsewhere.
bool is_class_name(std::string_view name) {
  const std::string_view bare = without_underscores(name);
  return !bare.empty() && bare[0] >= 'A' && bare[0] <= 'Z' && name.find('.') == std::string_view::npos;
}

// Rows have numbers: those of the table from 1 on, then the families, then the two rows of element types.
constexpr std::uint16_t kFirstFamily = 1 + std::size(kAllowlist);
constexpr std::uint16_t kDTypeNumber = kFirstFamily + std::size(kFamilies), kElementNumber = kDTypeNumber + 1;

std::uint16_t row_of(std::string_view path) {
  const auto found = std::ranges::lower_bound(kAllowlist, path, {}, &Allowed::path);
  if (found == std::end(kAllowlist) || found->path != path) return 0;
  return static_cast<std::uint16_t>(1 + (found - std::begin(kAllowlist)));
}

std::uint16_t exact_row(std::string_view python3, std::string_view name, std::string_view path) {
  if (const std::uint16_t row = row_of(path); row != 0) return row;
  if (python3 == "torch" && has(kDTypes, name)) return kDTypeNumber;
  return is_element_class(python3, name) ? kElementNumber : 0;
}

std::uint16_t family_row(std::string_view module, std::string_view name) {
  if (!is_class_name(name)) return 0;
  const auto found = std::ranges::find_if(kFamilies, [&](const Family& family) {
    const std::string_view package = family.module.substr(0, family.module.size() - 1);
    return (module == package || module.starts_with(family.module)) && name.ends_with(family.name_end);
  });
  if (found == std::end(kFamilies)) return 0;
  return static_cast<std::uint16_t>(kFirstFamily + (found - std::begin(kFamilies)));
}

// The entry for the longest beginning of the path that ends at a dot or at the end of the path.
const Danger* danger_of(std::string_view path) {
  while (true) {
    const auto found = std::ranges::lower_bound(kDangers, path, {}, &Danger::path);
    if (found != std::end(kDangers) && found->path == path) return found;
    const auto dot = path.rfind('.');
    if (dot == std::string_view::npos) return nullptr;
    path = path.substr(0, dot);
  }
}

// No honest name is this long, and searching many long names to their ends for a way out would take too much time.
constexpr std::size_t kLongestName = 1024;

bool is_way_out(std::string_view word) { return has(kWaysOut, word) || has(kWaysOut, without_underscores(word)); }

Harm harm_of_word(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('.') + 1);
  const auto found = std::ranges::lower_bound(kDangerousWords, last, {}, &Word::word);
  return found != std::end(kDangerousWords) && found->word == last ? found->harm : Harm::none;
}

// Whether Python could know the text as a name. The lines of a text that is taken for a pickle ("import torch.nn") are
// not names.
bool is_dotted_name(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           static_cast<unsigned char>(c) >= 0x80;
  });
}

// Classes have methods and other classes; an attribute with a small first letter that has attributes is a module or a
// function.
bool is_class(std::string_view module, std::string_view word, bool is_first) {
  const std::string_view bare = without_underscores(word);
  if (bare.empty() || bare[0] < 'a' || bare[0] > 'z') return true;
  return is_first && row_of(path_of(module, word)) != 0;
}

// The harm of a name that leads from its module to another one, or none. An attribute that has attributes and is not a
// class is a module that was imported there, under its own name or another one.
Harm harm_of_way(std::string_view module, std::string_view name) {
  if (name.size() > kLongestName) return kImports;
  const bool may_be_reached = is_dotted_name(name) && is_dotted_name(module.substr(0, kLongestName));
  for (bool is_first = true;; is_first = false) {
    const auto dot = name.find('.');
    const std::string_view word = name.substr(0, dot);
    if (is_way_out(word)) return kImports;
    if (dot == std::string_view::npos) return Harm::none;
    const std::string_view rest = name.substr(dot + 1);
    if (may_be_reached && !is_class(module, word, is_first)) {
      const Danger* danger = danger_of(path_of(without_underscores(word), rest));
      return danger != nullptr && danger->harm != Harm::none ? danger->harm : kImports;
    }
    name = rest;
  }
}

}  // namespace

const Allowed* Standing::row() const noexcept {
  if (row_number == 0) return nullptr;
  if (row_number < kFirstFamily) return &kAllowlist[row_number - 1];
  if (row_number < kDTypeNumber) return &kFamilies[row_number - kFirstFamily].row;
  return row_number == kDTypeNumber ? &kDType : &kElementClass;
}

Standing standing_of(std::string_view module, std::string_view name) {
  const std::string path = path_of(module, name);
  const std::string_view python3 = python3_module(module);
  const std::uint16_t row = exact_row(python3, name, path);

  // Both spellings are looked up: which of them counts depends on the protocol that the file says it has.
  for (const std::string_view spelled : {std::string_view(path), module.substr(0, kLongestPath)}) {
    const Danger* danger = danger_of(spelled);
    if (danger != nullptr && danger->harm != Harm::none) return {row, Rule::denylist, danger->harm};
    if (danger != nullptr) break;
  }
  if (module.ends_with(".__main__")) return {row, Rule::denylist, kRunsOnImport};
  if (const Harm harm = harm_of_word(name); harm != Harm::none) return {row, Rule::last_word, harm};
  if (const Harm harm = harm_of_way(module, name); harm != Harm::none) return {row, Rule::attributes, harm};
  return {row != 0 ? row : family_row(python3, name), Rule::none, Harm::none};
}

bool is_allowed_by_weights_only(std::string_view module, std::string_view name) {
  const Standing standing{exact_row(python3_module(module), name, path_of(module, name)), Rule::none, Harm::none};
  return standing.row() != nullptr && (standing.row()->uses & kWeightsOnly) != 0;
}

std::string_view python3_module(std::string_view module) noexcept {
  const auto found = std::ranges::lower_bound(kRenamedModules, module, {}, &Python2Module::old);
  return found != std::end(kRenamedModules) && found->old == module ? found->now : module;
}

}  // namespace ballast::pickle
