// A plugin that was linked without a library it needs.
extern "C" int nobody_has_this();
extern "C" __attribute__((visibility("default"))) int tune_plugin() { return nobody_has_this(); }
