#include "checkpoint/archive.hpp"

#include <ballast/error.hpp>

#include <utility>

#include "checkpoint/recognize/detect.hpp"
#include "core/name_list.hpp"
#include "tensor/checkpoint_parts.hpp"

namespace ballast {
namespace {

std::string joined(const std::string& prefix, std::string_view name) {
  if (name.empty()) return prefix;
  return prefix + "/" + std::string(name);
}

// Adds everything that the member says, under the member's name, which `OpenOptions::root` can name.
void add_member(Checkpoint member, const std::string& prefix, Checkpoint& all) {
  const bool is_subtree = member.size() > 1 || (member.size() == 1 && !member.tensors[0].name.empty());
  if (is_subtree) all.roots.push_back({prefix, member.size()});
  absorb(all, std::move(member), [&](std::string_view name) { return joined(prefix, name); });
}

}  // namespace

Checkpoint read_archive(const archive::Zip& zip, const FileFormat& format, const ReadContext& context) try {
  Checkpoint all;
  all.format = format.format;
  std::size_t read = 0;
  NameList others;
  for (const archive::ZipMember& member : zip.members) {
    if (member.is_folder() || member.bytes == 0) continue;
    const auto source = with_beginning(archive::member_source(zip, member, context.options.limits));
    if (!begins_like_a_checkpoint(*source)) {
      others.add(member.name);
      continue;
    }
    ++read;
    std::string prefix = member.name;
    prefix.resize(prefix.size() - format.member_ending.size());
    add_member(context.read_file(source), prefix, all);
  }
  if (read == 0) {
    throw Error(Errc::unsupported, "a zip archive without a checkpoint in it")
        .hint("torch.save writes one with a member called data.pkl");
  }
  if (!others.empty())
    all.notes.push_back(
        {zip.source->name(), "left out, since they are no checkpoints: " + others.text(), Note::Kind::remark});
  return all;
} catch (Error& error) {
  throw error.in(zip.source->name());
}

}  // namespace ballast
