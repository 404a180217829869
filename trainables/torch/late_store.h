// The store of a group, opened when it is first used. Ranks that meet in shared memory need it for
// little: the words of an error, and what the user asks of it. To find rank 0 by TCP takes longer
// than all else of forming a group; LibTorch asks the name server for the name of 127.0.0.1.
//
// Rank 0, which serves the store, opens it as soon as another rank comes, whatever it is doing.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/platform/process.h"

namespace tune {

class LateStore : public c10d::Store {
 public:
  // Takes the socket on which it is to listen, which is not open on ranks that do not serve.
  using Open = std::function<c10::intrusive_ptr<c10d::Store>(FileDescriptor socket)>;
  LateStore(Open open, FileDescriptor socket);
  ~LateStore() override;

  // Throws what `open` throws; may take long.
  void open();
  // A thread opens it when somebody knocks at the socket.
  void open_when_asked();

  using Bytes = std::vector<std::uint8_t>;
  using Keys = std::vector<std::string>;
  using Store::compareSet;
  using Store::set;
  c10::intrusive_ptr<c10d::Store> clone() override { return store().clone(); }
  void set(const std::string& key, const Bytes& value) override { store().set(key, value); }
  Bytes compareSet(const std::string& key, const Bytes& present, const Bytes& value) override {
    return store().compareSet(key, present, value);
  }
  Bytes get(const std::string& key) override { return store().get(key); }
  std::int64_t add(const std::string& key, std::int64_t value) override {
    return store().add(key, value);
  }
  bool deleteKey(const std::string& key) override { return store().deleteKey(key); }
  bool check(const Keys& keys) override { return store().check(keys); }
  std::int64_t getNumKeys() override { return store().getNumKeys(); }
  void wait(const Keys& keys) override { store().wait(keys); }
  void wait(const Keys& keys, const std::chrono::milliseconds& timeout) override {
    store().wait(keys, timeout);
  }
  void setTimeout(const std::chrono::milliseconds& timeout) override;
  void append(const std::string& key, const Bytes& value) override { store().append(key, value); }
  std::vector<Bytes> multiGet(const Keys& keys) override { return store().multiGet(keys); }
  void multiSet(const Keys& keys, const std::vector<Bytes>& values) override {
    store().multiSet(keys, values);
  }
  bool hasExtendedApi() const override { return true; }  // as a TCPStore's
  void queuePush(const std::string& key, const Bytes& value) override {
    store().queuePush(key, value);
  }
  Bytes queuePop(const std::string& key, bool block) override {
    return store().queuePop(key, block);
  }
  std::int64_t queueLen(const std::string& key) override { return store().queueLen(key); }
  Keys listKeys() override { return store().listKeys(); }

 private:
  c10d::Store& store();
  void wait_at_door(int socket);

  const pid_t process_;
  Open open_;
  std::mutex mutex_;
  FileDescriptor socket_;  // until it is opened
  c10::intrusive_ptr<c10d::Store> store_;
  FileDescriptor ending_;  // an eventfd
  std::thread porter_;
};

}  // namespace tune
