beginTable();
beginOverKeys();
beginCycles();
beginPair();
// A canvas has the colours that it was drawn with: paper is white, and people switch.
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawCharts);
matchMedia("print").addEventListener("change", redrawCharts);
let resized;
addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(redrawCharts, 150); });
