package main

import "strings"

const (
	// mostFailures bounds the lines that are repeated of one step.
	mostFailures = 40
	// afterFailure is how many lines are kept with the one that names a failed test: what it noted, where it failed, and why.
	afterFailure = 8
)

// failures keeps the lines of a step's output that say what failed: those that name a failed test, a panic or a race
// with what follows them; of a step without such lines, the last ones.
type failures struct {
	named, last []string
	follow      int
}

// hear takes in a line.
func (f *failures) hear(line string) {
	switch {
	case names(line):
		f.follow = afterFailure + 1
	case strings.HasPrefix(line, "FAIL\t"): // a package; the tests of another may come next
		f.follow = 1
	}
	if f.follow > 0 && len(f.named) < mostFailures {
		f.named = append(f.named, line)
	}
	f.follow = max(0, f.follow-1)
	f.last = append(f.last, line)
	f.last = f.last[max(0, len(f.last)-mostFailures):]
}

// lines gives what was kept.
func (f *failures) lines() []string {
	if len(f.named) > 0 {
		return f.named
	}
	return f.last
}

// names says whether a line of go test names a failed test, a panic or a race.
func names(line string) bool {
	line = strings.TrimSpace(line)
	for _, start := range []string{"--- FAIL: ", "panic: ", "WARNING: DATA RACE", "fatal error: "} {
		if strings.HasPrefix(line, start) {
			return true
		}
	}
	return false
}
