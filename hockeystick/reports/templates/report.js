"use strict";
(async () => {
  Bokeh.set_log_level("warn");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const views = [];
  const paint = (name) => paintCurves(views.map((view) => view.model), schemes[name]);

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

  // What is ticked is saved with the page, which draws its curves anew when it is opened.
  for (const box of document.querySelectorAll(".checks input")) {
    box.addEventListener("change", () => box.toggleAttribute("checked", box.checked));
  }
  for (const chart of document.querySelectorAll(".chart")) {
    chart.replaceChildren();
    chart.classList.remove("kept");
  }

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
