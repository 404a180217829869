// An empty library by the name of libtorch.so: what torch.compile and its kin link asks for that,
// and takes all that it calls from libtorch_cpu.so and libtorch_cuda.so. LibTorch's own, empty as
// well, opens CUDA, cuDNN and NCCL, which a LibTorch for CPUs has not. See compiled_model.cc.
