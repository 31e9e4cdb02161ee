// adapter merge: adapters into the weights of their base, or out of them again.
#include <ballast/merge.hpp>

#include <charconv>
#include <memory>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/text.hpp>

#include "../beside.hpp"
#include "../options.hpp"
#include "../remedies.hpp"
#include "../save_job.hpp"
#include "adapter_verbs.hpp"

namespace ballast::cli {
namespace {

struct Arguments {
  std::string base, out, dtype, max_shard_size, memory;
  std::vector<std::string> adapters, weights, initial;
  NameOptions names;
  bool base_from_hub = false, peft_exact = false, unmerge = false, verify = false, dry_run = false;
  bool no_sidecars = false;
};

// The repository that the first adapter was trained for.
std::string base_of(const Session& session, const std::string& adapter) {
  const AdapterConfig config = open_adapter(session, adapter, nullptr, {}).config;
  const std::string name = config.text("base_model_name_or_path"), revision = config.text("revision");
  const std::string base = path_or_repository(name);
  if (!is_remote(base)) {
    throw Error(Errc::not_found, fmt::format("the adapter's base is \"{}\", which is no repository of the Hub", name))
        .in(adapter)
        .hint("name the base, without --base-from-hub");
  }
  return revision.empty() ? base : base + "@" + revision;
}

// With --base-from-hub, all that is named is adapters.
Arguments with_base(const Session& session, Arguments arguments) {
  if (!arguments.base_from_hub) return arguments;
  arguments.adapters.insert(arguments.adapters.begin(), arguments.base);
  arguments.base = base_of(session, arguments.adapters[0]);
  session.note("the base is " + arguments.base);
  return arguments;
}

double weight_argument(const std::string& text) {
  double weight = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), weight);
  if (error == std::errc() && end == text.data() + text.size()) return weight;
  throw Error(Errc::invalid_argument, fmt::format("--weight: \"{}\" is no number", text));
}

std::vector<Adapter> open_adapters(const Session& session, const Arguments& arguments, const Checkpoint& base) {
  if (!arguments.initial.empty() && arguments.initial.size() != arguments.adapters.size()) {
    throw Error(Errc::invalid_argument, fmt::format("{} for {}", plural(arguments.initial.size(), "initial adapter"),
                                                    plural(arguments.adapters.size(), "adapter")))
        .hint("give --initial-adapter once for each of them, in their order; or convert those that need it before");
  }
  std::vector<Adapter> adapters;
  for (std::size_t i = 0; i < arguments.adapters.size(); ++i) {
    AdapterLoadOptions options;
    options.names = arguments.names;
    if (!arguments.initial.empty()) options.initial_adapter = arguments.initial[i];
    adapters.push_back(open_adapter(session, arguments.adapters[i], &base, std::move(options)));
    for (const Note& note : adapters.back().notes) session.note(text_of(note));
  }
  return adapters;
}

MergeOptions merge_options(const Arguments& arguments) {
  MergeOptions options;
  for (const std::string& text : arguments.weights) options.weights.push_back(weight_argument(text));
  if (!options.weights.empty() && options.weights.size() != arguments.adapters.size()) {
    throw Error(Errc::invalid_argument, fmt::format("{} for {}", plural(options.weights.size(), "weight"),
                                                    plural(arguments.adapters.size(), "adapter")))
        .hint("give --weight once for each of them, in their order, or not at all");
  }
  options.names = arguments.names;
  options.peft_exact = arguments.peft_exact;
  options.unmerge = arguments.unmerge;
  if (!arguments.dtype.empty()) options.dtype = dtype_argument("--dtype", arguments.dtype);
  return options;
}

Checkpoint opened_base(const Session& session, const Arguments& arguments) {
  Checkpoint base = open_data(session, arguments.base);
  say_notes(session, base);
  return base;
}

Checkpoint merged(const Session& session, const Arguments& arguments, Checkpoint base) {
  const MergeOptions options = merge_options(arguments);
  const std::size_t said = base.notes.size();
  const std::vector<Adapter> adapters = open_adapters(session, arguments, base);
  base = merge(std::move(base), adapters, options);
  for (std::size_t i = said; i < base.notes.size(); ++i) session.note(text_of(base.notes[i]));
  return base;
}

