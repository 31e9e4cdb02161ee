// What a served page asks for, answered: documents, statistics of some tensors, the cells of a heat map.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/stats.hpp>

#include "http.hpp"
#include "kept_stats.hpp"
#include "spectrum_jobs.hpp"
#include "subject.hpp"

namespace ballast::cli {

class Service {
 public:
  Service(const Session& session, const Subject& subject);

  // Answers one request that may be answered. Everything is by number: no name and no path reaches a file.
  void answer(const HttpRequest& request, HttpReply& reply);

  // Of these jobs, one may go on when nobody waits for it any more.
  const SpectrumJobs& spectra() const noexcept { return spectra_; }

 private:
  using Parts = std::vector<std::string_view>;

  void answer_api(const HttpRequest& request, const Parts& parts, HttpReply& reply);
  using Document = std::shared_ptr<const std::string>;

  enum class Cost : std::uint8_t { little, job };
  Document model();
  Document made_before(const std::string& name);  // null if it was not
  std::shared_ptr<void> turn_for(HttpReply& reply);
  void document(const std::string& name, Cost cost, HttpReply& reply,
                const std::function<std::string(const Progress&)>& make);
  std::string statistics(std::size_t side, const HttpRequest& request, const Progress& progress);
  std::size_t side_of(std::string_view part) const;
  const Tensor& tensor_of(std::size_t side, std::string_view part) const;

  const Session& session_;
  const Subject& subject_;
  const std::string page_, policy_;
  std::mutex mutex_;
  std::map<std::string, Document, std::less<>> documents_;  // that were made already
  std::mutex model_mutex_;                                  // one at a time makes the document of the tensors
  std::weak_ptr<const std::string> model_;                  // while somebody is sent it: it is long
  std::vector<std::vector<KeptStats>> statistics_;          // of each side, by number
  std::counting_semaphore<2> work_{2};                      // jobs that read data, at a time
  SpectrumJobs spectra_;
};

}  // namespace ballast::cli
