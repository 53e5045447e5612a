package storetest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/schedule"
)

// scheduleLongRules are rules about jobs that run through many fires, or whose end is long ago at the next fire.
func scheduleLongRules() []Rule {
	return []Rule{
		{"R-1150", "However many fires and triggers come while a job runs, the schedule forgets no unfinished job: skip still drops the fires, and queue one lets one wait.", "[schedules](guide/schedules.md)", func(w *world) {
			for overlap, want := range map[schedule.Overlap]string{schedule.Skip: "1 fired, 26 skipped", schedule.QueueOne: "2 fired, 25 skipped"} {
				name := string(overlap[len(overlap)-3:])
				w.schedule(name, schedule.Definition{Queue: name, Every: 24 * time.Hour, Overlap: overlap, CatchUp: schedule.All, CatchUpWindow: 60 * 24 * time.Hour})
				w.Advance(24 * time.Hour)
				equal(w, "jobs", w.fire(w.Store).Jobs, 1)
				request := claimOf(1, 1)
				request.Queue, request.Lease = name, 24*time.Hour
				long := w.claimAs(w.Store, request)[0]
				w.Advance((schedule.RecentFires+5)*24*time.Hour - 7*time.Minute)
				w.fire(w.Other)
				for range schedule.RecentFires + 1 {
					fire, err := schedule.Trigger(w.ctx, w.Store, name, person("test"), nil)
					w.ok(err)
					w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{fire.Job}, person("test"))))
				}
				w.passDay(13)
				w.fire(w.Store)
				s := w.readSchedule(name)
				equal(w, string(overlap), fmt.Sprintf("%d fired, %d skipped", s.Progress.Fired, s.Progress.Skipped), want)
				equal(w, "fires that the schedule keeps", len(s.Progress.Recent), schedule.RecentFires)
				equal(w, "the oldest of them", s.Progress.Recent[0].Job, long.ID)
				w.done(by(sluice.EventComplete, long))
				w.ok(schedule.Delete(w.ctx, w.Store, name, person("test")))
			}
		}},
		{"R-1151", "A completed job that its queue keeps no longer at the next fire begins the count of failures again: a schedule pauses only when fires in a row have failed.", "[schedules](guide/schedules.md)", func(w *world) {
			w.save(func(s *sluice.Settings) { s.KeepCompleted = time.Hour })
			w.schedule("nightly", schedule.Definition{Every: 24 * time.Hour, PauseAfter: 2})
			for n, event := range []sluice.Event{sluice.EventBury, sluice.EventComplete, sluice.EventBury, sluice.EventBury} {
				w.passDay(n)
				_, err := w.Store.Prune(w.ctx, "", 100)
				w.ok(err)
				equal(w, fmt.Sprintf("jobs of fire %d", n), w.fire(w.Store).Jobs, 1)
				w.done(by(event, w.claimOne()))
			}
			w.passDay(4)
			equal(w, "paused after two in a row", fmt.Sprint(w.fire(w.Store).Paused), "[nightly]")
		}},
		{"R-1152", "A schedule whose jobs wait for each other pauses when as many as it says have died in a row, also if more fires have come since than it keeps.", "[schedules](guide/schedules.md)", func(w *world) {
			w.schedule("often", schedule.Definition{Every: 24 * time.Hour, PauseAfter: 3, Overlap: schedule.QueueAll, CatchUp: schedule.All, CatchUpWindow: 60 * 24 * time.Hour})
			w.Advance(2 * schedule.RecentFires * 24 * time.Hour)
			equal(w, "jobs", w.fire(w.Store).Jobs, 2*schedule.RecentFires)
			for range 3 {
				w.done(by(sluice.EventBury, w.claimOne()))
			}
			w.passDay(0)
			equal(w, "paused", fmt.Sprint(w.fire(w.Other).Paused), "[often]")
		}},
		{"R-1154", "A dead or cancelled job that somebody requeues is unfinished again: the rule for overlaps holds for it. Its new end counts instead of the former.", "[schedules](guide/schedules.md)", func(w *world) {
			w.schedule("nightly", schedule.Definition{Every: 24 * time.Hour, PauseAfter: 2})
			w.passDay(0)
			equal(w, "jobs", w.fire(w.Store).Jobs, 1)
			first := w.claimOne()
			w.done(by(sluice.EventBury, first))
			w.passDay(1)
			equal(w, "jobs after a dead one", w.fire(w.Other).Jobs, 1)
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{w.claimOne().ID}, person("test"))))
			w.passDay(2)
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{first.ID}, person("redrive"))))
			again := w.claimOne()
			equal(w, "requeued", again.ID, first.ID)
			equal(w, "skipped beside the requeued job", w.fire(w.Store).Skipped, 1)
			equal(w, "failures", w.readSchedule("nightly").Progress.Failures, 0)
			w.done(by(sluice.EventBury, again))
			w.passDay(3)
			equal(w, "jobs", w.fire(w.Store).Jobs, 1)
			equal(w, "failures of one job", w.readSchedule("nightly").Progress.Failures, 1)
			second := w.claimOne()
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{second.ID}, person("test"))))
			w.passDay(4)
			equal(w, "jobs after a cancelled one", w.fire(w.Store).Jobs, 1)
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{w.claimOne().ID}, person("test"))))
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{second.ID}, person("once more"))))
			w.passDay(5)
			equal(w, "skipped beside the second", w.fire(w.Store).Skipped, 1)
		}},
		{"R-1153", "A trigger makes the job with the payload of the schedule, whatever JSON it is.", "[schedules](guide/schedules.md)", func(w *world) {
			for payload, want := range map[string]string{`"of:\"{{date}}\""`: "", `"5"`: `"5"`, `null`: `null`, `[1,{"a":2}]`: `[1,{"a":2}]`, `7`: `7`} {
				w.schedule("nightly", schedule.Definition{Every: 24 * time.Hour, Payload: json.RawMessage(payload)})
				fire, err := schedule.Trigger(w.ctx, w.Store, "nightly", person("test"), nil)
				w.ok(err)
				if want == "" {
					want = `"of:\"` + fire.At.Format(time.DateOnly) + `\""`
				}
				equal(w, "payload", squeezed(w.job(fire.Job).Payload), want)
			}
		}},
		{"R-1201", "Changes of different fields of one schedule at the same time both stay.", "[schedules](guide/schedules.md)", func(w *world) {
			calls := 0
			saved, err := schedule.Change(w.ctx, w.Store, "nightly", person("ada"), func(d *schedule.Definition) error {
				if d.Priority = 3; d.Every == 0 {
					d.Queue, d.Every = queue, 2*time.Hour
				}
				if calls++; calls <= 2 { // somebody makes the schedule, and then changes it
					other, err := schedule.Change(w.ctx, w.Other, "nightly", person("bob"), func(d *schedule.Definition) error {
						d.Queue, d.Every, d.MaxFires = queue, time.Hour, calls
						return nil
					})
					w.ok(err)
					equal(w, "version", other.Version, int64(calls))
				}
				return nil
			})
			w.ok(err)
			equal(w, "the schedule", fmt.Sprint(saved.Every, saved.MaxFires, saved.Priority), "1h0m0s 2 3")
			equal(w, "calls", calls, 3)
		}},
	}
}
