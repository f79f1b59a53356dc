"use strict";
// Moves the second map, the cursors of the charts and the mark in the list of steps to the moment of the slider.
// Texts come from a cluster: they are set as text, never as HTML. pod_map.py draws the same maps without a script.
(() => {
  const data = JSON.parse(document.getElementById("plan-data").textContent);
  const PHASES = { waiting: "waits for a node", starting: "starting", ready: "ready", stopping: "stopping" };
  const SECONDS_PER_MOMENT = 0.8;
  const slider = document.getElementById("slider");
  const play = document.getElementById("play");
  const map = document.getElementById("map");
  const rows = [...document.querySelectorAll("#rows tr")];
  const charts = [...document.querySelectorAll("svg.chart")];
  const list = document.querySelector(".rows");
  let timer = null;

  function element(name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text) made.textContent = text;
    return made;
  }

  function findSpan(spans, end) {
    for (let index = spans.length - 1; index >= 0; index--) if (spans[index][0] < end) return spans[index];
    return null;
  }

  function drawPods(pods, others) {
    const box = element("div", "pods");
    for (const [pod, phase] of pods) {
      const mark = element("i", `pod ${pod.version} ${phase}`);
      mark.title = `${pod.name} · ${pod.version} · ${PHASES[phase]}`;
      box.append(mark);
    }
    if (others) {
      const rest = element("span", "rest", `+${others.toLocaleString("en")}`);
      rest.title = `${others.toLocaleString("en")} pods that stay`;
      box.append(rest);
    }
    return box;
  }

  function drawMap(end) {
    const byNode = new Map();
    for (const pod of data.pods) {
      const span = findSpan(pod.spans, end);
      if (span === null || span[2] === "gone") continue;
      if (!byNode.has(span[1])) byNode.set(span[1], []);
      byNode.get(span[1]).push([pod, span[2]]);
    }
    const boxes = [];
    for (const node of data.nodes) {
      const span = findSpan(node.spans, end);
      const phase = span === null ? "gone" : span[1];
      const pods = byNode.get(node.name) || [];
      if (phase === "gone" && !pods.length) continue;
      const box = element("div", `node ${phase.replace(" ", "-")}`);
      const head = element("div");
      head.append(element("b", "", node.name));
      if (phase !== "ready") head.append(element("span", "phase", phase));
      head.append(element("small", "", node.about));
      box.append(head, drawPods(pods, phase === "gone" ? 0 : node.others));
      boxes.push(box);
    }
    if (byNode.has("")) {
      const box = element("div", "node unplaced");
      const head = element("div");
      head.append(element("b", "", data.words.unplaced));
      box.append(head, drawPods(byNode.get(""), 0));
      boxes.push(box);
    }
    map.replaceChildren(...boxes);
  }

  function moveCursors(at) {
    for (const chart of charts) {
      const [start, end, left, width] = ["start", "end", "left", "width"].map((name) => Number(chart.dataset[name]));
      const share = (Math.min(Math.max(at, start), end) - start) / (end - start);
      const cursor = chart.querySelector(".cursor");
      for (const name of ["x1", "x2"]) cursor.setAttribute(name, String(left + share * width));
    }
  }

  function showMoment(number) {
    const moment = data.moments[number];
    const isEnd = number === data.moments.length - 1;
    document.getElementById("moment").textContent = moment.title;
    document.getElementById("moment-title").textContent = `Nodes ${isEnd ? "after" : moment.title}`;
    drawMap(moment.end);
    moveCursors(moment.at);
    const current = rows.filter((row) => {
      const isCurrent = Number(row.dataset.moment) === number;
      row.classList.toggle("current", isCurrent);
      row.classList.toggle("later", Number(row.dataset.moment) > number);
      return isCurrent;
    });
    if (current.length) list.scrollTop = current[0].offsetTop - list.clientHeight / 3;
  }

  function pause() {
    clearInterval(timer);
    timer = null;
    play.textContent = "▶";
  }

  slider.addEventListener("input", () => {
    pause();
    showMoment(Number(slider.value));
  });
  play.addEventListener("click", () => {
    if (timer !== null) return pause();
    if (slider.value === slider.max) slider.value = "0";
    showMoment(Number(slider.value));
    play.textContent = "⏸";
    timer = setInterval(() => {
      slider.value = String(Number(slider.value) + 1);
      showMoment(Number(slider.value));
      if (slider.value === slider.max) pause();
    }, SECONDS_PER_MOMENT * 1000);
  });
  for (const row of rows) {
    row.addEventListener("click", () => {
      pause();
      slider.value = row.dataset.moment;
      showMoment(Number(slider.value));
    });
  }
  document.documentElement.classList.add("scripted");
  document.getElementById("controls").hidden = false;
  showMoment(Number(slider.value));
})();
