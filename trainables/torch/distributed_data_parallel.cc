#include "trainables/torch/distributed_data_parallel.h"

#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>

#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <set>
#include <sstream>
#include <unordered_map>

#include "core/error.h"

namespace tune {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Future = c10::ivalue::Future;
using Names = std::unordered_map<std::size_t, std::string>;
using Buckets = std::vector<std::vector<std::size_t>>;

constexpr std::size_t kBroadcastBytes = 250u << 20;
constexpr double kDefaultBucketMb = 25;
constexpr double kMostBucketMb = 1e6;  // as good as no limit

struct Parameters {
  std::vector<at::Tensor> tensors;
  std::vector<bool> sparse;  // whether the gradient is
  Names names;               // by index
};

// Of embeddings that were asked for sparse gradients.
std::set<const void*> sparse_weights(const torch::nn::Module& model) {
  std::set<const void*> weights;
  for (const auto& module : model.modules()) {
    if (const auto* table = module->as<torch::nn::EmbeddingImpl>()) {
      if (table->options.sparse()) weights.insert(table->weight.unsafeGetTensorImpl());
    } else if (const auto* bag = module->as<torch::nn::EmbeddingBagImpl>()) {
      if (bag->options.sparse()) weights.insert(bag->weight.unsafeGetTensorImpl());
    }
  }
  return weights;
}

// Those with gradients; one that several modules share is there once, by its first name.
Parameters parameters_of(const torch::nn::Module& model) {
  Parameters parameters;
  const std::set<const void*> sparse = sparse_weights(model);
  std::set<const void*> seen;
  for (const auto& item : model.named_parameters()) {
    const at::Tensor& tensor = item.value();
    if (!tensor.requires_grad() || !seen.insert(tensor.unsafeGetTensorImpl()).second) continue;
    parameters.names[parameters.tensors.size()] = item.key();
    parameters.tensors.push_back(tensor);
    parameters.sparse.push_back(sparse.contains(tensor.unsafeGetTensorImpl()));
  }
  return parameters;
}

void expect_devices(const Parameters& parameters, c10::Device own) {
  const c10::Device first = parameters.tensors[0].device();
  for (std::size_t i = 0; i < parameters.tensors.size(); ++i) {
    const c10::Device device = parameters.tensors[i].device();
    if (device == first && (device.is_cpu() || device == own)) continue;
    throw Error(ErrorCode::kBadInput, "training on a group of ranks: parameter " +
                                          parameters.names.at(i) + " is on " + device.str() +
                                          ", all have to be on this rank's device, " + own.str() +
                                          ", or all on the CPU");
  }
}

std::string shape_of(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.scalar_type() << ' ' << tensor.sizes();
  if (!tensor.is_contiguous()) text << " with strides " << tensor.strides();
  return text.str();
}

// One line for each thing in which ranks must not differ: what it is, a tab, its value.
std::string description(const torch::nn::Module& model, const Parameters& parameters,
                        const DdpOptions& options) {
  std::ostringstream text;
  text << "option bucket_cap_mb\t";
  if (options.bucket_cap_mb) {
    text << *options.bucket_cap_mb;
  } else {
    text << "none";
  }
  text << "\noption find_unused_parameters\t" << options.find_unused_parameters
       << "\noption static_graph\t" << options.static_graph << "\noption broadcast_buffers\t"
       << options.broadcast_buffers << "\noption delay_allreduce\t" << options.delay_allreduce
       << "\noption compression\t" << static_cast<int>(options.compression) << '\n';
  for (std::size_t i = 0; i < parameters.tensors.size(); ++i) {
    text << "parameter " << parameters.names.at(i) << '\t' << shape_of(parameters.tensors[i]);
    if (parameters.sparse[i]) text << " with sparse gradients";
    text << '\n';
  }
  for (const auto& item : model.named_parameters()) {
    if (item.value().requires_grad()) continue;
    text << "frozen parameter " << item.key() << '\t' << shape_of(item.value()) << '\n';
  }
  for (const auto& item : model.named_buffers()) {
    if (item.value().defined()) {
      text << "buffer " << item.key() << '\t' << shape_of(item.value()) << '\n';
    }
  }
  return text.str();
}

struct Line {
  std::string what, value;
};

std::vector<Line> lines_of(const std::string& text) {
  std::vector<Line> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const std::size_t tab = line.rfind('\t');
    lines.push_back({line.substr(0, tab), line.substr(tab + 1)});
  }
  return lines;
}

