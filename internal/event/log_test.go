package event_test

import (
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
)

// leftOut adds up the numbers of lines that the log reports as left out.
func (j *journal) leftOut() (n int64) {
	for _, l := range j.all() {
		if l.message == event.LinesLeftOut.Name {
			n += l.fields["lines"].Int64()
		}
	}
	return n
}

func TestStormIsAFewLinesAndTheirNumber(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		log := event.NewLog(slog.New(j), "a:1:x", 3)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				for range 100 {
					log.Emit(event.JobCompleted, "mail")
					log.Emit(event.JobCompleted, "sms")
					log.Emit(event.JobFailed, "mail")
				}
			})
		}
		all.Wait()
		log.Emit(event.JobCompleted, "rare")
		if n := len(j.all()); n != 3*3+1 {
			t.Errorf("there are %d lines within the window, want 10", n)
		}
		time.Sleep(event.Window)
		synctest.Wait()
		if n := j.leftOut(); n != 3*1000-3*3 {
			t.Errorf("%d lines are told to be left out, want %d", n, 3*1000-3*3)
		}
		for _, l := range j.all() {
			if l.message == event.LinesLeftOut.Name && l.fields["event"].String() == event.JobFailed.Name && l.level != slog.LevelError {
				t.Errorf("failures that were left out are told at %s", l.level)
			}
		}
		log.Emit(event.JobCompleted, "mail")
		if n := j.count(event.JobCompleted); n != 3+3+1+1 {
			t.Errorf("the next window has %d lines in all, want 8", n)
		}
	})
}

func TestNoLineIsLostAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		log := event.NewLog(slog.New(j), "", 0)
		for range 25 {
			log.Emit(event.JobCompleted, "mail")
		}
		log.Flush()
		log.Flush()
		if n := j.leftOut(); n != 15 || len(j.all()) != 11 {
			t.Errorf("%d are told to be left out in %d lines, want 15 in 11", n, len(j.all()))
		}
		log.Emit(event.JobCompleted, "mail") // the window is still open
		time.Sleep(event.Window)
		synctest.Wait()
		if n := j.leftOut(); n != 16 || len(j.all()) != 12 {
			t.Errorf("%d are told to be left out in %d lines, want 16 in 12", n, len(j.all()))
		}
	})
}

func TestAllLinesCanBeHad(t *testing.T) {
	t.Parallel()
	j := newJournal()
	log := event.NewLog(slog.New(j), "", -1)
	for range 1000 {
		log.Emit(event.JobCompleted, "mail", "error", "", "reason", nil)
	}
	if n := j.count(event.JobCompleted); n != 1000 {
		t.Errorf("there are %d lines", n)
	}
	if l := j.all()[0]; len(l.fields) != 1 {
		t.Errorf("what is empty is in the line: %v", l.fields)
	}
}

func TestWhatIsNotLoggedIsNotCounted(t *testing.T) {
	t.Parallel()
	var out countingWriter
	log := event.NewLog(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn})), "", 1)
	for range 100 {
		log.Emit(event.JobCompleted, "mail")
	}
	log.Flush()
	if out != 0 {
		t.Errorf("%d bytes were written", out)
	}
}

type countingWriter int

func (w *countingWriter) Write(p []byte) (int, error) {
	*w += countingWriter(len(p))
	return len(p), nil
}

// BenchmarkJob measures the cost of the log for each job: of a line that is left out, of a line that is written, and of
// one below the level.
func BenchmarkJob(b *testing.B) {
	claim := &sluice.Claim{Job: sluice.Job{ID: sluice.NewID(), Queue: "mail", Tenant: "acme"}}
	for name, c := range map[string]struct {
		limit int
		level slog.Level
	}{"left out": {10, slog.LevelInfo}, "written": {-1, slog.LevelInfo}, "not wanted": {10, slog.LevelWarn}} {
		b.Run(name, func(b *testing.B) {
			log := event.NewLog(slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: c.level})), "a:1:x", c.limit)
			b.ReportAllocs()
			for b.Loop() {
				log.EmitJob(event.JobCompleted, claim, "duration", time.Millisecond)
			}
		})
	}
}
