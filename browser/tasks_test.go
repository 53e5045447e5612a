package browser_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func TestAQueueIsPausedAndResumedByMouse(t *testing.T) {
	t.Parallel()
	s := serving(t)
	s.sluice(t, "enqueue", "mail", "{}", "--delay", "1h")
	p := open(t, s, "/queues")
	p.click(row("mail") + ` [data-act="pause-queue"]`)
	p.until(`document.querySelector("#dialog[open] #field-reason")`)
	p.js(`document.getElementById("field-reason").value = "the server moves"`)
	p.click(`#dialog button[type=submit]`)
	p.until(`document.querySelector('` + row("mail") + ` [data-act="resume-queue"]')`) // without a reload
	p.until(`document.querySelector(".toast button")`)
	p.click(`.toast button`)
	p.until(`document.querySelector("#dialog[open]")?.innerText.includes("Resume mail")`)
	p.click(`#dialog button[type=submit]`)
	p.until(`document.querySelector('` + row("mail") + ` [data-act="pause-queue"]')`)
}

func TestAQueueIsPausedByKeyboardAlone(t *testing.T) {
	t.Parallel()
	s := serving(t)
	s.sluice(t, "enqueue", "mail", "{}", "--delay", "1h")
	p := open(t, s, "/")
	p.keys("g", "k")
	p.until(`location.pathname === "/queues" && document.body.dataset.connection === "live"`)
	p.keys("j", "p")
	p.until(`document.querySelector("#dialog[open]")`)
	p.until(`document.getElementById("dialog").contains(document.activeElement)`)
	for !p.is(`document.activeElement.matches("#dialog button[type=submit]")`) {
		p.keys(kb.Tab)
	}
	p.keys(kb.Enter)
	p.until(`document.querySelector('` + row("mail") + ` [data-act="resume-queue"]')`)
	p.until(`!document.querySelector("#dialog[open]")`)
}

// TestAJobIsFoundInThreeKeys: Ctrl K, the pasted ID, Enter.
func TestAJobIsFoundInThreeKeys(t *testing.T) {
	t.Parallel()
	const id = "01a1fb72-1dea-7abc-8fc6-99e4817522bb"
	s := serving(t)
	s.sluice(t, "enqueue", "mail", "{}", "--id", id)
	p := open(t, s, "/")
	p.forgives("404") // the page of a job may not be there yet
	p.does(chromedp.KeyEvent("k", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	p.until(`document.querySelector("#palette[open]") && document.activeElement.id === "palette-text"`)
	p.keys(id, kb.Enter)
	p.until(`location.pathname === "/jobs/` + id + `"`)
}

func TestAJobIsFoundByItsKey(t *testing.T) {
	t.Parallel()
	s := serving(t)
	s.sluice(t, "enqueue", "mail", "{}", "--key", "order-42")
	s.sluice(t, "enqueue", "mail", "{}", "--key", "order-43")
	p := open(t, s, "/jobs")
	p.until(`document.querySelectorAll("#live tbody tr[data-row]").length === 2`)
	p.keys("/")
	p.until(`document.activeElement.matches("input[type=search][name]")`)
	p.keys("key:order-42", kb.Enter)
	p.until(`location.search.includes("order-42") && document.querySelectorAll("#live tbody tr[data-row]").length === 1`)
}
