package main

import (
	"os"
	"strconv"
	"strings"
)

// processors tells how busy the processors of a Linux machine are. Where that cannot be read, they count as idle.
type processors struct{ idled, all float64 }

// idle returns the share of time without work since the last call.
func (p *processors) idle() float64 {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 1
	}
	before := *p
	*p = spent(string(text))
	if p.all <= before.all {
		return 1
	}
	return (p.idled - before.idled) / (p.all - before.all)
}

// spent reads the first line of /proc/stat: the time since the start in each state, of which the fourth is idle and the
// fifth waits for a disk. The last two are part of others.
func spent(stat string) (since processors) {
	line, _, _ := strings.Cut(stat, "\n")
	for i, text := range strings.Fields(line) {
		ticks, err := strconv.ParseFloat(text, 64)
		if err != nil || i > 8 {
			continue // the name of the line, or time of guests
		}
		since.all += ticks
		if i == 4 || i == 5 {
			since.idled += ticks
		}
	}
	return since
}
