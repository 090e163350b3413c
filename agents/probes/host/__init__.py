"""Questions to the hypervisor."""
