// One job: its panels follow its events, its output comes as it is printed.

import { refresh } from "tidepool/base";
import { listen } from "tidepool/socket";
import { Log } from "tidepool/log";

const id = document.getElementById("summary").dataset.job;
const log = new Log(document.getElementById("log"));

function all() {
  for (const panel of ["summary", "start", "use", "receipts", "checkpoints", "gains", "files"]) refresh(panel);
  log.later();
}

listen(`/ws/jobs/${id}/`, (event) => {
  switch (event.kind) {
    case "output": return log.hear(event);
    case "move": refresh("receipts"); return refresh("summary");
    case "checkpoint": return refresh("checkpoints");
    default:
      refresh("summary");
      refresh("start");
      refresh("receipts");
      refresh("checkpoints");
      refresh("gains");
      if (["succeeded", "failed", "cancelled"].includes(event.state)) refresh("files");
  }
}, all);
