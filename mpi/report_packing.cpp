#include "report_packing.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ballast::mpi {
namespace {

template <class List, class Write>
void pack_list(Packer& out, const List& list, const Write& write) {
  out.number(list.size());
  for (const auto& item : list) write(item);
}

template <class Read>
auto unpack_list(Unpacker& in, const Read& read) {
  std::vector<decltype(read())> list;
  for (std::uint64_t left = in.number(); left != 0; --left) list.push_back(read());
  return list;
}

void pack_names(Packer& out, const std::vector<std::string>& names) {
  pack_list(out, names, [&](const std::string& name) { out.text(name); });
}

std::vector<std::string> unpack_names(Unpacker& in) {
  return unpack_list(in, [&] { return in.text(); });
}

void pack_shape(Packer& out, const Shape& shape) {
  pack_list(out, shape.dims(), [&](std::uint64_t dim) { out.number(dim); });
}

Shape unpack_shape(Unpacker& in) {
  return Shape(unpack_list(in, [&] { return in.number(); }));
}

void pack_mismatches(Packer& out, const std::vector<LoadReport::Mismatch>& list) {
  pack_list(out, list, [&](const LoadReport::Mismatch& each) {
    out.text(each.name);
    out.number(static_cast<std::uint64_t>(each.file_dtype));
    out.number(static_cast<std::uint64_t>(each.model_dtype));
    pack_shape(out, each.file_shape);
    pack_shape(out, each.model_shape);
  });
}

std::vector<LoadReport::Mismatch> unpack_mismatches(Unpacker& in) {
  return unpack_list(in, [&] {
    std::string name = in.text();
    const auto file = static_cast<DType>(in.number()), model = static_cast<DType>(in.number());
    Shape file_shape = unpack_shape(in);
    return LoadReport::Mismatch{std::move(name), file, model, std::move(file_shape), unpack_shape(in)};
  });
}

std::pair<std::string, std::string> unpack_pair(Unpacker& in) {
  std::string first = in.text();
  return {std::move(first), in.text()};
}

}  // namespace

void pack_report(Packer& out, const LoadReport& report) {
  pack_names(out, report.missing);
  pack_names(out, report.unexpected);
  pack_mismatches(out, report.mismatched);
  pack_mismatches(out, report.left);
  pack_list(out, report.renamed, [&](const LoadReport::Renamed& each) {
    out.text(each.from);
    out.text(each.to);
  });
  pack_names(out, report.cast);
  pack_names(out, report.tied);
  pack_names(out, report.differing);
  pack_list(out, report.notes, [&](const Note& note) {
    out.text(note.where);
    out.text(note.text);
    out.number(static_cast<std::uint64_t>(note.kind));
    out.text(note.hint.text());
  });
  pack_list(out, report.suggestions, [&](const auto& each) {
    out.text(each.first);
    out.text(each.second);
  });
}

LoadReport unpack_report(Unpacker& in) {
  LoadReport report;
  report.missing = unpack_names(in);
  report.unexpected = unpack_names(in);
  report.mismatched = unpack_mismatches(in);
  report.left = unpack_mismatches(in);
  report.renamed = unpack_list(in, [&] {
    auto [from, to] = unpack_pair(in);
    return LoadReport::Renamed{std::move(from), std::move(to)};
  });
  report.cast = unpack_names(in);
  report.tied = unpack_names(in);
  report.differing = unpack_names(in);
  report.notes = unpack_list(in, [&] {
    auto [where, text] = unpack_pair(in);
    const auto kind = static_cast<Note::Kind>(in.number());
    return Note{std::move(where), std::move(text), kind, Advice(in.text())};
  });
  report.suggestions = unpack_list(in, [&] { return unpack_pair(in); });
  return report;
}

}  // namespace ballast::mpi
