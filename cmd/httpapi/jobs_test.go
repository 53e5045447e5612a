package httpapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/hold"
	"github.com/sluice-queue/sluice/schedule"
	"github.com/sluice-queue/sluice/upkeep"
)

// result is the answer about one job.
type result struct {
	ID        string
	Line      int
	Duplicate bool
	Error     *httpapi.Problem
	Done      *httpapi.Tally
}

func TestAJobIsEnqueuedOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	const id = "01a1fb72-1dea-7abc-8fc6-99e4817522bb"
	body := `{"queue":"mail","payload":{"to":"ada"},"id":"` + id + `","tenant":"acme","labels":{"kind":"welcome"},"delay":"10m","priority":2}`
	for i, want := range []int{201, 200} {
		r := s.ask("POST", "/jobs", body)
		var got result
		if err := json.Unmarshal([]byte(r.text), &got); err != nil || r.status != want || got.ID != id || got.Duplicate != (i == 1) {
			t.Errorf("enqueue %d got %d %s, %v; want %d with the id %s", i+1, r.status, r.text, err, want, id)
		}
	}
	job := get[map[string]any](s, "GET", "/jobs/"+id, "")
	if fmt.Sprintln(job["payload"], job["label"], job["tenant"], job["priority"]) != "map[to:ada] scheduled acme 2\n" || job["version"] == "" {
		t.Errorf("the stored job is %v, want payload, tenant and priority as enqueued", job)
	}
}

func TestAListHasAResultForEachJob(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	got := get[struct {
		Results []result
		httpapi.Tally
	}](s, "POST", "/jobs", `[{"queue":"mail","payload":1,"key":"k"},{"queue":"mail","payload":2,"key":"k"},{"queue":"mail"},{"queue":"mail","payload":3,"priority":11}]`)
	if len(got.Results) != 4 || got.Tally != (httpapi.Tally{Stored: 1, Duplicates: 1, Refused: 2}) {
		t.Fatalf("got %+v, want 1 stored, 1 duplicate and 2 refused", got)
	}
	if !got.Results[1].Duplicate || got.Results[1].ID != got.Results[0].ID || got.Results[2].Error.Code != "invalid" || !strings.Contains(got.Results[3].Error.Why, "priority") {
		t.Errorf("got %+v, want a duplicate, an invalid job and a wrong priority", got)
	}
}

func TestAStreamIsAnsweredLineByLineWhileItIsSent(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	body, send := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/jobs", body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-ndjson")
	sent := make(chan error, 1)
	go func() {
		_, err := io.WriteString(send, `{"queue":"mail","payload":0}`+"\n")
		sent <- err
	}()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	read := func() (got result) {
		if !lines.Scan() {
			t.Fatalf("no line: %v", lines.Err())
		}
		if err := json.Unmarshal(lines.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if first := read(); first.Line != 1 || first.ID == "" {
		t.Errorf("the first answer is %+v, want a stored job of line 1", first)
	}
	const jobs = 5000
	go func() {
		for i := range jobs {
			if _, err := fmt.Fprintf(send, "{\"queue\":\"mail\",\"payload\":%d}\n", i); err != nil {
				sent <- err
			}
		}
		_, _ = io.WriteString(send, "\n{\"queue\":\"mail\"}\n{\"queue\":\"mail\",\"payload\":1}") // the last line has no line end
		sent <- send.Close()
	}()
	for i := range jobs {
		if got := read(); got.Line != i+2 || got.Error != nil {
			t.Fatalf("got %+v, want the stored job of the next line", got)
		}
	}
	if wrong := read(); wrong.Line != jobs+3 || wrong.Error.Code != "invalid" {
		t.Errorf("got %+v, want invalid for the line without a payload", wrong)
	}
	if last := read(); last.Line != jobs+4 || last.ID == "" {
		t.Errorf("got %+v, want the stored job of the last line", last)
	}
	if done := read(); done.Line != jobs+4 || *done.Done != (httpapi.Tally{Stored: jobs + 2, Refused: 1}) {
		t.Errorf("the stream ends with %+v, want all but 1 stored", done)
	}
	for range 2 {
		if err := <-sent; err != nil {
			t.Error(err)
		}
	}
}

func TestAStreamCanAnswerOnlyWhatIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	r := s.ask("POST", "/jobs?answers=refused", "{\"queue\":\"mail\",\"payload\":1}\nnothing\n", "Content-Type", "application/x-ndjson")
	if lines := strings.Split(strings.TrimSpace(r.text), "\n"); len(lines) != 2 || !strings.Contains(lines[0], `"line":2,"error"`) || !strings.Contains(lines[1], `"stored":1`) {
		t.Errorf("want an error of line 2 and 1 stored job, got %s", r.text)
	}
	s.problem(s.ask("POST", "/jobs?answers=some", "", "Content-Type", "application/x-ndjson"), 422, "invalid")
	s.problem(s.ask("POST", "/jobs", "x", "Content-Type", "text/plain"), 415, "media_type")
}

