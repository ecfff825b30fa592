"use strict";
// The page is complete without this script: it makes the pictures as wide as their place, answers to the pointer, and switches the colours.
(() => {
  const config = JSON.parse(document.getElementById("chart-config").textContent);

  const rows = (blocks) =>
    blocks.flatMap(({ constant, columns }) => {
      const names = Object.keys(columns);
      return columns[names[0]].map((_, at) => {
        const row = { ...constant };
        for (const name of names) row[name] = columns[name][at];
        return row;
      });
    });

  const draw = async (figure) => {
    const { spec, data } = JSON.parse(figure.querySelector(".chart-data").textContent);
    const place = figure.querySelector(".drawing");
    const datasets = Object.fromEntries(Object.entries(data).map(([name, blocks]) => [name, rows(blocks)]));
    const fresh = document.createElement("div");
    fresh.className = "live";
    const before = [...place.childNodes];
    place.append(fresh);
    try {
      // `ast` interprets expressions instead of compiling them, so that the page's security policy can forbid eval.
      await window.vegaEmbed(fresh, { ...spec, width: "container", datasets }, {
        config,
        actions: false,
        renderer: "svg",
        ast: true,
        tooltip: { theme: "custom" },
      });
      for (const node of before) node.remove();
      figure.dataset.drawn = "true";
    } catch (error) {
      fresh.remove(); // the picture that came with the page stays
      console.error(`${figure.id}: ${error}`);
    }
  };

  const figures = document.querySelectorAll("figure.chart");
  const seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        seen.unobserve(entry.target);
        draw(entry.target);
      }
    },
    { rootMargin: "600px" },
  );
  for (const figure of figures) seen.observe(figure);

  for (const copier of document.querySelectorAll(".copier")) {
    const text = copier.parentElement.querySelector(".copy");
    copier.hidden = false;
    copier.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text.textContent);
        copier.textContent = "Copied";
      } catch {
        window.getSelection().selectAllChildren(text); // no clipboard here: Ctrl-C does it
      }
    });
  }

  const button = document.getElementById("theme");
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (prefersDark.matches ? "dark" : "light")) === "dark";
  const show = () => button.setAttribute("aria-pressed", String(isDark()));
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    show();
  });
  prefersDark.addEventListener("change", show);
  button.hidden = false;
  show();
})();
