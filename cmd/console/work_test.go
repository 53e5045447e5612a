package console_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/cmd/console"
	"github.com/sluice-queue/sluice/flow"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/search"
	"github.com/sluice-queue/sluice/stat"
)

// die makes a dead letter.
func (s *site) die(queue, text string) sluice.ID {
	s.t.Helper()
	id := s.enqueue(sluice.NewJob{Queue: queue})
	s.settle(sluice.Settlement{ID: id, Token: s.claim(queue)[0].Token, Event: sluice.EventBury, Error: text})
	return id
}

// fingerprint finds the fingerprint of the only group on a page.
func fingerprint(page string) string {
	_, rest, _ := strings.Cut(page, `id="group-`)
	found, _, _ := strings.Cut(rest, `"`)
	return found
}

func TestDeadLettersAreGroupedAndRedriven(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	s.contains("/dead?queue=none", "There are no dead letters in none", "!The last one died")
	s.enqueue(sluice.NewJob{Queue: "old"})
	s.count("old", 26*time.Minute, stat.Counts{Dead: 1})
	s.contains("/dead?queue=old", "There are no dead letters in old", "The last one died in the hour from")
	one, two := s.die("mail", "ConnectTimeout: host 7 "+hostile), s.die("mail", "ConnectTimeout: host 8 "+hostile)
	page, _ := s.page("/dead")
	fp := fingerprint(page)
	for _, want := range []string{"2 dead letters in 1 group", "ConnectTimeout", two.String(), `href="/dead/` + fp, "sluice dead groups"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	s.contains("/dead/"+fp, one.String(), two.String(), "2 dead letters of", `id="news"`, "sluice dead ls --fingerprint="+fp, "2 of them died in the last 24 hours", "Silence the alert of the queue", "rule=dead-letters", "!<img")
	s.noted(fp)
	where := url.QueryEscape("state:dead fp:" + fp + " queue:mail")
	dialog, _ := s.page("/do/retry-group?where=" + where)
	for _, want := range []string{"Redrive", "<strong>2 jobs</strong>", `name="canary" value="10"`, "sluice requeue --all"} {
		if !strings.Contains(dialog, want) {
			t.Errorf("the dialog lacks %q: %s", want, dialog)
		}
	}
	values := url.Values{"where": {"state:dead fp:" + fp + " queue:mail"}, "canary": {"1"}, "stop_if_failed": {"50"}, "rate": {"20/s"}, "reason": {"the bank is back"}}
	answer, status := s.do("retry-group", values, nil)
	if status != http.StatusNoContent {
		t.Fatalf("got %d %s", status, answer)
	}
	ops, err := operation.List(t.Context(), s.store, operation.Filter{})
	if err != nil || len(ops) != 1 || ops[0].Canary != 1 || ops[0].StopIfFailed != 0.5 || ops[0].Rate.String() != "20/s" || ops[0].Expected != 2 {
		t.Errorf("got %+v, %v, want the operation", ops, err)
	}
	if text, status := s.page("/dead/00000000"); status != http.StatusNotFound || !strings.Contains(text, "no dead letter has the fingerprint") {
		t.Errorf("an unknown group: %d", status)
	}
}

func TestAGroupSaysWhatItsJobsHaveInCommonAndWhetherItIsNew(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	s.die("mail", "no mailbox")
	if _, err := presence.Given(s.store).Heartbeat(t.Context(), presence.Holder{ID: "host:1:x", Role: presence.RoleWorker, Queues: []string{"mail"}, Version: "v1.3.0", Started: time.Now()}); err != nil {
		t.Fatal(err)
	}
	for _, account := range []string{"1", "2"} {
		id := s.enqueue(sluice.NewJob{Queue: "mail", Payload: []byte(`{"to":{"country":` + strconv.Quote("DE "+hostile) + `},"account":` + account + `}`), EnqueueOptions: sluice.EnqueueOptions{
			Tenant: "acme", Labels: map[string]string{"region": "eu", "account": account},
		}})
		s.settle(sluice.Settlement{ID: id, Token: s.claim("mail")[0].Token, Event: sluice.EventBury, Error: "TimeoutError: no answer"})
	}
	page, _ := s.page("/dead")
	fp := fingerprint(page) // the largest group comes first
	if n := strings.Count(page, ">new since v1.3.0<"); n != 1 {
		t.Errorf("%d groups are new since v1.3.0, want that of the two jobs", n)
	}
	s.contains("/dead", `Dead letters <span class="badge">2</span>`)
	s.contains("/dead/"+fp, "In common", "new since v1.3.0", "tenant</dt><dd>acme", "label region</dt><dd>eu", "payload.to.country</dt><dd>DE ", "!label account", "!payload.account", "!<img")
}

// noted writes a note on a group, resolves and opens the group, and checks the page after each act.
func (s *site) noted(fp string) {
	s.t.Helper()
	for _, one := range []struct {
		act    string
		values url.Values
		says   []string
	}{
		{"note-group", url.Values{"text": {"DNS " + hostile}, "owner": {"team-money"}}, []string{"DNS ", "<strong>team-money</strong>", "!<img"}},
		{"resolve-group", url.Values{"reason": {"new resolver"}}, []string{"state-resolved", "!came back"}},
		{"open-group", url.Values{}, []string{"!state-resolved"}},
		{"resolve-group", url.Values{}, []string{"state-resolved"}},
	} {
		one.values.Set("fingerprint", fp)
		if answer, status := s.do(one.act, one.values, nil); status != http.StatusNoContent {
			s.t.Fatalf("%s: got %d %s, want 204", one.act, status, answer)
		}
		s.contains("/dead", one.says...)
	}
	dialog, _ := s.page("/do/note-group?fingerprint=" + fp)
	for _, want := range []string{`value="team-money"`, ">DNS ", "sluice dead note " + fp} {
		if !strings.Contains(dialog, want) {
			s.t.Errorf("the dialog lacks %q: %s", want, dialog)
		}
	}
	s.contains("/dead/"+fp, "<dt>Owner</dt><dd>team-money</dd>", "<dt>Resolved</dt>", "open-group", "!resolve-group", "!came back")
	three := s.die("mail", "ConnectTimeout: host 9 "+hostile)
	if answer, status := s.do("note-group", url.Values{"fingerprint": {fp}, "owner": {"team-mail"}}, nil); status != http.StatusNoContent {
		s.t.Fatal(answer, status)
	}
	s.contains("/dead", "came back", "<strong>team-mail</strong>", "!state-resolved")
	s.contains("/dead/"+fp, "came back", "and a job died of it", "resolve-group", "open-group")
	if errs, err := s.store.DeleteJobs(s.t.Context(), []sluice.ID{three}, sluice.Act{By: "ada", Reason: "tried"}); err != nil || errs[0] != nil {
		s.t.Fatal(errs, err)
	}
}

func TestANoteOutlivesItsDeadLetters(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	id := s.die("mail", "ConnectTimeout: no answer")
	page, _ := s.page("/dead")
	fp := fingerprint(page)
	if answer, status := s.do("note-group", url.Values{"fingerprint": {fp}, "owner": {"team-money"}, "text": {"DNS"}}, nil); status != http.StatusNoContent {
		t.Fatal(answer, status)
	}
	s.contains("/dead", "team-money", "!Notes on groups")
	if answer, status := s.do("delete-jobs", url.Values{"ids": {id.String()}, "reason": {"tried"}}, nil); status != http.StatusNoContent {
		t.Fatal(answer, status)
	}
	s.contains("/dead", "There are no dead letters", "Notes on groups without dead letters", `href="/dead/`+fp+`"`, "<strong>team-money</strong> DNS")
	s.contains("/dead?queue=mail", "!Notes on groups")
	s.contains("/dead/"+fp, "No dead letters now", "<dt>Owner</dt><dd>team-money</dd>", "note-group", "resolve-group", "!retry-group", "!<h2>Jobs</h2>")
}

func TestAnOperationThatNobodyCountedIsNotWhole(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	s.die("mail", "no mailbox")
	s.die("mail", "no mailbox")
	for expected, says := range map[int][]string{0: {"requeued 1 of an unknown number", `max="1" value="0"`, "!100.0 %", "<dt>Ended</dt>"}, 2: {"50.0 %: requeued 1 of 2", `max="1" value="0.5"`}} {
		op, err := operation.Start(t.Context(), s.store, operation.Operation{Kind: operation.KindRequeue, Query: search.Query{Queue: "mail"}, Canary: 1, StopIfFailed: 0.5, Expected: expected}, sluice.Act{By: "bob", Reason: "try"})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := operation.CarryOut(t.Context(), s.store, op, "upkeep", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := operation.Stop(t.Context(), s.store, op.ID, sluice.Act{By: "bob", Reason: "enough"}); err != nil {
			t.Fatal(err)
		}
		s.contains("/operations/"+op.ID.String(), says...)
	}
}

func TestOperationsAreSteered(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	id := s.enqueue(sluice.NewJob{Queue: "mail"})
	query, err := search.Parse(`queue:mail -tenant:acme error:~"no answer"`, s.job(id).CreatedAt)
	if err != nil {
		t.Fatal(err)
	}
	op, err := operation.Start(t.Context(), s.store, operation.Operation{Kind: operation.KindCancel, Query: query, Expected: 7}, sluice.Act{By: "bob", Reason: "wrong list"})
	if err != nil {
		t.Fatal(err)
	}
	at, name := "/operations/"+op.ID.String(), url.Values{"id": {op.ID.String()}}
	s.contains(at, "cancelled 0 of 7", `queue:mail -tenant:acme error:~&#34;no answer&#34; state:queued,claimed,dispatched`, "bob: wrong list", "as fast as upkeep can", `data-act="pause-operation"`)
	if answer, status := s.do("pause-operation", name, nil); status != http.StatusNoContent || !strings.Contains(answer, "/do/resume-operation?") {
		t.Fatalf("got %d %s, want an undo", status, answer)
	}
	s.contains("/operations", op.ID.String(), `data-act="resume-operation"`, "state-paused", `data-act="stop-operation"`)
	name.Set("rate", "50/s")
	if answer, status := s.do("pace-operation", name, nil); status != http.StatusNoContent {
		t.Errorf("got %d %s", status, answer)
	}
	if answer, status := s.do("stop-operation", name, nil); status != http.StatusNoContent {
		t.Errorf("got %d %s", status, answer)
	}
	s.contains(at, "50/s", "state-stopped", "!stop-operation")
	s.contains("/operations?open=true", "No operation is open")
}

func TestBatchesShowTheirProgress(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	b, err := batch.Open(t.Context(), s.store, batch.Batch{Name: "november", Callbacks: batch.Callbacks{OnComplete: &batch.Callback{Queue: "reports"}}}, sluice.Act{By: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	id := s.enqueue(sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{Batch: b.ID}})
	other := s.enqueue(sluice.NewJob{Queue: "mail"})
	s.contains("/batches", "november", "state-open", `data-act="close-batch"`)
	s.contains("/batches/"+b.ID.String(), "0.0 % of 1 job", "a job of reports", `href="/jobs?q=batch%3A`)
	s.contains("/jobs?q=batch:"+b.ID.String(), id.String(), "!"+other.String(), "!class=\"slow\"")
	s.contains("/jobs/"+id.String(), `href="/batches/`+b.ID.String())
	if answer, status := s.do("cancel-batch", url.Values{"id": {b.ID.String()}}, nil); status != http.StatusNoContent || !strings.Contains(answer, `"go":"/operations/`) {
		t.Errorf("got %d %s, want the page of the operation", status, answer)
	}
	s.contains("/batches/"+b.ID.String(), "state-closed", "!close-batch")
}

func TestAFlowIsDrawnAndListed(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	id, err := flow.Start(t.Context(), s.store, flow.Flow{Name: "nightly", Nodes: []flow.Node{
		{Name: "extract", Queue: "etl"}, {Name: "sum", Queue: "etl", After: []string{"extract"}}, {Name: "mail", Queue: "mail", After: []string{"sum", "extract"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	node := flow.NodeID(id, "sum").String()
	s.contains("/flows", "nightly", `href="/flows/`+id.String(), "state-running")
	s.contains("/flows/"+id.String(), "Flow nightly", `<a href="/jobs/`+node+`"`, `class="node">sum<`, `id="node-`+node, "sum, extract", `class="node">extract<`, `class="arrow`, "sluice flows show")
	s.contains("/jobs/"+node, `href="/flows/`+id.String(), "waits for the jobs that it runs after")
	s.contains("/jobs?q=label.flow:"+id.String(), node)
}
