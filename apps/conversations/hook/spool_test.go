package hook_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/conversations/hook"
	"github.com/sluice-queue/sluice/apps/conversations/stages"
)

// lay spools an event, as a hook does that cannot reach the store, and returns the event's file.
func lay(t *testing.T, spool, content string) string {
	t.Helper()
	event := `{"event":"Stop","conversation_id":"` + conversation + `","content":"` + content + `"}`
	taken, err := hook.Take(t.Context(), strings.NewReader(event), hook.Options{DB: strings.TrimSuffix(spool, ".spool")})
	if err != nil || !taken.Spooled {
		t.Fatalf("took %+v, %v", taken, err)
	}
	files, err := filepath.Glob(filepath.Join(spool, "*"+taken.Message+".json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	return files[0]
}

func TestEventThatIsTakenInTwiceIsStoredOnce(t *testing.T) {
	t.Parallel()
	db, spool := open(t), filepath.Join(t.TempDir(), "later.db.spool")
	file := lay(t, spool, "hello")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if err := hook.SpoolOf(strings.TrimSuffix(spool, ".spool")).TakeIn(t.Context(), db, slog.New(slog.DiscardHandler), nil); err != nil {
			t.Fatal(err)
		}
		jobs := jobsOf(t, db)
		if len(jobs) != 1 {
			t.Fatalf("time %d: jobs %+v", i, jobs)
		}
		// The taker died before it removed the file. Meanwhile the job was cancelled, so a new job cannot be its
		// duplicate.
		if err := db.Client.Cancel(t.Context(), []sluice.ID{jobs[0].ID}, sluice.Act{By: "test", Reason: "over"}); i == 0 && err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTornAndRefusedEventsAreSetAside(t *testing.T) {
	t.Parallel()
	db, spool := open(t), filepath.Join(t.TempDir(), "later.db.spool")
	torn, empty, good := lay(t, spool, "torn"), lay(t, spool, "empty"), lay(t, spool, "good")
	for file, size := range map[string]int64{torn: 100, empty: 0} {
		if err := os.Truncate(file, size); err != nil {
			t.Fatal(err)
		}
	}
	s := hook.SpoolOf(strings.TrimSuffix(spool, ".spool"))
	var log strings.Builder
	if err := s.TakeIn(t.Context(), db, slog.New(slog.NewTextHandler(&log, nil)), nil); err != nil {
		t.Fatal(err)
	}
	messages, err := db.ToValidate(t.Context(), conversation)
	if err != nil || len(messages) != 1 || messages[0].Content != "good" {
		t.Errorf("messages %+v, %v", messages, err)
	}
	if s.Aside() != 2 || !strings.Contains(log.String(), filepath.Base(torn)) {
		t.Errorf("%d are aside; the log says %s", s.Aside(), log.String())
	}
	_, err = db.Client.ChangeSettings(t.Context(), stages.Validation.Name(), sluice.Act{By: "test", Reason: "refuse all"}, func(s *sluice.Settings) error {
		s.PayloadSchema = `{"type":"null"}`
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	lay(t, spool, "refused")
	if err := s.TakeIn(t.Context(), db, slog.New(slog.DiscardHandler), nil); err != nil || s.Aside() != 3 {
		t.Errorf("%d are aside, %v", s.Aside(), err)
	}
	if waiting, err := s.Waiting(); err != nil || waiting != 0 {
		t.Errorf("%d wait, %v (%s)", waiting, err, good)
	}
}

func TestClockThatWasSetBackKeepsTheOrder(t *testing.T) {
	t.Parallel()
	db, spool := open(t), filepath.Join(t.TempDir(), "later.db.spool")
	first := lay(t, spool, "first")
	_, id, _ := strings.Cut(filepath.Base(first), "-")
	if err := os.Rename(first, filepath.Join(spool, "09000000000000000000-"+id)); err != nil { // as if the clock had been in the year 2255
		t.Fatal(err)
	}
	lay(t, spool, "second")
	if err := hook.SpoolOf(strings.TrimSuffix(spool, ".spool")).TakeIn(t.Context(), db, slog.New(slog.DiscardHandler), nil); err != nil {
		t.Fatal(err)
	}
	messages, err := db.ToValidate(t.Context(), conversation)
	if err != nil || len(messages) != 2 || messages[0].Content != "first" {
		t.Errorf("messages %+v, %v", messages, err)
	}
}
