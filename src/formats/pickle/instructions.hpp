// What each instruction of a pickle does; machine.cpp says which byte stands for which instruction. No other file needs
// this.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/limits.hpp>

#include "formats/pickle/flat_array.hpp"
#include "formats/pickle/graph.hpp"
#include "formats/pickle/literals.hpp"
#include "formats/pickle/machine.hpp"
#include "formats/pickle/memo.hpp"
#include "formats/pickle/window.hpp"

namespace ballast::pickle {

// The error of an instruction that cannot do what it says, but whose bytes have been read.
class Failure : public Error {
 public:
  using Error::Error;
};

// A stack of values, a stack of marks (each is a height of the first stack), and a memo.
//
// An instruction reads its bytes first, then takes from the stack, then gives back, then complains: so a caller that
// only looks for globals can go on behind it. For such a caller, a value that cannot be read is None. A complaint never
// stops the machine then, because Python would let many of them pass. An instruction that finds less on the stack than
// it needs fails, and Python would stop there too.
class Machine {
 public:
  // Without a list, the first complaint is thrown.
  Machine(Graph& graph, std::uint64_t first, std::uint64_t last, const Limits& limits, std::vector<Error>* complaints,
          RawArrays arrays)
      : graph_(graph),
        window_(*graph.source(), first, last, limits.max_pickle_bytes),
        most_nodes_(limits.max_pickle_nodes),
        first_node_(graph.size()),
        first_link_(graph.link_count()),
        complaints_(complaints),
        limits_(limits),
        arrays_(arrays) {}

  Pickle run();  // up to STOP

 private:
  struct Opcode {
    std::uint8_t byte;
    std::string_view name;
    void (Machine::*run)();  // null if the byte is not an instruction
  };
  static const std::array<Opcode, 68> kOpcodes;
  static const std::array<Opcode, 256> kByByte;
  static constexpr std::array<Opcode, 256> by_byte(const std::array<Opcode, 68>& opcodes);

  void step();
  void check_limits() const;

  template <class... Words>
  void complain(fmt::format_string<Words...> what, Words&&... words) {
    complain_as(Errc::malformed, fmt::format(what, std::forward<Words>(words)...));
  }
  void complain_as(Errc code, std::string_view what);
  void complain_about(NodeId target);
  template <class... Words>
  [[noreturn]] void fail(fmt::format_string<Words...> what, Words&&... words) const {
    throw_failure(Errc::malformed, fmt::format(what, std::forward<Words>(words)...));
  }
  [[noreturn]] void throw_failure(Errc code, std::string_view what) const;

  // The stack. Values below the last mark are out of reach.
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  void require(std::size_t count) const;
  void push(NodeId id) { stack_.push_back(id); }
  NodeId top() const {
    require(1);
    return stack_.back();
  }
  NodeId pop() {
    const NodeId id = top();
    stack_.pop_back();
    return id;
  }
  std::size_t pop_mark();  // where the values above the mark begin
  NodeId below(std::size_t first);
  bool is(NodeId id, Kind kind) const { return graph_.kind(id) == kind; }
  bool takes(NodeId target, Kind kind) const { return is(target, kind) || is(target, Kind::object); }

  void mark() { marks_.push_back(static_cast<std::uint32_t>(stack_.size())); }
  void stop();
  void pop_one();
  void pop_to_mark() { stack_.shrink(pop_mark()); }
  void duplicate() { push(top()); }

  // Numbers, and None
  void none() { push(graph_.add_none(at_)); }
  template <bool value>
  void boolean() {
    push(graph_.add_boolean(value, at_));
  }
  void binint() { push(graph_.add_integer(window_.numbers(4, "BININT").i32("BININT"), at_)); }
  void binint1() { push(graph_.add_integer(window_.u8("BININT1"), at_)); }
  void binint2() { push(graph_.add_integer(window_.numbers(2, "BININT2").u16("BININT2"), at_)); }
  void binfloat() { push(graph_.add_real(window_.numbers(8, "BINFLOAT", std::endian::big).f64("BINFLOAT"), at_)); }
  void long1() { twos_complement(window_.u8("LONG1")); }
  void long4() { twos_complement(signed_length()); }
  void integer_line();
  void long_line();
  void float_line();
  void push_integer(const Integer& value);
  void push_parsed(std::string_view line);
  void twos_complement(std::uint64_t size);
  std::string_view number_line();

