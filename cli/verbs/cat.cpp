// cat: the values of one tensor, or several tensors as an archive of NumPy files.
#include <algorithm>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/listing.hpp>
#include <ballast/save.hpp>
#include <ballast/slice.hpp>
#include <ballast/suggest.hpp>

#include "../array_printer.hpp"
#include "../elements.hpp"
#include "../interrupt.hpp"
#include "../json_writer.hpp"
#include "../options.hpp"
#include "verbs.hpp"

namespace ballast::cli {
namespace {

struct Arguments {
  std::string target, slice, dtype, output;
  std::vector<std::string> words;  // names and globs
  bool full = false;

  bool makes_archive() const { return output.ends_with(".npz"); }
  bool makes_npy() const { return output.ends_with(".npy"); }
};

constexpr std::uint64_t kChunkBytes = std::uint64_t{4} << 20;
constexpr std::uint64_t kChunkElements = 16384;

[[noreturn]] void refuse_name(const Checkpoint& checkpoint, const std::string& name) {
  std::vector<std::string_view> names;
  for (const auto& entry : checkpoint) names.push_back(entry.name);
  const auto near = nearest(name, names);
  throw Error(Errc::not_found, fmt::format("no tensor called \"{}\"", name))
      .about(name)
      .in(checkpoint.target)
      .hint(near ? fmt::format("did you mean {}?", *near)
                 : fmt::format("ballast ls {} lists the names", checkpoint.target));
}

// "a, b, c, …", for a hint.
std::string first_names(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 3;
  const auto shown = std::span(names).first(std::min(names.size(), kShown));
  return fmt::format("{}{}", fmt::join(shown, ", "), names.size() > kShown ? ", …" : "");
}

std::vector<std::string> all_names(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const std::size_t i : natural_order(checkpoint)) names.emplace_back(checkpoint.tensors[i].name);
  return names;
}

std::vector<std::string> matching(const Checkpoint& checkpoint, const std::string& word) {
  if (checkpoint.contains(word)) return {word};
  if (!is_glob(word)) refuse_name(checkpoint, word);
  std::vector<std::string> names = all_names(checkpoint);
  const Selection selection{{word}, {}};
  std::erase_if(names, [&](const std::string& name) { return !selection.matches(name); });
  if (!names.empty()) return names;
  throw Error(Errc::not_found, fmt::format("no tensor matches \"{}\"", word))
      .in(checkpoint.target)
      .hint(fmt::format("ballast ls {} lists the names", checkpoint.target));
}

// The names that the user's words mean, each once. Without a word, the only tensor.
std::vector<std::string> chosen_names(const Checkpoint& checkpoint, const Arguments& arguments) {
  if (checkpoint.size() == 0) throw Error(Errc::not_found, "there is no tensor in it").in(checkpoint.target);
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (const std::string& word : arguments.words) {
    for (std::string& name : matching(checkpoint, word)) {
      if (taken.insert(name).second) names.push_back(std::move(name));
    }
  }
  if (arguments.words.empty()) names = all_names(checkpoint);
  if (names.size() == 1 || (arguments.makes_archive() && !arguments.words.empty())) return names;
  throw Error(Errc::invalid_argument,
              fmt::format("{}, and no name says which one", arguments.words.empty()
                                                                ? fmt::format("there are {} tensors", names.size())
                                                                : fmt::format("{} tensors match", names.size())))
      .in(checkpoint.target)
      .hint(fmt::format("name one of them: {}; or write several: '*' -o x.npz", first_names(names)));
}

template <class Write>
void stream_bytes(const Session& session, const Tensor& tensor, Write write) {
  auto bar = session.progress_bar();
  const Progress progress = bar.callback();
  const std::uint64_t total = tensor.nbytes();
  std::vector<std::byte> buffer(std::min(total, kChunkBytes));
  for (std::uint64_t done = 0; done < total;) {
    if (!progress({"writing", done, total})) throw_if_interrupted();
    const auto chunk = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), total - done));
    tensor.read(done, chunk);
    write(chunk);
    done += chunk.size();
  }
}

void refuse_npy(const Tensor& tensor, const std::string& path) {
  if (!info(tensor.dtype()).numpy_name.empty()) return;
  throw Error(Errc::unsupported, fmt::format("NumPy has no dtype for {}", name(tensor.dtype())))
      .in(path)
      .hint(is_floating(tensor.dtype())
                ? "cast it with --dtype F32, or write raw bytes to a file that does not end in .npy"
                : "write raw bytes, to a file that does not end in .npy");
}

