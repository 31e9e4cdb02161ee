// PickleWriter: pickle protocol 2, opcode by opcode as CPython's C pickler writes it under torch.save.
//
// That includes the memo: CPython gives every object that could occur again a number, whether it does or not, so the
// numbers must be counted even if nobody asks for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/name_hash.hpp"

namespace ballast::torch {

class PickleWriter {
 public:
  PickleWriter();

  // The same global, or the same shared text, is written once and fetched from the memo afterwards. A module or a name
  // must not have a line end in it.
  void global(std::string_view module, std::string_view name);
  void shared_text(const std::string& text);

  void text(std::string_view text);  // UTF-8, below 4 GiB
  void integer(std::uint64_t value);
  void integer(std::int64_t value);
  void real(double value);
  void boolean(bool value);

  // A tuple of the `count` values that are written between the two calls. Protocol 2 needs no mark for up to three.
  void begin_tuple(std::size_t count);
  void end_tuple(std::size_t count);

  void reduce();         // a callable and a tuple become an object
  void persistent_id();  // a tuple becomes something that lies outside the pickle

  // Keys and values of a dict that is on the stack, in batches: each call says how many pairs the batch has.
  static constexpr std::size_t kBatch = 1000;
  void begin_batch(std::size_t pairs);
  void end_batch(std::size_t pairs);

  std::vector<std::byte> finish();

 private:
  void put(char opcode) { bytes_.push_back(static_cast<std::byte>(opcode)); }
  void put_raw(std::string_view raw);
  void put_little_endian(std::uint64_t value, std::size_t size);
  void memoize();
  bool fetch(const std::string& key);  // true if it was in the memo

  std::vector<std::byte> bytes_;
  std::uint32_t memo_size_ = 0;
  NameMap<std::uint32_t> memo_;  // only what is looked up by its content
};

}  // namespace ballast::torch
