#include "builders/zip_file.hpp"

#include <zlib.h>

#include <span>
#include <stdexcept>
#include <utility>

namespace ballast::test {

std::string little_endian(std::uint64_t value, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

std::string u16(std::uint64_t value) { return little_endian(value, 2); }

std::string u32(std::uint64_t value) { return little_endian(value, 4); }

std::string u64(std::uint64_t value) { return little_endian(value, 8); }

std::string extra_record(std::uint16_t tag, std::string_view content) {
  return u16(tag) + u16(content.size()) + std::string(content);
}

std::uint32_t crc32_of(std::string_view data) {
  return static_cast<std::uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size())));
}

std::string deflate_raw(std::string_view data) {
  z_stream stream{};
  if (deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("deflateInit2");
  std::string packed(deflateBound(&stream, static_cast<uLong>(data.size())), '\0');
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) throw std::runtime_error("deflate");
  return packed;
}

ZipFile& ZipFile::stored(std::string_view name, std::string_view data) { return add(name, data, std::string(data), 0); }

ZipFile& ZipFile::deflated(std::string_view name, std::string_view data) {
  return add(name, data, deflate_raw(data), 8);
}

ZipFile& ZipFile::streamed(std::string_view name, std::string_view data, bool deflate) {
  deflate ? deflated(name, data) : stored(name, data);
  return change([](ZipEntry& e) {
    e.local.flags = e.central.flags = 0x808;
    e.descriptor = "PK\x07\x08" + u32(e.local.crc32) + u32(e.local.packed_bytes) + u32(e.local.bytes);
    e.local.crc32 = e.local.packed_bytes = e.local.bytes = 0;
  });
}

ZipFile& ZipFile::aligned(std::size_t alignment) {
  ZipEntry& entry = entries_.back();
  const std::size_t begin = locals().size() - entry.descriptor.size() - entry.data.size() + 4;
  entry.local.extra += extra_record(0x4246, std::string((alignment - begin % alignment) % alignment, 'Z'));
  return *this;
}

ZipFile& ZipFile::change(const std::function<void(ZipEntry&)>& lie) {
  lie(entries_.back());
  return *this;
}

ZipFile& ZipFile::comment(std::string_view text) {
  return change_end([text = std::string(text)](ZipEnd& end) { end.comment = text; });
}

ZipFile& ZipFile::change_end(std::function<void(ZipEnd&)> lie) {
  end_lies_.push_back(std::move(lie));
  return *this;
}

ZipFile& ZipFile::zip64(std::function<void(Zip64End&)> lie) {
  zip64_ = std::move(lie);
  return *this;
}

ZipFile& ZipFile::list_in_order(std::vector<std::size_t> order) {
  order_ = std::move(order);
  return *this;
}

ZipFile& ZipFile::prefix(std::string_view bytes) {
  prefix_ = bytes;
  return *this;
}

ZipFile& ZipFile::suffix(std::string_view bytes) {
  suffix_ = bytes;
  return *this;
}

std::string ZipFile::text() const {
  ZipEnd end = right_end();
  for (const auto& lie : end_lies_) lie(end);
  std::string text = locals() + end.before_directory + directory() + end.before_end;
  if (zip64_) text += zip64_records(end, text.size());
  text += "PK\x05\x06" + u16(end.disk) + u16(end.directory_disk) + u16(end.members_on_disk) + u16(end.member_count) +
          u32(end.directory_bytes) + u32(end.directory_offset) +
          u16(end.comment_bytes.value_or(static_cast<std::uint16_t>(end.comment.size()))) + end.comment;
  return prefix_ + text + suffix_;
}

SourcePtr ZipFile::source() const {
  const std::string text = this->text();
  const auto bytes = std::as_bytes(std::span(text));
  return memory_source({bytes.begin(), bytes.end()}, "file");
}

ZipFile& ZipFile::add(std::string_view name, std::string_view data, std::string packed, std::uint16_t method) {
  ZipEntry entry;
  entry.local.method = method;
  entry.local.crc32 = crc32_of(data);
  entry.local.packed_bytes = static_cast<std::uint32_t>(packed.size());
  entry.local.bytes = static_cast<std::uint32_t>(data.size());
  entry.local.name = name;
  entry.central = entry.local;
  entry.local.signature = "PK\x03\x04";
  entry.central.signature = "PK\x01\x02";
  entry.data = std::move(packed);
  entries_.push_back(std::move(entry));
  return *this;
}

std::string ZipFile::common(const ZipHeader& h) {
  return u16(h.version) + u16(h.flags) + u16(h.method) + u32(0x21'0000) + u32(h.crc32) + u32(h.packed_bytes) +
         u32(h.bytes) + u16(h.name_bytes.value_or(static_cast<std::uint16_t>(h.name.size()))) +
         u16(h.extra_bytes.value_or(static_cast<std::uint16_t>(h.extra.size())));
}

std::string ZipFile::locals(std::vector<std::uint32_t>* offsets) const {
  std::string text;
  for (const ZipEntry& e : entries_) {
    if (e.has_local) text += e.before;
    if (offsets != nullptr) offsets->push_back(static_cast<std::uint32_t>(text.size()));
    if (e.has_local) text += e.local.signature + common(e.local) + e.local.name + e.local.extra + e.data + e.descriptor;
  }
  return text;
}

std::string ZipFile::directory() const {
  std::vector<std::uint32_t> offsets;
  locals(&offsets);
  std::string text;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const std::size_t k = order_.empty() ? i : order_[i];
    const ZipEntry& e = entries_[k];
    if (!e.is_listed) continue;
    text += e.central.signature + u16(20) + common(e.central) +
            u16(e.comment_bytes.value_or(static_cast<std::uint16_t>(e.comment.size()))) + u16(e.disk) + u16(0) +
            u32(0) + u32(e.header_offset.value_or(offsets[k])) + e.central.name + e.central.extra + e.comment;
  }
  return text;
}

ZipEnd ZipFile::right_end() const {
  ZipEnd end;
  for (const ZipEntry& e : entries_) end.member_count += e.is_listed;
  end.members_on_disk = end.member_count;
  end.directory_bytes = directory().size();
  end.directory_offset = locals().size();
  return end;
}

std::string ZipFile::zip64_records(const ZipEnd& end, std::uint64_t offset) const {
  const ZipEnd right = right_end();
  Zip64End end64;
  end64.members_on_disk = end64.member_count = right.member_count;
  end64.directory_bytes = right.directory_bytes;
  end64.directory_offset = right.directory_offset + end.before_directory.size();
  end64.record_offset = offset;
  zip64_(end64);
  return "PK\x06\x06" + u64(end64.rest_bytes) + u16(45) + u16(45) + u32(end64.disk) + u32(end64.directory_disk) +
         u64(end64.members_on_disk) + u64(end64.member_count) + u64(end64.directory_bytes) +
         u64(end64.directory_offset) + end64.extension + end64.between + "PK\x06\x07" + u32(end64.locator_disk) +
         u64(end64.record_offset) + u32(end64.disk_count);
}

}  // namespace ballast::test