// A pipe cannot take bytes back, so with --strict nothing is written to it before every value has been checked.
void write_stdout(Session& session, const Tensor& tensor, const std::string& name) {
  const auto stream = [&](auto write) {
    const OverflowCounter counter;
    stream_bytes(session, tensor, write);
    return std::vector<TensorOverflows>{{name, tensor.dtype(), counter.total()}};
  };
  if (session.strict) static_cast<void>(overflow_notes(stream([](auto) {}), true));
  const auto overflows = stream([&](std::span<const std::byte> bytes) { session.out.write_bytes(bytes); });
  say_notes(session, overflow_notes(overflows, false));
}

void write_output(Session& session, const Tensor& tensor, const std::string& tensor_name, const Arguments& arguments) {
  if (arguments.output == "-") return write_stdout(session, tensor, tensor_name);
  const bool npy = arguments.makes_npy();
  if (npy) refuse_npy(tensor, arguments.output);
  auto bar = session.progress_bar();
  SaveOptions options = session.save_options();
  options.progress = bar.callback();
  const auto write = npy ? save_npy : save_raw;
  const auto written = [&] {
    try {
      return write(tensor, arguments.output, options, tensor_name);
    } catch (Error& error) {
      if (error.code() != Errc::invalid_argument) throw;
      throw error.hint("-o FILE makes a file; -o - writes to standard output");
    }
  };
  const SaveReport report = written();
  bar.clear();
  say_notes(session, report.notes);
  session.say(fmt::format("wrote {}: {} {}, {}", arguments.output, name(tensor.dtype()), to_string(tensor.shape()),
                          npy ? "NumPy" : "raw little-endian bytes"));
}

// Several tensors, streamed into one archive.
void write_archive(Session& session, StateDict tensors, const Arguments& arguments) {
  const std::size_t count = tensors.size();
  auto bar = session.progress_bar();
  SaveOptions options = session.save_options();
  options.progress = bar.callback();
  const SaveReport report = save(Checkpoint(std::move(tensors)), arguments.output, options);
  bar.clear();
  say_notes(session, report.notes);
  session.say(fmt::format("wrote {}: {}, NumPy", arguments.output, plural(count, "tensor")));
}

void write_value(JsonWriter& json, const Element& element) {
  std::visit(
      [&]<class T>(const T& value) {
        if constexpr (requires { value.real(); }) {
          json.begin_array();
          json.value(value.real());
          json.value(value.imag());
          json.end();
        } else {
          json.value(value);
        }
      },
      element);
}

// Writes nested arrays; the outermost has one member a line. Below a dimension of 0 there are only empty arrays.
void write_values(JsonWriter& json, Elements& elements) {
  const Shape& shape = elements.shape();
  const auto depth = static_cast<std::size_t>(std::find(shape.begin(), shape.end(), 0u) - shape.begin());
  const bool empty = depth < shape.rank();

  // How many innermost members an array of each dimension has.
  std::vector<std::uint64_t> spans(depth + 1, 1);
  for (std::size_t d = depth; d-- > 0;) spans[d] = spans[d + 1] * shape[d];

  for (std::uint64_t i = 0; i < spans[0]; ++i) {
    for (std::size_t d = 0; d < depth; ++d) {
      const bool lines = d == 0 && shape.rank() > 1;
      if (i % spans[d] == 0) json.begin_array(lines ? JsonWriter::Layout::lines : JsonWriter::Layout::inline_);
    }
    if (empty) {
      json.begin_array();
      json.end();
    } else {
      write_value(json, elements[i]);
    }
    for (std::size_t d = depth; d-- > 0;) {
      if ((i + 1) % spans[d] == 0) json.end();
    }
  }
}

void write_json(Session& session, const Tensor& tensor, const std::string& tensor_name) {
  Elements elements(tensor, kChunkElements);
  JsonWriter json(session.out, "ballast.cat/1");
  json.field("name", tensor_name);
  json.field("dtype", name(tensor.dtype()));
  json.array_field("shape", tensor.shape());
  json.key("values");
  write_values(json, elements);
  json.finish();
}

