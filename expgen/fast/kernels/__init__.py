"""Our kernels for GPUs, compiled when first used: the IMPALA encoder in CUDA C++ (`cuda/`), the GRU in Triton."""
