#include "formats/pickle/machine.hpp"

#include <limits>

#include "core/remedy.hpp"
#include "formats/pickle/instructions.hpp"

namespace ballast::pickle {

// The order is that of Python's pickle.py.
constexpr std::array<Machine::Opcode, 68> Machine::kOpcodes = {{
    {'(', "MARK", &Machine::mark},
    {'.', "STOP", &Machine::stop},
    {'0', "POP", &Machine::pop_one},
    {'1', "POP_MARK", &Machine::pop_to_mark},
    {'2', "DUP", &Machine::duplicate},
    {'F', "FLOAT", &Machine::float_line},
    {'I', "INT", &Machine::integer_line},
    {'J', "BININT", &Machine::binint},
    {'K', "BININT1", &Machine::binint1},
    {'L', "LONG", &Machine::long_line},
    {'M', "BININT2", &Machine::binint2},
    {'N', "NONE", &Machine::none},
    {'P', "PERSID", &Machine::persistent_line},
    {'Q', "BINPERSID", &Machine::persistent},
    {'R', "REDUCE", &Machine::call<Making::reduce>},
    {'S', "STRING", &Machine::string_line},
    {'T', "BINSTRING", &Machine::binstring},
    {'U', "SHORT_BINSTRING", &Machine::short_binstring},
    {'V', "UNICODE", &Machine::unicode_line},
    {'X', "BINUNICODE", &Machine::text<4>},
    {'a', "APPEND", &Machine::append},
    {'b', "BUILD", &Machine::build},
    {'c', "GLOBAL", &Machine::global},
    {'d', "DICT", &Machine::dict},
    {'}', "EMPTY_DICT", &Machine::empty<Kind::dict>},
    {'e', "APPENDS", &Machine::append_all<Kind::list>},
    {'g', "GET", &Machine::get_line},
    {'h', "BINGET", &Machine::get_binary},
    {'i', "INST", &Machine::inst},
    {'j', "LONG_BINGET", &Machine::get_long},
    {'l', "LIST", &Machine::from_mark<Kind::list>},
    {']', "EMPTY_LIST", &Machine::empty<Kind::list>},
    {'o', "OBJ", &Machine::obj},
    {'p', "PUT", &Machine::put_line},
    {'q', "BINPUT", &Machine::put_binary},
    {'r', "LONG_BINPUT", &Machine::put_long},
    {'s', "SETITEM", &Machine::set_item},
    {'t', "TUPLE", &Machine::from_mark<Kind::tuple>},
    {')', "EMPTY_TUPLE", &Machine::empty<Kind::tuple>},
    {'u', "SETITEMS", &Machine::set_all_items},
    {'G', "BINFLOAT", &Machine::binfloat},
    // Protocol 2
    {0x80, "PROTO", &Machine::protocol},
    {0x81, "NEWOBJ", &Machine::call<Making::newobj>},
    {0x82, "EXT1", &Machine::extension<1>},
    {0x83, "EXT2", &Machine::extension<2>},
    {0x84, "EXT4", &Machine::extension<4>},
    {0x85, "TUPLE1", &Machine::tuple_of<1>},
    {0x86, "TUPLE2", &Machine::tuple_of<2>},
    {0x87, "TUPLE3", &Machine::tuple_of<3>},
    {0x88, "NEWTRUE", &Machine::boolean<true>},
    {0x89, "NEWFALSE", &Machine::boolean<false>},
    {0x8a, "LONG1", &Machine::long1},
    {0x8b, "LONG4", &Machine::long4},
    // Protocol 3
    {'B', "BINBYTES", &Machine::bytes<Kind::bytes, 4>},
    {'C', "SHORT_BINBYTES", &Machine::bytes<Kind::bytes, 1>},
    // Protocol 4
    {0x8c, "SHORT_BINUNICODE", &Machine::text<1>},
    {0x8d, "BINUNICODE8", &Machine::text<8>},
    {0x8e, "BINBYTES8", &Machine::bytes<Kind::bytes, 8>},
    {0x8f, "EMPTY_SET", &Machine::empty<Kind::set>},
    {0x90, "ADDITEMS", &Machine::append_all<Kind::set>},
    {0x91, "FROZENSET", &Machine::from_mark<Kind::frozenset>},
    {0x92, "NEWOBJ_EX", &Machine::newobj_ex},
    {0x93, "STACK_GLOBAL", &Machine::stack_global},
    {0x94, "MEMOIZE", &Machine::memoize},
    {0x95, "FRAME", &Machine::frame},
    // Protocol 5
    {0x96, "BYTEARRAY8", &Machine::bytes<Kind::bytearray, 8>},
    {0x97, "NEXT_BUFFER", &Machine::next_buffer},
    {0x98, "READONLY_BUFFER", &Machine::readonly_buffer},
}};

constexpr std::array<Machine::Opcode, 256> Machine::by_byte(const std::array<Opcode, 68>& opcodes) {
  std::array<Opcode, 256> table{};
  for (std::size_t i = 0; i < table.size(); ++i) table[i].byte = static_cast<std::uint8_t>(i);
  for (const Opcode& opcode : opcodes) table[opcode.byte] = opcode;
  return table;
}

constexpr std::array<Machine::Opcode, 256> Machine::kByByte = Machine::by_byte(Machine::kOpcodes);

Pickle Machine::run() {
  while (root_ == kNoNode) {
    try {
      step();
    } catch (const Failure& failure) {
      if (complaints_ == nullptr || complaints_->size() == kMostComplaints) throw;
      complaints_->push_back(failure);
    }
  }
  return {root_, window_.position()};
}

void Machine::step() {
  check_limits();
  at_ = window_.position();
  if (window_.remaining() == 0) throw Error(Errc::malformed, "the pickle ends without STOP").at_byte(at_);
  op_ = &kByByte[window_.u8("an instruction")];
  if (op_->run == nullptr)
    throw Error(Errc::malformed, fmt::format("0x{:02x} is no pickle instruction", op_->byte)).at_byte(at_);
  (this->*op_->run)();
}

// No instruction adds more than three nodes or one value. An instruction adds links only for what stood on the stack,
// except a few words that hold links together.
void Machine::check_limits() const {
  constexpr std::uint64_t kMostIds = std::numeric_limits<NodeId>::max() - 8;
  const std::size_t nodes = graph_.size(), links = graph_.link_count();
  if (nodes - first_node_ < most_nodes_ && stack_.size() < most_nodes_ && marks_.size() < most_nodes_ &&
      (links - first_link_) / 3 < most_nodes_ && nodes < kMostIds && links + stack_.size() < kMostIds)
    return;
  throw Error(Errc::limit, fmt::format("the pickle holds more than {} objects", most_nodes_))
      .at_byte(window_.position())
      .hint(raise_limit("max_pickle_nodes"));
}

namespace {

Pickle run_machine(Graph& graph, std::uint64_t first, std::uint64_t last, const Limits& limits,
                   std::vector<Error>* complaints, RawArrays arrays) {
  try {
    return Machine(graph, first, last, limits, complaints, arrays).run();
  } catch (Error& error) {
    error.in(graph.source()->name());
    throw;
  }
}

}  // namespace

Pickle run(Graph& graph, std::uint64_t first, std::uint64_t last, const Limits& limits) {
  return run_machine(graph, first, last, limits, nullptr, RawArrays::stepped_over);
}

Pickle run_leniently(Graph& graph, std::uint64_t first, std::uint64_t last, const Limits& limits,
                     std::vector<Error>& complaints, RawArrays arrays) {
  return run_machine(graph, first, last, limits, &complaints, arrays);
}

}  // namespace ballast::pickle
