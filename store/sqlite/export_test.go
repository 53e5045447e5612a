package sqlite

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/history"
)

// WithColumns inserts the lists of job columns into a statement.
func WithColumns(statement string) string { return jobColumns.In(statement) }

// SliceWaves makes counts of waves read that many jobs at a time.
func (s *Store) SliceWaves(jobs int) { s.waveSlice = jobs }

// JudgeHealth changes the limit of a health check, so that a test need not fill a disk.
func (s *Store) JudgeHealth(check string, severity health.Severity, limit float64) {
	changed := s.checks[check]
	changed.Note, changed.Warning, changed.Error = 0, 0, 0
	switch severity {
	case health.SeverityNote:
		changed.Note = limit
	case health.SeverityWarning:
		changed.Warning = limit
	case health.SeverityError:
		changed.Error = limit
	}
	s.checks[check] = changed
}

// LookFor changes the time limit of a single health check.
func (s *Store) LookFor(most time.Duration) { s.lookTimeout = most }

// LieOn makes the system report a file system for the store's file: its kind, its free space, and whether it is mounted
// read-only.
func (s *Store) LieOn(kind, free int64, readOnly bool) {
	s.diskOf = func(string) (diskState, error) {
		return diskState{known: true, free: free, readOnly: readOnly, kind: kind}, nil
	}
}

// LieSomewhere makes the system report nothing about the file system.
func (s *Store) LieSomewhere() {
	s.diskOf = func(string) (diskState, error) { return diskState{}, nil }
}

// LetPass moves the begin of the measured waiting time into the past.
func (s *Store) LetPass(d time.Duration) {
	w := &s.writer.waits
	w.mu.Lock()
	defer w.mu.Unlock()
	w.from = w.from.Add(-d)
}

// PruneMeanwhile prunes once, and calls do between its search and its transaction.
func (s *Store) PruneMeanwhile(ctx context.Context, do func() error) (deleted int, err error) {
	var old []oldSpan
	err = s.read(ctx, "prune", func(tx runner) (err error) {
		old, err = findOld(tx, history.Place{}, maxPruned, now())
		return err
	})
	if err == nil {
		err = do()
	}
	if err != nil {
		return 0, err
	}
	return deleted, s.write(ctx, "prune", func(tx runner, _ bool) (err error) {
		deleted, err = deleteOld(tx, old)
		return err
	})
}

// Quoted writes a text for a shell.
func Quoted(text string) string { return quoted(text) }

// HoldRead keeps a read open until the test releases it.
func (s *Store) HoldRead() (release func(), reading <-chan struct{}) {
	begun, end := make(chan struct{}), make(chan struct{})
	go func() {
		_ = s.read(context.Background(), "hold", func(tx runner) error {
			rows, err := tx.query("select seq from sluice_live")
			if err != nil {
				return err
			}
			rows.Next()
			close(begun)
			<-end
			return rows.Close()
		})
	}()
	return func() { close(end) }, begun
}

// FileCheckInterval is how often reads check that the file still exists.
const FileCheckInterval = fileCheckInterval

// StepClock sets the wall clock of all stores of this program forward or back. Tests that do so run alone.
func StepClock(d time.Duration) { stepped.Add(d.Microseconds()) }

// StartMachine makes the file believe that the machine has started anew since it was opened.
func (s *Store) StartMachine(ctx context.Context) error {
	return s.write(ctx, "start the machine", func(tx runner, _ bool) error {
		_, err := tx.exec("delete from sluice_clock")
		return err
	})
}

// Migrated changes the schema as a migration does.
func Migrated(ctx context.Context, tx Tx, change string) error {
	run := runnerOf(ctx, tx)
	return withoutFollowers(run, func() error {
		_, err := run.exec(change)
		return err
	})
}

// SteadyClock returns the time of the clock that leases and rates use.
func (s *Store) SteadyClock() int64 { return s.steady.at() }

// KnowOneStepMore makes this process a program of the next version. It knows one schema step more, with these
// statements, for programs that know worksFrom steps. undo makes it the present version again. Tests that call it run
// alone.
func KnowOneStepMore(statements string, worksFrom int) (undo func()) {
	present := schemaSteps
	steps, err := present()
	next := sluice.Migration{Version: len(steps) + 1, Name: "of the next version", SQL: statements, Checksum: fmt.Sprintf("%x", sha256.Sum256([]byte(statements))), WorksFrom: worksFrom}
	steps = append(slices.Clone(steps), next)
	schemaSteps = func() ([]sluice.Migration, error) { return steps, err }
	return func() { schemaSteps = present }
}
