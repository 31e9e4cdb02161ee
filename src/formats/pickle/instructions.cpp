#include "formats/pickle/instructions.hpp"

#include <algorithm>
#include <string>

#include "core/text.hpp"
#include "formats/pickle/joblib.hpp"

namespace ballast::pickle {
namespace {

constexpr unsigned kNewestProtocol = 5;

constexpr std::string_view kKindNames[] = {
    "None",    "a boolean", "an integer", "an integer",  "a float", "text",     "bytes",     "a bytearray",
    "a tuple", "a list",    "a set",      "a frozenset", "a dict",  "a global", "an object", "what an id stands for"};

std::string_view name_of(Kind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

}  // namespace

void Machine::throw_failure(Errc code, std::string_view what) const {
  Failure failure(code, fmt::format("{} {}", op_->name, what));
  failure.at_byte(at_);
  throw failure;
}

void Machine::complain_as(Errc code, std::string_view what) {
  if (complaints_ == nullptr) throw_failure(code, what);
  if (complaints_->size() == kMostComplaints) return;
  complaints_->push_back(Error(code, fmt::format("{} {}", op_->name, what)).at_byte(at_));
}

void Machine::complain_about(NodeId target) {
  graph_.set_altered(target);
  complain("changes {}", name_of(graph_.kind(target)));
}

void Machine::require(std::size_t count) const {
  if (stack_.size() - floor() < count) fail("needs {} values, the stack holds {}", count, stack_.size() - floor());
}

std::size_t Machine::pop_mark() {
  if (marks_.empty()) fail("finds no MARK");
  const std::size_t first = marks_.back();
  marks_.pop_back();
  return first;
}

// If this fails, the machine cannot go on, not even a lenient one.
void Machine::stop() {
  if (stack_.size() == floor()) throw Error(Errc::malformed, "STOP finds nothing on the stack").at_byte(at_);
  root_ = pop();
}

// A mark that is on top counts as a value.
void Machine::pop_one() {
  if (!marks_.empty() && marks_.back() == stack_.size()) {
    marks_.pop_back();
  } else {
    pop();
  }
}

// CPython reads the numbers of a line as C strings do: up to a zero byte.
std::string_view Machine::number_line() {
  const std::string_view line = window_.line(op_->name);
  return line.substr(0, std::min(line.find('\0'), line.size()));
}

void Machine::integer_line() {
  const std::string_view line = number_line();
  if (line == "00") return boolean<false>();
  if (line == "01") return boolean<true>();
  push_parsed(line);
}

void Machine::long_line() {
  std::string_view line = number_line();
  if (line.ends_with('L')) line.remove_suffix(1);
  push_parsed(line);
}

void Machine::push_parsed(std::string_view line) {
  const auto value = line.size() <= kNearBytes ? parse_integer(line, 0) : std::nullopt;
  if (value) return push_integer(*value);
  none();
  complain("cannot read the integer {}", quote(line));
}

void Machine::push_integer(const Integer& value) {
  const auto* digits = std::get_if<std::string>(&value);
  push(digits != nullptr ? graph_.add_chars(Kind::big_integer, *digits, at_)
                         : graph_.add_integer(std::get<std::int64_t>(value), at_));
}

void Machine::float_line() {
  const std::string_view line = number_line();
  const auto value = parse_real(line);
  if (value) return push(graph_.add_real(*value, at_));
  none();
  complain("cannot read the float {}", quote(line));
}

void Machine::twos_complement(std::uint64_t size) {
  if (size <= kLongestInteger)
    return push_integer(integer_from_twos_complement(window_.bytes(static_cast<std::size_t>(size), op_->name)));
  window_.skip(size, op_->name);
  none();
  complain_as(Errc::limit, fmt::format("holds an integer of {} bytes, at most {} are read", size, kLongestInteger));
}

// These lengths are signed for no reason. Behind a negative length nobody can tell where the next instruction is.
std::uint64_t Machine::signed_length() {
  const std::int32_t size = window_.numbers(4, op_->name).i32(op_->name);
  if (size >= 0) return static_cast<std::uint64_t>(size);
  throw Error(Errc::malformed, fmt::format("{} has the length {}", op_->name, size)).at_byte(at_);
}

std::string_view Machine::near_chars(std::uint64_t size) {
  const auto bytes = window_.bytes(static_cast<std::size_t>(size), op_->name);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void Machine::push_far(Kind kind, std::uint64_t size) {
  const std::uint64_t first_byte = window_.position();
  window_.skip(size, op_->name);
  push(graph_.add_far(kind, first_byte, size));
}

void Machine::push_text(std::uint64_t size) {
  if (size > kNearBytes) return push_far(Kind::text, size);
  const std::string_view chars = near_chars(size);
  if (is_text(chars)) return push(graph_.add_chars(Kind::text, chars, at_));
  push(graph_.add_chars(Kind::bytes, chars, at_));
  complain("holds text that is not UTF-8");
}

void Machine::push_bytes(Kind kind, std::uint64_t size) {
  if (size > kNearBytes) return push_far(kind, size);
  push(graph_.add_chars(kind, near_chars(size), at_));
}

// The str of Python 2 is text as often as bytes. A far string is not looked at: anything so large is bytes.
void Machine::python2_string(std::uint64_t size) {
  if (size > kNearBytes) return push_far(Kind::bytes, size);
  push_python2(near_chars(size));
}

void Machine::push_python2(std::string_view chars) {
  push(graph_.add_chars(is_text(chars) ? Kind::text : Kind::bytes, chars, at_));
}

void Machine::string_line() {
  std::string_view line = window_.line("STRING");
  while (!line.empty() && static_cast<unsigned char>(line.back()) <= ' ') line.remove_suffix(1);
  const bool quoted = line.size() >= 2 && line.front() == line.back() && (line[0] == '\'' || line[0] == '"');
  const auto value = quoted ? unescape_bytes(line.substr(1, line.size() - 2)) : std::nullopt;
  if (value) return push_python2(*value);
  none();
  complain("holds no string in quotes");
}

void Machine::unicode_line() {
  const auto value = unescape_text(window_.line("UNICODE"));
  if (value) return push(graph_.add_chars(Kind::text, *value, at_));
  none();
  complain("has a broken \\u escape");
}

NodeId Machine::collect(Kind kind, std::size_t first) {
  const NodeId id = graph_.add(kind, at_);
  graph_.append_from(stack_, first, id);
  return id;
}

void Machine::dict() {
  const std::size_t first = pop_mark();
  const NodeId id = graph_.add(Kind::dict, at_);
  const bool odd = set_items(id, first);
  push(id);
  if (odd) complain("finds a key without a value");
}

// Takes off the stack what lies above `first`, and sets it as pairs. Returns whether a key was left over.
bool Machine::set_items(NodeId target, std::size_t first) {
  const bool odd = (stack_.size() - first) % 2 != 0;
  if (odd) stack_.pop_back();
  graph_.set_items_from(stack_, first, target);
  return odd;
}

void Machine::append() {
  require(2);
  const NodeId item = pop();
  if (!takes(top(), Kind::list)) return complain_about(top());
  graph_.append(top(), item);
}

// The value under a mark that has been taken off.
NodeId Machine::below(std::size_t first) {
  if (first > floor()) return stack_[first - 1];
  stack_.shrink(first);
  fail("finds nothing below the MARK");
}

void Machine::append_all_to(Kind kind) {
  const std::size_t first = pop_mark();
  const NodeId target = below(first);
  const bool fits = first == stack_.size() || takes(target, kind);
  if (fits) graph_.append_from(stack_, first, target);
  stack_.shrink(first);
  if (!fits) complain_about(target);
}

void Machine::set_item() {
  require(3);
  const NodeId value = pop(), key = pop();
  if (!takes(top(), Kind::dict)) return complain_about(top());
  graph_.set_item(top(), key, value);
}

void Machine::set_all_items() {
  const std::size_t first = pop_mark();
  const NodeId target = below(first);
  if (first == stack_.size()) return;
  if (!takes(target, Kind::dict)) {
    stack_.shrink(first);
    return complain_about(target);
  }
  if (set_items(target, first)) complain("finds a key without a value");
}

// Nothing is called: the node says what would have been called, with which arguments.
void Machine::add_object(Making making, NodeId callee, NodeId arguments, NodeId keywords) {
  const bool sound = is(arguments, Kind::tuple) && (keywords == kNoNode || is(keywords, Kind::dict));
  if (!sound) {
    arguments = graph_.add(Kind::tuple, at_);
    keywords = kNoNode;
  }
  push(graph_.add_object(making, callee, arguments, keywords, at_));
  if (!sound) complain("needs a tuple of arguments, and a dict where they have names");
}

void Machine::newobj_ex() {
  require(3);
  const NodeId keywords = pop(), arguments = pop(), callee = pop();
  add_object(Making::newobj_ex, callee, arguments, keywords);
}

void Machine::obj() {
  const std::size_t first = pop_mark();
  if (first == stack_.size()) {
    none();
    fail("finds no class above the MARK");
  }
  const NodeId callee = stack_[first];
  const NodeId arguments = collect(Kind::tuple, first + 1);
  stack_.shrink(first);
  add_object(Making::obj, callee, arguments);
}

void Machine::inst() {
  const NodeId callee = named_global();
  add_object(Making::inst, callee, collect(Kind::tuple, pop_mark()));
}

// If the value is not an object, only None does nothing. Python would change what was imported, or what an id stands
// for.
void Machine::build() {
  require(2);
  const NodeId state = pop();
  if (!is(top(), Kind::object)) {
    if (!is(state, Kind::none)) complain_about(top());
    return;
  }
  graph_.set_state(top(), state);
  if (arrays_ == RawArrays::stepped_over && is_array_wrapper(graph_, top())) step_over_array(top());
}

// joblib reads the array here. It becomes the item of the wrapper: its bytes, or the object of its pickle.
void Machine::step_over_array(NodeId wrapper) {
  const auto array = raw_array_behind(graph_, wrapper);
  if (!array) return complain("makes an array of joblib's whose size cannot be told");
  if (array->is_pickle) {
    const std::uint64_t first = window_.position();
    const Pickle inner =
        Machine(graph_, first, first + window_.remaining(), limits_, complaints_, RawArrays::not_known).run();
    window_.skip(inner.end - first, "an array of objects");
    return graph_.append(wrapper, inner.root);
  }
  if (array->has_padding) window_.skip(window_.u8("the padding of an array"), "the padding of an array");
  const NodeId bytes = graph_.add_far(Kind::bytes, window_.position(), array->bytes);
  window_.skip(array->bytes, "an array");
  graph_.append(wrapper, bytes);
}

NodeId Machine::named_global() {
  const std::string module(window_.line("a module's name"));
  return graph_.add_global(module, window_.line("a global's name"), at_);
}

void Machine::stack_global() {
  require(2);
  const NodeId name = pop(), module = pop();
  const auto is_name = [&](NodeId id) { return is(id, Kind::text) && !graph_[id].is_far; };
  if (is_name(module) && is_name(name)) return push(graph_.add_global(module, name, at_));
  none();
  const auto is_computed = [&](NodeId id) { return is(id, Kind::object) || is(id, Kind::global); };
  complain_as(is_computed(module) || is_computed(name) ? Errc::unsafe : Errc::malformed,
              fmt::format("needs a module and a name, both short text, and finds {} and {}",
                          name_of(graph_.kind(module)), name_of(graph_.kind(name))));
}

void Machine::persistent_line() {
  const NodeId id = graph_.add_chars(Kind::text, window_.line("PERSID"), at_);
  push(graph_.add_persistent(id, at_));
}

void Machine::get_from(std::uint64_t index) {
  const NodeId id = memo_.get(index);
  if (id != kNoNode) return push(id);
  none();
  complain("finds nothing under {} in the memo", index);
}

void Machine::put_line() {
  const auto index = index_line();
  if (!index) return complain("has no index");
  put_at(*index);
}

void Machine::get_line() {
  const auto index = index_line();
  if (index) return get_from(*index);
  none();
  complain("has no index");
}

std::optional<std::uint64_t> Machine::index_line() {
  const std::string_view line = number_line();
  const auto value = line.size() <= kNearBytes ? parse_integer(line, 10) : std::nullopt;
  const auto* index = value ? std::get_if<std::int64_t>(&*value) : nullptr;
  if (index == nullptr || *index < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*index);
}

void Machine::protocol() {
  const unsigned version = window_.u8("PROTO");
  if (version > kNewestProtocol)
    complain_as(Errc::unsupported, fmt::format("says protocol {}, 0 to {} are known", version, kNewestProtocol));
}

// Frames help programs that read from pipes. Python only asks that they end inside the file.
void Machine::frame() {
  const std::uint64_t size = window_.numbers(8, "FRAME").u64("FRAME");
  if (size > window_.remaining()) complain("says that {} bytes follow, where {} do", size, window_.remaining());
}

void Machine::next_buffer() {
  none();
  readonly_buffer();
}

void Machine::readonly_buffer() {
  complain_as(Errc::unsupported, "takes bytes from outside the file, given to whoever loads it");
}

}  // namespace ballast::pickle