func TestJobsAreListedByAFilterPartByPart(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	for range 5 {
		s.enqueue("mail", "acme")
		s.enqueue("sms", "beta")
	}
	seen := make(map[string]bool)
	for next, first := "", true; first || next != ""; first = false {
		list := get[struct {
			Jobs []struct{ ID, Queue, Tenant string }
			Next string
		}](s, "GET", "/jobs?limit=2&where=queue:mail+tenant:acme&cursor="+next, "")
		for _, j := range list.Jobs {
			if seen[j.ID] || j.Queue != "mail" {
				t.Errorf("the job %+v is listed twice, or is not of mail", j)
			}
			seen[j.ID] = true
		}
		next = list.Next
	}
	if len(seen) != 5 {
		t.Errorf("%d jobs", len(seen))
	}
}

// TestWhatIsGivenEmptyIsRefused sends what an unset variable of a script sends: it must choose no more, and lose no key.
func TestWhatIsGivenEmptyIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{}, access.Caller{Name: "admin", Role: access.RoleAdmin}, access.Caller{Name: "acme", Role: access.RoleAdmin, Bounds: access.Bounds{Tenants: []string{"acme"}}})
	as := []string{"Authorization", "Bearer admin"}
	s.enqueue("mail", "acme")
	for _, path := range []string{"/jobs?tenant=", "/jobs?limit=5&where=", "/jobs?queue=mail&key", "/jobs?state=dead&state=", "/audit?object=", "/stats?tenant=", "/batches?parent="} {
		p := s.problem(s.ask("GET", path, "", as...), 422, "invalid")
		if len(p.Fields) != 1 || !strings.HasPrefix(p.Fields[0].Field, "query.") || !strings.Contains(p.Why, "is empty; give it a value, or leave it out") {
			t.Errorf("%s: %+v", path, p)
		}
	}
	s.problem(s.ask("GET", "/jobs?tenant=", "", "Authorization", "Bearer acme"), 422, "invalid")
	if list := s.ask("GET", "/jobs?cursor=&before=", "", as...); list.status != 200 { // the first page
		t.Errorf("%d %s", list.status, list.text)
	}
	p := s.problem(s.ask("POST", "/jobs", `{"queue":"mail","payload":1,"key":""}`, as...), 422, "invalid")
	if p.Why != "invalid key: it is empty; give it a value, or leave it out" {
		t.Errorf("an empty key: %s", p.Why)
	}
	if r := s.ask("POST", "/jobs", `{"queue":"mail","payload":1,"key":null}`, as...); r.status != 201 { // as if absent
		t.Errorf("a key of null: %d %s", r.status, r.text)
	}
}

