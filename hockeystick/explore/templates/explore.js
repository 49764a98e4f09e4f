"use strict";
(async () => {
  // A logarithmic axis without points is no reason to complain.
  Bokeh.set_log_level("error");
  const byId = (id) => document.getElementById(id);
  // Browsers break "1e-05" behind its hyphen, and "1 %" at its blank: each stays in one line.
  const NUMBER = /(\d[\d.,]*(?:e[-+]\d+(?: %)?| %))/;
  const unbroken = (text) => text.split(NUMBER).map((part, k) => {
    if (k % 2 === 0) return part;
    const number = document.createElement("span");
    number.className = "unbroken";
    number.textContent = part;
    return number;
  });
  const write = (one, text) => {
    if (one.textContent !== text) one.replaceChildren(...unbroken(text));
  };
  const say = (id, text) => write(byId(id), text);
  const all = (what) => [...document.querySelectorAll(what)];
  const config = JSON.parse(byId("config").textContent);
  // How long a slow plan has to rest before it is asked, and any plan before it is drawn finely.
  const REST_MS = 350;
  const SETTLED_MS = 450;
  const BUSY_MS = 200;
  const TOGETHER_MS = 80;
  const SAFE = { "trade-off": "lower", course: "upper", noise: "upper" };

  // The pictures.
  const pictures = {};
  for (const item of config.figures) {
    for (const view of await Bokeh.embed.embed_item(item)) {
      if (view.model.type === "Figure") pictures[item.target_id.replace("figure-", "")] = view.model;
    }
  }
  const renderer = (name, role) => pictures[name].renderers.find((one) => one.name === role);
  // What is drawn already is not drawn again: to paint takes longer than to compute.
  const drawn = {};
  const fill = (name, role, data) => {
    const text = JSON.stringify(data);
    if (drawn[`${name} ${role}`] === text) return;
    drawn[`${name} ${role}`] = text;
    const one = renderer(name, role);
    one.data_source.data = data;
    one.visible = data.at.length > 0;
  };
  const place = (name, role, at, safe) => fill(name, role, { at, safe });
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const scheme = () => schemes[dark.matches ? "dark" : "light"];
  const paint = () => {
    paintCurves(Object.values(pictures), scheme());
    all("[data-pin]").forEach((one) => { one.style.color = scheme().pins[one.dataset.pin]; });
  };

  // What is shown: what was moved of the plan, and its answers by the names of their parts.
  let values = {};
  let parts = {};
  let slow = true;
  let asking = null;
  let since = null;
  let timer = 0;
  let pins = [];

  const drawMarks = () => {
    const { plan, headline, course } = parts;
    const number = headline && headline.number;
    if (pictures.noise && plan) {
      const noise = plan.values.noise_multiplier;
      place("noise", "mark", number > 0 ? [noise] : [], number > 0 ? [number] : []);
    }
    if (course) {
      const last = course.columns.at.length - 1;
      const is = course.done && last >= 0;
      place("course", "mark", is ? [course.columns.at[last]] : [], is ? [course.columns.upper[last]] : []);
    }
  };

  const drawCurve = (name, part) => {
    if (!pictures[name]) return;
    fill(name, "line", part.columns);
    renderer(name, "band").visible = part.wide;
    if (part.unit) pictures[name].below[0].axis_label = part.unit;
    document.querySelector(`[data-state="${name}"]`).textContent = part.done === false ? "Computing more points." : "";
  };

  const follow = (name, value) => {
    const number = document.querySelector(`[data-number="${name}"]`);
    const slider = document.querySelector(`[data-slider="${name}"]`);
    const choice = document.querySelector(`[data-choice="${name}"]`);
    if (choice) choice.value = value;
    if (!slider) return;
    const known = config.sliders[name];
    const away = (one) => Math.abs(Math.log(Math.max(one, 1e-300) / Math.max(value, 1e-300)));
    const at = known.values.reduce((best, one, k) => (away(one) < away(known.values[best]) ? k : best), 0);
    if (known.values[slider.value] !== value) slider.value = at;
    const text = known.values[at] === value ? known.texts[at] : String(value);
    slider.setAttribute("aria-valuetext", text);
    if (document.activeElement !== number) number.value = text;
  };

  // The answer, which stays in sight, has only the grave ones beside it.
  const warn = (cautions) => {
    const lines = { cautions: [], remarks: [] };
    for (const { text, mild } of cautions) {
      const line = document.createElement("p");
      line.className = mild ? "small" : "bad";
      write(line, `Caution: ${text}`);
      lines[mild ? "remarks" : "cautions"].push(line);
    }
    for (const [id, found] of Object.entries(lines)) byId(id).replaceChildren(...found);
  };

  const show = {
    plan: (part) => {
      slow = part.slow;
      say("words", part.words.join("; "));
      say("command", part.command);
      say("toml", part.toml ?? "No file can hold this plan.");
      byId("save-plan").disabled = part.toml === null;
      for (const [name, value] of Object.entries(part.values)) follow(name, value);
    },
    headline: (part) => {
      slow = part.slow;
      const line = byId("headline");
      line.classList.toggle("bad", !part.bounded);
      const small = document.createElement("span");
      write(small, ` at delta = ${part.delta}`);
      line.replaceChildren(...unbroken(part.bounded ? `epsilon ≤ ${part.epsilon}` : "epsilon has no bound"), small);
      say("interval", part.final
        ? `proven: ${part.interval} (${part.accountant})`
        : `a first bound (${part.accountant}); computing a better one`);
      say("meaning", part.meaning);
      // A first bound may be far above epsilon: what it would be warned of may not hold.
      if (part.final) warn(part.cautions);
    },
    "trade-off": (part) => {
      drawCurve("trade-off", part);
      for (const [rate, found] of Object.entries(part.finds)) {
        write(document.querySelector(`[data-find="${rate}"]`), found);
      }
      say("advantage", part.advantage);
      const at = part.columns.at.indexOf(1);
      place("trade-off", "mark", at < 0 ? [] : [1], at < 0 ? [] : [part.columns.lower[at]]);
    },
    course: (part) => drawCurve("course", part),
    noise: (part) => drawCurve("noise", part),
  };

  const refuse = (message) => {
    say("refused", message);
    byId("shown").classList.toggle("stale", message !== "");
    byId("headline").classList.toggle("stale", message !== "");
  };

  const take = (part) => {
    if (part.refused !== undefined) {
      if (part.part === "plan" || part.part === "headline") refuse(part.refused);
      else {
        const said = document.querySelector(`[data-state="${part.part}"]`);
        if (said) write(said, `Not known: ${part.refused}`);
      }
      return;
    }
    if (part.part === "headline") refuse("");
    parts[part.part] = part;
    // A quick answer is drawn as a whole, a slow one as its parts arrive.
    if (fresh.size === 0) drawing = setTimeout(draw, TOGETHER_MS);
    fresh.add(part.part);
  };

  const fresh = new Set();
  let drawing = 0;
  const draw = () => {
    clearTimeout(drawing);
    const names = [...fresh];
    fresh.clear();
    for (const name of names) show[name](parts[name]);
    drawMarks();
  };

  const lines = async function* (response) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const found = (rest + value).split("\n");
      rest = found.pop();
      for (const line of found) yield JSON.parse(line);
    }
  };

  const post = async (path, asked, signal) => {
    const response = await fetch(path, { method: "POST", body: JSON.stringify(asked), signal });
    if (!response.ok) throw new Error(await response.text());
    return response;
  };

  // Bokeh paints in the next frame; a message that is sent in that frame arrives after it.
  const painted = () => new Promise((done) => {
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => done(performance.now());
      port2.postMessage(null);
    });
  });

  const ask = async (fine) => {
    const own = { controller: new AbortController(), fine };
    const start = since;
    since = null;
    asking = own;
    clearTimeout(timer);
    const busy = setTimeout(() => {
      say("busy", fine ? "" : "Computing. What is asked first loads the arithmetic: seconds, or minutes after an installation.");
      document.documentElement.dataset.state = "computing";
    }, BUSY_MS);
    try {
      const response = await post("/answers", { values, fine }, own.controller.signal);
      for await (const part of lines(response)) {
        if (asking !== own) return;
        take(part);
      }
      draw();
    } catch (error) {
      if (error.name === "AbortError" || asking !== own) return;
      refuse(`The page lost its server (${error.message}). Start hockeystick explore again.`);
    } finally {
      clearTimeout(busy);
    }
    asking = null;
    say("busy", "");
    if (start !== null) painted().then((end) => performance.measure("answer", { start, end }));
    if (since !== null) { schedule(); return; }
    if (!fine && !slow) { timer = setTimeout(() => ask(true), SETTLED_MS); return; }
    settled();
  };

  const settled = async () => {
    await painted();
    if (asking !== null || since !== null) return;
    document.documentElement.dataset.state = "settled";
    say("said", byId("refused").textContent === "" ? byId("headline").textContent : "");
  };

  const schedule = () => {
    clearTimeout(timer);
    if (slow || (asking && asking.fine)) {
      if (asking) asking.controller.abort();
      asking = null;
    }
    if (slow) timer = setTimeout(() => ask(false), REST_MS);
    else if (asking === null) ask(false);
  };

  const changed = (event) => {
    document.documentElement.dataset.state = "moving";
    since ??= event ? event.timeStamp : performance.now();
    schedule();
  };

  // The controls.
  for (const slider of all("[data-slider]")) {
    slider.addEventListener("input", (event) => {
      const { values: stops, texts } = config.sliders[slider.dataset.slider];
      values[slider.dataset.slider] = stops[slider.value];
      slider.setAttribute("aria-valuetext", texts[slider.value]);
      document.querySelector(`[data-number="${slider.dataset.slider}"]`).value = texts[slider.value];
      changed(event);
    });
  }
  for (const number of all("[data-number]")) {
    number.addEventListener("change", (event) => {
      const value = Number(number.value.replace(/[ ,_]/g, ""));
      const is = number.value.trim() !== "" && Number.isFinite(value);
      number.setAttribute("aria-invalid", String(!is));
      if (!is) { refuse(`${number.dataset.number.replaceAll("_", " ")} must be a number; got ${number.value}`); return; }
      values[number.dataset.number] = value;
      changed(event);
    });
  }
  for (const choice of all("[data-choice]")) {
    choice.addEventListener("change", (event) => {
      values[choice.dataset.choice] = choice.value;
      slow = true;
      changed(event);
    });
  }
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  byId("again").addEventListener("click", (event) => {
    values = {};
    slow = true;
    byId("solved") && (byId("solved").textContent = "");
    const examples = byId("examples");
    if (examples) examples.value = examples.defaultValue;
    changed(event);
  });

  // Numbers that are solved for.
  for (const button of all("[data-solve]")) {
    button.addEventListener("click", async () => {
      const said = byId("solved");
      const target = Number(byId("target").value);
      all("[data-solve]").forEach((one) => { one.disabled = true; });
      said.textContent = "Computing.";
      try {
        const response = await post("/solve", { values, name: button.dataset.solve, target });
        const found = await response.json();
        write(said, found.refused ?? found.words);
        if (found.refused === undefined) {
          values[found.name] = found.value;
          changed();
        }
      } catch (error) {
        said.textContent = `There is no answer: ${error.message}`;
      }
      all("[data-solve]").forEach((one) => { one.disabled = false; });
    });
  }

  // Pinned plans, each drawn in a colour and a dash of its own.
  const cell = (row, label, ...inside) => {
    const made = document.createElement("td");
    if (label) made.dataset.label = label;
    made.append(...inside);
    row.append(made);
  };
  const action = (text, label, does) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.setAttribute("aria-label", `${text}: ${label}`);
    button.addEventListener("click", does);
    return button;
  };
  const drawPins = () => {
    for (const name of Object.keys(pictures)) {
      for (let k = 0; k < config.pins; k += 1) {
        const pinned = pins.find((one) => one.slot === k);
        const part = pinned && pinned.parts[name];
        place(name, `pin-${k}`, part ? part.columns.at : [], part ? part.columns[SAFE[name]] : []);
      }
    }
    const rows = pins.map((one) => {
      const row = document.createElement("tr");
      const head = document.createElement("th");
      head.scope = "row";
      const swatch = document.createElement("span");
      swatch.className = "swatch";
      swatch.dataset.pin = one.slot;
      const label = one.parts.plan.words.join("; ");
      head.append(swatch, ...unbroken(label));
      row.append(head);
      const { headline, "trade-off": attack } = one.parts;
      cell(row, "Epsilon, at most", ...unbroken(`${headline.bounded ? headline.epsilon : "no bound"} at delta = ${headline.delta}`));
      cell(row, "TPR at FPR 1 %", ...unbroken(attack ? attack.finds["1 %"] : "not known"));
      cell(row, "Advantage", ...unbroken(attack ? attack.advantage : "not known"));
      cell(
        row, "",
        action("Show", label, () => { values = { ...one.values }; slow = true; changed(); }),
        action("Remove", label, () => { pins = pins.filter((other) => other !== one); drawPins(); byId("pin").focus(); }),
      );
      return row;
    });
    byId("pins").replaceChildren(...rows);
    byId("pinned").hidden = rows.length === 0;
    byId("pin").disabled = pins.length >= config.pins;
    paint();
  };
  byId("pin").addEventListener("click", () => {
    const free = [...Array(config.pins).keys()].find((k) => !pins.some((one) => one.slot === k));
    if (free === undefined || !parts.headline || byId("refused").textContent !== "") return;
    pins.push({ slot: free, parts: { ...parts }, values: { ...values } });
    drawPins();
  });

  // What to take along.
  const save = (name, text, type) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    say("saved", `${name} is saved.`);
  };
  byId("save-plan").addEventListener("click", () => {
    if (parts.plan) save("plan.toml", parts.plan.toml, "application/toml");
  });
  byId("save-report").addEventListener("click", async () => {
    byId("save-report").disabled = true;
    say("saved", "Writing the report: some seconds.");
    try {
      const found = await (await post("/report", { values })).json();
      if (found.refused === undefined) save("report.html", found.html, "text/html");
      else say("saved", found.refused);
    } catch (error) {
      say("saved", `There is no report: ${error.message}`);
    }
    byId("save-report").disabled = false;
  });
  byId("copy").addEventListener("click", async () => {
    await navigator.clipboard.writeText(byId("command").textContent);
    say("saved", "The command is copied.");
  });

  paint();
  dark.addEventListener("change", paint);
  document.documentElement.dataset.charts = "drawn";
  ask(false);
})();