// The first difference between two descriptions that are not the same.
std::string difference(const std::string& first, const std::string& other,
                       const std::string& other_rank) {
  const std::vector<Line> a = lines_of(first);
  const std::vector<Line> b = lines_of(other);
  const auto missing = [](const Line& line, const std::string& has, const std::string& lacks) {
    return line.what + " (" + line.value + ") is on " + has + ", but not at that place on " + lacks;
  };
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i].what != b[i].what) return missing(a[i], "rank 0", other_rank);
    if (a[i].value == b[i].value) continue;
    return a[i].what + " is " + a[i].value + " on rank 0, " + b[i].value + " on " + other_rank;
  }
  return a.size() > b.size() ? missing(a[b.size()], "rank 0", other_rank)
                             : missing(b[a.size()], other_rank, "rank 0");
}

void expect_equal_models(ProcessGroup& group, const torch::nn::Module& model,
                         const Parameters& parameters, const DdpOptions& options) {
  const auto all =
      group.all_gather_texts(description(model, parameters, options), "the models' shapes");
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    throw Error(ErrorCode::kBadInput,
                "the models of a group of ranks must be alike: " +
                    difference(all[0], all[rank], "rank " + std::to_string(rank)));
  }
}

// Later versions of LibTorch have more, defaulted arguments, earlier ones lack the last.
template <class Reducer>
std::shared_ptr<Reducer> make_reducer(const Parameters& p, const Buckets& buckets,
                                      const ProcessGroup& group, const DdpOptions& options,
                                      std::int64_t cap, std::int64_t first_cap) {
  using CapList = std::vector<std::int64_t>;
  if constexpr (std::is_constructible_v<Reducer, std::vector<at::Tensor>, Buckets,
                                        c10::intrusive_ptr<c10d::ProcessGroup>, std::vector<bool>,
                                        std::int64_t, bool, bool, Names, std::int64_t, bool, bool,
                                        CapList>) {
    return std::make_shared<Reducer>(p.tensors, buckets, group.c10d(), p.sparse, cap,
                                     options.find_unused_parameters,
                                     options.gradient_as_bucket_view.value_or(false), p.names,
                                     first_cap, false, false, CapList{});
  } else {
    return std::make_shared<Reducer>(
        p.tensors, buckets, group.c10d(), p.sparse, cap, options.find_unused_parameters,
        options.gradient_as_bucket_view.value_or(false), p.names, first_cap, false, false);
  }
}

// Divides before the sum, which could otherwise leave the range of the type.
class CompressedMean : public c10d::CppCommHookInterface<c10::intrusive_ptr<c10d::ProcessGroup>> {
 public:
  CompressedMean(const c10::intrusive_ptr<c10d::ProcessGroup>& group, at::ScalarType type)
      : CppCommHookInterface(group), type_(type) {}

  c10::intrusive_ptr<Future> runHook(c10d::GradBucket& bucket) override {
    at::Tensor buffer = bucket.getBufferRef();
    std::vector<at::Tensor> tensors{(buffer / state_->getSize()).to(type_)};
    return state_->allreduce(tensors)->getFuture()->then(
        [buffer](Future& sum) {
          const c10::IValue value = sum.value();
          buffer.copy_(value.isTensorList() ? value.toTensorVector()[0] : value.toTensor());
          return c10::IValue(buffer);
        },
        c10::TensorType::get());
  }

 private:
  at::ScalarType type_;
};

// One node of the graph behind all outputs: backward from any of them reaches, with zeros, what
// only the others were made of. Without it, parameters that only an output unused in the loss needs
// would be waited for forever.
struct JoinOutputs : torch::autograd::Function<JoinOutputs> {
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext*,
                                                at::TensorList outputs) {
    // Copies: views of inputs could not be changed in place.
    torch::autograd::variable_list joined;
    for (const at::Tensor& output : outputs) joined.push_back(output.clone());
    return joined;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    return gradients;
  }
};

std::vector<at::Tensor*> with_gradients(const std::vector<at::Tensor*>& outputs) {
  std::vector<at::Tensor*> found;
  for (at::Tensor* output : outputs) {
    if (output->defined() && output->requires_grad()) found.push_back(output);
  }
  return found;
}

// Whether it was thrown by the network and not by the model's own computation.
bool is_of_the_group(const std::exception& error) {
  if (dynamic_cast<const c10::DistError*>(&error) != nullptr) return true;
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch != nullptr ? torch->what_without_backtrace() : error.what();
  return text.find("gloo") != std::string::npos;
}

}  // namespace

