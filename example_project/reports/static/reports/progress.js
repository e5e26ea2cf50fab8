// Keeps a progress page fresh. The page is complete without it: this only saves the reader from reloading.

const LONGEST_S = 30;
const standing = document.querySelector("#standing[data-outcome]");
let known;

/** Take over how the export stands from a fresh copy of this page. */
async function redraw() {
  const page = await fetch(location.href);
  if (page.redirected) return location.reload(); // logged out
  const fresh = new DOMParser().parseFromString(await page.text(), "text/html").querySelector("#standing");
  // An announced region speaks again with each write, so it is written only when something is new.
  if (page.ok && fresh) standing.replaceChildren(...fresh.childNodes);
}

async function refresh() {
  let wait = LONGEST_S;
  try {
    const answer = await fetch(standing.dataset.outcome, { headers: { Accept: "application/json" } });
    if (answer.status === 401) return location.reload(); // logged out
    if (answer.ok) {
      const news = answer.headers.get("ETag");
      if (news !== known) await redraw();
      known = news;
      const told = await answer.json();
      const ended = !["pending", "unknown"].includes(told.outcome);
      // After a success the file is still on its way until the answer links to it.
      if (ended && (told.outcome !== "succeeded" || answer.headers.has("Link"))) return;
      const pause = Number(answer.headers.get("Retry-After")) || (ended ? 1 : LONGEST_S);
      wait = Math.min(pause, LONGEST_S);
    }
  } catch {
    // The network is away: what is shown stays, and the next try comes later.
  }
  setTimeout(refresh, wait * 1000);
}

if (standing) setTimeout(refresh, 1000);
