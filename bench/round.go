package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/sluice-queue/sluice/bench/cell"
)

// runScenario measures all entrants of a scenario in each round, because a slow phase of the machine then hits all of
// them. Other cells still run after a cell fails.
func (r *rig) runScenario(ctx context.Context, s scenario, rounds int) (measured, []error) {
	m := make(measured)
	var failed []error
	for round := range rounds {
		for _, e := range s.entrants {
			begun := time.Now()
			result, err := r.run(ctx, e.task)
			if ctx.Err() != nil {
				return m, failed
			}
			if err != nil {
				failed = append(failed, fmt.Errorf("%s, %s, round %d: %w", s.name, e.name, round+1, err))
			}
			m[e.name] = append(m[e.name], result)
			where := fmt.Sprintf("%-23s %d/%d  %-26s", s.name, round+1, rounds, e.name)
			fmt.Fprintf(os.Stderr, "%s %s  (%.0f s)\n", where, outcome(s.headline, result, err), time.Since(begun).Seconds())
		}
	}
	return m, failed
}

// outcome formats the headline figures of a cell, or its error.
func outcome(headline []cell.Figure, result cell.Result, err error) string {
	if err != nil {
		return "FAILED: " + err.Error()
	}
	var parts []string
	for _, c := range columns {
		for _, figure := range headline {
			if value, has := result[figure]; has && c.Key == string(figure) {
				parts = append(parts, fmt.Sprintf("%s %.*f", c.Title, c.Decimals, value))
			}
		}
	}
	return strings.Join(parts, "  ")
}
