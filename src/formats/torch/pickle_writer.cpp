#include "formats/torch/pickle_writer.hpp"

#include <bit>
#include <limits>
#include <span>
#include <utility>

namespace ballast::torch {
namespace {

// The opcodes that torch.save needs, as pickletools calls them.
enum Opcode : char {
  kProto = '\x80',
  kMark = '(',
  kStop = '.',
  kGlobal = 'c',
  kBinUnicode = 'X',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kBinInt = 'J',
  kLong1 = '\x8a',
  kBinFloat = 'G',
  kNewTrue = '\x88',
  kNewFalse = '\x89',
  kEmptyTuple = ')',
  kTuple1 = '\x85',
  kTuple2 = '\x86',
  kTuple3 = '\x87',
  kTuple = 't',
  kReduce = 'R',
  kBinPersId = 'Q',
  kSetItem = 's',
  kSetItems = 'u',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kBinGet = 'h',
  kLongBinGet = 'j',
};

}  // namespace

PickleWriter::PickleWriter() {
  put(kProto);
  put('\2');
}

void PickleWriter::global(std::string_view module, std::string_view name) {
  const std::string line = std::string(module) + "\n" + std::string(name) + "\n";
  if (fetch(line)) return;
  put(kGlobal);
  put_raw(line);
  memoize();
}

void PickleWriter::shared_text(const std::string& text) {
  if (fetch(text)) return;
  this->text(text);
}

void PickleWriter::text(std::string_view text) {
  put(kBinUnicode);
  put_little_endian(text.size(), 4);
  put_raw(text);
  memoize();
}

void PickleWriter::integer(std::uint64_t value) {
  if (value <= std::numeric_limits<std::int64_t>::max()) return integer(static_cast<std::int64_t>(value));
  put(kLong1);  // one byte more, so that the highest bit is not a sign
  put('\x09');
  put_little_endian(value, 8);
  put('\0');
}

void PickleWriter::integer(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  if (bits <= 0xFF) {
    put(kBinInt1);
    return put_little_endian(bits, 1);
  }
  if (bits <= 0xFFFF) {
    put(kBinInt2);
    return put_little_endian(bits, 2);
  }
  if (value == static_cast<std::int32_t>(value)) {
    put(kBinInt);
    return put_little_endian(bits, 4);
  }
  // The fewest bytes of two's complement that keep the sign.
  const auto size = static_cast<std::size_t>(std::bit_width(value < 0 ? ~bits : bits) / 8 + 1);
  put(kLong1);
  put(static_cast<char>(size));
  put_little_endian(bits, size);
}

void PickleWriter::real(double value) {
  put(kBinFloat);  // big-endian, unlike every other number in a pickle
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int shift = 56; shift >= 0; shift -= 8) put(static_cast<char>(bits >> shift & 0xFF));
}

void PickleWriter::boolean(bool value) { put(value ? kNewTrue : kNewFalse); }

void PickleWriter::begin_tuple(std::size_t count) {
  if (count > 3) put(kMark);
}

void PickleWriter::end_tuple(std::size_t count) {
  constexpr Opcode kSmall[] = {kEmptyTuple, kTuple1, kTuple2, kTuple3};
  put(count > 3 ? kTuple : kSmall[count]);
  if (count != 0) memoize();  // there is only one empty tuple
}

void PickleWriter::reduce() {
  put(kReduce);
  memoize();
}

void PickleWriter::persistent_id() { put(kBinPersId); }

void PickleWriter::begin_batch(std::size_t pairs) {
  if (pairs > 1) put(kMark);
}

void PickleWriter::end_batch(std::size_t pairs) { put(pairs > 1 ? kSetItems : kSetItem); }

std::vector<std::byte> PickleWriter::finish() {
  put(kStop);
  return std::move(bytes_);
}

void PickleWriter::put_raw(std::string_view raw) {
  const auto bytes = std::as_bytes(std::span(raw));
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

void PickleWriter::put_little_endian(std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) put(static_cast<char>(value >> (8 * i) & 0xFF));
}

void PickleWriter::memoize() {
  const std::uint32_t number = memo_size_++;
  put(number <= 0xFF ? kBinPut : kLongBinPut);
  put_little_endian(number, number <= 0xFF ? 1 : 4);
}

// A new key gets the number that memoize() will give next.
bool PickleWriter::fetch(const std::string& key) {
  const auto [known, is_new] = memo_.try_emplace(key, memo_size_);
  if (is_new) return false;
  put(known->second <= 0xFF ? kBinGet : kLongBinGet);
  put_little_endian(known->second, known->second <= 0xFF ? 1 : 4);
  return true;
}

}  // namespace ballast::torch
