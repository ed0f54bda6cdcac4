// One socket a page: it reconnects by itself, and says how it stands in the frame.

const sign = document.getElementById("live");
const words = { live: "Live", reconnecting: "Reconnecting", off: "Not live" };

function show(state) {
  if (!sign) return;
  sign.dataset.state = state;
  sign.firstElementChild.textContent = words[state];
  sign.title = state === "live" ? "This page changes as the fleet does" : "What you see may be out of date";
}

/** Listen at a path. `hear` gets each event; `again` is called whenever some may have been missed:
 * after a gap, and at first, for the page was made before its socket was there. */
export function listen(path, hear, again = () => {}) {
  let wait = 500;
  function connect() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}${path}`);
    socket.addEventListener("open", () => {
      wait = 500;
      show("live");
      again();
    });
    socket.addEventListener("message", (message) => hear(JSON.parse(message.data)));
    socket.addEventListener("close", (event) => {
      if (event.code === 4403) return show("off");
      show("reconnecting");
      setTimeout(connect, wait + Math.random() * 300);
      wait = Math.min(wait * 2, 10000);
    });
  }
  connect();
}
