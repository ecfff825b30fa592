"use strict";
// Follows the events of the run; everything that comes from it is shown as text.
(() => {
  const KEPT = 600;
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const config = read("chart-config");
  const show = (id, text) => { document.getElementById(id).textContent = text; };
  const digits = (value) => (value === null || value === undefined ? "–" : value >= 1000 ? Math.round(value).toLocaleString("en") : Number(value.toPrecision(3)).toString());
  const milliseconds = (seconds) => (seconds === null ? "–" : `${digits(seconds * 1000)} ms`);
  // Percentiles of several load hosts cannot be joined: the mean and the longest can.
  const joined = (interval) => interval.p50_s === null && interval.mean_s !== null;
  const CHARTS = {
    rates: { series: { rate: (i) => i.rows_per_s ?? i.rate_per_s }, colours: ["var(--series-1)"] },
    latencies: {
      series: {
        p50: (i) => i.p50_s,
        p95: (i) => i.p95_s,
        p99: (i) => i.p99_s,
        mean: (i) => (joined(i) ? i.mean_s : null),
        longest: (i) => (joined(i) ? i.max_s : null),
      },
      colours: ["var(--series-1)", "var(--series-3)", "var(--series-2)", "var(--series-1)", "var(--series-2)"],
      factor: 1000,
    },
    failures: { series: { failed: (i) => i.failed_per_s }, colours: ["var(--series-2)"] },
  };
  const views = {};
  let intervals = [];
  let made = null;

  const rows = ({ series, factor = 1 }) =>
    intervals.flatMap((interval) =>
      Object.entries(series)
        .map(([name, value]) => ({ series: name, value: value(interval), t: interval.t_s, part: JSON.stringify(interval.place) }))
        .filter((row) => row.value !== null && row.value !== undefined)
        .map((row) => ({ ...row, value: row.value * factor })),
    );

  const draw = () => {
    for (const [id, view] of Object.entries(views)) view.data("points", rows(CHARTS[id])).runAsync();
  };

  // A chart without data has no axes: charts are made with the first interval.
  const make = async () => {
    for (const [id, { series, colours }] of Object.entries(CHARTS)) {
      const spec = read("chart");
      spec.encoding.color.scale = { domain: Object.keys(series), range: colours };
      const options = { config, actions: false, renderer: "svg", ast: true, tooltip: { theme: "custom" } };
      const place = document.createElement("div");
      place.className = "live"; // it has the width of its parent: the chart is made as wide
      document.querySelector(`#${id} .drawing`).append(place);
      const datasets = { points: rows(CHARTS[id]) };
      const drawn = await window.vegaEmbed(place, { ...spec, datasets }, options);
      views[id] = drawn.view;
    }
    draw(); // intervals that came in the meantime
  };

  const state = (words, over) => {
    const place = document.getElementById("state");
    place.textContent = words;
    place.className = over ? "over" : "";
  };

  const take = ({ now, fresh, first, total }) => {
    intervals = [...(first ? [] : intervals), ...fresh].slice(-KEPT);
    show("doing", now.doing);
    show("phases", `${now.phases_ended} of ${now.phases}`);
    show("total-name", total.rows ? "rows in this phase" : "transactions in this phase");
    show("total", (total.rows || total.done).toLocaleString("en"));
    const last = intervals.at(-1);
    if (last && fresh.length) {
      const loads = last.rows_per_s !== null;
      show("rate-name", loads ? "rows/s" : "transactions/s");
      show("rate", digits(loads ? last.rows_per_s : last.rate_per_s));
      show("middle-name", joined(last) ? "mean" : "p50");
      show("middle", milliseconds(joined(last) ? last.mean_s : last.p50_s));
      show("high-name", joined(last) ? "longest" : "p99");
      show("high", milliseconds(joined(last) ? last.max_s : last.p99_s));
      document.getElementById("joined").hidden = !intervals.some(joined);
      show("failed", digits(last.failed_per_s));
      show("clients", last.clients ?? "–");
      if (made) draw();
      else made = make();
    }
    state(last?.warmup ? "The run goes on: warm-up." : "The run goes on.", false);
  };

  const follow = () => {
    const source = new EventSource("/events");
    source.addEventListener("figures", (event) => take(JSON.parse(event.data)));
    source.addEventListener("ended", (event) => {
      source.close();
      const document = JSON.parse(event.data);
      take(document);
      state(`The run has ended: ${document.now.ended ?? "it was stopped"}. This page is no longer updated.`, true);
    });
    source.addEventListener("error", () => {
      state("The run has ended, or cannot be reached. This page tries again.", true);
    });
  };

  follow();
})();
