package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
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
			request.Lease = 100 * time.Hour
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
		{"R-817", "A person who fires a schedule into a full queue gets its error, and nothing is stored.", "", func(w *world) {
			w.save(func(s *sluice.Settings) { s.MaxWaiting = 1 })
			w.schedule("nightly", schedule.Definition{Every: 24 * time.Hour})
			before := jsonText(w, w.readSchedule("nightly").Progress)
			at := w.Now().Truncate(time.Second)
			_, err := schedule.Given(w.Store).FireSchedule(w.ctx, "nightly", []time.Time{at.Add(-time.Hour), at}, person("test"))
			w.is(err, pressure.ErrFull)
			_, err = schedule.Trigger(w.ctx, w.Other, "nightly", person("test"))
			w.ok(err)
			before, after := jsonText(w, w.readSchedule("nightly").Progress), before
			_, err = schedule.Trigger(w.ctx, w.Other, "nightly", person("test"))
			w.is(err, pressure.ErrFull)
			equal(w, "progress after a refusal", jsonText(w, w.readSchedule("nightly").Progress), before)
			if before == after {
				w.Errorf("the trigger changed nothing: %s", after)
			}
			equal(w, "jobs", len(w.claim(10)), 1)
		}},
	}
}
