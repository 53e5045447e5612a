package cli_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/cmd/cli"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/litetest"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// An alert goes on firing after upkeep has stopped counting, and the list says that its value is old.
func TestAnAlertWhoseFigureIsNotKnownSaysSo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	litetest.MakeFile(t, path)
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	firing := func(rule string, value float64, at time.Time) alert.Alert {
		return alert.Alert{Rule: rule, Queue: "mail", State: alert.Firing, Severity: health.SeverityError, Value: value, Since: at, At: at}
	}
	err = alert.Given(store).SaveAlerts(t.Context(), alert.Evaluation{Alerts: []alert.Alert{
		firing("success-rate", 0.25, now.Add(-10*time.Minute)), firing("dead-letters", 12, now),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	printed, code := cli.Run(t.Context(), "alerts", "ls", "--db", "sqlite:"+path)
	if code != 0 || !strings.Contains(printed, "not known; 10m") || !strings.Contains(printed, " ago 0.25") || strings.Count(printed, "not known") != 1 {
		t.Errorf("exit code %d:\n%s", code, printed)
	}
	printed, _ = cli.Run(t.Context(), "alerts", "ls", "--db", "sqlite:"+path, "-o", "json")
	if strings.Count(printed, `"unknown": true`) != 1 {
		t.Errorf("as JSON:\n%s", printed)
	}
}
