// The list of jobs follows what happens to them.

import { refresh } from "tidepool/base";
import { listen } from "tidepool/socket";

const list = document.getElementById("jobs");

// A filter changes the address; the list must fetch itself anew from there.
document.addEventListener("htmx:pushedIntoHistory", (event) => {
  list.setAttribute("hx-get", event.detail.path);
  refresh("views");
});
document.addEventListener("htmx:configRequest", (event) => {
  if (event.target === list) event.detail.path = location.pathname + location.search;
  if (event.target.id === "views") event.detail.path = `${event.target.getAttribute("hx-get")}${location.search}`;
});

listen("/ws/jobs/", () => refresh("jobs"), () => refresh("jobs"));
