package console_test

import (
	"bufio"
	"context"
	"html"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/console"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/engine/local"
	"github.com/sluice-queue/sluice/scrub"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/worker"
)

// site is a running console, with the store behind it.
type site struct {
	*httptest.Server
	t       *testing.T
	console *console.Console
	store   sluice.Store
	client  *sluice.Client
	// runs is the store of the engine named local.
	runs sluice.Store
	// reads counts the requests to the API, except those to /whoami.
	reads atomic.Int64
}

// open serves a console to a caller with a role.
func open(t *testing.T, role access.Role, options console.Options) *site {
	t.Helper()
	return openAs(t, access.Caller{Name: "ann", Role: role}, options)
}

// openAs serves a console to a caller, who may have bounds.
func openAs(t *testing.T, caller access.Caller, options console.Options) *site {
	t.Helper()
	// The store itself counts nothing: it would add to the figures of a test that lasts some seconds.
	return openOver(t, memory.New(memory.Options{NoStatistics: true}), caller, options, httpapi.Options{})
}

// openOver serves a console over a store, by an API with other options.
func openOver(t *testing.T, store sluice.Store, caller access.Caller, options console.Options, of httpapi.Options) *site {
	t.Helper()
	s := &site{t: t, store: store}
	s.client = sluice.NewClient(s.store, sluice.ClientOptions{})
	s.runs = memory.New(memory.Options{})
	engines := map[string]engine.Engine{"local": local.New(s.runs, local.Options{Worker: worker.Options{Logger: slog.New(slog.DiscardHandler)}})}
	of.Clean, of.Engines, of.Bounds.Timeout = scrub.Text, engines, time.Minute
	of.Identify = func(*http.Request) (access.Caller, error) { return caller, nil }
	api := httpapi.New(s.store, of)
	options.API = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != httpapi.Root+"/whoami" {
			s.reads.Add(1)
		}
		api.ServeHTTP(w, r)
	})
	c, err := console.New(options)
	if err != nil {
		t.Fatal(err)
	}
	c.WaitForReadings(2 * time.Minute) // for machines that do much else
	s.console = c
	s.Server = httptest.NewServer(http.StripPrefix(options.Base, c))
	t.Cleanup(func() {
		c.Drain()
		s.Close()
	})
	return s
}

// enqueue stores a job.
func (s *site) enqueue(job sluice.NewJob) sluice.ID {
	s.t.Helper()
	if job.Payload == nil {
		job.Payload = []byte("{}")
	}
	receipt, err := s.client.Enqueue(s.t.Context(), job)
	if err != nil {
		s.t.Fatal(err)
	}
	return receipt.ID
}

// page returns a page, and its status.
func (s *site) page(path string) (string, int) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.URL+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.send(request)
}

// do posts the form of an act.
func (s *site) do(act string, values url.Values, header http.Header) (string, int) {
	s.t.Helper()
	if !values.Has("act_id") { // a browser takes it from the dialog
		values = maps.Clone(values)
		values.Set("act_id", sluice.NewID().String())
	}
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.URL+"/do/"+act, strings.NewReader(values.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	for name, value := range header {
		request.Header[name] = value
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return s.send(request)
}

func (s *site) send(request *http.Request) (string, int) {
	s.t.Helper()
	response, err := s.Client().Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text) + response.Header.Get("HX-Trigger"), response.StatusCode
}

// watch returns the messages of a page's stream. A message is HTML, or the name of an event.
func (s *site) watch(path string) <-chan string {
	s.t.Helper()
	return s.watchAs("", path)
}

// watchAs is watch with the header Authorization.
func (s *site) watchAs(who, path string) <-chan string {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	s.t.Cleanup(stop)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", who)
	response, err := s.Client().Do(request) //nolint:bodyclose // the goroutine closes it
	if err != nil {
		s.t.Fatal(err)
	}
	messages := make(chan string, 100)
	go func() {
		defer func() { _ = response.Body.Close() }()
		defer close(messages)
		lines, message := bufio.NewScanner(response.Body), ""
		for lines.Scan() {
			line := lines.Text()
			if line == "" && message != "" {
				messages <- message
				message = ""
			}
			message += strings.TrimPrefix(strings.TrimPrefix(line, "data: "), "event: ")
		}
	}()
	return messages
}

// saying waits for a message that contains a text.
func saying(t *testing.T, messages <-chan string, text string) {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		select {
		case message, more := <-messages:
			if strings.Contains(message, text) {
				return
			}
			if !more {
				t.Fatalf("the stream ended before it said %q", text)
			}
		case <-late:
			t.Fatalf("no message said %q", text)
		}
	}
}

