package cli

import (
	"fmt"
	"slices"

	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/internal/demo"
)

// print shows the results and whether the books balance.
func (d *demoRun) print() error {
	c, s := d.summary.Check, d.summary
	type row struct{ name, value, note string }
	rows := []row{
		{"payments stored", draw.Count(c.Payments), fmt.Sprintf("in %.1f s, %s/s", s.EnqueueSeconds, draw.Count(int(float64(c.Payments)/max(s.EnqueueSeconds, 0.001))))},
		{"posted", draw.Count(c.Posted), money(c.CentsPosted)},
		{"dead", draw.Count(c.Dead), money(c.CentsDead)},
		{"failed attempts", draw.Count(c.FailedAttempts), ""},
		{"recovered", draw.Count(c.Recoveries), killed(s.Killed)},
		{"posted twice", draw.Count(c.Doubled), ""},
		{"posted wrongly", draw.Count(c.Misposted), ""},
		{"lost", draw.Count(c.Unposted + c.Unfinished), ""},
	}
	if s.Pace != nil {
		rows = append(rows, row{"claims", draw.Count(s.Pace.Claims), fmt.Sprintf("%.1f/s; allowed are %s and a burst of %d", s.Pace.PerSecond, s.Pace.Rate, s.Pace.Burst)},
			row{"claimed too early", draw.Count(s.Pace.Over), ""})
	}
	if n := s.Refused + s.Duplicates; n > 0 {
		rows = slices.Insert(rows, 1, row{"lines left out", draw.Count(n), fmt.Sprintf("%s refused, %s duplicates", draw.Count(s.Refused), draw.Count(s.Duplicates))})
	}
	if err := printTable(d.app, rows, []column[row]{
		{"WHAT", func(r row) string { return r.name }, false},
		{"COUNT", func(r row) string { return r.value }, true},
		{"", func(r row) string { return r.note }, false},
	}); err != nil {
		return err
	}
	if len(c.Reasons) > 0 {
		fmt.Fprintln(d.stdout)
		if err := printTable(d.app, c.Reasons, []column[demo.Reason]{
			{"DEAD BECAUSE", func(r demo.Reason) string { return r.Error }, false},
			{"COUNT", func(r demo.Reason) string { return draw.Count(r.Count) }, true},
		}); err != nil {
			return err
		}
	}
	if err := d.printTiers(); err != nil {
		return err
	}
	look := "sluice queues --db " + s.Store
	if d.flags.gone && s.Holds {
		look = "run it again with --dir FOLDER, which keeps the store"
	}
	_, err := fmt.Fprintf(d.stdout, "\n%s\n  the entries of the ledger sum to %s\n  look yourself: %s\n", d.verdict(), money(c.Balance), look)
	return err
}

// printTiers shows the results of each tier, if there are tiers.
func (d *demoRun) printTiers() error {
	if d.summary.Tiers == nil {
		return nil
	}
	fmt.Fprintln(d.stdout)
	return printTable(d.app, d.summary.Tiers, []column[demo.Tier]{
		{"TIER", func(t demo.Tier) string { return orDash(t.Tier) }, false},
		{"TENANTS", func(t demo.Tier) string { return draw.Count(t.Tenants) }, true},
		{"JOBS", func(t demo.Tier) string { return draw.Count(t.Jobs) }, true},
		{"SHARE", func(t demo.Tier) string { return draw.Percent(1, t.Share) + " %" }, true},
		{"AT MOST IN FLIGHT", func(t demo.Tier) string { return draw.Count(t.Highest) }, true},
		{"CONCURRENCY", func(t demo.Tier) string { return concurrency(t.Concurrency) }, true},
		{"MEDIAN WAIT", func(t demo.Tier) string { return fmt.Sprintf("%.2f s", t.MedianWait) }, true},
	})
}

// concurrency formats a concurrency limit; 0: none.
func concurrency(n int) string {
	if n == 0 {
		return "-"
	}
	return draw.Count(n)
}

// verdict says what was proven, or which checks failed.
func (d *demoRun) verdict() string {
	c := d.summary.Check
	sums := fmt.Sprintf("%s = %s posted + %s dead", money(c.Cents), money(c.CentsPosted), money(c.CentsDead))
	if failed := d.failure(); failed != "" {
		text := "✖ " + failed
		if !d.balances {
			text += fmt.Sprintf(": %+v", c)
		}
		return text + "\n  " + sums
	}
	text := "✔ every payment was posted exactly once, or is dead with its reason\n✔ the money adds up: " + sums
	if d.summary.Tiers != nil {
		text = "✔ no tenant had more in flight than its concurrency, at any moment\n" + text
	}
	if d.summary.Pace != nil {
		text = "✔ no payment was claimed before the rate allowed it\n" + text
	}
	return text
}

// killed explains the recovered jobs.
func killed(workers int) string {
	switch workers {
	case 0:
		return "no worker was killed"
	case 1:
		return "from the worker that was killed"
	}
	return fmt.Sprintf("from %d workers that were killed", workers)
}

func money(cents int64) string {
	if cents < 0 {
		return "-" + money(-cents)
	}
	return fmt.Sprintf("%s.%02d EUR", draw.Count(int(cents/100)), cents%100)
}
