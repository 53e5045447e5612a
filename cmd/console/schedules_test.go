package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/console"
	"github.com/sluice-queue/sluice/schedule"
)

func TestASchedulesLifeInTheConsole(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	s.has("/schedules", "There is no schedule")
	made := url.Values{"schedule": {"nightly"}, "queue": {"reports"}, "cron": {"30 2 * * *"}, "zone": {"Europe/Berlin"}, "jitter": {"2m"}, "overlap": {"skip"}, "catch_up": {"last"}}
	for _, one := range []struct {
		act    string
		values url.Values
		path   string
		says   []string
	}{
		{"new-schedule", made, "/schedules", []string{"each day at 02:30 Europe/Berlin", "none yet"}},
		{"pause-schedule", url.Values{"schedule": {"nightly"}, "reason": {"<i>closed</i>"}}, "/schedules/nightly", []string{"Paused: &lt;i&gt;closed&lt;/i&gt;", "Resume", "-<i>closed"}},
		{"resume-schedule", url.Values{"schedule": {"nightly"}}, "/schedules/nightly", []string{"Next fires", "-Paused:"}},
		{"trigger-schedule", url.Values{"schedule": {"nightly"}}, "/schedules/nightly", []string{"by hand", `class="result result-`}},
		{"set-schedule", url.Values{"schedule": {"nightly"}, "edit": {"true"}, "queue": {"reports"}, "every": {"10m"}}, "/schedules/nightly", []string{"every 10m", "<dt>Spread</dt><dd>none"}},
		{"undo-schedule", url.Values{"schedule": {"nightly"}}, "/schedules/nightly", []string{"each day at 02:30", "<dt>Spread</dt><dd>2m"}},
	} {
		if answer, status := s.do(one.act, one.values, nil); status != http.StatusNoContent {
			t.Fatalf("%s: got %d %s, want 204", one.act, status, answer)
		}
		s.has(one.path, one.says...)
	}
	missed := url.Values{"schedule": {"nightly"}, "from": {"2026-11-01T00:00:00Z"}, "to": {"2026-11-03T00:00:00Z"}}
	if answer, _ := s.do("list-missed", missed, nil); !strings.Contains(answer, "2 fires, from 2026-11-01T01:30:00Z") {
		t.Errorf("a dry run: %s", answer)
	}
	if answer, _ := s.do("backfill-schedule", missed, nil); !strings.Contains(answer, "/operations/") {
		t.Errorf("a backfill: %s", answer)
	}
}

func TestOverridesOfDeclaredSchedulesAreShown(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	act := sluice.Act{By: "bob"}
	if _, err := schedule.Ensure(t.Context(), s.store, []schedule.Schedule{{Name: "poll", Definition: schedule.Definition{Queue: "feeds", Cron: "@hourly"}}}, act); err != nil {
		t.Fatal(err)
	}
	if _, err := schedule.Set(t.Context(), s.store, "poll", schedule.Definition{Queue: "feeds", Cron: "*/5 * * * *"}, act); err != nil {
		t.Fatal(err)
	}
	s.has("/schedules/poll", "every 5 minutes", "<del>@hourly</del> → <ins>*/5 * * * *</ins>", "Lift the override")
	if answer, status := s.do("lift-schedule", url.Values{"schedule": {"poll"}}, nil); status != http.StatusNoContent {
		t.Fatalf("lift-schedule: got %d %s, want 204", status, answer)
	}
	s.has("/schedules/poll", "each hour at minute 0", "-Lift the override")
}
