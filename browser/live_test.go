package browser_test

import (
	"path/filepath"
	"testing"
)

func TestAPageChangesWithoutAReload(t *testing.T) {
	t.Parallel()
	s := serving(t)
	s.sluice(t, "enqueue", "mail", "{}", "--delay", "1h")
	p := open(t, s, "/queues")
	p.js(`window.sameDocument = true`)
	s.sluice(t, "enqueue", "parcels", "{}", "--delay", "1h")
	p.until(`document.querySelector('` + row("parcels") + `')`)
	if !p.is(`window.sameDocument`) {
		t.Error("the page was loaded again")
	}
}

func TestFocusAndRowsStayWhileRowsChange(t *testing.T) {
	t.Parallel()
	s := serving(t)
	s.sluice(t, "enqueue", "mail", "{}", "--delay", "1h")
	p := open(t, s, "/queues")
	p.js(`(window.link = document.querySelector('` + row("mail") + ` a'), window.link.focus(), 1)`)
	s.sluice(t, "enqueue", "a-first", "{}", "--delay", "1h") // comes before it
	p.until(`document.querySelector('` + row("a-first") + `')`)
	if !p.is(`document.activeElement === window.link && window.link.isConnected && window.link.closest("tr").dataset.row === "mail"`) {
		t.Error("the focus has left its row: " + p.text(`document.activeElement.outerHTML`))
	}
	p.click(row("mail") + ` [data-act="pause-queue"]`)
	p.until(`document.querySelector("#dialog[open]")?.innerText.includes("Pause mail")`)
	s.sluice(t, "enqueue", "b-second", "{}", "--delay", "1h")
	p.until(`document.querySelector('` + row("b-second") + `')`)
	p.click(`#dialog button[type=submit]`)
	p.until(`document.querySelector('` + row("mail") + ` [data-act="resume-queue"]')`)
}

func TestTwoPeopleSeeTheActsOfEachOther(t *testing.T) {
	t.Parallel()
	s := serving(t)
	s.sluice(t, "enqueue", "mail", "{}", "--delay", "1h")
	ada, bob := open(t, s, "/queues"), open(t, s, "/queues")
	ada.click(row("mail") + ` [data-act="pause-queue"]`)
	ada.until(`document.querySelector("#dialog[open]")`)
	bob.click(row("mail") + ` [data-act="pause-queue"]`)
	bob.until(`document.querySelector("#dialog[open]")`)
	ada.click(`#dialog button[type=submit]`)
	bob.click(`#dialog button[type=submit]`)
	for _, p := range []*tab{ada, bob} {
		p.until(`document.querySelector('` + row("mail") + ` [data-act="resume-queue"]')`)
	}
}

// TestAnOpenPageComesBackAfterARestart: the server ends, and another one answers at its address.
func TestAnOpenPageComesBackAfterARestart(t *testing.T) {
	t.Parallel()
	s := serving(t)
	s.sluice(t, "enqueue", "mail", "{}", "--delay", "1h")
	p := open(t, s, "/queues")
	p.forgives("ERR_")
	p.forgives("5")
	port, folder := s.port(), s.Dir
	s.stop()
	p.until(`document.body.dataset.connection === "reconnecting"`)
	if !p.is(`document.querySelector('` + row("mail") + `')`) {
		t.Error("the last picture is gone")
	}
	if p.text(`getComputedStyle(document.querySelector(".act")).pointerEvents`) != "none" {
		t.Error("acts can be clicked while the server is away")
	}
	s.sluice(t, "enqueue", "parcels", "{}", "--delay", "1h")
	again, err := start(folder, "serve", "--db", "sqlite:"+filepath.Join(folder, "jobs.db"), "--listen", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(again.stop)
	p.until(`document.body.dataset.connection === "live" && document.querySelector('` + row("parcels") + `')`)
}
