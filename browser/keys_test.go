package browser_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// presses makes the page note the buttons of acts that are pressed, and opens no dialog. A key presses its button before the
// browser answers, so that a test sees also that a key presses none.
func (p *tab) presses() {
	p.Helper()
	p.js(`(window.pressed = [], document.addEventListener("click", (event) => {
		const button = event.target.closest("[data-act]");
		if (!button) return;
		event.stopImmediatePropagation();
		pressed.push(button.getAttribute("hx-get") || button.getAttribute("hx-post"));
	}, true), 1)`)
}

// pressed returns the buttons that a key has pressed.
func (p *tab) pressed(key string) string {
	p.Helper()
	p.js(`pressed = []`)
	p.keys(key)
	return p.text(`pressed.join(" ")`)
}

// at walks to a row with j, and fails unless it is there.
func (p *tab) at(id string) {
	p.Helper()
	for range 20 {
		p.keys("j")
		if p.is(`document.activeElement.closest("tr")?.id === ` + quote(id)) {
			return
		}
	}
	p.Fatalf("j does not lead to the row %s\n%s", id, p.now())
}

func TestAKeyActsOnTheRowWhereThePersonIs(t *testing.T) {
	t.Parallel()
	s := serving(t)
	s.sluice(t, "enqueue", "crawls", "{}", "--tenant", "pro", "--delay", "1h")
	s.sluice(t, "enqueue", "exports", "{}", "--tenant", "acme", "--delay", "1h")
	s.sluice(t, "pause", "exports")
	s.sluice(t, "tenants", "set", "acme", "weight=2")
	s.sluice(t, "tenants", "set", "pro", "weight=2")
	s.sluice(t, "tiers", "add", "pro") // has the name of a tenant

	t.Run("queues", func(t *testing.T) {
		t.Parallel()
		p := open(t, s, "/queues")
		p.presses()
		if got := p.pressed("p"); got != "" {
			t.Errorf("p without a row has pressed %s", got)
		}
		p.at("queue-crawls")
		for key, want := range map[string]string{"p": "/do/pause-queue?queue=crawls", "K": "/do/pause-queue?queue=crawls", "D": ""} {
			if got := p.pressed(key); got != want {
				t.Errorf("%s at crawls has pressed %q, want %q", key, got, want)
			}
		}
		p.at("queue-exports")
		for key, want := range map[string]string{"p": "/do/resume-queue?queue=exports", "K": ""} {
			if got := p.pressed(key); got != want {
				t.Errorf("%s at exports has pressed %q, want %q", key, got, want)
			}
		}
		p.js(`document.querySelector('` + row("crawls") + ` [data-act]').focus()`) // as Tab and the mouse do
		if got := p.pressed("p"); got != "/do/pause-queue?queue=crawls" {
			t.Errorf("p at the focus has pressed %q", got)
		}
	})
	t.Run("tenants", func(t *testing.T) {
		t.Parallel()
		p := open(t, s, "/tenants")
		p.presses()
		p.at("tenant-pro")
		if got := p.pressed("D"); got != "" {
			t.Errorf("D at a tenant has pressed %s", got)
		}
		p.at("tier-pro") // goes on from the tenant of the same name
		for key, want := range map[string]string{"p": "", "D": "/do/delete-tier?tier=pro"} {
			if got := p.pressed(key); got != want {
				t.Errorf("%s at the tier has pressed %q, want %q", key, got, want)
			}
		}
	})
	t.Run("a queue", func(t *testing.T) {
		t.Parallel()
		p := open(t, s, "/queues/exports")
		p.presses()
		for key, want := range map[string]string{"p": "/do/resume-queue?queue=exports", "D": "/do/delete-queue?queue=exports"} {
			if got := p.pressed(key); got != want {
				t.Errorf("%s has pressed %q, want %q", key, got, want)
			}
		}
	})
}

