// A reader of pickles that executes nothing; see python_file.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tune {

// The parts of a pickle.
struct PickleObject {
  enum class Kind { kOther, kNumber, kText, kName, kSequence, kDictionary, kTensor };

  Kind kind = Kind::kOther;
  std::int64_t number = 0;
  std::string text;  // also: the name of a class or function, or what something else was made by
  std::vector<PickleObject*> items;  // of a dictionary: a key, its value, the next key, ...
  at::Tensor tensor;                 // a storage is one of one dimension

  // Throws Error (kIo) when there are fewer.
  PickleObject& item(std::size_t index) const;
};

class Pickle {
 public:
  // The whole storage of that key, of so many values of a type that Python names
  // ("torch.FloatStorage"); undefined when the type is not known.
  using Storage = std::function<at::Tensor(const std::string& type, const std::string& key,
                                           std::int64_t values)>;

  // Throws Error (kIo) when these are not the bytes of a pickle, or one that lies.
  Pickle(std::string_view bytes, Storage storage);
  Pickle(const Pickle&) = delete;

  const PickleObject& root() const { return *root_; }

 private:
  using Kind = PickleObject::Kind;
  struct Operations;  // what each does
  void run();

  PickleObject& make(Kind kind);
  void push_other(const std::string& what) { make(Kind::kOther).text = what; }
  void push_number(std::int64_t number) { make(Kind::kNumber).number = number; }
  void push_long();
  void push_text(std::size_t size) { make(Kind::kText).text = text(size); }
  void push_name(const std::string& module, const std::string& name);
  void push_sequence(std::vector<PickleObject*> items);
  void add_to_top(const std::vector<PickleObject*>& items, Kind kind);
  void remember(std::uint64_t place);
  void push_remembered(std::uint64_t place);
  void call();
  void push_storage(const PickleObject& id);

  PickleObject& pop();
  std::vector<PickleObject*> pop_last(std::size_t count);
  std::vector<PickleObject*> pop_mark();
  std::uint64_t number(int bytes);
  std::string text(std::size_t size);
  std::string line();

  std::string_view bytes_;
  Storage storage_;
  // All of them, to the end: they may hold each other in circles, or in chains of any length.
  std::deque<PickleObject> objects_;
  std::vector<PickleObject*> stack_;
  std::vector<std::size_t> marks_;
  std::map<std::uint64_t, PickleObject*> memory_;
  std::map<std::string, at::Tensor> storages_;
  const PickleObject* root_ = nullptr;
};

}  // namespace tune
