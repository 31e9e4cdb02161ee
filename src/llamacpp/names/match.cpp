#include "llamacpp/names/match.hpp"

#include <algorithm>
#include <charconv>

namespace ballast::names {
namespace {

constexpr std::string_view kBlock = "{}", kNumber = "#", kInside = "language_model.";
constexpr std::string_view kMtpLayers = "mtp.layers.", kLayers = "model.layers.";
constexpr std::size_t kMostDigits = 9;  // digits of a block's number

std::optional<std::uint64_t> number_in(std::string_view text) {
  const bool is_number = !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  if (!is_number || text.size() > kMostDigits) return std::nullopt;
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

struct Places {
  std::optional<std::uint64_t> block, number;
};

// The numbers where the pattern has {} and #; nothing if the name does not match it.
std::optional<Places> places_in(std::string_view pattern, std::string_view name) {
  Places places;
  while (true) {
    const std::size_t at = pattern.find_first_of("{#");
    if (at == std::string_view::npos) return name == pattern ? std::optional(places) : std::nullopt;
    if (name.size() <= at || name.substr(0, at) != pattern.substr(0, at)) return std::nullopt;
    const bool is_block = pattern[at] == '{';
    name.remove_prefix(at);
    pattern.remove_prefix(at + (is_block ? kBlock : kNumber).size());
    const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
    const auto number = number_in(name.substr(0, digits));
    if (!number) return std::nullopt;
    (is_block ? places.block : places.number) = number;
    name.remove_prefix(digits);
  }
}

// A pattern of a name that is left out may end in *.
bool is_like(std::string_view pattern, std::string_view name) {
  if (pattern.ends_with('*')) return name.starts_with(pattern.substr(0, pattern.size() - 1));
  return !pattern.empty() && places_in(pattern, name).has_value();
}

std::string replaced(std::string_view text, std::string_view place, std::uint64_t number) {
  std::string result(text);
  if (const std::size_t at = result.find(place); at != std::string::npos)
    result.replace(at, place.size(), std::to_string(number));
  return result;
}

// Calls use(name, which) for each of the names, which have spaces between them; stops at true.
template <class Use>
bool any_name(std::string_view names, Use use) {
  for (std::size_t which = 0; !names.empty(); ++which) {
    const std::size_t end = std::min(names.find(' '), names.size());
    if (use(names.substr(0, end), which)) return true;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return false;
}

// A norm's bias is not a difference from 1, and a bias cannot be transposed or squeezed.
Change change_of(const Row& row, std::string_view suffix) {
  if (suffix != ".bias") return row.change;
  switch (row.change) {
    case Change::add_one:
    case Change::transpose:
    case Change::squeeze:
    case Change::tile_value_columns: return Change::none;
    default: return row.change;
  }
}

bool is_of_mxfp4(const Row& row) { return row.change == Change::mxfp4 || row.change == Change::mxfp4_alternating; }

// The blocks that predict further tokens have other names at Hugging Face.
bool fits_block(const Architecture& architecture, const Row& row, std::optional<std::uint64_t> block,
                const Circumstances& circumstances) {
  if (architecture.extra_blocks != ExtraBlocks::mtp || !row.huggingface.starts_with("mtp.")) return true;
  return block == circumstances.main_blocks;
}

std::optional<Match> match_row(const Architecture& architecture, const Row& row, NameStyle style, std::string_view name,
                               const Circumstances& circumstances) {
  const bool to_gguf = style == NameStyle::gguf;
  std::string_view module = name, suffix;
  if (row.names == Names::module) {
    const std::size_t dot = name.rfind('.');
    if (dot == std::string_view::npos) return std::nullopt;
    module = name.substr(0, dot);
    suffix = name.substr(dot);
    if (suffix != ".weight" && suffix != ".bias") return std::nullopt;
  }
  std::optional<Match> found;
  any_name(to_gguf ? row.huggingface : row.gguf, [&](std::string_view pattern, std::size_t part) {
    const auto places = places_in(pattern, module);
    if (!places) return false;
    if (!to_gguf && is_of_mxfp4(row) && !circumstances.is_mxfp4) return false;
    if (!to_gguf && !fits_block(architecture, row, places->block, circumstances)) return false;
    found.emplace();
    found->row = &row;
    found->suffix = suffix;
    found->part = part;
    found->number = places->number.value_or(0);
    const bool is_outside = to_gguf && row.huggingface.starts_with("mtp.");
    found->block = places->block.value_or(is_outside ? circumstances.main_blocks : 0);
    found->change = change_of(row, suffix);
    return true;
  });
  return found;
}

std::optional<Match> match_usual(const Architecture& architecture, NameStyle style, std::string_view name,
                                 const Circumstances& circumstances) {
  for (const std::span<const Row> rows : architecture.rows) {
    for (const Row& row : rows) {
      auto found = match_row(architecture, row, style, name, circumstances);
      if (!found) continue;
      const NameStyle other = style == NameStyle::gguf ? NameStyle::gguf : NameStyle::huggingface;
      found->name = found->names_in(other, circumstances.main_blocks).front();
      return found;
    }
  }
  return std::nullopt;
}

// A name of a block that predicts further tokens, as if it were one of the others: "mtp.layers.0.x" behind 48 blocks is
// "model.layers.48.x".
std::string in_line(std::string_view name, std::uint64_t main_blocks) {
  std::string_view rest = name.substr(kMtpLayers.size());
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  const auto number = number_in(rest.substr(0, digits));
  if (!number) return std::string(name);
  return std::string(kLayers) + std::to_string(main_blocks + *number) + std::string(rest.substr(digits));
}

Match left_out() {
  Match match;
  match.is_left_out = true;
  return match;
}

std::optional<Match> match_huggingface(const Architecture& architecture, std::string_view name,
                                       const Circumstances& circumstances) {
  std::string usual(name);
  if (architecture.extra_blocks == ExtraBlocks::mtp && name.starts_with("mtp.")) {
    if (circumstances.main_blocks == 0) return std::nullopt;
    if (name.starts_with(kMtpLayers)) usual = in_line(name, circumstances.main_blocks);
  }
  if (auto found = match_usual(architecture, NameStyle::gguf, usual, circumstances)) {
    const bool is_of_block = found->row->gguf.find(kBlock) != std::string_view::npos;
    const bool is_extra = is_of_block && circumstances.main_blocks != 0 && found->block >= circumstances.main_blocks;
    return is_extra && architecture.extra_blocks == ExtraBlocks::left_out ? left_out() : *found;
  }
  constexpr std::string_view kBuffers[] = {".rotary_emb.inv_freq", ".attention.masked_bias", ".attention.bias"};
  const bool is_buffer = std::ranges::any_of(kBuffers, [&](std::string_view end) { return name.ends_with(end); });
  return is_buffer ? std::optional(left_out()) : std::nullopt;
}

bool is_listed(const Architecture& architecture, std::string_view name) {
  return std::ranges::any_of(architecture.left_out, [&](std::string_view pattern) { return is_like(pattern, name); });
}

std::optional<Match> match_other_spellings(const Architecture& architecture, const std::string& name,
                                           const Circumstances& circumstances) {
  if (is_listed(architecture, name)) return left_out();
  if (auto found = match_huggingface(architecture, name, circumstances)) return found;
  for (const Prefix& prefix : architecture.prefixes) {
    if (!name.starts_with(prefix.found)) continue;
    const std::string usual = std::string(prefix.usual).append(name.substr(prefix.found.size()));
    if (is_listed(architecture, usual)) return left_out();
    if (auto found = match_huggingface(architecture, usual, circumstances)) return found;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> Match::names_in(NameStyle style, std::uint64_t main_blocks) const {
  std::vector<std::string> names;
  if (row == nullptr) return names;
  const bool is_gguf = style == NameStyle::gguf;
  any_name(is_gguf ? row->gguf : row->huggingface, [&](std::string_view pattern, std::size_t) {
    std::string name = replaced(pattern, kBlock, block) + suffix;
    const bool is_extra = !is_gguf && main_blocks != 0 && block >= main_blocks && name.starts_with(kLayers);
    if (is_extra) {
      const std::string own = std::string(kLayers) + std::to_string(block);
      name = std::string(kMtpLayers) + std::to_string(block - main_blocks) + name.substr(own.size());
    }
    names.push_back(std::move(name));
    return false;
  });
  return names;
}

std::string with_number(std::string_view name, std::uint64_t number) { return replaced(name, kNumber, number); }

const Architecture* find_architecture(std::string_view name) noexcept {
  const auto all = architectures();
  const auto found = std::ranges::find(all, name, &Architecture::name);
  return found == all.end() ? nullptr : &*found;
}

std::string_view architecture_in(const Checkpoint& checkpoint) noexcept {
  constexpr std::string_view kKey = "general.architecture";
  if (const auto said = checkpoint.typed_metadata.find_string(kKey)) return *said;
  const auto entry = checkpoint.metadata.find(kKey);
  return entry == checkpoint.metadata.end() ? std::string_view() : std::string_view(entry->second);
}

const Architecture* find_architecture(const Checkpoint& checkpoint, const NameOptions& options) noexcept {
  return find_architecture(options.architecture.empty() ? architecture_in(checkpoint) : options.architecture);
}

std::optional<Match> match(const Architecture& architecture, NameStyle style, std::string_view name,
                           const Circumstances& circumstances) {
  if (style == NameStyle::huggingface) return match_usual(architecture, style, name, circumstances);
  // The text part of a model that sees has this somewhere in its names.
  std::string usual(name);
  if (const std::size_t at = usual.find(kInside); at != std::string::npos) usual.erase(at, kInside.size());
  // Old checkpoints of BERT call the two parts of a norm so.
  if (usual.ends_with(".gamma")) usual.replace(usual.size() - 5, 5, "weight");
  if (usual.ends_with(".beta")) usual.replace(usual.size() - 4, 4, "bias");
  return match_other_spellings(architecture, usual, circumstances);
}

bool is_of_tower(std::string_view name) noexcept {
  constexpr std::string_view kBeginnings[] = {
      "mlp",     "vit.",       "vpm.",           "siglip2.",          "conformer.",
      "merger.", "resampler.", "sound_encoder.", "sound_projection.", "speech_embeddings."};
  constexpr std::string_view kParts[] = {
      "visual.",          "vision.",        "audio.",      "talker.",       "vision_",
      "audio_",           "token2wav.",     "code2wav.",   "projector.",    "pre_mm_projector_norm",
      "image_newline",    "view_seperator", "patch_embed", "patch_merger.", "patch_merge_mlp.",
      "model.connector.", "sam_model",      "qwen2_model"};
  return std::ranges::any_of(kBeginnings, [&](std::string_view begin) { return name.starts_with(begin); }) ||
         std::ranges::any_of(kParts, [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

}  // namespace ballast::names
