package main

import "strings"

const (
	// mostFailures is how many lines of one step are repeated.
	mostFailures = 40
	// afterFailure is how many lines are kept after a line that names a failed test: its notes, its
	// place and its reason.
	afterFailure = 8
)

// failures keeps the lines of a step's output that explain its failure. Such lines name a failed
// test, the failed line of a test script, a panic or a race; the lines after them are kept, too. If a
// step has none, failures keeps its last lines.
type failures struct {
	named, last []string
	follow      int
}

// hear reads a line.
func (f *failures) hear(line string) {
	switch {
	case names(line):
		f.follow = afterFailure + 1
	case strings.HasPrefix(line, "FAIL\t"): // the end of a package; tests of another may follow
		f.follow = 1
	}
	if f.follow > 0 && len(f.named) < mostFailures {
		f.named = append(f.named, line)
	}
	f.follow = max(0, f.follow-1)
	f.last = append(f.last, line)
	f.last = f.last[max(0, len(f.last)-mostFailures):]
}

// lines returns the kept lines.
func (f *failures) lines() []string {
	if len(f.named) > 0 {
		return f.named
	}
	return f.last
}

// names reports whether a line names a failed test of Go, Python or Node, the failed line of a test script, a panic
// or a race.
func names(line string) bool {
	line = strings.TrimSpace(line)
	for _, start := range []string{"--- FAIL: ", "FAIL: ", "ERROR: ", "not ok ", "panic: ", "WARNING: DATA RACE", "fatal error: "} {
		if strings.HasPrefix(line, start) {
			return true
		}
	}
	return false
}
