#include "service.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <ballast/adapter_changes.hpp>
#include <ballast/error.hpp>

#include "../array_printer.hpp"
#include "../json_writer.hpp"
#include "../verbs/stats_documents.hpp"
#include "adapter_modules.hpp"
#include "heat_map.hpp"
#include "model_document.hpp"
#include "page.hpp"
#include "refusal.hpp"
#include "texts.hpp"

namespace ballast::cli {
namespace {

constexpr std::string_view kJson = "application/json; charset=utf-8";
constexpr std::uint64_t kMostTextBytes = std::uint64_t{1} << 20;  // of each file beside the weights
constexpr std::size_t kMostNumbers = 256;                         // of tensors in one request
constexpr std::size_t kManyTensors = 10'000;
constexpr std::uint64_t kFirstRows = 6;

struct NotThere {};  // the address means nothing

std::uint64_t number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size() || text.empty()) throw NotThere();
  return number;
}

std::vector<std::uint64_t> numbers_in(std::string_view text, char between) {
  std::vector<std::uint64_t> numbers;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(between), text.size());
    numbers.push_back(number_in(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (numbers.size() > kMostNumbers) throw NotThere();
  }
  return numbers;
}

std::string_view word(const HttpRequest& request, std::string_view name) {
  const auto found = request.query.find(name);
  if (found == request.query.end()) throw NotThere();
  return found->second;
}

Region region_of(const HttpRequest& request, const Tensor& tensor) {
  Region region;
  std::string_view axes = word(request, "axes");
  region.has_rows = !axes.starts_with("-1,");
  if (!region.has_rows) axes.remove_prefix(3);
  const auto pair = numbers_in(axes, ',');
  if (pair.size() != (region.has_rows ? 2u : 1u)) throw NotThere();
  region.row_axis = pair.front();
  region.column_axis = pair.back();
  region.at = numbers_in(word(request, "at"), ',');
  const auto rows = numbers_in(word(request, "rows"), ':'), columns = numbers_in(word(request, "columns"), ':');
  if (rows.size() != 2 || columns.size() != 2 || region.at.size() != tensor.rank()) throw NotThere();
  region.row_begin = rows[0];
  region.row_end = rows[1];
  region.column_begin = columns[0];
  region.column_end = columns[1];
  return region;
}

Slice place_in(const Tensor& tensor, const std::vector<std::uint64_t>& at) {
  if (at.size() != tensor.rank()) throw NotThere();
  Slice place;
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (at[i] >= tensor.shape()[i]) throw NotThere();
    place.push_back(SliceIndex::at(static_cast<std::int64_t>(at[i])));
  }
  return place;
}

void send_values(const HttpRequest& request, const Tensor& tensor, HttpReply& reply) {
  const std::string_view how = word(request, "how");
  const Cells what = how == "mean" ? Cells::mean : how == "rms" ? Cells::rms : Cells::extreme;
  const HeatMap map = heat_map(tensor, region_of(request, tensor), what, number_in(word(request, "height")),
                               number_in(word(request, "width")), [&] { return reply.is_wanted(); });
  const auto bytes = std::as_bytes(std::span(map.cells));
  reply.send(200, "application/octet-stream", {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
             {{"X-Rows", std::to_string(map.rows)},
              {"X-Columns", std::to_string(map.columns)},
              {"X-Skipped", map.is_partial ? "1" : "0"}});
}

// The corner of a tensor as `ballast cat` prints it, or the value at one place.
std::string values_document(const Tensor& tensor, const std::vector<std::uint64_t>& at) {
  const bool is_packed = info(tensor.dtype()).kind == DTypeKind::ggml || info(tensor.dtype()).block_elements > 1;
  Tensor corner = is_packed ? tensor.to(DType::f32) : tensor;
  if (!at.empty()) corner = corner.slice(place_in(tensor, at));
  while (corner.rank() > 2) corner = corner.slice({SliceIndex::at(0)});
  if (corner.rank() > 0)
    corner = corner.slice({SliceIndex::range(0, static_cast<std::int64_t>(corner.rank() == 1 ? 64 : kFirstRows))});
  if (corner.rank() == 2) corner = corner.slice({SliceIndex::ellipsis(), SliceIndex::range(0, 8)});
  std::string text;
  Output out(&text);
  print_array(out, corner, {.full = true, .width = 100});
  out.flush();
  std::string document;
  Output document_out(&document);
  JsonWriter json(document_out);
  json.begin_object();
  json.field("text", text);
  json.finish();
  document_out.flush();
  return document;
}

std::string spectrum_document(const SingularValues& found) {
  std::string text;
  Output out(&text);
  JsonWriter json(out, "ballast.view.spectrum/1");
  json.array_field("values", found.values);
  json.field("complete", found.is_complete);
  json.field("of", found.count);
  json.field("stable_rank", found.stable_rank);
  found.of_90 ? json.field("of_90", *found.of_90) : json.field("of_90", nullptr);
  found.of_99 ? json.field("of_99", *found.of_99) : json.field("of_99", nullptr);
  json.finish();
  out.flush();
  return text;
}

}  // namespace

