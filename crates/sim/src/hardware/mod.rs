//! Models of the hardware: processors, caches, DRAM and wires.
