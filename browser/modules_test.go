package browser_test

import "testing"

// TestModulesOfTheConsole runs functions of the console's own modules in the browser.
func TestModulesOfTheConsole(t *testing.T) {
	t.Parallel()
	p := open(t, shop, "/")
	module := func(name string) string {
		return `import(document.querySelector("script[type=module]").src.replace("main.js", ` + quote(name) + `))`
	}
	for expression, want := range map[string]string{
		module("times.js") + `.then((m) => [0, 1, 59, 60, 61, 600, 3600, 3660, 86400, 90000, -5].map(m.span).join("|"))`:                                                 "0 s|1 s|59 s|1 min|1 min 1 s|10 min|1 h|1 h 1 min|1 d|1 d 1 h|5 s",
		module("times.js") + `.then((m) => [0, 90, -90].map(m.ago).join("|"))`:                                                                                           "now|1 min 30 s ago|in 1 min 30 s",
		module("times.js") + `.then((m) => m.show(new Date("2026-11-25T16:00:00Z"), "utc"))`:                                                                             "2026-11-25 16:00:00 UTC",
		module("look.js") + `.then((m) => (m.setTheme("dark"), document.documentElement.dataset.theme + localStorage.getItem("sluice-theme")))`:                          "darkdark",
		module("keys.js") + `.then((m) => Object.keys(m.keys).filter((k) => /cancel|delete/.test(m.keys[k][0])).every((k) => k === k.toUpperCase()) ? "Shift" : "bare")`: "Shift",
		module("connection.js") + `.then((m) => (m.togglePause(), [m.isPaused(), document.body.dataset.connection, (m.togglePause(), m.isPaused())].join()))`:            "true,paused,false",
		module("dialogs.js") + `.then((m) => (m.toast("<b>done</b>"), document.querySelector(".toast").textContent))`:                                                    "<b>done</b>",
	} {
		if got := p.text(expression); got != want {
			t.Errorf("%s\nis   %s\nwant %s", expression, got, want)
		}
	}
}
