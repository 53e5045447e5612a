package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/store/memory"
)

// logText is a log, or an answer, that tests read while the server still writes to it. A log says later how many lines were left out.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// served is an API on a real socket, and its store.
type served struct {
	*testing.T
	store  sluice.Store
	client *sluice.Client
	api    *httpapi.API
	url    string
	log    *logText
}

// serve serves the API of a store in memory. The token of a request is the name of one of the callers.
func serve(t *testing.T, options httpapi.Options, callers ...access.Caller) *served {
	t.Helper()
	return serveStore(t, memory.New(memory.Options{}), options, callers...)
}

// serveStore serves the API of a store.
func serveStore(t *testing.T, store sluice.Store, options httpapi.Options, callers ...access.Caller) *served {
	t.Helper()
	s := &served{T: t, store: store, client: sluice.NewClient(store, sluice.ClientOptions{}), log: new(logText)}
	options.Logger = slog.New(slog.NewTextHandler(s.log, nil))
	options.NoLogin = len(callers) == 0
	options.Identify = func(r *http.Request) (access.Caller, error) {
		for _, c := range callers {
			if r.Header.Get("Authorization") == "Bearer "+c.Name {
				return c, nil
			}
		}
		return access.Caller{}, &httpapi.Problem{Status: http.StatusUnauthorized, Code: "unauthorized", Why: "the token is not known", Do: "send another"}
	}
	s.api = httpapi.New(store, options)
	s.url = serveAPI(t, s.api).url
	t.Cleanup(s.api.Drain)
	return s
}

// serveAPI serves an API on a real socket.
func serveAPI(t *testing.T, api http.Handler) *served {
	t.Helper()
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	return &served{T: t, url: server.URL + httpapi.Root}
}

// reply is the answer to a request.
type reply struct {
	status int
	header http.Header
	text   string
}

// ask sends a request with a JSON body. The headers alternate between names and values.
func (s *served) ask(method, path, body string, headers ...string) reply {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	return reply{response.StatusCode, response.Header, string(text)}
}

// askTooOften sends requests until some of them are refused, many at once: on a slow machine a caller's rate lets in those that
// follow each other.
func (s *served) askTooOften(path string, headers ...string) (refused []reply) {
	s.Helper()
	for len(refused) == 0 && !s.Failed() {
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				r := s.ask("GET", path, "", headers...)
				mu.Lock()
				defer mu.Unlock()
				if r.status != http.StatusOK {
					refused = append(refused, r)
				}
			})
		}
		all.Wait()
	}
	return refused
}

// get sends a request that must succeed, and decodes its answer.
func get[T any](s *served, method, path, body string, headers ...string) (out T) {
	s.Helper()
	r := s.ask(method, path, body, headers...)
	if r.status >= 300 {
		s.Fatalf("%s %s: got %d, want success: %s", method, path, r.status, r.text)
	}
	if err := json.Unmarshal([]byte(r.text), &out); err != nil {
		s.Fatalf("%s %s: %s: %v", method, path, r.text, err)
	}
	return out
}

// problem decodes the problem in a reply that must have failed with a status and a code.
func (s *served) problem(r reply, status int, code string) httpapi.Problem {
	s.Helper()
	var p httpapi.Problem
	if err := json.Unmarshal([]byte(r.text), &p); err != nil || r.status != status || p.Status != status || p.Code != code {
		s.Errorf("%d %s: %v; want %d %s", r.status, r.text, err, status, code)
	}
	if p.What == "" || p.Why == "" || p.Do == "" || p.RequestID == "" {
		s.Errorf("%s does not say what failed, why, what to do and by which request", r.text)
	}
	return p
}

// enqueue stores a job.
func (s *served) enqueue(queue, tenant string) sluice.ID {
	s.Helper()
	receipt, err := s.client.Enqueue(s.Context(), sluice.NewJob{Queue: queue, Payload: []byte(`{"secret":7}`), EnqueueOptions: sluice.EnqueueOptions{Tenant: tenant}})
	if err != nil {
		s.Fatal(err)
	}
	return receipt.ID
}

