// The kernels of gru.cu as a library: `launch` runs one by name. emulated.py includes the source files.

uint4 shared[emulator::BLOCKS * emulator::CAPACITY];

extern "C" void launch(const char* name, int x, int y, int shared_bytes, void** arguments) {
    emulator::kernel = nullptr;
    EMULATED(gru_forward_64) EMULATED(gru_forward_128) EMULATED(gru_backward_64) EMULATED(gru_backward_128)
    EMULATED(gru_step_64) EMULATED(gru_step_128)
    if (!emulator::kernel) emulator::fail(name);
    run_grid(x, y, std::strstr(name, "step") ? 1 : x, shared_bytes, arguments);
}
