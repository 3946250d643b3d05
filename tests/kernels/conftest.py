"""Without a GPU the kernels run in Triton's interpreter, in float32: slow, exact, the same source."""

import os

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel's module is imported
