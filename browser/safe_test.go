package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// hostile are texts that do harm if a page takes them for HTML, an attribute, a script or an address. Each sets the
// same variable, which the tests read.
var hostile = []string{
	`<script>window.harmed=1</script>`, `"><script>window.harmed=1</script>`, `'><script>window.harmed=1</script>`,
	`</td><script>window.harmed=1</script>`, `</title><script>window.harmed=1</script>`, `</textarea><script>window.harmed=1</script>`,
	`</script><script>window.harmed=1</script>`, `<!--><script>window.harmed=1</script>-->`, `<img src=x onerror=window.harmed=1>`,
	`"><img src=x onerror=window.harmed=1>`, `'><img src=x onerror=window.harmed=1>`, `<svg onload=window.harmed=1>`,
	`<svg><script>window.harmed=1</script></svg>`, `<svg><animate onbegin=window.harmed=1 attributeName=x dur=1s>`, `<body onload=window.harmed=1>`,
	`<iframe srcdoc="<script>parent.harmed=1</script>">`, `<iframe src="javascript:parent.harmed=1">`, `<object data="javascript:window.harmed=1">`,
	`<embed src="javascript:window.harmed=1">`, `<a href="javascript:window.harmed=1" id=x>x</a>`, `javascript:window.harmed=1`,
	`<details open ontoggle=window.harmed=1>`, `<input autofocus onfocus=window.harmed=1>`, `<select autofocus onfocus=window.harmed=1>`,
	`<video><source onerror=window.harmed=1></video>`, `<audio src=x onerror=window.harmed=1>`, `<marquee onstart=window.harmed=1>`,
	`<style>@import "javascript:window.harmed=1"</style>`, `<link rel=stylesheet href="javascript:window.harmed=1">`, `<meta http-equiv=refresh content="0;url=javascript:window.harmed=1">`,
	`<base href="//evil.example/">`, `<form action="javascript:window.harmed=1"><button id=x>x`, `" onmouseover="window.harmed=1`,
	`' onmouseover='window.harmed=1`, "` onmouseover=`window.harmed=1", `{{constructor.constructor("window.harmed=1")()}}`,
	`${window.harmed=1}`, `<div hx-get="/" hx-trigger="load" hx-on:click="window.harmed=1">`, `<hx-partial hx-target="#main"><img src=x onerror=window.harmed=1></hx-partial>`,
	`&lt;img src=x onerror=window.harmed=1&gt;`,
}

// parts are elements that a hostile text would be, and that no page has.
const parts = `:is(#main, #dialog) :is(script, iframe, object, embed, base, meta, [onerror], [onload], a[href^='javascript:'])`

func TestHostileTextsAreInertOnEveryPage(t *testing.T) {
	t.Parallel()
	if len(hostile) != 40 {
		t.Fatalf("there are %d texts", len(hostile))
	}
	s := serving(t)
	var lines strings.Builder
	for i, text := range hostile {
		fmt.Fprintf(&lines, `{"payload":{"text":%s},"key":%s,"tenant":%s,"labels":{"text":%s}}`+"\n", quote(text), quote(fmt.Sprint(text, i)), quote(text), quote(text))
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "hostile.jsonl"), []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	s.sluice(t, "enqueue", "mail", "--file", filepath.Join(s.Dir, "hostile.jsonl"))
	program := filepath.Join(s.Dir, "fail")
	if err := os.WriteFile(program, []byte("#!/bin/sh\ncat >&2\nexit 1\n"), 0o700); err != nil { //nolint:gosec // it must run
		t.Fatal(err)
	}
	s.sluice(t, "settings", "set", "mail", "max_attempts=1", "--reason", hostile[0]+hostile[8])
	s.sluiceExits(t, 6, "work", "mail", "--until-empty", "--", program)
	s.sluice(t, "enqueue", "held", "{}", "--hold", hostile[9])
	s.sluice(t, "pause", "held", "--reason", hostile[1])
	s.sluice(t, "tenants", "set", hostile[0], "weight=2", "--reason", hostile[8])
	s.sluice(t, "limits", "set", "bank", "concurrency=5", "--reason", hostile[0])
	s.sluice(t, "limits", "close", "bank", "--reason", hostile[8])
	s.sluice(t, "schedules", "set", "nightly", "--queue", "reports", "--cron", "30 2 1 1 *", "--payload", `{"text":`+quote(hostile[0])+`}`)
	s.sluice(t, "schedules", "pause", "nightly", "--reason", hostile[8])
	s.sluice(t, "alerts", "set", "waiting", "metric=ready", "threshold=0", "severity=note", "summary="+hostile[0], "--queue", "mail")
	s.sluice(t, "cancel", "--all", "--where", "queue:held", "--detach", "--reason", hostile[0])
	p := open(t, s, "/")
	p.forgives("404")
	p.forgives("422")
	harmed := func(where string) {
		t.Helper()
		p.js(`document.querySelectorAll("#live details").forEach((d) => (d.open = true))`)
		p.until(`!document.querySelector(".htmx-request")`)
		if p.is(`window.harmed || document.querySelector(` + quote(parts) + `)`) {
			t.Errorf("%s: a text has become a part of the page", where)
		}
	}
	for _, path := range append(pathsOf(t, p), "/jobs?size=200&state=dead&cols=queue&cols=tenant&cols=key&cols=labels&cols=error", "/jobs?q="+"%3Cscript%3Ewindow.harmed%3D1%3C%2Fscript%3E", "/"+strings.ReplaceAll("<script>", "/", "")) {
		p.goTo(path)
		harmed(path)
	}
	p.goTo("/jobs?size=200&state=dead")
	var jobs []string
	decode(t, p.js(`[...document.querySelectorAll("#live tbody th a")].map((a) => new URL(a.href).pathname)`), &jobs)
	for _, path := range jobs { // each has one of the texts
		p.goTo(path)
		harmed(path)
	}
	if len(jobs) != len(hostile) {
		t.Errorf("%d jobs were opened, want one for each text", len(jobs))
	}
	for _, one := range []struct{ path, act string }{{jobs[0], "clone-job"}, {"/tenants/" + url.PathEscape(hostile[0]), "set-tenant"}, {"/jobs?q=state:dead", "all-requeue"}} {
		p.goTo(one.path)
		p.js(`document.querySelector('[data-act="` + one.act + `"]').click()`)
		p.until(`document.querySelector("#dialog[open] button[type=submit]")`)
		harmed("the dialog " + one.act)
	}
	p.goTo("/jobs?size=200&cols=key")
	if n := string(p.js(`[...document.querySelectorAll("#live td")].filter((d) => d.textContent.includes("harmed")).length`)); n == "0" {
		t.Error("no page shows any of the texts")
	}
}

