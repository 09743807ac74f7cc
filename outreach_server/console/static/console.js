// What the console does in the browser besides htmx. Every page works without it.
"use strict";
(() => {
  const FROZEN_MS = 20000;
  const TWO_KEYS_MS = 1500;
  const READ_MS = 1000;
  const loaded = Date.now();
  const menu = document.querySelector("details.menu");
  if (menu && matchMedia("(max-width: 800px)").matches) menu.open = false;

  const problems = document.getElementById("problems");
  if (problems) problems.focus();
  // The token of the set-up stands behind the # of its link, where no proxy logs it.
  const setup = document.getElementById("setup_token");
  if (setup && location.hash) {
    setup.value = location.hash.slice(1);
    history.replaceState(null, "", location.pathname);
  }

  // Ctrl and Enter send an answer; Enter alone never does.
  document.addEventListener("keydown", (event) => {
    const { target, key } = event;
    if (key !== "Enter" || !(event.ctrlKey || event.metaKey) || !target.matches("[data-send]")) return;
    event.preventDefault();
    target.form.requestSubmit(target.form.querySelector("[name=action]"));
  });
  // Words to copy become buttons that write them into a field: where its cursor is, at first at its end.
  for (const word of document.querySelectorAll("[data-insert] code")) {
    const field = document.getElementById(word.parentElement.dataset.insert);
    field.setSelectionRange(field.value.length, field.value.length);
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: word.textContent });
    button.addEventListener("click", () => {
      field.setRangeText(button.textContent, field.selectionStart, field.selectionEnd, "end");
      field.focus();
    });
    word.replaceWith(button);
  }
  // A page sends a form once: a second answer would hide what the first one shows, such as a new key.
  const sent = new Set();
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (sent.has(form)) {
      event.preventDefault();
      event.stopImmediatePropagation();
    } else if (form.method !== "dialog") sent.add(form);
  }, true);
  addEventListener("pageshow", (event) => { if (event.persisted) sent.clear(); });
  // The person has stopped the page, such as while the server hangs.
  if (self.navigation) navigation.addEventListener("navigateerror", () => {
    for (const form of sent) {
      if (form.enctype !== "multipart/form-data") continue;
      form.querySelector("[role=alert]")?.remove();
      const textContent = "The upload was stopped before the server answered. Send it again.";
      form.append(Object.assign(document.createElement("p"), { className: "problem", role: "alert", textContent }));
    }
    sent.clear();
  });
  // Single keys: the page has the list of them where the person has not switched them off.
  const keys = document.getElementById("keys");
  if (keys) {
    const show = document.getElementById("show-keys");
    show.hidden = false;
    show.addEventListener("click", () => keys.showModal());
    const step = (by) => {
      const rows = [...document.querySelectorAll("main tbody tr")].filter((row) => row.querySelector("a"));
      const at = rows.findIndex((row) => row.contains(document.activeElement));
      const next = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by];
      if (next) next.querySelector("a").focus();
    };
    let before = "", pressed = 0;
    document.addEventListener("keydown", (event) => {
      const { key, target } = event;
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return;
      if (event.repeat) return;
      if (target.closest("input, select, textarea, dialog[open], [contenteditable]")) return;
      const both = Date.now() - pressed < TWO_KEYS_MS ? `${before} ${key}` : key;
      before = key;
      pressed = Date.now();
      const named = (name) => document.querySelector(`[data-key="${CSS.escape(name)}"]`);
      const found = named(both) || named(key);
      if (found) {
        event.preventDefault();
        if (found.matches("input")) found.focus();
        // A key that is pressed twice would decide about the next person, whose message nobody has read.
        else if (found.matches("a") || Date.now() - loaded >= READ_MS) found.click();
      } else if (key === "?") keys.showModal();
      else if (key === "j" || key === "k") step(key === "j" ? 1 : -1);
    });
  }

  const live = document.querySelector("[data-live]");
  if (!live) return;
  let heard = Date.now(), over = false;
  const freeze = (is) => live.classList.toggle("frozen", is);
  setInterval(() => { if (!document.hidden) freeze(Date.now() - heard > FROZEN_MS); }, 1000);
  document.addEventListener("visibilitychange", () => { if (!document.hidden && !over) heard = Date.now(); });
  // What can be done stands outside of what is replaced: where it does not fit a new state, it is hidden.
  const fit = () => {
    const state = document.getElementById("state"), changed = document.getElementById("changed");
    if (!state || !changed) return;
    const odd = (one) => one.dataset.fits !== state.dataset.status;
    const fitting = [...document.querySelectorAll("[data-fits]")];
    // An open one may hold what a person types.
    for (const one of fitting) one.hidden = odd(one) && !one.open;
    changed.hidden = !fitting.some(odd);
  };
  document.body.addEventListener("htmx:sse:after:message", () => {
    fit();
    if (!over) { heard = Date.now(); freeze(false); }
  });
  // The person has no access any more, or signed out: the page, loaded again, says so.
  document.body.addEventListener("htmx:sse:error", (event) => {
    const status = event.detail && event.detail.status;
    if (status === 401 || status === 403 || status === 404) location.reload();
  });
  live.addEventListener("superseded", () => {
    over = true;
    heard = 0;
    freeze(true);
    const note = document.getElementById("superseded");
    if (note) note.hidden = false;
  });
})();