func TestEachActReportsEachJob(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	missing := sluice.NewID().String()
	type report struct {
		Done   int
		Failed []struct {
			ID    string
			Error httpapi.Problem
		}
	}
	id := s.enqueue("mail", "").String()
	for _, c := range []struct{ verb, more, state string }{
		{"hold", "", "blocked"},
		{"release", "", "ready"},
		{"reschedule", `,"delay":"1h"`, "scheduled"},
		{"reschedule", `,"undo":true`, "ready"},
		{"reschedule", `,"due_at":"2099-01-01T00:00:00Z"`, "scheduled"},
		{"run-now", "", "ready"},
		{"cancel", "", "cancelled"},
		{"requeue", "", "ready"},
		{"requeue", `,"undo":true`, "cancelled"},
		{"retry", "", "ready"},
		{"cancel", "", "cancelled"},
		{"delete", "", ""},
	} {
		body := fmt.Sprintf(`{"ids":["%s","%s"],"reason":"a test"%s}`, id, missing, c.more)
		got := get[report](s, "POST", "/jobs/"+c.verb, body)
		if got.Done != 1 || len(got.Failed) != 1 || got.Failed[0].ID != missing || got.Failed[0].Error.Code != "not_found" {
			t.Errorf("%s%s: got %+v, want 1 done, and not_found for the missing job", c.verb, c.more, got)
		}
		if c.state == "" {
			s.problem(s.ask("GET", "/jobs/"+id, ""), 404, "not_found")
		} else if job := get[map[string]any](s, "GET", "/jobs/"+id, ""); job["label"] != c.state {
			t.Errorf("%s%s: it is %s, want %s", c.verb, c.more, job["label"], c.state)
		}
	}
}

// TestARescheduleNamesTheJobThatWouldExpire reschedules two jobs. One of them would expire before it is due.
func TestARescheduleNamesTheJobThatWouldExpire(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	receipt, err := s.client.Enqueue(s.Context(), sluice.NewJob{
		Queue: "mail", Payload: []byte(`{}`), EnqueueOptions: sluice.EnqueueOptions{ExpiresAt: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)},
	})
	if err != nil {
		t.Fatal(err)
	}
	id, other := receipt.ID.String(), s.enqueue("mail", "").String()
	got := get[struct {
		Done   int
		Failed []struct {
			ID    string
			Error httpapi.Problem
		}
	}](s, "POST", "/jobs/reschedule", `{"ids":["`+id+`","`+other+`"],"due_at":"2099-01-02T00:00:00Z"}`)
	if got.Done != 1 || len(got.Failed) != 1 || got.Failed[0].ID != id || got.Failed[0].Error.Code != "invalid" ||
		!strings.Contains(got.Failed[0].Error.Why, "the job expires at 2099-01-01T00:00:00Z; give an earlier time") {
		t.Errorf("got %+v, want 1 done, and the other invalid with the time at which it expires", got)
	}
}

func TestAWaitingJobIsEditedUnlessItHasChanged(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	id := s.enqueue("mail", "").String()
	before := get[map[string]any](s, "GET", "/jobs/"+id, "")
	edit := fmt.Sprintf(`{"version":"%s","payload":{"big":12345678901234567890},"priority":1,"labels":{"a":"b"},"tenant":"acme","reason":"urgent"}`, before["version"])
	s.ask("PATCH", "/jobs/"+id, edit)
	after := s.ask("GET", "/jobs/"+id, "")
	if !strings.Contains(after.text, `12345678901234567890`) || !strings.Contains(after.text, `"tenant":"acme"`) || !strings.Contains(after.text, `"priority":1`) {
		t.Errorf("the edited job is %s, want the edited payload, tenant and priority", after.text)
	}
	s.problem(s.ask("PATCH", "/jobs/"+id, edit), 409, "conflict")
	s.problem(s.ask("PATCH", "/jobs/"+id, `{}`), 422, "invalid")
}

