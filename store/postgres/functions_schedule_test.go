package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/schedule"
)

// SaveSchedule pauses and resumes with the functions if nothing else changes and the note is the reason. Schedules that
// count failures are saved by the store, because benches move rows in time but not the instant of a resume.
func (s functionStore) SaveSchedule(ctx context.Context, one schedule.Schedule, act sluice.Act) (schedule.Schedule, error) {
	before, err := s.Schedule(ctx, one.Name)
	same := before
	same.Paused, same.Note = one.Paused, one.Note
	if err != nil || before.Paused == one.Paused || one.Paused && one.Note != act.Reason || act.Reason == "" || one.PauseAfter > 0 || contentOf(same) != contentOf(one) ||
		one.Version != before.Version {
		return s.Store.SaveSchedule(ctx, one, act)
	}
	name := "resume_schedule"
	if one.Paused {
		name = "pause_schedule"
	}
	if _, err := s.Pool().Exec(ctx, "select sluice."+name+"(name => $1, reason => $2, actor => $3)", one.Name, act.Reason, act.By); err != nil {
		return schedule.Schedule{}, named(err)
	}
	return s.Schedule(ctx, one.Name)
}

func contentOf(s schedule.Schedule) string {
	text, err := json.Marshal(s.ForAudit())
	if err != nil {
		panic(err)
	}
	return string(text)
}

// FireSchedule triggers a schedule with the function. Fires at given instants go to the store, because no function has
// them.
func (s functionStore) FireSchedule(ctx context.Context, name string, instants []time.Time, act sluice.Act, checker sluice.PayloadChecker) ([]schedule.Fire, error) {
	if len(instants) > 0 { // makes the functions count again, so that they see these jobs
		fires, err := s.Store.FireSchedule(ctx, name, instants, act, checker)
		_, failed := s.Pool().Exec(ctx, "select setval('sluice.room_' || n, 1) from generate_series(0, 31) n")
		return fires, errors.Join(err, named(failed))
	}
	var id [16]byte
	var duplicate bool
	err := s.Pool().QueryRow(ctx, "select id, duplicate from sluice.trigger_schedule(name => $1, reason => $2, actor => $3, act_id => $4)",
		name, orElse(act.Reason, "no reason"), act.By, [16]byte(act.ID)).Scan(&id, &duplicate)
	var full *pgconn.PgError
	if isCode(err, "SL010") && errors.As(err, &full) {
		return nil, fullOf(full.Message, 1)
	}
	if err != nil {
		return nil, named(err)
	}
	after, err := s.Schedule(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, f := range slices.Backward(after.Progress.Recent) {
		if f.Job == sluice.ID(id) {
			return []schedule.Fire{f}, nil
		}
	}
	return []schedule.Fire{{At: after.Now, Job: id, Result: schedule.Duplicate}}, nil
}

// An operator of one queue sees and fires the schedules of this queue only.
func TestOperatorsListPauseAndTriggerTheSchedulesOfTheirQueues(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	operator, worker := r.as(r.operator), r.as(r.worker)
	for _, queue := range []string{"scraper", "payments"} {
		_, err := schedule.Set(t.Context(), r.owner, "nightly-"+queue, schedule.Definition{
			Queue: queue, Cron: "30 2 * * *", Zone: "Europe/Berlin", Payload: json.RawMessage(`{"at":"{{fire}}","day":"{{date}}"}`), Key: "k {{date}}",
			Labels: map[string]string{"day": "{{date}}"}, Tenant: "acme", Priority: 3,
		}, sluice.Act{By: "ada"})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := value[string](r, operator, "select string_agg(name || ' ' || queue_name || ' ' || paused || ' ' || fired || ' ' || (next_at > now()), ',') from sluice.list_schedules()"); got != "nightly-scraper scraper false 0 true" {
		t.Errorf("the operator of one queue sees %q", got)
	}
	if !value[bool](r, operator, "select sluice.pause_schedule(name => 'nightly-scraper', reason => 'the site is down')") {
		t.Error("pause_schedule returned false, want true for the first call")
	}
	if value[bool](r, operator, "select sluice.pause_schedule(name => 'nightly-scraper', reason => 'again')") {
		t.Error("pause_schedule returned true, want false for a paused schedule")
	}
	paused, err := schedule.Read(t.Context(), r.owner, "nightly-scraper")
	if err != nil || !paused.Paused || paused.Note != "the site is down" || !paused.NextAt.IsZero() || paused.Version != 2 {
		t.Errorf("paused: %+v, %v", paused, err)
	}
	id := value[string](r, operator, "select id::text from sluice.trigger_schedule(name => 'nightly-scraper', reason => 'the site is back')")
	job, err := r.owner.Job(t.Context(), mustID(t, id))
	if err != nil {
		t.Fatal(err)
	}
	fired, err := schedule.Read(t.Context(), r.owner, "nightly-scraper")
	if err != nil || len(fired.Progress.Recent) != 1 {
		t.Fatalf("fired: %+v, %v", fired.Progress, err)
	}
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	fire := fired.Progress.Recent[0]
	day := fire.At.In(zone).Format(time.DateOnly)
	if want := `{"at":"` + fire.At.Format(time.RFC3339Nano) + `","day":"` + day + `"}`; string(job.Payload) != want || fire.Job != job.ID || fire.Result != schedule.ByHand {
		t.Errorf("payload %s, want %s; fire %+v", job.Payload, want, fire)
	}
	if job.Key != "k "+day || job.Labels["day"] != day || job.Labels[schedule.Label] != "nightly-scraper" || job.Tenant != "acme" || job.Priority != 3 {
		t.Errorf("job %+v", job)
	}
	if value[bool](r, operator, "select sluice.resume_schedule(name => 'nightly-scraper', reason => 'it is back')") {
		if _, err := r.owner.FireSchedules(t.Context(), 10, nil); err != nil {
			t.Fatal(err)
		}
	}
	resumed, err := schedule.Read(t.Context(), r.owner, "nightly-scraper")
	next, nextErr := resumed.Next(resumed.Now, 1)
	if err != nil || nextErr != nil || resumed.Paused || !resumed.NextAt.Equal(next[0]) || resumed.Progress.Fired != 0 {
		t.Errorf("resumed: %+v, %v, %v", resumed, err, nextErr)
	}
	for _, call := range []string{"pause_schedule", "resume_schedule", "pause_schedule", "resume_schedule"} {
		r.exec("select sluice." + call + "(name => 'nightly-scraper', reason => 'x')")
	}
	last, err := schedule.Pause(t.Context(), r.owner, "nightly-scraper", "", sluice.Act{By: "ada"})
	if err != nil || !last.Progress.Resumed.IsZero() || !last.NextAt.IsZero() {
		t.Errorf("paused before upkeep saw the resume: %+v, %v", last, err)
	}
	for _, call := range []string{"pause_schedule", "resume_schedule", "trigger_schedule"} {
		r.refused(operator, "SL005", "select sluice."+call+"(name => 'nightly-payments', reason => 'x')")
		r.refused(worker, "42501", "select sluice."+call+"(name => 'nightly-scraper', reason => 'x')")
	}
	r.refused(operator, "42501", "select * from sluice.list_schedules(queue => 'payments')")
}
