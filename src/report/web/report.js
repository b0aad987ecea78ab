/* report.js - the page of mimus report: made of the document that src/app/report.c writes, by Chart.js 3. Texts of the
 * document reach the page as text only. */
"use strict";
(() => {
  const report = JSON.parse(document.getElementById("document").textContent);
  const runs = report.runs;
  const several = runs.length > 1;
  const judged = runs.filter((run) => run.evaluation);
  const COLOURS = 8, MATRIX_ACTIONS = 20;
  const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3]];

  /* ------------------------------------------------------------------ pieces */

  const is = (value) => typeof value === "number" && Number.isFinite(value);
  const or = (value, text) => (is(value) ? text(value) : "–");
  const count = (value) => or(value, (v) => Math.round(v).toLocaleString("en"));
  const share = (value, digits = 1) => or(value, (v) => `${(100 * v).toFixed(digits)}%`);
  const real = (value) => or(value, (v) => v.toPrecision(4).replace(/(\.\d*?)0+($|e)/, "$1$2").replace(/\.($|e)/, "$1"));
  const brief = (value) => or(value, (v) =>
    v >= 1e9 ? `${(v / 1e9).toFixed(1)}G` : v >= 1e6 ? `${(v / 1e6).toFixed(2)}M` : v >= 1e4 ? `${(v / 1e3).toFixed(0)}k` : count(v));
  const seconds = (value) => or(value, (v) =>
    v < 0.9995 ? `${(1e3 * v).toFixed(v < 0.01 ? 1 : 0)} ms` : v < 60 ? `${v.toFixed(2)} s`
    : v < 3600 ? `${Math.floor(v / 60)} min ${Math.round(v % 60)} s` : `${(v / 3600).toFixed(1)} h`);
  const bytes = (value) => or(value, (v) =>
    v >= 2 ** 30 ? `${(v / 2 ** 30).toFixed(1)} GiB` : v >= 2 ** 20 ? `${(v / 2 ** 20).toFixed(1)} MiB` : `${(v / 1024).toFixed(0)} KiB`);
  const mean = (values) => {
    const some = values.filter(is);
    return some.length ? some.reduce((a, b) => a + b, 0) / some.length : null;
  };

  /* element("td", {class: "left"}, "text", child, ...) */
  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children.filter((child) => child !== null));
    return made;
  }

  const main = document.querySelector("main");
  let place = main; /* where the next piece goes */

  function section(title, note) {
    place = main;
    main.append(element("h2", {}, title));
    if (note) main.append(element("p", {}, note));
  }

  function grid(kind = "") {
    place = element("div", {class: `grid ${kind}`});
    main.append(place);
  }

  function card(title, note, ...children) {
    const made = element("div", {class: "card"}, element("h3", {}, title), note ? element("p", {}, note) : null, ...children);
    place.append(made);
    return made;
  }

  /* Rows of cells; a cell is a text, or [text, class]. A row whose `all` is set sums up those above. */
  function table(titles, rows, kind = "") {
    const cell = (name, more = {}) => (value) =>
      (Array.isArray(value) ? element(name, {...more, class: value[1]}, value[0]) : element(name, more, value));
    return element("div", {class: "wide"}, element("table", {class: kind},
      element("thead", {}, element("tr", {}, ...titles.map(cell("th", {scope: "col"})))),
      element("tbody", {}, ...rows.map((row) => element("tr", row.all ? {class: "all"} : {}, ...row.map(cell("td")))))));
  }

  /* A run's name with its colour, where it has one. */
  const dotted = (run) => (several ? element("span", {}, element("i", {class: "dot", "data-colour": runs.indexOf(run)}), run.name) : run.name);

  /* ------------------------------------------------------------------ charts */

  const charts = []; /* {canvas, make}: made again when the colours change */
  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue(name).trim();
    return {ink: value("--ink"), soft: value("--soft"), line: value("--line"), card: value("--card"),
            of: (index) => value(`--k${index % COLOURS}`)};
  };
  const dash = (index) => DASHES[Math.floor(index / COLOURS) % DASHES.length];
  const faint = (colour) => `${colour}2e`;

  /* `make(colours)` gives the configuration for Chart. */
  function chart(title, note, make, height) {
    const canvas = element("canvas", {role: "img", "aria-label": title});
    const box = element("div", {class: "chart"}, canvas);
    if (height) box.style.height = `${height}px`;
    const made = card(title, note, box);
    charts.push({canvas, make});
    return made;
  }

  function axis(c, title, more = {}) {
    return {title: {display: !!title, text: title, color: c.soft}, ticks: {color: c.soft, maxRotation: 0, autoSkipPadding: 12, ...more.ticks},
            grid: {color: c.line}, ...more, ...(more.ticks ? {ticks: {color: c.soft, maxRotation: 0, autoSkipPadding: 12, ...more.ticks}} : {})};
  }

  function options(c, x, y, more = {}) {
    return {animation: false, responsive: true, maintainAspectRatio: false, normalized: true, parsing: more.parsing ?? false,
            interaction: {mode: "nearest", axis: "x", intersect: false, ...more.interaction}, indexAxis: more.indexAxis ?? "x",
            scales: {x, y},
            plugins: {legend: {display: more.legend ?? true, labels: {color: c.ink, boxWidth: more.points ? 8 : 18, boxHeight: more.points ? 7 : 0, usePointStyle: more.points ?? false,
                               filter: (item) => !item.text.startsWith("_")}, position: "bottom"},
                      tooltip: {filter: (item) => !item.dataset.label.startsWith("_"), callbacks: more.tooltip ?? {}},
                      filler: {propagate: false}, decimation: {enabled: false}}};
  }

  function line(c, index, label, data, more = {}) {
    const colour = c.of(index), few = data.length <= 40;
    return {label, data, borderColor: colour, backgroundColor: colour, borderWidth: 2, borderDash: dash(index), pointRadius: few ? 2.5 : 0,
            pointHoverRadius: 5, tension: 0, spanGaps: false, ...more};
  }

  const shareTicks = {ticks: {callback: (value) => `${Math.round(100 * value)}%`}};
  const percent = {label: (item) => `${item.dataset.label}: ${share(item.parsed.y)}`,
                   title: (items) => (items.length ? `epoch ${items[0].parsed.x}` : "")};
  const number = {label: (item) => `${item.dataset.label}: ${real(item.parsed.y)}`,
                  title: (items) => (items.length ? `epoch ${items[0].parsed.x}` : "")};
  const perEpoch = (run, value) => run.epochs.map((row) => ({x: row.epoch, y: value(row) ?? null}));
  const epochAxis = (c) => axis(c, "epoch", {type: "linear", ticks: {precision: 0}});

  /* Error bars of a horizontal bar chart: datasets have `se`. */
  const whiskers = {
    id: "whiskers",
    afterDatasetsDraw(of) {
      const ink = colours().ink, context = of.ctx;
      context.save();
      context.strokeStyle = ink;
      context.lineWidth = 1.25;
      of.data.datasets.forEach((dataset, d) => {
        if (!dataset.se || !of.isDatasetVisible(d)) return;
        of.getDatasetMeta(d).data.forEach((bar, i) => {
          if (!is(dataset.se[i]) || !is(dataset.data[i])) return;
          const [low, high] = [-1, 1].map((sign) => of.scales.x.getPixelForValue(dataset.data[i] + sign * dataset.se[i]));
          const half = Math.min(4, bar.height / 3);
          context.beginPath();
          context.moveTo(low, bar.y);
          context.lineTo(high, bar.y);
          for (const end of [low, high]) {
            context.moveTo(end, bar.y - half);
            context.lineTo(end, bar.y + half);
          }
          context.stroke();
        });
      });
      context.restore();
    },
  };

  /* ------------------------------------------------------------------ heading */

  const headsOf = (run) => run.evaluation?.heads ?? run.epochs.at(-1)?.heads ?? [];
  const held = (run) => run.epochs.some((row) => is(row.held_out_loss));
  const best = (run) => run.epochs.find((row) => row.epoch === run.summary?.best_epoch) ?? run.epochs.at(-1);
  const agreement = (run, row) =>
    row ? mean(row.heads.map((head) => (held(run) ? head.held_out_agreement : head.agreement))) : null;
  const rate = (run) => {
    const rows = run.epochs.length > 2 ? run.epochs.slice(1) : run.epochs; /* the first one warms up */
    const sorted = rows.map((row) => row.samples_per_second).filter(is).sort((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)];
  };
  const ended = (run) => run.summary?.ended ?? "no end yet: training, or killed";

  function tile(name, value, note) {
    place.append(element("div", {class: "tile"}, element("span", {}, name), element("b", {}, value), element("span", {}, note ?? "")));
  }

  function heading() {
    const [run] = runs, recording = run.recording;
    main.append(element("h1", {}, several ? `${runs.length} runs` : run.name));
    if (several) {
      const key = element("div", {class: "key"});
      runs.forEach((each) => key.append(dotted(each)));
      main.append(key);
      return;
    }
    main.append(element("p", {}, `${count(recording.samples)} samples of ${recording.files.join(", ")}` +
      (run.summary?.device ? `, trained on ${run.summary.device.name}` : "") + `; ${ended(run)}.`));
  }

  function tiles() {
    const [run] = runs, row = best(run), joint = run.evaluation?.joint, many = headsOf(run).length > 1;
    place = element("div", {class: "tiles"});
    main.append(place);
    const part = held(run) ? "held out" : "training part";
    tile(held(run) ? "held-out loss" : "training loss", real(held(run) ? row?.held_out_loss : row?.loss),
         row ? `best epoch: ${row.epoch} of ${run.epochs.length}` : "");
    tile("agreement", share(agreement(run, row)), many ? `mean of the heads, ${part}` : part);
    if (joint && many)
      tile("all heads agree", share(joint.agreement), `± ${share(joint.agreement_se)}, ${part}`);
    tile("training time", seconds(run.summary?.seconds ?? run.epochs.reduce((sum, each) => sum + each.seconds, 0)),
         `${count(run.epochs.length)} epochs, ${count(run.epochs.reduce((sum, each) => sum + each.steps, 0))} steps`);
    tile("samples a second", brief(rate(run)), "median of the epochs");
    if (run.summary) tile("parameters", brief(run.summary.parameters), bytes(run.summary.device?.peak_bytes) + " on the device");
  }

  /* --------------------------------------------------------------- comparison */

  function withError(metric, value) {
    if (!value) return "–";
    const text = metric === "agreement" ? (v) => share(v) : (v) => or(v, (x) => x.toFixed(4));
    return element("span", {}, text(value.value), element("small", {}, ` ± ${text(value.se)}`));
  }

  const MARKS = {better: "▲ better", worse: "▼ worse", "within noise": "≈ within noise"};

  function verdict(against) {
    if (!against) return ["–", "noise"];
    const what = against.verdict;
    return [what ? `${MARKS[what]} (p ${against.p_corrected < 0.001 ? "< 0.001" : `= ${real(Number(against.p_corrected.toFixed(3)))}`})` : "too few episodes",
            what === "better" || what === "worse" ? what : "noise"];
  }

  function comparison() {
    const compared = report.comparison;
    section("Compared", `Held-out results with standard errors over episodes; each run against ${runs[0].name}, the first. ` +
      "p says how often chance alone makes a difference as large, corrected for the number of rows; below 0.05 it is called better or worse.");
    grid();
    const summary = card("Runs", "", table(
      ["run", ["ended", "left"], "best epoch", "held-out loss", "agreement", "training time", "samples/s", "parameters"],
      runs.map((run) => [dotted(run), [ended(run), "left"], count(run.summary?.best_epoch), real(best(run)?.held_out_loss),
                         share(agreement(run, best(run))), seconds(run.summary?.seconds), brief(rate(run)), brief(run.summary?.parameters)])));
    summary.classList.add("whole");
    if (compared.metrics.length > 0) {
      const titles = ["head", ["metric", "left"], dotted(runs[0])];
      runs.slice(1).forEach((run) => titles.push(dotted(run), ""));
      const rows = compared.metrics.map((metric) => {
        const row = [metric.head ?? "all at once", [metric.metric, "left"], withError(metric.metric, metric.values[0])];
        runs.slice(1).forEach((run, i) => row.push(withError(metric.metric, metric.values[i + 1]), verdict(metric.against_first[i])));
        row.all = metric.head === null && metric.metric === "agreement";
        return row;
      });
      const why = compared.runs.slice(1).filter((run) => run.why).map((run) => `${run.name}: ${run.why}.`).join(" ");
      card("Results", why, table(titles, rows)).classList.add("whole");
    }
    if (compared.settings.length > 0)
      card("Settings that differ", "", table(["setting", ...runs.map(dotted)],
        compared.settings.map((setting) => [setting.name, ...setting.values.map(show)]))).classList.add("whole");
  }

  /* ------------------------------------------------------------------- curves */

  function curves() {
    if (!runs.some((run) => run.epochs.length > 0)) {
      section("Learning", "No epoch is finished.");
      return;
    }
    const any = runs.some(held);
    section("Learning");
    grid();
    chart("Loss by epoch", several ? "Solid: held out. Dotted: the training part." : "", (c) => ({type: "line",
      data: {datasets: runs.flatMap((run, i) => {
        const marked = (context) => (run.epochs[context.dataIndex]?.epoch === run.summary?.best_epoch ? 6 : run.epochs.length <= 40 ? 2.5 : 0);
        const training = perEpoch(run, (row) => row.loss), out = perEpoch(run, (row) => row.held_out_loss);
        const lines = [];
        if (held(run)) lines.push(line(c, i, several ? run.name : "held out (dot: best)", out, {pointRadius: marked}));
        lines.push(several ? line(c, i, held(run) ? `_${run.name}` : run.name, training, {borderDash: [2, 3], borderWidth: 1.5, pointRadius: 0})
                           : line(c, 1, "training", training));
        return lines;
      })}, options: options(c, epochAxis(c), axis(c, "loss"), {tooltip: number})}));

    chart("Loss by step", runs.some((run) => run.steps.together > 1)
      ? several ? "Means of stretches of steps." : `Means of ${runs[0].steps.together} steps each, and the range of their losses.` : "", (c) => ({type: "line",
      data: {datasets: runs.flatMap((run, i) => {
        const points = (key) => run.steps.step.map((step, t) => ({x: step, y: run.steps[key][t]}));
        const lines = [line(c, several ? i : 1, several ? run.name : "training", points("loss"), {pointRadius: 0, borderWidth: 1.5})];
        if (!several && run.steps.together > 1)
          for (const [key, fill] of [["low", "+1"], ["high", false]])
            lines.push({...line(c, 1, `_${key}`, points(key)), borderWidth: 0, pointRadius: 0, pointHoverRadius: 0, fill, backgroundColor: faint(c.of(1))});
        return lines;
      })}, options: options(c, axis(c, "step", {type: "linear", min: 0, max: Math.ceil(Math.max(...runs.map((run) => run.steps.step.at(-1) ?? 1))), ticks: {precision: 0}}), axis(c, "loss"),
                            {tooltip: {...number, title: (items) => (items.length ? `step ${Math.round(items[0].parsed.x)}` : "")}})}));

    chart(several ? "Agreement by epoch" : "Agreement by epoch and head", (any ? "On the held-out episodes" : "On the training part") + (several ? ", the mean of the heads." : "."),
      (c) => ({type: "line", data: {datasets: several
        ? runs.map((run, i) => line(c, i, run.name, perEpoch(run, (row) => agreement(run, row))))
        : headsOf(runs[0]).map((head, h) => line(c, h, head.name, perEpoch(runs[0],
            (row) => (any ? row.heads[h]?.held_out_agreement : row.heads[h]?.agreement))))},
        options: options(c, epochAxis(c), axis(c, "agreement", shareTicks), {tooltip: percent})}));

    chart("Learning rate and gradient", several ? "Norm of the gradient, before clipping." : "", (c) => {
      const rates = several ? [] : [line(c, 2, "learning rate", perEpoch(runs[0], (row) => row.lr), {yAxisID: "rate"})];
      const made = {type: "line", data: {datasets: [...runs.map((run, i) => line(c, several ? i : 3, several ? run.name : "norm of the gradient",
        perEpoch(run, (row) => row.norm))), ...rates]},
        options: options(c, epochAxis(c), axis(c, "norm"), {tooltip: number})};
      if (!several) made.options.scales.rate = {...axis(c, "learning rate"), position: "right", min: 0, grid: {drawOnChartArea: false}};
      return made;
    });
  }

  /* ---------------------------------------------------------------- agreement */

  function agreements() {
    if (judged.length === 0) {
      section("Held-out results", runs.some((run) => run.config.held_out > 0)
        ? "No run here was judged on its held-out part: that happens at the end of a training, and mimus train --resume RUN makes up for it."
        : "The run held nothing out: there is nothing that it did not learn from to judge it on.");
      return;
    }
    const names = [...new Set(judged.flatMap((run) => run.evaluation.heads.map((head) => head.name)))];
    const joint = names.length > 1;
    const labels = joint ? [...names, "all at once"] : names;
    const of = (run, name) => run.evaluation.heads.find((head) => head.name === name) ?? (name === "all at once" ? run.evaluation.joint : undefined);
    const first = judged[0];
    section("Agreement with the player", `How often the most probable legal action is the player's: the best epoch's policy on ` +
      `${count(first.evaluation.samples)} samples of ${count(first.evaluation.episodes)} held-out episodes. Whiskers: one standard error.`);
    grid();
    const height = 90 + labels.length * (judged.length * 16 + 16);
    chart("Per head", "", (c) => ({type: "bar", plugins: [whiskers], data: {labels, datasets: [
      ...judged.map((run) => ({label: several ? run.name : "policy", data: labels.map((name) => of(run, name)?.agreement ?? null),
        se: labels.map((name) => of(run, name)?.agreement_se), backgroundColor: `${c.of(runs.indexOf(run))}bf`, borderRadius: 3, order: 2,
        pointStyle: "rectRounded", barPercentage: 0.9, categoryPercentage: 0.7})),
      ...[["always the most frequent action", "majority", c.ink, 9 + 4 * judged.length], ["a legal action by lot", "uniform_legal", c.soft, 5 + 4 * judged.length]].map(([label, key, colour, radius]) => ({
        type: "line", label, data: labels.map((name) => of(first, name)?.[key] ?? null), showLine: false, pointStyle: "line", pointRotation: 90,
        pointRadius: radius, pointHoverRadius: radius, borderColor: colour, backgroundColor: colour, borderWidth: 2.5, order: 1})),
    ]}, options: {...options(c, axis(c, "", {min: 0, max: 1, ...shareTicks}), axis(c, "", {grid: {display: false}, ticks: {autoSkip: false}}),
      {indexAxis: "y", parsing: true, points: true, interaction: {mode: "index", axis: "y"}, tooltip: {label: (item) => {
        const se = item.dataset.se?.[item.dataIndex];
        return `${item.dataset.label}: ${share(item.parsed.x)}${is(se) ? ` ± ${share(se)}` : ""}`;
      }}})}}), height).classList.add("whole");
    const rows = labels.flatMap((name) => judged.map((run, i) => {
      const head = of(run, name);
      const row = [several && i > 0 ? "" : name, ...(several ? [[dotted(run), "left"]] : []), count(head?.samples),
              element("span", {}, share(head?.agreement), element("small", {}, ` ± ${share(head?.agreement_se)}`)),
              ...["majority", "uniform_legal", "p_true", "illegal"].map((key) => share(head?.[key])), real(head?.nll), real(head?.entropy), share(head?.calibration_error)];
      row.all = joint && name === labels.at(-1) && i === 0;
      return row;
    }));
    card("In numbers", "Majority: always the most frequent action. Uniform: a legal action by lot. p(true): mean probability of the player's action. " +
      "Illegal: the most probable action of all is forbidden. nll, entropy: in nats. Calibration error: mean difference of probability and agreement.",
      table(["head", ...(several ? [["run", "left"]] : []), "samples", "agreement", "majority", "uniform", "p(true)", "illegal", "nll", "entropy", "calib. error"], rows))
      .classList.add("whole");
  }

  /* -------------------------------------------------------------- reliability */

  function reliability() {
    const names = [...new Set(judged.flatMap((run) => run.evaluation.heads.map((head) => head.name)))];
    if (names.length === 0) return;
    section("Can its probabilities be trusted?", "Samples are sorted by how probable the policy finds its most probable action, in ten parts. " +
      "On the diagonal it agrees with the player as often as it claims; below it is too sure. Larger points stand for more samples.");
    grid("small");
    for (const name of names) {
      const with_it = judged.map((run) => [run, run.evaluation.heads.find((head) => head.name === name)]).filter(([, head]) => head?.reliability);
      const errors = with_it.map(([run, head]) => (several ? `${run.name} ` : "") + share(head.calibration_error)).join(", ");
      chart(name, `Calibration error: ${errors}`, (c) => ({type: "line", data: {datasets: [
        ...with_it.map(([run, head]) => {
          const bins = head.reliability, all = bins.samples.reduce((a, b) => a + b, 0);
          const full = bins.samples.map((n, b) => ({n, x: bins.confidence[b], y: bins.agreement[b]})).filter((bin) => bin.n > 0);
          return {...line(c, runs.indexOf(run), several ? run.name : "policy", full), borderWidth: 1.5, clip: 12,
                  pointRadius: full.map((bin) => 2 + 9 * Math.sqrt(bin.n / all)), pointHoverRadius: full.map((bin) => 3 + 9 * Math.sqrt(bin.n / all)),
                  backgroundColor: `${c.of(runs.indexOf(run))}99`};
        }),
        {label: "_diagonal", data: [{x: 0, y: 0}, {x: 1, y: 1}], borderColor: c.soft, borderDash: [4, 4], borderWidth: 1, pointRadius: 0, pointHoverRadius: 0},
      ]}, options: options(c, axis(c, "probability", {type: "linear", min: 0, max: 1, ...shareTicks}), axis(c, "agreement", {min: 0, max: 1, ...shareTicks}),
        {legend: several, interaction: {mode: "nearest", axis: "xy", intersect: true}, tooltip: {title: () => "", label: (item) =>
          `${several ? `${item.dataset.label}: ` : ""}claims ${share(item.parsed.x)}, agrees ${share(item.parsed.y)} (${count(item.raw.n)} samples)`}})}));
    }
  }

  /* ---------------------------------------------------------------- confusion */

  /* The most frequent actions of the player and the policy, in their own order. */
  function frequent(matrix) {
    const weight = matrix.map((row, a) => row.reduce((sum, n) => sum + n, 0) + matrix.reduce((sum, other) => sum + other[a], 0));
    return weight.map((w, a) => [w, a]).sort((x, y) => y[0] - x[0]).slice(0, MATRIX_ACTIONS).map(([, a]) => a).sort((x, y) => x - y);
  }

  function matrix(head) {
    const shown = frequent(head.confusion), name = (a) => head.actions?.[a] ?? String(a);
    const rows = shown.map((t) => {
      const row = head.confusion[t], all = row.reduce((sum, n) => sum + n, 0);
      return element("tr", {}, element("th", {scope: "row", title: name(t)}, name(t)), ...shown.map((a) => {
        const part = all > 0 ? row[a] / all : 0;
        const cell = element("td", {title: `player ${name(t)}, policy ${name(a)}: ${count(row[a])} of ${count(all)}`,
          class: `${part > 0.55 ? "strong" : ""}${a === t ? " hit" : ""}`}, row[a] === 0 ? "" : part < 0.005 ? "<1" : (100 * part).toFixed(0));
        cell.style.setProperty("--share", (0.92 * part).toFixed(3));
        return cell;
      }), element("td", {class: "count"}, count(all)));
    });
    const left = head.confusion.length - shown.length;
    return card(head.name, left > 0 ? `The ${shown.length} most frequent of ${head.confusion.length} actions.` : "",
      element("div", {class: "wide"}, element("table", {class: "matrix"},
        element("thead", {}, element("tr", {}, element("th", {}, ""), ...shown.map((a) => element("th", {scope: "col", title: name(a)}, name(a))), element("th", {}, "samples"))),
        element("tbody", {}, ...rows))));
  }

  function confusion() {
    const some = judged.filter((run) => run.evaluation.heads.some((head) => head.confusion));
    if (some.length === 0) return;
    section("Which action is taken for which", "A row is an action of the player: of 100 times that it was taken, how often the policy takes each column. " +
      "The diagonal is agreement.");
    const at = element("div", {class: "grid"});
    const fill = (run) => {
      at.replaceChildren();
      place = at;
      run.evaluation.heads.filter((head) => head.confusion).forEach((head) => {
        const made = matrix(head), box = made.querySelector(".wide");
        made.classList.toggle("whole", box.scrollWidth > box.clientWidth);
      });
    };
    if (some.length > 1) {
      const select = element("select", {"aria-label": "run"}, ...some.map((run, i) => element("option", {value: i}, run.name)));
      select.addEventListener("change", () => fill(some[Number(select.value)]));
      main.append(element("div", {class: "choice"}, select));
    }
    main.append(at);
    fill(some[0]);
  }

  /* -------------------------------------------------------------------- timing */

  function timing() {
    const timed = runs.filter((run) => run.summary?.phases);
    section("Time", "Of the process that trained last: load and audit read the recording, upload packs it onto the device, prepare builds kernels and times " +
      "matrix products, train is the epochs, eval judges the held-out part.");
    grid();
    if (timed.length > 0) {
      const names = [...new Set(timed.flatMap((run) => run.summary.phases.map((phase) => phase.name)))];
      const spent = (run, name) => run.summary.phases.filter((phase) => phase.name === name).reduce((sum, phase) => sum + phase.seconds, 0);
      chart("By phase", "", (c) => ({type: "bar", data: {labels: timed.map((run) => run.name), datasets: names.map((name, i) =>
        ({label: name, data: timed.map((run) => spent(run, name)), backgroundColor: c.of(i), borderWidth: 0}))},
        options: (() => {
          const made = options(c, axis(c, "seconds"), axis(c, "", {grid: {display: false}, ticks: {autoSkip: false}}), {indexAxis: "y", parsing: true,
            interaction: {mode: "index", axis: "y"}, tooltip: {label: (item) => `${item.dataset.label}: ${seconds(item.parsed.x)}`}});
          made.scales.x.stacked = made.scales.y.stacked = true;
          made.plugins.legend.labels.boxHeight = 10;
          return made;
        })()}), 120 + 30 * timed.length);
    }
    if (runs.some((run) => run.epochs.length > 0))
      chart("Samples a second by epoch", "Training and held-out samples over the epoch's time.", (c) => ({type: "line", data: {datasets:
        runs.map((run, i) => line(c, i, run.name, perEpoch(run, (row) => row.samples_per_second)))},
        options: options(c, epochAxis(c), axis(c, "", {min: 0, ticks: {callback: (value) => brief(value)}}), {legend: several,
          tooltip: {...number, label: (item) => `${item.dataset.label}: ${brief(item.parsed.y)}`}})}),
        timed.length > 0 ? 120 + 30 * timed.length : undefined);
    const rows = [["device", (run) => run.summary?.device?.name], ["driver", (run) => run.summary?.device?.driver], ["vendor", (run) => run.summary?.device?.vendor],
      ["peak memory", (run) => bytes(run.summary?.device?.peak_bytes)], ["plan of a step", (run) => run.summary?.step?.plan],
      ["kernel launches", (run) => count(run.summary?.launches)], ["reads from the device", (run) => count(run.summary?.reads)],
      ["mimus", (run) => run.mimus], ["recording", (run) => run.recording.files.join(", ")], ["its fingerprint", (run) => run.recording.fingerprint],
      ["samples", (run) => count(run.recording.samples)],
      ["training / held out", (run) => (run.summary ? `${count(run.summary.training_samples)} / ${count(run.summary.held_out_samples)}` : "–")]];
    card("Device and data", "", table(["", ...runs.map(dotted)], rows.map(([name, value]) => [name, ...runs.map((run) => value(run) ?? "–")]), "facts"))
      .classList.add("whole");
  }

  /* ------------------------------------------------------------------ settings */

  function show(value) {
    if (value === null || value === undefined || value === "") return "–";
    if (Array.isArray(value)) return value.length ? value.join(", ") : "none";
    return typeof value === "number" ? real(value) === String(value) || !Number.isInteger(value) ? String(value) : count(value) : String(value);
  }

  function settings() {
    section("Settings", "Bold: set to something else than the default.");
    grid();
    const names = [...new Set(runs.flatMap((run) => Object.keys(run.config)))];
    const changed = (name, value) => name !== "store" && /* which a run keeps as what it turned out to be */
      JSON.stringify(value) !== JSON.stringify(report.defaults[name]);
    card("All of them", "", table(["setting", ...runs.map(dotted)], names.map((name) =>
      [name, ...runs.map((run) => [show(run.config[name]), changed(name, run.config[name]) ? "changed" : "same"])]))).classList.add("whole");
  }

  /* ---------------------------------------------------------------------- page */

  function draw() {
    const c = colours();
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    for (const each of charts) {
      each.chart?.destroy();
      each.chart = new Chart(each.canvas, each.make(c));
    }
    for (const dot of document.querySelectorAll(".dot")) dot.style.background = c.of(Number(dot.dataset.colour));
  }

  heading();
  if (several) comparison();
  else tiles();
  curves();
  agreements();
  confusion();
  reliability();
  timing();
  settings();
  main.append(element("footer", {}, `Made by mimus ${report.mimus}. Charts by Chart.js.`));
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  document.documentElement.dataset.charts = charts.length;
})();
