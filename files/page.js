"use strict";
(() => {
  const body = document.body;
  const here = new URL(body.dataset.here, location.href);
  const $ = (sel, from = document) => from.querySelector(sel);

  // Times in the reader's own zone.
  for (const t of document.querySelectorAll("time")) {
    const d = new Date(t.dateTime);
    if (!isNaN(d)) t.textContent = d.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  }

  // Sorting and filtering what is on the page needs no request.
  const table = $("#list");
  if (table) {
    const rows = [...table.tBodies[0].rows];
    const name = (r) => $(".name a", r).textContent;
    const names = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
    const by = {
      name: (a, b) => names.compare(name(a), name(b)),
      size: (a, b) => a.dataset.size - b.dataset.size,
      mtime: (a, b) => a.dataset.mtime - b.dataset.mtime,
    };
    for (const link of table.querySelectorAll("th a")) {
      link.addEventListener("click", (e) => {
        e.preventDefault();
        const head = link.parentElement;
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const th of table.querySelectorAll("th")) th.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const cmp = by[link.dataset.by];
        const isDir = (r) => ("dir" in r.dataset ? 0 : 1);
        rows.sort((a, b) => isDir(a) - isDir(b) || cmp(a, b) || by.name(a, b));
        if (down) rows.reverse();
        table.tBodies[0].append(...rows);
      });
    }
    const input = $(".search input");
    const asked = input.defaultValue;
    input.addEventListener("input", () => {
      const q = input.value.trim().toLowerCase();
      const all = q === "" || input.value === asked;
      let shown = 0;
      for (const r of rows) {
        r.hidden = !all && !name(r).toLowerCase().includes(q);
        if (!r.hidden) shown++;
      }
      $("#none").hidden = shown > 0;
    });
  }

  if (!("write" in body.dataset)) return;

  // Uploading: one file after the other, each in pieces that a tunnel lets through.
  const piece = Number(body.dataset.piece);
  const panel = $("#uploads"), chosen = $("#chosen"), pick = $("#pick");
  const queue = [];
  let busy = false, failed = 0, done = 0;
  pick.hidden = false;
  const hint = $(".drop-hint");
  if (hint) hint.hidden = false;
  pick.addEventListener("click", () => chosen.click());
  chosen.addEventListener("change", () => {
    for (const f of chosen.files) add(f, f.name);
    chosen.value = "";
  });

  const size = (n) => {
    let u = -1;
    if (n < 1024) return n + " B";
    while (n >= 1024 && u < 4) { n /= 1024; u++; }
    return n.toFixed(n < 100 ? 1 : 0) + " " + "KMGTP"[u] + "B";
  };

  function add(file, path) {
    const el = document.createElement("div");
    el.className = "up";
    const what = document.createElement("span"), how = document.createElement("span");
    const stop = document.createElement("button"), bar = document.createElement("progress");
    what.className = "what"; what.textContent = what.title = path;
    how.className = "how"; how.textContent = "waiting";
    stop.type = "button"; stop.textContent = "Cancel";
    bar.max = Math.max(1, file.size); bar.value = 0;
    el.append(what, how, stop, bar);
    panel.append(el);
    panel.hidden = false;
    const job = { file, path, el, how, bar, stop, off: false, xhr: null };
    stop.addEventListener("click", () => { job.off = true; if (job.xhr) job.xhr.abort(); else end(job, "cancelled", true); });
    queue.push(job);
    next();
  }

  function end(job, text, bad) {
    job.el.classList.add(bad ? "bad" : "good");
    job.how.textContent = text;
    job.stop.remove();
    if (bad) failed++; else done++;
  }

  async function next() {
    if (busy) return;
    busy = true;
    for (let job; (job = queue.shift());) {
      if (job.off) continue;
      try {
        await upload(job);
        end(job, size(job.file.size) + " uploaded", false);
      } catch (err) {
        end(job, err.message, true);
      }
    }
    busy = false;
    // What came is shown by looking again; with a failure on the page the reader decides when.
    if (done > 0 && failed === 0) location.reload();
  }

  const address = (path) => new URL(path.split("/").map(encodeURIComponent).join("/"), here);

  async function upload(job) {
    const { file } = job;
    const url = address(job.path);
    let at = 0, tries = 0;
    do {
      const part = file.slice(at, at + piece);
      const status = await send(job, url, at, part);
      if (status === 201 || status === 204) {
        at += part.size;
        tries = 0;
        continue;
      }
      if (job.off) throw new Error(at > 0 ? "cancelled after " + size(at) : "cancelled");
      if (status !== 0 || tries++ >= 3) throw new Error(reason(status));
      // The line broke. A piece is kept whole or not at all, so the length says where to go on.
      await new Promise((ok) => setTimeout(ok, 1000 * tries));
      const there = await fetch(url, { method: "HEAD", cache: "no-store" }).catch(() => null);
      if (there && there.status === 200) {
        const length = Number(there.headers.get("content-length"));
        if (length !== at && length !== at + part.size) throw new Error("another file of that name is there");
        at = length;
      }
    } while (at < file.size);
  }

  function send(job, url, at, part) {
    return new Promise((ok) => {
      const xhr = job.xhr = new XMLHttpRequest();
      xhr.open(at === 0 ? "PUT" : "PATCH", url);
      if (at > 0) xhr.setRequestHeader("X-Update-Range", "bytes=" + at + "-");
      const began = performance.now();
      xhr.upload.onprogress = (e) => {
        const sent = Math.min(at + e.loaded, job.file.size);
        job.bar.value = sent;
        const speed = e.loaded / Math.max(0.001, (performance.now() - began) / 1000);
        job.how.textContent = size(sent) + " of " + size(job.file.size) + ", " + size(speed) + "/s";
      };
      xhr.onloadend = () => {
        job.xhr = null;
        if (xhr.status === 201 || xhr.status === 204) job.bar.value = at + part.size;
        ok(xhr.status);
      };
      xhr.send(part);
    });
  }

  function reason(status) {
    switch (status) {
      case 0: return "the connection broke";
      case 403: return "refused: a file of that name is there already";
      case 401: case 404: return "the share has ended";
      case 409: return "refused: a part of the path is not a folder";
      case 413: return "too large for one request";
      case 507: return "the disk is full";
    }
    return "failed (" + status + ")";
  }

  // Dropping files and whole folders.
  const drop = $("#drop");
  let depth = 0;
  const files = (e) => e.dataTransfer && [...e.dataTransfer.types].includes("Files");
  addEventListener("dragenter", (e) => { if (files(e)) { e.preventDefault(); depth++; drop.hidden = false; } });
  addEventListener("dragleave", (e) => { if (files(e) && --depth <= 0) { depth = 0; drop.hidden = true; } });
  addEventListener("dragover", (e) => { if (files(e)) e.preventDefault(); });
  addEventListener("drop", (e) => {
    if (!files(e)) return;
    e.preventDefault();
    depth = 0;
    drop.hidden = true;
    for (const item of e.dataTransfer.items) {
      const entry = item.webkitGetAsEntry && item.webkitGetAsEntry();
      if (entry) walk(entry, "");
      else if (item.kind === "file") { const f = item.getAsFile(); add(f, f.name); }
    }
  });

  function walk(entry, below) {
    if (entry.isFile) {
      entry.file((f) => add(f, below + f.name));
      return;
    }
    const reader = entry.createReader();
    const more = () => reader.readEntries((list) => {
      for (const e of list) walk(e, below + entry.name + "/");
      if (list.length) more();
    });
    more();
  }

  addEventListener("beforeunload", (e) => { if (busy) e.preventDefault(); });
})();