func TestKeysChooseJobsAndActOnThem(t *testing.T) {
	t.Parallel()
	s := serving(t)
	for range 3 {
		s.sluice(t, "enqueue", "mail", "{}", "--delay", "1h")
	}
	p := open(t, s, "/jobs?cols=queue&cols=error")
	p.presses()
	chosen := func(after string, want int) {
		t.Helper()
		p.keys(strings.Split(after, "")...)
		if got := string(p.js(`document.querySelectorAll("#live tbody :checked").length`)); got != string(rune('0'+want)) {
			t.Errorf("after %s, %s jobs are chosen, want %d", after, got, want)
		}
	}
	for key, want := range map[string]string{"r": "", "C": "", "D": "", "p": "", "K": ""} {
		if got := p.pressed(key); got != want {
			t.Errorf("%s without a row has pressed %q", key, got)
		}
	}
	p.keys("j")
	if got := p.pressed("K"); got != "" {
		t.Errorf("K has pressed %q", got)
	}
	chosen("", 0)
	for key, want := range map[string]string{"r": "/ask/retry-jobs", "C": "/ask/cancel-jobs", "D": "/ask/delete-jobs"} {
		if got := p.pressed(key); got != want {
			t.Errorf("%s has pressed %q, want %q", key, got, want)
		}
		chosen("x", 0) // the key has chosen the row
	}
	chosen("x", 1)
	chosen("jjX", 3)
	chosen("A", 3)
	chosen("A", 0)
	p.click(`#live tbody tr:nth-child(2) input`)
	chosen("x", 0) // the mouse has left the focus in the box
	p.keys("e")
	p.until(`document.querySelector("#live tbody tr:nth-child(2) details[open] .peek a")`)
	p.js(`(() => { const write = navigator.clipboard.writeText; navigator.clipboard.writeText = (text) => ((window.copied = text), write.call(navigator.clipboard, text)); })()`)
	p.keys("c")
	p.until(`window.copied === document.querySelector("#live tbody tr:nth-child(2)").dataset.row`)
}

func TestKeysOfThePage(t *testing.T) {
	t.Parallel()
	p := open(t, shop, "/")
	for key, window := range map[string]string{"1": "15m", "2": "1h", "3": "6h", "4": "24h", "5": "7d"} {
		p.keys(key)
		p.until(`new URL(location).searchParams.get("window") === "` + window + `" && document.body.dataset.connection === "live"`)
	}
	theme := func() string { return p.text(`document.documentElement.dataset.theme`) }
	for _, want := range []string{"light", "dark", "contrast", "system"} {
		if p.keys("t"); theme() != want {
			t.Errorf("t has set the look %q, want %q", theme(), want)
		}
	}
	p.keys("l")
	p.until(`document.body.dataset.connection === "paused"`)
	p.keys("l")
	p.until(`document.body.dataset.connection === "live"`)
	p.keys("?")
	p.until(`document.querySelector("#help[open]")`)
	p.accessible("help")
	p.keys("t") // a key for the page, behind an open dialog
	p.click(`#keys-on`)
	p.keys(kb.Escape)
	p.until(`!document.querySelector("#help[open]")`)
	p.goTo("/queues") // where single keys stay off
	if p.keys("t", "g", "j"); theme() != "system" || p.is(`document.querySelector("#live tr.here") || location.pathname !== "/queues"`) {
		t.Errorf("single keys work, though they are off: the look is %q", theme())
	}
	p.does(chromedp.KeyEvent("k", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	p.until(`document.querySelector("#palette[open]")`)
	p.accessible("palette")
}

// TestADialogCopiesWhatWasTyped: the command and the call have the values of the fields, and not those at the opening.
func TestADialogCopiesWhatWasTyped(t *testing.T) {
	t.Parallel()
	s := serving(t)
	s.sluice(t, "settings", "set", "mail", "rate=3/s")
	p := open(t, s, "/queues/mail")
	p.click(`.acts [data-act="set-setting"]`)
	p.until(`document.querySelector("#dialog[open] #field-value")`)
	p.accessible("dialog")
	copies := `[...document.querySelectorAll("#dialog [data-copy]")].map((b) => b.dataset.copy + b.previousElementSibling.textContent).join("\n")`
	at := p.text(copies)
	p.js(`document.getElementById("field-value").select()`)
	p.keys("9", "/", "s")
	p.click(`#field-reason`)
	p.keys("w", "h", "y", " ", "n", "o", "t")
	p.until(copies + `.includes("rate=9/s") && ` + copies + `.includes("--reason='why not'") && ` + copies + `.includes('"reason":"why not"') && !` + copies + `.includes("3/s")`)
	if p.is(`document.activeElement.id !== "field-reason"`) || !strings.Contains(at, "rate=3/s") {
		t.Errorf("the dialog began with %s, and the focus is at %s", at, p.text(`document.activeElement.outerHTML`))
	}
	p.click(`#dialog [data-close]`)
	p.until(`!document.querySelector("#dialog[open]")`)
	p.goTo("/jobs")
	p.goTo("/schedules")
	p.click(`[data-act="new-schedule"]`)
	p.until(`document.querySelector("#dialog[open] #field-schedule")`)
	p.click(`#field-schedule`)
	p.keys("n", "1")
	p.until(copies + `.includes("schedules set n1 ")`)
}
