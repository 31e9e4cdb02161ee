// Ratios that mean something on a noisy machine: both sides in one run, in random order, and the median of the rounds'
// ratios.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace ballast::bench {

struct Side {
  std::function<void()> run;          // what is timed
  std::function<void()> before = {};  // what is not, before each run
};

struct Comparison {
  double ratio;    // median over rounds of our time / their time
  double control;  // the same of their side against itself: what the machine adds
  double ours_ms, theirs_ms;
  int rounds;
};

// Rounds of {ours, theirs, theirs again} in random order. A round is repeated work: small sides are run several times
// in it. What `not_counted` takes is taken off our time.
Comparison compare(const Side& ours, const Side& theirs, int rounds = 21,
                   const std::function<void()>& not_counted = {});

// Of one side alone.
double median_ms(int rounds, const std::function<void()>& run);

// A goal is about time ("at most 1.0x their time") or speed ("at least 0.95x their speed").
enum class Goal { time_at_most, speed_at_least };

class Report {
 public:
  // Only rows whose name contains `filter`; each is printed when it is there.
  explicit Report(std::string filter) : filter_(std::move(filter)) {}

  bool wants(const std::string& name) const { return filter_.empty() || name.find(filter_) != std::string::npos; }
  void add(const std::string& name, const Comparison& comparison, Goal goal, double bound);
  void add_value(const std::string& name, double value, double at_most, const std::string& unit);

  // Says on stderr which rows missed their goals, and which are to be run again because the machine was too busy. 1 if
  // a row missed its goal on a machine that was quiet enough to say so, 2 if no row has the words of the filter.
  int finish() const;

 private:
  void print_head();

  std::string filter_;
  std::vector<std::string> missed_, undecided_;
  bool has_head_ = false;
};

// The most bytes that operator new had handed out and not got back since the last reset, beyond what it had then.
void reset_peak();
std::size_t peak_bytes();

// The most memory of its own that a process had which did nothing but `run`, in MiB.
double peak_anonymous(const std::function<void()>& run);

// Makes the compiler believe that a value is used.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

}  // namespace ballast::bench
