// A strict reader of tar directories, for the only checkpoints that come as tars: those of PyTorch 0.1.
//
// Members are plain files only; links, devices, sparse files and names that occur twice are refused. Nothing is ever
// extracted.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/limits.hpp>
#include <ballast/source.hpp>

namespace ballast::archive {

struct TarMember {
  std::string name;  // without a leading "./"; bytes, never used as a path
  std::uint64_t data_offset = 0;
  std::uint64_t bytes = 0;
};

struct Tar {
  SourcePtr source;
  std::vector<TarMember> members;

  const TarMember* find(std::string_view name) const noexcept;
};

// Whether the first 512 bytes are a tar header with a correct checksum (old headers have no magic).
bool looks_like_tar(std::span<const std::byte> first_bytes) noexcept;

Tar read_tar(const SourcePtr& source, const Limits& limits);

SourcePtr member_source(const Tar& tar, const TarMember& member);  // "FILE!/MEMBER"

}  // namespace ballast::archive
