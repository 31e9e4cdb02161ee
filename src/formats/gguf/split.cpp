#include "formats/gguf/split.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/remedy.hpp"
#include "core/text.hpp"
#include "tensor/doors.hpp"

namespace ballast::gguf {
namespace {

constexpr std::string_view kNumberKey = "split.no", kCountKey = "split.count", kTensorsKey = "split.tensors.count";
constexpr std::string_view kEnding = ".gguf";

bool take(std::string_view& text, std::string_view ending) {
  if (!text.ends_with(ending)) return false;
  text.remove_suffix(ending.size());
  return true;
}

std::string_view take_digits(std::string_view& text) {
  const auto last = text.find_last_not_of("0123456789");
  const std::size_t size = last == std::string_view::npos ? 0 : text.size() - last - 1;
  const std::string_view digits = text.substr(text.size() - size);
  text.remove_suffix(size);
  return digits;
}

void check_part(const GgufFile& part, const ShardName& name, const std::string& path) {
  const std::uint64_t count = part.split ? part.split->count : 0, index = part.split ? part.split->number : 0;
  if (count == name.count && index == name.number - 1) return;
  const std::string says =
      part.split ? fmt::format("says that it is part {} of {}", index + 1, count) : "says that it is not a part";
  throw Error(Errc::malformed, fmt::format("a file called part {} of {} {}", name.number, name.count, says))
      .in(path)
      .hint("the files were renamed, or are of two sets; rename them as gguf-split did");
}

SourcePtr open_part(const ShardName& name, const Files& files) try {
  return files.open(name.text());
} catch (const Error& error) {
  if (error.code() != Errc::not_found) throw;
  throw Error(Errc::not_found, fmt::format("part {} of {} is missing", name.number, name.count))
      .in(name.text())
      .hint("all parts must lie in one folder");
}

std::vector<GgufFile> read_parts(const SourcePtr& file, const ShardName& name, const Files& files,
                                 const ReadOptions& options) {
  std::vector<GgufFile> parts;
  ShardName each = name;
  for (each.number = 1; each.number <= name.count; ++each.number) {
    const SourcePtr part = each.number == name.number ? file : open_part(each, files);
    parts.push_back(read(part, options));
    check_part(parts.back(), each, part->name());
  }
  return parts;
}

void move_into(std::vector<Note>& all, std::vector<Note>& some) {
  std::move(some.begin(), some.end(), std::back_inserter(all));
}

void check_total(const Split& split, std::uint64_t tensors, const std::string& path) {
  const std::uint64_t expected = split.tensors.value_or(tensors);
  if (expected == tensors) return;
  throw Error(Errc::malformed,
              fmt::format("the parts have {} tensors together, and say that they have {}", tensors, expected))
      .in(path);
}

GgufFile joined(std::vector<GgufFile> parts, const std::string& path) {
  GgufFile whole = std::move(parts.front());
  std::vector<StateDict> tensors;
  tensors.push_back(std::move(whole.checkpoint.tensors));
  for (GgufFile& part : std::span(parts).subspan(1)) {
    tensors.push_back(std::move(part.checkpoint.tensors));
    move_into(whole.checkpoint.notes, part.checkpoint.notes);
    whole.checkpoint.files.push_back(std::move(part.checkpoint.files.front()));
    whole.unknown_types.merge(part.unknown_types);
  }
  StateDict all;
  if (const auto twice = Doors::adopt_all(all, std::move(tensors)))
    throw Error(Errc::malformed, "tensor " + quote(all[*twice].name) + " is in two parts").in(path);
  check_total(whole.split.value_or(Split{}), all.size(), path);
  whole.checkpoint.tensors = std::move(all);
  whole.checkpoint.shards = parts.size();
  whole.checkpoint.target = path;
  whole.fields = without_split(std::move(whole.fields));
  whole.split.reset();
  return whole;
}

}  // namespace

std::optional<ShardName> parse_part_name(const std::string& path) {
  return path.ends_with(kEnding) ? parse_usual_shard_name(path) : std::nullopt;
}

std::vector<std::string> set_of(const std::string& path, const Limits& limits) {
  auto name = parse_part_name(path);
  if (!name || name->count == 1) return {path};
  if (name->count > limits.max_shards) {
    throw Error(Errc::limit,
                fmt::format("{} parts are more than the {} that are allowed", name->count, limits.max_shards))
        .in(path)
        .hint(raise_limit("max_shards"));
  }
  std::vector<std::string> parts;
  for (name->number = 1; name->number <= name->count; ++name->number) parts.push_back(name->text());
  return parts;
}

std::optional<Split> split_of(const TypedMetadata& fields) {
  const std::uint64_t count = fields.find_uint(kCountKey).value_or(0);
  if (count == 0) return std::nullopt;
  return Split{fields.find_uint(kNumberKey).value_or(0), count, fields.find_uint(kTensorsKey)};
}

TypedMetadata without_split(TypedMetadata fields) {
  for (const std::string_view key : {kNumberKey, kCountKey, kTensorsKey}) fields.remove(key);
  return fields;
}

// Does as gguf-split does: with these types, in this order, and all other keys in the first part only.
TypedMetadata fields_of_part(const TypedMetadata& whole, std::uint64_t number, std::uint64_t count,
                             std::uint64_t tensors) {
  constexpr std::uint64_t kMostParts = std::numeric_limits<std::uint16_t>::max();
  constexpr std::uint64_t kMostTensors = std::numeric_limits<std::int32_t>::max();
  if (count > kMostParts || tensors > kMostTensors) {
    throw Error(Errc::unsupported,
                fmt::format("{} parts with {} tensors are more than a set of GGUF files can have", count, tensors))
        .hint("make the parts larger");
  }
  TypedMetadata fields = number == 0 ? without_split(whole) : TypedMetadata();
  fields.set(MetadataEntry::of(kNumberKey, static_cast<std::uint16_t>(number)));
  fields.set(MetadataEntry::of(kCountKey, static_cast<std::uint16_t>(count)));
  fields.set(MetadataEntry::of(kTensorsKey, static_cast<std::int32_t>(tensors)));
  return fields;
}

GgufFile read_set(const SourcePtr& file, const Files& files, const ReadOptions& options) {
  const std::string& path = file->name();
  if (set_of(path, options.limits).size() > 1)
    return joined(read_parts(file, *parse_part_name(path), files, options), path);
  GgufFile alone = read(file, options);
  if (alone.split && alone.split->count > 1) {
    throw Error(Errc::not_found, fmt::format("this is part {} of {}, but its name does not say where the others are",
                                             alone.split->number + 1, alone.split->count))
        .in(path)
        .hint(fmt::format("call it NAME-{:05}-of-{:05}.gguf, as gguf-split did", alone.split->number + 1,
                          alone.split->count));
  }
  return alone;
}

std::optional<std::string> raw_split_hint(const std::string& path) {
  std::string_view rest = path;
  std::string pieces;  // a shell pattern that names all of them, in order
  if (const std::string_view count = take_digits(rest); !count.empty()) {
    if (!take(rest, "of") || take_digits(rest).empty() || !take(rest, "part")) return std::nullopt;
    pieces = fmt::format("part{{1..{0}}}of{0}", count);
  } else {
    if (!rest.empty()) rest.remove_suffix(1);  // a letter
    if (!take(rest, "split-")) return std::nullopt;
    pieces = "split-*";
  }
  if (rest.empty()) return std::nullopt;
  const char separator = rest.back();
  rest.remove_suffix(1);
  if ((separator != '.' && separator != '-') || !rest.ends_with(kEnding)) return std::nullopt;
  const std::string_view whole = rest.substr(rest.find_last_of('/') + 1);
  return fmt::format("join the pieces first: cat {0}{1}{2} > {0}", whole, separator, pieces);
}

}  // namespace ballast::gguf
