package browser_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	window "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
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
	s.sluice(t, "enqueue", "a-first", "{}", "--delay", "1h") // the new row comes before the focused one
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

func TestWhatAPersonHasOpenedStaysOpen(t *testing.T) {
	t.Parallel()
	s := serving(t)
	s.sluice(t, "enqueue", "mail", "{}", "--delay", "1h")
	p := open(t, s, "/jobs?q=queue:mail")
	p.click(`#all-matching > summary`)
	p.click(`#rows details > summary`)
	s.sluice(t, "enqueue", "mail", "{}", "--delay", "1h")
	p.until(`!document.querySelector("#news").hidden`)
	if !p.is(`document.querySelector("#all-matching").open && document.querySelector("#rows details").open`) {
		t.Error("a new picture has closed what the person had opened")
	}
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

// TestAnOpenPageComesBackAfterARestart ends the server, and starts another one at its address.
func TestAnOpenPageComesBackAfterARestart(t *testing.T) {
	t.Parallel()
	s := serving(t)
	s.sluice(t, "enqueue", "mail", "{}", "--delay", "1h")
	p := open(t, s, "/queues")
	p.forgives("ERR_")
	p.forgives("5")
	port := s.port()
	s.stop()
	p.until(`document.body.dataset.connection === "reconnecting"`)
	if !p.is(`document.querySelector('` + row("mail") + `')`) {
		t.Error("the last picture is gone")
	}
	p.until(`/^[1-9]\d* s$/.test(document.querySelector("#connection .seconds").textContent)`)
	if p.text(`getComputedStyle(document.querySelector(".act")).pointerEvents`) != "none" {
		t.Error("acts can be clicked while the server is away")
	}
	s.sluice(t, "enqueue", "parcels", "{}", "--delay", "1h")
	s.serve(t, "--listen", "127.0.0.1:"+port)
	p.until(`document.body.dataset.connection === "live" && document.querySelector('` + row("parcels") + `') && !document.querySelector("#connection .seconds").textContent`)
}

// TestAPageSaysThatItsConnectionIsDead freezes the server, which closes no connection then. The clock of the page goes on by a minute, and
// later the page is told that it is not paused any more.
func TestAPageSaysThatItsConnectionIsDead(t *testing.T) {
	t.Parallel()
	s := serving(t)
	s.sluice(t, "enqueue", "mail", "{}", "--delay", "1h")
	p := open(t, s, "/queues")
	p.forgives("ERR_")
	if err := s.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Process.Signal(syscall.SIGCONT) })
	p.js(`(() => { const now = Date.now; Date.now = () => now() + 60_000; return 1 })()`)
	p.until(`document.body.dataset.connection === "reconnecting"`)
	const press = `(document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "l", bubbles: true })), 1)`
	p.js(press)
	p.until(`document.body.dataset.connection === "paused"`)
	p.js(press)
	p.until(`document.body.dataset.connection === "reconnecting"`)
	if err := s.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	s.sluice(t, "enqueue", "parcels", "{}", "--delay", "1h")
	p.until(`document.body.dataset.connection === "live" && document.querySelector('` + row("parcels") + `')`)
}

func TestADoubleClickOnAChartShowsAllAgain(t *testing.T) {
	t.Parallel()
	p := open(t, shop, "/?window=6h&from="+time.Now().UTC().Add(-time.Hour).Format(time.RFC3339))
	p.until(`document.querySelector("figure.chart .u-over")`)
	p.js(`document.querySelector("figure.chart .u-over").dispatchEvent(new MouseEvent("dblclick", { bubbles: true }))`)
	p.until(`location.search === "?window=6h"`)
}

// point moves the mouse to the middle of an element, and returns the position.
func (p *tab) point(selector string) (x, y float64) {
	p.Helper()
	var at [2]float64
	decode(p.T, p.js(`(() => { const box = document.querySelector(`+quote(selector)+`).getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2] })()`), &at)
	p.does(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: at[0], Y: at[1]})
		return chromedp.Void{}, err
	})
	return at[0], at[1]
}

// TestAClickHitsTheRowThatWasAimedAt adds rows above the row between the move of the mouse and the click.
func TestAClickHitsTheRowThatWasAimedAt(t *testing.T) {
	t.Parallel()
	s := serving(t)
	s.sluice(t, "enqueue", "mail", "{}", "--delay", "1h")
	s.sluice(t, "enqueue", "z-last", "{}", "--delay", "1h")
	p := open(t, s, "/queues")
	const order = `[...document.querySelectorAll("#live tr[data-row]")].map((tr) => tr.dataset.row).join()`
	x, y := p.point(row("mail") + ` [data-act="pause-queue"]`)
	s.sluice(t, "enqueue", "a-first", "{}", "--delay", "1h")
	p.until(order + ` === "mail,z-last,a-first"`)
	p.does(chromedp.MouseClickXY(x, y))
	p.until(`document.querySelector("#dialog[open]")?.innerText.includes("Pause mail")`)
	p.click(`#dialog [data-close]`)
	p.point("h1")
	p.until(order + ` === "a-first,mail,z-last"`)
}