struct GradientReducer::State {
  ProcessGroup group;
  DdpOptions options;
  Parameters parameters;
  std::vector<at::Tensor> buffers;
  std::shared_ptr<c10d::Reducer> reducer;  // null for one rank
  std::shared_ptr<c10d::Logger> logger;
  bool synchronises = true;
  bool buffers_may_differ = false;  // the last forward was one of a reduced step
  // Of a static graph.
  std::shared_ptr<std::atomic<bool>> first_backward_seen =
      std::make_shared<std::atomic<bool>>(false);
  std::vector<unsigned> first_backward_hooks;  // of the parameters, until it is seen

  void make() {
    const double cap_mb = std::min(options.bucket_cap_mb.value_or(kDefaultBucketMb), kMostBucketMb);
    const std::int64_t cap = options.delay_allreduce
                                 ? std::numeric_limits<std::int64_t>::max()
                                 : static_cast<std::int64_t>(cap_mb * (1 << 20));
    const std::int64_t first_cap = options.delay_allreduce || options.bucket_cap_mb
                                       ? cap
                                       : std::int64_t{c10d::kDefaultFirstBucketBytes};
    // Where buckets are made anew after the first step, in the order in which gradients came, all
    // are in one until then.
    const bool stay = options.find_unused_parameters && !options.static_graph;
    using Limits = std::vector<std::size_t>;
    const Limits limits =
        stay ? Limits{static_cast<std::size_t>(first_cap), static_cast<std::size_t>(cap)}
             : Limits{std::numeric_limits<std::size_t>::max()};
    Buckets buckets = std::get<0>(
        c10d::compute_bucket_assignment_by_size(parameters.tensors, limits, parameters.sparse));
    std::reverse(buckets.begin(), buckets.end());
    reducer = make_reducer<c10d::Reducer>(parameters, buckets, group, options, cap, first_cap);
    logger = std::make_shared<c10d::Logger>(reducer);
    const bool on_gpu = parameters.tensors[0].is_cuda();
    const int device = on_gpu ? parameters.tensors[0].device().index() : -1;
    logger->set_construction_data_and_log(
        "model", on_gpu ? std::vector<int>{device} : std::vector<int>{}, device,
        options.broadcast_buffers, false, options.static_graph);
    reducer->set_logger(logger);  // without it, finding unused parameters crashes
    if (options.static_graph) reducer->set_static_graph();
    if (options.compression != GradientCompression::kNone) compress();
  }

  void compress() {
    const bool half = options.compression == GradientCompression::kFloat16;
    reducer->register_comm_hook(
        std::make_unique<CompressedMean>(group.c10d(), half ? at::kHalf : at::kBFloat16));
  }

  template <class Work>
  void guarded(const std::string& what, Work&& work) {
    const auto began = SteadyClock::now();
    try {
      work();
    } catch (const std::exception& error) {
      if (!is_of_the_group(error)) throw;
      throw Error(ErrorCode::kProcess, group.explain(what, error, began));
    }
  }

  void broadcast(const std::vector<at::Tensor>& tensors, const char* what) {
    if (tensors.empty()) return;
    const at::NoGradGuard no_gradients;
    guarded(what, [&] { c10d::broadcast_coalesced(group.c10d(), tensors, kBroadcastBytes); });
  }

  void share_buffers() {
    if (!options.broadcast_buffers || !buffers_may_differ) return;
    broadcast(buffers, "broadcast of the buffers");
  }

  // In the first backward of a static graph gradients are only counted; when all are there, they
  // are reduced. The first gradient asks for that. Python asks from the outputs of forward instead;
  // where none of those that are listed leads to the loss, the gradients then stay each rank's own,
  // without a word.
  void reduce_after_first_backward() {
    for (const at::Tensor& parameter : parameters.tensors) {
      first_backward_hooks.push_back(parameter.register_hook(
          [seen = first_backward_seen, weak = std::weak_ptr(reducer)](const at::Tensor&) {
            if (seen->exchange(true)) return;
            torch::autograd::Engine::get_default_engine().queue_callback([weak] {
              if (const auto reducer = weak.lock()) reducer->delay_all_reduce();
            });
          }));
    }
  }

  void prepare_first_backward() {
    if (*first_backward_seen) {
      for (std::size_t i = 0; i < first_backward_hooks.size(); ++i) {
        parameters.tensors[i].remove_hook(first_backward_hooks[i]);
      }
      first_backward_hooks.clear();
    } else if (first_backward_hooks.empty()) {
      reduce_after_first_backward();
    }
  }
};

