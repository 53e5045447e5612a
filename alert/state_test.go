package alert_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
)

// TestAlertGoesThroughItsStates evaluates a rule every 15 s on a virtual clock. Each letter of looks is one evaluation.
// x breaks the threshold, . does not, and ? is unknown. X and _ are x and . during a silence. > breaks the threshold
// after more than 1 h without an evaluation.
//
// Each word of want is a state (i, p, f or s) and the change that the evaluation makes. F means that the alert fires, R
// that it is over, and H that a silence hides it. With r the alert is over, and no receiver is notified.
func TestAlertGoesThroughItsStates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		holds time.Duration
		looks string
		want  string
	}{
		"what holds for long enough fires once":         {time.Minute, "..xxxxxxx", "i i p p p p fF f f"},
		"what does not is never told":                   {time.Minute, "xxxx.xxxx.", "p p p p i p p p p i"},
		"without a while it fires at once":              {0, "x", "fF"},
		"its end is told":                               {0, "xx..x", "fF f iR i fF"},
		"an unknown figure leaves it as it is":          {time.Minute, "?x????xxxx?.", "i p p p p p fF f f f f iR"},
		"a silence hides it, and then it is told":       {0, "XXxx.", "sH s fF f iR"},
		"what is over while silenced reaches nobody":    {0, "XX_.", "sH s ir i"},
		"who was told hears of the end all the same":    {0, "xX_", "fF sH iR"},
		"who was told is not told again":                {0, "xXXx.", "fF sH s f iR"},
		"a silence does not keep it from pending":       {30 * time.Second, "XXXx", "p p sH fF"},
		"after a night without looks it is seen anew":   {time.Minute, "xx>xxxx", "p p p p p p fF"},
		"what fired goes on firing after such a night":  {0, "x>x.", "fF f f iR"},
		"what flaps is told each time, with no pending": {0, "x.x.", "fF iR fF iR"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := play(c.holds, c.looks); got != c.want {
				t.Errorf("%s gives\n%s, want\n%s", c.looks, got, c.want)
			}
		})
	}
}

// play evaluates a rule once for each letter of looks, and returns the states and the changes.
func play(holds time.Duration, looks string) string {
	rule := alert.Rule{Name: "dead-letters", Metric: alert.MetricDead, Op: ">", Threshold: 10, For: holds}
	one := alert.Alert{Rule: rule.Name, Queue: "payments"}
	now := time.Date(2026, 11, 21, 16, 0, 0, 0, time.UTC)
	var out []string
	for _, look := range looks {
		reading := alert.Reading{Value: 10}
		switch look {
		case 'x', 'X', '>':
			reading.Value = 11
		case '?':
			reading.Unknown = true
		}
		if look == '>' {
			now = now.Add(90 * time.Minute)
		}
		before := one
		var change alert.Change
		one, change = one.Next(rule, rule.Threshold, reading, look == 'X' || look == '_', now)
		word := string(one.State[0])
		switch {
		case change == alert.Resolves && !change.Reaches(before):
			word += "r"
		case change != "":
			word += map[alert.Change]string{alert.Fires: "F", alert.Resolves: "R", alert.Hides: "H"}[change]
		}
		out = append(out, word)
		now = now.Add(15 * time.Second)
	}
	return strings.Join(out, " ")
}

func TestPresetsKeepTheRulesAndCoverTheSources(t *testing.T) {
	t.Parallel()
	names, sources, used := map[string]bool{}, "", map[string]bool{}
	for _, r := range alert.Presets() {
		if err := r.Check(); err != nil {
			t.Errorf("%s: %v", r.Name, err)
		}
		if names[r.Name] || r.Summary == "" || strings.Count(r.Runbook, "\n") < 1 {
			t.Errorf("%s is there twice, or does not say what it means and what to do", r.Name)
		}
		names[r.Name], used[r.Metric] = true, true
		sources += r.Source + ", "
	}
	for _, source := range []string{"C-69", "C-70", "C-71", "C-72", "C-73", "D-59", "D-60", "D-61", "D-62"} {
		if !strings.Contains(sources, source) {
			t.Errorf("no preset is that of %s", source)
		}
	}
	for _, m := range alert.Metrics() {
		if !used[m.Name] {
			t.Errorf("no preset looks at %s", m.Name)
		}
	}
}

// TestRulesCoverTheQueuesTheyAreMeantFor covers queues with a budget of their own, which a threshold for all queues
// would contradict.
func TestRulesCoverTheQueuesTheyAreMeantFor(t *testing.T) {
	t.Parallel()
	queue := func(name string, change func(*sluice.Queue)) sluice.Queue {
		q := sluice.Queue{Name: name, Settings: sluice.DefaultSettings()}
		if change != nil {
			change(&q)
		}
		return q
	}
	rated := func(q *sluice.Queue) { q.Settings.Rate = sluice.RatePerSecond(2) }
	queues := []sluice.Queue{
		queue("plain", nil), queue("rated", rated),
		queue("engine", func(q *sluice.Queue) { q.Settings.Engine = "temporal" }),
		queue("paced", func(q *sluice.Queue) { rated(q); q.Settings.Engine = "temporal" }),
		queue("turns", func(q *sluice.Queue) { q.ByTenant = true }),
		queue("narrow", func(q *sluice.Queue) { q.Settings.Concurrency = 1 }),
		queue("sluice.notify.hook", func(*sluice.Queue) {}),
	}
	for rule, want := range map[string]string{
		"backlog": "plain", "backlog-engine": "engine", "old-job": "plain engine", "behind-pace": "rated paced", "long-backlog": "rated paced",
		"slow-runs": "plain rated turns narrow", "dying": "engine paced", "dead-letters": "plain rated engine paced turns narrow", "clock": "",
	} {
		var got []string
		for _, target := range alert.Targets(alert.Presets(), queues) {
			if target.Rule.Name == rule {
				got = append(got, target.Queue.Name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s covers %v, want %s", rule, got, want)
		}
	}
	own := alert.Rule{Name: "backlog", Queue: "paced", Metric: alert.MetricReady, Op: ">", Threshold: 7}
	off := alert.Rule{Name: "dead-letters", Queue: "plain", Metric: alert.MetricDead, Disabled: true}
	targets := alert.Targets(append(alert.Presets(), own, off), queues)
	find := func(rule, queue string) int {
		return slices.IndexFunc(targets, func(t alert.Target) bool { return t.Rule.Name == rule && t.Queue.Name == queue })
	}
	if i := find("backlog", "paced"); i < 0 || targets[i].Threshold != 7 {
		t.Errorf("the queue's own rule is %d", i)
	}
	if find("dead-letters", "plain") >= 0 {
		t.Error("a rule that is disabled for a queue is looked at there")
	}
	if i := find("start-failures", "paced"); targets[i].Threshold != 1 || targets[find("start-failures", "engine")].Threshold != 5 {
		t.Errorf("the threshold of a queue with two starts a second is %g", targets[i].Threshold)
	}
}