// TestForgedRequestsAreRefused sends requests that other sites could make a browser send, and requests that no page
// sends.
func TestForgedRequestsAreRefused(t *testing.T) {
	t.Parallel()
	s := serving(t)
	s.sluice(t, "enqueue", "mail", "{}", "--delay", "1h")
	paused := func() bool {
		answer, err := http.Get(s.url + "queues")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		page := new(strings.Builder)
		_ = answer.Write(page)
		return strings.Contains(page.String(), "state-paused")
	}
	for name, c := range map[string]struct {
		method, path, host, body string
		header                   map[string]string
	}{
		"a form of another site":                {header: map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}},
		"a form of a site beside":               {header: map[string]string{"Sec-Fetch-Site": "same-site", "Origin": "https://beside.example"}},
		"an old browser's form of another site": {header: map[string]string{"Origin": "https://evil.example"}},
		"a form of a page without an origin":    {header: map[string]string{"Origin": "null"}},
		"a form of another port":                {header: map[string]string{"Origin": "http://127.0.0.1:1"}},
		"another host name, by a changed DNS":   {host: "evil.example"},
		"a script of another site, to the API":  {path: "api/v1/queues/mail/pause", body: "{}", header: map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site", "Content-Type": "application/json"}},
		"a form of another site, to the API":    {path: "api/v1/queues/mail/pause", body: "reason=x", header: map[string]string{"Content-Type": "text/plain", "Origin": "https://evil.example"}},
		"a link of another site":                {method: http.MethodGet, header: map[string]string{"Sec-Fetch-Site": "cross-site"}},
		"a form with the method of a link":      {method: http.MethodGet},
		"another method by a hidden field":      {method: http.MethodGet, path: "do/pause-queue?queue=mail&_method=POST"},
	} {
		method, path, body := c.method, c.path, c.body
		if method == "" {
			method = http.MethodPost
		}
		if path == "" {
			path, body = "do/pause-queue", "queue=mail&reason=x&act_id=01a1fb72-1dea-7abc-8fc6-99e4817522bb"
		}
		if method == http.MethodGet && !strings.Contains(path, "?") {
			path, body = path+"?"+body, ""
		}
		request, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for name, value := range c.header {
			request.Header.Set(name, value)
		}
		if c.host != "" {
			request.Host = c.host
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if method == http.MethodPost && answer.StatusCode < 400 {
			t.Errorf("%s: the answer is %s", name, answer.Status)
		}
		if paused() {
			t.Fatalf("%s: it has paused the queue", name)
		}
	}
	kept := url.Values{"queue": {"mail"}, "reason": {"x"}, "act_id": {strings.TrimSpace(s.sluice(t, "enqueue", "mail", "{}", "--delay", "1h"))}}
	for range 2 { // the second time, somebody repeats a request that they kept
		answer, err := http.PostForm(s.url+"do/pause-queue", kept)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		s.sluice(t, "resume", "mail")
	}
	if n := strings.Count(s.sluice(t, "settings", "history", "mail"), "paused false → true"); n != 1 {
		t.Errorf("a kept request, sent again, has paused the queue %d times, want once", n)
	}
}

// TestNoOtherSiteCanShowTheConsoleInAFrame: otherwise a site could make people click on things that they do not see.
func TestNoOtherSiteCanShowTheConsoleInAFrame(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<iframe src="%squeues" onload="document.title='loaded'"></iframe>`, shop.url) // the client may have gone
	}))
	t.Cleanup(other.Close)
	ctx, leave := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(leave)
	p := &tab{T: t, ctx: ctx, url: other.URL}
	if err := chromedp.Listen(ctx, p.note); err != nil {
		t.Fatal(err)
	}
	p.does(chromedp.Navigate(other.URL))
	p.until(`document.title === "loaded"`) // the frame then shows the browser's own page about the refusal
	p.mu.Lock()
	defer p.mu.Unlock()
	if !strings.Contains(strings.Join(p.wrong, "\n"), "frame-ancestors") {
		t.Errorf("the browser has shown the console: it says %q", p.wrong)
	}
}
