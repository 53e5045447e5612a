package sqlite

import (
	"time"

	"github.com/sluice-queue/sluice"
)

// SliceWaves makes counts of waves read so many jobs at a time.
func (s *Store) SliceWaves(jobs int) { s.waveSlice = jobs }

// JudgeHealth judges a check by another limit, so that a test need not fill a disk.
func (s *Store) JudgeHealth(check string, severity sluice.Severity, limit float64) {
	changed := s.checks[check]
	changed.Note, changed.Warning, changed.Error = 0, 0, 0
	switch severity {
	case sluice.SeverityNote:
		changed.Note = limit
	case sluice.SeverityWarning:
		changed.Warning = limit
	case sluice.SeverityError:
		changed.Error = limit
	}
	s.checks[check] = changed
}

// LookFor changes how long one look of Health may take.
func (s *Store) LookFor(most time.Duration) { s.lookTimeout = most }

// LieOn makes the system say that the file lies on a file system of a kind, with so much room, that is mounted read-only
// or not.
func (s *Store) LieOn(kind, free int64, readOnly bool) {
	s.diskOf = func(string) (diskState, error) {
		return diskState{known: true, free: free, readOnly: readOnly, kind: kind}, nil
	}
}

// LieSomewhere makes the system not say where the file lies.
func (s *Store) LieSomewhere() {
	s.diskOf = func(string) (diskState, error) { return diskState{}, nil }
}

// LetPass makes the share of waiting count from so much earlier on.
func (s *Store) LetPass(d time.Duration) {
	w := &s.writer.waits
	w.mu.Lock()
	defer w.mu.Unlock()
	w.from = w.from.Add(-d)
}

// Quoted writes a text for a shell.
func Quoted(text string) string { return quoted(text) }
