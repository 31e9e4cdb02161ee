// Singular values, one matrix at a time, in a thread of its own. LAPACK asks nobody whether its result is still wanted:
// whoever asked may leave at once, and the thread ends when LAPACK does.
#pragma once

#include <memory>

#include <ballast/progress.hpp>
#include <ballast/singular_values.hpp>

namespace ballast::cli {

class SpectrumJobs {
 public:
  SpectrumJobs();

  // Waits for its turn and for the result. `progress` is asked ten times a second; Errc::cancelled if it says no.
  SingularValues compute(const Tensor& matrix, const Progress& progress);

  bool is_busy() const;
  void wait() const;  // until it is not

 private:
  struct Turn;
  std::shared_ptr<Turn> turn_;  // the thread holds it, too: it may outlive this object
};

}  // namespace ballast::cli
