package browser_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience is how long tests wait for an event before they fail.
const patience = 2 * time.Minute

// tab is a page that somebody looks at. It fails the test after errors, and after requests to other servers.
type tab struct {
	*testing.T
	ctx context.Context
	url string // the server's URL

	mu      sync.Mutex
	live    map[network.RequestID]bool // the open streams
	wrong   []string
	forgive []string // texts of errors that this test allows
}

// open opens a page in a tab of its own, with its own cookies and choices.
func open(t *testing.T, s *server, path string) *tab {
	t.Helper()
	ctx, leave := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	ctx, stop := context.WithTimeout(ctx, 4*patience)
	p := &tab{T: t, ctx: ctx, url: s.url}
	t.Cleanup(func() {
		stop()
		leave()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, one := range p.wrong {
			t.Error(one)
		}
	})
	if err := chromedp.Listen(ctx, p.note); err != nil {
		t.Fatal(err)
	}
	p.does(chromedp.EmulateViewport(1440, 900), seen)
	p.goTo(path)
	return p
}

// seen makes a page believe that a person looks at it. The browser shows only one tab at a time.
func seen(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
	_, err := cdp.Call(ctx, t, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	return chromedp.Void{}, err
}

// note records errors. The browser calls it for each event of the tab.
func (p *tab) note(event any) {
	text := ""
	switch e := event.(type) {
	case *network.EventLoadingFinished:
		p.stream(e.RequestID, false)
	case *network.EventLoadingFailed:
		p.stream(e.RequestID, false)
	case *runtime.EventExceptionThrown:
		text = "a script failed: " + fmt.Sprint(e.ExceptionDetails)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelVerbose { // only advice
			return
		}
		text = fmt.Sprintf("the console of the browser says: %v %s (%s)", e.Entry.Level, e.Entry.Text, e.Entry.URL)
	case *network.EventRequestWillBeSent:
		if strings.Contains(e.Request.URL, "live=1") {
			p.stream(e.RequestID, true)
		}
		if at := e.Request.URL; !strings.HasPrefix(at, p.url) && !strings.HasPrefix(at, "about:") && !strings.HasPrefix(at, "data:") {
			text = "a request to elsewhere: " + at
		}
	}
	if text == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, part := range p.forgive {
		if strings.Contains(text, part) {
			return
		}
	}
	p.wrong = append(p.wrong, text)
}

// stream records that a stream has begun, or that a request has ended.
func (p *tab) stream(id network.RequestID, is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live == nil {
		p.live = make(map[network.RequestID]bool)
	}
	if p.live[id] = is; !is {
		delete(p.live, id)
	}
}

// untilStreams waits until the page has a number of open streams.
func (p *tab) untilStreams(want int) {
	p.Helper()
	now := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.live)
	}
	for until := time.Now().Add(patience); now() != want; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			p.Fatalf("the page has %d streams, want %d", now(), want)
		}
	}
}

// forgives allows errors that contain a text, such as those after the test has ended the server.
func (p *tab) forgives(part string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgive = append(p.forgive, part)
}

func (p *tab) does(steps ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.Fatal(err)
	}
}

// goTo goes to a path, and waits until the page is live.
func (p *tab) goTo(path string) {
	p.Helper()
	p.does(chromedp.Navigate(p.url + strings.TrimPrefix(path, "/")))
	p.until(`!document.getElementById("live") || ["live", "off"].includes(document.body.dataset.connection)`)
}

// js evaluates an expression, which may be a promise.
func (p *tab) js(expression string) json.RawMessage {
	p.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[json.RawMessage](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatalf("%.200s: %v", expression, err)
	}
	return value
}

// text evaluates an expression to a text.
func (p *tab) text(expression string) (text string) {
	p.Helper()
	if value := p.js(expression); json.Unmarshal(value, &text) != nil {
		p.Fatalf("%s is %s, and no text", expression, value)
	}
	return text
}

// is reports whether an expression is true.
func (p *tab) is(expression string) bool {
	p.Helper()
	return string(p.js("!!("+expression+")")) == "true"
}

// until waits until an expression is true. While pages change, an expression may fail, as an element is missing.
func (p *tab) until(expression string) {
	p.Helper()
	var failed error
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		is, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("!!document.body && !!("+expression+")"))
		if err == nil && is {
			return
		}
		failed = err
	}
	p.Fatalf("never became so: %s (%v)\nThe page says:\n%s", expression, failed, p.now())
}

// now returns the text of the page.
func (p *tab) now() string {
	ctx, stop := context.WithTimeout(context.WithoutCancel(p.ctx), 10*time.Second)
	defer stop()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location + " is " + document.body.dataset.connection + ", " + document.visibilityState + "\n" + document.getElementById("main").innerText.slice(0, 1500) + document.getElementById("dialog").innerText`))
	return text
}

// click clicks the first element that a selector matches.
func (p *tab) click(selector string) {
	p.Helper()
	p.does(chromedp.Click(chromedp.CSS(selector)))
}

// keys presses keys one after the other, and types longer texts.
func (p *tab) keys(keys ...string) {
	p.Helper()
	for _, key := range keys {
		if len(key) != 1 || key[0] < ' ' || key == kb.Delete {
			p.does(chromedp.KeyEvent(key))
			continue
		}
		// One event carries key and letter, as from a keyboard. A page that handles the key gets no letter.
		p.does(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
			for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
				if _, err := cdp.Call(ctx, t, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: kind, Key: key, Text: key}); err != nil {
					return chromedp.Void{}, err
				}
			}
			return chromedp.Void{}, nil
		})
	}
}

// row returns the selector of a table row.
func row(id string) string { return fmt.Sprintf(`#live tr[data-row=%q]`, id) }

// quote writes a text as JavaScript.
func quote(text string) string {
	quoted, _ := json.Marshal(text) // a string always encodes
	return string(quoted)
}
