// Session: the connections of one call at a time, and what happens after each answer: redirects, further attempts,
// errors.
#pragma once

#include <ballast/remote.hpp>

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "net/transfer.hpp"

namespace ballast::net {

// Throws Errc::cancelled once nobody wants the work of this thread any more. For whoever waits, several times a second.
void require_wanted(const HttpOptions& options);

class Session {
 public:
  explicit Session(const HttpOptions& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void run(Remote& remote, std::span<Fetch> fetches);
  void run(Remote& remote, Page& page);

 private:
  void run_all(std::deque<Transfer>& transfers);
  void step();
  void ask_whether_to_go_on();
  void start_those_that_may();
  void start(Transfer& transfer);
  void set_access(Transfer& transfer, const Url& url);
  void release(Transfer& transfer);
  void finish(CURL* easy, CURLcode code);
  unsigned attempts(const Transfer& transfer) const;
  void settle(Transfer& transfer, CURLcode code);
  bool has_page(Transfer& transfer, CURLcode code);
  void redirect(Transfer& transfer);
  void take_unsatisfied(Transfer& transfer);
  void repeat(Transfer& transfer);

  const HttpOptions& options_;
  CURLM* multi_;
  std::string certificates_;
  bool is_bulk_ = false;  // several connections are faster than several streams in one
  std::vector<CURL*> idle_;
  std::vector<Transfer*> active_;
  std::deque<Transfer*> waiting_;
  std::chrono::steady_clock::time_point next_question_{};
  unsigned broken_ = 0;
};

}  // namespace ballast::net
