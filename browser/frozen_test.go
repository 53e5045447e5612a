package browser_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/sluice-queue/sluice/internal/pgtest"
)

// freeze keeps everybody from reading or writing the store, like a process that stops while it holds an exclusive lock.
func (s *server) freeze(t *testing.T) (thaw func()) {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(s.Dir, "jobs.db-shm"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() }) // closing the file ends the lock, too
	all := syscall.Flock_t{Type: syscall.F_WRLCK, Start: 120, Len: 8}
	if err := syscall.FcntlFlock(file.Fd(), syscall.F_SETLKW, &all); err != nil {
		t.Fatal(err)
	}
	return func() {
		all.Type = syscall.F_UNLCK
		if err := syscall.FcntlFlock(file.Fd(), syscall.F_SETLK, &all); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheLastPictureStaysWhileSQLiteIsFrozen(t *testing.T) {
	t.Parallel()
	s := serving(t)
	keepsItsPicture(t, s, func() func() { return s.freeze(t) })
}

// TestTheLastPictureStaysWhilePostgreSQLIsFrozen stops all processes of a PostgreSQL server that no other test uses.
func TestTheLastPictureStaysWhilePostgreSQLIsFrozen(t *testing.T) {
	t.Parallel()
	if err := pgtest.Install(); err != nil {
		t.Fatal(err)
	}
	cluster, err := pgtest.Start(pgtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	keepsItsPicture(t, storedAt(t, t.TempDir(), cluster.URL).serve(t), func() func() { return stopAll(t, cluster.PID) })
}

// stopAll stops a process and its children until goOn is called.
func stopAll(t *testing.T, pid int) (goOn func()) {
	t.Helper()
	var stopped []int
	goOn = sync.OnceFunc(func() {
		for _, one := range stopped {
			_ = syscall.Kill(one, syscall.SIGCONT) // a child may have ended
		}
	})
	t.Cleanup(goOn)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil { // the parent first, so that it starts no more children
		t.Fatal(err)
	}
	stopped = append(stopped, pid)
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		var child, parent int
		var state string
		text, _ := os.ReadFile(path) // the process may have ended
		_, rest, _ := strings.Cut(string(text), ") ")
		if n, _ := fmt.Sscan(rest, &state, &parent); n != 2 || parent != pid {
			continue
		}
		if _, err := fmt.Sscan(string(text), &child); err != nil {
			t.Fatal(err)
		}
		if syscall.Kill(child, syscall.SIGSTOP) == nil {
			stopped = append(stopped, child)
		}
	}
	if len(stopped) < 2 {
		t.Fatalf("process %d has no children to stop", pid)
	}
	return goOn
}

// tops returns the positions of the parts of a page that people read and click.
const tops = `[...document.querySelectorAll("h1, #live, #live tr, .top, footer")].map((e) => Math.round(e.getBoundingClientRect().top)).join()`

// keepsItsPicture checks what people see and can do while a store is frozen, and afterwards.
func keepsItsPicture(t *testing.T, s *server, freeze func() (thaw func())) {
	t.Helper()
	s.sluice(t, "enqueue", "mail", "{}", "--delay", "1h")
	p, late, still := open(t, s, "/queues"), open(t, s, "/workers"), open(t, s, "/queues")
	still.keys("l")
	still.until(`document.body.dataset.connection === "paused"`)
	if p.is(`document.getElementById("age").checkVisibility()`) {
		t.Error("the page shows the age of a live picture")
	}
	p.click(row("mail") + ` [data-act="pause-queue"]`)
	p.until(`document.querySelector("#dialog[open] #field-reason")`)
	before := p.text(tops)
	thaw := freeze()
	p.click(`#dialog button[type=submit]`)
	p.until(`["slow", "stale"].includes(document.body.dataset.connection)`)
	late.forgives("50")
	late.does(chromedp.Navigate(s.url + "queues"))
	late.until(`document.querySelector("#live .problem")`)
	p.until(`document.body.dataset.connection === "stale" && document.querySelector("#dialog[open] [role=alert]")`)
	if !p.is(`document.querySelector('` + row("mail") + `')`) {
		t.Error("the last picture is gone")
	}
	if age := p.text(`document.getElementById("age").checkVisibility() ? document.getElementById("age").innerText : "none"`); !regexp.MustCompile(`^picture of .* ago: .+$`).MatchString(age) {
		t.Errorf("the age of the picture is %q", age)
	}
	if after := p.text(tops); after != before {
		t.Errorf("the strip has moved the page:\n%s before\n%s after", before, after)
	}
	if p.text(`getComputedStyle(document.querySelector(".act")).pointerEvents`) != "none" {
		t.Error("acts can be clicked that cannot be done")
	}
	paused := func() {
		if got := still.text(`document.body.dataset.connection`); got != "paused" {
			t.Errorf("the page that somebody has paused is %s", got)
		}
	}
	paused()
	still.keys("l")
	still.until(`document.body.dataset.connection === "stale"`)
	still.keys("l")
	paused()
	thaw()
	s.sluice(t, "enqueue", "parcels", "{}", "--delay", "1h")
	for _, p := range []*tab{p, late} {
		p.until(`document.body.dataset.connection === "live" && document.querySelector('` + row("parcels") + `') && !document.querySelector("#live .problem")`)
		p.until(`!document.getElementById("age").checkVisibility()`)
	}
	paused()
	still.keys("l")
	still.until(`document.body.dataset.connection === "live" && document.querySelector('` + row("parcels") + `')`)
	p.click(`#dialog button[type=submit]`)
	p.until(`document.querySelector('` + row("mail") + ` [data-act="resume-queue"]')`)
}

// TestAnAlertThatFiresMovesNothing: the strip of an alert and badges in the side bar appear without moving the page.
func TestAnAlertThatFiresMovesNothing(t *testing.T) {
	t.Parallel()
	s := serving(t)
	s.sluice(t, "enqueue", "mail", "{}", "--delay", "1h")
	for _, width := range []int64{1440, 768, 320} {
		p := open(t, s, "/queues")
		p.does(chromedp.EmulateViewport(width, 900))
		before := p.text(tops)
		p.js(`(document.getElementById("strip").innerHTML = "<p><span>Alert dead-letters/mail " + "9 dead letters ".repeat(9) + "</span> <a href='#'>see the alerts</a></p>", 1)`)
		p.js(`document.getElementById("age").hidden = false`)
		p.js(`document.querySelectorAll("#places .badge.idle").forEach((badge) => { badge.classList.remove("idle"); badge.textContent = "123"; })`)
		if n := p.text(`String(document.querySelectorAll("#places .badge").length)`); n != "3" {
			t.Errorf("%s pages have a place for a badge, want those of dead letters, operations and alerts", n)
		}
		if after := p.text(tops); after != before {
			t.Errorf("at %d px the strip has moved the page:\n%s before\n%s after", width, before, after)
		}
		if !p.is(`[...document.querySelectorAll("#strip a")].every((a) => a.getBoundingClientRect().width > 0 && a.getBoundingClientRect().right <= innerWidth)`) {
			t.Errorf("at %d px the link of the strip is outside of the window", width)
		}
	}
}

// TestTheStripTellsOfAllThatIsOff: a text of the strip is whole, or the list of all is beside it.
func TestTheStripTellsOfAllThatIsOff(t *testing.T) {
	t.Parallel()
	s := serving(t)
	for _, queue := range []string{"mail", "reports"} {
		s.sluice(t, "enqueue", queue, "{}", "--delay", "1h")
	}
	s.sluice(t, "enqueue", "exports", "{}")
	s.sluice(t, "alerts", "set", "waiting-for-somebody", "metric=ready", "threshold=0", "severity=note", "summary=jobs wait", "--queue", "exports")
	s.sluice(t, "pause", "mail", "--reason", "a look")
	s.sluice(t, "limits", "set", "bank", "concurrency=5")
	s.sluice(t, "limits", "close", "bank", "--reason", "bank is down")
	p := open(t, s, "/queues")
	p.until(`document.querySelectorAll("#strip p").length === 3`)
	for width, want := range map[int64]string{320: "", 1024: "The queue mail is paused", 1280: "The queue mail is paused", 1920: "The queue mail is paused,The limit bank is closed"} {
		p.does(chromedp.EmulateViewport(width, 700))
		if got := p.text(whole); got != want {
			t.Errorf("at %d px, these texts are whole: %s, want %s", width, got, want)
		}
		p.fits(width)
	}
	p.does(chromedp.EmulateViewport(320, 700))
	p.click(`#strip .more`)
	p.until(`document.querySelector("#more-strip").checkVisibility() && ["The limit bank is closed", "The queue mail is paused", "waiting-for-somebody"].every((text) => document.querySelector("#more-strip").innerText.includes(text))`)
	p.accessible("light")
}

// whole lists the texts of what somebody stopped that the strip shows whole.
const whole = `[...document.querySelectorAll("#strip p:not(.cut) span")].filter((span) => {
	const text = span.getBoundingClientRect(), box = document.querySelector("#strip .off").getBoundingClientRect();
	return span.scrollWidth <= span.clientWidth + 1 && text.width > 0 && text.bottom <= box.bottom && text.right <= box.right;
}).map((span) => span.textContent).join()`