// window minimizes the window of a page, or restores it.
func (p *tab) window(state window.WindowState) {
	p.Helper()
	p.does(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: state == window.WindowStateNormal})
		if err != nil {
			return chromedp.Void{}, err
		}
		of, err := cdp.Call(ctx, t, window.GetWindowForTarget, window.GetWindowForTargetParams{})
		if err != nil {
			return chromedp.Void{}, err
		}
		_, err = cdp.Call(ctx, t, window.SetWindowBounds, window.SetWindowBoundsParams{WindowID: of.WindowID, Bounds: &window.Bounds{WindowState: state}})
		return chromedp.Void{}, err
	})
}

func TestAHiddenTabEndsItsStreamAndComesBack(t *testing.T) {
	t.Parallel()
	s := serving(t)
	p := open(t, s, "/queues")
	p.untilStreams(1)
	p.window(window.WindowStateMinimized)
	p.until(`document.hidden`)
	p.untilStreams(0)
	s.sluice(t, "enqueue", "mail", "{}", "--delay", "1h")
	p.window(window.WindowStateNormal)
	p.until(`!document.hidden && document.querySelector('` + row("mail") + `')`)
	p.untilStreams(1)
}

// signIn signs in by a token, on the page that asks for it, and waits until the page that was asked for is live.
func (p *tab) signIn(token string) {
	p.Helper()
	p.until(`location.pathname === "/login" && document.getElementById("token")`)
	p.js(`document.getElementById("token").value = ` + quote(token))
	p.click(`form button`)
	p.until(`location.pathname === "/queues" && document.body.dataset.connection === "live"`)
}

// TestASessionThatEndsWhileTheTabIsHidden: who comes back to the page is asked to sign in.
func TestASessionThatEndsWhileTheTabIsHidden(t *testing.T) {
	t.Parallel()
	s := stored(t)
	token := strings.TrimSpace(s.sluice(t, "tokens", "create", "ada", "--role", "viewer"))
	s = s.serve(t, "--login")
	p := open(t, s, "/queues")
	p.signIn(token)
	p.window(window.WindowStateMinimized)
	p.until(`document.hidden`)
	p.untilStreams(0)
	p.forgives("401")
	s.sluice(t, "tokens", "revoke", "ada") // takes effect within 5 s
	for string(p.js(`fetch("/api/v1/whoami").then((r) => r.status)`)) != "401" {
		time.Sleep(50 * time.Millisecond)
	}
	p.window(window.WindowStateNormal)
	p.until(`location.pathname === "/login"`)
}

// TestASessionThatEndsUnderAnOpenPage: acts are refused at once, and the page asks to sign in. Afterwards the page
// comes back.
func TestASessionThatEndsUnderAnOpenPage(t *testing.T) {
	t.Parallel()
	s := stored(t)
	first := strings.TrimSpace(s.sluice(t, "tokens", "create", "ada", "--role", "operator"))
	second := strings.TrimSpace(s.sluice(t, "tokens", "create", "ada-again", "--role", "operator"))
	s.sluice(t, "enqueue", "mail", "{}", "--delay", "1h")
	s = s.serve(t, "--login")
	p := open(t, s, "/queues")
	p.signIn(first)
	p.click(row("mail") + ` [data-act="pause-queue"]`)
	p.until(`document.querySelector("#dialog[open] button[type=submit]")`)
	p.forgives("401")
	s.sluice(t, "tokens", "revoke", "ada") // takes effect within 5 s
	for string(p.js(`fetch("/api/v1/whoami").then((r) => r.status)`)) != "401" {
		time.Sleep(50 * time.Millisecond)
	}
	p.js(`document.querySelector("#dialog button[type=submit]")?.click()`)
	p.until(`document.querySelector("#dialog[open] [role=alert]") || location.pathname === "/login"`) // the page may have noticed it before the click
	p.signIn(second)
	if !p.is(`document.querySelector('` + row("mail") + ` [data-act="pause-queue"]')`) {
		t.Error("somebody without a session has paused the queue")
	}
}

// TestTwoPeopleEditOneJob: the second person learns that the job has changed, and keeps the text that they typed.
func TestTwoPeopleEditOneJob(t *testing.T) {
	t.Parallel()
	const id = "01a1fb72-1dea-7abc-8fc6-99e4817522bb"
	s := serving(t)
	s.sluice(t, "enqueue", "mail", "{}", "--delay", "1h", "--id", id)
	people := []*tab{open(t, s, "/jobs/"+id), open(t, s, "/jobs/"+id)}
	for i, p := range people {
		p.click(`[data-act="edit-job"]`)
		p.until(`document.querySelector("#dialog[open] #field-priority")`)
		p.js(`document.getElementById("field-priority").value = "` + []string{"2", "9"}[i] + `"`)
	}
	people[0].click(`#dialog button[type=submit]`)
	people[0].until(`!document.querySelector("#dialog[open]")`)
	people[1].click(`#dialog button[type=submit]`)
	people[1].until(`document.querySelector("#dialog[open] [role=alert]")?.innerText.includes("changed") && document.getElementById("field-priority").value === "9"`)
	for _, p := range people {
		p.until(`[...document.querySelectorAll("dt")].find((dt) => dt.textContent === "Priority").nextElementSibling.textContent === "2"`)
	}
}
