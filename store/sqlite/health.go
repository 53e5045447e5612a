package sqlite

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"time"

	"github.com/sluice-queue/sluice"
)

var (
	_ sluice.HealthReporter = (*Store)(nil)
	_ sluice.FigureReporter = (*Store)(nil)
)

// lookTimeout is how long one look may take, but for those that are thorough.
const lookTimeout = 3 * time.Second

// Health looks at the file, its log and the disk. It writes nothing.
func (s *Store) Health(ctx context.Context, options sluice.HealthOptions) (sluice.Health, error) {
	c := &checkup{store: s, options: options, health: sluice.Health{Kind: "sqlite", Figures: s.HealthFigures()}}
	if err := s.read(ctx, "look at the file", c.file); err != nil {
		return sluice.Health{}, err
	}
	c.log()
	for _, one := range []struct {
		check string
		see   func(context.Context) error
	}{
		{"lock", c.lock},
	} {
		if err := within(ctx, one.see); err != nil {
			if ctx.Err() != nil {
				return sluice.Health{}, ctx.Err()
			}
			c.find(sluice.SeverityWarning, one.check, "this could not be looked at: "+err.Error(), "what cannot be seen cannot be mended", "look again in a minute")
		}
	}
	return c.health, nil
}

// within makes one look under a deadline of its own.
func within(ctx context.Context, see func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return see(ctx)
}

// checkup is one examination.
type checkup struct {
	store   *Store
	options sluice.HealthOptions
	health  sluice.Health
}

func (c *checkup) find(severity sluice.Severity, check, what, why, mend string) {
	c.health.Findings = append(c.health.Findings, sluice.Finding{
		Check: check, Well: severity == sluice.SeverityNote, Severity: severity, What: what, Why: why, Mend: mend,
	})
}

func (c *checkup) well(check, format string, args ...any) {
	c.health.Findings = append(c.health.Findings, sluice.WellFound(check, format, args...))
}

func (c *checkup) figure(name string, value float64, unit string) {
	c.health.Figures = append(c.health.Figures, sluice.HealthFigure{Name: name, Value: value, Unit: unit})
}

// judge gives the severity that a figure has for a check.
func (c *checkup) judge(check string, value float64) sluice.Severity {
	return c.store.checks[check].Judge(value)
}

// checksByName gives what to judge by.
func checksByName() map[string]sluice.HealthCheck {
	checks := make(map[string]sluice.HealthCheck)
	for _, one := range sluice.HealthChecks() {
		if one.Kind == "sqlite" {
			checks[one.Name] = one
		}
	}
	return checks
}

// HealthFigures tells of the writer's queue, and of the log as the file system knows it.
func (s *Store) HealthFigures() []sluice.HealthFigure {
	of := func(name string, value float64, unit string) sluice.HealthFigure {
		return sluice.HealthFigure{Name: name, Value: value, Unit: unit}
	}
	log := s.logState()
	return []sluice.HealthFigure{
		of("writer_queue", float64(len(s.writer.queue)), ""),
		of("busy_waits_total", float64(s.writer.waits.times.Load()), ""),
		of("busy_wait_seconds_total", s.writer.waits.waited().Seconds(), "seconds"),
		of("wal_bytes", float64(log.bytes), "bytes"),
		of("checkpoint_age_seconds", log.age.Seconds(), "seconds"),
	}
}

// logState is what the file system knows of the write-ahead log.
type logState struct {
	bytes int64
	// age is since when nothing was brought from the log into the file, though there was something.
	age time.Duration
}

// logState looks at the two files without opening them: closing a file that SQLite has locked would take the locks away
// from all of the process.
func (s *Store) logState() logState {
	path := s.writer.file.path
	log, err := os.Stat(path + "-wal")
	if err != nil {
		return logState{}
	}
	state := logState{bytes: log.Size()}
	// In this journal mode only a checkpoint writes the file itself.
	if file, err := os.Stat(path); err == nil && log.Size() > 0 && log.ModTime().After(file.ModTime()) {
		state.age = max(time.Since(file.ModTime()), 0)
	}
	return state
}

// file reads how the file is set up.
func (c *checkup) file(tx runner) error {
	c.health.Findings = nil // of an earlier try
	version, err := list(tx, scanOne[string], "select sqlite_version()")
	if err != nil {
		return err
	}
	mode, err := list(tx, scanOne[string], "pragma journal_mode")
	if err != nil {
		return err
	}
	c.well("server", "SQLite %s", version[0])
	if mode[0] != "wal" {
		c.find(sluice.SeverityError, "journal", "the journal mode is "+mode[0], "readers and the writer keep each other waiting",
			"end the programs that use the file, and then: "+c.shell("pragma journal_mode = wal"))
	} else {
		c.well("journal", "write-ahead log")
	}
	if c.store.options.Relaxed {
		c.find(sluice.SeverityWarning, "durability", "this process acknowledges commits before they are on the disk (Options.Relaxed)",
			"a power cut loses the last of them: jobs are gone, and those that were done are run again", "open the store without Relaxed")
	} else {
		c.well("durability", "every commit is on the disk before it is acknowledged")
	}
	return nil
}

// shell writes a command that runs a statement on the file.
func (c *checkup) shell(statement string) string {
	return fmt.Sprintf("sqlite3 %s '%s'", c.store.writer.file.path, statement)
}

// log looks at how much waits to be brought into the file.
func (c *checkup) log() {
	state := c.store.logState()
	if severity := c.judge("wal", float64(state.bytes)); severity != "" {
		c.find(severity, "wal", fmt.Sprintf("the write-ahead log has %s, and nothing was brought into the file for %s", bytesText(float64(state.bytes)), span(state.age.Seconds())),
			"reads become slow, and the disk fills", "end the program that keeps a read open, and then: "+c.shell("pragma wal_checkpoint(truncate)"))
		return
	}
	c.well("wal", "%s", bytesText(float64(state.bytes)))
}

// lock takes the write lock and gives it back, to see how long that takes.
func (c *checkup) lock(ctx context.Context) error {
	begun := time.Now()
	err := c.store.writer.submit(ctx, func(*groupTx) error { return nil })
	waited := time.Since(begun).Seconds()
	c.figure("writer_wait_seconds", waited, "seconds")
	if severity := c.judge("lock", waited); severity != "" {
		c.find(severity, "lock", "it took "+span(waited)+" to get the write lock", "everything that writes waits", "end the transaction that holds it")
		return nil
	}
	return err
}