int run_merge(Session& session, const Arguments& given) {
  if (given.out.empty())
    throw Error(Errc::invalid_argument, "nothing says where to write")
        .hint("name it with " + Advice::mention(Remedy::output));
  const Arguments arguments = with_base(session, given);
  if (arguments.adapters.empty()) throw Error(Errc::invalid_argument, "there is no adapter to merge");
  const Checkpoint base = opened_base(session, arguments);
  const Checkpoint checkpoint = merged(session, arguments, base);
  SaveOptions options = session.save_options(arguments.dry_run);
  if (!arguments.max_shard_size.empty())
    options.max_shard_bytes = bytes_argument("--max-shard-size", arguments.max_shard_size);
  if (!arguments.memory.empty()) options.memory_bytes = bytes_argument("--memory", arguments.memory);
  options.verify = arguments.verify;
  SavePlan plan = plan_save(checkpoint, arguments.out, options);
  if (!arguments.no_sidecars && takes_sidecars(arguments.out, options))
    take_sidecars(session, plan, base, checkpoint, arguments.dry_run);
  const int code = write(session, {"ballast.adapter.write/1", arguments.out, false, arguments.dry_run}, plan, options);
  if (arguments.unmerge && !arguments.dry_run)
    session.note("what was merged is out again to within rounding: keep the base where you can");
  return code;
}

void add_merge_options(Command& verb, Session& session, Arguments& arguments) {
  verb.group("How they are merged");
  verb.option("--weight", "W", &arguments.weights,
              "how much of an adapter: one for each, in their order, or none for 1");
  verb.flag("--base-from-hub", &arguments.base_from_hub,
            "the base is the Hub's repository that the first adapter names; give no BASE");
  verb.option("--initial-adapter", "ADAPTER", &arguments.initial,
              "of PiSSA, OLoRA and the like: each adapter before its training, which is subtracted");
  verb.flag("--peft-exact", &arguments.peft_exact, "round where PEFT's merge_and_unload rounds, not once at the end");
  verb.flag("--unmerge", &arguments.unmerge, "take them out of a base that they were merged into");
  verb.option("--dtype", "DTYPE", &arguments.dtype, "cast the result, and decode ggml's blocks");
  add_name_options(verb, arguments.names);
  verb.group("The output");
  verb.option("-o,--output", "PATH", &arguments.out, possible_outputs());
  verb.option("--max-shard-size", "SIZE", &arguments.max_shard_size, "split into shards of at most this much");
  add_force_option(verb, session);
  verb.flag("--dry-run", &arguments.dry_run, "show what would be written, and write nothing");
  add_json_option(verb, session);
  verb.rare_group("Writing");
  add_sidecars_option(verb, arguments.no_sidecars);
  add_strict_option(verb, session);
  verb.flag("--verify", &arguments.verify, "read everything back and compare, before anything is replaced");
  verb.flag("--allow-dangerous", &session.allow_dangerous, "go on although a file names something dangerous");
  verb.option("--memory", "SIZE", &arguments.memory, "for all buffers together; 64MiB by default");
  add_sync_option(verb, session);
}

}  // namespace

void add_adapter_merge(Command& adapter, Session& session) {
  auto arguments = std::make_shared<Arguments>();
  Command& verb = adapter.verb("merge", "adapters into the weights of their base, streamed in bounded memory");
  verb.positional("BASE", &arguments->base, "the base: any format and dtype, sharded or not, quantized or not");
  verb.positional("ADAPTER", &arguments->adapters,
                  "folders that PEFT saved, or files of diffusers, kohya, llama.cpp or MLX; in order");
  add_merge_options(verb, session, *arguments);
  verb.examples = R"(  ballast adapter merge base/ my-lora/ -o merged/
  ballast adapter merge base.gguf style/ tone/ --weight 0.7 --weight 0.3 -o both.gguf
)";
  verb.run = [arguments, &session] { return run_merge(session, *arguments); };
}

}  // namespace ballast::cli
