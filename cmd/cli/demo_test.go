package cli_test

import (
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/cmd/cli"
	"github.com/sluice-queue/sluice/internal/demo"
)

func TestDemoSaysWhichCheckFailed(t *testing.T) {
	t.Parallel()
	kept, early := &demo.Pace{Claims: 5}, &demo.Pace{Claims: 6, Over: 2}
	for name, c := range map[string]struct {
		balances  bool
		pace      *demo.Pace
		tiers     []demo.Tier
		says, not string
	}{
		"all is well":              {true, kept, []demo.Tier{{Claims: 5}}, "✔ no tenant had more in flight", "✖"},
		"too early":                {true, early, nil, "✖ 2 payments were claimed before the rate allowed it", "balance"},
		"over a concurrency":       {true, kept, []demo.Tier{{Claims: 4}, {Claims: 3, Over: 1}}, "✖ 1 claims gave a tenant more", "balance"},
		"claims that nobody tells": {true, nil, []demo.Tier{{Claims: 2}}, "✖ the audit tells of 2 claims, and 5 payments were posted", "balance"},
		"the books":                {false, kept, nil, "✖ the books do not balance", "✔"},
		"the books and the rate":   {false, early, nil, "✖ the books do not balance; 2 payments", "✔"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verdict := cli.DemoVerdict(c.balances, c.pace, c.tiers)
			if !strings.Contains(verdict, c.says) || strings.Contains(verdict, c.not) {
				t.Errorf("it says:\n%s\nwant %q", verdict, c.says)
			}
		})
	}
}
