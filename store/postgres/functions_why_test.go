package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/presence"
)

// TestTheFunctionWhyKnowsAnOpenBreaker stores conditions as programs do, and asks the function why.
func TestTheFunctionWhyKnowsAnOpenBreaker(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	r.exec(`update sluice.queue set engine = 'eu' where name = 'scraper'`)
	r.exec(`select sluice.enqueue(queue => 'scraper', payload => '1', job_id => $1::text::uuid)`, mine)
	operator := r.as(r.operator)
	for _, c := range []struct {
		queue, says string
		open        bool
	}{
		{"scraper", `no dispatcher hands the queue's jobs to the engine "eu": the breaker is open: engine eu: no route`, false},
		{"scrape", "dispatchers serve the queue", true},
	} {
		conditions := []presence.Condition{presence.EngineCondition(c.queue, "eu", time.Now(), "the breaker is open", errors.New(`no route "a"`))}
		if _, err := r.owner.Heartbeat(t.Context(), presence.Holder{ID: "h:1:x", Role: presence.RoleDispatcher, Queues: []string{"scraper"}, Conditions: conditions}); err != nil {
			t.Fatal(err)
		}
		const reason = ` from sluice.why(job_id => $1::text::uuid) where reason = 'dispatchers'`
		if says, open := value[string](r, operator, `select summary`+reason, mine), value[bool](r, operator, `select open`+reason, mine); !strings.HasPrefix(says, c.says) || open != c.open {
			t.Errorf("of a breaker for %s it says %q, open %t", c.queue, says, open)
		}
	}
}

func TestTheFunctionWhyKnowsThatUpkeepWorksOnInternalQueues(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	const hook = "sluice.notify.hook"
	if _, err := r.owner.SaveQueue(t.Context(), sluice.Queue{Name: hook, Settings: sluice.DefaultSettings()}, sluice.Act{By: "sluice"}); err != nil {
		t.Fatal(err)
	}
	id := sluice.NewID()
	in := sluice.Insert{NewJob: sluice.NewJob{Queue: hook, Payload: []byte("1"), EnqueueOptions: sluice.EnqueueOptions{ID: id, Priority: 5}}}
	if _, err := r.owner.Enqueue(t.Context(), []sluice.Insert{in}); err != nil {
		t.Fatal(err)
	}
	r.exec(`select sluice.grant_operator(role => $1, queues => array[$2])`, r.operator, hook)
	operator := r.as(r.operator)
	for _, open := range []bool{false, true} {
		const reasons = `select string_agg(reason, ' ') from sluice.why(job_id => $1::text::uuid) where reason in ('workers', 'upkeep') and open = $2`
		if got := value[string](r, operator, reasons, id.String(), open); got != "upkeep" {
			t.Errorf("of the reasons that are open (%t) it gives %q", open, got)
		}
		if _, err := r.owner.Heartbeat(t.Context(), presence.Holder{ID: "u:1:x", Role: presence.RoleUpkeep}); err != nil {
			t.Fatal(err)
		}
	}
}