func TestADryRunCountsTheJobsOnWhichTheKindActs(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	s.enqueue("mail", "")
	s.end("mail", sluice.EventComplete)
	waiting := s.enqueue("mail", "").String()
	for kind, want := range map[string]int{"cancel": 1, "reschedule": 1, "hold": 1, "edit": 1, "requeue": 0, "delete": 0, "release": 0} {
		found := get[struct {
			Matched int
			Samples []struct{ ID string }
		}](s, "POST", "/operations", `{"kind":"`+kind+`","where":"queue:mail","dry_run":true}`)
		if found.Matched != want || len(found.Samples) != want || want > 0 && found.Samples[0].ID != waiting {
			t.Errorf("%s: %+v, want %d", kind, found, want)
		}
	}
	s.problem(s.ask("POST", "/operations", `{"kind":"cancel","where":"queue:mail state:completed","dry_run":true}`), 422, "invalid")
}

func TestAnEditOfAllThatMatchSaysWhatItChanges(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	s.enqueue("mail", "")
	type edit struct {
		Priority int
		Postpone time.Duration `json:"postpone_ns"`
		Spread   time.Duration `json:"spread_ns"`
	}
	begun := get[struct{ Operation struct{ Edit edit } }](s, "POST", "/operations", `{"kind":"edit","where":"queue:mail","priority":2,"postpone":"10m","spread":"1h"}`)
	if want := (edit{2, 10 * time.Minute, time.Hour}); begun.Operation.Edit != want {
		t.Errorf("got %+v, want %+v", begun, want)
	}
	for _, wrong := range []string{`"kind":"edit"`, `"kind":"edit","postpone":"soon"`, `"kind":"edit","spread":"-1h"`, `"kind":"hold","priority":2`} {
		s.problem(s.ask("POST", "/operations", `{`+wrong+`,"where":"queue:mail","reason":"why"}`), 422, "invalid")
	}
}

func TestAProgramStoresAnOperationAndWhatItWantsOfIt(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	s.enqueue("mail", "")
	path := "/operations/" + sluice.NewID().String()
	wanted := map[string]any{"kind": "cancel"}
	put := func() reply {
		body, err := json.Marshal(map[string]any{"operation": wanted, "reason": "not needed"})
		if err != nil {
			t.Fatal(err)
		}
		return s.ask("PUT", path, string(body))
	}
	become := func(version any, state string) reply {
		wanted["version"], wanted["state"] = version, state
		return put()
	}
	read := func() (stored map[string]any) { return get[map[string]any](s, "GET", path, "") }

	if all := s.problem(put(), 422, "invalid"); !strings.Contains(all.Detail, "every job") {
		t.Errorf("of an operation that names no jobs, the server says %q", all.Detail)
	}
	s.problem(s.ask("GET", path, ""), 404, "not_found")
	wanted["query"] = map[string]string{"queue": "mail"}
	put()
	first := read()["version"]
	become(first, "paused")
	paused := read()
	if paused["state"] != "paused" || !strings.HasSuffix(path, fmt.Sprint(paused["id"])) {
		t.Errorf("it was to pause: %v", paused)
	}
	s.problem(become(first, "stopped"), 409, "conflict")
	become(paused["version"], "stopped")
	s.problem(become(read()["version"], "running"), 409, "not_allowed")
	if state := read()["state"]; state != "stopped" {
		t.Errorf("it was stopped, and is %v", state)
	}
}

