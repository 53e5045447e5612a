package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/console"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/stat"
)

// claim takes the due jobs of a queue, as a worker does.
func (s *site) claim(queue string) []*sluice.Claim {
	s.t.Helper()
	out, err := s.store.Claim(s.t.Context(), sluice.ClaimRequest{Queue: queue, Limit: 10, Holder: "host:1:aa", Lease: time.Minute, Token: sluice.NewToken()})
	if err != nil || len(out.Jobs) == 0 {
		s.t.Fatalf("claimed %d jobs, %v", len(out.Jobs), err)
	}
	return out.Jobs
}

// settle ends a claim.
func (s *site) settle(c sluice.Settlement) {
	s.t.Helper()
	errs, err := s.store.Settle(s.t.Context(), []sluice.Settlement{c})
	if err != nil || errs[0] != nil {
		s.t.Fatal(err, errs)
	}
}

func TestAJobSaysWhyItDoesNotRun(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	id := s.enqueue(sluice.NewJob{Queue: "mail", Payload: []byte(`{"to":{"name":"ada"},"n":[1,2]}`), EnqueueOptions: sluice.EnqueueOptions{
		Tenant: "acme", Key: "order-42", OrderKey: "account-7", Labels: map[string]string{"region": "eu"}, DueAt: time.Now().Add(time.Hour),
	}})
	at := "/jobs/" + id.String()
	s.contains(at, "Why not running", `<li class="stopped"`, "<strong>due</strong>", `<li class="passed"`, "When it starts is not known", "waits for its due time",
		`<a href="/jobs?q=key%3A%22order-42%22">order-42</a>`, `<a href="/jobs?q=order_key%3A%22account-7%22">`, "region=eu", "sluice job "+id.String(), "sluice why "+id.String(),
		`<span class="key">to</span>`, `<span class="value text">ada</span>`, "2 elements", `data-act="run-now-jobs"`, `data-act="edit-job"`, "!requeue-jobs")
	if answer, status := s.do("hold-jobs", url.Values{"ids": {id.String()}, "reason": {"check the amount"}}, nil); status != http.StatusNoContent {
		t.Fatalf("got %d %s", status, answer)
	}
	s.contains(at, "held by ann in the console since", "check the amount", "waits for a release: it is held", `data-act="release-jobs"`, "!hold-jobs")
	unknown := sluice.NewID()
	if text, status := s.page("/jobs/" + unknown.String()); status != http.StatusNotFound || !strings.Contains(text, "made at "+unknown.Time().UTC().Format(time.DateTime)) || !strings.Contains(text, "keep_completed") || strings.Contains(text, "the audit last tells") {
		t.Errorf("an unknown job: %d %s", status, text)
	}
	for _, act := range []string{"cancel-jobs", "delete-jobs"} {
		if answer, status := s.do(act, url.Values{"ids": {id.String()}}, nil); status != http.StatusNoContent {
			t.Fatalf("%s: %d %s", act, status, answer)
		}
	}
	if text, status := s.page(at); status != http.StatusNotFound || !strings.Contains(text, "the audit last tells of it: delete by ann") {
		t.Errorf("a deleted job: %d %s", status, text)
	}
}

func TestAJobTellsItsLife(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	id := s.enqueue(sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{MaxAttempts: 2}})
	other := s.enqueue(sluice.NewJob{Queue: "reports"})
	s.claim("reports")
	s.contains("/jobs/"+other.String(), "Where it is", "attempt 1 runs", "host:1:aa", `data-act="cancel-jobs"`)
	claimed := s.claim("mail")[0]
	at := "/jobs/" + id.String()
	s.settle(sluice.Settlement{ID: id, Token: claimed.Token, Event: sluice.EventBury, Error: "ConnectTimeout: no answer"})
	s.contains(at, "ConnectTimeout: no answer", "Alike failures", `href="/dead/`, `data-act="requeue-jobs"`, `data-act="delete-jobs"`)
	if answer, status := s.do("requeue-jobs", url.Values{"ids": {id.String()}, "reason": {"the bank is back"}}, nil); status != http.StatusNoContent || !strings.Contains(answer, "/do/undo-requeue-jobs?") {
		t.Fatalf("got %d %s, want a requeue with an undo", status, answer)
	}
	s.contains(at, "the bank is back", "<dt>Life</dt><dd>2</dd>", "Why not running")
}

func TestAJobNamesTheJobsThatItRunsBefore(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	id := s.enqueue(sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{OrderKey: "account-7"}})
	next := s.enqueue(sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{OrderKey: "account-7"}})
	last := s.enqueue(sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{After: []sluice.ID{id}}})
	link := func(id sluice.ID) string {
		return `<dt>Runs before job</dt><dd><a href="/jobs/` + id.String() + `">` + id.String()
	}
	s.contains("/jobs/"+id.String(), link(next), link(last))
	s.contains("/jobs/"+last.String(), "Runs after job", "!Runs before job")
}

func TestThePayloadOfAJobIsSearched(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	id := s.enqueue(sluice.NewJob{Queue: "mail", Payload: []byte(`{"to":{"name":"ada"},"from":{"name":"<bob>"}}`)})
	at := "/jobs/" + id.String() + "?find="
	s.contains(at+"ADA", "1 place with <q>ADA</q>", `<mark>ada</mark>`, `<a href="/jobs/`+id.String()+`#find">Show all</a>`, `!<span class="key">from</span>`)
	s.contains(at+url.QueryEscape("<bob"), "1 place", "<q>&lt;bob</q>", "<mark>&lt;bob&gt;</mark>", "!<q><bob")
	s.contains(at+"grace", "No name and no value has <q>grace</q>")
}

