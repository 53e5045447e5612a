package browser_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestAJobIsFoundInThreeKeys presses Ctrl K, pastes an ID, and presses Enter.
func TestAJobIsFoundInThreeKeys(t *testing.T) {
	t.Parallel()
	const id = "01a1fb72-1dea-7abc-8fc6-99e4817522bb"
	s := serving(t)
	s.sluice(t, "enqueue", "mail", "{}", "--id", id)
	p := open(t, s, "/")
	p.forgives("404") // the page of the job may not exist yet
	p.does(chromedp.KeyEvent("k", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	p.until(`document.querySelector("#palette[open]") && document.activeElement.id === "palette-text"`)
	p.keys(id, kb.Enter)
	p.until(`location.pathname === "/jobs/` + id + `"`)
}

func TestKeysGoToTheTimeBeforeAndAfter(t *testing.T) {
	t.Parallel()
	p := open(t, shop, "/?window=1h")
	p.keys("[")
	p.until(`location.search.includes("from=") && document.body.dataset.connection === "live"`)
	from := p.text(`new URL(location).searchParams.get("from")`)
	p.keys("[")
	p.until(`new URL(location).searchParams.get("to") === ` + quote(from) + ` && document.body.dataset.connection === "live"`)
	p.keys("]")
	p.until(`new URL(location).searchParams.get("from") === ` + quote(from))
}

// TestTasksByMouseAndByKeyboardAlone does the ten main tasks of people on call, once with the mouse and once with the keyboard.
func TestTasksByMouseAndByKeyboardAlone(t *testing.T) {
	t.Parallel()
	s := serving(t)
	for name, task := range map[string]func(hand){
		"a job is found by its key":                   findAJob,
		"a person sees why a job does not run":        seeWhy,
		"a queue is paused, and opened by undo":       pauseAQueue,
		"a rate is tried ahead and then set":          tryARate,
		"a rate is raised and taken back":             raiseARate,
		"dead letters are redriven at a pace":         redrive,
		"a number is typed to cancel many":            cancelMany,
		"a job is held and released":                  holdAJob,
		"a schedule is paused, resumed and triggered": useASchedule,
		"an alert is silenced":                        silenceAnAlert,
	} {
		for _, with := range []string{"mouse", "keyboard"} {
			t.Run(name+" by "+with, func(t *testing.T) {
				t.Parallel()
				task(hand{server: s, with: with, tab: open(t, s, "/")})
			})
		}
	}
}

// hand is a person who has only a mouse (and letters for texts), or only a keyboard.
type hand struct {
	*server
	*tab
	with string // mouse or keyboard
}

// press presses a button or follows a link.
func (h hand) press(selector string) {
	h.Helper()
	h.until(`document.querySelector(` + quote(selector) + `)?.checkVisibility()`)
	if h.with == "mouse" {
		h.click(selector)
		return
	}
	h.reach(selector)
	h.keys(kb.Enter)
}

// reach moves the focus to an element by Tab, beginning at the content of the page.
func (h hand) reach(selector string) {
	h.Helper()
	if h.is(`document.activeElement === document.body`) {
		h.keys(kb.Tab)
		h.until(`document.activeElement.matches(".skip")`)
		h.keys(kb.Enter)
	}
	for range 400 { // a page of 50 jobs has 200 places
		if h.is(`document.activeElement.matches(` + quote(selector) + `)`) {
			return
		}
		h.keys(kb.Tab)
	}
	h.Fatalf("Tab does not reach %s; it is at %s\n%s", selector, h.text(`document.activeElement.outerHTML.slice(0, 200)`), h.now())
}

// goes opens a page of the side bar: by its link, or by its letter.
func (h hand) goes(path, letter string) {
	h.Helper()
	if h.with == "mouse" {
		h.click(`#places a[href="` + path + `"]`)
	} else {
		h.keys("g", letter)
	}
	h.until(`location.pathname === ` + quote(path) + ` && document.body.dataset.connection === "live"`)
}

// walksTo moves the focus down the list to a row, once the list has it: a row that comes above the focus is not passed.
func (h hand) walksTo(id string) {
	h.Helper()
	h.until(`document.querySelector(` + quote(row(id)) + `)`)
	for range 300 {
		if h.is(`document.activeElement.closest("tr")?.dataset.row === ` + quote(id)) {
			return
		}
		h.keys("j")
	}
	h.Fatalf("j does not lead to the row of %s\n%s", id, h.now())
}

// fill replaces the text of a field of a dialog.
func (h hand) fill(field, text string) {
	h.Helper()
	h.types(`#dialog [name="`+field+`"]`, text)
}

// types replaces the text of a field.
func (h hand) types(selector, text string) {
	h.Helper()
	if h.with == "mouse" {
		h.click(selector)
	} else {
		h.reach(selector)
	}
	h.does(chromedp.KeyEvent("a", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	h.keys(kb.Delete)
	for _, letter := range text {
		h.keys(string(letter))
	}
	if got := h.text(`document.querySelector(` + quote(selector) + `).value`); got != text {
		h.Fatalf("the field %s has %q, want %q", selector, got, text)
	}
}

// act does an act in its dialog. The fields alternate between names and values.
func (h hand) act(button string, fields ...string) {
	h.Helper()
	h.press(button)
	h.until(`document.querySelector("#dialog[open] button[type=submit]") && document.getElementById("dialog").contains(document.activeElement)`)
	for i := 0; i < len(fields); i += 2 {
		h.fill(fields[i], fields[i+1])
	}
	h.press(`#dialog button[type=submit]`)
}

// acts does an act, and waits until the dialog has closed.
func (h hand) acts(button string, fields ...string) {
	h.Helper()
	h.act(button, fields...)
	h.until(`!document.querySelector("#dialog[open]")`)
}

func findAJob(h hand) {
	key := "order-" + h.with
	h.sluice(h.T, "enqueue", "found", "{}", "--key", key)
	h.sluice(h.T, "enqueue", "found", "{}", "--key", key+"-2")
	h.goes("/jobs", "i")
	const filter = `input[type=search][name=q]`
	if h.with == "keyboard" {
		h.keys("/")
		h.until(`document.activeElement.matches("` + filter + `")`)
	}
	h.types(filter, "key:"+key)
	if h.with == "mouse" {
		h.click(`form.filters button`)
	} else {
		h.keys(kb.Enter)
	}
	h.until(`location.search.includes("` + key + `") && document.querySelectorAll("#live tbody tr[data-row]").length === 1`)
	if h.with == "mouse" {
		h.click(`#live tbody th a`)
	} else {
		h.walksTo(h.text(`document.querySelector("#live tbody tr[data-row]").dataset.row`))
		h.keys(kb.Enter)
	}
	h.until(`location.pathname.startsWith("/jobs/") && document.querySelector("#relations")?.parentElement.innerText.includes("` + key + `")`)
}

// seeWhy goes from the list to the job, and from its reason to the job that it waits for.
func seeWhy(h hand) {
	queue := "why-" + h.with
	h.sluice(h.T, "enqueue", queue, "{}", "--order-key", "account", "--delay", "1h")
	h.sluice(h.T, "enqueue", queue, "{}", "--order-key", "account")
	h.goTo("/jobs?q=queue:" + queue)
	h.press(`#live tbody tr:first-child th a`)
	h.until(`document.querySelector("#why")`)
	h.press(`.gates .stopped a`)
	h.until(`location.pathname.startsWith("/jobs/") && document.querySelector(".lead .state-scheduled")`)
}

func pauseAQueue(h hand) {
	queue := "pause-" + h.with
	h.sluice(h.T, "enqueue", queue, "{}", "--delay", "1h")
	h.goes("/queues", "k")
	button := func(verb string) string { return row(queue) + ` [data-act="` + verb + `-queue"]` }
	if h.with == "mouse" {
		h.click(button("pause"))
	} else {
		h.walksTo(queue)
		h.keys("p")
	}
	h.until(`document.querySelector("#dialog[open] #field-reason")`)
	h.fill("reason", "the server moves")
	h.press(`#dialog button[type=submit]`)
	h.until(`document.querySelector('` + button("resume") + `') && document.querySelector(".toast button")`) // without a reload
	h.undo()
	h.until(`document.querySelector('` + button("pause") + `') && !document.querySelector("#dialog[open]")`)
	if told := h.sluice(h.T, "settings", "history", queue); !strings.Contains(told, "undo: the server moves") {
		h.Errorf("the history is %s, want the reason of the undo", told)
	}
}

// undo takes back what was done last.
func (h hand) undo() {
	h.Helper()
	if h.with == "mouse" {
		h.click(`.toast button`)
		return
	}
	h.keys("u")
}

// tryARate moves the slider of the rate, sees the end of the wave, and sets the rate.
func tryARate(h hand) {
	queue := "wave-" + h.with
	h.sluice(h.T, "enqueue", queue, "{}", "--delay", "10m")
	h.sluice(h.T, "forecast", "--count")
	h.goTo("/waves?queue=" + queue)
	const slider = `#what-rate`
	if h.with == "mouse" {
		h.click(slider) // in its middle
	} else {
		h.reach(slider)
		h.keys(kb.ArrowRight)
	}
	h.until(`location.search.includes("rate=") && document.body.dataset.connection === "live" && [...document.querySelectorAll(".whatif + dl dt")].some((dt) => dt.textContent === "Done by these")`)
	h.acts(`.panel [data-act="set-setting"]`, "reason", "as tried")
	rate := h.text(`document.querySelector("#what-rate").value`) + "/s"
	if got := h.sluice(h.T, "settings", "get", queue); !strings.Contains(got, rate) {
		h.Errorf("the settings are %s, want a rate of %s", got, rate)
	}
}

func raiseARate(h hand) {
	queue := "rate-" + h.with
	h.sluice(h.T, "enqueue", queue, "{}", "--delay", "1h")
	h.goTo("/queues/" + queue)
	h.acts(`#live .acts [data-act="set-setting"]`, "value", "7/s", "reason", "the wave of four")
	const rate = `document.querySelector("#setting-rate strong")?.textContent`
	h.until(rate + ` === "7/s" && document.querySelector("#live").innerText.includes("the wave of four")`)
	h.acts(`#live .acts [data-act="undo-settings"]`)
	h.until(rate + ` !== "7/s"`)
}

// redrive starts at a rate of one job a minute, and then changes the rate.
func redrive(h hand) {
	queue := "dead-" + h.with
	for range 3 {
		h.sluice(h.T, "enqueue", queue, "{}", "--max-attempts", "1")
	}
	h.sluiceExits(h.T, 6, "work", queue, "--until-empty", "--", "false")
	h.goTo("/dead?queue=" + queue)
	h.act(`#live tbody [data-act="retry-group"]`, "rate", "1/m", "canary", "", "reason", "the disk is back")
	h.until(`location.pathname.startsWith("/operations/") && document.querySelector(".progress")?.innerText.includes("1 of 3")`)
	h.acts(`[data-act="pace-operation"]`, "rate", "100/s")
	h.until(`document.querySelector(".progress")?.innerText.includes("3 of 3") && document.querySelector(".lead .state-done")`)
}

func cancelMany(h hand) {
	queue := "many-" + h.with
	file := filepath.Join(h.Dir, queue+".jsonl")
	if err := os.WriteFile(file, []byte(strings.Repeat(`{"payload":{},"delay":"1h"}`+"\n", 1001)), 0o600); err != nil {
		h.Fatal(err)
	}
	h.sluice(h.T, "enqueue", queue, "--file", file)
	h.goTo("/jobs?q=queue:" + queue)
	if h.with == "mouse" {
		h.click(`#all-matching > summary`)
	} else {
		h.keys("*")
		h.until(`document.querySelector("#all-matching[open]").contains(document.activeElement)`)
	}
	h.act(`[data-act="all-cancel"]`, "confirm", "1000")
	h.until(`document.activeElement?.matches("#dialog [role=alert]") && document.activeElement.innerText.includes("must be 1001")`)
	h.fill("confirm", "1001")
	h.press(`#dialog button[type=submit]`)
	h.until(`location.pathname.startsWith("/operations/") && document.querySelector(".progress")?.innerText.includes("1 001 of 1 001")`)
}

func holdAJob(h hand) {
	id := "01a1fb72-1dea-7abc-8fc6-99e481752200"
	if h.with == "mouse" {
		id = "01a1fb72-1dea-7abc-8fc6-99e481752201"
	}
	h.sluice(h.T, "enqueue", "hold", "{}", "--delay", "1h", "--id", id)
	h.goTo("/jobs/" + id)
	h.acts(`[data-act="hold-jobs"]`, "reason", "ask the bank first")
	h.until(`document.querySelector(".lead .state-blocked") && document.querySelector(".lead").innerText.includes(": ask the bank first")`)
	h.acts(`[data-act="release-jobs"]`)
	h.until(`document.querySelector(".lead .state-scheduled")`)
}

func useASchedule(h hand) {
	name := "nightly-" + h.with
	h.sluice(h.T, "schedules", "set", name, "--queue", "reports", "--cron", "30 2 1 1 *")
	h.goTo("/schedules")
	act := func(verb string) string { return row(name) + ` [data-act="` + verb + `-schedule"]` }
	h.acts(act("pause"), "reason", "no reports today")
	h.until(`document.querySelector('` + act("resume") + `') && document.querySelector('` + row(name) + `').innerText.includes("no reports today")`)
	h.acts(act("resume"))
	h.until(`document.querySelector('` + act("pause") + `')`)
	h.acts(act("trigger"))
	h.until(`document.querySelector('` + row(name) + ` .result')`)
}

func silenceAnAlert(h hand) {
	rule := "waiting-" + h.with
	h.sluice(h.T, "enqueue", "alert-"+h.with, "{}")
	h.sluice(h.T, "alerts", "set", rule, "metric=ready", "threshold=0", "severity=note", "summary=jobs wait", "--queue", "alert-"+h.with)
	h.goTo("/alerts")
	h.acts(row(rule)+` [data-act="silence-alert"]`, "for", "2h", "reason", "it is known")
	mine := `[...document.querySelectorAll("tr[id^=silence-]")].find((tr) => tr.innerText.includes(` + quote(rule) + `))`
	h.until(mine)
	h.acts(`#` + h.text(mine+".id") + ` [data-act="end-silence"]`)
	h.until(`!` + mine)
}
