package browser_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	modules  = "../cmd/console/static/js"
	maxLines = 1500 // for all modules together
)

// moduleTests run functions of the console's own modules in the browser. M stands for the module; the result is a text.
var moduleTests = map[string][][2]string{
	"times.js": {
		{`[0, 1, 59, 60, 61, 600, 3600, 3660, 86400, 90000, -5].map(M.span).join("|")`, "0 s|1 s|59 s|1 min|1 min 1 s|10 min|1 h|1 h 1 min|1 d|1 d 1 h|5 s"},
		{`[0, 90, -90].map(M.ago).join("|")`, "now|1 min 30 s ago|in 1 min 30 s"},
		{`M.show(new Date("2026-11-25T16:00:00Z"), "utc")`, "2026-11-25 16:00:00 UTC"},
		{`M.show(new Date("2026-11-25T16:00:00Z"), "Asia/Tokyo")`, "2026-11-26 01:00:00 Asia/Tokyo"},
		{`["ago", "local", "utc", "Asia/Tokyo"].map(M.placeOf).join("|")`, "||Etc/UTC|Asia/Tokyo"},
		{`[...document.getElementById("zone").options].some((o) => o.value === "Europe/Berlin") ? "listed" : "missing"`, "listed"},
	},
	"look.js": {{`(M.setTheme("dark"), document.documentElement.dataset.theme + localStorage.getItem("sluice-theme"))`, "darkdark"}, {`(() => {
		const rows = document.getElementById("row-height"), table = document.createElement("table"), cell = table.insertRow().insertCell();
		document.getElementById("main").append(table);
		const before = parseFloat(getComputedStyle(cell).paddingTop);
		rows.value = "dense";
		rows.dispatchEvent(new Event("change"));
		const denser = parseFloat(getComputedStyle(cell).paddingTop) < before;
		rows.value = "roomy";
		rows.dispatchEvent(new Event("change"));
		return [denser, document.documentElement.dataset.rows, localStorage.getItem("sluice-rows")].join();
	})()`, "true,roomy,roomy"}},
	"theme.js": {{`(() => {
		localStorage.setItem("sluice-theme", "contrast");
		const script = document.createElement("script");
		script.src = document.querySelector("script[src$='theme.js']").src;
		return new Promise((done) => { script.onload = () => done(document.documentElement.dataset.theme); document.head.append(script); });
	})()`, "contrast"}},
	"keys.js":       {{`Object.keys(M.keys).filter((k) => /cancel|delete/.test(M.keys[k][0])).every((k) => k === k.toUpperCase()) ? "Shift" : "bare"`, "Shift"}},
	"connection.js": {{`(M.togglePause(), [M.isPaused(), document.body.dataset.connection, document.getElementById("age").hidden, (M.togglePause(), M.isPaused())].join())`, "true,paused,false,false"}},
	"dialogs.js": {{`(M.toast("<b>done</b>"), document.querySelector(".toast").textContent)`, "<b>done</b>"}, {`(async () => {
		const dialog = document.getElementById("dialog");
		const swap = async () => { await null; document.dispatchEvent(new CustomEvent("htmx:after:swap")); return document.activeElement.id; };
		const show = () => { dialog.innerHTML = '<p role="alert" tabindex="-1" id="problem"></p><input id="field">'; return swap(); };
		const first = await show();
		document.getElementById("field").focus();
		const behind = await swap(), again = await show(), empty = new Promise((done) => dialog.addEventListener("close", done));
		dialog.close();
		await swap(); // a live picture, before the event "close"
		await empty;
		return [first, behind, again, dialog.open, dialog.childElementCount].join();
	})()`, "problem,field,problem,false,0"}},
	"rows.js": {{`(() => {
		const body = (...ids) => { const t = document.createElement("tbody"); for (const id of ids) t.insertRow().id = id; return t; };
		const after = body("new", "c", "a"), fresh = M.steady(body("a", "b", "c"), after);
		return [...after.rows].map((tr) => tr.id + tr.className).join() + "|" + fresh.map((tr) => tr.id);
	})()`, "a,baway,c|new"}},
	"charts.js": {{`[[1, null, 2, 3, null, 4], [null, 5, null], [6], []].map(M.lone).join("|")`, "0,5|1|0|"}, {`(() => {
		const figure = document.createElement("figure");
		const chart = { kind: "line", times: [1, 2, 3], lines: [{ name: "in", values: [1, null, 3] }, { name: "out", values: [0, 1, 2] }] };
		figure.innerHTML = '<div class="plot"></div>';
		document.getElementById("main").append(figure);
		const draw = (more) => { figure.dataset.chart = JSON.stringify({ ...chart, ...more }); M.refreshCharts(figure.parentElement); return figure.querySelector("canvas"); };
		const first = draw(), again = draw({ times: [2, 3, 4] }), other = draw({ lines: chart.lines.slice(1) });
		return [first === again, first === other, [...figure.querySelectorAll(".u-label")].map((e) => e.textContent)].join();
	})()`, "true,false,Time,out"}, {`(() => {
		document.getElementById("zone").value = "utc";
		const day = Date.UTC(2026, 10, 26, 23) / 1000;
		return [...M.ticks(null, [day, day + 1800, day + 3600], 0, 0, 1800), ...M.ticks(null, [day], 0, 0, 30), ...M.ticks(null, [day], 0, 0, 86400)].join();
	})()`, "23:00\n2026-11-26,23:30,00:00\n2026-11-27,23:00:00\n2026-11-26,11-26"}, {`(() => {
		document.getElementById("zone").value = "Asia/Tokyo";
		return M.ticks(null, [Date.UTC(2026, 10, 26, 23) / 1000], 0, 0, 1800).join();
	})()`, "08:00\n2026-11-27"}},
	"palette.js": {{`(async () => {
		const box = document.getElementById("palette"), text = document.getElementById("palette-text");
		const opened = new Promise((done) => box.addEventListener("toggle", done, { once: true }));
		const type = (words) => { text.value = words; text.dispatchEvent(new Event("input")); return [...box.querySelectorAll("li")].map((li) => li.textContent).join(); };
		box.showModal();
		type("early");
		await opened;
		const all = [text.value, type("01a1fb72-1dea-7abc-8fc6-99e4817522bb"), type("state:dead queue:zz"), type("zz/1"), type("zz")];
		text.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown" }));
		box.close();
		await new Promise((done) => box.addEventListener("close", done, { once: true }));
		return [...all, text.value, [...box.querySelectorAll("li")].map((li) => li.ariaSelected), text.getAttribute("aria-activedescendant")].join("|");
	})()`, "early|Job 01a1fb72-1dea-7abc-8fc6-99e4817522bb|Jobs that match state:dead queue:zz|Job with the key zz/1,The queue zz/1,The tenant zz/1|Job with the key zz,The queue zz,The tenant zz||false,true,false|palette-1"}},
	"spoken.js": {{`(() => {
		const live = document.getElementById("live"), spoken = document.getElementById("spoken");
		live.innerHTML = '<p data-spoken="ready 12"></p><p data-spoken="dead 3"></p><p>44</p>';
		M.speak();
		const first = spoken.textContent;
		live.firstChild.dataset.spoken = "ready 13";
		M.speak();
		return first + "|" + spoken.textContent;
	})()`, "ready 12, dead 3|ready 13, dead 3"}},
	"suggest.js": {{`(() => {
		const words = ["state:ready", "state:dead", "queue:mail", 'tenant:"A B"', "queue:", "label."];
		return ["", "st", "queue:mail STATE:d", "-state:ready,", "state:dead,re", 'x tenant:"a', "lab", "zz"].map((text) => M.suggest(text, words).join("/")).join("|");
	})()`, `state:ready/state:dead/queue:mail/tenant:"A B"/queue:/label.|state:ready/state:dead|queue:mail state:dead|-state:ready,dead|state:dead,ready|x tenant:"A B"|label.|`}},
	"ranges.js": {{`(() => {
		const form = document.createElement("form");
		form.innerHTML = '<input type="range" id="rate" max="9"><output for="rate"></output>';
		document.body.append(form);
		form.rate.value = 7;
		const output = form.querySelector("output");
		form.rate.dispatchEvent(new Event("input", { bubbles: true }));
		const moved = output.textContent;
		output.textContent = "4"; // by a picture
		document.dispatchEvent(new CustomEvent("htmx:after:swap"));
		return moved + output.textContent;
	})()`, "77"}},
}