GradientReducer::GradientReducer(torch::nn::Module& model, ProcessGroup group,
                                 const DdpOptions& options)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.group = std::move(group);
  state.options = options;
  state.parameters = parameters_of(model);
  if (state.parameters.tensors.empty()) {
    throw Error(ErrorCode::kBadInput,
                "training on a group of ranks: the model has no parameter with a gradient");
  }
  if (options.bucket_cap_mb && !(*options.bucket_cap_mb > 0)) {
    throw Error(ErrorCode::kBadInput, "bucket_cap_mb is " + std::to_string(*options.bucket_cap_mb) +
                                          ", more than 0 is wanted");
  }
  if (state.group.size() == 1) return;
  expect_devices(state.parameters, state.group.device());
  if (options.compression != GradientCompression::kNone &&
      std::ranges::count(state.parameters.sparse, true) > 0) {
    throw Error(ErrorCode::kBadInput, "sparse gradients cannot be compressed");
  }
  expect_equal_models(state.group, model, state.parameters, options);
  for (const at::Tensor& buffer : model.buffers()) {
    if (buffer.defined()) state.buffers.push_back(buffer);
  }
  std::vector<at::Tensor> all;
  for (const at::Tensor& parameter : model.parameters()) all.push_back(parameter.detach());
  all.insert(all.end(), state.buffers.begin(), state.buffers.end());
  state.broadcast(all, "broadcast of the model");
  state.make();
}

GradientReducer::~GradientReducer() = default;
GradientReducer::GradientReducer(GradientReducer&&) noexcept = default;
GradientReducer& GradientReducer::operator=(GradientReducer&&) noexcept = default;

void GradientReducer::before_forward() {
  State& state = *state_;
  if (!state.reducer) return;
  const bool with_gradients = at::GradMode::is_enabled();
  state.guarded("exchange of the buckets", [&] {
    if (with_gradients && state.synchronises) state.reducer->prepare_for_forward();
    if (with_gradients) state.reducer->rebuild_buckets();
  });
  state.share_buffers();
}

void GradientReducer::after_forward(const std::vector<at::Tensor*>& outputs) {
  State& state = *state_;
  if (!state.reducer) return;
  state.buffers_may_differ = at::GradMode::is_enabled() && state.synchronises;
  if (!state.buffers_may_differ) return;
  const std::vector<at::Tensor*> found = with_gradients(outputs);
  const bool searches = state.options.find_unused_parameters && !state.options.static_graph;
  std::vector<at::Tensor> tensors;
  if (searches) {
    for (const at::Tensor* output : found) tensors.push_back(*output);
  }
  state.reducer->prepare_for_backward(tensors);
  if (state.options.static_graph) state.prepare_first_backward();
  if (!searches || found.empty()) return;
  const auto joined = JoinOutputs::apply(at::TensorList(tensors));
  for (std::size_t i = 0; i < found.size(); ++i) *found[i] = joined[i];
}

void GradientReducer::backward(const at::Tensor& loss) {
  if (!state_->reducer) {
    loss.backward();
  } else {
    state_->guarded("all_reduce of the gradients", [&] { loss.backward(); });
  }
}

void GradientReducer::guarded(const std::string& what, const std::function<void()>& work) {
  state_->guarded(what, work);
}

void GradientReducer::zero_grad() {
  for (const at::Tensor& parameter : state_->parameters.tensors) parameter.mutable_grad().reset();
}

const std::vector<at::Tensor>& GradientReducer::parameters() const {
  return state_->parameters.tensors;
}

void GradientReducer::share_buffers() {
  if (!state_->reducer) return;
  state_->share_buffers();
  state_->buffers_may_differ = false;
}

// Divided before the sum, as DDP does it.
void GradientReducer::average(const std::vector<at::Tensor>& gradients) {
  State& state = *state_;
  if (!state.reducer) return;
  const at::NoGradGuard no_gradients;
  for (at::Tensor gradient : gradients) {
    gradient.mul_(1.0 / state.group.size());
    state.group.all_reduce(gradient, Reduce::kSum, "all_reduce of the gradients");
  }
  state.buffers_may_differ = true;
}

GradientReducer::NoSync::NoSync(GradientReducer& reducer) : reducer_(reducer) {
  State& state = *reducer.state_;
  if (state.reducer && state.options.static_graph) {
    // LibTorch's reducer, Python's too, counts wrongly then and leaves gradients unreduced.
    throw Error(ErrorCode::kBadInput,
                "no_sync() does not go with static_graph: leave one of them out");
  }
  before_ = std::exchange(state.synchronises, false);
}

GradientReducer::NoSync::~NoSync() {
  reducer_.state_->synchronises = before_;
}

}  // namespace tune