  // Text and bytes
  template <std::size_t length_bytes>
  std::uint64_t length() {
    if constexpr (length_bytes == 1) return window_.u8(op_->name);
    if constexpr (length_bytes == 4) return window_.numbers(4, op_->name).u32(op_->name);
    if constexpr (length_bytes == 8) return window_.numbers(8, op_->name).u64(op_->name);
  }
  template <std::size_t length_bytes>
  void text() {
    push_text(length<length_bytes>());
  }
  template <Kind kind, std::size_t length_bytes>
  void bytes() {
    push_bytes(kind, length<length_bytes>());
  }
  void binstring() { python2_string(signed_length()); }
  void short_binstring() { python2_string(window_.u8("SHORT_BINSTRING")); }
  void string_line();
  void unicode_line();
  std::uint64_t signed_length();
  std::string_view near_chars(std::uint64_t size);
  void push_far(Kind kind, std::uint64_t size);
  void push_text(std::uint64_t size);
  void push_bytes(Kind kind, std::uint64_t size);
  void python2_string(std::uint64_t size);
  void push_python2(std::string_view chars);

  // Containers
  template <Kind kind>
  void empty() {
    push(graph_.add(kind, at_));
  }
  template <Kind kind>
  void from_mark() {
    push(collect(kind, pop_mark()));
  }
  template <std::size_t count>
  void tuple_of() {
    require(count);
    push(collect(Kind::tuple, stack_.size() - count));
  }
  template <Kind kind>
  void append_all() {
    append_all_to(kind);
  }
  void dict();
  void append();
  void set_item();
  void set_all_items();
  NodeId collect(Kind kind, std::size_t first);
  void append_all_to(Kind kind);
  bool set_items(NodeId target, std::size_t first);

  // Objects
  template <Making making>
  void call() {
    require(2);
    const NodeId arguments = pop(), callee = pop();
    add_object(making, callee, arguments);
  }
  void newobj_ex();
  void obj();
  void inst();
  void build();
  void step_over_array(NodeId wrapper);
  void add_object(Making making, NodeId callee, NodeId arguments, NodeId keywords = kNoNode);

  // Globals and ids
  void global() { push(named_global()); }
  void stack_global();
  void persistent_line();
  void persistent() { push(graph_.add_persistent(pop(), at_)); }
  NodeId named_global();

  // The memo
  void put_binary() { put_at(window_.u8("BINPUT")); }
  void put_long() { put_at(window_.numbers(4, "LONG_BINPUT").u32("LONG_BINPUT")); }
  void get_binary() { get_from(window_.u8("BINGET")); }
  void get_long() { get_from(window_.numbers(4, "LONG_BINGET").u32("LONG_BINGET")); }
  void memoize() { put_at(memo_.count()); }
  void put_line();
  void get_line();
  void put_at(std::uint64_t index) { memo_.put(index, top()); }
  void get_from(std::uint64_t index);
  std::optional<std::uint64_t> index_line();

  // About the stream
  void protocol();
  void frame();
  template <std::size_t size>
  void extension() {
    window_.skip(size, op_->name);
    none();
    complain_as(Errc::unsupported, "names a global by a number that only the program that wrote the file knows");
  }
  void next_buffer();
  void readonly_buffer();

  Graph& graph_;
  Window window_;
  const std::uint64_t most_nodes_;
  const std::size_t first_node_, first_link_;  // a graph may hold other pickles already
  std::vector<Error>* const complaints_;
  const Limits& limits_;
  const RawArrays arrays_;
  FlatArray<NodeId> stack_;
  FlatArray<std::uint32_t> marks_;
  Memo memo_;
  const Opcode* op_ = nullptr;
  std::uint64_t at_ = 0;  // of the instruction
  NodeId root_ = kNoNode;
};

}  // namespace ballast::pickle