func TestModulesOfTheConsole(t *testing.T) {
	t.Parallel()
	p := open(t, shop, "/")
	for name, tests := range moduleTests {
		for _, test := range tests {
			call := `import(document.querySelector("script[type=module]").src.replace("main.js", ` + quote(name) + `)).then((M) => ` + test[0] + `)`
			if got := p.text(call); got != test[1] {
				t.Errorf("%s: %s\nis   %s\nwant %s", name, test[0], got, test[1])
			}
		}
	}
}

// TestAButtonCopiesWhatItNames clicks the button, because a browser lets only a click write to the clipboard.
func TestAButtonCopiesWhatItNames(t *testing.T) {
	t.Parallel()
	p := open(t, shop, "/")
	p.click(`footer.same summary`)
	for range 2 {
		p.click(`footer.same [data-copy]`)
		p.until(`document.querySelector("footer.same [data-copy]").textContent === "Copied"`)
	}
	p.until(`document.querySelector("footer.same [data-copy]").textContent === "Copy as CLI"`)
}

// Browsers give a page of another machine without TLS no clipboard.
func TestAButtonCopiesWithoutAClipboard(t *testing.T) {
	t.Parallel()
	p := open(t, shop, "/")
	p.click(`footer.same summary`)
	p.js(`(() => { Object.defineProperty(navigator, "clipboard", { value: undefined });
		document.addEventListener("copy", () => (window.copied = document.activeElement.value)); })()`)
	p.click(`footer.same [data-copy]`)
	p.until(`document.querySelector("footer.same [data-copy]").textContent === "Copied" && window.copied === document.querySelector("footer.same [data-copy]").dataset.copy`)
	p.until(`document.querySelector("footer.same [data-copy]").textContent === "Copy as CLI" && document.activeElement.matches("[data-copy]")`)
	p.js(`document.execCommand = () => false`)
	p.click(`footer.same [data-copy]`)
	p.until(`document.querySelector("footer.same [data-copy]").textContent === "Not copied"`)
}

// testedElsewhere lists the module that starts the others, and the modules with tests of their own.
var testedElsewhere = []string{"main.js", "copy.js", "views.js"}

// TestOwnScriptsStaySmall: a Go engineer must be able to read all scripts. Each script must have a test.
func TestOwnScriptsStaySmall(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(modules, "*.js"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no module was found in %s: %v", modules, err)
	}
	lines := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines += strings.Count(string(text), "\n")
		if name := filepath.Base(file); len(moduleTests[name]) == 0 && !slices.Contains(testedElsewhere, name) {
			t.Errorf("%s has no test", name)
		}
	}
	if lines > maxLines {
		t.Errorf("the console's own scripts have %d lines, more than %d", lines, maxLines)
	}
}
