#include "formats/torch/latin1_storage.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

namespace ballast::torch {
namespace {

constexpr std::size_t kWindowBytes = 65536;

[[noreturn]] void throw_not_latin1() {
  throw Error(Errc::malformed, "text that stands for bytes holds a character above U+00FF");
}

bool is_lead(char c) { return (static_cast<unsigned char>(c) & 0xFE) == 0xC2; }  // of U+0080 to U+00FF
bool is_trail(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Decodes as much as fits; a character that the end of the text cuts is left. Returns how much of each was used.
struct Step {
  std::size_t read = 0, written = 0;
};
Step decode(std::string_view text, std::span<std::byte> out) {
  Step step;
  while (step.read < text.size() && step.written < out.size()) {
    const char c = text[step.read];
    if (static_cast<unsigned char>(c) < 0x80) {
      out[step.written++] = static_cast<std::byte>(c);
      ++step.read;
      continue;
    }
    if (!is_lead(c)) throw_not_latin1();
    if (step.read + 1 == text.size()) break;
    if (!is_trail(text[step.read + 1])) throw_not_latin1();
    out[step.written++] = static_cast<std::byte>(((c & 3) << 6) | (text[step.read + 1] & 0x3F));
    step.read += 2;
  }
  return step;
}

class Latin1Storage final : public Storage {
 public:
  Latin1Storage(SourcePtr source, std::uint64_t offset, std::uint64_t text_bytes, std::uint64_t size)
      : source_(std::move(source)), offset_(offset), text_bytes_(text_bytes), size_(size) {}

  std::uint64_t size_bytes() const override { return size_; }
  bool is_sequential() const override { return true; }
  void check_unchanged() const override { source_->check_unchanged(); }
  Derivation derivation() const override {
    const auto place = source_->location(offset_);
    return {"bytes from text", {}, place ? std::optional(Location{place->file, place->offset}) : std::nullopt};
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::lock_guard lock(mutex_);
    if (offset < decoded_) text_at_ = decoded_ = 0;
    std::array<std::byte, 4096> skipped;
    while (decoded_ < offset) {
      const std::uint64_t gap = offset - decoded_;
      advance(std::span(skipped).first(static_cast<std::size_t>(std::min<std::uint64_t>(gap, skipped.size()))));
    }
    while (!out.empty()) out = out.subspan(advance(out));
    if (decoded_ == size_ && text_at_ != text_bytes_) throw_wrong_size();
  }

 private:
  std::size_t advance(std::span<std::byte> out) const {
    std::array<char, kWindowBytes> window;
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(window.size(), text_bytes_ - text_at_));
    if (size == 0) throw_wrong_size();
    source_->read(offset_ + text_at_, std::as_writable_bytes(std::span(window).first(size)));
    const Step step = decode({window.data(), size}, out);
    if (step.read == 0) throw_not_latin1();
    text_at_ += step.read;
    decoded_ += step.written;
    return step.written;
  }

  [[noreturn]] void throw_wrong_size() const {
    throw Error(Errc::malformed, "text that stands for bytes does not come to " + std::to_string(size_) + " bytes")
        .in(source_->name())
        .at_byte(offset_);
  }

  SourcePtr source_;
  std::uint64_t offset_, text_bytes_, size_;
  mutable std::mutex mutex_;
  mutable std::uint64_t text_at_ = 0, decoded_ = 0;
};

}  // namespace

std::vector<std::byte> decode_latin1(std::string_view utf8) {
  std::vector<std::byte> bytes(utf8.size());
  const Step step = decode(utf8, bytes);
  if (step.read != utf8.size()) throw_not_latin1();
  bytes.resize(step.written);
  return bytes;
}

StoragePtr latin1_storage(SourcePtr source, std::uint64_t offset, std::uint64_t text_bytes, std::uint64_t size_bytes) {
  return std::make_shared<Latin1Storage>(std::move(source), offset, text_bytes, size_bytes);
}

}  // namespace ballast::torch
