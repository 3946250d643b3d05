"use strict";
/* Shows recorded episodes: each .xg-player contains one as JSON; players of one .xg-group step together. */
(() => {
  const NAME = {
    ensemble: "Ensemble", leader: "Leader alone", explorer: "Explorer", random: "Random action", policy: "Policy", rule: "Rule",
  };
  const ARROW = {
    left: "←", right: "→", up: "↑", down: "↓", "left + up": "↖", "right + up": "↗", "left + down": "↙",
    "right + down": "↘",
  };
  const SPEEDS = [1, 2, 4, 8, 16, 32];
  const KEYS = [
    ["Space", "play or pause"], ["← →", "one step back or forward"], ["Page Up, Page Down", "ten steps back or forward"],
    ["P, N", "previous or next step at which the acting policy changes"], ["Home, End", "first and last step"],
    ["?", "this help"],
  ];
  const paint = (who) => getComputedStyle(document.documentElement).getPropertyValue(`--xg-${who}`);

  function make(tag, className, parent, text) {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  }

  function shape(tag, attributes, parent) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    parent.append(node);
    return node;
  }

  const percent = (share) => `${Math.round(share * 100)}\u00a0%`;
  const across = (share) => `${share * 100}%`; /* as a CSS length */
  const signed = (value) => (value > 0 ? "+" : value < 0 ? "−" : "") + Math.abs(value);
  const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
  const called = (name) => (ARROW[name] ? `${ARROW[name]} ${name}` : name);

  /* Make the node as tall as the tallest of these texts, so that content below it does not move. */
  function keepHeight(node, texts) {
    const longest = [...new Set(texts)].sort((one, other) => other.length - one.length).slice(0, 16);
    let width = -1;
    const measure = () => {
      if (node.clientWidth === width) return;
      width = node.clientWidth;
      const shown = node.textContent;
      node.style.minHeight = "";
      const heights = longest.map((text) => {
        node.textContent = text;
        return node.getBoundingClientRect().height;
      });
      node.textContent = shown;
      node.style.minHeight = `${Math.max(...heights)}px`;
    };
    measure();
    addEventListener("resize", measure);
  }

  /* Draws frames as the first frame with tiles replaced; see film.py. */
  class Film {
    constructor(data, canvas) {
      this.data = data;
      this.canvas = canvas;
      canvas.width = data.width;
      canvas.height = data.height;
      this.context = canvas.getContext("2d");
      this.images = new Map();
      this.wanted = -1;
      this.shown = -1;
    }

    load(source) {
      if (!this.images.has(source)) {
        const image = new Image();
        image.src = source;
        this.images.set(source, image.decode().then(() => image));
      }
      return this.images.get(source);
    }

    async show(frame) {
      this.wanted = frame;
      const { data } = this;
      const kept = data.frames[frame];
      const first = await this.load(data.first);
      const strip = data.strips[kept] ? await this.load(data.strips[kept]) : null;
      if (this.wanted !== frame) return; /* another frame was requested meanwhile */
      this.context.drawImage(first, 0, 0);
      if (strip) {
        const { tile, columns } = data;
        const wide = strip.width / tile;
        data.tiles[kept].forEach((where, at) => {
          const from = [(at % wide) * tile, Math.floor(at / wide) * tile];
          const to = [(where % columns) * tile, Math.floor(where / columns) * tile];
          this.context.drawImage(strip, ...from, tile, tile, ...to, tile, tile);
        });
      }
      this.shown = frame;
      this.canvas.dataset.frame = frame;
    }
  }

  /* The cells that the agent has visited so far, coloured by who acted. */
  class CoverageMap {
    constructor(episode, parent) {
      const { map } = episode;
      this.episode = episode;
      this.canvas = make("canvas", "", parent);
      this.canvas.setAttribute("role", "img");
      this.note = make("p", "xg-note", parent);
      const scale = Math.max(1, Math.floor(320 / Math.max(map.rows, map.columns)));
      this.cell = scale;
      this.canvas.width = map.columns * scale;
      this.canvas.height = map.rows * scale;
      this.picture = new Image();
      this.picture.src = map.picture;
      this.ready = this.picture.decode();
      keepHeight(this.note, [this.words(this.visits(episode.steps.length - 1))]);
    }

    /* Every cell visited up to a step, with its number of visits and who acted before the first visit. */
    visits(now) {
      const { steps, map } = this.episode;
      const visits = new Map();
      for (let t = 0; t <= now; t++) {
        const [row, column] = steps[t].place;
        const key = row * map.columns + column;
        const known = visits.get(key);
        if (known) known.count++;
        else visits.set(key, { row, column, count: 1, who: t ? steps[t - 1].who : null });
      }
      return visits;
    }

    words(visits) {
      const found = {};
      for (const { who } of visits.values()) if (who) found[who] = (found[who] || 0) + 1;
      const parts = Object.entries(found).map(([who, count]) => `${count} by the ${NAME[who].toLowerCase()}`);
      const { reachable } = this.episode.map;
      const most = reachable ? ` of ${reachable}` : "";
      const list = parts.length > 1 ? `; first reached ${parts.join(", ")}` : "";
      const cells = visits.size === 1 && !most ? "cell" : "cells";
      return `${visits.size}${most} ${cells} visited${list}.`;
    }

    async show(now) {
      const { episode, cell } = this;
      this.wanted = now;
      await this.ready;
      if (this.wanted !== now) return;
      const visits = this.visits(now);
      const context = this.canvas.getContext("2d");
      context.drawImage(this.picture, 0, 0, this.canvas.width, this.canvas.height);
      context.fillStyle = "rgb(0 0 0 / .35)";
      context.fillRect(0, 0, this.canvas.width, this.canvas.height);
      for (const { row, column, count, who } of visits.values()) {
        context.globalAlpha = Math.min(0.92, 0.5 + 0.09 * count);
        context.fillStyle = who ? paint(who) : "#fff";
        context.fillRect(column * cell, row * cell, cell, cell);
      }
      context.globalAlpha = 1;
      const [row, column] = episode.steps[now].place;
      const size = Math.max(cell, 7);
      const corner = [(column + 0.5) * cell - size / 2, (row + 0.5) * cell - size / 2];
      context.lineWidth = 4;
      context.strokeStyle = "#000";
      context.strokeRect(...corner, size, size);
      context.lineWidth = 2;
      context.strokeStyle = "#fff";
      context.strokeRect(...corner, size, size);
      this.note.textContent = this.words(visits);
      this.canvas.setAttribute("aria-label", `Coverage map: ${this.note.textContent}`);
    }
  }

  /* The members’ votes, or the probabilities of a single policy: one row for each class of actions. */
  class VotePanel {
    constructor(episode, parent) {
      this.episode = episode;
      const { members, quorum, rows } = episode;
      const alone = episode.steps.some((step) => step.turn && step.who === "explorer") ? "explorer" : "policy";
      const single = episode.averaged ? `The mean of ${episode.averaged} policies` : `The ${alone}’s choice`;
      this.title = make("h4", "", parent, members ? "The members’ votes" : single);
      parent.classList.toggle("xg-alone", !members);
      if (members) keepHeight(this.title, ["The members’ votes", this.past(episode.steps.length)]);
      this.rows = rows.map((name) => {
        const row = make("div", "xg-row", parent);
        make("span", "", row, called(name));
        const lane = make("div", "xg-lane", row);
        const parts = { row, slots: null, bars: {} };
        if (members) {
          parts.slots = make("div", "xg-slots", lane);
          parts.slots.style.setProperty("--members", members);
          const line = make("div", "xg-quorum", lane);
          line.style.left = across(Math.min(1, quorum / members));
        }
        for (const who of members ? ["ensemble", "explorer"] : [alone]) {
          parts.bars[who] = make("div", "xg-bar", lane);
          parts.bars[who].dataset.who = who;
          if (!members) parts.share = make("span", "xg-share", lane);
        }
        return parts;
      });
      const note = make("p", "xg-legend", parent);
      if (members) {
        this.key(note, "xg-dash", "", `quorum: ${quorum} of ${members}`);
        const ties = episode.vote === "majority" ? ", who breaks ties" : "";
        make("span", "", note, `★ leader${ties}: member ${episode.leader}`);
        this.key(note, "", "ensemble", "members’ mean probability");
        if (episode.steps.some((step) => step.explorer)) this.key(note, "", "explorer", "explorer’s");
      } else {
        this.key(note, "", alone, "probability");
        this.value = make("span", "", note);
      }
    }

    past(step) {
      return `Exploring since the vote of step ${step}`;
    }

    key(parent, className, who, text) {
      const entry = make("span", "", parent);
      const box = make("span", `xg-key ${className}`, entry);
      if (who) box.dataset.who = who;
      entry.append(text);
    }

    show(t) {
      const { episode } = this;
      const step = episode.steps[t];
      let asked = t; /* during a stretch of exploration, show the vote before it, faded */
      while (asked > 0 && !episode.steps[asked].votes) asked--;
      const { votes, agrees } = episode.steps[asked];
      const votedRow = votes ? episode.rowOf[votes[votedOn(episode, asked)]] : -1;
      const done = step.who === "ensemble" || step.who === "leader" ? votedRow : episode.rowOf[step.action];
      if (episode.members) {
        this.title.textContent = asked === t ? "The members’ votes" : this.past(asked + 1);
      }
      this.rows.forEach((parts, index) => {
        parts.row.classList.toggle("xg-done", index === done);
        parts.row.dataset.who = step.who;
        const explorer = episode.members ? step.explorer : step.probability;
        const shares = { ensemble: step.probability, policy: step.probability, explorer };
        for (const [who, bar] of Object.entries(parts.bars)) {
          const share = shares[who] ? shares[who][index] : 0;
          bar.style.width = across(share);
          bar.title = `${NAME[who]}: ${percent(share)}`;
          if (parts.share) parts.share.textContent = percent(share);
        }
        if (parts.slots) parts.slots.replaceChildren();
        if (parts.slots) parts.slots.classList.toggle("xg-past", asked !== t);
      });
      (votes || []).forEach((action, member) => {
        const parts = this.rows[agrees[member] ? votedRow : episode.rowOf[action]];
        const chip = make("span", "xg-chip", parts.slots);
        chip.dataset.agrees = agrees[member];
        chip.dataset.leader = Number(member === episode.leader);
        make("i", "", chip, member === episode.leader ? "★" : member);
        const role = member === episode.leader ? " (the leader)" : "";
        chip.title = `Member ${member}${role} votes ${episode.actions[action]}`;
      });
      if (this.value) this.value.textContent = step.value === undefined ? "" : `value ${step.value.toFixed(2)}`;
    }
  }

  /* Who acted and how many members agreed, over the whole episode. */
  class Timeline {
    constructor(episode, parent, scrub) {
      const { steps, members, quorum } = episode;
      this.total = steps.length;
      this.node = make("div", "xg-line", parent);
      Object.entries({ role: "slider", tabindex: 0, "aria-label": "Step of the episode", "aria-valuemin": 1 })
        .forEach(([name, value]) => this.node.setAttribute(name, value));
      this.node.setAttribute("aria-valuemax", this.total);
      const box = { viewBox: `0 0 ${this.total} 50`, preserveAspectRatio: "none", "aria-hidden": "true" };
      const picture = shape("svg", box, this.node);
      steps.forEach((step, t) => {
        let share = step.probability ? step.probability[episode.rowOf[step.action]] : 0;
        if (members) share = step.votes ? step.agrees.reduce((sum, one) => sum + one, 0) / members : 0;
        const bar = { x: t, width: 1.02, y: 36 * (1 - share), height: 36 * share, class: "xg-votes-bar" };
        if (share) shape("rect", { ...bar, "data-who": step.who }, picture);
      });
      for (let from = 0, t = 1; t <= this.total; t++) {
        if (t < this.total && steps[t].who === steps[from].who) continue;
        shape("rect", { x: from, width: t - from, y: 38, height: 12, "data-who": steps[from].who }, picture);
        from = t;
      }
      if (members && quorum <= members) {
        const level = 36 * (1 - quorum / members);
        shape("line", { x1: 0, x2: this.total, y1: level, y2: level }, picture);
      }
      steps.forEach((step, t) => {
        if (step.reward && t < this.total - 1) this.mark(t, "◆", `reward ${signed(step.reward)} at step ${t + 1}`);
      });
      const paid = steps[this.total - 1].reward;
      const outcome = episode.solved ? "✓ solved" : "✕ end";
      const last = this.mark(this.total - 1, paid ? `◆ ${outcome}` : outcome, "the episode ends");
      last.classList.add("xg-last");
      last.dataset.solved = episode.solved;
      last.style.left = "100%";
      this.head = make("div", "xg-head-line", this.node);
      const at = (event) => {
        const { left, width } = this.node.getBoundingClientRect();
        scrub(Math.floor(((event.clientX - left) / width) * this.total));
      };
      this.node.addEventListener("pointerdown", (event) => {
        this.node.setPointerCapture(event.pointerId);
        this.node.focus();
        at(event);
      });
      this.node.addEventListener("pointermove", (event) => event.buttons & 1 && at(event));
      const legend = make("p", "xg-legend", parent);
      for (const who of Object.keys(NAME)) {
        const count = steps.filter((step) => step.who === who).length;
        if (!count) continue;
        const entry = make("span", "", legend);
        make("span", "xg-key", entry).dataset.who = who;
        entry.append(`${NAME[who]}: ${plural(count, "step")} (${percent(count / this.total)})`);
      }
      const aside = steps.filter((step) => step.setAside).length;
      if (aside) make("span", "", legend, `agreement ignored, frame acted on before: ${plural(aside, "step")}`);
      const hedged = steps.filter((step) => step.hedged).length;
      if (hedged) make("span", "", legend, `explorer’s action replaced, members object: ${plural(hedged, "step")}`);
      const whom = episode.vote === "majority" ? "on the action with most votes" : "with the leader";
      const bars = members ? `bar height: members who agree ${whom}; dashed: quorum` : "";
      if (bars || steps.some((step) => step.probability)) {
        make("span", "", legend, bars || "bar height: probability of the action");
      }
      if (steps.some((step) => step.reward)) make("span", "", legend, "◆ reward");
    }

    mark(t, text, title) {
      const node = make("span", "xg-mark", this.node, text);
      node.style.left = across((t + 0.5) / this.total);
      node.title = title;
      return node;
    }

    show(t, text) {
      this.head.style.left = across((t + 0.5) / this.total);
      this.node.setAttribute("aria-valuenow", t + 1);
      this.node.setAttribute("aria-valuetext", text);
    }
  }

  /* The member whose action was voted on at a step. */
  function votedOn(episode, t) {
    return episode.steps[t].member ?? episode.leader;
  }

  /* Explain a step in one to three sentences. */
  function reason(episode, t) {
    const step = episode.steps[t];
    const { members, quorum } = episode;
    const isMajority = episode.vote === "majority";
    const did = episode.actions[step.action];
    let text;
    if (step.votes) {
      const agree = step.agrees.reduce((sum, one) => sum + one, 0);
      const member = votedOn(episode, t);
      const wish = episode.rows[episode.rowOf[step.votes[member]]];
      const few = step.who === "ensemble" || step.setAside ? `${agree} of ${members}` : `Only ${agree} of ${members}`;
      const which = isMajority && step.who !== "leader" ? "the action with the most votes" : "the leader’s action";
      text = `${few} members vote for “${wish}”, ${which}; ${quorum} are needed. `;
      if (step.setAside) text += "The ensemble has acted on this frame before, so its agreement is ignored. ";
      if (step.who === "ensemble") {
        const whose = isMajority ? `member ${member}’s` : "the leader’s";
        text += `The ensemble agrees and ${whose} action is executed: ${did}.`;
      } else if (step.who === "leader") text += `There is no explorer, so the leader acts: ${did}.`;
      else {
        const length = plural((step.lasts || 0) + 1, "step");
        const explorer = step.setAside ? "The explorer acts" : "No agreement: the explorer acts";
        const random = step.setAside ? "Random actions are taken" : "No agreement: random actions are taken";
        text += `${step.who === "explorer" ? explorer : random} for ${length}, now ${did}.`;
      }
    } else if (members) {
      const who = step.who === "explorer" ? "The explorer continues" : "Random actions continue";
      const then = step.lasts ? `${plural(step.lasts, "more step")} of exploration` : "the members vote again at the next step";
      text = `${who}: ${did}. There is no vote`;
      text += t === episode.steps.length - 1 ? "." : `; ${then}.`;
    } else if (step.who === "policy" || step.turn) {
      const index = episode.rowOf[step.action];
      const row = episode.rows[index]; // its share is that of all its actions
      const shown = row === did ? "" : `“${row}” `;
      const share = step.probability ? ` (${shown}${percent(step.probability[index])})` : "";
      const who = step.turn ? `It is the turn of ${step.who} ${step.turn} of ${episode.explorers}, which` : "A single policy";
      const how = episode.averaged
        ? `The action is sampled from the mean of ${episode.averaged} policies`
        : `${who} samples from its probabilities`;
      text = `${how}: ${did}${share}.`;
    } else if (step.who === "random") text = `A uniformly random action: ${did}.`;
    else text = `The action of a fixed rule: ${did}.`;
    if (step.hedged) text += " The members object to the explorer’s first choice, so it takes this action instead.";
    if (step.reward) text += ` Reward ${signed(step.reward)}.`;
    if (t === episode.steps.length - 1) text += episode.solved ? " This solves the level." : " The episode ends here, unsolved.";
    return text;
  }

  class Player {
    constructor(root, scrub) {
      const episode = JSON.parse(root.querySelector("script").textContent);
      this.root = root;
      this.episode = episode;
      this.total = episode.steps.length;
      const front = make("div", "xg-front", root);
      const head = make("header", "xg-head", front);
      make("h3", "", head, episode.agent);
      make("p", "", head, `${episode.place}, seed ${episode.seed}`);
      const outcome = episode.solved ? "Solved" : "Not solved";
      const result = `${outcome} in ${plural(this.total, "step")}, return ${signed(episode.return)}`;
      make("p", "xg-result", head, result).dataset.solved = episode.solved;
      const line = make("div", "xg-now", front);
      this.actor = make("span", "xg-actor", line);
      this.end = make("span", "xg-end", line, episode.solved ? "✓ solved" : "✕ not solved");
      this.end.dataset.solved = episode.solved;
      const canvas = make("canvas", "", make("div", "xg-stage", front));
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", "The level");
      this.film = new Film(episode.film, canvas);
      const side = make("div", "xg-side", root);
      make("h3", "xg-whose", side, episode.agent);
      this.why = make("p", "xg-why", side);
      if (episode.members || episode.steps[0].probability) this.votes = new VotePanel(episode, make("div", "xg-box", side));
      const views = make("div", "xg-views", side);
      const seen = make("div", "xg-box xg-seen", views);
      make("h4", "", seen, "What the agent sees");
      const eye = make("canvas", "", seen);
      eye.setAttribute("role", "img");
      eye.setAttribute("aria-label", "The observation");
      this.seen = new Film(episode.seen, eye);
      if (episode.map) {
        const box = make("div", "xg-box xg-map", views);
        make("h4", "", box, "Visited cells");
        this.map = new CoverageMap(episode, box);
      }
      this.timeline = new Timeline(episode, make("div", "xg-foot", root), scrub);
      keepHeight(this.why, episode.steps.map((_, t) => reason(episode, t)));
      keepHeight(this.actor, episode.steps.map((_, t) => this.who(t)));
    }

    who(t) {
      const step = this.episode.steps[t];
      return `${NAME[step.who]} ${called(this.episode.actions[step.action])}`;
    }

    show(t) {
      const step = this.episode.steps[t];
      const did = this.episode.actions[step.action];
      this.actor.textContent = this.who(t);
      this.actor.dataset.who = this.why.dataset.who = step.who;
      this.end.classList.toggle("xg-unseen", t < this.total - 1);
      this.why.textContent = reason(this.episode, t);
      if (this.votes) this.votes.show(t);
      this.timeline.show(t, `step ${t + 1} of ${this.total}: ${NAME[step.who]}, ${did}`);
      return Promise.all([this.film.show(t), this.seen.show(t), this.map && this.map.show(t)]);
    }

    /* The next or previous step at which the acting policy changes. */
    handover(t, way) {
      const { steps } = this.episode;
      const begins = (at) => at === 0 || steps[at].who !== steps[at - 1].who;
      for (t += way; t >= 0 && t < this.total; t += way) if (begins(t)) return t;
      return way < 0 ? 0 : this.total - 1;
    }
  }

  class Group {
    constructor(root) {
      this.root = root;
      this.now = 0;
      this.timer = null;
      const sections = [...root.querySelectorAll(".xg-player")];
      const box = make("div", "xg-players");
      box.dataset.count = sections.length;
      root.prepend(box);
      box.append(...sections);
      this.players = sections.map((section) => new Player(section, (t) => this.go(t)));
      this.total = Math.max(...this.players.map((player) => player.total));
      this.level = this.players[0].episode.level;
      const bar = make("div", "xg-controls");
      root.prepend(bar);
      const button = (text, label, act) => {
        const node = make("button", "", bar, text);
        node.type = "button";
        node.title = label;
        node.setAttribute("aria-label", label);
        node.addEventListener("click", act);
        return node;
      };
      button("|◀", "first step", () => this.go(0));
      button("◀", "one step back", () => this.go(this.now - 1));
      this.play = button("▶ Play", "play or pause", () => this.toggle());
      this.play.className = "xg-play";
      button("▶", "one step forward", () => this.go(this.now + 1));
      button("▶|", "last step", () => this.go(this.total - 1));
      this.count = make("span", "xg-count", bar);
      this.speed = make("select", "", bar);
      this.speed.setAttribute("aria-label", "speed");
      for (const rate of SPEEDS) make("option", "", this.speed, `${rate} steps/s`).value = rate;
      this.speed.value = 8;
      button("?", "keys", () => this.help.showModal());
      this.help = this.dialog(root);
      root.addEventListener("keydown", (event) => this.key(event));
      this.show();
    }

    dialog(root) {
      const dialog = make("dialog", "xg-help", root);
      make("h3", "", dialog, "Keys");
      const list = make("dl", "", dialog);
      for (const [key, does] of KEYS) {
        make("kbd", "", make("dt", "", list), key);
        make("dd", "", list, does);
      }
      make("p", "xg-note", dialog, "The address contains the level and step: copy it to share this view.");
      make("button", "", make("form", "", dialog), "Close").formMethod = "dialog";
      return dialog;
    }

    /* Put level and step into the address. */
    share() {
      if (!/^(file|https?):/.test(location.href) || this.timer !== null) return;
      const level = this.level === null ? "" : `level=${this.level}&`;
      history.replaceState(null, "", `#${level}step=${this.now + 1}`);
    }

    show() {
      this.count.textContent = `step ${this.now + 1} / ${this.total}`;
      this.shown = Promise.all(this.players.map((player) => player.show(Math.min(this.now, player.total - 1))));
    }

    move(t) {
      this.now = Math.max(0, Math.min(this.total - 1, t));
      this.show();
    }

    go(t) {
      this.pause();
      this.move(t);
      this.share();
    }

    pause() {
      clearTimeout(this.timer);
      this.timer = null;
      this.play.textContent = "▶ Play";
    }

    toggle() {
      if (this.timer !== null) return this.go(this.now);
      if (this.now === this.total - 1) this.move(0);
      this.play.textContent = "❚❚ Pause";
      const tick = async () => {
        await this.shown;
        if (this.timer === null) return;
        this.move(this.now + 1);
        if (this.now === this.total - 1) this.pause(), this.share();
        else this.timer = setTimeout(tick, 1000 / this.speed.value);
      };
      this.timer = setTimeout(tick, 1000 / this.speed.value);
    }

    key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT") return;
      if (event.key === " " && event.target.tagName === "BUTTON") return; /* the key already presses the button */
      if (this.help.open) return;
      const one = this.players.find((player) => player.root.contains(event.target)) || this.players[0];
      const does = {
        " ": () => this.toggle(),
        ArrowRight: () => this.go(this.now + 1),
        ArrowLeft: () => this.go(this.now - 1),
        PageDown: () => this.go(this.now + 10),
        PageUp: () => this.go(this.now - 10),
        Home: () => this.go(0),
        End: () => this.go(this.total - 1),
        "?": () => this.help.showModal(),
        n: () => this.go(one.handover(Math.min(this.now, one.total - 1), 1)),
        p: () => this.go(one.handover(Math.min(this.now, one.total - 1), -1)),
      }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      if (!does) return;
      event.preventDefault();
      event.stopPropagation();
      does();
    }
  }

  function begin() {
    for (const lone of document.querySelectorAll(".xg-player")) {
      if (lone.closest(".xg-group")) continue;
      const root = make("div", "xg-group");
      lone.replaceWith(root);
      root.append(lone);
    }
    const groups = [...document.querySelectorAll(".xg-group")].map((root) => new Group(root));
    if (!groups.length) return;
    const first = document.querySelector("[data-autoplay]") || (groups.length === 1 && groups[0].players[0].root);
    const listening = groups.find((group) => first && group.root.contains(first));
    document.addEventListener("keydown", (event) => event.target === document.body && listening && listening.key(event));
    addEventListener("hashchange", () => follow(groups));
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (!follow(groups) && document.querySelector("[data-autoplay]") && !isStill) listening.toggle();
  }

  /* Show the level and step of the address; return false if it has neither. */
  function follow(groups) {
    const asked = new URLSearchParams(location.hash.slice(1));
    const step = Number(asked.get("step"));
    const group = groups.find(({ level }) => !asked.has("level") || String(level) === asked.get("level"));
    if (!asked.has("step") && !asked.has("level")) return false;
    if (!group) {
      groups[0].count.textContent = `level ${asked.get("level")} is not on this page; ${groups[0].count.textContent}`;
      return true;
    }
    group.go(Number.isInteger(step) && step > 0 ? step - 1 : 0);
    if (groups.length > 1) group.root.scrollIntoView();
    return true;
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