// places are the pages of the side bar.
var places = []string{"/", "/waves", "/tenants", "/limits", "/schedules", "/queues", "/jobs", "/dead", "/operations", "/batches", "/flows", "/workers", "/alerts", "/audit", "/store", "/settings", "/simulator"}

func TestEveryPlaceHasItsPage(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleAdmin, console.Options{Environment: "staging", Store: "SQLite jobs.db"})
	s.enqueue(sluice.NewJob{Queue: "mail"})
	for _, path := range places {
		text, status := s.page(path)
		if status != http.StatusOK || strings.Contains(text, `class="problem"`) {
			t.Errorf("%s: got %d or a problem, want 200", path, status)
		}
		for _, want := range []string{"<h1>", "staging", "SQLite jobs.db", "ann (admin)", `aria-current="page"`, "Copy as CLI", "Copy as API call"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q", path, want)
			}
		}
	}
}

func TestUnknownPagesSayThatTheyAreNotThere(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleAdmin, console.Options{})
	for path, want := range map[string]string{"/nothing": "no page at /nothing", "/alerts/none": "there is no rule none"} {
		if text, status := s.page(path); status != http.StatusNotFound || !strings.Contains(text, want) {
			t.Errorf("%s: %d, want 404 and %q", path, status, want)
		}
	}
}

