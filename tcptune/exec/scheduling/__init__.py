"""From checked kernels to schedules: instructions, dependences, memory plan, list scheduling, the vendor's JSON."""
