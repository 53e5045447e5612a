package storetest

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/schedule"
)

func scheduleRules() []Rule {
	return []Rule{
		{"R-1044", "When a fire that waits for the one before it is cancelled, the next fire waits for that one at once, also in a queue without other jobs that run in order.", "I-1", func(w *world) {
			w.schedule("chain", schedule.Definition{Every: 24 * time.Hour, Overlap: schedule.QueueAll, CatchUp: schedule.All, CatchUpWindow: 300 * time.Hour})
			w.Advance(3*24*time.Hour - 3*time.Minute)
			equal(w, "jobs", w.fire(w.Store).Jobs, 3)
			page, err := w.Store.Jobs(w.ctx, sluice.JobFilter{Queue: queue, Limit: 10})
			w.ok(err)
			third, second, first := page.Jobs[0].ID, page.Jobs[1].ID, page.Jobs[2].ID
			equal(w, "the third waits for", w.job(third).BlockedBy, second)
			w.ok(w.only(w.Other.Cancel(w.ctx, []sluice.ID{second}, person("test"))))
			equal(w, "the third waits for", w.job(third).BlockedBy, first)
			w.done(by(sluice.EventComplete, w.claimOne()))
			equal(w, "then begins", w.claimOne().ID, third)
		}},
		{"R-800", "A schedule reads back as it was saved, from every process; schedules are listed by name, in pages, and by queue; an unknown one is not found.", "I-20", func(w *world) {
			definition := schedule.Definition{
				Queue: queue, Cron: "30 2 * * mon", Zone: "Europe/Berlin", Payload: json.RawMessage(`{"b":1,"a":"{{fire}}"}`), Key: "k", Tenant: "acme",
				Priority: 3, Labels: map[string]string{"team": "x"}, Overlap: schedule.QueueOne, CatchUp: schedule.All, CatchUpWindow: time.Hour,
				Jitter: time.Minute, PauseAfter: 3, MaxFires: 9, End: time.Unix(4e9, 5000).UTC(),
			}
			saved, err := schedule.Set(w.ctx, w.Store, "b", definition, person("test"))
			w.ok(err)
			equal(w, "version", saved.Version, 1)
			equal(w, "next fire is ahead", saved.NextAt.After(w.Now()), true)
			got, err := schedule.Read(w.ctx, w.Other, "b")
			w.ok(err)
			equal(w, "schedule", jsonText(w, got), jsonText(w, saved))
			w.near("clock", got.Now, w.Now())
			for _, name := range []string{"c", "a"} {
				definition.Queue = "other"
				_, err := schedule.Set(w.ctx, w.Store, name, definition, person("test"))
				w.ok(err)
			}
			equal(w, "all", w.schedules(schedule.Filter{}), "[a b c]")
			equal(w, "a page", w.schedules(schedule.Filter{After: "a", Limit: 1}), "[b]")
			equal(w, "of a queue", w.schedules(schedule.Filter{Queue: "other"}), "[a c]")
			_, err = schedule.Read(w.ctx, w.Store, "d")
			w.is(err, sluice.ErrNotFound)
		}},
		{"R-801", "A schedule fires when its instant has come by the store's clock, and not before; its job has the payload, key, tenant, priority and labels of the definition, with the instant.", "I-15", func(w *world) {
			w.schedule("nightly", schedule.Definition{
				Every: 24 * time.Hour, Payload: json.RawMessage(`{"at":"{{fire}}","n":1}`), Key: "k {{date}}", Tenant: "acme", Priority: 2,
				Labels: map[string]string{"day": "{{date}}"},
			})
			fired := w.fire(w.Store)
			equal(w, "fires before the instant", fired.Schedules, 0)
			if fired.Wait <= 0 || fired.Wait > 24*time.Hour {
				w.Errorf("the next fire is due in %s, want at most 24h", fired.Wait)
			}
			w.Advance(24 * time.Hour)
			equal(w, "jobs", w.fire(w.Store).Jobs, 1)
			equal(w, "jobs of another look", w.fire(w.Other).Jobs, 0)
			c := w.claimOne()
			equal(w, "tenant", c.Tenant, "acme")
			equal(w, "priority", c.Priority, 2)
			equal(w, "label", c.Labels[schedule.Label], "nightly")
			s := w.readSchedule("nightly")
			fire := s.Progress.Recent[0]
			equal(w, "job", fire.Job, c.ID)
			equal(w, "payload", squeezed(c.Payload), fmt.Sprintf(`{"at":"%s","n":1}`, fire.At.Format(time.RFC3339Nano)))
			equal(w, "date", c.Labels["day"], fire.At.Format(time.DateOnly))
			equal(w, "key", c.Key, "k "+fire.At.Format(time.DateOnly))
			equal(w, "fired", s.Progress.Fired, 1)
		}},
		{"R-802", "Any number of processes that fire at once make one job per fire.", "I-15", func(w *world) {
			const schedules = 30
			for n := range schedules {
				w.schedule(fmt.Sprint("s", n), schedule.Definition{Every: 24 * time.Hour})
			}
			w.Advance(24 * time.Hour)
			var all sync.WaitGroup
			var jobs atomic.Int32
			for n := range 6 {
				store := []sluice.Store{w.Store, w.Other}[n%2]
				all.Go(func() {
					for range schedules {
						fired, err := schedule.Given(store).FireSchedules(w.ctx, 7, nil)
						if err != nil {
							w.Errorf("fire: %v", err)
							return
						}
						jobs.Add(int32(fired.Jobs))
						if fired.Wait > 0 {
							return
						}
					}
				})
			}
			all.Wait()
			equal(w, "jobs by the answers", int(jobs.Load()), schedules)
			equal(w, "jobs", len(w.claim(2*schedules)), schedules)
		}},
		{"R-803", "While a job is unfinished, skip drops the fires, queue one lets one wait, queue all lets all wait for each other, and cancel other cancels the job for the new one.", "I-15", func(w *world) {
			for overlap, want := range map[schedule.Overlap]string{
				schedule.Skip: "1 fired, 3 skipped, 1 at a time", schedule.QueueOne: "2 fired, 2 skipped, 1 at a time",
				schedule.QueueAll: "4 fired, 0 skipped, 1 at a time", schedule.CancelOther: "4 fired, 0 skipped, 1 at a time",
			} {
				name := string(overlap[len(overlap)-3:])
				s := w.schedule(name, schedule.Definition{Queue: name, Every: 24 * time.Hour, Overlap: overlap})
				var first []*sluice.Claim
				for n := range 4 {
					w.passDay(n)
					w.fire(w.Store)
					request := claimOf(1, 10)
					request.Queue, request.Lease = name, 24*time.Hour
					if claims := w.claimAs(w.Store, request); n == 0 || overlap == schedule.CancelOther {
						first = claims
					} else {
						equal(w, string(overlap)+": jobs beside the first", len(claims), 0)
					}
				}
				s = w.readSchedule(s.Name)
				equal(w, string(overlap), fmt.Sprintf("%d fired, %d skipped, %d at a time", s.Progress.Fired, s.Progress.Skipped, len(first)), want)
				if overlap == schedule.CancelOther {
					w.inState(s.Progress.Recent[2].Job, sluice.StateCancelled)
				}
				w.done(by(sluice.EventComplete, first[0]))
				w.ok(schedule.Delete(w.ctx, w.Store, name, person("test")))
			}
		}},
		{"R-804", "After a time without upkeep, a schedule makes up for the last missed fire, for all in its window, or for none, and counts the missed ones.", "I-15", func(w *world) {
			for name, c := range map[string]struct {
				catchUp schedule.CatchUp
				window  time.Duration
				want    string
			}{
				"last": {schedule.Last, 30 * 24 * time.Hour, "1 fired, 3 missed"}, "none": {schedule.None, 30 * 24 * time.Hour, "0 fired, 4 missed"},
				"all": {schedule.All, 30 * 24 * time.Hour, "4 fired, 0 missed"}, "window": {schedule.All, 60 * time.Hour, "3 fired, 1 missed"},
				"old": {schedule.Last, time.Hour, "0 fired, 4 missed"},
			} {
				w.schedule(name, schedule.Definition{
					Every: 24 * time.Hour, Overlap: schedule.QueueAll, CatchUp: c.catchUp, CatchUpWindow: c.window,
				})
				w.Advance(4 * 24 * time.Hour) // fires were due 74, 50, 26 and 2 hours ago
				fired := w.fire(w.Store)
				s := w.readSchedule(name)
				if got := fmt.Sprintf("%d fired, %d missed", s.Progress.Fired, s.Progress.Missed); got != c.want {
					w.Errorf("%s: %s, want %s (%+v)", name, got, c.want, fired)
				}
				w.ok(schedule.Delete(w.ctx, w.Store, name, person("test")))
			}
		}},
		{"R-805", "A change of a schedule in the second of its fire loses and repeats no fire: one job is made, by the old or the new definition.", "I-15", func(w *world) {
			for n := range 8 {
				name := fmt.Sprint("s", n)
				w.schedule(name, schedule.Definition{Every: 24 * time.Hour, Payload: json.RawMessage(`"old"`)})
				w.Advance(24 * time.Hour)
				var both sync.WaitGroup
				both.Go(func() {
					if _, err := schedule.Given(w.Other).FireSchedules(w.ctx, 10, nil); err != nil {
						w.Errorf("fire: %v", err)
					}
				})
				both.Go(func() {
					_, err := schedule.Set(w.ctx, w.Store, name, schedule.Definition{Queue: queue, Every: 36 * time.Hour, Payload: json.RawMessage(`"new"`)}, person("test"))
					if err != nil {
						w.Errorf("set: %v", err)
					}
				})
				both.Wait()
				w.fire(w.Store)
				equal(w, "jobs", len(w.claim(10)), 1)
				s := w.readSchedule(name)
				equal(w, "fired", s.Progress.Fired, 1)
				equal(w, "interval", s.Every, 36*time.Hour)
				w.ok(schedule.Delete(w.ctx, w.Store, name, person("test")))
			}
		}},
		{"R-806", "A paused schedule does not fire, says why, and after the resume makes up for nothing; a deleted one is gone, and its jobs stay.", "", func(w *world) {
			w.schedule("nightly", schedule.Definition{Every: 24 * time.Hour})
			paused, err := schedule.Pause(w.ctx, w.Store, "nightly", "the bank is closed", person("test"))
			w.ok(err)
			equal(w, "note", paused.Note, "the bank is closed")
			w.Advance(48 * time.Hour)
			equal(w, "jobs while paused", w.fire(w.Store).Jobs, 0)
			resumed, err := schedule.Resume(w.ctx, w.Other, "nightly", person("test"))
			w.ok(err)
			equal(w, "note", resumed.Note, "")
			equal(w, "jobs after the resume", w.fire(w.Store).Jobs, 0)
			w.Advance(24 * time.Hour)
			equal(w, "jobs a day later", w.fire(w.Store).Jobs, 1)
			w.ok(schedule.Delete(w.ctx, w.Other, "nightly", person("test")))
			w.is(schedule.Delete(w.ctx, w.Store, "nightly", person("test")), sluice.ErrNotFound)
			w.Advance(24 * time.Hour)
			equal(w, "jobs of a deleted schedule", w.fire(w.Store).Jobs, 0)
			equal(w, "jobs that stay", len(w.claim(10)), 1)
		}},
		{"R-807", "When as many of its jobs in a row have died as it says, a schedule pauses itself, with a note and an audit entry; a completed job begins the count again.", "I-4", func(w *world) {
			w.schedule("nightly", schedule.Definition{Every: 24 * time.Hour, PauseAfter: 2})
			for n, event := range []sluice.Event{sluice.EventBury, sluice.EventComplete, sluice.EventBury, sluice.EventBury} {
				w.passDay(n)
				equal(w, fmt.Sprintf("jobs of fire %d", n), w.fire(w.Store).Jobs, 1)
				w.done(by(event, w.claimOne()))
			}
			w.passDay(4)
			fired := w.fire(w.Store)
			equal(w, "jobs", fired.Jobs, 0)
			equal(w, "paused", fmt.Sprint(fired.Paused), "[nightly]")
			s := w.readSchedule("nightly")
			equal(w, "it is paused", s.Paused, true)
			equal(w, "note", s.Note, "2 fires in a row have failed, the last because its job died")
			entries := w.toldOf("nightly")
			equal(w, "actor", entries[0].Actor, "upkeep")
			equal(w, "entries", len(entries), 2)
			_, err := schedule.Resume(w.ctx, w.Store, "nightly", person("test"))
			w.ok(err)
			w.passDay(5)
			equal(w, "jobs after the resume", w.fire(w.Store).Jobs, 1)
		}},
		{"R-808", "A schedule ends after as many jobs as it says, and after its end.", "", func(w *world) {
			at := w.Now().Add(-time.Hour)
			w.schedule("few", schedule.Definition{Every: 24 * time.Hour, MaxFires: 2, Overlap: schedule.QueueAll})
			w.schedule("over", schedule.Definition{Every: 24 * time.Hour, End: at})
			equal(w, "an ended one has no next fire", w.readSchedule("over").NextAt.IsZero(), true)
			jobs := 0
			for n := range 4 {
				w.passDay(n)
				jobs += w.fire(w.Store).Jobs
			}
			equal(w, "jobs", jobs, 2)
			equal(w, "one that has made its jobs has no next fire", w.readSchedule("few").NextAt.IsZero(), true)
		}},
		{"R-809", "A person fires a schedule now, once per act, also while it is paused; its next fire stays, and the audit tells of it.", "I-4", func(w *world) {
			w.schedule("nightly", schedule.Definition{Every: 24 * time.Hour})
			_, err := schedule.Pause(w.ctx, w.Store, "nightly", "", person("test"))
			w.ok(err)
			before := w.readSchedule("nightly")
			act := person("the bank asks")
			var jobs []sluice.ID
			for _, store := range []sluice.Store{w.Store, w.Other} {
				fire, err := schedule.Trigger(w.ctx, store, "nightly", act, nil)
				w.ok(err)
				equal(w, "result", fire.Result, schedule.ByHand)
				jobs = append(jobs, fire.Job)
			}
			equal(w, "job of the repeated act", jobs[1], jobs[0])
			equal(w, "jobs", len(w.claim(10)), 1)
			after := w.readSchedule("nightly")
			equal(w, "next fire", after.NextAt, before.NextAt)
			equal(w, "version", after.Version, before.Version)
			equal(w, "recent", len(after.Progress.Recent), 1)
			told := w.toldOf("nightly")
			equal(w, "event", told[0].Event, audit.EventFire)
			equal(w, "reason", told[0].Reason, "the bank asks")
			_, err = schedule.Trigger(w.ctx, w.Store, "unknown", person("test"), nil)
			w.is(err, sluice.ErrNotFound)
		}},
		{"R-810", "A person fires instants of a schedule: each makes its job once, however often it is repeated, and no fire that has been makes one; a repeated act has the results of the first.", "I-15", func(w *world) {
			w.schedule("nightly", schedule.Definition{Every: 24 * time.Hour})
			w.Advance(24 * time.Hour)
			equal(w, "jobs", w.fire(w.Store).Jobs, 1)
			at := w.readSchedule("nightly").Progress.Recent[0].At
			s := w.readSchedule("nightly")
			plan, err := schedule.Between(s, at.Add(-5*24*time.Hour), at, 100)
			w.ok(err)
			first, err := schedule.Between(s, at.Add(-5*24*time.Hour), at, -2)
			w.ok(err)
			equal(w, "the first two", fmt.Sprint(first), fmt.Sprint(plan[:2]))
			_, err = schedule.Between(s, at.Add(-5*24*time.Hour), at, 2)
			w.is(err, sluice.ErrInvalid)
			made := 0
			for _, store := range []sluice.Store{w.Store, w.Other} {
				act := person("test")
				fires, err := schedule.Given(store).FireSchedule(w.ctx, "nightly", plan, act, nil)
				w.ok(err)
				equal(w, "fires", len(fires), len(plan))
				again, err := schedule.Given(w.Other).FireSchedule(w.ctx, "nightly", plan, act, nil)
				w.ok(err)
				equal(w, "results of the repeated act", results(again), results(fires))
				for _, f := range fires {
					if f.Result == schedule.Enqueued {
						made++
					}
				}
			}
			has := 0
			for _, f := range plan {
				if f.Equal(at) {
					has++
				}
			}
			equal(w, "jobs of the backfill", made, len(plan)-has)
			equal(w, "jobs", len(w.claim(20)), 1+made)
			equal(w, "fired", w.readSchedule("nightly").Progress.Fired, 1)
		}},
		{"R-1090", "Nobody can tell the ID of a fire's job before, and store another job with it: a schedule that is deleted and made again has other IDs for the same instants.", "", func(w *world) {
			at := w.Now().Add(-time.Hour)
			var jobs []sluice.ID
			for range 2 {
				w.schedule("nightly", schedule.Definition{Every: 24 * time.Hour})
				for _, store := range []sluice.Store{w.Store, w.Other} {
					fires, err := schedule.FireFor(w.ctx, store, "nightly", []time.Time{at}, person("test"), nil)
					w.ok(err)
					jobs = append(jobs, fires[0].Job)
				}
				w.ok(schedule.Delete(w.ctx, w.Store, "nightly", person("test")))
			}
			equal(w, "the repeated fire has the same job", [2]bool{jobs[1] == jobs[0], jobs[3] == jobs[2]}, [2]bool{true, true})
			equal(w, "the schedule that was made again has the same job", jobs[2] == jobs[0], false)
			equal(w, "jobs", len(w.claim(10)), 2)
		}},
		{"R-811", "A program that declares a schedule creates and changes it, but never what an operator has changed, until the override is lifted; a pause stays.", "I-4", func(w *world) {
			declare := func(every time.Duration) schedule.Schedule {
				all, err := schedule.Ensure(w.ctx, w.Store, []schedule.Schedule{{Name: "nightly", Definition: schedule.Definition{Queue: queue, Every: every}}}, person("deploy"))
				w.ok(err)
				return all[0]
			}
			equal(w, "created", declare(time.Hour).Every, time.Hour)
			equal(w, "version after the same again", declare(time.Hour).Version, 1)
			equal(w, "changed", declare(2*time.Hour).Every, 2*time.Hour)
			_, err := schedule.Set(w.ctx, w.Other, "nightly", schedule.Definition{Queue: queue, Every: 7 * time.Hour}, person("operator"))
			w.ok(err)
			stays := declare(3 * time.Hour)
			equal(w, "as the operator left it", stays.Every, 7*time.Hour)
			equal(w, "overridden", stays.Overridden(), true)
			equal(w, "declared", stays.Declared.Every, 3*time.Hour)
			_, err = schedule.Pause(w.ctx, w.Store, "nightly", "", person("operator"))
			w.ok(err)
			lifted, err := schedule.Lift(w.ctx, w.Store, "nightly", person("operator"))
			w.ok(err)
			equal(w, "lifted", lifted.Every, 3*time.Hour)
			equal(w, "overridden after the lift", lifted.Overridden(), false)
			last := declare(4 * time.Hour)
			equal(w, "changed again", last.Every, 4*time.Hour)
			equal(w, "still paused", last.Paused, true)
			undone, err := schedule.Undo(w.ctx, w.Store, "nightly", person("operator"))
			w.ok(err)
			equal(w, "undone", undone.Every, 3*time.Hour)
			equal(w, "an undo is an override", undone.Overridden(), true)
		}},
		{"R-812", "Jitter delays each job by at most so much, and by the same for the same fire.", "", func(w *world) {
			const schedules = 20
			for n := range schedules {
				w.schedule(fmt.Sprint("s", n), schedule.Definition{Every: 24 * time.Hour, Jitter: 12 * time.Hour})
			}
			w.Advance(24 * time.Hour)
			equal(w, "jobs", w.fire(w.Store).Jobs, schedules)
			now := len(w.claim(2 * schedules))
			if now >= schedules {
				w.Errorf("%d of %d jobs are due at once", now, schedules)
			}
			w.Advance(12 * time.Hour)
			equal(w, "jobs in the end", now+len(w.claim(2*schedules)), schedules)
		}},
	}
}