func TestLinksBeginWithTheBase(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleAdmin, console.Options{Base: "/sluice"})
	s.enqueue(sluice.NewJob{Queue: "mail"})
	text, _ := s.page("/sluice/queues")
	for _, want := range []string{`href="/sluice/"`, `href="/sluice/queues/mail"`, `hx-get="/sluice/do/pause-queue?queue=mail"`, `src="/sluice/static/`, `hx-sse:connect="/sluice/queues?live=1"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

func TestAnActIsDoneByTheAPIAndCanBeTakenBack(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	s.enqueue(sluice.NewJob{Queue: "mail"})
	dialog, _ := s.page("/do/pause-queue?queue=mail")
	for _, want := range []string{"Pause mail: nothing more is claimed", `sluice pause mail`, "/api/v1/queues/mail/pause"} {
		if !strings.Contains(dialog, want) {
			t.Errorf("the dialog lacks %q", want)
		}
	}
	answer, status := s.do("pause-queue", url.Values{"queue": {"mail"}, "reason": {"a look"}}, nil)
	if status != http.StatusNoContent || !strings.Contains(answer, "/do/resume-queue?act_id=") {
		t.Fatalf("got %d %s, want an undo", status, answer)
	}
	queue, err := s.client.Queue(t.Context(), "mail")
	if err != nil || !queue.Settings.Paused || queue.ChangedBy != "ann in the console" || queue.Reason != "a look" {
		t.Errorf("got %+v, %v, want a queue that ann has paused", queue, err)
	}
}

func TestActsOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	s.enqueue(sluice.NewJob{Queue: "mail"})
	if text, _ := s.page("/queues"); !strings.Contains(text, "disabled=\"true\" title=\"the role viewer may not do this\"") {
		t.Error("the viewer's button is not disabled")
	}
	if text, _ := s.do("pause-queue", url.Values{"queue": {"mail"}}, nil); !strings.Contains(text, `class="problem"`) {
		t.Errorf("got %s, want a refusal", text)
	}
	operator := open(t, access.RoleOperator, console.Options{})
	operator.enqueue(sluice.NewJob{Queue: "mail"})
	for name, header := range map[string]http.Header{
		"another site's page": {"Sec-Fetch-Site": {"cross-site"}}, "a page of a neighbour": {"Sec-Fetch-Site": {"same-site"}}, "another origin": {"Origin": {"https://evil.example"}},
	} {
		if _, status := operator.do("pause-queue", url.Values{"queue": {"mail"}}, header); status != http.StatusForbidden {
			t.Errorf("%s got %d, want 403", name, status)
		}
	}
	if queue, err := operator.client.Queue(t.Context(), "mail"); err != nil || queue.Settings.Paused {
		t.Errorf("the queue is paused (%v)", err)
	}
}

func TestProductionAsksForReasons(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{Environment: "Production"})
	s.enqueue(sluice.NewJob{Queue: "mail"})
	if text, _ := s.do("pause-queue", url.Values{"queue": {"mail"}}, nil); !strings.Contains(text, "reason must be given") {
		t.Errorf("got %s, want a demand for a reason", text)
	}
	if _, status := s.do("pause-queue", url.Values{"queue": {"mail"}, "reason": {"a look"}}, nil); status != http.StatusNoContent {
		t.Errorf("with a reason: %d", status)
	}
}

func TestOpenPagesFollowWhatHappens(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleAdmin, console.Options{})
	s.enqueue(sluice.NewJob{Queue: "mail"})
	messages := s.watch("/queues?live=1")
	saying(t, messages, `id="queue-mail"`)
	s.enqueue(sluice.NewJob{Queue: "reports"})
	saying(t, messages, `id="queue-reports"`)
}

func TestManyOpenPagesReadAsOne(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleAdmin, console.Options{})
	s.enqueue(sluice.NewJob{Queue: "mail"})
	var open []<-chan string
	for range 50 {
		open = append(open, s.watch("/queues?live=1"))
	}
	for _, messages := range open {
		saying(t, messages, `id="queue-mail"`)
	}
	before := s.reads.Load()
	s.enqueue(sluice.NewJob{Queue: "reports"})
	for _, messages := range open {
		saying(t, messages, `id="queue-reports"`)
	}
	// A picture costs three reads: of queues, alerts and operations. The change appears in the first or second picture
	// after it.
	if reads := s.reads.Load() - before; reads > 3*3 {
		t.Errorf("50 open pages cost %d reads", reads)
	}
}

func TestFilesAreKeptByBrowsersUntilTheyChange(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleAdmin, console.Options{})
	text, _ := s.page("/")
	_, rest, _ := strings.Cut(text, `href="/static/`)
	name, _, _ := strings.Cut(rest, `"`)
	response, err := s.Client().Get(s.URL + "/static/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK || !strings.Contains(response.Header.Get("Cache-Control"), "immutable") {
		t.Errorf("%s: got %d and Cache-Control %q, want 200 and immutable", name, response.StatusCode, response.Header.Get("Cache-Control"))
	}
	if _, status := s.page("/static/old/" + name); status != http.StatusNotFound {
		t.Errorf("an unknown file: %d", status)
	}
}

func TestSimulatorComparesTwoScenarios(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	s.enqueue(sluice.NewJob{Queue: "mail"})
	of := func(rate string) string {
		return "name: x\nqueues: {mail: {rate: " + rate + "}}\narrivals: [{queue: mail, jobs: 1000}]\nworkers: [{slots: 10, duration: 1ms}]\n"
	}
	text, _ := s.page("/simulator?" + url.Values{"a": {of("100/s")}, "b": {of("10/s")}, "run": {"1"}}.Encode())
	for _, want := range []string{`<td class="number">9s</td>`, `<td class="number">1m39s</td>`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	s.contains("/simulator", `href="/simulator?scenario=noisy-tenant"`, `<a href="/simulator?scenario=three-tiers">three-tiers</a> is too large for this page until it is made smaller: it has 285600 jobs, more than 100000; use sluice sim --scenario three-tiers.`)
	_, example, _ := strings.Cut(text, `<pre tabindex="0">`)
	example, _, _ = strings.Cut(example, "</pre>")
	if text, _ := s.page("/simulator?" + url.Values{"a": {html.UnescapeString(example)}, "run": {"1"}}.Encode()); !strings.Contains(text, "<h3>Checks</h3>") {
		t.Errorf("the example of the page is not simulated: %s", text)
	}
	if text, _ := s.page("/simulator?queue=mail"); !strings.Contains(text, "jobs: 1}") {
		t.Error("the live queue is not in its scenario")
	}
	if text, _ := s.page("/simulator?run=1&a=nonsense"); !strings.Contains(text, `class="problem"`) {
		t.Error("a wrong scenario is not refused")
	}
}
