"""The host admin’s link, and the pages that make one."""
