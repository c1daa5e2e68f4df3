beginTable();
beginOverKeys();
beginCycles();
beginPair();