// end claims all jobs of a queue, and ends each with an event.
func (s *served) end(queue string, event sluice.Event) {
	s.Helper()
	claimed, err := s.store.Claim(s.Context(), sluice.ClaimRequest{Queue: queue, Limit: 1000, Holder: "h:1:x", Lease: time.Minute, Token: sluice.NewToken()})
	if err != nil {
		s.Fatal(err)
	}
	var ends []sluice.Settlement
	for _, c := range claimed.Jobs {
		ends = append(ends, sluice.Settlement{ID: c.ID, Token: c.Token, Event: event, Result: json.RawMessage(`{"sent":true}`), Error: "no answer"})
	}
	if errs, err := s.store.Settle(s.Context(), ends); err != nil {
		s.Fatal(errs, err)
	}
}

func TestEachErrorSaysWhatWhyAndWhatToDo(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{Bounds: httpapi.Bounds{Body: 1000}})
	id := s.enqueue("mail", "")
	for _, c := range []struct {
		method, path, body string
		status             int
		code, why          string
	}{
		{"GET", "/nothing", "", 404, "no_such_path", "nothing is answered"},
		{"DELETE", "/jobs", "", 405, "method_not_allowed", "DELETE"},
		{"GET", "/jobs/" + sluice.NewID().String(), "", 404, "not_found", "there is no such job"},
		{"GET", "/jobs/x", "", 422, "invalid", "path.id"},
		{"GET", "/jobs?limit=0", "", 422, "invalid", "query.limit"},
		{"GET", "/jobs?colour=red", "", 422, "invalid", "query.colour"},
		{"GET", "/jobs?where=colour:red", "", 422, "invalid", "no field"},
		{"GET", "/jobs?cursor=x", "", 422, "invalid", "cursor"},
		{"GET", "/jobs/" + id.String() + "/end?wait=2h", "", 422, "invalid", "wait"},
		{"POST", "/jobs", `{"queue":"mail"}`, 422, "invalid", "payload"},
		{"POST", "/jobs", `{"queue":"mail","payload":1,"colour":2}`, 422, "invalid", "colour"},
		{"POST", "/jobs", `[`, 422, "invalid", "JSON"},
		{"POST", "/jobs", `{"queue":"mail","payload":"` + strings.Repeat("x", 1000) + `"}`, 413, "too_large", "1000 bytes"},
		{"POST", "/jobs/cancel", `{"ids":["` + strings.Repeat("x", 1000) + `"]}`, 413, "too_large", "too large"},
		{"POST", "/jobs/cancel", `{"ids":[]}`, 422, "invalid", "body.ids"},
		{"POST", "/jobs/cancel", `{"ids":["x"]}`, 422, "invalid", "is not an id"},
		{"POST", "/jobs/cancel", `{"ids":["` + id.String() + `"],"colour":1}`, 422, "invalid", "body.colour"},
		{"POST", "/jobs/cancel", `{`, 400, "invalid", "body"},
		{"POST", "/jobs/hold", `{"ids":["` + id.String() + `"]}`, 422, "invalid", "reason"},
		{"POST", "/jobs/reschedule", `{"ids":["` + id.String() + `"]}`, 422, "invalid", "exactly one"},
	} {
		r := s.ask(c.method, c.path, c.body)
		p := s.problem(r, c.status, c.code)
		if p.Title != http.StatusText(c.status) || !strings.Contains(p.Why+fmt.Sprint(p.Fields), c.why) || p.Do == "" || p.Detail == "" {
			t.Errorf("%s %s %.60s: %s, want %q", c.method, c.path, c.body, r.text, c.why)
		}
		if p.RequestID == "" || p.RequestID != r.header.Get("Sluice-Request-Id") || r.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: request %q, headers %v", c.method, c.path, p.RequestID, r.header)
		}
	}
	if allow := s.ask("DELETE", "/jobs", "").header.Get("Allow"); allow != "GET, POST" {
		t.Errorf("allows %q", allow)
	}
}

func TestAFaultOfTheStoreIsInTheLogWithTheRequest(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	s := serveStore(t, store, httpapi.Options{})
	r := s.ask("GET", "/jobs", "")
	p := s.problem(r, 503, "store_unavailable")
	if r.header.Get("Retry-After") != "1" || !strings.Contains(s.log.String(), `msg="request unanswered" request=`+p.RequestID) {
		t.Errorf("%v; the log is\n%s", r.header, s.log)
	}
}