Service::Service(const Session& session, const Subject& subject)
    : session_(session),
      subject_(subject),
      page_(served_page()),
      policy_(content_security_policy(PageKind::served) + "; frame-ancestors 'none'") {
  for (const Checkpoint& side : subject.sides) statistics_.emplace_back(side.size());
}

void Service::answer(const HttpRequest& request, HttpReply& reply) {
  const Parts parts = request.parts();
  if (parts.empty()) return reply.send(200, "text/html; charset=utf-8", page_, {{"Content-Security-Policy", policy_}});
  try {
    if (parts[0] != "api" || parts.size() < 2) throw NotThere();
    answer_api(request, parts, reply);
  } catch (const NotThere&) {
    reply.send(404, "text/plain", "there is nothing here");
  } catch (const Error& error) {
    if (error.code() == Errc::cancelled && !reply.is_wanted()) return;
    reply.has_begun() ? reply.stream(kJson, refusal_document(error)) : reply.send(400, kJson, refusal_document(error));
  } catch (const std::exception& error) {
    const Error told(Errc::io, error.what());
    reply.has_begun() ? reply.stream(kJson, refusal_document(told)) : reply.send(500, kJson, refusal_document(told));
  }
}

std::size_t Service::side_of(std::string_view part) const {
  const std::uint64_t side = number_in(part);
  if (side >= subject_.sides.size()) throw NotThere();
  return side;
}

const Tensor& Service::tensor_of(std::size_t side, std::string_view part) const {
  const std::uint64_t number = number_in(part);
  if (number >= subject_.sides[side].size()) throw NotThere();
  return subject_.sides[side].tensors[number].tensor;
}

// Jobs take turns, and one that nobody waits for any more does not begin.
std::shared_ptr<void> Service::turn_for(HttpReply& reply) {
  while (!work_.try_acquire_for(std::chrono::milliseconds(100))) {
    if (!reply.is_wanted()) return nullptr;
  }
  return {&work_, [](std::counting_semaphore<2>* work) { work->release(); }};
}

Service::Document Service::made_before(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = documents_.find(name);
  return found == documents_.end() ? nullptr : found->second;
}

// The longest document by far: several tabs that open at once share it.
Service::Document Service::model() {
  const std::lock_guard lock(model_mutex_);
  Document document = model_.lock();
  if (!document) {
    document = std::make_shared<const std::string>(model_document(session_, subject_, PageKind::served));
    model_ = document;
  }
  return document;
}

// Lines of progress, a few a second, and then the document. A document that was made before is sent at once.
void Service::document(const std::string& name, Cost cost, HttpReply& reply,
                       const std::function<std::string(const Progress&)>& make) {
  if (const Document made = made_before(name)) return reply.send(200, kJson, *made);
  const auto turn = cost == Cost::job ? turn_for(reply) : nullptr;
  if (cost == Cost::job && !turn) return;
  auto last = std::chrono::steady_clock::now();
  const std::string text = make([&](const ProgressState& state) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last < std::chrono::milliseconds(100)) return true;
    last = now;
    reply.stream(kJson, fmt::format("{{\"done\": {}, \"total\": {}}}\n", state.done_bytes, state.total_bytes));
    return reply.is_wanted();
  });
  if (!name.empty()) {
    const std::lock_guard lock(mutex_);
    documents_[name] = std::make_shared<const std::string>(text);
  }
  reply.has_begun() ? reply.stream(kJson, text) : reply.send(200, kJson, text);
}

