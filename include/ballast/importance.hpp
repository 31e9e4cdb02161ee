// ImportanceMatrix: how much each column of each weight matters, as llama-imatrix measured it on a text.
//
// An importance matrix is read whole when it is opened: some hundred megabytes at most, never more than the file has.
// It never changes, so several threads may use one at once. The weights are shared, and outlive the matrix.
//
// Example:
//   const auto importance = ImportanceMatrix::open("imatrix.gguf", {.exclude = {"ffn_down"}});
//   if (const ImportanceEntry* entry = importance->find("blk.0.attn_q.weight")) std::cout << entry->columns << "\n";
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/open_options.hpp>
#include <ballast/source.hpp>

namespace ballast {

struct ImportanceEntry {
  std::string name;            // of the tensor, as llama.cpp calls it
  std::uint64_t columns = 0;   // of a matrix; for the older format, which does not say where matrices end, of all
  std::uint64_t matrices = 1;  // the experts of a stack
  std::uint64_t unseen = 0;    // matrices that the text never reached: all their columns matter alike
  std::shared_ptr<const std::vector<float>> weights{};  // matrix after matrix; finite, and at least 0
};

struct ImportanceOptions {
  // Parts of names. Only entries whose names contain a part of `include` are kept, unless it is empty; none that
  // contain a part of `exclude` are.
  std::vector<std::string> include{};
  std::vector<std::string> exclude{};
  OpenOptions open{};  // where the file lies, and the limits of a GGUF
};

class ImportanceMatrix {
 public:
  enum class Format : std::uint8_t { gguf, legacy };

  // Errc::malformed for a file that is no importance matrix, that is cut off, or that has a weight which is negative or
  // not finite; Errc::not_found if there is no such file.
  static std::shared_ptr<const ImportanceMatrix> open(const std::string& path, const ImportanceOptions& options = {});
  static std::shared_ptr<const ImportanceMatrix> read(const SourcePtr& source, const ImportanceOptions& options = {});

  const std::string& file() const noexcept { return file_; }  // as it was opened
  Format format() const noexcept { return format_; }
  const std::vector<std::string>& datasets() const noexcept { return datasets_; }
  std::uint64_t chunks() const noexcept { return chunks_; }          // of the text; 0 if the file does not say it
  std::uint64_t chunk_size() const noexcept { return chunk_size_; }  // in tokens; 0 if the file does not say it

  std::span<const ImportanceEntry> entries() const noexcept { return entries_; }  // sorted by name
  const ImportanceEntry* find(std::string_view name) const noexcept;

 private:
  friend class ImportanceReader;

  std::string file_;
  Format format_ = Format::gguf;
  std::vector<std::string> datasets_;
  std::uint64_t chunks_ = 0, chunk_size_ = 0;
  std::vector<ImportanceEntry> entries_;
};

std::string_view name(ImportanceMatrix::Format format) noexcept;  // "gguf", "legacy"

}  // namespace ballast
