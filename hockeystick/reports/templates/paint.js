"use strict";
// The colours of curves by the reader's scheme, and which part of a curve has which.
const schemes = {
  light: { ink: "#16202c", soft: "#4c5a6a", rule: "#d3dae2", line: "#005a9c", mark: "#b3470b", guess: "#6b7785", pins: ["#a3195b", "#1b6e3c", "#6a3fa0", "#7a5c00"] },
  dark: { ink: "#e8edf2", soft: "#c0cad5", rule: "#34404d", line: "#7cc0ff", mark: "#ffb163", guess: "#93a1b0", pins: ["#ff8fc0", "#7bd88f", "#c9a8ff", "#e8cf6a"] },
};

const paintCurves = (figures, scheme) => {
  const glyphs = {
    line: { line_color: scheme.line },
    guess: { line_color: scheme.guess },
    band: { fill_color: scheme.line },
    dots: { line_color: scheme.line, fill_color: scheme.line },
    mark: { line_color: scheme.mark, fill_color: scheme.mark },
    found: { line_color: scheme.mark, fill_color: scheme.mark },
    ...Object.fromEntries(scheme.pins.map((colour, at) => [`pin-${at}`, { line_color: colour }])),
  };
  for (const model of figures) {
    for (const axis of [...model.below, ...model.left]) {
      axis.setv({
        axis_line_color: scheme.soft, major_tick_line_color: scheme.soft,
        major_label_text_color: scheme.ink, axis_label_text_color: scheme.ink,
      });
    }
    for (const grid of model.center) {
      if ("grid_line_color" in grid.properties) grid.setv({ grid_line_color: scheme.rule });
    }
    for (const { name: role, glyph } of model.renderers) glyph.setv(glyphs[role]);
  }
};