func TestViewersSeeJobsWithoutTheirContent(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	id := s.enqueue(sluice.NewJob{Queue: "mail", Payload: []byte(`{"to":"ada@example.com"}`)})
	s.contains("/jobs/"+id.String(), "are withheld: the role viewer does not read them", "Why not running", "the role viewer may not do this", "!ada@example.com")
}

func TestAJobIsEditedUnlessItHasChanged(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	id := s.enqueue(sluice.NewJob{Queue: "mail", Payload: []byte(`{"to":"ada"}`), EnqueueOptions: sluice.EnqueueOptions{Labels: map[string]string{"region": "eu"}}})
	dialog, _ := s.page("/do/edit-job?id=" + id.String())
	for _, want := range []string{"&#34;to&#34;: &#34;ada&#34;", "region=eu", `name="version"`} {
		if !strings.Contains(dialog, want) {
			t.Errorf("the dialog lacks %q: %s", want, dialog)
		}
	}
	_, rest, _ := strings.Cut(dialog, `name="version" value="`)
	version, _, _ := strings.Cut(rest, `"`)
	values := url.Values{"id": {id.String()}, "version": {version}, "payload": {`{"to":"bob"}`}, "priority": {"1"}, "labels": {"region=us\nkind=welcome"}}
	if answer, status := s.do("edit-job", values, nil); status != http.StatusNoContent {
		t.Fatalf("got %d %s", status, answer)
	}
	if job := s.job(id); string(job.Payload) != `{"to":"bob"}` || job.Priority != 1 || job.Labels["region"] != "us" || job.Labels["kind"] != "welcome" {
		t.Errorf("got %+v, want the new content", job)
	}
	if answer, status := s.do("edit-job", values, nil); status == http.StatusNoContent {
		t.Errorf("got %s, want a refusal: the job has changed", answer)
	}
	values.Set("payload", "{")
	if answer, _ := s.do("edit-job", values, nil); !strings.Contains(answer, "payload must be JSON") {
		t.Errorf("got %s, want a refusal of the payload", answer)
	}
}

func TestAJobIsClonedOnce(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	id := s.enqueue(sluice.NewJob{Queue: "mail", Payload: []byte(`{"to":"ada"}`), EnqueueOptions: sluice.EnqueueOptions{Tenant: "acme"}})
	if dialog, _ := s.page("/do/clone-job?id=" + id.String()); !strings.Contains(dialog, `value="mail"`) || !strings.Contains(dialog, `value="acme"`) {
		t.Errorf("the dialog lacks the queue or the tenant: %s", dialog)
	}
	act := sluice.NewID().String()
	values := url.Values{"id": {id.String()}, "act_id": {act}, "queue": {"mail"}, "payload": {`{"to":"ada"}`}, "tenant": {"acme"}}
	for range 2 {
		if answer, status := s.do("clone-job", values, nil); status != http.StatusNoContent || !strings.Contains(answer, `"go":"/jobs/`+act) {
			t.Fatalf("got %d %s, want the page of the new job", status, answer)
		}
	}
	page, err := s.client.Jobs(t.Context(), sluice.JobFilter{Queue: "mail"})
	if err != nil || len(page.Jobs) != 2 {
		t.Errorf("got %d jobs, %v, want 2", len(page.Jobs), err)
	}
}

func TestAJobLinksToItsTrace(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	s := open(t, access.RoleViewer, console.Options{TracePage: "https://grafana.example.com/trace/{trace_id}?span={span_id}"})
	id := s.enqueue(sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{Labels: labels}})
	s.contains("/jobs/"+id.String(), `<a href="https://grafana.example.com/trace/4bf92f3577b34da6a3ce929d0e0e4736?span=00f067aa0ba902b7">4bf92f3577b34da6a3ce929d0e0e4736</a>`)
	labels["traceparent"] = "javascript:alert(1)"
	id = s.enqueue(sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{Labels: labels}})
	s.contains("/jobs/"+id.String(), "!<dt>Trace</dt>")
}

func TestAnAttemptSaysHowLongItTook(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	id := s.enqueue(sluice.NewJob{Queue: "mail"})
	s.settle(sluice.Settlement{ID: id, Token: s.claim("mail")[0].Token, Event: sluice.EventRetry, Delay: time.Minute, Error: "no answer"})
	attempts, err := s.client.Attempts(t.Context(), id)
	if err != nil || len(attempts) != 1 || attempts[0].ClaimedAt.IsZero() {
		t.Fatalf("got %+v (%v), want an attempt with its claim", attempts, err)
	}
	page := s.has("/jobs/"+id.String(), `<th scope="col" class="number">Took</th>`, "no answer")
	_, row, _ := strings.Cut(page, `id="attempt-1-1"`)
	row, _, _ = strings.Cut(row, "no answer")
	if took := draw.Duration(attempts[0].FailedAt.Sub(attempts[0].ClaimedAt)); !strings.Contains(row, `<td class="number">`+took+"</td>") {
		t.Errorf("the attempt of %s shows %s", took, row)
	}
}

func TestAJobSaysThatItsStartIsAnEstimate(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	s.set("mail", "", func(q *sluice.Settings) { q.TenantConcurrency = 1 })
	s.beats(presence.Holder{ID: "h:1:x", Role: presence.RoleWorker, Queues: []string{"mail"}, Slots: 2})
	s.enqueue(sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{Tenant: "acme"}})
	s.claim("mail")
	id := s.enqueue(sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{Tenant: "acme"}})
	s.has("/jobs/"+id.String(), "When it starts is not known")
	s.count("mail", time.Minute, stat.Counts{Completed: 1})
	id = s.enqueue(sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{Tenant: "acme"}})
	s.has("/jobs/"+id.String(), "May start at about <time", "by an estimate: 2 jobs must end first, at most 1 run at once", "may start at about then, by an estimate", "-Should start")
}
