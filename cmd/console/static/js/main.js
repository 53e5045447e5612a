// The console's own script. Each module does one thing; pages work without most of them.
import "./look.js";
import { refreshTimes } from "./times.js";
import "./rows.js";
import "./connection.js";
import "./dialogs.js";
import "./copy.js";
import { refreshCharts } from "./charts.js";
import "./keys.js";
import "./palette.js";
import "./ranges.js";
import "./spoken.js";
import "./suggest.js";
import "./views.js";

function refresh() {
  refreshTimes(document);
  refreshCharts(document);
}

refresh();
document.addEventListener("htmx:after:swap", refresh);
document.addEventListener("theme", refresh);
