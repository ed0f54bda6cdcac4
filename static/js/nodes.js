// The nodes follow what their agents report.

import { refresh } from "tidepool/base";
import { listen } from "tidepool/socket";

listen("/ws/fleet/?use=no", () => refresh("nodes"), () => refresh("nodes"));