// The rows of `stats` for these tensors, with histograms if they are wanted: these cost a second pass over the values.
// What was computed is kept.
std::string Service::statistics(std::size_t side, const HttpRequest& request, const Progress& progress) {
  const Checkpoint& checkpoint = subject_.sides[side];
  const std::vector<std::uint64_t> numbers = numbers_in(word(request, "numbers"), ',');
  const bool with_histogram = request.query.contains("histogram");
  StateDict wanted, missing;
  std::vector<std::uint64_t> missing_numbers;
  for (const std::uint64_t number : numbers) {
    if (number >= checkpoint.size()) throw NotThere();
    const auto& [name, tensor] = checkpoint.tensors[number];
    if (!wanted.insert(name, tensor)) throw NotThere();  // a number that is there twice
    const std::lock_guard lock(mutex_);
    if (statistics_[side][number].is_known(with_histogram)) continue;
    missing.insert(name, tensor);
    missing_numbers.push_back(number);
  }
  const unsigned bins = !with_histogram ? 0 : checkpoint.size() > kManyTensors ? 32 : 64;
  const std::vector<TensorStats> computed =
      stats(Checkpoint(std::move(missing)),
            {.bins = bins, .threads = session_.threads, .progress = progress, .limits = session_.limits});
  std::vector<TensorStats> results;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < computed.size(); ++i) statistics_[side][missing_numbers[i]].keep(computed[i]);
    for (const std::uint64_t number : numbers)
      results.push_back(statistics_[side][number].of(std::string(checkpoint.tensors[number].name), with_histogram));
  }
  std::string text;
  Session own;
  own.out = Output(&text);
  Checkpoint named(std::move(wanted));
  named.target = checkpoint.target;
  write_stats_json(own, named, results, {.sparkline = with_histogram});
  own.out.flush();
  return text;
}

void Service::answer_api(const HttpRequest& request, const Parts& parts, HttpReply& reply) {
  const std::string name(request.path);
  const std::string_view what = parts[1];
  if (parts.size() == 2) {
    if (what == "model") return reply.send(200, kJson, *model());
    if (what == "diff" && subject_.sides.size() == 2)
      return document(name, Cost::job, reply,
                      [&](const Progress& progress) { return diff_document(session_, subject_, progress); });
    if (what == "adapter" && subject_.adapter)
      return document(name, Cost::little, reply, [&](const Progress&) { return adapter_document(subject_); });
    if (what == "modules" && subject_.adapter)
      return document(name, Cost::job, reply,
                      [&](const Progress& progress) { return modules_document(session_, subject_, progress); });
    throw NotThere();
  }
  const std::size_t side = side_of(parts[2]);
  if (parts.size() == 3) {
    if (what == "info")
      return document(name, Cost::little, reply, [&](const Progress&) { return info_document(subject_, side); });
    if (what == "scan")
      return document(name, Cost::job, reply, [&](const Progress&) {
        return scan_document(session_, subject_.targets[side], subject_.targets[side]);
      });
    if (what == "texts")
      return document(name, Cost::little, reply,
                      [&](const Progress&) { return texts_document(session_, subject_, side, kMostTextBytes); });
    if (what == "stats")
      return document("", Cost::job, reply,
                      [&](const Progress& progress) { return statistics(side, request, progress); });
    throw NotThere();
  }
  const Tensor& tensor = tensor_of(side, parts[3]);
  if (parts.size() != 4) throw NotThere();
  if (what == "values") return send_values(request, tensor, reply);
  if (what == "first") {
    const auto at = request.query.contains("at") ? numbers_in(word(request, "at"), ',') : std::vector<std::uint64_t>();
    return document("", Cost::little, reply, [&](const Progress&) { return values_document(tensor, at); });
  }
  if (what == "spectrum")
    return document(name, Cost::little, reply,
                    [&](const Progress& progress) { return spectrum_document(spectra_.compute(tensor, progress)); });
  throw NotThere();
}

}  // namespace ballast::cli
