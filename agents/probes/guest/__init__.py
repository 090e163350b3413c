"""Questions to the guest (the GPU VM, or a bare-metal GPU server)."""
