// ModelState: the state of a model while an adapter is put into it. Every name is there once, and every tensor keeps
// the shape that the model has.
#pragma once

#include <string>

#include <ballast/adapter.hpp>
#include <ballast/error.hpp>

#include "core/remedy.hpp"
#include "core/text.hpp"
#include "peft/files/wrapping.hpp"

namespace ballast::peft {

struct ModelState {
  explicit ModelState(const SetAdapterOptions& options) : options(options) {}

  // A tensor of the base.
  void insert(const std::string& name, const Tensor& tensor) {
    if (result.state.insert(name, tensor)) return;
    throw Error(Errc::mismatch, "two tensors of the state would be called " + quote(name))
        .hint("is the state already adapted, in part, under other names?");
  }

  // A tensor of the adapter, in the place of one that the state has.
  void replace(const std::string& name, const Tensor& tensor) {
    const Tensor& old = result.state.at(name);
    if (old.shape() != tensor.shape()) return note_mismatch(name, tensor.shape(), old.shape());
    result.state.replace(name, tensor);
    expected.erase(name);
  }

  // A tensor of the adapter, in its place or as a new one.
  void put(const std::string& name, const Tensor& tensor) {
    if (!result.state.insert(name, tensor)) replace(name, tensor);
  }

  void note_mismatch(const std::string& name, const Shape& given, const Shape& wanted) {
    if (!options.ignore_mismatched_sizes) {
      throw Error(Errc::mismatch, "tensor " + quote(name) + " has the shape " + to_string(given) +
                                      " in the adapter, but the model needs " + to_string(wanted))
          .hint("is the adapter for another base? " + mention(Remedy::ignore_mismatched) +
                " leaves out what does not fit");
    }
    result.mismatched.push_back(name);
  }

  const SetAdapterOptions& options;
  SetAdapterResult result{};
  Names expected{};  // names in the state that the adapter should have a tensor for, and has not given yet
};

}  // namespace ballast::peft