// full is a store whose disk is full.
type full struct{ sluice.Store }

func (full) Enqueue(context.Context, []sluice.Insert) ([]sluice.Receipt, error) {
	return nil, fmt.Errorf("enqueue: %w", sluice.ErrDiskFull)
}

func TestAFullDiskIsTold(t *testing.T) {
	t.Parallel()
	s := serveStore(t, full{memory.New(memory.Options{})}, httpapi.Options{})
	r := s.ask("POST", "/jobs", `{"queue":"mail","payload":1}`)
	if p := s.problem(r, 503, "disk_full"); !strings.Contains(p.Do, "make room") || r.header.Get("Retry-After") == "" || !strings.Contains(s.log.String(), "the disk is full") {
		t.Errorf("%v %s; the log is\n%s", r.header, r.text, s.log)
	}
}

func TestARefusedRequestIsInTheLog(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{Bounds: httpapi.Bounds{Rate: 1, Burst: 10}}, access.Caller{Name: "ada", Role: access.RoleReader})
	ada := []string{"Authorization", "Bearer ada"}
	for _, c := range []struct {
		method, path, body string
		headers            []string
		status             int
		code, by           string
	}{
		{"GET", "/jobs", "", nil, 401, "unauthorized", ""},
		{"GET", "/nowhere", "", ada, 404, "no_such_path", " by=ada"},
		{"GET", "/jobs/" + sluice.NewID().String(), "", ada, 404, "not_found", " by=ada"},
		{"GET", "/jobs?limit=many", "", ada, 422, "invalid", " by=ada"},
		{"POST", "/jobs", `{"queue":"mail","payload":1}`, ada, 403, "forbidden", " by=ada"},
		{"GET", "/audit?limit=0", "", ada, 422, "invalid", " by=ada"},
	} {
		p := s.problem(s.ask(c.method, c.path, c.body, c.headers...), c.status, c.code)
		path, _, _ := strings.Cut(c.path, "?")
		line := fmt.Sprintf("level=INFO msg=\"request refused\" request=%s status=%d code=%s path=%s%s%s", p.RequestID, c.status, c.code, httpapi.Root, path, c.by)
		if !strings.Contains(s.log.String(), line) {
			t.Errorf("the log is\n%s, want a line with %s", s.log, line)
		}
	}
	told := 0 // of those that are refused at once, the log has the first
	for _, r := range s.askTooOften("/whoami", ada...) {
		p := s.problem(r, 429, "too_many_requests")
		told += strings.Count(s.log.String(), fmt.Sprintf("request=%s status=429 code=too_many_requests path=%s/whoami by=ada\n", p.RequestID, httpapi.Root))
	}
	if told == 0 {
		t.Errorf("the log is\n%s, want a line with too_many_requests", s.log)
	}
}

func TestPagesOfOtherSitesAndProxiesAreRefusedWithoutALogin(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://other.example"}} {
		s.problem(s.ask("POST", "/jobs", `{"queue":"mail","payload":1}`, headers...), 403, "other_site")
	}
	s.problem(s.ask("GET", "/jobs", "", "X-Forwarded-For", "192.0.2.1"), 403, "behind_proxy")
	if r := s.ask("POST", "/jobs", `{"queue":"mail","payload":1}`, "Sec-Fetch-Site", "same-origin"); r.status != 201 {
		t.Errorf("a page of ours: %d %s", r.status, r.text)
	}
}