// passDay lets a day pass, and a little less of it the later the day is. A bench of a store that moves its rows instead of its clock
// has the same grid of instants on each day, and two fires at one instant would be the same fire.
func (w *world) passDay(n int) { w.Advance(24*time.Hour - time.Duration(n)*time.Minute) }

// schedule stores a schedule, for the usual queue if the definition names none. The first fire of an interval of a day is 22
// hours away.
func (w *world) schedule(name string, definition schedule.Definition) schedule.Schedule {
	w.Helper()
	if definition.Queue == "" {
		definition.Queue = queue
	}
	if definition.Every > 0 {
		definition.Start = w.Now().Add(-2402 * time.Hour)
	}
	s, err := schedule.Set(w.ctx, w.Store, name, definition, person("test"))
	w.ok(err)
	return s
}

func (w *world) readSchedule(name string) schedule.Schedule {
	w.Helper()
	s, err := schedule.Read(w.ctx, w.Other, name)
	w.ok(err)
	return s
}

// results lists the results of fires.
func results(fires []schedule.Fire) (text string) {
	for _, f := range fires {
		text += f.At.Format(time.DateOnly) + " " + string(f.Result) + "\n"
	}
	return text
}

// schedules lists the names of schedules.
func (w *world) schedules(filter schedule.Filter) string {
	w.Helper()
	all, err := schedule.List(w.ctx, w.Other, filter)
	w.ok(err)
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	return fmt.Sprint(names)
}

// fire fires what is due.
func (w *world) fire(store sluice.Store) schedule.Fired {
	w.Helper()
	fired, err := schedule.Given(store).FireSchedules(w.ctx, 100, nil)
	w.ok(err)
	return fired
}

// toldOf lists what the audit tells of a schedule, the newest first.
func (w *world) toldOf(name string) []sluice.AuditEntry {
	w.Helper()
	told, err := w.Store.Audit(w.ctx, sluice.AuditFilter{Object: audit.ObjectSchedule, Name: name, Limit: 100})
	w.ok(err)
	return told
}

func jsonText(w *world, of any) string {
	w.Helper()
	text, err := json.Marshal(of)
	w.ok(err)
	return string(text)
}
