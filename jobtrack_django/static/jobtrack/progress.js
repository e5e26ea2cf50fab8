// Keeps boxes of {% jobtrack_progress %} fresh. A page is complete without it: all it knows is on the server, so a
// refresh loses nothing. It asks the site, never a provider, and never sooner than the site's Retry-After says.
//
// A box tells: data-url (where to ask; "" for a box that stays), data-again (seconds until then), data-ended,
// data-state. It fires jobtrack:changed and jobtrack:ended, which bubble: detail is {state, previous, ended}.

const RARELY_S = 60; // where the answer says nothing
const FIRST_BACKOFF_S = 5;
const LONGEST_BACKOFF_S = 300;
const LONGEST_S = 86400; // timers of browsers overflow after some weeks
const PATIENCE_MS = 20000; // of one request
const JITTER = 0.1; // pauses are longer by up to this share, so that pages do not ask in step
const RETURN_JITTER_MS = 1000; // after sleep or offline, boxes ask one after another

/** Seconds of a Retry-After: a number or a date; null if it is neither. */
export function retryAfter(text, now = Date.now()) {
  if (!text) return null;
  if (/^\d+$/.test(text.trim())) return Math.min(Number(text), LONGEST_S);
  const date = Date.parse(text);
  return Number.isNaN(date) ? null : Math.min(Math.max(0, Math.ceil((date - now) / 1000)), LONGEST_S);
}

/** Seconds to wait after so many failures in a row. */
export function backoff(failures) {
  return Math.min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2 ** Math.min(failures - 1, 10));
}

class Box {
  constructor(root) {
    this.root = root;
    this.etag = null;
    this.failures = 0;
    this.away = false; // whether the browser thinks that the network is away
    this.timer = null;
    this.asking = false;
    this.stopped = false;
    this.due = 0; // when to ask next
    this.floor = 0; // until when the site's own word forbids to ask
    this.shown = root.querySelector("[data-jobtrack-body]").innerHTML; // as it came
    this.localise();
    if (!root.dataset.url || "ended" in root.dataset) this.stopped = true;
    else this.wait(Number(root.dataset.again) || RARELY_S, true);
  }

  /** Ask after so many seconds at the soonest; `told`: because the site says so. */
  wait(seconds, told) {
    this.due = Date.now() + seconds * 1000 * (1 + Math.random() * JITTER);
    if (told) this.floor = this.due;
    this.arm();
  }

  /** Set the timer, unless nobody looks; `resume` comes back to it. */
  arm(extra = 0) {
    clearTimeout(this.timer);
    if (this.stopped || this.asking || document.hidden) return;
    this.timer = setTimeout(() => this.ask(), Math.max(0, this.due - Date.now()) + extra);
  }

  pause() {
    clearTimeout(this.timer);
  }

  /** The browser thinks that the network is away. It may be wrong (a VPN, a site on this very machine), so the box
   *  still asks, but rarely. */
  disconnect() {
    if (this.stopped) return;
    this.away = true;
    this.notice(this.root.dataset.offline);
    this.due = Math.max(this.due, Date.now() + LONGEST_BACKOFF_S * 1000);
    this.arm();
  }

  resume() {
    if (this.stopped) return;
    if (this.failures === 0 && !this.away) this.notice("");
    this.arm(Math.random() * RETURN_JITTER_MS);
  }

  /** The network is back: our own backoff was for its absence, what the site asked for still holds. */
  reconnect() {
    this.away = false;
    this.due = Math.min(this.due, this.floor);
    this.resume();
  }

  async ask() {
    if (!this.root.isConnected) {
      this.stop();
      return;
    }
    this.asking = true;
    const patience = new AbortController();
    const limit = setTimeout(() => patience.abort(), PATIENCE_MS);
    let pause = { seconds: RARELY_S, told: false };
    try {
      const headers = { Accept: "text/html", "Jobtrack-Fragment": "1" };
      if (this.etag) headers["If-None-Match"] = this.etag;
      const options = { headers, cache: "no-store", redirect: "manual", signal: patience.signal };
      const answer = await fetch(this.root.dataset.url, options);
      pause = await this.hear(answer);
    } catch {
      pause = this.failed(null); // the network is away: what is shown stays
    } finally {
      clearTimeout(limit);
      this.asking = false;
    }
    if (!this.stopped) this.wait(pause.seconds, pause.told);
  }

