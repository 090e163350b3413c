"""Where the works that sources name can be read: official pages, seen in November 2026.

A link leads to the work, not to the sentence: releases move their headings. A work without an entry is
named in plain text.
"""

from collections.abc import Mapping

MANUALS: Mapping[str, str] = {
    "CUDA programming guide": "https://docs.nvidia.com/cuda/cuda-c-programming-guide/",
    "Linux kernel documentation, admin-guide/pm": "https://docs.kernel.org/admin-guide/pm/",
    "Linux kernel parameters": "https://docs.kernel.org/admin-guide/kernel-parameters.html",
    "NCCL": "https://github.com/NVIDIA/nccl",
    "NCCL user guide": "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/",
    "NVIDIA CUDA compatibility guide": "https://docs.nvidia.com/deploy/cuda-compatibility/",
    "NVIDIA Fabric Manager user guide": "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/",
    "NVIDIA MIG user guide": "https://docs.nvidia.com/datacenter/tesla/mig-user-guide/",
    "NVIDIA open kernel modules": "https://github.com/NVIDIA/open-gpu-kernel-modules",
    "NVIDIA/nccl issue 2335": "https://github.com/NVIDIA/nccl/issues/2335",
    "NVIDIA/nccl-tests": "https://github.com/NVIDIA/nccl-tests",
    "NVML": "https://docs.nvidia.com/deploy/nvml-api/",
    "Proxmox VE administration guide": "https://pve.proxmox.com/pve-docs/pve-admin-guide.html",
    "Proxmox qemu-server": "https://git.proxmox.com/?p=qemu-server.git",
    "SGLang": "https://docs.sglang.io/",
    "nvidia-smi manual": "https://docs.nvidia.com/deploy/nvidia-smi/",
    "vLLM": "https://docs.vllm.ai/",
}
