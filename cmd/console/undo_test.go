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
	"github.com/sluice-queue/sluice/hold"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/search"
)

// operate starts an operation, and carries it out to its end.
func (s *site) operate(o operation.Operation, where string) operation.Operation {
	s.t.Helper()
	var err error
	if o.Query, err = search.Parse(where, time.Now()); err == nil {
		o, err = operation.Start(s.t.Context(), s.store, o, sluice.Act{By: "bob", Reason: "the bank is slow"})
	}
	for err == nil && !o.State.Ended() {
		o, _, err = operation.CarryOut(s.t.Context(), s.store, o, "upkeep", nil)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return o
}

// undo takes an operation back by its dialog, as a browser does, and returns what the page is told.
func (s *site) undo(kind string, o operation.Operation) string {
	s.t.Helper()
	act := "undo-" + kind + "-operation"
	dialog := s.ask(act, url.Values{"id": {o.ID.String()}})
	values := url.Values{"id": {o.ID.String()}, "reason": {"by mistake"}}
	for _, input := range strings.Split(dialog, "<input ")[1:] {
		_, value, _ := strings.Cut(input, `value="`)
		value, _, _ = strings.Cut(value, `"`)
		for _, name := range []string{"ids", "counted", "counted_more"} {
			if strings.Contains(input, `name="`+name+`"`) {
				values.Add(name, value)
			}
		}
	}
	answer, status := s.do(act, values, nil)
	if status != http.StatusNoContent {
		s.t.Fatalf("%s: got %d %s, want it done; the dialog was %s", act, status, answer, dialog)
	}
	return answer
}

func TestAnOperationShowsItsLogAndJobs(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	id := s.enqueue(sluice.NewJob{Queue: "mail"})
	o := s.operate(operation.Operation{Kind: operation.KindEdit, Edit: &operation.Edit{Priority: 2}}, "queue:mail")
	at := "/operations/" + o.ID.String()
	s.contains(at, "<h2>Log</h2>", "Jobs on which it acted last", `href="/jobs/`+id.String(), `<span class="mono">priority</span> <del>5</del> → <ins>2</ins>`,
		"No undo: each job had a value of its own", "sluice audit --object operation --name "+o.ID.String(), `!data-act="undo-`)
	page, _ := s.page(at)
	begun, ended := strings.Index(page, "<ins>running</ins>"), strings.Index(page, "<ins>done</ins>")
	if begun < 0 || ended < begun {
		t.Errorf("the log has its beginning at %d and its end at %d, want both, in time: %s", begun, ended, page)
	}
	gone := s.operate(operation.Operation{Kind: operation.KindCancel}, "queue:mail")
	s.contains("/operations/"+gone.ID.String(), "No undo: a cancelled job has ended", "queued → cancelled")
	bounded := openAs(t, access.Caller{Name: "ann", Role: access.RoleOperator, Bounds: access.Bounds{Queues: []string{"mail"}}}, console.Options{})
	bounded.enqueue(sluice.NewJob{Queue: "mail"})
	_, _ = bounded.do("all-hold", url.Values{"where": {"queue:mail"}, "reason": {"wait"}}, nil)
	ops, err := operation.List(t.Context(), bounded.store, operation.Filter{})
	if err != nil || len(ops) != 1 {
		t.Fatalf("got %d operations, %v, want 1", len(ops), err)
	}
	bounded.contains("/operations/"+ops[0].ID.String(), "so the log and the jobs are left out", "!<h2>Log</h2>")
}

func TestAnOperationIsTakenBackWhereNobodyChangedItsJobs(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	left, others := s.enqueue(sluice.NewJob{Queue: "mail"}), s.enqueue(sluice.NewJob{Queue: "mail"})
	s.hold(others, "for another reason")
	held := s.operate(operation.Operation{Kind: operation.KindHold}, "queue:mail")
	if held.Done != 1 {
		t.Fatalf("the operation held %d jobs, want the one that nobody held", held.Done)
	}
	s.contains("/operations/"+held.ID.String(), `data-act="undo-hold-operation"`)
	s.undo("hold", held)
	if holds := s.holds(); len(holds) != 1 || holds[0].JobID != others {
		t.Errorf("got the holds %v, want that of another person alone", holds)
	}
	if dialog := s.ask("undo-hold-operation", url.Values{"id": {held.ID.String()}}); !strings.Contains(dialog, "others have changed them since") {
		t.Errorf("got %s, want that nothing is left to undo", dialog)
	}

	before := s.job(left).DueAt
	later := s.operate(operation.Operation{Kind: operation.KindReschedule, DueAt: before.Add(time.Hour)}, "queue:mail")
	s.undo("reschedule", later)
	if due := s.job(left).DueAt; !due.Equal(before) {
		t.Errorf("the job is due at %v, want %v as before", due, before)
	}

	released := s.operate(operation.Operation{Kind: operation.KindRelease}, "queue:mail")
	s.undo("release", released)
	if holds := s.holds(); len(holds) != 1 || holds[0].Reason != "by mistake" {
		t.Errorf("got the holds %v, want the job held again", holds)
	}
}

func TestARequeueIsTakenBackWhereJobsStillWait(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	waits, runs := s.die("mail", "no route"), s.die("post", "no route")
	requeued := s.operate(operation.Operation{Kind: operation.KindRequeue}, "queue:mail,post state:dead")
	s.claim("post")
	answer := s.undo("requeue", requeued)
	if waiting, running := s.job(waits).State, s.job(runs).State; waiting != sluice.StateDead || running != sluice.StateClaimed {
		t.Errorf("got %s and %s, want the waiting job dead again, and the other one running", waiting, running)
	}
	if !strings.Contains(answer, `"failed":["`+runs.String()) {
		t.Errorf("got %s, want the job that runs among those that stay", answer)
	}
}

func (s *site) hold(id sluice.ID, reason string) {
	s.t.Helper()
	if err := hold.Hold(s.t.Context(), s.store, []sluice.ID{id}, sluice.Act{By: "eve", Reason: reason}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) holds() []hold.Held {
	s.t.Helper()
	found, err := hold.List(s.t.Context(), s.store, hold.Filter{})
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}
