#include <ballast/importance.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/remote.hpp>

#include "core/cursor.hpp"
#include "core/text.hpp"
#include "formats/gguf/reader.hpp"
#include "tensor/source_storage.hpp"

namespace ballast {
namespace {

constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";

bool contains_one_of(std::string_view name, std::span<const std::string> parts) {
  return std::ranges::any_of(parts, [&](const std::string& part) { return name.find(part) != name.npos; });
}

bool is_kept(std::string_view name, const ImportanceOptions& options) {
  return !contains_one_of(name, options.exclude) && (options.include.empty() || contains_one_of(name, options.include));
}

// Sums of larger weights would not be finite.
constexpr float kLargestWeight = 1e20F;

void check_values(std::string_view name, std::span<const float> values, std::string_view what) {
  for (const float value : values) {
    if (!(value >= 0 && value <= kLargestWeight))
      throw Error(Errc::malformed, fmt::format("a {} of {} is {}", what, quote(name), value));
  }
}

}  // namespace

class ImportanceReader {
 public:
  ImportanceReader(SourcePtr source, const ImportanceOptions& options) : source_(std::move(source)), options_(options) {
    matrix_->file_ = source_->name();
  }

  std::shared_ptr<const ImportanceMatrix> read() {
    std::array<std::byte, 4> magic{};
    if (source_->size_bytes() >= magic.size()) source_->read(0, magic);
    std::string_view(reinterpret_cast<const char*>(magic.data()), magic.size()) == "GGUF" ? read_gguf() : read_legacy();
    if (entry_count_ == 0) throw Error(Errc::malformed, "an importance matrix without entries");
    auto& entries = matrix_->entries_;
    std::ranges::sort(entries, {}, &ImportanceEntry::name);
    const auto twice = std::ranges::adjacent_find(entries, {}, &ImportanceEntry::name);
    if (twice != entries.end()) throw Error(Errc::malformed, "tensor " + quote(twice->name) + " has two entries");
    return matrix_;
  }

 private:
  // Two F32 tensors for each entry: NAME.in_sum2 [matrices, columns], the sums of the squares of what a column was
  // multiplied with, and NAME.counts [matrices, 1], how many were added.
  void read_gguf() {
    const gguf::GgufFile file = gguf::read(source_, {.limits = options_.open.limits});
    read_fields(file.fields);
    std::map<std::string_view, std::pair<const Tensor*, const Tensor*>> pairs;
    for (const auto& [name, tensor] : file.checkpoint) {
      const std::string_view whole = name;
      if (whole.ends_with(kSums)) pairs[whole.substr(0, whole.size() - kSums.size())].first = &tensor;
      if (whole.ends_with(kCounts)) pairs[whole.substr(0, whole.size() - kCounts.size())].second = &tensor;
    }
    for (const auto& [name, pair] : pairs) {
      if (pair.first == nullptr || pair.second == nullptr) {
        throw Error(Errc::malformed,
                    fmt::format("{} has no {}", quote(name), pair.first == nullptr ? "sums" : "counts"));
      }
      add_sums(name, *pair.first, *pair.second);
    }
  }

  void read_fields(const TypedMetadata& fields) {
    const MetadataEntry* const datasets = fields.find("imatrix.datasets");
    const auto chunks = fields.find_uint("imatrix.chunk_count"), chunk_size = fields.find_uint("imatrix.chunk_size");
    if (datasets == nullptr || !datasets->is_array() || datasets->element_type != MetadataType::string || !chunks ||
        !chunk_size) {
      throw Error(Errc::malformed, "a GGUF without the metadata of an importance matrix")
          .hint("imatrix.datasets, imatrix.chunk_count and imatrix.chunk_size are needed; llama-imatrix writes them");
    }
    for (const MetadataValue text : datasets->items()) matrix_->datasets_.emplace_back(text.as_string().value_or(""));
    matrix_->chunks_ = *chunks;
    matrix_->chunk_size_ = *chunk_size;
  }

  void add_sums(std::string_view name, const Tensor& sums, const Tensor& counts) {
    ++entry_count_;
    if (sums.dtype() != DType::f32 || counts.dtype() != DType::f32)
      throw Error(Errc::malformed, "the sums and counts of " + quote(name) + " must be F32");
    const std::uint64_t matrices = counts.numel();
    if (matrices == 0 || sums.numel() == 0 || sums.numel() % matrices != 0) {
      throw Error(Errc::malformed,
                  fmt::format("{} has {} sums, which do not belong to {} counts", quote(name), sums.numel(), matrices));
    }
    if (!is_kept(name, options_)) return;
    std::vector<float> weights = sums.values<float>();
    const std::vector<float> added = counts.values<float>();
    check_values(name, weights, "sum");
    check_values(name, added, "count");
    ImportanceEntry entry{.name = std::string(name), .columns = weights.size() / matrices, .matrices = matrices};
    for (std::size_t i = 0; i < added.size(); ++i) {
      const float count = std::round(added[i]);
      entry.unseen += count == 0;
      for (float& weight : std::span(weights).subspan(i * entry.columns, entry.columns))
        weight = count == 0 ? 1 : weight / count;
    }
    keep(std::move(entry), std::move(weights));
  }

