"use strict";
(async () => {
  Bokeh.set_log_level("warn");
  const schemes = {
    light: { ink: "#16202c", soft: "#4c5a6a", rule: "#d3dae2", line: "#005a9c", mark: "#b3470b", guess: "#6b7785" },
    dark: { ink: "#e8edf2", soft: "#c0cad5", rule: "#34404d", line: "#7cc0ff", mark: "#ffb163", guess: "#93a1b0" },
  };
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const views = [];

  const paint = (name) => {
    const scheme = schemes[name];
    const glyphs = {
      line: { line_color: scheme.line },
      guess: { line_color: scheme.guess },
      band: { fill_color: scheme.line },
      dots: { line_color: scheme.line, fill_color: scheme.line },
      mark: { line_color: scheme.mark, fill_color: scheme.mark },
      found: { line_color: scheme.mark, fill_color: scheme.mark },
    };
    for (const { model } of views) {
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

  // What is printed is light, and as wide as the paper: a picture, taken of each chart.
  const keep = async () => {
    for (const view of views) {
      await view.ready;
      const chart = document.getElementById(view.model.tags[0]);
      const paper = chart.parentElement.querySelector("img.paper");
      paper.src = view.export("png", true).canvas.toDataURL();
      chart.classList.add("kept");
    }
  };

  for (const item of JSON.parse(document.getElementById("figures").textContent)) {
    const manager = await Bokeh.embed.embed_item(item);
    views.push(...[...manager].filter((view) => view.model.type === "Figure"));
  }
  paint("light");
  await keep();
  const follow = () => paint(dark.matches ? "dark" : "light");
  follow();
  dark.addEventListener("change", follow);
  document.documentElement.dataset.charts = "drawn";
})();
