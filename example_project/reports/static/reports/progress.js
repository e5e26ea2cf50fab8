// Keeps a progress page fresh. The page is complete without it: this only saves the reader from reloading.

const LONGEST_S = 30;
const page = document.querySelector("[data-status-url]");

/** Put the server's words where they belong; nothing is read as HTML. */
function show(words) {
  for (const place of page.querySelectorAll("[data-shown]")) {
    const word = words[place.dataset.shown] ?? "";
    // An announced region speaks again with each write, so write only what is new.
    if (place.textContent !== word) place.textContent = word;
    const row = place.closest("[data-row]");
    if (row) row.hidden = word === "";
  }
  const state = page.querySelector(".state");
  state.className = `state ${words.tone}`;
}

async function refresh() {
  let wait = LONGEST_S;
  try {
    const answer = await fetch(page.dataset.statusUrl, { headers: { Accept: "application/json" } });
    if (answer.redirected) return location.reload(); // logged out
    if (answer.ok) {
      show((await answer.json()).shown);
      if (!answer.headers.has("Retry-After")) return; // nothing is going to change
      wait = Math.min(Number(answer.headers.get("Retry-After")) || LONGEST_S, LONGEST_S);
    }
  } catch {
    // The network is away: what is shown stays, and the next try comes later.
  }
  setTimeout(refresh, wait * 1000);
}

if (page) setTimeout(refresh, 1000);
