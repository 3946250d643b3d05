"""GPU kernels, compiled on first use: the IMPALA encoder and GRU in CUDA C++ (`cuda/`), another GRU in Triton."""
