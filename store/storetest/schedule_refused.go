package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/pressure"
	"github.com/sluice-queue/sluice/schedule"
	"github.com/sluice-queue/sluice/schema"
)

func scheduleRefusedRules() []Rule {
	return []Rule{
		{"R-813", "A queue into which a schedule fires is not deleted; the error names the schedules, paused ones too.", "", func(w *world) {
			for _, name := range []string{"b", "a"} {
				w.schedule(name, schedule.Definition{Every: 24 * time.Hour})
			}
			w.schedule("elsewhere", schedule.Definition{Queue: "other", Every: 24 * time.Hour})
			_, err := schedule.Pause(w.ctx, w.Store, "a", "", person("test"))
			w.ok(err)
			err = w.Other.DeleteQueue(w.ctx, queue, person("test"))
			w.is(err, sluice.ErrNotAllowed)
			var full *sluice.QueueNotEmptyError
			if !errors.As(err, &full) || fmt.Sprint(full.Holds.Schedules) != "[a b]" || !strings.Contains(err.Error(), "2 schedules such as a") {
				w.Errorf("error %v, want one that names a and b", err)
			}
			for _, name := range []string{"b", "a"} {
				w.ok(schedule.Delete(w.ctx, w.Store, name, person("test")))
			}
			w.ok(w.Other.DeleteQueue(w.ctx, queue, person("test")))
		}},
		{"R-814", "A full queue refuses a fire: the schedule keeps the result with the reason, goes on, and pauses after as many as it says. Only as many jobs of one instant are stored as the queue may have.", "", func(w *world) {
			w.save(func(s *sluice.Settings) { s.MaxWaiting = 2 })
			for _, name := range []string{"a", "b", "c"} {
				w.schedule(name, schedule.Definition{Every: 24 * time.Hour, PauseAfter: 2, Overlap: schedule.QueueAll})
			}
			w.Advance(24 * time.Hour)
			fired := w.fire(w.Store)
			equal(w, "first fire", fmt.Sprintf("%d jobs, %d refused, %d told", fired.Jobs, fired.Refused, len(fired.Refusals)), "2 jobs, 1 refused, 1 told")
			for n := 1; n <= 2; n++ {
				w.passDay(n)
				fired = w.fire(w.Other)
			}
			equal(w, "jobs", fired.Jobs, 0)
			paused := 0
			for _, name := range []string{"a", "b", "c"} {
				s := w.readSchedule(name)
				last := s.Progress.Recent[len(s.Progress.Recent)-1]
				equal(w, "result of "+name, last.Result, schedule.Refused)
				equal(w, "job of "+name, last.Job.IsZero(), true)
				if !strings.Contains(last.Reason, "is full: 2 jobs wait, and its max_waiting is 2") {
					w.Errorf("%s: reason %q", name, last.Reason)
				}
				equal(w, "fires of "+name, s.Progress.Fired+s.Progress.Refused, s.Progress.Fired*3+(1-s.Progress.Fired)*2)
				if s.Paused {
					paused++
					if !strings.HasPrefix(s.Note, "2 fires in a row have failed, the last because the queue refused its job: ") {
						w.Errorf("note %q", s.Note)
					}
				}
			}
			equal(w, "paused", paused, 1)
			equal(w, "jobs in the end", len(w.claim(10)), 1+1) // the jobs of each schedule run one at a time
		}},
		{"R-815", "A fire that a full queue refuses cancels no earlier job.", "", func(w *world) {
			w.save(func(s *sluice.Settings) { s.MaxWaiting = 1 })
			w.schedule("poll", schedule.Definition{Every: 24 * time.Hour, Overlap: schedule.CancelOther})
			w.Advance(24 * time.Hour)
			equal(w, "jobs", w.fire(w.Store).Jobs, 1)
			request := claimOf(1, 1)
			request.Lease = 24 * time.Hour
			running := w.claimAs(w.Store, request)
			w.add(sluice.EnqueueOptions{})
			w.passDay(1)
			equal(w, "refused", w.fire(w.Other).Refused, 1)
			w.inState(running[0].ID, sluice.StateClaimed)
			w.save(func(s *sluice.Settings) { s.MaxWaiting = 2 })
			w.passDay(2)
			equal(w, "jobs with room", w.fire(w.Store).Jobs, 1)
			w.inState(running[0].ID, sluice.StateCancelled)
		}},
		{"R-816", "A fire whose payload breaks the payload_limit or the payload_schema of its queue is refused, with the reason.", "", func(w *world) {
			w.schedule("nightly", schedule.Definition{Every: 24 * time.Hour, Payload: json.RawMessage(`{"day":"{{date}}"}`), Overlap: schedule.QueueAll})
			for n, c := range []struct {
				change func(*sluice.Settings)
				want   string
			}{
				{func(s *sluice.Settings) { s.PayloadSchema = `{"properties":{"day":{"type":"string"}}}` }, ""},
				{func(s *sluice.Settings) { s.PayloadSchema = `{"properties":{"day":{"type":"number"}}}` }, "it does not match the payload_schema"},
				{func(s *sluice.Settings) { s.PayloadLimit = 10 }, "20 bytes are more than the payload_limit of queue"},
			} {
				w.save(c.change)
				w.passDay(n)
				fired, err := schedule.Given(w.Store).FireSchedules(w.ctx, 100, schema.New())
				w.ok(err)
				reason := fired.Refusals["nightly"]
				if fired.Refused != len(fired.Refusals) || c.want == "" && reason != "" || !strings.Contains(reason, c.want) {
					w.Errorf("fire %d: %+v, want a refusal with %q", n, fired, c.want)
				}
			}
			equal(w, "refused", w.readSchedule("nightly").Progress.Refused, 2)
			equal(w, "jobs", len(w.claim(10)), 1)
		}},
		{"R-817", "A person who fires a schedule into a full queue gets its error, and nothing is stored. Of a list of instants, those fire for which there is room.", "", func(w *world) {
			w.save(func(s *sluice.Settings) { s.MaxWaiting = 3 })
			w.schedule("nightly", schedule.Definition{Every: 24 * time.Hour})
			act, at := person("test"), w.Now().Truncate(time.Second)
			instants := []time.Time{at.Add(-2 * time.Hour), at.Add(-time.Hour), at}
			_, err := schedule.Trigger(w.ctx, w.Store, "nightly", person("test"), nil)
			w.ok(err)
			before := jsonText(w, w.readSchedule("nightly").Progress)
			for _, store := range []sluice.Store{w.Store, w.Other} {
				fires, err := schedule.Given(store).FireSchedule(w.ctx, "nightly", instants, act, nil)
				w.ok(err)
				equal(w, "results", fmt.Sprint([]schedule.Result{fires[0].Result, fires[1].Result, fires[2].Result}), "[enqueued enqueued refused]")
			}
			_, err = schedule.Trigger(w.ctx, w.Store, "nightly", person("test"), nil)
			w.is(err, pressure.ErrFull)
			equal(w, "progress after a refusal", jsonText(w, w.readSchedule("nightly").Progress), before)
			equal(w, "jobs", len(w.claim(10)), 3)
			w.save(func(s *sluice.Settings) { s.MaxWaiting, s.PayloadLimit = 0, 10 })
			_, err = schedule.Given(w.Store).FireSchedule(w.ctx, "nightly", instants, person("test"), nil)
			w.is(err, sluice.ErrInvalid)
		}},
		{"R-818", "A backfill operation makes the job of each fire in its range once, at its rate, waits while the queue is full, and counts exactly.", "I-15", func(w *world) {
			w.save(func(s *sluice.Settings) { s.MaxWaiting = 4 })
			w.schedule("nightly", schedule.Definition{Every: time.Hour})
			end := w.Now()
			of := operation.Backfill{Schedule: "nightly", From: end.Add(-6*time.Hour + time.Minute), To: end}
			op, err := operation.Start(w.ctx, w.Store, operation.Operation{Kind: operation.KindBackfill, Backfill: &of}, person("the store was closed"))
			w.ok(err)
			equal(w, "expected", op.Expected, 6)
			var full *sluice.QueueNotEmptyError
			if err := w.Store.DeleteQueue(w.ctx, queue, person("test")); !errors.As(err, &full) || len(full.Holds.Operations) != 1 {
				w.Errorf("error %v, want one that names the operation", err)
			}
			jobs := 0
			for n := 0; op.EndedAt.IsZero() && n < 1000; n++ {
				store := []sluice.Store{w.Store, w.Other}[n%2]
				stale := op
				if op, _, err = operation.CarryOut(w.ctx, store, op, "upkeep", nil); err != nil {
					w.Fatalf("carry out: %v", err)
				}
				if _, _, err := operation.CarryOut(w.ctx, w.Other, stale, "a slow upkeep", nil); err != nil && !errors.Is(err, sluice.ErrConflict) {
					w.Fatalf("carry out a step again: %v", err)
				}
				if op, err = operation.Read(w.ctx, w.Store, op.ID); err != nil {
					w.Fatalf("read: %v", err)
				}
				for _, c := range w.claim(10) {
					jobs++
					w.done(by(sluice.EventComplete, c))
				}
			}
			equal(w, "operation", fmt.Sprintf("%s, %d done, %d skipped, %d failed", op.State, op.Done, op.Skipped, op.Failed), "done, 6 done, 0 skipped, 0 failed")
			equal(w, "jobs", jobs, 6)
			equal(w, "progress", w.readSchedule("nightly").Progress.Fired, 0)
			again, err := operation.Start(w.ctx, w.Store, operation.Operation{Kind: operation.KindBackfill, Backfill: &of}, person("again"))
			w.ok(err)
			for n := 0; again.EndedAt.IsZero() && n < 1000; n++ {
				if again, _, err = operation.CarryOut(w.ctx, w.Other, again, "upkeep", nil); err != nil {
					w.Fatalf("carry out: %v", err)
				}
			}
			equal(w, "skipped", fmt.Sprint(again.Done, again.Skipped), "0 6")
		}},
		{"R-1200", "A person fires no job whose payload breaks a rule of its queue, and nothing is stored. A backfill fails with the reason.", "[schedules](guide/schedules.md)", func(w *world) {
			w.schedule("nightly", schedule.Definition{Every: time.Hour, Payload: json.RawMessage(`{"day":"{{date}}"}`)})
			of := operation.Backfill{Schedule: "nightly", From: w.Now().Add(-6 * time.Hour), To: w.Now()}
			for _, change := range []func(*sluice.Settings){
				func(s *sluice.Settings) { s.PayloadSchema = `{"properties":{"day":{"type":"number"}}}` },
				func(s *sluice.Settings) { s.PayloadSchema, s.PayloadLimit = "", 10 },
			} {
				w.save(change)
				_, err := schedule.Trigger(w.ctx, w.Store, "nightly", person("test"), schema.New())
				w.is(err, sluice.ErrInvalid)
				_, err = schedule.FireFor(w.ctx, w.Other, "nightly", []time.Time{of.To}, person("test"), schema.New())
				w.is(err, sluice.ErrInvalid)
				op, err := operation.Start(w.ctx, w.Store, operation.Operation{Kind: operation.KindBackfill, Backfill: &of}, person("test"))
				w.ok(err)
				op, _, err = operation.CarryOut(w.ctx, w.Other, op, "upkeep", schema.New())
				w.ok(err)
				if op.State != operation.StateFailed || !strings.Contains(op.Why, "payload") {
					w.Errorf("the backfill is %s: %q", op.State, op.Why)
				}
			}
			w.claimNone("nothing is stored")
			equal(w, "fires", len(w.readSchedule("nightly").Progress.Recent), 0)
		}},
		{"R-819", "A backfill of an unknown schedule, a wrong range or too many fires is refused; one whose schedule is deleted fails with the reason.", "", func(w *world) {
			start := func(of operation.Backfill) (operation.Operation, error) {
				return operation.Start(w.ctx, w.Store, operation.Operation{Kind: operation.KindBackfill, Backfill: &of}, person("test"))
			}
			at := w.Now()
			_, err := start(operation.Backfill{Schedule: "nightly", From: at, To: at})
			w.is(err, sluice.ErrNotFound)
			w.schedule("nightly", schedule.Definition{Every: time.Second})
			_, err = start(operation.Backfill{Schedule: "nightly", From: at, To: at.Add(-time.Hour)})
			w.is(err, sluice.ErrInvalid)
			_, err = start(operation.Backfill{Schedule: "nightly", From: at.Add(-48 * time.Hour), To: at})
			w.is(err, sluice.ErrInvalid)
			_, err = operation.Start(w.ctx, w.Store, operation.Operation{Kind: operation.KindBackfill}, person("test"))
			w.is(err, sluice.ErrInvalid)
			op, err := start(operation.Backfill{Schedule: "nightly", From: at.Add(-time.Hour), To: at})
			w.ok(err)
			w.ok(schedule.Delete(w.ctx, w.Store, "nightly", person("test")))
			op, _, err = operation.CarryOut(w.ctx, w.Other, op, "upkeep", nil)
			w.ok(err)
			equal(w, "state", op.State, operation.StateFailed)
			if !strings.Contains(op.Why, `schedule "nightly"`) {
				w.Errorf("it says %q", op.Why)
			}
		}},
	}
}
