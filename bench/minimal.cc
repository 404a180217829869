// The least a C++ program can be, linked statically: the bare limit of start_up.
int main() {}