  // The older format, little-endian and without a magic:
  //   1. entries               i32
  //   2. for each of them      i32 length, name, i32 calls, i32 values, and so many F32: means times calls
  //   3. chunks                i32, from here on optional
  //   4. data set              i32 length, text
  void read_legacy() try {
    matrix_->format_ = ImportanceMatrix::Format::legacy;
    const std::uint64_t entries = positive("number of entries");
    constexpr std::uint64_t kSmallestEntry = 4 + 1 + 4 + 4 + 4;
    require_room(entries, kSmallestEntry, "number of entries");
    for (std::uint64_t i = 0; i < entries; ++i) read_legacy_entry();
    if (remaining() == 0) return;
    matrix_->chunks_ = static_cast<std::uint64_t>(std::max(i32("number of chunks"), 0));
    if (remaining() == 0) return;
    const std::int32_t length = i32("length of the data set's name");
    if (length > 0) matrix_->datasets_.push_back(text(static_cast<std::uint64_t>(length), "data set's name"));
    if (remaining() != 0) throw Error(Errc::malformed, "bytes follow the data set's name").at_byte(at_);
  } catch (Error& error) {
    throw error.hint("an importance matrix is a GGUF of llama-imatrix, or its older format");
  }

  void read_legacy_entry() {
    const std::string name = text(positive("length of a name"), "name");
    const std::int32_t calls = i32("number of calls");
    const std::uint64_t count = positive("number of values");
    require_room(count, sizeof(float), "number of values");
    const std::uint64_t begin = at_;
    at_ += count * sizeof(float);
    ++entry_count_;
    if (name.empty() || name.find('\0') != name.npos)
      throw Error(Errc::malformed, "the name " + quote(name) + " names no tensor").at_byte(begin);
    if (!is_kept(name, options_)) return;
    const Tensor stored(DType::f32, {count}, source_storage(source_, begin, count * sizeof(float)));
    std::vector<float> weights = stored.values<float>();
    check_values(name, weights, "weight");
    if (calls > 0) {
      for (float& weight : weights) weight /= static_cast<float>(calls);
    }
    ImportanceEntry entry{.name = name, .columns = count, .unseen = calls > 0 ? 0u : 1u};
    keep(std::move(entry), std::move(weights));
  }

  std::uint64_t remaining() const { return source_->size_bytes() - at_; }

  void require_room(std::uint64_t count, std::uint64_t bytes_each, std::string_view what) const {
    if (count <= remaining() / bytes_each) return;
    throw Error(Errc::malformed, fmt::format("the {} is {}, but only {} bytes follow", what, count, remaining()))
        .at_byte(at_);
  }

  std::int32_t i32(std::string_view what) {
    std::array<std::byte, 4> bytes{};
    if (remaining() < bytes.size()) throw Error(Errc::malformed, fmt::format("ends inside the {}", what)).at_byte(at_);
    source_->read(at_, bytes);
    at_ += bytes.size();
    return Cursor(bytes).i32(what);
  }

  std::uint64_t positive(std::string_view what) {
    const std::int32_t number = i32(what);
    if (number > 0) return static_cast<std::uint64_t>(number);
    throw Error(Errc::malformed, fmt::format("the {} is {}", what, number)).at_byte(at_ - 4);
  }

  std::string text(std::uint64_t size, std::string_view what) {
    require_room(size, 1, fmt::format("length of a {}", what));
    std::string bytes(static_cast<std::size_t>(size), '\0');
    source_->read(at_, std::as_writable_bytes(std::span(bytes)));
    at_ += size;
    return bytes;
  }

  void keep(ImportanceEntry entry, std::vector<float> weights) {
    entry.weights = std::make_shared<const std::vector<float>>(std::move(weights));
    matrix_->entries_.push_back(std::move(entry));
  }

  SourcePtr source_;
  const ImportanceOptions& options_;
  std::shared_ptr<ImportanceMatrix> matrix_ = std::make_shared<ImportanceMatrix>();
  std::uint64_t at_ = 0;
  std::uint64_t entry_count_ = 0;  // also those that the options leave out
};

std::shared_ptr<const ImportanceMatrix> ImportanceMatrix::open(const std::string& path,
                                                               const ImportanceOptions& options) {
  return read(options_for(path, options.open).files->open(path), options);
}

std::shared_ptr<const ImportanceMatrix> ImportanceMatrix::read(const SourcePtr& source,
                                                               const ImportanceOptions& options) try {
  return ImportanceReader(source, options).read();
} catch (Error& error) {
  throw error.in(source->name());
}

const ImportanceEntry* ImportanceMatrix::find(std::string_view name) const noexcept {
  const auto entry = std::ranges::lower_bound(entries_, name, {}, &ImportanceEntry::name);
  return entry != entries_.end() && entry->name == name ? &*entry : nullptr;
}

std::string_view name(ImportanceMatrix::Format format) noexcept {
  return format == ImportanceMatrix::Format::gguf ? "gguf" : "legacy";
}

}  // namespace ballast