  /** Take over an answer; returns how long to wait, and whether the site said so. */
  async hear(answer) {
    const told = retryAfter(answer.headers.get("Retry-After"));
    if (answer.type === "opaqueredirect" || answer.status === 401) return this.stop("login");
    if ([403, 404, 410].includes(answer.status)) return this.stop("gone");
    if (answer.status !== 304) {
      if (!answer.ok) return this.failed(told);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.querySelector("[data-jobtrack-progress]");
      if (!fresh) return this.failed(told); // a page of somebody else: a captive portal, for example
      this.etag = answer.headers.get("ETag");
      this.draw(fresh);
    }
    this.failures = 0;
    this.away = false;
    this.notice("");
    return { seconds: told ?? RARELY_S, told: true };
  }

  failed(told) {
    this.failures += 1;
    this.notice(navigator.onLine ? this.root.dataset.trouble : this.root.dataset.offline);
    const pause = this.away ? LONGEST_BACKOFF_S : backoff(this.failures);
    return { seconds: Math.max(told ?? 0, pause), told: told !== null };
  }

  draw(fresh) {
    const previous = this.root.dataset.state;
    const body = this.root.querySelector("[data-jobtrack-body]");
    const next = fresh.querySelector("[data-jobtrack-body]");
    if (this.shown !== next.innerHTML) {
      this.shown = next.innerHTML;
      const held = body.contains(document.activeElement) ? document.activeElement.dataset.jobtrackPart ?? "" : null;
      body.replaceChildren(...next.childNodes);
      this.localise();
      if (held !== null) this.refocus(body, held);
    }
    for (const name of ["state", "again", "ended"]) {
      if (name in fresh.dataset) this.root.dataset[name] = fresh.dataset[name];
      else delete this.root.dataset[name];
    }
    this.root.className = fresh.className;
    const { state } = this.root.dataset;
    const ended = "ended" in this.root.dataset;
    if (ended) this.stop();
    if (state !== previous) {
      const said = ["[data-jobtrack-word]", "[data-jobtrack-sentence]"].map((each) => this.text(each));
      this.root.querySelector("[data-jobtrack-news]").textContent = said.join(". ");
      this.fire("jobtrack:changed", { state, previous, ended });
    }
    if (ended) this.fire("jobtrack:ended", { state, previous, ended });
  }

  /** The text of a part, without its symbol. */
  text(selector) {
    const part = this.root.querySelector(selector)?.cloneNode(true);
    part?.querySelectorAll("[aria-hidden]").forEach((each) => each.remove());
    return part?.textContent.trim() ?? "";
  }

  /** Give the focus back to what took the place of the part that had it. */
  refocus(body, part) {
    const same = [...body.querySelectorAll("[data-jobtrack-part]")].find((each) => each.dataset.jobtrackPart === part);
    if (!same) body.tabIndex = -1;
    (same ?? body).focus({ preventScroll: true });
  }

  /** Instants in the reader's own zone. */
  localise() {
    const format = new Intl.DateTimeFormat(document.documentElement.lang || undefined, {
      dateStyle: "medium",
      timeStyle: "short",
    });
    for (const time of this.root.querySelectorAll("time[datetime]")) {
      const instant = Date.parse(time.dateTime);
      if (!Number.isNaN(instant)) time.textContent = format.format(instant);
    }
  }

  notice(text, link = "") {
    const place = this.root.querySelector("[data-jobtrack-notice]");
    place.textContent = text;
    place.hidden = !text;
    if (link) {
      const anchor = document.createElement("a");
      anchor.href = location.href; // the page itself sends to the login, and comes back
      anchor.textContent = link;
      place.append(" ", anchor);
    }
  }

  stop(why = "") {
    this.stopped = true;
    clearTimeout(this.timer);
    const words = this.root.dataset;
    if (why) {
      this.notice(words[why], words[`${why}Link`]);
      this.root.querySelector("[data-jobtrack-news]").textContent = words[why];
    }
    return { seconds: RARELY_S, told: false };
  }

  fire(name, detail) {
    this.root.dispatchEvent(new CustomEvent(name, { detail, bubbles: true }));
  }
}

const boxes = new Map();

/** Take up every box below `root` that is new; for pages that add boxes by themselves. */
export function upgrade(root = document) {
  for (const [element] of boxes) if (!element.isConnected) boxes.delete(element);
  for (const element of root.querySelectorAll("[data-jobtrack-progress]")) {
    if (!boxes.has(element)) boxes.set(element, new Box(element));
  }
}

const all = (what) => boxes.forEach((box) => box[what]());
const follow = () => all(document.hidden ? "pause" : "resume");
document.addEventListener("visibilitychange", follow);
addEventListener("online", () => all("reconnect"));
addEventListener("offline", () => all("disconnect"));
addEventListener("pageshow", (event) => event.persisted && follow());

upgrade();
