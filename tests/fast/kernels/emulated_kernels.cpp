// The kernels of impala.cu as a library: `launch` runs one by name. emulated.py includes the source files.

uint4 shared[emulator::BLOCKS * emulator::CAPACITY];

extern "C" void launch(const char* name, int x, int y, int shared_bytes, void** arguments) {
    emulator::kernel = nullptr;
    EMULATED(stem_forward_bytes) EMULATED(stem_forward_floats)
    EMULATED(stem_weight_gradient_bytes) EMULATED(stem_weight_gradient_floats)
    EMULATED(block_forward_32) EMULATED(block_forward_16) EMULATED(block_forward_8)
    EMULATED(block_backward_32) EMULATED(block_backward_16) EMULATED(block_backward_8)
    EMULATED(block_weight_gradient_32) EMULATED(block_weight_gradient_16) EMULATED(block_weight_gradient_8)
    EMULATED(pooled_forward_32) EMULATED(pooled_forward_16)
    EMULATED(pooled_backward_32) EMULATED(pooled_backward_16)
    EMULATED(pooled_weight_gradient_32) EMULATED(pooled_weight_gradient_16)
    if (!emulator::kernel) emulator::fail(name);
    run_grid(x, y, 1, shared_bytes, arguments);
}
