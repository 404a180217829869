#include "trainables/torch/python_pickle.h"

#include <utility>

#include "core/error.h"

namespace tune {
namespace {

using Kind = PickleObject::Kind;

[[noreturn]] void broken(const std::string& how) {
  throw Error(ErrorCode::kIo, "its pickle is broken: " + how);
}

std::vector<std::int64_t> numbers_of(const PickleObject& sequence) {
  std::vector<std::int64_t> numbers;
  for (const PickleObject* item : sequence.items) {
    if (item->kind != Kind::kNumber || item->number < 0) broken("a size is not a number from 0 on");
    numbers.push_back(item->number);
  }
  return numbers;
}

// One that lies within its storage.
at::Tensor tensor_of(const PickleObject& arguments) {
  const at::Tensor& storage = arguments.item(0).tensor;
  const PickleObject& first = arguments.item(1);
  const std::vector<std::int64_t> sizes = numbers_of(arguments.item(2));
  const std::vector<std::int64_t> strides = numbers_of(arguments.item(3));
  if (!storage.defined() || first.kind != Kind::kNumber || first.number < 0 ||
      sizes.size() != strides.size()) {
    broken("a tensor has no storage, or no strides");
  }
  std::int64_t last = first.number;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return storage.new_empty(sizes);
    std::int64_t along = 0;
    if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &along) ||
        __builtin_add_overflow(last, along, &last)) {
      last = storage.numel();
      break;
    }
  }
  if (last >= storage.numel()) broken("a tensor reaches beyond its storage");
  return storage.as_strided(sizes, strides, first.number);
}

}  // namespace

PickleObject& PickleObject::item(std::size_t index) const {
  if (index >= items.size()) broken("something is missing");
  return *items[index];
}

Pickle::Pickle(std::string_view bytes, Storage storage)
    : bytes_(bytes), storage_(std::move(storage)) {
  run();
}

// By their codes in Python's pickletools, where they are described: what protocols 2 to 5 write of
// dictionaries of tensors.
struct Pickle::Operations {
  using Operation = void (*)(Pickle&);

  static Operation of(unsigned char code) {
    static const std::map<unsigned char, Operation> all = {
        // values
        {'K', [](Pickle& p) { p.push_number(static_cast<std::int64_t>(p.number(1))); }},
        {'M', [](Pickle& p) { p.push_number(static_cast<std::int64_t>(p.number(2))); }},
        {'J', [](Pickle& p) { p.push_number(static_cast<std::int32_t>(p.number(4))); }},
        {0x8a, [](Pickle& p) { p.push_long(); }},
        {'G', [](Pickle& p) { p.number(8), p.push_other("a number"); }},
        {'N', [](Pickle& p) { p.push_other("None"); }},
        {0x88, [](Pickle& p) { p.push_other("a bool"); }},
        {0x89, [](Pickle& p) { p.push_other("a bool"); }},
        {'X', [](Pickle& p) { p.push_text(p.number(4)); }},
        {0x8c, [](Pickle& p) { p.push_text(p.number(1)); }},
        {'U', [](Pickle& p) { p.push_text(p.number(1)); }},
        // groups of values
        {'(', [](Pickle& p) { p.marks_.push_back(p.stack_.size()); }},
        {')', [](Pickle& p) { p.make(Kind::kSequence); }},
        {']', [](Pickle& p) { p.make(Kind::kSequence); }},
        {'}', [](Pickle& p) { p.make(Kind::kDictionary); }},
        {'t', [](Pickle& p) { p.push_sequence(p.pop_mark()); }},
        {0x85, [](Pickle& p) { p.push_sequence(p.pop_last(1)); }},
        {0x86, [](Pickle& p) { p.push_sequence(p.pop_last(2)); }},
        {0x87, [](Pickle& p) { p.push_sequence(p.pop_last(3)); }},
        {'a', [](Pickle& p) { p.add_to_top(p.pop_last(1), Kind::kSequence); }},
        {'e', [](Pickle& p) { p.add_to_top(p.pop_mark(), Kind::kSequence); }},
        {'s', [](Pickle& p) { p.add_to_top(p.pop_last(2), Kind::kDictionary); }},
        {'u', [](Pickle& p) { p.add_to_top(p.pop_mark(), Kind::kDictionary); }},
        // what is used again
        {'q', [](Pickle& p) { p.remember(p.number(1)); }},
        {'r', [](Pickle& p) { p.remember(p.number(4)); }},
        {0x94, [](Pickle& p) { p.remember(p.memory_.size()); }},
        {'h', [](Pickle& p) { p.push_remembered(p.number(1)); }},
        {'j', [](Pickle& p) { p.push_remembered(p.number(4)); }},
        // names, and what Python would call
        {'c',
         [](Pickle& p) {
           const std::string module = p.line();
           p.push_name(module, p.line());
         }},
        {0x93,
         [](Pickle& p) {
           const PickleObject& name = p.pop();
           p.push_name(p.pop().text, name.text);
         }},
        {'Q', [](Pickle& p) { p.push_storage(p.pop()); }},
        {'R', [](Pickle& p) { p.call(); }},
        {0x81, [](Pickle& p) { p.call(); }},
        {'b', [](Pickle& p) { p.pop(); }},  // attributes of what stays
        // the pickle's own
        {0x80, [](Pickle& p) { p.number(1); }},
        {0x95, [](Pickle& p) { p.number(8); }},
    };
    const auto found = all.find(code);
    return found == all.end() ? nullptr : found->second;
  }
};