// TestABoundedCallerActsOnItsOwnJobsAlone has callers with bounds start operations on all jobs, in both ways that the
// API has.
func TestABoundedCallerActsOnItsOwnJobsAlone(t *testing.T) {
	t.Parallel()
	bounds := access.Bounds{Queues: []string{"mail.*"}, Tenants: []string{"acme"}}
	s := serve(t, httpapi.Options{}, access.Caller{Name: "acme", Role: access.RoleOperator, Bounds: bounds}, access.Caller{Name: "all", Role: access.RoleOperator})
	as := []string{"Authorization", "Bearer acme"}
	ours, theirs, elsewhere := s.enqueue("mail.a", "acme"), s.enqueue("mail.a", "beta"), s.enqueue("sms", "acme")
	path, of := "/operations/"+sluice.NewID().String(), "/operations/"+sluice.NewID().String()
	const everything = `{"operation":{"kind":"hold","query":{"created_from":"2020-01-01T00:00:00Z"}},"reason":"audit"}`
	saved := s.ask("PUT", path, everything, as...)
	if started := s.ask("POST", "/operations", `{"kind":"hold","where":"attempts:<5","reason":"audit"}`, as...); saved.status != 200 || started.status != 200 {
		t.Fatalf("the operations got %+v and %+v, want 200", saved, started)
	}
	if r := s.ask("PUT", of, everything, "Authorization", "Bearer all"); r.status != 200 {
		t.Fatalf("the unbounded operation got %+v, want 200", r)
	}
	s.problem(s.ask("GET", of, "", as...), 404, "not_found")
	s.problem(s.ask("PUT", of, `{"operation":{"version":1,"state":"stopped"}}`, as...), 404, "not_found")
	for _, verb := range []string{"pause", "resume", "stop"} {
		s.problem(s.ask("POST", of+"/"+verb, `{"reason":"x"}`, as...), 404, "not_found")
	}
	s.problem(s.ask("POST", of+"/pace", `{"rate":"1/s"}`, as...), 404, "not_found")
	s.problem(s.ask("PUT", of, `{"operation":{"kind":"backfill","backfill":{"schedule":"nightly","from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z"}}}`, as...), 403, "out_of_bounds")
	s.problem(s.ask("POST", "/operations", `{"kind":"edit","where":"attempts:<5","tenant":"beta"}`, as...), 403, "out_of_bounds")
	s.problem(s.ask("POST", "/operations", `{"kind":"edit","where":"attempts:<5","tenant":""}`, as...), 403, "out_of_bounds")
	s.problem(s.ask("PUT", "/operations/"+sluice.NewID().String(), `{"operation":{"kind":"edit","query":{"created_from":"2020-01-01T00:00:00Z"},"edit":{"tenant":"beta"}}}`, as...), 403, "out_of_bounds")
	s.ask("PUT", of, `{"operation":{"version":1,"state":"stopped"}}`, "Authorization", "Bearer all")
	if paused := s.ask("POST", path+"/pause", `{"reason":"x"}`, as...); paused.status != 200 {
		t.Fatalf("its own: %+v", paused)
	}
	s.ask("POST", path+"/resume", `{"reason":"x"}`, as...)
	must(upkeep.New(s.store, upkeep.Options{}).Once(t.Context(), true))
	held := must(hold.List(t.Context(), s.store, hold.Filter{}))
	if len(held) != 1 || held[0].JobID != ours {
		t.Errorf("held %+v, want %s alone and neither %s nor %s", held, ours, theirs, elsewhere)
	}
	if err := hold.Hold(t.Context(), s.store, []sluice.ID{theirs, elsewhere}, sluice.Act{By: "test", Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	if list := s.ask("GET", "/holds", "", as...); strings.Count(list.text, "job_id") != 1 {
		t.Errorf("want 1 hold in the list, got %s", list.text)
	}
	for id, want := range map[sluice.ID]int{ours: 1, theirs: 0} {
		if list := s.ask("GET", "/holds?job="+id.String(), "", as...); strings.Count(list.text, "job_id") != want {
			t.Errorf("the holds of job %s are %s, want %d", id, list.text, want)
		}
	}
}

func TestTheEndOfAJobIsAwaited(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	id := s.enqueue("mail", "").String()
	if end := get[map[string]any](s, "GET", "/jobs/"+id+"/end", ""); end["ended"] != false || end["state"] != "queued" {
		t.Errorf("the end of a waiting job is %v, want queued and not ended", end)
	}
	ended := make(chan map[string]any, 1)
	go func() { ended <- get[map[string]any](s, "GET", "/jobs/"+id+"/end?wait=60s", "") }()
	s.end("mail", sluice.EventComplete)
	if end := <-ended; end["ended"] != true || fmt.Sprint(end["result"]) != "map[sent:true]" {
		t.Errorf("the end of the job is %v, want its result", end)
	}
}

func TestViewersSeeNoPayloads(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{}, access.Caller{Name: "viewer", Role: access.RoleViewer})
	id := s.enqueue("mail", "").String()
	s.end("mail", sluice.EventComplete)
	must(schedule.Set(t.Context(), s.store, "nightly", schedule.Definition{Queue: "mail", Every: time.Hour, Payload: []byte(`"secret"`)}, sluice.Act{By: "test"}))
	must(batch.Open(t.Context(), s.store, batch.Batch{Callbacks: batch.Callbacks{OnDeath: &batch.Callback{Queue: "mail", Payload: []byte(`"secret"`)}}}, sluice.Act{By: "test"}))
	for _, path := range []string{"/jobs", "/schedules", "/schedules/nightly", "/batches", "/audit", "/jobs/" + id, "/jobs/" + id + "/why", "/jobs/" + id + "/attempts"} {
		r := s.ask("GET", path, "", "Authorization", "Bearer viewer")
		if r.status != 200 || strings.Contains(r.text, "secret") || strings.Contains(r.text, "sent") {
			t.Errorf("%s must not show payload or result: %d %s", path, r.status, r.text)
		}
	}
}

func TestJobsBeyondTheBoundsAreNotThere(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{}, access.Caller{Name: "acme", Role: access.RoleAdmin, Bounds: access.Bounds{Queues: []string{"mail.*"}, Tenants: []string{"acme"}}})
	as := []string{"Authorization", "Bearer acme"}
	ours, theirs, elsewhere := s.enqueue("mail.a", "acme").String(), s.enqueue("mail.a", "beta").String(), s.enqueue("sms", "acme").String()
	unknown := sluice.NewID().String()
	if list := s.ask("GET", "/jobs", "", as...); !strings.Contains(list.text, ours) || strings.Contains(list.text, theirs) || strings.Contains(list.text, elsewhere) {
		t.Errorf("want the caller's own job alone, got %s", list.text)
	}
	for _, path := range []string{"/jobs/ID", "/jobs/ID/why", "/jobs/ID/attempts", "/jobs/ID/end"} {
		missing := s.problem(s.ask("GET", strings.Replace(path, "ID", unknown, 1), "", as...), 404, "not_found")
		for _, id := range []string{theirs, elsewhere} {
			if got := s.problem(s.ask("GET", strings.Replace(path, "ID", id, 1), "", as...), 404, "not_found"); got.Detail != missing.Detail || got.Do != missing.Do {
				t.Errorf("%s differs: %+v, %+v", path, got, missing)
			}
		}
	}
	got := s.ask("POST", "/jobs/cancel", fmt.Sprintf(`{"ids":["%s","%s","%s","%s"]}`, unknown, theirs, ours, elsewhere), as...)
	if !strings.Contains(got.text, `"done":1`) || strings.Count(got.text, `"why":"there is no such job"`) != 3 {
		t.Errorf("want 1 done and 3 unknown jobs, got %s", got.text)
	}
	for _, id := range []string{theirs, elsewhere} {
		if job, err := s.client.Job(t.Context(), must(sluice.ParseID(id))); err != nil || job.State != sluice.StateQueued {
			t.Errorf("a job out of bounds is %+v, %v, want it queued", job, err)
		}
	}
	for body, status := range map[string]int{
		`{"queue":"mail.a","tenant":"acme","payload":1}`: 201, `{"queue":"mail.a","payload":1}`: 403, `{"queue":"sms","tenant":"acme","payload":1}`: 403,
		`{"queue":"mail.b","tenant":"acme","payload":1,"after":["` + theirs + `"]}`: 404, `{"queue":"mail.b","tenant":"acme","payload":1,"after":["` + unknown + `"]}`: 404,
	} {
		if r := s.ask("POST", "/jobs", body, as...); r.status != status {
			t.Errorf("the enqueue of %s got %d %s, want %d", body, r.status, r.text, status)
		}
	}
	s.problem(s.ask("PATCH", "/jobs/"+s.enqueue("mail.a", "acme").String(), `{"tenant":"beta"}`, as...), 403, "out_of_bounds")
}

// must returns a value, and panics if there is an error.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