void write_text(Session& session, const Tensor& tensor, const std::string& tensor_name, const Arguments& arguments) {
  // On a terminal a person wants to know the tensor's type and shape; in a file the line would be in the way.
  if (session.screen.interactive && session.errors.interactive)
    session.say(fmt::format("{}  {} {}", tensor_name, name(tensor.dtype()), to_string(tensor.shape())));
  constexpr std::size_t kNumPyWidth = 75;
  print_array(session.out, tensor,
              {.full = arguments.full, .width = session.screen.interactive ? session.screen.width : kNumPyWidth});
}

// The tensor as the user wants it: decoded, sliced, cast.
Tensor wanted_tensor(const Checkpoint& checkpoint, const std::string& name, const Arguments& arguments) {
  Tensor tensor = checkpoint.at(name);
  if (!tensor.has_data())
    throw Error(Errc::unsupported, fmt::format("tensor \"{}\" has a dtype and a shape, but no data", name))
        .in(checkpoint.target);
  // People can neither read blocks nor slice them. The bytes of blocks, whole and unchanged, go only to users who ask
  // for bytes.
  const bool wants_bytes =
      !arguments.output.empty() && !arguments.makes_npy() && !arguments.makes_archive() && arguments.slice.empty();
  if (info(tensor.dtype()).kind == DTypeKind::ggml && !wants_bytes) tensor = tensor.to(DType::f32);
  const auto cast_it = [&] {
    if (arguments.dtype.empty()) return;
    const DType dtype = dtype_argument("--dtype", arguments.dtype);
    static_cast<void>(cast(checkpoint, name, dtype));  // throws if this tensor cannot be cast
    tensor = tensor.to(dtype);
  };
  if (info(tensor.dtype()).block_elements > 1) cast_it();  // elements that share a byte cannot be sliced before
  if (!arguments.slice.empty()) tensor = tensor.slice(parse_slice(arguments.slice));
  cast_it();
  return tensor;
}

int run_cat(Session& session, const Arguments& arguments) {
  if (session.json && !arguments.output.empty())
    throw Error(Errc::invalid_argument, "--json and -o are two ways of writing the values").hint("choose one of them");
  const Checkpoint checkpoint = open_data(session, arguments.target);
  say_notes(session, checkpoint);
  const std::vector<std::string> names = chosen_names(checkpoint, arguments);
  if (arguments.makes_archive()) {
    StateDict tensors;
    for (const std::string& name : names) tensors.insert(name, wanted_tensor(checkpoint, name, arguments));
    write_archive(session, std::move(tensors), arguments);
    return 0;
  }
  const std::string& name = names.front();
  const Tensor tensor = wanted_tensor(checkpoint, name, arguments);
  if (!arguments.output.empty()) {
    write_output(session, tensor, name, arguments);
  } else {
    session.json ? write_json(session, tensor, name) : write_text(session, tensor, name, arguments);
  }
  return 0;
}

}  // namespace

void add_cat(Command& verb, Session& session) {
  auto arguments = std::make_shared<Arguments>();
  add_target(verb, arguments->target);
  verb.positional("NAME", &arguments->words,
                  "the tensor's full name, or a glob that matches it; may be left out if there is only one");
  verb.group("Which values");
  verb.option("--slice", "SLICE", &arguments->slice, "a part of it, as Python writes it: 0:4,:8 or ...,-1");
  verb.option("--dtype", "DTYPE", &arguments->dtype, "cast the values: round to nearest even, NaN kept");
  verb.flag("--full", &arguments->full, "print every value, however many");
  verb.group("The output");
  verb.option("-o,--output", "FILE", &arguments->output,
              "write x.npy (NumPy), x.npz (several, by names and globs), any other file or - (raw bytes)");
  add_strict_option(verb, session);
  add_force_option(verb, session);
  add_sync_option(verb, session);
  add_json_option(verb, session);
  verb.examples = R"(  ballast cat model.safetensors wte.weight --slice 0:4,:8
  ballast cat model.safetensors wte.weight -o wte.npy
  ballast cat model.safetensors 'h.0.*' wte.weight -o some.npz
  ballast cat model.safetensors wte.weight -o - | xxd | head
)";
  verb.run = [arguments, &session] { return run_cat(session, *arguments); };
}

}  // namespace ballast::cli
