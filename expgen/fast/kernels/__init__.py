"""Triton kernels for shapes that the library's convolutions are slow at. Optional: imported only on a GPU."""