void Pickle::run() {
  constexpr unsigned char kStop = '.';
  for (;;) {
    const auto code = static_cast<unsigned char>(number(1));
    if (code == kStop) break;
    const Operations::Operation operation = Operations::of(code);
    if (operation == nullptr) broken("operation " + std::to_string(code) + " is not known");
    operation(*this);
  }
  root_ = &pop();
}

// The constructors that tell tensors, and what LibTorch's own writer adds.
void Pickle::call() {
  PickleObject& arguments = pop();
  const std::string& name = pop().text;
  if (name == "collections.OrderedDict") {
    make(Kind::kDictionary);
  } else if (name == "torch._utils._rebuild_tensor_v2") {
    const PickleObject& storage = arguments.item(0);
    if (storage.kind != Kind::kTensor) return push_other(storage.text);
    at::Tensor tensor = tensor_of(arguments);
    make(Kind::kTensor).tensor = std::move(tensor);
  } else if (name == "torch._utils._rebuild_parameter" ||
             name == "torch._utils._rebuild_parameter_with_state" || name == "torch.Size" ||
             name == "torch.jit._pickle.restore_type_tag") {
    stack_.push_back(&arguments.item(0));
  } else {
    push_other(name);
  }
}

// ("storage", its class, its key, where it was, how many values)
void Pickle::push_storage(const PickleObject& id) {
  if (id.item(0).text != "storage") broken("it refers to something that is not a storage");
  const std::string& type = id.item(1).text;
  const std::string& key = id.item(2).text;
  at::Tensor& storage = storages_[key];
  if (!storage.defined()) storage = storage_(type, key, id.item(4).number);
  if (!storage.defined()) return push_other(type);
  make(Kind::kTensor).tensor = storage;
}

void Pickle::remember(std::uint64_t place) {
  if (stack_.empty()) broken("nothing is there to be remembered");
  memory_[place] = stack_.back();
}

void Pickle::push_remembered(std::uint64_t place) {
  const auto found = memory_.find(place);
  if (found == memory_.end()) broken("it asks for what it has not remembered");
  stack_.push_back(found->second);
}

// Its length in bytes, then these; of two's complement.
void Pickle::push_long() {
  const auto size = static_cast<int>(number(1));
  if (size == 0) return push_number(0);
  if (size > 8) return text(static_cast<std::size_t>(size)), push_other("a large number");
  const int unused = 64 - 8 * size;
  push_number(static_cast<std::int64_t>(number(size) << unused) >> unused);
}

PickleObject& Pickle::make(Kind kind) {
  PickleObject& object = objects_.emplace_back();
  object.kind = kind;
  stack_.push_back(&object);
  return object;
}

void Pickle::push_name(const std::string& module, const std::string& name) {
  make(Kind::kName).text = module + "." + name;
}

void Pickle::push_sequence(std::vector<PickleObject*> items) {
  make(Kind::kSequence).items = std::move(items);
}

void Pickle::add_to_top(const std::vector<PickleObject*>& items, Kind kind) {
  if (stack_.empty()) broken("nothing is there to be added to");
  PickleObject& top = *stack_.back();
  if (top.kind != kind && top.kind != Kind::kOther) broken("something is added to another thing");
  if (kind == Kind::kDictionary && items.size() % 2 != 0) broken("a key has no value");
  top.items.insert(top.items.end(), items.begin(), items.end());
}

PickleObject& Pickle::pop() {
  return *pop_last(1)[0];
}

std::vector<PickleObject*> Pickle::pop_last(std::size_t count) {
  const std::size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() < floor + count) broken("something is missing");
  const auto begin = stack_.end() - static_cast<std::ptrdiff_t>(count);
  std::vector<PickleObject*> items(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  return items;
}

std::vector<PickleObject*> Pickle::pop_mark() {
  if (marks_.empty()) broken("a group without a beginning");
  const std::size_t count = stack_.size() - marks_.back();
  std::vector<PickleObject*> items = pop_last(count);
  marks_.pop_back();
  return items;
}

// Of so many bytes, at most 8, the lowest first.
std::uint64_t Pickle::number(int bytes) {
  const std::string read = text(static_cast<std::size_t>(bytes));
  std::uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; --i) {
    value = value << 8 | static_cast<unsigned char>(read[static_cast<std::size_t>(i)]);
  }
  return value;
}

std::string Pickle::text(std::size_t size) {
  if (size > bytes_.size()) broken("it is cut");
  std::string read(bytes_.substr(0, size));
  bytes_.remove_prefix(size);
  return read;
}

std::string Pickle::line() {
  const std::size_t end = bytes_.find('\n');
  if (end == std::string_view::npos) broken("it is cut");
  std::string read = text(end);
  text(1);
  return read;
}

}  // namespace tune