// TestNamesThatOthersLetLeadHereAreRefusedWithoutALogin: the name of a foreign site that leads to this machine makes its pages
// pages of this server, for a browser.
func TestNamesThatOthersLetLeadHereAreRefusedWithoutALogin(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	ask := func(host string) int {
		request := must(http.NewRequestWithContext(t.Context(), "POST", s.url+"/jobs", strings.NewReader(`{"queue":"mail","payload":1}`)))
		request.Host = host
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Origin", "http://"+host)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	for host, want := range map[string]int{
		"localhost": 201, "LOCALHOST:7400": 201, "127.0.0.1:80": 201, "[::1]:7400": 201,
		"rebound.example": 421, "rebound.example:7400": 421, "localhost.rebound.example": 421, "127.0.0.1.rebound.example": 421, "192.0.2.1": 421,
	} {
		if got := ask(host); got != want {
			t.Errorf("a request to %s: %d, want %d", host, got, want)
		}
	}
	s = serve(t, httpapi.Options{}, access.Caller{Name: "ada", Role: access.RoleAdmin})
	if r := s.ask("GET", "/jobs", "", "Authorization", "Bearer ada"); r.status != 200 {
		t.Errorf("with a token: %d", r.status)
	}
	if got := ask("jobs.example.com"); got != 401 {
		t.Errorf("a server with tokens, by any name: %d, want 401", got)
	}
}

func TestOneCallerDoesNotStarveOthers(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{Bounds: httpapi.Bounds{Rate: 1, Burst: 5, Waiting: 1}}, access.Caller{Name: "a", Role: access.RoleReader}, access.Caller{Name: "b", Role: access.RoleReader})
	for _, r := range s.askTooOften("/whoami", "Authorization", "Bearer a") {
		s.problem(r, 429, "too_many_requests")
		if r.header.Get("Retry-After") == "" {
			t.Error("Retry-After is missing")
		}
	}
	if r := s.ask("GET", "/whoami", "", "Authorization", "Bearer b"); r.status != 200 {
		t.Errorf("the other caller: %d %s", r.status, r.text)
	}
}

func TestTheAuditNamesTheTokenAndThePerson(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{}, access.Caller{Name: "token ci", Role: access.RoleOperator})
	id := s.enqueue("mail", "")
	body := fmt.Sprintf(`{"ids":["%s"],"reason":"not needed"}`, id)
	for range 2 { // the second request has the same key, and does nothing
		get[map[string]any](s, "POST", "/jobs/cancel", body, "Authorization", "Bearer token ci", "Sluice-By", "ada", "Idempotency-Key", "01a1fb72-1dea-7abc-8fc6-99e4817522bb")
	}
	entries, err := s.client.Audit(t.Context(), sluice.AuditFilter{JobID: id})
	if err != nil || len(entries) != 1 || entries[0].Actor != "ada by token ci" || entries[0].Reason != "not needed" {
		t.Errorf("the audit has %+v, %v, want 1 entry by ada by token ci", entries, err)
	}
	s.problem(s.ask("POST", "/jobs/cancel", body, "Authorization", "Bearer token ci", "Idempotency-Key", "x"), 422, "invalid")
	s.problem(s.ask("POST", "/jobs/cancel", body, "Authorization", "Bearer token ci", "Idempotency-Key", "00000000-0000-0000-0000-000000000000"), 422, "invalid")
	s.problem(s.ask("POST", "/jobs/cancel", body, "Authorization", "Bearer token ci", "Sluice-By", strings.Repeat("a", 200)), 422, "invalid")
	s.problem(s.ask("POST", "/jobs/cancel", body, "Authorization", "Bearer token ci", "Sluice-By", "ada in the console"), 422, "invalid")
}

// TestStatementsAreListedWhereTheStoreCountsThem asks stores that count no statements. PostgreSQL says what to do.
func TestStatementsAreListedWhereTheStoreCountsThem(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *served) {
		got := s.ask(http.MethodGet, "/health/statements", "")
		want := `"findings":[]`
		if strings.Contains(got.text, `"kind":"postgres"`) {
			want = `"what":"the extension pg_stat_statements is not there"`
		}
		if got.status != http.StatusOK || !strings.Contains(got.text, want) || strings.Contains(got.text, `"check":"schema"`) {
			s.Errorf("got %d %s, want %s and no other check", got.status, got.text, want)
		}
	})
}

func TestAnActCountsAJobThatIsNamedTwiceOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	id := s.enqueue("mail", "")
	body := fmt.Sprintf(`{"ids":["%s","%s"],"reason":"not needed"}`, id, id)
	if got := get[struct{ Done int }](s, "POST", "/jobs/cancel", body); got.Done != 1 {
		t.Errorf("the cancel of one job counts %d", got.Done)
	}
}
