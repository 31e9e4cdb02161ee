// The Python class Checkpoint: an open checkpoint as a mapping of names to lazy tensors.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>

#include <ballast/checkpoint.hpp>
#include <ballast/private_maps.hpp>

namespace ballast::python {

class PyCheckpoint {
 public:
  PyCheckpoint(Checkpoint checkpoint, const std::string& device)
      : checkpoint_(std::make_shared<const Checkpoint>(std::move(checkpoint))),
        device_(std::make_shared<const std::string>(device)) {}

  // Raises ValueError after close().
  const Checkpoint& get() const;
  std::shared_ptr<const Checkpoint> held() const { return get(), checkpoint_; }  // while close() may be called
  void close() { checkpoint_.reset(); }
  bool is_closed() const noexcept { return !checkpoint_; }

  const std::shared_ptr<PrivateMaps>& maps() const noexcept { return maps_; }
  const std::shared_ptr<const std::string>& device() const noexcept { return device_; }

 private:
  std::shared_ptr<const Checkpoint> checkpoint_;
  std::shared_ptr<PrivateMaps> maps_ = std::make_shared<PrivateMaps>();
  std::shared_ptr<const std::string> device_;
};

void add_checkpoint(pybind11::module_& module);

// A name as Python has it. A name in a file may be no UTF-8.
pybind11::object to_text(std::string_view text);

}  // namespace ballast::python
